// Each request of the newest public SDK (@velora-dex/sdk), made as that package makes it, and what it reads of the
// answers. Its repository (VeloraDEX/sdk) has a list of API endpoints, and types for the answers;
// the seven for NFTs, which it calls deprecated, are left out. The registry of the tests has no later package than 9.5.4,
// so the requests are written out here; orders of the OTC book, whose struct has not changed, are signed by that package.
// arguments: VENUE_URL RPC_URL MAKER_KEY TAKER_KEY WETH USDC FAR_CHAIN FAR_TOKEN FAR_DECIMALS
// result: outcomes (call -> "ok", or what was refused or is missing in the answer); the status that the market order ends
// with, the number of the owner's orders, and the number of lanes of Across
import { createPublicClient, createWalletClient, defineChain, erc20Abi, http } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { constructFetchFetcher, constructPartialSDK, constructBuildLimitOrder, constructSignLimitOrder, constructViemContractCaller } from "@velora-dex/sdk";
import { WAIT_MS } from "./patience.mjs";

const ONE = 10n ** 18n, USDC = 10n ** 6n;
const LIFE_S = 3_600, PAUSE_MS = 200;
const VERSION = "6.2";

// What a shape says of a value: a type, a list of one shape, an object of its members, `nullable`, or `record`.
const nullable = (shape) => (value) => (value === null ? [] : faults(value, shape));
const record = (shape) => (value) => Object.entries(value).flatMap(([name, each]) => faults(each, shape, name));
const anything = () => [];
function faults(value, shape, path = "") {
  if (typeof shape === "function") return shape(value);
  if (typeof shape === "string") return typeof value === shape ? [] : [`${path}: ${JSON.stringify(value)} is no ${shape}`];
  if (value === null || typeof value !== "object") return [`${path}: ${JSON.stringify(value)}`];
  if (Array.isArray(shape)) return Array.isArray(value) ? value.flatMap((each, at) => faults(each, shape[0], `${path}[${at}]`)) : [`${path}: no list`];
  return Object.entries(shape).flatMap(([name, inner]) => faults(value[name], inner, `${path}.${name}`));
}
const strings = (names) => Object.fromEntries(names.split(" ").map((name) => [name, "string"]));

const token = { chainId: "number", address: "string" };
const amount = { token, ...strings("amount amountUSD") };
const step = { input: amount, output: amount };
const bridge = { ...strings("protocol"), estimatedTimeMs: "number", tags: ["string"], contractParams: { ...strings("protocolSelector outputToken protocolData"), scalingFactor: "number" } };
const route = { origin: step, destination: step, bridge: nullable(bridge), fees: { gas: amount, bridge: [amount] } };
const deltaPrice = {
  ...strings("id side spender"), inputToken: token, outputToken: token, route, alternatives: [route], partner: { name: "string", feePercent: "number" },
};
const built = {
  orderHash: "string",
  toSign: { domain: { ...strings("name version verifyingContract"), chainId: "number" }, types: record([strings("name type")]), value: { owner: "string" } },
};
const orderSide = (value) => faults(value, "amount" in value ? { chainId: "number", ...strings("token amount") } : { chainId: "number", token: "string", expectedAmount: nullable("string"), executedAmount: nullable("string") });
const auction = {
  ...strings("id status side type onChainOrderType owner beneficiary orderHash partner createdAt updatedAt expiresAt"), input: orderSide, output: orderSide, order: { owner: "string" },
  transactions: [{ originTx: "string", destinationTx: nullable("string"), filledPercent: "number", spentAmount: nullable("string"), receivedAmount: nullable("string") }],
};
const auctions = { data: [auction], total: "number", page: "number", limit: "number", hasMore: "boolean" };
const priceRoute = {
  ...strings("srcToken destToken srcAmount destAmount gasCost gasCostUSD version contractAddress tokenTransferProxy contractMethod srcUSD destUSD partner hmac side"),
  blockNumber: "number", network: "number", srcDecimals: "number", destDecimals: "number", partnerFee: "number", maxImpactReached: "boolean",
  bestRoute: [{ percent: "number", swaps: [{ ...strings("srcToken destToken"), srcDecimals: "number", destDecimals: "number", swapExchanges: [{ ...strings("exchange srcAmount destAmount"), percent: "number" }] }] }],
};
const listed = { tokens: [{ chainId: "number", ...strings("address name symbol"), decimals: "number", sources: ["string"], categories: ["string"] }] };
const held = { ...strings("address symbol balance allowance"), decimals: "number" };
const otcOrder = {
  ...strings("nonceAndMeta maker taker makerAsset takerAsset makerAmount takerAmount makerBalance signature orderHash state type takerFromMeta fillableBalance reservedBalance swappableBalance"),
  chainId: "number", expiry: "number", createdAt: "number", updatedAt: "number", permitMakerAsset: nullable("string"), transactionHash: nullable("string"),
};
const otcOrders = { orders: [otcOrder], limit: "number", offset: "number", total: "number", hasMore: "boolean" };

