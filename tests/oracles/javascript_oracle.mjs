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

// What each library makes of a document as it stands: the digest, or the words of its refusal. Ethers infers the
// domain's type and refuses one in `types`; programs leave it out for ethers.
function read(document) {
  const { EIP712Domain, ...types } = document.types;
  return {
    ethers: attempt(() => TypedDataEncoder.hash(document.domain, types, document.message)),
    viem: attempt(() => hashTypedData(document)),
  };
}

function attempt(hash) {
  try {
    return { digest: hash() };
  } catch (error) {
    return { refused: error.shortMessage ?? String(error.message ?? error) };
  }
}

const answered = (request) => (request.document ? read(request.document) : answer(request));

for await (const line of readline.createInterface({ input: process.stdin })) {
  process.stdout.write(JSON.stringify(await answered(JSON.parse(line))) + "\n");
}
