// What a trade does, in words and in steps. Each step runs when the person has agreed to all of them.
import { ApiError, ask } from "/console/shared/http.js";
import { duration, moment, percent } from "/console/shared/amounts.js";
import { approve, BRIDGES, DEPOSIT, isSame, NATIVE, withdrawNative } from "./abi.js";
import { checkBridge, checkContract, GETTERS } from "./bridge_checks.js";
import { checkSwap, orderToSign } from "./checks.js";
import { deltaAmounts, marketAmounts } from "./quote_feed.js";
import { bounded, mostOf, mostPerSlice } from "./schedule.js";
import { amount, amountOf, chainName, state } from "./state.js";
import { NoAnswer } from "./wallet.js";

const FEE_BPS_MOST = 200;
const GAS_SPARE = 12n; // tenths of the estimated gas

/** @typedef {{name: string, run: () => Promise<string | void>}} Step `run` returns what it did, in words; run again after a failure, it sends nothing twice */
/** @typedef {{headline: string, lines: [string, string][], hash: string, view: string, swap: import("./activity.js").Swap | null}} Outcome what came of a plan; `hash` of a transaction, `view` address of an order's page, each empty without one */
/** @typedef {{title: string, lines: [string, string][], steps: Step[], outcome: () => Promise<Outcome>}} Plan */

/**
 * @typedef {object} Wish
 * @property {"SWAP" | "ORDER" | "LIMIT" | "TWAP"} kind
 * @property {import("./quote_feed.js").Ask} asked for a TWAP of one slice
 * @property {number} slippageBps
 * @property {number} lifeS of an order
 * @property {bigint} [limitAmount] of a limit order: least receipt of a sale, or most to pay of a purchase
 * @property {{interval: number, slices: number, total: bigint}} [schedule]
 */

export const nowS = () => Math.floor(Date.now() / 1_000);
/** The account that acts. */
export const wallet = () => {
  if (!state.wallet) throw new Error("Connect an account first.");
  return state.wallet;
};

/**
 * A sender of one transaction, which returns the receipt. Called again, it waits for the transaction that it sent, and
 * makes and sends another one only if that was refused or reverted.
 * @param {() => import("./wallet.js").Transaction | Promise<import("./wallet.js").Transaction>} make
 */
export function sender(make) {
  let [isSent, hash] = [false, ""];
  return async () => {
    if (!isSent) {
      const transaction = await make();
      await wallet().checkChain();
      isSent = true;
      try {
        hash = await wallet().send(transaction);
      } catch (error) {
        isSent = error instanceof NoAnswer;
        if (!isSent) throw error;
      }
    }
    if (!hash) throw new Error("The wallet does not say whether it sent the transaction. Look for it there before you trade again.");
    const receipt = await wallet().receipt(hash);
    if (Number(receipt.status) === 1) return receipt;
    [isSent, hash] = [false, ""];
    throw new Error(`The transaction ${receipt.transactionHash} was reverted.`);
  };
}

/**
 * Approve a spender for an amount if its allowance is smaller.
 * @param {string} token @param {string} spender @param {bigint} most
 * @returns {Step}
 */
export function allow(token, spender, most) {
  const send = sender(() => ({ to: token, data: approve(spender, most) }));
  return {
    name: `Approve ${amount(most, token)} for the contract ${spender}`,
    run: async () => {
      if ((await wallet().allowance(token, spender)) >= most) return "approved before";
      await send();
      return "approved";
    },
  };
}

