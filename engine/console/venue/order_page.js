// The page of one order, whose address may be shared: its outcome first, then its events, bids, slices, and why it waits.
import { announce, codeOf, confirmed, copyButton, h, loading, notice, row, show, table, when } from "/console/shared/dom.js";
import { ApiError, ask, follow, seen } from "/console/shared/http.js";
import { cut, duration, formatUnits, moment, signedBps } from "/console/shared/amounts.js";
import { isSame } from "./abi.js";
import { cancellationToSign } from "./checks.js";
import { activityInWords, ENDED, fillInWords, isAcross, kindInWords, ofEnd, reasonInWords, sentence, STATES, statusBadge, tradeInWords } from "./order_words.js";
import { showRounds } from "./rounds.js";
import { sliceOf } from "./schedule.js";
import { amount, chainName, choose, explorerUrl, onChange, state, token } from "./state.js";

const LOG_START = "0".repeat(32);
const LOOK_MS = 2_500;
const PAUSE_MS = 150;
const SETTLED_LOOKS = 12; // looks at an ended order whose settlement's row is still to change

/** Selector of a bridge -> its protocol. @type {Record<string, string>} */
const BRIDGES = { "0x36d75ffa": "Across", "0xacb641e5": "CCTP" };

/** What only some kinds of orders have: bridge, vault, handler, refunds. @param {Api_OrderRecord} record @param {Record<string, string>} vaults names by address */
function partRows(record, vaults) {
  const { input, order, refunds } = record;
  const isThere = order.bridge && order.bridge.destinationChainId !== 0;
  const code = (/** @type {string} */ text) => codeOf(text, "address", explorerUrl(input.chainId, "address", text));
  return [
    isThere ? row("Bridge", `${BRIDGES[order.bridge.protocolSelector] ?? "unknown"}, to ${chainName(order.bridge.destinationChainId)}`) : null,
    isThere ? row("Enters the bridge", token(order.destToken, input.chainId).symbol) : null,
    isThere && order.metadata !== "0x" ? row("There", `${token(order.bridge.outputToken, order.bridge.destinationChainId).symbol} is swapped for ${token(record.output.token, record.output.chainId).symbol}`) : null,
    order.strategy ? row("Sold from the vault", [vaults[order.strategy.toLowerCase()] ?? "", " ", code(order.strategy)]) : null,
    order.shares ? row("Shares, at most", amount(order.shares, order.strategy, 12, input.chainId)) : null,
    order.handler ? row("Handler", [code(order.handler), " trades it, and no agent bids"]) : null,
    order.handler ? row("Data for the handler", `${(order.data.length - 2) / 2} bytes`) : null,
    refunds.map((refund) => row("Paid back", [amount(refund.amount, refund.token, 12, refund.chainId), ` on ${chainName(refund.chainId)} by `, codeOf(refund.tx, "refund", explorerUrl(refund.chainId, "tx", refund.tx))], "warn")),
  ].flat();
}

/** The filled amounts against the quoted ones, for a whole order that is filled. @param {Api_OrderRecord} record */
function againstQuote({ side, status, input, output }) {
  const isSale = side === "SELL";
  const end = isSale ? output : input;
  if (status !== "COMPLETED" || !end.executedAmount || !end.expectedAmount || input.chainId !== output.chainId) return null;
  const [done, quoted] = [BigInt(end.executedAmount), BigInt(end.expectedAmount)];
  if (quoted === 0n) return null;
  const better = isSale ? done - quoted : quoted - done;
  const bps = Number((better * 100_000n) / quoted) / 10;
  return { text: `${better < 0n ? "−" : "+"}${ofEnd(end, better < 0n ? -better : better)} against the quote (${signedBps(bps)})`, tone: better < 0n ? "warn" : "good", quoted: ofEnd(end, quoted) };
}

