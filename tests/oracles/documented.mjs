// Members of an answer that a client of generated code sends back: those that spec 1.8 names, and no others.
// A schema is `true` for a value that is kept as it is, [schema] for a list, and an object of its members.
const all = (names, more = {}) => ({ ...Object.fromEntries(names.split(" ").map((name) => [name, true])), ...more });

const exchange = all("exchange srcAmount destAmount percent data");
const swap = all("srcToken srcDecimals destToken destDecimals", { swapExchanges: [exchange] });
const entry = all("amount amountUSD", { token: all("chainId address") });
const leg = { input: entry, output: entry };

export const PRICE_ROUTE = all(
  "blockNumber network srcToken destToken srcDecimals destDecimals srcAmount destAmount gasCostUSD gasCost version "
    + "contractAddress tokenTransferProxy contractMethod partnerFee srcUSD destUSD partner maxImpactReached hmac side",
  { bestRoute: [all("percent", { swaps: [swap] })] },
);
export const DELTA_ROUTE = all("bridge", { origin: leg, destination: leg, fees: { gas: entry, bridge: [entry] } });

export function documented(value, schema) {
  if (schema === true || value === null) return value;
  if (Array.isArray(schema)) return value.map((item) => documented(item, schema[0]));
  const names = Object.keys(schema).filter((name) => name in value);
  return Object.fromEntries(names.map((name) => [name, documented(value[name], schema[name])]));
}
