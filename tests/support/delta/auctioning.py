"""Auctions of one chain on a real store, with agents and a chain that are played.

    async with an_auction(tmp_path, ann) as auction:
        await auction.submitted(a_round_order(1))
        await until(lambda: ann.asked)

The chain finds that every bid does what FAIR says. No timer runs: only a test offers an order again.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import trio

from cambist.codecs.contracts.abi import selector, uint_word
from cambist.codecs.contracts.delta_calldata import settle_crossed
from cambist.codecs.messages.agent_messages import (
    NoticeEntry,
    NotifyRequest,
    SolveRequest,
    decode_solve_request,
)
from cambist.config.errors import Reverted
from cambist.config.sections.venue import DeltaSettings
from cambist.config.settings import parse_settings
from cambist.engine.chain.holdings import Holding
from cambist.engine.chain.port import EthCall, Header, Log, LogFilter, Upcoming
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.store.leases import Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.store import Store
from cambist.engine.trade.delta.auction.agents import Agents, AuctioneerWakeup
from cambist.engine.trade.delta.auction.auction_queue import AuctionQueue
from cambist.engine.trade.delta.auction.auctioneer import Auctioneer, AuctionIds
from cambist.engine.trade.delta.auction.gas_cover import GasCover
from cambist.engine.trade.delta.auction.own_bids import OwnBids
from cambist.engine.trade.delta.auction.simulating import AuctionAt
from cambist.engine.trade.delta.bids.agent_client import AgentClientStatistics
from cambist.engine.trade.delta.bids.bids import RoundOrder
from cambist.engine.trade.delta.orders.live_orders import LiveOrder, LiveOrders
from cambist.engine.trade.delta.settlement.claims import Claims
from cambist.engine.trade.delta.settlement.owner_costs import OwnerCosts
from cambist.engine.trade.delta.settlement.settling import Settling, TellAgent
from cambist.engine.trade.orders.scheduler import Scheduler
from support.delta.bidding import DELTA, ONE, RELAYER, USDC_ONE, WETH
from support.patience import PATIENCE_S, ROUND_S
from support.store.store_work import now_ms
from support.store.stores import a_delta_order

FAIR = 2_500 * USDC_ONE
PLENTY = 10**30
_CROSSED = settle_crossed([])[:4]


class PlayedAgent:
    """An agent's client, without the agent.

    Attributes:
        bids: what it answers, as JSON members; None is no bid.
        asked: the bodies that it got; told: what it was told.
        may_answer: it does once this is set.
    """

    def __init__(self, bids: Callable[[SolveRequest], list[dict[str, Any]] | None]) -> None:
        self.bids = bids
        self.asked: list[bytes] = []
        self.told: list[NoticeEntry] = []
        self.may_answer = trio.Event()
        self.may_answer.set()

    async def run(self) -> None:
        """Sleep for ever: a played agent sends nothing."""
        await trio.sleep_forever()

    async def solve(self, request: bytes, *, deadline_s: float) -> bytes | None:
        """See `AgentClient.solve`."""
        self.asked.append(request)
        await self.may_answer.wait()
        bids = self.bids(decode_solve_request(request))
        return None if bids is None else msgspec.json.encode({"bids": bids})

    def notify(self, request: NotifyRequest) -> None:
        """See `AgentClient.notify`."""
        self.told += request.notices

    def statistics(self) -> AgentClientStatistics:
        """See `AgentClient.statistics`."""
        return AgentClientStatistics(len(self.asked), 0, 0, 0, len(self.told), 0, 0)


def a_bid(*orders: str) -> dict[str, Any]:
    """JSON of a bid of FAIR on each of some orders."""
    crossed = {"paid": str(FAIR)} if len(orders) > 1 else {}
    return {"parts": [{"orderHash": one, "promisedAmount": str(FAIR)} | crossed for one in orders]}


def on_each(request: SolveRequest) -> list[dict[str, Any]]:
    """JSON of a bid on each order of a request."""
    return [a_bid(order.order_hash) for order in request.orders]


def on_all(request: SolveRequest) -> list[dict[str, Any]]:
    """JSON of a single bid that crosses all orders of a request."""
    return [a_bid(*(order.order_hash for order in request.orders))]


class RefusingChain:
    """A chain that refuses each call with an error of a signature; an empty signature accepts the call.

    Args:
        error: signature of the error at the block before a settlement.
        own: signature of the error at the settlement's own block; by default the same.

    Attributes:
        asked: calldata and block of each call.
    """

    def __init__(self, error: str = "", own: str | None = None) -> None:
        self._errors = {b"\x01" * 32: error, b"\x02" * 32: error if own is None else own}
        self.asked: list[tuple[bytes, bytes]] = []

    async def block(self, _: bytes) -> Header:
        """As `Chain.block`."""
        return Header(2, b"\x02" * 32, b"\x01" * 32, 0, 0)

    async def call(self, call: EthCall, block_hash: bytes) -> bytes:
        """As `Chain.call`."""
        self.asked.append((call.data, block_hash))
        if error := self._errors[block_hash]:
            raise Reverted(error, selector(error))
        return b""

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        """As `Chain.logs_of`; nobody has acted."""
        return []

    async def nonce(self, address: bytes, at: bytes) -> int:
        """As `Chain.nonce`."""
        return 0


class _Chain:
    """Outcome of every settlement.

    Attributes:
        time_s: of the next block; None for the wall's.
        asked: set once it was asked for that.
        times: at which calls were executed, None for the block's own.
    """

    def __init__(self) -> None:
        self.time_s: int | None = None
        self.asked = trio.Event()
        self.times: list[int | None] = []

    async def block(self) -> Any:
        """The latest."""
        await trio.lowlevel.checkpoint()
        return SimpleNamespace(hash=bytes(32))

    async def recent_block(self, age_s: float) -> Any:
        """The latest."""
        return await self.block()

    async def upcoming(self) -> Upcoming:
        """As it is set."""
        self.asked.set()
        return Upcoming(await self.block(), now_ms() // 1_000 if self.time_s is None else self.time_s)

    async def call_many(self, calls: list[EthCall], block_hash: bytes, time_s: int | None) -> list[bytes]:
        """Of sales."""
        self.times.append(time_s)
        await trio.lowlevel.checkpoint()
        return [_returned(call.data) for call in calls]


def _returned(calldata: bytes) -> bytes:
    if calldata[:4] != _CROSSED:
        return b"".join(map(uint_word, (ONE, FAIR, 150_000)))
    parts = int.from_bytes(calldata[36:68], "big")
    spent, received = [parts, *[ONE] * parts], [parts, *[FAIR] * parts]
    return b"".join(map(uint_word, (96, 96 + 32 * len(spent), 150_000, *spent, *received)))


Settles = Callable[[Store, LiveOrders, TellAgent], Settling]
"""Makes the settling of an auction."""


@dataclass(frozen=True)
class PlayedAuction:
    """The auction of a chain.

    Attributes:
        orders: the orders in memory, whose changes are not followed; `submitted` offers them.
        queue: orders that wait for a round.
        settling, claims: the auctioneer's own.
    """

    store: Store
    orders: LiveOrders
    queue: AuctionQueue
    auctioneer: Auctioneer
    settling: Settling
    claims: Claims

    async def submitted(self, *asked: RoundOrder) -> None:
        """Take orders in, and offer them together."""
        for one in asked:
            row = a_delta_order(1, order_hash=one.order_hash, shard=one.order_hash[0])
            row = msgspec.structs.replace(row, nonce=one.order_hash)
            await self.orders.add(row, one.document, one.order, one.terms)
        for one in asked:
            self.queue.offer(self.live(one))

    def live(self, asked: RoundOrder) -> LiveOrder:
        """An order as it is in memory."""
        found = self.orders.get(asked.order_hash)
        assert found is not None
        return found


def an_auctioneer(
    store: Store,
    orders: LiveOrders,
    agents: dict[str, PlayedAgent],
    *,
    chain_id: int = 1,
    ids: AuctionIds | None = None,
    settles: Settles | None = None,
    claims: Claims | None = None,
    wall_ms: Callable[[], int] = now_ms,
    round_s: float = ROUND_S,
) -> PlayedAuction:
    """Auction of a chain, whose auctioneer does not run yet."""
    place = SimpleNamespace(
        chain_id=chain_id,
        chain=_Chain(),
        gas=SimpleNamespace(gas_price_wei=0),
        tokens=SimpleNamespace(by_address={}, wrapped_native=b"\x0e" * 20),
        usd=SimpleNamespace(value=lambda token, amount: None),
        delta=b"\x0d" * 20,
        executor=b"\x0c" * 20,
        rfq=b"\x0b" * 20,
    )
    settings = DeltaSettings(gather_s=0.001, round_s=round_s)
    wakeup = AuctioneerWakeup()
    asked = Agents(cast("Any", agents), chain_id=chain_id, settings=settings, wakeup=wakeup, wall_ms=wall_ms)
    own_bids = OwnBids(DELTA, RELAYER, WETH, lambda *_: 0, settings, asked.tell, wall_ms)
    idle: Any = SimpleNamespace(line_up=lambda *_: None)
    settling = idle if settles is None else settles(store, orders, asked.tell)
    claims = claims or Claims(lambda *_: Holding(PLENTY, PLENTY))
    chain = cast("Any", place.chain)
    queue = AuctionQueue(
        chain,
        asked,
        own_bids,
        wakeup,
        orders,
        Scheduler(wall_ms),
        head_time_s=lambda: 0,
        is_carried=lambda _: True,
        owner_rests_until_ms=lambda _: 0,
        settings=settings,
        wall_ms=wall_ms,
    )
    auctioneer = Auctioneer(
        AuctionAt(cast("Any", place), b"\x4e" * 20, 5_000_000),
        asked,
        own_bids,
        wakeup,
        queue,
        orders,
        store,
        gas=GasCover(Ledger(), chain_id, settings),
        is_barred=lambda agent, owner: False,
        there_wei=lambda order: 0,
        settling=settling,
        claims=claims,
        unsettled=queue.offer,
        ids=AuctionIds() if ids is None else ids,
        settings=settings,
        wall_ms=wall_ms,
    )
    return PlayedAuction(store, orders, queue, auctioneer, settling, claims)


@asynccontextmanager
async def an_auction(
    folder: Path, settles: Settles | None = None, claims: Claims | None = None, /, **agents: PlayedAgent
) -> AsyncIterator[PlayedAuction]:
    """A running auction with its store and agents."""
    settings = parse_settings('state_dir = "."', {}, folder)
    async with open_store(settings, {}, folder, now_ms, in_process=True) as store:
        leases = Leases(store, "one", life_s=60, now_ms=now_ms)
        orders = LiveOrders(store, leases)
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            auction = an_auctioneer(store, orders, agents, settles=settles, claims=claims)
            await nursery.start(auction.auctioneer.run)
            with trio.fail_after(PATIENCE_S):
                yield auction
            nursery.cancel_scope.cancel()


def no_costs() -> OwnerCosts:
    """Costs of owners without code."""

    async def codes_of(_: LiveOrder) -> frozenset[bytes]:
        await trio.lowlevel.checkpoint()
        return frozenset()

    return OwnerCosts(Ledger(), 1, codes_of, rest_ms=5_000, rest_ms_max=900_000, wall_ms=now_ms)


async def calls_no_contract(_: LiveOrder) -> bool:
    """False: every owner is a key."""
    await trio.lowlevel.checkpoint()
    return False
