// The auctions as solvers see them: rounds as they close, bids net of gas and why they lost, and agents' scores.
import { badge, h, loading, notice, show, table } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { clock, cut } from "/console/shared/amounts.js";
import { lineChart } from "/console/shared/charts.js";
import { rowTable } from "/console/shared/rows.js";
import { onAddress } from "./address.js";
import { keyForm, poll } from "./operator_key.js";
import { bidsTable, settlementsTable } from "./rounds.js";
import { amount, onChange, operatorHeaders, state } from "./state.js";

const LOOK_MS = 1_500;

/** @param {any} order of a round */
const trade = ({ side, srcAmount, srcToken, destAmount, destToken }) => (side === "SELL"
  ? `sell ${amount(srcAmount, srcToken)} for ≥ ${amount(destAmount, destToken)}` : `buy ${amount(destAmount, destToken)} for ≤ ${amount(srcAmount, srcToken)}`);
/** The best promise net of gas. @param {any} order */
function bestNet(order) {
  const best = order.bids.find((/** @type {any} */ bid) => bid.netAmount !== null);
  return best ? amount(best.netAmount, order.side === "SELL" ? order.destToken : order.srcToken) : "–";
}

/** @param {HTMLElement} main @param {string} rest id of a round, or empty */
export function auctionsPage(main, rest) {
  if (!state.chain?.delta) {
    show(main, h("h1", {}, "Auctions"), notice("No auctions on this chain", "The venue serves no Delta orders here. Choose another chain above."));
    return () => {};
  }
  let chosen = rest;
  const [agents, chart, fault] = [h("div", {}, loading(2)), h("div", {}), h("p", { class: "fault", role: "alert" })];
  const detail = h("section", { class: "card", "aria-labelledby": "round-title", hidden: true });
  const empty = h("div", {});
  const rounds = rowTable({
    caption: "Rounds, the latest first", empty, key: (one) => `${one.round.auctionId} ${one.order.orderId}`, onPick: (one) => open(String(one.round.auctionId)),
    columns: [
      { name: "Round", cell: (/** @type {any} */ one) => String(one.round.auctionId) },
      { name: "Closed", cell: (one) => clock(one.round.closedAt) },
      { name: "Order", cell: (one) => trade(one.order) },
      { name: "Bids", isNumber: true, isWide: true, cell: (one) => String(one.order.bids.length + one.order.bidsLeftOut) },
      { name: "Best, net of gas", isNumber: true, isWide: true, cell: (one) => bestNet(one.order) },
      { name: "Winner", isWide: true, cell: (one) => (one.order.winner ? badge(one.order.winner, "good") : badge(one.order.bids.length ? "none" : "no bids", "quiet")) },
    ],
  });
  const secret = keyForm("Rounds name the orders of all owners: the list is for the operator. Anyone who knows the id of a round may read it.");
  const input = /** @type {HTMLInputElement} */ (h("input", { inputmode: "numeric", id: "round-id", autocomplete: "off" }));
  const find = (/** @type {Event} */ event) => { event.preventDefault(); if (input.value.trim()) open(input.value.trim()); };
  const list = h("section", { class: "card", "aria-labelledby": "rounds-title" }, h("div", { class: "heading" }, h("h2", { id: "rounds-title" }, "Rounds"),
    h("form", { class: "inline", onsubmit: find }, h("label", { class: "field", for: "round-id" }, "Id of a round", input), h("button", { type: "submit" }, "Show"))), fault, rounds.element);
  show(main, h("div", { class: "heading" }, h("h1", {}, "Auctions"), h("p", { class: "quiet small" }, "Bids are sealed until their round is closed")),
    h("div", { class: "columns" }, h("section", { class: "card", "aria-labelledby": "agents-title" }, h("h2", { id: "agents-title" }, "Agents"), agents),
      h("section", { class: "card", "aria-labelledby": "fills-title" }, h("h2", { id: "fills-title" }, "Settled orders in these rounds"), chart)), list, detail, secret.element);
  rounds.setItems([]);

  /** @param {AbortSignal} signal */
  async function look(signal) {
    const chain = state.chain?.chainId;
    try {
      drawAgents(await ask(`/v2/delta/agents/scores/${chain}`, { signal }));
      if (!state.key) {
        rounds.setItems([]);
        show(chart, h("p", { class: "quiet small" }, "Enter the operator’s key to see fills."));
        return show(empty, notice("The list of rounds is the operator’s", "Enter the key below, or the id of a round above."));
      }
      const found = await ask(`/v2/delta/auctions?chainId=${chain}`, { signal, headers: operatorHeaders() });
      const items = found.flatMap((/** @type {any} */ round) => round.orders.map((/** @type {any} */ order) => ({ round, order })));
      show(empty, notice("No rounds yet", "A round appears here as soon as it is closed."));
      rounds.setItems(items);
      drawFills(items);
      fault.textContent = "";
    } catch (error) {
      if (!signal.aborted) fault.textContent = /** @type {Error} */ (error).message;
    }
    return undefined;
  }

  /** @param {any[]} scores */
  function drawAgents(scores) {
    if (!scores.length) return show(agents, notice("No agents", "The venue’s settings name the agents, at [venue.agents]."));
    return show(agents, table("Agents", [{ name: "Agent" }, { name: "State" }, { name: "Answers", isNumber: true }, { name: "Delivered", isNumber: true }, { name: "Strikes", isNumber: true }, { name: "Faults" }],
      scores.map((one) => [one.agent, one.restsUntil ? badge(`rests until ${clock(one.restsUntil)}`, "warn") : badge("asked", "good"), one.answers, one.delivered, one.strikes,
        Object.entries(one.faults).map(([kind, count]) => `${kind} ${count}`).join(", ") || h("span", { class: "quiet" }, "none")])));
  }

  /** @param {{round: any, order: any}[]} items */
  function drawFills(items) {
    const settled = items.filter(({ order }) => order.settlements.some((/** @type {any} */ one) => one.state === "settled")).reverse();
    let sum = 0;
    show(chart, lineChart({ label: "Settled orders", text: (value) => String(value), points: settled.map(({ round }) => ({ at: Date.parse(round.closedAt), value: (sum += 1) })) }));
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
      if (chosen !== id) return;
      show(detail, h("div", { class: "heading" }, h("h2", { id: "round-title", tabindex: "-1" }, `Round ${id}`),
        h("p", { class: "quiet small" }, `opened ${clock(round.openedAt)}, closed ${clock(round.closedAt)}, ${Date.parse(round.closedAt) - Date.parse(round.openedAt)} ms`)),
        round.orders.map((/** @type {any} */ order) => h("div", { class: "part" },
          h("div", { class: "heading" }, h("h3", {}, `${trade(order)} · `, h("a", { href: `#trade/${order.orderId}`, class: "mono" }, cut(order.orderId))), order.winner ? badge(`${order.winner} won`, "good") : badge("no winner", "quiet")),
          bidsTable(order), settlementsTable(order))));
      document.getElementById("round-title")?.focus({ preventScroll: false });
    } catch (error) {
      if (chosen === id) show(detail, h("h2", { id: "round-title" }, `Round ${id}`), notice("This round cannot be shown", /** @type {Error} */ (error).message, "bad"));
    }
  }

  const stop = poll(look, LOOK_MS);
  open(chosen);
  let seen = state.key;
  const forget = onChange(() => {
    if (seen === state.key) return;
    seen = state.key;
    secret.draw();
    look(new AbortController().signal);
  });
  const stay = onAddress("auctions", open);
  return () => { stop(); forget(); stay(); };
}
