// The venue for its operator: one status strip, what needs a person, then makers with their switch, orders, latencies, chains and store.
import { badge, confirmed, copyButton, h, loading, notice, row, show, table, when } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { duration, fixedUnits, formatUnits } from "/console/shared/amounts.js";
import { lineChart, spark } from "/console/shared/charts.js";
import { connect } from "./account.js";
import { poll } from "./poll.js";
import { useKey } from "./sign_in.js";
import { orderList } from "./orders.js";
import { chainName, onChange, operatorHeaders, state } from "./state.js";

const LOOK_MS = 2_000;
const LAG_MS_MOST = 100; // of the event loop; a person is told if it is later in each of LAG_STEPS
const LAG_STEPS = 6;
const SPARK_STEPS = 60;
const SPANS = /** @type {[string, number][]} */ ([["15 min", 90], ["1 h", 360]]); // steps of ten seconds
const TABS = /** @type {const} */ (["Makers", "Orders", "Latency", "Chains", "Store"]);

/** Upper bounds of a histogram's bars as text. @param {number[]} boundsS */
const bounds = (boundsS) => [...boundsS.map((bound) => `≤ ${bound < 1 ? `${Number((bound * 1_000).toPrecision(3))} ms` : `${bound} s`}`), "longer"];
const sum = (/** @type {number[]} */ counts) => counts.reduce((one, other) => one + other, 0);
const milliseconds = (/** @type {number} */ seconds) => `${(seconds * 1_000).toFixed(seconds < 0.01 ? 2 : 0)} ms`;
/** The bound within which a share of the values lies. @param {number[]} counts @param {number} share @param {number[]} boundsS */
function within(counts, share, boundsS) {
  let left = share * sum(counts);
  const at = counts.findIndex((count) => (left -= count) <= 0);
  return at < boundsS.length ? bounds(boundsS)[at] : `> ${boundsS[boundsS.length - 1]} s`;
}
const figure = (/** @type {string} */ name, /** @type {import("/console/shared/dom.js").Child | import("/console/shared/dom.js").Child[]} */ value, tone = "") =>
  h("div", {}, h("span", { class: "quiet small" }, name), h("span", { class: `large ${tone}` }, value));

/** What needs a person: [what, in words, since when or a text to copy]. @param {any} status @returns {[string, string, string?][]} */
function needs(status) {
  /** @type {[string, string, string?][]} */ const found = status.readiness.reasons.map((/** @type {string} */ reason) => ["Not ready", reason]);
  for (const [id, { relayer }] of Object.entries(/** @type {Record<string, any>} */ (status.delta.chains))) {
    const of = `Relayer of ${chainName(Number(id))}`;
    if (relayer.away) found.push([of, relayer.away]);
    if (relayer.starved || relayer.balance_wei === "0") found.push([of, `needs funds: it has ${formatUnits(relayer.balance_wei ?? "0", 18, 6)} of the native token`]);
    if (relayer.stuck) found.push([of, `${relayer.stuck} transactions have to be replaced`]);
    if (relayer.at_cap) found.push([of, `${relayer.at_cap} transactions wait: gas is dearer than the cap in the settings`]);
    if (relayer.undone) found.push([of, `a re-organisation undid ${relayer.undone} final transactions`]);
  }
  for (const [id, chain] of Object.entries(/** @type {Record<string, any>} */ (status.chains))) {
    if (chain.away) found.push([chainName(Number(id)), `its nodes do not answer: ${chain.away}`]);
    for (const [name, feed] of Object.entries(/** @type {Record<string, any>} */ (chain.makers))) {
      const out = feed.cache.withheld.filter((/** @type {string} */ reason) => reason !== "excluded");
      if (out.length) found.push([`Maker ${name}`, `is out of use on ${chainName(Number(id))}: ${out.join(", ")}`]);
    }
  }
  if (status.store.store.away) found.push(["Store", status.store.store.away]);
  const lags = status.series?.loopLagMs.slice(-LAG_STEPS) ?? [];
  if (lags.length === LAG_STEPS && lags.every((/** @type {number | null} */ lag) => lag !== null && lag > LAG_MS_MOST)) found.push(["Event loop", `is late again and again, by ${Math.max(...lags).toFixed(0)} ms in the last minute`]);
  return found;
}

/** The last value of a series; null without one. @param {(number | null)[] | undefined} values */
const last = (values) => values?.findLast((value) => value !== null) ?? null;

