// viem against a venue: the story of ethers_swap.mjs.
// arguments: VENUE_URL RPC_URL PRIVATE_KEY SRC_TOKEN DEST_TOKEN AMOUNT [SELL|BUY]
import { createPublicClient, createWalletClient, defineChain, http, parseAbi } from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { WAIT_MS } from "./patience.mjs";

export async function run([venue, rpc, key, srcToken, destToken, amount, side = "SELL"]) {
  const NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE";
  const abi = parseAbi([
    "function balanceOf(address) view returns (uint256)", "function allowance(address,address) view returns (uint256)",
    "function approve(address,uint256) returns (bool)", "function decimals() view returns (uint8)",
  ]);
  const account = privateKeyToAccount(key);
  const transport = http(rpc, { timeout: WAIT_MS });
  const chainId = await createPublicClient({ transport }).getChainId();
  const chain = defineChain({
    id: chainId, name: "devnet", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [rpc] } },
  });
  const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
  const wallet = createWalletClient({ account, chain, transport });
  const done = (hash) => reader.waitForTransactionReceipt({ hash, timeout: WAIT_MS });

  const ask = async (path, options) => {
    const response = await fetch(`${venue}${path}`, options);
    const told = await response.json();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${told.errorType}: ${told.details}`);
    return told;
  };
  const read = (address, functionName, args = []) => reader.readContract({ address, abi, functionName, args });
  const balance = (address) => (address === NATIVE ? reader.getBalance({ address: account.address }) : read(address, "balanceOf", [account.address]));
  const decimals = async (address) => (address === NATIVE ? 18 : read(address, "decimals"));

  const query = new URLSearchParams({
    srcToken, destToken, amount, side, network: chainId, version: "6.2", userAddress: account.address,
    srcDecimals: await decimals(srcToken), destDecimals: await decimals(destToken),
  });
  const { priceRoute } = await ask(`/prices?${query}`);
  const contracts = (await ask("/resources/contracts.json")).chains[chainId];
  const slippage = 100n;
  const srcMost = side === "SELL" ? BigInt(amount) : (BigInt(priceRoute.srcAmount) * (10_000n + slippage)) / 10_000n;
  if (srcToken !== NATIVE) {
    const args = [priceRoute.tokenTransferProxy, srcMost];
    await done(await wallet.writeContract({ address: srcToken, abi, functionName: "approve", args }));
  }

  const before = { src: await balance(srcToken), dest: await balance(destToken) };
  const built = await ask(`/transactions/${chainId}?eip1559=true`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      priceRoute, srcToken, destToken, userAddress: account.address, slippage: Number(slippage),
      ...(side === "SELL" ? { srcAmount: amount } : { destAmount: amount }),
    }),
  });
  const receipt = await done(await wallet.sendTransaction({
    to: built.to, data: built.data, value: BigInt(built.value), gas: BigInt(built.gas),
    maxFeePerGas: BigInt(built.maxFeePerGas), maxPriorityFeePerGas: BigInt(built.maxPriorityFeePerGas),
  }));
  const after = { src: await balance(srcToken), dest: await balance(destToken) };
  const paid = receipt.gasUsed * receipt.effectiveGasPrice;
  return {
    status: receipt.status === "success" ? 1 : 0, from: built.from, to: built.to, router: contracts.augustusV6_2, chainId: built.chainId, value: built.value,
    quoted: { src: priceRoute.srcAmount, dest: priceRoute.destAmount },
    spent: before.src - after.src - (srcToken === NATIVE ? paid : 0n),
    received: after.dest - before.dest + (destToken === NATIVE ? paid : 0n),
    allowanceLeft: srcToken === NATIVE ? 0n : await read(srcToken, "allowance", [account.address, built.to]),
    makers: priceRoute.bestRoute.flatMap((part) => part.swaps.flatMap((swap) => swap.swapExchanges.map((one) => one.exchange))),
    hops: priceRoute.bestRoute.map((part) => part.swaps.length),
  };
}
