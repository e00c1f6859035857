"""Funds of orders whose vaults are read with them, and of orders that change while they are read."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.codecs.trading_token import NATIVE_TOKEN
from cambist.config.errors import ChainError, Reverted, StoreUnavailable
from cambist.config.limits import VENUE_FUNDS_ORDERS_MAX, VENUE_VAULT_ORDERS_MAX, VENUE_VAULTS_LOOKED_MAX
from cambist.config.timeouts import VAULT_LOOK_S
from cambist.engine.chain.holdings import Holding
from cambist.engine.chain.index.ring import Mark
from cambist.engine.chain.index.watch import Watch
from cambist.engine.trade.delta.bids.bids import RoundOrder
from cambist.engine.trade.delta.orders.funds import Fund, MissingFund
from cambist.engine.trade.delta.orders.life import SETTLE, cancel_asked
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.vault import VaultWorth
from cambist.engine.trade.delta.settlement.funds_watch import FundsWatch
from cambist.engine.trade.orders.order_units import Intent, step
from cambist.engine.trade.orders.step import OrderStep
from support.delta.bidding import (
    ALICE,
    ONE,
    VAULT,
    WETH,
    a_delta_order,
    a_productive_order,
    a_round_order,
    asked_for,
)
from support.delta.funds_stage import CONTRACT, following
from support.patience import until
from support.store.stores import BOB, NOW_MS

_S = OrderStatus
SHARES = a_productive_order(use_shares=False, shares=2 * ONE)


def worth(shares: int, *, is_given: bool = True) -> VaultWorth:
    """Statement about the whole order: shares for its one WETH."""
    return VaultWorth(ONE, shares, ONE, is_given=is_given)


async def test_an_order_from_a_vault_goes_by_what_its_vault_states(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        one.chain.balances[VAULT, ALICE] = ONE + 5
        row = await one.submit(1, SHARES)
        await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.BALANCE, 2 * ONE, ONE + 5),)
        assert (one.revalued, one.live(row).worth) == ([], None)
        one.vaults.worth[row.order_hash] = worth(ONE + 5)
        one.tell((VAULT, ALICE))
        live = await one.becomes(row, _S.PENDING)
        assert (one.revalued, live.worth) == ([live], worth(ONE + 5))
        one.tell((VAULT, ALICE))
        await one.is_read()
        assert one.revalued == [live], "it states the same"
        one.vaults.worth[row.order_hash] = worth(ONE + 6)
        one.tell((VAULT, ALICE))
        await one.becomes(row, _S.SUSPENDED)
        assert one.lacks(row) == (MissingFund(Fund.BALANCE, ONE + 6, ONE + 5),)
        assert (one.revalued, live.worth) == ([live, live], worth(ONE + 6))
        del one.vaults.worth[row.order_hash]
        one.tell((VAULT, ALICE))
        await one.is_read()
        assert (one.revalued, live.worth) == ([live, live], worth(ONE + 6)), "it was not read"


async def test_a_look_before_a_settlement_keeps_what_the_vault_states(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        one.vaults.worth = {}
        row = await one.submit(1, SHARES)
        await one.is_read()
        live = one.live(row)
        one.vaults.worth[row.order_hash] = worth(ONE, is_given=False)
        assert await one.funds.are_lacking(live, 1)
        assert one.lacks(row) == (MissingFund(Fund.VAULT, ONE, 0),)
        assert (one.revalued, live.worth) == ([live], worth(ONE, is_given=False))
        one.vaults.worth[row.order_hash] = worth(ONE)
        assert not await one.funds.are_lacking(live, 1)
        assert (one.lacks(row), one.revalued) == ((), [live, live])


async def test_an_order_that_is_not_followed_any_more_keeps_no_statement(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1, SHARES)
        await one.is_read()
        live = one.live(row)
        await one.orders.step(row.order_hash, lambda row: cancel_asked(row, NOW_MS))
        one.vaults.worth[row.order_hash] = worth(3 * ONE)
        one.chain.balances[VAULT, ALICE] = 0
        assert await one.funds.are_lacking(live, 1)
        assert (one.revalued, live.worth, one.lacks(row)) == ([], None, ())


async def test_the_orders_that_another_engine_runs_now_are_forgotten_when_they_are_read(
    tmp_path: Path,
) -> None:
    async with following(tmp_path) as one:
        rows = [await one.submit(number, SHARES) for number in (1, 2)]
        await one.is_read()
        one.chain.balances[VAULT, ALICE] = 0
        one.orders.leave({rows[1].shard})
        assert rows[0].shard != rows[1].shard
        one.vaults.asked.clear()
        one.tell((VAULT, ALICE))
        await one.becomes(rows[1], _S.SUSPENDED)
        assert one.vaults.asked == [[rows[1].order_hash]]
        assert (one.funds.statistics().orders, one.lacks(rows[0])) == (1, ())


async def test_vaults_of_many_orders_are_first_asked_at_once_and_in_turns(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        count = VENUE_VAULT_ORDERS_MAX + 3
        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(one.submit, number, SHARES)
        for live in one.orders:
            one.vaults.worth[live.order_hash] = worth(ONE)
        one.vaults.asked.clear()
        one.tell((VAULT, ALICE))
        await until(lambda: len({key for asked in one.vaults.asked for key in asked}) == count)
        assert all(len(asked) <= VENUE_VAULT_ORDERS_MAX for asked in one.vaults.asked)
        assert len(one.vaults.asked) <= 3


# --- New blocks -----------------------------------------------------------------------------------------


class LookedAt(FundsWatch):
    """A watch of funds that records its looks, at a chain whose height a test sets."""

    def __init__(self) -> None:
        chain: Any = SimpleNamespace(chain_id=1)
        self.lives: dict[bytes, LiveOrder] = {}
        self.height: int | None = None
        self.looks: list[tuple[float, list[Any]]] = []
        super().__init__(
            chain,
            cast("Any", self.lives),
            Watch(),
            delta=CONTRACT,
            vaults=cast("Any", None),
            revalued=lambda _: None,
            read_to=lambda: None if self.height is None else Mark(self.height, bytes(32)),
            wall_ms=lambda: 0,
        )

    async def _look(self, accounts: Sequence[Any], top: Mark) -> None:
        await trio.lowlevel.checkpoint()
        self.looks.append((trio.current_time(), [*accounts]))

    async def _go_round(self) -> None:
        await trio.sleep_forever()  # no slow round: each look has a cause

    def add(self, asked: RoundOrder) -> None:
        """Follow an order."""
        row: Any = SimpleNamespace(order_hash=asked.order_hash, status=_S.ACTIVE)
        live = self.lives[asked.order_hash] = LiveOrder(row, asked.order, asked.document, asked.terms)
        self.watch_owner(live)

    def read_accounts(self) -> list[Any]:
        """Accounts of all looks so far, which are forgotten."""
        found = [account for _, accounts in self.looks for account in accounts]
        self.looks.clear()
        return found


async def test_accounts_of_vaults_are_read_again_after_each_new_block(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    watch = LookedAt()
    watch.add(asked_for(a_productive_order(nonce=1), 1))
    watch.add(asked_for(a_productive_order(nonce=2, owner=BOB), 2))
    watch.add(a_round_order(3))
    watch.height = 1
    await nursery.start(watch.run)
    accounts = [(VAULT, ALICE), (VAULT, BOB)]
    await trio.sleep(0.5 * VAULT_LOOK_S)
    assert watch.read_accounts() == accounts, "once they are followed"
    for height, expected in ((1, accounts), (1, []), (None, []), (2, accounts), (2, []), (5, accounts)):
        watch.height = height
        await trio.sleep(VAULT_LOOK_S)
        assert watch.read_accounts() == expected
    nursery.cancel_scope.cancel()


async def test_many_accounts_of_vaults_are_read_some_at_a_time_and_all_before_the_next_block_counts(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    watch, most = LookedAt(), VENUE_VAULTS_LOOKED_MAX
    owners = [number.to_bytes(20, "big") for number in range(2 * most + 1)]
    for number, owner in enumerate(owners):
        watch.add(asked_for(a_productive_order(nonce=number, owner=owner), number))
    watch.height = 1
    await nursery.start(watch.run)
    await trio.sleep(0.5 * VAULT_LOOK_S)
    assert len(watch.read_accounts()) == len(owners)
    accounts = [(VAULT, owner) for owner in owners]
    for number in range(6):
        watch.height += 1
        await trio.sleep(VAULT_LOOK_S)
        first = number % 3 * most
        assert watch.read_accounts() == accounts[first : first + most]
    nursery.cancel_scope.cancel()


# --- What is read, and what changes ---------------------------------------------------------------------


async def test_an_order_whose_settlement_is_under_way_is_not_asked_about(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.tell()
        await one.is_read()
        won = OrderStep(step(row, NOW_MS, status=_S.ACTIVE), (Intent(SETTLE, b""),))
        await one.orders.step(row.order_hash, lambda _: won)
        one.chain.balances[WETH, ALICE] = 0
        one.chain.batches.clear()
        one.tell((WETH, ALICE))
        await until(lambda: bool(one.lacks(row)))
        await one.is_read()
        assert one.chain.batches == [2], "its balance and its allowance"


async def test_a_change_of_an_order_that_changes_no_needs_is_no_cause_to_read(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.tell()
        await one.is_read()
        one.chain.batches.clear()
        for _ in range(3):
            await one.orders.step(
                row.order_hash, lambda row: OrderStep(step(row, row.updated_ms + 1, status=row.status))
            )
        await one.is_read()
        assert one.chain.batches == []


async def test_an_order_that_awaits_its_signature_is_not_read_at_each_change(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1, status=_S.AWAITING_SIGNATURE)
        one.tell()
        await one.is_read()
        one.chain.batches.clear()
        one.funds.watch_owner(one.live(row))
        await one.is_read()
        assert one.chain.batches == []


@pytest.mark.parametrize("state", ["used", "others"])
async def test_an_order_whose_nonce_is_used_needs_nothing_more(tmp_path: Path, state: str) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        getattr(one.chain, state).add(row.order_hash)
        one.chain.balances[WETH, ALICE] = 0
        live = one.live(row)
        assert not await one.funds.are_lacking(live, 1)
        one.tell()
        await one.is_read()
        assert (live.row.status, one.lacks(row)) == (_S.PENDING, ())


@pytest.mark.parametrize("answer", [Reverted("no"), b"", uint_word(0)[1:], uint_word(0), bytes(97)])
async def test_nobody_is_suspended_while_the_contract_does_not_tell_what_is_settled(
    tmp_path: Path, answer: bytes | Exception
) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1)
        one.chain.balances[WETH, ALICE] = 0
        one.chain.states = answer
        with pytest.raises(ChainError, match="the Delta contract does not answer"):
            await one.funds.are_lacking(one.live(row), 1)
        one.tell()
        await until(lambda: one.funds.statistics().failed > 0)
        assert one.live(row).row.status is _S.PENDING
        one.chain.states = None
        await one.becomes(row, _S.SUSPENDED)


@pytest.mark.parametrize("answer", [Reverted("no"), uint_word(ONE)[1:]])
async def test_nobody_is_suspended_while_the_contract_does_not_tell_a_deposit(
    tmp_path: Path, answer: bytes | Exception
) -> None:
    async with following(tmp_path) as one:
        one.chain.states = answer
        row = await one.submit(1, a_delta_order(src_token=NATIVE_TOKEN))
        await until(lambda: one.funds.statistics().failed > 0)
        assert one.live(row).row.status is _S.PENDING


async def test_a_suspension_that_the_store_did_not_take_is_tried_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with following(tmp_path) as one:
        rows = [await one.submit(number) for number in (1, 2)]
        one.chain.balances[WETH, ALICE] = 0
        taken = one.orders.step

        async def away(*_: Any) -> Any:
            monkeypatch.setattr(one.orders, "step", taken)
            raise StoreUnavailable("gone")

        monkeypatch.setattr(one.orders, "step", away)
        one.tell()
        for row in rows:
            await one.becomes(row, _S.SUSPENDED)
        assert (one.funds.statistics().failed, one.funds.statistics().suspended) == (1, 2)
        one.chain.balances[WETH, ALICE] = ONE
        one.tell((WETH, ALICE))
        for row in rows:
            await one.becomes(row, _S.PENDING)
        await until(lambda: one.funds.statistics().restored == 2)
        assert one.funds.statistics().suspended == 2


async def test_more_orders_than_are_asked_about_at_once_are_all_suspended(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        count = 2 * VENUE_FUNDS_ORDERS_MAX + 1
        async with trio.open_nursery() as nursery:
            for number in range(count):
                nursery.start_soon(one.submit, number)
        one.chain.balances[WETH, ALICE] = 0
        one.chain.batches.clear()
        one.tell()
        await until(lambda: one.funds.statistics().suspended == count)
        assert sorted(one.chain.batches) == [1, 2, VENUE_FUNDS_ORDERS_MAX, VENUE_FUNDS_ORDERS_MAX]


async def test_claims_go_by_the_funds_that_were_read_last_while_their_account_is_followed(
    tmp_path: Path,
) -> None:
    async with following(tmp_path) as one:
        rows = [await one.submit(number) for number in (1, 2)]
        lives = [one.live(row) for row in rows]
        assert not one.funds.claims.claim(lives), "they were not read"
        one.chain.balances[WETH, ALICE] = 2 * ONE
        one.tell()
        await one.is_read()
        assert one.funds._found == {(WETH, ALICE): Holding(2 * ONE, 10**30)}
        assert one.funds.claims.claim(lives)
        one.funds.claims.release([live.order_hash for live in lives])
        for row in rows:
            assert one.funds._found
            await one.orders.step(row.order_hash, lambda row: cancel_asked(row, NOW_MS))
        assert one.funds._found == {}
        assert not one.funds.claims.claim(lives)


async def test_the_funds_of_a_settlement_under_way_are_claimed_until_it_has_ended(tmp_path: Path) -> None:
    async with following(tmp_path) as one:
        rows = [await one.submit(number) for number in (1, 2)]
        one.chain.balances[WETH, ALICE] = ONE
        one.tell()
        await one.is_read()
        won = OrderStep(step(rows[0], NOW_MS, status=_S.ACTIVE), (Intent(SETTLE, b""),))
        await one.orders.step(rows[0].order_hash, lambda _: won)
        other = one.live(rows[1])
        assert not one.funds.claims.claim([other])
        live = one.live(rows[0])
        live.settling = None
        one.funds.watch_owner(live)
        assert one.funds.claims.claim([other])


async def test_an_order_that_leaves_this_engine_while_its_vault_is_asked_is_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with following(tmp_path) as one:
        row = await one.submit(1, SHARES)
        await one.is_read()
        worths = one.vaults.worths

        async def leaves(orders: Iterable[LiveOrder], block_hash: bytes) -> dict[bytes, VaultWorth]:
            found = await worths(orders, block_hash)
            one.orders.leave(())
            return found

        monkeypatch.setattr(one.vaults, "worths", leaves)
        one.vaults.worth[row.order_hash] = worth(ONE)
        one.tell((VAULT, ALICE))
        await until(lambda: one.funds.statistics().orders == 0)
        assert (one.funds.statistics().apart, one.revalued) == (0, [])
