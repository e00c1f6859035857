// Calldata that the console writes and reads. Selectors are the first four bytes of the functions' Keccak hashes.

export const NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE";
const SELECTORS = {
  approve: "0x095ea7b3", allowance: "0xdd62ed3e", balanceOf: "0x70a08231", deposit: "0xa1e77937", deposits: "0xfc7e286d",
  withdraw: "0x84276d81", fillPart: "0xc88ae6dc", cancelOtc: "0x7489ec23", hashOtc: "0xe397794b", remaining: "0x0b57f091", bridges: "0x33e239ea", swapExactIn: "0x585b54b5", swapExactOut: "0x76cf746f",
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

const TRANSFER = "0xddf252ad1be2c89b69c2b068fc378daa952ba7f163c4a11628f55a4df523b3ef"; // Keccak hash of Transfer(address,address,uint256)

/** What an account received of a token less what it gave, by a receipt's logs. @param {any[]} logs @param {string} token @param {string} account @returns {bigint} */
export function transferred(logs, token, account) {
  const mine = `0x${addressWord(account)}`;
  return logs.filter(({ address, topics }) => isSame(address, token) && topics.length === 3 && topics[0] === TRANSFER).reduce((sum, { topics, data }) => {
    const amount = BigInt(data);
    return sum + (isSame(topics[2], mine) ? amount : 0n) - (isSame(topics[1], mine) ? amount : 0n);
  }, 0n);
}

/** `withdrawNative` of the Delta contract. @param {bigint} amount */
export const withdrawNative = (amount) => SELECTORS.withdraw + word(amount);

/** @typedef {{nonceAndMeta: string, expiry: number | string, makerAsset: string, takerAsset: string, maker: string, taker: string, makerAmount: string, takerAmount: string}} RfqOrder */

/** The eight words of an RFQ order. @param {RfqOrder} order */
const rfqWords = (order) => word(BigInt(order.nonceAndMeta)) + word(BigInt(order.expiry)) + [order.makerAsset, order.takerAsset, order.maker, order.taker].map(addressWord).join("") + word(BigInt(order.makerAmount)) + word(BigInt(order.takerAmount));
/** `partialFillOrder` of the RFQ contract. @param {RfqOrder} order @param {string} signature @param {bigint} takerAmount raw units that the fill pays */
export function fillPart(order, signature, takerAmount) {
  const bytes = signature.slice(2);
  return SELECTORS.fillPart + rfqWords(order) + word(320n) + word(takerAmount) + word(BigInt(bytes.length / 2)) + bytes.padEnd(Math.ceil(bytes.length / 64) * 64, "0");
}
/** `getOrderHash` of the RFQ contract. @param {RfqOrder} order */
export const hashOtc = (order) => SELECTORS.hashOtc + rfqWords(order);
/** `cancelOrder` of the RFQ contract. @param {string} hash */
export const cancelOtc = (hash) => SELECTORS.cancelOtc + hash.slice(2);
/** `remaining` of the RFQ contract. @param {string} maker @param {string} hash */
export const remainingOtc = (maker, hash) => SELECTORS.remaining + addressWord(maker) + hash.slice(2);

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
