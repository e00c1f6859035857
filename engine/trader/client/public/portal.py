"""A thread that runs trio's event loop for callers outside of trio: plain code, and asyncio.

    start    a coroutine function runs in the thread; the caller gets a concurrent.futures.Future
    hold     a context manager is entered in a task of the thread, and left by the same task

Cancelling the future cancels the work. `close` cancels all work that is left, and ends the thread. The class
replaces anyio's blocking portal, which lets interrupted work run on, and blocks asyncio's loop while a
context is entered or left.
"""

import math
import threading
from collections.abc import Awaitable, Callable
from concurrent.futures import Future, InvalidStateError
from contextlib import AbstractAsyncContextManager, suppress
from functools import partial
from types import TracebackType
from typing import Generic, Self, TypeVar

import trio

T = TypeVar("T")


class TrioThread:
    """A thread that runs trio's event loop; `with` starts the thread, and ends it at the exit."""

    def __init__(self) -> None:
        self._started: Future[None] = Future()
        self._thread = threading.Thread(target=self._main, name="cambist", daemon=True)
        self._token: trio.lowlevel.TrioToken
        self._nursery: trio.Nursery

    def __enter__(self) -> Self:
        self._thread.start()
        self._started.result()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Cancel the work that is left, and wait for the thread's end."""
        self.soon(self._nursery.cancel_scope.cancel)
        self._thread.join()

    def start(self, work: Callable[[], Awaitable[T]]) -> "Future[T]":
        """Start a coroutine function in the thread, and return the future of its result.

        Raises:
            RuntimeError: the thread has ended.
        """
        future: Future[T] = Future()
        try:
            self._token.run_sync_soon(self._begin, work, future)
        except trio.RunFinishedError:
            raise RuntimeError("the venue is closed") from None
        return future

    def call(self, work: Callable[[], Awaitable[T]]) -> T:
        """Run a coroutine function in the thread, and wait for its result; an interrupt cancels the work."""
        future = self.start(work)
        try:
            return future.result()
        except BaseException:
            future.cancel()
            raise

    def hold(self, manager: AbstractAsyncContextManager[T]) -> "HeldContext[T]":
        """Return a holder that enters and leaves a context manager in one task of the thread."""
        return HeldContext(self, manager)

    def soon(self, act: Callable[[], object]) -> None:
        """Call a function in the thread soon; the call is left out if the thread has ended."""
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(act)

    def _main(self) -> None:
        try:
            trio.run(self._run)
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _run(self) -> None:
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._token = trio.lowlevel.current_trio_token()
            self._started.set_result(None)
            await trio.sleep(math.inf)

    def _begin(self, work: Callable[[], Awaitable[T]], future: "Future[T]") -> None:
        if future.cancelled():
            return
        try:
            self._nursery.start_soon(self._finish, work, future)
        except RuntimeError:  # the nursery has closed, and the event loop has not ended yet
            with suppress(InvalidStateError):
                future.set_exception(RuntimeError("the venue is closed"))

    async def _finish(self, work: Callable[[], Awaitable[T]], future: "Future[T]") -> None:
        with trio.CancelScope() as scope:
            # A future that was cancelled before this line calls back at once: no cancellation is lost.
            future.add_done_callback(partial(self._cancel_if_cancelled, scope))
            try:
                result = await work()
            except Exception as error:  # noqa: BLE001 - raised in the caller's thread
                with suppress(InvalidStateError):
                    future.set_exception(error)
            except BaseException:
                future.cancel()
                raise
            else:
                with suppress(InvalidStateError):
                    future.set_result(result)

    def _cancel_if_cancelled(self, scope: trio.CancelScope, future: "Future[T]") -> None:
        if future.cancelled():
            self.soon(scope.cancel)


class HeldContext(Generic[T]):
    """A context manager of trio that a task of a `TrioThread` enters and leaves."""

    def __init__(self, thread: TrioThread, manager: AbstractAsyncContextManager[T]) -> None:
        self._thread = thread
        self._manager = manager
        self._entered: Future[T] = Future()
        self._leave = trio.Event()
        self._left: Future[None] | None = None

    def enter(self) -> "Future[T]":
        """Enter the context manager; the future gives the value that the manager yields."""
        self._left = self._thread.start(self._hold)
        self._left.add_done_callback(self._pass_on)
        return self._entered

    def leave(self) -> "Future[None]":
        """Leave the context manager; the future is done afterwards, with the error of the exit, if any."""
        if self._left is None:
            raise RuntimeError("the context was not entered")
        self._thread.soon(self._leave.set)
        return self._left

    async def _hold(self) -> None:
        async with self._manager as value:
            # If the caller has cancelled `_entered`, InvalidStateError is raised here and leaves the context.
            self._entered.set_result(value)
            await self._leave.wait()

    def _pass_on(self, left: "Future[None]") -> None:
        """Pass the error of a failed entry to the caller of `enter`, who waits for the value."""
        if self._entered.done():
            return
        error = None if left.cancelled() else left.exception()
        self._entered.set_exception(error or RuntimeError("the venue is closed"))
