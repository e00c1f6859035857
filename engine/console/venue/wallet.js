// An account that signs: of a wallet in the browser (EIP-1193), or of a development node (JSON-RPC over HTTP).
import { allowance, balanceOf, deposits, isSame, NATIVE, transferred } from "./abi.js";

const LOOK_MS = 400;
const MINED_MS = 180_000;

/** @typedef {{request: (call: {method: string, params?: any[]}) => Promise<any>}} Provider */

/** @typedef {{to: string, data: string, value?: bigint, gas?: bigint}} Transaction */

/** An act of which the wallet did not say whether it did it. */
export class NoAnswer extends Error {}

/** The wallet of the browser, if any. @returns {Provider | null} */
export const browserProvider = () => /** @type {any} */ (window).ethereum ?? null;

/** A development node, whose accounts are its own. @param {string} url @returns {Provider} */
export function nodeProvider(url) {
  let id = 0;
  return {
    async request({ method, params = [] }) {
      const body = JSON.stringify({ jsonrpc: "2.0", id: (id += 1), method, params });
      const response = await fetch(url, { method: "POST", headers: { "content-type": "application/json" }, body })
        .catch(() => { throw new Error(`The node at ${url} does not answer.`); });
      const { result, error } = await response.json();
      if (error) throw Object.assign(new Error(error.message), { code: error.code });
      return result;
    },
  };
}

/**
 * Accounts of a provider, on the chain.
 * @param {Provider} provider
 * @param {number} chainId
 * @returns {Promise<string[]>}
 */
export async function accountsOf(provider, chainId) {
  const accounts = await provider.request({ method: "eth_requestAccounts" });
  const wanted = `0x${chainId.toString(16)}`;
  if (Number(await provider.request({ method: "eth_chainId" })) !== chainId) {
    await provider.request({ method: "wallet_switchEthereumChain", params: [{ chainId: wanted }] });
  }
  return accounts;
}

/** One account, with the acts that a trade needs. */
export class Wallet {
  /** @param {Provider} provider @param {string} address @param {number} chainId @param {string} name */
  constructor(provider, address, chainId, name) {
    this.provider = provider;
    this.address = address;
    this.chainId = chainId;
    this.name = name;
  }

  /** @param {string} method @param {...any} params */
  async ask(method, ...params) {
    try {
      return await this.provider.request({ method, params });
    } catch (error) {
      const { code, message } = /** @type {any} */ (error);
      throw new (code === undefined ? NoAnswer : Error)(code === 4001 ? "You refused in the wallet. Nothing was signed." : `The wallet answers: ${message}`);
    }
  }

  /** @param {string} token @returns {Promise<bigint>} */
  async balance(token) {
    if (isSame(token, NATIVE)) return BigInt(await this.ask("eth_getBalance", this.address, "latest"));
    return number(await this.ask("eth_call", { to: token, data: balanceOf(this.address) }, "latest"));
  }

  /** @param {string} token @param {string} spender @returns {Promise<bigint>} */
  async allowance(token, spender) {
    return number(await this.ask("eth_call", { to: token, data: allowance(this.address, spender) }, "latest"));
  }

  /** The account's deposit of native tokens. @param {string} contract @returns {Promise<bigint>} */
  async deposit(contract) {
    return number(await this.ask("eth_call", { to: contract, data: deposits(this.address) }, "latest"));
  }

  /** The address that a contract's function without parameters returns. @param {string} to @param {string} data @returns {Promise<string>} */
  async contractAt(to, data) {
    return `0x${(number(await this.ask("eth_call", { to, data }, "latest")) & (2n ** 160n - 1n)).toString(16).padStart(40, "0")}`;
  }

  /** What a contract answers to a call by this account. @param {string} to @param {string} data @returns {Promise<string>} */
  call(to, data) {
    return this.ask("eth_call", { from: this.address, to, data }, "latest");
  }

  /** Refuse to go on if the wallet is on another chain. */
  async checkChain() {
    const chain = Number(await this.ask("eth_chainId"));
    if (chain !== this.chainId) throw new Error(`The wallet is on chain ${chain}, the trade on chain ${this.chainId}.`);
  }

  /**
   * Have a transaction signed and sent; NoAnswer if it is not known whether it was.
   * @param {Transaction} transaction
   * @returns {Promise<string>} its hash
   */
  send({ to, data, value = 0n, gas }) {
    const hex = (/** @type {bigint} */ amount) => `0x${amount.toString(16)}`;
    return this.ask("eth_sendTransaction", { from: this.address, to, data, value: hex(value), ...(gas && { gas: hex(gas) }) });
  }

  /** The receipt of a transaction, mined or reverted. @param {string} hash @returns {Promise<any>} */
  async receipt(hash) {
    for (const end = Date.now() + MINED_MS; Date.now() < end;) {
      const receipt = await this.ask("eth_getTransactionReceipt", hash).catch(() => null);
      if (receipt) return receipt;
      await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
    }
    throw new Error(`The transaction ${hash} is not mined after three minutes. It may still be, or your wallet sent another one in its place: look there.`);
  }

  /**
   * What the account paid or received of a token in a transaction that it sent; null where that cannot be known.
   * Tokens are counted by the receipt's transfers; native ones by the balance before and after the block, and the gas.
   * @param {any} receipt @param {string} token @param {"paid" | "received"} direction
   * @returns {Promise<bigint | null>}
   */
  async moved(receipt, token, direction) {
    if (!isSame(token, NATIVE)) {
      const found = transferred(receipt.logs, token, this.address);
      return direction === "paid" ? -found : found;
    }
    try {
      const height = BigInt(receipt.blockNumber);
      const at = (/** @type {bigint} */ block) => this.ask("eth_getBalance", this.address, `0x${block.toString(16)}`).then(BigInt);
      const [before, after] = await Promise.all([at(height - 1n), at(height)]);
      const change = after - before + BigInt(receipt.gasUsed) * BigInt(receipt.effectiveGasPrice);
      return direction === "paid" ? -change : change;
    } catch {
      return null;
    }
  }

  /** Sign EIP-712 data. @param {object} typed @returns {Promise<string>} */
  sign(typed) {
    return this.ask("eth_signTypedData_v4", this.address, JSON.stringify(typed));
  }
}

/** @param {string} answer */
const number = (answer) => (answer && answer !== "0x" ? BigInt(answer.slice(0, 66)) : 0n);
