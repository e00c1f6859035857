// The makers as the venue sees them: standing, age, score, faults with reasons, pairs, and the ladder of one pair.
import { badge, h, loading, notice, row, show, table, when } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { clock, usd } from "/console/shared/amounts.js";
import { rowTable } from "/console/shared/rows.js";
import { partsBar, shareBar } from "/console/shared/charts.js";
import { ladderView, whole } from "/console/shared/ladder.js";
import { connect } from "./account.js";
import { onAddress } from "./address.js";
import { poll } from "./poll.js";
import { amount, onChange, operatorHeaders, state, token } from "./state.js";

const LOOK_MS = 2_000;

/** Age of a time. @param {number | null} ms */
const age = (ms) => (ms === null ? "never" : when(ms));

/** Times of a maker's answers. @param {Api_MakerScore | undefined} score */
const within = (score) => (score && score.p50Ms !== null && score.p99Ms !== null ? `${score.p50Ms} / ${score.p99Ms} ms` : "–");

/** @param {Api_MakerBooks} books @param {Api_MakerScore | undefined} score */
function standing(books, score) {
  if (books.withheld.length) return badge(`withheld: ${books.withheld.join(", ")}`, "bad");
  if (score?.blockUntil) return badge("rests", "warn");
  return books.standings.live ? badge("live", "good") : badge("no live pair", "warn");
}

/** @param {Api_MakerBound} bound @param {Api_ViewedPair[]} pairs */
function boundInWords({ srcToken, destToken, amount: raw, until }, pairs) {
  const pair = pairs.find(({ base, quote }) => (base === srcToken && quote === destToken) || (base === destToken && quote === srcToken));
  const most = pair?.base ? amount(raw, pair.base) : `${raw} units of the base token`;
  return `${most}, ${token(srcToken).symbol} → ${token(destToken).symbol}, until ${clock(until)}`;
}

