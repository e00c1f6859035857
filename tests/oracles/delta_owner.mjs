// Owner of Delta orders at a venue over HTTP, with any library for signing and for reading the chain.
// owner = {
//   address, chainId,
//   sign(toSign, bytes): 64 or 65 of them, hexadecimal;  hash(toSign): of the typed data, by the library;
//   balance(token), allowance(token, spender): bigint;  decimals(token): number;
//   approve(token, spender, amount), deposit(delta, orderHash, wei): mined; give the wei paid for gas
// }
import { documented, DELTA_ROUTE } from "./documented.mjs";
import { WAIT_MS } from "./patience.mjs";

export const NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE";
const SLIPPAGE_BPS = 100;
const LIFE_S = 600;
const PARTNER = "a-wallet"; // not registered at the venue
const ENDED = ["COMPLETED", "FAILED", "EXPIRED", "CANCELLED", "REFUNDED"];
const PAUSE_MS = { first: 50, most: 1_000, all: WAIT_MS };

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
    return `${status} ${told.errorType}: ${told.details}`;
  }

  // Until the order has one of these states, with pauses that grow: the record, and the states that were seen.
  async followed(id, until) {
    const seen = [];
    for (let pause = PAUSE_MS.first, waited = 0; waited < PAUSE_MS.all; pause = Math.min(pause * 1.5, PAUSE_MS.most)) {
      const record = await this.ask(`/v2/delta/orders/${id}`);
      if (seen.at(-1) !== record.status) seen.push(record.status);
      if (until.includes(record.status)) return { record, seen };
      await new Promise((resolve) => setTimeout(resolve, pause));
      waited += pause;
    }
    throw new Error(`order ${id}: ${seen}`);
  }
}

// A price, the approval for it, and the order that is built on it.
async function built(venue, owner, { srcToken, destToken, amount, side, limit, there }) {
  const query = new URLSearchParams({
    chainId: owner.chainId, mode: "DELTA", partner: PARTNER, side, amount, srcToken, destToken, userAddress: owner.address,
    srcDecimals: await owner.decimals(srcToken), ...(there ?? { destDecimals: await owner.decimals(destToken) }),
  });
  const { delta } = await venue.ask(`/v2/quote?${query}`);
  const [src, dest] = [delta.route.origin.input.amount, delta.route.destination.output.amount].map(BigInt);
  const most = side === "SELL" ? BigInt(amount) : (src * BigInt(10_000 + SLIPPAGE_BPS)) / 10_000n;
  if (srcToken !== NATIVE) await owner.approve(srcToken, delta.spender, most);
  const order = await venue.ask("/v2/delta/orders/build", {
    route: documented(delta.route, DELTA_ROUTE), partner: PARTNER, side, owner: owner.address, deadline: Math.floor(Date.now() / 1_000) + LIFE_S,
    slippage: SLIPPAGE_BPS, ...(limit && { limitAmount: (dest * BigInt(limit)).toString() }),
  });
  return { delta, quoted: { src, dest }, approved: most, ...order };
}

async function balances(owner, { srcToken, destToken }) {
  return { src: await owner.balance(srcToken), dest: await owner.balance(destToken) };
}

// A market order, submitted and followed until it has ended; what was changed after the signature is refused.
async function swap(venue, owner, trade, bytes) {
  const { delta, quoted, approved, toSign, orderHash } = await built(venue, owner, trade);
  const before = await balances(owner, trade);
  const isNative = trade.srcToken === NATIVE;
  const gasWei = isNative ? await owner.deposit(delta.spender, orderHash, toSign.value.srcAmount) : 0n;
  const signature = await owner.sign(toSign, bytes);
  const body = { chainId: owner.chainId, order: toSign.value, signature, partner: PARTNER, type: "MARKET" };
  const refused = [];
  for (const [member, value] of Object.entries({
    destAmount: (BigInt(toSign.value.destAmount) - 1n).toString(), beneficiary: delta.spender, deadline: toSign.value.deadline + 1,
  })) {
    refused.push(await venue.refusal("/v2/delta/orders", { ...body, order: { ...toSign.value, [member]: value } }));
  }
  const submitted = await venue.ask("/v2/delta/orders", body);
  const again = await venue.ask("/v2/delta/orders", body);
  const { record, seen } = await venue.followed(submitted.id, ENDED);
  const after = await balances(owner, trade);
  return {
    spender: delta.spender, partner: delta.partner, quoted, refused, again: again.id, seen, record, signedBytes: signature.length / 2 - 1,
    orderHash, hash: owner.hash(toSign), order: toSign.value, approved,
    spent: before.src - after.src - gasWei, received: after.dest - before.dest,
    allowanceLeft: isNative ? 0n : await owner.allowance(trade.srcToken, delta.spender),
  };
}

