// Orders, kept current: all pages at first, then each changed order by its event.
import { ApiError, ask, follow } from "/console/shared/http.js";

const PAGE = 1_000;
const MOST = 10_000;
const GATHER_MS = 100;
const IDS_MOST = 100;
const AGAIN_MS = 2_500;

/**
 * Follow orders until the returned function is called.
 * @param {URLSearchParams} wanted `chainId`, and `userAddress` unless the orders of all are wanted
 * @param {Record<string, string>} headers
 * @param {{onOrders: (orders: Api_OrderRecord[]) => void, onFault: (reason: string) => void}} listeners `onOrders` gets all orders, the newest first; `onFault` is called before the first read ends
 */
export function followOrders(wanted, headers, { onOrders, onFault }) {
  const left = new AbortController();
  /** @type {Map<string, Api_OrderRecord>} */ let orders = new Map();
  /** @type {Set<string>} */ const changed = new Set();
  let [isRead, isCurrent, isReading, isRefreshing] = [false, false, false, false];
  let [reads, gathering, again] = [0, 0, 0];

  /**
   * Read all pages. The last read counts; one that began while events come (`isFollowed`) misses no change.
   * @param {boolean} isFollowed
   */
  async function read(isFollowed) {
    clearTimeout(again);
    isReading = true;
    const mine = (reads += 1);
    /** @type {Map<string, Api_OrderRecord>} */ const found = new Map();
    try {
      for (let page = 1, more = true; more && page <= MOST / PAGE; page += 1) {
        const answer = await ask(`/v2/delta/orders?${wanted}&limit=${PAGE}&page=${page}`, { headers, signal: left.signal });
        if (mine !== reads) return;
        for (const record of answer.data) {
          const before = orders.get(record.id);
          found.set(record.id, before?.updatedAt === record.updatedAt ? before : record);
        }
        more = answer.hasMore;
        if (!isRead) onOrders([...found.values()]);
      }
    } catch (error) {
      if (left.signal.aborted || mine !== reads) return;
      isReading = false;
      if (!isRead) onFault(/** @type {Error} */ (error).message);
      if (!(error instanceof ApiError && error.isFinal)) again = setTimeout(read, AGAIN_MS, isFollowed);
      refresh();
      return;
    }
    orders = found;
    [isRead, isReading, isCurrent] = [true, false, isFollowed];
    onOrders([...orders.values()]);
    refresh();
  }

  /** Read the changed orders, one request at a time. */
  async function refresh() {
    gathering = 0;
    const ids = [...changed].slice(0, IDS_MOST);
    if (!isRead || isReading || isRefreshing || !ids.length) return;
    isRefreshing = true;
    ids.forEach((id) => changed.delete(id));
    const before = reads;
    const found = await ask(`/v2/delta/orders?ids=${ids.join(",")}&limit=${IDS_MOST}`, { signal: left.signal }).catch(() => null);
    if (left.signal.aborted) return;
    isRefreshing = false;
    if (!found || before !== reads) ids.forEach((id) => changed.add(id)); // a read may know more
    else {
      for (const record of [...found.data].reverse()) {
        if (!orders.has(record.id)) orders = new Map([[record.id, record], ...orders]);
        else orders.set(record.id, record);
      }
      onOrders([...orders.values()]);
    }
    if (changed.size && !gathering) gathering = setTimeout(refresh, found ? GATHER_MS : AGAIN_MS);
  }

  const stop = follow(`/v2/delta/orders/events?${wanted}`, {
    onEvent: (name, data) => {
      if (name === "open" && !isCurrent) read(true);
      if (name !== "order") return;
      changed.add(data.id);
      if (!gathering) gathering = setTimeout(refresh, GATHER_MS);
    },
    // Without events the orders are shown nonetheless, and read again once events come.
    onState: (state) => { if (state === "lost" && !document.hidden && !isCurrent && !isReading) read(false); },
  }, headers);
  return () => {
    left.abort();
    stop();
    clearTimeout(gathering);
    clearTimeout(again);
  };
}
