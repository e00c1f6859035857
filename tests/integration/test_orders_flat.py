"""Orders that rest, are filled, and are cancelled leave nothing behind in the process that ran them.

The short form of `bench.load_orders`; `make test-long` runs the whole of it.
"""

import gc
from typing import Any

import msgspec
import pytest
from bench.load_orders import orders
from bench.loop_passes import Spread
from bench.waiting_orders import KINDS, TIMER, WHOLE, Engine, an_order, waited

from cambist.engine.trade.delta.settlement.funds_watch import FundsWatch
from cambist.engine.trade.orders.order_engines import OrderTimer
from cambist.engine.trade.orders.scheduler import Scheduler
from cambist.engine.trade.otc import funds_watch as otc_funds
from cambist.engine.trade.otc.live_orders import LiveOtc
from support.examples import IS_LONG

pytestmark = [pytest.mark.needs("pyrevm"), pytest.mark.seldom]

COUNT, WAVES, WAITING = (10_000, 10, 2_000) if IS_LONG else (120, 3, 500)
FEW = 30
SWAP_KB_MAX = 60  # of memory for a swap: the embedded chain keeps a block of each, and its receipts
SWAPS_MIN = 2_000  # fewer say nothing of memory


@pytest.mark.turns
async def test_tasks_timers_and_indexes_are_flat_over_many_orders() -> None:
    load = await orders(COUNT, WAVES)
    warm, rest, *waves, crossed, ended = load.samples
    resting = (COUNT - warm.filled) // 2
    assert (rest.resting, rest.timers, rest.funds) == (resting, warm.timers + resting, resting)
    assert {(one.timers, one.resting, one.funds, one.orders) for one in waves} == {
        (rest.timers, resting, resting, resting)
    }
    assert crossed.resting == crossed.funds == crossed.timers - warm.timers == resting // 2
    assert (ended.orders, ended.resting, ended.pairs, ended.funds, ended.accounts) == (0, 0, 0, 0, 0)
    assert ended.timers == warm.timers
    assert max(one.tasks for one in (rest, *waves, crossed, ended)) <= warm.tasks + 3
    assert ended.filled == COUNT - ended.resting - crossed.resting
    swaps = waves[-1].filled - rest.filled
    if swaps >= SWAPS_MIN:
        assert 1e3 * (waves[-1].rss_mb - rest.rss_mb) / swaps <= SWAP_KB_MAX


@pytest.mark.parametrize(
    ("owner", "method"), [(Scheduler, "cancel"), (FundsWatch, "_forget")], ids=["timers", "funds"]
)
@pytest.mark.turns
async def test_what_is_left_behind_is_seen(
    monkeypatch: pytest.MonkeyPatch, owner: type[Any], method: str
) -> None:
    monkeypatch.setattr(owner, method, lambda *_: None)
    with pytest.raises(AssertionError, match=r"Sample\("):
        await orders(FEW, 1)


@pytest.mark.parametrize("what", KINDS)
async def test_whoever_waits_is_measured_from_nothing_to_nothing(what: str) -> None:
    found = await waited(what, 200, counts_memory=True)
    assert found.start_us > 0
    assert found.end_us > 0
    assert found.data_bytes > 1_000
    assert 100 < found.bytes_each < 10_000


async def test_a_timer_takes_a_sixth_of_the_memory_of_a_task() -> None:
    task, timer, whole = [(await waited(what, WAITING, counts_memory=True)).bytes_each for what in KINDS]
    assert list(KINDS)[1:] == [TIMER, WHOLE]
    assert 6 * timer <= task
    assert whole < task


def test_the_collector_walks_nothing_of_orders_that_wait() -> None:
    engine = Engine()
    gc.collect()
    before = len(gc.get_objects())
    for number in range(1_000):
        engine.orders._put(an_order(number))
    gc.collect()
    assert set(engine.waiting().values()) == {1_000}
    assert len(gc.get_objects()) - before < 100


@pytest.mark.parametrize("kind", [LiveOtc, OrderTimer, otc_funds._FollowedOtc])
def test_nor_of_otc_orders(kind: type[msgspec.Struct]) -> None:
    assert kind.__struct_config__.gc is False


def test_an_order_that_waits_is_everywhere_once() -> None:
    engine = Engine()
    engine.orders._put(an_order(1))
    assert set(engine.waiting().values()) == {1}


def test_durations_are_told_by_their_share() -> None:
    spread = Spread()
    for number in range(1_000):
        spread.add(0.000_05 if number < 990 else 0.012_34)
    assert [round(spread.at_ms(share), 1) for share in (0.5, 0.99, 0.999, 1.0)] == [0.1, 0.1, 12.4, 12.4]
