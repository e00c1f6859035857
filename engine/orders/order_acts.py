"""Acts on orders: one at a time for each order, retried while the store or the chain is away.

    start(act, order hash) -> act, and again after a pause while the store or the chain is away
                           -> done: the order is tended anew, as another act may have been refused meanwhile

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
"""An act on an order; gets the order's hash."""


class OrderActs:
    """Runs acts as described in the module.

    Args:
        tend: gets the hash of an order after an act on it.
    """

    def __init__(self, tend: Callable[[bytes], None]) -> None:
        self._tend = tend
        self._nursery: trio.Nursery | None = None
        self._busy: set[bytes] = set()

    def open(self, nursery: trio.Nursery) -> None:
        """Run acts in a nursery from now on. Acts that are started before this call are dropped: their orders
        are tended again."""
        self._nursery = nursery

    def start(self, act: OrderAct, order_hash: bytes) -> None:
        """Start an act on an order, unless another act on it runs: the order is tended anew after that."""
        if self._nursery is not None and order_hash not in self._busy:
            self._busy.add(order_hash)
            self._nursery.start_soon(self._act, act, order_hash)

    async def _act(self, act: OrderAct, order_hash: bytes) -> None:
        """Act until it succeeds. After a bug the order waits for its next change."""
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
