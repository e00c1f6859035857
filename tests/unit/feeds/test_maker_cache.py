"""Resources of a maker, and the books that may be routed by them."""

from collections.abc import Callable
from decimal import Decimal
from itertools import permutations
from time import thread_time
from typing import Any

import pytest

from cambist.config import limits
from cambist.feeds.books.fill import quote_paid, quote_received
from cambist.feeds.standing import PairStanding
from support.makers.maker_feeds import (
    ADDRESSES,
    DAI,
    LISTED,
    STALE_MS,
    USDC,
    WBTC,
    WETH,
    Told,
    grid,
    pair,
    pairs,
    run,
    token,
    tokens,
)

PAIR = "WETH/USDC"
OTHER = "WBTC/USDC"


def told(*pair_ids: str) -> Told:
    made = Told()
    made.everything(0, *(pair_ids or (PAIR,)))
    return made


def price_of(made: Told, base: bytes = WETH, quote: bytes = USDC) -> int | None:
    """Proceeds of the sale of one base token; None if no book is live."""
    live = made.index.between(base, quote).get(("alpha", base))
    return None if live is None else quote_received(live.book.bids, 10 ** LISTED[base])


# --- Orders of arrival, prices --------------------------------------------------------------------


@pytest.mark.parametrize("order", [*permutations(("tokens", "pairs", "prices"))], ids="-".join)
def test_order_of_polls_does_not_matter(order: tuple[str, ...]) -> None:
    made = Told()
    contents: dict[str, Any] = {"tokens": tokens(), "pairs": pairs(PAIR), "prices": {PAIR: grid()}}
    for at, name in enumerate(order):
        assert made.live() == set()
        getattr(made, name)(contents[name], at)
    assert made.live() == {(WETH, USDC)}


def test_full_prices_disable_what_they_lack_and_updates_do_not() -> None:
    made = told(PAIR, OTHER)
    made.message(1, prices={PAIR: grid("2600", "2601")})
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}
    assert price_of(made) == 2_600 * 10**6
    made.prices({PAIR: grid()}, 2)
    assert made.live() == {(WETH, USDC)}
    assert made.cache.standing(OTHER)[0] is PairStanding.UNPRICED


def test_first_message_is_complete() -> None:
    made = told(PAIR, OTHER)
    made.first(1, tokens=tokens(), pairs=pairs(PAIR), prices={PAIR: grid()})
    assert made.live() == {(WETH, USDC)}


def test_absent_side_is_cleared_and_an_empty_object_disables() -> None:
    made = told()
    made.prices({PAIR: {"asks": [["2501", "1"]]}}, 1)
    (live,) = made.index.books()
    assert live.book.bids.prices == ()
    assert live.book.asks.prices != ()
    made.message(2, prices={PAIR: {}})
    assert made.live() == set()
    assert made.cache.standing(PAIR)[0] is PairStanding.DISABLED
    made.message(3, prices={PAIR: grid()})
    assert made.live() == {(WETH, USDC)}


def test_book_without_levels_is_not_routed() -> None:
    made = told()
    made.prices({PAIR: {"bids": [], "asks": []}}, 1)
    assert made.live() == set()
    assert made.cache.standing(PAIR)[0] is PairStanding.EMPTY


def test_pair_is_retired_by_an_empty_object_and_then_removed() -> None:
    made = told(PAIR, OTHER)
    made.prices({PAIR: {}, OTHER: grid()}, 1)
    made.pairs(pairs(OTHER), 2)
    made.prices({OTHER: grid()}, 3)
    assert made.live() == {(WBTC, USDC)}
    assert set(made.cache.statistics().reasons) == set()


BAD_GRIDS = {
    "crossed": grid("2501", "2500"),
    "locked": grid("2500", "2500"),
    "unsorted": {"bids": [["1", "1"], ["2", "1"]]},
    "no price": grid("0", "1"),
    "no decimal": grid("1e", "2501"),
    "no level": {"bids": [["2500"]]},
    "numbers": {"bids": [[2500, 1]]},
    "a text": "2500",
}


