// The choice of chain and account in the head of the page.
import { h, show } from "/console/shared/dom.js";
import { cut } from "/console/shared/amounts.js";
import { accountsOf, browserProvider, nodeProvider, Wallet } from "./wallet.js";
import { change, choose, onChange, state } from "./state.js";

const NAME = { browser: "browser wallet", node: "devnet account" };

/** @param {"browser" | "node"} kind */
const provider = (kind) => (kind === "browser" ? browserProvider() : state.chain?.walletUrl ? nodeProvider(state.chain.walletUrl) : null);

/** Draw the tools, and again after each change. @param {HTMLElement} place */
export function accountTools(place) {
  const draw = () => show(place, chainSelect(), accountButton());
  onChange(draw);
  draw();
}

function chainSelect() {
  const selected = state.chain;
  if (!selected) return null;
  const pick = async (/** @type {Event} */ event) => {
    const id = Number(/** @type {HTMLSelectElement} */ (event.target).value);
    const chain = state.chains.find((each) => each.chainId === id);
    if (chain) await choose(chain);
  };
  return h("select", { "aria-label": "Chain", onchange: pick },
    state.chains.map(({ chainId, name }) => h("option", { value: String(chainId), selected: chainId === selected.chainId }, `${name} · ${chainId}`)));
}

function accountButton() {
  const { wallet } = state;
  const label = wallet ? cut(wallet.address) : "Connect";
  return h("button", { type: "button", id: "account", "aria-haspopup": "dialog", title: wallet?.address ?? false, onclick: connect }, label);
}

/** The dialog in which an account is chosen. */
export function connect() {
  const list = h("div", { class: "accounts" });
  const fault = h("p", { class: "fault", role: "alert" });
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": "connect-title" },
    h("div", {},
      h("h2", { id: "connect-title" }, "Choose an account"),
      h("p", { class: "quiet small" }, "The account signs in your wallet or at the development node. This page never sees a key."),
      list, fault,
      h("div", { class: "actions" },
        state.wallet ? h("button", { type: "button", onclick: () => { change({ wallet: null }); dialog.close(); } }, "Disconnect") : null,
        h("button", { type: "button", onclick: () => dialog.close() }, "Close")))));

  const open = async (/** @type {"browser" | "node"} */ kind) => {
    const chain = state.chain;
    const source = provider(kind);
    if (!source || !chain) return;
    fault.textContent = "";
    try {
      const accounts = await accountsOf(source, chain.chainId);
      const use = (/** @type {string} */ address) => {
        change({ wallet: new Wallet(source, address, chain.chainId, NAME[kind]) });
        dialog.close();
      };
      if (accounts.length === 1) use(accounts[0]);
      else show(list, h("ol", { class: "steps" }, accounts.map((address) =>
        h("li", {}, h("button", { type: "button", class: "link mono", onclick: () => use(address) }, address)))));
    } catch (error) {
      fault.textContent = error instanceof Error ? error.message : String(/** @type {any} */ (error)?.message ?? error);
    }
  };
  const has = { browser: browserProvider() !== null, node: Boolean(state.chain?.walletUrl) };
  show(list, h("div", { class: "fields" },
    h("button", { type: "button", disabled: !has.browser, onclick: () => open("browser") }, has.browser ? "Browser wallet" : "No wallet in this browser"),
    has.node ? h("button", { type: "button", onclick: () => open("node") }, "Devnet accounts") : null));
  document.body.append(dialog);
  dialog.addEventListener("close", () => { dialog.remove(); document.getElementById("account")?.focus(); });
  dialog.showModal();
}
