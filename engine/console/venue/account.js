// The head of the page: makers that are live, the choice of chain, of the colours, and of the account.
import { dialogOf, h, show } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { cut, formatUnits } from "/console/shared/amounts.js";
import { accountsOf, browserProvider, nodeProvider, Wallet } from "./wallet.js";
import { poll } from "./poll.js";
import { amountOf, change, choose, onChange, state } from "./state.js";

const NAME = { browser: "browser wallet", node: "devnet account" };
const LIVE_MS = 10_000;
const SHOWN_TOKENS = 2; // balances beside each account
const THEMES = /** @type {Record<string, [string, string]>} */ ({ "": ["◐", "as the system"], light: ["☀", "light"], dark: ["☾", "dark"] });

/** @param {"browser" | "node"} kind */
const provider = (kind) => (kind === "browser" ? browserProvider() : state.chain?.walletUrl ? nodeProvider(state.chain.walletUrl) : null);

/** Draw the tools, and again after each change. @param {HTMLElement} place */
export function accountTools(place) {
  const live = h("span", { class: "live top quiet" }, "…");
  const draw = () => show(place, live, chainSelect(), themeButton(), accountButton());
  onChange(draw);
  draw();
  poll(async (signal) => {
    const books = await ask(`/makers/books?network=${state.chain?.chainId}`, { signal }).catch(() => null);
    const count = books?.filter((/** @type {any} */ one) => one.standings.live && !one.withheld.length).length;
    live.className = `live top ${books === null ? "bad" : count ? "good" : "warn"}`;
    live.textContent = books === null ? "not reached" : count ? `live · ${count} maker${count === 1 ? "" : "s"}` : "no live maker";
  }, LIVE_MS);
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

/** The colours that a person chose: empty as the system has them. */
const theme = () => localStorage.getItem("theme") ?? "";
/** Apply the chosen colours to the page. */
export function dressTheme() {
  if (theme()) document.documentElement.dataset.theme = theme();
  else delete document.documentElement.dataset.theme;
}

function themeButton() {
  const names = Object.keys(THEMES);
  const [sign, word] = THEMES[theme()] ?? THEMES[""];
  const button = h("button", { type: "button", class: "icon", id: "theme", title: `Colours: ${word}`, "aria-label": `Colours: ${word}`, onclick: () => {
    localStorage.setItem("theme", names[(names.indexOf(theme()) + 1) % names.length]);
    dressTheme();
    button.replaceWith(themeButton());
    document.getElementById("theme")?.focus();
  } }, sign);
  return button;
}

function accountButton() {
  const { wallet } = state;
  const label = wallet ? cut(wallet.address) : "Connect";
  return h("button", { type: "button", id: "account", class: wallet ? "" : "primary", "aria-haspopup": "dialog", title: wallet?.address ?? false, onclick: () => connect() }, label);
}

/** The dialog in which an account is chosen, or in which makers, agents and operators sign in. @param {"account" | "roles"} [part] that is open */
export function connect(part = "account") {
  const list = h("div", { class: "accounts part" });
  const [fault, deposit] = [h("p", { class: "fault", role: "alert" }), h("div", { class: "heading" })];
  const forms = h("div", {});
  /** @param {HTMLDetailsElement} details */
  const signIn = async (details) => {
    if (!details.open || forms.firstChild) return;
    const { roles } = await import("./sign_in.js");
    if (!forms.firstChild) show(forms, roles(() => dialog.close()));
  };
  const has = { browser: browserProvider() !== null, node: Boolean(state.chain?.walletUrl) };
  const sources = h("div", { class: "fields" },
    has.browser ? h("button", { type: "button", onclick: () => open("browser") }, "Browser wallet") : null,
    has.node ? h("button", { type: "button", onclick: () => open("node") }, "Devnet accounts") : null,
    has.browser || has.node ? null : h("p", {}, "This browser has no wallet. Install one, and open this page again."));
  const dialog = dialogOf("connect-title",
    h("h2", { id: "connect-title" }, "Choose an account"),
    h("p", { class: "quiet small" }, "The account signs in your wallet or at the development node. This page never sees a key."),
    sources, list, fault, deposit,
    h("details", { open: part === "roles", ontoggle: (/** @type {Event} */ event) => signIn(/** @type {HTMLDetailsElement} */ (event.target)) }, h("summary", {}, "Sign in as operator, maker or agent"), forms),
    h("div", { class: "actions" },
      state.wallet ? h("button", { type: "button", onclick: () => { change({ wallet: null }); dialog.close(); } }, "Disconnect") : null,
      h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
  dialog.addEventListener("close", () => document.getElementById("account")?.focus());
  if (state.wallet && state.contracts.delta) {
    state.wallet.deposit(state.contracts.delta).then((/** @type {bigint} */ has) => {
      const withdraw = async () => {
        const [{ withdrawPlan }, { review }] = await Promise.all([import("./trade_plan.js"), import("./review.js")]);
        dialog.close();
        review(withdrawPlan(has), () => change({}));
      };
      if (has > 0n) show(deposit, h("p", {}, `Deposited for orders: ${formatUnits(has, 18)}`), h("button", { type: "button", onclick: withdraw }, "Withdraw"));
    }).catch(() => {});
  }

  async function open(/** @type {"browser" | "node"} */ kind) {
    const chain = state.chain;
    const source = provider(kind);
    if (!source || !chain) return;
    fault.textContent = "";
    try {
      const accounts = await accountsOf(source, chain.chainId);
      const use = (/** @type {Wallet} */ wallet) => {
        change({ wallet });
        dialog.close();
      };
      const wallets = accounts.map((address) => new Wallet(source, address, chain.chainId, NAME[kind]));
      if (wallets.length === 1) use(wallets[0]);
      else show(list, h("ul", { class: "cards" }, wallets.map((wallet, at) => h("li", {}, accountCard(wallet, at, () => use(wallet))))));
    } catch (error) {
      fault.textContent = error instanceof Error ? error.message : String(/** @type {any} */ (error)?.message ?? error);
    }
  }
  if (part === "account" && !has.browser && has.node) open("node");
}

/** An account with what it has of the first tokens. @param {Wallet} wallet @param {number} at @param {() => void} use */
function accountCard(wallet, at, use) {
  const holds = h("span", { class: "small quiet" });
  const button = h("button", { type: "button", "data-address": wallet.address, onclick: use }, h("span", {}, h("strong", {}, `Account ${at + 1}`), " ", h("span", { class: "mono", title: wallet.address }, cut(wallet.address))), holds);
  const tokens = [...state.tokens.values()].filter(({ symbol }) => ["WETH", "WPOL", "WBNB", "USDC"].includes(symbol)).slice(0, SHOWN_TOKENS);
  Promise.all(tokens.map(async (token) => amountOf(await wallet.balance(token.address), token, 5))).then((found) => { holds.textContent = found.join(", "); }).catch(() => {});
  return button;
}
