// What an account has done: its open orders, those that ended, and its swaps, which this browser remembers.
import { codeOf, h, loading, notice, show, when } from "/console/shared/dom.js";
import { rowTable } from "/console/shared/rows.js";
import { followOrders } from "./order_feed.js";
import { ENDED, kindInWords, statusBadge, tradeInWords } from "./order_words.js";
import { amount, explorerUrl, state } from "./state.js";

const SWAPS_KEPT = 50;

/** @typedef {{chainId: number, hash: string, at: number, block: number, srcToken: string, destToken: string, srcAmount: string, destAmount: string | null}} Swap */

/** Swaps of the present account on the present chain, the newest first. @returns {Swap[]} */
function swaps() {
  try {
    const found = JSON.parse(localStorage.getItem(place()) ?? "[]");
    return Array.isArray(found) ? found.filter((one) => typeof one?.hash === "string") : [];
  } catch {
    return [];
  }
}
const place = () => `swaps ${state.chain?.chainId} ${state.wallet?.address.toLowerCase()}`;

/** @param {Swap} swap */
function remember(swap) {
  try {
    localStorage.setItem(place(), JSON.stringify([swap, ...swaps().filter(({ hash }) => hash !== swap.hash)].slice(0, SWAPS_KEPT)));
  } catch {
    // a browser without room, or without leave to keep anything, shows the swap once
  }
}

/** The card of an account's activity; `done` notes what a person has just done. */
export function activity() {
  let chosen = "open";
  /** @type {Api_OrderRecord[] | null} */ let orders = null;
  /** @type {Swap[]} */ let kept = [];
  let fault = "";
  let heard = (/** @type {Api_OrderRecord[]} */ _orders) => {};
  let stop = () => {};
  const empty = h("div", {});
  const list = rowTable({
    caption: "Orders, newest first", key: (record) => record.id, onPick: (record) => { location.hash = `order/${record.id}`; }, empty,
    columns: [
      { name: "Trade", cell: (/** @type {Api_OrderRecord} */ record) => tradeInWords(record) },
      { name: "State", cell: (record) => statusBadge(record.status) },
      { name: "Kind", cell: kindInWords, isWide: true },
      { name: "Placed", cell: (record) => when(record.createdAt), isWide: true },
    ],
  });
  const swapList = rowTable({
    caption: "Swaps, newest first", key: (one) => one.hash, empty: h("div", {}),
    columns: [
      { name: "Trade", cell: (/** @type {Swap} */ one) => `${amount(one.srcAmount, one.srcToken)} → ${one.destAmount === null ? "?" : amount(one.destAmount, one.destToken)}` },
      { name: "When", cell: (one) => when(one.at) },
      { name: "Block", isNumber: true, isWide: true, cell: (one) => String(one.block) },
      { name: "Transaction", isWide: true, cell: (one) => codeOf(one.hash, "transaction", explorerUrl(one.chainId, "tx", one.hash)) },
    ],
  });
  const tabs = h("div", { class: "segments small", role: "group", "aria-label": "Activity" });
  const body = h("div", {});
  const element = h("section", { class: "card", "aria-label": "Your activity" }, h("div", { class: "heading" }, h("h2", {}, "Your activity"), tabs), body);

  function draw() {
    const all = orders ?? [];
    const of = { open: all.filter(({ status }) => !ENDED.includes(status)), history: all.filter(({ status }) => ENDED.includes(status)) };
    const counts = /** @type {[string, string, number][]} */ ([["open", "Open", of.open.length], ["history", "History", of.history.length], ["swaps", "Swaps", kept.length]]);
    show(tabs, counts.map(([name, word, count]) => h("button", { type: "button", "aria-pressed": String(name === chosen), onclick: () => { chosen = name; draw(); } }, `${word} ${count}`)));
    if (!state.wallet) return show(body, notice("No account", "Connect an account to see its orders and swaps."));
    if (chosen === "swaps") {
      swapList.setItems(kept);
      return show(body, kept.length ? swapList.element : notice("No swaps yet", "This browser remembers the swaps that you send from it."));
    }
    const shown = of[/** @type {"open" | "history"} */ (chosen)];
    show(empty, fault ? notice("The orders cannot be read", fault, "bad") : orders === null ? loading(3)
      : chosen === "open" ? notice("No open orders", "Orders appear here as soon as they are accepted.") : notice("No ended orders", "Orders that are filled, cancelled or over appear here."));
    list.setItems(shown);
    if (body.firstChild !== list.element) show(body, list.element);
    return undefined;
  }

  function open() {
    stop();
    orders = null;
    fault = "";
    kept = state.wallet ? swaps() : [];
    draw();
    if (!state.wallet || !state.chain?.delta) {
      orders = [];
      heard([]);
      draw();
      return;
    }
    const wanted = new URLSearchParams({ chainId: String(state.chain.chainId), userAddress: state.wallet.address });
    stop = followOrders(wanted, {}, {
      onOrders: (found) => {
        orders = found;
        fault = "";
        draw();
        heard(found);
      },
      onFault: (reason) => { if (reason !== fault) { fault = reason; draw(); } },
    });
  }

  return {
    element, open, close: () => stop(),
    /** @param {(orders: Api_OrderRecord[]) => void} listener called with all orders of the account at each change */
    onOrders(listener) { heard = listener; },
    /** @param {import("./trade_plan.js").Outcome} outcome */
    done({ swap }) {
      chosen = swap ? "swaps" : "open";
      if (swap) {
        remember(swap);
        kept = swaps().length ? swaps() : [swap];
      }
      draw();
    },
  };
}
