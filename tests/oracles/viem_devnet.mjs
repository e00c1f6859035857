// viem against a devnet: the story of ethers_devnet.mjs, and Delta's hash of an order.
// usage: viem_devnet.mjs CONTRACTS_JSON ARTIFACTS_FOLDER HTTP_URL CHAIN_ID
import fs from "node:fs";
import {
  BaseError, ContractFunctionRevertedError, createPublicClient, createTestClient, createWalletClient, defineChain, hashTypedData, http,
  webSocket, zeroAddress,
} from "viem";
import { mnemonicToAccount } from "viem/accounts";
import { WAIT_MS } from "./patience.mjs";

const [, , contractsFile, artifacts, url, chainId] = process.argv;
const entry = JSON.parse(fs.readFileSync(contractsFile)).chains[chainId];
const artifact = (name) => JSON.parse(fs.readFileSync(`${artifacts}/${name}.json`));
const chain = defineChain({
  id: Number(chainId), name: "devnet", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [url] } },
});
const MNEMONIC = "test test test test test test test test test test test junk";
const maker = mnemonicToAccount(MNEMONIC, { addressIndex: 6 });
const taker = mnemonicToAccount(MNEMONIC, { addressIndex: 7 });
const transport = http(url, { batch: true, timeout: WAIT_MS });
const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
const listener = createPublicClient({ chain, transport: webSocket(url.replace("http", "ws")) });
const control = createTestClient({ chain, mode: "anvil", transport });
const wallet = (account) => createWalletClient({ account, chain, transport });
const done = (hash) => reader.waitForTransactionReceipt({ hash, timeout: WAIT_MS });

const { abi, bytecode } = artifact("Rfq");
const erc20 = artifact("DevToken").abi;
const rfqAddress = (await done(await wallet(maker).deployContract({ abi, bytecode, args: ["Script RFQ"] }))).contractAddress;
const domain = { name: "Script RFQ", version: "1", chainId: Number(chainId), verifyingContract: rfqAddress };
const types = {
  Order: [
    { name: "nonceAndMeta", type: "uint256" }, { name: "expiry", type: "uint128" },
    { name: "makerAsset", type: "address" }, { name: "takerAsset", type: "address" },
    { name: "maker", type: "address" }, { name: "taker", type: "address" },
    { name: "makerAmount", type: "uint256" }, { name: "takerAmount", type: "uint256" },
  ],
};
const usdc = 10n ** 6n, weth = 10n ** 18n;
let nonce = 0n;
const anOrder = () => ({
  nonceAndMeta: ++nonce << 160n, expiry: 0n, makerAsset: entry.tokens.USDC.address, takerAsset: entry.tokens.WETH.address,
  maker: maker.address, taker: zeroAddress, makerAmount: 2_500n * usdc, takerAmount: weth,
});
const typed = (order) => ({ domain, types, primaryType: "Order", message: order });
const sign = (order) => maker.signTypedData(typed(order));
const write = async (account, address, contractAbi, functionName, args) =>
  done(await wallet(account).writeContract({ address, abi: contractAbi, functionName, args }));
const read = (address, contractAbi, functionName, args) => reader.readContract({ address, abi: contractAbi, functionName, args });
const balance = (symbol, owner) => read(entry.tokens[symbol].address, erc20, "balanceOf", [owner.address]);
const balances = async () => {
  const [makerUsdc, makerWeth, takerUsdc, takerWeth] = await Promise.all([
    balance("USDC", maker), balance("WETH", maker), balance("USDC", taker), balance("WETH", taker),
  ]);
  return { makerUsdc, makerWeth, takerUsdc, takerWeth };
};

const before = await balances();
await write(maker, entry.tokens.USDC.address, erc20, "approve", [rfqAddress, 10_000n * usdc]);
await write(taker, entry.tokens.WETH.address, erc20, "approve", [rfqAddress, 10n * weth]);

const heard = [];
let stop;
const isFilled = new Promise((resolve, reject) => {
  stop = listener.watchContractEvent({
    address: rfqAddress, abi, eventName: "OrderFilled", onError: reject,
    onLogs: (logs) => {
      heard.push(...logs.map((log) => log.args.orderHash));
      if (heard.length === 2) resolve();
    },
  });
});
await listener.getBlockNumber(); // what was sent before on this socket, the subscription, is answered before
const filter = await reader.createContractEventFilter({ abi, address: rfqAddress });

const whole = anOrder();
const filled = await write(taker, rfqAddress, abi, "fillOrder", [whole, await sign(whole)]);
const part = anOrder();
await write(taker, rfqAddress, abi, "partialFillOrder", [part, await sign(part), weth / 4n]);
const cancelled = anOrder();
const hashes = [whole, part, cancelled].map((order) => hashTypedData(typed(order)));
const cancel = await write(maker, rfqAddress, abi, "cancelOrder", [hashes[2]]);
let refused;
try {
  await reader.simulateContract({ account: taker, address: rfqAddress, abi, functionName: "fillOrder", args: [cancelled, await sign(cancelled)] });
} catch (error) {
  const reverted = error instanceof BaseError && error.walk((cause) => cause instanceof ContractFunctionRevertedError);
  refused = { reason: reverted.reason };
}
const forcedHash = await wallet(taker).writeContract({
  address: rfqAddress, abi, functionName: "fillOrder", args: [cancelled, await sign(cancelled)], gas: 300_000n,
});
const forced = { status: (await done(forcedHash)).status };
await isFilled;
stop();
const logs = await reader.getContractEvents({ address: rfqAddress, abi, eventName: "OrderFilled", fromBlock: filled.blockNumber });
const changes = await reader.getFilterChanges({ filter });
const after = await balances();
const gained = Object.fromEntries(Object.entries(after).map(([key, value]) => [key, value - before[key]]));

