// A browser for scripts that visit a page: Chromium, started at the first visit; each visit has a fresh profile.
// A script exports `run = visiting(async (page, base, tools, ...arguments) => told)`; stories.mjs calls it.
//
// `base` is the origin of the pages, and `tools` has `shot(name)`, which keeps a picture of the page
// where somebody looks: if BROWSER_ARTEFACTS names a folder.
// The report of a visit: `told`, `complaints` (errors and warnings of the console, errors of scripts), `foreign`
// (each URL of another origin that the page asked for). A visit that fails leaves a picture `failed.png`.
import path from "node:path";
import { chromium } from "playwright-core";
import { WAIT_MS } from "./patience.mjs";

const ARGUMENTS = [
  "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
  "--disable-component-update", "--disable-sync",
];
const CONTEXT = { viewport: { width: 1280, height: 900 }, permissions: ["clipboard-read", "clipboard-write"], locale: "en-GB" };
let started;

export function visiting(act) {
  return async ([executablePath, artefacts, base, ...given]) => {
    started ??= chromium.launch({ executablePath, args: ARGUMENTS, headless: true, timeout: WAIT_MS });
    const context = await (await started).newContext(CONTEXT);
    context.setDefaultTimeout(WAIT_MS);
    const complaints = [];
    const foreign = [];
    const { origin } = new URL(base);
    const note = (url) => {
      const asked = new URL(url.replace(/^ws/, "http"));
      if (asked.protocol.startsWith("http") && asked.origin !== origin) foreign.push(url);
    };
    context.on("console", (line) => {
      if (["error", "warning"].includes(line.type())) complaints.push(`${line.text()} (${line.location().url})`);
    });
    context.on("weberror", (error) => complaints.push(String(error.error().stack ?? error.error())));
    const underWay = new Set();
    context.on("request", (request) => {
      note(request.url());
      underWay.add(request);
    });
    for (const end of ["requestfinished", "requestfailed"]) context.on(end, (request) => underWay.delete(request));
    context.on("page", (opened) => opened.on("websocket", (socket) => note(socket.url())));
    const page = await context.newPage();
    const kept = (name) => page.screenshot({ path: path.join(artefacts, `${name}.png`), fullPage: true });
    const shot = async (name) => process.env.BROWSER_ARTEFACTS && kept(name);
    try {
      return { told: await act(page, base, { shot }, ...given), complaints, foreign };
    } catch (error) {
      await kept("failed").catch(() => {});
      const text = await page.locator("body").innerText().catch(String);
      const asks = [...underWay].map((request) => `under way: ${request.method()} ${request.url()}`);
      throw Object.assign(error, { stack: [error.stack, ...complaints, ...asks, text].join("\n") });
    } finally {
      await page.unrouteAll({ behavior: "ignoreErrors" }); // a page that still asks would fail in its handler, and end this process
      await context.close();
    }
  };
}
