"""Moves prices from a source to the board, and changes of board and blacklist to the WebSocket consumers.

A big update is applied in slices of a fifth of a millisecond, each followed by a checkpoint, so that firm
quotes never wait for the whole update. A source that fails is started again; meanwhile its prices grow stale
and are withdrawn.
"""

import time
from collections.abc import Callable, Mapping
from contextlib import aclosing
from random import Random
from typing import Any

import structlog
import trio

from ....config.errors import CambistError, InvalidInput
from ....config.timeouts import MAKER_TICK_S, SOURCE_PAUSE_S, SOURCE_PAUSE_S_MAX
from ....feeds.ticks import tick
from .prices.source import PriceSource, normalise_grid
from .quoting.quotes import Desk
from .stream import Broadcast

_SLICE_S = 0.000_2

_log = structlog.get_logger("cambist.maker")


class Feed:
    """Copies prices from a price source to one chain's `Board`, and sends the changes to WebSocket consumers.

    Args:
        make_source: creates a price source, at the start and after each failure.
        refresh_ms: milliseconds after which an unchanged price that the source still confirms is sent to
            consumers again.
        wall_ms: wall clock, Unix milliseconds.
        random: random generator for the jitter before restarts of the source.

    Attributes:
        updates: number of the source's price grids that were applied.
        refused: number of the source's price grids that were invalid.
        restarts: number of times that the source failed or ended.
    """

    def __init__(
        self,
        *,
        desk: Desk,
        broadcast: Broadcast,
        make_source: Callable[[], PriceSource],
        refresh_ms: int,
        wall_ms: Callable[[], int],
        random: Random,
    ) -> None:
        self._desk = desk
        self._board = desk.board
        self._blacklist = desk.blacklist
        self._broadcast = broadcast
        self._make_source = make_source
        self._refresh_ms = refresh_ms
        self._wall_ms = wall_ms
        self._random = random
        self._refusals: dict[str, str] = {}
        self.updates = self.refused = self.restarts = 0

    async def follow_source(self) -> None:
        """Apply the price source's updates to the board, until cancelled; restart a source that fails."""
        wait_s = SOURCE_PAUSE_S
        while True:
            started_at = trio.current_time()
            try:
                async with aclosing(self._make_source().updates()) as updates:
                    async for update in updates:
                        await self.apply(update)
                _log.warning("price source ended")
            except Exception as error:  # noqa: BLE001  the source may be the operator's own code
                detail = error.detail if isinstance(error, CambistError) else repr(error)
                _log.error("price source failed", detail=detail, exc_info=not isinstance(error, CambistError))
            self.restarts += 1
            if trio.current_time() - started_at > SOURCE_PAUSE_S_MAX:
                wait_s = SOURCE_PAUSE_S
            await trio.sleep(wait_s * self._random.uniform(0.5, 1.5))
            wait_s = min(2 * wait_s, SOURCE_PAUSE_S_MAX)

    async def apply(self, update: Mapping[str, Any]) -> None:
        """Apply the price grids of one update to the board, and publish the changes.

        A long update is published in steps, after each of which other tasks run. An invalid price grid
        disables only its own pair.

        Args:
            update: pair id -> price grid, as the price source yields it.
        """
        slice_ends = time.perf_counter() + _SLICE_S
        for pair_id, value in update.items():
            self._apply_one(pair_id, value)
            if time.perf_counter() >= slice_ends:
                self.publish()
                await trio.lowlevel.checkpoint()
                slice_ends = time.perf_counter() + _SLICE_S
        self.publish()

    async def keep_fresh(self) -> None:
        """Withdraw stale prices, publish confirmed prices again, and release the funds of expired quotes.

        The work repeats every MAKER_TICK_S seconds until cancelled.
        """
        while True:
            await tick(MAKER_TICK_S)
            now_ms = self._wall_ms()
            await self._release(now_ms // 1_000)
            self._board.refresh(now_ms)
            self._board.mark_for_refresh(now_ms, self._refresh_ms)
            self.publish()

    async def _release(self, now_s: int) -> None:
        desk = self._desk
        desk.look(now_s)
        desk.blacklist.release_expired(now_s)
        time_s = now_s if desk.chain_time_s is None else desk.chain_time_s
        while desk.ledger.release_expired(time_s):
            await trio.lowlevel.checkpoint()

    def publish(self) -> None:
        """Send the WebSocket consumers the prices changed, and the users blacklisted, since the last call."""
        message = self._board.take_changes(self._wall_ms())
        if message is not None:
            self._broadcast.publish(message)
        added = self._blacklist.take_added()
        if added is not None:
            self._broadcast.publish(b'{"blacklist":%b}' % added)

    def _apply_one(self, pair_id: str, value: Any) -> None:
        try:
            self._board.apply(pair_id, normalise_grid(pair_id, value), self._wall_ms())
        except InvalidInput as error:
            self._board.disable(pair_id)
            self.refused += 1
            known = pair_id if pair_id in self._board.pairs else ""
            if self._refusals.get(known) != error.detail:  # once, not with every update
                self._refusals[known] = error.detail
                _log.warning("price refused", pair=pair_id, detail=error.detail)
        else:
            self.updates += 1
            self._refusals.pop(pair_id, None)
