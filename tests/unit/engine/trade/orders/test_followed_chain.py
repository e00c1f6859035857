"""A chain's single indexer, and several followers of its readings."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from cambist.codecs.contracts import contract_events as events
from cambist.codecs.messages.vocabulary import OrderStatus, OtcState
from cambist.engine.chain.index.indexer import Advance
from cambist.engine.chain.index.ring import Mark
from cambist.engine.store.rows import DeltaOrderRow, OtcOrderRow
from cambist.engine.store.store import Store
from cambist.engine.store.units import Change
from cambist.engine.trade.orders.followed_chain import FollowedChain, FollowedChains
from cambist.engine.trade.orders.order_units import DELTA, OTC, step
from support.chain.indexing import (
    DELTA as DELTA_CONTRACT,
)
from support.chain.indexing import (
    RFQ,
    TOKEN,
    Told,
    a_fill_event,
    a_settlement,
    kept_by,
    one,
    run_dry,
    sqlite_engine,
)
from support.chain.log_emitter import record
from support.chain.scripted_chain import ScriptedChain, tx
from support.store.stores import ALICE, BOB, NOW_MS, a_delta_order, an_otc_order, found, kept, moved


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with sqlite_engine(tmp_path).open() as opened:
        yield opened


def a_place(chain: ScriptedChain, *, rfq: bool = True, delta: bool = True) -> Any:
    """A served chain. Both contracts are known, independent of its settings."""
    return SimpleNamespace(
        chain=chain,
        followed=trio.Event(),
        settings=SimpleNamespace(rfq=rfq, delta=delta, confirmations=2),
        rfq=RFQ,
        delta=DELTA_CONTRACT,
    )


def a_followed_chain(chain: ScriptedChain, store: Store, **settings: bool) -> FollowedChain:
    return FollowedChain(a_place(chain, **settings), store, lambda: NOW_MS)


class Advances:
    """A projection that takes one order a step further with each step of the chain.

    Attributes:
        asked: number of steps that it was asked for.
        is_late: another task changes the order first.
    """

    def __init__(self, store: Store, row: DeltaOrderRow | OtcOrderRow, status: Any) -> None:
        self.store = store
        self.row: Any = row
        self.status = status
        self.asked = 0
        self.is_late = False

    async def changes(self, advance: Advance) -> Sequence[Change]:
        await trio.lowlevel.checkpoint()
        self.asked += 1
        surface: Any = DELTA if isinstance(self.row, DeltaOrderRow) else OTC
        now: Any = await found(self.store, self.row)
        if self.is_late:
            self.is_late = False
            await moved(self.store, now)
        unit = surface.advanced(now, step(now, NOW_MS, status=self.status))
        return tuple(unit.changes)


@pytest.mark.parametrize("late", [None, 0, 1], ids=["nobody", "the first", "the second"])
async def test_what_all_make_of_a_step_is_written_with_it_or_not_at_all(
    store: Store, late: int | None
) -> None:
    chain = ScriptedChain()
    followed = a_followed_chain(chain, store)
    rows = await kept(store, a_delta_order(1)), await kept(store, an_otc_order(2))
    both = Advances(store, rows[0], OrderStatus.ACTIVE), Advances(store, rows[1], OtcState.SUSPENDED)
    for projection in both:
        followed.join(projection, lambda *_: None)
    await run_dry(followed.indexer)
    if late is not None:
        both[late].is_late = True
    chain.grow([one(RFQ, a_fill_event(2))])
    await run_dry(followed.indexer)
    tries = 1 if late is None else 2
    assert [projection.asked for projection in both] == [tries, tries]
    after: list[Any] = [await found(store, rows[0]), await found(store, rows[1])]
    assert [row.status for row in after] == [OrderStatus.ACTIVE, OtcState.SUSPENDED]
    assert [row.version for row in after] == [2 + (late == at) for at in (0, 1)]
    assert len((await kept_by(store, chain.chain_id))["otc_fill"]) == 1
    assert followed.indexer.statistics().conflicts == tries - 1


async def test_all_are_told_whose_funds_moved(store: Store) -> None:
    chain = ScriptedChain()
    followed = a_followed_chain(chain, store)
    told = Told(), Told()
    rows: list[Any] = [await kept(store, a_delta_order(1)), await kept(store, an_otc_order(2))]
    for row, one_told in zip(rows, told, strict=True):
        followed.join(Advances(store, row, row.status), one_told)
    followed.watch.follow(TOKEN, ALICE)
    await run_dry(followed.indexer)
    assert [one_told.taken() for one_told in told] == [{(TOKEN, ALICE)}] * 2
    chain.grow([tx(b"moves", (TOKEN, record(events.Transfer(ALICE, BOB, 1))))])
    await run_dry(followed.indexer)
    assert [one_told.taken() for one_told in told] == [{(TOKEN, ALICE)}] * 2


@pytest.mark.parametrize(("rfq", "delta"), [(True, True), (True, False), (False, True)])
async def test_logs_are_kept_of_the_contracts_that_the_settings_have(
    store: Store, *, rfq: bool, delta: bool
) -> None:
    chain = ScriptedChain()
    followed = a_followed_chain(chain, store, rfq=rfq, delta=delta)
    await run_dry(followed.indexer)
    chain.grow([one(RFQ, a_fill_event(1), b"fill"), one(DELTA_CONTRACT, a_settlement(2), b"settlement")])
    await run_dry(followed.indexer)
    rows = await kept_by(store, chain.chain_id)
    assert (len(rows["otc_fill"]), len(rows["delta_fill"])) == (rfq, delta)


async def test_a_chain_is_read_to_the_block_that_its_cursor_has(store: Store) -> None:
    chain = ScriptedChain()
    followed = a_followed_chain(chain, store)
    assert followed.read_to() is None
    chain.grow([], [])
    await run_dry(followed.indexer)
    assert followed.read_to() == Mark(chain.head.number, chain.head.hash)


async def test_a_chain_is_followed_once_somebody_asks_for_it(store: Store) -> None:
    asked, other = ScriptedChain(), ScriptedChain()
    chains = FollowedChains({1: a_place(asked), 2: a_place(other)}, store, lambda: NOW_MS)
    assert list(chains) == []
    followed = chains.of(1)
    assert chains.of(1) is followed
    assert list(chains) == [(1, followed)]
    with pytest.raises(KeyError):
        chains.of(3)
