// ethers against a venue: prices, approves, has the transaction built, sends it, and says what moved, as JSON.
// arguments: VENUE_URL RPC_URL PRIVATE_KEY SRC_TOKEN DEST_TOKEN AMOUNT [SELL|BUY]
import { Contract, JsonRpcProvider, Wallet } from "ethers";
import { documented, PRICE_ROUTE } from "./documented.mjs";
import { WAIT_MS } from "./patience.mjs";

export async function run([venue, rpc, key, srcToken, destToken, amount, side = "SELL"]) {
  const NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE";
  const ERC20 = [
    "function balanceOf(address) view returns (uint256)", "function allowance(address,address) view returns (uint256)",
    "function approve(address,uint256) returns (bool)", "function decimals() view returns (uint8)",
  ];
  const provider = new JsonRpcProvider(rpc, undefined, { cacheTimeout: -1, pollingInterval: 100 });
  const wallet = new Wallet(key, provider);
  const chainId = Number((await provider.getNetwork()).chainId);
  const done = (sent) => sent.wait(1, WAIT_MS);

  const ask = async (path, options) => {
    const response = await fetch(`${venue}${path}`, options);
    const told = await response.json();
    if (!response.ok) throw new Error(`${path}: ${response.status} ${told.errorType}: ${told.details}`);
    return told;
  };
  const token = (address) => new Contract(address, ERC20, wallet);
  const balance = (address) => (address === NATIVE ? provider.getBalance(wallet.address) : token(address).balanceOf(wallet.address));
  const decimals = async (address) => (address === NATIVE ? 18 : Number(await token(address).decimals()));

  const query = new URLSearchParams({
    srcToken, destToken, amount, side, network: chainId, version: "6.2", userAddress: wallet.address,
    srcDecimals: await decimals(srcToken), destDecimals: await decimals(destToken),
  });
  const { priceRoute } = await ask(`/prices?${query}`);
  const contracts = (await ask("/resources/contracts.json")).chains[chainId];
  const slippage = 100n;
  const srcMost = side === "SELL" ? BigInt(amount) : (BigInt(priceRoute.srcAmount) * (10_000n + slippage)) / 10_000n;
  if (srcToken !== NATIVE) await done(await token(srcToken).approve(priceRoute.tokenTransferProxy, srcMost));

  const before = { src: await balance(srcToken), dest: await balance(destToken) };
  const built = await ask(`/transactions/${chainId}?eip1559=true`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      priceRoute: documented(priceRoute, PRICE_ROUTE), srcToken, destToken, userAddress: wallet.address, slippage: Number(slippage),
      ...(side === "SELL" ? { srcAmount: amount } : { destAmount: amount }),
    }),
  });
  const receipt = await done(await wallet.sendTransaction({
    to: built.to, data: built.data, value: built.value, gasLimit: built.gas, chainId: built.chainId,
    maxFeePerGas: built.maxFeePerGas, maxPriorityFeePerGas: built.maxPriorityFeePerGas,
  }));
  const after = { src: await balance(srcToken), dest: await balance(destToken) };
  const paid = receipt.gasUsed * receipt.gasPrice;
  const result = {
    status: receipt.status, from: built.from, to: built.to, router: contracts.augustusV6_2, chainId: built.chainId, value: built.value,
    quoted: { src: priceRoute.srcAmount, dest: priceRoute.destAmount },
    spent: before.src - after.src - (srcToken === NATIVE ? paid : 0n),
    received: after.dest - before.dest + (destToken === NATIVE ? paid : 0n),
    allowanceLeft: srcToken === NATIVE ? 0n : await token(srcToken).allowance(wallet.address, built.to),
    makers: priceRoute.bestRoute.flatMap((part) => part.swaps.flatMap((swap) => swap.swapExchanges.map((one) => one.exchange))),
    hops: priceRoute.bestRoute.map((part) => part.swaps.length),
  };
  provider.destroy();
  return result;
}
