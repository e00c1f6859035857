// What a trade does, in words and in steps. Each step runs when the person has agreed to all of them.
import { ask } from "/console/shared/http.js";
import { duration, formatUnits, percent } from "/console/shared/amounts.js";
import { deposit, isSame, NATIVE } from "./abi.js";
import { bounded, checkSwap, orderToSign } from "./checks.js";
import { deltaAmounts, marketAmounts } from "./quote_feed.js";
import { amount, state } from "./state.js";

const FEE_BPS_MOST = 200;
const GAS_SPARE = 12n; // tenths of the estimated gas

/** @typedef {{name: string, run: () => Promise<string | void>}} Step `run` returns what it did, in words */
/** @typedef {{title: string, lines: [string, string][], steps: Step[], order: () => any}} Plan */

/**
 * @typedef {object} Wish
 * @property {"SWAP" | "ORDER" | "LIMIT" | "TWAP"} kind
 * @property {import("./quote_feed.js").Ask} asked for a TWAP of one slice
 * @property {number} slippageBps
 * @property {number} lifeS of an order
 * @property {bigint} [limitAmount] of a limit order: least receipt of a sale, or most to pay of a purchase
 * @property {{interval: number, slices: number, total: bigint}} [schedule]
 */

const nowS = () => Math.floor(Date.now() / 1_000);
const wallet = () => {
  if (!state.wallet) throw new Error("Connect an account first.");
  return state.wallet;
};

/**
 * Approve a spender for an amount if its allowance is smaller.
 * @param {string} token @param {string} spender @param {bigint} most
 * @returns {Step}
 */
const allow = (token, spender, most) => ({
  name: `Approve ${amount(most, token)} for the contract ${spender}`,
  run: async () => {
    if ((await wallet().allowance(token, spender)) >= most) return "approved before";
    await wallet().approve(token, spender, most);
    return "approved";
  },
});

/** @param {Wish} wish @param {any} market @returns {Plan} */
export function swapPlan(wish, market) {
  const { asked, slippageBps } = wish;
  const { src, dest, feeBps } = marketAmounts(market);
  const isSale = asked.side === "SELL";
  const least = isSale ? bounded("SELL", dest, slippageBps) : dest;
  const most = isSale ? src : bounded("BUY", src, slippageBps);
  const router = state.contracts.augustusV6_2;
  const isNative = isSame(asked.src.address, NATIVE);
  const terms = {
    chainId: asked.chainId, router, owner: wallet().address, srcToken: asked.src.address, destToken: asked.dest.address, side: asked.side,
    srcAmount: most, destAmount: least, value: isNative ? most : 0n, feeBps: Math.max(feeBps, 0), nowS: nowS(),
  };
  const exchange = {
    name: "Have the makers sign, check the transaction, and send it",
    run: async () => {
      const { others: _, ...priceRoute } = market;
      const built = await ask(`/transactions/${asked.chainId}?eip1559=true`, { body: {
        priceRoute, srcToken: asked.src.address, destToken: asked.dest.address, srcDecimals: asked.src.decimals, destDecimals: asked.dest.decimals,
        srcAmount: String(most), destAmount: String(least), userAddress: terms.owner,
      } });
      checkSwap(built, { ...terms, nowS: nowS() });
      const receipt = await wallet().send({ to: built.to, data: built.data, value: terms.value, gas: built.gas ? (BigInt(built.gas) * GAS_SPARE) / 10n : undefined });
      return `mined in block ${Number(receipt.blockNumber)} as ${receipt.transactionHash}`;
    },
  };
  return {
    title: `Swap ${amount(isSale ? src : most, asked.src.address)} for ${amount(isSale ? least : dest, asked.dest.address)}`,
    lines: [
      ["You pay", `${isSale ? "exactly" : "at most"} ${amount(most, asked.src.address, 30)}`],
      ["You receive", `${isSale ? "at least" : "exactly"} ${amount(least, asked.dest.address, 30)}`],
      ["Quoted", isSale ? amount(dest, asked.dest.address) : amount(src, asked.src.address)],
      ["To", `${wallet().address} (your account)`],
      ["Contract", `${router} (Router)`],
      ["You sign", "a transaction, and its gas is yours"],
    ],
    steps: isNative ? [exchange] : [allow(asked.src.address, router, most), exchange],
    order: () => null,
  };
}

