"""The watch of swaps after bridges: what it searches, what it writes, and when an arrival is late."""

from typing import Any

import pytest
import trio
from msgspec.structs import replace
from structlog.testing import capture_logs

from cambist.codecs.bridges.arrivals import ARRIVAL_PAID_OUT, ARRIVAL_SWAPPED, ArrivalTerms
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.config.errors import ChainError
from cambist.config.timeouts import ARRIVAL_LATE_S
from cambist.engine.chain.port import Log, LogFilter, Receipt
from cambist.engine.store.rows import BridgeEndState, amount_of
from cambist.engine.store.tables import BRIDGE_END
from cambist.engine.store.units import Change, cas
from cambist.engine.trade.delta.arriving import arrival_watch
from cambist.engine.trade.delta.arriving.arrival_watch import ArrivalWatch
from cambist.engine.trade.delta.bridging import bridge_rounds
from cambist.engine.trade.delta.bridging.bridge_places import BridgePlace
from cambist.engine.trade.delta.bridging.bridged_orders import BridgedOrder
from cambist.engine.trade.delta.bridging.origins import TransferParties
from cambist.engine.trade.delta.orders.transfers import OrderTransfer, key_of
from support.chain.log_emitter import Record
from support.chain.scripted_chain import ScriptedChain, tx
from support.store.stores import a_delta_order, a_transfer, an_end

ARRIVALS, ALICE, USDC, DAI = (bytes([number]) * 20 for number in range(0xA1, 0xA5))
UNTIL_S = 1_800_003_600
CONFIRMATIONS = 3
DELIVERED_AT = 50


def account_of(number: int) -> bytes:
    return bytes([0xC0 + number]) * 20


class SearchedChain(ScriptedChain):
    """A chain that notes the ranges of its blocks that are searched, and the accounts."""

    def __init__(self, blocks: int) -> None:
        super().__init__()
        self.ranges: list[tuple[int, int]] = []
        self.accounts: list[tuple[bytes, ...]] = []
        self.grow(*([] for _ in range(blocks)))

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        self.ranges.append((first, last))
        assert (wanted.addresses, wanted.topics[0]) == ((ARRIVALS,), (ARRIVAL_SWAPPED, ARRIVAL_PAID_OUT))
        self.accounts.append(tuple(word[12:] for word in wanted.topics[1]))
        return await super().logs(wanted, first, last)


def swapped(number: int, received: int = 7) -> tuple[bytes, Record]:
    topics = ARRIVAL_SWAPPED, address_word(account_of(number)), address_word(ALICE)
    return ARRIVALS, (topics, address_word(USDC) + uint_word(9) + uint_word(received))


class Watched:
    """A watch over orders that are played: each has an arrival of its own, by its number.

    Attributes:
        orders: the orders as they are stored, by hash.
        written: changes of the orders that were stored.
        refuses: whether an order has changed meanwhile, so that none is written.
        wanted: accounts of the swapper, look by look.
        reads: numbers of orders that were read, look by look.
    """

    def __init__(self, chain: ScriptedChain, arrivals: int = 1) -> None:
        self.chain, self.now_ms, self.refuses = chain, 0, False
        self.orders = {order.row.order_hash: order for order in map(an_arrived, range(1, arrivals + 1))}
        self.written: list[tuple[OrderTransfer, Change]] = []
        self.wanted: list[list[bytes]] = []
        self.reads: list[int] = []
        unreal: Any = self
        place: Any = chain
        self.watch = ArrivalWatch(
            BridgePlace(place, CONFIRMATIONS), unreal, lambda: self.now_ms, arrivals=ARRIVALS, swapper=unreal
        )

    # The orders, and the swapper.

    def arriving_at(self, _: int) -> list[bytes]:
        """As `BridgedOrders.arriving_at`."""
        return list(self.orders)

    def version(self, order_hash: bytes) -> int:
        """As `BridgedOrders.version`."""
        return self.orders[order_hash].row.version

    async def read(self, hashes: list[bytes]) -> list[BridgedOrder]:
        """As `BridgedOrders.read`."""
        await trio.lowlevel.checkpoint()
        self.reads.append(len(hashes))
        return [self.orders[order_hash] for order_hash in hashes]

    async def write(self, order: BridgedOrder, changed: list[OrderTransfer], more: list[Change]) -> bool:
        """As `BridgedOrders.write`."""
        await trio.lowlevel.checkpoint()
        if self.refuses:
            return False
        ((transfer,), (change,)) = changed, more
        self.written.append((transfer, change))
        self.orders[order.row.order_hash] = replace(
            order, row=replace(order.row, version=order.row.version + 1), transfers=(transfer,)
        )
        return True

    def want(self, wanted: dict[bytes, ArrivalTerms]) -> None:
        """As `ArrivalSwaps.want`."""
        self.wanted.append(list(wanted))

    def hint(self, account: bytes) -> str:
        """As `ArrivalSwaps.hint`."""
        return f"no maker for {account[0]}"