@pytest.mark.parametrize("bad", BAD_GRIDS.values(), ids=BAD_GRIDS)
@pytest.mark.parametrize("over", ["poll", "socket"])
def test_bad_grid_costs_its_pair_alone_and_takes_its_old_book_out(bad: Any, over: str) -> None:
    made = told(PAIR, OTHER)
    prices = {PAIR: bad, OTHER: grid("60000", "60001")}
    made.prices(prices, 1) if over == "poll" else made.message(1, prices=prices)
    assert made.live() == {(WBTC, USDC)}
    assert price_of(made, WBTC) == 60_000 * 10**6
    standing, reason = made.cache.standing(PAIR)
    assert standing is PairStanding.REFUSED_GRID
    assert reason
    assert made.cache.statistics().refused["prices"] == 1
    made.message(2, prices={PAIR: grid()})
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}


@pytest.mark.parametrize("nothing", [None, [], {"bids": None, "asks": None}])
def test_a_grid_of_nothing_disables_its_pair_as_an_empty_object_does(nothing: Any) -> None:
    made = told(PAIR, OTHER)
    made.message(1, prices={PAIR: nothing, OTHER: grid("60000", "60001")})
    assert made.live() == {(WBTC, USDC)}
    assert made.cache.statistics().refused.get("prices", 0) == 0


def test_book_after_a_refused_one_is_built_of_its_own_grid() -> None:
    made = told()
    made.message(1, prices={PAIR: grid("2400", "2300")})
    made.message(2, prices={PAIR: grid("2400", "2501")})
    assert price_of(made) == 2_400 * 10**6


# --- Tokens ---------------------------------------------------------------------------------------


BAD_TOKENS: dict[str, tuple[Any, PairStanding]] = {
    "another type": (token("WETH", type="ERC721"), PairStanding.REFUSED_TOKEN),
    "contradicting decimals": (token("WETH", decimals=17), PairStanding.REFUSED_TOKEN),
    "no address": (token("WETH", address="0x12"), PairStanding.REFUSED_TOKEN),
    "not listed": (token("WETH", address="0x" + "99" * 20), PairStanding.UNLISTED_TOKEN),
    "the same as the other": (
        token("WETH", address=ADDRESSES["USDC"], decimals=6),
        PairStanding.REFUSED_PAIR,
    ),
}


@pytest.mark.parametrize(("bad", "standing"), BAD_TOKENS.values(), ids=BAD_TOKENS)
@pytest.mark.parametrize("over", ["poll", "socket"])
def test_bad_token_costs_its_pairs_alone(bad: Any, standing: PairStanding, over: str) -> None:
    made = told(PAIR, OTHER)
    made.tokens(tokens() | {"WETH": bad}, 1) if over == "poll" else made.message(1, tokens={"WETH": bad})
    assert made.live() == {(WBTC, USDC)}
    assert made.cache.standing(PAIR)[0] is standing
    made.message(2, tokens={"WETH": token("WETH")})
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}


@pytest.mark.parametrize("digits", [str.upper, str.lower, str.swapcase])
def test_addresses_of_tokens_come_in_any_case(digits: Callable[[str], str]) -> None:
    made = told()
    text = ADDRESSES["DAI"]
    made.message(1, tokens={"WETH": token("WETH", address="0x" + digits(text[2:]), decimals=18)})
    assert made.live() == {(DAI, USDC)}


def test_corrected_address_rebuilds_the_pairs_of_the_token() -> None:
    made = told()
    made.message(1, tokens={"WETH": token("DAI")})
    assert made.live() == {(DAI, USDC)}
    assert price_of(made, DAI) == 2_500 * 10**6


