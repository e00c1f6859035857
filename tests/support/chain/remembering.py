"""A chain whose recent block stays the first that was asked for, and that counts reads of the latest one."""

from typing import Any


class Remembering:
    """A chain whose recent block stays the first that was asked for."""

    def __init__(self, chain: Any) -> None:
        self._chain = chain
        self._recent: Any = None
        self.latest = 0  # reads of the latest block

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)

    async def recent_block(self, age_s: float) -> Any:
        if self._recent is None:
            self._recent = await self._chain.recent_block(age_s)
        return self._recent

    async def block(self, at: Any = None) -> Any:
        self.latest += at is None
        return await self._chain.block(at)
