// Maker and taker of OTC orders at a venue and on the chain, with any library for signing and sending.
// parties = {
//   chainId, address: { maker, taker, stranger },
//   sign(who, toSign, bytes): 64 or 65 of them, hexadecimal;  hash(toSign): of the typed data, by the library;
//   split(signature): { v, r, s };  words(types, values): ABI-encoded, hexadecimal;
//   read(address, name, args): what a function of ERC-20 or of the RFQ contract returns;
//   send(who, address, name, args): mined; gives the transaction's hash
//   refusal(who, address, name, args): the words of its revert;  forced(who, address, name, args): whether it was mined as failed
// }
import { WAIT_MS } from "./patience.mjs";

const ZERO = "0x0000000000000000000000000000000000000000";
const DOMAIN_NAME = "AUGUSTUS RFQ";
const LIFE_S = 3_600;
const PAUSE_MS = { first: 25, most: 500, all: WAIT_MS };
const ORDER = [
  { name: "nonceAndMeta", type: "uint256" }, { name: "expiry", type: "uint128" },
  { name: "makerAsset", type: "address" }, { name: "takerAsset", type: "address" },
  { name: "maker", type: "address" }, { name: "taker", type: "address" },
  { name: "makerAmount", type: "uint256" }, { name: "takerAmount", type: "uint256" },
];
const PERMIT = [
  { name: "owner", type: "address" }, { name: "spender", type: "address" }, { name: "value", type: "uint256" },
  { name: "nonce", type: "uint256" }, { name: "deadline", type: "uint256" },
];

const random = (bits) => BigInt(`0x${Buffer.from(crypto.getRandomValues(new Uint8Array(bits / 8))).toString("hex")}`);
const nowS = () => Math.floor(Date.now() / 1_000);

async function until(what, condition) {
  for (let pause = PAUSE_MS.first, waited = 0; waited < PAUSE_MS.all; pause = Math.min(pause * 1.5, PAUSE_MS.most)) {
    const found = await condition();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, pause));
    waited += pause;
  }
  throw new Error(`it has not come to ${what}`);
}

class Venue {
  constructor(url) {
    this.url = url;
  }

  async answer(path, body) {
    const options = body && { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(`${this.url}${path}`, options);
    return { status: response.status, told: await response.json() };
  }

  async ask(path, body) {
    const { status, told } = await this.answer(path, body);
    if (status !== 200) throw new Error(`${path}: ${status} ${told.errorType}: ${told.details}`);
    return told;
  }

  async refusal(path, body) {
    const { status, told } = await this.answer(path, body);
    return { status, ...told };
  }

  order(hash) {
    return this.ask(`/ft/order/${hash}`);
  }

  becomes(hash, what, condition) {
    return until(what, async () => {
      const stored = await this.order(hash);
      return condition(stored) && stored;
    });
  }
}

// GET /ft/events as a stream, line by line.
class Events {
  constructor(venue, query) {
    this.all = [];
    this.leaving = new AbortController();
    this.isOver = this.listen(`${venue.url}/ft/events?${new URLSearchParams(query)}`);
    this.isOver.catch(() => {}); // told by `until` and `leave`
  }

  async listen(url) {
    const response = await fetch(url, { headers: { accept: "text/event-stream" }, signal: this.leaving.signal });
    if (response.status !== 200) throw new Error(`${url}: ${response.status} ${await response.text()}`);
    let text = "";
    for await (const chunk of response.body.pipeThrough(new TextDecoderStream())) {
      const blocks = (text + chunk).split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const data = block.split("\n").find((line) => line.startsWith("data: "));
        if (data) this.all.push(JSON.parse(data.slice(6)));
      }
    }
    throw new Error("the stream has ended");
  }

  until(what, condition) {
    return Promise.race([this.isOver, until(what, () => this.all.find(condition))]);
  }

  // Events of an order. A stream may begin with recent events of other orders.
  async leave(hash) {
    this.leaving.abort();
    await this.isOver.catch((error) => {
      if (error.name !== "AbortError") throw error;
    });
    return this.all.filter((message) => message.event === "order" && message.orderHash === hash);
  }
}

