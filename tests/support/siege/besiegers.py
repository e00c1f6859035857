"""The besiegers' process: `python -m support.siege.besiegers PLAN` attacks until its time is over.

64 connections from eight networks send what the venue answers at no stake, each as fast as it is answered:
every second one dials anew when it is refused for its rate. 40 more of each network read streams a byte a
second. The process prints as JSON how often each attack was answered with each status.
"""

import itertools
import os
import random
import sys
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import httptools
import msgspec
import trio

from cambist.codecs.contracts.calldata import transfer
from cambist.codecs.eip712_orders.delta import (
    KIND_SELL,
    ORDER,
    SAME_CHAIN,
    DeltaOrder,
    delta_domain_separator,
)
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65, to_compact64
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import Chain
from cambist.engine.chain.transact import transact
from cambist.engine.dev.devnet.anvil import AnvilChain
from support.siege.plan import CONNECTIONS, NETWORKS, WALLETS, SiegePlan, wallet_key

ONE, USDC_ONE = 10**18, 10**6
NATIVE = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
STREAMS_EACH = 40
TOO_MANY = 429
BUILDS = 20  # of each route
BRIDGED = 2 * 10**5  # raw units of WBTC
DATA_BYTES = 4_000  # of metadata with an order

Ask = Callable[[str, str, Any], Awaitable[tuple[int, bytes]]]
"""Sends a request (method, target, JSON body or None); returns status and body of the answer."""
FOREIGN = "foreign.example"
"""Host that pages for this machine alone are asked for: a page of another origin would send it."""


