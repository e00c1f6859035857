"""An order is handed in once: where a venue does not answer, it may have taken it, so it is looked for.

An unanswered submission is not repeated but looked up by its hash for TRADER_FOUND_S.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

import trio

from ...config.errors import VenueError
from ...config.timeouts import TRADER_FOUND_S, TRADER_PAUSE_S

T = TypeVar("T")
_REFUSAL, _SERVER_FAULT, _BUSY = 400, 500, 503


async def submitted(
    submit: Callable[[], Awaitable[T]], find: Callable[[], Awaitable[T]], tell: Callable[[str], None]
) -> T | None:
    """What the venue has of the order; None where it does not say whether it took it.

    Args:
        submit: hands it in.
        find: asks for it by its hash.

    Raises:
        VenueError: it has not taken the order.
    """
    try:
        return await submit()
    except VenueError as fault:
        if was_refused(fault):
            raise
        tell(f"{fault.detail}: looking for the order")
    pause_s = TRADER_PAUSE_S
    with trio.move_on_after(TRADER_FOUND_S):
        while True:
            try:
                return await find()
            except VenueError as fault:
                tell(fault.detail)
            await trio.sleep(pause_s)
            pause_s *= 2
    return None


def was_refused(fault: VenueError) -> bool:
    """Whether a venue has said no to a POST, so that nothing was done; else something may have been."""
    return _REFUSAL <= fault.status < _SERVER_FAULT or fault.status == _BUSY
