// Stories of makers, solvers and operators at the venue's console. arguments: STORY ...
import { visiting } from "./browser.mjs";
import { connect, fillTrade, pairs, pictures, reviewed, agreed, rows, violations } from "./console_page.mjs";

const PRESSES_MOST = 5;
const cards = (page, name) => page.locator(`section[aria-label='${name}']`);
const checked = async (page, shot, name) => ({ faults: await violations(page), overflowing: await pictures(page, shot, name, name !== "makers-own") });

async function useKey(page, key) {
  await page.getByLabel("Operator’s API key").fill(key);
  await page.getByRole("button", { name: "Use the key" }).click();
  await page.getByText("This page has the operator’s key.").waitFor();
}

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

// A key that is not the operator's, then the operator's; rounds, bids and why they lost.
async function auctions(page, { shot }, key, id) {
  await page.getByText("The list of rounds is the operator’s").waitFor();
  await shot("auctions-without-key");
  await page.getByLabel("Id of a round").fill(id);
  await page.getByRole("button", { name: "Show", exact: true }).click();
  const bids = page.getByRole("table", { name: /^Bids/ });
  await bids.waitFor();
  const found = await rows(bids);
  await at(page, "auctions");
  await bids.waitFor({ state: "hidden" });
  await at(page, `auctions/${id}`);
  await bids.waitFor();
  await useKey(page, key);
  const list = page.getByRole("table", { name: "Rounds, the latest first" });
  await list.locator("tbody button").first().waitFor();
  return { bids: found, rounds: await rows(list), agents: await rows(page.getByRole("table", { name: "Agents" })), ...(await checked(page, shot, "auctions")) };
}

async function operator(page, { shot }, key) {
  await page.getByText("ready", { exact: true }).waitFor();
  const without = await page.locator("main").innerText();
  await page.getByLabel("Operator’s API key").fill("a wrong key");
  await page.getByRole("button", { name: "Use the key" }).click();
  await page.getByRole("alert").filter({ hasText: "X-API-KEY" }).waitFor();
  await useKey(page, key);
  await cards(page, "Delay of the event loop").locator("svg").waitFor();
  await cards(page, "All orders").locator("tbody button").first().waitFor();
  const latencies = cards(page, "Latency of requests");
  const reading = () => page.waitForResponse((answer) => answer.url().endsWith("/operator/status"));
  const name = await latencies.getByRole("button", { pressed: false }).last().innerText();
  // In one step: a reading between two steps would replace the button that the first has found.
  const isFocused = () => page.evaluate((wanted) => document.activeElement.matches("section[aria-label='Latency of requests'] button[aria-pressed=true]") && document.activeElement.textContent === wanted, name);
  // A press misses a row that moves under it, and the page holds still for ten seconds of a press only. A row is picked
  // without a press once its route is the most frequent one; a press that met it has the focus too.
  for (let presses = 0; !(await isFocused()); presses++) {
    if (presses === PRESSES_MOST) throw new Error(`${name} was pressed ${presses} times, and is not picked with the focus on it`);
    await latencies.getByRole("button", { name, exact: true }).hover();
    await page.mouse.down();
    for (let readings = 0; readings < 2; readings++) await reading(); // a slow click: new readings come while it is held
    await page.mouse.up();
  }
  await page.evaluate(() => scrollTo(0, 0));
  for (let redrawn = 0; redrawn < 2; redrawn++) await reading();
  const told = {
    isFocused: await isFocused(), scrolled: await page.evaluate(() => scrollY), without, chains: await rows(page.getByRole("table", { name: "Chains" })), relayer: await cards(page, "Relayers").innerText(),
    lag: await cards(page, "Delay of the event loop").locator("svg").getAttribute("aria-label"), commits: await cards(page, "Time of the store’s commits").locator("svg").getAttribute("aria-label"),
    rounds: await rows(page.getByRole("table", { name: "Latency of auction rounds" })),
    latencies: await rows(page.getByRole("table", { name: "Latency of requests" })),
    ...(await checked(page, shot, "operator")),
  };
  await page.getByRole("button", { name: "Leave out beta" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Release beta" }).waitFor();
  const out = await rows(page.getByRole("table", { name: "Switch of makers" }));
  const route = await page.evaluate(async () => (await fetch("/makers/books?network=31337&makerName=beta")).json());
  await page.getByRole("button", { name: "Release beta" }).click();
  await page.getByRole("button", { name: "Yes" }).click();
  await page.getByRole("button", { name: "Leave out beta" }).waitFor();
  return { ...told, out, withheld: route[0].withheld };
}

// An order, so that there is a round; its id.
async function round(page) {
  await page.goto(page.url().replace(/#.*/, "#trade"));
  await connect(page, 6);
  await fillTrade(page, { kind: "Order", pay: "WETH", get: "USDC", amount: "1" });
  await reviewed(page);
  await agreed(page);
  const summary = page.locator("section[aria-label='Order'] details summary").first();
  await summary.waitFor();
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
  await signIn("a wrong secret");
  const refusal = page.locator("section[aria-label='Maker’s own key'] .fault:not(:empty)");
  await refusal.waitFor();
  const refused = await refusal.innerText();
  await signIn(secret);
  await page.getByText("This page signs as the maker beta").waitFor();
  await page.locator(".bids tbody tr").first().waitFor();
  const pairsShown = page.getByRole("table", { name: "Pairs, as the venue sees them" });
  const told = { refused, name: await page.locator("#maker-name").innerText(), shown: await rows(pairsShown), faultsTold: await page.getByText("No firm quote of this maker had a fault.").count(), ...(await checked(page, shot, "makers-own")) };
  await page.getByRole("button", { name: "alpha", exact: true }).click();
  await page.getByText("Pairs and ladders are hidden").waitFor();
  await page.getByRole("button", { name: "Sign out" }).click();
  await page.getByLabel("Secret", { exact: true }).waitFor();
  return { ...told, left: await page.getByLabel("Secret", { exact: true }).inputValue() };
}

const STORIES = { makers, auctions, operator, round, own };
export const run = visiting(async (page, base, tools, story, ...given) => {
  if (story === "own") await page.setExtraHTTPHeaders({ "x-forwarded-for": "203.0.113.7" }); // as through a proxy: not of this machine
  await page.goto(`${base}/#${story === "own" ? "makers" : story}`);
  return STORIES[story](page, tools, ...given);
});