/** @param {HTMLElement} main @param {string} id */
export function orderPage(main, id) {
  const [head, outcome, slices, rounds, why] = [h("div", { class: "part" }), h("dl", { class: "rows" }), h("div", {}), h("div", { class: "part" }), h("ul", { class: "reasons" })];
  const timeline = h("ol", { class: "timeline" });
  const [fault, refusal] = [h("p", { class: "fault", role: "alert" }), h("p", { class: "fault", role: "alert" })]; // of a look, and of a cancellation
  const button = /** @type {HTMLButtonElement} */ (h("button", { type: "button", class: "danger", hidden: true, onclick: cancel }, "Cancel order"));
  const title = h("h1", { tabindex: "-1" }, "Order ", h("span", { class: "mono" }, cut(id)));
  const link = `${location.origin}${location.pathname}#order/${id}`;
  const waits = h("section", { class: "card", "aria-label": "Why it waits" }, h("h2", {}, "Why it waits"), why);
  const body = h("div", { class: "stack" }, loading(4));
  const element = h("section", { class: "stack", "aria-label": "Order" }, h("div", { class: "heading" }, title, h("div", { class: "inline" }, h("span", { class: "small quiet" }, "Link ", copyButton(link, "link to the order")), button)), refusal, fault, body);
  show(main, h("p", { class: "small" }, h("a", { href: "#trade" }, "← Trade")), element);
  const left = new AbortController();
  let isShown = false;
  let told = "";
  /** @type {Api_OrderRecord} */ let record;
  /** @type {Record<string, string>} */ let vaults = {};
  let [planned, looking, looksAfter, began] = [0, 0, 0, 0];
  /** @type {{spentAmount: string, receivedAmount: string}} */ let before = { spentAmount: "0", receivedAmount: "0" };

  async function read() {
    planned = 0;
    if (!(await seen(left.signal))) return;
    let isOver = false;
    try {
      const [found, explained] = await Promise.all([ask(`/v2/delta/orders/${id}`), ask(`/v2/delta/orders/${id}/explain`)]);
      if (found.order.strategy && !vaults[found.order.strategy.toLowerCase()]) vaults = await vaultNames(found.input.chainId);
      if (left.signal.aborted) return;
      const other = found.input.chainId !== state.chain?.chainId && state.chains.find(({ chainId }) => chainId === found.input.chainId);
      if (other) {
        await choose(other); // the page begins anew with the tokens of the order's chain
        return;
      }
      // An order may be filled before the row of its settlement says so: it is looked at a few times more.
      const isSettling = explained.lastRounds.some(({ order }) => order.settlements?.some((one) => one.state === "settling"));
      isOver = ENDED.includes(found.status) && (!isSettling || (looksAfter += 1) > SETTLED_LOOKS);
      record = found;
      began = new Date(found.createdAt).getTime();
      fault.textContent = told = "";
      draw(explained);
      if (!isShown) stop = follow(`/v2/delta/orders/events?orderId=${id}&after=${LOG_START}`, { onEvent: event });
      isShown = true;
    } catch (error) {
      if (left.signal.aborted) return;
      const { message } = /** @type {Error} */ (error);
      const isNew = message !== told;
      told = message;
      if (isNew && isShown) fault.textContent = message;
      else if (isNew) show(body, notice("This order cannot be shown", message, "bad"));
      isOver = !isShown && error instanceof ApiError && error.isFinal;
    }
    clearTimeout(looking);
    if (!isOver) looking = setTimeout(read, LOOK_MS);
  }
  let stop = () => {};

  /** @param {string} name @param {any} data */
  function event(name, data) {
    if (name !== "order") return;
    const text = activityInWords(data) ?? STATES[data.status]?.[1] ?? "";
    const got = BigInt(data.receivedAmount) - BigInt(before.receivedAmount);
    const gave = BigInt(data.spentAmount) - BigInt(before.spentAmount);
    before = data;
    const fill = fillInWords(record, gave, got);
    const said = `${data.status} ${text}`;
    const last = /** @type {HTMLElement | null} */ (timeline.lastElementChild);
    const after = (new Date(data.at).getTime() - began) / 1_000;
    if (fill || last?.dataset.said !== said) {
      timeline.append(h("li", { "data-said": said, class: data.status === "FAILED" ? "bad" : false }, statusBadge(data.status),
        h("time", { datetime: data.at, title: moment(data.at) }, after < 120 ? `+${Math.max(0, after).toFixed(1)} s` : `+${duration(after)}`), h("p", {}, fill + text)));
    }
    announce(`Order ${data.status.toLowerCase()}. ${fill}`);
    if (!planned) planned = setTimeout(read, PAUSE_MS);
  }

  /** @param {Api_Explanation} explained */
  function draw(explained) {
    const { transactions: done, input, output, order } = record;
    const isSale = record.side === "SELL";
    const isTwap = record.onChainOrderType.startsWith("TWAP");
    const count = Number(order.numSlices ?? 0);
    const quote = againstQuote(record);
    const isDone = record.status === "COMPLETED";
    const took = isDone && (done.length ? Math.max(0, (new Date(record.updatedAt).getTime() - began) / 1_000) : null);
    show(title, `${sentence(kindInWords(record)).slice(0, -1)} `, h("span", { class: "quiet" }, tradeInWords({ ...record, status: "" })));
    document.title = `${record.status.toLowerCase()} · order ${cut(id)} · cambist`;
    const received = isSale ? output : input;
    show(head, h("p", { class: "big" }, statusBadge(record.status), " ", isDone && received.executedAmount ? `${isSale ? "Received" : "Paid"} ${ofEnd(received, received.executedAmount, 12)}` : stateInWords(explained)),
      h("p", { class: "quiet" }, typeof took === "number" ? `in ${took < 120 ? `${took.toFixed(1)} s` : duration(took)}` : ["Placed ", when(record.createdAt)], quote ? [" · ", h("span", { class: quote.tone }, quote.text)] : null),
      isTwap ? h("div", { class: "slices", role: "img", "aria-label": `${done.length} of ${count} slices are settled` }, Array.from({ length: count }, (_, at) => h("span", { class: at < done.length ? "done" : false }))) : null);
    const hash = (/** @type {string} */ text, /** @type {number} */ chainId) => codeOf(text, "transaction", explorerUrl(chainId, "tx", text));
    show(outcome,
      row("Kind", kindInWords(record)),
      ...partRows(record, vaults),
      quote ? row("Quoted", quote.quoted) : null,
      output.minAmount ? row(isTwap ? "At least, in all" : "At least", ofEnd(output, output.minAmount)) : null,
      input.maxAmount ? row(isTwap ? "At most, in all" : "At most", ofEnd(input, input.maxAmount)) : null,
      isTwap ? row("Each slice", `${ofEnd(isSale ? input : output, sliceOf(BigInt(order.totalSrcAmount ?? order.totalDestAmount), count))} every ${duration(Number(order.interval))}`) : null,
      output.executedAmount ? row("Received", ofEnd(output, output.executedAmount), "good") : null,
      input.executedAmount ? row("Paid", ofEnd(input, input.executedAmount)) : null,
      isTwap ? row("Slices settled", `${formatUnits(BigInt(done.length), 0)} of ${count}`) : null,
      ENDED.includes(record.status) ? null : row("Good until", record.expiresAt ? moment(record.expiresAt) : "–"),
      row("Owner", codeOf(record.owner, "owner", explorerUrl(input.chainId, "address", record.owner))),
      done.flatMap((each) => [
        isTwap ? null : row("Transaction", hash(each.originTx, input.chainId)),
        each.destinationTx && isAcross(record) ? row(`Delivery on ${chainName(output.chainId)}`, hash(each.destinationTx, output.chainId)) : null,
      ]));
    show(slices, isTwap && done.length ? slicesTable(record) : null);
    show(why, explained.reasons.map((reason) => h("li", {}, sentence(reasonInWords(reason)))));
    waits.hidden = !explained.reasons.length;
    if (explained.lastRounds.length) showRounds(rounds, explained.lastRounds);
    else show(rounds, h("p", { class: "quiet small" }, "No round with the order is closed yet."));
    const canCancel = state.wallet && isSame(record.owner, state.wallet.address) && !ENDED.includes(record.status) && record.status !== "CANCELLING" && record.status !== "BRIDGING";
    button.hidden = !canCancel;
    if (!canCancel) refusal.textContent = "";
    if (isShown) return;
    const card = (/** @type {string} */ name, /** @type {HTMLElement[]} */ ...inside) => h("section", { class: "card", "aria-label": name }, h("h2", {}, name), inside);
    const raw = (/** @type {string} */ path, /** @type {string} */ words) => h("a", { href: path, target: "_blank", rel: "noreferrer" }, words);
    show(body, h("section", { class: "card", "aria-label": "Outcome" }, head), waits,
      h("div", { class: "columns" }, card("Terms and result", outcome, slices), card("Events", timeline)), card("Auction", rounds),
      h("p", { class: "small quiet" }, "Raw: ", raw(`/v2/delta/orders/${id}`, "order"), " · ", raw(`/v2/delta/orders/${id}/explain`, "explanation")));
  }

  /** What the order does now; an order without a settlement under way rests, or waits for its slice. @param {Api_Explanation} explained */
  function stateInWords(explained) {
    const isSettling = explained.reasons.some(({ code }) => code === "settling");
    const rests = isSettling ? null : activityInWords({ ...record, spentAmount: record.input.executedAmount ?? "0" });
    return rests ?? STATES[record.status]?.[1] ?? "";
  }

  async function cancel() {
    const { wallet } = state;
    if (!wallet || !(await confirmed("Cancel this order? Your wallet signs the cancellation, which costs no gas.", "Cancel order"))) return;
    refusal.textContent = "";
    button.disabled = true;
    try {
      const { toSign } = await ask("/v2/delta/orders/build/cancellation", { body: { orderIds: [id] } });
      const signature = await wallet.sign(cancellationToSign(toSign, { chainId: wallet.chainId, contract: state.contracts.delta, ids: [id] }));
      await ask("/v2/delta/orders/cancel", { body: { orderIds: [id], signature } });
    } catch (error) {
      refusal.textContent = /** @type {Error} */ (error).message;
    }
    button.disabled = false;
    read();
  }

  read();
  const forget = onChange(() => { if (!planned) planned = setTimeout(read, PAUSE_MS); });
  return () => { left.abort(); stop(); forget(); clearTimeout(planned); clearTimeout(looking); };
}

/** Names of a chain's vaults by lower-case address. @param {number} chainId @returns {Promise<Record<string, string>>} */
async function vaultNames(chainId) {
  const found = await ask(`/v2/delta/prices/strategies/${chainId}`).catch(() => ({}));
  return Object.fromEntries(Object.values(found).flatMap(({ strategies }) => strategies.map((/** @type {any} */ { vault, name }) => [vault.toLowerCase(), name])));
}

/** A TWAP slice by slice. @param {Api_OrderRecord} record */
function slicesTable({ transactions, input, output, order }) {
  const shown = (/** @type {{token: string, chainId: number}} */ end, /** @type {string | null} */ raw) => (raw === null ? "–" : ofEnd(end, raw));
  return table("Settled slices", [{ name: "Slice" }, { name: "Paid", isNumber: true }, { name: "Received", isNumber: true }, { name: "Transaction" }],
    transactions.map(({ spentAmount, receivedAmount, originTx }, at) => [`${at + 1} of ${order.numSlices}`, shown(input, spentAmount), shown(output, receivedAmount), codeOf(originTx, "transaction", explorerUrl(input.chainId, "tx", originTx))]));
}
