// The maker for its operator: readiness, stop switch, tokens with funds, pairs, and the ladder of one pair.
import { announce, badge, h, loading, notice, row, show, table } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { cut, duration, formatUnits } from "/console/shared/amounts.js";
import { ladderView, whole } from "/console/shared/ladder.js";
import { rowTable } from "/console/shared/rows.js";
import { signInForm } from "/console/shared/signing.js";

const LOOK_MS = 2_000;
const main = /** @type {HTMLElement} */ (document.getElementById("main"));
/** @type {import("/console/shared/signing.js").Call | null} */ let call = null;
let chosen = "";

const [health, signIn, stops, chains, detail] = Array.from({ length: 5 }, () => h("div", { class: "part" }));
const fault = h("p", { class: "fault", role: "alert" });
const ladder = ladderView();
const pairs = rowTable({
  caption: "Pairs", key: (one) => one.key, onPick: (one) => { chosen = one.key; look(); }, empty: h("div", {}, notice("No pairs", "The settings name no pairs.")),
  columns: [
    { name: "Pair", cell: (/** @type {any} */ one) => one.pair },
    { name: "State", cell: (one) => (one.halted ? badge("stopped", "bad") : one.isStale ? badge("stale", "warn") : badge("quoted", "good")) },
    { name: "Bid", isNumber: true, cell: (one) => (one.bids[0] ? whole(one.bids[0][0]) : "–") },
    { name: "Ask", isNumber: true, cell: (one) => (one.asks[0] ? whole(one.asks[0][0]) : "–") },
    { name: "Price of", isWide: true, cell: (one) => (one.updatedMs ? `${duration((Date.now() - one.updatedMs) / 1_000)} ago` : "never") },
    { name: "Chain", isWide: true, cell: (one) => one.chain },
  ],
});

function dress() {
  const card = (/** @type {string} */ title, /** @type {HTMLElement} */ place) => h("section", { class: "card", "aria-label": title }, h("h2", {}, title), place);
  show(health, loading(2));
  show(main, h("div", { class: "heading" }, h("h1", {}, "Maker"), h("p", { class: "quiet small" }, "The process that serves this page")), card("Readiness", health), fault,
    call ? null : card("Sign in", signIn),
    call ? h("div", { class: "stack" }, card("Stop switch", stops), h("div", { class: "columns" }, card("Pairs", pairs.element), card("Ladder", ladder.element)), card("Tokens and funds", chains), card("Counters", detail)) : null);
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
  show(chains, table("Tokens and funds", [{ name: "Token" }, { name: "Chain" }, { name: "Funds", isNumber: true }, { name: "Promised in quotes", isNumber: true }, { name: "Address" }],
    each.flatMap(([chain, { tokens, funds }]) => Object.entries(/** @type {Record<string, any>} */ (tokens)).map(([name, { address, decimals }]) => {
      const held = funds[address.toLowerCase()];
      return [name, chain, held ? formatUnits(held.funds, decimals) : "–", held ? formatUnits(held.reserved, decimals) : "–", h("span", { class: "mono", title: address }, cut(address))];
    }))));
  show(detail, each.map(([chain, counts]) => h("dl", { class: "rows" }, row("Chain", chain), row("Signed", counts.signed), row("Live quotes", counts.liveQuotes),
    ...Object.entries(/** @type {Record<string, number>} */ (counts.refused)).map(([reason, count]) => row(`Refused: ${reason}`, count)), row("WebSockets", counts.consumers), row("Price updates", counts.priceUpdates), row("Prices refused", counts.pricesRefused))));
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
