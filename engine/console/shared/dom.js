// Builds elements. Text from outside becomes text nodes only: no markup of makers, tokens or venues is ever parsed.

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
    return h(tag, { class: columns[at]?.isNumber ? "number" : columns[at]?.isText ? "text" : false, scope: at === 0 ? "row" : false }, value);
  });
  return h("div", { class: "scroll", tabindex: "0", role: "group", "aria-label": caption },
    h("table", {},
      h("caption", { class: "unseen" }, caption),
      h("thead", {}, h("tr", {}, columns.map(({ name, isNumber }) => h("th", { scope: "col", class: isNumber ? "number" : false }, name)))),
      h("tbody", {}, rows.map((values) => h("tr", {}, cells(values))))));
}
