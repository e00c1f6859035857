"""Readings of owners' funds: accounts, times and consequences."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
import trio

from cambist.codecs.messages.vocabulary import OrderStatus, OrderType
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.config.errors import NodeContradiction, NodeUnavailable
from cambist.config.limits import VENUE_FUNDS_ACCOUNTS_MAX, VENUE_FUNDS_STEPS_FREE
from cambist.config.timeouts import FUNDS_STEP_REST_S
from cambist.engine.store.units import Done
from cambist.engine.trade.delta.orders.funds import Fund, MissingFund
from cambist.engine.trade.delta.orders.life import SETTLE, cancel_asked
from cambist.engine.trade.orders import accounts_watch, apart
from cambist.engine.trade.orders.order_units import DELTA, Intent, step
from cambist.engine.trade.orders.step import OrderStep
from support.delta.bidding import ALICE, ONE, WETH, a_delta_order, a_twap
from support.delta.funds_stage import CONTRACT, following
from support.patience import until
from support.store.stores import BOB, NOW_MS

OWNERS, EACH = 2_500, 2
_S = OrderStatus


async def test_orders_of_thousands_of_owners_cost_a_read_for_each_account_that_is_touched(
    tmp_path: Path,
) -> None:
    owners = [number.to_bytes(20, "big") for number in range(1, OWNERS + 1)]
    async with following(tmp_path) as one:
        async with trio.open_nursery() as nursery:
            for number in range(EACH * OWNERS):
                order = a_delta_order(nonce=number, owner=owners[number % OWNERS])
                nursery.start_soon(one.submit, number, order)
        one.tell()
        await until(lambda: one.funds.statistics().read == OWNERS)
        assert len(one.chain.questions) == len(set(one.chain.questions)) == OWNERS
        assert max(one.chain.batches) == 2 * VENUE_FUNDS_ACCOUNTS_MAX
        assert len(one.chain.batches) <= 2 * OWNERS / VENUE_FUNDS_ACCOUNTS_MAX
        told = one.funds.statistics()
        assert (told.orders, told.accounts, told.waiting) == (EACH * OWNERS, OWNERS, 0)
        one.chain.questions.clear()
        one.chain.grow(20)
        one.tell()
        await one.settled()
        assert one.chain.questions == [], "blocks that touch nobody are no cause to ask"
        touched = {(WETH, owner) for owner in owners[:2]}
        for pair in touched:
            one.chain.balances[pair] = 0
        one.tell(*touched, (WETH, b"\xee" * 20))
        await until(lambda: one.funds.statistics().suspended == 2 * EACH)
        assert set(one.chain.questions) == touched
        assert one.orders.statistics().orders == {
            _S.PENDING: EACH * (OWNERS - 2),
            _S.SUSPENDED: 2 * EACH,
        }
        for pair in touched:
            one.chain.balances[pair] = ONE
        one.tell(*touched)
        await until(lambda: one.orders.statistics().orders == {_S.PENDING: EACH * OWNERS})
        assert one.funds.statistics().restored == 2 * EACH


async def test_an_order_is_held_against_what_is_settled_of_it_at_that_block(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.tell()
        await one.is_read()
        one.chain.fills[row.order_hash] = ONE // 2
        one.chain.balances[WETH, ALICE] = ONE // 2
        one.tell((WETH, ALICE))
        await one.is_read()
        assert one.live(row).filled == 0, "the fill is not read yet"
        assert one.live(row).row == row
        one.chain.balances[WETH, ALICE] -= 1
        one.tell((WETH, ALICE))
        await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.BALANCE, ONE // 2, ONE // 2 - 1),)


async def test_a_twap_goes_by_the_slices_that_are_settled(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        twap = msgspec.structs.replace(a_twap(), total_src_amount=10)
        row = await one.submit(1, twap, _S.PENDING, type=OrderType.LIMIT)
        one.chain.balances[WETH, ALICE] = 3
        one.chain.allowances[WETH, ALICE] = 9
        one.tell()
        live = await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.ALLOWANCE, 10, 9),)
        one.chain.fills[row.order_hash] = 1
        live.filled = 1
        one.funds.watch_owner(live)
        await one.becomes(row, _S.ACTIVE)
        live.filled = one.chain.fills[row.order_hash] = 2
        one.funds.watch_owner(live)
        await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.BALANCE, 4, 3),)


async def test_nobody_is_suspended_for_a_node_that_is_away_or_behind(tmp_path: Path) -> None:
    height: list[int | None] = [None]
    async with following(tmp_path, height=height) as one:
        row = await one.submit(1)
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await one.settled()
        assert one.funds.statistics().waiting == 1
        assert one.chain.batches == [], "the chain is not read to its head yet"
        height.append(2)
        failed = one.funds.statistics().failed
        await until(lambda: one.funds.statistics().failed > failed)
        assert one.live(row).row.status is _S.PENDING
        one.chain.is_away = True
        one.chain.grow()
        failed = one.funds.statistics().failed
        await until(lambda: one.funds.statistics().failed > failed)
        assert one.live(row).row.status is _S.PENDING
        one.chain.is_away = False
        await one.becomes(row, _S.SUSPENDED)


async def test_a_settlement_under_way_keeps_an_order_as_it_is_and_its_end_has_it_looked_at(
    tmp_path: Path,
) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.tell()
        await one.is_read()
        won = OrderStep(step(row, NOW_MS, status=_S.ACTIVE), (Intent(SETTLE, b""),))
        await one.orders.step(row.order_hash, lambda _: won)
        one.chain.balances[WETH, ALICE] = 0
        one.tell((WETH, ALICE))
        await one.is_read()
        live = one.live(row)
        assert (live.row.status, bool(one.lacks(row))) == (_S.ACTIVE, True)
        live.settling = None
        one.funds.watch_owner(live)
        await one.becomes(row, _S.SUSPENDED)


async def test_a_settlement_that_begins_after_the_read_comes_before_a_suspension(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        won = step(row, NOW_MS, status=_S.ACTIVE)
        unseen = DELTA.advanced(row, won, effects=(Intent(SETTLE, b""),))
        assert await one.store.write(unseen) == Done()
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await until(lambda: one.live(row).settling is not None)
        await one.settled()
        assert one.live(row).row == won
        assert one.funds.statistics().suspended == 0


async def test_each_deposit_is_of_one_order(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        rows = [
            await one.submit(number, a_delta_order(src_token=NATIVE_TOKEN, nonce=number)) for number in (1, 2)
        ]
        for row in rows:
            await one.becomes(row, _S.SUSPENDED)
            assert one.lacks(row) == (MissingFund(Fund.DEPOSIT, ONE, 0),)
        one.watch.begin_step()
        assert one.watch.fresh() == {(CONTRACT, ALICE)}
        one.chain.deposits[ALICE] = ONE
        one.tell((CONTRACT, ALICE), (CONTRACT, b"\xee" * 20))
        for row in rows:
            await one.becomes(row, _S.PENDING)


@pytest.mark.parametrize("fault", ["garbage", "refusing"])
async def test_a_token_that_does_not_tell_has_nothing(tmp_path: Path, fault: str) -> None:
    async with following(tmp_path) as one:
        getattr(one.chain, fault).add(WETH)
        row = await one.submit(1)
        one.tell()
        await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.BALANCE, ONE, None),)


async def test_an_order_that_waits_for_its_signature_is_read_and_keeps_its_status(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1, status=_S.AWAITING_SIGNATURE)
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await until(lambda: bool(one.lacks(row)))
        assert one.live(row).row == row
        await one.orders.step(row.order_hash, lambda row: OrderStep(step(row, NOW_MS, status=_S.PENDING)))
        await one.becomes(row, _S.SUSPENDED)


async def test_whose_order_has_ended_is_not_followed_any_more(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        rows = [await one.submit(number) for number in (1, 2)]
        await one.submit(3, a_delta_order(owner=BOB))
        assert (len(one.watch), one.funds.statistics().accounts) == (2, 2)
        for left, row in zip((2, 1), rows, strict=True):
            await one.orders.step(row.order_hash, lambda row: cancel_asked(row, NOW_MS))
            assert (len(one.watch), one.funds.statistics().accounts) == (left, left)


async def test_whose_funds_cannot_be_read_keeps_nobody_waiting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (accounts_watch, apart):
        monkeypatch.setattr(module, "FUNDS_PAUSE_S", 600.0)
    async with following(tmp_path) as one:
        strangers = [bytes([0xBB, number]) * 10 for number in range(20)]
        for number, owner in enumerate(strangers):
            await one.submit(100 + number, a_delta_order(nonce=100 + number, owner=owner))
        row = await one.submit(1)
        one.chain.unreadable.update(strangers)
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await one.becomes(row, _S.SUSPENDED)
        await until(lambda: one.funds.statistics().apart == len(strangers))
        asked = len(one.chain.batches)
        one.chain.balances[WETH, ALICE] = ONE
        one.tell((WETH, ALICE), *((WETH, owner) for owner in strangers))
        await one.becomes(row, _S.PENDING)
        assert len(one.chain.batches) == asked + 2, "who rests is not asked about with others"
        assert one.orders.statistics().orders == {_S.PENDING: 21}


async def test_an_account_that_cannot_be_read_is_read_again_by_and_by(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "FUNDS_PAUSE_S", 0.02)
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.chain.unreadable.add(ALICE)
        one.chain.balances[WETH, ALICE] = 0
        one.tell()
        await until(lambda: one.funds.statistics().failed >= 3)
        assert one.live(row).row.status is _S.PENDING
        one.chain.unreadable.clear()
        await one.becomes(row, _S.SUSPENDED)
        await until(lambda: one.funds.statistics().apart == 0)
        one.chain.unreadable.add(ALICE)
        one.tell((WETH, ALICE))
        await until(lambda: one.funds.statistics().apart == 1)
        await one.orders.step(row.order_hash, lambda row: cancel_asked(row, NOW_MS))
        assert one.funds.statistics().apart == 0


async def test_a_settlement_that_failed_does_not_wait_for_what_nobody_can_read(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        live = one.live(await one.submit(1))
        one.chain.unreadable.add(ALICE)
        assert not await one.funds.are_lacking(live, 1)
        one.chain.is_away = True
        with pytest.raises(NodeUnavailable):
            await one.funds.are_lacking(live, 1)
        one.chain.is_away = False
        one.chain.unreadable.clear()
        one.chain.balances[WETH, ALICE] = 0
        assert await one.funds.are_lacking(live, 1)
        assert one.lacks(live.row) == (MissingFund(Fund.BALANCE, ONE, 0),)
        with pytest.raises(NodeContradiction, match="at block 1, below 2"):
            await one.funds.are_lacking(live, 2)


class Counted(frozenset[tuple[bytes, bytes]]):
    """Pairs that note how many of them are looked at between two turns of others.

    Attributes:
        most: of them, so far.
        lately: since the last turn.
    """

    most = lately = 0

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        for pair in super().__iter__():
            self.lately += 1
            self.most = max(self.most, self.lately)
            yield pair


async def test_others_have_their_turn_while_very_many_accounts_are_touched(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.chain.balances[WETH, ALICE] = 0
        owners = [number.to_bytes(20, "big") for number in range(1, 10_001)]
        pairs = Counted((WETH, owner) for owner in (*owners, ALICE))
        one.funds.touched(1, pairs)
        assert pairs.most == 0
        while one.live(row).row.status is not _S.SUSPENDED:
            await trio.lowlevel.checkpoint()
            pairs.lately = 0
        assert 0 < pairs.most <= 1_000


async def test_a_token_without_events_is_found_by_the_slow_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(accounts_watch, "FUNDS_SLICE_S", 0.01)
    monkeypatch.setattr(accounts_watch, "FUNDS_RECHECK_S", 0.03)
    async with following(tmp_path) as one:
        rows = [
            await one.submit(number, a_delta_order(nonce=number, owner=bytes([number]) * 20))
            for number in range(1, 11)
        ]
        for row in rows:
            one.chain.balances[WETH, row.owner] = 0
        for row in rows:
            await one.becomes(row, _S.SUSPENDED)


async def test_an_owner_of_many_orders_who_moves_funds_has_them_read_again_after_a_rest(
    tmp_path: Path, autojump_clock: object
) -> None:
    many, owner, other = VENUE_FUNDS_STEPS_FREE + 10, b"\x01" * 20, b"\x02" * 20
    async with following(tmp_path) as one:
        rows = [
            await one.submit(number, a_delta_order(nonce=number, owner=owner))
            for number in range(1, many + 1)
        ]
        last = await one.submit(many + 1, a_delta_order(nonce=many + 1, owner=other))
        one.tell()
        await one.is_read()
        pairs = {(WETH, owner), (WETH, other)}
        began = trio.current_time()
        one.chain.balances |= dict.fromkeys(pairs, 0)
        one.tell(*pairs)
        await until(lambda: one.funds.statistics().suspended == many + 1)
        one.chain.balances |= dict.fromkeys(pairs, ONE)
        one.tell(*pairs)
        await one.becomes(last, _S.PENDING)
        told = one.funds.statistics()
        assert (told.restored, told.apart) == (1, 1), "who has few orders does not wait"
        await one.becomes(rows[0], _S.PENDING)
        assert trio.current_time() >= began + many * FUNDS_STEP_REST_S
        await until(lambda: one.funds.statistics().restored == many + 1)
