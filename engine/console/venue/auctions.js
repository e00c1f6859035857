// The auctions for everybody: surplus of each round, agents with their wins, and rounds with the bids and why they lost.
import { badge, codeOf, h, loading, notice, show, table, when } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { agentName, clock, signedBps } from "/console/shared/amounts.js";
import { dotChart, shareBar } from "/console/shared/charts.js";
import { rowTable } from "/console/shared/rows.js";
import { connect } from "./account.js";
import { onAddress } from "./address.js";
import { poll } from "./poll.js";
import { bidBars, bidsTable, settlementsTable } from "./rounds.js";
import { amount, onChange, operatorHeaders, state } from "./state.js";

const LOOK_MS = 2_000;
const DOTS_MOST = 100;
const SEALED = "Bids are sealed until their round is closed";

/** @param {Api_AuctionedOrder} order of a round */
const trade = ({ side, srcAmount, srcToken, destAmount, destToken }) => (side === "SELL"
  ? `sell ${amount(srcAmount, srcToken)} for ≥ ${amount(destAmount, destToken)}` : `buy ${amount(destAmount, destToken)} for ≤ ${amount(srcAmount, srcToken)}`);
/** Token in which the bids on an order compete. @param {Api_AuctionedOrder} order */
const competed = (order) => (order.side === "SELL" ? order.destToken : order.srcToken);
/** Surplus of the winner over the limit, in basis points; null without a winner. @param {Api_AuctionedOrder} order */
function surplusBps(order) {
  const won = order.bids.find((bid) => bid.agent === order.winner);
  const limit = BigInt(order.side === "SELL" ? order.destAmount : order.srcAmount);
  return !won?.surplusAmount || limit === 0n ? null : Number((BigInt(won.surplusAmount) * 100_000n) / limit) / 10;
}

