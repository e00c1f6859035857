// The form of a trade: kind, tokens, amount, bounds. It says what is wished, and shows what a quote gives.
import { h, loading, row, show } from "/console/shared/dom.js";
import { bpsOff, duration, formatUnits, moment, parseUnits, percent, plainUnits, price, signedBps, usd, usdTimes } from "/console/shared/amounts.js";
import { partsBar } from "/console/shared/charts.js";
import { isSame, NATIVE } from "./abi.js";
import { tokenPicker } from "./picker.js";
import { bridgeOf, deltaAmounts, deltaWorths, marketAmounts, onBridge } from "./quote_feed.js";
import { makerShares } from "./route_view.js";
import { bounded, mostOf, sliceOf } from "./schedule.js";
import { amount, amountOf, chainName, firstPair, isOneToken, state, token } from "./state.js";

export const KINDS = /** @type {const} */ ({
  SWAP: { name: "Swap", hint: "Makers sign prices now; you send the transaction and pay its gas." },
  ORDER: { name: "Gasless", hint: "You sign an order; agents compete to fill it, and pay the gas." },
  LIMIT: { name: "Limit", hint: "The order rests until makers’ prices reach your limit." },
  TWAP: { name: "TWAP", hint: "The order is cut into equal slices, each auctioned in its turn." },
});
const SLIPPAGES = ["0.1", "0.5", "1", "3"];
const SLIPPAGE_BPS_MOST = 5_000;
const LIVES_S = [600, 3_600, 86_400, 604_800];
const INTERVALS_S = [60, 300, 900, 3_600, 14_400];
const SPARE_S = 900;
const STEP_BPS = [-100, 0, 100]; // of the buttons beside a limit price
const ONE = 10n ** 18n;
const GAS_RESERVE = 10n ** 16n; // native tokens that "Max" leaves for gas

/** A quoted amount, cut to what a field shows. @param {bigint} raw @param {number} decimals */
const shortUnits = (raw, decimals) => formatUnits(raw, decimals, 9).replaceAll(",", "");
/** @param {string} text @param {...(HTMLElement | null)} inside */
const labelled = (text, ...inside) => h("label", { class: "field" }, text, ...inside);
/** @param {(number | string)[]} values @param {(value: any) => string} text @param {number | string} chosen @param {string} label @param {() => void} changed */
const choice = (values, text, chosen, label, changed) => /** @type {HTMLSelectElement} */ (
  h("select", { "aria-label": label, onchange: changed }, values.map((value) => h("option", { value: String(value), selected: value === chosen }, text(value)))));

/** Write into a field, but never while a person is in it. @param {HTMLInputElement} input @param {string} text */
const propose = (input, text) => {
  if (document.activeElement !== input) input.value = text;
  fit(input);
};
/** Make the letters of a long amount smaller. @param {HTMLInputElement} input */
const fit = (input) => input.classList.toggle("long", input.value.length > 8);

