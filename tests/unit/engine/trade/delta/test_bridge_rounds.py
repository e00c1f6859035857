"""Rounds of the tasks at the ends of bridges: when each begins, and what one reads of its chain."""

from collections.abc import Callable, Sequence
from typing import Any

import pytest
import trio
from msgspec.structs import replace
from structlog.testing import capture_logs
from trio.testing import MockClock

from cambist.config.errors import ChainError, LogsRefused, StoreUnavailable
from cambist.config.limits import BRIDGE_RANGE_BLOCKS_MAX
from cambist.config.timeouts import BRIDGE_LOOK_S, BRIDGE_PAUSE_S, BRIDGE_PAUSE_S_MAX, BRIDGE_ROUND_S
from cambist.engine.chain.port import At, Log, LogFilter
from cambist.engine.store.rows import DeltaOrderRow
from cambist.engine.trade.delta.bridging import bridge_rounds
from cambist.engine.trade.delta.bridging.bridge_places import BridgePlace
from cambist.engine.trade.delta.bridging.bridge_rounds import BridgeRounds
from cambist.engine.trade.delta.bridging.bridged_orders import BridgedOrder, BridgedOrders
from support.chain.bridge_logs import PARTIES
from support.chain.scripted_chain import ScriptedChain, tx
from support.store.stores import a_delta_order

ORDER, OTHER = b"\x01" * 32, b"\x02" * 32
CONTRACT, TOPIC = b"\x0c" * 20, b"\x07" * 32
ALL = LogFilter((CONTRACT,), ((TOPIC,),))
_NOTHING: Any = None


class NotedRounds(BridgeRounds):
    """Rounds that note when each begins and with which orders, and that end the task after some.

    Attributes:
        followed: hashes of the orders that are followed.
        noted: time and orders of each round.
        acts: what the rounds do, one after the other; the rounds after them do nothing.
    """

    def __init__(self, chain: ScriptedChain, *acts: Callable[[], Any]) -> None:
        unreal: Any = chain
        unknown: Any = Unknown()
        super().__init__(BridgePlace(unreal, 3), BridgedOrders(_NOTHING, unknown, lambda: 0), lambda: 0)
        self.followed = [ORDER]
        self.noted: list[tuple[float, list[bytes]]] = []
        self.acts = list(acts)
        self._began_s = 0.0
        self._left = 0
        self._scope = trio.CancelScope()

    def _followed(self) -> list[bytes]:
        return self.followed

    async def _round(self, hashes: Sequence[bytes]) -> None:
        self.noted.append((trio.current_time() - self._began_s, list(hashes)))
        if len(self.noted) == self._left:
            self._scope.cancel()
        await self._begin()
        if self.acts:
            await self.acts.pop(0)()

    async def runs(self, rounds: int, within_s: float = 3_600) -> list[float]:
        """Run until so many rounds have begun; when each began."""
        self._began_s, self._left = trio.current_time(), rounds
        with self._scope, trio.move_on_after(within_s):
            async with trio.open_nursery() as nursery:
                await nursery.start(self.run)
        return [at_s for at_s, _ in self.noted]


class Unknown:
    """Live orders of which none is in memory."""

    def get(self, _: bytes) -> None:
        return None


def fails(error: Exception) -> Callable[[], Any]:
    async def fail() -> None:
        raise error

    return fail


def rounds_of(chain: ScriptedChain | None = None, *acts: Callable[[], Any]) -> NotedRounds:
    return NotedRounds(chain or ScriptedChain(), *acts)


# --- When rounds begin ----------------------------------------------------------------------------------


async def test_rounds_begin_with_a_new_head_a_call_or_after_a_while(autojump_clock: MockClock) -> None:
    chain = ScriptedChain()
    task = rounds_of(chain)

    async def acts() -> None:
        await trio.sleep(1.5 * BRIDGE_LOOK_S)
        chain.grow([])
        await trio.sleep(BRIDGE_LOOK_S / 4)
        task.wake()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(acts)
        began = await task.runs(5)
    assert began == pytest.approx([BRIDGE_LOOK_S * times for times in (0, 1, 1.5, 1.75, 2.75)])


async def test_a_task_without_orders_asks_nothing_until_it_is_called(autojump_clock: MockClock) -> None:
    chain = ScriptedChain()
    task = rounds_of(chain)
    task.followed = []
    assert not await task.look()

    async def acts() -> None:
        await trio.sleep(10)
        assert chain.asked == {}
        task.wake()
        await trio.sleep(10)
        assert chain.asked == {}
        task.followed = [ORDER]
        task.wake()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(acts)
        began = await task.runs(2)
    assert began == pytest.approx([20, 20 + BRIDGE_LOOK_S])


