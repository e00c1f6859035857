"""Readings of makers' funds: accounts, times and consequences, on a chain that counts its requests."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.messages.vocabulary import OtcState
from cambist.config.errors import StoreUnavailable
from cambist.config.limits import (
    VENUE_DRAFTS_MAX,
    VENUE_FUNDS_ACCOUNTS_MAX,
    VENUE_FUNDS_ORDERS_MAX,
    VENUE_FUNDS_STEPS_FREE,
)
from cambist.config.timeouts import DRAFT_LOOK_S, FUNDS_RECHECK_S, FUNDS_STEP_REST_S
from cambist.crypto.eip1271 import SELECTOR4
from cambist.engine.chain.index.ring import Mark
from cambist.engine.chain.port import At, Header
from cambist.engine.store.rows import OrderEvent, OtcOrderRow, amount32, amount_of
from cambist.engine.store.tables import OTC_FILL
from cambist.engine.store.units import Done, Unit, put
from cambist.engine.trade.otc.document import OtcDocument
from cambist.engine.trade.otc.funds_watch import OtcAccount
from support.otc.otc_chain import MOST, OtcChain
from support.otc.otc_engine import (
    CONFIRMATIONS,
    MAKER,
    OtcVenue,
    a_document,
    a_permit,
    an_order,
    funds_of,
    otc_store,
    otc_venue,
    running,
    simulated_ms,
)
from support.otc.otc_logs import a_fill
from support.patience import until
from support.store.stores import ALICE, BOB, CAROL, NOW_MS, USDC, WETH

_S = OtcState


def owner(number: int) -> bytes:
    return (1_000 + number).to_bytes(20, "big")


def with_permit(row: OtcOrderRow, permit: bytes) -> OtcDocument:
    return a_document(row, permit=permit)


async def stand(venue: OtcVenue, rows: list[OtcOrderRow]) -> list[tuple[OtcState, int]]:
    """(status, what is reserved) of each."""
    found = [await venue.row(row) for row in rows]
    return [(row.status, amount_of(row.reserved)) for row in found]


async def test_orders_follow_the_funds_of_their_maker(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 250)
        venue.chain.mine()
        rows = [await venue.submit(an_order(number)) for number in (1, 2, 3)]
        await venue.is_told()
        assert await stand(venue, rows) == [(_S.PENDING, 100), (_S.PENDING, 100), (_S.PENDING, 50)]
        for balance, allowance, expected in (
            (99, 10**6, [(_S.SUSPENDED, 0), (_S.SUSPENDED, 0), (_S.SUSPENDED, 0)]),
            (100, 10**6, [(_S.PENDING, 100), (_S.PENDING, 0), (_S.PENDING, 0)]),
            (10**6, 150, [(_S.PENDING, 100), (_S.PENDING, 50), (_S.PENDING, 0)]),
            (10**6, 0, [(_S.SUSPENDED, 0), (_S.SUSPENDED, 0), (_S.SUSPENDED, 0)]),
            (0, 0, [(_S.SUSPENDED, 0), (_S.SUSPENDED, 0), (_S.SUSPENDED, 0)]),
            (10**6, 10**6, [(_S.PENDING, 100), (_S.PENDING, 100), (_S.PENDING, 100)]),
        ):
            venue.chain.has(MAKER, balance)
            venue.chain.allows(MAKER, allowance)
            venue.chain.mine()
            await venue.is_told()
            assert await stand(venue, rows) == expected
            assert venue.funds.is_short(rows[0]) == (expected[0][0] is _S.SUSPENDED)
        told = venue.funds.statistics()
        assert (told.orders, told.accounts) == (3, 1)
        assert (told.suspended, told.restored) == (6, 6)


async def test_a_fill_that_is_taken_back_before_anybody_hears_of_it_gives_the_share_back(
    tmp_path: Path, autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order())
        venue.chain.mine()
        await venue.is_told()
        began = trio.current_time()
        hear, is_heard = venue.orders.hear, trio.Event()

        async def late(events: Sequence[OrderEvent]) -> None:
            await is_heard.wait()
            await hear(events)

        monkeypatch.setattr(venue.orders, "hear", late)
        venue.chain.fills(row, 40)
        venue.chain.mine()
        await venue.is_told()
        assert amount_of((await venue.row(row)).remaining) == 60
        venue.chain.cut(venue.chain.head.number - 1)
        venue.chain.mine(2)
        await venue.is_told()
        is_heard.set()
        after = await venue.has_left(row, 100)
        await venue.when(after, lambda found: funds_of(found) == (100, 100, 100))
        assert trio.current_time() - began < FUNDS_RECHECK_S / 2, "long before the slow round"


async def test_a_fill_of_which_the_row_knows_nothing_is_noticed_with_the_funds(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order())
        await venue.is_told()
        assert await venue.store.write(Unit((put(OTC_FILL, a_fill(row, 40)),))) == Done()
        venue.chain.state.left[MAKER, row.order_hash] = 61
        venue.chain.has(MAKER, 60)
        venue.chain.mine()
        after = await venue.has_left(row, 60)
        assert funds_of(await venue.when(after, lambda found: funds_of(found)[0] == 60)) == (60, 60, 60)


async def test_what_an_order_leaves_goes_to_the_younger_ones(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 200)
        venue.chain.mine()
        rows = [await venue.submit(an_order(number)) for number in (1, 2, 3)]
        await venue.is_told()
        venue.chain.cancels(rows[0])
        venue.chain.mine()
        await venue.when(rows[2], lambda found: amount_of(found.reserved) == 100)
        venue.chain.fills(rows[1], 60)
        venue.chain.mine()
        await venue.has_left(rows[1], 40)
        await venue.is_told()
        assert (await stand(venue, rows))[1:] == [(_S.PENDING, 40), (_S.PENDING, 100)]
        assert funds_of(await venue.row(rows[1])) == (40, 40, 40)


async def test_a_second_order_is_judged_by_no_block_before_its_submission(
    tmp_path: Path, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        await venue.submit(an_order(1))
        await venue.is_told()
        has_head, goes_on, block = trio.Event(), trio.Event(), venue.chain.block
        tops: list[int] = []

        async def late(at: At = None) -> Header | None:
            header = await block(at)
            if at is None and not goes_on.is_set():
                has_head.set()
                await goes_on.wait()
            return header

        async def look(accounts: Sequence[OtcAccount], top: Mark, look: Any = venue.funds._look) -> None:
            tops.append(top.number)
            await look(accounts, top)

        monkeypatch.setattr(venue.chain, "block", late)
        monkeypatch.setattr(venue.funds, "_look", look)
        await has_head.wait()
        venue.chain.mine()
        await venue.submit(an_order(2))
        goes_on.set()
        await venue.is_told()
        assert tops == [venue.chain.head.number], "the step under way had an older head"


async def test_orders_of_other_tokens_and_makers_have_funds_of_their_own(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        for account in ((MAKER, WETH), (MAKER, USDC), (BOB, WETH)):
            venue.chain.has(account[0], 100, account[1])
        venue.chain.mine()
        rows = [
            await venue.submit(row)
            for row in (an_order(1), an_order(2, maker_asset=USDC), an_order(3, maker=BOB))
        ]
        await venue.is_told()
        venue.chain.questions.clear()
        venue.chain.has(MAKER, 0, USDC)
        venue.chain.mine()
        await venue.becomes(rows[1], _S.SUSPENDED)
        assert venue.chain.questions == [(USDC, MAKER)]
        assert [status for status, _ in await stand(venue, rows)] == [_S.PENDING, _S.SUSPENDED, _S.PENDING]


async def test_a_maker_whose_orders_of_one_token_are_over_is_still_read_for_another(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.has(MAKER, 100, USDC)
        venue.chain.mine()
        over = await venue.submit(an_order(1, maker_asset=USDC))
        await venue.submit(an_order(2))
        venue.chain.cancels(over)
        venue.chain.mine(CONFIRMATIONS + 1)
        await venue.when(over, lambda row: row.is_final)
        await venue.is_told()
        venue.chain.questions.clear()
        venue.funds.others_changed(MAKER)
        await venue.is_told()
        assert venue.chain.questions == [(WETH, MAKER)]


async def test_only_what_is_touched_is_read_and_each_account_once(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        count = 3 * VENUE_FUNDS_ACCOUNTS_MAX
        for number in range(count):
            venue.chain.has(owner(number), 1_000)
        venue.chain.mine()
        for number in range(3 * count):
            await venue.submit(an_order(number, maker=owner(number % count)))
        venue.chain.mine()
        await venue.is_told()
        venue.chain.questions.clear()
        venue.chain.batches.clear()
        read = venue.funds.statistics().read
        venue.chain.mine(5)
        await venue.is_told()
        assert venue.chain.batches == [], "blocks that touch nobody are no cause to ask"
        for number in (3, 4):
            venue.chain.has(owner(number), 0)
        venue.chain.has(CAROL, 5)
        venue.chain.mine()
        await venue.is_told()
        assert sorted(venue.chain.questions) == [(WETH, owner(3)), (WETH, owner(4))]
        assert sorted(venue.chain.batches) == [2, 4], "what is left of orders, and balances with allowances"
        assert venue.funds.statistics().read == read + 2
        assert venue.orders.statistics().orders == {_S.PENDING: 3 * count - 6, _S.SUSPENDED: 6}


async def test_a_maker_of_many_orders_is_read_and_written_in_parts(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        count = 2 * VENUE_FUNDS_ORDERS_MAX + 50
        venue.chain.has(MAKER, 100 * count)
        venue.chain.mine()
        rows = [await venue.submit(an_order(number)) for number in range(count)]
        venue.chain.mine()
        await venue.is_told()
        assert venue.orders.statistics().orders == {_S.PENDING: count}
        venue.chain.batches.clear()
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        await venue.is_told()
        assert sorted(venue.chain.batches) == [2, 3]
        assert [share for _, share in await stand(venue, rows)] == [100] + [0] * (count - 1)
        venue.chain.has(MAKER, 0)
        venue.chain.mine()
        await until(lambda: venue.orders.statistics().orders == {_S.SUSPENDED: count})


# --- Unreadable funds -----------------------------------------------------------------------------------


async def test_nobody_is_suspended_for_a_node_that_is_away(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order())
        await venue.is_told()
        venue.chain.is_away = True
        venue.chain.has(MAKER, 0)
        venue.chain.mine()
        await trio.sleep(100)
        assert await venue.row(row) == row
        venue.chain.is_away = False
        await venue.becomes(row, _S.SUSPENDED)


async def test_changes_that_the_store_does_not_take_are_made_soon_after(
    tmp_path: Path, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order())
        await venue.is_told()
        with monkeypatch.context() as away:
            failed = trio.Event()

            async def step_all(*_: Any) -> None:
                failed.set()
                await trio.lowlevel.checkpoint()
                raise StoreUnavailable("the store is away")

            away.setattr(venue.orders, "step_all", step_all)
            venue.chain.has(MAKER, 0)
            venue.chain.mine()
            await failed.wait()
        began = trio.current_time()
        await venue.when(row, lambda found: found.status is _S.SUSPENDED)
        assert trio.current_time() - began < FUNDS_RECHECK_S / 2, "long before the slow round"


async def test_a_token_that_does_not_tell_has_nothing(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.garbage.add(WETH)
        row = await venue.submit(an_order())
        other = await venue.submit(an_order(2, maker_asset=USDC, maker=BOB))
        venue.chain.has(BOB, 100, USDC)
        venue.chain.mine()
        assert funds_of(await venue.becomes(row, _S.SUSPENDED)) == (0, 0, 0)
        await venue.is_told()
        assert (await venue.row(other)).status is _S.PENDING


async def test_whose_funds_cannot_be_read_keeps_nobody_waiting(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        makers = [owner(number) for number in range(40)]
        for maker in makers:
            venue.chain.has(maker, 100)
        venue.chain.mine()
        rows = [await venue.submit(an_order(number, maker=maker)) for number, maker in enumerate(makers)]
        venue.chain.mine()
        await venue.is_told()
        odd = rows[7]
        venue.chain.unreadable.add(odd.maker)
        for row in rows:
            venue.chain.has(row.maker, 0)
        venue.chain.mine()
        for row in rows:
            if row is not odd:
                await venue.becomes(row, _S.SUSPENDED)
        assert (await venue.row(odd)).status is _S.PENDING, "nobody knows better"
        assert venue.funds.statistics().apart == 1
        venue.chain.unreadable.clear()
        await venue.becomes(odd, _S.SUSPENDED)


async def test_a_token_without_events_is_found_by_the_slow_round(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order())
        await venue.is_told()
        venue.chain.has_quietly(MAKER, 50)
        venue.chain.mine()
        await venue.is_told()
        assert (await venue.row(row)).status is _S.PENDING
        await trio.sleep(2 * FUNDS_RECHECK_S)  # of the round that was under way it is no part
        assert (await venue.row(row)).status is _S.SUSPENDED


# --- Permits --------------------------------------------------------------------------------------------


async def test_a_permit_stands_for_an_allowance_as_long_as_the_token_takes_it(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        venue.chain.allows(MAKER, 0)
        permit = a_permit()
        venue.chain.state.permits[permit] = 100
        venue.chain.mine()
        row = an_order(1)
        await venue.submit(row, with_permit(row, permit))
        other = await venue.submit(an_order(2))
        venue.chain.mine()
        assert funds_of(await venue.becomes(other, _S.SUSPENDED)) == (0, 0, 0)
        await venue.is_told()
        assert await stand(venue, [row, other]) == [(_S.PENDING, 100), (_S.SUSPENDED, 0)]
        venue.chain.state.permits.clear()
        venue.chain.has(MAKER, 1_001)
        venue.chain.mine()
        await venue.becomes(row, _S.SUSPENDED)
        venue.chain.allows(MAKER, 100)
        venue.chain.mine()
        assert funds_of(await venue.becomes(row, _S.PENDING)) == (100, 100, 100)


@pytest.mark.parametrize("is_kept_over_a_restart", [False, True])
async def test_a_permit_whose_deadline_passes_is_looked_at_then(
    tmp_path: Path, autojump_clock: object, is_kept_over_a_restart: bool
) -> None:
    chain = OtcChain()
    async with otc_store(tmp_path) as store:
        chain.has(MAKER, 1_000)
        chain.allows(MAKER, 0)
        now_s = simulated_ms() // 1_000
        permit, endless = a_permit(deadline_s=now_s + 20), a_permit(deadline_s=MOST)
        chain.state.permits |= {permit: 100, endless: 100}
        chain.mine()
        row, other = an_order(1), an_order(2)
        async with running(store, chain) as venue:
            await venue.submit(row, with_permit(row, permit))
            await venue.submit(other, with_permit(other, endless))
            await venue.is_told()
            if not is_kept_over_a_restart:
                await _suspended_in_time(venue, row, now_s + 20)
        if is_kept_over_a_restart:
            async with running(store, chain) as venue:
                await venue.is_told()
                await _suspended_in_time(venue, row, now_s + 20)
                assert (await venue.row(other)).status is _S.PENDING


async def _suspended_in_time(venue: OtcVenue, row: OtcOrderRow, deadline_s: int) -> None:
    """An order whose permit is over is SUSPENDED soon after, and not before."""
    while simulated_ms() // 1_000 < deadline_s:
        assert (await venue.row(row)).status is _S.PENDING
        await trio.sleep(1)
    await venue.becomes(row, _S.SUSPENDED)
    assert simulated_ms() // 1_000 <= deadline_s + 3, "long before the slow round of all accounts"


async def test_a_permit_is_not_tried_where_it_cannot_help(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 1_000)
        venue.chain.allows(MAKER, 99)
        late, sound = a_permit(deadline_s=NOW_MS // 1_000 - 1), a_permit()
        venue.chain.state.permits = {late: 100, sound: 100}
        venue.chain.mine()
        rows = [an_order(1), an_order(2, amount=99), an_order(3)]
        for row, permit in zip(rows, (late, sound, sound), strict=True):
            await venue.submit(row, with_permit(row, permit))
        venue.chain.mine()
        await venue.becomes(rows[0], _S.SUSPENDED)
        await venue.is_told()
        assert [status for status, _ in await stand(venue, rows)] == [_S.SUSPENDED, _S.PENDING, _S.PENDING]
        assert (await venue.row(rows[2])).maker_balance == amount32(100)


async def test_the_same_permit_of_many_orders_is_tried_once(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 10_000)
        venue.chain.allows(MAKER, 0)
        permit = a_permit(1_000)
        venue.chain.state.permits[permit] = 1_000
        venue.chain.mine()
        rows = [an_order(number) for number in range(8)]
        for row in rows:
            await venue.submit(row, with_permit(row, permit))
        venue.chain.mine()
        await venue.is_told()
        venue.chain.batches.clear()
        venue.chain.has(MAKER, 9_999)
        venue.chain.mine()
        await venue.is_told()
        assert sorted(venue.chain.batches[:2]) == [1, 2], "these two at once"
        assert venue.chain.batches[2:] == [2], "the permits that the funds make necessary"
        assert await stand(venue, rows) == [(_S.PENDING, 100)] * 8


async def test_so_many_permits_of_an_account_are_tried_the_oldest_orders_first(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        count = VENUE_FUNDS_ORDERS_MAX + 5
        venue.chain.has(MAKER, 100 * count)
        venue.chain.allows(MAKER, 0)
        permits = [a_permit(nonce=number) for number in range(count)]
        venue.chain.state.permits = dict.fromkeys(permits, 100)
        venue.chain.mine()
        rows = [an_order(number, status=_S.SUSPENDED) for number in range(count)]
        for row, permit in zip(rows, permits, strict=True):
            await venue.submit(row, with_permit(row, permit))
        venue.chain.mine()
        await venue.is_told()
        assert [status for status, _ in await stand(venue, rows)] == [_S.PENDING] * (count - 5) + [
            _S.SUSPENDED
        ] * 5
        assert {(await venue.row(row)).maker_balance for row in rows[-5:]} == {amount32(0)}
        assert max(venue.chain.batches) <= 2 * VENUE_FUNDS_ORDERS_MAX


# --- Drafts ---------------------------------------------------------------------------------------------


async def test_drafts_are_asked_about_by_turns(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        count = 2 * VENUE_DRAFTS_MAX + 10
        rows = [
            await venue.submit(an_order(number, maker=owner(number), status=_S.DRAFT))
            for number in range(count)
        ]
        venue.chain.mine()
        await venue.is_told()
        for row in rows:
            venue.chain.accepts(row)
        asked = venue.chain.calls[SELECTOR4]
        venue.chain.mine()
        await venue.is_told()
        await trio.sleep(3 * DRAFT_LOOK_S + 0.1)
        assert venue.chain.calls[SELECTOR4] - asked == count, "nobody twice before all were asked"
        for row in rows:
            await venue.becomes(row, _S.SUSPENDED)
        assert venue.engine.statistics().chains["1"].drafts.waiting == 0


async def test_drafts_are_asked_about_once_a_block(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        row = await venue.submit(an_order(status=_S.DRAFT))
        venue.chain.mine()
        await venue.is_told()
        await trio.sleep(60 * DRAFT_LOOK_S)
        asked = venue.chain.calls[SELECTOR4]
        await trio.sleep(60 * DRAFT_LOOK_S)
        assert venue.chain.calls[SELECTOR4] == asked, "anybody may post drafts, and they may wait for ever"
        venue.chain.accepts(row)
        venue.chain.mine()
        await venue.becomes(row, _S.SUSPENDED)
        assert venue.chain.calls[SELECTOR4] == asked + 1


async def test_a_contract_that_cannot_be_asked_keeps_no_other_draft_waiting(
    tmp_path: Path, autojump_clock: object
) -> None:
    async with otc_venue(tmp_path) as venue:
        makers = [owner(number) for number in range(20)]
        rows = [
            await venue.submit(an_order(number, maker=maker, status=_S.DRAFT))
            for number, maker in enumerate(makers)
        ]
        venue.chain.unreadable.add(makers[5])
        for row in rows:
            venue.chain.accepts(row)
        venue.chain.mine()
        for row in rows:
            if row is not rows[5]:
                await venue.becomes(row, _S.SUSPENDED)
        assert (await venue.row(rows[5])).status is _S.DRAFT
        venue.chain.unreadable.clear()
        await venue.becomes(rows[5], _S.SUSPENDED)


async def test_drafts_wait_for_a_node_that_is_away(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        row = await venue.submit(an_order(status=_S.DRAFT, maker=ALICE))
        venue.chain.accepts(row)
        venue.chain.mine()
        venue.chain.is_away = True
        await trio.sleep(20)
        assert (await venue.row(row)).status is _S.DRAFT
        venue.chain.is_away = False
        venue.chain.mine()
        await venue.becomes(row, _S.SUSPENDED)


async def test_a_maker_who_moves_funds_back_and_forth_has_the_venue_write_within_bounds(
    tmp_path: Path, autojump_clock: object
) -> None:
    """Of many orders of one maker, that is: a maker of few is followed block by block."""
    many, blocks = VENUE_FUNDS_STEPS_FREE + 10, 60
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.has(BOB, 100)
        venue.chain.mine()
        rows = [await venue.submit(an_order(number)) for number in range(many)]
        few = await venue.submit(an_order(many, maker=BOB))
        await venue.is_told()
        begun = trio.current_time()
        before, steps = (await venue.row(few)).version, venue.orders.statistics().steps
        for block in range(blocks):
            for maker in (MAKER, BOB):
                venue.chain.has(maker, 99 if block % 2 == 0 else 100)
            venue.chain.mine()
            await venue.is_told()
            await trio.sleep(0.05)
        assert (await venue.row(few)).version == before + blocks
        took_s = trio.current_time() - begun
        written = venue.orders.statistics().steps - steps - blocks
        assert many <= written <= many + took_s / FUNDS_STEP_REST_S
        assert written < many * blocks / 2, "not with each block"
        venue.chain.has(MAKER, 0)
        venue.chain.mine()
        for row in rows:
            last = await venue.when(row, lambda found: found.maker_balance == amount32(0))
            assert last.status is _S.SUSPENDED
