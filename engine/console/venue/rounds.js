// Rounds of auctions: the bids on an order, net of gas, and why each lost.
import { badge, codeOf, h, show, table, when } from "/console/shared/dom.js";
import { agentName, signedBps } from "/console/shared/amounts.js";
import { amount, explorerUrl, state } from "./state.js";

/** Outcome of a bid -> word, tone, and the reason for people. @type {Record<string, [string, "good" | "bad" | "warn" | "quiet" | "busy", string]>} */
const OUTCOMES = {
  won: ["won", "good", "the best promise after gas"],
  settled: ["settled", "good", "the settlement delivered"],
  settling: ["settling", "busy", "its settlement is under way"],
  lost: ["lost", "quiet", "another promise was better after gas"],
  belowLimit: ["below limit", "warn", "the promise does not meet the owner’s limit"],
  reverted: ["reverted", "bad", "its settlement would fail"],
  simulationMismatch: ["overpromised", "bad", "the simulation gave less than the promise"],
  settledBelow: ["settled below", "bad", "the settlement delivered less than the simulation"],
  malformed: ["invalid", "bad", "the answer does not keep to the format"],
  late: ["late", "bad", "the answer came after the round, or not at all"],
  banned: ["banned", "bad", "the agent rests after faults"],
};

/** @param {Api_AuctionedOrder} order of a round */
export function bidsTable(order) {
  if (!order.bids.length) return h("p", { class: "quiet small" }, "No agent bid for the order in this round.");
  const isSale = order.side === "SELL";
  const of = isSale ? order.destToken : order.srcToken;
  const shown = (/** @type {string | null | undefined} */ raw) => (raw === null || raw === undefined ? "–" : amount(raw, of));
  const names = [{ name: "Agent" }, { name: "Outcome" }, { name: isSale ? "Gives" : "Takes", isNumber: true }, { name: "Net of gas", isNumber: true }, { name: "Over the limit", isNumber: true }, { name: "Came after", isNumber: true }, { name: "Why", isText: true }];
  return table("Bids, the best first", names, order.bids.map((bid) => {
    const isWinner = order.winner === bid.agent && bid.notice === "won";
    const [word, tone, why] = OUTCOMES[bid.notice] ?? [bid.notice, "quiet", ""];
    return [agentName(bid.agent), badge(word, tone), shown(bid.promisedAmount), shown(bid.netAmount), shown(bid.surplusAmount), `${bid.arrivalMs} ms`,
      [isWinner ? why : behind(bid, order, of) ?? why, bid.detail].filter(Boolean).join(": ")];
  }));
}

/** Difference of two amounts in basis points, to a tenth. @param {string} amount @param {string} base */
const offBps = (amount, base) => Number(((BigInt(amount) - BigInt(base)) * 100_000n) / (BigInt(base) || 1n)) / 10;

/**
 * The bids as bars: how far each is above the order's limit, how far behind the best, and why it lost.
 * @param {Api_AuctionedOrder} order of a round
 */
export function bidBars(order) {
  const of = order.side === "SELL" ? order.destToken : order.srcToken;
  const known = order.bids.filter((bid) => bid.surplusAmount !== null && bid.surplusAmount !== undefined);
  const surplus = (/** @type {Api_AuctionBid} */ bid) => Number(bid.surplusAmount);
  const most = Math.max(...known.map(surplus), 1);
  const best = order.bids.find((bid) => bid.notice === "won") ?? known[0];
  return h("div", { class: "bidbars" }, order.bids.map((bid) => {
    const [word, , why] = OUTCOMES[bid.notice] ?? [bid.notice, "quiet", ""];
    const bar = h("span", {});
    bar.style.width = `${Math.max(0, Math.min(100, bid.surplusAmount ? (surplus(bid) / most) * 100 : 0))}%`;
    const off = best && bid !== best && bid.netAmount && best.netAmount ? ` · ${signedBps(offBps(bid.netAmount, best.netAmount))}` : "";
    return h("div", { class: bid.notice === "won" || bid.notice === "settled" ? false : "lost" }, h("strong", { title: bid.agent }, agentName(bid.agent)), h("span", { class: "track", "aria-hidden": "true" }, bar),
      h("span", {}, bid.netAmount === null ? "–" : amount(bid.netAmount, of)), h("small", {}, [`${word}${off}`, bid === best ? "" : behind(bid, order, of) ?? why, `answered in ${bid.arrivalMs} ms`].filter(Boolean).join(" · ")));
  }));
}

/** How far a losing bid is behind the best. @param {Api_AuctionBid} bid @param {Api_AuctionedOrder} order @param {string} of */
function behind(bid, order, of) {
  const best = order.bids.find((each) => each.notice === "won");
  if (bid.notice !== "lost" || !best || !bid.surplusAmount || !best.surplusAmount) return null;
  const missing = BigInt(best.surplusAmount) - BigInt(bid.surplusAmount);
  return missing > 0n ? `${amount(missing, of)} less than ${agentName(best.agent)} after gas` : `as good as ${agentName(best.agent)}, which is ahead by the rules`;
}

/** @param {Api_AuctionedOrder} order */
export function settlementsTable({ settlements = [], side, srcToken, destToken }) {
  if (!settlements.length) return null;
  const of = side === "SELL" ? destToken : srcToken;
  return table("Settlements", [{ name: "Agent" }, { name: "State" }, { name: "Promised", isNumber: true }, { name: "Simulated", isNumber: true }, { name: "Settled", isNumber: true }, { name: "Transaction" }],
    settlements.map((one) => [agentName(one.agent), badge(one.state, one.state === "settled" ? "good" : one.state === "settling" ? "busy" : "bad"),
      amount(one.promisedAmount, of), amount(one.simulatedAmount, of), one.settledAmount === null ? "–" : amount(one.settledAmount, of), one.txHash ? codeOf(one.txHash, "transaction", explorerUrl(state.chain?.chainId ?? 0, "tx", one.txHash)) : one.detail]));
}

/** The last rounds of an order, the latest open. @param {HTMLElement} place @param {Api_OrderRound[]} rounds */
export function showRounds(place, rounds) {
  show(place, () => {
    const known = new Map([...place.querySelectorAll("details")].map((each) => [each.dataset.round, each.open]));
    return rounds.map(({ auctionId, closedAt, order }, at) =>
      h("details", { "data-round": auctionId, open: known.get(String(auctionId)) ?? at === 0 },
        h("summary", {}, `Round ${auctionId} · ${order.winner ? `${agentName(order.winner)} won` : order.bids.length ? "no winner" : "no bids"} · closed `, when(closedAt)),
        h("div", { class: "part" }, order.bids.length ? h("p", { class: "quiet small" }, "Amounts after gas; each bar begins at the order’s limit.") : null, bidBars(order),
          settlementsTable(order), h("details", { "data-round": `${auctionId} figures`, open: known.get(`${auctionId} figures`) ?? false }, h("summary", {}, "All figures of the bids"), bidsTable(order)))));
  });
}
