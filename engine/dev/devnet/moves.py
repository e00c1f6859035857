"""What happened to a chain, block by block: what filters and subscriptions tell their clients.

Blocks come, and in a re-organisation some go before, the latest one first. Whoever listens remembers how far
it has heard; what is older than DEVNET_MOVES_MAX is forgotten, and who has not heard it has lost its place.
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
    """A block that came, or one that is gone."""

    block: Block
    is_gone: bool = False

    def logs(self, wanted: LogFilter) -> list[Log]:
        """Those that are wanted; of a block that is gone the last one first."""
        found = [log for log in self.block.logs if wanted.matches(log)]
        return found[::-1] if self.is_gone else found


class Lost(Exception):
    """What is to be heard next is forgotten."""


class Moves:
    """Follows one chain. Made by `followed`."""

    def __init__(self, chain: EmbeddedChain, head: Block) -> None:
        self._chain = chain
        self._blocks = deque([head], limits.DEVNET_MOVES_MAX)  # as far as known, without gaps
        self._moves: deque[Move] = deque(maxlen=limits.DEVNET_MOVES_MAX)
        self._lock = trio.Lock()
        self._arrived = trio.Event()
        self.count = 0

    @classmethod
    @asynccontextmanager
    async def followed(cls, chain: EmbeddedChain) -> AsyncIterator["Moves"]:
        """Following until the context is left."""
        moves = cls(chain, await chain.head())
        async with trio.open_nursery() as nursery:
            nursery.start_soon(moves._follow)
            try:
                yield moves
            finally:
                nursery.cancel_scope.cancel()

    def since(self, heard: int) -> list[Move]:
        """All after the first `heard` of them.

        Raises:
            Lost: some of them are forgotten.
        """
        unheard = self.count - heard
        if unheard > len(self._moves):
            raise Lost
        return list(islice(self._moves, len(self._moves) - unheard, None))

    async def wait(self, heard: int) -> None:
        """Return once there are more than `heard`."""
        while self.count <= heard:
            await self._arrived.wait()

    async def catch_up(self) -> int:
        """Hear of everything that the chain did until now; returns how many moves there were in all."""
        async with self._lock:
            while (found := await self._behind()) is None:
                pass  # it moved meanwhile
            kept, came = found
            moved = [Move(block, is_gone=True) for block in self._drop_above(kept)]
            moved += [Move(block) for block in reversed(came)]
            self._blocks.extend(reversed(came))
            if moved:
                self._moves.extend(moved)
                has_gap = len(came) == limits.DEVNET_MOVES_MAX
                self.count += len(moved) + has_gap
                self._arrived.set()
                self._arrived = trio.Event()
            return self.count

    async def _behind(self) -> tuple[int, list[Block]] | None:
        """The height up to which what is known still stands, and the blocks above it, the highest first."""
        first = self._blocks[0].header.number
        block: Block | None = await self._chain.head()
        came: list[Block] = []
        while block is not None:
            number = block.header.number
            at = number - first
            if at < 0 or (at < len(self._blocks) and self._blocks[at].header.hash == block.header.hash):
                return number, came
            came.append(block)
            if number == 0 or len(came) == limits.DEVNET_MOVES_MAX:
                return number - 1, came
            block = await self._chain.full_block(block.header.parent_hash)
        return None

    def _drop_above(self, height: int) -> list[Block]:
        """Take away what does not stand any more, the highest first."""
        gone = []
        while self._blocks and self._blocks[-1].header.number > height:
            gone.append(self._blocks.pop())
        return gone

    async def _follow(self) -> None:
        while True:
            await self._chain.wait_head(self._blocks[-1].header.hash)
            await self.catch_up()
