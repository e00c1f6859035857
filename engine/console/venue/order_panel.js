// One order: its timeline from the venue's log, why it is not filled, its fills and rounds; and its cancellation.
import { announce, badge, h, loading, notice, row, show, table } from "/console/shared/dom.js";
import { ApiError, ask, follow, seen } from "/console/shared/http.js";
import { clock, cut, duration, formatUnits, price } from "/console/shared/amounts.js";
import { isSame } from "./abi.js";
import { cancellationToSign } from "./checks.js";
import { showRounds } from "./rounds.js";
import { sliceOf } from "./schedule.js";
import { amount, chainName, state, token } from "./state.js";

const LOG_START = "0".repeat(32);
const LOOK_MS = 2_500;
const PAUSE_MS = 150;

/** Status -> word, tone, sentence. @type {Record<string, ["good" | "bad" | "warn" | "quiet" | "busy", string]>} */
const STATES = {
  PENDING: ["busy", "The venue has the order and offers it to agents."],
  AWAITING_SIGNATURE: ["warn", "The owner’s contract has yet to sign on chain."],
  ACTIVE: ["busy", "A bid has won, and its settlement is under way."],
  SUSPENDED: ["warn", "The owner’s balance or approval is too small at present."],
  CANCELLING: ["warn", "The cancellation waits for a settlement under way."],
  BRIDGING: ["busy", "A bridge carries the tokens to the other chain."],
  COMPLETED: ["good", "The order is filled."],
  FAILED: ["bad", "Settlements failed too often."],
  EXPIRED: ["quiet", "The time of the order is over."],
  REFUNDING: ["warn", "The delivery failed, and a refund is on its way."],
  CANCELLED: ["quiet", "The owner cancelled the order."],
  REFUNDED: ["warn", "The delivery failed, and the owner was paid back."],
};
const ENDED = ["COMPLETED", "FAILED", "EXPIRED", "CANCELLED", "REFUNDED"];

/** @param {string} status */
export const statusBadge = (status) => badge(status.toLowerCase().replaceAll("_", " "), STATES[status]?.[0] ?? "quiet");
/** What an order trades, in whole tokens. @param {any} record */
export const tradeInWords = ({ input, output }) =>
  `${of(input, input.amount ?? input.maxAmount ?? "0")} → ${of(output, output.amount ?? output.expectedAmount ?? output.minAmount ?? "0")}${isAcross({ input, output }) ? ` on ${chainName(output.chainId)}` : ""}`;
/** @param {any} end of a record @param {bigint | string} raw @param {number} [digits] */
const of = (end, raw, digits) => amount(raw, end.token, digits, end.chainId);
/** @param {any} record */
const isAcross = ({ input, output }) => input.chainId !== output.chainId;

/** Selector of a bridge -> its protocol. @type {Record<string, string>} */
const BRIDGES = { "0x36d75ffa": "Across", "0xacb641e5": "CCTP" };
/** Kind of signed order -> its name for people. @type {Record<string, string>} */
const KINDS = { TWAPOrder: "TWAP sale", TWAPBuyOrder: "TWAP purchase", ExternalOrder: "handler order", ProductiveOrder: "vault order" };
/** @param {any} record */
export const kindInWords = ({ type, onChainOrderType: kind }) => KINDS[kind] ?? `${type.toLowerCase()} order`;

/** What an active order does, if it is not a settlement. @param {any} event */
function activity({ status, type, onChainOrderType, spentAmount }) {
  if (status !== "ACTIVE") return null;
  if (onChainOrderType.startsWith("TWAP") && spentAmount !== "0") return "The next slice is auctioned once it is due.";
  if (onChainOrderType === "ExternalOrder") return "The order’s handler is to trade; no agent is asked.";
  return type === "LIMIT" ? "The order rests until makers’ prices reach its limit." : null;
}

/**
 * A reason with its raw amounts as whole tokens.
 * @param {{text: string, amounts?: {amount: string, token: string, chainId?: number}[]}} reason
 */
export function reasonInWords({ text, amounts = [] }) {
  let [done, rest] = ["", text];
  for (const { amount: raw, token: of, chainId } of amounts) {
    if (!/^\d+$/.test(raw)) continue;
    const at = rest.search(new RegExp(`(?<![\\w.])${raw}(?!\\w)`));
    if (at < 0) continue;
    done += rest.slice(0, at) + amount(raw, of, 12, chainId);
    rest = rest.slice(at + raw.length);
  }
  return done + rest;
}

