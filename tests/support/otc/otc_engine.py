"""The engine of OTC orders with a real indexer and a store in this process, on a chain that is a dictionary.

async with otc_venue(folder) as venue:
    row = await venue.submit(an_order())
    venue.chain.fills(row, 5)
    venue.chain.mine()
    await venue.becomes(row, OtcState.FULFILLED)
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import trio

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.messages.vocabulary import OtcState
from cambist.crypto.signatures import to_65
from cambist.engine.store.leases import Leases
from cambist.engine.store.queries import by
from cambist.engine.store.rows import OtcOrderRow, amount32, amount_of
from cambist.engine.store.store import Store
from cambist.engine.store.tables import OTC_ORDER
from cambist.engine.trade.orders.followed_chain import FollowedChains
from cambist.engine.trade.orders.order_engines import Footing, OrderEngines
from cambist.engine.trade.orders.order_units import OTC
from cambist.engine.trade.orders.scheduler import Scheduler
from cambist.engine.trade.otc.document import OtcDocument
from cambist.engine.trade.otc.engine import open_otc
from cambist.engine.trade.otc.live_orders import LiveOtc
from support.chain.world import person
from support.otc.otc_chain import RFQ, OtcChain
from support.patience import PATIENCE_S, until
from support.store.stores import NOW_MS, Engine, an_otc_order

CONFIRMATIONS = 3
KEY = person(40)
MAKER = KEY.address


def a_document(row: OtcOrderRow, **changed: Any) -> OtcDocument:
    """Document of an order, with the signature of the maker's key, or a false signature for a DRAFT."""
    signature = b"\x51" * 65 if row.status is OtcState.DRAFT else to_65(*KEY.sign(row.order_hash))
    values: dict[str, Any] = {
        "nonce_and_meta": bytes(32), "expiry": 0, "signature": signature, "permit": None,
        "filled_before": amount32(0),
    }  # fmt: skip
    return OtcDocument(**values | changed)


def an_order(number: int = 1, amount: int = 100, **changed: Any) -> OtcOrderRow:
    """A new order of the maker for WETH, with its funds."""
    some = amount32(amount)
    funds = dict.fromkeys(("maker_balance", "reserved", "swappable"), some)
    if changed.get("status", OtcState.PENDING) is not OtcState.PENDING:
        funds = dict.fromkeys(funds, amount32(0))
    values: dict[str, Any] = {"maker": MAKER, "maker_amount": some, "remaining": some} | funds | changed
    return an_otc_order(number, **values)


