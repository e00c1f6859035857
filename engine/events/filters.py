"""Filters of event streams, and the keys that index them. Pure.

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
"""Key of an event or a filter in the index: (name of a field, one of its values)."""

EVERYTHING: FilterKey = ("", "")


class EventFilter(Struct, frozen=True):
    """The events that a client wants; None or an empty tuple matches any.

    Attributes:
        surface: kind of the orders: `delta` or `otc`.
        owner: owner of the orders; the maker of OTC orders.
        taker: taker of OTC orders. An event whose body was not kept matches no taker.
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
        """Whether an event of the log has all the values that the filter wants."""
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
        """Index keys of the filter: each event that matches has at least one of them among its `keys_of`."""
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
    """Yield all index keys of an event; each filter that the event matches has at least one of these keys."""
    event = entry.event
    yield "order", order_id(event.order_hash).bytes
    yield "owner", event.owner
    yield "partner", event.partner
    yield "chain", event.chain_id
    if event.surface == OTC.name:
        for taker in entry.takers:
            yield "taker", taker
    yield EVERYTHING
