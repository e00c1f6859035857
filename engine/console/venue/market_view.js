// The market of a pair for everybody: its price over time, what a size costs on both sides, and the latest fills of the venue.
import { h, loading, notice, show, table, when } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { duration, price, signedBps } from "/console/shared/amounts.js";
import { depthChart, lineChart } from "/console/shared/charts.js";
import { poll } from "./poll.js";
import { amount, explorerUrl, isOneToken, state, token } from "./state.js";

const SPANS = /** @type {[string, number][]} */ ([["15 min", 900], ["1 h", 3_600], ["24 h", 86_400]]);
const HISTORY_MS = 15_000;
const DEPTH_MS = 15_000;
const FILLS_MS = 5_000;
const FILLS_SHOWN = 8;

/** @typedef {import("./state.js").Token} Token */

/**
 * The parts of the page about the market of one pair; `follow(pair)` names another pair, `own(levels)` marks own limit prices.
 * @param {() => [Token, Token]} pair
 */
export function marketView(pair) {
  let span = SPANS[1][1];
  /** @type {number[]} */ let levels = [];
  const strip = h("div", { class: "strip" });
  const heading = h("h2", {}, "Price");
  /** @type {Record<string, import("/console/shared/dom.js").Child>} */ const figures = {};
  let places = 2;
  const number = (/** @type {number} */ value) => value.toLocaleString("en", { minimumFractionDigits: places, maximumFractionDigits: places });
  const chart = lineChart({ label: "Price", text: number });
  const [lack, depth, depthNote, fills] = [h("div", {}, loading(4)), h("div", {}, loading(4)), h("p", { class: "small quiet" }), h("div", {}, loading(4))];
  const spans = h("div", { class: "segments small", role: "group", "aria-label": "Time that the chart shows" });
  const drawSpans = () => show(spans, SPANS.map(([name, seconds]) => h("button", { type: "button", "aria-pressed": String(seconds === span), onclick: () => { span = seconds; drawSpans(); again(); } }, name)));
  const names = () => pair().map(({ symbol }) => symbol);
  /** @type {any[]} */ let points = [];

  function drawStrip() {
    const [one, other] = names();
    const figure = (/** @type {string} */ name, /** @type {import("/console/shared/dom.js").Child} */ value) => (value === undefined ? null : h("div", {}, h("span", { class: "quiet small" }, name), h("strong", { class: "large" }, value)));
    show(strip, figure(`${one} in ${other}`, figures.price ?? "–"), figure(`Change, ${SPANS.find(([, seconds]) => seconds === span)?.[0]}`, figures.change ?? "–"), figure(`Spread, ${figures.size ?? `1 ${one}`}`, figures.spread ?? "–"),
      figure("Surplus over quotes, 24 h", figures.surplus ?? "–"), figure("Time to fill, 24 h", figures.fill ?? "–"));
  }

  /** @param {AbortSignal} signal */
  async function history(signal) {
    const [base, quote] = pair();
    const asked = new URLSearchParams({ chainId: String(state.chain?.chainId), base: base.address, quote: quote.address, span: String(span) });
    const told = await ask(`/prices/history?${asked}`, { signal }).catch(failed);
    if (signal.aborted || pair()[0] !== base || pair()[1] !== quote) return;
    if (told instanceof Error) return unread(lack, told);
    points = told.points.map((/** @type {any[]} */ [at, , , , close]) => ({ at: at * 1_000, value: Number(close) }));
    heading.textContent = `Price of 1 ${base.symbol} in ${quote.symbol}`;
    const last = points[points.length - 1]?.value;
    if (last) places = Math.max(0, Math.min(8, 5 - Math.floor(Math.log10(last))));
    const change = points.length > 1 ? (last / points[0].value - 1) * 10_000 : null;
    figures.price = last ? number(last) : undefined;
    figures.change = change === null ? undefined : h("span", { class: change < 0 ? "bad" : "good" }, `${change < 0 ? "−" : "+"}${(Math.abs(change) / 100).toFixed(2)} %`);
    show(lack, points.length < 2 ? notice("The line begins here", "The venue keeps prices since its start, one each 15 seconds.") : null);
    chart.element.hidden = points.length < 2;
    chart.show([{ name: "", points }], levels);
    return drawStrip();
  }

  /** The price of each size on both sides. @param {AbortSignal} signal */
  async function sizes(signal) {
    const [base, quote] = pair();
    const asked = new URLSearchParams({ chainId: String(state.chain?.chainId), base: base.address, quote: quote.address });
    const told = await ask(`/prices/depth?${asked}`, { signal }).catch(failed);
    if (signal.aborted || pair()[0] !== base || pair()[1] !== quote) return;
    if (told instanceof Error) return unread(depth, told);
    const priced = (/** @type {[string, string][]} */ levels) => levels.map(([size, amount]) => /** @type {[number, number]} */ (
      [Number(price(BigInt(size), base.decimals, BigInt(amount), quote.decimals).replaceAll(",", "")), Number(size) / 10 ** base.decimals]));
    const [bids, asks] = [priced(told.bids), priced(told.asks)];
    const shown = (/** @type {number} */ size) => `${size.toLocaleString("en")} ${base.symbol}`;
    if (!bids.length && !asks.length) {
      show(depth, notice("No size can be traded", "No live book leads from one token to the other."));
      depthNote.textContent = "";
    } else {
      const words = (/** @type {[number, number][]} */ of) => of.map(([each, size]) => `${shown(size)} at ${number(each)}`).join(", ") || "nothing";
      show(depth, depthChart({ bids, asks, text: number, label: `What a size costs. Selling: ${words(bids)}. Buying: ${words(asks)}.` }));
      depthNote.textContent = `Priced up to ${shown((bids[bids.length - 1] ?? asks[asks.length - 1])[1])}, before gas. Green: selling, red: buying.`;
    }
    const middle = bids.length && asks.length ? (bids[0][0] + asks[0][0]) / 2 : 0;
    figures.size = shown(Number(told.unit) / 10 ** base.decimals);
    figures.spread = middle ? `${(((asks[0][0] - bids[0][0]) / middle) * 10_000).toFixed(1)} bps` : undefined;
    return drawStrip();
  }

  /** @param {AbortSignal} signal */
  async function latest(signal) {
    const chain = state.chain?.chainId;
    const told = await Promise.all([ask(`/v2/delta/trades?chainId=${chain}&limit=${FILLS_SHOWN}`, { signal }), ask(`/stats?chainId=${chain}`, { signal })]).catch(failed);
    if (signal.aborted) return;
    if (told instanceof Error) return unread(fills, told);
    const [trades, stats] = told;
    show(fills, trades.length ? tradesTable(trades) : notice("No fills yet", "Each settled trade of the venue appears here."));
    figures.surplus = stats.medianSurplusBps === null ? undefined : signedBps(Number(stats.medianSurplusBps));
    figures.fill = stats.medianFillMs === null ? undefined : stats.medianFillMs < 10_000 ? `${(stats.medianFillMs / 1_000).toFixed(1)} s` : duration(stats.medianFillMs / 1_000);
    return drawStrip();
  }

  let stops = /** @type {(() => void)[]} */ ([]);
  function again() {
    for (const stop of stops) stop();
    const [base, quote] = pair();
    if (isOneToken(base, quote)) return;
    stops = [poll(history, HISTORY_MS), poll(sizes, DEPTH_MS), poll(latest, FILLS_MS)];
  }
  drawSpans();
  drawStrip();
  again();
  let followed = pair();
  return {
    strip,
    element: h("div", { class: "stack" },
      h("section", { class: "card", "aria-label": "Price over time" }, h("div", { class: "heading" }, heading, spans), lack, chart.element),
      h("div", { class: "two" }, h("section", { class: "card", "aria-label": "What a size costs" }, h("h2", {}, "What a size costs"), depth, depthNote),
        h("section", { class: "card", "aria-label": "Latest fills" }, h("h2", {}, "Latest fills"), fills))),
    follow() {
      const now = pair();
      if (now[0] === followed[0] && now[1] === followed[1]) return;
      followed = now;
      for (const name of Object.keys(figures)) delete figures[name];
      drawStrip();
      again();
    },
    /** @param {number[]} given prices of own limit orders of the pair */
    own(given) {
      levels = given;
      chart.show([{ name: "", points }], levels);
    },
    close() { for (const stop of stops) stop(); },
  };
}