/** @param {Wish} wish @param {Api_PriceRoute} market @returns {Plan} */
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
  const send = sender(async () => {
    const { others: _, ...priceRoute } = market;
    const built = await ask(`/transactions/${asked.chainId}?eip1559=true`, { body: {
      priceRoute, srcToken: asked.src.address, destToken: asked.dest.address, srcDecimals: asked.src.decimals, destDecimals: asked.dest.decimals,
      srcAmount: String(most), destAmount: String(least), userAddress: terms.owner,
    } });
    checkSwap(built, { ...terms, nowS: nowS() });
    const { to, data } = /** @type {{to: string, data: string}} */ (built); // as checked
    return { to, data, value: terms.value, gas: built.gas ? (BigInt(built.gas) * GAS_SPARE) / 10n : undefined };
  });
  /** @type {any} */ let receipt = null;
  const exchange = {
    name: "Have the makers sign, check the transaction, and send it",
    run: async () => {
      receipt = await send();
      return `mined in block ${Number(receipt.blockNumber)}`;
    },
  };
  /** @returns {Promise<Outcome>} */
  const outcome = async () => {
    const [paid, got] = await Promise.all([wallet().moved(receipt, asked.src.address, "paid"), wallet().moved(receipt, asked.dest.address, "received")]);
    return {
      headline: got === null ? `Swapped for ${amountOf(least, asked.dest)} or more` : `Received ${amountOf(got, asked.dest, 12)}`,
      lines: [["Paid", paid === null ? `${isSale ? "" : "at most "}${amountOf(most, asked.src, 12)}` : amountOf(paid, asked.src, 12)], ["Block", String(Number(receipt.blockNumber))]],
      hash: receipt.transactionHash, view: "",
      swap: { chainId: asked.chainId, hash: receipt.transactionHash, at: Date.now(), block: Number(receipt.blockNumber), srcToken: asked.src.address, destToken: asked.dest.address, srcAmount: String(paid ?? most), destAmount: got === null ? null : String(got) },
    };
  };
  return {
    title: `Swap ${amount(src, asked.src.address)} for ${amount(dest, asked.dest.address)}`,
    lines: [
      ["You pay", `${isSale ? "exactly" : "at most"} ${amount(most, asked.src.address, 30)}`],
      ["You receive", `${isSale ? "at least" : "exactly"} ${amount(least, asked.dest.address, 30)}`],
      ["To", `${wallet().address} (your account)`],
      ["Contract", `${router} (Router)`],
      ["You sign", "a transaction, and its gas is yours"],
    ],
    steps: isNative ? [exchange] : [allow(asked.src.address, router, most), exchange],
    outcome,
  };
}

/** Terms, and the bridge if any, within which an order of this wish is signed. @param {Wish} wish @param {Api_DeltaBlock} delta */
function orderTerms(wish, delta) {
  const { asked, slippageBps, schedule, limitAmount } = wish;
  const { chainId, destChainId, src, dest, side } = asked;
  const quoted = deltaAmounts(delta);
  const isSale = side === "SELL";
  const listed = (/** @type {string} */ address) => state.tokens.get(address.toLowerCase()) ?? null;
  const there = (/** @type {string} */ address) => state.far.get(Number(destChainId))?.tokens.get(address.toLowerCase()) ?? null;
  const bridge = destChainId ? checkBridge(delta.route, { ...asked, destChainId, via: listed, there }) : null;
  const perSlice = bounded(side, isSale ? quoted.dest : quoted.src, slippageBps);
  const bound = limitAmount ?? (schedule && !isSale ? mostOf(schedule.total, schedule.slices, perSlice) : perSlice);
  const fixed = schedule?.total ?? asked.amount;
  return {
    bridge,
    terms: {
      chainId, contract: state.contracts.delta, owner: wallet().address, srcToken: src.address, destToken: bridge?.via.address ?? dest.address, side,
      srcAmount: isSale ? fixed : bound, destAmount: isSale ? bound : fixed, deadline: nowS() + wish.lifeS, feeBps: Math.min(quoted.feeBps, FEE_BPS_MOST),
      ...(schedule && { schedule }), ...(bridge && { bridge: bridge.signed }),
    },
  };
}

/**
 * Members of the request to build a TWAP.
 * @param {{side: string, srcAmount: bigint, destAmount: bigint}} terms
 * @param {{interval: number, slices: number}} schedule
 */
const twapBody = ({ side, srcAmount, destAmount }, { interval, slices }) => ({
  interval, numSlices: slices,
  ...(side === "SELL" ? { orderType: "TWAPOrder", totalSrcAmount: String(srcAmount) } : { orderType: "TWAPBuyOrder", totalDestAmount: String(destAmount), maxSrcAmount: String(srcAmount) }),
});

