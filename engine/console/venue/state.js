// The present chain, its tokens, the account and the key of the operator; listeners hear of changes.
import { ask } from "/console/shared/http.js";
import { cut, formatUnits } from "/console/shared/amounts.js";

/** @typedef {{chainId: number, name: string, delta: boolean, market: boolean, rfq: boolean, walletUrl?: string}} Chain */
/** @typedef {{symbol: string, address: string, decimals: number, isListed: boolean}} Token */

export const state = {
  /** @type {Chain[]} */ chains: [],
  /** @type {Chain | null} */ chain: null,
  /** @type {Map<string, Token>} by lower-case address */ tokens: new Map(),
  /** @type {any} contracts of the chain */ contracts: {},
  /** @type {import("./wallet.js").Wallet | null} */ wallet: null,
  /** the operator's API key; it is forgotten when the page closes */ key: "",
};

/** @type {Set<() => void>} */
const listeners = new Set();

/** Call `heard` after each change, until the returned function is called. @param {() => void} heard */
export function onChange(heard) {
  listeners.add(heard);
  return () => listeners.delete(heard);
}

/** @param {Partial<typeof state>} changes */
export function change(changes) {
  Object.assign(state, changes);
  for (const heard of [...listeners]) heard();
}

/** Read the served chains, and the tokens and contracts of the first, or of the one named before. */
export async function load() {
  const chains = await ask("/chains");
  const before = Number(localStorage.getItem("chain"));
  await choose(chains.find((/** @type {Chain} */ chain) => chain.chainId === before) ?? chains[0], chains);
}

/** @param {Chain} chain @param {Chain[]} [chains] */
export async function choose(chain, chains = state.chains) {
  const [{ tokens }, { chains: contracts }] = await Promise.all([ask(`/tokens/${chain.chainId}`), ask("/resources/contracts.json")]);
  localStorage.setItem("chain", String(chain.chainId));
  change({
    chains, chain, wallet: null, contracts: contracts[chain.chainId] ?? {},
    tokens: new Map(tokens.map((/** @type {Token} */ token) => [token.address.toLowerCase(), { ...token, isListed: true }])),
  });
}

/** A token by its address; an unlisted one shows raw units. @param {string} address @returns {Token} */
export const token = (address) =>
  state.tokens.get(address.toLowerCase()) ?? { symbol: `units of ${cut(address)}`, address, decimals: 0, isListed: false };

/** A whole amount with its symbol. @param {bigint | string} raw @param {string} address @param {number} [digits] */
export const amount = (raw, address, digits) => `${formatUnits(raw, token(address).decimals, digits)} ${token(address).symbol}`;

/** Headers of a request by the operator. */
export const operatorHeaders = () => /** @type {Record<string, string>} */ (state.key ? { "x-api-key": state.key } : {});
