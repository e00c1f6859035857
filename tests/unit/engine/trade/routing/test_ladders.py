"""Merged ladders: amounts, the makers' shares, and the times of a rebuild."""

from decimal import Decimal
from itertools import combinations
from random import Random

import pytest

from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.search.ladders import (
    ANYBODY,
    LADDERS_MAX,
    Ladders,
    LadderShare,
    MakerFilter,
    MergedLadder,
    merge,
    through,
)
from cambist.feeds.books.pair_index import LiveBook
from support.call_counts import counted
from support.makers.live_books import DAI, ODD, ONE, USDC, WBTC, WETH, a_book, an_index

ALPHA = a_book("alpha", WETH, USDC, bids="2500 1 | 2490 4", asks="2510 1 | 2520 4")
BETA = a_book("beta", WETH, USDC, bids="2495 2", asks="2515 2")
INVERTED = a_book("gamma", USDC, WETH, bids="0.0003 5000", asks="0.0004008016 10000")


def _merged(*books: LiveBook, give: bytes = WETH, side: Side = Side.SELL) -> MergedLadder:
    return merge(books, give)[side]


def _named(ladder: MergedLadder, amount: int) -> dict[str, tuple[int, int]]:
    split = ladder.best_split(amount)
    assert split is not None
    return {ladder.makers[maker]: (fixed, other) for maker, fixed, other in split}


def test_segments_of_all_makers_stand_by_price() -> None:
    split = _named(_merged(ALPHA, BETA), 4 * ONE[WETH])
    assert split == {
        "alpha": (2 * ONE[WETH], 4_990 * ONE[USDC]),
        "beta": (2 * ONE[WETH], 4_990 * ONE[USDC]),
    }


def test_what_is_bought_comes_from_the_cheapest() -> None:
    ladder = _merged(ALPHA, BETA, give=USDC, side=Side.BUY)
    assert _named(ladder, 2 * ONE[WETH]) == {
        "alpha": (ONE[WETH], 2_510 * ONE[USDC]),
        "beta": (ONE[WETH], 2_515 * ONE[USDC]),
    }


def test_a_quote_amount_is_sold_against_asks_and_bought_against_bids() -> None:
    sells = _merged(ALPHA, BETA, give=USDC)
    assert _named(sells, 5_025 * ONE[USDC]) == {
        "alpha": (2_510 * ONE[USDC], ONE[WETH]),
        "beta": (2_515 * ONE[USDC], ONE[WETH]),
    }
    buys = _merged(ALPHA, BETA, side=Side.BUY)
    assert _named(buys, 2_500 * ONE[USDC]) == {"alpha": (2_500 * ONE[USDC], ONE[WETH])}


def test_books_in_both_orders_are_merged_by_their_exact_price() -> None:
    """gamma gives a USDC for 0.0004008016 WETH: hardly above 2495, which is what beta gives."""
    ladder = _merged(ALPHA, BETA, INVERTED)
    gammas = 10_000 * 4_008_016 * ONE[WETH] // 10**10
    split = _named(ladder, ONE[WETH] + gammas + 2 * ONE[WETH])
    assert split == {
        "alpha": (ONE[WETH], 2_500 * ONE[USDC]),
        "beta": (2 * ONE[WETH], 4_990 * ONE[USDC]),
        "gamma": (gammas, 10_000 * ONE[USDC]),
    }
    assert set(_named(ladder, ONE[WETH] + gammas)) == {"alpha", "gamma"}


def test_parts_of_a_unit_go_to_the_last_maker() -> None:
    """Levels end between two units of the quote token."""
    first = a_book("alpha", WETH, ODD, asks="0.7 5")
    second = a_book("beta", WETH, ODD, asks="0.8 50")
    split = _named(_merged(first, second, give=ODD), 10)
    assert split["alpha"][0] == 3
    assert split["beta"][0] == 7


