"""Places of the orders in memory: which order gives way to a new one where all places are taken. Pure.

    by stake        orders of less stake give way first, to each order of more stake
    at one stake    the causer with the most orders gives way, its oldest order first, and only to a causer
                    who has fewer even with the new order

The causer of an order is the network or key that submitted it; all orders whose causer is unknown, as after a
restart, have one together. Callers without a stake thus share their places equally: the first keep no others
out. Orders that funds back give way to none.

Source: docs/explanation/security.md, "Costs and stakes".
"""

from collections.abc import Hashable
from enum import IntEnum


class OrderStake(IntEnum):
    """Stake behind an order in memory, the least first."""

    UNLISTED = 0  # a token that the operator has not listed, whose contract may tell anything of funds
    UNBACKED = 1  # no signature yet, no funds, or funds that are worth next to nothing
    KEYED = 2  # likewise, submitted with an API key: its holder answers to the operator
    BACKED = 3  # funds of a listed token


def is_key(causer: str) -> bool:
    """Whether a causer is an API key (`key NAME`)."""
    return causer.startswith("key ")


def unbacked(causer: str) -> OrderStake:
    """Stake of an order that nothing backs, by its causer."""
    return OrderStake.KEYED if is_key(causer) else OrderStake.UNBACKED


class Places:
    """Orders in memory by stake and causer. Each method takes the same time for any number of orders."""

    def __init__(self) -> None:
        self._of_order: dict[bytes, tuple[OrderStake, Hashable]] = {}
        self._ranks: dict[OrderStake, _Rank] = {stake: _Rank() for stake in OrderStake}

    def count(self, stake: OrderStake) -> int:
        """Number of orders with a stake."""
        return len(self._ranks[stake])

    @property
    def total(self) -> int:
        """Number of all orders."""
        return len(self._of_order)

    @property
    def unbacked(self) -> int:
        """Number of orders that nothing backs, with or without an API key: they share their places."""
        return self.count(OrderStake.UNBACKED) + self.count(OrderStake.KEYED)

    def put(self, order_hash: bytes, stake: OrderStake, causer: Hashable) -> None:
        """Give an order a place, in exchange for its earlier place if it had another stake or causer."""
        if self._of_order.get(order_hash) != (stake, causer):
            self.drop(order_hash)
            self._of_order[order_hash] = stake, causer
            self._ranks[stake].put(order_hash, causer)

    def drop(self, order_hash: bytes) -> None:
        """Take an order's place away; an order without a place is ignored."""
        place = self._of_order.pop(order_hash, None)
        if place is not None:
            stake, causer = place
            self._ranks[stake].drop(order_hash, causer)

    def giving_way(
        self, stake: OrderStake, causer: Hashable, least: OrderStake = OrderStake.UNLISTED
    ) -> bytes | None:
        """Hash of the order that gives way to a new order; None if no order does.

        Args:
            stake: stake of the new order.
            causer: causer of the new order.
            least: least stake of an order that may give way.
        """
        for lower in OrderStake:
            if least <= lower < stake and (oldest := self._ranks[lower].oldest(0)) is not None:
                return oldest
        if stake is OrderStake.BACKED:
            return None
        own = self._ranks[stake]
        return own.oldest(own.count_of(causer) + 1)


class _Rank:
    """Orders of one stake by causer, and the causers by their number of orders."""

    def __init__(self) -> None:
        self._orders: dict[Hashable, dict[bytes, None]] = {}  # of a causer, the oldest first
        self._causers: dict[int, dict[Hashable, None]] = {}  # with a number of orders
        self._most = self._total = 0

    def __len__(self) -> int:
        return self._total

    def count_of(self, causer: Hashable) -> int:
        return len(self._orders.get(causer, ()))

    def put(self, order_hash: bytes, causer: Hashable) -> None:
        orders = self._orders.setdefault(causer, {})
        orders[order_hash] = None
        self._total += 1
        self._moved(causer, len(orders) - 1, len(orders))

    def drop(self, order_hash: bytes, causer: Hashable) -> None:
        orders = self._orders[causer]
        del orders[order_hash]
        self._total -= 1
        self._moved(causer, len(orders) + 1, len(orders))
        if not orders:
            del self._orders[causer]

    def oldest(self, beyond: int) -> bytes | None:
        """Oldest order of the causer with the most orders; None unless these are more than `beyond`."""
        if self._most <= beyond:
            return None
        causer = next(iter(self._causers[self._most]))
        return next(iter(self._orders[causer]))

    def _moved(self, causer: Hashable, before: int, after: int) -> None:
        if before:
            same = self._causers[before]
            del same[causer]
            if not same:
                del self._causers[before]
        if after:
            self._causers.setdefault(after, {})[causer] = None
        # One order at a time: if nobody has `before` orders any more, this causer has one less, or one more.
        if after > self._most or self._most not in self._causers:
            self._most = after
