// OTC orders: what a maker signs, what a taker fills, and what cancels an order, in words and in steps.
import { ask } from "/console/shared/http.js";
import { formatUnits, moment } from "/console/shared/amounts.js";
import { cancelOtc, fillPart, hashOtc, isSame, remainingOtc } from "./abi.js";
import { UnsafeTerms } from "./checks.js";
import { amountOf, state } from "./state.js";
import { allow, nowS, sender, wallet } from "./trade_plan.js";

export const ANYONE = `0x${"0".repeat(40)}`;
const NONCE_BYTES = 12;
const DOMAIN = { name: "AUGUSTUS RFQ", version: "1" }; // the public clients' own; the contract's code has it too
const MEMBERS = ["nonceAndMeta uint256", "expiry uint128", "makerAsset address", "takerAsset address", "maker address", "taker address", "makerAmount uint256", "takerAmount uint256"];
const TYPES = {
  EIP712Domain: ["name string", "version string", "chainId uint256", "verifyingContract address"].map(member),
  Order: MEMBERS.map(member),
};

/** @param {string} text */
function member(text) {
  const [name, type] = text.split(" ");
  return { name, type };
}

/** @typedef {{sell: import("./state.js").Token, buy: import("./state.js").Token, sellAmount: bigint, buyAmount: bigint, taker: string, lifeS: number}} OtcWish `taker`: ANYONE or an address; `lifeS`: 0 without an end */

/** The RFQ contract of the present chain. @returns {string} */
export const rfqContract = () => state.contracts.augustusRFQ;

/** The amount that a fill of `takerAmount` gives, rounded down as the contract rounds. @param {{makerAmount: string, takerAmount: string}} order @param {bigint} takerAmount */
export const givenFor = (order, takerAmount) => (takerAmount * BigInt(order.makerAmount)) / BigInt(order.takerAmount);

/** The least amount to pay for `makerAmount`. @param {{makerAmount: string, takerAmount: string}} order @param {bigint} makerAmount */
export const paidFor = (order, makerAmount) => (makerAmount * BigInt(order.takerAmount) + BigInt(order.makerAmount) - 1n) / BigInt(order.makerAmount);

/** Post an order. @param {OtcWish} wish @returns {import("./trade_plan.js").Plan} */
export function postPlan({ sell, buy, sellAmount, buyAmount, taker, lifeS }) {
  const maker = wallet().address;
  const rfq = rfqContract();
  const nonce = [...crypto.getRandomValues(new Uint8Array(NONCE_BYTES))].map((byte) => byte.toString(16).padStart(2, "0")).join("");
  const order = {
    nonceAndMeta: BigInt(`${maker}${nonce}`).toString(), expiry: lifeS ? nowS() + lifeS : 0, makerAsset: sell.address, takerAsset: buy.address,
    maker, taker, makerAmount: String(sellAmount), takerAmount: String(buyAmount),
  };
  let signature = "";
  /** @type {Api_PostedOrder} */ let posted;
  const sign = {
    name: "Sign the order",
    run: async () => {
      if (order.expiry && order.expiry <= nowS()) throw new Error("The time of this order is over. Review it again.");
      signature = await wallet().sign({ types: TYPES, primaryType: "Order", domain: { ...DOMAIN, chainId: wallet().chainId, verifyingContract: rfq }, message: order });
      return "signed";
    },
  };
  const post = {
    name: "Send it to the venue",
    run: async () => {
      posted = await ask(`/ft/p2p/${wallet().chainId}`, { body: { ...order, signature } });
      const kept = /** @type {Record<string, unknown>} */ (/** @type {unknown} */ (posted));
      for (const [name, value] of Object.entries(order)) if (String(kept[name]).toLowerCase() !== String(value).toLowerCase()) throw new UnsafeTerms(name, value, kept[name]);
      return `kept, ${String(posted.state).toLowerCase()}`;
    },
  };
  return {
    title: `Sell ${amountOf(sellAmount, sell)} for ${amountOf(buyAmount, buy)}`,
    lines: [
      ["You give", `exactly ${amountOf(sellAmount, sell, 30)}, in whole or in parts`], ["You get", `exactly ${amountOf(buyAmount, buy, 30)}, in proportion`], ["Taker", isSame(taker, ANYONE) ? "anyone" : taker],
      ["Good until", order.expiry ? moment(order.expiry * 1_000) : "you cancel it"], ["Contract", `${rfq} (RFQ)`], ["You sign", "a message, which costs no gas; a cancellation is a transaction"],
    ],
    steps: [allow(sell.address, rfq, sellAmount), sign, post],
    outcome: async () => ({ headline: "Order posted", lines: [["State", posted.state === "PENDING" ? "It can be filled now." : "Your balance or approval is below it at present."]], hash: "", view: `otc/${posted.orderHash}`, swap: null }),
  };
}