const failed = (/** @type {Error} */ error) => error;
/** Say that a part cannot be read, unless it has what was read before. @param {HTMLElement} place @param {Error} error */
function unread(place, error) {
  if (!place.firstChild || place.querySelector(".loading")) show(place, notice("This cannot be read now", error.message));
}

/** Fills of the venue, the newest first. @param {any[]} trades */
const tradesTable = (trades) => table("Latest fills", [{ name: "Time" }, { name: "Trade" }, { name: "Price", isNumber: true }, { name: "Surplus", isNumber: true }],
  trades.map((one) => {
    const [src, dest] = [token(one.srcToken), token(one.destToken)];
    const url = explorerUrl(one.chainId, "tx", one.transactionHash);
    const words = `${amount(one.srcAmount, one.srcToken, 6)} → ${amount(one.destAmount, one.destToken, 6)}`;
    return [when(one.at), url ? h("a", { href: url, target: "_blank", rel: "noreferrer" }, words) : words, price(BigInt(one.srcAmount), src.decimals, BigInt(one.destAmount), dest.decimals),
      one.surplusBps === null ? h("span", { class: "quiet" }, "–") : h("span", { class: Number(one.surplusBps) < 0 ? "bad" : "good" }, signedBps(Number(one.surplusBps)))];
  }));
