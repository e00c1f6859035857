"""Places of unfilled swaps: from when to when a swap takes them, and what is remembered of it afterwards."""

import itertools

import pytest

from cambist.config import limits
from cambist.config.errors import InsufficientBalance, RateLimited
from cambist.engine.host.admission.budgets import SWAPS_OF_KEY, SWAPS_OF_NETWORK
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.trade.market.unfilled import Asker, ShownUser, UnfilledSwap, UnfilledSwaps
from cambist.engine.trade.routing.firm.firm_parts import HeldQuote
from cambist.engine.trade.routing.firm.stock import StockShares
from support.venue.market_place import ANYBODY, CHAIN_ID, KEYED, ONE, STRANGER, USER_PLACES, WETH

NOW_S = 1_700_000_000
USER = b"\xbb" * 20
OTHER = Asker("network 198.51.100", False, 2)
SIGNED = b"\x01" * 32
UNSEEN = b""


def some_swaps(ledger: Ledger | None = None) -> UnfilledSwaps:
    ledger = ledger or Ledger()
    return UnfilledSwaps(ledger, CHAIN_ID, StockShares(ledger, CHAIN_ID), USER_PLACES)


_pairs = itertools.count(1)


def begun(
    swaps: UnfilledSwaps,
    *quotes: tuple[int, bytes],
    asker: Asker = ANYBODY,
    user: bytes = USER,
    shown: ShownUser | None = None,
    after_s: int = 0,
    tokens: tuple[bytes, bytes] | None = None,
) -> UnfilledSwap:
    """A swap for which makers have signed quotes, each (seconds until its expiry, digest), all asked for.

    Args:
        tokens: None for two that no other swap has.
    """
    tokens = tokens or (next(_pairs).to_bytes(20, "big"), b"\x02" * 20)
    swap = swaps.begin(asker, user, tokens, shown, NOW_S + after_s)
    swap.quotes += [HeldQuote(NOW_S + in_s, b"", digest32) for in_s, digest32 in quotes]
    if quotes:
        swaps.end(swap)
    return swap


def test_a_swap_is_over_with_its_last_quote_and_at_once_without_any() -> None:
    swaps = some_swaps()
    assert begun(swaps, (60, SIGNED), (90, UNSEEN), (30, SIGNED)).over_s == NOW_S + 90
    assert begun(swaps).over_s == 0


def test_a_swap_that_is_built_anew_leaves_its_place_once_no_maker_is_asked() -> None:
    swaps, pair = some_swaps(), (b"\x01" * 20, b"\x02" * 20)
    first = begun(swaps, (60, SIGNED), tokens=pair)
    second = begun(swaps, tokens=pair)  # makers are still asked
    assert swaps.of(ANYBODY, USER, NOW_S) == (second,)
    assert swaps.past(ANYBODY, NOW_S) == (first,)
    second.quotes.append(HeldQuote(NOW_S + 60, b"", SIGNED))
    swaps.end(second)
    other_way = begun(swaps, (60, SIGNED), tokens=(pair[1], pair[0]))
    keyed = begun(swaps, (60, SIGNED), tokens=pair, asker=KEYED)
    assert swaps.of(ANYBODY, USER, NOW_S) == (second, other_way)
    swaps.free(other_way)
    third = begun(swaps, (60, SIGNED), tokens=pair)
    assert swaps.of(ANYBODY, USER, NOW_S) == (third,)
    assert swaps.of(KEYED, STRANGER, NOW_S) == (keyed,)


def test_a_swap_that_is_built_anew_shows_the_same_funds() -> None:
    swaps, pair = some_swaps(), (b"\x01" * 20, b"\x02" * 20)
    shown = ShownUser(USER, pair[0], 10, 10)
    for _ in range(3 * USER_PLACES):
        begun(swaps, (60, SIGNED), tokens=pair, shown=shown)
    with pytest.raises(InsufficientBalance):
        begun(swaps, (60, SIGNED), tokens=(pair[0], b"\x03" * 20), shown=shown)


def test_a_swap_has_its_place_while_makers_are_asked_and_through_the_last_second_of_its_quotes() -> None:
    swaps = some_swaps()
    swap = begun(swaps)
    assert swaps.of(ANYBODY, USER, NOW_S) == (swap,)
    swap.quotes.append(HeldQuote(NOW_S + 60, b"", SIGNED))
    assert swaps.of(ANYBODY, STRANGER, NOW_S + 61) == (swap,)
    swaps.end(swap)
    assert swaps.of(ANYBODY, STRANGER, NOW_S + 60) == (swap,)
    assert swaps.past(ANYBODY, NOW_S + 60) == ()
    assert swaps.of(ANYBODY, STRANGER, NOW_S + 61) == ()
    assert swaps.past(ANYBODY, NOW_S + 61) == (swap,)
    assert len(swaps) == 0


def test_a_swap_without_a_quote_leaves_its_place_when_it_ends_and_others_stay() -> None:
    swaps = some_swaps()
    first, second = begun(swaps), begun(swaps)
    swaps.end(first)
    assert swaps.of(ANYBODY, USER, NOW_S) == (second,)
    assert begun(swaps) in swaps.of(ANYBODY, USER, NOW_S)
    swaps.free(first)
    assert len(swaps.of(ANYBODY, USER, NOW_S)) == 2
    swaps.end(begun(swaps, asker=OTHER))
    assert len(swaps) == 1


