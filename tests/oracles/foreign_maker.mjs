// A market maker of node's http module and ethers, written from docs/reference/spec/3-market-maker.md alone.
// arguments: one fault for each maker to serve, `none` for a right one
// A line tells the ports, {"none": 41234, ...}; the process ends with its standard input.
// faults: reserialised-body, signature-by-prefix, any-case-key, wrong-decimals, flaky-prices, text-decimals, text-expiry
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import http from "node:http";
import { Wallet, getAddress, isAddress, keccak256, toUtf8Bytes } from "ethers";

const CHAIN_ID = 31_337, PREFIX = "/31337";
const DOMAIN = "venue", ACCESS_KEY = "Access-Key-1", SECRET = "a secret of two";
const RFQ = getAddress("0x0102030405060708090a0b0c0d0e0f1011121314");
const TAKER = `0x${"7a".repeat(20)}`, BLACKLIST = [`0x${"bb".repeat(20)}`];
const LIFE_S = 300, SKEW_MS = 30_000, BODY_BYTES_MAX = 65_536;
const TOKENS = { WETH: [`0x${"a1".repeat(20)}`, 18], USDC: [`0x${"b2".repeat(20)}`, 6], WBTC: [`0x${"c3".repeat(20)}`, 8] };
const PAIRS = { "WETH/USDC": ["WETH", "USDC"], "WBTC/USDC": ["WBTC", "USDC"] };
const GRIDS = {
  "WETH/USDC": { bids: [["2999.1", "4"], ["2990", "25.5"]], asks: [["3000.25", "3.5"], ["3010", "30"]] },
  "WBTC/USDC": { bids: [["60000", "1.5"], ["59900.5", "4"]], asks: [["60100", "1"], ["60250.75", "5"]] },
};
const ORDER = [
  ["nonceAndMeta", "uint256"], ["expiry", "uint128"], ["makerAsset", "address"], ["takerAsset", "address"],
  ["maker", "address"], ["taker", "address"], ["makerAmount", "uint256"], ["takerAmount", "uint256"],
].map(([name, type]) => ({ name, type }));
const SCALE = 10n ** 18n;
const wallet = new Wallet(keccak256(toUtf8Bytes("a foreign maker")));

class Refused extends Error {
  constructor(status, text) {
    super(text);
    this.status = status;
  }
}

function refuseUnless(condition, text, status = 400) {
  if (!condition) throw new Refused(status, text);
}

// --- Resources ---

function resource(name, fault) {
  if (name === "tokens") {
    const decimalsOf = (decimals) => ({ "wrong-decimals": decimals - 1, "text-decimals": String(decimals) })[fault] ?? decimals;
    const rows = Object.entries(TOKENS).map(([symbol, [address, decimals]]) => [
      symbol, { symbol, name: symbol, description: `${symbol} here`, address, decimals: decimalsOf(decimals), type: "ERC20" },
    ]);
    return Object.fromEntries(rows);
  }
  if (name === "pairs") {
    return Object.fromEntries(Object.entries(PAIRS).map(([id, [base, quote]]) => [id, { base, quote, liquidityUSD: 250_000 }]));
  }
  return name === "prices" ? GRIDS : BLACKLIST;
}

// --- Authentication ---

function matches(sent, right, fault) {
  if (fault === "signature-by-prefix") return sent.slice(0, 16) === right.slice(0, 16);
  return sent.length === right.length && timingSafeEqual(Buffer.from(sent), Buffer.from(right));
}

function reserialised(body) {
  try {
    return Buffer.from(JSON.stringify(JSON.parse(body)));
  } catch {
    return body;
  }
}