def test_other_decimals_of_a_corrected_token_scale_its_book_anew() -> None:
    made = told()
    made.message(1, tokens={"WETH": token("WBTC")})
    assert made.live() == {(WBTC, USDC)}
    assert price_of(made, WBTC) == 2_500 * 10**6


def test_token_is_deleted_by_a_poll_and_not_by_an_update() -> None:
    made = told(PAIR, OTHER)
    made.message(1, tokens=tokens("USDC"))
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}
    made.tokens(tokens("WBTC", "USDC"), 2)
    assert made.live() == {(WBTC, USDC)}
    assert made.cache.standing(PAIR)[0] is PairStanding.UNKNOWN_TOKEN


# --- Pairs ----------------------------------------------------------------------------------------


def test_corrected_pair_moves_its_book() -> None:
    made = told()
    made.message(1, pairs={PAIR: {"base": "WBTC", "quote": "DAI", "liquidityUSD": 5}})
    assert made.live() == {(WBTC, DAI)}


def test_pair_is_deleted_by_a_poll_and_not_by_an_update() -> None:
    made = told(PAIR, OTHER)
    made.message(1, pairs=pairs(PAIR))
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}
    made.pairs(pairs(PAIR), 2)
    assert made.live() == {(WETH, USDC)}


@pytest.mark.parametrize(
    "bad", [{"base": "WETH"}, {"base": "WETH", "quote": 1, "liquidityUSD": 1}, None, pair("WETH/WETH")]
)
@pytest.mark.parametrize("over", ["poll", "socket"])
def test_bad_pair_costs_itself_alone(bad: Any, over: str) -> None:
    made = told(PAIR, OTHER)
    made.pairs(pairs(OTHER) | {PAIR: bad}, 1) if over == "poll" else made.message(1, pairs={PAIR: bad})
    assert made.live() == {(WBTC, USDC)}
    assert made.cache.standing(PAIR)[0] is PairStanding.REFUSED_PAIR


def liquidity(made: Told) -> Decimal:
    return next(made.index.books()).liquidity_usd


def test_liquidity_comes_from_polls_the_first_message_and_new_pairs_only() -> None:
    made = Told()
    made.first(0, tokens=tokens(), pairs={PAIR: pair(PAIR, 10)}, prices={PAIR: grid()})
    assert liquidity(made) == 10
    made.message(1, pairs={PAIR: pair(PAIR, 20)})
    assert liquidity(made) == 10
    made.pairs({PAIR: pair(PAIR, 30)}, 2)
    assert liquidity(made) == 30
    made.first(3, tokens=tokens(), pairs={PAIR: pair(PAIR, 40)}, prices={PAIR: grid()})
    assert liquidity(made) == 40
    made.message(4, pairs={OTHER: pair(OTHER, 50)}, prices={OTHER: grid()})
    assert made.index.neighbours(WBTC) == {USDC: 50}


def test_liquidity_below_zero_is_none() -> None:
    made = told()
    made.pairs({PAIR: pair(PAIR, -5)}, 1)
    assert liquidity(made) == 0


def test_pair_that_the_socket_brought_after_a_poll_was_sent_outlives_its_answer() -> None:
    made = told()
    made.message(100, pairs=pairs(OTHER), prices={OTHER: grid()}, tokens={"WETH": token("DAI")})
    made.pairs(pairs(PAIR), 110, asked_ms=90)
    made.tokens(tokens(), 110, asked_ms=90)
    assert made.live() == {(DAI, USDC), (WBTC, USDC)}
    made.pairs(pairs(PAIR), 130, asked_ms=120)
    made.tokens(tokens(), 130, asked_ms=120)
    assert made.live() == {(WETH, USDC)}


