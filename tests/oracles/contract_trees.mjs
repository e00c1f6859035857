// Prints the syntax trees of all contracts as JSON, source -> tree: node contract_trees.mjs SOURCES
import solc from "solc";
import { contractSources } from "./contract_sources.mjs";

const input = {
  language: "Solidity",
  sources: contractSources(process.argv[2]),
  settings: { evmVersion: "cancun", viaIR: true, outputSelection: { "*": { "": ["ast"] } } },
};
const { errors = [], sources } = JSON.parse(solc.compile(JSON.stringify(input)));
const wrong = errors.filter(({ severity }) => severity === "error");
for (const { formattedMessage } of wrong) console.error(formattedMessage);
if (wrong.length > 0) process.exit(1);
process.stdout.write(JSON.stringify(Object.fromEntries(Object.entries(sources).map(([name, { ast }]) => [name, ast]))));
