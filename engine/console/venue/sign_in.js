// Signs in as the operator, by an API key, or as a maker or an agent, by the secret that it shares with the venue. The page
// keeps both in its memory alone, and forgets them when it is closed.
import { announce, h, show } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { signInForm } from "/console/shared/signing.js";
import { change, state } from "./state.js";

/** Use a key of the operator, once the venue accepts it. @param {string} key */
export async function useKey(key) {
  await ask("/operator/status", { headers: { "x-api-key": key } });
  change({ key });
  announce("Signed in as operator");
}

/** Forms to sign in, or what the page is signed in as. @param {() => void} done called after each change */
export function roles(done) {
  const [operator, secret] = [h("div", { class: "part" }), h("div", { class: "part" })];
  const fault = h("p", { class: "fault", role: "alert" });
  const input = /** @type {HTMLInputElement} */ (h("input", { type: "password", autocomplete: "off", spellcheck: "false", id: "operator-key" }));
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    fault.textContent = "";
    try {
      await useKey(input.value);
      done();
    } catch (error) {
      fault.textContent = /** @type {Error} */ (error).message;
    }
  };
  const signedIn = (/** @type {string} */ words, /** @type {() => void} */ out) => h("div", { class: "heading" }, h("p", {}, words), h("button", { type: "button", onclick: () => { out(); done(); } }, "Sign out"));
  if (state.key) show(operator, signedIn("Signed in as operator.", () => change({ key: "" })));
  else {
    show(operator, h("form", { onsubmit: submit, class: "part" }, h("p", { class: "small quiet" }, "The operator’s key is one of [venue.api_keys] with operator = true."),
      h("div", { class: "inline" }, h("label", { class: "field", for: "operator-key" }, "Operator’s API key", input), h("button", { type: "submit" }, "Use the key")), fault));
  }
  if (state.maker) show(secret, signedIn(`Signed in as ${state.maker.isAgent ? "an agent" : `the maker ${state.maker.name}`}.`, () => change({ maker: null })));
  else {
    signInForm(secret, "A maker or an agent signs in with the credentials with which the venue asks it.", async (call) => {
      change({ maker: await found(call) });
      announce(`Signed in as ${state.maker?.name || "an agent"}`);
      done();
    });
  }
  return h("div", { class: "part" }, h("h3", {}, "Operator"), operator, h("h3", {}, "Maker or agent"), secret);
}

/** The maker or the agent whose signature it is: its pairs are shown to it alone. @param {import("/console/shared/signing.js").Call} call */
async function found(call) {
  const network = state.chain?.chainId;
  let refusal = new Error("The venue has no maker and no agent on this chain with this signature.");
  try {
    for (const { maker: name } of await call(`/makers/books?network=${network}`)) {
      const [{ pairs }] = await call(`/makers/books?network=${network}&makerName=${encodeURIComponent(name)}`);
      if (pairs !== null) return { name, call, isAgent: false };
    }
  } catch (error) {
    refusal = /** @type {Error} */ (error);
  }
  if (state.chain?.delta) {
    const told = await call(`/v2/delta/auctions?chainId=${network}&limit=1`).catch((/** @type {Error} */ error) => { throw refusal ?? error; });
    if (Array.isArray(told)) return { name: "", call, isAgent: true };
  }
  throw refusal;
}
