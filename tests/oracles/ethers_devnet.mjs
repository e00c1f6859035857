// ethers against a devnet: deploys an Rfq, signs orders, fills and cancels them; prints what it saw as JSON.
// usage: ethers_devnet.mjs CONTRACTS_JSON ARTIFACTS_FOLDER HTTP_URL CHAIN_ID
import fs from "node:fs";
import { Contract, ContractFactory, HDNodeWallet, JsonRpcProvider, WebSocketProvider, ZeroAddress, TypedDataEncoder } from "ethers";
import { WAIT_MS } from "./patience.mjs";

const [, , contractsFile, artifacts, url, chainId] = process.argv;
const entry = JSON.parse(fs.readFileSync(contractsFile)).chains[chainId];
const artifact = (name) => JSON.parse(fs.readFileSync(`${artifacts}/${name}.json`));
const provider = new JsonRpcProvider(url, Number(chainId), { cacheTimeout: -1, pollingInterval: 100 });
const sockets = new WebSocketProvider(url.replace("http", "ws"), Number(chainId));
const account = (index) =>
  HDNodeWallet.fromPhrase("test test test test test test test test test test test junk", undefined, `m/44'/60'/0'/0/${index}`).connect(provider);
const maker = account(4);
const taker = account(5);

const TYPES = {
  Order: [
    { name: "nonceAndMeta", type: "uint256" }, { name: "expiry", type: "uint128" },
    { name: "makerAsset", type: "address" }, { name: "takerAsset", type: "address" },
    { name: "maker", type: "address" }, { name: "taker", type: "address" },
    { name: "makerAmount", type: "uint256" }, { name: "takerAmount", type: "uint256" },
  ],
};
const done = (sent) => sent.wait(1, WAIT_MS);
const factory = new ContractFactory(artifact("Rfq").abi, artifact("Rfq").bytecode, maker);
const deployed = await factory.deploy("Script RFQ");
await deployed.waitForDeployment();
const rfqAddress = await deployed.getAddress();
const domain = { name: "Script RFQ", version: "1", chainId: Number(chainId), verifyingContract: rfqAddress };
const rfq = (who) => new Contract(rfqAddress, artifact("Rfq").abi, who);
const token = (symbol, who) => new Contract(entry.tokens[symbol].address, artifact("DevToken").abi, who);
const usdc = 10n ** 6n, weth = 10n ** 18n;

let nonce = 0n;
const anOrder = () => ({
  nonceAndMeta: (++nonce << 160n), expiry: 0, makerAsset: entry.tokens.USDC.address, takerAsset: entry.tokens.WETH.address,
  maker: maker.address, taker: ZeroAddress, makerAmount: 2_500n * usdc, takerAmount: weth,
});
const sign = (order) => maker.signTypedData(domain, TYPES, order);
const balances = async () => ({
  makerUsdc: await token("USDC", provider).balanceOf(maker.address), makerWeth: await token("WETH", provider).balanceOf(maker.address),
  takerUsdc: await token("USDC", provider).balanceOf(taker.address), takerWeth: await token("WETH", provider).balanceOf(taker.address),
});
const before = await balances();
await done(await token("USDC", maker).approve(rfqAddress, 10_000n * usdc));
await done(await token("WETH", taker).approve(rfqAddress, 10n * weth));

// A subscription over the WebSocket, and a filter that is polled over HTTP.
const heard = [];
const isFilled = new Promise((resolve) => {
  new Contract(rfqAddress, artifact("Rfq").abi, sockets).on("OrderFilled", (orderHash) => {
    heard.push(orderHash);
    if (heard.length === 2) resolve();
  });
});
const heads = [];
await sockets.on("block", (number) => heads.push(number));
await sockets.getBlockNumber();
while ((await sockets.listenerCount()) < 2) await new Promise((resolve) => setTimeout(resolve, 10));
const filter = await provider.send("eth_newFilter", [{ address: rfqAddress }]);

const whole = anOrder();
const filled = await done(await rfq(taker).fillOrder(whole, await sign(whole)));
const wholeHash = TypedDataEncoder.hash(domain, TYPES, whole);
const part = anOrder();
await done(await rfq(taker).partialFillOrder(part, await sign(part), weth / 4n));
const partHash = TypedDataEncoder.hash(domain, TYPES, part);
const cancelled = anOrder();
const cancelledHash = TypedDataEncoder.hash(domain, TYPES, cancelled);
const cancel = await done(await rfq(maker).cancelOrder(cancelledHash));
let refused;
try {
  await rfq(taker).fillOrder(cancelled, await sign(cancelled));
} catch (error) {
  refused = { reason: error.reason, code: error.code };
}
let forced;
try {
  await done(await rfq(taker).fillOrder(cancelled, await sign(cancelled), { gasLimit: 300_000 }));
} catch (error) {
  forced = { code: error.code, status: error.receipt?.status };
}
await isFilled;
const logs = await rfq(provider).queryFilter("OrderFilled", filled.blockNumber, "latest");
const changes = await provider.send("eth_getFilterChanges", [filter]);
const after = await balances();
const gained = Object.fromEntries(Object.entries(after).map(([key, value]) => [key, value - before[key]]));
const hashInContract = await rfq(provider).getOrderHash(whole);
const fees = await provider.getFeeData();

// The node's signature for its own account equals the signature of that account's key.
const own = account(3);
const signer = await provider.getSigner(own.address);
const message = { nonceAndMeta: 1n << 160n, expiry: 0, makerAsset: rfqAddress, takerAsset: ZeroAddress, maker: own.address, taker: ZeroAddress, makerAmount: 1n, takerAmount: 2n };
const signed = {
  byNode: [await signer.signMessage("a text"), await signer._legacySignMessage("a text"), await signer.signTypedData(domain, TYPES, message)],
  byKey: [await own.signMessage("a text"), await own.signMessage("a text"), await own.signTypedData(domain, TYPES, message)],
  accounts: (await provider.send("eth_requestAccounts", [])).length,
};
const result = {
  signed,
  rfqAddress, hashes: [wholeHash, partHash, cancelledHash], hashInContract, gained,
  logs: logs.map((log) => log.args.orderHash), heard, heads: heads.length,
  changes: changes.map((log) => log.topics[0]).length, cancelLogs: cancel.logs.length, refused, forced,
  remaining: [await rfq(provider).remaining(maker.address, wholeHash), await rfq(provider).remaining(maker.address, partHash)],
  network: (await provider.getNetwork()).chainId, hasFees: fees.maxFeePerGas > 0n, fullBlock: (await provider.getBlock(filled.blockNumber, true)).prefetchedTransactions[0].hash === filled.hash,
};
console.log(JSON.stringify(result, (_, value) => (typeof value === "bigint" ? value.toString() : value)));
provider.destroy();
await sockets.destroy();
