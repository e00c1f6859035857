// ethers as maker and taker of OTC orders: the stories of otc_parties.mjs.
// arguments: RPC_URL MAKER_KEY TAKER_KEY STRANGER_KEY VENUE_URL privately|openly MAKER_ASSET TAKER_ASSET MAKER_AMOUNT TAKER_AMOUNT 64|65 slash|bare
import { AbiCoder, Contract, JsonRpcProvider, Signature, TypedDataEncoder, Wallet } from "ethers";
import { tell } from "./otc_parties.mjs";
import { WAIT_MS } from "./patience.mjs";

export async function run([rpc, makerKey, takerKey, strangerKey, ...story]) {
  const ORDER =
    "tuple(uint256 nonceAndMeta, uint128 expiry, address makerAsset, address takerAsset, address maker, address taker, uint256 makerAmount, uint256 takerAmount) order";
  const ABI = [
    "function balanceOf(address) view returns (uint256)", "function approve(address,uint256) returns (bool)",
    "function name() view returns (string)", "function nonces(address) view returns (uint256)",
    "function remaining(address,bytes32) view returns (uint256)", `function fillOrder(${ORDER}, bytes signature)`,
    `function partialFillOrder(${ORDER}, bytes signature, uint256 takerTokenFillAmount) returns (uint256)`,
    `function partialFillOrderWithTargetPermit(${ORDER}, bytes signature, uint256 takerTokenFillAmount, address target, bytes permitTakerAsset, bytes permitMakerAsset) returns (uint256)`,
    "function cancelOrder(bytes32)", "function cancelOrders(bytes32[])",
  ];
  const FORCED_GAS = 300_000;
  const provider = new JsonRpcProvider(rpc, undefined, { cacheTimeout: -1, pollingInterval: 100 });
  const wallets = Object.fromEntries(
    Object.entries({ maker: makerKey, taker: takerKey, stranger: strangerKey }).map(([who, key]) => [who, new Wallet(key, provider)]),
  );
  const at = (address, who) => new Contract(address, ABI, who ? wallets[who] : provider);

  const told = await tell({
    chainId: Number((await provider.getNetwork()).chainId),
    address: Object.fromEntries(Object.entries(wallets).map(([who, wallet]) => [who, wallet.address])),
    sign: async (who, { domain, types, value }, bytes) => {
      const signature = await wallets[who].signTypedData(domain, types, value);
      return bytes === 64 ? Signature.from(signature).compactSerialized : signature;
    },
    hash: ({ domain, types, value }) => TypedDataEncoder.hash(domain, types, value),
    split: (signature) => Signature.from(signature),
    words: (types, values) => AbiCoder.defaultAbiCoder().encode(types, values),
    read: (address, name, args) => at(address)[name](...args),
    send: async (who, address, name, args) => (await (await at(address, who)[name](...args)).wait(1, WAIT_MS)).hash,
    refusal: async (who, address, name, args) => {
      try {
        await at(address, who)[name].staticCall(...args);
      } catch (error) {
        return error.reason;
      }
      return "it goes through";
    },
    forced: async (who, address, name, args) => {
      try {
        await (await at(address, who)[name](...args, { gasLimit: FORCED_GAS })).wait(1, WAIT_MS);
      } catch (error) {
        return error.receipt?.status === 0;
      }
      return false;
    },
  }, story);
  provider.destroy();
  return told;
}
