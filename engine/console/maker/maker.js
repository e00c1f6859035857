// The maker for its operator: readiness, stop switch, inventory, pairs with the ladder of one, its last quotes, and refusals by reason.
import { announce, badge, codeOf, confirmed, h, loading, notice, row, show, table, when } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { formatUnits } from "/console/shared/amounts.js";
import { depthChart, shareBar } from "/console/shared/charts.js";
import { ladderView, whole } from "/console/shared/ladder.js";
import { rowTable } from "/console/shared/rows.js";
import { signInForm } from "/console/shared/signing.js";

const LOOK_MS = 2_000;
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
/** @type {import("/console/shared/signing.js").Call | null} */ let call = null;
let chosen = "";

const [health, signIn, stops, inventory, depth, quotes, refusals, detail] = Array.from({ length: 8 }, () => h("div", { class: "part" }));
const fault = h("p", { class: "fault", role: "alert" });
const ladder = ladderView();
const pairs = rowTable({
  caption: "Pairs", key: (one) => one.key, onPick: (one) => { chosen = one.key; look(); }, empty: h("div", {}, notice("No pairs", "The settings name no pairs.")),
  columns: [
    { name: "Pair", cell: (/** @type {any} */ one) => one.pair },
    { name: "State", cell: (one) => (one.halted ? badge("stopped", "bad") : one.isStale ? badge("stale", "warn") : badge("quoted", "good")) },
    { name: "Bid", isNumber: true, cell: (one) => (one.bids[0] ? whole(one.bids[0][0]) : "–") },
    { name: "Ask", isNumber: true, cell: (one) => (one.asks[0] ? whole(one.asks[0][0]) : "–") },
    { name: "Price set", isWide: true, cell: (one) => (one.updatedMs ? when(one.updatedMs) : "never") },
    { name: "Chain", isWide: true, cell: (one) => one.chain },
  ],
});

function dress() {
  const card = (/** @type {string} */ title, /** @type {HTMLElement} */ place) => h("section", { class: "card", "aria-label": title }, h("h2", {}, title), place);
  show(health, loading(2));
  show(main, h("h1", {}, "Maker"), card("Readiness", health), fault,
    call ? null : card("Sign in", signIn),
    call ? h("div", { class: "stack" }, card("Stop switch", stops), card("Inventory", inventory), h("div", { class: "columns" }, card("Pairs", pairs.element), card("Depth and ladder", h("div", { class: "part" }, depth, ladder.element))),
      card("Last quotes", quotes), h("div", { class: "columns" }, card("Refusals by reason", refusals), card("Counters", detail))) : null);
  if (!call) drawSignIn();
}

function drawSignIn() {
  signInForm(signIn, "Prices, funds and the switch are for administrators: a domain of [maker.admin], its access key and secret.", async (made) => {
    await made("/status");
    call = made;
    dress();
    announce("Signed in");
    look();
  });
}

let waiting = 0;
async function look() {
  clearTimeout(waiting);
  try {
    const { ready, reasons } = await ask("/readyz", { accept: [503] });
    show(health, h("div", {}, ready ? badge("ready", "good") : badge("not ready", "bad")),
      reasons.length ? h("ul", { class: "reasons" }, reasons.map((/** @type {string} */ reason) => h("li", {}, reason))) : h("p", { class: "quiet" }, "Firm quotes are signed."));
    if (call) draw(await call("/status"));
    fault.textContent = "";
  } catch (error) {
    fault.textContent = /** @type {Error} */ (error).message;
  }
  clearTimeout(waiting);
  waiting = setTimeout(look, LOOK_MS);
}