def an_arrived(number: int = 1, at: int = DELIVERED_AT) -> BridgedOrder:
    row = a_delta_order(number)
    sent = a_transfer(row, block=number)
    end = replace(an_end(sent), state=BridgeEndState.ARRIVED, end_number=at, end_log=0)
    account = account_of(number)
    terms = ArrivalTerms(ALICE, USDC, DAI, 5, UNTIL_S, bytes([number]) * 32)
    parties = TransferParties(ALICE, account, b"\xb2" * 20)
    return BridgedOrder(row, parties, (), (OrderTransfer(sent, end),), terms)


# --- Searches -------------------------------------------------------------------------------------------


async def test_only_blocks_that_may_still_be_replaced_are_searched_again() -> None:
    chain = SearchedChain(60)
    watched = Watched(chain)
    await watched.watch.look()
    chain.grow([])
    await watched.watch.look()
    await watched.watch.look()
    assert chain.ranges == [(50, 60), (59, 61), (60, 61)]
    assert watched.wanted == [[account_of(1)]] * 3


async def test_a_search_goes_on_after_the_delivery_once_its_block_is_final() -> None:
    chain = SearchedChain(50)
    watched = Watched(chain)
    for _ in range(5):
        assert not await watched.watch.look()
        chain.grow([])
    assert chain.ranges == [(50, 50), (50, 51), (50, 52), (51, 53), (52, 54)]


async def test_ranges_follow_one_after_the_other_and_some_in_a_look(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_rounds, "BRIDGE_RANGE_BLOCKS_MAX", 4)
    monkeypatch.setattr(arrival_watch, "BRIDGE_RANGES_PER_ROUND", 2)
    chain = SearchedChain(70)
    watched = Watched(chain)
    told = [await watched.watch.look() for _ in range(3)]
    assert chain.ranges == [(50, 53), (54, 57), (58, 61), (62, 65), (66, 69), (70, 70)]
    assert told == [True, True, False]
    chain.range_blocks_max = 1
    chain.ranges.clear()
    assert await watched.watch.look()
    assert chain.ranges == [(69, 70)]
    assert await watched.watch.look() is False
    assert chain.ranges[1:] == [(69, 69), (70, 70)]


async def test_a_look_without_time_searches_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bridge_rounds, "BRIDGE_SEARCH_S", -1.0)
    chain = SearchedChain(60)
    assert await Watched(chain).watch.look()
    assert chain.ranges == []


