"""What settlements under way take of each account, so that no more of them are begun than it can bear. Pure.

    a settlement has won -> claim -> its orders' next parts, for as long as it is under way
                             '-> refused: with the claims of others on the account it is more than is there

What is there was read before, and may be out of date: so an account without claims is never refused.

Choice: Settlements under way at once never need more of a balance or allowance than there is; further orders
    are auctioned again.
"""

from collections.abc import Callable, Container, Iterable, Sequence

from msgspec import Struct

from ...chain.holdings import Holding
from ..orders.funds import needs_of
from ..orders.life import ENDED
from ..orders.live_orders import LiveOrder

_TokenOwner = tuple[bytes, bytes]
"""(token, owner); of the native token what the owner has deposited."""


class _Claim(Struct):
    """What one settlement takes of an account, raw units; `allowed` of what was approved.

    Attributes:
        is_under_way: it is known to be: else it is about to be intended.
    """

    account: _TokenOwner
    amount: int
    allowed: int
    is_under_way: bool


class Claims:
    """One chain's, by order.

    Args:
        found: what was read last of (token, owner); None where that is nothing.
    """

    def __init__(self, found: Callable[[bytes, bytes], Holding | None]) -> None:
        self._found = found
        self._of_order: dict[bytes, _Claim] = {}
        self._of_account: dict[_TokenOwner, set[bytes]] = {}

    def tend(self, live: LiveOrder) -> None:
        """Claim what a settlement under way takes, until it has ended or was read."""
        known = self._of_order.get(live.order_hash)
        if live.settling is not None and live.row.status not in ENDED:
            self._add(live)
            self._under_way(live.order_hash)
        elif known is not None and known.is_under_way:
            self._drop(live.order_hash)

    def claim(self, orders: Sequence[LiveOrder]) -> bool:
        """Claim the next parts of orders that are about to be settled, all or none.

        Returns:
            Whether the accounts bear them, as far as that is known.
        """
        added = [live.order_hash for live in orders if self._add(live)]
        if all(self._is_borne(key) for key in added):
            return True
        self.release(added)
        return False

    def release(self, hashes: Iterable[bytes]) -> None:
        """Give up what was claimed for settlements that are not under way."""
        for key in hashes:
            known = self._of_order.get(key)
            if known is not None and not known.is_under_way:
                self._drop(key)

    def leave(self, held: Container[int]) -> None:
        """Forget the orders of shards that this engine does not hold any more."""
        for key in [key for key in self._of_order if key[0] not in held]:
            self._drop(key)

    def _add(self, live: LiveOrder) -> bool:
        """Claim the next part of an order. Whether that is new."""
        account = live.terms.src_token, live.terms.owner
        if live.order_hash in self._of_order:
            return False
        needs = needs_of(live.order, live.filled)
        allowed = needs.part if needs.allowance else 0
        self._of_order[live.order_hash] = _Claim(account, needs.part, allowed, is_under_way=False)
        self._of_account.setdefault(account, set()).add(live.order_hash)
        return True

    def _under_way(self, order_hash: bytes) -> None:
        known = self._of_order.get(order_hash)
        if known is not None:
            known.is_under_way = True

    def _is_borne(self, order_hash: bytes) -> bool:
        """Whether an account has what is claimed of it, this order's part too."""
        account = self._of_order[order_hash].account
        claims = [self._of_order[key] for key in self._of_account[account]]
        if len(claims) == 1:
            return True
        found = self._found(*account)
        if found is None:
            return False
        amount, allowed = (sum(one.amount for one in claims), sum(one.allowed for one in claims))
        return amount <= found.balance and allowed <= found.allowance

    def _drop(self, order_hash: bytes) -> None:
        account = self._of_order.pop(order_hash).account
        others = self._of_account[account]
        others.discard(order_hash)
        if not others:
            del self._of_account[account]
