// The present chain, its tokens, the account and the key of the operator; listeners hear of changes.
import { ask } from "/console/shared/http.js";
import { cut, formatUnits } from "/console/shared/amounts.js";

/** @typedef {{chainId: number, name: string, delta: boolean, market: boolean, rfq: boolean, walletUrl?: string, explorerUrl?: string | null}} Chain */
/** @typedef {{symbol: string, address: string, decimals: number, isListed: boolean}} Token */

export const state = {
  /** @type {Chain[]} */ chains: [],
  /** @type {Chain | null} */ chain: null,
  /** @type {Map<string, Token>} by lower-case address */ tokens: new Map(),
  /** @type {Map<number, {tokens: Map<string, Token>, reached: Token[]}>} chains that bridges reach from here; `reached`: tokens that they deliver */ far: new Map(),
  /** @type {any} contracts of the chain */ contracts: {},
  /** @type {import("./wallet.js").Wallet | null} */ wallet: null,
  /** the operator's API key; it is forgotten when the page closes */ key: "",
  /** @type {{name: string, isAgent: boolean, call: import("/console/shared/signing.js").Call} | null} a maker or an agent that signed in, also until the page closes */ maker: null,
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

/** @param {{symbol: string, address: string, decimals: number}[]} listed @returns {Map<string, Token>} */
const byAddress = (listed) => new Map(listed.map((token) => [token.address.toLowerCase(), { ...token, isListed: true }]));

/** @param {Chain} chain @param {Chain[]} [chains] */
export async function choose(chain, chains = state.chains) {
  const none = { routes: [] };
  const [{ tokens }, { chains: contracts }, { routes }] = await Promise.all([
    ask(`/tokens/${chain.chainId}`), ask("/resources/contracts.json"), chain.delta ? ask("/v2/delta/prices/bridge-routes?allowBridgeAndSwap=false") : none,
  ]);
  const out = routes.filter((/** @type {any} */ route) => route.srcChainId === chain.chainId && route.destChainId !== chain.chainId);
  const far = await Promise.all(out.map(async (/** @type {any} */ { destChainId, tokens: brought }) => {
    const there = byAddress((await ask(`/tokens/${destChainId}`)).tokens);
    const reached = brought.flatMap((/** @type {string} */ address) => there.get(address.toLowerCase()) ?? []);
    return /** @type {[number, {tokens: Map<string, Token>, reached: Token[]}]} */ ([destChainId, { tokens: there, reached }]);
  }));
  localStorage.setItem("chain", String(chain.chainId));
  change({ chains, chain, wallet: null, contracts: contracts[chain.chainId] ?? {}, tokens: byAddress(tokens), far: new Map(far) });
}

/** A token by its address; an unlisted one shows raw units. @param {string} address @param {number} [chainId] @returns {Token} */
export const token = (address, chainId = state.chain?.chainId) =>
  (chainId === state.chain?.chainId ? state.tokens : state.far.get(Number(chainId))?.tokens)?.get(address.toLowerCase())
  ?? { symbol: `units of ${cut(address)}`, address, decimals: 0, isListed: false };

/** A whole amount with its symbol. @param {bigint | string} raw @param {Token} of @param {number} [digits] */
export const amountOf = (raw, of, digits) => `${formatUnits(raw, of.decimals, digits)} ${of.symbol}`;
/** The same by the token's address. @param {bigint | string} raw @param {string} address @param {number} [digits] @param {number} [chainId] */
export const amount = (raw, address, digits, chainId) => amountOf(raw, token(address, chainId), digits);

/** Whether two tokens have no price in one another: they are the same, or the native token and its wrapped form. @param {Token} one @param {Token} other */
export const isOneToken = (one, other) => one.address.toLowerCase() === other.address.toLowerCase() || one.symbol === `W${other.symbol}` || other.symbol === `W${one.symbol}`;

/** The tokens of a first trade: the wrapped native one for dollars, or the first two that differ. @param {Token[]} tokens @returns {[Token, Token]} */
export function firstPair(tokens) {
  const first = tokens.find(({ symbol }) => ["WETH", "WPOL", "WBNB"].includes(symbol)) ?? tokens[0];
  return [first, tokens.find(({ symbol }) => symbol === "USDC" && symbol !== first.symbol) ?? tokens.find((each) => !isOneToken(each, first)) ?? first];
}

/** A block explorer's page, or null where the chain has no explorer. @param {number} chainId @param {"tx" | "address"} kind @param {string} text */
export function explorerUrl(chainId, kind, text) {
  const base = state.chains.find((chain) => chain.chainId === Number(chainId))?.explorerUrl;
  return base && /^https?:\/\//.test(base) ? `${base.replace(/\/$/, "")}/${kind}/${text}` : null;
}

/** A chain's name. @param {number} chainId */
export const chainName = (chainId) => {
  const name = state.chains.find((chain) => chain.chainId === chainId)?.name;
  return name ? `${name} · ${chainId}` : `chain ${chainId}`;
};

/** Headers of a request by the operator. */
export const operatorHeaders = () => /** @type {Record<string, string>} */ (state.key ? { "x-api-key": state.key } : {});