def test_a_share_that_brings_nothing_is_given_to_somebody_else() -> None:
    dust = a_book("alpha", WETH, ODD, bids="10 0.000000000000000001")
    large = a_book("beta", WETH, ODD, bids="9 5")
    assert _named(_merged(dust, large), ONE[WETH]) == {"beta": (ONE[WETH], 9)}


def test_a_share_that_brings_nothing_is_added_to_the_largest_share_with_room() -> None:
    """alpha's unit brings 0.9, which is nothing; beta has more to give, or has not."""
    decimals = {WBTC: 0, ODD: 0}
    alpha = a_book("alpha", WBTC, ODD, bids="0.9 1", decimals=decimals)
    gamma = a_book("gamma", WBTC, ODD, bids="0.75 10", decimals=decimals)
    for bids, amount, shares in (
        ("0.8 10 | 0.7 90", 15, {"beta": (11, 8), "gamma": (4, 3)}),
        ("0.8 10", 15, {"beta": (10, 8), "gamma": (5, 3)}),
        ("0.8 5 | 0.7 90", 11, {"beta": (5, 4), "gamma": (6, 4)}),
    ):
        beta = a_book("beta", WBTC, ODD, bids=bids, decimals=decimals)
        assert _named(_merged(alpha, beta, gamma, give=WBTC), amount) == shares


def test_shares_that_bring_nothing_fill_the_room_of_the_largest_share_and_then_the_next() -> None:
    """Units that cost 1.1 and 1.15 bring nothing for one; beta has 13.4 in all, in tenths of a unit."""
    decimals = {WBTC: 0, ODD: 0}
    books = [
        a_book(maker, WBTC, ODD, asks=asks, decimals=decimals)
        for maker, asks in (
            ("alpha", "1.1 1"),
            ("beta", "1.2 10 | 1.4 1"),
            ("delta", "1.15 1"),
            ("last", "1.3 9"),
        )
    ]
    assert _named(_merged(*books, give=ODD), 20) == {"beta": (13, 10), "last": (7, 5)}


def test_a_share_that_brings_nothing_is_enlarged_where_the_others_are_full() -> None:
    """beta's 6 would be a sixth of a unit, and alpha has no room: beta gets the 36 that a unit costs."""
    decimals = {WBTC: 0, ODD: 0}
    alpha = a_book("alpha", WBTC, ODD, bids="7 36 | 2 6", decimals=decimals)
    beta = a_book("beta", ODD, WBTC, asks="36 30", decimals=decimals)
    ladder = merge([alpha, beta], WBTC)[Side.SELL]
    assert ladder is not None
    assert _named(ladder, 48) == {"beta": (36, 1), "alpha": (12, 84)}
    assert _named(ladder, 43) == {"beta": (36, 1), "alpha": (7, 49)}
    assert ladder.best_split(42 + 36 * 30 + 1) is None


def test_shares_that_bring_nothing_are_together_one_that_brings_units() -> None:
    """gamma is full, and alpha has room for the units of two others: its three bring 2.6."""
    decimals = {WBTC: 0, ODD: 0}
    bids = {"alpha": "0.9 1 | 0.85 4", "delta": "0.88 1", "epsilon": "0.875 1", "gamma": "0.87 3"}
    books = [a_book(maker, WBTC, ODD, bids=text, decimals=decimals) for maker, text in bids.items()]
    assert _named(_merged(*books, give=WBTC), 6) == {"gamma": (3, 2), "alpha": (3, 2)}


def test_a_share_is_enlarged_to_what_a_unit_costs_in_parts_of_units() -> None:
    """A unit of beta's costs 36.5, and alpha's best eleven bring 82.5."""
    decimals = {WBTC: 0, ODD: 0}
    alpha = a_book("alpha", WBTC, ODD, bids="7.5 36 | 2.5 6", decimals=decimals)
    beta = a_book("beta", ODD, WBTC, asks="36.5 30", decimals=decimals)
    assert _named(_merged(alpha, beta, give=WBTC), 48) == {"beta": (37, 1), "alpha": (11, 82)}


