// Compares what a wallet is about to sign with what was agreed; pure. The typed data is made here from the agreed
// kind's own members, so that the wallet signs the types that these checks know.
import { isSame, swapTerms } from "./abi.js";

const ZERO = `0x${"0".repeat(40)}`;
const BRIDGE = ["bytes4 protocolSelector", "uint256 destinationChainId", "address outputToken", "int8 scalingFactor", "bytes protocolData"];
const HEAD = ["address owner", "address beneficiary", "address srcToken", "address destToken"];
const TAIL = ["bytes permit", "bytes metadata", "Bridge bridge"];
const SCHEDULE = ["uint256 nonce", "uint256 partnerAndFee", "uint64 deadline", "uint64 interval", "uint32 numSlices"];
const KINDS = {
  Order: [...HEAD, "uint256 srcAmount", "uint256 destAmount", "uint256 expectedAmount", "uint256 deadline", "uint8 kind", "uint256 nonce", "uint256 partnerAndFee", ...TAIL],
  TWAPOrder: [...HEAD, ...SCHEDULE, "uint256 destAmountPerSlice", "uint256 totalSrcAmount", ...TAIL],
  TWAPBuyOrder: [...HEAD, ...SCHEDULE, "uint256 totalDestAmount", "uint256 maxSrcAmount", ...TAIL],
};
/** Member `bridge` of an order that stays on its chain. */
const SAME_CHAIN = { protocolSelector: "0x00000000", destinationChainId: 0, outputToken: ZERO, scalingFactor: 0, protocolData: "0x" };
const DOMAIN = ["string name", "string version", "uint256 chainId", "address verifyingContract"];
const members = (/** @type {string[]} */ declared) => declared.map((text) => ({ type: text.split(" ")[0], name: text.split(" ")[1] }));

/** A difference between the agreed terms and the data to sign. */
export class UnsafeTerms extends Error {
  /** @param {string} member @param {unknown} expected @param {unknown} got */
  constructor(member, expected, got) {
    super(`The venue's data is not what you agreed to: ${member} should be ${expected}, and is ${got}. Nothing was signed.`);
    this.name = "UnsafeTerms";
  }
}

/**
 * @typedef {object} OrderTerms
 * @property {number} chainId
 * @property {string} contract the Delta contract
 * @property {string} owner
 * @property {string} srcToken
 * @property {string} destToken the token that enters the bridge, if there is one
 * @property {"SELL" | "BUY"} side
 * @property {bigint} srcAmount sold, or the most to pay; of a TWAP in all
 * @property {bigint} destAmount the least to receive, of a TWAP for each slice; or bought, of a TWAP in all
 * @property {number} deadline Unix seconds
 * @property {number} feeBps the most
 * @property {{interval: number, slices: number}} [schedule] of a TWAP
 * @property {import("./bridge_checks.js").SignedBridge} [bridge] to another chain, as it was checked and shown
 */

/**
 * The EIP-712 data of an order for a wallet.
 * @param {{domain: any, value: any}} toSign
 * @param {OrderTerms} terms
 */
export function orderToSign({ domain, value }, terms) {
  const kind = !terms.schedule ? "Order" : terms.side === "SELL" ? "TWAPOrder" : "TWAPBuyOrder";
  const same = (/** @type {string} */ member, /** @type {unknown} */ expected, /** @type {unknown} */ got) => {
    if (String(got).toLowerCase() !== String(expected).toLowerCase()) throw new UnsafeTerms(member, expected, got);
  };
  const bound = (/** @type {string} */ member, /** @type {boolean} */ holds, /** @type {string} */ expected) => {
    if (!holds) throw new UnsafeTerms(member, expected, value[member]);
  };
  same("domain.chainId", terms.chainId, domain.chainId);
  same("domain.verifyingContract", terms.contract, domain.verifyingContract);
  same("members", members(KINDS[kind]).map(({ name }) => name).sort(), Object.keys(value).sort());
  for (const member of ["owner", "srcToken", "destToken", "deadline"]) same(member, terms[/** @type {"owner"} */ (member)], value[member]);
  same("beneficiary", terms.owner, value.beneficiary === ZERO ? terms.owner : value.beneficiary);
  same("permit", "0x", value.permit);
  same("metadata", "0x", value.metadata);
  const bridge = terms.bridge ?? SAME_CHAIN;
  same("members of bridge", Object.keys(SAME_CHAIN).sort(), Object.keys(value.bridge ?? {}).sort());
  for (const [member, expected] of Object.entries(bridge)) same(`bridge.${member}`, expected, value.bridge[member]);
  const fee = BigInt(value.partnerAndFee);
  bound("partnerAndFee", (fee & 0xffn) <= BigInt(terms.feeBps) && (fee & 0x100n) === 0n, `a fee of at most ${terms.feeBps} basis points, and the surplus yours`);
  if (terms.schedule) {
    same("interval", terms.schedule.interval, value.interval);
    same("numSlices", terms.schedule.slices, value.numSlices);
    if (terms.side === "SELL") {
      same("totalSrcAmount", terms.srcAmount, value.totalSrcAmount);
      bound("destAmountPerSlice", BigInt(value.destAmountPerSlice) >= terms.destAmount, `at least ${terms.destAmount}`);
    } else {
      same("totalDestAmount", terms.destAmount, value.totalDestAmount);
      same("maxSrcAmount", terms.srcAmount, value.maxSrcAmount);
    }
  } else {
    same("kind", terms.side === "SELL" ? 0 : 1, value.kind);
    bound("srcAmount", terms.side === "SELL" ? BigInt(value.srcAmount) === terms.srcAmount : BigInt(value.srcAmount) <= terms.srcAmount, `${terms.side === "SELL" ? "" : "at most "}${terms.srcAmount}`);
    bound("destAmount", terms.side === "BUY" ? BigInt(value.destAmount) === terms.destAmount : BigInt(value.destAmount) >= terms.destAmount, `${terms.side === "BUY" ? "" : "at least "}${terms.destAmount}`);
  }
  const { name, version, chainId, verifyingContract } = domain;
  return {
    types: { EIP712Domain: members(DOMAIN), Bridge: members(BRIDGE), [kind]: members(KINDS[kind]) },
    primaryType: kind, domain: { name, version, chainId, verifyingContract }, message: value,
  };
}

