// Orders in words: their states, kinds, trades and fills.
import { badge } from "/console/shared/dom.js";
import { price } from "/console/shared/amounts.js";
import { amount, chainName, token } from "./state.js";

/** Status -> tone, sentence. @type {Record<string, ["good" | "bad" | "warn" | "quiet" | "busy", string]>} */
export const STATES = {
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
export const ENDED = ["COMPLETED", "FAILED", "EXPIRED", "CANCELLED", "REFUNDED"];

/** @param {string} status */
export const statusBadge = (status) => badge(status.toLowerCase().replaceAll("_", " "), STATES[status]?.[0] ?? "quiet");

/** An end of an order, in whole tokens. @param {{token: string, chainId: number}} end of a record @param {bigint | string} raw @param {number} [digits] */
export const ofEnd = (end, raw, digits) => amount(raw, end.token, digits, end.chainId);
/** @param {Api_OrderRecord} record */
export const isAcross = ({ input, output }) => input.chainId !== output.chainId;

/** What an order trades, in whole tokens: what it traded once it is filled. @param {Api_OrderRecord} record */
export function tradeInWords({ status, input, output }) {
  const isFilled = status === "COMPLETED";
  const gave = (isFilled ? input.executedAmount : null) ?? input.amount ?? input.maxAmount ?? "0";
  const got = (isFilled ? output.executedAmount : null) ?? output.amount ?? output.expectedAmount ?? output.minAmount ?? "0";
  return `${ofEnd(input, gave)} → ${ofEnd(output, got)}${input.chainId !== output.chainId ? ` on ${chainName(output.chainId)}` : ""}`;
}

/** Kind of signed order -> its name for people. @type {Record<string, string>} */
const KINDS = { TWAPOrder: "TWAP sale", TWAPBuyOrder: "TWAP purchase", ExternalOrder: "handler order", ProductiveOrder: "vault order" };
/** @param {Api_OrderRecord} record */
export const kindInWords = ({ type, onChainOrderType: kind }) => KINDS[kind] ?? (type === "LIMIT" ? "limit order" : "gasless order");

/** What an active order does, if it is not a settlement. @param {any} event */
export function activityInWords({ status, type, onChainOrderType, spentAmount }) {
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

/** What an event adds to an order's fills. @param {Api_OrderRecord} record @param {bigint} gave @param {bigint} got */
export function fillInWords(record, gave, got) {
  const { input, output } = record;
  const across = isAcross(record);
  if (across && got > 0n) return `${ofEnd(output, got)} delivered on ${chainName(output.chainId)}${record.order.metadata === "0x" ? "" : ", after a swap there"}. `;
  if (gave <= 0n) return "";
  if (across) return `${ofEnd(input, gave)} sold on ${chainName(input.chainId)}. `;
  const each = price(gave, token(input.token, input.chainId).decimals, got, token(output.token, output.chainId).decimals);
  return `${ofEnd(input, gave)} sold for ${ofEnd(output, got)}, ${each} each. `;
}

/** @param {string} text */
export const sentence = (text) => `${text.charAt(0).toUpperCase()}${text.slice(1)}.`;