def test_dust_alone_is_no_split() -> None:
    assert _merged(ALPHA).best_split(1) is None
    assert _merged(ALPHA).best_single(1) is None


def test_beyond_the_depth_and_nothing() -> None:
    ladder = _merged(ALPHA, BETA)
    for amount in (0, 7 * ONE[WETH] + 1):
        assert ladder.best_split(amount) is None
    assert through([ladder], 7 * ONE[WETH] + 1) is None
    assert through([ladder], 0) == (0, *ladder.first_rate)
    assert ladder.split_after_gas(7 * ONE[WETH] + 1, 1) is None
    assert ladder.best_single(5 * ONE[WETH] + 1) is None
    assert _named(ladder, 7 * ONE[WETH])["alpha"][0] == 5 * ONE[WETH]


def _every_answer(ladder: MergedLadder, amount: int) -> list[list[LadderShare] | None]:
    """The split without gas, with it, and the best maker alone."""
    return [ladder.best_split(amount), ladder.split_after_gas(amount, 0), ladder.best_single(amount)]


@pytest.mark.parametrize("side", Side)
def test_a_maker_fills_from_one_unit_to_its_whole_depth(side: Side) -> None:
    decimals = {WBTC: 0, ODD: 0}
    if side is Side.SELL:
        ladder = _merged(a_book("alpha", WBTC, ODD, bids="3 7", decimals=decimals), give=WBTC, side=side)
    else:
        ladder = _merged(a_book("alpha", WBTC, ODD, asks="3 7", decimals=decimals), give=ODD, side=side)
    for amount in (1, 6, 7):
        assert _every_answer(ladder, amount) == [[(0, amount, 3 * amount)]] * 3
    for amount in (0, 8):
        assert _every_answer(ladder, amount) == [None] * 3


