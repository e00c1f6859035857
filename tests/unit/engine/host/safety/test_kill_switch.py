"""The kill switch: valid contents of its file, its permitted writers, the effect of an unreadable file."""

import fcntl
import os
import signal
from pathlib import Path

import pytest
import trio
import trio.testing
from hypothesis import given
from hypothesis import strategies as st

from cambist.config.timeouts import KILL_SWITCH_LOOK_S
from cambist.engine.host.safety.halts import NOTHING_HALTED, Halts
from cambist.engine.host.safety.kill_switch import KillSwitch
from cambist.engine.host.safety.watched_file import FILE_BYTES_MAX

SCOPES = st.one_of(
    st.just("all"),
    st.integers(1, 10**9).map("chain {}".format),
    st.builds("pair {} {}".format, st.integers(1, 10**9), st.sampled_from(["WETH/USDC", "a b", "ß"])),
)


@given(scopes=st.lists(SCOPES, min_size=1, max_size=6))
def test_what_is_written_is_read_back(scopes: list[str]) -> None:
    halts = NOTHING_HALTED
    for scope in scopes:
        halts = halts.with_scope(scope)
    assert Halts.parse(halts.text()) == halts
    for scope in scopes:
        halts = halts.without_scope(scope)
    assert halts == NOTHING_HALTED


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "everything",
        "chain",
        "chain x",
        "pair 1",
        "chain 1\nstop",
        "# only a remark",
        "chain 0",
        "ALL",
    ],
)
def test_what_names_nothing_or_is_not_understood_stops_everything(text: str) -> None:
    halts = Halts.parse(text)
    assert halts.everything
    assert halts.reason


def test_scopes() -> None:
    halts = Halts.parse("# maintenance\nchain 137\npair 1 WETH/USDC\n")
    assert halts.stops_chain(137)
    assert not halts.stops_chain(1)
    assert halts.pairs == {(1, "WETH/USDC")}
    assert halts.with_scope("all").without_scope("all") == NOTHING_HALTED


class Recorder:
    def __init__(self) -> None:
        self.seen: list[Halts] = []

    def __call__(self, halts: Halts) -> None:
        self.seen.append(halts)


def test_a_file_that_is_there_at_the_start_counts(tmp_path: Path) -> None:
    path = tmp_path / "halt"
    path.touch()
    assert KillSwitch(path, Recorder()).halts.everything


def test_stop_and_resume_write_the_file_that_others_follow(tmp_path: Path) -> None:
    path = tmp_path / "state" / "halt"
    changes = Recorder()
    mine, other = KillSwitch(path, changes), KillSwitch(path, Recorder())
    mine.stop("chain 137")
    assert path.read_text() == "chain 137\n"
    mine.stop("pair 1 WETH/USDC")
    other.look()
    assert other.halts == mine.halts == Halts.parse("chain 137\npair 1 WETH/USDC")
    mine.resume("chain 137")
    mine.resume("pair 1 WETH/USDC")
    assert not path.exists()
    other.look()
    assert other.halts == NOTHING_HALTED
    assert len(changes.seen) == 4
    assert [entry.name for entry in path.parent.iterdir()] == ["halt.lock"]


def test_a_scope_that_is_none_changes_nothing(tmp_path: Path) -> None:
    switch = KillSwitch(tmp_path / "halt", Recorder())
    with pytest.raises(ValueError, match="not `all`"):
        switch.stop("chain\nall")
    assert switch.halts == NOTHING_HALTED


def test_a_file_that_cannot_be_read_stops_everything(tmp_path: Path) -> None:
    (tmp_path / "halt").mkdir()
    halts = KillSwitch(tmp_path / "halt", Recorder()).halts
    assert halts.everything
    assert "cannot be read" in halts.reason
    large = tmp_path / "large"
    large.write_text("chain 1\n" * (FILE_BYTES_MAX // 8 + 1))
    assert "larger" in KillSwitch(large, Recorder()).halts.reason


def test_stopping_works_in_this_process_where_the_file_cannot_be_written(tmp_path: Path) -> None:
    folder, changes = tmp_path / "state", Recorder()
    switch = KillSwitch(folder / "halt", changes)
    folder.write_text("a file where the folder should be")
    with pytest.raises(OSError, match="state"):
        switch.stop("all")
    assert switch.halts.everything
    assert [halts.everything for halts in changes.seen] == [True]


def test_a_stop_that_could_not_be_written_ends_by_its_own_resumption_alone(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    switch = KillSwitch(folder / "halt", Recorder())
    folder.write_text("a file where the folder should be")
    for scope in ("all", "chain 7"):
        with pytest.raises(OSError, match="state"):
            switch.stop(scope)
    folder.unlink()
    switch.stop("chain 5")
    switch.resume("chain 5")
    assert switch.halts.everything
    (folder / "halt").write_text("chain 5\n")
    switch.look()
    (folder / "halt").unlink()
    switch.look()
    assert switch.halts.everything
    switch.resume("all")
    assert switch.halts == NOTHING_HALTED


async def test_signals_and_the_file_are_followed_within_a_tenth_of_a_second(
    tmp_path: Path, autojump_clock: trio.testing.MockClock
) -> None:
    path = tmp_path / "halt"
    switch = KillSwitch(path, Recorder())
    assert KILL_SWITCH_LOOK_S < 0.05
    async with trio.open_nursery() as nursery:
        nursery.start_soon(switch.watch)
        nursery.start_soon(switch.heed_signals)
        await trio.testing.wait_all_tasks_blocked()
        seen = []
        path.touch()
        await trio.sleep(0.05)
        seen.append(switch.halts.everything)
        path.unlink()
        await trio.sleep(0.05)
        seen.append(switch.halts.everything)
        for number in (signal.SIGUSR1, signal.SIGUSR2):
            os.kill(os.getpid(), number)
            await trio.testing.wait_all_tasks_blocked()
            seen.append(switch.halts.everything)
            seen.append(path.exists() and path.read_text() == "all\n")
        assert seen == [True, False, True, True, False, False]
        nursery.cancel_scope.cancel()


def test_a_lock_that_is_never_released_stops_trading_and_is_an_error(tmp_path: Path) -> None:
    switch = KillSwitch(tmp_path / "halt", lambda _: None)
    with (tmp_path / "halt.lock").open("wb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(OSError, match="keeps it locked"):
            switch.stop("all")
    assert switch.halts.everything
    assert not (tmp_path / "halt").exists()
