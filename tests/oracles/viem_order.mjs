// viem as the owner of Delta orders: the stories of delta_owner.mjs.
// arguments: RPC_URL PRIVATE_KEY VENUE_URL swap|rest SRC_TOKEN DEST_TOKEN AMOUNT SELL|BUY 64|65
import {
  createPublicClient, createWalletClient, defineChain, hashTypedData, http, parseAbi, parseSignature, serializeCompactSignature,
  signatureToCompactSignature,
} from "viem";
import { privateKeyToAccount } from "viem/accounts";
import { NATIVE, tell } from "./delta_owner.mjs";
import { WAIT_MS } from "./patience.mjs";

export async function run([rpc, key, ...story]) {
  const abi = parseAbi([
    "function balanceOf(address) view returns (uint256)", "function allowance(address,address) view returns (uint256)",
    "function approve(address,uint256) returns (bool)", "function decimals() view returns (uint8)",
    "function depositNativeAndPreSign(bytes32 orderHash) payable",
  ]);
  const account = privateKeyToAccount(key);
  const transport = http(rpc, { timeout: WAIT_MS });
  const chainId = await createPublicClient({ transport }).getChainId();
  const chain = defineChain({
    id: chainId, name: "devnet", nativeCurrency: { name: "Ether", symbol: "ETH", decimals: 18 }, rpcUrls: { default: { http: [rpc] } },
  });
  const reader = createPublicClient({ chain, transport, pollingInterval: 100 });
  const wallet = createWalletClient({ account, chain, transport });
  const read = (address, functionName, args = []) => reader.readContract({ address, abi, functionName, args });
  const mined = async (call) => {
    const receipt = await reader.waitForTransactionReceipt({ hash: await wallet.writeContract({ abi, ...call }), timeout: WAIT_MS });
    return receipt.gasUsed * receipt.effectiveGasPrice;
  };
  // viem is told the primary type: the one that no other type has a member of.
  const typedData = ({ domain, types, value }) => {
    const used = Object.values(types).flatMap((members) => members.map((member) => member.type.replace(/\[.*$/, "")));
    const [primaryType] = Object.keys(types).filter((name) => !used.includes(name));
    return { domain, types, primaryType, message: value };
  };

  return tell({
    address: account.address,
    chainId,
    sign: async (toSign, bytes) => {
      const signature = await wallet.signTypedData(typedData(toSign));
      return bytes === 64 ? serializeCompactSignature(signatureToCompactSignature(parseSignature(signature))) : signature;
    },
    hash: (toSign) => hashTypedData(typedData(toSign)),
    balance: (address) => (address === NATIVE ? reader.getBalance({ address: account.address }) : read(address, "balanceOf", [account.address])),
    allowance: (address, spender) => read(address, "allowance", [account.address, spender]),
    decimals: async (address) => (address === NATIVE ? 18 : read(address, "decimals")),
    approve: (address, spender, amount) => mined({ address, functionName: "approve", args: [spender, amount] }),
    deposit: (delta, orderHash, wei) => mined({ address: delta, functionName: "depositNativeAndPreSign", args: [orderHash], value: BigInt(wei) }),
  }, story);
}
