// ethers and viem as a process: one JSON request a line, one JSON answer a line.
import readline from "node:readline";
import { TypedDataEncoder, Wallet, Signature } from "ethers";
import { hashTypedData } from "viem";
import { privateKeyToAccount } from "viem/accounts";

const DOMAIN_TYPES = { name: "string", version: "string", chainId: "uint256", verifyingContract: "address", salt: "bytes32" };

async function answer({ domain, types, primaryType, value, key }) {
  const ethersSignature = await new Wallet(key).signTypedData(domain, types, value);
  const viemTypes = {
    ...types,
    EIP712Domain: Object.keys(DOMAIN_TYPES).filter((name) => name in domain).map((name) => ({ name, type: DOMAIN_TYPES[name] })),
  };
  const document = { domain, types: viemTypes, primaryType, message: value };
  return {
    inferredPrimaryType: TypedDataEncoder.from(types).primaryType,
    ethersDigest: TypedDataEncoder.hash(domain, types, value),
    ethersSignature,
    compactSignature: Signature.from(ethersSignature).compactSerialized,
    viemDigest: hashTypedData(document),
    viemSignature: await privateKeyToAccount(key).signTypedData(document),
  };
}

for await (const line of readline.createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answer(JSON.parse(line))) + "\n");
}