/**
 * The EIP-712 data that cancels orders.
 * @param {{domain: any, value: any}} toSign
 * @param {{chainId: number, contract: string, ids: string[]}} terms
 */
export function cancellationToSign({ domain, value }, { chainId, contract, ids }) {
  if (Number(domain.chainId) !== chainId) throw new UnsafeTerms("domain.chainId", chainId, domain.chainId);
  if (!isSame(domain.verifyingContract, contract)) throw new UnsafeTerms("domain.verifyingContract", contract, domain.verifyingContract);
  if (String(value.orderIds) !== String(ids)) throw new UnsafeTerms("orderIds", ids, value.orderIds);
  const { name, version, verifyingContract } = domain;
  return {
    types: { EIP712Domain: members(DOMAIN), OrderCancellations: members(["string[] orderIds"]) },
    primaryType: "OrderCancellations", domain: { name, version, chainId, verifyingContract }, message: { orderIds: ids },
  };
}

/**
 * Check the transaction of a Router swap.
 * @param {any} built
 * @param {{chainId: number, router: string, owner: string, srcToken: string, destToken: string, side: "SELL" | "BUY", srcAmount: bigint, destAmount: bigint, value: bigint, feeBps: number, nowS: number}} terms
 */
export function checkSwap(built, terms) {
  const held = (/** @type {string} */ member, /** @type {boolean} */ holds, /** @type {unknown} */ expected, /** @type {unknown} */ got) => {
    if (!holds) throw new UnsafeTerms(member, expected, got);
  };
  held("chainId", Number(built.chainId) === terms.chainId, terms.chainId, built.chainId);
  held("to", isSame(built.to, terms.router), terms.router, built.to);
  held("from", isSame(built.from, terms.owner), terms.owner, built.from);
  held("value", BigInt(built.value) === terms.value, terms.value, built.value);
  const swap = swapTerms(built.data);
  if (!swap) throw new UnsafeTerms("data", "a swap of the Router", built.data.slice(0, 10));
  held("side", swap.side === terms.side, terms.side, swap.side);
  held("srcToken", isSame(swap.srcToken, terms.srcToken), terms.srcToken, swap.srcToken);
  held("destToken", isSame(swap.destToken, terms.destToken), terms.destToken, swap.destToken);
  const isSale = terms.side === "SELL";
  held("srcAmount", isSale ? swap.srcAmount === terms.srcAmount : swap.srcAmount <= terms.srcAmount, terms.srcAmount, swap.srcAmount);
  held("destAmount", isSale ? swap.destAmount >= terms.destAmount : swap.destAmount === terms.destAmount, terms.destAmount, swap.destAmount);
  held("receiver", isSame(swap.receiver, ZERO) || isSame(swap.receiver, terms.owner), terms.owner, swap.receiver);
  held("deadline", swap.deadline > BigInt(terms.nowS) && swap.deadline <= BigInt(terms.nowS + 86_400), "within a day", swap.deadline);
  held("fee", swap.feeBps <= BigInt(terms.feeBps), `at most ${terms.feeBps}`, swap.feeBps);
  held("permit", !swap.hasPermit, "none", "a permit");
}
