"""An interrupt of a command that runs in trio, heard as a signal.

    SIGINT --> the work is cancelled --> KeyboardInterrupt, out of the loop
    SIGINT, while somebody is asked at the terminal --> KeyboardInterrupt, out of the question

Python raises KeyboardInterrupt wherever it stands, which may be where exceptions are dropped, as in a
destructor: then it is lost.
"""

import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

Result = TypeVar("Result")


async def until_interrupted(work: Callable[..., Awaitable[Result]], *what: object) -> Result:
    """Do it, unless it is interrupted before. What is done is done: an interrupt that comes as late changes
    nothing.

    Raises:
        KeyboardInterrupt: SIGINT came.
    """
    if not _hears_interrupts():
        return await work(*what)
    results: list[Result] = []
    fault: Exception | None = None
    was_interrupted = False
    try:
        with trio.open_signal_receiver(signal.SIGINT) as signals:
            async with trio.open_nursery() as nursery:

                async def listen() -> None:
                    nonlocal was_interrupted
                    async for _ in signals:
                        was_interrupted = True
                        nursery.cancel_scope.cancel()

                nursery.start_soon(listen)
                try:
                    results.append(await work(*what))
                except Exception as error:  # noqa: BLE001  handed on, out of the nursery that would wrap it
                    fault = error
                nursery.cancel_scope.cancel()
    except KeyboardInterrupt:  # it came too late for `listen`, and is handed on by the receiver
        was_interrupted = True
    if results:
        return results[0]
    if fault is not None and not was_interrupted:
        raise fault
    raise KeyboardInterrupt from fault


@contextmanager
def asking() -> Iterator[None]:
    """Somebody is asked, for which the loop stands still: an interrupt is not put off until they answer."""
    if not _hears_interrupts():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _hears_interrupts() -> bool:
    """Signals come to the main thread alone; and who is in a shell's background is to ignore this one."""
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    )