/** Read and check the contract that takes the tokens. @param {import("./bridge_checks.js").CheckedBridge} bridge @param {number} chainId @param {string} delta @returns {Step} */
const checkTaker = ({ kind }, chainId, delta) => ({
  name: `Ask the chain which contract of ${kind} takes the tokens`,
  run: async () => {
    const bridges = await wallet().contractAt(delta, BRIDGES);
    return `${checkContract(chainId, kind, await wallet().contractAt(bridges, GETTERS[kind]))} (${kind})`;
  },
});

/** Refuse to go on with an order whose time is over. @param {{deadline: number}} terms */
const checkTime = ({ deadline }) => {
  if (deadline <= nowS()) throw new Error("The time of this order is over. Review the trade again.");
};

/**
 * Deposit the native tokens of an order.
 * @param {import("./checks.js").OrderTerms} terms
 * @returns {Step & {hint: () => string}} `hint`: what remains of the deposit if the order is not taken
 */
function depositFor(terms) {
  const { contract, srcAmount } = terms;
  const send = sender(() => {
    checkTime(terms);
    return { to: contract, data: DEPOSIT, value: srcAmount };
  });
  let goal = 0n;
  let isDone = false;
  return {
    name: `Deposit ${amount(srcAmount, NATIVE)} for the order`,
    run: async () => {
      const has = await wallet().deposit(contract);
      goal ||= has + srcAmount;
      if (has < goal) await send();
      isDone = true;
      return "deposited";
    },
    hint: () => (isDone ? " Your deposit remains; “Withdraw” in the dialog of your account takes it back." : ""),
  };
}

/** Take native tokens back that were deposited for orders. @param {bigint} amount @returns {Plan} */
export function withdrawPlan(amount) {
  const { delta } = state.contracts;
  const text = amountOf(amount, { symbol: state.tokens.get(NATIVE.toLowerCase())?.symbol ?? "native tokens", address: NATIVE, decimals: 18, isListed: true }, 12);
  const send = sender(() => ({ to: delta, data: withdrawNative(amount) }));
  /** @type {any} */ let receipt = null;
  return {
    title: `Withdraw ${text}`,
    lines: [["From", `your deposit at ${delta} (Delta)`], ["To", `${wallet().address} (your account)`], ["Open orders", "An order that pays from the deposit can no longer be filled"], ["You sign", "a transaction, and its gas is yours"]],
    steps: [{ name: "Send the withdrawal", run: async () => {
      receipt = await send();
      return `mined in block ${Number(receipt.blockNumber)}`;
    } }],
    outcome: async () => ({ headline: `Withdrew ${text}`, lines: [["Block", String(Number(receipt.blockNumber))]], hash: receipt.transactionHash, view: "", swap: null }),
  };
}

/** @param {Wish} wish @param {Api_DeltaBlock} delta @returns {Plan} */
export function orderPlan(wish, delta) {
  const { asked, slippageBps, schedule, limitAmount } = wish;
  const { terms, bridge } = orderTerms(wish, delta);
  const { srcAmount: most } = terms;
  const deposit = isSame(asked.src.address, NATIVE) ? depositFor(terms) : null;
  /** @type {any} */ let [built, typed, signature, record] = [];
  const build = {
    name: "Have the order built, and check it against these terms",
    run: async () => {
      built = await ask("/v2/delta/orders/build", { body: {
        route: delta.route, side: asked.side, owner: terms.owner, deadline: terms.deadline,
        ...(limitAmount === undefined ? { slippage: slippageBps } : { limitAmount: String(limitAmount) }),
        ...(schedule && twapBody(terms, schedule)),
      } });
      typed = orderToSign(built.toSign, terms);
      return "checked";
    },
  };
  const fail = (/** @type {unknown} */ error) => { throw orderFault(error, deposit?.hint() ?? ""); };
  const sign = {
    name: "Sign the order",
    run: async () => {
      try {
        checkTime(terms);
        signature = await wallet().sign(typed);
      } catch (error) {
        fail(error);
      }
      return "signed";
    },
  };
  const post = {
    name: "Send it to the venue",
    run: async () => {
      record = await ask("/v2/delta/orders", { body: { chainId: asked.chainId, order: built.toSign.value, signature, type: wish.kind === "LIMIT" ? "LIMIT" : "MARKET" } }).catch(fail);
      return "accepted";
    },
  };
  return {
    title: orderTitle(wish, terms, deltaAmounts(delta)),
    lines: orderLines(wish, terms, bridge, Boolean(deposit)),
    steps: [...(bridge ? [checkTaker(bridge, asked.chainId, terms.contract)] : []), ...(deposit ? [] : [allow(asked.src.address, terms.contract, most)]), build, ...(deposit ? [deposit] : []), sign, post],
    outcome: async () => ({
      headline: "Order placed", lines: [["State", "Agents compete for it now. It costs you no gas."]],
      hash: "", view: `order/${record.id}`, swap: null,
    }),
  };
}

