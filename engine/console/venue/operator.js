// The venue for its operator: readiness, chains, feeds, relayers, latencies, store, all orders, and the makers' switch.
import { badge, h, loading, notice, row, show, table } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { duration, formatUnits } from "/console/shared/amounts.js";
import { histogram, lineChart } from "/console/shared/charts.js";
import { keyForm, poll } from "./operator_key.js";
import { orderList } from "./orders.js";
import { onChange, operatorHeaders, state } from "./state.js";

const LOOK_MS = 2_000;
const POINTS_MOST = 300;

/** Upper bounds of a histogram's bars as text. @param {number[]} boundsS */
const bounds = (boundsS) => [...boundsS.map((bound) => `≤ ${bound < 1 ? `${bound * 1_000} ms` : `${bound} s`}`), "longer"];
const sum = (/** @type {number[]} */ counts) => counts.reduce((one, other) => one + other, 0);
const milliseconds = (/** @type {number} */ seconds) => `${(seconds * 1_000).toFixed(seconds < 0.01 ? 2 : 0)} ms`;
/** The bound within which a share of the values lies. @param {number[]} counts @param {number} share @param {number[]} boundsS */
function within(counts, share, boundsS) {
  let left = share * sum(counts);
  const at = counts.findIndex((count) => (left -= count) <= 0);
  return at < boundsS.length ? bounds(boundsS)[at] : `> ${boundsS[boundsS.length - 1]} s`;
}
const figure = (/** @type {string} */ name, /** @type {import("/console/shared/dom.js").Child} */ value, tone = "") =>
  h("div", {}, h("span", { class: "quiet small" }, name), h("span", { class: `big ${tone}` }, value));
const card = (/** @type {string} */ title, /** @type {HTMLElement} */ place) => h("section", { class: "card", "aria-label": title }, h("h2", {}, title), place);

