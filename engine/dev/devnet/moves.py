"""Record of a chain's moves, i.e. blocks added and removed in order, for filters and subscriptions.

A re-organisation removes blocks, the latest first, before it adds others. Each listener keeps the number of
moves it has processed. Only the last DEVNET_MOVES_MAX moves are kept; a listener that needs an older move
gets the error `Lost`.
"""

from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from itertools import islice

import trio
from msgspec import Struct

from ....config import limits
from ...chain.port import Log, LogFilter
from ..embedded.blocks import Block
from ..embedded.embedded import EmbeddedChain


class Move(Struct, frozen=True):
    """A change of the chain: one block added, or removed by a re-organisation.

    Attributes:
        is_gone: whether the block was removed.
    """

    block: Block
    is_gone: bool = False

    def logs(self, wanted: LogFilter) -> list[Log]:
        """Return the block's logs that match a filter, in order, or in reverse if the block was removed."""
        found = [log for log in self.block.logs if wanted.matches(log)]
        return found[::-1] if self.is_gone else found


class Lost(Exception):
    """Error: a listener needs a block change that is no longer kept."""


class Moves:
    """Record of the latest moves of a chain, i.e. of blocks added or removed; created by `followed`.

    Attributes:
        count: number of all moves so far, including those no longer kept.
    """

    def __init__(self, chain: EmbeddedChain, head: Block) -> None:
        self._chain = chain
        self._blocks = deque([head], limits.DEVNET_MOVES_MAX)  # the latest known blocks, without gaps
        self._moves: deque[Move] = deque(maxlen=limits.DEVNET_MOVES_MAX)
        self._lock = trio.Lock()
        self._arrived = trio.Event()
        self.count = 0

    @classmethod
    @asynccontextmanager
    async def followed(cls, chain: EmbeddedChain) -> AsyncIterator["Moves"]:
        """Context manager: yield a record of a chain's added and removed blocks, and keep it up to date."""
        moves = cls(chain, await chain.head())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(moves._follow)
            try:
                yield moves
            finally:
                nursery.cancel_scope.cancel()

    def since(self, heard: int) -> list[Move]:
        """Return the moves (blocks added or removed) after the first `heard` moves, in order.

        Raises:
            Lost: some of these moves are no longer kept.
        """
        unheard = self.count - heard
        if unheard > len(self._moves):
            raise Lost
        return list(islice(self._moves, len(self._moves) - unheard, None))

    async def wait(self, heard: int) -> None:
        """Wait until more than `heard` moves (blocks added or removed) have been recorded."""
        while self.count <= heard:
            await self._arrived.wait()

    async def catch_up(self) -> int:
        """Record all blocks that the chain has added or removed until now; return the number of all moves."""
        async with self._lock:
            while (found := await self._behind()) is None:
                pass  # the chain moved meanwhile
            kept, came = found
            moved = [Move(block, is_gone=True) for block in self._drop_above(kept)]
            moved += [Move(block) for block in reversed(came)]
            self._blocks.extend(reversed(came))
            if moved:
                self._moves.extend(moved)
                # A gap counts as a move that is not kept: a listener from before the gap gets `Lost`.
                has_gap = len(came) == limits.DEVNET_MOVES_MAX
                self.count += len(moved) + has_gap
                self._arrived.set()
                self._arrived = trio.Event()
            return self.count

    async def _behind(self) -> tuple[int, list[Block]] | None:
        """Compare the recorded blocks with the chain; None if the chain changed during the comparison.

        Returns:
            The height of the latest recorded block that is still on the chain, and the chain's blocks above
            this height, the highest first.
        """
        first = self._blocks[0].header.number
        block: Block | None = await self._chain.head()
        came: list[Block] = []
        while block is not None:
            number = block.header.number
            at = number - first
            if at < 0 and not came:  # a snapshot from before the first recorded block
                return number - 1, [block]
            if at < 0 or (at < len(self._blocks) and self._blocks[at].header.hash == block.header.hash):
                return number, came
            came.append(block)
            if number == 0 or len(came) == limits.DEVNET_MOVES_MAX:
                return number - 1, came
            block = await self._chain.full_block(block.header.parent_hash)
        return None

    def _drop_above(self, height: int) -> list[Block]:
        """Remove and return the recorded blocks above a height, the highest first."""
        gone = []
        while self._blocks and self._blocks[-1].header.number > height:
            gone.append(self._blocks.pop())
        return gone

    async def _follow(self) -> None:
        while True:
            await self._chain.wait_head(self._blocks[-1].header.hash)
            await self.catch_up()