/** What an event adds to an order's fills. @param {any} record @param {bigint} gave @param {bigint} got */
function fillInWords(record, gave, got) {
  const { input, output } = record;
  const across = isAcross(record);
  if (across && got > 0n) return `${of(output, got)} delivered on ${chainName(output.chainId)}${record.order.metadata === "0x" ? "" : ", after a swap there"}. `;
  if (gave <= 0n) return "";
  if (across) return `${of(input, gave)} sold on ${chainName(input.chainId)}. `;
  const each = price(gave, token(input.token, input.chainId).decimals, got, token(output.token, output.chainId).decimals);
  return `${of(input, gave)} sold for ${of(output, got)}, ${each} each. `;
}

/** What only some kinds of orders have: bridge, vault, handler, refunds. @param {any} record @param {Record<string, string>} vaults names by address */
function partRows(record, vaults) {
  const { input, order, refunds } = record;
  const mono = (/** @type {string} */ text) => h("span", { class: "mono" }, text);
  const isThere = order.bridge && order.bridge.destinationChainId !== 0;
  return [
    isThere ? row("Bridge", `${BRIDGES[order.bridge.protocolSelector] ?? "unknown"}, to ${chainName(order.bridge.destinationChainId)}`) : null,
    isThere ? row("Enters the bridge", token(order.destToken, input.chainId).symbol) : null,
    isThere && order.metadata !== "0x" ? row("There", `${token(order.bridge.outputToken, order.bridge.destinationChainId).symbol} is swapped for ${token(record.output.token, record.output.chainId).symbol}`) : null,
    order.strategy ? row("Sold from the vault", [vaults[order.strategy.toLowerCase()] ?? "", " ", mono(order.strategy)]) : null,
    order.shares ? row("Shares, at most", amount(order.shares, order.strategy, 12, input.chainId)) : null,
    order.handler ? row("Handler", [mono(order.handler), " trades it, and no agent bids"]) : null,
    order.handler ? row("Data for the handler", `${(order.data.length - 2) / 2} bytes`) : null,
    refunds.map((/** @type {any} */ refund) => row("Paid back", [amount(refund.amount, refund.token, 12, refund.chainId), ` on ${chainName(refund.chainId)} by `, mono(refund.tx)], "warn")),
  ].flat();
}

/**
 * Show an order until the returned function is called.
 * @param {HTMLElement} place
 * @param {string} id
 */
