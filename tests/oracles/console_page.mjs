// Acts of people on the console: choose an account, fill in a trade, agree to it, read a table.
import { readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import path from "node:path";
import { WAIT_MS } from "./patience.mjs";

const axe = await readFile(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
export const WIDTHS = { narrow: 320, phone: 420, usual: 1440, wide: 3840 };

// Choose account `at` of the devnet, or of the wallet in the browser.
export async function connect(page, at, source = "Devnet accounts") {
  await page.locator("#account").click();
  await page.getByRole("button", { name: source }).click();
  await page.locator("dialog ul.cards button").nth(at).click();
  await page.locator("#account[title]").waitFor();
  return page.locator("#account").getAttribute("title");
}

// Choose a token in the dialog of a picker.
export async function pickToken(page, label, symbol) {
  const button = page.locator(`button.pick[aria-label^='${label}: token']`);
  if ((await button.innerText()).replace("▾", "").trim() === symbol) return;
  await button.click();
  await page.getByLabel("Find", { exact: true }).fill(symbol);
  await page.locator("dialog ul.cards button").filter({ has: page.getByText(symbol, { exact: true }) }).first().click();
}

export async function fillTrade(page, { kind, pay, get, amount, of = "SELL" }) {
  await page.getByRole("radio", { name: kind, exact: true }).check({ force: true });
  if (pay) await pickToken(page, "You pay", pay);
  if (get) await pickToken(page, "You receive", get);
  await page.locator(`#amount-${of}`).fill(amount);
}

// Sign in as the operator, in the dialog of accounts and roles.
export async function useKey(page, key) {
  await page.locator("#account").click();
  await page.locator("summary", { hasText: "Sign in as operator" }).click();
  await page.getByLabel("Operator’s API key").fill(key);
  await page.getByRole("button", { name: "Use the key" }).click();
}

// Press the button of the form once it offers the review; the terms in the dialog.
export async function reviewed(page) {
  await page.getByRole("button", { name: /^Review/ }).click();
  const dialog = page.locator("dialog.review");
  await dialog.waitFor();
  return { title: await dialog.locator("h2").innerText(), terms: await pairs(dialog) };
}

// Agree, until all steps are done; what they said, and what came of it. `view`: go to the order's page.
export async function agreed(page, { view = false } = {}) {
  await page.getByRole("button", { name: "Agree and sign" }).click();
  const dialog = page.locator("dialog.review");
  await dialog.getByRole("button", { name: "Done" }).waitFor();
  const said = await dialog.locator(".steps li span").allInnerTexts();
  const headline = await dialog.locator("p.big").innerText();
  const result = await pairs(dialog);
  const misfits = await misfitting(page);
  await dialog.getByRole("button", { name: view ? "View order" : "Done" }).click();
  return { said, headline, result, misfits };
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

// Elements that are wider than their box, or whose text is cut without a hint, in the present window.
export const misfitting = (page) => page.evaluate(() => {
  const found = [];
  if (document.documentElement.scrollWidth > innerWidth) found.push(`page ${document.documentElement.scrollWidth} > ${innerWidth}`);
  for (const each of document.querySelectorAll("body *")) {
    const { overflowX, textOverflow, display, position, clipPath } = getComputedStyle(each);
    if (each instanceof SVGElement || display === "inline" || each.closest("[hidden], .unseen, .skip, .route") || !each.clientWidth || clipPath !== "none") continue;
    const scrolls = ["auto", "scroll"].includes(overflowX);
    const isCut = each.scrollWidth > each.clientWidth + 1 && !scrolls && textOverflow !== "ellipsis" && each.tagName !== "SELECT";
    const box = each.getBoundingClientRect();
    const around = each.closest("dialog, .card");
    const isOut = around && around !== each && position !== "absolute" && !each.parentElement.closest(".scroll, .rows, ul.cards, nav, .segments") && box.right > around.getBoundingClientRect().right + 1;
    if (isCut || isOut) found.push(`${each.tagName.toLowerCase()}.${each.className} ${each.scrollWidth} > ${each.clientWidth}: ${each.textContent.slice(0, 60)}`);
  }
  return found.slice(0, 5);
});

// Pictures in all widths, light, and in the usual width, dark too; what does not fit, by width.
// The guide has the picture if `isInGuide`.
export async function pictures(page, shot, name, isInGuide = true) {
  const overflowing = [];
  for (const [width, size] of Object.entries(WIDTHS)) {
    await page.setViewportSize({ width: size, height: size === WIDTHS.wide ? 2160 : 900 });
    await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    await page.evaluate(() => scrollTo(0, 0));
    overflowing.push(...(await misfitting(page)).map((text) => `${name}-${width}: ${text}`));
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