async function begun(venue, query) {
  const events = new Events(venue, query);
  await events.until("the stream's beginning", (message) => message.event === "open");
  return events;
}

// The RFQ contract of the chain, as either document of the venue names it.
async function rfqContract(venue, chainId) {
  const adapters = await venue.ask(`/adapters/contracts?network=${chainId}`);
  const { chains } = await venue.ask("/resources/contracts.json");
  if (adapters.AugustusRFQ !== chains[chainId].augustusRFQ) throw new Error(`${adapters.AugustusRFQ}, ${JSON.stringify(chains)}`);
  return adapters.AugustusRFQ;
}

async function fillable(venue, chainId, account, token) {
  const path = `/ft/fillablebalance/${chainId}/${account}`;
  return {
    inPath: await venue.ask(`${path}/${token}`), inPathSlash: await venue.ask(`${path}/${token}/`),
    inQuery: await venue.ask(`${path}?token=${token}`), inQuerySlash: await venue.ask(`${path}/?token=${token}`),
    ofAll: (await venue.ask(path))[token.toLowerCase()],
  };
}

// Answers about Delta of a venue without a relayer on the chain.
async function deltaSaid(venue, chainId, { makerAsset, takerAsset, makerAmount }) {
  const { tokens } = await venue.ask(`/tokens/${chainId}`);
  const [srcDecimals, destDecimals] = [makerAsset, takerAsset].map((asset) => tokens.find((token) => token.address === asset).decimals);
  const asked = { chainId, srcToken: makerAsset, destToken: takerAsset, srcDecimals, destDecimals, amount: makerAmount };
  const quote = (mode) => `/v2/quote?${new URLSearchParams({ ...asked, mode })}`;
  const { market, delta, fallbackReason } = await venue.ask(quote("ALL"));
  return {
    contracts: (await venue.ask("/resources/contracts.json")).chains[chainId], chain: (await venue.ask("/chains")).find((chain) => chain.chainId === chainId), fallbackReason,
    isMarket: !delta && market.srcToken === makerAsset, only: await venue.refusal(quote("DELTA")),
    submit: await venue.refusal("/v2/delta/orders", { chainId, order: {}, signature: "0x", partner: "anon" }),
  };
}

function balances({ address, read }, { makerAsset, takerAsset }) {
  const asked = ["maker", "taker"].flatMap((who) => [makerAsset, takerAsset].map((token) => read(token, "balanceOf", [address[who]])));
  return Promise.all(asked);
}

const moved = async (parties, trade, before) => (await balances(parties, trade)).map((balance, at) => balance - before[at]);

const typed = (chainId, rfq, value) => ({
  domain: { name: DOMAIN_NAME, version: "1", chainId, verifyingContract: rfq }, types: { Order: ORDER }, primaryType: "Order", value,
});

// As a body is sent: numbers as spec 2.3 has them.
const posted = (order, signature, permit) => ({
  ...order, nonceAndMeta: order.nonceAndMeta.toString(), makerAmount: order.makerAmount.toString(),
  takerAmount: order.takerAmount.toString(), signature, permitMakerAsset: permit,
});

// An order of which the maker has not nearly the amount: posted first, and never covered.
async function giant(venue, parties, rfq, trade) {
  const { address, chainId } = parties;
  const order = {
    nonceAndMeta: (BigInt(address.stranger) << 96n) | random(96), expiry: nowS() + LIFE_S, makerAsset: trade.makerAsset,
    takerAsset: trade.takerAsset, maker: address.maker, taker: address.stranger, makerAmount: 10n ** 40n, takerAmount: 1n,
  };
  const signature = await parties.sign("maker", typed(chainId, rfq, order), 65);
  return (await venue.ask(`/ft/p2p/${chainId}`, posted(order, signature, null))).order;
}