/** @param {{onAsk: () => void, onReview: () => void}} listeners `onAsk`: another price is wanted */
export function tradeForm({ onAsk, onReview }) {
  const tokens = [...state.tokens.values()];
  let side = /** @type {"SELL" | "BUY"} */ ("SELL");
  const can = { SWAP: Boolean(state.chain?.market), ORDER: Boolean(state.chain?.delta), LIMIT: Boolean(state.chain?.delta), TWAP: Boolean(state.chain?.delta) };
  const kinds = /** @type {(keyof typeof KINDS)[]} */ (Object.keys(KINDS)).filter((kind) => can[kind]);
  let kind = kinds[0];
  const fault = h("p", { class: "fault", role: "alert", id: "amount-fault" });
  const [first, second] = firstPair(tokens);
  const money = (/** @type {string} */ label, /** @type {"SELL" | "BUY"} */ of, /** @type {import("./state.js").Token} */ chosen) => {
    const input = /** @type {HTMLInputElement} */ (h("input", { id: `amount-${of}`, inputmode: "decimal", autocomplete: "off", placeholder: "0", "aria-describedby": "amount-fault", oninput: () => { fit(input); side = of; asked(); }, onblur: () => update() }));
    const picker = tokenPicker(label, () => (of === "BUY" ? reached() : tokens), chosen, () => repaired());
    const [has, worth] = [h("span", {}), h("span", {})];
    const under = h("div", { class: "under" }, worth);
    const over = h("div", { class: "over" }, h("label", { for: `amount-${of}` }, label), has);
    return { input, picker, has, worth, under, element: h("div", { class: "money" }, over, input, picker.element, under) };
  };
  const there = /** @type {HTMLSelectElement} */ (h("select", { "aria-label": "You receive: chain", onchange: () => { offerReceived(); repaired(); } },
    h("option", { value: "" }, "on this chain"), [...state.far].filter(([, { reached: found }]) => found.length).map(([id]) => h("option", { value: String(id) }, chainName(id)))));
  const reached = () => (there.value ? state.far.get(Number(there.value))?.reached : null) ?? tokens;
  const pay = money("You pay", "SELL", first);
  const get = money("You receive", "BUY", second);
  get.under.append(there);
  const slippage = /** @type {HTMLInputElement} */ (h("input", { inputmode: "decimal", autocomplete: "off", list: "slippages", value: "0.5", oninput: () => update(), onblur: () => update() }));
  const life = choice([...LIVES_S, "date"], (value) => (value === "date" ? "a date…" : duration(value)), LIVES_S[0], "Good for", () => { dress(); update(); });
  const until = /** @type {HTMLInputElement} */ (h("input", { type: "datetime-local", "aria-label": "Good until", oninput: () => update() }));
  const limit = /** @type {HTMLInputElement} */ (h("input", { inputmode: "decimal", autocomplete: "off", placeholder: "0", oninput: () => update(), onblur: () => update() }));
  const steps = h("div", { class: "segments small", role: "group", "aria-label": "Limit against the price" }, STEP_BPS.map((bps) => h("button", { type: "button", onclick: () => step(bps) }, bps ? `${bps > 0 ? "+" : "−"}${Math.abs(bps) / 100} %` : "price")));
  const slices = choice([2, 3, 4, 6, 12, 24], String, 4, "Slices", () => asked());
  const interval = choice(INTERVALS_S, duration, 60, "Interval", () => update());
  const fields = {
    slippage: labelled("Slippage, %", slippage, h("datalist", { id: "slippages" }, SLIPPAGES.map((value) => h("option", { value })))), life: labelled("Good for", life), until: labelled("Good until", until),
    limit: labelled("Limit price", limit), steps: h("div", { class: "fieldlike" }, "Against the price", steps), slices: labelled("Slices", slices), interval: labelled("Interval", interval),
  };
  let refusal = ""; // of the last review; it stays while prices change
  const hint = h("p", { class: "quiet small" });
  const schedule = h("div", { class: "slices", "aria-hidden": "true" });
  const bridges = h("fieldset", { class: "options", hidden: true });
  const [shares, summary, none] = [h("div", {}), h("dl", { class: "rows" }), h("div", { role: "alert", id: "no-price" })];
  const go = /** @type {HTMLButtonElement} */ (h("button", { class: "primary", type: "submit", disabled: true }, "Enter an amount"));
  const turn = () => {
    const [one, other] = [pay.picker.token(), get.picker.token()];
    pay.picker.set(other);
    get.picker.set(one);
    if (side === "SELL") pay.input.value = "";
    repaired();
  };
  const flip = /** @type {HTMLButtonElement} */ (h("button", { class: "round flip", type: "button", "aria-label": "Turn the pair around", onclick: turn }, "⇅"));
  const element = h("form", { class: "card", "aria-label": "Trade", onsubmit: (/** @type {Event} */ event) => { event.preventDefault(); refusal = ""; onReview(); } },
    h("fieldset", {}, h("legend", { class: "unseen" }, "Kind of trade"), h("div", { class: "segments" }, kinds.map((each) => h("label", {},
      h("input", { type: "radio", name: "kind", value: each, checked: each === kind, onchange: () => { kind = each; life.value = String(each === "LIMIT" ? LIVES_S[2] : LIVES_S[0]); dress(); asked(); } }), KINDS[each].name)))),
    hint, pay.element, flip, get.element, fault, none, bridges,
    h("div", { class: "fields" }, Object.values(fields)), schedule, shares, summary, go);

  /** @type {import("./quote_feed.js").Quotes | null} */ let quotes = null;
  let bridge = ""; // key of the bridge that a person chose; the recommended one without it
  /** Balance of the token that is paid, raw units; null if unknown. @type {bigint | null} */ let owned = null;

  /** Offer the tokens of the chosen chain, the one of the same symbol first. */
  function offerReceived() {
    const found = reached();
    get.picker.set(found.find(({ symbol }) => symbol === get.picker.token().symbol) ?? found[0]);
    flip.disabled = Boolean(there.value);
    bridge = "";
  }

  function dress() {
    hint.textContent = KINDS[kind].hint;
    there.hidden = kind === "SWAP" || there.options.length === 1;
    if (kind === "SWAP" && there.value) {
      there.value = limit.value = "";
      offerReceived();
      holdings();
    }
    const hasLife = kind === "ORDER" || kind === "LIMIT";
    const shown = { slippage: kind !== "LIMIT", life: hasLife, until: hasLife && life.value === "date", limit: kind === "LIMIT", steps: kind === "LIMIT", slices: kind === "TWAP", interval: kind === "TWAP" };
    for (const [name, field] of Object.entries(fields)) field.hidden = !shown[/** @type {keyof typeof shown} */ (name)];
    schedule.hidden = kind !== "TWAP";
  }

  /** The wish as far as it is known; null, with the fault shown, if it cannot be priced. */
  function read() {
    const [src, dest] = [pay.picker.token(), get.picker.token()];
    const mine = side === "SELL" ? pay : get;
    const text = mine.input.value;
    fault.textContent = refusal;
    for (const { input } of [pay, get]) input.removeAttribute("aria-invalid");
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

  /** The slippage that was entered, in basis points; null if it is none. */
  function slippageBps() {
    const found = /^\d+(\.\d{1,2})?$/.test(slippage.value.trim()) ? Number(parseUnits(slippage.value, 2)) : -1;
    const isFine = found >= 0 && found <= SLIPPAGE_BPS_MOST;
    slippage.toggleAttribute("aria-invalid", !isFine);
    return isFine ? found : null;
  }

  /** Seconds for which an order is good; null if its date is none, or over. */
  function lifeS() {
    if (life.value !== "date") return Number(life.value);
    const found = Math.floor((new Date(until.value).getTime() - Date.now()) / 1_000);
    return found > 0 ? found : null;
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
    const made = { kind, asked: asking, slippageBps: slippageBps() ?? 0, lifeS: lifeS() ?? 0 };
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

  const delta = () => (quotes?.delta ? onBridge(quotes.delta, bridge) : null);
  const quoted = () => {
    const chosen = delta();
    return kind === "SWAP" ? quotes?.market && marketAmounts(quotes.market) : chosen && deltaAmounts(chosen);
  };

  /** Put the limit at a distance from the present price. @param {number} bps */
  function step(bps) {
    const now = quoted();
    if (!now) return;
    const rate = parseUnits(price(now.src, pay.picker.token().decimals, now.dest, get.picker.token().decimals), 18);
    limit.value = plainUnits((rate * BigInt(10_000 + bps)) / 10_000n, 18).slice(0, 14);
    update();
  }

  function update() {
    const found = wish();
    const now = quoted();
    const reason = kind === "SWAP" ? quotes?.marketFault : quotes?.deltaFault;
    show(none, found && !now && reason ? h("div", { class: "notice warn" }, h("p", {}, reason.startsWith("No route") ? reason : `No price: ${reason}`)) : null);
    show(schedule, Array.from({ length: Number(slices.value) }, () => h("span", {})));
    const other = side === "SELL" ? get.input : pay.input;
    let needed = found && side === "SELL" ? (found.schedule?.total ?? found.asked.amount) : null;
    if (found && now) {
      const { src, dest, side: of } = found.asked;
      const times = BigInt(found.schedule?.slices ?? 1);
      propose(other, of === "SELL" ? shortUnits(now.dest * times, dest.decimals) : shortUnits(now.src * times, src.decimals));
      if (kind === "LIMIT" && !limit.value) propose(limit, price(now.src, src.decimals, now.dest, dest.decimals).replaceAll(",", ""));
      const made = /** @type {import("./trade_plan.js").Wish} */ (wish());
      const bound = boundOf(made, now);
      if (of === "BUY") needed = made.schedule ? mostOf(made.schedule.total, made.schedule.slices, bound) : bound;
      lines(made, now, bound);
      show(shares, kind === "SWAP" && quotes?.market ? partsBar(makerShares(quotes.market)) : null);
    } else {
      propose(other, "");
      show(summary);
      show(shares, found && !reason ? loading(5) : null); // as high as what comes, so that nothing jumps
    }
    drawBridges();
    worths(found);
    const isShort = state.wallet !== null && owned !== null && needed !== null && needed > owned;
    pay.has.classList.toggle("bad", isShort);
    const states = /** @type {[boolean, string][]} */ ([
      [!kinds.length, "This chain is not traded"], [!found, "Enter an amount"], [isShort, `Not enough ${pay.picker.token().symbol}`], [Boolean(reason), "No price"], [!now, "Waiting for a price…"],
      [kind === "LIMIT" && found?.limitAmount === undefined, "Enter a limit price"], [kind !== "LIMIT" && slippageBps() === null, "Slippage: 0 to 50 %"], [!fields.life.hidden && lifeS() === null, "Choose a date to come"],
    ]);
    const stop = states.find(([holds]) => holds);
    go.disabled = Boolean(stop);
    go.textContent = stop ? stop[1] : state.wallet ? `Review ${kind === "SWAP" ? "swap" : kind === "TWAP" ? "TWAP" : kind === "LIMIT" ? "limit order" : "gasless order"}` : "Connect an account";
  }

  /** The bound of the amount that is not fixed, for a TWAP of a slice. @param {import("./trade_plan.js").Wish} made @param {any} now */
  const boundOf = (made, now) => made.limitAmount ?? bounded(made.asked.side, made.asked.side === "SELL" ? now.dest : now.src, made.slippageBps);

  /** @param {import("./trade_plan.js").Wish} made @param {any} now @param {bigint} bound */
  function lines(made, now, bound) {
    const { src, dest, side: of } = made.asked;
    const isSale = of === "SELL";
    const fixed = isSale ? now.src : now.dest;
    const ratePair = isSale ? price(fixed, src.decimals, bound, dest.decimals) : price(bound, src.decimals, fixed, dest.decimals);
    const off = made.limitAmount === undefined ? null : bpsOff(isSale ? bound : now.src, isSale ? now.dest : bound);
    const times = made.schedule;
    show(summary,
      row(now.gas ? "Price, after gas and fee" : "Price, before gas", `1 ${src.symbol} = ${price(now.src, src.decimals, now.dest, dest.decimals)} ${dest.symbol}`),
      row(`You ${isSale ? "receive at least" : "pay at most"}${times ? ", each slice" : ""}`, isSale ? amountOf(bound, dest) : amountOf(bound, src)),
      off === null ? null : row("Your limit", `${ratePair} ${dest.symbol}`),
      off === null ? null : row("It fills", off > 0n ? `once the price is ${percent(off)} better` : off < 0n ? `at once: ${percent(-off)} below the present price` : "at once, at the present price"),
      times ? row("Each slice", `${amountOf(made.asked.amount, isSale ? src : dest)} every ${duration(times.interval)}`) : null,
      times && !isSale ? row("You pay at most, in all", amountOf(mostOf(times.total, times.slices, bound), src)) : null,
      made.limitAmount !== undefined || made.kind === "ORDER" ? row("Good until", moment(Date.now() + made.lifeS * 1_000)) : null,
      now.gas ? row("Network cost, included", `${amount(now.gas.amount, now.gas.token.address)} (${usd(now.gas.amountUSD)})`) : row("Network cost, yours", usd(quotes?.market?.gasCostUSD)),
      row("Fee, included", percent(now.feeBps)));
  }

  /** Bridges of the present quote, to choose from. */
  function drawBridges() {
    const quote = there.value ? quotes?.delta : null;
    bridges.hidden = !quote;
    if (!quote) return;
    const all = [quote.route, ...(quote.alternatives ?? [])];
    const chosen = bridgeOf(onBridge(quote, bridge).route);
    show(bridges, h("legend", { class: "unseen" }, "Bridge"), all.map((route) => {
      if (!route.bridge) return null;
      const via = token(route.origin.output.token.address);
      const output = route.destination.output;
      const choose = () => { bridge = bridgeOf(route); update(); };
      return h("label", {}, h("input", { type: "radio", name: "bridge", value: bridgeOf(route), checked: bridgeOf(route) === chosen, onchange: choose }),
        h("span", {}, h("strong", {}, route.bridge.protocol), ` · about ${duration(route.bridge.estimatedTimeMs / 1_000)}`), h("span", {}, amount(output.amount, output.token.address, 9, output.token.chainId)),
        h("small", {}, `Fee ${route.fees.bridge.map((/** @type {any} */ fee) => amountOf(fee.amount, via)).join(" + ")}, included${route.bridge.tags.length ? ` · ${route.bridge.tags.join(", ").replaceAll("-", " ")}` : ""}`));
    }));
  }

  /** Worth of both amounts in dollars, and the price against mid prices. @param {import("./trade_plan.js").Wish | null} found */
  function worths(found) {
    const chosen = delta();
    const both = kind === "SWAP" ? quotes?.market && { src: quotes.market.srcUSD, dest: quotes.market.destUSD } : chosen && deltaWorths(chosen);
    const times = found?.schedule?.slices ?? 1;
    pay.worth.textContent = both ? usdTimes(both.src, times) : "\u00a0";
    const off = both && Number(both.src) > 0 && Number(both.dest) > 0 ? ((Number(both.dest) - Number(both.src)) / Number(both.src)) * 10_000 : null;
    get.worth.textContent = both ? `${usdTimes(both.dest, times)}${off === null ? "" : ` · ${signedBps(off)} against mid prices`}` : "\u00a0";
  }

  async function holdings() {
    const { wallet } = state;
    owned = null;
    for (const part of [pay, get]) {
      show(part.has);
      const chosen = part.picker.token();
      if (!wallet || !chosen || (part === get && there.value)) continue;
      try {
        const has = await wallet.balance(chosen.address);
        if (state.wallet !== wallet || part.picker.token() !== chosen) continue;
        const reserve = isSame(chosen.address, NATIVE) ? GAS_RESERVE : 0n;
        const most = () => { side = "SELL"; pay.input.value = plainUnits(has - reserve, chosen.decimals); asked(); };
        show(part.has, `Balance ${amountOf(has, chosen)}`, part === pay && has > reserve ? [" · ", h("button", { class: "link", type: "button", "aria-label": `Max: sell all ${chosen.symbol}`, onclick: most }, "Max")] : null);
        if (part === pay) owned = has;
      } catch {
        show(part.has, h("span", { class: "warn" }, "Balance is not known"));
      }
    }
    update();
  }

  pay.input.value = tokens.length ? "1" : "";
  dress();
  update();
  return {
    element, wish, holdings, delta,
    kind: () => kind,
    pair: () => [pay.picker.token(), get.picker.token()],
    isAcross: () => Boolean(there.value),
    /** Say why the trade is not offered for agreement. @param {string} reason */
    refuse: (reason) => { fault.textContent = refusal = reason; },
    /** @param {import("./quote_feed.js").Quotes | null} given */
    show(given) {
      quotes = given;
      update();
    },
  };
}
