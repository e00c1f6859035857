// Each call of @velora-dex/sdk 9 that the story of sdk_client.mjs leaves out, against a venue; none for NFTs.
// arguments: VENUE_URL RPC_URL MAKER_KEY TAKER_KEY WETH USDC; result: outcomes (call -> "ok" or the status of the
// refusal), and the names of calls that neither story makes.
import { createPublicClient, createWalletClient, defineChain, http, publicActions } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import * as sdk from "@velora-dex/sdk";
import { WAIT_MS } from "./patience.mjs";

const ONE = 10n ** 18n, USDC = 10n ** 6n;
const LIFE_S = 3_600;
const ZERO = "0x0000000000000000000000000000000000000000";
// Calls that sdk_client.mjs makes.
const OF_THE_STORY = [
  "getRate", "approveToken", "buildTx", "approveMakerTokenForLimitOrder", "buildLimitOrder", "signLimitOrder", "postLimitOrder", "getLimitOrders", "postP2POrder",
  "getRequiredBalance", "fillOrderDirectly", "cancelLimitOrder", "getLimitOrderByHash", "buildLimitOrderTx", "getTokens", "getBalance", "getBalances", "getAllowance",
  "getDeltaPrice", "buildDeltaOrder", "signDeltaOrder", "buildTWAPDeltaOrder", "signTWAPDeltaOrder", "postTWAPDeltaOrder",
];
const NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE";

