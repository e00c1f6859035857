// Compares the bridge of a venue's route with what was wished, before its terms are shown and signed; pure.
// The same checks, in the same order, as engine/trader/client/order/bridge_safety.py of the command line.
import { isSame, NATIVE } from "./abi.js";
import { UnsafeTerms } from "./checks.js";

const PPM_ONE = 1_000_000n;
const BPS_ONE = 10_000n;
const FEE_BPS_MOST = 100n; // of the amount that enters the bridge
const FILL_S = { least: 60n, most: 21_600n };
const UINT32_MOST = 2n ** 32n - 1n;
const ZERO = `0x${"0".repeat(40)}`;
/** Protocol selector -> its name, words of its terms, and the largest difference of decimals. @type {Record<string, {kind: Kind, words: number, scalingMost: number}>} */
const PROTOCOLS = { "0x36d75ffa": { kind: "Across", words: 5, scalingMost: 36 }, "0xacb641e5": { kind: "CCTP", words: 4, scalingMost: 0 } };
/** Functions of the settlement's bridge module that return the bridges' contracts. */
export const GETTERS = { Across: "0xafdac3d6", CCTP: "0x46117830" };
/** Chain id -> Circle's number of the chain. @type {Record<number, number>} */
const CCTP_DOMAINS = { 1: 0, 10: 2, 130: 10, 137: 7, 8453: 6, 42161: 3, 43114: 1 };
const CCTP_MESSENGER = "0x28b5a0e9C621a5BadaA536219b3a228C8168cf5d";
/** Chain id -> Across's pool. @type {Record<number, string>} */
const SPOKE_POOLS = {
  1: "0x5c7BCd6E7De5423a257D81B442095A1a6ced35C5", 10: "0x6f26Bf09B1C792e3228e5467807a900A503c0281", 137: "0x9295ee1d8C5b022Be115A2AD3c30C72E34e7F096",
  8453: "0x09aea4b2242abC8bb4BB78D537A67a245A7bEC64", 42161: "0xe35e9842fceaCA96570B734083f4a58e8F7C5f2A",
};

/** Chain id -> its wrapped native token, which Across pays unwrapped. @type {Record<number, string>} */
const WRAPPED_NATIVES = {
  1: "0xC02aaA39b223FE8D0A0e5C4F27eAD9083C756Cc2", 10: "0x4200000000000000000000000000000000000006", 137: "0x0d500B1d8E8eF31E21C99d1Db9A6444d3ADf1270",
  8453: "0x4200000000000000000000000000000000000006", 42161: "0x82aF49447D8a07e3bd95BD0d56f35241523fBab1",
};

/** @typedef {"Across" | "CCTP"} Kind */
/** @typedef {{protocolSelector: string, destinationChainId: number, outputToken: string, scalingFactor: number, protocolData: string}} SignedBridge */
/** @typedef {{signed: SignedBridge, kind: Kind, name: string, via: import("./state.js").Token, fee: bigint, entering: bigint, estimatedMs: number, fillWithinS: number}} CheckedBridge `fillWithinS`: 0 if no refund has a time */

/** @param {string} member @param {boolean} holds @param {unknown} expected @param {unknown} got */
function hold(member, holds, expected, got) {
  if (!holds) throw new UnsafeTerms(member, expected, got);
}

/** Fee of a transfer, rounded up, and what arrives. @param {bigint} entering @param {bigint} ppm @param {bigint} fixed @param {number} scaling */
export function amounts(entering, ppm, fixed, scaling) {
  const fee = (entering * ppm + PPM_ONE - 1n) / PPM_ONE + fixed;
  const left = fee < entering ? entering - fee : 0n;
  const scale = 10n ** BigInt(Math.abs(scaling));
  return { fee, arriving: scaling >= 0 ? left * scale : left / scale };
}

/**
 * The words of a bridge's signed terms: fee in parts per million, fixed fee, then the protocol's own.
 * @param {string} data @param {number} count
 */
function words(data, count) {
  hold("protocolData of the bridge", new RegExp(`^0x[0-9a-fA-F]{${64 * count}}$`).test(data), `${32 * count} bytes`, data);
  const found = Array.from({ length: count }, (_, at) => BigInt(`0x${data.slice(2 + 64 * at, 66 + 64 * at)}`));
  const mosts = [PPM_ONE - 1n, 2n ** 128n - 1n, UINT32_MOST, count === 5 ? 2n ** 160n - 1n : UINT32_MOST, UINT32_MOST];
  found.forEach((value, at) => hold(`protocolData of the bridge, word ${at + 1}`, value <= mosts[at], `at most ${mosts[at]}`, value));
  return found;
}

/**
 * Check that the ends of a route across chains are the wished ones.
 * @param {any} route
 * @param {BridgeWish} wish
 */
