// Stories of makers, solvers and operators at the venue's console. arguments: STORY ...
import { visiting } from "./browser.mjs";
import { agreed, connect, fillTrade, pairs, pictures, reviewed, rows, useKey, violations } from "./console_page.mjs";

const cards = (page, name) => page.locator(`section[aria-label='${name}']`);
const checked = async (page, shot, name) => ({ faults: await violations(page), overflowing: await pictures(page, shot, name, name !== "makers-own") });

// Another place on the same page, as by a link or the button back.
const at = (page, place) => page.goto(page.url().replace(/#.*$/, `#${place}`));

// The makers as the venue sees them, on its own machine: no key is needed for the ladders.
async function makers(page, { shot }) {
  const list = page.getByRole("table", { name: "Makers" });
  await list.waitFor();
  const listed = await rows(list);
  for (const name of ["omega", "50%"]) {
    await at(page, `makers/${name}`);
    await page.getByRole("alert").filter({ hasText: `The venue has no maker “${name}” on this chain.` }).waitFor();
  }
  await page.getByRole("button", { name: "alpha", exact: true }).click();
  await page.locator(".bids tbody tr").first().waitFor();
  const ladder = { bids: await rows(page.locator(".bids")), asks: await rows(page.locator(".asks")) };
  const shown = await rows(page.getByRole("table", { name: "Pairs, as the venue sees them" }));
  await page.getByRole("button", { name: "WETH/DAI" }).click();
  await page.locator(".ladder").getByText("2,498").waitFor();
  return { listed, shown, ladder, ...(await checked(page, shot, "makers")) };
}

// Rounds for everybody, without ids; a round by its id; with the operator's key, all rounds with their ids.
async function auctions(page, { shot }, key, id) {
  const list = page.getByRole("table", { name: "Rounds, the latest first" });
  await list.locator("tbody button").first().waitFor();
  const everybody = await rows(list);
  const text = await page.locator("main").innerText();
  await list.locator("tbody button").first().click();
  const bids = page.getByRole("table", { name: /^Bids/ });
  await bids.waitFor();
  const open = await rows(bids);
  await page.getByLabel("Id of a round").fill(id);
  await page.getByRole("button", { name: "Show", exact: true }).click();
  await page.getByRole("heading", { name: `Round ${id}` }).waitFor();
  await bids.waitFor();
  const found = await rows(bids);
  await at(page, "auctions");
  await bids.waitFor({ state: "hidden" });
  await at(page, `auctions/${id}`);
  await bids.waitFor();
  await page.locator(".chart svg").first().waitFor();
  const seen = await checked(page, shot, "auctions");
  await useKey(page, key);
  await page.getByText("Ids of rounds and orders are for operators").waitFor({ state: "hidden" });
  await list.locator("tbody button").first().click();
  await page.getByRole("link", { name: "View order" }).waitFor();
  return { bids: found, open, everybody, isIdHidden: !text.includes(id), agents: await rows(page.getByRole("table", { name: "Agents" })), ...seen };
}

// The operator's page: a wrong key, then the right one; all tabs; a maker is left out and released.
async function operator(page, { shot }, key) {
  await page.getByText("ready", { exact: true }).waitFor();
  const without = await page.locator("main").innerText();
  await useKey(page, "a wrong key");
  await page.getByRole("alert").filter({ hasText: "X-API-KEY" }).waitFor();
  await page.getByLabel("Operator’s API key").fill(key);
  await page.getByRole("button", { name: "Use the key" }).click();
  const makersTable = page.getByRole("table", { name: "Makers and their switch" });
  await makersTable.waitFor();
  const tab = (name) => page.getByRole("group", { name: "Parts of the venue" }).getByRole("button", { name }).click();
  const reading = () => page.waitForResponse((answer) => answer.url().endsWith("/operator/status"));
  await reading();
  const told = { without, needs: await cards(page, "Needs you").innerText(), strip: await cards(page, "Status").innerText(), makers: await rows(makersTable), height: await page.evaluate(() => document.documentElement.scrollHeight), ...(await checked(page, shot, "operator")) };
  const fits = [];
  for (const name of ["Orders", "Latency", "Chains", "Store"]) {
    await tab(name);
    await reading();
    if (name === "Orders") await page.getByRole("table", { name: "Orders, newest first" }).locator("tbody button").first().waitFor();
    if (name === "Latency") told.latencies = await rows(page.getByRole("table", { name: "Requests since the start" }));
    if (name === "Latency") told.rounds = await rows(page.getByRole("table", { name: "Auction rounds since the start" }));
    if (name === "Chains") told.chains = await page.locator("section[aria-label='Parts of the venue']").innerText();
    fits.push(...await pictures(page, shot, `operator-${name.toLowerCase()}`, false), ...await violations(page));
  }
  await tab("Makers");
  const out = page.getByRole("button", { name: "Leave out beta" });
  await out.hover();
  await page.mouse.down();
  for (let readings = 0; readings < 2; readings++) await reading(); // a slow click: new readings come while it is held
  await page.mouse.up();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Release beta" }).waitFor();
  const left = await rows(makersTable);
  const route = await page.evaluate(async () => (await fetch("/makers/books?network=31337&makerName=beta")).json());
  await page.getByRole("button", { name: "Release beta" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await out.waitFor();
  return { ...told, fits, out: left, withheld: route[0].withheld };
}

// A link with the operator's key signs in at once, and the address keeps no key; colours are chosen by a button.
async function link(page, _, key) {
  const base = page.url().replace(/#.*/, "");
  await page.goto("about:blank");
  await page.goto(`${base}#operator/${key}`);
  await page.getByRole("table", { name: "Makers and their switch" }).waitFor();
  const themes = [];
  for (let press = 0; press < 3; press += 1) {
    await page.locator("#theme").click();
    themes.push(await page.evaluate(() => [document.documentElement.dataset.theme ?? "", getComputedStyle(document.body).backgroundColor]));
  }
  return { address: page.url().replace(/.*#/, "#"), themes };
}

// An order, so that there is a round; its id.
async function round(page) {
  await page.goto(page.url().replace(/#.*/, "#trade"));
  await connect(page, 6);
  await fillTrade(page, { kind: "Gasless", pay: "WETH", get: "USDC", amount: "1" });
  await reviewed(page);
  await agreed(page, { view: true });
  const summary = page.locator("section[aria-label='Order'] details[data-round] summary").first();
  await summary.waitFor();
  await page.locator("section[aria-label='Order'] .timeline .badge", { hasText: "completed" }).waitFor();
  return { id: /Round (\d+)/.exec(await summary.innerText())[1], terms: await pairs(page.locator("section[aria-label='Order']")) };
}

// A maker on another machine signs in with its own secret; it sees its own pairs, and no other maker's.
async function own(page, { shot }, domain, accessKey, secret) {
  const signIn = async (text) => {
    for (const [label, value] of Object.entries({ Domain: domain, "Access key": accessKey, Secret: text })) await page.getByLabel(label, { exact: true }).fill(value);
    await page.getByLabel("Secret", { exact: true }).press("Enter");
  };
  await page.getByRole("button", { name: "alpha", exact: true }).click();
  await page.getByText("Pairs and ladders are hidden").waitFor();
  await page.getByRole("button", { name: "Sign in" }).click();
  await signIn("a wrong secret");
  const refusal = page.locator("dialog .fault:not(:empty)");
  await refusal.waitFor();
  const refused = await refusal.innerText();
  await signIn(secret);
  await page.locator("dialog").waitFor({ state: "detached" });
  await page.getByRole("heading", { name: "beta" }).waitFor();
  await page.locator(".bids tbody tr").first().waitFor();
  const pairsShown = page.getByRole("table", { name: "Pairs, as the venue sees them" });
  const told = { refused, name: await page.locator("#maker-name").innerText(), shown: await rows(pairsShown), faultsTold: await page.getByText("No firm quote of this maker had a fault.").count(), ...(await checked(page, shot, "makers-own")) };
  await page.getByRole("button", { name: "alpha", exact: true }).click();
  await page.getByText("Pairs and ladders are hidden").waitFor();
  await page.locator("#account").click();
  await page.locator("summary", { hasText: "Sign in as operator" }).click();
  await page.getByText("Signed in as the maker beta.").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.locator("#account").click();
  await page.locator("summary", { hasText: "Sign in as operator" }).click();
  return { ...told, left: await page.getByLabel("Secret", { exact: true }).inputValue() };
}

const STORIES = { makers, auctions, operator, link, round, own };
export const run = visiting(async (page, base, tools, story, ...given) => {
  if (story === "own") await page.setExtraHTTPHeaders({ "x-forwarded-for": "203.0.113.7" }); // as through a proxy: not of this machine
  await page.goto(`${base}/#${story === "own" ? "makers" : story}`);
  return STORIES[story](page, tools, ...given);
});