@pytest.mark.parametrize("side", Side)
def test_makers_whose_average_rate_is_no_better_are_not_priced(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = [
        a_book(maker, WETH, USDC, bids=f"{bid} 2", asks=f"{ask} 2")
        for maker, bid, ask in (("alpha", 2500, 2510), ("beta", 2500, 2510), ("gamma", 2499, 2511))
    ]
    ladder = _merged(*books, give=WETH if side is Side.SELL else USDC, side=side)
    priced = counted(monkeypatch, MergedLadder, "_alone")
    shares = ladder.best_single(ONE[WETH])
    assert shares == [(0, ONE[WETH], (2_500 if side is Side.SELL else 2_510) * ONE[USDC])]
    assert priced == {"_alone": 1 + 2}, "the best by the bound, then it and its equal"


@pytest.mark.parametrize("side", Side)
def test_the_best_single_maker_depends_on_the_amount(side: Side) -> None:
    give = WETH if side is Side.SELL else USDC
    ladder = _merged(ALPHA, BETA, give=give, side=side)
    small = ladder.best_single(ONE[WETH])
    assert small == [(0, ONE[WETH], (2_500 if side is Side.SELL else 2_510) * ONE[USDC])]
    large = ladder.best_single(3 * ONE[WETH] // 2)
    assert large == [(0, 3 * ONE[WETH] // 2, (3_745 if side is Side.SELL else 3_770) * ONE[USDC])]
    beta = _merged(BETA, a_book("gamma", WETH, USDC, bids="2499 1", asks="2511 1"), give=give, side=side)
    assert [beta.best_single(amount * ONE[WETH]) for amount in (1, 2)] == [
        [(1, ONE[WETH], (2_499 if side is Side.SELL else 2_511) * ONE[USDC])],
        [(0, 2 * ONE[WETH], (4_990 if side is Side.SELL else 5_030) * ONE[USDC])],
    ]


@pytest.mark.parametrize("side", Side)
def test_of_makers_that_are_equal_the_first_fills_alone(side: Side) -> None:
    give = WETH if side is Side.SELL else USDC
    books = [a_book(maker, WETH, USDC, bids="2500 2", asks="2510 2") for maker in ("alpha", "beta")]
    shares = _merged(*books, give=give, side=side).best_single(ONE[WETH])
    assert shares == [(0, ONE[WETH], (2_500 if side is Side.SELL else 2_510) * ONE[USDC])]


def test_of_a_makers_two_books_the_deeper_one_takes_part() -> None:
    shallow = a_book("alpha", WETH, USDC, bids="2500 1", liquidity=5)
    deep = a_book("alpha", USDC, WETH, asks="0.0005 1000", liquidity=6)
    assert _named(_merged(shallow, deep), ONE[WETH] // 10) == {"alpha": (ONE[WETH] // 10, 200 * ONE[USDC])}


def test_levels_of_no_amount_are_left_out() -> None:
    zero = a_book("alpha", WETH, USDC, bids="2500 0 | 2400 1")
    assert _named(_merged(zero), ONE[WETH]) == {"alpha": (ONE[WETH], 2_400 * ONE[USDC])}
    assert merge([a_book("alpha", WETH, USDC, bids="2500 0")], WETH) == {}
    whole = a_book("alpha", WBTC, ODD, bids="5 0 | 3 7", decimals={WBTC: 0, ODD: 0})
    ladder = _merged(whole, give=WBTC)
    assert (ladder.fixed_unit, ladder.other_unit) == (1, 1)
    assert [_named(ladder, amount) for amount in (1, 7)] == [{"alpha": (1, 3)}, {"alpha": (7, 21)}]
    nearly = a_book("beta", WBTC, ODD, bids="2.9 7", decimals={WBTC: 0, ODD: 0})
    assert _named(_merged(whole, nearly, give=WBTC), 7) == {"alpha": (7, 21)}


def test_ladders_are_kept_while_their_books_are_the_same() -> None:
    index = an_index(ALPHA, BETA)
    ladders = Ladders(index)
    first = ladders.merged(WETH, USDC, Side.SELL, ANYBODY)
    index.put(a_book("alpha", WBTC, USDC, bids="60000 1"))
    assert ladders.merged(WETH, USDC, Side.SELL, ANYBODY) is first
    index.put(a_book("alpha", WETH, USDC, bids="2600 1"))
    second = ladders.merged(WETH, USDC, Side.SELL, ANYBODY)
    assert second is not None
    assert second is not first
    assert _named(second, ONE[WETH]) == {"alpha": (ONE[WETH], 2_600 * ONE[USDC])}
    index.drop("alpha", WETH, USDC)
    index.drop("beta", WETH, USDC)
    assert ladders.merged(WETH, USDC, Side.SELL, ANYBODY) is None


def test_what_was_read_of_other_asks_is_taken_over() -> None:
    index = an_index(ALPHA, a_book("beta", WETH, USDC, asks="2515.5 2"))
    ladders = Ladders(index)
    first = ladders.merged(USDC, WETH, Side.SELL, ANYBODY)
    index.put(a_book("alpha", WETH, USDC, asks="2510.5 1"))
    second = ladders.merged(USDC, WETH, Side.SELL, ANYBODY)
    assert first is not None
    assert second is not None
    assert second.order.ladders[1] is first.order.ladders[1]
    assert second.order.ladders[0] is not first.order.ladders[0]


def test_what_was_read_of_other_books_is_taken_over() -> None:
    index = an_index(ALPHA, BETA)
    ladders = Ladders(index)
    first = ladders.merged(WETH, USDC, Side.SELL, ANYBODY)
    index.put(a_book("alpha", WETH, USDC, bids="2400 1"))
    second = ladders.merged(WETH, USDC, Side.SELL, ANYBODY)
    assert first is not None
    assert second is not None
    assert second.order.ladders[1] is first.order.ladders[1]
    assert second.order.ladders[0] is not first.order.ladders[0]
    assert _named(second, 2 * ONE[WETH]) == {"beta": (2 * ONE[WETH], 4_990 * ONE[USDC])}


@pytest.mark.parametrize("is_mixed", [False, True])
def test_ladders_over_many_changes_are_those_of_the_last_books(is_mixed: bool) -> None:
    """Books of other scales, and of nothing at all, among them."""
    numbers = Random(3)
    books = [_random_book(numbers, name, is_inverse=is_mixed and name > "c") for name in "abcdef"]
    kept = merge(books, WETH)
    for _ in range(200):
        at = numbers.randrange(len(books))
        books[at] = _random_book(numbers, books[at].maker, is_inverse=is_mixed and books[at].maker > "c")
        kept, fresh = merge(books, WETH, kept), merge(books, WETH)
        assert kept.keys() == fresh.keys()
        for side in kept:
            amount = numbers.randrange(1, 12 * ONE[WETH]) * (1 if side is Side.SELL else 2_500) // 10**9
            for answer in (MergedLadder.best_split, MergedLadder.best_single):
                assert answer(kept[side], amount) == answer(fresh[side], amount)
            assert kept[side].split_after_gas(amount, 10**7) == fresh[side].split_after_gas(amount, 10**7)
            assert kept[side].depth * fresh[side].fixed_unit == fresh[side].depth * kept[side].fixed_unit


@pytest.mark.parametrize("side", Side)
def test_ladders_asked_now_and_then_are_those_of_the_last_books(side: Side) -> None:
    """After several changes without a question, of the same makers, and at prices of gas that come again."""
    numbers, give = Random(5), WETH if side is Side.SELL else USDC
    names = "abcdef"
    books = [_deep_book(numbers, name) for name in names]
    kept = merge(books, give)
    for turn in range(300):
        at = numbers.randrange(len(books))
        books[at] = _deep_book(numbers, books[at].maker)
        kept, fresh = merge(books, give, kept), merge(books, give)
        if turn % 3 == 0:
            continue
        for _ in range(2):
            amount, cost = numbers.randrange(1, 12 * ONE[WETH]), numbers.choice([0, 3, 50]) * ONE[USDC]
            for ask in (MergedLadder.split_after_gas, MergedLadder.bound_after_gas):
                assert ask(kept[side], amount, cost) == ask(fresh[side], amount, cost)
            assert kept[side].best_single(amount) == fresh[side].best_single(amount)
            assert kept[side].bound_of_singles(amount) == fresh[side].bound_of_singles(amount)


@pytest.mark.parametrize("side", Side)
def test_ladders_before_a_change_are_still_those_of_their_own_books(side: Side) -> None:
    """Two ladders that follow one differ in other makers' books, and are asked in turn with the first one."""
    numbers, give = Random(9), WETH if side is Side.SELL else USDC
    books = [_deep_book(numbers, name) for name in "abcd"]
    after = [
        [_deep_book(numbers, live.maker) if live is changed else live for live in books]
        for changed in books[:2]
    ]
    first = merge(books, give)
    kept = [first, *(merge(each, give, first) for each in after)]
    kept.append(merge([*after[0][:3], _deep_book(numbers, "d")], give, kept[1]))
    fresh = [merge(each[side].order.books, give) for each in kept]
    for turn in range(60):
        amount, cost = numbers.randrange(1, 12 * ONE[WETH]), (3 + turn // 30) * ONE[USDC]
        for old, new in zip(kept, fresh, strict=True):
            assert old[side].bound_of_singles(amount) == new[side].bound_of_singles(amount)
            assert old[side].split_after_gas(amount, cost) == new[side].split_after_gas(amount, cost)


@pytest.mark.parametrize("side", Side)
def test_bounds_hold_for_every_choice_of_makers_and_are_close(side: Side) -> None:
    numbers, give = Random(8), WETH if side is Side.SELL else USDC
    sells = side is Side.SELL
    for _ in range(200):
        books = [_deep_book(numbers, name) for name in "abc"]
        ladder = merge(books, give)[side]
        amount, cost = numbers.randrange(ONE[WETH] // 10, 6 * ONE[WETH]), numbers.choice([1, 20]) * ONE[USDC]
        single = ladder.best_single(amount)
        bound = ladder.bound_of_singles(amount)
        if single is not None:
            assert bound is not None
            assert (
                single[0][2] <= bound < single[0][2] * 1.05 if sells else bound <= single[0][2] < bound * 1.05
            )
        found = ladder.bound_after_gas(amount, cost)
        split = ladder.split_after_gas(amount, cost)
        assert (found is None) == (split is None)
        if found is not None and split is not None:
            net, (bound, rate) = _net(ladder, split, cost), found
            assert net <= (bound if sells else -bound) + len(split) * cost // 16 < net + 2 * cost
            more = ladder.bound_after_gas(amount + amount // 4, cost)
            if more is not None:
                tangent = amount // 4 * rate[0] // rate[1]
                assert more[0] - bound <= tangent + 2 if sells else more[0] - bound >= tangent - 2


def test_a_bound_of_singles_holds_for_amounts_on_their_way_to_it() -> None:
    """alpha cannot sell two WETH, and brings for one what the bound of two has to allow; none can buy ten."""
    books = a_book("alpha", WETH, USDC, bids="2500 1"), a_book("beta", WETH, USDC, bids="1 9", asks="2510 9")
    bound = _merged(*books).bound_of_singles(2 * ONE[WETH])
    assert bound is not None
    assert bound >= 2_500 * ONE[USDC]
    assert _merged(*books, give=USDC, side=Side.BUY).bound_of_singles(16 * ONE[WETH]) is None


def _deep_book(numbers: Random, maker: str) -> LiveBook:
    """Eight levels on each side of 2500, with prices that fall and rise by a few dollars."""
    sides = []
    for way in (-1, 1):
        price, rows = Decimal(2_500 + way), []
        for _ in range(8):
            price += way * Decimal(numbers.randrange(1, 40)) / 10
            rows.append(f"{price} {Decimal(numbers.randrange(10, 100)) / 100}")
        sides.append(" | ".join(rows))
    return a_book(maker, WETH, USDC, bids=sides[0], asks=sides[1])


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("is_mixed", [False, True])
def test_a_split_after_gas_is_the_best_of_all_subsets_within_a_fill(side: Side, is_mixed: bool) -> None:
    """Beside every set of makers there is; most of the time it is the best one itself."""
    numbers = Random(11)
    exact = splits = 0
    for _ in range(150):
        books = [_random_book(numbers, name, is_inverse=is_mixed and name > "c") for name in "abcdef"]
        give = WETH if side is Side.SELL else USDC
        ladder = merge(books, give).get(side)
        if ladder is None:
            continue
        amount = numbers.randrange(1, 8 * ONE[WETH])
        fill_cost = numbers.choice([0, 1, 3, 10, 1_000]) * ONE[USDC] + numbers.randrange(100)
        among = [
            _merged(*some, give=give, side=side).best_split(amount)
            for count in range(1, len(ladder.makers) + 1)
            for some in combinations([book for book in books if book.maker in ladder.makers], count)
        ]
        best = max((_net(ladder, split, fill_cost) for split in among if split), default=None)
        found = ladder.split_after_gas(amount, fill_cost)
        assert (found is None) == (best is None)
        if found is not None and best is not None:
            short = best - _net(ladder, found, fill_cost)
            assert 0 <= short <= fill_cost + len(ladder.makers)
            exact += short <= 1
            splits += 1
    assert exact > splits * 9 // 10 > 90


def _net(ladder: MergedLadder, split: list[LadderShare], fill_cost: int) -> int:
    other = sum(share[2] for share in split)
    return (other if ladder.side is Side.SELL else -other) - fill_cost * len(split)


GAINS = (
    a_book("alpha", WETH, USDC, bids="2500 6 | 2400 10", asks="2510 6 | 2600 10"),
    a_book("beta", WETH, USDC, bids="2499 3", asks="2511 3"),
    a_book("gamma", WETH, USDC, bids="2500.5 0.01", asks="2509.5 0.01"),
)


def _worth_their_fill(side: Side, amount: int, fill_cost: int) -> set[str]:
    ladder = _merged(*GAINS, give=WETH if side is Side.SELL else USDC, side=side)
    split = ladder.split_after_gas(amount, fill_cost)
    assert split is not None
    return {ladder.makers[share[0]] for share in split}


@pytest.mark.parametrize("side", Side)
def test_who_earns_less_than_a_fill_is_left_out(side: Side) -> None:
    """gamma is better by a few cents, beta by 198 dollars on two WETH that alpha has at 2400 only."""
    assert _worth_their_fill(side, 8 * ONE[WETH], 0) == {"alpha", "beta", "gamma"}
    assert _worth_their_fill(side, 8 * ONE[WETH], ONE[USDC]) == {"alpha", "beta"}
    assert _worth_their_fill(side, 8 * ONE[WETH], 250 * ONE[USDC]) == {"alpha"}


@pytest.mark.parametrize("side", Side)
def test_each_price_of_gas_has_a_split_of_its_own(side: Side) -> None:
    give = WETH if side is Side.SELL else USDC
    ladder = _merged(*GAINS, give=give, side=side)
    for fill_cost in (0, 250 * ONE[USDC], ONE[USDC], 0):
        fresh = _merged(*GAINS, give=give, side=side).split_after_gas(8 * ONE[WETH], fill_cost)
        assert ladder.split_after_gas(8 * ONE[WETH], fill_cost) == fresh


@pytest.mark.parametrize("side", Side)
def test_whatever_was_asked_before_a_ladder_answers_as_a_fresh_one(side: Side) -> None:
    """Of amounts and prices of gas that rise and fall."""
    numbers, give = Random(17), WETH if side is Side.SELL else USDC
    for _ in range(12):
        books = [_random_book(numbers, name, is_inverse=name > "c") for name in "abcdef"]
        ladder = _merged(*books, give=give, side=side)
        for _ in range(12):
            amount, cost = numbers.randrange(1, 9 * ONE[WETH]), numbers.choice([1, 3, 10]) * ONE[USDC]
            fresh = _merged(*books, give=give, side=side)
            assert ladder.split_after_gas(amount, cost) == fresh.split_after_gas(amount, cost)
            assert ladder.best_split(amount) == fresh.best_split(amount)
            assert ladder.best_single(amount) == fresh.best_single(amount)


def test_one_maker_is_taken_who_saves_more_gas_than_a_better_first_one_brings() -> None:
    """alpha's whole unit brings 0.75 dollars more than beta's, and the fill of another maker costs one."""
    ladder = _merged(
        a_book("alpha", WETH, USDC, bids="2500 1 | 2000 9"), a_book("beta", WETH, USDC, bids="2499.25 2")
    )
    half = ONE[WETH] // 2
    assert ladder.split_after_gas(3 * half, ONE[USDC]) == [(1, 3 * half, 3_748_875_000)]
    assert ladder.split_after_gas(2 * half, ONE[USDC]) == [(0, 2 * half, 2_500 * ONE[USDC])]


@pytest.mark.parametrize(
    ("bids", "looks"), [(("2500 1 | 2400 9", "2300 9"), 0), (("2500 1 | 2400 9", "2499 0.5", "2498 10"), 1)]
)
def test_makers_that_are_each_worth_their_gas_are_compared_with_no_maker_alone(
    bids: tuple[str, ...], looks: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two choices are looked at where the last maker fills a part of its best levels, otherwise none."""
    ladder = _merged(*(a_book(f"maker{number}", WETH, USDC, bids=text) for number, text in enumerate(bids)))
    looked = counted(monkeypatch, MergedLadder, "best_single", "_with", "_onward")
    assert ladder.split_after_gas(2 * ONE[WETH], ONE[USDC] // 100) is not None
    assert looked == {"best_single": 0, "_with": looks, "_onward": looks}


def test_one_maker_is_taken_where_another_choice_is_as_good_before_rounding() -> None:
    """alpha wants 3 / 2.6 units for what beta gives for one, and nobody pays a part of a unit."""
    decimals = {WBTC: 0, ODD: 0}
    alpha = a_book("alpha", WBTC, ODD, bids="2.6 3 | 1.5 1", decimals=decimals)
    beta = a_book("beta", WBTC, ODD, bids="3.4 1 | 1.2 3", decimals=decimals)
    ladder = _merged(alpha, beta, give=WBTC, side=Side.BUY)
    assert ladder.split_after_gas(3, 2) == [(1, 3, 1)]


@pytest.mark.parametrize("side", Side)
def test_whose_depth_is_needed_stays_at_any_cost(side: Side) -> None:
    assert _worth_their_fill(side, 18 * ONE[WETH], 10**9 * ONE[USDC]) == {"alpha", "beta"}


def _random_book(numbers: Random, maker: str, *, is_inverse: bool) -> LiveBook:
    """About 2500, of up to four levels with as many decimals as it likes; some are of nothing."""
    digits, sides = numbers.randrange(1, 6), []
    for way in (-1, 1):
        price, rows = Decimal(2_500 + way), []
        for _ in range(numbers.randrange(1, 5)):
            price += way * numbers.randrange(0, 4)
            size = Decimal(numbers.randrange(0, 400)) / 100
            shown, size = (1 / price, size * price) if is_inverse else (price, size)
            rows.append(f"{shown:.{digits + 7 * is_inverse}f} {size:.{digits}f}")
        sides.append(" | ".join(rows))
    if is_inverse:
        sides.reverse()
        return a_book(maker, USDC, WETH, bids=sides[0], asks=sides[1])
    return a_book(maker, WETH, USDC, bids=sides[0], asks=sides[1])


def test_who_may_take_part() -> None:
    ladders = Ladders(an_index(ALPHA, BETA))
    without = ladders.merged(WETH, USDC, Side.SELL, MakerFilter(without=frozenset({"alpha"})))
    only = ladders.merged(WETH, USDC, Side.SELL, MakerFilter(only=frozenset({"alpha"})))
    nobody = MakerFilter(only=frozenset({"alpha"}), without=frozenset({"alpha"}))
    assert without is not None
    assert only is not None
    assert (without.makers, only.makers) == (("beta",), ("alpha",))
    assert ladders.merged(WETH, USDC, Side.SELL, nobody) is None


def test_the_ladder_that_was_not_asked_for_longest_goes_first() -> None:
    ladders = Ladders(an_index(ALPHA, BETA))
    kept = ladders.merged(WETH, USDC, Side.SELL, ANYBODY)
    lost = ladders.merged(USDC, WETH, Side.SELL, ANYBODY)
    for number in range(LADDERS_MAX - 1):
        ladders.merged(WETH, USDC, Side.SELL, MakerFilter(without=frozenset({str(number)})))
        assert ladders.merged(WETH, USDC, Side.SELL, ANYBODY) is kept
    assert ladders.merged(USDC, WETH, Side.SELL, ANYBODY) is not lost


def test_through_rounds_at_each_ladder() -> None:
    sells = [_merged(ALPHA), _merged(a_book("alpha", USDC, DAI, bids="0.333 10000"), give=USDC)]
    reached = through(sells, ONE[WETH] // 10**7 * 3)
    assert reached is not None
    assert reached[0] == 750 * 333 * 10**9
    assert Decimal(reached[1]) / Decimal(reached[2]) == Decimal(2_500) * Decimal("0.333")