def a_permit(amount: int = 100, *, deadline_s: int = NOW_MS // 1_000 + 10_000, nonce: int = 0) -> bytes:
    """An EIP-2612 permit of the maker for the RFQ contract."""
    words = (address_word(MAKER), address_word(RFQ), uint_word(amount), uint_word(deadline_s))
    return b"".join(words) + uint_word(nonce) * 3


def a_place(chain_id: int, chain: OtcChain, *, serves_rfq: bool = True, rfq: bytes = RFQ) -> Any:
    """Served chain of an engine of OTC orders; no token is listed."""
    return SimpleNamespace(
        chain_id=chain_id,
        chain=chain,
        settings=SimpleNamespace(rfq=serves_rfq, delta=False, confirmations=CONFIRMATIONS),
        rfq=rfq,
        delta=b"",
        followed=trio.Event(),
        tokens=SimpleNamespace(by_address={}),
    )


class OtcVenue:
    """A running engine of OTC orders, and a test's requests to it.

    Args:
        count: shards that it wants, of 256.

    Attributes:
        jumped_ms: that the wall clock was set forward by, beside trio's time.
    """

    def __init__(self, store: Store, chain: OtcChain, name: str = "one", count: int = 256) -> None:
        self.store = store
        self.chain = chain
        self.jumped_ms = 0
        self.leases = Leases(store, name, life_s=60, now_ms=simulated_ms, count=count)
        places = cast("Any", {1: a_place(1, chain)})
        chains = FollowedChains(places, store, self.clock)
        self.scheduler = Scheduler(self.clock)
        footing = Footing(store, self.leases, self.scheduler, chains, self.clock)
        self.engine = open_otc(footing, places)
        self.engines = OrderEngines(footing, [self.engine])
        self.orders = self.engine.orders
        self.followed = chains.of(1)
        self.funds = self.engine.chains[1].funds

    def clock(self) -> int:
        """Wall clock of the engine, Unix milliseconds."""
        return simulated_ms() + self.jumped_ms

    async def submit(self, row: OtcOrderRow, document: OtcDocument | None = None) -> OtcOrderRow:
        """Keep an order."""
        return await self.orders.add(row, a_document(row) if document is None else document)

    def live(self, row: OtcOrderRow) -> LiveOtc:
        """The order in memory; AssertionError if it is not there."""
        found = self.orders.get(row.order_hash)
        assert found is not None
        return found

    async def row(self, row: OtcOrderRow) -> OtcOrderRow:
        """The order in the store."""
        (found,) = await self.store.read(by(OTC_ORDER, row.order_hash))
        return OTC.found(found[0])

    async def when(self, row: OtcOrderRow, is_so: Callable[[OtcOrderRow], object]) -> OtcOrderRow:
        """The order in the store, once `is_so` holds and memory agrees."""
        with trio.fail_after(PATIENCE_S):
            while True:
                found = await self.row(row)
                live = self.orders.get(row.order_hash)
                if is_so(found) and (found == live.row if live is not None else found.is_final):
                    return found
                await trio.sleep(0.005)  # between two looks at a condition

    async def becomes(self, row: OtcOrderRow, status: OtcState) -> OtcOrderRow:
        """The order in the store, once it has the status."""
        return await self.when(row, lambda found: found.status is status)

    async def has_left(self, row: OtcOrderRow, amount: int) -> OtcOrderRow:
        """The order in the store, once `amount` of it is left."""
        return await self.when(row, lambda found: amount_of(found.remaining) == amount)

    async def is_told(self) -> None:
        """Wait until the chain is read to its head, and no account is left to be read."""
        head = self.chain.head.hash

        def is_so() -> bool:
            top = self.followed.read_to()
            waiting = self.funds.statistics().waiting
            return top is not None and top.hash == head and not waiting and self.followed.watch.is_told

        await until(is_so)
        for _ in range(50):  # what was begun comes to its end
            await trio.lowlevel.checkpoint()


def simulated_ms() -> int:
    """Trio's time, since NOW_MS."""
    return NOW_MS + round(trio.current_time() * 1_000)


def funds_of(row: OtcOrderRow) -> tuple[int, int, int]:
    """(makerBalance, reserved, swappable)."""
    return amount_of(row.maker_balance), amount_of(row.reserved), amount_of(row.swappable)


@asynccontextmanager
async def otc_store(folder: Path) -> AsyncIterator[Store]:
    """A store in this process."""
    async with Engine("sqlite:cambist.sqlite3", folder, in_process=True).open() as store:
        yield store


@asynccontextmanager
async def idle(folder: Path, count: int = 256) -> AsyncIterator[OtcVenue]:
    """A venue that has its leases and does nothing by itself: no chain is read, and no timer fires."""
    async with otc_store(folder) as store, trio.open_nursery() as nursery:
        venue = OtcVenue(store, OtcChain(), count=count)
        await nursery.start(venue.leases.run)
        yield venue
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def running(store: Store, chain: OtcChain, **given: Any) -> AsyncIterator[OtcVenue]:
    """A venue on a store, until it ends with the block; another may be begun after it."""
    venue = OtcVenue(store, chain, **given)
    async with trio.open_nursery() as nursery:
        await nursery.start(venue.engines.run)
        yield venue
        nursery.cancel_scope.cancel()


@asynccontextmanager
async def otc_venue(folder: Path, chain: OtcChain | None = None) -> AsyncIterator[OtcVenue]:
    """A running engine with a store of its own."""
    async with otc_store(folder) as store, running(store, OtcChain() if chain is None else chain) as venue:
        await venue.is_told()
        yield venue
