// One order: its timeline from the venue's log, why it is not filled, its fills and rounds; and its cancellation.
import { announce, badge, h, loading, notice, row, show } from "/console/shared/dom.js";
import { ask, follow } from "/console/shared/http.js";
import { clock, cut, formatUnits, price } from "/console/shared/amounts.js";
import { isSame } from "./abi.js";
import { cancellationToSign } from "./checks.js";
import { showRounds } from "./rounds.js";
import { amount, state, token } from "./state.js";

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
  `${amount(input.amount ?? input.maxAmount ?? "0", input.token)} → ${amount(output.amount ?? output.expectedAmount ?? output.minAmount ?? "0", output.token)}`;

/** Kind of signed order -> its name for people. @type {Record<string, string>} */
const KINDS = { TWAPOrder: "TWAP sale", TWAPBuyOrder: "TWAP purchase", ExternalOrder: "handler order", ProductiveOrder: "vault order" };
/** @param {any} record */
export const kindInWords = ({ type, onChainOrderType: kind }) => KINDS[kind] ?? `${type.toLowerCase()} order`;

/** What an active order does, if it is not a settlement. @param {any} event */
function activity({ status, type, onChainOrderType, spentAmount }) {
  if (status !== "ACTIVE") return null;
  if (onChainOrderType.startsWith("TWAP") && spentAmount !== "0") return "The next slice is auctioned once it is due.";
  return type === "LIMIT" ? "The order rests until makers’ prices reach its limit." : null;
}

/**
 * A reason with its raw amounts as whole tokens.
 * @param {{text: string, amounts?: {amount: string, token: string}[]}} reason
 */
export function reasonInWords({ text, amounts = [] }) {
  let [done, rest] = ["", text];
  for (const { amount: raw, token: of } of amounts) {
    if (!/^\d+$/.test(raw)) continue;
    const at = rest.search(new RegExp(`(?<![\\w.])${raw}(?!\\w)`));
    if (at < 0) continue;
    done += rest.slice(0, at) + amount(raw, of, 12);
    rest = rest.slice(at + raw.length);
  }
  return done + rest;
}

/**
 * Show an order until the returned function is called.
 * @param {HTMLElement} place
 * @param {string} id
 */
