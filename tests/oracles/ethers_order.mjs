// ethers as the owner of Delta orders: the stories of delta_owner.mjs.
// arguments: RPC_URL PRIVATE_KEY VENUE_URL swap|rest SRC_TOKEN DEST_TOKEN AMOUNT SELL|BUY 64|65
import { Contract, JsonRpcProvider, Signature, TypedDataEncoder, Wallet } from "ethers";
import { NATIVE, tell } from "./delta_owner.mjs";
import { WAIT_MS } from "./patience.mjs";

export async function run([rpc, key, ...story]) {
  const ERC20 = [
    "function balanceOf(address) view returns (uint256)", "function allowance(address,address) view returns (uint256)",
    "function approve(address,uint256) returns (bool)", "function decimals() view returns (uint8)",
  ];
  const DELTA = ["function depositNativeAndPreSign(bytes32 orderHash) payable"];
  const provider = new JsonRpcProvider(rpc, undefined, { cacheTimeout: -1, pollingInterval: 100 });
  const wallet = new Wallet(key, provider);
  const token = (address) => new Contract(address, ERC20, wallet);
  const mined = async (sent) => {
    const receipt = await (await sent).wait(1, WAIT_MS);
    return receipt.gasUsed * receipt.gasPrice;
  };

  const told = await tell({
    address: wallet.address,
    chainId: Number((await provider.getNetwork()).chainId),
    sign: async ({ domain, types, value }, bytes) => {
      const signature = await wallet.signTypedData(domain, types, value);
      return bytes === 64 ? Signature.from(signature).compactSerialized : signature;
    },
    hash: ({ domain, types, value }) => TypedDataEncoder.hash(domain, types, value),
    balance: (address) => (address === NATIVE ? provider.getBalance(wallet.address) : token(address).balanceOf(wallet.address)),
    allowance: (address, spender) => token(address).allowance(wallet.address, spender),
    decimals: async (address) => (address === NATIVE ? 18 : Number(await token(address).decimals())),
    approve: (address, spender, amount) => mined(token(address).approve(spender, amount)),
    deposit: (delta, orderHash, wei) => mined(new Contract(delta, DELTA, wallet).depositNativeAndPreSign(orderHash, { value: wei })),
  }, story);
  provider.destroy();
  return told;
}
