// The story of a maker's operator at the maker's own console. arguments: DOMAIN ACCESS_KEY SECRET
import { visiting } from "./browser.mjs";
import { pictures, rows, violations, waitFor } from "./console_page.mjs";

export const run = visiting(async (page, base, { shot }, domain, accessKey, secret) => {
  await page.goto(`${base}/`);
  await page.getByText("ready", { exact: true }).waitFor();
  const open = await page.locator("main").innerText();
  const faults = await violations(page);
  const signIn = async (text) => {
    for (const [label, value] of Object.entries({ Domain: domain, "Access key": accessKey, Secret: text })) await page.getByLabel(label).fill(value);
    await page.getByRole("button", { name: "Sign in" }).click();
  };
  await signIn("a wrong secret");
  const refusal = page.locator("section[aria-label='Sign in'] .fault:not(:empty)");
  await refusal.waitFor();
  const refused = await refusal.innerText();
  await signIn(secret);
  await page.locator(".bids tbody td").first().waitFor();
  const told = { open, refused, pairs: await rows(page.getByRole("table", { name: "Pairs" })), tokens: await rows(page.getByRole("table", { name: "Inventory" })), bids: await rows(page.locator(".bids")), quotes: await rows(page.getByRole("table", { name: "Last quotes" })), refusals: await rows(page.getByRole("table", { name: "Refusals by reason" })) };
  faults.push(...(await violations(page)));
  const overflowing = await pictures(page, shot, "maker");
  await page.getByRole("button", { name: "Stop everything" }).click();
  const question = await page.locator("dialog h2").innerText();
  await page.locator("dialog").getByRole("button", { name: "No" }).click();
  const kept = await page.getByText("Nothing is stopped.").isVisible();
  await page.getByRole("button", { name: "Stop everything" }).click();
  await page.locator("dialog").getByRole("button", { name: "Stop", exact: true }).click();
  await waitFor(page, "Stopped: all");
  await page.getByText("not ready", { exact: true }).waitFor();
  const reasons = await page.locator(".reasons").innerText();
  await page.getByRole("button", { name: "Resume everything" }).click();
  await page.getByText("Nothing is stopped.").waitFor();
  return { ...told, faults, overflowing, reasons, question, kept };
});
