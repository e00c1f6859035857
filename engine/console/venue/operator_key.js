// The operator's API key: kept in this page's memory alone, sent only to the venue itself.
import { h, show } from "/console/shared/dom.js";
import { ask } from "/console/shared/http.js";
import { change, state } from "./state.js";

/**
 * A form that asks for the key, or says that the page has it; `why` says for what it is needed.
 * @param {string} why
 */
export function keyForm(why) {
  const place = h("section", { class: "card", "aria-label": "Operator’s key" });
  const fault = h("p", { class: "fault", role: "alert" });
  const input = /** @type {HTMLInputElement} */ (h("input", { type: "password", autocomplete: "off", spellcheck: "false", id: "operator-key" }));

  async function submit(/** @type {Event} */ event) {
    event.preventDefault();
    fault.textContent = "";
    try {
      await ask("/operator/status", { headers: { "x-api-key": input.value } });
      change({ key: input.value });
      input.value = "";
    } catch (error) {
      fault.textContent = /** @type {Error} */ (error).message;
    }
  }

  function draw() {
    if (state.key) {
      show(place, h("div", { class: "heading" }, h("p", {}, "This page has the operator’s key. It forgets it when it is closed."),
        h("button", { type: "button", onclick: () => change({ key: "" }) }, "Forget the key")));
    } else {
      show(place, h("form", { onsubmit: submit, class: "part" }, h("p", { class: "quiet" }, why),
        h("div", { class: "inline" }, h("label", { class: "field", for: "operator-key" }, "Operator’s API key", input), h("button", { type: "submit" }, "Use the key")), fault));
    }
  }
  draw();
  return { element: place, draw };
}

/**
 * Call `look` now and every `everyMs` while the page is visible, until the returned function is called.
 * @param {(signal: AbortSignal) => Promise<void>} look
 * @param {number} everyMs
 */
export function poll(look, everyMs) {
  const stopped = new AbortController();
  let waiting = 0;
  const again = async () => {
    clearTimeout(waiting);
    if (!document.hidden) await look(stopped.signal).catch((error) => { if (!stopped.signal.aborted) throw error; });
    if (!stopped.signal.aborted) waiting = setTimeout(again, everyMs);
  };
  again();
  return () => { stopped.abort(); clearTimeout(waiting); };
}
