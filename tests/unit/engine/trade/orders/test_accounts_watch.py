"""Several kinds of orders that follow the same accounts of one chain."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from cambist.config.errors import NodeUnavailable
from cambist.config.timeouts import FUNDS_PAUSE_S, FUNDS_PAUSE_S_MAX, FUNDS_RECHECK_S
from cambist.engine.chain.index.ring import Mark
from cambist.engine.chain.index.watch import Watch, WatchedAccount
from cambist.engine.trade.orders.accounts_watch import AccountsWatch, Followed
from support.patience import until
from support.store.stores import ALICE, BOB, WETH, hash_of

TOP = Mark(7, hash_of(7))


class Kind(AccountsWatch[WatchedAccount, Followed[WatchedAccount]]):
    """A kind of order that records its looks.

    Attributes:
        looks: at accounts, with the block that the chain is read to.
        broken: an account that no look survives.
        is_away: whether the node is away.
        slow: event that a look waits for; `is_slow` is true meanwhile.
    """

    broken: WatchedAccount | None = None
    is_away = False
    slow: trio.Event | None = None
    is_slow = False

    def __init__(self, watch: Watch) -> None:
        chain: Any = SimpleNamespace(chain_id=1)
        super().__init__(chain, watch, lambda: TOP)
        self.looks: list[tuple[tuple[WatchedAccount, ...], Mark]] = []

    def follow(self, number: int, account: WatchedAccount) -> None:
        self._follow(hash_of(number), Followed(account))

    def forget(self, number: int) -> None:
        self._forget(hash_of(number))

    def changed(self, account: WatchedAccount) -> None:
        """An order of the account has changed."""
        self._mark(account)

    async def _look(self, accounts: Sequence[WatchedAccount], top: Mark) -> None:
        await trio.lowlevel.checkpoint()
        if self.is_away:
            raise NodeUnavailable("no node answers")
        if self.broken in accounts:
            raise ZeroDivisionError
        if self.slow is not None:
            self.is_slow = True
            await self.slow.wait()
        self.looks.append((tuple(accounts), top))
        self._reads += len(accounts)

    def _pair(self, account: WatchedAccount) -> WatchedAccount:
        return account

    def _account(self, pair: WatchedAccount) -> WatchedAccount:
        return pair


async def broken_for_bob(nursery: trio.Nursery) -> tuple[Watch, Kind]:
    """A running kind of order that fails whenever it looks at BOB's account."""
    watch = Watch()
    kind = Kind(watch)
    kind.broken = WETH, BOB
    await nursery.start(kind.run)
    return watch, kind


def tell(watch: Watch, *kinds: Kind) -> None:
    """Report changed accounts, as an indexer does after its next block."""
    watch.begin_step()
    fresh = watch.fresh()
    for kind in kinds:
        kind.touched(1, fresh)


@pytest.mark.parametrize("later", ["before it is told", "after it is told"])
async def test_whoever_follows_what_another_follows_reads_it_too(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, later: str
) -> None:
    watch = Watch()
    first, second = Kind(watch), Kind(watch)
    for kind in (first, second):
        await nursery.start(kind.run)
    first.follow(1, (WETH, ALICE))
    if later == "after it is told":
        tell(watch, first, second)
        await until(lambda: first.looks)
        assert second.looks == []
    second.follow(2, (WETH, ALICE))
    tell(watch, first, second)
    await until(lambda: first.looks and second.looks)
    assert second.looks == [(((WETH, ALICE),), TOP)]
    tell(watch, first, second)
    assert watch.fresh() == frozenset()
    nursery.cancel_scope.cancel()


async def test_an_account_is_followed_until_nobody_has_an_order_of_it(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    watch = Watch()
    first, second = Kind(watch), Kind(watch)
    await nursery.start(second.run)
    for number in (1, 2):
        first.follow(number, (WETH, ALICE))
    second.follow(3, (WETH, ALICE))
    second.follow(4, (WETH, BOB))
    tell(watch, second)
    await until(lambda: second.statistics().waiting == 0)
    second.looks.clear()
    for number in (1, 2):
        first.forget(number)
    assert (len(watch), first.statistics().accounts) == (2, 0)
    watch.refresh()
    tell(watch, second)
    await until(lambda: second.looks)
    assert {account for accounts, _ in second.looks for account in accounts} == {(WETH, ALICE), (WETH, BOB)}
    second.forget(3)
    assert len(watch) == 1
    second.forget(4)
    assert (len(watch), second.statistics().orders) == (0, 0)
    nursery.cancel_scope.cancel()


async def test_what_another_kind_follows_is_not_read(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    watch = Watch()
    first, second = Kind(watch), Kind(watch)
    for kind in (first, second):
        await nursery.start(kind.run)
    first.follow(1, (WETH, ALICE))
    second.follow(2, (WETH, BOB))
    tell(watch, first, second)
    await until(lambda: first.looks and second.looks)
    assert first.looks == [(((WETH, ALICE),), TOP)]
    assert second.looks == [(((WETH, BOB),), TOP)]
    nursery.cancel_scope.cancel()


async def test_whoever_meets_another_accounts_bug_is_looked_at_soon(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    watch, kind = await broken_for_bob(nursery)
    for number, owner in enumerate((ALICE, BOB, hash_of(3)[:20], hash_of(4)[:20])):
        kind.follow(number, (WETH, owner))
    began = trio.current_time()
    tell(watch, kind)
    await until(lambda: len(kind.looks) == 3)
    assert {owner for ((_, owner),), _ in kind.looks} == {ALICE, hash_of(3)[:20], hash_of(4)[:20]}
    assert trio.current_time() - began < 4 * FUNDS_PAUSE_S, "long before the slow round"
    kind.broken = None
    await until(lambda: len(kind.looks) == 4)
    assert trio.current_time() - began < FUNDS_RECHECK_S
    nursery.cancel_scope.cancel()


async def test_an_account_that_rested_is_read_again_where_it_changes_while_it_is_read(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    watch, kind = await broken_for_bob(nursery)
    kind.follow(1, (WETH, BOB))
    began = trio.current_time()
    tell(watch, kind)
    await until(lambda: kind.statistics().apart == 1)
    kind.broken, kind.slow = None, trio.Event()
    await until(lambda: kind.is_slow)
    kind.changed((WETH, BOB))
    kind.slow.set()
    await until(lambda: len(kind.looks) == 2)
    assert trio.current_time() - began < FUNDS_RECHECK_S, "long before the slow round"
    assert kind.statistics().apart == 0
    nursery.cancel_scope.cancel()


async def test_a_node_that_is_away_lengthens_no_accounts_pause(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    watch, kind = await broken_for_bob(nursery)
    for number, owner in enumerate((ALICE, BOB)):
        kind.follow(number, (WETH, owner))
    tell(watch, kind)
    await until(lambda: kind.statistics().apart == 1)
    kind.broken, kind.is_away = None, True
    kind.changed((WETH, ALICE))
    await trio.sleep(1.5 * FUNDS_RECHECK_S)
    kind.is_away, returned = False, trio.current_time()
    kind.looks.clear()
    await until(lambda: ((WETH, BOB),) in [accounts for accounts, _ in kind.looks])
    assert trio.current_time() - returned <= 2 * FUNDS_PAUSE_S_MAX
    nursery.cancel_scope.cancel()
