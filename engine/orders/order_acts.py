"""What is done about orders, one thing at a time for each, whatever is away meanwhile.

    start(act, order hash) -> act, and again after a pause while the store or the chain is away
                           -> done: the order is tended anew, as something may have been asked for meanwhile

Source: ARCHITECTURE.md, "Orders".
"""

from collections.abc import Awaitable, Callable

import structlog
import trio

from ...config.errors import ChainError, OrderNotFound, StoreUnavailable
from ...config.timeouts import SETTLING_PAUSE_S
from ...crypto.hexadecimal import to_hex

_log = structlog.get_logger("cambist.venue")

OrderAct = Callable[[bytes], Awaitable[object]]
"""Does something about the order of a hash."""


class OrderActs:
    """See the module.

    Args:
        tend: told of an order about which something was done.
    """

    def __init__(self, tend: Callable[[bytes], None]) -> None:
        self._tend = tend
        self._nursery: trio.Nursery | None = None
        self._busy: set[bytes] = set()

    def open(self, nursery: trio.Nursery) -> None:
        """Where it is done from now on. What is asked for before that is not done: its order is tended
        again."""
        self._nursery = nursery

    def start(self, act: OrderAct, order_hash: bytes) -> None:
        """Do something about an order, unless something is being done: whoever changes it tends it anew."""
        if self._nursery is not None and order_hash not in self._busy:
            self._busy.add(order_hash)
            self._nursery.start_soon(self._act, act, order_hash)

    async def _act(self, act: OrderAct, order_hash: bytes) -> None:
        """Act. Where that is a bug, the order waits for its next change."""
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
            if is_done:  # not where it was cancelled: that would have no end
                self._tend(order_hash)
