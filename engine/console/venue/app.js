// Starts the console: reads chains and tokens, and shows the page that the address names after its #.
import { announce, h, loading, notice, show } from "/console/shared/dom.js";
import { accountTools, dressTheme } from "./account.js";
import { address } from "./address.js";
import { load, onChange, state } from "./state.js";
import { tradePage } from "./trade.js";

/**
 * Pages by the name in the address; all but the first are read when a person goes to them.
 * @typedef {(main: HTMLElement, rest: string) => () => void} Page
 * @type {Record<string, {title: string, read: () => Promise<Page>, isOfOne?: boolean}>} `isOfOne`: another rest of the address is another page
 */
const PAGES = {
  trade: { title: "Trade", read: async () => tradePage },
  order: { title: "Order", read: async () => (await import("./order_page.js")).orderPage, isOfOne: true },
  otc: { title: "OTC", read: async () => (await import("./otc.js")).otcPage },
  makers: { title: "Makers", read: async () => (await import("./makers.js")).makersPage },
  auctions: { title: "Auctions", read: async () => (await import("./auctions.js")).auctionsPage },
  operator: { title: "Operator", read: async () => (await import("./operator.js")).operatorPage },
};
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
let leave = () => {};
let isShown = "";

/** @param {boolean} isMoved whether a person went to the page, so that the focus follows */
async function route(isMoved) {
  const [name, rest] = address();
  if (name === "main") return;
  const found = PAGES[name] ?? PAGES.trade;
  const place = `${found.title} ${state.chain?.chainId}${found.isOfOne ? ` ${rest}` : ""}`;
  if (place === isShown && !(found === PAGES.trade && rest)) return;
  isShown = place;
  leave();
  document.title = `${found.title} · cambist`;
  for (const link of document.querySelectorAll("nav.pages a")) {
    if (link.textContent === found.title) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  leave = () => {};
  show(main);
  const page = await found.read().catch(() => null);
  if (isShown !== place) return; // a person went on meanwhile, and that page is being read
  if (!page) return lost();
  leave = page(main, rest);
  if (isMoved) {
    for (const dialog of /** @type {NodeListOf<HTMLDialogElement>} */ (document.querySelectorAll("dialog:not([data-busy])"))) dialog.close();
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    announce(`${found.title} page`);
  }
}

/** Say that a page's scripts cannot be read; the page is asked for again by a press. */
function lost() {
  isShown = "";
  show(main, notice("This page cannot be read", "The venue does not answer. Check that it runs.", "bad"), h("button", { type: "button", onclick: () => route(true) }, "Try again"));
}

async function start() {
  dressTheme();
  show(main, h("div", { class: "card" }, loading(4)));
  try {
    await load();
  } catch (error) {
    show(main, notice("The venue cannot be reached", String(/** @type {Error} */ (error).message), "bad"),
      h("button", { type: "button", onclick: start }, "Try again"));
    return;
  }
  accountTools(/** @type {HTMLElement} */ (document.getElementById("tools")));
  addEventListener("hashchange", () => route(true));
  onChange(() => route(false));
  route(false);
}

start();
