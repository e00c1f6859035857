"""Filters of order event streams, and the index keys that find the filters for an event. Pure.

    a client's query -> EventFilter -> matches(entry), and the key that finds the filter among thousands

Choice: Filters of an event stream combine by AND, values of one filter by OR; ids and hashes are alternatives
    for each other.
Choice: The filter `taker` matches the order's taker or the taker in its nonceAndMeta, as in the listing.
"""

from collections.abc import Iterator
from uuid import UUID

from msgspec import Struct

from ..orders.order_units import OTC, order_id
from .ring import RingEntry

FilterKey = tuple[str, bytes | str | int]
"""Index key of an order event or a filter of events: (name of a field, one of its values)."""

EVERYTHING: FilterKey = ("", "")


class EventFilter(Struct, frozen=True):
    """Filter of the order events that a client receives; a field that is None or empty matches any event.

    Attributes:
        surface: kind of the orders: `delta` or `otc`.
        owner: owner of the orders; the maker of OTC orders.
        taker: taker of OTC orders. An event that was stored without a body matches no taker.
        orders: ids of Delta or OTC orders; both kinds of id are derived from the order hash.
        partner: partner, spelt exactly as in the orders.
    """

    surface: str | None = None
    owner: bytes | None = None
    taker: bytes | None = None
    orders: frozenset[UUID] = frozenset()
    chain_ids: frozenset[int] = frozenset()
    partner: str | None = None

    def matches(self, entry: RingEntry) -> bool:
        """Whether an order event has all the values that the filter asks for."""
        event = entry.event
        return (
            (self.surface is None or self.surface == event.surface)
            and (self.owner is None or self.owner == event.owner)
            and (self.partner is None or self.partner == event.partner)
            and (not self.chain_ids or event.chain_id in self.chain_ids)
            and (not self.orders or order_id(event.order_hash) in self.orders)
            and (self.taker is None or self.taker in entry.takers)
        )

    @property
    def keys(self) -> tuple[FilterKey, ...]:
        """Keys under which the hub indexes the filter.

        `keys_of` yields at least one of these keys for each event that matches the filter.
        """
        if self.orders:
            return tuple(("order", order.bytes) for order in self.orders)
        if self.owner is not None:
            return (("owner", self.owner),)
        if self.taker is not None:
            return (("taker", self.taker),)
        if self.partner is not None:
            return (("partner", self.partner),)
        if self.chain_ids:
            return tuple(("chain", chain_id) for chain_id in self.chain_ids)
        return (EVERYTHING,)


def keys_of(entry: RingEntry) -> Iterator[FilterKey]:
    """Yield the index keys of an order event, under which the hub finds all filters that may match."""
    event = entry.event
    yield "order", order_id(event.order_hash).bytes
    yield "owner", event.owner
    yield "partner", event.partner
    yield "chain", event.chain_id
    if event.surface == OTC.name:
        for taker in entry.takers:
            yield "taker", taker
    yield EVERYTHING