export function orderPanel(place, id) {
  const [head, why, timeline, rounds] = [h("div", { class: "part" }), h("ul", { class: "reasons" }), h("ol", { class: "timeline" }), h("div", { class: "part" })];
  const [fault, refusal] = [h("p", { class: "fault", role: "alert" }), h("p", { class: "fault", role: "alert" })]; // of a look, and of a cancellation
  const button = /** @type {HTMLButtonElement} */ (h("button", { type: "button", class: "danger", onclick: cancel }, "Cancel order"));
  const actions = h("div", { class: "actions" }, button);
  const title = h("h2", { tabindex: "-1" }, "Order ", h("span", { class: "mono" }, cut(id)));
  show(place, title, loading(3));
  const left = new AbortController();
  let isShown = false;
  let told = "";
  /** @type {any} */ let record = null;
  /** @type {Record<string, string>} */ let vaults = {};
  let planned = 0;
  let looking = 0;
  /** @type {{spentAmount: string, receivedAmount: string}} */ let before = { spentAmount: "0", receivedAmount: "0" };

  async function read() {
    planned = 0;
    if (!(await seen(left.signal))) return;
    let isOver = false;
    try {
      const [found, explained] = await Promise.all([ask(`/v2/delta/orders/${id}`), ask(`/v2/delta/orders/${id}/explain`)]);
      if (found.order.strategy && !vaults[found.order.strategy.toLowerCase()]) vaults = await vaultNames(found.input.chainId);
      if (left.signal.aborted) return;
      isOver = ENDED.includes(found.status);
      record = found;
      fault.textContent = told = "";
      drawHead();
      show(why, explained.reasons.map((/** @type {any} */ reason) => h("li", {}, sentence(reasonInWords(reason)))));
      why.hidden = !explained.reasons.length;
      if (explained.lastRounds.length) showRounds(rounds, explained.lastRounds);
      else show(rounds, h("p", { class: "quiet small" }, "No round with the order is closed yet."));
      if (!isShown) {
        show(place, title, head, actions, refusal, fault, why, h("h3", {}, "Timeline"), timeline, h("h3", {}, "Rounds"), rounds);
        stop = follow(`/v2/delta/orders/events?orderId=${id}&after=${LOG_START}`, { onEvent: event });
      }
      isShown = true;
    } catch (error) {
      if (left.signal.aborted) return;
      const { message } = /** @type {Error} */ (error);
      const isNew = message !== told;
      told = message;
      if (isNew && isShown) fault.textContent = message;
      else if (isNew) show(place, title, notice("This order cannot be shown", message, "bad"));
      isOver = !isShown && error instanceof ApiError && error.isFinal;
    }
    clearTimeout(looking);
    if (!isOver) looking = setTimeout(read, LOOK_MS);
  }
  let stop = () => {};

  /** @param {string} name @param {any} data */
  function event(name, data) {
    if (name !== "order") return;
    const text = activity(data) ?? STATES[data.status]?.[1] ?? "";
    const got = BigInt(data.receivedAmount) - BigInt(before.receivedAmount);
    const gave = BigInt(data.spentAmount) - BigInt(before.spentAmount);
    before = data;
    const fill = fillInWords(record, gave, got);
    const said = `${data.status} ${text}`;
    const last = /** @type {HTMLElement | null} */ (timeline.lastElementChild);
    if (fill || last?.dataset.said !== said) timeline.append(h("li", { "data-said": said, class: data.status === "FAILED" ? "bad" : false }, statusBadge(data.status), h("time", { datetime: data.at }, clock(data.at)), h("p", {}, fill + text)));
    announce(`Order ${data.status.toLowerCase()}. ${fill}`);
    if (!planned) planned = setTimeout(read, PAUSE_MS);
  }

  function drawHead() {
    const { transactions: done, input, output, order } = record;
    const isSale = record.side === "SELL";
    const isTwap = record.onChainOrderType.startsWith("TWAP");
    const slices = Number(order.numSlices ?? 0);
    const canCancel = state.wallet && isSame(record.owner, state.wallet.address) && !ENDED.includes(record.status) && record.status !== "CANCELLING" && record.status !== "BRIDGING";
    show(head, h("div", { class: "heading" }, h("span", { class: "big" }, tradeInWords(record)), statusBadge(record.status)),
      isTwap ? h("div", { class: "slices", role: "img", "aria-label": `${done.length} of ${slices} slices are settled` }, Array.from({ length: slices }, (_, at) => h("span", { class: at < done.length ? "done" : false }))) : null,
      h("dl", { class: "rows" },
        row("Kind", kindInWords(record)),
        ...partRows(record, vaults),
        output.minAmount ? row(isTwap ? "Least, in all" : "Least received", of(output, output.minAmount)) : null,
        input.maxAmount ? row(isTwap ? "Most paid, in all" : "Most paid", of(input, input.maxAmount)) : null,
        isTwap ? row("Each slice", `${of(isSale ? input : output, sliceOf(BigInt(order.totalSrcAmount ?? order.totalDestAmount), slices))} every ${duration(Number(order.interval))}`) : null,
        output.executedAmount ? row("Received", of(output, output.executedAmount), "good") : null,
        input.executedAmount ? row("Paid", of(input, input.executedAmount), "good") : null,
        isTwap ? row("Slices settled", `${formatUnits(BigInt(done.length), 0)} of ${slices}`) : null,
        row("Good until", record.expiresAt ? new Date(record.expiresAt).toLocaleString("en-GB") : "–"),
        done.flatMap((/** @type {any} */ each) => [
          row("Transaction", h("span", { class: "mono" }, each.originTx)),
          each.destinationTx && isAcross(record) ? row(`Delivery on ${chainName(output.chainId)}`, h("span", { class: "mono" }, each.destinationTx)) : null,
        ])),
      isTwap && done.length ? slicesTable(record) : null);
    actions.hidden = !canCancel;
    if (!canCancel) refusal.textContent = "";
  }

  async function cancel() {
    const { wallet } = state;
    if (!wallet) return;
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
  return () => { left.abort(); stop(); clearTimeout(planned); clearTimeout(looking); };
}

/** Names of a chain's vaults by lower-case address. @param {number} chainId @returns {Promise<Record<string, string>>} */
async function vaultNames(chainId) {
  const found = await ask(`/v2/delta/prices/strategies/${chainId}`).catch(() => ({}));
  return Object.fromEntries(Object.values(found).flatMap(({ strategies }) => strategies.map((/** @type {any} */ { vault, name }) => [vault.toLowerCase(), name])));
}

/** A TWAP slice by slice. @param {any} record */
function slicesTable({ transactions, input, output, order }) {
  const shown = (/** @type {any} */ end, /** @type {string | null} */ raw) => (raw === null ? "–" : of(end, raw));
  return table("Settled slices", [{ name: "Slice" }, { name: "Paid", isNumber: true }, { name: "Received", isNumber: true }, { name: "Transaction" }],
    transactions.map((/** @type {any} */ { spentAmount, receivedAmount, originTx }, /** @type {number} */ at) => [`${at + 1} of ${order.numSlices}`, shown(input, spentAmount), shown(output, receivedAmount), h("span", { class: "mono", title: originTx }, cut(originTx))]));
}

/** @param {string} text */
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
