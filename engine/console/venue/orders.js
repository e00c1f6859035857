// The orders of an account (or, with the operator's key, of all), newest first, kept current by the venue's events.
import { h, loading, notice, show } from "/console/shared/dom.js";
import { ask, follow } from "/console/shared/http.js";
import { clock, cut } from "/console/shared/amounts.js";
import { rowTable } from "/console/shared/rows.js";
import { kindInWords, statusBadge, tradeInWords } from "./order_panel.js";
import { operatorHeaders, state } from "./state.js";

const PAGE = 1_000;
const MOST = 10_000;
const GATHER_MS = 100;
const IDS_MOST = 100;
const AGAIN_MS = 2_500;

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
  /** @type {Map<string, any>} */ let orders = new Map();
  /** @type {Set<string>} */ const changed = new Set();
  let gathering = 0;
  let opening = 0;
  let turn = 0;

  async function refresh() {
    gathering = 0;
    const now = turn;
    const ids = [...changed].slice(0, IDS_MOST);
    ids.forEach((id) => changed.delete(id));
    if (!ids.length) return;
    const found = await ask(`/v2/delta/orders?ids=${ids.join(",")}&limit=${IDS_MOST}`).catch(() => null);
    if (now !== turn) return;
    if (!found) ids.forEach((id) => changed.add(id));
    for (const record of found?.data ?? []) {
      if (!orders.has(record.id)) orders = new Map([[record.id, record], ...orders]);
      else orders.set(record.id, record);
    }
    list.setItems([...orders.values()]);
    if (changed.size && !gathering) gathering = setTimeout(refresh, found ? GATHER_MS : AGAIN_MS);
  }

  function open() {
    stop();
    clearTimeout(opening);
    changed.clear();
    turn += 1;
    const now = turn;
    orders = new Map();
    list.setItems([]);
    const owner = state.wallet?.address;
    if (!isOfAll && !owner) {
      show(empty, notice("No account", "Connect an account to see its orders."));
      return;
    }
    show(empty, loading(4));
    const whose = new URLSearchParams({ chainId: String(state.chain?.chainId), ...(!isOfAll && { userAddress: owner }) });
    const headers = isOfAll ? operatorHeaders() : {};
    let isRead = false;
    const fail = (/** @type {string} */ reason) => { if (!isRead) show(empty, notice("The orders cannot be read", reason, "bad")); };

    /** Read all pages, once events come: no change between the two is missed. */
    async function read() {
      clearTimeout(opening);
      try {
        for (let page = 1, more = true; more && orders.size < MOST; page += 1) {
          const answer = await ask(`/v2/delta/orders?${whose}&limit=${PAGE}&page=${page}`, { headers });
          if (now !== turn) return;
          for (const record of answer.data) orders.set(record.id, record);
          more = answer.hasMore;
          list.setItems([...orders.values()]);
        }
        isRead = true;
        show(empty, notice("No orders yet", "Orders appear here as soon as they are accepted."));
        refresh();
      } catch (error) {
        if (now !== turn) return;
        fail(/** @type {Error} */ (error).message);
        opening = setTimeout(read, AGAIN_MS);
      }
    }

    stop = follow(`/v2/delta/orders/events?${whose}`, {
      onEvent: (name, data) => {
        if (name === "open" && !isRead) read();
        if (name !== "order") return;
        changed.add(data.id);
        if (isRead && !gathering) gathering = setTimeout(refresh, GATHER_MS);
      },
      onState: (state, reason) => { if (state === "lost") fail(reason); },
    }, headers);
  }

  return { element, open, pick: list.pick, close: () => { turn += 1; stop(); clearTimeout(gathering); clearTimeout(opening); } };
}
