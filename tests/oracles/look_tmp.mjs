import { chromium } from "playwright-core";
const [,, base, out, ...steps] = process.argv;
const browser = await chromium.launch({ executablePath: process.env.CHROMIUM, args: ["--no-sandbox","--disable-gpu"], headless: true });
const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, locale: "en-GB" });
const page = await context.newPage();
page.on("console", (l) => { if (["error","warning"].includes(l.type())) console.log("CONSOLE", l.text(), l.location().url); });
page.on("pageerror", (e) => console.log("ERROR", e.stack));
for (const step of steps) {
  const [name, hash, width = "1440", scheme = "light", wait = "2500", act = ""] = step.split("|");
  await page.setViewportSize({ width: Number(width), height: 900 });
  await page.emulateMedia({ colorScheme: scheme });
  if (hash) await page.goto(`${base}${hash}`);
  await page.waitForTimeout(Number(wait));
  if (act) { await page.evaluate(act).catch((e) => console.log(String(e))); await page.waitForTimeout(1500); }
  await page.screenshot({ path: `${out}/${name}.png`, fullPage: true });
}
await browser.close();
