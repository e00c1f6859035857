"""Several kinds of orders that follow the same accounts of one chain."""

from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import pytest
import trio

from cambist.config.errors import ChainError, NodeUnavailable
from cambist.config.limits import VENUE_FUNDS_ACCOUNTS_MAX, VENUE_FUNDS_STEPS_FREE
from cambist.config.timeouts import (
    FUNDS_PAUSE_S,
    FUNDS_PAUSE_S_MAX,
    FUNDS_RECHECK_S,
    FUNDS_SLICE_S,
    FUNDS_STEP_REST_S,
    FUNDS_STEPS_REST_S_MAX,
)
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
        tries: time and accounts of each look, of those that fail too.
        broken: an account that no look survives; unreadable: accounts that the chain does not answer for.
        changes: account -> number of its orders that its next look changes.
        is_away: whether the node is away.
        slow: event that a look waits for; `is_slow` is true meanwhile.
    """

    broken: WatchedAccount | None = None
    unreadable: frozenset[WatchedAccount] = frozenset()
    is_away = False
    slow: trio.Event | None = None
    is_slow = False

    def __init__(self, watch: Watch) -> None:
        chain: Any = SimpleNamespace(chain_id=1)
        super().__init__(chain, watch, lambda: TOP)
        self.looks: list[tuple[tuple[WatchedAccount, ...], Mark]] = []
        self.tries: list[tuple[float, tuple[WatchedAccount, ...]]] = []
        self.changes: dict[WatchedAccount, int] = {}

    def follow(self, number: int, account: WatchedAccount) -> None:
        self._follow(hash_of(number), Followed(account))

    def forget(self, number: int) -> None:
        self._forget(hash_of(number))

    def changed(self, account: WatchedAccount) -> None:
        """An order of the account has changed."""
        self._mark(account)

    async def _look(self, accounts: Sequence[WatchedAccount], top: Mark) -> None:
        await trio.lowlevel.checkpoint()
        self.tries.append((trio.current_time(), tuple(accounts)))
        if self.is_away:
            raise NodeUnavailable("no node answers")
        if self.broken in accounts:
            raise ZeroDivisionError
        if self.unreadable.intersection(accounts):
            raise ChainError("out of gas")
        if self.slow is not None:
            self.is_slow = True
            await self.slow.wait()
        for account in accounts:
            self._changes(account, self.changes.pop(account, 0))
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


# --- Pace -----------------------------------------------------------------------------------------------


def accounts_of(count: int) -> list[WatchedAccount]:
    return [(WETH, number.to_bytes(20, "big")) for number in range(count)]


async def following(nursery: trio.Nursery, count: int, *, is_away: bool = False) -> tuple[Watch, Kind]:
    """A running kind of order that follows so many accounts."""
    watch = Watch()
    kind = Kind(watch)
    kind.is_away = is_away
    for number, account in enumerate(accounts_of(count)):
        kind.follow(number, account)
    await nursery.start(kind.run)
    return watch, kind


@pytest.mark.parametrize("count", [1, 61, 3_000, 3_001])
async def test_every_account_is_read_once_a_minute_at_most_fifty_a_second(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, count: int
) -> None:
    _, kind = await following(nursery, count)
    began, slices = trio.current_time(), max(60, -(-count // VENUE_FUNDS_ACCOUNTS_MAX))
    await trio.sleep((slices + 0.5) * FUNDS_SLICE_S)
    read = [account for _, accounts in kind.tries for account in accounts]
    assert read == accounts_of(count)
    sizes = dict.fromkeys(range(1, slices + 1), 0)
    for at_s, accounts in kind.tries:
        sizes[round((at_s - began) / FUNDS_SLICE_S)] += len(accounts)
    assert set(sizes.values()) <= {count // slices, -(-count // slices)}
    await trio.sleep(slices * FUNDS_SLICE_S)
    assert len([account for _, accounts in kind.tries for account in accounts]) == 2 * count
    nursery.cancel_scope.cancel()


async def test_reads_halve_and_pauses_double_while_the_node_is_away_and_recover_by_doubling(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    watch, kind = await following(nursery, 40, is_away=True)
    began = trio.current_time()
    tell(watch, kind)
    await trio.sleep(20 * FUNDS_PAUSE_S_MAX)
    pauses, at_s, pause_s = [], began, FUNDS_PAUSE_S
    while at_s < trio.current_time():
        pauses.append(at_s)
        at_s, pause_s = at_s + pause_s, min(2 * pause_s, FUNDS_PAUSE_S_MAX)
    assert [at_s for at_s, _ in kind.tries] == pytest.approx(pauses)
    assert [len(accounts) for _, accounts in kind.tries][:8] == [40, 25, 13, 7, 4, 2, 1, 1]
    assert kind.statistics().failed == len(pauses)
    kind.is_away = False
    kind.tries.clear()
    await until(lambda: kind.statistics().waiting == 0 and len(kind.looks) >= 6)
    assert [len(accounts) for _, accounts in kind.tries] == [1, 2, 4, 8, 16, 9]
    kind.tries.clear()
    kind.is_away = True
    kind.changed(accounts_of(1)[0])
    await until(lambda: len(kind.tries) == 2)
    first, second = (at_s for at_s, _ in kind.tries)
    assert second - first == pytest.approx(FUNDS_PAUSE_S), "as after the first failure"
    nursery.cancel_scope.cancel()


async def test_an_idle_time_makes_no_read_larger(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    watch, kind = await following(nursery, 30, is_away=True)
    kind.changed(accounts_of(1)[0])
    await until(lambda: len(kind.tries) == 4)
    kind.is_away = False
    await until(lambda: len(kind.looks) == 1)
    kind.tries.clear()
    tell(watch, kind)
    await until(lambda: kind.statistics().waiting == 0)
    assert [len(accounts) for _, accounts in kind.tries] == [8, 16, 6], "after reads of 4"
    nursery.cancel_scope.cancel()


async def test_an_account_that_cannot_be_read_is_found_and_paused_and_the_others_are_read(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    _, kind = await following(nursery, 5)
    accounts = accounts_of(5)
    kind.unreadable = frozenset(accounts[1:2])
    began = trio.current_time()
    for account in accounts:
        kind.changed(account)
    await until(lambda: kind.statistics().apart == 1 and kind.statistics().waiting == 0)
    read = [account for some, _ in kind.looks for account in some]
    assert sorted(read) == sorted([accounts[0], *accounts[2:]])
    assert kind.statistics().failed == 3
    kind.tries.clear()
    kind.changed(accounts[1])
    kind.changed(accounts[2])
    await until(lambda: len(kind.tries) == 3)
    assert [some for _, some in kind.tries] == [(accounts[2],), (accounts[1],), (accounts[1],)]
    times = [at_s - began for at_s, _ in kind.tries[1:]]
    assert times == pytest.approx([FUNDS_PAUSE_S, 3 * FUNDS_PAUSE_S])
    kind.unreadable = frozenset()
    await until(lambda: kind.statistics().apart == 0)
    kind.unreadable = frozenset(accounts[1:2])
    kind.tries.clear()
    kind.changed(accounts[1])
    await until(lambda: len(kind.tries) == 2)
    assert kind.tries[1][0] - kind.tries[0][0] == pytest.approx(FUNDS_PAUSE_S), "it was read meanwhile"
    nursery.cancel_scope.cancel()


@pytest.mark.parametrize(
    ("count", "rest_s"),
    [
        (VENUE_FUNDS_STEPS_FREE, 0),
        (VENUE_FUNDS_STEPS_FREE + 1, (VENUE_FUNDS_STEPS_FREE + 1) * FUNDS_STEP_REST_S),
        (10**6, FUNDS_STEPS_REST_S_MAX),
    ],
)
async def test_an_account_rests_by_the_number_of_its_orders_that_change_at_once(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, count: int, rest_s: float
) -> None:
    watch, kind = await following(nursery, 2)
    busy, other = accounts_of(2)
    kind.changes[busy] = count
    tell(watch, kind)
    await until(lambda: len(kind.looks) == 1)
    began = trio.current_time()
    assert kind.statistics().apart == (rest_s > 0)
    kind.changed(busy)
    kind.changed(other)
    await until(lambda: len([some for some, _ in kind.looks[1:] if busy in some]) == 1)
    found = next(at_s for at_s, some in kind.tries[1:] if busy in some)
    assert found - began == pytest.approx(rest_s, abs=0.01)
    assert kind.statistics().apart == 0
    nursery.cancel_scope.cancel()


async def test_an_account_that_is_forgotten_is_neither_read_nor_paused_any_more(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    _, kind = await following(nursery, 2)
    one, other = accounts_of(2)
    for account in (one, other):
        kind.changed(account)
    kind.forget(0)
    await until(lambda: len(kind.looks) == 1)
    assert kind.looks[0][0] == (other,)
    kind.changed(one)
    assert kind.statistics().waiting == 0
    kind.unreadable = frozenset({other})
    kind.changed(other)
    await until(lambda: kind.statistics().apart == 1)
    kind.forget(1)
    assert (kind.statistics().apart, kind.statistics().accounts) == (0, 0)
    kind.forget(1)
    nursery.cancel_scope.cancel()


async def test_an_account_that_is_forgotten_while_it_is_read_does_not_rest_when_it_returns(
    autojump_clock: trio.testing.MockClock, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    _, kind = await following(nursery, 1)
    (account,) = accounts_of(1)
    kind.changes[account] = VENUE_FUNDS_STEPS_FREE + 1
    look = kind._look

    async def forgets(accounts: Sequence[WatchedAccount], top: Mark) -> None:
        await look(accounts, top)
        kind.forget(0)
        kind.follow(0, account)

    monkeypatch.setattr(kind, "_look", forgets)
    kind.changed(account)
    await until(lambda: len(kind.looks) == 1)
    assert kind.statistics().apart == 0
    nursery.cancel_scope.cancel()