// A private order: posted, listed, refused to a stranger, filled in part by its taker, cancelled; and what is heard of it.
async function privately(venue, parties, trade, { bytes, slash }) {
  const { address, chainId } = parties;
  const [makerAmount, takerAmount] = [BigInt(trade.makerAmount), BigInt(trade.takerAmount)];
  const part = takerAmount / 4n;
  const rfq = await rfqContract(venue, chainId);
  await parties.send("maker", trade.makerAsset, "approve", [rfq, 2n * makerAmount]);
  const tooLarge = await giant(venue, parties, rfq, trade);
  const delta = await deltaSaid(venue, chainId, trade);
  const fillables = { before: await fillable(venue, chainId, address.maker, trade.makerAsset) };
  const heard = { maker: await begun(venue, { maker: address.maker, chainId }), taker: await begun(venue, { taker: address.taker }) };
  const order = {
    nonceAndMeta: (BigInt(address.maker) << 96n) | random(96), expiry: nowS() + LIFE_S, makerAsset: trade.makerAsset,
    takerAsset: trade.takerAsset, maker: address.maker, taker: address.taker, makerAmount, takerAmount,
  };
  const toSign = typed(chainId, rfq, order);
  const hash = parties.hash(toSign);
  const signature = await parties.sign("maker", toSign, bytes);
  const body = posted(order, signature, null);
  const [path, other] = slash ? [`/ft/p2p/${chainId}/`, `/ft/p2p/${chainId}`] : [`/ft/p2p/${chainId}`, `/ft/p2p/${chainId}/`];
  const refused = [];
  for (const [member, value] of Object.entries({
    makerAmount: (makerAmount - 1n).toString(), taker: address.stranger, expiry: order.expiry + 1,
    signature: await parties.sign("stranger", toSign, bytes),
  })) {
    refused.push(await venue.refusal(path, { ...body, [member]: value }));
  }
  const unknown = await venue.refusal(`/ft/order/${hash}`);
  const answer = await venue.ask(path, body);
  const again = await venue.ask(other, body);
  const stored = await venue.order(hash);
  const listing = (role, query) => venue.ask(`/ft/p2p/${chainId}/${role}/${address[role]}${query}`);
  const listed = {
    maker: await listing("maker", "?type=P2P&limit=1&offset=0&orderBy=createdAt"),
    taker: await listing("taker", "/?type=P2P&limit=1&hideSmallBalances=true"),
    byExpiry: await listing("maker", "?orderBy=expiry&limit=1000"),
    open: await listing("taker", "?type=LIMIT"),
  };
  fillables.posted = await fillable(venue, chainId, address.maker, trade.makerAsset);
  const fill = [rfq, "partialFillOrder", [order, signature, part]];
  const stranger = { word: await parties.refusal("stranger", ...fill), isFailed: await parties.forced("stranger", ...fill) };
  const untouched = await venue.order(hash);
  const before = await balances(parties, trade);
  await parties.send("taker", trade.takerAsset, "approve", [rfq, part]);
  const fillHash = await parties.send("taker", ...fill);
  const filled = await venue.becomes(hash, "a fill", (it) => BigInt(it.fillableBalance) < makerAmount);
  const left = (await parties.read(rfq, "remaining", [address.maker, hash])) - 1n;
  fillables.filled = await fillable(venue, chainId, address.maker, trade.makerAsset);
  const whole = await parties.refusal("taker", rfq, "fillOrder", [order, signature]);
  const cancelHash = await parties.send("maker", rfq, "cancelOrder", [hash]);
  const cancelled = await venue.becomes(hash, "CANCELLED", (it) => it.state === "CANCELLED");
  fillables.cancelled = await fillable(venue, chainId, address.maker, trade.makerAsset);
  const closed = { word: await parties.refusal("taker", ...fill), kept: await parties.read(rfq, "remaining", [address.maker, hash]) };
  const hidden = await listing("maker", "?hideSmallBalances=true");
  const isEnd = (message) => message.orderHash === hash && message.status === "CANCELLED";
  for (const events of Object.values(heard)) await events.until("the pushed end", isEnd);
  const [toMaker, toTaker] = [await heard.maker.leave(hash), await heard.taker.leave(hash)];
  const replaying = await begun(venue, { orderHash: hash, after: toMaker[0].token });
  await replaying.until("the end again", isEnd);
  return {
    delta, rfq, hash, body, answer, again, stored, tooLarge, unknown, refused, listed, fillables, stranger, untouched, part, fillHash, filled, left, whole,
    cancelHash, cancelled, closed, hidden: hidden.orders.map((it) => it.orderHash), moved: await moved(parties, trade, before),
    pushed: { maker: toMaker, taker: toTaker, again: await replaying.leave(hash) }, signedBytes: signature.length / 2 - 1,
  };
}

