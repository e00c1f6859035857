// viem as maker and taker of OTC orders: the stories of otc_parties.mjs.
// arguments: RPC_URL MAKER_KEY TAKER_KEY STRANGER_KEY VENUE_URL privately|openly MAKER_ASSET TAKER_ASSET MAKER_AMOUNT TAKER_AMOUNT 64|65 slash|bare
import {
  BaseError, ContractFunctionRevertedError, createPublicClient, createWalletClient, defineChain, encodeAbiParameters, hashTypedData, http,
  parseAbi, parseSignature, serializeCompactSignature, signatureToCompactSignature,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { tell } from "./otc_parties.mjs";
import { WAIT_MS } from "./patience.mjs";

export async function run([rpc, makerKey, takerKey, strangerKey, ...story]) {
  const abi = parseAbi([
    "struct Order { uint256 nonceAndMeta; uint128 expiry; address makerAsset; address takerAsset; address maker; address taker; uint256 makerAmount; uint256 takerAmount; }",
    "function balanceOf(address) view returns (uint256)", "function approve(address,uint256) returns (bool)",
    "function name() view returns (string)", "function nonces(address) view returns (uint256)",
    "function remaining(address,bytes32) view returns (uint256)", "function fillOrder(Order order, bytes signature)",
    "function partialFillOrder(Order order, bytes signature, uint256 takerTokenFillAmount) returns (uint256)",
    "function partialFillOrderWithTargetPermit(Order order, bytes signature, uint256 takerTokenFillAmount, address target, bytes permitTakerAsset, bytes permitMakerAsset) returns (uint256)",
    "function cancelOrder(bytes32)", "function cancelOrders(bytes32[])",
  ]);
  const FORCED_GAS = 300_000n;
  const accounts = { maker: privateKeyToAccount(makerKey), taker: privateKeyToAccount(takerKey), stranger: privateKeyToAccount(strangerKey) };
  const transport = http(rpc, { timeout: WAIT_MS });
  const chainId = await createPublicClient({ transport }).getChainId();
  const chain = defineChain({
    id: chainId, name: "devnet", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [rpc] } },
  });
  const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
  const mined = async (who, call) => {
    const hash = await createWalletClient({ account: accounts[who], chain, transport }).writeContract({ abi, ...call });
    return reader.waitForTransactionReceipt({ hash, timeout: WAIT_MS });
  };
  const typedData = ({ domain, types, primaryType, value }) => ({ domain, types, primaryType, message: value });

  return tell({
    chainId,
    address: Object.fromEntries(Object.entries(accounts).map(([who, account]) => [who, account.address])),
    sign: async (who, toSign, bytes) => {
      const signature = await accounts[who].signTypedData(typedData(toSign));
      return bytes === 64 ? serializeCompactSignature(signatureToCompactSignature(parseSignature(signature))) : signature;
    },
    hash: (toSign) => hashTypedData(typedData(toSign)),
    split: (signature) => {
      const { v, r, s } = parseSignature(signature);
      return { v: Number(v), r, s };
    },
    words: (types, values) => encodeAbiParameters(types.map((type) => ({ type })), values),
    read: (address, functionName, args) => reader.readContract({ address, abi, functionName, args }),
    send: async (who, address, functionName, args) => {
      const receipt = await mined(who, { address, functionName, args });
      if (receipt.status !== "success") throw new Error(`${functionName} of ${who}: ${receipt.status}`);
      return receipt.transactionHash;
    },
    refusal: async (who, address, functionName, args) => {
      try {
        await reader.simulateContract({ account: accounts[who], address, abi, functionName, args });
      } catch (error) {
        return error instanceof BaseError ? error.walk((cause) => cause instanceof ContractFunctionRevertedError)?.reason : String(error);
      }
      return "it goes through";
    },
    forced: async (who, address, functionName, args) =>
      (await mined(who, { address, functionName, args, gas: FORCED_GAS })).status === "reverted",
  }, story);
}
