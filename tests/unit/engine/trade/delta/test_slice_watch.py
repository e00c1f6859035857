"""Slices that wait for the clock of their chain: the times of looks, and the released orders."""

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import NodeUnavailable
from cambist.config.timeouts import SLICE_LOOK_S, SLICE_LOOK_S_MIN
from cambist.engine.chain.port import Header, Upcoming
from cambist.engine.trade.delta.auction.slice_watch import SliceWatch, WaitingSlices

NOW_S = 1_700_000_000
HASHES = [bytes([number]) * 32 for number in range(5)]


class Clock:
    """A chain that mines on demand: its clock goes on as trio's does, its latest block stays.

    Attributes:
        ahead_s: of the time at which it began.
        looks: times of requests, seconds since then.
        says: whether it tells the time of the next block.
        head_s: time of the latest block that the watch sees.
    """

    def __init__(self) -> None:
        self._began = trio.current_time()
        self.ahead_s = 0
        self.looks: list[float] = []
        self.says, self.is_away = True, False
        self.head_s = NOW_S
        self.released: list[tuple[bytes, int]] = []
        self.watch = SliceWatch(self, lambda: self.head_s, self._release)  # type: ignore[arg-type]

    @property
    def gone_s(self) -> float:
        return trio.current_time() - self._began

    async def upcoming(self) -> Upcoming:
        """As `Chain`."""
        await trio.lowlevel.checkpoint()
        self.looks.append(self.gone_s)
        if self.is_away:
            raise NodeUnavailable("nobody answers")
        made_s = NOW_S + int(self.gone_s) + self.ahead_s
        return Upcoming(Header(1, b"\1" * 32, bytes(32), self.head_s, 7), made_s if self.says else None)

    def _release(self, order_hash: bytes) -> None:
        self.released.append((order_hash, int(self.gone_s)))


@pytest.fixture
async def clock(nursery: trio.Nursery) -> Clock:
    clock = Clock()
    await nursery.start(clock.watch.run)
    return clock


async def test_a_slice_is_released_with_the_next_blocks_time_though_no_block_comes(
    clock: Clock, autojump_clock: object
) -> None:
    clock.watch.wait(HASHES[0], NOW_S + 60)
    await trio.sleep(59.9)
    assert clock.released == []
    await trio.sleep(0.2 + SLICE_LOOK_S_MIN)
    ((order_hash, at_s),) = clock.released
    assert (order_hash, at_s) == (HASHES[0], 60)
    assert len(clock.watch) == 0
    assert clock.watch.time_s == NOW_S + 60


async def test_a_chain_is_looked_at_now_and_then_however_many_slices_wait(
    clock: Clock, autojump_clock: object
) -> None:
    for number in range(1_000):
        clock.watch.wait(number.to_bytes(32, "big"), NOW_S + 3_600 + number)
    await trio.sleep(3_599)
    assert len(clock.looks) <= 3_600 / SLICE_LOOK_S + 1
    await trio.sleep(1_005)
    assert [order_hash for order_hash, _ in clock.released] == [
        number.to_bytes(32, "big") for number in range(1_000)
    ]
    before = len(clock.looks)
    await trio.sleep(3_600)
    assert len(clock.looks) == before, "nothing waits, nobody is asked"


async def test_a_clock_that_is_put_forward_without_a_block_is_noticed(
    clock: Clock, autojump_clock: object
) -> None:
    clock.watch.wait(HASHES[0], NOW_S + 3_600)
    await trio.sleep(10)
    clock.ahead_s = 3_600
    await trio.sleep(SLICE_LOOK_S + SLICE_LOOK_S_MIN)
    assert [order_hash for order_hash, _ in clock.released] == [HASHES[0]]


async def test_a_block_that_is_late_enough_is_noticed_at_once(clock: Clock, autojump_clock: object) -> None:
    clock.watch.wait(HASHES[0], NOW_S + 3_600)
    await trio.sleep(SLICE_LOOK_S + 1)
    clock.ahead_s = 3_600
    clock.head_s += 3_600
    await trio.sleep(2 * SLICE_LOOK_S_MIN)
    assert [order_hash for order_hash, _ in clock.released] == [HASHES[0]]