async def test_a_call_during_a_round_is_followed_by_another_at_once(autojump_clock: MockClock) -> None:
    task = rounds_of()

    async def is_called() -> None:
        task.wake()
        await trio.sleep(0.25)

    task.acts = [is_called]
    assert await task.runs(3) == pytest.approx([0, 0.25, 0.25 + BRIDGE_LOOK_S])


async def test_a_round_with_more_to_do_is_followed_by_another_at_once(autojump_clock: MockClock) -> None:
    task = rounds_of()

    async def finds_more() -> None:
        task._is_again = True

    task.acts = [finds_more]
    assert await task.look()
    assert not await task.look()
    task.acts, task.noted = [finds_more], []
    assert await task.runs(3) == pytest.approx([0, 0, BRIDGE_LOOK_S])


async def test_a_task_that_is_held_up_pauses_longer_and_longer_and_says_why(
    autojump_clock: MockClock,
) -> None:
    failures = [ChainError("away"), StoreUnavailable("away too"), ValueError("odd")]
    others = [ChainError("away")] * 5
    task = rounds_of(None, *map(fails, [*failures, *others]))
    with capture_logs() as logs:
        began = await task.runs(len(task.acts) + 1)
    pauses = [min(BRIDGE_PAUSE_S * 2**number, BRIDGE_PAUSE_S_MAX) for number in range(len(began) - 1)]
    assert began == pytest.approx([sum(pauses[:number]) for number in range(len(began))])
    events = [one["event"] for one in logs]
    assert events == ["bridged orders wait", "bridged orders are stuck"]
    assert logs[0]["detail"] == str(failures[0])
    assert task.fault == str(others[0])


@pytest.mark.parametrize("error", [ChainError("away"), ValueError("odd")], ids=["expected", "a bug"])
async def test_a_whole_round_ends_the_fault_and_the_long_pauses(
    autojump_clock: MockClock, error: Exception
) -> None:
    seen: list[str] = []
    task = rounds_of()

    async def notes() -> None:
        seen.append(task.fault)

    fail = fails(error)
    task.acts = [fail, fail, notes, notes, fail]
    began = await task.runs(6)
    whole = 3 * BRIDGE_PAUSE_S
    assert began[2:] == pytest.approx(
        [whole, whole + BRIDGE_LOOK_S, whole + 2 * BRIDGE_LOOK_S, whole + 2 * BRIDGE_LOOK_S + BRIDGE_PAUSE_S]
    )
    assert seen == [str(error) if isinstance(error, ChainError) else repr(error), ""]


async def test_a_round_that_takes_too_long_is_given_up_and_begun_anew(autojump_clock: MockClock) -> None:
    task = rounds_of(None, trio.sleep_forever)
    began = await task.runs(2, 2 * BRIDGE_ROUND_S)
    assert began == pytest.approx([0, BRIDGE_ROUND_S + BRIDGE_PAUSE_S])
    assert task.fault == "a round took too long"