/** @param {any} status */
function draw(status) {
  const each = Object.entries(/** @type {Record<string, any>} */ (status.chains));
  const all = each.flatMap(([chain, { pairs: of }]) => Object.entries(of).map(([pair, one]) => ({ .../** @type {any} */ (one), pair, chain, key: `${chain} ${pair}` })));
  if (!chosen && all.length) chosen = all[0].key;
  pairs.setItems(all);
  pairs.pick(chosen);
  const one = all.find(({ key }) => key === chosen);
  if (one) ladder.show({ ...one, standing: one.halted ? "stopped" : one.isStale ? "stale" : "quoted" });
  drawStops(status.halted, one);
  drawDepth(one);
  show(inventory, table("Inventory", [{ name: "Token" }, { name: "Chain" }, { name: "Held", isNumber: true }, { name: "Promised in quotes", isNumber: true }, { name: "Promised" }, { name: "Address" }],
    each.flatMap(([chain, { tokens, funds }]) => Object.entries(/** @type {Record<string, any>} */ (tokens)).map(([name, { address, decimals }]) => {
      const held = funds[address.toLowerCase()];
      const share = held && BigInt(held.funds) > 0n ? Number((BigInt(held.reserved) * 1_000n) / BigInt(held.funds)) / 10 : 0;
      return [name, chain, held ? formatUnits(held.funds, decimals) : "–", held ? formatUnits(held.reserved, decimals) : "–", held ? h("span", {}, shareBar(share), `${share} %`) : "–", codeOf(address, "address")];
    }))));
  drawQuotes(status.quotes ?? [], each);
  const refused = each.flatMap(([chain, counts]) => Object.entries(/** @type {Record<string, number>} */ (counts.refusals)).map(([reason, count]) => ({ reason, chain, count }))).filter(({ count }) => count).sort((one_, other) => other.count - one_.count);
  const most = Math.max(1, ...refused.map(({ count }) => count));
  show(refusals, refused.length ? table("Refusals by reason", [{ name: "Reason" }, { name: "Share" }, { name: "Number", isNumber: true }, { name: "Chain" }], refused.map(({ reason, chain, count }) => [reason, shareBar((100 * count) / most), count, chain])) : h("p", { class: "quiet" }, "No quote was refused since the start."));
  show(detail, each.map(([chain, counts]) => h("dl", { class: "rows" }, row("Chain", chain), row("Signed", counts.signed), row("Live quotes", counts.liveQuotes), row("WebSockets", counts.consumers), row("Price updates", counts.priceUpdates), row("Prices refused", counts.pricesRefused))));
}

/** Both sides of the chosen pair: the sum of amounts up to each price. @param {any} one */
function drawDepth(one) {
  const sums = (/** @type {[string, string][]} */ levels) => {
    let sum = 0;
    return levels.map(([price, amount]) => /** @type {[number, number]} */ ([Number(price), (sum += Number(amount))]));
  };
  if (!one || (!one.bids.length && !one.asks.length)) return show(depth);
  const [bids, asks] = [sums(one.bids), sums(one.asks)];
  return show(depth, depthChart({ bids, asks, text: (price) => price.toLocaleString("en", { maximumSignificantDigits: 7 }), label: `Depth of ${one.pair}: ${bids.length} bids, ${asks.length} asks` }));
}

/** The last quotes, the newest first. @param {any[]} all @param {[string, any][]} byChain */
function drawQuotes(all, byChain) {
  if (!all.length) return show(quotes, notice("No quotes yet", "Each firm quote that was asked for appears here, signed or refused."));
  const known = new Map(byChain.flatMap(([chain, { tokens }]) => Object.entries(/** @type {Record<string, any>} */ (tokens)).map(([name, { address, decimals }]) => [`${chain} ${address.toLowerCase()}`, { name, decimals }])));
  const amount = (/** @type {any} */ one, /** @type {string} */ raw, /** @type {string} */ address) => {
    const token = known.get(`${one.chainId} ${address.toLowerCase()}`);
    return token ? `${formatUnits(raw, token.decimals)} ${token.name}` : raw;
  };
  return show(quotes, table("Last quotes", [{ name: "Pair" }, { name: "When" }, { name: "Takes", isNumber: true }, { name: "Gives", isNumber: true }, { name: "Took", isNumber: true }, { name: "User" }, { name: "Outcome" }],
    all.map((one) => [one.pair || "–", when(one.at), one.srcToken ? amount(one, one.srcAmount, one.srcToken) : "–", one.destToken ? amount(one, one.destAmount, one.destToken) : "–", `${one.tookUs} µs`, one.user ? codeOf(one.user, "user") : "–",
      one.signed ? badge("signed", "good") : badge(one.reason || "refused", "bad")])));
}

/** @param {string[]} halted @param {any} one the chosen pair */
function drawStops(halted, one) {
  const isOut = (/** @type {string} */ scope) => halted.includes(scope);
  const scopes = ["all", ...(one ? [`chain ${one.chain}`, `pair ${one.chain} ${one.pair}`] : [])];
  const known = [...new Set([...scopes, ...halted])];
  show(stops, halted.length ? h("p", { class: "bad" }, `Stopped: ${halted.join(", ")}`) : h("p", { class: "quiet" }, "Nothing is stopped."),
    h("div", { class: "inline" }, known.map((scope) => h("button", { type: "button", class: isOut(scope) ? "" : "danger", onclick: () => act(scope, isOut(scope)) }, `${isOut(scope) ? "Resume" : "Stop"} ${scope === "all" ? "everything" : scope}`))));
}

/** @param {string} scope @param {boolean} isOut */
async function act(scope, isOut) {
  const words = scope === "all" ? "everything" : scope;
  if (!isOut && !(await confirmed(`Stop ${words}? No further quote of it is signed until it is resumed; signed quotes stay good until they expire.`, "Stop"))) return;
  try {
    await call?.(isOut ? "/resume" : "/halt", { scope });
    announce(`${isOut ? "Resumed" : "Stopped"}: ${scope}`);
  } catch (error) {
    fault.textContent = /** @type {Error} */ (error).message;
  }
  look();
}

dress();
look();