export function orderPanel(place, id) {
  const [head, why, timeline, rounds] = [h("div", { class: "part" }), h("ul", { class: "reasons" }), h("ol", { class: "timeline" }), h("div", { class: "part" })];
  const fault = h("p", { class: "fault", role: "alert" });
  const title = h("h2", { tabindex: "-1" }, "Order ", h("span", { class: "mono" }, cut(id)));
  show(place, title, loading(3));
  let isLeft = false;
  /** @type {any} */ let record = null;
  let planned = 0;
  let looking = 0;
  /** @type {{spentAmount: string, receivedAmount: string}} */ let before = { spentAmount: "0", receivedAmount: "0" };

  async function read() {
    planned = 0;
    try {
      const [found, explained] = await Promise.all([ask(`/v2/delta/orders/${id}`), ask(`/v2/delta/orders/${id}/explain`)]);
      if (isLeft) return;
      const isNew = record === null;
      record = found;
      fault.textContent = "";
      drawHead();
      show(why, explained.reasons.map((/** @type {any} */ reason) => h("li", {}, sentence(reasonInWords(reason)))));
      why.hidden = !explained.reasons.length;
      if (explained.lastRounds.length) showRounds(rounds, explained.lastRounds);
      else show(rounds, h("p", { class: "quiet small" }, "No round with the order is closed yet."));
      if (isNew) show(place, title, head, fault, why, h("h3", {}, "Timeline"), timeline, h("h3", {}, "Rounds"), rounds);
      if (isNew) stop = follow(`/v2/delta/orders/events?orderId=${id}&after=${LOG_START}`, { onEvent: event });
    } catch (error) {
      if (isLeft) return;
      if (record === null) show(place, title, notice("This order cannot be shown", /** @type {Error} */ (error).message, "bad"));
      else fault.textContent = /** @type {Error} */ (error).message;
    }
    clearTimeout(looking);
    if (!isLeft && record && !ENDED.includes(record.status)) looking = setTimeout(read, LOOK_MS);
  }
  let stop = () => {};

  /** @param {string} name @param {any} data */
  function event(name, data) {
    if (name !== "order") return;
    const text = activity(data) ?? STATES[data.status]?.[1] ?? "";
    const got = BigInt(data.receivedAmount) - BigInt(before.receivedAmount);
    const gave = BigInt(data.spentAmount) - BigInt(before.spentAmount);
    before = data;
    const fill = gave > 0n ? `${amount(gave, record.input.token)} sold for ${amount(got, record.output.token)}, ${price(gave, token(record.input.token).decimals, got, token(record.output.token).decimals)} each. ` : "";
    const said = `${data.status} ${text}`;
    const last = /** @type {HTMLElement | null} */ (timeline.lastElementChild);
    if (fill || last?.dataset.said !== said) timeline.append(h("li", { "data-said": said, class: data.status === "FAILED" ? "bad" : false }, statusBadge(data.status), h("time", { datetime: data.at }, clock(data.at)), h("p", {}, fill + text)));
    announce(`Order ${data.status.toLowerCase()}. ${fill}`);
    if (!planned) planned = setTimeout(read, PAUSE_MS);
  }

  function drawHead() {
    const done = record.transactions;
    const isTwap = record.onChainOrderType.startsWith("TWAP");
    const slices = Number(record.order.numSlices ?? 0);
    const canCancel = state.wallet && isSame(record.owner, state.wallet.address) && !ENDED.includes(record.status) && record.status !== "CANCELLING" && record.status !== "BRIDGING";
    show(head, h("div", { class: "heading" }, h("span", { class: "big" }, tradeInWords(record)), statusBadge(record.status)),
      isTwap ? h("div", { class: "slices", role: "img", "aria-label": `${done.length} of ${slices} slices are settled` }, Array.from({ length: slices }, (_, at) => h("span", { class: at < done.length ? "done" : false }))) : null,
      h("dl", { class: "rows" },
        row("Kind", kindInWords(record)),
        record.output.minAmount ? row(isTwap ? "Least, in all" : "Least received", amount(record.output.minAmount, record.output.token)) : null,
        record.input.maxAmount ? row("Most paid", amount(record.input.maxAmount, record.input.token)) : null,
        record.output.executedAmount ? row("Received", amount(record.output.executedAmount, record.output.token), "good") : null,
        record.input.executedAmount ? row("Paid", amount(record.input.executedAmount, record.input.token), "good") : null,
        isTwap ? row("Slices settled", `${formatUnits(BigInt(done.length), 0)} of ${slices}`) : null,
        row("Good until", record.expiresAt ? new Date(record.expiresAt).toLocaleString("en-GB") : "–"),
        done.map((/** @type {any} */ each) => row("Transaction", h("span", { class: "mono" }, each.originTx)))),
      canCancel ? h("div", { class: "actions" }, h("button", { type: "button", class: "danger", onclick: cancel }, "Cancel order")) : null);
  }

  async function cancel() {
    const { wallet } = state;
    if (!wallet) return;
    fault.textContent = "";
    try {
      const { toSign } = await ask("/v2/delta/orders/build/cancellation", { body: { orderIds: [id] } });
      const signature = await wallet.sign(cancellationToSign(toSign, { chainId: wallet.chainId, contract: state.contracts.delta, ids: [id] }));
      await ask("/v2/delta/orders/cancel", { body: { orderIds: [id], signature } });
    } catch (error) {
      fault.textContent = /** @type {Error} */ (error).message;
    }
    read();
  }

  read();
  return () => { isLeft = true; stop(); clearTimeout(planned); clearTimeout(looking); };
}

/** @param {string} text */
const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