class Besieger:
    """Attacks, each an endless loop of requests over one connection."""

    def __init__(self, plan: SiegePlan, wallets: list[SigningKey], far: Chain) -> None:
        self.plan = plan
        self.far, self.dusted = far, set[str]()
        self.sending = trio.Lock()  # one account's nonces
        self.wallets = itertools.cycle(wallets)
        self.greedy = SigningKey(bytes.fromhex(plan.greedy_key[2:]))
        self.turncoats = itertools.cycle(plan.turncoats)
        self.at = {symbol: parse_address(text, symbol) for symbol, text in plan.tokens.items()}
        self.delta_separator = delta_domain_separator(
            *plan.delta_domain, plan.chain_id, parse_address(plan.delta, "delta")
        )
        self.rfq_separator = rfq_domain_separator(
            plan.rfq_domain, plan.chain_id, parse_address(plan.rfq, "rfq")
        )

    # --- What is signed -------------------------------------------------------------------------------

    def order(self, owner: bytes, **changed: Any) -> DeltaOrder:
        order = DeltaOrder(
            owner=owner, beneficiary=owner, src_token=self.at["WETH"], dest_token=self.at["USDC"],
            src_amount=ONE, dest_amount=2_000 * USDC_ONE, expected_amount=2_000 * USDC_ONE,
            deadline=int(time.time()) + 3_600, kind=KIND_SELL, nonce=random.getrandbits(64),
            partner_and_fee=0, permit=b"", metadata=b"", bridge=SAME_CHAIN,
        )  # fmt: skip
        return msgspec.structs.replace(order, **changed)

    def submission(self, order: DeltaOrder, key: SigningKey | None, signature: str = "0x") -> dict[str, Any]:
        if key is not None:
            digest = ORDER.compiled.digest_for(self.delta_separator)(order)
            signature = to_hex(to_compact64(*key.sign(digest)))
        wire = ORDER.to_wire(order)
        return {"chainId": self.plan.chain_id, "order": wire, "signature": signature, "partner": "anon"}

    def otc(self, maker: bytes, key: SigningKey | None, asset: str, expiry: int) -> dict[str, Any]:
        meta = int.from_bytes(maker, "big") << 96 | random.getrandbits(96)
        anybody = bytes(20)
        order = RfqOrder(meta, expiry, self.at[asset], self.at["WETH"], maker, anybody, 2_500 * USDC_ONE, ONE)
        signature = b"\x01" * 100
        if key is not None:
            signature = to_65(*key.sign(RFQ_ORDER.compiled.digest_for(self.rfq_separator)(order)))
        wire: dict[str, Any] = RFQ_ORDER.to_wire(order)
        return wire | {"nonceAndMeta": str(meta), "expiry": expiry, "signature": to_hex(signature)}

    # --- Attacks --------------------------------------------------------------------------------------

    async def _builds(self, ask: Ask, src: str, decimals: int, user: str) -> AsyncIterator[int]:
        plan = self.plan
        query = (
            f"srcToken={src}&destToken={plan.tokens['USDC']}&amount={ONE // 4}&srcDecimals={decimals}"
            f"&destDecimals=6&side=SELL&network={plan.chain_id}&userAddress={user}&version=6.2"
        )
        while True:
            status, body = await ask("GET", f"/prices?{query}", None)
            yield status
            if status != 200:
                continue
            route = msgspec.json.decode(body)["priceRoute"]
            built = {
                "srcToken": src, "destToken": plan.tokens["USDC"], "srcAmount": route["srcAmount"],
                "srcDecimals": decimals, "destDecimals": 6, "slippage": 100, "priceRoute": route,
                "userAddress": user,
            }  # fmt: skip
            for _ in range(BUILDS):
                status, _ = await ask("POST", f"/transactions/{plan.chain_id}?ignoreGasEstimate=true", built)
                yield status

    def stock(self, ask: Ask) -> AsyncIterator[int]:
        """Firm quotes for a rich stranger that knows nothing of it."""
        return self._builds(ask, NATIVE, 18, self.plan.rich)

    def victim(self, ask: Ask) -> AsyncIterator[int]:
        """Unfilled swaps in the name of an honest trader."""
        return self._builds(ask, self.plan.tokens["WETH"], 18, self.plan.victim)

    async def turncoat(self, ask: Ask) -> AsyncIterator[int]:
        """Orders of wallets that refuse when they are mined."""
        while True:
            owner = parse_address(next(self.turncoats), "owner")
            order = self.order(owner)
            yield (await ask("POST", "/v2/delta/orders", self.submission(order, None, to_hex(bytes(65)))))[0]

    async def dust_orders(self, ask: Ask) -> AsyncIterator[int]:
        """Orders of one raw unit."""
        while True:
            order = self.order(
                self.greedy.address, src_token=self.at["USDC"], dest_token=self.at["WETH"],
                src_amount=1, dest_amount=1, expected_amount=1,
            )  # fmt: skip
            yield (await ask("POST", "/v2/delta/orders", self.submission(order, self.greedy)))[0]

    async def one_balance(self, ask: Ask) -> AsyncIterator[int]:
        """Limit orders that all sell the same tokens, with much data."""
        while True:
            order = self.order(
                self.greedy.address, dest_amount=9_000 * USDC_ONE, expected_amount=9_000 * USDC_ONE,
                metadata=bytes(DATA_BYTES),
            )  # fmt: skip
            yield (await ask("POST", "/v2/delta/orders", self.submission(order, self.greedy)))[0]

    async def burnt_gas(self, ask: Ask) -> AsyncIterator[int]:
        """Orders whose tokens are swapped after a bridge into native ones, for a receiver that burns gas."""
        plan, owner = self.plan, to_checksum(self.greedy.address)
        query = (
            f"chainId={plan.chain_id}&destChainId={plan.far_chain_id}&srcToken={plan.tokens['WBTC']}"
            f"&destToken={NATIVE}&srcDecimals=8&destDecimals=18&amount={BRIDGED}&side=SELL&mode=DELTA"
            "&includeBridges=cctp"
        )
        while True:
            status, body = await ask("GET", f"/v2/quote?{query}", None)
            yield status
            if status != 200:
                continue
            wish = {"route": msgspec.json.decode(body)["delta"]["route"], "owner": owner, "slippage": 300}
            wish |= {"beneficiary": plan.burner, "deadline": int(time.time()) + 3_600}
            status, body = await ask("POST", "/v2/delta/orders/build", wish)
            yield status
            if status != 200:
                continue
            built = msgspec.json.decode(body)
            signature = to_compact64(*self.greedy.sign(parse_hex(built["orderHash"], "orderHash")))
            order = {"order": built["toSign"]["value"], "signature": to_hex(signature), "partner": "anon"}
            yield (await ask("POST", "/v2/delta/orders", order | {"chainId": plan.chain_id}))[0]

    async def dusted_arrivals(self, ask: Ask) -> AsyncIterator[int]:
        """Raw units for the accounts from which others' tokens are swapped after a bridge."""
        while True:
            status, body = await ask("GET", f"/v2/delta/orders?userAddress={self.plan.bridger}&limit=5", None)
            yield status
            if status != 200:
                continue
            for record in msgspec.json.decode(body)["data"]:
                account = record["order"]["beneficiary"]
                if account not in self.dusted:
                    self.dusted.add(account)
                    gift = transfer(parse_address(account, "account"), 1)
                    async with self.sending:
                        await transact(self.far, self.greedy, self.at["USDC"], gift)

    async def no_balance(self, ask: Ask) -> AsyncIterator[int]:
        """Delta orders of wallets without funds."""
        while True:
            key = next(self.wallets)
            yield (await ask("POST", "/v2/delta/orders", self.submission(self.order(key.address), key)))[0]

    async def unsigned(self, ask: Ask) -> AsyncIterator[int]:
        """Delta orders in the name of a contract that has not signed them."""
        owner = parse_address(self.plan.wallet, "owner")
        while True:
            yield (await ask("POST", "/v2/delta/orders", self.submission(self.order(owner), None)))[0]

    async def wrong_key(self, ask: Ask) -> AsyncIterator[int]:
        """Delta orders of the victim, signed by another."""
        owner = parse_address(self.plan.victim, "owner")
        while True:
            body = self.submission(self.order(owner), next(self.wallets))
            yield (await ask("POST", "/v2/delta/orders", body))[0]

    async def _posts(self, ask: Ask, asset: str, *, is_draft: bool) -> AsyncIterator[int]:
        while True:
            key = None if is_draft else next(self.wallets)
            maker = parse_address(self.plan.wallet, "maker") if key is None else key.address
            expiry = random.choice((0, int(time.time()) + 3_600))
            yield (await ask("POST", f"/ft/p2p/{self.plan.chain_id}", self.otc(maker, key, asset, expiry)))[0]

    def fake_token(self, ask: Ask) -> AsyncIterator[int]:
        """OTC orders that sell a token of the besiegers'."""
        return self._posts(ask, "FAKE", is_draft=False)

    def no_funds(self, ask: Ask) -> AsyncIterator[int]:
        """OTC orders of wallets without funds."""
        return self._posts(ask, "USDC", is_draft=False)

    def drafts(self, ask: Ask) -> AsyncIterator[int]:
        """OTC orders in the name of a contract that has not signed them."""
        return self._posts(ask, "USDC", is_draft=True)

    async def quotes(self, ask: Ask) -> AsyncIterator[int]:
        """Quotes of amounts that nobody has asked for before."""
        plan, tokens = self.plan, self.plan.tokens
        while True:
            query = (
                f"chainId={plan.chain_id}&srcToken={tokens['WETH']}&srcDecimals=18&destToken={tokens['USDC']}"
                f"&destDecimals=6&amount={random.randrange(ONE // 100, 3 * ONE)}&side=SELL"
            )
            yield (await ask("GET", f"/v2/quote?{query}", None))[0]

    async def readings(self, ask: Ask) -> AsyncIterator[int]:
        """Pages far down, explanations of orders that do not exist, the operator's pages."""
        while True:
            some = os.urandom(20).hex()
            for target in (
                f"/v2/delta/orders?userAddress={self.plan.victim}&page=50&limit=100",
                f"/v2/delta/orders/{some[:8]}-{some[8:12]}-4{some[13:16]}-8{some[17:20]}-{some[20:32]}/explain",
                f"/ft/p2p/{self.plan.chain_id}/maker/0x{some}?limit=1000&offset=9000",
                f"/ft/fillablebalance/{self.plan.chain_id}/0x{some}",
                "/metrics",
                "/operator/status",
            ):
                yield (await ask("GET", target, None))[0]


