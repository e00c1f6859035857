"""Handle SIGINT in commands that run in trio: as a signal, not as KeyboardInterrupt at any point.

    SIGINT --> the work is cancelled --> KeyboardInterrupt, raised outside the loop
    SIGINT during a question at the terminal --> KeyboardInterrupt, raised from the question

Python raises KeyboardInterrupt at any point of the code, possibly at a point that drops exceptions, as a
destructor does: the interrupt is then lost.
"""

import signal
import threading
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import TypeVar

import trio

Result = TypeVar("Result")


async def until_interrupted(work: Callable[..., Awaitable[Result]], *what: object) -> Result:
    """Run `work` until its end, or cancel it when SIGINT arrives.

    An interrupt that arrives after `work` has finished has no effect.

    Args:
        what: arguments of `work`.

    Raises:
        KeyboardInterrupt: SIGINT arrived before `work` finished.
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
    except KeyboardInterrupt:  # too late for `listen`; the receiver raises it again
        was_interrupted = True
    # A result counts although SIGINT came too: the work is done. A fault during the cancelled end of the work
    # follows from the interrupt, and must not hide it.
    if results:
        return results[0]
    if fault is not None and not was_interrupted:
        raise fault
    raise KeyboardInterrupt from fault


@contextmanager
def asking() -> Iterator[None]:
    """Context manager for a question at the terminal: SIGINT interrupts the question at once.

    The wait for the user's input blocks the event loop, so that the loop's own handling of SIGINT would be
    late.
    """
    if not _hears_interrupts():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _hears_interrupts() -> bool:
    """Whether this process may handle SIGINT here: in the main thread, and if SIGINT is not ignored.

    A shell lets its background jobs ignore SIGINT.
    """
    return (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is not signal.SIG_IGN
    )
