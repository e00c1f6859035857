// Visits a page and tells its title, the text of `#shown` and the colour of the body, once `window.ended` is true.
import { visiting } from "./browser.mjs";

export const run = visiting(async (page, base, { shot }, at) => {
  await page.goto(base + at);
  await page.waitForFunction("window.ended");
  await shot("policy");
  const colour = await page.evaluate("getComputedStyle(document.body).color");
  return { title: await page.title(), shown: await page.locator("#shown").innerText(), colour };
});
