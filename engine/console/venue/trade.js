// The page of a trader: form, price with its route, orders and one order's timeline.
import { h, loading, notice, show } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { clock, price } from "/console/shared/amounts.js";
import { lineChart } from "/console/shared/charts.js";
import { connect } from "./account.js";
import { onAddress } from "./address.js";
import { followQuotes, marketAmounts, priceQuery } from "./quote_feed.js";
import { orderPlan, swapPlan } from "./trade_plan.js";
import { bridgesTable, gasInWords, othersTable, routeView } from "./route_view.js";
import { tradeForm } from "./trade_form.js";
import { review } from "./review.js";
import { orderList } from "./orders.js";
import { orderPanel } from "./order_panel.js";
import { onChange, state } from "./state.js";

const TYPING_MS = 250;
const POINTS_MOST = 240;

/** @param {HTMLElement} main @param {string} rest an order's id, or empty */
export function tradePage(main, rest) {
  if (!state.chain?.market && !state.chain?.delta) {
    show(main, notice("Nothing is traded on this chain", "Choose another chain above."));
    return () => {};
  }
  const route = routeView();
  const [why, chart, state_, headline] = [h("div", {}), h("div", {}), h("span", { class: "quiet small" }), h("p", { class: "big" })];
  const body = h("div", { class: "part" });
  const quote = h("section", { class: "card", "aria-labelledby": "quote-title" }, h("div", { class: "heading" }, h("h2", { id: "quote-title" }, "Price and route"), state_), body);
  const detail = h("section", { class: "card", "aria-label": "Order", hidden: true });
  const orders = orderList({ onPick: (id) => { location.hash = `trade/${id}`; } });
  const form = tradeForm({ onAsk: asked, onReview: agreed });
  const others = h("details", {  ontoggle: () => compare() }, h("summary", {}, "Why this route, and not another"), why);
  const full = [headline, h("p", { class: "quiet small" }), route.element, others, h("h3", {}, "Price while this page is open"), chart];
  /** @type {import("./quote_feed.js").Quotes | null} */ let quotes = null;
  /** @type {{at: number, value: number}[]} */ let points = [];
  let [typing, wished] = [0, ""];
  let [stop, close] = [() => {}, () => {}];

  function asked() {
    const wish = form.wish();
    const key = wish ? JSON.stringify([wish.asked, wish.kind], (_, value) => (typeof value === "bigint" ? String(value) : value)) : "";
    if (key === wished) return form.show(quotes);
    wished = key;
    clearTimeout(typing);
    stop();
    stop = () => {};
    quotes = null;
    points = [];
    drawQuote();
    if (!wish) return form.show(null);
    const modes = /** @type {("MARKET" | "DELTA")[]} */ ([...(state.chain?.market && !wish.asked.destChainId ? ["MARKET"] : []), ...(wish.kind !== "SWAP" ? ["DELTA"] : [])]);
    typing = setTimeout(() => { stop = followQuotes(wish.asked, modes, heard); }, TYPING_MS);
    return undefined;
  }

  /** @param {import("./quote_feed.js").Quotes} given */
  function heard(given) {
    const isNew = given.market && given.market !== quotes?.market;
    quotes = given;
    if (isNew) {
      const { src, dest } = marketAmounts(given.market);
      const [one, other] = form.pair();
      const value = Number(price(src, one.decimals, dest, other.decimals).replaceAll(",", ""));
      points = [...points, { at: Date.now(), value }].slice(-POINTS_MOST);
    }
    drawQuote();
    form.show(quotes);
  }

  function drawQuote() {
    state_.textContent = quotes ? (quotes.isLive ? `live · ${clock(quotes.at)}` : "reconnecting…") : "";
    if (!form.wish()) return show(body, notice("No amount yet", "Enter an amount to see its price, the makers that fill it, and their shares."));
    if (!quotes || (!quotes.market && !quotes.marketFault && !quotes.delta && !quotes.deltaFault)) return show(body, loading(5));
    if (quotes.delta?.route.bridge) return show(body, bridgesTable(quotes.delta));
    if (!quotes.market) {
      const reason = quotes.marketFault || quotes.deltaFault || "The chain has no signed swaps; the auction finds the route.";
      return show(body, notice(quotes.delta ? "No route to draw" : "No route", reason, quotes.delta ? "" : "bad"));
    }
    const { src, dest } = marketAmounts(quotes.market);
    const [one, other] = form.pair();
    headline.textContent = `1 ${one.symbol} = ${price(src, one.decimals, dest, other.decimals)} ${other.symbol}`;
    full[1].textContent = `Gas of a swap: ${gasInWords(quotes.market)}. ${form.kind() === "SWAP" ? "" : "Agents may fill your order by another route, if it gives you more."}`;
    if (body.firstChild !== headline) show(body, full);
    route.show(quotes.market);
    show(chart, lineChart({ label: `Price of ${one.symbol} in ${other.symbol}`, points, text: (value) => value.toLocaleString("en", { maximumSignificantDigits: 8 }) }));
    return undefined;
  }

  async function compare() {
    const wish = form.wish();
    if (!(/** @type {HTMLDetailsElement} */ (others).open) || !wish) return;
    show(why, loading(3));
    try {
      const found = priceQuery(wish.asked);
      found.set("otherExchangePrices", "true");
      show(why, othersTable((await ask(`/prices?${found}`)).priceRoute));
    } catch (error) {
      show(why, notice("The makers cannot be compared", /** @type {Error} */ (error).message, "bad"));
    }
  }

  function agreed() {
    const wish = form.wish();
    if (!state.wallet) return connect();
    if (!wish || !quotes) return undefined;
    /** @type {import("./trade_plan.js").Plan} */ let plan;
    try {
      plan = wish.kind === "SWAP" ? swapPlan(wish, quotes.market) : orderPlan(wish, quotes.delta);
    } catch (error) {
      return form.refuse(/** @type {Error} */ (error).message);
    }
    return review(plan, (record) => {
      form.holdings();
      if (record) location.hash = `trade/${record.id}`;
    });
  }

  /** @param {string} id */
  function open(id) {
    close();
    detail.hidden = !id;
    orders.pick(id);
    close = id ? orderPanel(detail, id) : () => {};
  }

  show(main, h("h1", { class: "unseen" }, "Trade"), h("div", { class: "trade" }, form.element, h("div", { class: "stack" }, quote, detail, orders.element)));
  drawQuote();
  let seen = state.wallet;
  const forget = onChange(() => {
    if (seen === state.wallet) return;
    seen = state.wallet;
    form.holdings();
    orders.open();
    wished = "-";
    asked();
  });
  orders.open();
  open(rest);
  form.holdings();
  const stay = onAddress("trade", open);
  return () => { clearTimeout(typing); stop(); close(); orders.close(); forget(); stay(); };
}
