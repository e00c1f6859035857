"""Garbage collection of a serving process: objects that last are exempt, their cycles go in the end."""

import gc
import weakref
from collections.abc import Iterator

import pytest
import trio
from trio.testing import MockClock

from cambist.config.timeouts import GC_COUNT_EVERY, GC_FREEZE_AFTER_S, GC_FREEZE_EVERY_S
from cambist.engine.host.process.running import keep_collector

COUNTED_S = GC_COUNT_EVERY * GC_FREEZE_EVERY_S


class Thing:
    """An object that may refer to itself."""

    me: "Thing | None" = None


@pytest.fixture(autouse=True)
def thawed() -> Iterator[None]:
    yield
    gc.unfreeze()


def is_walked(thing: Thing) -> bool:
    """Whether passes of the garbage collector walk an object."""
    return any(each is thing for each in gc.get_objects())


async def test_an_object_that_lasts_is_exempt_soon_and_goes_with_its_last_reference(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    nursery.start_soon(keep_collector)
    early = Thing()
    await trio.sleep(GC_FREEZE_AFTER_S + GC_FREEZE_EVERY_S / 2)
    late = Thing()
    assert (is_walked(early), is_walked(late)) == (False, True)
    await trio.sleep(GC_FREEZE_EVERY_S)
    assert not is_walked(late)
    gone = weakref.ref(late)
    del late
    assert gone() is None
    nursery.cancel_scope.cancel()


async def test_cycles_of_exempt_objects_go_once_these_have_doubled(
    autojump_clock: MockClock, nursery: trio.Nursery
) -> None:
    nursery.start_soon(keep_collector)
    await trio.sleep(GC_FREEZE_AFTER_S + GC_FREEZE_EVERY_S / 2)
    thing = Thing()
    thing.me = thing
    gone = weakref.ref(thing)
    await trio.sleep(2 * GC_FREEZE_EVERY_S)
    del thing
    await trio.sleep(2 * COUNTED_S)
    assert gone() is not None
    others = [[None] for _ in range(gc.get_freeze_count() * 3 // 2)]
    await trio.sleep(2 * COUNTED_S)
    assert gone() is None
    assert others
    nursery.cancel_scope.cancel()
