// The dialog in which a person agrees to a trade: the terms in words, then each step as it happens.
import { announce, h, row, show } from "/console/shared/dom.js";

/**
 * @param {import("./trade_plan.js").Plan} plan
 * @param {(order: any) => void} done called with the order's record, or null after a swap
 */
export function review(plan, done) {
  const marks = plan.steps.map(() => h("span", { class: "quiet" }));
  const fault = h("p", { class: "fault", role: "alert" });
  const agree = /** @type {HTMLButtonElement} */ (h("button", { type: "button", class: "primary", onclick: run }, "Agree and sign"));
  const close = /** @type {HTMLButtonElement} */ (h("button", { type: "button", onclick: () => dialog.close() }, "Cancel"));
  const dialog = /** @type {HTMLDialogElement} */ (h("dialog", { "aria-labelledby": "review-title", class: "review" },
    h("div", {},
      h("h2", { id: "review-title" }, plan.title),
      h("dl", { class: "rows" }, plan.lines.map(([term, value]) => row(term, value))),
      h("h3", {}, "Steps"),
      h("ol", { class: "steps" }, plan.steps.map(({ name }, at) => h("li", {}, name, " ", marks[at]))),
      fault,
      h("div", { class: "actions" }, close, agree))));

  async function run() {
    fault.textContent = "";
    agree.disabled = true;
    close.disabled = true;
    dialog.addEventListener("cancel", hold);
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
    close.disabled = false;
    dialog.removeEventListener("cancel", hold);
    if (marks.every((mark) => mark.className === "good")) {
      close.textContent = "Done";
      agree.hidden = true;
      close.focus();
      done(plan.order());
    }
  }
  const hold = (/** @type {Event} */ event) => event.preventDefault();
  document.body.append(dialog);
  dialog.addEventListener("close", () => dialog.remove());
  dialog.showModal();
}