// Delta: what viem hashes and signs; the test holds it against the contract.
const deltaTypes = {
  Order: [
    { name: "owner", type: "address" }, { name: "beneficiary", type: "address" }, { name: "srcToken", type: "address" },
    { name: "destToken", type: "address" }, { name: "srcAmount", type: "uint256" }, { name: "destAmount", type: "uint256" },
    { name: "expectedAmount", type: "uint256" }, { name: "deadline", type: "uint256" }, { name: "kind", type: "uint8" },
    { name: "nonce", type: "uint256" }, { name: "partnerAndFee", type: "uint256" }, { name: "permit", type: "bytes" },
    { name: "metadata", type: "bytes" }, { name: "bridge", type: "Bridge" },
  ],
  Bridge: [
    { name: "protocolSelector", type: "bytes4" }, { name: "destinationChainId", type: "uint256" }, { name: "outputToken", type: "address" },
    { name: "scalingFactor", type: "int8" }, { name: "protocolData", type: "bytes" },
  ],
};
const deltaAbi = artifact("Delta").abi;
const deltaOrder = {
  owner: taker.address, beneficiary: taker.address, srcToken: entry.tokens.WETH.address, destToken: entry.tokens.USDC.address,
  srcAmount: weth, destAmount: 2_400n * usdc, expectedAmount: 2_500n * usdc, deadline: (await reader.getBlock()).timestamp + 3_600n, kind: 0,
  nonce: 7n, partnerAndFee: 0n, permit: "0x", metadata: "0x",
  bridge: { protocolSelector: "0x00000000", destinationChainId: 0n, outputToken: zeroAddress, scalingFactor: 0, protocolData: "0x" },
};
const deltaDomain = { name: "Portikus", version: "2.0.0", chainId: Number(chainId), verifyingContract: entry.delta };
const deltaHash = hashTypedData({ domain: deltaDomain, types: deltaTypes, primaryType: "Order", message: deltaOrder });
const deltaSignature = await taker.signTypedData({ domain: deltaDomain, types: deltaTypes, primaryType: "Order", message: deltaOrder });
const deltaSeparator = await read(entry.delta, deltaAbi, "DOMAIN_SEPARATOR", []);

const snapshot = await control.snapshot();
await control.mine({ blocks: 3 });
const headBefore = await reader.getBlockNumber({ cacheTime: 0 });
await control.revert({ id: snapshot });
const undone = headBefore - (await reader.getBlockNumber({ cacheTime: 0 }));

// The node's signature for its own account equals the signature of that account's key.
const own = mnemonicToAccount(MNEMONIC, { addressIndex: 3 });
const node = createWalletClient({ account: own.address, chain, transport });
const message = { ...anOrder(), maker: own.address };
await node.switchChain({ id: Number(chainId) });
let otherChain;
try { await node.switchChain({ id: 1 }); } catch (error) { otherChain = error.code ?? error.cause?.code; }
const signed = {
  byNode: [await node.signMessage({ message: "a text" }), await node.signTypedData(typed(message))],
  byKey: [await own.signMessage({ message: "a text" }), await own.signTypedData(typed(message))],
  accounts: (await node.requestAddresses()).length, otherChain,
};
// An account delegates to a wallet's contract, whose code it has from then on (EIP-7702).
const delegating = mnemonicToAccount(MNEMONIC, { addressIndex: 8 });
const walletArtifact = artifact("DevWallet");
const delegate = (await done(await wallet(taker).deployContract({ abi: walletArtifact.abi, bytecode: walletArtifact.bytecode, args: [taker.address] }))).contractAddress;
const authorization = await wallet(delegating).signAuthorization({ contractAddress: delegate });
const delegatedHash = await wallet(taker).sendTransaction({ authorizationList: [authorization], to: delegating.address, value: 5n });
const delegated = {
  status: (await done(delegatedHash)).status, type: (await done(delegatedHash)).type, delegate,
  code: await reader.getCode({ address: delegating.address }),
  key: await read(delegating.address, walletArtifact.abi, "key", []),
  listed: (await reader.getTransaction({ hash: delegatedHash })).authorizationList.map(({ address, nonce: used }) => [address, Number(used)]),
  used: authorization.nonce,
};
const result = {
  signed, delegated,
  rfqAddress, hashes, hashInContract: await read(rfqAddress, abi, "getOrderHash", [whole]), gained,
  logs: logs.map((log) => log.args.orderHash), heard, changes: changes.length, cancelLogs: cancel.logs.length, refused, forced,
  remaining: [await read(rfqAddress, abi, "remaining", [maker.address, hashes[0]]), await read(rfqAddress, abi, "remaining", [maker.address, hashes[1]])],
  network: await reader.getChainId(), undone, deltaOrder, deltaHash, deltaSignature, deltaSeparator,
};
console.log(JSON.stringify(result, (_, value) => (typeof value === "bigint" ? value.toString() : value)));
process.exit(0);
