"""The engine of OTC orders: what becomes of them by the chain, by time, and over a restart."""

from functools import partial
from pathlib import Path

import pytest
import trio

from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.limits import VENUE_LOAD_ORDERS
from cambist.engine.chain.index.indexer import rescan
from cambist.engine.store.queries import above, events_after
from cambist.engine.store.rows import OtcFill, OtcOrderRow, amount32, amount_of
from cambist.engine.store.store import Store
from cambist.engine.store.tables import OTC_CANCEL, OTC_FILL
from cambist.engine.store.units import Done, Unit, put
from support.otc.otc_chain import OtcChain
from support.otc.otc_engine import (
    CONFIRMATIONS,
    MAKER,
    OtcVenue,
    a_document,
    an_order,
    funds_of,
    otc_store,
    otc_venue,
    running,
)
from support.store.stores import BOB, CAROL, NOW_MS, USDC, WETH, hash_of

_S = OtcState


async def tx_of(venue: OtcVenue, block: int = -1) -> bytes:
    """The only transaction of a block."""
    (tx_hash,) = venue.chain.line[block].tx_hashes
    return tx_hash


async def events_of(store: Store, row: OtcOrderRow) -> list[tuple[int, str]]:
    """(version, status) of each event of an order."""
    (found,) = await store.read(events_after((0, 0), 10_000))
    return [(one[7], one[8]) for one in found if one[3] == row.order_hash]


# --- Fills, cancellations -------------------------------------------------------------------------------


