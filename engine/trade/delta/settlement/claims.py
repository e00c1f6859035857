"""Claims: reservations of owners' funds, so that settlements under way do not exceed these funds. Pure.

    a bid has won -> claim -> the funds for its orders' next parts are reserved until the settlement has ended
                      '-> refused: the claims on an account together exceed its funds

The funds as read last may be out of date, so the only claim on an account is never refused.

Choice: Settlements under way at once never need more of a balance or allowance than there is; further orders
    are auctioned again.
"""

from collections.abc import Callable, Container, Iterable, Sequence

from msgspec import Struct

from ....chain.holdings import Holding
from ..orders.funds import needs_of
from ..orders.life import ENDED
from ..orders.live_orders import LiveOrder

_TokenOwner = tuple[bytes, bytes]
"""Account of an order's owner as (token, owner), 20 bytes each.

With the native token, the account is the owner's deposit at the Delta contract; with a vault, the owner's
shares.
"""


class _Claim(Struct):
    """Reserved funds of an owner's account for the settlement of one order.

    Attributes:
        amount: raw units of the balance that are reserved.
        allowed: raw units of the allowance that are reserved; 0 if the order needs no allowance.
        is_under_way: whether the settlement is stored already; False while its write to the store is ahead.
    """

    account: _TokenOwner
    amount: int
    allowed: int
    is_under_way: bool


class Claims:
    """Reservations of order owners' funds for the settlements of one chain, one reservation per order.

    Args:
        found: returns the funds of (token, owner) as read last; None if unknown.
    """

    def __init__(self, found: Callable[[bytes, bytes], Holding | None]) -> None:
        self._found = found
        self._of_order: dict[bytes, _Claim] = {}
        self._of_account: dict[_TokenOwner, set[bytes]] = {}

    def hold_while_settling(self, live: LiveOrder) -> None:
        """Reserve the owner's funds while a settlement of the order is under way; free them afterwards."""
        known = self._of_order.get(live.order_hash)
        if live.settling is not None and live.row.status not in ENDED:
            self._add(live)
            self._of_order[live.order_hash].is_under_way = True
        elif known is not None and known.is_under_way:
            self._drop(live.order_hash)

    def claim(self, orders: Sequence[LiveOrder]) -> bool:
        """Reserve owners' funds for the next settlements of orders, for all of these orders or for none.

        Returns:
            Whether the funds are reserved; False if an account's funds, as read last, do not suffice.
        """
        added = [live.order_hash for live in orders if self._add(live)]
        if all(self._is_borne(key) for key in added):
            return True
        self.release(added)
        return False

    def release(self, hashes: Iterable[bytes]) -> None:
        """Free the owners' funds that are reserved for these orders, unless a settlement is under way."""
        for key in hashes:
            known = self._of_order.get(key)
            if known is not None and not known.is_under_way:
                self._drop(key)

    def leave(self, held: Container[int]) -> None:
        """Free the owners' funds that are reserved for orders which another engine runs now.

        Args:
            held: shards of orders that this engine still runs.
        """
        for key in [key for key in self._of_order if key[0] not in held]:
            self._drop(key)

    def _add(self, live: LiveOrder) -> bool:
        """Reserve funds for the next settlement of an order; return False if some are reserved already."""
        account = live.terms.held_token, live.terms.owner
        if live.order_hash in self._of_order:
            return False
        needs = needs_of(live.order, live.filled, live.worth)
        allowed = needs.part if needs.allowance else 0
        self._of_order[live.order_hash] = _Claim(account, needs.part, allowed, is_under_way=False)
        self._of_account.setdefault(account, set()).add(live.order_hash)
        return True

    def _is_borne(self, order_hash: bytes) -> bool:
        """Whether the funds of an order's owner, as read last, cover all reservations of that account.

        The result is True if this order's reservation is the account's only one.
        """
        account = self._of_order[order_hash].account
        claims = [self._of_order[key] for key in self._of_account[account]]
        if len(claims) == 1:
            return True
        found = self._found(*account)
        if found is None:
            return False
        amount, allowed = (sum(claim.amount for claim in claims), sum(claim.allowed for claim in claims))
        return amount <= found.balance and allowed <= found.allowance

    def _drop(self, order_hash: bytes) -> None:
        account = self._of_order.pop(order_hash).account
        others = self._of_account[account]
        others.discard(order_hash)
        if not others:
            del self._of_account[account]
