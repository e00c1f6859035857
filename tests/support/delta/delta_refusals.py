"""A venue that takes Delta orders, for many cases that are tests of their own and ask it one after another.

    with Running().serving(folder) as running:
        answer = running.do(lambda ground: ground.submit(deadline=1))

Two makers price; nothing is auctioned, since there are no agents: what is kept stays as it is. The venue has
partners, an API key that soon has asked too much, and a token that takes permits only, WBTC.
"""

import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar
from urllib.parse import urlencode

import msgspec
import outcome
import trio
from msgspec.structs import replace

from cambist.codecs.contracts.calldata import transfer
from cambist.codecs.eip712_orders.delta import (
    ORDER_CANCELLATIONS,
    OrderCancellations,
    delta_domain_separator,
    order_type_of,
)
from cambist.codecs.http1 import Response
from cambist.config.sections.venue import RateTier
from cambist.config.settings import Settings
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_compact64
from cambist.engine.chain.transact import transact
from cambist.engine.store.follower import latest
from support.patience import PATIENCE_S
from support.venue.trading_requests import API_KEY, PARTNERS
from support.venue.venue_role import CHAIN_ID, KEYS, STRANGER, USER, RunningVenue, running_venue

QUOTE, PRICES = "/v2/quote", "/v2/delta/prices"
ORDERS, BUILD = "/v2/delta/orders", "/v2/delta/orders/build"
CANCEL, BUILD_CANCEL = "/v2/delta/orders/cancel", "/v2/delta/orders/build/cancellation"
POOR = KEYS[6]
HOUR_S = 3_600
_SUBMIT_COST = 5

Wire = dict[str, Any]
T = TypeVar("T")


def _scarce(settings: Settings) -> Settings:
    """Callers with a key have the price of one submission; WBTC is traded with permits only."""
    assert settings.venue
    tiers = dict(settings.venue.rate_tiers) | {"keyed": RateTier(per_s=0.001, burst=_SUBMIT_COST)}
    tokens = tuple(replace(token, permit_only=token.symbol == "WBTC") for token in settings.tokens)
    return replace(settings, venue=replace(settings.venue, rate_tiers=tiers), tokens=tokens)


class Ground:
    """The venue, and what cases are made of.

    Attributes:
        open, ended: ids of the user's orders: one that waits, one that was cancelled.
    """

    def __init__(self, venue: RunningVenue) -> None:
        self.venue = venue
        self.open = self.ended = ""

    async def prepare(self) -> None:
        """The user may trade; the stranger has approved the router; the poor one's balance has gone."""
        devnet = self.venue.devnet
        await devnet.allow(USER, "WETH", "delta")
        await devnet.allow(STRANGER, "WETH", "router")
        await devnet.allow(POOR, "WETH", "delta")
        had = await devnet.balance(POOR, "WETH")
        await transact(devnet.chain, POOR, devnet.at("WETH"), transfer(USER.address, had))
        self.open, self.ended = [await self._submitted() for _ in range(2)]
        answer = await self.post(CANCEL, await self.cancellation([self.ended]))
        assert answer.status == 200, answer.body
        with trio.fail_after(PATIENCE_S):
            record = await self.venue.get(f"{ORDERS}/{self.ended}")
            while record["status"] != "CANCELLED":
                await trio.sleep(0.01)  # as a client polls
                record = await self.venue.get(f"{ORDERS}/{self.ended}")

    async def _submitted(self) -> str:
        answer = await self.post(ORDERS, self.signed(await self.built()))
        assert answer.status == 200, answer.body
        order_id: str = msgspec.json.decode(answer.body)["id"]
        return order_id

    # --- Requests ---------------------------------------------------------------------------------------

    async def ask(self, path: str, *, key: str = "", **query: Any) -> Response:
        told = {name: value for name, value in query.items() if value is not None}
        headers = {"x-api-key": key} if key else {}
        return await self.venue.ask("GET", f"{path}?{urlencode(told)}" if told else path, b"", headers)

    async def post(self, path: str, body: Any, *, key: str = "") -> Response:
        told = {name: value for name, value in body.items() if value is not None}
        headers = {"content-type": "application/json"} | ({"x-api-key": key} if key else {})
        return await self.venue.ask("POST", path, msgspec.json.encode(told), headers)

    async def priced(self, path: str, **changed: Any) -> Response:
        """A quote of one WETH for USDC, changed."""
        return await self.ask(path, **self.venue.selling("WETH", 1, "USDC", mode="DELTA") | changed)

    async def route(self, *, buys: bool = False, src: str = "WETH") -> Wire:
        venue = self.venue
        asked = venue.buying("USDC", 2_500, src) if buys else venue.selling(src, 1, "USDC")
        route: Wire = (await venue.get(QUOTE, **asked, mode="DELTA"))["delta"]["route"]
        return route

    async def body(self, **changed: Any) -> Wire:
        """Of a build."""
        route = changed.pop("route", None) or await self.route(buys="totalDestAmount" in changed)
        deadline = now_s() + HOUR_S
        return {"route": route, "owner": to_checksum(USER.address), "deadline": deadline} | changed

    async def build(self, **changed: Any) -> Response:
        return await self.post(BUILD, await self.body(**changed))

    async def built(self, **changed: Any) -> Wire:
        """`toSign` of an order that may be built."""
        answer = await self.build(**changed)
        assert answer.status == 200, answer.body
        to_sign: Wire = msgspec.json.decode(answer.body)["toSign"]
        return to_sign

    def signed(
        self, to_sign: Wire, key: SigningKey = USER, domain: Wire | None = None, **changed: Any
    ) -> Wire:
        """A submission of what was built, with members of the struct changed before it is signed."""
        value = to_sign["value"] | changed
        order_type = order_type_of(value)
        digest_of = order_type.compiled.digest_for(_separator_of(to_sign["domain"] | (domain or {})))
        signature = to_hex(to_compact64(*key.sign(digest_of(order_type.from_wire(value)))))
        return {"chainId": CHAIN_ID, "order": value, "signature": signature, "partner": "anon"}

    async def submit(
        self, key: SigningKey = USER, built: Wire | None = None, domain: Wire | None = None, **changed: Any
    ) -> Response:
        """Submit what was built, with members of the struct changed before it is signed."""
        to_sign = await self.built(owner=to_checksum(key.address), **built or {})
        return await self.post(ORDERS, self.signed(to_sign, key, domain, **changed))

    async def submit_late(self, built: Wire) -> Response:
        """Submit a TWAP of three minutes whose slices do not fit by a second."""
        return await self.submit(built=built, deadline=now_s() + 179)

    async def cancellation(
        self,
        ids: list[str],
        key: SigningKey = USER,
        signed: list[str] | None = None,
        chain_id: int = CHAIN_ID,
    ) -> Wire:
        domain = (await self.built())["domain"] | {"chainId": chain_id}
        digest_of = ORDER_CANCELLATIONS.compiled.digest_for(_separator_of(domain))
        digest32 = digest_of(OrderCancellations(tuple(ids if signed is None else signed)))
        return {"orderIds": ids, "signature": to_hex(to_compact64(*key.sign(digest32)))}

    async def cancel(self, ids: list[str], **how: Any) -> Response:
        return await self.post(CANCEL, await self.cancellation(ids, **how))

    async def kept(self) -> tuple[Any, str]:
        """Orders of all owners as they are listed, and the last event."""
        owners = [to_hex(key.address) for key in (USER, STRANGER, POOR)]
        listed = [await self.venue.get(ORDERS, userAddress=owner) for owner in owners]
        return listed, await latest(self.venue.app.delta.store)