/** @param {HTMLElement} main @param {string} rest id of a round, or empty */
export function auctionsPage(main, rest) {
  if (!state.chain?.delta) {
    show(main, h("h1", {}, "Auctions"), notice("No auctions on this chain", "The venue serves no Delta orders here. Choose another chain above."));
    return () => {};
  }
  let chosen = rest;
  const [agents, chart, sums, fault] = [h("div", { class: "tall" }, loading(4)), h("div", { class: "tall" }, loading(4)), h("p", { class: "quiet" }, SEALED), h("p", { class: "fault", role: "alert" })];
  const detail = h("section", { class: "card", "aria-labelledby": "round-title", hidden: true });
  const empty = h("div", {}, loading(3));
  const rounds = rowTable({
    caption: "Rounds, the latest first", empty, key: (one) => `${one.round.closedAt} ${one.at}`, onPick: (one) => pick(one),
    columns: [
      { name: "Trade", cell: (/** @type {any} */ one) => trade(one.order) },
      { name: "Closed", cell: (one) => when(one.round.closedAt) },
      { name: "Bids", isNumber: true, isWide: true, cell: (one) => String(one.order.bids.length + one.order.bidsLeftOut) },
      { name: "Best, after gas", isNumber: true, isWide: true, cell: ({ order }) => (order.bids[0]?.netAmount ? amount(order.bids[0].netAmount, competed(order)) : "–") },
      { name: "Margin to the second", isNumber: true, isWide: true, cell: ({ order }) => (order.marginAmount ? amount(order.marginAmount, competed(order), 4) : "–") },
      { name: "Surplus", isNumber: true, isWide: true, cell: (one) => { const bps = surplusBps(one.order); return bps === null ? "–" : signedBps(bps); } },
      { name: "Winner", cell: (one) => (one.order.winner ? badge(agentName(one.order.winner), "good") : badge(one.order.bids.length ? "none" : "no bids", "quiet")) },
    ],
  });
  const input = /** @type {HTMLInputElement} */ (h("input", { inputmode: "numeric", id: "round-id", autocomplete: "off" }));
  const find = (/** @type {Event} */ event) => { event.preventDefault(); if (input.value.trim()) open(input.value.trim()); };
  const hidden = h("p", { class: "quiet small" }, "Ids of rounds and orders are for operators; an agent that signs in sees those of its own bids. ", h("button", { type: "button", class: "link", onclick: () => connect("roles") }, "Sign in"));
  show(main, h("div", { class: "heading" }, h("h1", {}, "Auctions"), sums),
    h("div", { class: "columns" }, h("section", { class: "card", "aria-labelledby": "surplus-title" }, h("h2", { id: "surplus-title" }, "Surplus of each round over the order’s limit"), chart),
      h("section", { class: "card", "aria-labelledby": "agents-title" }, h("h2", { id: "agents-title" }, "Agents"), agents)),
    h("section", { class: "card", "aria-labelledby": "rounds-title" }, h("div", { class: "heading" }, h("h2", { id: "rounds-title" }, "Rounds"),
      h("form", { class: "inline", onsubmit: find }, h("label", { class: "field", for: "round-id" }, "Id of a round", input), h("button", { type: "submit" }, "Show"))), hidden, fault, rounds.element), detail);
  rounds.setItems([]);

  /** @param {AbortSignal} signal */
  async function look(signal) {
    const chain = state.chain?.chainId;
    const path = `/v2/delta/auctions?chainId=${chain}`;
    try {
      const own = state.maker?.isAgent && !state.key ? state.maker.call(path) : ask(path, { signal, headers: operatorHeaders() });
      const [scores, found, stats] = await Promise.all([ask(`/v2/delta/agents/scores/${chain}`, { signal }), own, ask(`/stats?chainId=${chain}`, { signal }).catch(() => null)]);
      if (signal.aborted) return;
      const items = found.flatMap((/** @type {Api_Auction} */ round) => round.orders.map((order, at) => ({ round, order, at })));
      hidden.hidden = Boolean(state.key);
      show(empty, notice("No rounds yet", "A round appears here as soon as it is closed."));
      rounds.setItems(items);
      drawAgents(scores, stats);
      drawChart(items);
      fault.textContent = "";
    } catch (error) {
      if (!signal.aborted) fault.textContent = /** @type {Error} */ (error).message;
    }
  }

  /** @param {Api_AgentScore[]} scores @param {any} stats */
  function drawAgents(scores, stats) {
    if (!scores.length) return show(agents, notice("No agents", "The venue’s settings name the agents, at [venue.agents]."));
    return show(agents, table("Agents", [{ name: "Agent" }, { name: "State" }, { name: "Won, 24 h" }, { name: "Delivered", isNumber: true }, { name: "Answers", isNumber: true }, { name: "Strikes", isNumber: true }, { name: "Faults" }],
      scores.map((one) => {
        const share = stats?.agents.find((/** @type {any} */ each) => each.agent === one.agent)?.share;
        return [agentName(one.agent), one.restsUntil ? badge(`rests until ${clock(one.restsUntil)}`, "warn") : badge("active", "good"), share === undefined ? "–" : h("span", {}, shareBar(Number(share)), `${share} %`), one.delivered, one.answers, one.strikes,
          Object.entries(one.faults).map(([kind, count]) => `${kind} ${count}`).join(", ") || h("span", { class: "quiet" }, "none")];
      })));
  }

  /** @param {{round: Api_Auction, order: Api_AuctionedOrder}[]} items */
  function drawChart(items) {
    const dots = items.slice(0, DOTS_MOST).reverse().flatMap(({ round, order }) => {
      const bps = surplusBps(order);
      return bps === null ? [] : [{ value: bps, series: agentName(order.winner ?? ""), title: `${clock(round.closedAt)} ${order.winner} ${signedBps(bps)}: ${trade(order)}` }];
    });
    const bids = items.reduce((sum, { order }) => sum + order.bids.length, 0);
    sums.textContent = items.length ? `${items.length} order${items.length === 1 ? "" : "s"}, ${(bids / items.length).toFixed(1)} bids each, ${dots.length} won` : SEALED;
    if (dots.length) show(chart, dotChart({ label: `Surplus of ${dots.length} won orders, the last ${signedBps(dots[dots.length - 1].value)}`, dots, text: signedBps }));
    else show(chart, notice("No round has a winner yet", "A dot stands for each won order: how far the best bid is above the order’s limit."));
  }

  /** @param {{round: Api_Auction, order: Api_AuctionedOrder}} one */
  function pick({ round, order }) {
    if (round.auctionId) return open(String(round.auctionId));
    detail.hidden = false;
    return draw(round, [order]);
  }

  /** @param {Api_Auction} round @param {Api_AuctionedOrder[]} orders */
  function draw(round, orders) {
    show(detail, h("div", { class: "heading" }, h("h2", { id: "round-title", tabindex: "-1" }, round.auctionId ? `Round ${round.auctionId}` : "Round"),
      h("p", { class: "quiet small" }, `opened ${clock(round.openedAt)}, closed ${clock(round.closedAt)}, ${Date.parse(round.closedAt) - Date.parse(round.openedAt)} ms`)),
      orders.map((order) => h("div", { class: "part" },
        h("div", { class: "heading" }, h("h3", {}, `${trade(order)} `, order.orderId ? h("a", { href: `#order/${order.orderId}` }, "View order") : null, " ", order.orderId ? codeOf(order.orderId, "order’s id") : null), order.winner ? badge(`${agentName(order.winner)} won`, "good") : badge("no winner", "quiet")),
        bidBars(order), bidsTable(order), settlementsTable({ settlements: [], ...order }))));
    document.getElementById("round-title")?.focus({ preventScroll: false });
  }

  /** @param {string} id */
  async function open(id) {
    chosen = id;
    detail.hidden = !id;
    if (!id) return;
    history.replaceState(null, "", `#auctions/${encodeURIComponent(id)}`);
    show(detail, loading(3));
    try {
      const round = await ask(`/v2/delta/auctions/${encodeURIComponent(id)}`);
      if (chosen === id) draw(round, round.orders);
    } catch (error) {
      if (chosen === id) show(detail, h("h2", { id: "round-title" }, `Round ${id}`), notice("This round cannot be shown", /** @type {Error} */ (error).message, "bad"));
    }
  }

  const stop = poll(look, LOOK_MS);
  open(chosen);
  let seen = [state.key, state.maker];
  const forget = onChange(() => {
    if (seen[0] === state.key && seen[1] === state.maker) return;
    seen = [state.key, state.maker];
    look(new AbortController().signal);
  });
  const stay = onAddress("auctions", open);
  return () => { stop(); forget(); stay(); };
}
