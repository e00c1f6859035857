// A public SDK of the protocol family against a venue: a Market swap, OTC orders, and Delta as far as its API goes.
// arguments: 6|7|9 VENUE_URL RPC_URL MAKER_KEY TAKER_KEY WETH USDC
import { createPublicClient, createWalletClient, defineChain, hashTypedData, http, parseAbi, publicActions } from "viem";
import { Contract, JsonRpcProvider, Wallet } from "ethers";
import { privateKeyToAccount } from "viem/accounts";
import * as sdk7 from "@paraswap/sdk";
import * as sdk9 from "@velora-dex/sdk";
import sdk6 from "paraswap-sdk-6";
import { WAIT_MS } from "./patience.mjs";

const SDKS = { 6: sdk6, 7: sdk7, 9: sdk9 };
const ONE = 10n ** 18n, USDC = 10n ** 6n;
const LIFE_S = 3_600;
const NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE";
const APPROVED = (7_000n * USDC).toString();
const abi = parseAbi(["function balanceOf(address) view returns (uint256)"]);

// Contract caller and signer for major 6, which has no caller for viem, nor for this ethers.
function ethersCaller(rpc, key) {
  const provider = new JsonRpcProvider(rpc, undefined, { cacheTimeout: -1, pollingInterval: 100 });
  const wallet = new Wallet(key, provider);
  const method = ({ address, abi, contractMethod }) => new Contract(address, abi, wallet)[contractMethod];
  return {
    staticCall: (call) => method(call).staticCall(...call.args),
    transactCall: async (call) => (await method(call)(...call.args)).hash,
    signTypedDataCall: ({ domain, types, data }) => wallet.signTypedData(domain, types, data),
  };
}

