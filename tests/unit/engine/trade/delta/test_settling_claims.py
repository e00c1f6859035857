"""Claims on owners' funds against a plain list of them, in any order of occurrences."""

from types import SimpleNamespace
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.engine.chain.holdings import Holding
from cambist.engine.trade.delta.bids.bids import RoundOrder
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.settlement.claims import Claims
from support.delta.bidding import ALICE, ONE, WETH, a_delta_order, a_round_order
from support.examples import examples
from support.store.stores import BOB

ORDERS = [
    a_round_order(1),
    a_round_order(2, a_delta_order(nonce=2, src_amount=2)),
    a_round_order(3, a_delta_order(nonce=3, src_amount=3, permit=b"granted")),
    a_round_order(4, a_delta_order(nonce=4, src_amount=4, owner=BOB)),
    a_round_order(5, a_delta_order(nonce=5, src_amount=5, owner=BOB)),
]
SHARDS = {asked.order_hash[0] for asked in ORDERS}
FUNDS = [None, *(Holding(balance, allowance) for balance in (ONE + 5, 9, 8) for allowance in (ONE + 2, 9, 8))]
ANY = st.sampled_from(ORDERS)
SOME = st.lists(ANY, unique_by=lambda asked: asked.order_hash)
OCCURRENCES = st.one_of(
    st.tuples(
        st.just("hold"),
        st.tuples(ANY, st.booleans(), st.sampled_from((OrderStatus.ACTIVE, OrderStatus.COMPLETED))),
    ),
    st.tuples(st.just("claim"), SOME),
    st.tuples(st.just("release"), SOME),
    st.tuples(st.just("leave"), st.sets(st.sampled_from(sorted(SHARDS)))),
    st.tuples(st.just("read"), st.tuples(st.sampled_from((ALICE, BOB)), st.sampled_from(FUNDS))),
)


def a_live(
    asked: RoundOrder, *, settling: bool = False, status: OrderStatus = OrderStatus.ACTIVE
) -> LiveOrder:
    row: Any = SimpleNamespace(order_hash=asked.order_hash, status=status)
    return LiveOrder(row, asked.order, asked.document, asked.terms, settling="key" if settling else None)


class PlainClaims:
    """A list of reserved orders, each with whether its settlement is under way."""

    def __init__(self, funds: dict[bytes, Holding | None]) -> None:
        self._funds = funds
        self.held: dict[bytes, tuple[RoundOrder, bool]] = {}

    def hold(self, asked: RoundOrder, is_settling: bool, status: OrderStatus) -> None:
        if is_settling and status is OrderStatus.ACTIVE:
            self.held[asked.order_hash] = asked, True
        elif self.held.get(asked.order_hash, (asked, False))[1]:
            del self.held[asked.order_hash]

    def claim(self, orders: list[RoundOrder]) -> bool:
        fresh = [asked for asked in orders if asked.order_hash not in self.held]
        self.held |= {asked.order_hash: (asked, False) for asked in fresh}
        if all(self._is_borne(asked.terms.owner) for asked in fresh):
            return True
        self.release(fresh)
        return False

    def release(self, orders: list[RoundOrder]) -> None:
        for asked in orders:
            if not self.held.get(asked.order_hash, (asked, True))[1]:
                del self.held[asked.order_hash]

    def leave(self, shards: set[int]) -> None:
        self.held = {key: entry for key, entry in self.held.items() if key[0] in shards}

    def _is_borne(self, owner: bytes) -> bool:
        own = [asked for asked, _ in self.held.values() if asked.terms.owner == owner]
        found = self._funds[owner]
        if len(own) == 1 or found is None:
            return len(own) == 1
        amounts = [asked.part.src_amount for asked in own]
        allowed = [asked.part.src_amount for asked in own if not asked.terms.permit]
        return sum(amounts) <= found.balance and sum(allowed) <= found.allowance


@settings(max_examples=examples(150))
@given(st.lists(OCCURRENCES, max_size=25))
def test_an_accounts_claims_together_never_exceed_its_funds_unless_there_is_a_single_one(
    occurrences: list[tuple[str, Any]],
) -> None:
    funds: dict[bytes, Holding | None] = {ALICE: FUNDS[1], BOB: FUNDS[1]}

    def found(token: bytes, owner: bytes) -> Holding | None:
        assert token == WETH
        return funds[owner]

    claims, plain = Claims(found), PlainClaims(funds)
    for name, given_ in occurrences:
        match name:
            case "hold":
                asked, is_settling, status = given_
                claims.hold_while_settling(a_live(asked, settling=is_settling, status=status))
                plain.hold(asked, is_settling, status)
            case "claim":
                assert claims.claim([a_live(asked) for asked in given_]) == plain.claim(given_)
            case "release":
                claims.release([asked.order_hash for asked in given_])
                plain.release(given_)
            case "leave":
                claims.leave(given_)
                plain.leave(given_)
            case _:
                owner, holding = given_
                funds[owner] = holding
        assert claims._of_order.keys() == plain.held.keys()
        owners = {asked.terms.owner for asked, _ in plain.held.values()}
        assert claims._of_account.keys() == {(WETH, owner) for owner in owners}, "nothing else is left"