async def test_more_arrivals_than_one_request_names_are_all_searched(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(arrival_watch, "BRIDGE_IDS_PER_FILTER", 2)
    chain = SearchedChain(50)
    chain.grow([tx(b"%d" % number, swapped(number)) for number in range(1, 6)])
    watched = Watched(chain, 5)
    assert await watched.watch.look()
    accounts = [account_of(number) for number in range(1, 6)]
    assert chain.accounts == [(*accounts[:2],), (*accounts[2:4],), (*accounts[4:],)]
    assert len(watched.written) == 5


async def test_one_search_begins_where_the_least_searched_arrival_needs_it() -> None:
    chain = SearchedChain(60)
    watched = Watched(chain, 2)
    late = watched.orders.pop(a_delta_order(2).order_hash)
    await watched.watch.look()
    watched.orders[late.row.order_hash] = an_arrived(2, at=40)
    await watched.watch.look()
    await watched.watch.look()
    assert chain.ranges == [(50, 60), (40, 60), (59, 60)]


async def test_a_delivery_that_moves_to_an_earlier_block_is_searched_from_there() -> None:
    chain = SearchedChain(41)
    chain.grow([tx(b"swap", swapped(1))], *([] for _ in range(18)))
    watched = Watched(chain)
    ((order_hash, order),) = watched.orders.items()
    await watched.watch.look()
    watched.orders[order_hash] = replace(order, transfers=(OrderTransfer(order.transfers[0].sent),))
    await watched.watch.look()
    watched.orders[order_hash] = an_arrived(1, at=41)
    watched.watch._quiet.clear()
    await watched.watch.look()
    assert [transfer.end and transfer.end.end_number for transfer, _ in watched.written] == [42]


# --- Ends -----------------------------------------------------------------------------------------------


async def test_a_swap_takes_the_place_of_the_delivery_and_lets_the_order_rest() -> None:
    chain = SearchedChain(50)
    chain.grow([tx(b"swap", swapped(1, 7)), tx(b"again", swapped(1, 8))])
    watched = Watched(chain)
    assert await watched.watch.look()
    ((transfer, change),) = watched.written
    end = transfer.end
    assert end is not None
    assert (end.state, amount_of(end.amount), end.end_number) == (BridgeEndState.SWAPPED, 7, 51)
    assert change == cas(BRIDGE_END, end)
    assert [await watched.watch.look() for _ in range(3)] == [False] * 3
    assert (watched.wanted, watched.reads) == ([[account_of(1)], [], []], [1, 1, 0])


async def test_a_swap_whose_write_was_refused_is_found_again() -> None:
    chain = SearchedChain(50)
    chain.grow([tx(b"swap", swapped(1))], *([] for _ in range(20)))
    watched = Watched(chain, 2)
    watched.refuses = True
    assert not await watched.watch.look()
    watched.refuses = False
    assert await watched.watch.look()
    assert chain.ranges == [(50, 71), (50, 71)]
    assert len(watched.written) == 1
    await watched.watch.look()
    assert chain.ranges[2:] == [(70, 71)]


async def test_a_node_that_lacks_the_receipt_delays_a_swap(monkeypatch: pytest.MonkeyPatch) -> None:
    async def lacks(_: bytes) -> Receipt | None:
        await trio.lowlevel.checkpoint()
        return None

    chain = SearchedChain(50)
    chain.grow([tx(b"swap", swapped(1))])
    watched = Watched(chain)
    with monkeypatch.context() as behind:
        behind.setattr(chain, "receipt", lacks)
        with pytest.raises(ChainError, match="no receipt"):
            await watched.watch.look()
    assert watched.written == []
    await watched.watch.look()
    assert len(watched.written) == 1


# --- Lateness -------------------------------------------------------------------------------------------


async def test_an_arrival_is_late_some_minutes_after_its_signed_time() -> None:
    watched = Watched(SearchedChain(50))
    (order,) = watched.orders.values()
    key = key_of(order.transfers[0].sent)
    bound_ms = round((UNTIL_S + ARRIVAL_LATE_S) * 1_000)
    for now_ms, is_late in ((0, False), (bound_ms, False), (bound_ms + 1, True)):
        watched.now_ms = now_ms
        with capture_logs() as logs:
            await watched.watch.look()
            await watched.watch.look()
        assert watched.watch.is_late(key) is is_late
        alarms = [one["waits"] for one in logs if one["event"] == "an arrival is late"]
        assert alarms == [watched.hint(account_of(1))] * is_late
    watched.chain.grow([tx(b"swap", swapped(1))])
    await watched.watch.look()
    await watched.watch.look()
    assert not watched.watch.is_late(key)