// Undefined members are left out, all others become strings; lists were joined by commas before.
const query = (members) => {
  const text = new URLSearchParams(Object.entries(members).filter(([, value]) => value !== undefined).map(([name, value]) => [name, String(value)])).toString();
  return text && `?${text}`;
};

export async function run([venue, rpc, makerKey, takerKey, weth, usdc, farChain, farToken, farDecimals]) {
  const transport = http(rpc, { timeout: WAIT_MS });
  const chainId = await createPublicClient({ transport }).getChainId();
  const chain = defineChain({
    id: chainId, name: "devnet", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [rpc] } },
  });
  const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
  const [maker, account] = [makerKey, takerKey].map((key) => privateKeyToAccount(key));
  const owner = account.address;
  const wallet = createWalletClient({ account, chain, transport });
  const outcomes = {};

  async function call(name, path, shape, { method = "GET", body } = {}) {
    const options = { method, ...(body && { body: JSON.stringify(body), headers: { "Content-Type": "application/json" } }) };
    const response = await fetch(venue + path, options);
    const told = await response.json();
    const wrong = response.ok ? faults(told, shape) : [`${response.status} ${JSON.stringify(told)}`];
    outcomes[name] = wrong.length ? `${path}: ${wrong.slice(0, 3).join("; ")}` : "ok";
    if (!response.ok) throw new Error(outcomes[name]);
    return told;
  }
  const post = (name, path, shape, body) => call(name, path, shape, { method: "POST", body });

  const pair = { srcToken: weth, destToken: usdc, srcDecimals: 18, destDecimals: 6 };
  // The wallet signs the one type that no other type has as a member.
  const signed = (of, { types, domain, value }) => {
    const inner = new Set(Object.values(types).flatMap((members) => members.map((member) => member.type)));
    return of.signTypedData({ types, domain, message: value, primaryType: Object.keys(types).find((type) => !inner.has(type)) });
  };

  // swap
  const version = VERSION;
  const rate = await call("getRate", `/prices/${query({ ...pair, chainId, version, amount: ONE, side: "SELL", userAddress: owner, includeDEXS: undefined, maxImpact: 20 })}`, { priceRoute });
  await call("getRateByRoute", `/prices/${query({ route: [weth, usdc].join("-"), srcDecimals: 18, destDecimals: 6, chainId, version, amount: ONE, side: "SELL" })}`, { priceRoute });
  await call("getSwapTxData", `/swap/${query({ ...pair, chainId, version, amount: ONE, side: "SELL", userAddress: owner, slippage: 100 })}`, { priceRoute, txParams: strings("from to value data") });
  const { AugustusRFQ, ParaswapDelta } = await call("getContracts", `/adapters/contracts${query({ chainId, version })}`, strings("AugustusSwapper TokenTransferProxy AugustusRFQ ParaswapDelta"));
  await call("getAdapters", `/adapters/list${query({ chainId, version })}`, anything);
  await call("getTokens", `/fiat/tokens/${chainId}`, listed);
  await call("getTokens of a category", `/fiat/tokens/${chainId}${query({ category: "stablecoin" })}`, listed);
  await call("getAllTokens", "/fiat/tokens/all", listed);
  await call("getTokenCategories", "/fiat/tokens/categories", { categories: [strings("id name")] });
  await call("getBalances", `/users/tokens/${chainId}/${owner}`, { tokens: [held] });
  await call("getBalance", `/users/tokens/${chainId}/${owner}/${usdc}`, { token: held });

  // quote
  const wish = { ...pair, amount: ONE, side: "SELL", chainId, userAddress: owner, partner: "a-partner" };
  await call("getQuote delta", `/v2/quote${query({ ...wish, mode: "delta" })}`, { delta: deltaPrice });
  await call("getQuote market", `/v2/quote/${query({ ...wish, mode: "market" })}`, { market: priceRoute });
  await call("getQuote all", `/v2/quote${query({ ...wish, mode: "all", maxImpact: 15 })}`, { delta: deltaPrice });

  // Delta: prices
  const prices = "/v2/delta/prices";
  const price = await call("getDeltaPrice", `${prices}${query({ ...wish, partnerFeeBps: 10, allowBridgeAndSwap: true, degenMode: false })}`, deltaPrice);
  const purchase = await call("getDeltaPrice, a purchase", `${prices}${query({ ...wish, side: "BUY", amount: 1_000n * USDC, maxImpact: 15, maxUSDImpact: 1_000 })}`, deltaPrice);
  const across = { destChainId: farChain, destToken: farToken, allowBridgeAndSwap: true, includeBridges: ["Across", "CCTP"].join(",") };
  await call("getDeltaPrice, to another chain", `${prices}${query({ ...wish, destDecimals: farDecimals, amount: 10n * ONE, beneficiary: owner, ...across })}`, deltaPrice);
  const agents = await call("getAgentsList", `/v2/delta/agents/list/${chainId}`, ["string"]);
  await call("getDeltaPrice of some agents", `${prices}${query({ ...wish, includeAgents: agents.slice(0, 2).join(",") })}`, deltaPrice);
  const { routes } = await call("getBridgeRoutes", `${prices}/bridge-routes${query({ allowBridgeAndSwap: false, bridges: "Across" })}`, { routes: [{ srcChainId: "number", destChainId: "number", tokens: ["string"] }] });
  await call("getBridgeProtocols", `${prices}/bridge-protocols`, { bridgeProtocols: [strings("protocol displayName icon")] });
  await call("isTokenSupportedInDelta", `${prices}/is-token-supported/${query({ token: weth, chainId })}`, { supported: "boolean" });
  await call("getPartnerFee", `/prices/partnerfee/${chainId}/${query({ partner: "a-partner" })}`, { partnerFee: "number", partnerAddress: "string", takeSurplus: "boolean" });

  // Delta: orders are built by the venue, signed, and posted as they were built
  const orders = "/v2/delta/orders", build = `${orders}/build`;
  const common = { owner, route: price.route, deadline: Math.floor(Date.now() / 1_000) + LIFE_S, slippage: 100, partner: "a-partner" };
  const approval = await wallet.writeContract({ address: weth, abi: erc20Abi, functionName: "approve", args: [ParaswapDelta, 100n * ONE] });
  await reader.waitForTransactionReceipt({ hash: approval, timeout: WAIT_MS });
  const market = await post("buildDeltaOrder", build, built, { ...common, side: "SELL", orderType: "Order" });
  const bought = await post("buildDeltaOrder, a purchase", build, built, { ...common, route: purchase.route, side: "BUY", orderType: "Order", partiallyFillable: false, capSurplus: true });
  const limit = await post("buildDeltaOrder, a limit", build, built, { ...common, side: "SELL", orderType: "Order", limitAmount: (100_000n * USDC).toString(), metadata: "0x", nonce: String(Date.now()) });
  const slice = ONE.toString(), total = (2n * ONE).toString();
  const twap = await post("buildTWAPDeltaOrder", build, built, { ...common, side: "SELL", orderType: "TWAPOrder", totalSrcAmount: total, interval: 60, numSlices: 2, limitAmount: (100_000n * USDC).toString() });
  const twapBuy = await post("buildTWAPDeltaOrder, a purchase", build, built, {
    ...common, route: purchase.route, side: "BUY", orderType: "TWAPBuyOrder", interval: 60, numSlices: 2,
    totalDestAmount: (2_000n * USDC).toString(), maxSrcAmount: slice,
  });
  const outer = await post("buildExternalDeltaOrder", build, built, { ...common, side: "SELL", orderType: "ExternalOrder", handler: maker.address, data: "0x" });
  async function submitted(name, { toSign }, type, more = {}, search = "") {
    const body = { signature: await signed(account, toSign), order: toSign.value, chainId, partner: "a-partner", type, ...more };
    return post(name, orders + search, auction, body);
  }
  const { id } = await submitted("postDeltaOrder", market, "MARKET", {}, query({ degenMode: false }));
  await submitted("postDeltaOrder, a purchase", bought, "MARKET", { partiallyFillable: false });
  const resting = [
    await submitted("postDeltaOrder, a limit", limit, "LIMIT", { includeAgents: agents }),
    await submitted("postTWAPDeltaOrder", twap, "LIMIT", { onChainOrderType: "TWAPOrder" }, query({ degenMode: true })),
    await submitted("postTWAPDeltaOrder, a purchase", twapBuy, undefined, { onChainOrderType: "TWAPBuyOrder" }),
    await submitted("postExternalDeltaOrder", outer, undefined),
  ].map((each) => each.id);
  let ended = await call("getDeltaOrderById", `${orders}/${id}`, auction);
  for (let waited = 0; waited < WAIT_MS && ["PENDING", "ACTIVE"].includes(ended.status); waited += PAUSE_MS) {
    await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
    ended = await call("getDeltaOrderById", `${orders}/${id}`, auction);
  }
  await call("getDeltaOrderByHash", `${orders}/hash/${market.orderHash}`, auction);
  const found = await call("getDeltaOrders", `${orders}${query({ userAddress: owner, page: 1, limit: 100, chainId: [chainId].join(",") })}`, auctions);
  await call("getDeltaOrders, some", `${orders}${query({ userAddress: owner, type: "LIMIT", onChainOrderType: "TWAPOrder", status: ["ACTIVE", "PENDING"].join(",") })}`, auctions);
  await call("getRequiredBalanceForDeltaOrders", `${orders}/fillablebalance/${chainId}/${owner}`, record("string"));
  await call("getRequiredBalanceForDeltaOrders of a token", `${orders}/fillablebalance/${chainId}/${owner}/${weth}`, record("string"));
  const domain = { name: "Portikus", version: "2.0.0", chainId, verifyingContract: ParaswapDelta };
  const cancellation = await signed(account, { domain, types: { OrderCancellations: [{ name: "orderIds", type: "string[]" }] }, value: { orderIds: resting } });
  await post("cancelDeltaOrders", `${orders}/cancel`, { success: "boolean" }, { orderIds: resting, signature: cancellation });

  // OTC orders
  const caller = constructViemContractCaller(createWalletClient({ account: maker, chain, transport }), maker.address);
  const books = constructPartialSDK({ chainId, apiURL: venue, fetcher: constructFetchFetcher(fetch), contractCaller: caller }, constructBuildLimitOrder, constructSignLimitOrder);
  const allowed = await createWalletClient({ account: maker, chain, transport }).writeContract({ address: weth, abi: erc20Abi, functionName: "approve", args: [AugustusRFQ, 10n * ONE] });
  await reader.waitForTransactionReceipt({ hash: allowed, timeout: WAIT_MS });
  const offer = await books.buildLimitOrder({
    maker: maker.address, taker: owner, makerAsset: weth, takerAsset: usdc, makerAmount: (ONE / 10n).toString(), takerAmount: (260n * USDC).toString(),
    expiry: Math.floor(Date.now() / 1_000) + LIFE_S,
  });
  const { order: posted } = await post("postOTCOrder", `/ft/p2p/${chainId}`, { order: otcOrder }, { ...offer.data, signature: await books.signLimitOrder(offer) });
  await call("getOTCOrders of a maker", `/ft/p2p/${chainId}/maker/${maker.address}${query({ offset: 0, limit: 10, hideSmallBalances: false, orderBy: "createdAt" })}`, otcOrders);
  await call("getOTCOrders of a taker", `/ft/p2p/${chainId}/taker/${owner}${query({ orderBy: "expiry" })}`, otcOrders);
  await call("getOTCOrderByHash", `/ft/order/${posted.orderHash}`, otcOrder);
  await call("getRequiredBalance", `/ft/fillablebalance/${chainId}/${maker.address}`, record("string"));
  await call("getRequiredBalance of a token", `/ft/fillablebalance/${chainId}/${maker.address}/${weth}`, record("string"));

  // a transaction of the Router, last: it is built for the price that was asked first
  await post("buildTx", `/transactions/${chainId}${query({ ignoreChecks: true, onlyParams: false })}`, strings("from to value data"), {
    ...pair, srcAmount: rate.priceRoute.srcAmount, priceRoute: rate.priceRoute, slippage: 100, userAddress: owner, partner: "a-partner",
  });
  return { outcomes, status: ended.status, total: found.total, routes: routes.length };
}