async def test_a_node_that_is_away_while_a_head_is_awaited_ends_no_task(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = ScriptedChain()

    async def away(_: bytes) -> None:
        await trio.lowlevel.checkpoint()
        raise ChainError("no answer")

    monkeypatch.setattr(chain, "wait_head", away)
    assert await rounds_of(chain).runs(3) == pytest.approx([0, BRIDGE_LOOK_S, 2 * BRIDGE_LOOK_S])


async def test_orders_that_are_followed_no_more_get_one_last_look(autojump_clock: MockClock) -> None:
    """It forgets what the task still knows of them."""
    task = rounds_of()
    task.followed = [ORDER, OTHER]
    await task.look()
    task.followed = []
    for _ in range(3):
        await task.look()
    assert [orders for _, orders in task.noted] == [[ORDER, OTHER], []]


async def test_a_quiet_order_rests_until_it_changes_or_is_followed_anew(autojump_clock: MockClock) -> None:
    """Another process may have followed it meanwhile, and have left work behind."""
    task = rounds_of()
    row = a_delta_order(1, order_hash=ORDER, version=0)  # as an order that is not in memory
    quiet = BridgedOrder(row, PARTIES, (), ())

    async def rests() -> None:
        task._rest_of([quiet, BridgedOrder(replace(row, order_hash=OTHER), PARTIES, (), ())], quiet.__eq__)

    task.followed, task.acts = [ORDER, OTHER], [rests]
    await task.look()
    await task.look()
    task.followed = []
    await task.look()
    task.followed, task.acts = [ORDER], [lambda: _rests(task, replace(row, version=1))]
    await task.look()
    await task.look()
    assert [orders for _, orders in task.noted] == [[ORDER, OTHER], [OTHER], [], [ORDER], [ORDER]]


async def _rests(task: NotedRounds, row: DeltaOrderRow) -> None:
    task._rest_of([BridgedOrder(row, PARTIES, (), ())], lambda _: True)


async def test_a_look_has_time_until_its_bound(
    autojump_clock: MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bridge_rounds, "BRIDGE_SEARCH_S", 3.0)
    task = rounds_of()
    went_on: list[bool] = []

    async def goes_on() -> None:
        for wait_s in (0.0, 2.5, 0.5):
            await trio.sleep(wait_s)
            went_on.append(task._goes_on())

    task.acts = [goes_on]
    assert await task.look()
    assert went_on == [True, True, False]


# --- What a round reads ---------------------------------------------------------------------------------


async def test_a_refused_range_halves_the_next_and_an_answered_one_doubles_it() -> None:
    chain = ScriptedChain(range_blocks_max=3)
    task = rounds_of(chain)
    spans: list[int] = []

    async def asks(blocks: int) -> None:
        assert (await task._logs(ALL, 5, 4 + blocks) is None) is (blocks > 3)
        spans.append(task._span)

    for blocks in (9, 4, 3, 2):
        await asks(blocks)
    assert spans == [4, 2, 4, 8]
    assert task._is_again
    task._is_again, task._span = False, BRIDGE_RANGE_BLOCKS_MAX // 2 + 1
    await asks(1)
    assert (spans[-1], task._is_again) == (BRIDGE_RANGE_BLOCKS_MAX, False)
    chain.range_blocks_max = 1
    await asks(2 * 3)
    assert spans[-1] == 3
    chain.range_blocks_max = 0
    with pytest.raises(LogsRefused):
        await task._logs(ALL, 5, 5)


async def test_each_block_is_read_once_in_a_round() -> None:
    chain = ScriptedChain()
    chain.grow([], [], [])
    task = rounds_of(chain)
    head = await task._begin()
    assert head == chain.head
    for number in (1, 3, 1, 2, 9, 9):
        assert await task._at(number) == (chain.line[number].header if number < 4 else None)
    assert chain.asked == {"block": 4}  # the head, 1, 2, and one that is not there
    chain.cut(2)
    chain.grow([])
    await task._begin()
    assert await task._at(3) == chain.head != head


async def test_a_block_is_there_gone_or_not_yet_shown() -> None:
    chain = ScriptedChain()
    chain.grow([], [])
    task = rounds_of(chain)
    head = await task._begin()
    hashes = [block.header.hash for block in chain.line]
    assert [await task._still_there(number, hashes[number], head) for number in range(3)] == [True] * 3
    assert await task._still_there(2, hashes[1], head) is False
    assert await task._still_there(3, hashes[2], head) is None
    chain.cut(0)
    await task._begin()
    assert await task._still_there(2, hashes[2], head) is False  # though the node has no such block now


async def test_a_log_is_taken_with_the_receipt_and_the_block_that_have_it() -> None:
    chain = ScriptedChain()
    chain.grow([tx(b"one", (CONTRACT, ((TOPIC,), b"")), (CONTRACT, ((TOPIC,), b"\x01")))], [])
    task = rounds_of(chain)
    await task._begin()
    first, second = await chain.logs(ALL, 0, 2)
    assert (await task._receipt_of(second)).logs == (first, second)
    assert await task._header_of(first) == chain.line[1].header
    unknown = Log(CONTRACT, (TOPIC,), b"", 1, first.block_hash, b"\x99" * 32, 0, 0)
    elsewhere = Log(CONTRACT, (TOPIC,), b"\x02", 1, first.block_hash, first.tx_hash, 0, 0)
    for log in (unknown, elsewhere):
        with pytest.raises(ChainError, match="no receipt of the log 0 in block 1"):
            await task._receipt_of(log)


async def test_a_log_whose_block_is_not_shown_is_not_taken() -> None:
    """Logs, receipts and blocks may come from different nodes, of which one is behind."""
    chain = ScriptedChain()
    chain.grow([], [tx(b"one", (CONTRACT, ((TOPIC,), b"")))])
    task = rounds_of(chain)
    (log,) = await chain.logs(ALL, 0, 2)
    for shown in (None, replace(chain.head, hash=b"\x99" * 32)):
        for read in (task._receipt_of, task._header_of):
            task._heights = {2: shown}
            with pytest.raises(ChainError, match="is not shown now"):
                await read(log)


async def test_a_node_without_a_latest_block_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    chain = ScriptedChain()

    async def nothing(at: At = None) -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(chain, "block", nothing)
    with pytest.raises(ChainError, match="no latest block"):
        await rounds_of(chain).look()
