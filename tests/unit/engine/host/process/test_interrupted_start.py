"""SIGINT while an application opens or closes: one sentence of the log and the status of an interrupt."""

import signal
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from socket import socket

import pytest
import structlog
import trio

from cambist.config.errors import StoreUnavailable
from cambist.config.sections.server import ServerSettings
from cambist.engine.host.process.running import serve_app
from cambist.engine.host.server.access_log import AccessLog
from support.patience import PATIENCE_S

SERVER = ServerSettings(port=0)
Opening = Callable[[AccessLog | None], AbstractAsyncContextManager["Idle"]]


class Idle:
    """An application that is drained at once."""

    scheme, drained = "http", True

    def drain(self) -> None:
        """Nothing is in flight."""

    async def run(self, listener: socket, health_listener: socket | None) -> None:
        """Nothing is served."""


async def fails_when_cancelled(*, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
    """Interrupt the process, and fail while the start is cancelled, as the link to a store does."""
    try:
        signal.raise_signal(signal.SIGINT)
        with trio.fail_after(PATIENCE_S):
            await trio.sleep_forever()
    except trio.Cancelled:
        raise StoreUnavailable("the database cannot be used") from None


@asynccontextmanager
async def never_opened(_: AccessLog | None) -> AsyncIterator[Idle]:
    async with trio.open_nursery() as nursery:
        await nursery.start(fails_when_cancelled)
        yield Idle()


@asynccontextmanager
async def never_closed(_: AccessLog | None) -> AsyncIterator[Idle]:
    yield Idle()
    signal.raise_signal(signal.SIGINT)
    with trio.fail_after(PATIENCE_S):
        await trio.sleep_forever()


@pytest.mark.parametrize(
    ("opening", "said"),
    [(never_opened, "interrupted before it served"), (never_closed, "interrupted after it served")],
)
def test_an_interrupt_of_the_start_or_the_end_is_one_line(opening: Opening, said: str) -> None:
    with structlog.testing.capture_logs() as lines:
        assert trio.run(serve_app, SERVER, opening, lambda app, url: None) == 130
    assert [line["event"] for line in lines] == [said]


def test_an_interrupt_while_it_serves_drains() -> None:
    class Serving(Idle):
        async def run(self, listener: socket, health_listener: socket | None) -> None:
            signal.raise_signal(signal.SIGINT)
            with trio.fail_after(PATIENCE_S):
                await self.ended.wait()

        def __init__(self) -> None:
            self.ended = trio.Event()

        def drain(self) -> None:
            self.ended.set()

    @asynccontextmanager
    async def opened(_: AccessLog | None) -> AsyncIterator[Idle]:
        yield Serving()

    with structlog.testing.capture_logs() as lines:
        assert trio.run(serve_app, SERVER, opened, lambda app, url: None) == 0
    assert [line["event"] for line in lines] == ["draining"]