// A market order whose output arrives on another chain, followed until it has ended there.
async function cross(venue, owner, trade, bytes) {
  const routes = await venue.ask("/v2/delta/prices/bridge-routes");
  const { delta, quoted, toSign, orderHash } = await built(venue, owner, trade);
  const before = await owner.balance(trade.srcToken);
  const signature = await owner.sign(toSign, bytes);
  const submitted = await venue.ask("/v2/delta/orders", { chainId: owner.chainId, order: toSign.value, signature, partner: PARTNER });
  const { record, seen } = await venue.followed(submitted.id, ENDED);
  return {
    routes, bridge: delta.route.bridge, quoted, seen, record, orderHash, hash: owner.hash(toSign), order: toSign.value,
    spent: before - (await owner.balance(trade.srcToken)),
  };
}

// A limit order far from the market: it rests, is found in every way, and is cancelled by a signature.
async function rest(venue, owner, trade, bytes) {
  const { toSign, quoted, approved, orderHash } = await built(venue, owner, { ...trade, limit: 2 });
  const before = await balances(owner, trade);
  const account = `${owner.chainId}/${owner.address}/${trade.srcToken}`;
  const told = async () => {
    const [committed, available] = ["fillablebalance", "availablebalance"].map((name) => venue.ask(`/v2/delta/orders/${name}/${account}`));
    return { committed: await committed, available: await available };
  };
  const balancesTold = { before: await told() };
  const { id } = await venue.ask("/v2/delta/orders", {
    chainId: owner.chainId, order: toSign.value, signature: await owner.sign(toSign, bytes), type: "LIMIT",
  });
  const resting = await venue.followed(id, ["ACTIVE", ...ENDED]);
  balancesTold.resting = await told();
  const whose = new URLSearchParams({ userAddress: owner.address, chainId: owner.chainId, type: "LIMIT", status: "ACTIVE" });
  const found = {
    listed: (await venue.ask(`/v2/delta/orders?${whose}`)).data.map((each) => each.id),
    byIds: (await venue.ask(`/v2/delta/orders?ids=${id}`)).data.map((each) => each.id),
    byHash: [(await venue.ask(`/v2/delta/orders/hash/${orderHash}`)).id],
  };
  const prices = "/v2/delta/prices";
  const empty = {
    routes: await venue.ask(`${prices}/bridge-routes`), protocols: await venue.ask(`${prices}/bridge-protocols`),
    strategies: await venue.ask(`${prices}/strategies/${owner.chainId}`),
  };
  const ofAll = [await venue.refusal("/v2/delta/orders?type=LIMIT"), await venue.refusal("/v2/delta/orders/events")];
  const cancellation = await venue.ask("/v2/delta/orders/build/cancellation", { orderIds: [id] });
  const ofOrder = await owner.sign(toSign, bytes);
  const refused = [await venue.refusal("/v2/delta/orders/cancel", { orderIds: [id], signature: ofOrder })];
  const signature = await owner.sign(cancellation.toSign, bytes);
  const cancelled = await venue.ask("/v2/delta/orders/cancel", { orderIds: [id], signature });
  const { record } = await venue.followed(id, ENDED);
  balancesTold.cancelled = await told();
  const after = await balances(owner, trade);
  return {
    id, empty, ofAll, approved, has: before.src, balancesTold, quoted, order: toSign.value, resting: resting.record, seen: resting.seen, found, refused, cancelled, record,
    cancelHash: cancellation.hash, hash: owner.hash(cancellation.toSign),
    spent: before.src - after.src, received: after.dest - before.dest,
  };
}

// Report of the requested story.
export async function tell(owner, [venue, story, srcToken, destToken, amount, side, bytes, destChainId, destDecimals, includeBridges]) {
  const there = destChainId && { destChainId, destDecimals, includeBridges };
  const trade = { srcToken, destToken, amount, side, there };
  return { swap, rest, cross }[story](new Venue(venue), owner, trade, Number(bytes));
}