/** @param {Wish} wish @param {any} delta @returns {Plan} */
export function orderPlan(wish, delta) {
  const { asked, slippageBps, schedule, limitAmount } = wish;
  const quoted = deltaAmounts(delta);
  const isSale = asked.side === "SELL";
  const deadline = nowS() + wish.lifeS;
  const fixed = schedule ? schedule.total : asked.amount;
  const paid = limitAmount ?? bounded("BUY", quoted.src, slippageBps);
  const least = isSale ? limitAmount ?? bounded("SELL", quoted.dest, slippageBps) : fixed;
  const most = isSale ? fixed : schedule ? (paid * fixed) / asked.amount : paid;
  const terms = {
    chainId: asked.chainId, contract: state.contracts.delta, owner: wallet().address, srcToken: asked.src.address, destToken: asked.dest.address, side: asked.side,
    srcAmount: most, destAmount: least, deadline, feeBps: Math.min(quoted.feeBps, FEE_BPS_MOST), ...(schedule && { schedule }),
  };
  /** @type {any} */ let record = null;
  /** @type {any} */ let built = null;
  const isNative = isSame(asked.src.address, NATIVE);
  const build = async () => {
    built = await ask("/v2/delta/orders/build", { body: {
      route: delta.route, side: asked.side, owner: terms.owner, deadline,
      ...(limitAmount === undefined ? { slippage: slippageBps } : { limitAmount: String(limitAmount) }),
      ...(schedule && { interval: schedule.interval, numSlices: schedule.slices, ...(isSale ? { orderType: "TWAPOrder", totalSrcAmount: String(most) } : { orderType: "TWAPBuyOrder", totalDestAmount: String(least), maxSrcAmount: String(most) }) }),
    } });
    return orderToSign(built.toSign, terms);
  };
  const sign = {
    name: "Check the order against these terms, and sign it",
    run: async () => {
      const typed = await build();
      if (isNative) await wallet().send({ to: terms.contract, data: deposit(built.orderHash), value: most });
      const signature = await wallet().sign(typed);
      record = await ask("/v2/delta/orders", { body: { chainId: asked.chainId, order: built.toSign.value, signature, type: wish.kind === "LIMIT" ? "LIMIT" : "MARKET" } });
      return `accepted as order ${record.id}`;
    },
  };
  return {
    title: orderTitle(wish, most, least),
    lines: [
      ["You pay", `${isSale ? "exactly" : "at most"} ${amount(most, asked.src.address, 30)}${schedule ? ` in ${schedule.slices} slices` : ""}`],
      ["You receive", `${isSale ? "at least" : "exactly"} ${amount(least, asked.dest.address, 30)}${schedule && isSale ? " for each slice" : ""}`],
      ...(schedule ? [/** @type {[string, string]} */ (["Schedule", `a slice every ${duration(schedule.interval)}, all within ${duration(schedule.interval * (schedule.slices - 1))} and the auctions`])] : []),
      ["Fee", `at most ${percent(terms.feeBps)}, in these amounts already`],
      ["Good until", new Date(deadline * 1_000).toLocaleString("en-GB")],
      ["To", `${terms.owner} (your account)`],
      ["Contract", `${terms.contract} (Delta)`],
      ["You sign", isNative ? "a deposit of the native tokens, and a message" : "a message, which costs no gas"],
    ],
    steps: isNative ? [sign] : [allow(asked.src.address, terms.contract, most), sign],
    order: () => record,
  };
}

/** @param {Wish} wish @param {bigint} most @param {bigint} least */
function orderTitle({ kind, asked, schedule }, most, least) {
  const [pays, gets] = [amount(most, asked.src.address), amount(least, asked.dest.address)];
  if (schedule) return `${asked.side === "SELL" ? `Sell ${pays}` : `Buy ${gets}`} in ${formatUnits(BigInt(schedule.slices), 0)} slices for ${asked.side === "SELL" ? asked.dest.symbol : asked.src.symbol}`;
  return `${kind === "LIMIT" ? "Limit order" : "Order"}: ${asked.side === "SELL" ? `sell ${pays} for at least ${gets}` : `buy ${gets} for at most ${pays}`}`;
}
