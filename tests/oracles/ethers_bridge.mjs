// ethers between the two chains of `cambist devnet --bridge`: a deposit is filled, another one refunded, a burn is
// attested and received. The ABIs are those that Across and Circle publish, not the artifacts'.
import fs from "node:fs";
import { Contract, HDNodeWallet, JsonRpcProvider, toBeHex, zeroPadValue, ZeroAddress, ZeroHash } from "ethers";
import { WAIT_MS } from "./patience.mjs";

const POOL = [
  "function depositV3(address depositor, address recipient, address inputToken, address outputToken, uint256 inputAmount, uint256 outputAmount, uint256 destinationChainId, address exclusiveRelayer, uint32 quoteTimestamp, uint32 fillDeadline, uint32 exclusivityParameter, bytes message) payable",
  "function numberOfDeposits() view returns (uint32)",
  "event FilledRelay(bytes32 inputToken, bytes32 outputToken, uint256 inputAmount, uint256 outputAmount, uint256 repaymentChainId, uint256 indexed originChainId, uint256 indexed depositId, uint32 fillDeadline, uint32 exclusivityDeadline, bytes32 exclusiveRelayer, bytes32 indexed relayer, bytes32 depositor, bytes32 recipient, bytes32 messageHash, tuple(bytes32 updatedRecipient, bytes32 updatedMessageHash, uint256 updatedOutputAmount, uint8 fillType) relayExecutionInfo)",
  "event ExecutedRelayerRefundRoot(uint256 amountToReturn, uint256 indexed chainId, uint256[] refundAmounts, uint32 indexed rootBundleId, uint32 indexed leafId, address l2TokenAddress, address[] refundAddresses, bool deferredRefunds, address caller)",
];
const MESSENGER = ["function depositForBurn(uint256 amount, uint32 destinationDomain, bytes32 mintRecipient, address burnToken, bytes32 destinationCaller, uint256 maxFee, uint32 minFinalityThreshold)"];
const TRANSMITTER = ["function receiveMessage(bytes message, bytes attestation) returns (bool)", "function localDomain() view returns (uint32)"];
const ERC20 = ["function approve(address, uint256) returns (bool)", "function balanceOf(address) view returns (uint256)"];
const WORDS = "test test test test test test test test test test test junk";
const USDC = 10n ** 6n;
const RECIPIENT = "0x00000000000000000000000000000000000b21d9";

const done = (sent) => sent.wait(1, WAIT_MS);

async function until(found) {
  for (;;) {
    const it = await found();
    if (it) return it;
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
}

export async function run([firstUrl, secondUrl, bridge, contractsFile]) {
  const { chains } = JSON.parse(fs.readFileSync(contractsFile));
  const at = (url, id) => {
    const provider = new JsonRpcProvider(url, id, { cacheTimeout: -1, pollingInterval: 50, staticNetwork: true });
    const user = HDNodeWallet.fromPhrase(WORDS, undefined, "m/44'/60'/0'/0/4").connect(provider);
    const entry = chains[id];
    return {
      id, provider, user, usdc: new Contract(entry.tokens.USDC.address, ERC20, user),
      pool: new Contract(entry.spokePool, POOL, user), messenger: new Contract(entry.tokenMessenger, MESSENGER, user),
      transmitter: new Contract(entry.messageTransmitter, TRANSMITTER, user),
    };
  };
  const [first, second] = [at(firstUrl, 31337), at(secondUrl, 31338)];
  const json = async (path, options) => (await fetch(bridge + path, options)).json();
  const control = (method, changes) => json("/", {
    method: "POST", headers: { "content-type": "application/json" },
    body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params: [changes] }),
  });
  const orders = [
    await control("bridge_orderRelayer", { fill_after_s: 0 }),
    await control("bridge_orderAttester", { fast_after_s: 0, final_after_s: 0 }),
  ];

  const deposit = async (amount) => {
    const [inputToken, outputToken] = [first.usdc.target, second.usdc.target];
    const fees = await json("/suggested-fees?" + new URLSearchParams({
      inputToken, outputToken, originChainId: first.id, destinationChainId: second.id, amount,
    }));
    await done(await first.usdc.approve(first.pool.target, amount));
    const id = await first.pool.numberOfDeposits();
    await done(await first.pool.depositV3(
      first.user.address, RECIPIENT, inputToken, outputToken, amount, fees.outputAmount, second.id, ZeroAddress,
      fees.timestamp, Number(fees.fillDeadline), 0, "0x",
    ));
    return { id, fees };
  };
  const any = [null, null, null, null, null];
  const fills = (id) => second.pool.queryFilter(second.pool.filters.FilledRelay(...any, first.id, id), 0);

  const filled = await deposit(100n * USDC);
  const [fill] = await until(async () => (await fills(filled.id))[0] && fills(filled.id));

  await control("bridge_orderRelayer", { is_silent: true });
  const before = await first.usdc.balanceOf(first.user.address);
  const left = await deposit(50n * USDC);
  for (const { provider } of [first, second]) {
    await provider.send("evm_increaseTime", [5 * 3600]);
    await provider.send("evm_mine", []);
  }
  const payouts = (id) => first.pool.queryFilter(first.pool.filters.ExecutedRelayerRefundRoot(null, first.id, null, id), 0);
  const [refund] = await until(async () => (await payouts(left.id))[0] && payouts(left.id));
  const [repayment] = await until(async () => (await payouts(filled.id))[0] && payouts(filled.id));

  const [source, destination] = [await second.transmitter.localDomain(), await first.transmitter.localDomain()];
  const [fast] = await json(`/v2/burn/USDC/fees/${source}/${destination}`);
  const maxFee = (20n * USDC * BigInt(fast.minimumFee)) / 10_000n;
  await done(await second.usdc.approve(second.messenger.target, 20n * USDC));
  const burn = await done(await second.messenger.depositForBurn(
    20n * USDC, destination, zeroPadValue(RECIPIENT, 32), second.usdc.target, ZeroHash, maxFee, fast.finalityThreshold,
  ));
  const message = await until(async () => {
    const answer = await json(`/v2/messages/${source}?transactionHash=${burn.hash}`);
    return answer.messages?.[0].status === "complete" && answer.messages[0];
  });
  await done(await first.transmitter.receiveMessage(message.message, message.attestation));
  const told = {
    orders: orders.map(({ result }) => result),
    limits: filled.fees.limits,
    output: filled.fees.outputAmount,
    filled: fill.args.relayExecutionInfo.updatedOutputAmount,
    onSecond: await second.usdc.balanceOf(RECIPIENT),
    refund: [refund.args.refundAddresses[0] === first.user.address, refund.args.refundAmounts[0]],
    repaid: zeroPadValue(repayment.args.refundAddresses[0], 32).toLowerCase() === fill.args.relayer,
    isWhole: (await first.usdc.balanceOf(first.user.address)) === before,
    fills: (await fills(left.id)).length,
    decoded: message.decodedMessage.decodedMessageBody.feeExecuted,
    nonce: message.eventNonce === toBeHex(message.decodedMessage.nonce, 32),
    onFirst: await first.usdc.balanceOf(RECIPIENT),
  };
  first.provider.destroy();
  second.provider.destroy();
  return told;
}
