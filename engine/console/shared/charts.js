// Charts as SVG, without a library: lines over time with axes and a cross-hair, depth, dots, bars. Numbers here are for drawing alone.
import { h, s } from "./dom.js";

const MARGIN = { left: 8, right: 72, top: 12, bottom: 24 };
const TICKS = 4;
const TIMES_S = [15, 60, 300, 900, 3_600, 14_400, 86_400];
const TICK_PX = 110; // between two times on an axis, at least
const TIP = { width: 168, height: 24 };

/** The step of an axis: 1, 2 or 5 times a power of ten. @param {number} span @param {number} count of steps, about */
export function niceStep(span, count) {
  const raw = span / count;
  const power = 10 ** Math.floor(Math.log10(raw));
  const [factor] = [1, 2, 5, 10].filter((each) => each * power >= raw * 0.7);
  return power * factor;
}

const dayTime = (/** @type {number} */ ms, seconds = false) => new Date(ms).toLocaleTimeString("en-GB", { hour12: false, hour: "2-digit", minute: "2-digit", ...(seconds && { second: "2-digit" }) });

/** @typedef {{at: number, value: number}} Point `at`: Unix milliseconds */
/** @typedef {{name: string, points: Point[]}} Series */

/**
 * Lines over time with axes, a cross-hair by pointer and arrow keys, and marked levels. `show` draws them anew.
 * @param {{label: string, text: (value: number) => string, height?: number, leastSpan?: number, fromZero?: boolean}} options
 *   `leastSpan`: share of the value below which the axis does not zoom
 */
