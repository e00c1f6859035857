// The levels of a pair, bids beside asks, with the depth up to each level as a bar.
import { h, notice, show } from "/console/shared/dom.js";
import { formatUnits, parseUnits } from "/console/shared/amounts.js";

const SCALE = 36; // digits of levels after the point, at most
const SHOWN = 20;

/** @param {string} text decimal of a level */
const number = (text) => parseUnits(text, SCALE);
/** @param {string} text */
export const whole = (text) => formatUnits(number(text), SCALE, 9);

/** @param {string} name @param {[string, string][]} levels @param {bigint} most */
function side(name, levels, most) {
  let sum = 0n;
  const lines = levels.slice(0, SHOWN).map(([price, amount]) => {
    sum += number(amount);
    const cell = h("td", { class: "number depth" }, whole(amount));
    cell.style.setProperty("--depth", `${Number((sum * 100n) / (most || 1n))}%`);
    return h("tr", {}, h("th", { scope: "row", class: "number" }, whole(price)), cell);
  });
  return h("table", { class: name === "Bids" ? "bids" : "asks" }, h("caption", {}, levels.length > SHOWN ? `${name}: the best ${SHOWN} of ${levels.length} levels` : name),
    h("thead", {}, h("tr", {}, h("th", { scope: "col", class: "number" }, "Price"), h("th", { scope: "col", class: "number" }, "Amount"))),
    h("tbody", {}, lines.length ? lines : h("tr", {}, h("td", { colspan: 2, class: "quiet" }, "No levels"))));
}

/** A ladder; `show(pair)` replaces it. */
export function ladderView() {
  const element = h("div", {}, notice("No pair chosen", "Choose a pair to see its levels."));
  return {
    element,
    /** @param {any} pair with `bids` and `asks` */
    show(pair) {
      if (!pair?.bids) return;
      const depth = (/** @type {[string, string][]} */ levels) => levels.slice(0, SHOWN).reduce((sum, [, amount]) => sum + number(amount), 0n);
      const [bids, asks] = [depth(pair.bids), depth(pair.asks)];
      const most = bids > asks ? bids : asks;
      show(element, h("p", {}, h("strong", {}, pair.pair), h("span", { class: "quiet small" }, ` · ${pair.standing}${pair.reason ? `: ${pair.reason}` : ""}`)),
        h("div", { class: "ladder" }, side("Bids", pair.bids, most), side("Asks", pair.asks, most)));
    },
  };
}
