"""Which events somebody wants to hear of. Pure.

    what is asked for -> EventFilter -> matches(event), and the one key that finds it among thousands

Choice: several filters are all to be met; several values of one of them are alternatives; ids and hashes name
    orders alike, so that either is enough.
"""

from collections.abc import Iterator
from uuid import UUID

from msgspec import Struct

from ..store.orders import order_id
from ..store.rows import OrderEvent

Key = tuple[str, bytes | str | int]
"""What events are found by: a word and one of its values."""

EVERYTHING: Key = ("", "")


class EventFilter(Struct, frozen=True):
    """What is wanted; None, and nothing among several, wants any.

    Attributes:
        surface: `delta` or `otc`.
        owner: of the orders.
        orders: their ids.
        partner: exactly as orders name it.
    """

    surface: str | None = None
    owner: bytes | None = None
    orders: frozenset[UUID] = frozenset()
    chain_ids: frozenset[int] = frozenset()
    partner: str | None = None

    def matches(self, event: OrderEvent) -> bool:
        """Whether an event is wanted."""
        return (
            self.surface in (None, event.surface)
            and self.owner in (None, event.owner)
            and self.partner in (None, event.partner)
            and (not self.chain_ids or event.chain_id in self.chain_ids)
            and (not self.orders or order_id(event.order_hash) in self.orders)
        )

    @property
    def keys(self) -> tuple[Key, ...]:
        """What it is kept under: of an event that matches, `keys_of` has at least one of them."""
        if self.orders:
            return tuple(("order", order.bytes) for order in self.orders)
        if self.owner is not None:
            return (("owner", self.owner),)
        if self.partner is not None:
            return (("partner", self.partner),)
        if self.chain_ids:
            return tuple(("chain", chain_id) for chain_id in self.chain_ids)
        return (EVERYTHING,)


def keys_of(event: OrderEvent) -> Iterator[Key]:
    """All that an event may be wanted for."""
    yield "order", order_id(event.order_hash).bytes
    yield "owner", event.owner
    yield "partner", event.partner
    yield "chain", event.chain_id
    yield EVERYTHING
