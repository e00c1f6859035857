// Walks through all pages in all states, widths and colours, and notes what does not fit, is cut, hardly seen, without a
// name, or otherwise than the API says. arguments: STATE
import { visiting } from "./browser.mjs";
import { connect, misfitting, violations, waitFor, WIDTHS } from "./console_page.mjs";

const PLACES = ["trade", "otc", "makers", "auctions", "operator", "order/5a5a5a5a-5a5a-4a5a-9a5a-5a5a5a5a5a5a", "otc/0x" + "5a".repeat(32)];
const LISTS = [/\/makers\/(books|scores)/, /\/v2\/delta\/(trades|auctions|agents)/, /\/ft\/p2p\//, /\/prices\/(history|depth)/, /\/stats/, /\/v2\/delta\/orders\?/, /\/v2\/quote/];
const NOTHING = [
  [/\/prices\/history/, { chainId: 1, base: "", quote: "", step: 15, points: [] }], [/\/prices\/depth/, { chainId: 1, base: "", quote: "", unit: "1", bids: [], asks: [] }],
  [/\/ft\/p2p\//, { orders: [], limit: 1, offset: 0, total: 0, hasMore: false, asOf: "" }], [/\/v2\/delta\/orders\?/, { data: [], total: 0, page: 1, limit: 1, hasMore: false }], [/./, []],
];
const NAMES = { long: (name) => `${name}-${"verylongname".repeat(4)}`, foreign: (name) => `${name} 做市商 صانع السوق` };
const SYMBOLS = { long: (symbol) => symbol + "LONGSYMBOL".repeat(2), foreign: (symbol) => `${symbol}以太幣` };

// What the venue answers, by state; `empty`, `error` and `loading` concern all lists and prices.
const STATES = {
  plain: async () => {},
  empty: (page) => each(page, (route, url) => {
    if (url.includes("/quote")) return route.abort();
    if (url.includes("/stats")) return route.continue();
    return route.fulfill({ json: NOTHING.find(([path]) => path.test(url))[1] });
  }),
  error: (page) => each(page, (route) => route.fulfill({ status: 503, json: { errorType: "ServiceUnavailable", details: `The store is away: ${"a reason that goes on ".repeat(8)}` } })),
  loading: (page) => each(page, () => {}),
  long: (page) => renamed(page, "long"),
  foreign: (page) => renamed(page, "foreign"),
};
const each = async (page, act) => { for (const path of LISTS) await page.route(path, (route) => act(route, route.request().url())); };

async function renamed(page, kind) {
  const change = async (path, edit) => page.route(path, async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    edit(body);
    await route.fulfill({ response, json: body });
  });
  await change("**/tokens/*", ({ tokens }) => tokens.forEach((token) => { token.symbol = SYMBOLS[kind](token.symbol); }));
  await change("**/chains", (chains) => chains.forEach((chain) => { chain.name = NAMES[kind](chain.name); }));
  for (const path of [/\/makers\/(books|scores)\?(?!.*makerName)/, /\/v2\/delta\/agents\/scores/]) {
    await change(path, (all) => all.forEach((one) => { for (const name of ["maker", "agent"]) if (one[name]) one[name] = NAMES[kind](one[name]); }));
  }
}

// The first page says what the API says.
async function conflicts(page) {
  const found = [];
  const api = (path) => page.evaluate(async (at) => (await fetch(at)).json(), path);
  const books = await api("/makers/books?network=31337");
  const live = books.filter(({ standings, withheld }) => standings.live && !withheld.length).length;
  const told = await page.locator(".live").innerText();
  if (told !== `live · ${live} makers`) found.push(`${told}, and the API has ${live} live makers`);
  const trades = await api("/v2/delta/trades?chainId=31337&limit=8");
  const rows = page.getByRole("table", { name: "Latest fills" }).locator("tbody tr");
  if (trades.length) await rows.first().waitFor();
  if ((await rows.count()) !== trades.length) found.push(`${await rows.count()} fills, and the API has ${trades.length}`);
  return found;
}

export const run = visiting(async (page, base, { shot }, state) => {
  await STATES[state](page);
  const found = [];
  let seen = 0;
  await page.goto(`${base}/`);
  await waitFor(page, "You pay");
  if (state === "plain") await connect(page, 6);
  for (const place of PLACES) {
    await page.evaluate((to) => { location.hash = to; }, place);
    await page.waitForTimeout(state === "loading" ? 300 : 1_200);
    if (state === "plain" && place === "trade") found.push(...(await conflicts(page)));
    for (const [name, width] of Object.entries(WIDTHS)) {
      await page.setViewportSize({ width, height: width === WIDTHS.wide ? 2160 : 900 });
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
      found.push(...(await misfitting(page)).map((text) => `${place} ${name}: ${text}`));
      seen += 1;
    }
    await page.setViewportSize({ width: WIDTHS.usual, height: 900 });
    found.push(...(await violations(page)).map((text) => `${place}: ${text}`));
    await shot(`walk-${state}-${place.replaceAll("/", "-").slice(0, 20)}`);
  }
  // Dialogs, at the least width and the usual one.
  await page.evaluate(() => { location.hash = "trade"; });
  await waitFor(page, "You pay");
  for (const [name, open] of Object.entries({
    account: () => page.locator("#account").click(), picker: () => page.locator("button.pick").first().click(),
    roles: async () => { await page.locator("#account").click(); await page.locator("summary", { hasText: "Sign in as operator" }).click(); await page.getByLabel("Operator’s API key").waitFor(); },
  })) {
    await open();
    for (const width of [WIDTHS.narrow, WIDTHS.usual]) {
      await page.setViewportSize({ width, height: 700 });
      found.push(...(await misfitting(page)).map((text) => `dialog ${name} ${width}: ${text}`));
      seen += 1;
    }
    found.push(...(await violations(page)).map((text) => `dialog ${name}: ${text}`));
    await shot(`walk-${state}-dialog-${name}`);
    await page.keyboard.press("Escape");
    await page.locator("dialog").waitFor({ state: "detached" });
  }
  return { found, seen };
});
