"""Trio loop in a thread of its own, for benchmarks of asynchronous work; each call visits the loop once."""

import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import AbstractAsyncContextManager, contextmanager
from typing import Generic, TypeVar

import trio

T = TypeVar("T")
R = TypeVar("R")

OPEN_S = 60.0


class Visited(Generic[T]):
    """An object that lives in another thread's trio loop; `visit(work)` runs `work(object)` in that loop."""

    def __init__(self, inside: T, token: trio.lowlevel.TrioToken) -> None:
        self._inside = inside
        self._token = token

    def visit(self, work: Callable[[T], Awaitable[R]]) -> R:
        return trio.from_thread.run(work, self._inside, trio_token=self._token)


@contextmanager
def living_in_trio(opened: Callable[[], AbstractAsyncContextManager[T]]) -> Iterator[Visited[T]]:
    """Open an object in a trio loop of another thread, until the context ends.

    Args:
        opened: returns the async context manager of the object.
    """
    ready = threading.Event()
    here: list[Visited[T]] = []
    failed: list[BaseException] = []
    over: list[tuple[trio.Event, trio.lowlevel.TrioToken]] = []

    async def live() -> None:
        async with opened() as inside:
            token = trio.lowlevel.current_trio_token()
            over.append((trio.Event(), token))
            here.append(Visited(inside, token))
            ready.set()
            await over[0][0].wait()

    def run() -> None:
        try:
            trio.run(live)
        except BaseException as error:  # noqa: BLE001  told to whoever waits for it
            failed.append(error)
        finally:
            ready.set()

    thread = threading.Thread(target=run, daemon=True)
    thread.start()
    if not ready.wait(OPEN_S) or failed:
        raise RuntimeError("it did not open") from (failed[0] if failed else None)
    try:
        yield here[0]
    finally:
        event, token = over[0]
        token.run_sync_soon(event.set)
        thread.join(OPEN_S)
        if failed:
            raise failed[0]
