// Signs requests as venues and makers sign theirs (HMAC-SHA256), with the secret of a domain, and asks for that secret.
// The secret becomes a key of the browser that cannot be exported; the page forgets it when it closes.
import { h, show } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";

/** @typedef {(path: string, body?: unknown) => Promise<any>} Call a signed request: GET, or POST with a body */

/** @param {ArrayBuffer} bytes */
const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * @param {{domain: string, accessKey: string, secret: string}} credentials
 * @returns {Promise<Call>}
 */
export async function signer({ domain, accessKey, secret }) {
  if (!crypto.subtle) throw new Error("The browser signs only on pages of https, or of this machine.");
  const text = new TextEncoder();
  const key = await crypto.subtle.importKey("raw", text.encode(secret), { name: "HMAC", hash: "SHA-256" }, false, ["sign"]);
  return async (path, body) => {
    const at = Date.now();
    const sent = body === undefined ? "" : JSON.stringify(body);
    const signature = hex(await crypto.subtle.sign("HMAC", key, text.encode(`${at}${body === undefined ? "GET" : "POST"}${path}${sent}`)));
    const headers = { "x-auth-domain": domain, "x-auth-access-key": accessKey, "x-auth-timestamp": String(at), "x-auth-signature": signature };
    return ask(path, { body, headers });
  };
}

/**
 * Ask for domain, access key and secret in a place.
 * @param {HTMLElement} place
 * @param {string} why in words, for what they are needed
 * @param {(call: Call) => Promise<void>} use throws if the server refuses the signature
 */
export function signInForm(place, why, use) {
  const field = (/** @type {string} */ name, type = "text") => /** @type {HTMLInputElement} */ (h("input", { id: name, type, autocomplete: "off", spellcheck: "false", required: true }));
  const [domain, accessKey, secret] = [field("domain"), field("access-key"), field("secret", "password")];
  const wrong = h("p", { class: "fault", role: "alert" });
  const submit = async (/** @type {Event} */ event) => {
    event.preventDefault();
    wrong.textContent = "";
    try {
      await use(await signer({ domain: domain.value, accessKey: accessKey.value, secret: secret.value }));
    } catch (error) {
      wrong.textContent = /** @type {Error} */ (error).message;
    }
  };
  const labelled = (/** @type {string} */ text, /** @type {HTMLInputElement} */ input) => h("label", { class: "field", for: input.id }, text, input);
  show(place, h("form", { class: "part", onsubmit: submit }, h("p", { class: "quiet" }, why),
    h("div", { class: "fields" }, labelled("Domain", domain), labelled("Access key", accessKey), labelled("Secret", secret)), wrong,
    h("div", { class: "actions" }, h("button", { type: "submit" }, "Sign in"))));
}
