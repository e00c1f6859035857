// OTC orders between two accounts: those that anyone may fill, those addressed to me, and mine; a new one; one order with its fill.
import { badge, codeOf, copyButton, h, loading, notice, row, show, when } from "/console/shared/dom.js";
import { ask, follow } from "/console/shared/http.js";
import { duration, formatUnits, parseUnits, price, rateOf, signedBps } from "/console/shared/amounts.js";
import { rowTable } from "/console/shared/rows.js";
import { isSame, NATIVE } from "./abi.js";
import { connect } from "./account.js";
import { address, onAddress } from "./address.js";
import { ANYONE, cancelPlan, fillPlan, givenFor, paidFor, postPlan } from "./otc_plan.js";
import { tokenPicker } from "./picker.js";
import { poll } from "./poll.js";
import { review } from "./review.js";
import { amountOf, explorerUrl, firstPair, isOneToken, onChange, state, token } from "./state.js";

const PAGE = 200;
const LOOK_MS = 5_000;
const AGAIN_MS = 15_000;
const PAIRS_MOST = 40; // pairs whose mid prices are read: anyone may post orders of any pair
const LIVES_S = [3_600, 86_400, 604_800, 0];
const OPEN = ["DRAFT", "PENDING", "SUSPENDED"];
/** State -> tone, sentence. @type {Record<string, ["good" | "bad" | "warn" | "quiet" | "busy", string]>} */
const STATES = {
  PENDING: ["busy", "It can be filled."], SUSPENDED: ["warn", "The maker’s balance or approval is too small at present."], DRAFT: ["warn", "The maker’s contract has yet to accept the signature."],
  FULFILLED: ["good", "All of it is filled."], CANCELLED: ["quiet", "The maker cancelled it."], EXPIRED: ["quiet", "Its time is over."],
};
/** @param {string} name */
const stateBadge = (name) => badge(name === "PENDING" ? "open" : name.toLowerCase(), STATES[name]?.[0] ?? "quiet");
/** @param {Api_StoredOrder} order */
const left = (order) => (BigInt(order.makerAmount) === 0n ? "–" : `${formatUnits((BigInt(order.fillableBalance) * 1_000n) / BigInt(order.makerAmount), 1)} %`);
/** @param {Api_StoredOrder} order */
const sold = (order) => amountOf(order.makerAmount, token(order.makerAsset));
/** @param {Api_StoredOrder} order */
const wanted = (order) => amountOf(order.takerAmount, token(order.takerAsset));
/** @param {Api_StoredOrder} order */
const rate = (order) => price(BigInt(order.makerAmount), token(order.makerAsset).decimals, BigInt(order.takerAmount), token(order.takerAsset).decimals);

