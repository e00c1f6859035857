// Builds elements. Text from outside becomes text nodes only: no markup of makers, tokens or venues is ever parsed.
import { cut, distance, moment } from "/console/shared/amounts.js";

const SVG = "http://www.w3.org/2000/svg";

/** @typedef {Node | string | number | bigint | null | undefined | false} Child */

/**
 * @param {Element} element
 * @param {Record<string, any>} properties attributes; `on...` names a listener, `value` and `checked` set properties
 * @param {(Child | Child[])[]} children
 */
function fill(element, properties, children) {
  for (const [name, value] of Object.entries(properties)) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else if (name === "value" || name === "checked" || name === "disabled") /** @type {any} */ (element)[name] = value;
    else element.setAttribute(name, value === true ? "" : String(value));
  }
  element.append(...nodes(children));
  return element;
}

/** @param {(Child | Child[])[]} children */
function nodes(children) {
  return /** @type {(Node | string)[]} */ (
    children.flat().filter((child) => child !== null && child !== undefined && child !== false)
      .map((child) => (child instanceof Node ? child : String(child)))
  );
}

/**
 * An HTML element.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {HTMLElement}
 */
export const h = (tag, properties = {}, ...children) =>
  /** @type {HTMLElement} */ (fill(document.createElement(tag), properties, children));

/**
 * An SVG element.
 * @param {string} tag
 * @param {Record<string, any>} [properties]
 * @param {...(Child | Child[])} children
 * @returns {SVGElement}
 */
export const s = (tag, properties = {}, ...children) =>
  /** @type {SVGElement} */ (fill(document.createElementNS(SVG, tag), properties, children));

const HELD_MS = 10_000;
/** @type {{target: Node, until: number} | null} */ let held = null;
/** @type {Map<Element, () => void>} */ const waiting = new Map();
document.addEventListener("pointerdown", ({ target }) => { held = target instanceof Node ? { target, until: performance.now() + HELD_MS } : null; }, true);
for (const name of ["pointerup", "pointercancel"]) {
  document.addEventListener(name, () => {
    held = null;
    setTimeout(() => waiting.forEach((act, element) => whenFree(element, act))); // after the click
  }, true);
}

/**
 * Change what an element has, now or after a press within it, which would be a click on nothing else. The last change counts.
 * @param {Element} element
 * @param {() => void} act
 */
export function whenFree(element, act) {
  if (held && element.contains(held.target) && performance.now() < held.until) {
    waiting.set(element, act);
    return;
  }
  waiting.delete(element);
  act();
}

/**
 * Replace the children of an element, when it is free. The focus goes from a replaced button to its successor, which has
 * the same name.
 * @param {Element} element
 * @param {...(Child | Child[] | (() => Child[]))} children functions are called when the children are replaced
 */
export function show(element, ...children) {
  whenFree(element, () => {
    const focused = element.contains(document.activeElement) ? document.activeElement : null;
    element.replaceChildren(...nodes(children.map((child) => (typeof child === "function" ? child() : child))));
    if (!focused || focused.isConnected || !["button", "summary"].includes(focused.localName)) return;
    const all = /** @type {HTMLElement[]} */ ([...element.querySelectorAll(focused.localName)]);
    all.find((each) => nameOf(each) === nameOf(focused))?.focus({ preventScroll: true });
  });
}

/** @param {Element} button */
const nameOf = (button) => button.getAttribute("aria-label") ?? button.textContent;

/** Say a sentence to screen readers. @param {string} sentence */
export function announce(sentence) {
  const said = document.getElementById("announcer");
  if (said && said.textContent !== sentence) said.textContent = sentence;
}

const TICK_MS = 1_000;
setInterval(() => {
  if (document.hidden) return;
  for (const each of document.querySelectorAll("time[data-ms]")) {
    const text = distance(Number(/** @type {HTMLElement} */ (each).dataset.ms), Date.now());
    if (each.textContent !== text) each.textContent = text;
  }
}, TICK_MS);

/** A time as people say it ("12 s ago", "in 3 min"), which goes on by itself; its title is exact. @param {string | number} at */
export const when = (at) => {
  const ms = new Date(at).getTime();
  return h("time", { datetime: new Date(ms).toISOString(), title: moment(ms), "data-ms": ms }, distance(ms, Date.now()));
};