function authenticate({ headers, method, url }, body, fault) {
  const four = ["domain", "access-key", "timestamp", "signature"].map((name) => headers[`x-auth-${name}`] ?? "");
  const [domain, accessKey, timestamp, signature] = four;
  refuseUnless(domain === DOMAIN, "X-AUTH-DOMAIN: missing or unknown", 401);
  const folded = (text) => (fault === "any-case-key" ? text.toLowerCase() : text);
  refuseUnless(folded(accessKey) === folded(ACCESS_KEY), "X-AUTH-ACCESS-KEY: missing or unknown", 401);
  refuseUnless(/^[0-9]{1,15}$/.test(timestamp), "X-AUTH-TIMESTAMP: expected milliseconds in digits", 401);
  refuseUnless(Math.abs(Number(timestamp) - Date.now()) <= SKEW_MS, "X-AUTH-TIMESTAMP: more than 30 s off", 401);
  const signed = fault === "reserialised-body" ? reserialised(body) : body;
  const right = createHmac("sha256", SECRET).update(timestamp + method + url).update(signed).digest("hex");
  refuseUnless(matches(signature, right, fault), "X-AUTH-SIGNATURE: not over this request", 401);
}

// --- Firm quotes ---

function scaled(text) {
  const [whole, fraction = ""] = text.split(".");
  return BigInt(whole + fraction.padEnd(18, "0"));
}

// Levels in raw units: an amount of base, and the price of one raw unit of it, which is price / unit.
function levels(side, baseDecimals, quoteDecimals) {
  const [oneBase, oneQuote] = [10n ** BigInt(baseDecimals), 10n ** BigInt(quoteDecimals)];
  return side.map(([price, size]) => {
    const base = (scaled(size) * oneBase) / SCALE;
    return { base, price: scaled(price) * oneQuote, unit: SCALE * oneBase };
  });
}

// The amount of quote that stands against an amount of base, rounded once at the end.
function quoteOf(rows, amount, isUp) {
  let [left, total] = [amount, 0n];
  for (const { base, price } of rows) {
    const part = left < base ? left : base;
    total += part * price;
    left -= part;
  }
  refuseUnless(left === 0n, "the amount is more than is displayed");
  return divided(total, rows[0].unit, isUp);
}

// The amount of base that stands against an amount of quote.
function baseOf(rows, amount, isUp) {
  let [left, total] = [amount * rows[0].unit, 0n];
  for (const { base, price } of rows) {
    const whole = base * price;
    if (left <= whole) return total + divided(left, price, isUp);
    left -= whole;
    total += base;
  }
  throw new Refused(400, "the amount is more than is displayed");
}

const divided = (dividend, divisor, isUp) => (isUp ? (dividend + divisor - 1n) / divisor : dividend / divisor);

function otherAmount(makerAsset, takerAsset, isMakerGiven, amount) {
  const sale = GRIDS[`${takerAsset}/${makerAsset}`], purchase = GRIDS[`${makerAsset}/${takerAsset}`];
  refuseUnless(sale || purchase, "no such pair");
  const [base, quote, side] = sale ? [takerAsset, makerAsset, sale.bids] : [makerAsset, takerAsset, purchase.asks];
  const rows = levels(side, TOKENS[base][1], TOKENS[quote][1]);
  const isBaseGiven = isMakerGiven === Boolean(purchase);
  const other = (isBaseGiven ? quoteOf : baseOf)(rows, amount, isMakerGiven);
  refuseUnless(other > 0n, "the amount is too small");
  return other;
}

function tokenOf(address, key) {
  const found = Object.keys(TOKENS).find((symbol) => TOKENS[symbol][0] === address.toLowerCase());
  refuseUnless(found, `${key}: unknown token`);
  return found;
}

