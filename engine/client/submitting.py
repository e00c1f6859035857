"""The submission of an order, which happens once: the venue may have accepted an unanswered submission.

An unanswered submission is not repeated: the order is looked up by its hash for TRADER_FOUND_S.
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
    """Submit an order and return the venue's record; None if its acceptance is not known.

    Args:
        submit: submits the order.
        find: asks for the order by its hash.

    Raises:
        VenueError: the venue refuses the order.
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
    """Whether the venue refused a POST without effect; if False, the POST may have taken effect."""
    return _REFUSAL <= fault.status < _SERVER_FAULT or fault.status == _BUSY
