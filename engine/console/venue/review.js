// The dialog in which a person agrees to a trade: the terms in words, each step as it happens, then what came of it.
import { announce, codeOf, dialogOf, h, row, show } from "/console/shared/dom.js";
import { explorerUrl, state } from "./state.js";

/**
 * @param {import("./trade_plan.js").Plan} plan
 * @param {(outcome: import("./trade_plan.js").Outcome) => void} done called once all steps are done
 */
export function review(plan, done) {
  const marks = plan.steps.map(() => h("span", { class: "quiet" }));
  const fault = h("p", { class: "fault", role: "alert" });
  const agree = /** @type {HTMLButtonElement} */ (h("button", { type: "button", class: "primary", onclick: run }, "Agree and sign"));
  const close = /** @type {HTMLButtonElement} */ (h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"));
  const actions = h("div", { class: "actions" }, close, agree);
  const steps = h("ol", { class: "steps" }, plan.steps.map(({ name }, at) => h("li", {}, name, " ", marks[at])));
  const result = h("div", { class: "part", hidden: true });
  const terms = h("div", { class: "part" }, h("h2", { id: "review-title" }, plan.title), h("dl", { class: "rows" }, plan.lines.map(([term, value]) => row(term, value))), h("h3", {}, "Steps"));
  const dialog = dialogOf("review-title", result, terms, steps, fault, actions);
  dialog.classList.add("review");

  async function run() {
    fault.textContent = "";
    agree.disabled = true;
    close.disabled = true;
    dialog.addEventListener("cancel", hold);
    dialog.dataset.busy = "";
    for (const [at, step] of plan.steps.entries()) {
      if (marks[at].className === "good") continue;
      show(marks[at], "…");
      announce(step.name);
      try {
        const said = (await step.run()) ?? "done";
        marks[at].className = "good";
        show(marks[at], `✓ ${said}`);
        announce(said);
      } catch (error) {
        show(marks[at]);
        fault.textContent = error instanceof Error ? error.message : String(error);
        agree.textContent = "Try again";
        agree.disabled = false;
        break;
      }
    }
    if (marks.every((mark) => mark.className === "good")) finish(await plan.outcome());
    close.disabled = false;
    dialog.removeEventListener("cancel", hold);
    delete dialog.dataset.busy;
    if (agree.hidden) close.focus();
  }

  /** @param {import("./trade_plan.js").Outcome} outcome */
  function finish(outcome) {
    const { headline, lines, hash, view } = outcome;
    show(result, h("p", { class: "big good" }, `✓ ${headline}`), h("dl", { class: "rows" }, lines.map(([term, value]) => row(term, value)),
      hash ? row("Transaction", codeOf(hash, "transaction", explorerUrl(state.chain?.chainId ?? 0, "tx", hash))) : null));
    result.hidden = false;
    terms.hidden = true;
    dialog.scrollTop = 0;
    close.textContent = "Done";
    agree.hidden = true;
    if (view) actions.append(h("button", { type: "button", class: "primary", onclick: () => { dialog.close(); location.hash = view; } }, "View order"));
    announce(headline);
    done(outcome);
  }
  const hold = (/** @type {Event} */ event) => event.preventDefault();
}
