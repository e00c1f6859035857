// The console with care: by keyboard alone, with a wallet in the browser, with hostile text, with thousands of rows.
import { visiting } from "./browser.mjs";
import { connect, fillTrade, reviewed, rows, waitFor } from "./console_page.mjs";

// A swap without a pointer: each act is a key.
async function keyboard(page) {
  const press = async (...keys) => { for (const key of keys) await page.keyboard.press(key); };
  const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label") ?? document.activeElement?.textContent ?? "");
  const reach = async (matches) => {
    for (let tries = 0; tries < 60; tries += 1) {
      await press("Tab");
      if (matches(await page.evaluate(() => ({ id: document.activeElement.id, text: document.activeElement.textContent, tag: document.activeElement.tagName })))) return;
    }
    throw new Error(`not reached; the focus is at ${await focused()}`);
  };
  await press("Tab");
  const first = await focused();
  await reach(({ id }) => id === "account");
  await press("Enter");
  await page.locator("dialog").waitFor();
  await reach(({ text }) => text === "Devnet accounts");
  await press("Enter");
  await page.locator("dialog .steps button").first().waitFor();
  await reach(({ text }) => text.startsWith("0x"));
  await press("Enter");
  await reach(({ id }) => id === "amount-SELL");
  await page.keyboard.type("0.5");
  await page.getByRole("button", { name: "Review swap" }).waitFor();
  await press("Enter");
  await page.locator("dialog.review").waitFor();
  await reach(({ text }) => text === "Agree and sign");
  await press("Enter");
  await page.getByRole("button", { name: "Done" }).waitFor();
  const said = await page.locator("dialog.review .steps li span").allInnerTexts();
  const last = await focused();
  const announced = await page.locator("#announcer").innerText();
  await press("Enter");
  await page.locator("dialog.review").waitFor({ state: "detached" });
  return { first, said, last, announced };
}

