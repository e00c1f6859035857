"""An interrupt ends the work wherever it arrives, and nothing that is done already."""

import signal
from collections.abc import Iterator

import click
import pytest
import trio

from cambist.engine.cli.sources import agree
from cambist.engine.host.process.interrupts import asking, until_interrupted
from support.patience import PATIENCE_S


def interrupt() -> None:
    signal.raise_signal(signal.SIGINT)


async def never() -> None:
    """Sleep until cancelled."""
    with trio.fail_after(PATIENCE_S):
        await trio.sleep_forever()


async def work(outcome: str) -> str:
    return outcome


@pytest.fixture
def ignored() -> Iterator[None]:
    """Ignore interrupts meanwhile, as in the background of a shell."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    yield
    signal.signal(signal.SIGINT, before)


async def test_what_is_done_is_returned() -> None:
    assert await until_interrupted(work, "done") == "done"


async def test_an_interrupt_cancels_what_is_under_way() -> None:
    cleaned = trio.Event()

    async def long() -> None:
        try:
            interrupt()
            await never()
        finally:
            cleaned.set()

    with pytest.raises(KeyboardInterrupt):
        await until_interrupted(long)
    assert cleaned.is_set()


async def test_one_that_finds_the_work_done_changes_nothing() -> None:
    async def done() -> str:
        interrupt()
        return "done"

    assert await until_interrupted(done) == "done"


async def test_a_fault_comes_out_as_it_is() -> None:
    async def fails() -> None:
        raise click.Abort

    with pytest.raises(click.Abort):
        await until_interrupted(fails)


async def test_a_fault_of_the_cleaning_up_is_the_reason_of_no_more_than_the_interrupt() -> None:
    async def long() -> None:
        try:
            interrupt()
            await never()
        finally:
            raise ValueError("while it was cancelled")

    with pytest.raises(KeyboardInterrupt) as caught:
        await until_interrupted(long)
    assert isinstance(caught.value.__cause__, ValueError)


@pytest.mark.usefixtures("ignored")
async def test_who_ignores_interrupts_goes_on() -> None:
    async def goes_on() -> str:
        interrupt()
        await trio.lowlevel.checkpoint()
        with asking():
            interrupt()
        return "done"

    assert await until_interrupted(goes_on) == "done"


async def test_a_question_ends_with_an_interrupt_and_the_next_one_is_heard_again() -> None:
    async def asks() -> None:
        with pytest.raises(KeyboardInterrupt), asking():
            interrupt()
        interrupt()
        await never()

    with pytest.raises(KeyboardInterrupt):
        await until_interrupted(asks)


@pytest.mark.parametrize("where", ["click.confirm", "click.termui.visible_prompt_func"])
async def test_a_question_that_is_interrupted_is_a_no(where: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(where, lambda *_, **__: interrupt())

    async def asks() -> None:
        agree("Go on?")

    with pytest.raises(click.Abort):
        await until_interrupted(asks)


async def test_in_a_thread_of_its_own_there_is_nothing_to_hear() -> None:
    def run() -> str:
        return trio.run(until_interrupted, work, "done")

    assert await trio.to_thread.run_sync(run) == "done"
