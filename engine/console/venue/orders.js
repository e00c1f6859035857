// The list of an account's orders or, with the operator's key, of all.
import { h, loading, notice, show } from "/console/shared/dom.js";
import { clock, cut } from "/console/shared/amounts.js";
import { rowTable } from "/console/shared/rows.js";
import { followOrders } from "./order_feed.js";
import { kindInWords, statusBadge, tradeInWords } from "./order_panel.js";
import { operatorHeaders, state } from "./state.js";

/** @param {{onPick: (id: string) => void, isOfAll?: boolean}} options */
export function orderList({ onPick, isOfAll = false }) {
  const empty = h("div", {});
  const list = rowTable({
    caption: "Orders, newest first", key: (record) => record.id, onPick: (record) => onPick(record.id), empty,
    columns: [
      { name: "Order", cell: (/** @type {any} */ record) => cut(record.id) },
      { name: "State", cell: (record) => statusBadge(record.status) },
      { name: "Trade", cell: tradeInWords },
      { name: "Kind", cell: kindInWords, isWide: true },
      { name: "Owner", cell: (record) => cut(record.owner), isWide: !isOfAll },
      { name: "Made", cell: (record) => clock(record.createdAt), isWide: true },
    ],
  });
  const element = h("section", { class: "card", "aria-label": isOfAll ? "All orders" : "Your orders" }, h("h2", {}, isOfAll ? "All orders" : "Your orders"), list.element);
  let stop = () => {};

  function open() {
    stop();
    list.setItems([]);
    const owner = state.wallet?.address;
    if (!isOfAll && !owner) {
      show(empty, notice("No account", "Connect an account to see its orders."));
      return;
    }
    show(empty, loading(4));
    let told = "";
    const wanted = new URLSearchParams({ chainId: String(state.chain?.chainId), ...(!isOfAll && { userAddress: owner }) });
    stop = followOrders(wanted, isOfAll ? operatorHeaders() : {}, {
      onOrders: (orders) => {
        if (!orders.length) show(empty, notice("No orders yet", "Orders appear here as soon as they are accepted."));
        list.setItems(orders);
      },
      onFault: (reason) => {
        if (reason !== told) show(empty, notice("The orders cannot be read", reason, "bad"));
        told = reason;
      },
    });
  }

  return { element, open, pick: list.pick, close: () => stop() };
}
