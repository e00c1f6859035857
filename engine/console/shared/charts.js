// Small charts as SVG. Numbers here are for drawing alone.
import { h, s } from "./dom.js";

const WIDTH = 600;

/**
 * A line over time, with its last value marked; redrawn by a new call.
 * @param {{label: string, points: {at: number, value: number}[], text: (value: number) => string, height?: number}} options
 */
export function lineChart({ label, points, text, height = 120 }) {
  if (points.length < 2) return h("p", { class: "quiet small" }, "The chart begins with the second value.");
  const values = points.map((point) => point.value);
  const [low, high] = [Math.min(...values), Math.max(...values)];
  const spread = high - low || Math.abs(high) / 1_000 || 1;
  const [from, to] = [points[0].at, points[points.length - 1].at];
  const x = (/** @type {number} */ at) => 4 + ((WIDTH - 8) * (at - from)) / Math.max(1, to - from);
  const y = (/** @type {number} */ value) => 10 + (height - 20) * (1 - (value - low + (high === low ? spread / 2 : 0)) / spread);
  let path = "";
  points.forEach((point, at) => {
    path += at ? `H${x(point.at).toFixed(1)}V${y(point.value).toFixed(1)}` : `M${x(point.at).toFixed(1)} ${y(point.value).toFixed(1)}`;
  });
  const last = points[points.length - 1];
  return h("figure", { class: "chart" },
    s("svg", { viewBox: `0 0 ${WIDTH} ${height}`, role: "img", "aria-label": `${label}: ${text(last.value)}, lowest ${text(low)}, highest ${text(high)}`, preserveAspectRatio: "none" },
      s("path", { d: `${path}V${height}H${x(from).toFixed(1)}Z`, class: "area" }),
      s("path", { d: path, class: "line", "vector-effect": "non-scaling-stroke" })),
    h("figcaption", {}, h("span", {}, `low ${text(low)}`), h("span", {}, `high ${text(high)}`)));
}

/**
 * Bars of a histogram, with the share of each on hover.
 * @param {{label: string, counts: number[], bounds: string[]}} options `bounds`: upper bound of each bar
 */
export function histogram({ label, counts, bounds }) {
  const most = Math.max(...counts, 1);
  const sum = counts.reduce((total, count) => total + count, 0);
  if (!sum) return h("p", { class: "quiet small" }, "Nothing is measured yet.");
  const step = WIDTH / counts.length;
  const words = counts.map((count, at) => (count ? `${bounds[at]}: ${count}` : "")).filter(Boolean).join(", ");
  return h("figure", { class: "chart" },
    s("svg", { viewBox: `0 0 ${WIDTH} 120`, role: "img", "aria-label": `${label}: ${words}`, preserveAspectRatio: "none" },
      counts.map((count, at) => {
        const tall = count ? Math.max(2, (110 * Math.log1p(count)) / Math.log1p(most)) : 0;
        return s("rect", { x: at * step + 2, y: 120 - tall, width: step - 4, height: tall, class: "bar" }, s("title", {}, `${bounds[at]}: ${count}`));
      })),
    h("figcaption", {}, h("span", {}, bounds[0]), h("span", {}, `${sum.toLocaleString("en")} in all`), h("span", {}, bounds[bounds.length - 1])));
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
