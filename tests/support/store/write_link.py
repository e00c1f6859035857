"""A link of a store that is written to, and asked nothing."""

from collections.abc import Sequence
from typing import Any

from cambist.engine.store.backend import Lease
from cambist.engine.store.queries import Query
from cambist.engine.store.units import Unit, UnitOutcome


class WriteLink:
    """A `Link` whose `apply` is to be written; units go to it as they are.

    Attributes:
        batches: sizes of the batches that came.
    """

    def __init__(self) -> None:
        self.batches: list[int] = []

    def prepare(self, unit: Unit) -> Unit:
        return unit

    async def apply(self, number: int, units: Sequence[Any]) -> list[UnitOutcome]:
        raise NotImplementedError

    async def read(self, queries: Sequence[Query]) -> list[list[tuple[Any, ...]]]:
        raise NotImplementedError

    async def attend(self, holder: str, now_ms: int, life_ms: int) -> list[str]:
        raise NotImplementedError

    async def lease(self, holder: str, count: int, now_ms: int, life_ms: int) -> list[Lease]:
        raise NotImplementedError

    async def release(self, holder: str, shards: Sequence[int] | None = None) -> None:
        raise NotImplementedError

    async def prune(self, before_ms: int, count_max: int) -> int:
        raise NotImplementedError