class Running:
    """A venue for callers outside trio: its tasks run while a caller waits for an answer."""

    def __init__(self) -> None:
        self._ticks: SimpleQueue[Callable[[], object]] = SimpleQueue()
        self._ended: outcome.Outcome[None] | None = None
        self._ground: Ground | None = None
        self._nursery: trio.Nursery
        self._token: trio.lowlevel.TrioToken

    def do(self, act: Callable[[Ground], Awaitable[T]]) -> T:
        """Run an action on the ground and return its result."""
        found: list[outcome.Outcome[T]] = []

        async def run(ground: Ground) -> None:
            found.append(await outcome.acapture(act, ground))

        assert self._ground is not None
        self._token.run_sync_soon(self._nursery.start_soon, run, self._ground)
        self._run_until(lambda: bool(found))
        return found[0].unwrap()

    @contextmanager
    def serving(self, folder: Path) -> Iterator["Running"]:
        """Run the venue from the time it takes orders; end in good order, or raise the cause."""
        trio.lowlevel.start_guest_run(
            self._serve, folder, run_sync_soon_threadsafe=self._ticks.put, done_callback=self._end
        )
        self._run_until(lambda: self._ground is not None)
        try:
            yield self
        finally:
            if self._ended is None:
                self._token.run_sync_soon(self._nursery.cancel_scope.cancel)
                self._run_until(lambda: self._ended is not None)
        assert self._ended is not None
        self._ended.unwrap()

    def _run_until(self, is_so: Callable[[], bool]) -> None:
        while not is_so():
            if self._ended is not None:
                self._ended.unwrap()
                raise RuntimeError("the venue has ended")
            self._ticks.get()()

    def _end(self, ended: "outcome.Outcome[None]") -> None:
        self._ended = ended

    async def _serve(self, folder: Path) -> None:
        environ = {"API_KEY": API_KEY}
        async with running_venue(folder, changed=_scarce, more=PARTNERS, environ=environ) as venue:
            ground = Ground(venue)
            await ground.prepare()
            async with trio.open_nursery() as nursery:
                self._nursery, self._token = nursery, trio.lowlevel.current_trio_token()
                nursery.start_soon(trio.sleep_forever)
                self._ground = ground


def _separator_of(domain: Wire) -> bytes:
    contract = parse_hex(domain["verifyingContract"], "contract")
    return delta_domain_separator(domain["name"], domain["version"], domain["chainId"], contract)


def now_s() -> int:
    """Unix seconds, as the venue has them."""
    return int(time.time())