export function lineChart({ label, text, height = 240, leastSpan = 0.002, fromZero = false }) {
  const box = h("figure", { class: "chart" });
  /** @type {Series[]} */ let series = [];
  /** @type {number[]} */ let marks = [];
  let at = -1; // of the cross-hair, among the points of the first series
  let move = (/** @type {number} */ _index) => {};

  function draw() {
    const all = series.flatMap(({ points }) => points);
    const width = box.clientWidth;
    if ((series[0]?.points.length ?? 0) < 2 || !width) {
      box.replaceChildren(h("p", { class: "quiet small" }, width ? "The line begins with the second value." : ""));
      return;
    }
    const [left, right, top, low] = [MARGIN.left, width - MARGIN.right, MARGIN.top, height - MARGIN.bottom];
    const values = [...all.map(({ value }) => value)];
    const [least, most] = [fromZero ? 0 : Math.min(...values), Math.max(...values)];
    const middle = (least + most) / 2;
    const span = Math.max((most - least) * 1.2, Math.abs(middle) * leastSpan) || 1;
    const from = fromZero ? 0 : middle - span / 2;
    const [first, last] = [Math.min(...all.map((one) => one.at)), Math.max(...all.map((one) => one.at))];
    const x = (/** @type {number} */ ms) => left + ((right - left) * (ms - first)) / Math.max(1, last - first);
    const y = (/** @type {number} */ value) => top + (low - top) * (1 - (value - from) / span);
    /** @type {SVGElement[]} */ const parts = [];
    const step = niceStep(span, TICKS);
    for (let tick = Math.ceil(from / step) * step; tick <= from + span; tick += step) {
      parts.push(s("line", { class: "grid", x1: left, x2: right, y1: y(tick), y2: y(tick) }), s("text", { x: right + 8, y: y(tick) + 4 }, text(tick)));
    }
    const every = (TIMES_S.find((each) => (last - first) / 1_000 / each <= Math.max(1, (right - left) / TICK_PX)) ?? 86_400) * 1_000;
    for (let time = Math.ceil(first / every) * every; time <= last; time += every) {
      if (x(time) > left + 20 && x(time) < right - 20) parts.push(s("text", { x: x(time), y: height - 6, "text-anchor": "middle" }, dayTime(time, every < 60_000)));
    }
    series.forEach(({ points }, place) => {
      let path = "";
      points.forEach((point, index) => { path += index ? `H${x(point.at).toFixed(1)}V${y(point.value).toFixed(1)}` : `M${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`; });
      const [begin, end] = [points[0], points[points.length - 1]];
      if (!end) return;
      if (series.length === 1) parts.push(s("path", { class: "area", d: `${path}V${low}H${x(begin.at).toFixed(1)}Z` }));
      parts.push(s("path", { class: place ? "line two" : "line", d: path }));
      if (series.length === 1) parts.push(s("circle", { class: "now", r: 4, cx: x(end.at), cy: y(end.value) }));
    });
    for (const mark of marks) if (mark >= from && mark <= from + span) parts.push(s("line", { class: "own", x1: left, x2: right, y1: y(mark), y2: y(mark) }, s("title", {}, `Your order at ${text(mark)}`)));
    const cross = s("line", { class: "cross", y1: top, y2: low, visibility: "hidden" });
    const said = s("text", { class: "tiptext", x: 8, y: 16 });
    const tip = s("g", { visibility: "hidden" }, s("rect", { class: "tip", rx: 4, width: TIP.width, height: TIP.height }), said);
    const points = series[0].points;
    move = (index) => {
      at = Math.max(0, Math.min(points.length - 1, index));
      const point = points[at];
      for (const edge of ["x1", "x2"]) cross.setAttribute(edge, String(x(point.at)));
      const others = series.slice(1).map((one) => one.points[at]).filter(Boolean).map(({ value }) => text(value));
      said.textContent = [dayTime(point.at, true), text(point.value), ...others].join("  ");
      tip.setAttribute("transform", `translate(${Math.max(left, Math.min(x(point.at) + 8, right - TIP.width))} ${top})`);
      for (const each of [cross, tip]) each.setAttribute("visibility", "visible");
    };
    const nearest = (/** @type {number} */ px) => {
      const ms = first + ((px - left) / (right - left)) * (last - first);
      const after = points.findIndex((point) => point.at > ms);
      return after < 0 ? points.length - 1 : Math.max(0, after - 1);
    };
    const hide = () => { at = -1; for (const each of [cross, tip]) each.setAttribute("visibility", "hidden"); };
    const key = (/** @type {KeyboardEvent} */ event) => {
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (!by) return;
      event.preventDefault();
      move((at < 0 ? points.length - 1 : at) + by);
    };
    const now = series.map(({ name, points: of }) => `${name ? `${name} ` : ""}${of.length ? text(of[of.length - 1].value) : "none"}`).join(", ");
    const svg = s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", tabindex: 0, "aria-label": `${label}: ${now}, lowest ${text(Math.min(...values))}, highest ${text(most)}`,
      onpointermove: (/** @type {PointerEvent} */ event) => move(nearest(event.offsetX)), onpointerleave: hide, onblur: hide, onkeydown: key }, parts, cross, tip);
    const isFocused = box.contains(document.activeElement);
    box.replaceChildren(svg);
    if (series.length > 1) box.append(h("figcaption", {}, series.map(({ name }, place) => h("span", {}, shade(place), ` ${name}  `))));
    if (isFocused) svg.focus({ preventScroll: true });
    if (at >= 0) move(at);
  }
  new ResizeObserver(draw).observe(box);

  return {
    element: box,
    /** @param {Series[]} given @param {number[]} [levels] marked values */
    show(given, levels = []) {
      [series, marks] = [given, levels];
      draw();
    },
  };
}

/** A small square in a series' colour. @param {number} place */
const shade = (place) => s("svg", { width: 10, height: 10, viewBox: "0 0 10 10", "aria-hidden": "true", class: "key" }, s("rect", { width: 10, height: 10, rx: 2, class: `d${(place % 5) + 1}` }));

/**
 * What a size costs on both sides: price across, size upwards.
 * @param {{bids: [number, number][], asks: [number, number][], label: string, text: (price: number) => string, height?: number}} options (price, size), the best first
 */
