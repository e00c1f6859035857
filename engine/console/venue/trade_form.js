// The form of a trade: kind, tokens, amount, bounds. It says what is wished, and shows what a quote gives.
import { h, row, show } from "/console/shared/dom.js";
import { bpsOff, duration, formatUnits, parseUnits, percent, plainUnits, price, usd } from "/console/shared/amounts.js";
import { isSame } from "./abi.js";
import { bounded } from "./checks.js";
import { deltaAmounts, marketAmounts } from "./quote_feed.js";
import { mostOf, sliceOf } from "./schedule.js";
import { amount, amountOf, chainName, state, token } from "./state.js";

export const KINDS = /** @type {const} */ ({
  SWAP: { name: "Swap", hint: "Makers sign prices now; you send the transaction." },
  ORDER: { name: "Order", hint: "Agents compete to fill your signed order. It costs you no gas." },
  LIMIT: { name: "Limit", hint: "The order rests until makers’ prices reach your limit." },
  TWAP: { name: "TWAP", hint: "The order is cut into equal slices, each auctioned in its turn." },
});
const SLIPPAGES = [10, 50, 100, 300];
const LIVES_S = [600, 3_600, 86_400, 604_800];
const INTERVALS_S = [60, 300, 900, 3_600, 14_400];
const SPARE_S = 900;
const ONE = 10n ** 18n;

/** A quoted amount, cut to what a field shows. @param {bigint} raw @param {number} decimals */
const shortUnits = (raw, decimals) => formatUnits(raw, decimals, 9).replaceAll(",", "");
/** @param {string} text @param {HTMLElement} input */
const labelled = (text, input) => h("label", { class: "field" }, text, input);
/** @param {number[]} values @param {(value: number) => string} text @param {number} chosen @param {string} label @param {() => void} changed */
const choice = (values, text, chosen, label, changed) => /** @type {HTMLSelectElement} */ (
  h("select", { "aria-label": label, onchange: changed }, values.map((value) => h("option", { value: String(value), selected: value === chosen }, text(value)))));

/** Write into a field, but never while a person is in it. @param {HTMLInputElement} input @param {string} text */
const propose = (input, text) => { if (document.activeElement !== input) input.value = text; };

