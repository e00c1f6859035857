// Stories of orders to another chain, and of orders from vaults and for handlers. arguments: STORY ...
import { visiting } from "./browser.mjs";
import { agreed, connect, fillTrade, pairs, pickToken, pictures, reviewed, violations, waitFor } from "./console_page.mjs";

const PANEL = "section[aria-label='Order']";

// Choose the other chain, then the token there.
async function fillAcross(page, { there, get, ...trade }) {
  await fillTrade(page, trade);
  await page.getByLabel("You receive: chain").selectOption({ label: there });
  await pickToken(page, "You receive", get);
}

// An order to the other chain, until its delivery is shown.
async function order(page, { shot }, account, kind, get, amount, of, there) {
  const owner = await connect(page, Number(account));
  await fillAcross(page, { kind, pay: "WETH", get, amount, of, there });
  if (kind === "TWAP") await page.getByLabel("Slices").selectOption("2");
  await page.getByRole("button", { name: /^Review/ }).waitFor();
  const options = page.locator("fieldset.options label");
  await options.first().waitFor();
  const bridges = await options.allInnerTexts();
  const shown = await pairs(page.locator("form.card"));
  const faults = await violations(page);
  const overflowing = await pictures(page, shot, "trade-across-quote", false);
  const agreement = await reviewed(page);
  await shot("trade-across-review");
  const { said } = await agreed(page, { view: true });
  const panel = page.locator(PANEL);
  await panel.locator(".timeline li", { hasText: "delivered on" }).waitFor();
  await panel.getByText(/^Delivery on/).waitFor();
  const told = {
    owner, bridges, shown, agreement, said, head: await pairs(panel), title: await panel.locator("h1").innerText(),
    timeline: await panel.locator(".timeline li").allInnerTexts(),
  };
  faults.push(...await violations(page));
  return { ...told, faults, overflowing: [...overflowing, ...await pictures(page, shot, `trade-across-${kind}-${of}`.replace("-Gasless-SELL", ""), kind === "Gasless" && of === "SELL")] };
}

// The recommended bridge, and then the other one, as the dialog names them.
async function otherBridge(page, _, account, there) {
  await connect(page, Number(account));
  await fillAcross(page, { kind: "Gasless", pay: "WETH", get: "USDC", amount: "1", there });
  const options = page.locator("fieldset.options label");
  await options.nth(1).waitFor();
  const bridges = await options.allInnerTexts();
  const named = async () => {
    const { terms } = await reviewed(page);
    await page.locator("dialog.review").getByRole("button", { name: "Cancel" }).click();
    return terms.Bridge;
  };
  const before = await named();
  await options.nth(1).click();
  const after = await named();
  return { bridges, before, after, checked: await options.locator("input").evaluateAll((inputs) => inputs.map(({ checked }) => checked)) };
}

// The venue's quotes are changed on their way: each member of `changes`, such as "bridge.contractParams.outputToken".
const lyingQuotes = (changes) => {
  const { fetch } = globalThis;
  const lied = (text) => text.replace(/^data: (.*"delta".*)$/m, (line, json) => {
    const body = JSON.parse(json);
    if (!body.delta) return line;
    for (const [at, value] of Object.entries(changes)) {
      const path = at.split(".");
      const last = path.pop();
      path.reduce((place, name) => place[name], body.delta.route)[last] = value;
    }
    return `data: ${JSON.stringify(body)}`;
  });
  globalThis.fetch = async (url, ...rest) => {
    const response = await fetch(url, ...rest);
    if (!String(url).startsWith("/v2/quote/stream")) return response;
    let held = "";
    const changed = new TransformStream({ transform: (text, out) => {
      const blocks = (held + text).split("\n\n");
      held = blocks.pop();
      for (const block of blocks) out.enqueue(`${lied(block)}\n\n`);
    } });
    const body = response.body.pipeThrough(new TextDecoderStream()).pipeThrough(changed).pipeThrough(new TextEncoderStream());
    return new Response(body, { status: response.status, headers: response.headers });
  };
};

// A quote that differs from the wish is refused before the dialog.
async function quoteLies(page, _, account, there) {
  const owner = await connect(page, Number(account));
  await fillAcross(page, { kind: "Gasless", pay: "WETH", get: "USDC", amount: "1", there });
  await page.getByRole("button", { name: /^Review/ }).click();
  const fault = page.locator("#amount-fault:not(:empty)");
  await fault.waitFor();
  return { owner, fault: await fault.innerText(), dialogs: await page.locator("dialog.review").count() };
}

// An order that differs from the agreed terms is refused before it is signed.
async function buildLies(page, _, account, there, at, value) {
  await page.route("**/v2/delta/orders/build", async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    const path = at.split(".");
    const last = path.pop();
    path.reduce((place, name) => place[name], body.toSign.value)[last] = JSON.parse(value);
    await route.fulfill({ response, json: body });
  });
  const owner = await connect(page, Number(account));
  await fillAcross(page, { kind: "Gasless", pay: "WETH", get: "USDC", amount: "1", there });
  await reviewed(page);
  await page.getByRole("button", { name: "Agree and sign" }).click();
  const fault = page.locator("dialog.review .fault");
  await fault.filter({ hasText: "Nothing was signed" }).waitFor();
  return { owner, fault: await fault.innerText() };
}

// An order of a kind that the venue keeps, with other members in its record and its explanation.
async function record(page, { shot }, name, id, changes, reasons) {
  const put = (body, changed) => {
    for (const [key, value] of Object.entries(changed)) {
      if (value && typeof value === "object" && !Array.isArray(value) && body[key]) put(body[key], value);
      else body[key] = value;
    }
  };
  await page.route(new RegExp(`/v2/delta/orders/${id}(/explain)?$`), async (route) => {
    const response = await route.fetch();
    const body = await response.json();
    if (route.request().url().endsWith("/explain")) body.reasons = reasons ? JSON.parse(reasons) : body.reasons;
    else put(body, JSON.parse(changes));
    await route.fulfill({ response, json: body });
  });
  await page.goto(page.url().replace(/#.*|$/, `#order/${id}`));
  const panel = page.locator(PANEL);
  await panel.locator("dl.rows").waitFor();
  const told = { head: await pairs(panel), title: await panel.locator("h1").innerText(), reasons: await panel.locator(".reasons li").allInnerTexts(), badge: await panel.locator(".big .badge").first().innerText(), elements: await page.locator("main img, main script, main b").count() };
  return { ...told, faults: await violations(page), overflowing: await pictures(page, shot, name, false) };
}

const STORIES = { order, otherBridge, quoteLies, buildLies, record };
export const run = visiting(async (page, base, tools, story, ...given) => {
  if (story === "quoteLies") await page.addInitScript(lyingQuotes, JSON.parse(given[2]));
  await page.goto(`${base}/`);
  await waitFor(page, "You pay");
  return STORIES[story](page, tools, ...given);
});
