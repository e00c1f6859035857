"""Timers, watches and acts of an OTC order by its state, in a venue that does nothing by itself."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.errors import ChainError, Reverted
from cambist.config.limits import JSON_INT_MAX
from cambist.config.timeouts import EXPIRY_GRACE_S
from cambist.engine.chain.holdings import Holding
from cambist.engine.store.follower import START, EventFollower
from cambist.engine.store.rows import OtcOrderRow, amount32
from cambist.engine.trade.orders.followed_chain import FollowedChains
from cambist.engine.trade.orders.order_engines import Footing
from cambist.engine.trade.orders.order_units import step
from cambist.engine.trade.orders.step import OrderStep
from cambist.engine.trade.otc.engine import open_otc
from cambist.engine.trade.otc.funds_watch import _left_of
from cambist.engine.trade.otc.life import gave_way
from support.otc.otc_chain import MOST
from support.otc.otc_engine import (
    MAKER,
    OtcVenue,
    a_document,
    a_permit,
    a_place,
    an_order,
    idle,
    otc_venue,
)
from support.patience import until
from support.store.stores import BOB, CAROL, NOW_MS, USDC, WETH, hash_of

_S = OtcState
SOON_S = NOW_MS // 1_000 + 1_000


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[OtcVenue]:
    async with idle(tmp_path) as venue:
        yield venue


def next_ms(venue: OtcVenue) -> int | None:
    """Time of the first timer that waits."""
    return min((timer.at_ms for timer in venue.scheduler._timers._by_key.values()), default=None)


async def changed(venue: OtcVenue, row: OtcOrderRow, **columns: Any) -> OtcOrderRow:
    return await venue.orders.step(row.order_hash, lambda now: OrderStep(step(now, NOW_MS, **columns)))


# --- Expiry ---------------------------------------------------------------------------------------------


async def test_an_order_is_looked_at_a_little_after_its_last_second(
    venue: OtcVenue, mock_clock: object
) -> None:
    await venue.submit(an_order(1))
    assert next_ms(venue) is None, "that one never expires"
    await venue.submit(an_order(2, expires_s=SOON_S))
    assert next_ms(venue) == (SOON_S + EXPIRY_GRACE_S) * 1_000


async def test_an_order_that_is_over_already_is_looked_at_in_a_second(
    venue: OtcVenue, mock_clock: object
) -> None:
    await venue.submit(an_order(expires_s=NOW_MS // 1_000 - 100))
    assert next_ms(venue) == venue.clock() + 1_000


async def test_an_order_of_a_chain_that_is_not_read_is_looked_at_again_in_a_second(
    venue: OtcVenue, mock_clock: object
) -> None:
    row = await venue.submit(an_order(expires_s=SOON_S))
    venue.jumped_ms = 2_000_000
    venue.engine.look_at_expiry(row.order_hash)
    assert next_ms(venue) == venue.clock() + 1_000
    await venue.engine._expire(row.order_hash)
    assert (await venue.row(row)).status is _S.PENDING


@pytest.mark.parametrize(
    ("late_ms", "status"), [(0, _S.PENDING), (999, _S.PENDING), (1_000, _S.EXPIRED), (10**6, _S.EXPIRED)]
)
async def test_an_order_of_a_chain_that_is_read_expires_with_its_last_second(
    tmp_path: Path, autojump_clock: object, late_ms: int, status: OtcState
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order(expires_s=SOON_S))
        await venue.is_told()
        venue.jumped_ms = 1_000 * SOON_S + late_ms - venue.clock()
        now_ms = venue.clock()
        await venue.engine._expire(row.order_hash)
        after = await venue.row(row)
        assert (after.status, after.updated_ms == now_ms) == (status, status is _S.EXPIRED)


async def test_an_order_whose_time_comes_while_its_logs_are_read_expires_soon_after(
    tmp_path: Path, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with otc_venue(tmp_path) as venue:
        catch_up, goes_on = venue.orders.catch_up, trio.Event()

        async def late(*given: Any) -> OtcOrderRow | None:
            await goes_on.wait()
            return await catch_up(*given)

        monkeypatch.setattr(venue.orders, "catch_up", late)
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order(expires_s=venue.clock() // 1_000 + 3))
        await trio.sleep(60)
        assert (await venue.row(row)).status is _S.PENDING
        goes_on.set()
        await venue.becomes(row, _S.EXPIRED)


async def test_an_order_that_another_process_runs_by_now_is_left_alone(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        row = await venue.submit(an_order(expires_s=NOW_MS // 1_000 - 100, shard=7))
        await until(lambda: not venue.engine._acts._busy)
        venue.orders.leave(set(range(256)) - {7})
        venue.engine.look_at_permit(row.order_hash)
        venue.engine.look_at_expiry(row.order_hash)
        assert venue.engine._acts._busy
        await until(lambda: not venue.engine._acts._busy)
        assert await venue.row(row) == row


# --- Permits --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("into_s_ms", [0, 999])
@pytest.mark.parametrize(
    ("deadline_s", "is_awaited"),
    [
        (SOON_S - 1, False),
        (SOON_S, True),
        (SOON_S + 1, True),
        (JSON_INT_MAX, True),
        (JSON_INT_MAX + 1, False),
    ],
)
async def test_funds_are_read_once_the_last_second_of_a_permit_is_over(
    venue: OtcVenue, mock_clock: object, into_s_ms: int, deadline_s: int, is_awaited: bool
) -> None:
    venue.jumped_ms = 1_000 * SOON_S + into_s_ms - venue.clock()
    row = an_order()
    await venue.submit(row, a_document(row, permit=a_permit(deadline_s=deadline_s)))
    assert next_ms(venue) == (1_000 * (deadline_s + 1) if is_awaited else None)


async def test_an_order_that_has_ended_has_no_timer_until_it_is_open_again(
    venue: OtcVenue, mock_clock: object
) -> None:
    row = an_order(expires_s=SOON_S)
    await venue.submit(row, a_document(row, permit=a_permit()))
    waiting = [venue.scheduler.statistics().waiting]
    for status in (_S.CANCELLED, _S.PENDING, _S.FULFILLED, _S.SUSPENDED):
        await changed(venue, row, status=status)
        waiting.append(venue.scheduler.statistics().waiting)
    assert waiting == [2, 0, 2, 0, 2]


async def test_an_engine_follows_the_chains_that_have_the_contract_and_serve_it(
    venue: OtcVenue, mock_clock: object
) -> None:
    places: Any = {
        1: a_place(1, venue.chain),
        2: a_place(2, venue.chain, serves_rfq=False),
        3: a_place(3, venue.chain, rfq=b""),
        4: a_place(4, venue.chain),
    }
    chains = FollowedChains(places, venue.store, venue.clock)
    footing = Footing(venue.store, venue.leases, venue.scheduler, chains, venue.clock)
    engine = open_otc(footing, places)
    assert engine.chains.keys() == {1, 4}
    assert {chain_id for chain_id, _ in chains} == {1, 4}
    unserved = an_order(chain_id=2, expires_s=SOON_S)
    await engine.orders.add(unserved, a_document(unserved))
    assert next_ms(venue) is None, "nothing of that chain is followed"


# --- Watch of the maker's funds -------------------------------------------------------------------------


def is_queued(venue: OtcVenue) -> bool:
    """Whether accounts are queued for a read; afterwards none is."""
    is_so = venue.funds.statistics().waiting > 0
    venue.funds._waiting.clear()
    return is_so


async def test_each_change_of_an_orders_claim_and_nothing_else_queues_a_read(
    venue: OtcVenue, mock_clock: object
) -> None:
    row = await venue.submit(an_order(status=_S.DRAFT))
    live = venue.live(row)
    assert not is_queued(venue), "the indexer reports the account of a first order"
    for columns, is_news in (
        ({"status": _S.PENDING}, True),
        ({"status": _S.SUSPENDED}, False),
        ({"maker_balance": amount32(5)}, False),
        ({"remaining": amount32(60)}, True),
        ({"remaining": amount32(100)}, True),
        ({"status": _S.CANCELLED}, True),
        ({"status": _S.PENDING}, True),
    ):
        await changed(venue, row, **columns)
        assert is_queued(venue) == is_news, columns
        venue.engine.tend(live)
        assert not is_queued(venue), "it is known"
    venue.engine.look_at_permit(row.order_hash)
    assert is_queued(venue)


async def test_an_order_that_goes_leaves_its_share_to_the_others_of_its_account(
    venue: OtcVenue, mock_clock: object
) -> None:
    rows = [await venue.submit(an_order(number)) for number in (1, 2)]
    other = await venue.submit(an_order(3, maker_asset=USDC))
    venue.funds._found = {(WETH, MAKER): Holding(0, 0), (USDC, MAKER): Holding(0, 0)}
    for row, is_shared in ((other, False), (rows[0], True), (rows[1], False)):
        assert venue.funds.is_short(row)
        venue.funds._waiting.clear()
        await venue.orders.step(row.order_hash, lambda now: gave_way(now, NOW_MS))
        assert is_queued(venue) == is_shared
        assert venue.funds.is_short(row) == is_shared, "what is not followed is not known"
    assert (venue.funds.statistics().orders, venue.funds._of_maker) == (0, {})


async def test_orders_of_shards_that_are_left_are_followed_no_more(
    venue: OtcVenue, mock_clock: object
) -> None:
    rows = [await venue.submit(an_order(number, status=_S.DRAFT, shard=number)) for number in (1, 2, 3)]
    await venue.engine.leave({2})
    assert [live.row for live in venue.orders] == [rows[1]]
    assert [*venue.funds._followed] == [rows[1].order_hash]
    assert venue.engine.statistics().chains["1"].drafts.waiting == 1


async def test_funds_are_read_for_changes_of_other_processes_orders_alone(
    tmp_path: Path, mock_clock: object
) -> None:
    async with idle(tmp_path, count=128) as venue:
        held = venue.leases.held()
        mine, others = (next(at for at in range(256) if (at in held) is is_mine) for is_mine in (True, False))
        row = await venue.submit(an_order(1, shard=mine))
        await venue.submit(an_order(2, shard=others))
        own, foreign = [event for _, event in await EventFollower(venue.store, START).page()]
        for event, is_cause in (
            (own, False),
            (foreign, True),
            (replace(foreign, owner=BOB), False),
            (replace(foreign, chain_id=9), False),
        ):
            await venue.engine.hear([event])
            assert is_queued(venue) == is_cause
        assert [live.row for live in venue.orders] == [row]


# --- Known funds ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("found", "permit", "is_short"),
    [
        ({}, None, False),
        ({(WETH, CAROL): Holding(0, 0)}, None, False),
        ({(WETH, MAKER): None}, None, True),
        ({(WETH, MAKER): Holding(99, 1_000)}, None, True),
        ({(WETH, MAKER): Holding(1_000, 99)}, None, True),
        ({(WETH, MAKER): Holding(100, 100)}, None, False),
        ({(WETH, MAKER): Holding(99, 99)}, a_permit(), False),
        ({(WETH, MAKER): Holding(99, 99)}, b"", True),
        ({}, a_permit(), False),
    ],
)
async def test_an_order_is_short_where_the_last_known_funds_do_not_cover_it(
    venue: OtcVenue, mock_clock: object, found: Any, permit: bytes | None, is_short: bool
) -> None:
    row = an_order()
    await venue.submit(row, a_document(row, permit=permit))
    venue.funds._found = found
    assert venue.funds.is_short(row) == is_short
    elsewhere = an_order(2)
    assert venue.funds.is_short(elsewhere) == (is_short or bool(found and permit)), "its permit is not known"


async def test_the_logs_of_an_order_are_read_only_where_the_contract_has_another_rest(
    venue: OtcVenue, mock_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    rows = [await venue.submit(an_order(number)) for number in range(5)]
    part = await changed(venue, rows[2], remaining=amount32(60))
    await changed(venue, rows[4], status=_S.CANCELLED)
    caught_up: list[bytes] = []

    async def catch_up(order_hash: bytes, *_: Any) -> None:
        await trio.lowlevel.checkpoint()
        caught_up.append(order_hash)

    monkeypatch.setattr(venue.orders, "catch_up", catch_up)
    left = dict(zip((row.order_hash for row in rows), (None, 100, 60, 99, 0), strict=True))
    await venue.funds._catch_up({hash_of(99): 5, **left, part.order_hash: None})
    assert caught_up == [part.order_hash, rows[3].order_hash]


@pytest.mark.parametrize("more", [b"", bytes(31), bytes(64)])
def test_what_is_left_of_orders_is_a_list_of_numbers_that_are_one_more(more: bytes) -> None:
    words = [0x20, 4, 0, 1, 2, MOST]
    answer = b"".join(map(uint_word, words))
    assert _left_of(answer + more, 4) == [None, 0, 1, MOST - 1]
    assert _left_of(answer + more, 3) == [None, 0, 1]


@pytest.mark.parametrize("answer", [Reverted("no"), b"", bytes(63), bytes(64 + 63)])
def test_a_contract_that_does_not_tell_what_is_left_of_each_order(answer: bytes | Exception) -> None:
    with pytest.raises(ChainError, match="no unfilled amounts"):
        _left_of(answer, 2)
