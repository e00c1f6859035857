"""Pages of trades from a real SQLite store: agents, blocks that are whole, foreign settlements."""

from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from cambist.codecs.messages.tape_messages import TradeKind
from cambist.engine.store.rows import Effect, EffectState
from cambist.engine.store.store import Store
from cambist.engine.store.tables import DELTA_FILL, EFFECT
from cambist.engine.store.units import Change, Done, Unit, new, put
from cambist.engine.trade.delta.orders.life import SETTLE
from cambist.engine.trade.tape import tape_reading
from cambist.engine.trade.tape.tape_reading import TapePage, read_page
from cambist.engine.trade.tape.trades import LogId, TapeTrade
from support.chain.indexing import sqlite_engine
from support.store.stores import NOW_MS, hash_of
from support.tape.tape_rows import (
    ACCOUNTS,
    CHAIN_ID,
    DELTA_CONTRACT,
    EXECUTOR,
    ONE,
    STRANGER,
    USD,
    a_delta_fill,
    a_purchase,
    a_settlement,
    an_otc_fill,
    filled_rows,
    settled_rows,
)


@pytest.fixture
async def quick(tmp_path: Path) -> AsyncIterator[Store]:
    async with sqlite_engine(tmp_path).open() as store:
        yield store


async def page(store: Store, above: int = -1, top: int = 10**9, **bounds: int) -> TapePage:
    return await read_page(store, CHAIN_ID, ACCOUNTS, above, top, lambda _: None, **bounds)


async def write(store: Store, *changes: Sequence[Change]) -> None:
    assert await store.write(Unit(tuple(change for some in changes for change in some))) == Done()


def shown(found: TapePage) -> list[Any]:
    return [
        (trade.place[0], trade.kind.value, trade.agent, [part.maker for part in trade.parts])
        for trade in sorted(found.trades, key=lambda trade: trade.place)
    ]


async def test_trades_of_both_kinds_with_the_makers_of_their_transactions(quick: Store) -> None:
    await write(
        quick,
        settled_rows(1, "ann"),
        filled_rows(
            an_otc_fill(1, taker=EXECUTOR), replace(an_otc_fill(1, taker=DELTA_CONTRACT), log_index=4)
        ),
        filled_rows(an_otc_fill(2)),
        filled_rows(an_otc_fill(3, taker=STRANGER)),
        settled_rows(4, "bob"),
    )
    found = await page(quick)
    assert shown(found) == [
        (1, "DELTA", "ann", ["alpha", "alpha"]),
        (2, "MARKET", None, ["alpha"]),
        (4, "DELTA", "bob", []),
    ]
    assert (found.above_height, found.rows, found.since_ms) == (-1, 6, NOW_MS + 1_000)
    assert {trade.fill_ms for trade in found.trades} == {900, None}


async def test_a_runner_up_that_settled_is_the_agent(quick: Store) -> None:
    await write(quick, settled_rows(1, "ann", "bob"))
    assert shown(await page(quick)) == [(1, "DELTA", "bob", [])]


async def test_crossed_orders_share_a_transaction_and_its_key(quick: Store) -> None:
    """Each has its own settlement under the key."""
    one, other = a_delta_fill(1), a_delta_fill(2, block_number=1, log_index=8)
    other = replace(other, block_hash=one.block_hash, tx_hash=one.tx_hash, at_ms=one.at_ms)
    payload = msgspec.msgpack.encode(a_settlement("1:0", "ann"))
    state = EffectState.INTENDED
    crossed = Effect("2:0", other.order_hash, 0, SETTLE, payload, NOW_MS, 1, state, 0, 0, 0)
    await write(
        quick,
        settled_rows(1, "ann"),
        settled_rows(2, fill=other, order=a_purchase()),
        [new(EFFECT, crossed)],
    )
    assert shown(await page(quick)) == [(1, "DELTA", "ann", []), (1, "DELTA", "ann", [])]


async def test_a_settlement_of_another_venue_s_order_is_no_trade_nor_are_its_fills(quick: Store) -> None:
    await write(quick, [put(DELTA_FILL, a_delta_fill(1))], filled_rows(an_otc_fill(1)))
    assert shown(await page(quick)) == []


async def test_another_chain_s_rows_are_left_out(quick: Store) -> None:
    await write(quick, filled_rows(an_otc_fill(1, chain_id=10)))
    assert (await page(quick)).rows == 0


async def test_pages_hold_whole_blocks_and_lead_down(quick: Store) -> None:
    fills = [replace(an_otc_fill(number), log_index=log) for number in (1, 2, 3, 4) for log in (1, 2)]
    await write(quick, filled_rows(*fills))
    seen: list[int] = []
    top = 10**9
    for _ in range(9):
        found = await page(quick, top=top, rows_max=5)
        assert all(trade.src_amount == 2 * ONE for trade in found.trades)
        seen += sorted((trade.place[0] for trade in found.trades), reverse=True)
        top = found.above_height
        if top < 0:
            break
    assert seen == [4, 3, 2, 1]


async def test_a_height_bounds_a_page(quick: Store) -> None:
    await write(quick, filled_rows(*map(an_otc_fill, (1, 2, 3))))
    found = await page(quick, above=1, top=2)
    assert (shown(found), found.above_height) == ([(2, "MARKET", None, ["alpha"])], 1)


async def test_a_block_with_more_rows_than_a_page_is_read_in_full(quick: Store) -> None:
    fills = [replace(an_otc_fill(7), log_index=log) for log in range(40)]
    await write(quick, filled_rows(an_otc_fill(6), *fills))
    first = await page(quick, rows_max=5)
    assert (first.trades, first.above_height) == ((), 7)
    found = await page(quick, top=7, rows_max=5)
    assert {(trade.place, trade.src_amount) for trade in found.trades} == {((7, 39), 40 * ONE), ((6, 3), ONE)}
    assert found.above_height == -1


async def test_a_block_with_more_rows_than_any_may_have_is_cut_and_passed(quick: Store) -> None:
    fills = [replace(an_otc_fill(7), log_index=log) for log in range(40)]
    await write(quick, filled_rows(an_otc_fill(6), *fills))
    found = await page(quick, top=7, rows_max=5, block_rows_max=12)
    assert (found.rows, found.above_height) == (12, 6)


async def test_orders_of_known_trades_are_not_read_again(
    quick: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write(quick, settled_rows(1, "ann"), settled_rows(2, "ann"))
    known: dict[LogId, TapeTrade] = {trade.log_id: trade for trade in (await page(quick)).trades}
    read: list[bytes] = []
    plain = tape_reading._orders

    async def counted(store: Store, fills: Any) -> Any:
        read.extend(fill.order_hash for fill in fills)
        return await plain(store, fills)

    monkeypatch.setattr(tape_reading, "_orders", counted)
    await write(quick, settled_rows(3, "bob"))
    found = await read_page(quick, CHAIN_ID, ACCOUNTS, -1, 10**9, known.get)
    assert [kind for _, kind, _, _ in shown(found)] == [TradeKind.DELTA] * 3
    assert read == [hash_of(3)]


async def test_more_orders_than_a_slice_are_all_read(quick: Store) -> None:
    for number in range(1, 131):
        await write(quick, settled_rows(number, "ann"))
    found = await page(quick)
    assert {trade.agent for trade in found.trades} == {"ann"}
    assert len(found.trades) == 130
    assert sum(trade.dest_amount for trade in found.trades) == 130 * 2_500 * USD
