// Acts of people on the console: choose an account, fill in a trade, agree to it, read a table.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { WAIT_MS } from "./patience.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const WIDTHS = { narrow: 420, usual: 1280, wide: 3840 };

// Choose account `at` of the devnet, or of the wallet in the browser.
export async function connect(page, at, source = "Devnet accounts") {
  await page.locator("#account").click();
  await page.getByRole("button", { name: source }).click();
  const accounts = page.locator("dialog .steps button");
  await accounts.nth(at).click();
  return page.locator("#account").getAttribute("title");
}

export async function fillTrade(page, { kind, pay, get, amount, of = "SELL" }) {
  await page.getByRole("radio", { name: kind, exact: true }).check({ force: true });
  if (pay) await page.getByLabel("You pay: token").selectOption({ label: pay });
  if (get) await page.getByLabel("You receive: token").selectOption({ label: get });
  await page.locator(`#amount-${of}`).fill(amount);
}

// Press the button of the form once it offers the review; the terms in the dialog.
export async function reviewed(page) {
  await page.getByRole("button", { name: /^Review/ }).click();
  const dialog = page.locator("dialog.review");
  await dialog.waitFor();
  return { title: await dialog.locator("h2").innerText(), terms: await pairs(dialog) };
}

// Agree, until all steps are done; what they said.
export async function agreed(page) {
  await page.getByRole("button", { name: "Agree and sign" }).click();
  await page.getByRole("button", { name: "Done" }).waitFor();
  const said = await page.locator("dialog.review .steps li span").allInnerTexts();
  await page.getByRole("button", { name: "Done" }).click();
  return said;
}

// Terms and values of a list.
export async function pairs(place) {
  return Object.fromEntries(await place.locator("dl.rows .row").evaluateAll((rows) => rows.map((row) => [row.children[0].textContent, row.children[1].textContent])));
}

// Cells of a table's rows, once it has rows: a table of rows.js draws them in the next frame.
export async function rows(place) {
  const all = place.locator("tbody tr:not([aria-hidden])");
  await all.first().waitFor();
  return all.evaluateAll((found) => found.map((row) => [...row.children].map((cell) => cell.textContent)));
}

// Violations that axe-core finds in light and in dark, each with the first element.
export async function violations(page) {
  const found = [];
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
    await page.evaluate(axe);
    const { violations: told } = await page.evaluate(() => globalThis.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
    found.push(...told.map(({ id, nodes }) => `${colorScheme}: ${id}: ${nodes[0].html.slice(0, 160)} ${nodes[0].failureSummary ?? ""}`));
  }
  await page.emulateMedia({ colorScheme: "light" });
  return found;
}

// Pictures in all widths, light, and in the usual width, dark too; names of pages wider than their window.
// The guide has the picture if `isInGuide`.
export async function pictures(page, shot, name, isInGuide = true) {
  const overflowing = [];
  for (const [width, size] of Object.entries(WIDTHS)) {
    await page.setViewportSize({ width: size, height: size === WIDTHS.wide ? 2160 : 900 });
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await page.evaluate(() => scrollTo(0, 0));
    if (await page.evaluate(() => document.documentElement.scrollWidth > innerWidth)) overflowing.push(`${name}-${width}`);
    await shot(`${name}-${width}`);
  }
  await page.setViewportSize({ width: WIDTHS.usual, height: 900 });
  if (isInGuide && process.env.CONSOLE_PICTURES) await documented(page, path.join(process.env.CONSOLE_PICTURES, `${name}.webp`));
  await page.emulateMedia({ colorScheme: "dark" });
  await shot(`${name}-dark`);
  await page.emulateMedia({ colorScheme: "light" });
  return overflowing;
}

// A small picture of the whole page, for docs/guides/console.md (`make pictures`).
async function documented(page, file) {
  const client = await page.context().newCDPSession(page);
  const height = await page.evaluate(() => document.querySelector("main").scrollHeight + document.querySelector("header").offsetHeight - 60);
  const clip = { x: 0, y: 0, width: WIDTHS.usual, height, scale: 1 };
  const { data } = await client.send("Page.captureScreenshot", { format: "webp", quality: 55, captureBeyondViewport: true, clip });
  await writeFile(file, Buffer.from(data, "base64"));
}

export const waitFor = (page, text, place = "main") => page.locator(place).getByText(text).first().waitFor({ timeout: WAIT_MS });