ATTACKS: dict[str, Callable[[Besieger, Ask], AsyncIterator[int]]] = {
    name: getattr(Besieger, name)
    for name in (
        "stock", "victim", "turncoat", "dust_orders", "one_balance", "burnt_gas", "dusted_arrivals",
        "no_balance", "unsigned", "wrong_key", "fake_token", "no_funds", "drafts", "quotes", "readings",
    )
}  # fmt: skip
"""Attacks by name; the connections take them in turn."""


class Closed(Exception):
    """The venue has closed the connection."""


class Connection:
    """A connection from an address, over which one request at a time goes."""

    def __init__(self, stream: trio.SocketStream, host: str) -> None:
        self._stream = stream
        self._host = host.encode()
        self._body = b""
        self._is_over = False

    def on_body(self, body: bytes) -> None:
        self._body += body

    def on_message_complete(self) -> None:
        self._is_over = True

    async def ask(self, method: str, target: str, body: Any) -> tuple[int, bytes]:
        sent = b"" if body is None else msgspec.json.encode(body)
        kind = b"content-type: application/json\r\n" if sent else b""
        head = b"%s %s HTTP/1.1\r\nhost: %s\r\n%scontent-length: %d\r\n\r\n"
        parser, self._body, self._is_over = httptools.HttpResponseParser(self), b"", False
        try:
            await self._stream.send_all(
                head % (method.encode(), target.encode(), self._host, kind, len(sent)) + sent
            )
            while not self._is_over:
                received = await self._stream.receive_some(65_536)
                if not received:
                    raise Closed
                parser.feed_data(received)
        except (trio.BrokenResourceError, httptools.HttpParserError):
            raise Closed from None
        return parser.get_status_code(), self._body