/** @param {HTMLElement} main @param {string} rest name of a maker, or empty */
export function makersPage(main, rest) {
  let chosen = rest;
  let pair = "";
  const list = h("div", {}, loading(3));
  const [facts, faults, ladder] = [h("div", { class: "part" }), h("div", { class: "part" }), ladderView()];
  const empty = h("div", {}, notice("No pairs", "The maker has named no pairs yet."));
  const pairs = rowTable({
    caption: "Pairs, as the venue sees them", key: (one) => one.pair, empty, onPick: (one) => { pair = one.pair; pairs.pick(pair); refresh(); },
    columns: [
      { name: "Pair", cell: (/** @type {Api_ViewedPair} */ one) => one.pair },
      { name: "Standing", isWide: true, cell: (one) => badge(one.standing, one.standing === "live" ? "good" : "warn") },
      { name: "Bid", isNumber: true, cell: (one) => (one.bestBid === null ? "–" : whole(one.bestBid)) },
      { name: "Ask", isNumber: true, cell: (one) => (one.bestAsk === null ? "–" : whole(one.bestAsk)) },
      { name: "Confirmed", isWide: true, cell: (one) => age(one.confirmed) },
      { name: "Why", isWide: true, cell: (one) => h("span", { class: "quiet" }, one.reason) },
    ],
  });
  const detail = h("section", { class: "card", "aria-labelledby": "maker-name", hidden: true });
  const fault = h("p", { class: "fault", role: "alert" });
  const shares = h("div", {});
  show(main, h("h1", {}, "Makers"), h("section", { class: "card", "aria-label": "Share of volume" }, h("h2", {}, "Share of volume, 24 h"), shares),
    h("section", { class: "card", "aria-label": "All makers" }, list, fault), detail);

  const stop = poll(look, LOOK_MS);
  let refresh = () => { look(new AbortController().signal).catch(() => {}); };

  /** @param {AbortSignal} signal */
  async function look(signal) {
    const network = state.chain?.chainId;
    try {
      const options = { signal, headers: operatorHeaders() };
      const one = chosen ? `&makerName=${encodeURIComponent(chosen)}&pair=${encodeURIComponent(pair)}` : "";
      const { maker } = state;
      const read = (/** @type {string} */ path) => (maker && !state.key ? maker.call(path) : ask(path, options));
      const [books, scores, [mine], stats] = await Promise.all([
        ask(`/makers/books?network=${network}`, options), read(`/makers/scores?network=${network}`),
        one ? read(`/makers/books?network=${network}${one}`) : Promise.resolve([]), ask(`/stats?chainId=${network}`, { signal }).catch(() => null),
      ]);
      if (signal.aborted) return;
      if (!chosen && books.length) {
        chosen = (books.find((each) => each.maker === state.maker?.name) ?? books[0]).maker;
        refresh();
      }
      complain(chosen && one && !mine ? `The venue has no maker “${chosen}” on this chain.` : "");
      drawShares(stats);
      drawList(books, scores, stats);
      drawDetail(mine, scores.find((/** @type {Api_MakerScore} */ score) => score.maker === chosen));
    } catch (error) {
      if (!signal.aborted) complain(/** @type {Error} */ (error).message);
    }
  }

  /** Show a fault; the same fault again is not announced anew. @param {string} text */
  function complain(text) {
    if (fault.textContent !== text) fault.textContent = text;
  }

  /** @param {any} stats */
  function drawShares(stats) {
    const some = stats?.makers.filter((/** @type {any} */ one) => Number(one.share) > 0) ?? [];
    show(shares, some.length ? [partsBar(some.map((/** @type {any} */ one) => ({ name: one.maker, share: Number(one.share) }))), h("p", { class: "small quiet" }, `${stats.fills} fills, ${usd(stats.volumeUSD)}`)]
      : h("p", { class: "quiet" }, "No maker has filled a trade in the last 24 hours."));
  }

  /** @param {Api_MakerBooks[]} books @param {Api_MakerScore[]} scores @param {any} stats */
  function drawList(books, scores, stats) {
    if (!books.length) return show(list, notice("No makers on this chain", "The venue’s settings name its makers, at [venue.makers]."));
    const columns = [{ name: "Maker" }, { name: "Now" }, { name: "Quotes kept" }, { name: "Firm p50 / p99", isNumber: true }, { name: "Firm quotes", isNumber: true }, { name: "Fills, 24 h", isNumber: true }, { name: "Live pairs", isNumber: true }, { name: "Last heard", isNumber: true }];
    show(list, table("Makers", columns, books.map((each) => {
      const score = scores.find((one) => one.maker === each.maker);
      const filled = stats?.makers.find((/** @type {any} */ one) => one.maker === each.maker);
      const all = Object.values(each.standings).reduce((sum, count) => sum + Number(count), 0);
      const choose = () => { chosen = each.maker; pair = ""; history.replaceState(null, "", `#makers/${encodeURIComponent(chosen)}`); refresh(); };
      return [h("button", { type: "button", class: "link", "aria-pressed": String(each.maker === chosen), onclick: choose }, each.maker), standing(each, score),
        score?.quotes ? h("span", {}, shareBar(score.score), `${score.score} %`) : h("span", { class: "quiet" }, "no quotes yet"), within(score), score?.quotes ?? 0, filled?.fills ?? 0, `${each.standings.live ?? 0} of ${all}`, age(each.updated)];
    })));
    return undefined;
  }

  /** @param {Api_MakerBooks | undefined} mine @param {Api_MakerScore | undefined} score */
  function drawDetail(mine, score) {
    detail.hidden = !mine;
    if (!mine) return;
    const isNew = detail.dataset.maker !== mine.maker || detail.dataset.shown !== String(mine.pairs !== null);
    if (isNew) {
      Object.assign(detail.dataset, { maker: mine.maker, shown: String(mine.pairs !== null) });
      const secretPart = mine.pairs === null ? h("div", { class: "part" }, notice("Pairs and ladders are hidden", "They are a secret between a maker and the venue. Sign in as this maker, or as the operator, to see them."), h("div", { class: "actions" }, h("button", { type: "button", onclick: () => connect("roles") }, "Sign in")))
        : h("div", { class: "columns" }, h("div", { class: "part" }, h("h3", {}, "Pairs"), pairs.element), h("div", { class: "part" }, h("h3", {}, "Ladder"), ladder.element));
      show(detail, h("h2", { id: "maker-name" }, mine.maker), facts, secretPart, h("h3", {}, "Faults"), faults);
    }
    show(facts, h("dl", { class: "rows" }, row("Standing", standing(mine, score)), row("Last heard", age(mine.updated)),
      score?.blockUntil ? row("Rests until", `${clock(score.blockUntil)}: ${score.blockReason}`, "warn") : null,
      ...(score?.bounds ?? []).map((bound) => row("Asked for at most", boundInWords(bound, mine.pairs ?? []))),
      score && Object.keys(score.reasons).length ? row("Quotes by fault", Object.entries(score.reasons).map(([reason, count]) => `${reason} ${count}`).join(", ")) : null));
    if (mine.pairs) {
      if (!pair && mine.pairs.length) {
        pair = mine.pairs[0].pair;
        refresh();
      }
      pairs.setItems(mine.pairs);
      pairs.pick(pair);
      ladder.show(mine.pairs.find((one) => one.pair === pair));
    }
    drawFaults(score);
  }

  /** @param {Api_MakerScore | undefined} score */
  function drawFaults(score) {
    const found = score?.lastFaults, refused = Object.entries(score?.refused ?? {});
    if (found === null || found === undefined) return show(faults, h("p", { class: "quiet small" }, "The last faults are shown to the maker and to the operator."));
    const refusals = refused.length ? table("Refused pairs", [{ name: "Pair" }, { name: "Reason", isText: true }], refused) : null;
    if (!found.length) return show(faults, refusals, h("p", { class: "quiet small" }, "No firm quote of this maker had a fault."));
    return show(faults, refusals, table("Last faults", [{ name: "Kind" }, { name: "When" }, { name: "Trade" }, { name: "Reason", isText: true }],
      found.map((one) => [badge(one.kind, "bad"), clock(one.at), `${token(one.srcToken).symbol} → ${token(one.destToken).symbol}`, one.detail])));
  }

  let seen = [state.key, state.maker];
  const forget = onChange(() => {
    if (seen[0] === state.key && seen[1] === state.maker) return;
    seen = [state.key, state.maker];
    if (state.maker) [chosen, pair] = [state.maker.name, ""];
    refresh();
  });
  const stay = onAddress("makers", (name) => { [chosen, pair] = [name, ""]; refresh(); });
  return () => { stop(); forget(); stay(); refresh = () => {}; };
}
