"""Effects of the chain: accounts with moved funds, and the lives of stored orders."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts import contract_events as events
from cambist.codecs.messages.vocabulary import OrderStatus, OtcState
from cambist.config.errors import (
    StoreUnavailable,
)
from cambist.config.limits import INDEX_RING_BLOCKS
from cambist.engine.chain.index.indexer import Advance, IndexerState
from cambist.engine.chain.index.watch import Watch
from cambist.engine.chain.port import Log, LogFilter
from cambist.engine.store.queries import by, of_order
from cambist.engine.store.rows import DeltaFill, OtcCancel, OtcFill, amount32, amount_of
from cambist.engine.store.store import Store
from cambist.engine.store.tables import (
    DELTA_FILL,
    DELTA_ORDER,
    OTC_CANCEL,
    OTC_FILL,
    OTC_ORDER,
)
from cambist.engine.store.units import Change
from cambist.engine.trade.orders.order_units import DELTA, OTC, step
from support.chain.indexing import (
    DELTA as DELTA_CONTRACT,
)
from support.chain.indexing import (
    RFQ,
    TOKEN,
    Told,
    a_cancellation,
    a_fill_event,
    a_settlement,
    an_indexer,
    cursor_of,
    kept_by,
    one,
    run_dry,
    sqlite_engine,
)
from support.chain.scripted_chain import ScriptedChain, Sent
from support.store.stores import (
    ALICE,
    BOB,
    CAROL,
    ONE,
    USDC,
    WETH,
    a_delta_order,
    an_otc_order,
    events_of,
    found,
    kept,
    moved,
    rows_of,
    structs_of,
)


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[Store]:
    """A store in this process: for what does not depend on the database."""
    async with sqlite_engine(tmp_path).open() as store:
        yield store


# --- Whose funds moved ----------------------------------------------------------------------------------


def a_move(token: bytes, owner: bytes, receiver: bytes, name: bytes = b"move") -> Sent:
    return one(token, events.Transfer(owner, receiver, 1), name)


async def test_followed_owners_are_told_of_what_moves_their_funds(quick: Store) -> None:
    chain, watch, told = ScriptedChain(), Watch(), Told()
    watch.follow(TOKEN, ALICE)
    watch.follow(TOKEN, BOB)
    indexer = an_indexer(chain, quick, watch=watch, told=told)
    await run_dry(indexer)
    assert told.taken() == {(TOKEN, ALICE), (TOKEN, BOB)}
    chain.grow([], [])
    await run_dry(indexer)
    assert told.taken() == set()
    chain.grow([a_move(TOKEN, ALICE, CAROL)])
    await run_dry(indexer)
    assert told.taken() == {(TOKEN, ALICE)}
    chain.grow([a_move(TOKEN, CAROL, BOB)], [a_move(USDC, ALICE, BOB, b"other")])
    await run_dry(indexer)
    assert told.taken() == {(TOKEN, BOB)}
    chain.grow([one(TOKEN, events.Approval(BOB, ALICE, 1), b"approval")])
    await run_dry(indexer)
    assert told.taken() == {(TOKEN, BOB)}
    assert not any((await kept_by(quick, chain.chain_id)).values())


async def test_what_a_reorganisation_takes_back_is_told_too(quick: Store) -> None:
    chain, watch, told = ScriptedChain(), Watch(), Told()
    watch.follow(TOKEN, ALICE)
    indexer = an_indexer(chain, quick, watch=watch, told=told)
    chain.grow([], [a_move(TOKEN, ALICE, CAROL)])
    await run_dry(indexer)
    told.taken()
    chain.cut(1)
    chain.grow([], [])
    await run_dry(indexer)
    assert told.taken() == {(TOKEN, ALICE)}


async def test_history_is_not_searched_for_owners_who_are_told_in_the_end(quick: Store) -> None:
    chain, watch, told = ScriptedChain(), Watch(), Told()
    watch.follow(TOKEN, ALICE)
    chain.grow(*([] for _ in range(INDEX_RING_BLOCKS + 100)))
    indexer = an_indexer(chain, quick, watch=watch, told=told)
    await indexer.step()
    await indexer.step()
    assert indexer.statistics().state is IndexerState.CATCHING_UP
    assert told.taken() == set()
    await run_dry(indexer)
    assert told.taken() == {(TOKEN, ALICE)}


class Interrupted(ScriptedChain):
    """Calls something between two of its answers for logs."""

    def __init__(self) -> None:
        super().__init__()
        self.between: Any = None

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        logs = await super().logs_of(wanted, block_hash)
        if self.between:
            between, self.between = self.between, None
            between()
        return logs


@pytest.mark.parametrize("when", ["before", "during"])
async def test_an_owner_who_is_followed_while_blocks_are_read_misses_nothing(quick: Store, when: str) -> None:
    """Told after the step that ran, one looks at the block that was read: the move is in what one sees."""
    chain, watch, told = Interrupted(), Watch(), Told()
    indexer = an_indexer(chain, quick, watch=watch, told=told)
    await run_dry(indexer)
    chain.grow([a_move(TOKEN, ALICE, CAROL)])
    if when == "before":
        watch.follow(TOKEN, ALICE)
    else:
        chain.between = lambda: watch.follow(TOKEN, ALICE)
    await indexer.step()
    assert told.taken() == {(TOKEN, ALICE)}
    assert indexer.statistics().block_hash == chain.head.hash
    chain.grow([a_move(TOKEN, CAROL, ALICE)])
    await indexer.step()
    assert told.taken() == {(TOKEN, ALICE)}


# --- Projections ----------------------------------------------------------------------------------------


class Orders:
    """The life of stored orders as far as fills go: the rest follows from the rows that are not undone.

    Attributes:
        interfere: called before the changes of a step are handed out.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self.interfere: Any = None

    async def changes(self, advance: Advance) -> Sequence[Change]:
        rows = [row for _, row in (*advance.undone, *advance.rows)]
        changes: list[Change] = []
        for order_hash in sorted({row.order_hash for row in rows if isinstance(row, OtcFill | OtcCancel)}):
            changes += await self._otc(advance, order_hash)
        for order_hash in sorted({row.order_hash for row in rows if isinstance(row, DeltaFill)}):
            changes += await self._delta(advance, order_hash)
        if self.interfere:
            await self.interfere()
        return changes

    async def _valid(self, advance: Advance, table: Any, order_hash: bytes) -> list[Any]:
        gone = {row for kept_in, row in advance.undone if kept_in is table}
        there = await structs_of(self._store, table, of_order(table, order_hash))
        come: list[Any] = [row for kept_in, row in advance.rows if kept_in is table]
        return [row for row in there if row not in gone] + [
            row for row in come if row.order_hash == order_hash
        ]

    async def _otc(self, advance: Advance, order_hash: bytes) -> Sequence[Change]:
        rows = await rows_of(self._store, by(OTC_ORDER, order_hash))
        if not rows:
            return ()
        order = OTC.found(rows[0])
        fills = await self._valid(advance, OTC_FILL, order_hash)
        cancels = [
            row for row in await self._valid(advance, OTC_CANCEL, order_hash) if row.maker == order.maker
        ]
        left = amount_of(order.maker_amount) - sum(amount_of(fill.maker_amount) for fill in fills)
        status = OtcState.CANCELLED if cancels else OtcState.PENDING if left else OtcState.FULFILLED
        tx_hash = (cancels or fills or [None])[-1]
        after = step(
            order,
            order.updated_ms + 1,
            status=status,
            remaining=amount32(left),
            transaction_hash=tx_hash and tx_hash.tx_hash,
        )
        return OTC.advanced(order, after).changes

    async def _delta(self, advance: Advance, order_hash: bytes) -> Sequence[Change]:
        rows = await rows_of(self._store, by(DELTA_ORDER, order_hash))
        if not rows:
            return ()
        order = DELTA.found(rows[0])
        fills = await self._valid(advance, DELTA_FILL, order_hash)
        spent = sum(amount_of(fill.spent) for fill in fills)
        status = OrderStatus.COMPLETED if spent >= ONE else OrderStatus.ACTIVE
        return DELTA.advanced(
            order, step(order, order.updated_ms + 1, status=status, spent=amount32(spent))
        ).changes