async def dialled(port: int, address: str) -> trio.SocketStream | None:
    """A connection to the venue from an address; None if it is refused."""
    socket = trio.socket.socket()
    try:
        await socket.bind((address, 0))
        await socket.connect(("127.0.0.1", port))
    except OSError:
        socket.close()
        return None
    return trio.SocketStream(socket)


async def attack(
    besieger: Besieger, name: str, address: str, counts: "Counter[tuple[str, str]]", *, dials: bool
) -> None:
    """Attack in one way from one address until cancelled.

    Args:
        dials: whether a refusal for its rate has the attacker dial anew.
    """
    while True:
        stream = await dialled(besieger.plan.port, address)
        if stream is None:
            counts[name, "no connection"] += 1
            await trio.sleep(0.1)
            continue
        async with stream:
            host = FOREIGN if name == "readings" else f"127.0.0.1:{besieger.plan.port}"
            ask = Connection(stream, host).ask
            try:
                async for status in ATTACKS[name](besieger, ask):
                    counts[name, str(status)] += 1
                    if dials and status == TOO_MANY:
                        break
            except Closed:
                counts[name, "closed"] += 1


async def idle_reader(plan: SiegePlan, address: str, counts: "Counter[tuple[str, str]]") -> None:
    """Read a stream a byte a second, and open another where it is closed."""
    tokens = plan.tokens
    quote = (
        f"/v2/quote/stream?chainId={plan.chain_id}&srcToken={tokens['WETH']}&srcDecimals=18&mode=MARKET"
        f"&destToken={tokens['USDC']}&destDecimals=6&amount={ONE}&side=SELL"
    )
    orders = f"/v2/delta/orders/events?userAddress={plan.victim}"
    target = random.choice((quote, orders, f"/ft/events?maker={plan.victim}"))
    while True:
        stream = await dialled(plan.port, address)
        if stream is not None:
            async with stream:
                try:
                    await stream.send_all(
                        f"GET {target} HTTP/1.1\r\nhost: 127.0.0.1:{plan.port}\r\n\r\n".encode()
                    )
                    first = await stream.receive_some(12)
                    counts["idle_readers", first[9:].decode() or "closed"] += 1
                    while await stream.receive_some(1):  # noqa: ASYNC110  it reads as slowly as that
                        await trio.sleep(1)
                except trio.BrokenResourceError:
                    pass
        await trio.sleep(1)


async def main(plan: SiegePlan) -> dict[str, dict[str, int]]:
    """Besiege, and count the answers."""
    wallets = [wallet_key(number) for number in range(WALLETS)]
    counts: Counter[tuple[str, str]] = Counter()
    names = itertools.cycle(ATTACKS)
    node = NodeSettings(urls=(plan.far_node,))
    with trio.move_on_after(plan.seconds):
        async with (
            AnvilChain.open(plan.far_chain_id, node, known_errors()) as far,
            trio.open_nursery() as nursery,
        ):
            besieger = Besieger(plan, wallets, far)
            for number in range(CONNECTIONS):
                address = NETWORKS[number % len(NETWORKS)]
                run = partial(attack, dials=number % 2 == 1)
                nursery.start_soon(run, besieger, next(names), address, counts)
            for address in NETWORKS:
                for _ in range(STREAMS_EACH):
                    nursery.start_soon(idle_reader, plan, address, counts)
    told: dict[str, dict[str, int]] = {}
    for (name, status), count in sorted(counts.items()):
        told.setdefault(name, {})[status] = count
    return told


if __name__ == "__main__":
    os.nice(19)  # besiegers have machines of their own
    if sys.platform == "linux":
        os.sched_setscheduler(0, os.SCHED_IDLE, os.sched_param(0))  # and run where nobody else does
    found = trio.run(main, msgspec.json.decode(Path(sys.argv[1]).read_bytes(), type=SiegePlan))
    sys.stdout.buffer.write(msgspec.json.encode(found))
