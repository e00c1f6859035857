// A table of thousands of rows, of which only the visible ones exist as elements.
import { h, show, whenFree } from "./dom.js";

const SPARE = 6; // rows above and below the visible ones

/**
 * @template T
 * @typedef {object} Column
 * @property {string} name
 * @property {(item: T) => import("./dom.js").Child} cell
 * @property {boolean} [isNumber]
 * @property {boolean} [isWide] left out on narrow screens
 */

/**
 * A table with a row of `rowPx` for each item; `setItems` replaces all items.
 * @template T
 * @param {{caption: string, columns: Column<T>[], key: (item: T) => string, onPick?: (item: T) => void, empty: HTMLElement, rowPx?: number}} options
 */
export function rowTable({ caption, columns, key, onPick, empty, rowPx = 44 }) {
  /** @type {T[]} */
  let items = [];
  /** @type {Map<string, {item: T, element: HTMLElement}>} */
  let shown = new Map();
  let picked = "";
  let isPlanned = false;
  const side = (/** @type {Column<T>} */ column) => [column.isNumber ? "number" : "", column.isWide ? "wide" : ""].join(" ").trim() || false;
  const above = h("tr", { "aria-hidden": "true" }, h("td", { colspan: columns.length }));
  const below = h("tr", { "aria-hidden": "true" }, h("td", { colspan: columns.length }));
  const body = h("tbody", {});
  const inner = h("table", { "aria-rowcount": 0 },
    h("caption", { class: "unseen" }, caption),
    h("thead", {}, h("tr", { "aria-rowindex": 1 }, columns.map((column) => h("th", { scope: "col", class: side(column) }, column.name)))),
    body);
  const view = h("div", { class: "rows", tabindex: "0", role: "group", "aria-label": caption, onscroll: plan }, inner);
  const element = h("div", {}, empty, view);

  /** @param {T} item @param {number} at */
  function made(item, at) {
    const id = key(item);
    const pick = () => onPick?.(item);
    const found = h("tr", { "aria-rowindex": at + 2, class: id === picked ? "picked" : false },
      columns.map((column, place) => {
        const value = column.cell(item);
        const inside = place === 0 && onPick ? h("button", { class: "link", type: "button", onclick: pick }, value) : value;
        return h(place === 0 ? "th" : "td", { class: side(column), scope: place === 0 ? "row" : false }, inside);
      }));
    if (onPick) found.addEventListener("click", (click) => { if (!(click.target instanceof HTMLButtonElement)) pick(); });
    return found;
  }

  function draw() {
    isPlanned = false;
    const first = Math.max(0, Math.floor(view.scrollTop / rowPx) - SPARE);
    const last = Math.min(items.length, Math.ceil((view.scrollTop + view.clientHeight) / rowPx) + SPARE);
    const next = new Map();
    for (let at = first; at < last; at += 1) {
      const item = items[at];
      const before = shown.get(key(item));
      next.set(key(item), before?.item === item ? before : { item, element: made(item, at) });
      next.get(key(item)).element.setAttribute("aria-rowindex", String(at + 2));
    }
    const wanted = [above, ...[...next.values()].map((one) => one.element), below];
    if (wanted.length !== body.children.length || wanted.some((one, at) => body.children[at] !== one)) {
      const focused = document.activeElement?.closest("tr");
      const id = [...shown].find(([, one]) => one.element === focused)?.[0];
      arrange(wanted);
      if (id && next.has(id)) next.get(id).element.querySelector("button")?.focus({ preventScroll: true });
    }
    shown = next;
    above.style.height = `${first * rowPx}px`;
    below.style.height = `${(items.length - last) * rowPx}px`;
  }

  // Rows that stay are not moved: the browser lays out only those that come.
  /** @param {Element[]} wanted */
  function arrange(wanted) {
    const staying = new Set(wanted);
    for (const one of [...body.children]) if (!staying.has(one)) one.remove();
    wanted.forEach((one, at) => { if (body.children[at] !== one) body.insertBefore(one, body.children[at] ?? null); });
  }

  function plan() {
    if (!isPlanned) requestAnimationFrame(() => whenFree(body, draw));
    isPlanned = true;
  }
  new ResizeObserver(plan).observe(view);

  return {
    element,
    /** @param {T[]} given */
    setItems(given) {
      items = given;
      empty.hidden = items.length > 0;
      view.hidden = items.length === 0;
      inner.setAttribute("aria-rowcount", String(items.length + 1));
      plan();
    },
    /** @param {string} id */
    pick(id) {
      picked = id;
      for (const [each, { element: found }] of shown) found.classList.toggle("picked", each === id);
    },
    /** @param {HTMLElement} panel */
    setEmpty(panel) {
      show(empty, panel);
    },
  };
}