export function depthChart({ bids, asks, label, text, height = 180 }) {
  const box = h("figure", { class: "chart" });
  const draw = () => {
    const all = [...bids, ...asks];
    const width = box.clientWidth;
    if (!all.length || !width) return;
    const low = height - 20;
    const [least, most] = [Math.min(...all.map(([price]) => price)), Math.max(...all.map(([price]) => price))];
    const edge = (most - least) * 0.08 || most * 0.001;
    const [from, to, size] = [least - edge, most + edge, Math.max(...all.map(([, each]) => each))];
    const x = (/** @type {number} */ price) => (width * (price - from)) / (to - from);
    const y = (/** @type {number} */ each) => low - ((low - 8) * each) / size;
    const side = (/** @type {[number, number][]} */ levels, /** @type {string} */ name, /** @type {number} */ end) => {
      if (!levels.length) return [];
      const path = `M${x(levels[0][0]).toFixed(1)} ${low}${levels.map(([price, each]) => `H${x(price).toFixed(1)}V${y(each).toFixed(1)}`).join("")}H${end}`;
      return [s("path", { class: name, d: `${path}V${low}Z` }), s("path", { class: `${name}line`, d: path })];
    };
    const tick = (/** @type {number} */ price, /** @type {string} */ anchor) => s("text", { x: x(price), y: height - 4, "text-anchor": anchor }, text(price));
    box.replaceChildren(s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label },
      side(bids, "bid", 0), side(asks, "ask", width), tick(from, "start"), tick((from + to) / 2, "middle"), tick(to, "end")));
  };
  new ResizeObserver(draw).observe(box);
  return box;
}

/**
 * A dot for each value, in the colour of its series, from the oldest to the newest.
 * @param {{label: string, dots: {value: number, series: string, title: string}[], text: (value: number) => string, height?: number}} options
 */
export function dotChart({ label, dots, text, height = 150 }) {
  const box = h("figure", { class: "chart" });
  const names = [...new Set(dots.map(({ series }) => series))];
  const draw = () => {
    const width = box.clientWidth;
    if (!dots.length || !width) return;
    const values = dots.map(({ value }) => value);
    const [least, most] = [Math.min(0, ...values), Math.max(...values, 0)];
    const span = most - least || 1;
    const [right, low] = [width - MARGIN.right, height - 8];
    const y = (/** @type {number} */ value) => MARGIN.top + (low - MARGIN.top) * (1 - (value - least) / span);
    const step = niceStep(span, 3);
    /** @type {SVGElement[]} */ const parts = [];
    for (let tick = Math.ceil(least / step) * step; tick <= most + step / 100; tick += step) parts.push(s("line", { class: "grid", x1: 8, x2: right, y1: y(tick), y2: y(tick) }), s("text", { x: right + 8, y: y(tick) + 4 }, text(tick)));
    const x = (/** @type {number} */ place) => 14 + ((right - 24) * place) / Math.max(1, dots.length - 1);
    dots.forEach(({ value, series, title }, place) => parts.push(s("circle", { class: `d${(names.indexOf(series) % 5) + 1}`, r: 4, cx: x(place), cy: y(value) }, s("title", {}, title))));
    box.replaceChildren(s("svg", { viewBox: `0 0 ${width} ${height}`, height, role: "img", "aria-label": label }, parts),
      h("figcaption", {}, names.map((name, place) => h("span", {}, shade(place), ` ${name}  `))));
  };
  new ResizeObserver(draw).observe(box);
  return box;
}

/** A line of values without axes, for a row of a table. @param {number[]} values @param {string} label */
export function spark(values, label) {
  const most = Math.max(...values, 0) || 1;
  const path = values.map((value, place) => `${place ? "L" : "M"}${((62 * place) / Math.max(1, values.length - 1) + 1).toFixed(1)} ${(15 - (13 * value) / most).toFixed(1)}`).join("");
  return s("svg", { class: "spark", viewBox: "0 0 64 16", role: "img", "aria-label": label }, s("path", { d: path }));
}

/**
 * A bar that shows a share of 100.
 * @param {number} share 0 to 100
 */
export const shareBar = (share) => {
  const inside = h("span", {});
  inside.style.width = `${Math.max(0, Math.min(100, share))}%`;
  return h("span", { class: "share", "aria-hidden": "true" }, inside);
};

/** A bar of parts of a whole, the names below it. @param {{name: string, share: number}[]} parts */
export function partsBar(parts) {
  return h("div", { class: "part" },
    h("div", { class: "parts", "aria-hidden": "true" }, parts.map(({ share }) => {
      const inside = h("span", {});
      inside.style.flex = String(share);
      return inside;
    })),
    h("p", { class: "small quiet" }, parts.map(({ name, share }) => `${name} ${Number(share.toFixed(1))} %`).join(" · ")));
}