/**
 * Why an order is not accepted, with what is not known of it, or what remains of its deposit.
 * @param {unknown} error @param {string} hint
 */
const orderFault = (error, hint) => new Error(error instanceof ApiError && [0, 502, 504].includes(error.status)
  ? "The venue does not answer, and may have taken the order. “Try again” sends the same order, which counts once."
  : /** @type {Error} */ (error).message + hint);

/**
 * The terms of an order in words.
 * @param {Wish} wish @param {import("./checks.js").OrderTerms} terms @param {import("./bridge_checks.js").CheckedBridge | null} bridge @param {boolean} isNative
 * @returns {[string, string][]}
 */
function orderLines({ asked, schedule }, terms, bridge, isNative) {
  const { src, dest, destChainId, side } = asked;
  const isSale = side === "SELL";
  const slices = schedule ? ` in ${schedule.slices} slices` : "";
  const there = destChainId ? `, on ${chainName(destChainId)}` : "";
  /** @type {[string, string | false | null | undefined][]} */ const lines = [
    ["You pay", `${isSale ? "exactly" : "at most"} ${amountOf(terms.srcAmount, src, 30)}${slices}`],
    ["You receive", `${isSale ? "at least" : "exactly"} ${amountOf(terms.destAmount, dest, 30)}${!schedule ? "" : isSale ? " for each slice" : slices}${there}`],
    ["Most paid, each slice", schedule && !isSale && amountOf(mostPerSlice(schedule.total, schedule.slices, terms.srcAmount), src)],
    ["Schedule", schedule && `a slice every ${duration(schedule.interval)}, all within ${duration(schedule.interval * (schedule.slices - 1))} and the auctions`],
    ["Bridge", bridge && `${bridge.name} (${bridge.kind}), about ${duration(bridge.estimatedMs / 1_000)}`],
    ["Bridge’s fee", bridge && `${amountOf(bridge.fee, bridge.via)}${schedule ? " for each slice" : ""}, in these amounts already`],
    ["If it fails", bridge && `${bridge.via.symbol} is paid back to you on ${chainName(asked.chainId)}${bridge.fillWithinS ? ` after ${duration(bridge.fillWithinS)}` : ""}`],
    ["Fee", `at most ${percent(terms.feeBps)}, in these amounts already`],
    ["Good until", moment(terms.deadline * 1_000)],
    ["To", `${terms.owner} (your account${there})`],
    ["Contract", `${terms.contract} (Delta)`],
    ["You sign", isNative ? "a deposit of the native tokens, and a message" : "a message, which costs no gas"],
  ];
  return /** @type {[string, string][]} */ (lines.filter(([, value]) => value));
}

/** The deal as it is quoted. @param {Wish} wish @param {import("./checks.js").OrderTerms} terms @param {{src: bigint, dest: bigint}} quoted */
function orderTitle({ kind, asked, schedule }, { srcAmount, destAmount }, quoted) {
  const isSale = asked.side === "SELL";
  const [pays, gets] = [amountOf(isSale || kind === "LIMIT" ? srcAmount : quoted.src, asked.src), amountOf(!isSale || kind === "LIMIT" ? destAmount : quoted.dest, asked.dest)];
  if (schedule) return `${isSale ? `Sell ${amountOf(schedule.total, asked.src)}` : `Buy ${amountOf(schedule.total, asked.dest)}`} in ${schedule.slices} slices for ${isSale ? asked.dest.symbol : asked.src.symbol}`;
  return `${kind === "LIMIT" ? "Limit order: " : ""}${isSale ? `sell ${pays} for ${gets}` : `buy ${gets} for ${pays}`}`.replace(/^./, (first) => first.toUpperCase());
}
