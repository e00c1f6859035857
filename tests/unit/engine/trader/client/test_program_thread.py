"""The thread that runs trio for callers outside of trio: its start, its work and its end."""

from concurrent.futures import Future

import pytest
import trio

from cambist.engine.trader.client.public.portal import TrioThread

BOUND_S = 30


async def three() -> int:
    await trio.lowlevel.checkpoint()
    return 3


def test_work_has_a_result_an_error_and_an_end() -> None:
    async def fails() -> None:
        raise LookupError("its own")

    with TrioThread() as thread:
        assert thread.call(three) == 3
        with pytest.raises(LookupError, match="its own"):
            thread.call(fails)
        left = thread.start(trio.sleep_forever)
    assert left.cancelled()
    with pytest.raises(RuntimeError, match="the venue is closed"):
        thread.start(three)


def test_an_event_loop_that_does_not_start_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def lacks_files(*_: object) -> None:
        raise OSError("too many open files")

    monkeypatch.setattr(trio, "run", lacks_files)
    with pytest.raises(OSError, match="too many open files"), TrioThread():
        pass


def test_work_that_comes_while_the_event_loop_ends_is_refused() -> None:
    late: list[Future[int]] = []

    async def at_the_end() -> None:
        try:
            await trio.sleep_forever()
        finally:
            late.append(thread.start(three))

    with TrioThread() as thread:
        thread.soon(lambda: trio.lowlevel.spawn_system_task(at_the_end))
        assert thread.call(three) == 3
    with pytest.raises(RuntimeError, match="the venue is closed"):
        late[0].result(BOUND_S)
