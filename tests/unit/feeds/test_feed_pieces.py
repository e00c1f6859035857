"""The small pieces that a feed is made of: pauses, remarks, slices of time."""

import time
from collections.abc import Generator
from random import Random

import pytest
import trio

from cambist.config import limits, timeouts
from cambist.config.sections.venue import VenueMakerChain
from cambist.feeds.backoff import pause_s
from cambist.feeds.remarks import Remarks
from cambist.feeds.slices import SLICE_S, Slices


def test_pause_doubles_with_jitter_up_to_its_bound() -> None:
    random = Random(1)
    for failures in range(1, 200):
        bare_s = min(timeouts.FEED_PAUSE_S * 2 ** (failures - 1), timeouts.FEED_PAUSE_S_MAX)
        pauses = [pause_s(failures, random) for _ in range(20)]
        assert all(bare_s / 2 <= pause <= 1.5 * bare_s for pause in pauses)
        assert len(set(pauses)) > 1


def test_remarks_are_told_once_cut_and_not_too_fast() -> None:
    told: list[str] = []
    clock = iter((0, 1, 1_000, 2_000))
    remarks = Remarks(told.append, lambda: next(clock))
    for text in (None, "", "one", "one", "dropped", "a\nb" * limits.MAKER_REMARK_CHARS_MAX, "three"):
        remarks.take(text)
    assert [text[:4] for text in told] == ["one", "a\\nb", "thre"]
    assert remarks.dropped == 1
    assert max(map(len, told)) <= 2 * limits.MAKER_REMARK_CHARS_MAX


def busy(steps: int, log: list[str], name: str) -> Generator[None, None, None]:
    for _ in range(steps):
        ends = time.perf_counter() + SLICE_S / 4
        while time.perf_counter() < ends:
            pass
        log.append(name)
        yield


async def test_work_returns_the_value_of_its_generator() -> None:
    def counting() -> Generator[None, None, int]:
        yield
        return 7

    assert await Slices().work(counting()) == 7


async def test_work_lets_others_run_after_each_slice() -> None:
    log: list[str] = []
    slices = Slices()

    async def other() -> None:
        while True:
            log.append("other")
            await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(other)
        await slices.work(busy(40, log, "work"))
        nursery.cancel_scope.cancel()
    assert log.count("other") >= 5


async def test_one_piece_of_work_follows_the_other() -> None:
    log: list[str] = []
    slices = Slices()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(slices.work, busy(20, log, "a"))
        nursery.start_soon(slices.work, busy(20, log, "b"))
    assert log in (["a"] * 20 + ["b"] * 20, ["b"] * 20 + ["a"] * 20)


async def test_work_that_fails_leaves_room_for_the_next() -> None:
    log: list[str] = []
    slices = Slices()

    def fails() -> Generator[None, None, None]:
        yield
        raise RuntimeError

    with pytest.raises(RuntimeError):
        await slices.work(fails())
    await slices.work(busy(1, log, "a"))
    assert log == ["a"]


def test_polled_prices_outlive_the_time_between_two_polls() -> None:
    with pytest.raises(ValueError, match="stale_s is above prices_every_s"):
        VenueMakerChain(url="http://maker.example", prices_every_s=10, stale_s=10)
    VenueMakerChain(url="http://maker.example", ws_url="ws://maker.example", prices_every_s=10, stale_s=1)
