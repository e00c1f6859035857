// Calldata that the console writes and reads. Selectors are the first four bytes of the functions' Keccak hashes.

export const NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE";
const SELECTORS = {
  approve: "0x095ea7b3", allowance: "0xdd62ed3e", balanceOf: "0x70a08231", deposit: "0xa1e77937", deposits: "0xfc7e286d",
  bridges: "0x33e239ea", swapExactIn: "0x585b54b5", swapExactOut: "0x76cf746f",
};

/** @param {bigint} number */
const word = (number) => number.toString(16).padStart(64, "0");
/** @param {string} address */
const addressWord = (address) => address.slice(2).toLowerCase().padStart(64, "0");

/** @param {string} spender @param {bigint} amount */
export const approve = (spender, amount) => SELECTORS.approve + addressWord(spender) + word(amount);
/** @param {string} owner @param {string} spender */
export const allowance = (owner, spender) => SELECTORS.allowance + addressWord(owner) + addressWord(spender);
/** @param {string} owner */
export const balanceOf = (owner) => SELECTORS.balanceOf + addressWord(owner);
/** `bridges` of the Delta contract: its module that calls bridges. */
export const BRIDGES = SELECTORS.bridges;
/** `depositNativeAndPreSign` of the Delta contract, which signs no order: the hash is zero. */
export const DEPOSIT = SELECTORS.deposit + word(0n);
/** `deposits` of the Delta contract. @param {string} owner */
export const deposits = (owner) => SELECTORS.deposits + addressWord(owner);

/** @param {string} one @param {string} other */
export const isSame = (one, other) => one.toLowerCase() === other.toLowerCase();

/**
 * Terms of a Router swap in its calldata; null for another function.
 * @param {string} data
 */
export function swapTerms(data) {
  const side = { [SELECTORS.swapExactIn]: "SELL", [SELECTORS.swapExactOut]: "BUY" }[data.slice(0, 10)];
  if (!side || data.slice(10, 74) !== word(32n)) return null;
  const at = (/** @type {number} */ place) => data.slice(74 + place * 64, 138 + place * 64);
  const number = (/** @type {number} */ place) => BigInt(`0x${at(place)}`);
  const address = (/** @type {number} */ place) => `0x${at(place).slice(24)}`;
  if (at(10).length !== 64) return null;
  const permitAt = Number(number(8)) / 32;
  return {
    side, srcToken: address(0), destToken: address(1), srcAmount: number(2), destAmount: number(3), receiver: address(5),
    deadline: number(6), feeBps: number(7) & 0xffn, hasPermit: number(permitAt) !== 0n,
  };
}
