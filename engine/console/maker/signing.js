// Signs requests as venues sign theirs to makers (HMAC-SHA256), with the secret of an administrator's domain.
// The secret becomes a key of the browser that cannot be exported; the page forgets it when it closes.
import { ask } from "/console/shared/http.js";

/** @param {ArrayBuffer} bytes */
const hex = (bytes) => [...new Uint8Array(bytes)].map((byte) => byte.toString(16).padStart(2, "0")).join("");

/**
 * @param {{domain: string, accessKey: string, secret: string}} credentials
 * @returns {Promise<(path: string, body?: unknown) => Promise<any>>} a call that is signed: GET, or POST with a body
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
