"""Follow the logs of contracts on a development chain, over re-organisations.

After a re-organisation or a restored snapshot all logs are read again from the first block, since chains of a
devnet are short.
"""

from collections.abc import Iterable

import trio

from ....config.errors import ChainError
from ...chain.port import Chain, Header, Log, LogFilter


class FollowedLogs:
    """Logs of a chain that pass a filter, each read once unless the chain is re-organised."""

    def __init__(self, chain: Chain, wanted: LogFilter) -> None:
        self._chain = chain
        self._wanted = wanted
        self._top: Header | None = None

    @property
    def known(self) -> bytes:
        """Hash of the latest block that was read; empty before the first `read`."""
        return self._top.hash if self._top else b""

    async def read(self) -> tuple[bool, list[Log]]:
        """Read the logs of new blocks, in the chain's order.

        Returns:
            Whether blocks that were read before are gone; and the logs of the new blocks, or of all blocks
            from the first if blocks are gone.

        Raises:
            ChainError: the chain does not answer, or has no latest block; nothing was read.
        """
        head = await self._chain.block()
        if head is None:
            raise ChainError("the chain has no latest block")
        top = self._top
        is_gone = top is not None and not await self._has(top)
        first = 0 if top is None or is_gone else top.number + 1
        logs = await self._chain.logs(self._wanted, first, head.number) if first <= head.number else []
        self._top = head
        return is_gone, logs

    async def _has(self, top: Header) -> bool:
        there = await self._chain.block(top.number)
        return there is not None and there.hash == top.hash


async def another_head(chains: Iterable[tuple[Chain, bytes]], wake: trio.Event, within_s: float) -> None:
    """Wait until a chain's latest block is not the given block, or the event is set, or the time is up.

    Args:
        chains: each chain, with the hash of its known latest block.
        within_s: seconds, infinite for no bound.
    """

    async def wait(chain: Chain, known: bytes) -> None:
        try:
            await chain.wait_head(known)
        except ChainError:
            await trio.sleep_forever()
        nursery.cancel_scope.cancel()

    async def wait_wake() -> None:
        await wake.wait()
        nursery.cancel_scope.cancel()

    with trio.move_on_after(within_s):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(wait_wake)
            for chain, known in chains:
                nursery.start_soon(wait, chain, known)