def test_poll_that_was_sent_before_a_first_message_brings_nothing_back() -> None:
    made = told(PAIR, OTHER)
    made.first(100, tokens=tokens(), pairs=pairs(PAIR), prices={PAIR: {}})
    made.pairs(pairs(PAIR, OTHER), 110, asked_ms=99)
    made.prices({PAIR: grid(), OTHER: grid()}, asked_ms=99, now_ms=110)
    made.tokens({"WETH": token("DAI")}, 110, asked_ms=99)
    made.blacklist([f"0x{'ab' * 20}"], 110, asked_ms=99)
    assert made.live() == set()
    assert not made.cache.blacklist.holds(b"\xab" * 20, 110)
    assert made.cache.standing(PAIR)[0] is PairStanding.DISABLED
    made.prices({PAIR: grid()}, asked_ms=100, now_ms=120)
    assert made.live() == {(WETH, USDC)}


# --- Two pair ids between the same tokens ---------------------------------------------------------


def test_of_two_ids_between_the_same_tokens_the_first_usable_one_counts() -> None:
    made = Told()
    made.tokens(tokens())
    made.pairs({"b": pair(PAIR), "a": pair(PAIR), "c": pair("USDC/WETH")})
    made.prices({"b": grid("2400", "2401"), "c": grid("0.0003", "0.0004")})
    assert price_of(made) == 2_400 * 10**6
    assert made.cache.standing("c")[0] is PairStanding.DOUBLED
    made.message(1, prices={"a": grid("2300", "2301")})
    assert price_of(made) == 2_300 * 10**6
    made.message(2, prices={"a": {}, "b": grid("3", "2")})
    assert made.live() == {(USDC, WETH)}


# --- Age, rest, withholding -----------------------------------------------------------------------


def test_book_that_is_not_confirmed_leaves_and_a_confirmation_brings_it_back() -> None:
    made = told(PAIR, OTHER)
    made.message(5_000, prices={PAIR: grid()})
    made.cache.expire(STALE_MS)
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}
    made.cache.expire(STALE_MS + 1)
    assert made.live() == {(WETH, USDC)}
    assert made.cache.standing(OTHER)[0] is PairStanding.STALE
    made.cache.expire(STALE_MS + 2)
    made.message(STALE_MS + 3, prices={OTHER: grid()})
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}
    assert made.cache.standing(OTHER)[0] is PairStanding.LIVE


def test_poll_of_prices_confirms_what_the_socket_told_before_it_and_not_what_it_told_since() -> None:
    made = told(PAIR, OTHER)
    made.message(1_000, prices={PAIR: grid("2400", "2401"), OTHER: grid()})
    made.prices({PAIR: grid("2300", "2301")}, asked_ms=1_000, now_ms=1_200)
    assert price_of(made) == 2_300 * 10**6
    assert made.live() == {(WETH, USDC)}
    made.message(1_500, prices={PAIR: grid("2400", "2401"), OTHER: grid()})
    made.prices({PAIR: grid("2300", "2301")}, asked_ms=1_400, now_ms=1_600)
    assert price_of(made) == 2_400 * 10**6
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}


def test_pair_rests_in_either_order_until_then() -> None:
    made = told(PAIR, OTHER)
    made.cache.rest_pair(USDC, WETH, 3_000)
    assert made.live() == {(WBTC, USDC)}
    assert made.cache.standing(PAIR)[0] is PairStanding.RESTING
    made.message(1, prices={PAIR: grid("2", "3")})
    assert made.live() == {(WBTC, USDC)}
    made.cache.expire(2_999)
    assert made.live() == {(WBTC, USDC)}
    made.cache.expire(3_000)
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}


def test_it_says_why_books_of_a_token_are_out_of_routing() -> None:
    made = told(PAIR, OTHER)
    assert made.cache.hidden(WETH, USDC) == set()
    made.cache.rest_pair(USDC, WETH, 3_000)
    assert made.cache.hidden(WETH) == {PairStanding.RESTING}
    assert made.cache.hidden(WBTC) == set()
    made.cache.rest_maker(4_000)
    assert made.cache.hidden(WBTC) == {PairStanding.RESTING}
    made.cache.withhold("socket")
    assert made.cache.hidden(WBTC) == {PairStanding.WITHHELD}
    made.cache.release("socket")
    made.cache.expire(STALE_MS + 1)
    assert made.cache.hidden(WETH, WBTC) == {PairStanding.STALE}


