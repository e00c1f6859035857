// The console with care: by keyboard alone, with a wallet in the browser, with hostile text, with thousands of rows.
import { visiting } from "./browser.mjs";
import { agreed, connect, fillTrade, reviewed, rows, waitFor } from "./console_page.mjs";

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
  await page.locator("dialog ul.cards button").first().waitFor();
  await reach(({ text }) => text.startsWith("Account 1"));
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

// A wallet of the browser (EIP-1193) that passes calls on to the node, and notes them. A person refuses the first signature
// ("refusal") or transaction ("time"). The answer to each transaction is lost ("lost"), its receipt comes late ("late"), or
// the first receipt says that it is reverted ("reverted").
const fakeWallet = ({ node, mode }) => {
  globalThis.calls = [];
  const firsts = new Map();
  const call = async (method, params) => {
    const answer = await fetch(node, { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });
    const { result, error } = await answer.json();
    if (error) throw Object.assign(new Error(error.message), error);
    return result;
  };
  const refusing = { refusal: "eth_signTypedData_v4", time: "eth_sendTransaction" }[mode];
  globalThis.ethereum = {
    async request({ method, params = [] }) {
      globalThis.calls.push({ method, params });
      const key = `${method} ${JSON.stringify(params[0])}`;
      if (!firsts.has(key) && method === refusing) {
        firsts.set(key, true);
        throw Object.assign(new Error("User rejected the request."), { code: 4001 });
      }
      const isReceipt = method === "eth_getTransactionReceipt";
      if (isReceipt && mode === "late" && Date.now() < (firsts.get(key) ?? Infinity)) {
        if (!firsts.has(key)) firsts.set(key, Date.now() + 181_000);
        document.body.dataset.waits = "true";
        return null;
      }
      const result = await call(method, params);
      if (isReceipt && mode === "reverted" && result && !firsts.has(method)) {
        firsts.set(method, true);
        return { ...result, status: "0x0" };
      }
      if (method === "eth_sendTransaction" && mode === "lost") {
        while (!(await call("eth_getTransactionReceipt", [result])));
        throw new Error("The connection is lost.");
      }
      return result;
    },
  };
};

