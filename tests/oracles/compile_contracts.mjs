// Compiles the contracts and writes their artifacts: node compile_contracts.mjs SOURCES ARTIFACTS [MUTANT]
//
// MUTANT is a source with a planted fault: contracts that import it, dev contracts aside, replace their artifacts, and
// warnings are not reported.
import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join, normalize } from "node:path";
import solc from "solc";
import { contractSources } from "./contract_sources.mjs";

const [sources, artifacts, mutant] = process.argv.slice(2);
const content = contractSources(sources);
const imported = (file) =>
  [...content[file].content.matchAll(/^import .* from "([^"]+)"/gm)].map(([, path]) => normalize(join(dirname(file), path)));
const reaches = (file) => file === mutant || imported(file).some(reaches);
const compiled = Object.keys(content).filter((file) =>
  mutant === undefined ? !file.startsWith("lib/") : !/^(lib|dev)\//.test(file) && reaches(file),
);
const OUTPUTS = ["abi", "evm.bytecode.object", "evm.deployedBytecode.object", "storageLayout", "transientStorageLayout"];
const output = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: "Solidity",
      sources: content,
      settings: {
        evmVersion: "cancun",
        viaIR: true,
        optimizer: { enabled: true, runs: 2000 },
        metadata: { bytecodeHash: "none", appendCBOR: false },
        outputSelection: Object.fromEntries(compiled.map((file) => [file, { "*": OUTPUTS }])),
      },
    }),
  ),
);
// Delta names the arguments that it hands on as they came, for readers of its interface.
const UNUSED_PARAMETER = "5667";
const messages = (output.errors ?? []).filter(({ errorCode, severity, sourceLocation }) =>
  mutant === undefined
    ? !(errorCode === UNUSED_PARAMETER && sourceLocation?.file === "Delta.sol")
    : severity === "error",
);
for (const { formattedMessage } of messages) console.error(formattedMessage);
if (messages.length > 0) process.exit(1); // a warning is an error

// Delta runs its settlers' code on its own storage.
const layout = (file) => {
  const { storageLayout, transientStorageLayout } = output.contracts[`${file}.sol`][file];
  return [storageLayout, transientStorageLayout].map(({ storage }) =>
    storage.map(({ label, slot, offset, type }) => `${slot}.${offset} ${label} ${type.replace(/\d+_storage/g, "")}`),
  );
};
if (mutant === undefined) {
  const [kept, transient] = layout("Delta");
  for (const settler of compiled.filter((name) => /^\w+Settler.sol$/.test(name))) {
    const [its, passing] = layout(settler.slice(0, -4));
    if (its.some((slot, i) => slot !== kept[i]) || String(passing) !== String(transient)) {
      throw new Error(`${settler} and Delta.sol have different storage:\n${its.join("\n")}\n${kept.join("\n")}`);
    }
  }
  rmSync(artifacts, { recursive: true, force: true });
}

mkdirSync(artifacts, { recursive: true });
for (const [file, contracts] of Object.entries(output.contracts)) {
  for (const [name, { abi, evm }] of Object.entries(contracts)) {
    if (evm.bytecode.object === "") continue; // an interface
    const size = evm.deployedBytecode.object.length / 2;
    if (size > 24_576) throw new Error(`${name} has ${size} bytes: more than a chain takes`);
    const runtime = { at: evm.bytecode.object.indexOf(evm.deployedBytecode.object) / 2, size };
    if (runtime.at < 0) throw new Error(`${name}: its code is not in what creates it`);
    const artifact = { name, source: file, abi, bytecode: `0x${evm.bytecode.object}`, runtime };
    writeFileSync(join(artifacts, `${name}.json`), JSON.stringify(artifact, null, 1) + "\n");
    console.log(`${name} ${size}`);
  }
}