/** @param {HTMLElement} main @param {string} rest an order's hash, or empty */
export function otcPage(main, rest) {
  if (!state.chain?.rfq) {
    show(main, h("h1", {}, "OTC"), notice("No OTC orders on this chain", "Choose another chain above."));
    return () => {};
  }
  let shown = "open";
  /** @type {Record<string, Api_StoredOrder[] | null>} */ let lists = { open: null, tome: null, mine: null };
  const tabs = h("div", { class: "segments small", role: "group", "aria-label": "OTC orders" });
  const empty = h("div", {});
  const fault = h("p", { class: "fault", role: "alert" });
  const detail = h("section", { class: "card", "aria-label": "This order", hidden: true });
  const market = marketRates();
  const list = rowTable({
    caption: "OTC orders, newest first", key: (one) => one.orderHash, onPick: (one) => { location.hash = `otc/${one.orderHash}`; }, empty,
    columns: [
      { name: "Sells", cell: (/** @type {Api_StoredOrder} */ one) => sold(one) },
      { name: "Wants", cell: (one) => wanted(one) },
      { name: "Price", isNumber: true, isWide: true, cell: (one) => rate(one) },
      { name: "Against mid", isNumber: true, isWide: true, cell: (one) => { const off = market.against(one); return off === null ? "–" : signedBps(off); } },
      { name: "Left", isNumber: true, cell: (one) => left(one) },
      { name: "State", isWide: true, cell: (one) => stateBadge(one.state) },
      { name: "Ends", isWide: true, cell: (one) => (Number(one.expiry) ? when(Number(one.expiry) * 1_000) : "never") },
    ],
  });
  const form = newOrder(market, (plan) => review(plan, () => { look(new AbortController().signal); }));
  show(main, h("h1", {}, "OTC"), h("div", { class: "trade" }, form.element, h("div", { class: "stack" },
    h("section", { class: "card", "aria-label": "OTC orders" }, h("div", { class: "heading" }, h("h2", {}, "Orders"), tabs), fault, list.element), detail)));

  function draw() {
    const names = /** @type {[string, string][]} */ ([["open", "Open to all"], ["tome", "To me"], ["mine", "Mine"]]);
    show(tabs, names.map(([name, words]) => h("button", { type: "button", "aria-pressed": String(name === shown), onclick: () => { shown = name; draw(); } }, lists[name] ? `${words} ${(lists[name] ?? []).length}` : words)));
    const found = lists[shown];
    if (shown !== "open" && !state.wallet) show(empty, notice("No account", "Connect an account to see its orders."));
    else if (!found) show(empty, loading(3));
    else show(empty, notice("No orders", shown === "open" ? "Orders that anyone may fill appear here." : shown === "tome" ? "Orders that name your account as their taker appear here." : "Orders that you post appear here."));
    list.setItems(found ?? []);
  }

  /** @param {AbortSignal} signal */
  async function look(signal) {
    const chain = state.chain?.chainId;
    const me = state.wallet?.address;
    const of = async (/** @type {string} */ taker) => (await ask(`/ft/p2p/${chain}/taker/${taker}?limit=${PAGE}`, { signal })).orders;
    const by = async (/** @type {string} */ maker) => (await ask(`/ft/p2p/${chain}/maker/${maker}?limit=${PAGE}`, { signal })).orders;
    try {
      const [open, tome, mine] = await Promise.all([of(ANYONE), me ? of(me) : null, me ? by(me) : null]);
      if (signal.aborted) return;
      const isOpen = (/** @type {Api_StoredOrder} */ one) => OPEN.includes(one.state);
      lists = { open: open.filter((/** @type {Api_StoredOrder} */ one) => one.state === "PENDING"), tome: tome?.filter(isOpen) ?? null, mine };
      fault.textContent = "";
      draw();
    } catch (error) {
      if (!signal.aborted) fault.textContent = /** @type {Error} */ (error).message;
    }
  }

  let leave = () => {};
  /** @param {string} hash */
  function open(hash) {
    leave();
    leave = () => {};
    detail.hidden = !hash;
    list.pick(hash);
    if (hash) leave = orderDetail(detail, hash, market, () => look(new AbortController().signal));
  }

  draw();
  const stop = poll(look, LOOK_MS);
  open(rest);
  let seen = state.wallet;
  const forget = onChange(() => {
    if (seen === state.wallet) return;
    seen = state.wallet;
    lists = { ...lists, tome: null, mine: null };
    draw();
    form.holdings();
    look(new AbortController().signal);
    open(address()[1]); // other acts are offered to another account
  });
  const stay = onAddress("otc", open);
  return () => { stop(); leave(); forget(); stay(); market.close(); };
}

/** The venue's mid prices of the pairs that orders name, read once each while the page is shown. */
function marketRates() {
  /** @type {Map<string, number | null>} */ const rates = new Map();
  let isClosed = false;
  /** Read the mid price of a pair. @param {string} pair @param {string} base @param {string} quote */
  async function read(pair, base, quote) {
    if (rates.has(pair) || rates.size >= PAIRS_MOST || isClosed) return;
    rates.set(pair, null);
    const asked = new URLSearchParams({ chainId: String(state.chain?.chainId), base, quote, span: "900" });
    const told = await ask(`/prices/history?${asked}`).catch(() => null);
    const point = told?.points.at(-1);
    if (point) rates.set(pair, Number(point[4]));
    else setTimeout(() => rates.delete(pair), AGAIN_MS); // the venue has no price yet
  }
  return {
    /** How far an order's price is from the mid price for its taker, in basis points; null if unknown. @param {{makerAsset: string, takerAsset: string, makerAmount: string, takerAmount: string}} order */
    against({ makerAsset, takerAsset, makerAmount, takerAmount }) {
      const [sell, buy] = [token(makerAsset), token(takerAsset)];
      if (!sell.isListed || !buy.isListed || isOneToken(sell, buy)) return null;
      const pair = `${makerAsset} ${takerAsset}`.toLowerCase();
      read(pair, makerAsset, takerAsset);
      const rate = rates.get(pair);
      const asked = rateOf(BigInt(makerAmount), sell.decimals, BigInt(takerAmount), buy.decimals);
      return !rate || asked === null ? null : (Number(asked) / 1e18 / rate - 1) * 10_000;
    },
    close() { isClosed = true; },
  };
}