export async function run([venue, rpc, makerKey, takerKey, weth, usdc]) {
  const transport = http(rpc, { timeout: WAIT_MS });
  const chainId = await createPublicClient({ transport }).getChainId();
  const chain = defineChain({
    id: chainId, name: "devnet", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [rpc] } },
  });
  const done = async (hash) => {
    const receipt = await reader.waitForTransactionReceipt({ hash, timeout: WAIT_MS });
    if (receipt.status !== "success") throw new Error(`${hash} reverted`);
  };
  const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
  // Paths that moved since, as docs/guides/clients.md corrects them.
  const plain = sdk.constructFetchFetcher(fetch);
  const fetcher = (call) => plain({ ...call, url: call.url.replace("/delta/", "/v2/delta/") });
  const sdkOf = (key) => {
    const account = privateKeyToAccount(key);
    // The node signs for its account and numbers its transactions, as a wallet does: approveTokenBulk sends several at once.
    const wallet = createWalletClient({ account: account.address, chain, transport }).extend(publicActions);
    return sdk.constructFullSDK({
      chainId, apiURL: venue, version: "6.2", fetcher, contractCaller: sdk.constructViemContractCaller(wallet, account.address),
    });
  };
  const { limitOrders: orders } = sdkOf(makerKey);
  const { swap, limitOrders: fills, delta, quote } = sdkOf(takerKey);
  const maker = privateKeyToAccount(makerKey).address, owner = privateKeyToAccount(takerKey).address;
  const outcomes = {};
  async function tried(name, call) {
    try {
      const answer = await call();
      outcomes[name] = "ok";
      return answer;
    } catch (error) {
      outcomes[name] = error.response?.status ?? error.status ?? String(error);
      return undefined;
    }
  }

  const pair = { srcToken: weth, destToken: usdc, srcDecimals: 18, destDecimals: 6 };
  const wish = { ...pair, amount: ONE.toString(), side: "SELL", userAddress: owner };
  for (const mode of ["delta", "market", "all"]) await tried(`getQuote ${mode}`, () => quote.getQuote({ ...wish, mode }));

  for (const name of ["getContracts", "getSpender", "getAugustusSwapper", "getAugustusRFQ", "getAdapters"]) {
    await tried(name, () => swap[name]());
  }
  await tried("getAllowances", () => swap.getAllowances(owner, [weth, usdc]));
  await tried("approveTokenBulk", async () => {
    for (const hash of await swap.approveTokenBulk((10n * ONE).toString(), [weth, usdc])) await done(hash);
  });
  await tried("getRateByRoute", () => swap.getRateByRoute({ route: [weth, usdc], amount: ONE.toString(), side: "SELL", srcDecimals: 18, destDecimals: 6, userAddress: owner }));
  await tried("getSwapTxData", () => swap.getSwapTxData({ ...wish, slippage: 100 }));

  const terms = {
    maker, makerAsset: weth, takerAsset: usdc, makerAmount: (ONE / 10n).toString(), takerAmount: (260n * USDC).toString(),
    expiry: Math.floor(Date.now() / 1_000) + LIFE_S,
  };
  for (const name of ["getLimitOrdersContract", "getTokenTransferProxy"]) await tried(name, () => orders[name]());
  await tried("approveTakerTokenForLimitOrder", async () => done(await fills.approveTakerTokenForLimitOrder((10_000n * USDC).toString(), usdc)));
  await tried("approveTakerTokenForFillingP2POrderDirectly", async () => done(await fills.approveTakerTokenForFillingP2POrderDirectly((10_000n * USDC).toString(), usdc)));
  const posted = [await tried("submitP2POrder", () => orders.submitP2POrder(terms)), await orders.submitP2POrder(terms)];
  await tried("submitLimitOrder", () => orders.submitLimitOrder(terms));
  await tried("getLimitOrdersRate", () => fills.getLimitOrdersRate({ ...pair, userAddress: owner }, posted));
  await tried("buildSwapAndLimitOrderTx", async () => {
    const priceRoute = await swap.getRate({ ...wish, amount: (ONE / 5n).toString() });
    return fills.buildSwapAndLimitOrderTx({ priceRoute, orders: posted, userAddress: owner, srcDecimals: 18, slippage: 100 });
  });
  await tried("cancelLimitOrderBulk", async () => done(await orders.cancelLimitOrderBulk(posted.map((order) => order.orderHash))));

  await tried("getDeltaContract", () => delta.getDeltaContract());
  await tried("getPartnerFee", () => delta.getPartnerFee({ partner: "a-partner" }));
  await tried("getBridgeInfo", () => delta.getBridgeInfo());
  await tried("getBridgeProtocols", () => delta.getBridgeProtocols());
  await tried("isTokenSupportedInDelta", () => delta.isTokenSupportedInDelta(weth));
  await tried("getRequiredBalanceForDeltaLimitOrders", () => delta.getRequiredBalanceForDeltaLimitOrders({ userAddress: owner }));
  const bridge = { protocolSelector: "0x00000000", destinationChainId: 0, outputToken: ZERO, scalingFactor: 0, protocolData: "0x" };
  const some = ONE / 10n, far = { srcAmount: some.toString(), destAmount: (100_000n * USDC).toString() };
  const price = { ...far, destToken: usdc, bridge, partner: "anon", partnerFee: 0.01 };
  const asked = { owner, srcToken: weth, destToken: usdc, partner: "anon", deltaPrice: price, ...far };
  const order = await delta.buildDeltaOrder({ ...asked, nonce: Date.now() + 1 });
  await tried("approveTokenForDelta", async () => done(await delta.approveTokenForDelta(ONE.toString(), weth)));
  const hash = await tried("hashDeltaOrder", () => delta.hashDeltaOrder(order.data));
  await tried("preSignDeltaOrder", async () => done(await delta.preSignDeltaOrder(order)));
  const record = await tried("postDeltaOrder, presigned", () => delta.postDeltaOrder({ order: order.data, signature: "0x", partner: "anon", type: "LIMIT" }));
  await tried("getDeltaOrderByHash", () => delta.getDeltaOrderByHash(hash));
  await tried("getDeltaOrderById", () => delta.getDeltaOrderById(record.id));
  await tried("getDeltaOrders", () => delta.getDeltaOrders({ userAddress: owner }));
  await tried("cancelLimitDeltaOrders", () => delta.cancelLimitDeltaOrders({ orderIds: [record.id] }));
  await tried("submitDeltaOrder", async () => {
    const { id } = await delta.submitDeltaOrder({ ...asked, nonce: Date.now() + 2, type: "LIMIT" });
    await delta.cancelLimitDeltaOrders({ orderIds: [id] });
  });
  const deposit = await delta.buildDeltaOrder({ ...asked, srcToken: NATIVE, nonce: Date.now() + 3 });
  await tried("depositNativeAndPreSignDeltaOrder", async () => done(await delta.depositNativeAndPreSignDeltaOrder({ signableOrderData: deposit, depositAmount: some.toString() })));
  await tried("cancelAndWithdrawDeltaOrder", async () => done(await delta.cancelAndWithdrawDeltaOrder({ order: deposit.data })));
  const slices = {
    owner, srcToken: weth, destToken: usdc, partner: "anon", deltaPrice: price, onChainOrderType: "TWAPOrder",
    totalSrcAmount: (2n * some).toString(), numSlices: 2, interval: 60,
  };
  await tried("submitTWAPDeltaOrder", async () => {
    const { id } = await delta.submitTWAPDeltaOrder({ ...slices, nonce: Date.now() + 4 });
    await delta.cancelLimitDeltaOrders({ orderIds: [id] });
  });
  const twap = await delta.buildTWAPDeltaOrder({ ...slices, nonce: Date.now() + 5 });
  await tried("preSignTWAPDeltaOrder", async () => done(await delta.preSignTWAPDeltaOrder(twap)));
  await tried("hashTWAPDeltaOrder", () => delta.hashTWAPDeltaOrder(twap.data, "TWAPOrder"));
  await tried("cancelTWAPAndWithdrawDeltaOrder", async () => done(await delta.cancelTWAPAndWithdrawDeltaOrder(twap.data)));
  const purchase = await delta.buildTWAPDeltaOrder({
    ...slices, onChainOrderType: "TWAPBuyOrder", totalSrcAmount: undefined, maxSrcAmount: (2n * some).toString(), totalDestAmount: (2n * USDC).toString(), nonce: Date.now() + 6,
  });
  await tried("cancelTWAPBuyAndWithdrawDeltaOrder", async () => done(await delta.cancelTWAPBuyAndWithdrawDeltaOrder(purchase.data)));
  const hashes = [[delta.hashDeltaOrderTypedData(order), "hashDeltaOrderTypedData"], [delta.hashTWAPDeltaOrderTypedData(twap), "hashTWAPDeltaOrderTypedData"]];
  for (const [found, name] of hashes) await tried(name, async () => found);
  await tried("setDeltaOrderPreSignature", async () => done(await delta.setDeltaOrderPreSignature(hashes[0][0])));
  await tried("setTWAPDeltaOrderPreSignature", async () => done(await delta.setTWAPDeltaOrderPreSignature(hashes[1][0])));
  await tried("depositNativeAndPreSign", async () => done(await delta.depositNativeAndPreSign({ orderHash: hash, depositAmount: some.toString() })));
  await tried("withdrawDeltaNative", async () => done(await delta.withdrawDeltaNative(some.toString())));
  await tried("signCancelLimitDeltaOrderRequest", () => delta.signCancelLimitDeltaOrderRequest({ orderIds: [record.id] }));
  await tried("postCancelLimitDeltaOrderRequest", async () => {
    const { id } = await delta.submitDeltaOrder({ ...asked, nonce: Date.now() + 7, type: "LIMIT" });
    const signature = await delta.signCancelLimitDeltaOrderRequest({ orderIds: [id] });
    await delta.postCancelLimitDeltaOrderRequest({ orderIds: [id], signature });
  });
  const outer = await tried("buildExternalDeltaOrder", () => delta.buildExternalDeltaOrder({ ...asked, handler: maker, data: "0x" }));
  await tried("hashExternalDeltaOrder", () => delta.hashExternalDeltaOrder(outer.data));
  const outerHash = await tried("hashExternalDeltaOrderTypedData", async () => delta.hashExternalDeltaOrderTypedData(outer));
  await tried("setExternalDeltaOrderPreSignature", async () => done(await delta.setExternalDeltaOrderPreSignature(outerHash)));
  await tried("preSignExternalDeltaOrder", async () => done(await delta.preSignExternalDeltaOrder(outer)));
  const outerSignature = await tried("signExternalDeltaOrder", () => delta.signExternalDeltaOrder(outer));
  // The handler is an account without code: the order is stored, and nobody settles it.
  await tried("postExternalDeltaOrder", () => delta.postExternalDeltaOrder({ order: outer.data, signature: outerSignature, partner: "anon" }));
  await tried("submitExternalDeltaOrder", () => delta.submitExternalDeltaOrder({ ...asked, handler: maker, data: "0x", nonce: Date.now() + 8 }));
  const made = new Set([...OF_THE_STORY, ...Object.keys(outcomes).map((name) => name.split(/[ ,]/)[0])]);
  const untried = [swap, fills, delta, quote].flatMap((module) => Object.keys(module)).filter((name) => typeof name === "string" && !made.has(name));
  return { outcomes, untried: untried.filter((name) => !["apiURL", "version", "chainId"].includes(name)) };
}