def test_maker_rests_until_then() -> None:
    made = told(PAIR, OTHER)
    made.cache.rest_maker(3_000)
    assert made.live() == set()
    made.cache.expire(2_999)
    assert made.live() == set()
    made.cache.expire(3_000)
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}


def test_a_bound_cuts_one_side_until_then_whatever_is_told_meanwhile() -> None:
    made = told(PAIR, OTHER)
    one = 10 ** LISTED[WETH]
    made.cache.bound(WETH, USDC, one // 2, 3_000)
    made.message(1, prices={PAIR: grid("2", "3")})
    (live,) = made.index.between(WETH, USDC).values()
    assert quote_received(live.book.bids, one // 2) == 10**6
    assert quote_received(live.book.bids, one // 2 + 1) is None
    assert quote_paid(live.book.asks, one) == 3 * 10**6
    made.cache.bound(USDC, WETH, 0, 4_000)
    (live,) = made.index.between(WETH, USDC).values()
    assert live.book.asks.prices == ()
    made.cache.bound(WETH, USDC, 0, 3_000)
    assert made.live() == {(WBTC, USDC)}
    made.cache.expire(2_999)
    assert made.live() == {(WBTC, USDC)}
    made.cache.expire(3_000)
    assert price_of(made) == 2 * 10**6
    made.cache.expire(4_000)
    (live,) = made.index.between(WETH, USDC).values()
    assert quote_paid(live.book.asks, one) == 3 * 10**6


def test_what_is_freed_neither_rests_nor_is_bounded() -> None:
    made = told(PAIR, OTHER)
    made.cache.rest_pair(WETH, USDC, 3_000)
    made.cache.rest_maker(3_000)
    made.cache.bound(WBTC, USDC, 0, 3_000)
    made.cache.free(1)
    assert made.live() == {(WETH, USDC), (WBTC, USDC)}
    assert price_of(made, WBTC) is not None


def test_every_reason_must_be_released() -> None:
    made = told()
    made.cache.withhold("prices")
    made.cache.withhold("socket")
    made.cache.rest_maker(3_000)
    made.message(1, prices={PAIR: grid("2", "3")})
    assert made.live() == set()
    assert made.cache.standing(PAIR) == (PairStanding.WITHHELD, "prices, rest, socket")
    made.cache.release("prices")
    made.cache.expire(3_000)
    assert made.live() == set()
    made.cache.release("socket")
    assert made.live() == {(WETH, USDC)}
    assert price_of(made) == 2 * 10**6


# --- Limits, noise, sight -------------------------------------------------------------------------


def test_unchanged_grid_is_no_change_of_the_index() -> None:
    made = told(PAIR, OTHER)
    version = made.index.version
    made.everything(1, PAIR, OTHER)
    assert made.index.version == version


def test_generator_yields_after_every_pair() -> None:
    from cambist.codecs.messages.maker_messages import Decoded, PriceGrid, PricesBody

    made = told(PAIR, OTHER)
    prices = {name: PriceGrid(bids=(("1", "1"),)) for name in (PAIR, OTHER)}
    assert run(made.cache.apply_prices(Decoded(PricesBody(prices), {}), 1, 1)) == 2


def test_pairs_that_are_never_listed_are_bounded_and_forgotten() -> None:
    made = told()
    strangers: dict[str, Any] = {f"X{at}/Y": {} for at in range(limits.MAKER_ENTRIES_MAX)}
    made.message(1, prices=strangers)
    assert made.cache.statistics().refused["prices"] == 1
    made.message(2, prices={PAIR: grid("2", "3")})
    assert price_of(made) == 2 * 10**6
    made.cache.expire(STALE_MS + 3)
    assert made.cache.statistics().pairs == {PairStanding.STALE: 1}


def test_prices_that_expire_while_a_list_of_pairs_is_applied_are_forgotten_once() -> None:
    from cambist.codecs.messages.maker_messages import Decoded, PairsBody

    made = told()
    strangers: dict[str, Any] = {f"X{at}/Y": grid() for at in range(2)}
    made.message(1, prices=strangers)
    steps = made.cache.apply_pairs(Decoded(PairsBody({}), {}), 2, 2)
    next(steps)
    made.cache.expire(STALE_MS + 3)
    run(steps)
    assert list(made.cache.report()) == []


def test_overlong_names_are_refused() -> None:
    made = Told()
    name = "W" * (limits.NAME_CHARS_MAX + 1)
    made.message(0, tokens={name: token("WETH")}, pairs={name: pair(PAIR)}, prices={name: grid()})
    assert made.cache.statistics().refused == {"tokens": 1, "pairs": 1, "prices": 1}


def test_blacklist_is_taken_address_by_address() -> None:
    made = Told()
    one, two = ("0x" + digits * 20 for digits in ("Aa", "bb"))
    made.blacklist([one, one.lower(), "0x12", 7, two], 0)
    made.message(1, blacklist=["0x" + "cc" * 20, "nobody"])
    made.blacklist([two], 2)
    held = [made.cache.blacklist.holds(bytes([at]) * 20, 3) for at in (0xAA, 0xBB, 0xCC)]
    assert held == [False, True, True]
    assert made.cache.statistics().refused["blacklist"] == 4  # the one that is said twice is one of them


def test_live_pair_is_told_with_its_tokens_and_grid() -> None:
    made = told(PAIR, OTHER)
    made.message(1, prices={OTHER: {}})
    found = made.cache.live(PAIR)
    assert found is not None
    assert found[:2] == (WETH, USDC)
    assert found[2].bids == (("2500", "1"),)
    assert made.cache.live(OTHER) is None
    assert made.cache.live("never told") is None


def test_operator_sees_why_a_book_is_not_live() -> None:
    made = told(PAIR, OTHER)
    made.message(7, prices={PAIR: grid("2", "1")})
    statistics = made.cache.statistics()
    assert statistics.pairs == {PairStanding.LIVE: 1, PairStanding.REFUSED_GRID: 1}
    assert "expected a price above the best bid, 2, got '1'" in statistics.reasons[PAIR]
    assert statistics.updated_ms == 7
    made.tokens(tokens() | {"WBTC": token("WBTC", decimals=9)}, 8)
    assert made.cache.standing(OTHER)[1].endswith("tokens.WBTC.decimals: expected 8, got 9")


def test_many_pairs_between_the_same_tokens_cost_no_more_each() -> None:
    """A maker may rename one pair for ever: what a look at each costs does not grow with their number."""

    def seconds_each(count: int) -> float:
        ids = [f"{at}" for at in range(count)]
        told = Told()
        told.tokens(tokens())
        told.pairs(dict.fromkeys(ids, pair(PAIR)))
        told.prices(dict.fromkeys(ids, grid()))
        times = []
        for _ in range(5):
            began = thread_time()
            assert told.cache.statistics().pairs == {PairStanding.LIVE: 1, PairStanding.DOUBLED: count - 1}
            times.append(thread_time() - began)
        return min(times) / count

    assert seconds_each(2_000) < 4 * seconds_each(100)


@pytest.mark.parametrize("is_stale_first", [False, True])
def test_a_grid_that_is_stale_and_has_no_pair_is_forgotten(is_stale_first: bool) -> None:
    told = Told()
    told.everything(0, PAIR)
    later_ms = STALE_MS + 1
    if is_stale_first:
        told.cache.expire(later_ms)
    told.pairs({}, later_ms)
    told.cache.expire(later_ms)
    assert not told.cache.statistics().pairs