/** The form of a new order. @param {ReturnType<typeof marketRates>} market @param {(plan: import("./trade_plan.js").Plan) => void} agreed */
function newOrder(market, agreed) {
  const tokens = [...state.tokens.values()].filter(({ address }) => !isSame(address, NATIVE)); // the contract moves ERC-20 tokens alone
  const [first, second] = firstPair(tokens);
  const sell = tokenPicker("I sell", () => tokens, first, () => holdings());
  const buy = tokenPicker("I want", () => tokens, second, () => update());
  const field = (/** @type {string} */ id, placeholder = "0") => /** @type {HTMLInputElement} */ (h("input", { id, inputmode: "decimal", autocomplete: "off", placeholder, oninput: () => update() }));
  const [give, get, taker] = [field("otc-give"), field("otc-get"), /** @type {HTMLInputElement} */ (h("input", { autocomplete: "off", spellcheck: "false", placeholder: "anyone", oninput: () => update() }))];
  const life = /** @type {HTMLSelectElement} */ (h("select", {}, LIVES_S.map((value) => h("option", { value: String(value), selected: value === 86_400 }, value ? duration(value) : "no end"))));
  const [has, note, fault] = [h("span", {}), h("p", { class: "small quiet" }), h("p", { class: "fault", role: "alert" })];
  const go = /** @type {HTMLButtonElement} */ (h("button", { class: "primary", type: "submit", disabled: true }, "Enter the amounts"));
  /** @type {bigint | null} */ let owned = null;
  const element = h("form", { class: "card", "aria-label": "New order", onsubmit: submit }, h("h2", {}, "New order"),
    h("div", { class: "money" }, h("div", { class: "over" }, h("label", { for: "otc-give" }, "I sell"), has), give, sell.element),
    h("div", { class: "money" }, h("div", { class: "over" }, h("label", { for: "otc-get" }, "I want")), get, buy.element), note,
    h("label", { class: "field" }, "Taker, an address", taker), h("label", { class: "field" }, "Good for", life), fault, go);

  /** @returns {import("./otc_plan.js").OtcWish | null} */
  function wish() {
    fault.textContent = "";
    if (!give.value.trim() || !get.value.trim()) return null;
    try {
      const made = { sell: sell.token(), buy: buy.token(), sellAmount: parseUnits(give.value, sell.token().decimals), buyAmount: parseUnits(get.value, buy.token().decimals), taker: taker.value.trim() || ANYONE, lifeS: Number(life.value) };
      if (isSame(made.sell.address, made.buy.address)) throw new RangeError("Choose two different tokens");
      if (!/^0x[0-9a-fA-F]{40}$/.test(made.taker)) throw new RangeError("The taker is no address");
      return made.sellAmount && made.buyAmount ? made : null;
    } catch (error) {
      fault.textContent = /** @type {Error} */ (error).message;
      return null;
    }
  }

  function update() {
    const made = wish();
    const off = made && market.against({ makerAsset: made.sell.address, takerAsset: made.buy.address, makerAmount: String(made.sellAmount), takerAmount: String(made.buyAmount) });
    note.textContent = made ? `1 ${made.sell.symbol} = ${price(made.sellAmount, made.sell.decimals, made.buyAmount, made.buy.decimals)} ${made.buy.symbol}${off === null ? "" : ` · ${signedBps(Number(off))} against mid prices`}` : "";
    const isShort = made && owned !== null && made.sellAmount > owned;
    go.disabled = !made;
    go.textContent = !made ? "Enter the amounts" : !state.wallet ? "Connect an account" : isShort ? `Review, though ${made.sell.symbol} is short` : "Review order";
  }

  function submit(/** @type {Event} */ event) {
    event.preventDefault();
    const made = wish();
    if (!state.wallet) return connect();
    return made && agreed(postPlan(made));
  }

  async function holdings() {
    owned = null;
    show(has);
    const { wallet } = state;
    const chosen = sell.token();
    if (wallet) owned = await wallet.balance(chosen.address).catch(() => null);
    if (owned !== null && chosen === sell.token()) show(has, `Balance ${amountOf(owned, chosen)}`);
    update();
  }
  holdings();
  return { element, holdings };
}

