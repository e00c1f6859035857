"""Runs asynchronous actions on orders, at most one at a time for each order, and retries failed actions.

    start(act, order hash) -> run the act; repeat it after a pause if the store or the chain is away
                           -> done: call `tend` on the order, as another act may have been dropped meanwhile

Source: ARCHITECTURE.md, "Orders".
"""

from collections.abc import Awaitable, Callable

import structlog
import trio

from ....config.errors import ChainError, OrderNotFound, StoreUnavailable
from ....config.timeouts import SETTLING_PAUSE_S
from ....crypto.hexadecimal import to_hex

_log = structlog.get_logger("cambist.venue")

OrderAct = Callable[[bytes], Awaitable[object]]
"""Asynchronous function that acts on an order, given the order's hash."""


class OrderActs:
    """Runs at most one action at a time on each order, and retries an action until it succeeds.

    Args:
        tend: called with the order's hash after an action succeeded or found no such order, to start the
            order's next action.
    """

    def __init__(self, tend: Callable[[bytes], None]) -> None:
        self._tend = tend
        self._nursery: trio.Nursery | None = None
        self._busy: set[bytes] = set()

    def open(self, nursery: trio.Nursery) -> None:
        """Set the trio nursery in which actions run.

        Actions started before this call are dropped; `tend` starts them again.
        """
        self._nursery = nursery

    def start(self, act: OrderAct, order_hash: bytes) -> None:
        """Start an action on an order, or drop it if another action on the same order still runs.

        A dropped action is not lost: once the running action has succeeded, `tend` is called, which starts
        the order's next action.
        """
        if self._nursery is not None and order_hash not in self._busy:
            self._busy.add(order_hash)
            self._nursery.start_soon(self._act, act, order_hash)

    async def _act(self, act: OrderAct, order_hash: bytes) -> None:
        """Repeat an action on an order until it succeeds or the order does not exist.

        An action that raises an unexpected error is logged and dropped until the order's next change.
        """
        is_done = False
        try:
            while not is_done:
                try:
                    await act(order_hash)
                    is_done = True
                except OrderNotFound:
                    is_done = True
                except (StoreUnavailable, ChainError) as error:
                    _log.warning("an order waits", order=to_hex(order_hash), detail=str(error))
                    await trio.sleep(SETTLING_PAUSE_S)
                except Exception as error:  # noqa: BLE001  one order's bug is not the others' end
                    _log.error(
                        "an order is stuck", order=to_hex(order_hash), detail=repr(error), exc_info=True
                    )
                    return
        finally:
            self._busy.discard(order_hash)
            if is_done:  # not after a cancellation, which would start acts without end
                self._tend(order_hash)