/** @param {{onAsk: () => void, onReview: () => void}} listeners `onAsk`: another price is wanted */
export function tradeForm({ onAsk, onReview }) {
  const tokens = [...state.tokens.values()];
  let side = /** @type {"SELL" | "BUY"} */ ("SELL");
  const can = { SWAP: Boolean(state.chain?.market), ORDER: Boolean(state.chain?.delta), LIMIT: Boolean(state.chain?.delta), TWAP: Boolean(state.chain?.delta) };
  const kinds = /** @type {(keyof typeof KINDS)[]} */ (Object.keys(KINDS)).filter((kind) => can[kind]);
  let kind = kinds[0];
  const fault = h("p", { class: "fault", role: "alert", id: "amount-fault" });
  const money = (/** @type {string} */ label, /** @type {"SELL" | "BUY"} */ of, /** @type {number} */ first) => {
    const input = /** @type {HTMLInputElement} */ (h("input", { id: `amount-${of}`, inputmode: "decimal", autocomplete: "off", placeholder: "0", "aria-describedby": "amount-fault", oninput: () => { side = of; asked(); }, onblur: () => update() }));
    const select = /** @type {HTMLSelectElement} */ (h("select", { "aria-label": `${label}: token`, onchange: () => repaired() },
      tokens.map((token, at) => h("option", { value: token.address, selected: at === first }, token.symbol))));
    const [has, worth] = [h("span", {}), h("span", {})];
    const under = h("div", { class: "under" }, worth);
    return { input, select, has, worth, under, element: h("div", { class: "money" }, h("label", { for: `amount-${of}` }, label, has), input, select, under) };
  };
  const first = Math.max(0, tokens.findIndex(({ symbol }) => ["WETH", "WPOL", "WBNB"].includes(symbol)));
  const second = tokens.findIndex(({ symbol }) => symbol === "USDC");
  const pay = money("You pay", "SELL", first);
  const get = money("You receive", "BUY", second >= 0 ? second : Number(first === 0));
  const there = /** @type {HTMLSelectElement} */ (h("select", { "aria-label": "You receive: chain", onchange: () => { fillReceived(); repaired(); } },
    h("option", { value: "" }, "on this chain"), [...state.far].filter(([, { reached }]) => reached.length).map(([id]) => h("option", { value: String(id) }, chainName(id)))));
  get.under.append(there);
  const slippage = choice(SLIPPAGES, percent, 50, "Slippage", onAsk);
  const life = choice(LIVES_S, duration, 600, "Good for", onAsk);
  const limit = /** @type {HTMLInputElement} */ (h("input", { inputmode: "decimal", autocomplete: "off", placeholder: "0", oninput: () => update(), onblur: () => update() }));
  const slices = choice([2, 3, 4, 6, 12, 24], String, 4, "Slices", () => asked());
  const interval = choice(INTERVALS_S, duration, 60, "Every", () => update());
  const fields = { slippage: labelled("Slippage", slippage), life: labelled("Good for", life), limit: labelled("Limit price", limit), slices: labelled("Slices", slices), interval: labelled("One every", interval) };
  let refusal = ""; // of the last review; it stays while prices change
  const hint = h("p", { class: "quiet small" });
  const schedule = h("div", { class: "slices", "aria-hidden": "true" });
  const summary = h("dl", { class: "rows" });
  const go = /** @type {HTMLButtonElement} */ (h("button", { class: "primary", type: "submit", disabled: true }, "Enter an amount"));
  const turn = () => { [pay.select.value, get.select.value] = [get.select.value, pay.select.value]; if (side === "SELL") pay.input.value = ""; repaired(); };
  const flip = /** @type {HTMLButtonElement} */ (h("button", { class: "round flip", type: "button", "aria-label": "Turn the pair around", onclick: turn }, "⇅"));
  const element = h("form", { class: "card", "aria-label": "Trade", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); refusal = ""; onReview(); } },
    h("fieldset", {}, h("legend", { class: "unseen" }, "Kind of trade"), h("div", { class: "segments" }, kinds.map((each) => h("label", {},
      h("input", { type: "radio", name: "kind", value: each, checked: each === kind, onchange: () => { kind = each; dress(); asked(); } }), KINDS[each].name)))),
    hint, pay.element, flip, get.element, fault,
    h("div", { class: "fields" }, Object.values(fields)), schedule, summary, go);

  const reached = () => (there.value ? state.far.get(Number(there.value))?.reached : null) ?? tokens;
  const find = (/** @type {HTMLSelectElement} */ select) => /** @type {import("./state.js").Token} */ ((select === get.select ? reached() : tokens).find((token) => token.address === select.value));
  /** @type {import("./quote_feed.js").Quotes | null} */ let quotes = null;

  /** Offer the tokens of the chosen chain, the one of the same symbol first. */
  function fillReceived() {
    const symbol = get.select.selectedOptions[0]?.textContent;
    const has = reached().some((token) => token.symbol === symbol);
    show(get.select, reached().map((token, at) => h("option", { value: token.address, selected: has ? token.symbol === symbol : at === 0 }, token.symbol)));
    flip.disabled = Boolean(there.value);
  }

  function dress() {
    hint.textContent = KINDS[kind].hint;
    there.hidden = kind === "SWAP" || there.options.length === 1;
    if (kind === "SWAP" && there.value) {
      there.value = limit.value = "";
      fillReceived();
      holdings();
    }
    const shown = { slippage: kind !== "LIMIT", life: kind === "ORDER" || kind === "LIMIT", limit: kind === "LIMIT", slices: kind === "TWAP", interval: kind === "TWAP" };
    for (const [name, field] of Object.entries(fields)) field.hidden = !shown[/** @type {keyof typeof shown} */ (name)];
    schedule.hidden = kind !== "TWAP";
    if (kind === "LIMIT") life.value = "86400";
  }

  /** The wish as far as it is known; null, with the fault shown, if it cannot be priced. */
  function read() {
    const [src, dest] = [find(pay.select), find(get.select)];
    const mine = side === "SELL" ? pay : get;
    const text = mine.input.value;
    fault.textContent = refusal;
    pay.input.removeAttribute("aria-invalid");
    get.input.removeAttribute("aria-invalid");
    if (!text.trim()) return null;
    try {
      const whole = parseUnits(text, (side === "SELL" ? src : dest).decimals);
      if (!there.value && isSame(src.address, dest.address)) throw new RangeError("Choose two different tokens");
      if (whole === 0n) return null;
      const count = Number(slices.value);
      const each = kind === "TWAP" ? sliceOf(whole, count) : whole;
      if (each === 0n) throw new RangeError("The amount is too small for so many slices");
      return { src, dest, side, amount: each, total: whole };
    } catch (error) {
      fault.textContent = /** @type {Error} */ (error).message;
      mine.input.setAttribute("aria-invalid", "true");
      return null;
    }
  }

  /** Ask for the price of another pair, of which the old limit says nothing. */
  function repaired() {
    limit.value = "";
    asked();
    holdings();
  }

  function asked() {
    (side === "SELL" ? get : pay).input.value = "";
    quotes = null;
    refusal = "";
    onAsk();
    update();
  }

  /** @returns {import("./trade_plan.js").Wish | null} */
  function wish() {
    const found = read();
    if (!found || !state.chain) return null;
    const { total, ...rest } = found;
    const asking = { chainId: state.chain.chainId, ...rest, user: state.wallet?.address, ...(there.value && { destChainId: Number(there.value) }) };
    const made = { kind, asked: asking, slippageBps: Number(slippage.value), lifeS: Number(life.value) };
    if (kind === "LIMIT") return { ...made, limitAmount: limitAmount(found) };
    if (kind !== "TWAP") return made;
    const times = { interval: Number(interval.value), slices: Number(slices.value), total };
    return { ...made, lifeS: times.interval * times.slices + SPARE_S, schedule: times };
  }

  /** @param {{src: import("./state.js").Token, dest: import("./state.js").Token, side: string, amount: bigint}} found */
  function limitAmount({ src, dest, amount: fixed }) {
    try {
      const rate = parseUnits(limit.value, 18);
      if (rate === 0n) return undefined;
      const [up, down] = [10n ** BigInt(dest.decimals), 10n ** BigInt(src.decimals)];
      return side === "SELL" ? (fixed * rate * up) / (ONE * down) : (fixed * ONE * down) / (rate * up);
    } catch {
      return undefined;
    }
  }

  const quoted = () => (kind === "SWAP" ? quotes?.market && marketAmounts(quotes.market) : quotes?.delta && deltaAmounts(quotes.delta));

  function update() {
    const found = wish();
    const now = quoted();
    const reason = kind === "SWAP" ? quotes?.marketFault : quotes?.deltaFault;
    if (found && !now && reason && kind !== "SWAP") fault.textContent = reason;
    show(schedule, Array.from({ length: Number(slices.value) }, () => h("span", {})));
    const other = side === "SELL" ? get.input : pay.input;
    if (found && now) {
      const { src, dest, side: of } = found.asked;
      const times = BigInt(found.schedule?.slices ?? 1);
      propose(other, of === "SELL" ? shortUnits(now.dest * times, dest.decimals) : shortUnits(now.src * times, src.decimals));
      if (kind === "LIMIT" && !limit.value) propose(limit, price(now.src, src.decimals, now.dest, dest.decimals).replaceAll(",", ""));
      lines(/** @type {any} */ (wish()), now);
    } else {
      propose(other, "");
      show(summary);
    }
    worths();
    const states = /** @type {[boolean, string][]} */ ([
      [!kinds.length, "This chain is not traded"], [!found, "Enter an amount"], [Boolean(reason), "No price"], [!now, "Waiting for a price…"],
      [kind === "LIMIT" && found?.limitAmount === undefined, "Enter a limit price"],
    ]);
    const stop = states.find(([holds]) => holds);
    go.disabled = Boolean(stop);
    go.textContent = stop ? stop[1] : state.wallet ? `Review ${kind === "TWAP" ? "TWAP" : KINDS[kind].name.toLowerCase()}` : "Connect an account";
  }

  /** @param {import("./trade_plan.js").Wish} made @param {any} now */
  function lines(made, now) {
    const { src, dest, side: of } = made.asked;
    const isSale = of === "SELL";
    const bound = made.limitAmount ?? bounded(of, isSale ? now.dest : now.src, made.slippageBps);
    const fixed = isSale ? now.src : now.dest;
    const ratePair = isSale ? price(fixed, src.decimals, bound, dest.decimals) : price(bound, src.decimals, fixed, dest.decimals);
    const off = made.limitAmount === undefined ? null : bpsOff(isSale ? bound : now.src, isSale ? now.dest : bound);
    const times = made.schedule;
    show(summary,
      row("Price", `1 ${src.symbol} = ${price(now.src, src.decimals, now.dest, dest.decimals)} ${dest.symbol}`),
      row(`${isSale ? "Least received" : "Most paid"}${times ? ", each slice" : ""}`, isSale ? amountOf(bound, dest) : amountOf(bound, src)),
      made.limitAmount === undefined ? null : row("Your limit", `${ratePair} ${dest.symbol}${off === null || off === 0n ? "" : ` · ${percent(off < 0n ? -off : off)} ${off > 0n ? "above" : "below"} the price`}`),
      times ? row("Each slice", `${amountOf(made.asked.amount, isSale ? src : dest)} every ${duration(times.interval)}`) : null,
      times && !isSale ? row("Most paid, in all", amountOf(mostOf(times.total, times.slices, bound), src)) : null,
      ...bridgeRows(),
      now.gas ? row("Gas, in the price", `${amount(now.gas.amount, now.gas.token.address)} (${usd(now.gas.amountUSD)})`) : row("Gas, yours", usd(quotes?.market.gasCostUSD)),
      row("Fee, in the price", percent(now.feeBps)));
  }

  /** The bridge of the present quote. */
  function bridgeRows() {
    const route = there.value ? quotes?.delta?.route : null;
    if (!route?.bridge) return [];
    const via = token(route.origin.output.token.address);
    return [row("Bridge, its fee in the price", `${route.bridge.protocol} · ${route.fees.bridge.map((/** @type {any} */ fee) => amountOf(fee.amount, via)).join(" + ")}`), row("On the way", `about ${duration(route.bridge.estimatedTimeMs / 1_000)}`)];
  }

  function worths() {
    const market = kind === "TWAP" ? null : quotes?.market; // whose amounts are of one slice
    pay.worth.textContent = market ? usd(market.srcUSD) : "\u00a0";
    get.worth.textContent = market ? usd(market.destUSD) : "\u00a0";
  }

  async function holdings() {
    const { wallet } = state;
    for (const part of [pay, get]) {
      show(part.has);
      const chosen = find(part.select);
      if (!wallet || !chosen || (part === get && there.value)) continue;
      try {
        const has = await wallet.balance(chosen.address);
        if (state.wallet !== wallet || find(part.select) !== chosen) continue;
        const text = amountOf(has, chosen);
        const most = () => { side = "SELL"; pay.input.value = plainUnits(has, chosen.decimals); asked(); };
        show(part.has, part === pay && has > 0n ? h("button", { class: "link", type: "button", title: "Sell all", onclick: most }, `Has ${text}`) : `Has ${text}`);
      } catch {
        show(part.has, h("span", { class: "warn" }, "Balance is not known"));
      }
    }
  }

  dress();
  update();
  return {
    element, wish, holdings,
    kind: () => kind,
    pair: () => [find(pay.select), find(get.select)],
    /** Say why the trade is not offered for agreement. @param {string} reason */
    refuse: (reason) => { fault.textContent = refusal = reason; },
    /** @param {import("./quote_feed.js").Quotes | null} given */
    show(given) {
      quotes = given;
      update();
    },
  };
}
