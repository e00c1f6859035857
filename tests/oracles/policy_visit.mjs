// Visits a page and tells its title, the text of `#shown` and the colour of the body, once the body has `data-ended`.
import { visiting } from "./browser.mjs";

export const run = visiting(async (page, base, { shot }, at) => {
  await page.goto(base + at);
  await page.locator("body[data-ended]").waitFor({ state: "attached" }); // a function would be an eval
  await shot("policy");
  const colour = await page.evaluate("getComputedStyle(document.body).color");
  return { title: await page.title(), shown: await page.locator("#shown").innerText(), colour };
});