// A wallet of the browser (EIP-1193) that passes calls on to the node, and notes and may refuse them.
const fakeWallet = ({ node, refusesFirst }) => {
  globalThis.calls = [];
  let refuses = refusesFirst;
  globalThis.ethereum = {
    async request({ method, params = [] }) {
      globalThis.calls.push({ method, params });
      if (refuses && method === "eth_signTypedData_v4") {
        refuses = false;
        throw Object.assign(new Error("User rejected the request."), { code: 4001 });
      }
      const answer = await fetch(node, { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
      const { result, error } = await answer.json();
      if (error) throw Object.assign(new Error(error.message), error);
      return result;
    },
  };
};

async function wallet(page, { shot }, node) {
  await connect(page, 5, "Browser wallet");
  await fillTrade(page, { kind: "Order", pay: "WETH", get: "USDC", amount: "1" });
  await reviewed(page);
  await page.getByRole("button", { name: "Agree and sign" }).click();
  const refusal = page.locator("dialog.review .fault");
  await refusal.filter({ hasText: "refused" }).waitFor();
  const told = await refusal.innerText();
  await shot("trade-wallet-refused");
  await page.getByRole("button", { name: "Try again" }).click();
  await page.getByRole("button", { name: "Done" }).waitFor();
  await page.getByRole("button", { name: "Done" }).click();
  const calls = await page.evaluate(() => globalThis.calls.map(({ method, params }) => ({ method, params })));
  return { refusal: told, methods: calls.map(({ method }) => method), typed: JSON.parse(calls.findLast(({ method }) => method === "eth_signTypedData_v4").params[1]) };
}

// The venue's answers are changed on their way: the page signs nothing.
async function lies(page, _, path, member, value, kind = "", of = "SELL") {
  await page.route(`**${path}`, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const place = body.toSign?.value ?? body;
    place[member] = value;
    await route.fulfill({ response, json: body });
  });
  await connect(page, 9);
  await fillTrade(page, { kind: kind || (path.startsWith("/v2") ? "Order" : "Swap"), pay: "WETH", get: "USDC", amount: of === "BUY" ? "1000" : "1", of });
  await reviewed(page);
  await page.getByRole("button", { name: "Agree and sign" }).click();
  const fault = page.locator("dialog.review .fault");
  await fault.filter({ hasText: "Nothing was signed" }).waitFor();
  return fault.innerText();
}

// Names, symbols and reasons full of markup are shown as text, and run nothing.
async function hostile(page, { shot }, markup) {
  await page.route("**/tokens/*", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    for (const token of body.tokens) token.symbol += markup;
    await route.fulfill({ response, json: body });
  });
  await page.reload();
  await waitFor(page, "You pay");
  await fillTrade(page, { kind: "Swap", pay: `WETH${markup}`, get: `USDC${markup}`, amount: "1" });
  await page.locator(".route svg").waitFor();
  await page.locator("summary", { hasText: "Fills of each maker" }).click();
  await shot("hostile-text");
  const told = {
    shown: await page.locator(".route text").allTextContents(), route: await page.locator(".route svg").getAttribute("aria-label"),
    elements: await page.locator("main img, main script, main b").count(), ran: await page.evaluate(() => globalThis.ran ?? null),
  };
  await changed(page, "**/makers/books?*", (all) => all.forEach((one) => {
    one.withheld = [markup];
    for (const pair of one.pairs ?? []) Object.assign(pair, { pair: pair.pair + markup, reason: markup, standing: markup });
    one.maker += markup;
  }));
  await page.route((url) => url.search.includes("makerName"), (route) => { // the venue knows them by their own names
    const url = new URL(route.request().url());
    for (const name of ["makerName", "pair"]) url.searchParams.set(name, url.searchParams.get(name).replace(markup, ""));
    return route.fallback({ url: url.href });
  });
  await changed(page, "**/makers/scores?*", (all) => all.forEach((one) => {
    one.lastFaults = [{ at: 0, kind: markup, srcToken: markup, destToken: markup, detail: markup }];
    one.maker += markup;
  }));
  await page.goto(page.url().replace(/#.*|$/, `#makers/${encodeURIComponent("alpha")}`));
  await page.getByRole("table", { name: "Makers" }).waitFor();
  await page.getByText(`withheld: ${markup}`).first().waitFor();
  await page.getByRole("button", { name: `alpha${markup}` }).click();
  await page.getByRole("heading", { name: `alpha${markup}` }).waitFor();
  await page.getByRole("table", { name: "Pairs, as the venue sees them" }).waitFor();
  await shot("hostile-makers");
  told.elements += await page.locator("main img, main script, main b").count();
  told.ran ??= await page.evaluate(() => globalThis.ran ?? null);
  return told;
}

// Answers of a path are changed on their way to the page.
async function changed(page, path, change) {
  await page.route(path, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    change(body);
    await route.fulfill({ response, json: body });
  });
}

// Time of frames while the table of a maker with many pairs is scrolled and refreshed, and of the page before.
async function pairs(page, _, count) {
  const idle = await gaps(page, "none");
  await changed(page, "**/makers/books?*", (all) => {
    for (const one of all) if (one.pairs) one.pairs = Array.from({ length: count }, (_unused, at) => ({ ...one.pairs[0], pair: `T${at}/USDC` }));
  });
  await page.goto(page.url().replace(/#.*|$/, "#makers/alpha"));
  const table = page.getByRole("table", { name: "Pairs, as the venue sees them" });
  await table.locator("tbody button").first().waitFor();
  return { idle, full: await gaps(page, ".columns .rows"), elements: (await rows(table)).length, rowcount: await table.getAttribute("aria-rowcount") };
}

// Time of frames while a table of many orders is scrolled, and while nothing happens.
async function frames(page, _, count) {
  const sample = await page.evaluate(async () => (await (await fetch("/v2/delta/orders?ids=none")).json()));
  const record = JSON.parse(await readSample(page));
  await page.route(/\/v2\/delta\/orders\?.*page=/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const [number, limit] = [Number(query.get("page")), Number(query.get("limit"))];
    const data = Array.from({ length: Math.max(0, Math.min(limit, count - (number - 1) * limit)) }, (_unused, at) => ({ ...record, id: `${(number - 1) * limit + at}`.padStart(8, "0") + record.id.slice(8) }));
    return route.fulfill({ json: { ...sample, data, total: count, page: number, limit, hasMore: number * limit < count } });
  });
  const view = "section[aria-label='Your orders'] .rows";
  const idle = await gaps(page, view);
  await connect(page, 4);
  await page.locator("section[aria-label='Your orders'] tbody tr:not([aria-hidden])").first().waitFor();
  const full = await gaps(page, view);
  return { idle, full, elements: (await rows(page.locator("section[aria-label='Your orders']"))).length, rowcount: await page.locator("section[aria-label='Your orders'] table").getAttribute("aria-rowcount") };
}
// Times between frames in ascending order, while a view is scrolled if it is shown: of the quickest of several scrolls
// by its median, since other work on the machine only adds.
const gaps = (page, selector) => page.evaluate(async (name) => {
  const view = document.querySelector(name);
  const scrolls = [];
  for (let scroll = 0; scroll < 3; scroll += 1) {
    const found = [];
    let before = performance.now();
    for (let at = 0; at < 60; at += 1) {
      await new Promise(requestAnimationFrame);
      const now = performance.now();
      found.push(now - before);
      before = now;
      if (view && !view.hidden) view.scrollTop += 90;
    }
    scrolls.push(found.sort((one, other) => one - other));
  }
  return scrolls.sort((one, other) => one[30] - other[30])[0];
}, selector);
const readSample = (page) => page.evaluate(() => globalThis.record);

const STORIES = { keyboard, wallet, lies, hostile, frames, pairs };
export const run = visiting(async (page, base, tools, story, ...given) => {
  if (story === "wallet") await page.addInitScript(fakeWallet, { node: given[0], refusesFirst: true });
  if (story === "frames") await page.addInitScript((record) => { globalThis.record = record; }, given[1]);
  await page.goto(`${base}/`);
  await waitFor(page, "You pay");
  const told = await STORIES[story](page, tools, ...(["frames", "pairs"].includes(story) ? [Number(given[0])] : given));
  return told;
});
