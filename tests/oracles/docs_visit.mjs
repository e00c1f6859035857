// Visits /docs of a venue and tries operations, as a reader does: [{"operation", "parameters", "body"}, ...] as JSON.
// Tells of each operation its status and body, and the text that each tab's button copies; null if none can be sent.
import { visiting } from "./browser.mjs";

async function tried(page, { operation, parameters = {}, body }) {
  const block = page.locator(`.opblock[id$="-${operation}"]`);
  await block.locator(".opblock-summary-control").click();
  await block.locator(".responses-wrapper").waitFor();
  const start = block.getByRole("button", { name: "Try it out" });
  if (await start.count() === 0) return null;
  await start.click();
  for (const [name, value] of Object.entries(parameters)) {
    await block.locator(`tr[data-param-name="${name}"] input`).fill(value);
  }
  if (body !== undefined) await block.locator("textarea.body-param__text").fill(JSON.stringify(body));
  await block.getByRole("button", { name: "Execute" }).click();
  const answer = block.locator(".live-responses-table .response").first();
  const status = await answer.locator(".response-col_status").innerText();
  const copied = {};
  for (const tab of ["curl", "JavaScript"]) {
    await block.locator(".request-snippets .btn", { hasText: tab }).click();
    await block.locator(".request-snippets .copy-to-clipboard button").click();
    copied[tab] = await page.evaluate("navigator.clipboard.readText()");
  }
  return { status: parseInt(status), body: await answer.locator(".response-col_description pre").first().innerText(), copied };
}

export const run = visiting(async (page, base, { shot }, steps) => {
  await page.goto(`${base}/docs`);
  await page.locator(".opblock").first().waitFor();
  const operations = await page.locator(".opblock-summary-path").evaluateAll((all) => all.map((one) => one.dataset.path));
  const links = await page.locator("nav a").evaluateAll((all) => all.map((one) => one.getAttribute("href")));
  const done = [];
  for (const step of JSON.parse(steps)) done.push(await tried(page, step));
  await shot("docs");
  return { title: await page.title(), operations, links, done };
});