async def test_a_chain_behind_our_clock_or_ahead_of_it_is_taken_at_its_word(
    clock: Clock, autojump_clock: object
) -> None:
    clock.head_s = 0  # nobody has seen a block
    clock.ahead_s = -(10**6)
    clock.watch.wait(HASHES[0], NOW_S - 10**6 + 60)
    clock.watch.wait(HASHES[1], NOW_S)
    await trio.sleep(61)
    assert [order_hash for order_hash, _ in clock.released] == [HASHES[0]]
    clock.ahead_s = 10**6
    await trio.sleep(SLICE_LOOK_S + SLICE_LOOK_S_MIN)
    assert [order_hash for order_hash, _ in clock.released] == HASHES[:2]


async def test_a_head_that_lies_does_not_have_the_chain_asked_without_end(
    clock: Clock, autojump_clock: object
) -> None:
    """The head announces a block of the far future, which the chain itself does not have."""
    clock.head_s = NOW_S + 10**6
    clock.watch.wait(HASHES[0], NOW_S + 60)
    await trio.sleep(50)
    assert clock.released == []  # the chain's own word decides
    assert len(clock.looks) <= 50 / SLICE_LOOK_S_MIN + 1


async def test_a_node_that_does_not_tell_is_judged_by_its_latest_block(
    clock: Clock, autojump_clock: object
) -> None:
    clock.says = False
    clock.watch.wait(HASHES[0], NOW_S + 60)
    await trio.sleep(600)
    assert clock.released == []
    clock.head_s = NOW_S + 60
    await trio.sleep(2 * SLICE_LOOK_S_MIN)
    assert [order_hash for order_hash, _ in clock.released] == [HASHES[0]]


async def test_a_chain_that_is_away_is_asked_again(clock: Clock, autojump_clock: object) -> None:
    clock.is_away = True
    clock.watch.wait(HASHES[0], NOW_S + 60)
    await trio.sleep(100)
    assert clock.released == []
    clock.is_away = False
    await trio.sleep(SLICE_LOOK_S + SLICE_LOOK_S_MIN)
    assert [order_hash for order_hash, _ in clock.released] == [HASHES[0]]


async def test_a_slice_that_is_forgotten_is_not_released(clock: Clock, autojump_clock: object) -> None:
    for order_hash in HASHES[:2]:
        clock.watch.wait(order_hash, NOW_S + 60)
    clock.watch.forget(HASHES[0])
    clock.watch.forget(HASHES[2])
    clock.watch.wait(HASHES[3], NOW_S + 10)
    await trio.sleep(70)
    assert [order_hash for order_hash, _ in clock.released] == [HASHES[3], HASHES[1]]


# --- Pure -----------------------------------------------------------------------------------------------

ACTS = st.lists(
    st.tuples(st.sampled_from(["add", "remove", "take"]), st.sampled_from(HASHES), st.integers(0, 9)),
    max_size=60,
)


@given(ACTS)
def test_waiting_slices_are_a_mapping_from_which_the_first_ones_are_taken(
    acts: list[tuple[str, bytes, int]],
) -> None:
    waiting, model = WaitingSlices(), dict[bytes, int]()
    for act, order_hash, time_s in acts:
        if act == "add":
            waiting.add(order_hash, time_s)
            model[order_hash] = time_s
        elif act == "remove":
            waiting.remove(order_hash)
            model.pop(order_hash, None)
        else:
            due = {key for key, due_s in model.items() if due_s == min(model.values()) and due_s <= time_s}
            taken = waiting.take(time_s)
            assert (taken in due) if due else (taken is None)
            model.pop(taken or b"", None)
        assert (set(waiting), len(waiting)) == (set(model), len(model))
        assert waiting.first_s() == min(model.values(), default=None)