def test_places_of_a_caller_and_of_a_user_who_has_signed_are_told_together_once() -> None:
    swaps = some_swaps()
    shown = ShownUser(USER, WETH, 1, ONE)
    both, of_user = begun(swaps, shown=shown), begun(swaps, asker=OTHER, shown=shown)
    of_caller = begun(swaps, user=STRANGER)
    assert set(swaps.of(ANYBODY, USER, NOW_S)) == {both, of_user, of_caller}
    assert set(swaps.of(ANYBODY, STRANGER, NOW_S)) == {both, of_caller}
    assert len(swaps) == 3


def test_expired_swaps_weigh_on_their_caller_while_its_network_has_less_of_the_stock() -> None:
    swaps = some_swaps()
    swap = begun(swaps, (60, SIGNED))
    assert swaps.of(ANYBODY, USER, NOW_S + 61) == ()
    last_s = NOW_S + 60 + limits.VENUE_STOCK_REFILL_S
    assert swaps.past(ANYBODY, last_s) == (swap,)
    assert swaps.past(ANYBODY, last_s + 1) == ()
    assert swaps.past(OTHER, last_s) == ()


def test_of_an_expired_swap_a_maker_must_have_signed_and_none_have_been_filled_to_weigh() -> None:
    swaps = some_swaps()
    begun(swaps, (60, UNSEEN))
    partly = begun(swaps, (60, UNSEEN), (60, SIGNED))
    filled = begun(swaps, (60, bytes(32)), asker=OTHER)
    assert swaps.free_filled([filled], {bytes(32)}, NOW_S)
    begun(swaps, asker=KEYED, after_s=61)
    assert swaps.past(ANYBODY, NOW_S + 61) == (partly,)
    assert swaps.past(OTHER, NOW_S + 61) == ()


def test_the_wait_is_until_the_first_swap_is_over_and_a_second_at_least() -> None:
    swaps = some_swaps()
    begun(swaps, (30, SIGNED), (100, SIGNED))
    begun(swaps, (60, SIGNED))
    for after_s, wait_s in ((0, 61), (59, 2), (60, 1)):
        with pytest.raises(RateLimited, match="2 swaps are signed") as told:
            begun(swaps, after_s=after_s)
        assert told.value.retry_after_s == wait_s
    under_way = some_swaps()
    for _ in range(ANYBODY.places):
        begun(under_way)
    with pytest.raises(RateLimited) as told:
        begun(under_way)
    assert told.value.retry_after_s == 1


def test_a_keys_swaps_and_a_networks_are_counted_apart() -> None:
    ledger = Ledger()
    swaps = some_swaps(ledger)
    for has_key, counted in ((True, (1, 0)), (False, (1, 1))):
        begun(swaps, asker=Asker("of the same name", has_key, 1))
        account = CHAIN_ID, "of the same name"
        assert tuple(ledger.held(kind, account) for kind in (SWAPS_OF_KEY, SWAPS_OF_NETWORK)) == counted


def test_a_user_shows_the_same_funds_once() -> None:
    swaps = some_swaps()
    begun(swaps, (60, SIGNED), shown=ShownUser(USER, WETH, 60, 100))
    begun(swaps, shown=ShownUser(USER, STRANGER, 100, 100))
    with pytest.raises(InsufficientBalance, match="expected at least 101, got 100"):
        begun(swaps, asker=OTHER, shown=ShownUser(USER, WETH, 41, 100))
    begun(swaps, asker=OTHER, shown=ShownUser(USER, WETH, 40, 100))


def test_a_user_has_settled_for_a_day_with_the_network_that_asked_and_with_no_key() -> None:
    swaps = some_swaps()
    swap, keyed = begun(swaps, (60, SIGNED)), begun(swaps, (60, SIGNED), asker=KEYED)
    assert not swaps.has_settled(ANYBODY, USER, 0)
    assert swaps.free_filled([swap, keyed], {SIGNED}, NOW_S)
    end_s = NOW_S + limits.VENUE_SETTLED_CONSENT_S
    assert swaps.has_settled(ANYBODY, USER, end_s - 1)
    assert not swaps.has_settled(ANYBODY, USER, end_s)
    assert not swaps.has_settled(OTHER, USER, NOW_S)
    assert not swaps.has_settled(ANYBODY, STRANGER, NOW_S)
    assert not swaps.has_settled(KEYED, USER, NOW_S)
    assert swaps.of(ANYBODY, USER, NOW_S) == swaps.of(KEYED, USER, NOW_S) == ()


def test_each_new_swap_takes_out_the_oldest_that_are_over_to_the_second() -> None:
    swaps = some_swaps()
    begun(swaps, (60, SIGNED))
    begun(swaps, asker=OTHER, after_s=60)
    assert len(swaps) == 2
    begun(swaps, asker=KEYED, after_s=61)
    assert len(swaps) == 2


def test_a_swap_for_which_makers_are_asked_is_not_taken_out() -> None:
    swaps = some_swaps()
    under_way = begun(swaps)
    begun(swaps, asker=OTHER, after_s=1)
    assert swaps.of(ANYBODY, USER, NOW_S + 1) == (under_way,)
    assert len(swaps) == 2
