// The list of all orders for the operator, with a search by id, hash, owner or state.
import { h, loading, notice, show, when } from "/console/shared/dom.js";
import { cut } from "/console/shared/amounts.js";
import { rowTable } from "/console/shared/rows.js";
import { followOrders } from "./order_feed.js";
import { kindInWords, statusBadge, tradeInWords } from "./order_words.js";
import { operatorHeaders, state } from "./state.js";

/** @param {{onPick: (id: string) => void}} options */
export function orderList({ onPick }) {
  /** @type {Api_OrderRecord[]} */ let all = [];
  const empty = h("div", {});
  const list = rowTable({
    caption: "Orders, newest first", key: (record) => record.id, onPick: (record) => onPick(record.id), empty,
    columns: [
      { name: "Order", cell: (/** @type {Api_OrderRecord} */ record) => cut(record.id) },
      { name: "State", cell: (record) => statusBadge(record.status) },
      { name: "Trade", cell: tradeInWords },
      { name: "Kind", cell: kindInWords, isWide: true },
      { name: "Owner", cell: (record) => h("span", { class: "mono", title: record.owner }, cut(record.owner)), isWide: true },
      { name: "Placed", cell: (record) => when(record.createdAt), isWide: true },
    ],
  });
  const search = /** @type {HTMLInputElement} */ (h("input", { type: "search", id: "order-search", autocomplete: "off", spellcheck: "false", placeholder: "id, hash, owner or state", oninput: () => draw() }));
  const element = h("section", { class: "part", "aria-label": "All orders" }, h("div", { class: "inline" }, h("label", { class: "field", for: "order-search" }, "Find orders", search)), list.element);
  let stop = () => {};

  function draw() {
    const wanted = search.value.trim().toLowerCase();
    const found = wanted ? all.filter(({ id, orderHash, owner, status }) => [id, orderHash, owner, status].some((text) => text?.toLowerCase().includes(wanted))) : all;
    if (!found.length) show(empty, all.length ? notice("No order found", "No order on this chain has this id, hash, owner or state.") : notice("No orders yet", "Orders appear here as soon as they are accepted."));
    list.setItems(found);
  }

  function open() {
    stop();
    all = [];
    list.setItems([]);
    show(empty, loading(4));
    let told = "";
    stop = followOrders(new URLSearchParams({ chainId: String(state.chain?.chainId) }), operatorHeaders(), {
      onOrders: (orders) => {
        all = orders;
        draw();
      },
      onFault: (reason) => {
        if (reason !== told) show(empty, notice("The orders cannot be read", reason, "bad"));
        told = reason;
      },
    });
  }

  return { element, open, close: () => stop() };
}
