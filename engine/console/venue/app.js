// Starts the console: reads chains and tokens, and shows the page that the address names after its #.
import { announce, h, loading, notice, show } from "/console/shared/dom.js";
import { accountTools } from "./account.js";
import { address } from "./address.js";
import { load, onChange, state } from "./state.js";
import { tradePage } from "./trade.js";
import { makersPage } from "./makers.js";
import { auctionsPage } from "./auctions.js";
import { operatorPage } from "./operator.js";

/** @type {Record<string, {title: string, page: (main: HTMLElement, rest: string) => () => void}>} */
const PAGES = {
  trade: { title: "Trade", page: tradePage },
  makers: { title: "Makers", page: makersPage },
  auctions: { title: "Auctions", page: auctionsPage },
  operator: { title: "Operator", page: operatorPage },
};
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
let leave = () => {};
let isShown = "";

/** @param {boolean} isMoved whether a person went to the page, so that the focus follows */
function route(isMoved) {
  const [name, rest] = address();
  if (name === "main") return;
  const found = PAGES[name] ?? PAGES.trade;
  const place = `${found.title} ${state.chain?.chainId}`;
  if (place === isShown) return;
  isShown = place;
  leave();
  document.title = `${found.title} · cambist`;
  for (const link of document.querySelectorAll("nav.pages a")) {
    if (link.textContent === found.title) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  show(main);
  leave = found.page(main, rest);
  if (isMoved) {
    main.focus({ preventScroll: true });
    announce(`${found.title} page`);
  }
}

async function start() {
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