/** @param {HTMLElement} main @param {string} key with which a link signs in, as `cambist up` prints it; else empty */
export function operatorPage(main, key) {
  const [strip, wanting, body] = [h("div", { class: "part" }), h("div", { class: "part" }), h("div", { class: "part" })];
  const [makers, latency, chains, store] = Array.from({ length: 4 }, () => h("div", { class: "part" }));
  const fault = h("p", { class: "fault", role: "alert" });
  const signIn = () => h("section", { class: "card", "aria-label": "Sign in" }, notice("Counters, orders and switches are for the operator", "Sign in with a key of [venue.api_keys] that has operator = true."),
    h("div", { class: "actions" }, h("button", { type: "button", class: "primary", onclick: () => connect("roles") }, "Sign in")));
  const orders = orderList({ onPick: (id) => { location.hash = `order/${id}`; } });
  const tabs = h("div", { class: "segments small", role: "group", "aria-label": "Parts of the venue" });
  const places = { Makers: makers, Orders: orders.element, Latency: latency, Chains: chains, Store: store };
  const inner = h("div", { class: "stack" });
  const quoteLines = lineChart({ label: "Time of a quote", text: (value) => `${value.toFixed(1)} ms`, height: 180, fromZero: true });
  const orderLines = lineChart({ label: "Time of an order’s intake", text: (value) => `${value.toFixed(1)} ms`, height: 180, fromZero: true });
  const [routes, firm, rounds] = Array.from({ length: 3 }, () => h("div", { class: "part" }));
  let tab = /** @type {typeof TABS[number]} */ ("Makers");
  let span = SPANS[1][1];
  /** @type {any} */ let status = null;
  const spans = h("div", { class: "segments small", role: "group", "aria-label": "Time that the lines show" });
  const drawSpans = () => show(spans, SPANS.map(([name, steps]) => h("button", { type: "button", "aria-pressed": String(steps === span), onclick: () => { span = steps; drawSpans(); draw(); } }, name)));
  drawSpans();
  show(latency, h("div", { class: "heading" }, h("h3", {}, "Half of the answers, and 99 of 100, came within"), spans),
    h("div", { class: "columns" }, h("div", { class: "part" }, h("h3", {}, "GET /v2/quote"), quoteLines.element), h("div", { class: "part" }, h("h3", {}, "POST /v2/delta/orders"), orderLines.element)),
    routes, h("div", { class: "columns" }, firm, rounds));
  show(strip, loading(1));
  show(main, h("h1", {}, "Operator"), h("section", { class: "card", "aria-label": "Status" }, strip), fault, inner);

  function drawTabs() {
    show(tabs, TABS.map((name) => h("button", { type: "button", "aria-pressed": String(name === tab), onclick: () => { tab = name; drawTabs(); draw(); } }, name)));
    if (body.firstChild !== places[tab]) show(body, places[tab]);
  }

  function dress() {
    if (!state.key) {
      orders.close();
      return show(inner, signIn());
    }
    show(wanting, loading(1));
    for (const place of [makers, routes, chains, store]) show(place, loading(3));
    show(inner, h("section", { class: "card", "aria-label": "Needs you" }, h("h2", {}, "Needs you"), wanting), h("section", { class: "card", "aria-label": "Parts of the venue" }, tabs, body));
    drawTabs();
    return orders.open();
  }

  /** @param {AbortSignal} signal */
  async function look(signal) {
    try {
      const readiness = await ask("/readyz", { signal, accept: [503] });
      status = state.key ? await ask("/operator/status", { signal, headers: operatorHeaders() }) : null;
      fault.textContent = "";
      drawStrip(readiness);
      draw();
    } catch (error) {
      if (signal.aborted) return;
      fault.textContent = /** @type {Error} */ (error).message;
      show(strip, notice("The venue does not answer", "The figures below are those of the last answer.", "bad"));
    }
  }

  /** @param {any} readiness */
  function drawStrip(readiness) {
    const health = readiness.ready ? badge("ready", "good") : badge("not ready", "bad");
    if (!status) return show(strip, h("div", { class: "heading" }, health), readiness.reasons.length ? h("ul", { class: "reasons" }, readiness.reasons.map((/** @type {string} */ reason) => h("li", {}, reason))) : h("p", { class: "quiet" }, "The store takes writes, nodes answer, and makers have live books."));
    const all = Object.values(status.chains);
    const feeds = all.flatMap((chain) => Object.values(chain.makers));
    const up = all.filter((chain) => !chain.away).length;
    const live = feeds.filter((feed) => feed.cache.pairs.live && !feed.cache.withheld.length).length;
    const series = status.series;
    const rate = (/** @type {string} */ name) => (series ? sum(series[name].slice(-6).map((/** @type {number | null} */ value) => value ?? 0)) : 0);
    const line = (/** @type {string} */ name, /** @type {string} */ words) => (series ? spark(series[name].slice(-SPARK_STEPS).map((/** @type {number | null} */ value) => value ?? 0), words) : null);
    const milli = (/** @type {number | null} */ value) => (value === null ? "–" : `${value.toFixed(value < 10 ? 1 : 0)} ms`);
    const lag = last(series?.loopLagMs);
    return show(strip, h("div", { class: "inline" }, health, badge(`chains ${up}/${all.length}`, up === all.length ? "good" : "bad"), badge(`makers ${live}/${feeds.length}`, live === feeds.length ? "good" : "warn"), badge(`store ${status.store.store.away || "takes writes"}`, status.store.store.away ? "bad" : "good")),
      h("div", { class: "figures" }, figure("Orders a minute", [rate("orders"), " ", line("orders", "Orders of the last ten minutes")]), figure("Fills a minute", [rate("fills"), " ", line("fills", "Fills of the last ten minutes")]),
        figure("Quotes a minute", [rate("quotes"), " ", line("quotes", "Quotes of the last ten minutes")]), figure("Faults a minute", rate("errors"), rate("errors") ? "bad" : ""), figure("Refused a minute", rate("refused")),
        figure("Quote, p99", milli(last(series?.quoteP99Ms))), figure("Order, p99", milli(last(series?.orderP99Ms))), figure("Delay of the loop", milli(lag), lag !== null && lag > LAG_MS_MOST ? "warn" : "")));
  }

  function draw() {
    if (!status) return;
    const found = needs(status);
    show(wanting, found.length ? h("ul", { class: "reasons" }, found.map(([what, words]) => h("li", {}, h("strong", {}, what), ` ${words} `, copyButton(`${what} ${words}`, "sentence")))) : h("p", { class: "quiet" }, "Nothing."));
    if (tab === "Makers") drawMakers();
    if (tab === "Latency") drawLatency();
    if (tab === "Chains") drawChains();
    if (tab === "Store") drawStore();
  }

  function drawMakers() {
    const names = [...new Set(Object.values(status.chains).flatMap((chain) => Object.keys(chain.makers)))].sort();
    const of = (/** @type {string} */ name) => Object.values(status.chains).flatMap((chain) => (chain.makers[name] ? [{ feed: chain.makers[name], firm: chain.firmDurations[name] }] : []));
    show(makers, table("Makers and their switch", [{ name: "Maker" }, { name: "State" }, { name: "Live pairs", isNumber: true }, { name: "Firm quotes", isNumber: true }, { name: "p99", isNumber: true }, { name: "Refused entries", isNumber: true }, { name: "Heard" }, { name: "Switch" }], names.map((name) => {
      const mine = of(name);
      const withheld = [...new Set(mine.flatMap(({ feed }) => feed.cache.withheld))];
      const isOut = withheld.includes("excluded");
      const counts = mine.flatMap(({ firm: each }) => (each ? [each.counts] : [])).reduce((/** @type {number[]} */ total, /** @type {number[]} */ each) => each.map((count, at) => count + (total[at] ?? 0)), []);
      const heard = Math.max(0, ...mine.map(({ feed }) => feed.cache.updated_ms ?? 0));
      const total = (/** @type {(feed: any) => number} */ value) => mine.reduce((all, { feed }) => all + value(feed), 0);
      return [name, isOut ? badge("left out", "bad") : withheld.length ? badge(withheld.join(", "), "warn") : badge("in use", "good"), total((feed) => feed.cache.pairs.live ?? 0), sum(counts), sum(counts) ? within(counts, 0.99, status.boundsS) : "–",
        total((feed) => sum(Object.values(feed.cache.refused))), heard ? when(heard) : "never",
        h("button", { type: "button", class: isOut ? "" : "danger", "aria-label": `${isOut ? "Release" : "Leave out"} ${name}`, onclick: () => act(name, isOut ? "release" : "exclude") }, isOut ? "Release" : "Leave out")];
    })));
  }

  function drawLatency() {
    const series = status.series;
    const points = (/** @type {string} */ name) => (series ? series[name].slice(-span).flatMap((/** @type {number | null} */ value, /** @type {number} */ at) => (value === null ? [] : [{ at: series.at.slice(-span)[at], value }])) : []);
    quoteLines.show([{ name: "p99", points: points("quoteP99Ms") }, { name: "p50", points: points("quoteP50Ms") }]);
    orderLines.show([{ name: "p99", points: points("orderP99Ms") }, { name: "p50", points: points("orderP50Ms") }]);
    latencies(routes, "Requests since the start", "Route", Object.entries(status.routes).filter(([name]) => !name.startsWith("GET /console/")), status.boundsS);
    latencies(firm, "Firm quotes since the start", "Maker", Object.entries(status.chains).flatMap(([id, chain]) => Object.entries(chain.firmDurations).map(([name, found]) => [`${name} · ${id}`, found])), status.boundsS);
    latencies(rounds, "Auction rounds since the start", "Chain", Object.entries(status.delta.chains).map(([id, chain]) => [id, chain.auctions.durations]), status.boundsS);
  }

  function drawChains() {
    show(chains, Object.entries(/** @type {Record<string, any>} */ (status.chains)).map(([id, chain]) => {
      const relayer = status.delta.chains[id]?.relayer;
      const isPoor = relayer && (relayer.starved || relayer.balance_wei === "0");
      return h("div", { class: "part" }, h("div", { class: "heading" }, h("h3", {}, chainName(Number(id))), chain.away ? badge("nodes are away", "bad") : badge("nodes answer", "good")),
        h("div", { class: "figures" }, figure("Head", chain.head ?? "–"), ...(relayer ? [figure("Relayer", relayer.away ? "away" : isPoor ? "needs funds" : relayer.holds ? "relays" : "stands by", relayer.away || isPoor ? "bad" : ""),
          figure("Its balance", relayer.balance_wei === null ? "–" : fixedUnits(BigInt(relayer.balance_wei), 18, 4), isPoor ? "bad" : ""), figure("Settlements waiting", relayer.waiting), figure("In the pool", relayer.pending),
          figure("Oldest unfinished", relayer.waiting + relayer.pending ? duration(relayer.oldest_age_ms / 1_000) : "none"), figure("Stuck", relayer.stuck, relayer.stuck ? "bad" : "")] : [figure("Relayer", "none")])));
    }));
  }

  function drawStore() {
    const { store: kept } = status.store;
    show(store, h("div", { class: "figures" }, figure("State", kept.away || "takes writes", kept.away ? "bad" : ""), figure("Commits", sum(kept.commits)), figure("Half within", sum(kept.commits) ? within(kept.commits, 0.5, status.store.boundsS) : "–"), figure("99 % within", sum(kept.commits) ? within(kept.commits, 0.99, status.store.boundsS) : "–")),
      h("dl", { class: "rows" }, row("Units that wait to be written", kept.batcher.queued), row("Units being written", kept.batcher.in_flight), row("Written since the start", kept.batcher.units), row("Refused, the queue was full", kept.batcher.full, kept.batcher.full ? "warn" : ""), row("Refused, the store was away", kept.batcher.unavailable, kept.batcher.unavailable ? "warn" : "")));
  }

  /** @param {string} name @param {"exclude" | "release"} what */
  async function act(name, what) {
    if (!(await confirmed(what === "exclude" ? `Leave ${name} out of all routes, at once?` : `Use ${name} again, and forget its faults?`))) return;
    try {
      await ask(`/operator/makers/${encodeURIComponent(name)}`, { headers: operatorHeaders(), body: { act: what } });
    } catch (error) {
      fault.textContent = /** @type {Error} */ (error).message;
    }
    look(new AbortController().signal);
  }

  const stop = poll(look, LOOK_MS);
  dress();
  if (key) {
    history.replaceState(null, "", "#operator"); // the key stays in no address
    useKey(key).catch((error) => { fault.textContent = error.message; });
  }
  let seen = state.key;
  const forget = onChange(() => {
    if (seen === state.key) return;
    seen = state.key;
    dress();
    look(new AbortController().signal);
  });
  return () => { stop(); forget(); orders.close(); };
}

/** A table of times, the most frequent first. @param {HTMLElement} place @param {string} label @param {string} what @param {any[][]} rows @param {number[]} boundsS */
function latencies(place, label, what, rows, boundsS) {
  const all = rows.map(([name, { counts, total_s: totalS }]) => ({ name, counts, totalS, number: sum(counts) })).filter(({ number }) => number).sort((one, other) => other.number - one.number);
  show(place, h("h3", {}, label), all.length ? table(label, [{ name: what }, { name: "Number", isNumber: true }, { name: "Mean", isNumber: true }, { name: "Half within", isNumber: true }, { name: "99 % within", isNumber: true }],
    all.map(({ name, counts, totalS, number }) => [name, number, milliseconds(totalS / number), within(counts, 0.5, boundsS), within(counts, 0.99, boundsS)])) : h("p", { class: "quiet" }, "None."));
}