async function firm(body, fault) {
  let asked;
  try {
    asked = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(body));
  } catch (error) {
    throw new Refused(400, `expected JSON: ${error.message}`);
  }
  refuseUnless(asked && typeof asked === "object" && !Array.isArray(asked), "expected an object");
  for (const key of ["makerAsset", "takerAsset", "userAddress", "takerAddress"]) {
    const isText = typeof asked[key] === "string" && /^0x[0-9a-fA-F]{40}$/.test(asked[key]);
    refuseUnless(isText && isAddress(asked[key].toLowerCase()), `${key}: expected an address`);
  }
  const given = ["makerAmount", "takerAmount"].filter((key) => asked[key] !== undefined && asked[key] !== null);
  refuseUnless(given.length === 1, "expected exactly one of makerAmount and takerAmount");
  const text = asked[given[0]];
  refuseUnless(typeof text === "string" && /^[0-9]{1,78}$/.test(text), `${given[0]}: expected digits in a string`);
  refuseUnless(BigInt(text) > 0n && BigInt(text) < 1n << 256n, `${given[0]}: expected 1 to 2^256 - 1`);
  const user = asked.userAddress.toLowerCase(), taker = asked.takerAddress.toLowerCase();
  if (BLACKLIST.includes(user)) return { message: "this user is not served" };
  refuseUnless(taker === TAKER, "takerAddress: not on the list");
  const makerAsset = tokenOf(asked.makerAsset, "makerAsset"), takerAsset = tokenOf(asked.takerAsset, "takerAsset");
  const isMakerGiven = given[0] === "makerAmount";
  const other = otherAmount(makerAsset, takerAsset, isMakerGiven, BigInt(text)).toString();
  const order = {
    nonceAndMeta: ((BigInt(`0x${randomBytes(12).toString("hex")}`) << 160n) + BigInt(user)).toString(),
    expiry: Math.floor(Date.now() / 1_000) + LIFE_S, makerAsset: asked.makerAsset, takerAsset: asked.takerAsset,
    maker: wallet.address, taker: asked.takerAddress, makerAmount: isMakerGiven ? text : other, takerAmount: isMakerGiven ? other : text,
  };
  // ethers refuses mixed case that is no checksum; what is signed are the bytes of an address.
  const lower = Object.fromEntries(["makerAsset", "takerAsset", "taker"].map((key) => [key, order[key].toLowerCase()]));
  const domain = { name: "AUGUSTUS RFQ", version: "1", chainId: CHAIN_ID, verifyingContract: RFQ };
  const signature = await wallet.signTypedData(domain, { Order: ORDER }, { ...order, ...lower });
  return { order: { ...order, expiry: fault === "text-expiry" ? String(order.expiry) : order.expiry, signature } };
}

// --- Serving ---

async function answered(request, body, maker) {
  const path = request.url.split("?")[0];
  const name = path.startsWith(`${PREFIX}/`) ? path.slice(PREFIX.length + 1) : "";
  refuseUnless(["tokens", "pairs", "prices", "blacklist", "firm"].includes(name), "no such path", 404);
  const method = name === "firm" ? "POST" : "GET";
  refuseUnless(request.method === method, `expected ${method}`, 405);
  authenticate(request, body, maker.fault);
  if (name === "firm") return firm(body, maker.fault);
  if (name === "prices" && maker.fault === "flaky-prices") refuseUnless(++maker.polls % 10, "down", 500);
  return { [name]: resource(name, maker.fault) };
}

function serve(fault) {
  const maker = { fault, polls: 0 };
  const send = (response, status, content) => {
    const raw = Buffer.from(JSON.stringify(content));
    response.writeHead(status, { "content-type": "application/json", "content-length": raw.length }).end(raw);
  };
  const server = http.createServer((request, response) => {
    const chunks = [];
    let bytes = 0;
    request.on("data", (chunk) => {
      bytes += chunk.length;
      if (bytes <= BODY_BYTES_MAX) chunks.push(chunk);
      if (bytes <= BODY_BYTES_MAX || response.writableEnded) return;
      response.setHeader("connection", "close");
      send(response, 413, { error: "the body is too large" });
    });
    request.on("end", async () => {
      if (response.writableEnded) return;
      try {
        send(response, 200, await answered(request, Buffer.concat(chunks), maker));
      } catch (error) {
        send(response, error.status ?? 500, { error: error.message });
      }
    });
  });
  server.on("clientError", (error, socket) => {
    if (!socket.writable) return;
    const raw = JSON.stringify({ error: `malformed request: ${error.code}` });
    socket.end(`HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: ${raw.length}\r\n\r\n${raw}`);
  });
  return new Promise((resolve) => server.listen(0, "127.0.0.1", () => resolve(server.address().port)));
}

const ports = {};
for (const fault of process.argv.slice(2)) ports[fault] = await serve(fault);
process.stdout.write(`${JSON.stringify(ports)}\n`);
process.stdin.on("end", () => process.exit(0)).resume();
