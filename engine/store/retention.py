"""Delete old ended rows, a step at a time; `prune` defines which rows belong to an order.

After each step the task pauses for as long as the step took: it uses at most half of the store's time.
"""

from collections.abc import Callable

import structlog
import trio
from msgspec import Struct

from ...config.errors import StoreUnavailable
from ...config.limits import PRUNE_ROWS_MAX
from ...config.timeouts import PRUNE_EVERY_S
from .store import Store

_DAY_MS = 24 * 3_600_000

_log = structlog.get_logger("cambist.store")


class RetentionStatistics(Struct, frozen=True):
    """Counters of the task that deletes old rows.

    Attributes:
        rows: number of deleted rows.
        steps: number of transactions that deleted these rows.
        failed: number of periodic runs that stopped early because the store was unavailable.
    """

    rows: int
    steps: int
    failed: int


class Retention:
    """Deletes rows older than the retention period. `run` is its task.

    Args:
        days: days for which ended orders and old events are kept (`[store] retention_days`); 0 keeps them
            for ever.
        now_ms: wall clock, Unix milliseconds.
        rows_max: most rows of each kind that one transaction deletes, see `Backend.prune`.
    """

    def __init__(
        self, store: Store, *, days: int, now_ms: Callable[[], int], rows_max: int = PRUNE_ROWS_MAX
    ) -> None:
        self._store = store
        self._days = days
        self._now_ms = now_ms
        self._rows_max = rows_max
        self._rows = self._steps = self._failed = 0

    def statistics(self) -> RetentionStatistics:
        """Return the counts of deleted rows, of deleting transactions, and of runs that failed."""
        return RetentionStatistics(self._rows, self._steps, self._failed)

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Delete old rows every PRUNE_EVERY_S seconds until cancelled; return at once if `days` is 0."""
        task_status.started()
        while self._days:
            await self._round()
            await trio.sleep(PRUNE_EVERY_S)

    async def _round(self) -> None:
        before_ms = self._now_ms() - self._days * _DAY_MS
        while True:
            began = trio.current_time()
            try:
                rows = await self._store.prune(before_ms, self._rows_max)
            except StoreUnavailable as error:
                self._failed += 1
                _log.warning("ended rows were not pruned", detail=error.detail)
                return
            if not rows:
                return
            self._rows += rows
            self._steps += 1
            await trio.sleep(trio.current_time() - began)
