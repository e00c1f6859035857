// The page of a trader: form, the pair's market, the route of the present price, and what the account has done.
import { announce, h, loading, notice, show } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { price } from "/console/shared/amounts.js";
import { connect } from "./account.js";
import { activity } from "./activity.js";
import { followQuotes, priceQuery } from "./quote_feed.js";
import { marketView } from "./market_view.js";
import { gasInWords, othersTable, routeView } from "./route_view.js";
import { tradeForm } from "./trade_form.js";
import { onChange, state } from "./state.js";

const TYPING_MS = 250;

/** @param {HTMLElement} main @param {string} rest an order's id, as older links have it, or empty */
export function tradePage(main, rest) {
  if (rest) {
    location.replace(`#order/${rest}`);
    return () => {};
  }
  if (!state.chain?.market && !state.chain?.delta) {
    show(main, notice("Nothing is traded on this chain", "Choose another chain above."));
    return () => {};
  }
  const route = routeView();
  const [why, gas] = [h("div", {}), h("p", { class: "quiet small" })];
  const others = h("details", { ontoggle: () => compare() }, h("summary", {}, "Why this route, and not another"), why);
  const routed = h("section", { class: "card", "aria-labelledby": "route-title", hidden: true }, h("h2", { id: "route-title" }, "Route of this price"), gas, route.element, others);
  const form = tradeForm({ onAsk: asked, onReview: agreed });
  const market = marketView(() => /** @type {any} */ (form.pair()));
  const mine = activity();
  /** @type {import("./quote_feed.js").Quotes | null} */ let quotes = null;
  let [typing, wished] = [0, ""];
  let stop = () => {};

  function asked() {
    const wish = form.wish();
    const key = wish ? JSON.stringify([wish.asked, wish.kind], (_, value) => (typeof value === "bigint" ? String(value) : value)) : "";
    if (!form.isAcross()) market.follow();
    if (key === wished) return form.show(quotes);
    wished = key;
    clearTimeout(typing);
    stop();
    stop = () => {};
    quotes = null;
    drawRoute();
    form.show(null);
    if (!wish) return undefined;
    const modes = /** @type {("MARKET" | "DELTA")[]} */ ([...(state.chain?.market && !wish.asked.destChainId ? ["MARKET"] : []), ...(wish.kind !== "SWAP" ? ["DELTA"] : [])]);
    typing = setTimeout(() => { stop = followQuotes(wish.asked, modes, heard); }, TYPING_MS);
    return undefined;
  }

  /** @param {import("./quote_feed.js").Quotes} given */
  function heard(given) {
    quotes = given;
    drawRoute();
    form.show(quotes);
  }

  function drawRoute() {
    routed.hidden = !quotes?.market;
    if (!quotes?.market) return;
    gas.textContent = `Gas of a swap: ${gasInWords(quotes.market)}. ${form.kind() === "SWAP" ? "" : "Agents may fill your order by another route, if it gives you more."}`;
    route.show(quotes.market);
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

  // What signs is read once somebody may sign.
  const signing = () => Promise.all([import("./trade_plan.js"), import("./review.js")]);

  async function agreed() {
    if (!state.wallet) return connect();
    const [{ orderPlan, swapPlan }, { review }] = await signing();
    const wish = form.wish();
    if (!wish || !quotes) return undefined;
    /** @type {import("./trade_plan.js").Plan} */ let plan;
    const [signed, delta] = [quotes.market, form.delta()];
    try {
      if (wish.kind === "SWAP" ? !signed : !delta) return undefined;
      plan = wish.kind === "SWAP" ? swapPlan(wish, /** @type {Api_PriceRoute} */ (signed)) : orderPlan(wish, /** @type {Api_DeltaBlock} */ (delta));
    } catch (error) {
      return form.refuse(/** @type {Error} */ (error).message);
    }
    return review(plan, (outcome) => {
      form.holdings();
      mine.done(outcome);
      announce(outcome.headline);
    });
  }

  const about = h("p", { class: "quiet", hidden: state.wallet !== null }, "Swap at prices that makers sign, or sign an order without gas that agents compete to fill. Looking needs no account; programs use ", h("a", { href: "/docs" }, "the API"), ".");
  show(main, h("h1", { class: "unseen" }, "Trade"), about, market.strip,
    h("div", { class: "trade" }, form.element, h("div", { class: "stack" }, market.element, routed, mine.element)));
  let seen = state.wallet;
  const forget = onChange(() => {
    if (seen === state.wallet) return;
    seen = state.wallet;
    if (seen) signing().catch(() => {});
    about.hidden = seen !== null;
    form.holdings();
    mine.open();
    wished = "-";
    asked();
  });
  mine.onOrders((orders) => market.own(limitsOf(orders, form.pair())));
  mine.open();
  form.holdings();
  asked();
  return () => { clearTimeout(typing); stop(); mine.close(); market.close(); forget(); };
}

/** Limit prices of an account's open orders of a pair, in the pair's direction. @param {Api_OrderRecord[]} orders @param {import("./state.js").Token[]} pair */
function limitsOf(orders, [base, quote]) {
  const is = (/** @type {string} */ one, /** @type {import("./state.js").Token} */ of) => one.toLowerCase() === of.address.toLowerCase();
  return orders.flatMap(({ status, type, input, output }) => {
    if (type !== "LIMIT" || !["PENDING", "ACTIVE", "SUSPENDED"].includes(status)) return [];
    const [gives, gets] = [BigInt(input.amount ?? input.maxAmount ?? 0), BigInt(output.amount ?? output.minAmount ?? 0)];
    const number = (/** @type {string} */ text) => Number(text.replaceAll(",", ""));
    if (is(input.token, base) && is(output.token, quote)) return [number(price(gives, base.decimals, gets, quote.decimals))];
    if (is(input.token, quote) && is(output.token, base)) return [number(price(gets, base.decimals, gives, quote.decimals))];
    return [];
  });
}
