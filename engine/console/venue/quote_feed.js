// The present price of a trade, both ways: signed swap (Market) and auctioned order (Delta), each from its stream.
import { follow } from "/console/shared/http.js";

/**
 * @typedef {object} Ask
 * @property {number} chainId
 * @property {import("./state.js").Token} src
 * @property {import("./state.js").Token} dest
 * @property {"SELL" | "BUY"} side
 * @property {bigint} amount
 * @property {string} [user]
 * @property {number} [destChainId] another chain, on which `dest` is
 */

/**
 * @typedef {object} Quotes the last answer of each stream; both absent until it comes
 * @property {Api_PriceRoute} [market] a price route
 * @property {Api_DeltaBlock} [delta]
 * @property {string} [marketFault]
 * @property {string} [deltaFault]
 * @property {boolean} isLive
 * @property {number} at when the last answer came
 */

/**
 * Follow the price until the returned function is called.
 * @param {Ask} asked
 * @param {("MARKET" | "DELTA")[]} modes
 * @param {(quotes: Quotes) => void} heard
 */
export function followQuotes(asked, modes, heard) {
  /** @type {Quotes} */
  let quotes = { isLive: false, at: 0 };
  const stops = modes.map((mode) => {
    const [member, fault] = mode === "MARKET" ? /** @type {const} */ (["market", "marketFault"]) : /** @type {const} */ (["delta", "deltaFault"]);
    const put = (/** @type {any} */ answer, /** @type {string} */ reason, isLive = true) => {
      quotes = { ...quotes, [member]: answer, [fault]: reason, isLive, at: Date.now() };
      heard(quotes);
    };
    return follow(`/v2/quote/stream?${query(asked, mode)}`, {
      onEvent: (name, data) => {
        if (name === "quote") put(data[member], "");
        else if (name === "error") put(undefined, data.details ?? data.errorType);
      },
      onState: (state, reason) => { if (state === "lost") put(undefined, reason, false); },
    });
  });
  return () => stops.forEach((stop) => stop());
}

/** @param {Ask} asked @param {string} mode */
export function query({ chainId, destChainId, src, dest, side, amount, user }, mode) {
  return new URLSearchParams({
    chainId: String(chainId), srcToken: src.address, destToken: dest.address, srcDecimals: String(src.decimals),
    destDecimals: String(dest.decimals), amount: String(amount), side, mode, version: "6.2", ...(user && { userAddress: user }),
    ...(destChainId && { destChainId: String(destChainId), allowBridgeAndSwap: "false" }),
  });
}

/** Parameters of GET /prices for the same trade. @param {Ask} asked */
export function priceQuery(asked) {
  const found = query(asked, "MARKET");
  found.set("network", String(asked.chainId));
  for (const name of ["chainId", "mode"]) found.delete(name);
  return found;
}

/** Amounts of a Delta quote: before the auction, after gas and fee. @param {Api_DeltaBlock} delta */
export const deltaAmounts = (delta) => ({
  src: BigInt(delta.route.origin.input.amount), dest: BigInt(delta.route.destination.output.amount),
  gas: delta.route.fees.gas, feeBps: Math.round(Number(delta.partner.feePercent) * 100),
});
/** Worths of a Delta quote's two amounts in US dollars, decimal text. @param {Api_DeltaBlock} delta */
export const deltaWorths = (delta) => ({ src: delta.route.origin.input.amountUSD, dest: delta.route.destination.output.amountUSD });

/** Name of a route's bridge, by which a person chooses among routes. @param {Api_Route} route */
export const bridgeOf = (route) => `${route.bridge?.protocol} ${route.origin.output.token.address}`.toLowerCase();

/** A Delta quote whose route takes the chosen bridge; the quote itself where it has none of this name. @param {Api_DeltaBlock} delta @param {string} bridge */
export function onBridge(delta, bridge) {
  const all = [delta.route, ...(delta.alternatives ?? [])];
  const found = bridge ? all.find((route) => route.bridge && bridgeOf(route) === bridge) : null;
  return found && found !== delta.route ? { ...delta, route: found, alternatives: all.filter((route) => route !== found) } : delta;
}

/** Amounts of a price route. @param {Api_PriceRoute} market */
export const marketAmounts = (market) => ({
  src: BigInt(market.srcAmount), dest: BigInt(market.destAmount), feeBps: Math.round(Number(market.partnerFee) * 100),
});