function checkEnds({ origin, destination }, { chainId, destChainId, src, dest, side, amount }) {
  const ends = /** @type {[string, any, number, string | null][]} */ ([
    ["origin.input", origin.input, chainId, src.address], ["origin.output", origin.output, chainId, null],
    ["destination.input", destination.input, destChainId, dest.address], ["destination.output", destination.output, destChainId, dest.address],
  ]);
  for (const [name, { token }, chain, address] of ends) {
    hold(`chainId of route.${name}`, Number(token.chainId) === chain, chain, token.chainId);
    hold(`token of route.${name}`, address === null || isSame(token.address, address), address, token.address);
  }
  const fixed = side === "SELL" ? origin.input.amount : destination.output.amount;
  hold(`route, the ${side} amount`, String(fixed) === String(amount), amount, fixed);
  const [comes, goes] = [destination.input.amount, destination.output.amount];
  hold("route.destination.input.amount", comes === goes, goes, comes);
}

/**
 * @typedef {object} BridgeWish
 * @property {number} chainId
 * @property {number} destChainId
 * @property {{address: string}} src
 * @property {{address: string, decimals: number}} dest on the destination
 * @property {"SELL" | "BUY"} side
 * @property {bigint} amount of the fixed side
 * @property {(address: string) => import("./state.js").Token | null} via a listed token of the origin
 * @property {(address: string) => import("./state.js").Token | null} there a listed token of the destination
 */

/**
 * The token that the bridge is to bring. Native tokens come by Across alone, which unwraps: the wrapped one of a public
 * chain, else one that the venue lists there.
 * @param {BridgeWish} wish
 * @param {Kind} kind
 * @param {string} outputToken
 */
function outputOf({ dest, destChainId, there }, kind, outputToken) {
  if (!isSame(dest.address, NATIVE)) return dest.address;
  hold("protocolSelector of the bridge, for native tokens", kind === "Across", "Across", kind);
  const known = WRAPPED_NATIVES[destChainId] ?? there(outputToken)?.address;
  hold("outputToken of the bridge", Boolean(known) && !isSame(String(known), NATIVE), "the wrapped native token", outputToken);
  return String(known);
}

/**
 * Check the bridge of a route, member by member.
 * @param {any} route of a quote across chains
 * @param {BridgeWish} wish
 * @returns {CheckedBridge}
 */
export function checkBridge(route, wish) {
  hold("route.bridge", Boolean(route.bridge), "a bridge to the other chain", "absent");
  checkEnds(route, wish);
  const via = wish.via(route.origin.output.token.address);
  if (!via) throw new UnsafeTerms("token of route.origin.output", "a listed token of the chain", route.origin.output.token.address);
  const { protocolSelector, outputToken, scalingFactor, protocolData } = route.bridge.contractParams;
  const protocol = PROTOCOLS[String(protocolSelector).toLowerCase()];
  hold("protocolSelector of the bridge", Boolean(protocol), "Across or CCTP", protocolSelector);
  const output = outputOf(wish, protocol.kind, outputToken);
  hold("outputToken of the bridge", isSame(outputToken, output), output, outputToken);
  const scaling = wish.dest.decimals - via.decimals;
  hold("scalingFactor of the bridge", scalingFactor === scaling && Math.abs(scaling) <= protocol.scalingMost, scaling, scalingFactor);
  const [ppm, fixed, third, fourth, fifth] = words(protocolData, protocol.words);
  const domain = CCTP_DOMAINS[wish.destChainId];
  if (protocol.kind === "CCTP") hold("protocolData of the bridge, domain", domain === undefined || fourth === BigInt(domain), domain, fourth);
  else {
    hold("protocolData of the bridge, seconds to fill", third >= FILL_S.least && third <= FILL_S.most, `${FILL_S.least} to ${FILL_S.most}`, third);
    hold("protocolData of the bridge, seconds of exclusivity", fifth < third, `below ${third}`, fifth);
  }
  const entering = BigInt(route.origin.output.amount);
  const { fee, arriving } = amounts(entering, ppm, fixed, scaling);
  hold("the bridge’s fee", fee * BPS_ONE <= entering * FEE_BPS_MOST, `at most ${FEE_BPS_MOST} basis points of ${entering}`, fee);
  const told = BigInt(route.destination.output.amount);
  hold("route.destination.output.amount", told <= arriving, `at most ${arriving}`, told);
  return {
    signed: { protocolSelector, destinationChainId: wish.destChainId, outputToken, scalingFactor, protocolData },
    kind: protocol.kind, name: String(route.bridge.protocol), via, fee, entering,
    estimatedMs: Number(route.bridge.estimatedTimeMs), fillWithinS: protocol.kind === "Across" ? Number(third) : 0,
  };
}

/**
 * Check the bridge's contract to which the Delta contract hands tokens.
 * @param {number} chainId of the origin
 * @param {Kind} kind
 * @param {string} contract as the settlement's module returns it
 */
export function checkContract(chainId, kind, contract) {
  hold("the bridge’s contract", !isSame(contract, ZERO), "an address", contract);
  const known = kind === "Across" ? SPOKE_POOLS[chainId] : chainId in CCTP_DOMAINS ? CCTP_MESSENGER : undefined;
  hold("the bridge’s contract", known === undefined || isSame(contract, known), known, contract);
  return contract;
}
