"""From a price source to the board, and from the board and the blacklist out to the consumers.

A big update is applied in slices of about SLICE_S, each followed by a checkpoint, so that firm quotes are
never kept waiting by it. A source that fails is started again; until it is back its prices grow old and
leave by themselves.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from random import Random
from typing import Any

import structlog
import trio

from ...codecs.wire import encode
from ...config.errors import CambistError, InvalidInput
from .blacklist import Blacklist
from .board import Board
from .prices.source import PriceSource, normalise_grid
from .stream import Broadcast

SLICE_S = 0.000_5
TICK_S = 0.1
RESTART_MIN_S, RESTART_MAX_S = 0.5, 30.0

_log = structlog.get_logger("cambist.maker")


class Feed:
    """Keeps one chain's board current and publishes what changes.

    Args:
        make_source: a new source each time; the last one failed.
        refresh_ms: publish an unchanged price again after this.
        random: for the jitter of restarts.

    Attributes:
        updates, refused, restarts: how many grids were taken and refused, how often the source failed.
    """

    def __init__(
        self,
        *,
        board: Board,
        blacklist: Blacklist,
        broadcast: Broadcast,
        make_source: Callable[[], PriceSource],
        refresh_ms: int,
        wall_ms: Callable[[], int],
        random: Random,
    ) -> None:
        self._board = board
        self._blacklist = blacklist
        self._broadcast = broadcast
        self._make_source = make_source
        self._refresh_ms = refresh_ms
        self._wall_ms = wall_ms
        self._random = random
        self._told: dict[str, str] = {}
        self.updates = self.refused = self.restarts = 0

    async def follow_source(self) -> None:
        """Apply what the source gives, for ever."""
        wait_s = RESTART_MIN_S
        while True:
            started_at = trio.current_time()
            try:
                async with aclosing(self._make_source().updates()) as updates:
                    async for update in updates:
                        await self.apply(update)
                _log.warning("price source ended")
            except Exception as error:  # noqa: BLE001  it is the maker's own code
                detail = error.detail if isinstance(error, CambistError) else repr(error)
                _log.error("price source failed", detail=detail, exc_info=not isinstance(error, CambistError))
            self.restarts += 1
            if trio.current_time() - started_at > RESTART_MAX_S:
                wait_s = RESTART_MIN_S
            await trio.sleep(wait_s * self._random.uniform(0.5, 1.5))
            wait_s = min(2 * wait_s, RESTART_MAX_S)

    async def apply(self, update: Mapping[str, Any]) -> None:
        """Apply one update in slices, publishing each; a bad grid costs only its pair."""
        slice_ends = time.perf_counter() + SLICE_S
        for pair_id, value in update.items():
            self._apply_one(pair_id, value)
            if time.perf_counter() >= slice_ends:
                self.publish()
                await trio.lowlevel.checkpoint()
                slice_ends = time.perf_counter() + SLICE_S
        self.publish()

    async def keep_fresh(self) -> None:
        """Take stale prices down and repeat unchanged ones, for ever."""
        while True:
            await trio.sleep(TICK_S)
            now_ms = self._wall_ms()
            self._board.refresh(now_ms)
            self._board.mark_for_refresh(now_ms, self._refresh_ms)
            self.publish()

    def publish(self) -> None:
        """Send what changed to the consumers."""
        message = self._board.take_changes(self._wall_ms())
        if message is not None:
            self._broadcast.publish(message)
        added = self._blacklist.take_added()
        if added:
            self._broadcast.publish(encode({"blacklist": [f"0x{user.hex()}" for user in added]}))

    def _apply_one(self, pair_id: str, value: Any) -> None:
        try:
            self._board.apply(pair_id, normalise_grid(pair_id, value), self._wall_ms())
        except InvalidInput as error:
            self.refused += 1
            if self._told.get(pair_id) != error.detail:  # once, not with every update
                self._told[pair_id] = error.detail
                _log.warning("price refused", chain_pair=pair_id, detail=error.detail)
        else:
            self.updates += 1
            self._told.pop(pair_id, None)
