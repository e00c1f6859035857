// Stories of a trader at the console. arguments: STORY ...
import { visiting } from "./browser.mjs";
import { agreed, connect, fillTrade, misfitting, pairs, pictures, reviewed, rows, violations, waitFor, WIDTHS } from "./console_page.mjs";

const PANEL = "section[aria-label='Order']";

async function swap(page, { shot }, account, pay, get, amount, of, source) {
  const address = await connect(page, Number(account), source || undefined);
  await fillTrade(page, { kind: "Swap", pay, get, amount, of });
  await page.locator(".route svg").waitFor();
  const route = await page.locator(".route svg").getAttribute("aria-label");
  await page.locator("summary", { hasText: "Fills of each maker" }).click();
  const fills = await rows(page.getByRole("table", { name: "Fills of each maker" }));
  await page.locator("summary", { hasText: "Why this route" }).click();
  const sentence = page.getByText(/The same amount with each maker alone|No maker can fill/);
  await sentence.waitFor();
  const alone = page.getByRole("table", { name: "Each maker alone" });
  const others = (await alone.count()) ? await rows(alone) : [];
  const shown = await pairs(page.locator("form.card"));
  const faults = await violations(page);
  const overflowing = await pictures(page, shot, "trade-swap");
  const agreement = await reviewed(page);
  await shot("trade-review");
  await page.setViewportSize({ width: WIDTHS.narrow, height: 700 });
  overflowing.push(...(await misfitting(page)));
  await shot("trade-review-narrow");
  const done = await agreed(page);
  await page.setViewportSize({ width: WIDTHS.usual, height: 900 });
  await page.getByRole("table", { name: "Swaps, newest first" }).locator("tbody tr:not([aria-hidden])").first().waitFor();
  return { address, route, fills, others, shown, agreement, ...done, faults, overflowing: [...overflowing, ...done.misfits], swaps: await rows(page.getByRole("table", { name: "Swaps, newest first" })) };
}

// Amounts beyond the account's balance are refused before anything is signed.
async function short(page, _, account) {
  await connect(page, Number(account));
  await fillTrade(page, { kind: "Swap", pay: "WETH", get: "USDC", amount: "100000" });
  const button = page.getByRole("button", { name: "Not enough WETH" });
  await button.waitFor();
  return { isDisabled: await button.isDisabled() };
}