async def test_a_part_and_then_the_rest_is_filled(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        row = await venue.submit(an_order())
        venue.chain.mine()
        await venue.is_told()
        assert await venue.row(row) == row, "what the check of an order said is what the watch says"
        venue.chain.fills(row, 40)
        venue.chain.mine()
        part = await venue.has_left(row, 60)
        assert (part.status, funds_of(part)) == (_S.PENDING, (60, 60, 60))
        assert part.transaction_hash == await tx_of(venue)
        await venue.is_told()
        assert (await venue.row(row)).version == part.version, "nothing else was to be changed"
        venue.chain.fills(row, 60)
        venue.chain.mine()
        whole = await venue.becomes(row, _S.FULFILLED)
        assert (amount_of(whole.remaining), funds_of(whole), whole.is_final) == (0, (0, 0, 0), False)
        venue.chain.mine(CONFIRMATIONS - 1)
        final = await venue.when(row, lambda found: found.is_final)
        assert (final.status, final.transaction_hash) == (_S.FULFILLED, whole.transaction_hash)
        assert venue.orders.get(row.order_hash) is None
        assert len(venue.followed.watch) == 0
        assert await events_of(venue.store, row) == [
            (1, "PENDING"),
            (2, "PENDING"),
            (3, "FULFILLED"),
            (4, "FULFILLED"),
        ]


async def test_several_parts_of_several_orders_in_one_block(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        venue.chain.mine()
        rows = [await venue.submit(an_order(number)) for number in range(1, 6)]
        for row in rows:
            venue.chain.fills(row, 10)
            venue.chain.fills(row, 20)
        venue.chain.cancels(rows[0])
        venue.chain.fills(rows[1], 70)
        venue.chain.mine()
        cancelled = await venue.becomes(rows[0], _S.CANCELLED)
        assert amount_of(cancelled.remaining) == 70
        assert (await venue.becomes(rows[1], _S.FULFILLED)).remaining == amount32(0)
        for row in rows[2:]:
            assert (await venue.has_left(row, 70)).status is _S.PENDING


async def test_only_the_maker_cancels(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        row = await venue.submit(an_order())
        venue.chain.cancels(row, BOB)
        venue.chain.mine()
        await venue.is_told()
        assert await venue.row(row) == row
        venue.chain.cancels(row)
        venue.chain.mine()
        after = await venue.becomes(row, _S.CANCELLED)
        assert (after.transaction_hash, amount_of(after.remaining)) == (await tx_of(venue), 100)


async def test_fills_of_orders_that_nobody_posted_are_nobodys_concern(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        row = await venue.submit(an_order())
        venue.chain.fills(an_order(7, maker=BOB), 5)
        venue.chain.mine()
        await venue.is_told()
        assert await venue.row(row) == row


@pytest.mark.parametrize("other", ["cancels", "nothing"])
async def test_what_a_reorganisation_takes_back_is_open_again(
    tmp_path: Path, autojump_clock: object, other: str
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order())
        young = await venue.submit(an_order(2))
        venue.chain.fills(row, 30)
        venue.chain.mine()
        part = await venue.has_left(row, 70)
        base = venue.chain.head.number
        venue.chain.fills(row, 70)
        venue.chain.mine()
        await venue.becomes(row, _S.FULFILLED)
        await venue.becomes(young, _S.SUSPENDED)
        venue.chain.cut(base)
        if other == "cancels":
            venue.chain.cancels(row)
        venue.chain.mine(2)
        if other == "cancels":
            after = await venue.becomes(row, _S.CANCELLED)
            assert amount_of(after.remaining) == 70
            assert after.transaction_hash == await tx_of(venue, -2)
        else:
            after = await venue.when(row, lambda found: funds_of(found) == (70, 70, 70))
            assert (after.status, after.transaction_hash) == (_S.PENDING, part.transaction_hash)
            venue.chain.cut(base - 1)
            venue.chain.mine(3)
            none = await venue.when(row, lambda found: funds_of(found) == (100, 100, 100))
            assert (none.status, none.transaction_hash) == (_S.PENDING, None)
            assert (await venue.becomes(young, _S.PENDING)).reserved == amount32(0), "the older one has it"


async def test_bulk_cancellations_of_two_makers_in_one_block(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        makers = (MAKER, BOB, CAROL)
        for maker in makers:
            venue.chain.has(maker, 100)
        venue.chain.mine()
        rows = [await venue.submit(an_order(number, maker=maker)) for number, maker in enumerate(makers)]
        late = await venue.submit(an_order(3, maker=BOB, expires_s=1 << 40))
        await venue.is_told()
        base = venue.chain.head.number
        for maker in makers[:2]:
            venue.chain.cancels_until(maker, 1)
        venue.chain.mine()
        for row in rows[:2]:
            await venue.becomes(row, _S.CANCELLED)
        venue.chain.cut(base)
        venue.chain.mine(2)
        await venue.becomes(rows[0], _S.PENDING)
        await venue.becomes(rows[1], _S.DRAFT)  # no key made its signature
        assert [(await venue.row(row)).status for row in (rows[2], late)] == [_S.PENDING, _S.PENDING]


async def test_a_bulk_cancellation_that_is_taken_back_leaves_the_order_open(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order())
        base = venue.chain.head.number
        venue.chain.cancels_until(MAKER, 1)
        venue.chain.mine()
        await venue.becomes(row, _S.CANCELLED)
        venue.chain.cut(base)
        venue.chain.mine(2)
        open_again = await venue.becomes(row, _S.PENDING)
        assert (funds_of(open_again), open_again.transaction_hash) == ((100, 100, 100), None)


# --- Time -----------------------------------------------------------------------------------------------


async def test_an_order_expires_once_the_chain_is_read(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        venue.chain.mine()
        ends_s = venue.clock() // 1_000 + 10
        row = await venue.submit(an_order(expires_s=ends_s))
        never = await venue.submit(an_order(2))
        venue.chain.is_away = True
        await trio.sleep(60)
        assert (await venue.row(row)).status is _S.PENDING, "a fill in time may not be read yet"
        venue.chain.is_away = False
        venue.chain.mine()
        after = await venue.becomes(row, _S.EXPIRED)
        assert (funds_of(after), after.transaction_hash) == ((0, 0, 0), None)
        for _ in range(2):  # with the first it is known how far the chain was read
            venue.chain.mine(CONFIRMATIONS)
            await venue.is_told()
        assert (await venue.when(row, lambda found: found.is_final)).status is _S.EXPIRED
        assert (await venue.row(never)).status is _S.PENDING


async def test_what_was_filled_in_time_and_is_read_late_counts(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        venue.chain.mine()
        rows = [
            await venue.submit(an_order(number, expires_s=venue.clock() // 1_000 + 5)) for number in (1, 2, 3)
        ]
        for row in rows:
            await venue.becomes(row, _S.EXPIRED)
        venue.chain.fills(rows[0], 40)
        venue.chain.fills(rows[1], 100)
        venue.chain.mine()
        part = await venue.has_left(rows[0], 60)
        assert (part.status, funds_of(part)) == (_S.EXPIRED, (0, 0, 0))
        assert (await venue.becomes(rows[1], _S.FULFILLED)).transaction_hash is not None
        for _ in range(2):
            venue.chain.mine(CONFIRMATIONS)
            await venue.is_told()
        for row, status in zip(rows, (_S.EXPIRED, _S.FULFILLED, _S.EXPIRED), strict=True):
            assert (await venue.when(row, lambda found: found.is_final)).status is status


# --- Races and restarts ---------------------------------------------------------------------------------


@pytest.mark.parametrize("has_another", [False, True])
@pytest.mark.parametrize(("amount", "status"), [(30, _S.PENDING), (100, _S.FULFILLED)])
async def test_a_fill_that_is_read_between_the_check_of_an_order_and_its_keeping(
    tmp_path: Path, autojump_clock: object, has_another: bool, amount: int, status: OtcState
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        venue.chain.mine()
        if has_another:
            await venue.submit(an_order(2))
        checked = an_order()
        venue.chain.fills(checked, amount)
        venue.chain.mine()
        await venue.is_told()
        row = await venue.submit(checked)
        assert row is checked
        after = await venue.has_left(row, 100 - amount)
        assert (after.status, after.transaction_hash) == (status, await tx_of(venue))


async def test_a_cancellation_that_is_read_between_the_check_of_an_order_and_its_keeping(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        checked = an_order(status=_S.SUSPENDED)
        venue.chain.cancels(checked)
        venue.chain.mine()
        await venue.is_told()
        await venue.submit(checked)
        assert (await venue.becomes(checked, _S.CANCELLED)).transaction_hash == await tx_of(venue)


async def test_a_bulk_cancellation_that_is_read_between_the_check_of_an_order_and_its_keeping(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        venue.chain.mine()
        checked = an_order()
        venue.chain.cancels_until(MAKER, 1)
        venue.chain.mine()
        await venue.is_told()
        await venue.submit(checked)
        assert (await venue.becomes(checked, _S.CANCELLED)).transaction_hash == await tx_of(venue)


async def test_an_order_is_kept_once(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order())
        venue.chain.fills(row, 30)
        venue.chain.mine()
        part = await venue.has_left(row, 70)
        assert await venue.submit(an_order()) == part
        assert venue.orders.count_of(MAKER) == 1
        assert (await venue.row(row)) == part


async def test_logs_of_which_the_state_knows_nothing_are_caught_up_with_at_the_start(
    tmp_path: Path, autojump_clock: object
) -> None:
    """An engine of an earlier version, or a check of an order, leaves such logs."""
    count = VENUE_LOAD_ORDERS + 20
    chain = OtcChain()
    chain.has(MAKER, 1_000_000)
    chain.mine()
    rows = [an_order(number, amount=100) for number in range(count)]
    async with otc_store(tmp_path) as store:
        async with running(store, chain) as venue:
            for row in rows:
                await venue.submit(row)
        fills = [
            OtcFill(
                1, hash_of(1), hash_of(2), at, 0, row.order_hash, MAKER, BOB, WETH, USDC,
                amount32(at % 2 * 60 + 40), amount32(1), NOW_MS,
            )
            for at, row in enumerate(rows)
        ]  # fmt: skip
        assert await store.write(Unit(tuple(put(OTC_FILL, fill) for fill in fills))) == Done()
        async with running(store, chain, name="another") as venue:
            for at, row in enumerate(rows):
                after = await venue.has_left(row, 0 if at % 2 else 60)
                assert after.status is (_S.FULFILLED if at % 2 else _S.PENDING)
                assert after.transaction_hash == hash_of(2)


async def test_what_happened_while_nobody_looked_is_read_after_a_restart(
    tmp_path: Path, autojump_clock: object
) -> None:
    chain = OtcChain()
    chain.has(MAKER, 1_000)
    async with otc_store(tmp_path) as store:
        async with running(store, chain) as venue:
            rows = [await venue.submit(an_order(number)) for number in range(1, 5)]
            chain.fills(rows[0], 40)
            chain.fills(rows[1], 100)
            chain.mine()
            await venue.has_left(rows[0], 60)
            await venue.becomes(rows[1], _S.FULFILLED)
        chain.cut(0)  # in another sequence, and without one of them
        chain.mine()
        chain.has(MAKER, 1_000)
        chain.cancels(rows[2])
        chain.fills(rows[0], 60)
        chain.mine()
        chain.fills(rows[0], 40)
        chain.has(MAKER, 50)
        chain.mine()
        async with running(store, chain, name="another") as venue:
            assert (await venue.becomes(rows[0], _S.FULFILLED)).transaction_hash == chain.line[3].tx_hashes[0]
            assert (await venue.becomes(rows[2], _S.CANCELLED)).remaining == amount32(100)
            again = await venue.becomes(rows[1], _S.SUSPENDED)
            assert (amount_of(again.remaining), again.transaction_hash) == (100, None)
            assert funds_of(again) == (50, 0, 0)
            assert funds_of(await venue.becomes(rows[3], _S.SUSPENDED)) == (50, 0, 0)


async def test_the_same_logs_again_change_nothing_in_the_end(tmp_path: Path, autojump_clock: object) -> None:
    chain = OtcChain()
    chain.has(MAKER, 1_000)
    chain.mine()
    async with otc_store(tmp_path) as store, running(store, chain) as venue:
        rows = [await venue.submit(an_order(number)) for number in range(1, 4)]
        for row, amount in zip(rows, (40, 100, 10), strict=True):
            chain.fills(row, amount)
            chain.mine()
        chain.cancels(rows[2])
        chain.mine()
        await venue.becomes(rows[2], _S.CANCELLED)
        await venue.is_told()
        before = [await venue.row(row) for row in rows]
        await rescan(chain, store, 1, NOW_MS)
        chain.mine()
        await venue.is_told()
        await venue.when(rows[2], lambda found: found.status is _S.CANCELLED and found.is_final is False)
        after = [await venue.row(row) for row in rows]
        for one, other in zip(before, after, strict=True):
            assert (one.status, one.remaining, one.transaction_hash) == (
                other.status,
                other.remaining,
                other.transaction_hash,
            )
            assert funds_of(one) == funds_of(other)
        fills, cancels = await store.read(*(above(table, 1, 0, 100) for table in (OTC_FILL, OTC_CANCEL)))
        assert (len(fills), len(cancels)) == (3, 1)


async def test_an_order_of_which_a_part_was_filled_before_the_chain_was_followed(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        left = amount32(70)
        row = an_order(remaining=left, maker_balance=left, reserved=left, swappable=left)
        venue.chain.state.left[MAKER, row.order_hash] = 71
        venue.chain.mine()
        await venue.submit(row, a_document(row, filled_before=amount32(30)))
        venue.chain.mine()
        await venue.is_told()
        assert await venue.row(row) == row
        venue.chain.fills(row, 70)
        venue.chain.mine()
        assert (await venue.becomes(row, _S.FULFILLED)).remaining == amount32(0)


# --- Drafts ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("balance", "expected"), [(100, _S.PENDING), (99, _S.SUSPENDED)])
async def test_a_draft_waits_for_its_makers_contract(
    tmp_path: Path, autojump_clock: object, balance: int, expected: OtcState
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, balance)
        venue.chain.mine()
        row = await venue.submit(an_order(status=_S.DRAFT))
        await venue.is_told()
        await trio.sleep(5)
        waiting = await venue.row(row)
        assert (waiting.status, funds_of(waiting)) == (_S.DRAFT, (balance, 0, 0))
        venue.chain.accepts(row)
        venue.chain.mine()
        share = balance if expected is _S.PENDING else 0
        after = await venue.becomes(row, expected)
        assert funds_of(after) == (balance, share, share)
        assert len(venue.engine.chains[1].drafts._waiting) == 0


async def test_a_draft_expires_is_cancelled_or_is_filled_as_others_are(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        venue.chain.mine()
        rows = [
            await venue.submit(an_order(number, status=_S.DRAFT, expires_s=ends))
            for number, ends in ((1, venue.clock() // 1_000 + 3), (2, 1 << 40), (3, 1 << 40), (4, 1 << 40))
        ]
        await venue.becomes(rows[0], _S.EXPIRED)
        venue.chain.cancels(rows[1])
        venue.chain.fills(rows[2], 100)
        venue.chain.fills(rows[3], 10)
        venue.chain.mine()
        await venue.becomes(rows[1], _S.CANCELLED)
        await venue.becomes(rows[2], _S.FULFILLED)
        part = await venue.when(rows[3], lambda found: funds_of(found) == (90, 90, 90))
        assert part.status is _S.PENDING, "who filled it had the contract accept it"


async def test_a_draft_of_which_a_part_was_filled_before_has_been_signed(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        row = an_order(status=_S.DRAFT, remaining=amount32(70))
        venue.chain.state.left[MAKER, row.order_hash] = 71
        venue.chain.mine()
        await venue.submit(row, a_document(row, filled_before=amount32(30)))
        after = await venue.when(row, lambda found: funds_of(found) == (70, 70, 70))
        assert after.status is _S.PENDING


async def test_a_cancellation_that_is_taken_back_leaves_a_draft_as_it_was(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.mine()
        row = await venue.submit(an_order(status=_S.DRAFT))
        await venue.is_told()
        base = venue.chain.head.number
        venue.chain.cancels(row)
        venue.chain.mine()
        await venue.becomes(row, _S.CANCELLED)
        venue.chain.cut(base)
        venue.chain.mine(2)
        await venue.becomes(row, _S.DRAFT)
        venue.chain.accepts(row)
        venue.chain.mine()
        await venue.becomes(row, _S.SUSPENDED)


# --- Several engines ------------------------------------------------------------------------------------


def has_share(share: int, row: OtcOrderRow) -> bool:
    return amount_of(row.reserved) == share


async def test_makers_with_orders_in_two_engines_promise_no_more_than_they_have(
    tmp_path: Path, autojump_clock: object
) -> None:
    chain = OtcChain()
    chain.has(MAKER, 250)
    chain.mine()
    async with (
        otc_store(tmp_path) as store,
        running(store, chain, name="one", count=128) as one,
        running(store, chain, name="two", count=128) as two,
    ):
        held = one.leases.held()
        assert len(held) == len(two.leases.held()) == 128
        mine = next(shard for shard in range(256) if shard in held)
        others = next(shard for shard in range(256) if shard not in held)
        rows = [an_order(number, shard=shard) for number, shard in enumerate((mine, others, mine, others), 1)]
        for venue, row in zip((one, two, two, one), rows, strict=True):  # whoever is asked takes it
            await venue.submit(row)
        chain.mine()

        async def become(*shares: int) -> None:
            for row, share in zip(rows, shares, strict=True):
                venue = one if row.shard in held else two
                await venue.when(row, partial(has_share, share))

        await become(100, 100, 50, 0)
        chain.cancels(rows[0])
        chain.mine()
        await become(0, 100, 100, 50)
        chain.has(MAKER, 120)
        chain.mine()
        await become(0, 100, 20, 0)
