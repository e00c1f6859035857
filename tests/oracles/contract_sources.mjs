// The Solidity files below a folder, as the compiler takes them: name -> { content }.
import { readFileSync, readdirSync } from "node:fs";
import { join } from "node:path";

export const contractSources = (folder) => {
  const names = readdirSync(folder, { recursive: true }).filter((name) => name.endsWith(".sol")).sort();
  return Object.fromEntries(names.map((name) => [name, { content: readFileSync(join(folder, name), "utf8") }]));
};
