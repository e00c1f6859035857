// Prints what the NatSpec of the contracts leaves out, a line each: node contract_words.mjs SOURCES
//
// Every function of a contract or interface outside lib, dev and examples that anybody may call, inherited functions
// too, has a notice, a name and words for each argument, and words for each value that it returns. The getter of a
// public variable has a notice: Solidity allows no @param there.
import solc from "solc";
import { contractSources } from "./contract_sources.mjs";

const [sources] = process.argv.slice(2);
const output = JSON.parse(
  solc.compile(
    JSON.stringify({
      language: "Solidity",
      sources: contractSources(sources),
      settings: { evmVersion: "cancun", outputSelection: { "*": { "*": ["abi", "userdoc", "devdoc"], "": ["ast"] } } },
    }),
  ),
);
for (const { severity, formattedMessage } of output.errors ?? []) {
  if (severity !== "error") continue;
  console.error(formattedMessage);
  process.exitCode = 1;
}

const getters = new Set();
const collectGetters = (node) => {
  if (node?.nodeType === "VariableDeclaration" && node.functionSelector) getters.add(node.name);
  if (node && typeof node === "object") Object.values(node).forEach(collectGetters);
};
for (const { ast } of Object.values(output.sources)) collectGetters(ast);

const typeOf = ({ type, components }) =>
  components ? type.replace("tuple", `(${components.map(typeOf).join(",")})`) : type;

for (const [file, contracts] of Object.entries(output.contracts ?? {})) {
  if (/^(lib|dev|examples)\//.test(file)) continue;
  for (const [name, { abi, userdoc, devdoc }] of Object.entries(contracts)) {
    for (const entry of abi.filter(({ type }) => type === "function")) {
      const signature = `${entry.name}(${entry.inputs.map(typeOf).join(",")})`;
      const { params = {}, returns = {} } = devdoc.methods?.[signature] ?? devdoc.stateVariables?.[entry.name] ?? {};
      const missing = userdoc.methods?.[signature]?.notice ? [] : ["@notice"];
      if (!getters.has(entry.name)) {
        for (const { name: argument } of entry.inputs) {
          if (!params[argument]) missing.push(`@param ${argument || "without a name"}`);
        }
        entry.outputs.forEach(({ name: value }, i) => {
          if (!returns[value || `_${i}`]) missing.push(`@return ${value || `_${i}`}`);
        });
      }
      for (const one of missing) console.log(`${name}.${entry.name}: ${one}`);
    }
  }
}