const COPIED_MS = 1_500;
const copySign = () => s("svg", { viewBox: "0 0 16 16", width: 14, height: 14, "aria-hidden": "true", fill: "none", stroke: "currentColor", "stroke-width": 1.4 },
  s("rect", { x: 5.5, y: 5.5, width: 8, height: 8, rx: 1.5 }), s("path", { d: "M10.5 3v-.5A1 1 0 0 0 9.500 1.500h-6a1 1 0 0 0-1 1v6a1 1 0 0 0 1 1H3" }));

/** A button that copies a text. @param {string} text @param {string} what in words */
export function copyButton(text, what) {
  const button = h("button", { type: "button", class: "copy", "aria-label": `Copy ${what}`, title: `Copy ${what}`, onclick: async () => {
    await navigator.clipboard?.writeText(text).catch(() => {});
    show(button, "✓");
    announce(`${what} copied`);
    setTimeout(() => show(button, copySign()), COPIED_MS);
  } }, copySign());
  return button;
}

/**
 * A hash or an address, cut, with the whole text to copy, and a page of a block explorer if there is one.
 * @param {string} text @param {string} what in words @param {string | null} [url] of the explorer's page
 */
export const codeOf = (text, what, url) => h("span", { class: "mono", title: text },
  url ? h("a", { href: url, target: "_blank", rel: "noreferrer" }, cut(text)) : cut(text), " ", copyButton(text, what));

/**
 * A dialog with a title; it leaves the page when it is closed.
 * @param {string} id of the title @param {...(Child | Child[])} children
 */
export function dialogOf(id, ...children) {
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": id }, h("div", {}, ...children)));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
  return dialog;
}

/** Ask before an act. @param {string} words @param {string} [yes] word of the button @returns {Promise<boolean>} */
export function confirmed(words, yes = "Yes") {
  return new Promise((resolve) => {
    let is = false;
    const answer = (/** @type {boolean} */ value) => () => { is = value; dialog.close(); };
    const dialog = dialogOf("question", h("h2", { id: "question" }, words),
      h("div", { class: "actions" }, h("button", { type: "button", onclick: answer(false) }, "No"), h("button", { type: "button", class: "primary", onclick: answer(true) }, yes)));
    dialog.addEventListener("close", () => resolve(is));
  });
}

/**
 * A term and its value.
 * @param {string} term
 * @param {Child | Child[]} value
 * @param {string} [tone]
 */
export const row = (term, value, tone = "") => h("div", { class: "row" }, h("dt", {}, term), h("dd", { class: tone }, value));

/**
 * A small coloured word for a state.
 * @param {string} word
 * @param {"good" | "bad" | "warn" | "quiet" | "busy"} tone
 */
export const badge = (word, tone) => h("span", { class: `badge ${tone}` }, word);

/**
 * A panel in the place of content that is absent.
 * @param {string} title
 * @param {Child} [text]
 * @param {"" | "bad"} [tone]
 */
export const notice = (title, text, tone = "") =>
  h("div", { class: `notice ${tone}`, role: tone ? "alert" : false }, h("strong", {}, title), text ? h("p", {}, text) : null);

/** Grey bars in the place of content that is being read. @param {number} lines */
export const loading = (lines) =>
  h("div", { class: "loading", "aria-busy": "true" }, h("span", { class: "unseen" }, "Loading"), Array.from({ length: lines }, () => h("span", {})));

/**
 * A table of text.
 * @param {string} caption read to screen readers
 * @param {{name: string, isNumber?: boolean, isText?: boolean}[]} columns `isText`: sentences, which wrap
 * @param {Child[][]} rows
 */
export function table(caption, columns, rows) {
  const cells = (/** @type {Child[]} */ values) => values.map((value, at) => {
    const tag = at === 0 ? "th" : "td";
    return h(tag, { class: columns[at]?.isNumber ? "number" : columns[at]?.isText ? "text" : false, scope: at === 0 ? "row" : false, "data-name": columns[at]?.name }, value);
  });
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h("table", {},
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, columns.map(({ name, isNumber }) => h("th", { scope: "col", class: isNumber ? "number" : false }, name)))),
      h("tbody", {}, rows.map((values) => h("tr", {}, cells(values))))));
}