// An open order, whose maker signs a permit in place of an approval; whoever comes fills all of it.
async function openly(venue, parties, trade, { bytes, slash }) {
  const { address, chainId } = parties;
  const [makerAmount, takerAmount] = [BigInt(trade.makerAmount), BigInt(trade.takerAmount)];
  const rfq = await rfqContract(venue, chainId);
  await parties.send("maker", trade.makerAsset, "approve", [rfq, 0n]);
  const deadline = BigInt(nowS() + LIFE_S);
  const [name, nonce] = [await parties.read(trade.makerAsset, "name", []), await parties.read(trade.makerAsset, "nonces", [address.maker])];
  const signed = await parties.sign("maker", {
    domain: { name, version: "1", chainId, verifyingContract: trade.makerAsset }, types: { Permit: PERMIT }, primaryType: "Permit",
    value: { owner: address.maker, spender: rfq, value: makerAmount, nonce, deadline },
  }, 65);
  const { v, r, s } = parties.split(signed);
  const types = ["address", "address", "uint256", "uint256", "uint8", "bytes32", "bytes32"];
  const permit = parties.words(types, [address.maker, rfq, makerAmount, deadline, v, r, s]);
  const order = {
    nonceAndMeta: (random(96) << 160n) | BigInt(address.taker), expiry: 0, makerAsset: trade.makerAsset, takerAsset: trade.takerAsset,
    maker: address.maker, taker: ZERO, makerAmount, takerAmount,
  };
  const toSign = typed(chainId, rfq, order);
  const hash = parties.hash(toSign);
  const signature = await parties.sign("maker", toSign, bytes);
  const path = `/ft/p2p/${chainId}${slash ? "/" : ""}`;
  const events = await begun(venue, { taker: address.taker, chainId });
  const bare = await venue.ask(path, posted({ ...order, nonceAndMeta: 0n }, await parties.sign("maker", typed(chainId, rfq, { ...order, nonceAndMeta: 0n }), bytes)));
  const answer = await venue.ask(path, posted(order, signature, permit));
  const listed = await venue.ask(`/ft/p2p/${chainId}/taker/${address.taker}?type=LIMIT&limit=1`);
  const before = await balances(parties, trade);
  await parties.send("taker", trade.takerAsset, "approve", [rfq, takerAmount]);
  const without = await parties.refusal("taker", rfq, "fillOrder", [order, signature]);
  const fillHash = await parties.send("taker", rfq, "partialFillOrderWithTargetPermit", [order, signature, takerAmount, address.taker, "0x", permit]);
  const filled = await venue.becomes(hash, "FULFILLED", (it) => it.state === "FULFILLED");
  await events.until("the pushed end", (message) => message.orderHash === hash && message.status === "FULFILLED");
  const cancelHash = await parties.send("maker", rfq, "cancelOrders", [[bare.orderHash]]);
  const bareEnd = await venue.becomes(bare.orderHash, "CANCELLED", (it) => it.state === "CANCELLED");
  return {
    hash, answer, listed, without, fillHash, filled, moved: await moved(parties, trade, before), pushed: await events.leave(hash), permit, bare,
    bareEnd, cancelHash, signedBytes: signature.length / 2 - 1,
  };
}

// Report of the requested story.
export async function tell(parties, [url, story, makerAsset, takerAsset, makerAmount, takerAmount, bytes, slash]) {
  const venue = new Venue(url);
  await until("readiness", async () => (await fetch(`${url}/readyz`)).status === 200);
  const trade = { makerAsset, takerAsset, makerAmount, takerAmount };
  return { privately, openly }[story](venue, parties, trade, { bytes: Number(bytes), slash: slash === "slash" });
}
