"""Bounds of the waits of tests for another task or process: one table, multiplied by one number.

A bound of this table is reached only where something is broken. A test about lateness, expiry or the order of
events uses none of them: it owns the clock, or its late side waits for an event.

The number is TEST_PATIENCE, or it is measured once, when the suite starts: the time that a fixed piece of
work takes here and now, against the time on a quiet machine. Workers and what they start inherit it.
"""

import os
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

T = TypeVar("T")
_WORK = 12_000_000  # additions
_QUIET_S = 0.4  # for them
_CORES = 2  # of a machine where the bounds of this table suffice for the workers of `make test`


def _measured() -> float:
    """Factor of this machine: how much slower it is now than a quiet one, and of how many cores it lacks.

    The measurement sees only the load of others, since no worker runs yet. The workers of `make test` and the
    processes that they start share the cores: one core carries three workers, each of two cores carries two.
    """
    began = time.perf_counter()
    sum(range(_WORK))
    slower = max(1.0, (time.perf_counter() - began) / _QUIET_S)
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return slower * max(1.0, _CORES / cores)


PATIENCE = float(os.environ.setdefault("TEST_PATIENCE", f"{_measured():.1f}"))
"""Factor of every bound; 1 or more."""

PATIENCE_S = 45 * PATIENCE
"""Bound of one event: an answer, a status, the end of a process. The product's look at every order, once a
minute, comes after this bound: a test that passes only by that look fails."""
STORY_S = 10 * PATIENCE_S
"""Bound of a story of many such events."""
ROUND_S = 30 * PATIENCE
"""Length of a round of an auction that ends earlier because every agent answers."""
LATE_ROUND_S = 3 * PATIENCE
"""Length of a round that an agent or a maker lets pass; all others answer within it."""
GATHER_S = 0.3 * PATIENCE
"""Time in which a second order joins the first round of another."""
FIRM_SOFT_S, FIRM_HARD_S = 20 * PATIENCE, 30 * PATIENCE
"""Bounds of firm quotes for makers that all answer."""
FIRM = f"soft_s = {FIRM_SOFT_S}\nhard_s = {FIRM_HARD_S}"
"""These bounds as TOML below [venue.firm] and [agent.firm]."""


async def until(condition: Callable[[], object], within_s: float = PATIENCE_S) -> None:
    """Return once a condition holds that another task or process brings about."""
    with trio.fail_after(within_s):
        while not condition():  # noqa: ASYNC110  nothing there can set an event
            await trio.sleep(0.003)


async def until_found(
    ask: Callable[[], Awaitable[T]], wanted: Callable[[T], object], within_s: float = PATIENCE_S
) -> T:
    """The first answer that is wanted, of a store, a node or a server that is asked again and again."""
    last: object = "no answer"
    with trio.move_on_after(within_s):
        while True:
            last = found = await ask()
            if wanted(found):
                return found
            await trio.sleep(0.01)
    raise AssertionError(f"not what is wanted after {within_s:.0f} s: {last}")


def found_in_time(ask: Callable[[], T], wanted: Callable[[T], object], within_s: float = PATIENCE_S) -> T:
    """As `until_found`, for a test without tasks."""
    ends = time.monotonic() + within_s
    while not wanted(found := ask()):
        assert time.monotonic() < ends, f"not what is wanted after {within_s:.0f} s: {found}"
        time.sleep(0.01)
    return found


async def until_told(is_so: Callable[[], Awaitable[object]], within_s: float = PATIENCE_S) -> None:
    """As `until`, for a condition that a store, a node or a server has to be asked about."""
    with trio.fail_after(within_s):
        while not await is_so():  # noqa: ASYNC110  nothing there can set an event
            await trio.sleep(0.02)
