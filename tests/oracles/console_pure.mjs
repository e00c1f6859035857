// Pure functions of the console's modules, called by name. arguments: FUNCTION JSON
import { fileURLToPath } from "node:url";

const module = (name) => import(fileURLToPath(new URL(`../../engine/console/${name}`, import.meta.url)));
const [amounts, http, abi, checks] = await Promise.all(["shared/amounts.js", "shared/http.js", "venue/abi.js", "venue/checks.js"].map(module));
const refused = (act) => {
  try {
    return act();
  } catch (error) {
    return { refused: error.message };
  }
};

const FUNCTIONS = {
  units: ({ raw, decimals }) => {
    const plain = amounts.plainUnits(BigInt(raw), decimals);
    return { plain, back: amounts.parseUnits(plain, decimals), shown: amounts.formatUnits(BigInt(raw), decimals, 12) };
  },
  parse: ({ text, decimals }) => refused(() => amounts.parseUnits(text, decimals)),
  price: ({ src, srcDecimals, dest, destDecimals }) => amounts.price(BigInt(src), srcDecimals, BigInt(dest), destDecimals),
  usd: ({ text }) => amounts.usd(text),
  event: ({ block }) => http.event(block),
  swap: ({ data }) => abi.swapTerms(data),
  bounded: ({ side, amount, slippageBps }) => checks.bounded(side, BigInt(amount), slippageBps),
  typed: ({ toSign, terms }) => refused(() => checks.orderToSign(toSign, { ...terms, srcAmount: BigInt(terms.srcAmount), destAmount: BigInt(terms.destAmount) })),
};

export const run = ([name, text]) => FUNCTIONS[name](JSON.parse(text));