/** Fill an order, whole or in part. @param {Api_StoredOrder} order of the venue @param {import("./state.js").Token} gives @param {import("./state.js").Token} gets @param {bigint} takerAmount @returns {import("./trade_plan.js").Plan} */
export function fillPlan(order, gives, gets, takerAmount) {
  const rfq = rfqContract();
  const got = givenFor(order, takerAmount);
  const data = fillPart(order, order.signature, takerAmount);
  const send = sender(async () => {
    await wallet().call(rfq, data); // a revert is told before anything is sent
    return { to: rfq, data };
  });
  /** @type {any} */ let receipt = null;
  const fill = {
    name: "Try the fill, and send it",
    run: async () => {
      receipt = await send();
      return `mined in block ${Number(receipt.blockNumber)}`;
    },
  };
  return {
    title: `Buy ${amountOf(got, gets)} for ${amountOf(takerAmount, gives)}`,
    lines: [
      ["You pay", `exactly ${amountOf(takerAmount, gives, 30)}`], ["You receive", `exactly ${amountOf(got, gets, 30)}`], ["Of the order", `${formatUnits((got * 10_000n) / BigInt(order.makerAmount), 2)} %`],
      ["Maker", order.maker], ["Contract", `${rfq} (RFQ), which checks the maker’s signature`], ["You sign", "a transaction, and its gas is yours"],
    ],
    steps: [allow(gives.address, rfq, takerAmount), fill],
    outcome: async () => {
      const received = await wallet().moved(receipt, gets.address, "received");
      return { headline: `Received ${amountOf(received ?? got, gets, 12)}`, lines: [["Paid", amountOf(takerAmount, gives, 12)], ["Block", String(Number(receipt.blockNumber))]], hash: receipt.transactionHash, view: `otc/${order.orderHash}`, swap: null };
    },
  };
}

/** Cancel an order on chain. @param {Api_StoredOrder} order of the venue @returns {import("./trade_plan.js").Plan} */
export function cancelPlan(order) {
  const rfq = rfqContract();
  let hash = "";
  const send = sender(async () => {
    await wallet().call(rfq, cancelOtc(hash));
    return { to: rfq, data: cancelOtc(hash) };
  });
  /** @type {any} */ let receipt = null;
  return {
    title: "Cancel this OTC order",
    lines: [["Order", order.orderHash], ["Contract", `${rfq} (RFQ)`], ["You sign", "a transaction, and its gas is yours"]],
    steps: [{
      name: "Have the contract compute the order’s hash",
      run: async () => {
        hash = (await wallet().call(rfq, hashOtc(order))).slice(0, 66);
        if (!isSame(hash, order.orderHash)) throw new UnsafeTerms("orderHash", hash, order.orderHash);
        return "it is the order’s own";
      },
    }, {
      name: "Send the cancellation",
      run: async () => {
        receipt = await send();
        const left = BigInt((await wallet().call(rfq, remainingOtc(wallet().address, hash))).slice(0, 66));
        if (left !== 1n) throw new Error("The contract does not say that the order is closed.");
        return `mined in block ${Number(receipt.blockNumber)}`;
      },
    }],
    outcome: async () => ({ headline: "Order cancelled", lines: [["Block", String(Number(receipt.blockNumber))]], hash: receipt.transactionHash, view: `otc/${order.orderHash}`, swap: null }),
  };
}