async function wallet(page, { shot }, node) {
  await connect(page, 5, "Browser wallet");
  await fillTrade(page, { kind: "Gasless", pay: "WETH", get: "USDC", amount: "1" });
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

// Acts that are not answered, refused or late, and the venue's first answer to an order lost or broken off: "Try again", at most four
// times, sends nothing twice. What the faults said, the calldata sent, and how many orders there are more.
async function again(page, _, node, mode, kind, pay) {
  const owner = await connect(page, 6, "Browser wallet");
  const total = () => page.evaluate(async (user) => (await (await fetch(`/v2/delta/orders?userAddress=${user}`)).json()).total, owner);
  const before = await total();
  await page.route("**/v2/delta/orders", async (route) => {
    await route.fetch();
    await (mode === "late" ? route.fulfill({ contentType: "application/json", body: '{"id":' }) : route.abort());
  }, { times: 1 });
  await fillTrade(page, { kind, pay, get: "USDC", amount: "1" });
  await reviewed(page);
  await page.getByRole("button", { name: "Agree and sign" }).click();
  const faults = [];
  const next = page.locator("dialog.review button:enabled", { hasText: /^(Try again|Done)$/ });
  const waits = page.locator("body[data-waits]");
  for (;;) {
    await next.or(waits).first().waitFor();
    if (await waits.count()) {
      await waits.evaluate((body) => { delete body.dataset.waits; });
      await page.clock.runFor(181_000);
      continue;
    }
    if (faults.length === 4 || (await next.innerText()) === "Done") break;
    faults.push(await page.locator("dialog.review .fault").innerText());
    if (mode === "time") await page.clock.runFor(660_000);
    await next.click();
  }
  const sent = await page.evaluate(() => globalThis.calls.filter(({ method }) => method === "eth_sendTransaction").map(({ params }) => params[0].data));
  return { faults, sent, orders: (await total()) - before };
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
  await fillTrade(page, { kind: kind || (path.startsWith("/v2") ? "Gasless" : "Swap"), pay: "WETH", get: "USDC", amount: of === "BUY" ? "1000" : "1", of });
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

// The first wait for an answer while an order is shown takes a second, not half a minute.
function shortWait() {
  const timeout = AbortSignal.timeout.bind(AbortSignal);
  let isOver = false;
  AbortSignal.timeout = (ms) => {
    if (isOver || !location.hash.startsWith("#order/")) return timeout(ms);
    const signal = timeout(ms / 30);
    signal.addEventListener("abort", () => { isOver = true; });
    return signal;
  };
}

// A venue that is too busy at the first look at the orders, and never answers at an order: both are shown nonetheless.
async function busy(page) {
  const failed = [];
  const failing = (route, end) => {
    failed.push(new URL(route.request().url()).pathname.split("/").at(-1));
    return end();
  };
  const json = { errorType: "ServiceUnavailable", details: "too busy" };
  await page.route(/orders\?.*userAddress=/, (route) => failing(route, () => route.fulfill({ status: 503, json })), { times: 1 });
  await page.route(/explain$/, (route) => failing(route, () => {}), { times: 1 });
  await connect(page, 8);
  await page.getByText("No open orders").waitFor();
  await waiting(page);
  await page.locator("section[aria-label='Order'] .timeline .badge").first().waitFor();
  return { failed, orders: await listed(page, 1) };
}

// Number of a person's open orders in the list of the trade page, once there are so many.
async function listed(page, least) {
  await page.evaluate(() => { location.hash = "trade"; });
  const found = page.locator("section[aria-label='Your activity'] tbody tr:not([aria-hidden])");
  await found.nth(least - 1).waitFor();
  return found.count();
}

// A limit order that waits.
async function waiting(page) {
  await fillTrade(page, { kind: "Limit", pay: "WETH", get: "USDC", amount: "1" });
  await page.getByLabel("Limit price").fill("3000");
  await reviewed(page);
  await agreed(page, { view: true });
  await page.getByText("waits for its price").waitFor();
}

// Events of orders are refused: the list is read nonetheless, and has the next order once they come.
async function crowded(page) {
  let isCrowded = true;
  let refused = 0;
  await page.route(/orders\/events\?.*userAddress=/, (route) => {
    if (!isCrowded) return route.continue();
    refused += 1;
    return route.fulfill({ status: 429, json: { errorType: "TooManyRequests", details: "too many streams" } });
  });
  await connect(page, 7);
  await page.getByText("No open orders").waitFor();
  isCrowded = false;
  await waiting(page);
  return { isRefused: refused > 0, orders: await listed(page, 1) };
}

// The venue refuses a list for good: it is asked for once.
async function denied(page) {
  let asked = 0;
  await page.route(/orders(\/events)?\?.*userAddress=/, (route) => {
    if (!route.request().url().includes("/events")) asked += 1;
    return route.fulfill({ status: 400, json: { errorType: "InvalidInput", details: "no such chain" } });
  });
  await connect(page, 2);
  await page.getByText("no such chain").waitFor();
  await page.clock.runFor(60_000);
  return asked;
}

// The first answer about a changed order comes after its cancellation: the list asks for nothing else until it has it, and
// then shows the order as it is.
async function overtaken(page) {
  let asked = 0;
  page.on("request", (request) => { if (request.url().includes("orders?ids=")) asked += 1; });
  const owner = await connect(page, 2);
  let release;
  const held = new Promise((resolve) => { release = resolve; });
  await page.route(/orders\?ids=/, async (route) => {
    const response = await route.fetch();
    await held;
    await route.fulfill({ response });
  }, { times: 1 });
  await fillTrade(page, { kind: "Limit", pay: "WETH", get: "USDC", amount: "1" });
  await page.getByLabel("Limit price").fill("3000");
  await reviewed(page);
  await agreed(page);
  const [{ id }] = (await (await page.request.get(`${page.url().replace(/#.*/, "")}v2/delta/orders?userAddress=${owner}`)).json()).data;
  const second = await page.context().newPage();
  await second.goto(page.url().replace(/#.*|$/, ""));
  await waitFor(second, "You pay");
  await connect(second, 2);
  await second.evaluate((wanted) => { location.hash = `order/${wanted}`; }, id);
  await cancel(second);
  await second.locator("section[aria-label='Order'] .timeline .badge", { hasText: "cancelled" }).waitFor();
  await page.clock.runFor(5_000);
  const told = [asked];
  release();
  await page.getByRole("button", { name: /^History 1/ }).click();
  await page.locator("section[aria-label='Your activity'] tbody tr:not([aria-hidden])").first().filter({ hasText: "cancelled" }).waitFor();
  return [...told, await listed(page, 1)];
}

// Press the button that cancels an order, and say yes.
async function cancel(page) {
  await page.getByRole("button", { name: "Cancel order" }).click();
  await page.locator("dialog").getByRole("button", { name: "Cancel order" }).click();
}

// A cancellation that the venue refuses says so until the next try; looks at the order go on, but not in a hidden tab.
async function refused(page) {
  await connect(page, 3);
  await waiting(page);
  await page.route("**/v2/delta/orders/cancel", (route) => route.fulfill({ status: 503, json: { errorType: "ServiceUnavailable", details: "too busy" } }), { times: 1 });
  let looks = 0;
  page.on("request", (request) => { if (request.url().endsWith("/explain")) looks += 1; });
  const fault = page.locator("section[aria-label='Order'] .fault");
  const button = await page.getByRole("button", { name: "Cancel order" }).elementHandle();
  await cancel(page);
  await fault.filter({ hasText: "too busy" }).waitFor();
  for (let look = 0; look < 3; look += 1) {
    await Promise.all([page.waitForResponse(/explain$/), page.clock.runFor(3_000)]);
  }
  const told = { said: await fault.allInnerTexts(), isKept: await button.evaluate(({ isConnected }) => isConnected) };
  await turned(page, true);
  looks = 0;
  await page.clock.runFor(60_000);
  told.hiddenLooks = looks;
  await turned(page, false);
  await cancel(page);
  await page.locator("section[aria-label='Order'] .timeline .badge", { hasText: "cancelled" }).waitFor();
  return { ...told, after: await fault.allInnerTexts() };
}

// An order that the venue does not know is asked for once.
async function unknown(page, _, id) {
  let looks = 0;
  page.on("request", (request) => { if (request.url().endsWith(`/orders/${id}`)) looks += 1; });
  await page.goto(page.url().replace(/#.*|$/, `#order/${id}`));
  await page.getByText("This order cannot be shown").waitFor();
  await page.clock.runFor(60_000);
  return looks;
}

// Limit prices that are proposed for a pair, and for the same pair turned around.
async function flipped(page) {
  const proposed = async (amount) => {
    await page.locator("#amount-SELL").fill(amount);
    await page.locator("form.card dl.rows .row").first().waitFor();
    return page.getByLabel("Limit price").inputValue();
  };
  await fillTrade(page, { kind: "Limit", pay: "USDC", get: "WETH", amount: "" });
  const before = await proposed("1000");
  await page.getByRole("button", { name: "Turn the pair around" }).click();
  return [before, await proposed("1")].map(Number);
}

// The first price comes while a person is in a field: what is typed there is all that it has, until the person leaves it.
async function typing(page, _, kind, label, text) {
  let come;
  const price = new Promise((resolve) => { come = resolve; });
  await page.route(/quote\/stream/, (route) => price.then(() => route.continue()));
  await fillTrade(page, { kind, pay: "WETH", get: "USDC", amount: "1" });
  const field = page.getByLabel(label, { exact: true });
  await field.focus();
  come();
  await page.locator("form.card dl.rows .row").first().waitFor();
  await page.keyboard.type(text);
  await field.blur();
  return field.inputValue();
}

// Two tabs of a trader, of which one is seen: each shows a price, the orders and an order, and hears what it missed,
// the second one before its first look at the orders, the other one after it.
async function tabs(page) {
  const second = await page.context().newPage();
  await second.goto(page.url());
  await waitFor(second, "You pay");
  await turned(second, true);
  for (const tab of [page, second]) await connect(tab, 4);
  const told = [];
  for (const tab of [page, second]) {
    await tab.evaluate(() => { location.hash = "trade"; });
    await waiting(tab);
    const other = tab === page ? second : page;
    await turned(tab, true);
    await turned(other, false);
    told.push(await listed(other, told.length + 1));
  }
  return told;
}

// The browser says that a tab is hidden, or seen.
const turned = (tab, isHidden) => tab.evaluate((value) => {
  Object.defineProperty(document, "hidden", { value, configurable: true });
  document.dispatchEvent(new Event("visibilitychange"));
}, isHidden);

// Answers of a path are changed on their way to the page.
async function changed(page, path, change) {
  await page.route(path, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    change(body);
    await route.fulfill({ response, json: body });
  });
}

// Work of a frame while the table of a maker with so many pairs is scrolled and refreshed.
async function pairs(page, _, count) {
  await changed(page, "**/makers/books?*", (all) => {
    for (const one of all) if (one.pairs) one.pairs = Array.from({ length: count }, (_unused, at) => ({ ...one.pairs[0], pair: `T${at}/USDC` }));
  });
  await page.goto(page.url().replace(/#.*|$/, "#makers/alpha"));
  return scrolled(page, page.getByRole("table", { name: "Pairs, as the venue sees them" }));
}

// Work of a frame while a table of so many orders is scrolled.
async function orders(page, _, count) {
  const sample = await page.evaluate(async () => (await (await fetch("/v2/delta/orders?ids=none")).json()));
  const record = JSON.parse(await readSample(page));
  await page.route(/\/v2\/delta\/orders\?.*page=/, (route) => {
    const query = new URL(route.request().url()).searchParams;
    const [number, limit] = [Number(query.get("page")), Number(query.get("limit"))];
    const data = Array.from({ length: Math.max(0, Math.min(limit, count - (number - 1) * limit)) }, (_unused, at) => ({ ...record, id: `${(number - 1) * limit + at}`.padStart(8, "0") + record.id.slice(8) }));
    return route.fulfill({ json: { ...sample, data, total: count, page: number, limit, hasMore: number * limit < count } });
  });
  await connect(page, 4);
  return scrolled(page, page.locator("section[aria-label='Your activity'] table"));
}

// Scroll a table down, and a plain copy of it in turn: milliseconds of processor time that the page's main thread takes
// for a frame, of the quickest of several scrolls. Other work on the machine takes none of it.
async function scrolled(page, table) {
  await table.locator("tbody tr:not([aria-hidden])").first().waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable", { timeDomain: "threadTicks" });
  const taken = async () => (await session.send("Performance.getMetrics")).metrics.find(({ name }) => name === "TaskDuration").value * 1000;
  const quickest = { work: Infinity, plain: Infinity };
  let told;
  for (let scroll = 0; scroll < 3; scroll += 1) {
    for (const [name, isPlain] of [["plain", true], ["work", false]]) {
      const before = await taken();
      told = await table.evaluate(scroll60, isPlain);
      quickest[name] = Math.min(quickest[name], (await taken() - before) / 60);
    }
  }
  return { ...told, ...quickest, elements: (await rows(table)).length, rowcount: await table.getAttribute("aria-rowcount") };
}
// The plain copy has all its rows, so that the browser alone scrolls it.
const scroll60 = async (table, isPlain) => {
  const shown = table.closest(".rows");
  const view = isPlain ? shown.cloneNode(true) : shown;
  if (isPlain) {
    const [row] = view.querySelectorAll("tbody tr:not([aria-hidden])");
    view.querySelector("tbody").replaceChildren(...Array.from({ length: 150 }, () => row.cloneNode(true)));
    shown.replaceWith(view);
  }
  let added = 0;
  const observer = new MutationObserver((changes) => { for (const { addedNodes } of changes) added += addedNodes.length; });
  observer.observe(view.querySelector("tbody"), { childList: true });
  view.scrollTop = 0;
  for (let frame = 0; frame < 60; frame += 1) {
    await new Promise(requestAnimationFrame);
    view.scrollTop += 90;
  }
  observer.disconnect();
  const scrolledPx = view.scrollTop;
  if (isPlain) view.replaceWith(shown);
  return { scrolledPx, added };
};
const readSample = (page) => page.evaluate(() => globalThis.record);

const STORIES = { keyboard, wallet, again, lies, hostile, busy, crowded, denied, overtaken, refused, unknown, typing, flipped, tabs, orders, pairs };
export const run = visiting(async (page, base, tools, story, ...given) => {
  if (story === "busy") await page.addInitScript(shortWait);
  const mode = { wallet: "refusal", again: given[1] }[story];
  if (mode) await page.addInitScript(fakeWallet, { node: given[0], mode });
  if (story === "orders") await page.addInitScript((record) => { globalThis.record = record; }, given[1]);
  if (["again", "denied", "overtaken", "refused", "unknown"].includes(story)) await page.clock.install();
  await page.goto(`${base}/`);
  await waitFor(page, "You pay");
  const told = await STORIES[story](page, tools, ...(["orders", "pairs"].includes(story) ? [Number(given[0])] : given));
  return told;
});