/** @param {HTMLElement} main */
export function operatorPage(main) {
  const [health, chains, relayers, lag, store, fills, makers, requests, quotes, rounds] = Array.from({ length: 10 }, () => h("div", { class: "part" }));
  const fault = h("p", { class: "fault", role: "alert" });
  const secret = keyForm("Counters, orders and switches are for the operator. The key is one of [venue.api_keys] with operator = true.");
  const orders = orderList({ isOfAll: true, onPick: (id) => { location.hash = `trade/${id}`; } });
  const inner = h("div", { class: "stack" });
  /** @type {{at: number, value: number}[]} */ let settled = [];
  show(health, loading(2));
  show(main, h("div", { class: "heading" }, h("h1", {}, "Operator"), h("p", { class: "quiet small" }, "The process that serves this page")), card("Readiness", health), fault, inner, secret.element);

  function dress() {
    secret.draw();
    if (!state.key) {
      orders.close();
      return show(inner);
    }
    for (const place of [chains, relayers, lag, store, fills, makers, requests, quotes, rounds]) show(place, loading(2));
    show(inner, card("Chains and feeds", chains), h("div", { class: "columns" }, card("Relayers", relayers), card("Settlements since this page opened", fills)),
      h("div", { class: "columns" }, card("Delay of the event loop", lag), card("Time of the store’s commits", store)),
      card("Latency of requests", requests), h("div", { class: "columns" }, card("Latency of firm quotes", quotes), card("Latency of auction rounds", rounds)), card("Switch of makers", makers), orders.element);
    return orders.open();
  }

  /** @param {AbortSignal} signal */
  async function look(signal) {
    try {
      const readiness = await ask("/readyz", { signal, accept: [503] });
      show(health, h("div", { class: "heading" }, readiness.ready ? badge("ready", "good") : badge("not ready", "bad"), h("span", { class: "quiet small" }, new Date().toLocaleTimeString("en-GB"))),
        readiness.reasons.length ? h("ul", { class: "reasons" }, readiness.reasons.map((/** @type {string} */ reason) => h("li", {}, reason))) : h("p", { class: "quiet" }, "The store takes writes, nodes answer, and makers have live books."));
      if (state.key) draw(await ask("/operator/status", { signal, headers: operatorHeaders() }));
      fault.textContent = "";
    } catch (error) {
      if (signal.aborted) return;
      fault.textContent = /** @type {Error} */ (error).message;
      show(health, notice("The venue does not answer", "The figures below are those of the last answer.", "bad"));
    }
  }

  /** @param {any} status */
  function draw(status) {
    show(chains, table("Chains", [{ name: "Chain" }, { name: "Nodes" }, { name: "Head", isNumber: true }, { name: "Maker" }, { name: "Books" }, { name: "Live pairs", isNumber: true }, { name: "Refused entries", isNumber: true }],
      Object.entries(status.chains).flatMap(([id, chain]) => {
        const rows = Object.entries(chain.makers);
        return (rows.length ? rows : [["–", null]]).map(([name, feed]) => [id, chain.away ? badge("away", "bad") : badge("answer", "good"), chain.head, name,
          feed ? (feed.cache.withheld.length ? badge(feed.cache.withheld.join(", "), "bad") : badge("in use", "good")) : "–", feed?.cache.pairs.live ?? 0,
          feed ? Object.values(feed.cache.refused).reduce((/** @type {number} */ sum, /** @type {any} */ count) => sum + count, 0) : 0]);
      })));
    const delta = Object.entries(status.delta.chains);
    show(relayers, delta.length ? delta.map(([id, { relayer }]) => h("div", { class: "part" },
      h("div", { class: "heading" }, h("h3", {}, `Chain ${id}`), relayer.away ? badge(relayer.away, "bad") : relayer.starved ? badge("needs funds", "bad") : badge(relayer.holds ? "relays" : "stands by", relayer.holds ? "good" : "quiet")),
      h("div", { class: "figures" }, figure("Balance", relayer.balance_wei === null ? "–" : formatUnits(relayer.balance_wei, 18, 6)), figure("Waiting", relayer.waiting), figure("In the pool", relayer.pending),
        figure("Oldest unfinished", duration(relayer.oldest_age_ms / 1_000))),
      h("dl", { class: "rows" }, row("Stuck", relayer.stuck, relayer.stuck ? "bad" : ""), row("Above the fee cap", relayer.at_cap, relayer.at_cap ? "warn" : ""), row("Undone by a re-organisation", relayer.undone)))) : notice("No relayer", "The venue settles no Delta orders."));
    const { delays, lag_s_max: longest, tasks } = status.loopLag;
    show(lag, histogram({ label: "Delay of the event loop", counts: delays.counts, bounds: bounds(status.boundsS) }), h("dl", { class: "rows" }, row("Longest", `${(longest * 1_000).toFixed(1)} ms`), row("Tasks", tasks)));
    drawLatencies(requests, "Latency of requests", "Route", Object.entries(status.routes).filter(([route]) => !route.startsWith("GET /console/")), status.boundsS);
    drawLatencies(quotes, "Latency of firm quotes", "Maker", Object.entries(status.chains).flatMap(([id, chain]) => Object.entries(chain.firmDurations).map(([name, found]) => [`${name} · ${id}`, found])), status.boundsS);
    drawLatencies(rounds, "Latency of auction rounds", "Chain", Object.entries(status.delta.chains).map(([id, chain]) => [id, chain.auctions.durations]), status.boundsS);
    const kept = status.store.store;
    show(store, histogram({ label: "Commits", counts: kept.commits, bounds: bounds(status.store.boundsS) }),
      h("dl", { class: "rows" }, row("State", kept.away ? badge(kept.away, "bad") : badge("takes writes", "good")), ...Object.entries(kept.batcher).filter(([, value]) => typeof value === "number").map(([name, value]) => row(name.replaceAll("_", " "), String(value)))));
    drawFills(status);
    drawMakers(status);
  }

  /**
   * A histogram of the picked row above a table of all rows, the most frequent first.
   * @param {HTMLElement} place @param {string} label @param {string} what @param {any[][]} rows @param {number[]} boundsS
   */
  function drawLatencies(place, label, what, rows, boundsS) {
    const all = rows.map(([name, { counts, total_s: totalS }]) => ({ name, counts, totalS, number: sum(counts) })).filter(({ number }) => number).sort((one, other) => other.number - one.number);
    if (!all.length) return show(place, h("p", { class: "quiet" }, "None since the start."));
    const picked = all.find(({ name }) => name === place.dataset.picked) ?? all[0];
    const pick = (/** @type {string} */ name) => () => { place.dataset.picked = name; drawLatencies(place, label, what, rows, boundsS); };
    show(place, histogram({ label: `${label}: ${picked.name}`, counts: picked.counts, bounds: bounds(boundsS) }),
      table(label, [{ name: what }, { name: "Number", isNumber: true }, { name: "Mean", isNumber: true }, { name: "Half within", isNumber: true }, { name: "99 % within", isNumber: true }],
        all.map(({ name, counts, totalS, number }) => [h("button", { type: "button", class: "link", "aria-pressed": String(name === picked.name), onclick: pick(name) }, name), number, milliseconds(totalS / number), within(counts, 0.5, boundsS), within(counts, 0.99, boundsS)])));
  }

  /** @param {any} status */
  function drawFills(status) {
    const won = Object.values(status.delta.chains).reduce((sum, chain) => sum + chain.auctions.won, 0);
    const filled = Object.values(status.chains).reduce((sum, chain) => sum + chain.firm.filled, 0);
    settled = [...settled, { at: Date.now(), value: won + filled }].slice(-POINTS_MOST);
    show(fills, h("div", { class: "figures" }, figure("Orders won", won), figure("Swaps signed", filled), figure("Orders in memory", Object.values(status.delta.orders.orders).reduce((/** @type {number} */ sum, /** @type {any} */ count) => sum + count, 0))),
      lineChart({ label: "Won orders and signed swaps", points: settled, text: String }));
  }

  /** @param {any} status */
  function drawMakers(status) {
    const names = [...new Set(Object.values(status.chains).flatMap((chain) => Object.keys(chain.makers)))].sort();
    const isOut = (/** @type {string} */ name) => Object.values(status.chains).some((chain) => chain.makers[name]?.cache.withheld.includes("excluded"));
    show(makers, table("Switch of makers", [{ name: "Maker" }, { name: "State" }, { name: "Switch" }], names.map((name) => [name, isOut(name) ? badge("left out", "bad") : badge("in use", "good"),
      h("button", { type: "button", class: isOut(name) ? "" : "danger", "aria-label": `${isOut(name) ? "Release" : "Leave out"} ${name}`, onclick: () => act(name, isOut(name) ? "release" : "exclude") }, isOut(name) ? "Release" : "Leave out")])));
  }

  /** @param {string} name @param {"exclude" | "release"} what */
  async function act(name, what) {
    const words = what === "exclude" ? `Leave ${name} out of all routes, at once?` : `Use ${name} again, and forget its faults?`;
    if (!(await agreed(words))) return;
    try {
      await ask(`/operator/makers/${encodeURIComponent(name)}`, { headers: operatorHeaders(), body: { act: what } });
    } catch (error) {
      fault.textContent = /** @type {Error} */ (error).message;
    }
    look(new AbortController().signal);
  }

  const stop = poll(look, LOOK_MS);
  dress();
  let seen = state.key;
  const forget = onChange(() => {
    if (seen === state.key) return;
    seen = state.key;
    dress();
    look(new AbortController().signal);
  });
  return () => { stop(); forget(); orders.close(); };
}

/** Ask before an act. @param {string} words @returns {Promise<boolean>} */
function agreed(words) {
  return new Promise((resolve) => {
    let is = false;
    const answer = (/** @type {boolean} */ value) => () => { is = value; dialog.close(); };
    const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": "question" }, h("div", {}, h("h2", { id: "question" }, words),
      h("div", { class: "actions" }, h("button", { type: "button", onclick: answer(false) }, "No"), h("button", { type: "button", class: "primary", onclick: answer(true) }, "Yes")))));
    dialog.addEventListener("close", () => { dialog.remove(); resolve(is); });
    document.body.append(dialog);
    dialog.showModal();
  });
}
