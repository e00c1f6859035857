"""Orders from vaults take turns: an owner with many orders does not have their vaults asked all at once."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.limits import VENUE_VAULT_ORDERS_MAX
from cambist.engine.chain.index.watch import Watch
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.vault import VaultWorth
from cambist.engine.trade.delta.settlement.funds_watch import FundsWatch
from support.delta.bidding import ALICE, ONE, VAULT, a_productive_order, asked_for

BOB = b"\xb0" * 20
ALICES, BOBS = (VAULT, ALICE), (VAULT, BOB)
WORTH = VaultWorth(ONE, ONE, ONE, is_given=True)


class Turns:
    """A watch of funds that no task runs, and the orders that it follows."""

    def __init__(self) -> None:
        nothing = cast("Any", None)
        self.lives: dict[bytes, LiveOrder] = {}
        self.funds = FundsWatch(
            nothing,
            cast("Any", self.lives),
            Watch(),
            delta=b"\xde" * 20,
            vaults=nothing,
            revalued=lambda _: None,
            read_to=lambda: None,
            wall_ms=lambda: 0,
        )

    def add(self, count: int, owner: bytes = ALICE) -> list[LiveOrder]:
        """Follow so many more orders of an owner."""
        added = []
        for _ in range(count):
            number = len(self.lives)
            asked = asked_for(a_productive_order(owner=owner, nonce=number), number)
            row: Any = SimpleNamespace(order_hash=asked.order_hash, status=OrderStatus.ACTIVE, is_final=False)
            live = LiveOrder(row, asked.order, asked.document, asked.terms)
            self.lives[live.order_hash] = live
            self.funds.watch_owner(live)
            added.append(live)
        return added

    def look(self, *accounts: Any) -> tuple[list[LiveOrder], frozenset[Any]]:
        """Ask the vaults of the orders whose turn it is, and which accounts have to be read once more."""
        asked, later = self.funds._orders_of_vaults(accounts)
        for live in asked:
            live.worth = WORTH
        return asked, later


@pytest.mark.parametrize("count", [0, 1, VENUE_VAULT_ORDERS_MAX])
def test_few_orders_are_all_asked_for(count: int) -> None:
    turns = Turns()
    lives = turns.add(count)
    assert turns.look(ALICES) == (lives, frozenset())
    assert turns.look(ALICES) == (lives, frozenset())


def test_many_orders_take_turns_and_none_waits_for_its_first_read_unseen() -> None:
    turns = Turns()
    lives = turns.add(2 * VENUE_VAULT_ORDERS_MAX)
    seen: list[LiveOrder] = []
    for has_more in (True, False):
        asked, later = turns.look(ALICES)
        assert len(asked) <= VENUE_VAULT_ORDERS_MAX
        assert (later == {ALICES}) == has_more
        seen += asked
    assert sorted(seen, key=id) == sorted(lives, key=id)
    for part in (seen[:VENUE_VAULT_ORDERS_MAX], seen[VENUE_VAULT_ORDERS_MAX:]):
        assert turns.look(ALICES) == (part, frozenset()), "read longest ago, first"


def test_another_owners_new_order_comes_before_orders_that_were_read() -> None:
    turns = Turns()
    turns.add(2 * VENUE_VAULT_ORDERS_MAX)
    turns.look(ALICES)
    turns.look(ALICES)
    (bobs,) = turns.add(1, BOB)
    asked, later = turns.look(ALICES, BOBS)
    assert asked[0] is bobs
    assert later == frozenset()


def test_orders_that_ended_leave_nothing() -> None:
    turns = Turns()
    (live,) = turns.add(1)
    turns.look(ALICES)
    live.row = cast(
        "Any", SimpleNamespace(order_hash=live.order_hash, status=OrderStatus.COMPLETED, is_final=True)
    )
    turns.funds.watch_owner(live)
    assert turns.funds._of_vault == {}
    assert turns.look(ALICES) == ([], frozenset())
