// The npm compiler as the executable that Slither expects: --version, or --standard-json on standard input.
// Syntax trees and interfaces alone: of the code that Slither does not read, it gets none.
import { readFileSync } from "node:fs";
import solc from "solc";

if (process.argv.includes("--version")) {
  console.log(`solc, the solidity compiler commandline interface\nVersion: ${solc.version()}`);
} else {
  const input = JSON.parse(readFileSync(0, "utf8"));
  input.settings.outputSelection = { "*": { "*": ["abi"], "": ["ast"] } };
  const output = JSON.parse(solc.compile(JSON.stringify(input)));
  const none = { object: "", sourceMap: "" };
  for (const contracts of Object.values(output.contracts ?? {})) {
    for (const contract of Object.values(contracts)) contract.evm = { bytecode: none, deployedBytecode: none };
  }
  console.log(JSON.stringify(output));
}
