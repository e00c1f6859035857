// Draws a price route: a band for each fill, as thick as its share, from the sold token over hops to the bought one.
import { h, s, show, table } from "/console/shared/dom.js";
import { formatUnits, price, usd } from "/console/shared/amounts.js";
import { shareBar } from "/console/shared/charts.js";
import { amount, token } from "./state.js";

const SIZES = { lane: 34, gap: 10, node: 8, head: 22, letter: 7, base: 15 }; // in pixels, where a letter is `base` high

/** @typedef {{exchange: string, percent: number, srcAmount: string, destAmount: string, srcToken: string, destToken: string}} Fill */

/** Fills of a route in order. @param {Api_PriceRoute} market @returns {{path: number, share: number, hops: Fill[][]}[]} */
function paths(market) {
  return market.bestRoute.map((path, at) => ({
    path: at + 1, share: Number(path.percent),
    hops: path.swaps.map((hop) => hop.swapExchanges.map((fill) => ({
      ...fill, percent: Number(fill.percent), srcToken: hop.srcToken, destToken: hop.destToken,
    }))),
  }));
}

/** The route in words, for people who do not see the drawing. @param {Api_PriceRoute} market */
export function routeInWords(market) {
  return paths(market).map(({ share, hops }) => `${share} % ${hops.map((fills) => {
    const by = fills.map((fill) => `${fill.exchange} ${fill.percent} %`).join(" and ");
    return `to ${token(fills[0].destToken).symbol} with ${by}`;
  }).join(", then ")}`).join("; ");
}

/** @param {Api_PriceRoute} market @param {number} width in pixels */
function drawing(market, width) {
  const scale = parseFloat(getComputedStyle(document.documentElement).fontSize) / SIZES.base;
  const [LANE, GAP, NODE, HEAD, LETTER] = [SIZES.lane, SIZES.gap, SIZES.node, SIZES.head, SIZES.letter].map((size) => size * scale);
  const lanes = paths(market);
  const heights = lanes.map(({ hops }) => Math.max(...hops.map((fills) => fills.length)) * (LANE + GAP) - GAP);
  const inner = heights.reduce((sum, height) => sum + height, 0) + GAP * (lanes.length - 1);
  const parts = /** @type {SVGElement[]} */ ([]);
  let top = HEAD;
  const end = (/** @type {number} */ share) => (inner * share) / 100;
  let [left, right] = [HEAD, HEAD];
  lanes.forEach(({ share, hops }, lane) => {
    const step = (width - NODE) / hops.length;
    hops.forEach((fills, hop) => {
      const [from, to] = [hop * step + NODE, (hop + 1) * step];
      const height = heights[lane];
      const starts = hop === 0 ? { at: left, size: end(share) } : { at: top, size: height };
      const ends = hop === hops.length - 1 ? { at: right, size: end(share) } : { at: top, size: height };
      const slot = height / fills.length;
      fills.forEach((fill, at) => {
        const part = fill.percent / 100;
        const y = top + slot * at + slot / 2;
        const half = Math.max(3, Math.min(LANE, slot - 4) * Math.max(part, 0.12)) / 2;
        const [y0, h0] = [starts.at, starts.size * part];
        const [y1, h1] = [ends.at, ends.size * part];
        starts.at += h0;
        ends.at += h1;
        const [a, b] = [from + (to - from) * 0.28, from + (to - from) * 0.72];
        const [c, d] = [from + (to - from) * 0.14, from + (to - from) * 0.86];
        parts.push(s("path", { class: "flow", d: `M${from} ${y0}C${c} ${y0} ${c} ${y - half} ${a} ${y - half}H${b}C${d} ${y - half} ${d} ${y1} ${to} ${y1}V${y1 + h1}C${d} ${y1 + h1} ${d} ${y + half} ${b} ${y + half}H${a}C${c} ${y + half} ${c} ${y0 + h0} ${from} ${y0 + h0}Z` },
          s("title", {}, `${fill.exchange}: ${fill.percent} %`)));
        const room = Math.floor((to - from) * 0.62 / LETTER);
        const label = `${fill.exchange} ${fill.percent} %`;
        parts.push(s("text", { x: (from + to) / 2, y: y + 4 * scale, "text-anchor": "middle" }, label.length > room ? `${label.slice(0, Math.max(1, room - 1))}…` : label));
      });
      if (hop > 0) {
        const x = hop * step;
        parts.push(s("rect", { class: "node", x, y: top, width: NODE, height, rx: 2 }));
        parts.push(s("text", { class: "quiet", x: x + NODE / 2, y: top - 9 * scale, "text-anchor": "middle" }, token(fills[0].srcToken).symbol));
      }
    });
    left += end(share);
    right += end(share);
    top += heights[lane] + GAP;
  });
  for (const x of [0, width - NODE]) parts.push(s("rect", { class: "node", x, y: HEAD, width: NODE, height: inner, rx: 2 }));
  parts.push(s("text", { x: 0, y: HEAD - 9 * scale }, amount(market.srcAmount, market.srcToken)));
  parts.push(s("text", { x: width, y: HEAD - 9 * scale, "text-anchor": "end" }, amount(market.destAmount, market.destToken)));
  return s("svg", { width, height: inner + HEAD + 2, viewBox: `0 0 ${width} ${inner + HEAD + 2}`, role: "img", "aria-label": `Route: ${routeInWords(market)}` }, parts);
}