async def test_stored_orders_advance_with_the_chain_and_go_back_with_it(store: Store) -> None:
    chain = ScriptedChain()
    indexer = an_indexer(chain, store, projection=Orders(store))
    otc = await kept(store, an_otc_order(1, chain_id=chain.chain_id))
    delta = await kept(store, a_delta_order(2, chain_id=chain.chain_id))
    delta = await moved(store, delta, status=OrderStatus.ACTIVE)

    async def now() -> list[Any]:
        one, other = await found(store, otc), await found(store, delta)
        assert one is not None
        assert other is not None
        return [(one.status, amount_of(one.remaining)), (other.status, amount_of(other.spent))]

    chain.grow([one(RFQ, a_fill_event(1, ONE // 4, 1), b"a"), one(RFQ, a_cancellation(1, BOB), b"mallory")])
    await run_dry(indexer)
    assert await now() == [(OtcState.PENDING, ONE - ONE // 4), (OrderStatus.ACTIVE, 0)]
    chain.grow(
        [one(DELTA_CONTRACT, a_settlement(2, spent=ONE), b"s")],
        [one(RFQ, a_fill_event(1, ONE - ONE // 4, 3), b"b")],
    )
    await run_dry(indexer)
    assert await now() == [(OtcState.FULFILLED, 0), (OrderStatus.COMPLETED, ONE)]

    chain.cut(1)
    chain.grow([], [], [])
    await run_dry(indexer)
    assert await now() == [(OtcState.PENDING, ONE - ONE // 4), (OrderStatus.ACTIVE, 0)]
    chain.cut(0)
    chain.grow(*([] for _ in range(4)), [one(RFQ, a_cancellation(1, ALICE), b"c")])
    await run_dry(indexer)
    assert await now() == [(OtcState.CANCELLED, ONE), (OrderStatus.ACTIVE, 0)]
    chain.cut(3)
    chain.grow([], [], [one(DELTA_CONTRACT, a_settlement(2, spent=ONE), b"s")])
    await run_dry(indexer)
    assert await now() == [(OtcState.PENDING, ONE), (OrderStatus.COMPLETED, ONE)]
    versions = [event.version for event in await events_of(store) if event.surface == "otc"]
    assert versions == list(range(1, len(versions) + 1))


async def test_an_order_that_changes_meanwhile_is_read_anew(store: Store) -> None:
    chain = ScriptedChain()
    orders = Orders(store)
    indexer = an_indexer(chain, store, projection=orders)
    order = await kept(store, an_otc_order(1, chain_id=chain.chain_id))
    await run_dry(indexer)

    async def suspend_once() -> None:
        orders.interfere = None
        await moved(store, order, status=OtcState.SUSPENDED)

    orders.interfere = suspend_once
    chain.grow([one(RFQ, a_fill_event(1, ONE, 1))])
    await run_dry(indexer)
    after = await found(store, order)
    assert after is not None
    assert (after.status, after.version) == (OtcState.FULFILLED, 3)
    assert indexer.statistics().conflicts == 1


async def test_an_order_that_never_stops_changing_ends_the_step_without_harm(quick: Store) -> None:
    chain = ScriptedChain()
    orders = Orders(quick)
    indexer = an_indexer(chain, quick, projection=orders)
    order = await kept(quick, an_otc_order(1, chain_id=chain.chain_id))
    await run_dry(indexer)
    before = await cursor_of(quick)

    async def touch() -> None:
        now = await found(quick, order)
        assert now is not None
        await moved(quick, now)

    orders.interfere = touch
    chain.grow([one(RFQ, a_fill_event(1, ONE, 1))])
    with pytest.raises(StoreUnavailable, match="5 times"):
        await indexer.step()
    assert await cursor_of(quick) == before
    assert not any((await kept_by(quick, chain.chain_id)).values())
    orders.interfere = None
    await run_dry(indexer)
    after = await found(quick, order)
    assert after is not None
    assert after.status is OtcState.FULFILLED


async def test_a_row_of_wrapped_money_is_no_row_of_ours(quick: Store) -> None:
    """An event of the same name at another address is nobody's."""
    chain = ScriptedChain()
    chain.grow([one(WETH, events.OrdersCancelledUntil(ALICE, 1))])
    await run_dry(an_indexer(chain, quick))
    assert not any((await kept_by(quick, chain.chain_id)).values())