export async function run([major, venue, rpc, makerKey, takerKey, weth, usdc]) {
  const sdk = SDKS[major];
  const transport = http(rpc, { timeout: WAIT_MS });
  const chainId = await createPublicClient({ transport }).getChainId();
  const chain = defineChain({
    id: chainId, name: "devnet", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [rpc] } },
  });
  const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
  const done = (hash) => reader.waitForTransactionReceipt({ hash, timeout: WAIT_MS });
  // A key of another service does no harm, and answers say that it is unknown.
  const statuses = [];
  const calls = async (url, options) => {
    const response = await fetch(url, options);
    if (response.ok) statuses.push(response.headers.get("x-api-key-status"));
    return response;
  };
  const fetcher = sdk.constructFetchFetcher(calls, { apiKey: "a-key-of-another-service" });
  const partyOf = (key) => {
    const account = privateKeyToAccount(key);
    const wallet = createWalletClient({ account, chain, transport }).extend(publicActions);
    const contractCaller = sdk.constructViemContractCaller?.(wallet, account.address) ?? ethersCaller(rpc, key);
    const config = { chainId, apiURL: venue, version: "6.2", fetcher, contractCaller };
    return { account, wallet, config, sdk: sdk.constructFullSDK(config) };
  };
  const maker = partyOf(makerKey), taker = partyOf(takerKey);
  const balance = (token, party) => reader.readContract({ address: token, abi, functionName: "balanceOf", args: [party.account.address] });
  const balances = async (party) => ({ weth: await balance(weth, party), usdc: await balance(usdc, party) });

  return {
    market: await market(), otc: await otc(), router: await router(), users: await users(), delta: await delta(),
    keyStatuses: [...new Set(statuses)],
  };

  // 200, or the status of a refusal.
  function status(call) {
    return call.then(() => 200, (error) => error.response?.status ?? error.status ?? String(error));
  }

  async function market() {
    const { swap } = taker.sdk;
    const asked = { srcToken: weth, destToken: usdc, srcDecimals: 18, destDecimals: 6, amount: ONE.toString(), side: "SELL" };
    const priceRoute = await swap.getRate({ ...asked, userAddress: taker.account.address });
    await done(await swap.approveToken(priceRoute.srcAmount, weth));
    const before = await balances(taker);
    const built = await swap.buildTx({
      srcToken: weth, destToken: usdc, srcAmount: priceRoute.srcAmount, slippage: 100, priceRoute, userAddress: taker.account.address,
    });
    const { to, data, value } = built;
    const receipt = await done(await taker.wallet.sendTransaction({ to, data, value: BigInt(value) }));
    const after = await balances(taker);
    const spender = await swap.getSpender();
    return {
      status: receipt.status, to, spender, quoted: priceRoute.destAmount, spent: before.weth - after.weth, received: after.usdc - before.usdc,
    };
  }

  async function otc() {
    const orders = maker.sdk.limitOrders, fills = taker.sdk.limitOrders;
    await done(await orders.approveMakerTokenForLimitOrder((10n * ONE).toString(), weth));
    await done(await fills.approveMakerTokenForLimitOrder((100_000n * USDC).toString(), usdc));
    const terms = {
      maker: maker.account.address, makerAsset: weth, takerAsset: usdc, makerAmount: ONE.toString(), takerAmount: (2_600n * USDC).toString(),
      expiry: Math.floor(Date.now() / 1_000) + LIFE_S,
    };
    const signed = async (more) => {
      const order = await orders.buildLimitOrder({ ...terms, ...more });
      return { ...order.data, signature: await orders.signLimitOrder(order), domain: order.domain.name };
    };
    const { domain, ...open } = await signed({});
    const { domain: _, ...made } = await signed({ taker: taker.account.address });
    const refusals = {
      postLimitOrder: await status(orders.postLimitOrder(open)),
      "getLimitOrders of type LIMIT": await status(orders.getLimitOrders({ maker: maker.account.address, type: "LIMIT" })),
    };
    const posted = await orders.postP2POrder(open);
    const p2p = await orders.postP2POrder(made);
    const listed = await orders.getLimitOrders({ maker: maker.account.address, type: "P2P" });
    const required = await orders.getRequiredBalance({ maker: maker.account.address, token: weth });
    const before = { maker: await balances(maker), taker: await balances(taker) };
    const filled = major === "6" ? fills.fillOrderDirectly(p2p, p2p.signature) : fills.fillOrderDirectly({ order: p2p, signature: p2p.signature });
    await done(await filled);
    const after = { maker: await balances(maker), taker: await balances(taker) };
    await done(await orders.cancelLimitOrder(posted.orderHash));
    const states = [];
    for (const hash of [p2p.orderHash, posted.orderHash]) states.push(await settled(orders, hash));
    return {
      refusals, required: required[weth.toLowerCase()], domain, types: [posted.type, p2p.type], states, isListed: listed.orders.some((order) => order.orderHash === posted.orderHash),
      hashes: [posted.orderHash, p2p.orderHash],
      gained: { maker: after.maker.usdc - before.maker.usdc, taker: after.taker.weth - before.taker.weth },
    };
  }

  // The taker fills an order for anybody through the Router; these clients send no slippage with orders.
  async function router() {
    const { swap, limitOrders } = taker.sdk;
    const built = await maker.sdk.limitOrders.buildLimitOrder({
      maker: maker.account.address, makerAsset: weth, takerAsset: usdc, makerAmount: ONE.toString(), takerAmount: (2_600n * USDC).toString(),
      expiry: Math.floor(Date.now() / 1_000) + LIFE_S,
    });
    const posted = await maker.sdk.limitOrders.postP2POrder({ ...built.data, signature: await maker.sdk.limitOrders.signLimitOrder(built) });
    await done(await swap.approveToken(APPROVED, usdc));
    const before = await balances(taker);
    const { to, data, value } = await limitOrders.buildLimitOrderTx({
      orders: [posted], srcDecimals: 6, destDecimals: 18, userAddress: taker.account.address,
    });
    const receipt = await done(await taker.wallet.sendTransaction({ to, data, value: BigInt(value) }));
    const after = await balances(taker);
    return {
      to, status: receipt.status, state: await settled(limitOrders, posted.orderHash),
      spent: before.usdc - after.usdc, received: after.weth - before.weth,
    };
  }

  // The taker's tokens as the venue tells them, beside what the chain says.
  async function users() {
    const { swap } = taker.sdk;
    const owner = taker.account.address;
    const listed = await swap.getTokens();
    const bySymbol = await swap.getBalance(owner, "USDC");
    return {
      tokens: listed.map(({ symbol, address, decimals, network }) => ({ symbol, address, decimals, network })),
      byAddress: await swap.getBalance(owner, usdc), bySymbol, native: await swap.getBalance(owner, NATIVE),
      allowance: await swap.getAllowance(owner, usdc), none: await swap.getAllowance(owner, weth),
      balances: (await swap.getBalances(owner)).map(({ symbol }) => symbol),
      onChain: { usdc: await balance(usdc, taker), native: await reader.getBalance({ address: owner }) },
    };
  }

  async function settled(orders, hash) {
    for (const end = Date.now() + WAIT_MS; Date.now() < end;) {
      const { state } = await orders.getLimitOrderByHash(hash);
      if (state !== "PENDING") return state;
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
    throw new Error(`${hash} stays PENDING`);
  }

  // Prices and the order's record are of an older API; what is signed and posted is the same from major 9 on.
  async function delta() {
    if (!taker.sdk.delta) return null;
    const refusals = {};
    const asked = { srcToken: weth, destToken: usdc, srcDecimals: 18, destDecimals: 6, amount: ONE.toString() };
    refusals.getDeltaPrice = await status(taker.sdk.delta.getDeltaPrice({ ...asked, userAddress: taker.account.address }));
    refusals.getDeltaOrders = await status(taker.sdk.delta.getDeltaOrders({ userAddress: taker.account.address }));
    refusals.getDeltaOrderById = await status(taker.sdk.delta.getDeltaOrderById("5b8a5b5e-0000-4000-8000-000000000000"));
    if (major === "7") return { refusals };
    // The paths that moved are put right in the fetcher, which any client may set.
    const moved = (params) => fetcher({ ...params, url: params.url.replace("/delta/", "/v2/delta/") });
    const now = sdk.constructFullSDK({ ...taker.config, fetcher: moved }).delta;
    const query = new URLSearchParams({ ...asked, chainId, side: "SELL", userAddress: taker.account.address });
    const { route } = await (await fetch(`${venue}/v2/delta/prices?${query}`)).json();
    await done(await now.approveTokenForDelta((2n * ONE).toString(), weth));
    const before = await balances(taker);
    const bridge = { protocolSelector: "0x00000000", destinationChainId: 0, outputToken: "0x0000000000000000000000000000000000000000", scalingFactor: 0, protocolData: "0x" };
    const destAmount = route.destination.output.amount;
    const order = await now.buildDeltaOrder({
      owner: taker.account.address, srcToken: weth, destToken: usdc, srcAmount: ONE.toString(), slippage: 100, partner: "anon",
      deltaPrice: { srcAmount: ONE.toString(), destAmount, destToken: usdc, bridge, partner: "anon", partnerFee: 0.01 },
    });
    const signature = await now.signDeltaOrder(order);
    const record = await now.postDeltaOrder({ order: order.data, signature, partner: "anon" });
    const hash = hashTypedData({ domain: order.domain, types: order.types, primaryType: "Order", message: order.data });
    let told;
    for (const end = Date.now() + WAIT_MS; Date.now() < end && told?.status !== "COMPLETED";) {
      told = await now.getDeltaOrderById(record.id);
      if (told.status !== "COMPLETED") await new Promise((resolve) => setTimeout(resolve, 50));
    }
    const after = await balances(taker);
    // Orders that rest, far from the price: one signature cancels both.
    const some = ONE / 10n, much = (100_000n * USDC).toString();
    const far = { srcAmount: some.toString(), destAmount: much, destToken: usdc, bridge, partner: "anon", partnerFee: 0.01 };
    const resting = { owner: taker.account.address, srcToken: weth, destToken: usdc, partner: "anon", deltaPrice: far };
    const limit = await now.buildDeltaOrder({ ...resting, srcAmount: some.toString(), destAmount: much, nonce: Date.now() + 1 });
    const slices = await now.buildTWAPDeltaOrder({
      ...resting, onChainOrderType: "TWAPOrder", totalSrcAmount: (2n * some).toString(), numSlices: 2, interval: 60, nonce: Date.now() + 2,
    });
    const rests = [
      await now.postDeltaOrder({ order: limit.data, signature: await now.signDeltaOrder(limit), partner: "anon", type: "LIMIT" }),
      await now.postTWAPDeltaOrder({
        order: slices.data, signature: await now.signTWAPDeltaOrder(slices), partner: "anon", onChainOrderType: "TWAPOrder",
      }),
    ];
    const cancelled = await now.cancelLimitDeltaOrders({ orderIds: rests.map((one) => one.id) });
    const ended = [];
    for (const { id } of rests) ended.push((await now.getDeltaOrderById(id)).status);
    return {
      refusals, cancelled, ended, rested: rests.map((one) => one.status), kinds: rests.map((one) => one.onChainOrderType), domain: order.domain, hash, orderHash: record.orderHash, status: told.status, quoted: destAmount,
      spent: before.weth - after.weth, received: after.usdc - before.usdc,
    };
  }
}