/** One order until the returned function is called. @param {HTMLElement} place @param {string} hash @param {ReturnType<typeof marketRates>} market @param {() => void} changed */
function orderDetail(place, hash, market, changed) {
  show(place, loading(4));
  const gone = new AbortController();
  let typed = "";
  async function read() {
    try {
      const order = await ask(`/ft/order/${encodeURIComponent(hash)}`, { signal: gone.signal });
      if (!gone.signal.aborted) draw(order);
    } catch (error) {
      if (!gone.signal.aborted) show(place, h("h2", {}, "This order"), notice("This order cannot be shown", /** @type {Error} */ (error).message, "bad"));
    }
  }

  /** @param {Api_StoredOrder} order */
  function draw(order) {
    const [sells, wants] = [token(order.makerAsset), token(order.takerAsset)];
    const me = state.wallet?.address ?? "";
    const isMine = isSame(order.maker, me);
    const isForMe = isSame(order.taker, ANYONE) || isSame(order.taker, me);
    const fillable = BigInt(order.swappableBalance);
    const off = market.against(order);
    const account = (/** @type {string} */ text) => codeOf(text, "address", explorerUrl(order.chainId, "address", text));
    const link = `${location.origin}${location.pathname}#otc/${order.orderHash}`;
    show(place, h("div", { class: "heading" }, h("h2", {}, `Sells ${sold(order)} for ${wanted(order)}`), h("span", { class: "small quiet" }, "Link ", copyButton(link, "link to the order"))),
      h("p", {}, stateBadge(order.state), ` ${STATES[order.state]?.[1] ?? ""}`),
      h("dl", { class: "rows" }, row("Price", `1 ${sells.symbol} = ${rate(order)} ${wants.symbol}${off === null ? "" : ` (${signedBps(off)} against mid prices)`}`), row("Left to fill", `${amountOf(order.fillableBalance, sells)} (${left(order)})`), row("Can be filled now", amountOf(fillable, sells)),
        row("Maker", account(order.maker)), row("Taker", isSame(order.taker, ANYONE) ? "anyone" : account(order.taker)), row("Ends", Number(order.expiry) ? when(Number(order.expiry) * 1_000) : "never"),
        order.transactionHash ? row("Last transaction", codeOf(order.transactionHash, "transaction", explorerUrl(order.chainId, "tx", order.transactionHash))) : null, row("Hash", codeOf(order.orderHash, "hash"))),
      isMine && OPEN.includes(order.state) ? h("div", { class: "actions" }, h("button", { type: "button", class: "danger", onclick: () => review(cancelPlan(order), after) }, "Cancel on chain")) : null,
      !isMine && order.state === "PENDING" && isForMe && fillable > 0n ? fillForm(order, sells, wants, fillable) : null);
  }

  /** @param {Api_StoredOrder} order @param {import("./state.js").Token} sells @param {import("./state.js").Token} wants @param {bigint} fillable */
  function fillForm(order, sells, wants, fillable) {
    const fault = h("p", { class: "fault", role: "alert" });
    const most = paidFor(order, fillable);
    const input = /** @type {HTMLInputElement} */ (h("input", { id: "otc-pay", inputmode: "decimal", autocomplete: "off", value: typed, placeholder: formatUnits(most, wants.decimals).replaceAll(",", ""), oninput: () => { typed = input.value; note(); } }));
    const said = h("p", { class: "small quiet" });
    const amount = () => (typed.trim() ? parseUnits(typed, wants.decimals) : most);
    function note() {
      fault.textContent = "";
      try {
        const pays = amount();
        if (pays === 0n || pays > most) throw new RangeError(`Pay at most ${amountOf(most, wants, 12)}`);
        if (givenFor(order, pays) === 0n) throw new RangeError("The amount is too small: it buys nothing");
        said.textContent = `You receive ${amountOf(givenFor(order, pays), sells, 12)}.`;
        return pays;
      } catch (error) {
        said.textContent = "";
        fault.textContent = /** @type {Error} */ (error).message;
        return null;
      }
    }
    const submit = (/** @type {Event} */ event) => {
      event.preventDefault();
      const pays = note();
      if (!state.wallet) return connect();
      return pays === null ? undefined : review(fillPlan(order, wants, sells, pays), after);
    };
    note();
    return h("form", { class: "part", "aria-label": "Fill this order", onsubmit: submit }, h("div", { class: "inline" }, h("label", { class: "field", for: "otc-pay" }, `You pay, ${wants.symbol}; all of it if empty`, input), h("button", { type: "submit", class: "primary" }, state.wallet ? "Review fill" : "Connect an account")), said, fault);
  }

  const after = () => { read(); changed(); };
  read();
  const stop = follow(`/ft/events?orderHash=${encodeURIComponent(hash)}`, { onEvent: (name) => { if (name === "order") after(); } });
  return () => { gone.abort(); stop(); };
}
