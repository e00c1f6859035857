// The npm compiler as the executable that Slither and forge expect: --version, or --standard-json on standard input.
//
// Syntax trees and interfaces alone, as Slither reads no code. Contracts in sources whose names begin with SOLC_CODE_OF
// get their code too, by a second run: the compiler makes code of all contracts of which a run asks for anything.
import { readFileSync } from "node:fs";
import solc from "solc";

const CODE = ["evm.bytecode", "evm.deployedBytecode", "storageLayout"];

const compiled = (input, outputSelection) =>
  JSON.parse(solc.compile(JSON.stringify({ ...input, settings: { ...input.settings, outputSelection } })));

if (process.argv.includes("--version")) {
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${solc.version()}`);
} else {
  const input = JSON.parse(readFileSync(0, "utf8"));
  const output = compiled(input, { "*": { "*": ["abi", "evm.methodIdentifiers", "metadata"], "": ["ast"] } });
  const none = { object: "", sourceMap: "" };
  for (const contracts of Object.values(output.contracts ?? {})) {
    for (const contract of Object.values(contracts)) {
      Object.assign(contract.evm, { bytecode: none, deployedBytecode: none });
    }
  }
  const { SOLC_CODE_OF } = process.env;
  const coded = Object.keys(input.sources).filter((name) => SOLC_CODE_OF && name.startsWith(SOLC_CODE_OF));
  if (coded.length > 0) {
    const more = compiled(input, Object.fromEntries(coded.map((name) => [name, { "*": CODE }])));
    output.errors = more.errors;
    for (const [file, contracts] of Object.entries(more.contracts ?? {})) {
      for (const [name, { evm, ...rest }] of Object.entries(contracts)) {
        Object.assign(output.contracts[file][name], rest);
        Object.assign(output.contracts[file][name].evm, evm);
      }
    }
  }
  console.log(JSON.stringify(output));
}
