// Starts the console: reads chains and tokens, and shows the page that the address names after its #.
import { announce, h, loading, notice, show } from "/console/shared/dom.js";
import { accountTools, dressTheme } from "./account.js";
import { address } from "./address.js";
import { load, onChange, state } from "./state.js";
import { tradePage } from "./trade.js";
import { orderPage } from "./order_page.js";
import { otcPage } from "./otc.js";
import { makersPage } from "./makers.js";
import { auctionsPage } from "./auctions.js";
import { operatorPage } from "./operator.js";

/** @type {Record<string, {title: string, page: (main: HTMLElement, rest: string) => () => void, isOfOne?: boolean}>} `isOfOne`: another rest of the address is another page */
const PAGES = {
  trade: { title: "Trade", page: tradePage },
  order: { title: "Order", page: orderPage, isOfOne: true },
  otc: { title: "OTC", page: otcPage },
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
  const place = `${found.title} ${state.chain?.chainId}${found.isOfOne ? ` ${rest}` : ""}`;
  if (place === isShown && !(found === PAGES.trade && rest)) return;
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
    for (const dialog of /** @type {NodeListOf<HTMLDialogElement>} */ (document.querySelectorAll("dialog:not([data-busy])"))) dialog.close();
    scrollTo(0, 0);
    main.focus({ preventScroll: true });
    announce(`${found.title} page`);
  }
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
