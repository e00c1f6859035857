// A button that names a token, and a dialog that finds another by symbol or address, with the account's balances.
import { dialogOf, h, show } from "/console/shared/dom.js";
import { cut } from "/console/shared/amounts.js";
import { amountOf, state } from "./state.js";

const BALANCES_MOST = 40; // tokens whose balances are read when the dialog opens

/**
 * @param {string} label what the token is for, such as "You pay"
 * @param {() => import("./state.js").Token[]} offered tokens to choose from
 * @param {import("./state.js").Token} first
 * @param {() => void} changed called after a person chose another token
 */
export function tokenPicker(label, offered, first, changed) {
  let chosen = first;
  const name = h("span", {});
  const element = h("button", { type: "button", class: "pick", "aria-haspopup": "dialog", "aria-label": `${label}: token`, onclick: open }, name, h("span", { "aria-hidden": "true" }, "▾"));
  const draw = () => {
    name.textContent = chosen.symbol;
    element.setAttribute("aria-label", `${label}: token ${chosen.symbol}`);
  };

  function open() {
    const list = h("ul", { class: "cards" });
    const search = /** @type {HTMLInputElement} */ (h("input", { type: "search", autocomplete: "off", spellcheck: "false", id: "token-search", oninput: fill, placeholder: "Symbol or address" }));
    /** @type {Map<string, HTMLElement>} */ const balances = new Map();
    function fill() {
      const wanted = search.value.trim().toLowerCase();
      const found = offered().filter(({ symbol, address }) => symbol.toLowerCase().includes(wanted) || address.toLowerCase().startsWith(wanted));
      show(list, found.length ? found.map((token) => {
        const has = balances.get(token.address) ?? h("span", { class: "small quiet" });
        balances.set(token.address, has);
        const pick = () => { dialog.close(); set(token); changed(); };
        return h("li", {}, h("button", { type: "button", "aria-pressed": String(token.address === chosen.address), "data-symbol": token.symbol, onclick: pick },
          h("span", {}, h("strong", {}, token.symbol), " ", h("span", { class: "mono quiet" }, cut(token.address))), has));
      }) : h("li", { class: "quiet" }, "No token has this symbol or address."));
    }
    const enter = (/** @type {Event} */ event) => { event.preventDefault(); /** @type {HTMLElement | null} */ (list.querySelector("button"))?.click(); };
    fill();
    const dialog = dialogOf("picker-title", h("h2", { id: "picker-title" }, `${label}: choose a token`),
      h("form", { onsubmit: enter }, h("label", { class: "field", for: "token-search" }, "Find", search)), list,
      h("div", { class: "actions" }, h("button", { type: "button", onclick: () => dialog.close() }, "Close")));
    dialog.addEventListener("close", () => element.focus());
    search.focus();
    read(balances);
  }

  /** @param {Map<string, HTMLElement>} places */
  async function read(places) {
    const { wallet } = state;
    const mine = offered().filter(({ address }) => state.tokens.has(address.toLowerCase())).slice(0, BALANCES_MOST);
    if (!wallet) return;
    await Promise.all(mine.map(async (token) => {
      const has = await wallet.balance(token.address).catch(() => null);
      const place = places.get(token.address);
      if (place && has !== null) place.textContent = amountOf(has, token);
    }));
  }

  /** @param {import("./state.js").Token} token */
  function set(token) {
    chosen = token;
    draw();
  }
  draw();
  return { element, set, token: () => chosen };
}
