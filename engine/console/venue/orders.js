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
  let isReading = false;

  async function refresh() {
    gathering = 0;
    if (isReading) return;
    const now = turn;
    const ids = [...changed].slice(0, IDS_MOST);
    ids.forEach((id) => changed.delete(id));
    if (!ids.length) return;
    const found = await ask(`/v2/delta/orders?ids=${ids.join(",")}&limit=${IDS_MOST}`).catch(() => null);
    if (now !== turn) return;
    if (!found || isReading) ids.forEach((id) => changed.add(id));
    for (const record of [...(found?.data ?? [])].reverse()) {
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
    isReading = false;
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
    let [isRead, isCurrent, reads] = [false, false, 0];

    /**
     * Read all pages. The last read counts, and one that began while events come (`isFollowed`) misses no change.
     * @param {boolean} isFollowed
     */
    async function read(isFollowed) {
      clearTimeout(opening);
      isReading = true;
      const mine = (reads += 1);
      /** @type {Map<string, any>} */ const found = new Map();
      try {
        for (let page = 1, more = true; more && page <= MOST / PAGE; page += 1) {
          const answer = await ask(`/v2/delta/orders?${whose}&limit=${PAGE}&page=${page}`, { headers });
          if (now !== turn || mine !== reads) return;
          for (const record of answer.data) {
            const before = orders.get(record.id);
            found.set(record.id, before?.updatedAt === record.updatedAt ? before : record);
          }
          more = answer.hasMore;
          if (!isRead) list.setItems([...found.values()]);
        }
      } catch (error) {
        if (now !== turn || mine !== reads) return;
        if (!isRead) show(empty, notice("The orders cannot be read", /** @type {Error} */ (error).message, "bad"));
        opening = setTimeout(read, AGAIN_MS, isFollowed);
        return;
      }
      orders = found;
      [isRead, isReading, isCurrent] = [true, false, isFollowed];
      show(empty, notice("No orders yet", "Orders appear here as soon as they are accepted."));
      list.setItems([...orders.values()]);
      refresh();
    }

    stop = follow(`/v2/delta/orders/events?${whose}`, {
      onEvent: (name, data) => {
        if (name === "open" && !isCurrent) read(true);
        if (name !== "order") return;
        changed.add(data.id);
        if (!gathering) gathering = setTimeout(refresh, GATHER_MS);
      },
      onState: (state) => { if (state === "lost" && !document.hidden && !isReading) read(false); },
    }, headers);
  }

  return { element, open, pick: list.pick, close: () => { turn += 1; stop(); clearTimeout(gathering); clearTimeout(opening); } };
}