/** The route as a drawing and as a table; `show(market)` replaces it. */
export function routeView() {
  const picture = h("div", { class: "route" });
  const fills = h("div", {});
  /** @type {Api_PriceRoute | null} */
  let shown = null;
  const draw = () => { if (shown && picture.clientWidth) show(picture, drawing(shown, picture.clientWidth)); };
  new ResizeObserver(draw).observe(picture);
  return {
    element: h("div", { class: "part" }, picture, h("details", {}, h("summary", {}, "Fills of each maker"), fills)),
    /** @param {Api_PriceRoute} market */
    show(market) {
      shown = market;
      draw();
      show(fills, table("Fills of each maker", [{ name: "Maker" }, { name: "Path" }, { name: "Share" }, { name: "Gives", isNumber: true }, { name: "For", isNumber: true }, { name: "Price", isNumber: true }],
        paths(market).flatMap(({ path, share, hops }) => hops.flat().map((fill) => [
          fill.exchange, `${path} · ${token(fill.srcToken).symbol} → ${token(fill.destToken).symbol}`, h("span", {}, shareBar((share * fill.percent) / 100), `${fill.percent} %`),
          amount(fill.destAmount, fill.destToken), amount(fill.srcAmount, fill.srcToken),
          price(BigInt(fill.srcAmount), token(fill.srcToken).decimals, BigInt(fill.destAmount), token(fill.destToken).decimals),
        ]))));
    },
  };
}

/** Parts of a price route by maker, in percent of its first hop, the largest first. @param {Api_PriceRoute} market @returns {{name: string, share: number}[]} */
export function makerShares(market) {
  /** @type {Map<string, number>} */ const found = new Map();
  for (const { share, hops } of paths(market)) {
    for (const fill of hops[0]) found.set(fill.exchange, (found.get(fill.exchange) ?? 0) + (share * fill.percent) / 100);
  }
  return [...found].map(([name, share]) => ({ name, share })).sort((one, other) => other.share - one.share);
}

/**
 * Each maker alone, against the best route: the answer to "why not another maker, why not more".
 * @param {Api_PriceRoute} market the best route, with `others`: maker -> its amounts and hops
 */
export function othersTable(market) {
  const isSale = market.side === "SELL";
  const best = BigInt(isSale ? market.destAmount : market.srcAmount);
  const others = Object.entries(market.others ?? {});
  const got = (/** @type {{srcAmount: string, destAmount: string}} */ one) => BigInt(isSale ? one.destAmount : one.srcAmount);
  const end = isSale ? market.destToken : market.srcToken;
  const worse = (/** @type {bigint} */ raw) => (isSale ? best - raw : raw - best);
  const line = (/** @type {[string, Api_OtherRoute]} */ [name, one]) => {
    const off = worse(got(one));
    return [name, amount(got(one), end),
      off === 0n ? h("span", { class: "quiet" }, "the same") : h("span", { class: off > 0n ? "warn" : "good" }, `${amount(off < 0n ? -off : off, end)} ${off > 0n ? "worse" : "better"}, before gas`)];
  };
  others.sort(([, one], [, other]) => Number(worse(got(one)) - worse(got(other))));
  return h("div", { class: "part" },
    h("p", { class: "small quiet" }, others.length
      ? "The same amount with each maker alone. A maker without a line cannot fill it alone: its levels are too small, or it has no live book of the pair."
      : "No maker can fill the whole amount alone; the route needs them together."),
    others.length ? table("Each maker alone", [{ name: "Maker" }, { name: isSale ? "You would receive" : "You would pay", isNumber: true }, { name: "Against the route", isNumber: true }], others.map(line)) : null);
}

/** Costs of a route in words. @param {Api_PriceRoute} market */
export const gasInWords = (market) => `${usd(market.gasCostUSD)} for ${formatUnits(market.gasCost, 0)} gas`;