async function order(page, { shot }, account, kind, pay, get, amount, of, node) {
  await connect(page, Number(account));
  await fillTrade(page, { kind, pay, get, amount, of });
  if (kind === "TWAP") await page.getByLabel("Slices").selectOption("2");
  const agreement = await reviewed(page);
  const { said, headline } = await agreed(page, { view: true });
  const panel = page.locator(PANEL);
  if (kind === "TWAP") {
    await panel.getByText("1 of 2 slices are settled").or(panel.getByLabel("1 of 2 slices are settled")).first().waitFor();
    await shot("trade-twap-waiting");
    for (const [method, params] of [["evm_increaseTime", [61]], ["evm_mine", []]]) await asked(node, method, params);
  }
  await panel.locator(".timeline .badge", { hasText: "completed" }).waitFor();
  const last = kind === "TWAP" ? ["dd", "2 of 2"] : ["dt", of === "SELL" ? /^Received/ : /^Paid/]; // of the record, which follows its event
  await panel.locator(last[0], { hasText: last[1] }).first().waitFor();
  await panel.locator("details[data-round]").first().waitFor();
  await panel.locator("summary", { hasText: "All figures of the bids" }).first().click();
  const bids = await rows(panel.getByRole("table", { name: /^Bids/ }).first());
  const settled = await panel.getByRole("table", { name: "Settlements" }).first().locator(".badge", { hasText: "settled" }).first().innerText();
  const told = {
    agreement, said, headline, settled, outcome: await panel.locator("section[aria-label='Outcome']").innerText(), head: await pairs(panel), slices: kind === "TWAP" && await rows(panel.getByRole("table", { name: "Settled slices" })),
    timeline: await panel.locator(".timeline li").allInnerTexts(), bids,
  };
  const shown = { faults: await violations(page), overflowing: await pictures(page, shot, `trade-${kind.toLowerCase()}${of === "BUY" ? "-buy" : ""}`, of === "SELL") };
  await page.goto(page.url().replace(/#.*/, "#trade"));
  await page.getByRole("button", { name: /^History/ }).click();
  return { ...told, ...shown, orders: await rows(page.getByRole("table", { name: "Orders, newest first" })) };
}

const asked = (node, method, params) => fetch(node, { method: "POST", body: JSON.stringify({ jsonrpc: "2.0", id: 1, method, params }) });

// A limit order far from the market: why it waits, in whole tokens; then it is cancelled.
async function limit(page, { shot }, account) {
  await connect(page, Number(account));
  await fillTrade(page, { kind: "Limit", pay: "WETH", get: "USDC", amount: "1.5" });
  await page.getByLabel("Limit price").fill("3000");
  const agreement = await reviewed(page);
  await agreed(page, { view: true });
  const panel = page.locator(PANEL);
  await panel.getByText("waits for its price").waitFor();
  const reason = await panel.locator(".reasons li").first().innerText();
  await shot("trade-limit");
  await panel.getByRole("button", { name: "Cancel order" }).click();
  await page.locator("dialog").getByRole("button", { name: "Cancel order" }).click();
  await panel.locator(".timeline .badge", { hasText: "cancelled" }).waitFor();
  return { agreement, reason };
}

// An amount beyond the books: the page says why.
async function refused(page, { shot }, kind, amount) {
  await fillTrade(page, { kind, pay: "WETH", get: "USDC", amount });
  const told = page.locator("#no-price .notice");
  await told.waitFor();
  await shot("trade-refused");
  return told.innerText();
}

// An OTC order: posted, filled in part by another account, and cancelled by its maker, each seen on its page.
async function otc(page, { shot }, maker, taker) {
  const faults = [];
  const overflowing = [];
  const at = async (account) => { await connect(page, Number(account)); };
  await at(maker);
  await page.evaluate(() => { location.hash = "otc"; });
  await page.locator("#otc-give").fill("2");
  await page.locator("#otc-get").fill("5020");
  await page.getByRole("button", { name: "Review order" }).click();
  const terms = await pairs(page.locator("dialog.review"));
  const posted = await agreed(page, { view: true });
  const card = page.locator("section[aria-label='This order']");
  await card.getByRole("button", { name: "Cancel on chain" }).waitFor();
  const hash = await page.evaluate(() => location.hash);
  await page.locator("#account").click();
  await page.getByRole("button", { name: "Disconnect" }).click();
  await at(taker);
  await page.evaluate((to) => { location.hash = to; }, hash);
  await page.locator("#otc-pay").fill("1255");
  await card.getByText("You receive 0.5 WETH.").waitFor();
  faults.push(...(await violations(page)));
  overflowing.push(...(await pictures(page, shot, "otc")));
  await page.locator("#otc-pay").fill("9000");
  const tooMuch = card.getByText("Pay at most 5,020 USDC");
  await tooMuch.waitFor();
  await page.locator("#otc-pay").fill("1255");
  await page.getByRole("button", { name: "Review fill" }).click();
  const fillTerms = await pairs(page.locator("dialog.review"));
  const filled = await agreed(page);
  await card.getByText("75 %").first().waitFor();
  await page.locator("#account").click();
  await page.getByRole("button", { name: "Disconnect" }).click();
  await at(maker);
  await page.evaluate((to) => { location.hash = to; }, hash);
  await card.getByRole("button", { name: "Cancel on chain" }).click();
  const cancelled = await agreed(page);
  await card.locator(".badge", { hasText: "cancelled" }).waitFor();
  await page.getByRole("button", { name: /^Mine/ }).click();
  const list = page.getByRole("table", { name: "OTC orders, newest first" });
  await list.locator("tbody tr", { hasText: "cancelled" }).first().waitFor();
  const mine = await rows(list);
  return { terms, posted: posted.headline, fillTerms, filled, cancelled: cancelled.headline, steps: cancelled.said, mine, faults, overflowing: [...overflowing, ...posted.misfits, ...filled.misfits] };
}

// A deposit for an order that is cancelled remains, and is taken back in the dialog of the account.
async function withdrawal(page, _, account) {
  await connect(page, Number(account));
  await fillTrade(page, { kind: "Limit", pay: "ETH", get: "USDC", amount: "1" });
  await page.getByLabel("Limit price").fill("3000");
  await reviewed(page);
  await agreed(page, { view: true });
  await page.getByRole("button", { name: "Cancel order" }).click();
  await page.locator("dialog").getByRole("button", { name: "Cancel order" }).click();
  await page.locator(PANEL).locator(".timeline .badge", { hasText: "cancelled" }).waitFor();
  await page.locator("#account").click();
  await page.getByText("Deposited for orders: 1").waitFor();
  await page.getByRole("button", { name: "Withdraw" }).click();
  await page.locator("dialog.review").waitFor();
  const terms = await pairs(page.locator("dialog.review"));
  const { headline } = await agreed(page);
  await page.locator("#account").click();
  await page.getByRole("button", { name: "Disconnect" }).waitFor();
  return { terms, headline, left: await page.getByText("Deposited for orders").count() };
}

// Settings of the form: a slippage of one's own, a limit beside the price, a date, a token found by its address.
async function settings(page, _, account, address) {
  await connect(page, Number(account));
  await fillTrade(page, { kind: "Gasless", pay: "WETH", get: "USDC", amount: "1" });
  const row = (name) => page.locator("form.card dl.rows .row", { hasText: name }).locator("dd");
  await row("You receive at least").waitFor();
  await page.getByLabel("Slippage, %").fill("1.25");
  const least = await row("You receive at least").innerText();
  await page.getByLabel("Slippage, %").fill("60");
  await page.getByRole("button", { name: "Slippage: 0 to 50 %" }).waitFor();
  await page.getByLabel("Slippage, %").fill("0.5");
  await page.getByLabel("Good for").selectOption("date");
  await page.getByRole("button", { name: "Choose a date to come" }).waitFor();
  await page.getByLabel("Good until").first().fill("2099-01-02T03:04");
  await row("Good until").filter({ hasText: "2 Jan 2099" }).waitFor();
  await page.getByRole("radio", { name: "Limit", exact: true }).check({ force: true });
  const price = page.getByLabel("Limit price");
  await page.waitForFunction(() => Number(document.querySelector("label.field:not([hidden]) input[placeholder='0']")?.value) > 0);
  await page.getByRole("button", { name: "price", exact: true }).click();
  const now = Number(await price.inputValue());
  await page.getByRole("button", { name: "+1 %" }).click();
  const above = Number(await price.inputValue());
  const rests = await row("It fills").innerText();
  await page.getByRole("button", { name: "−1 %" }).click();
  const below = Number(await price.inputValue());
  const fills = await row("It fills").innerText();
  await page.locator("button.pick[aria-label^='You receive: token']").click();
  await page.getByLabel("Find", { exact: true }).fill("no such token");
  await page.getByText("No token has this symbol or address.").waitFor();
  await page.getByLabel("Find", { exact: true }).fill(address.toLowerCase());
  await page.getByLabel("Find", { exact: true }).press("Enter");
  const found = await page.locator("button.pick[aria-label^='You receive: token']").innerText();
  await page.getByRole("button", { name: /^Max/ }).click();
  return { least, ratios: [above / now, below / now], rests, fills, found, most: await page.locator("#amount-SELL").inputValue() };
}

const STORIES = { swap, short, order, limit, refused, otc, settings, withdrawal };
export const run = visiting(async (page, base, tools, story, ...given) => {
  await page.goto(`${base}/`);
  await waitFor(page, "You pay");
  return STORIES[story](page, tools, ...given);
});
