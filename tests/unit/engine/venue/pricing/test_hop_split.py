"""Makers that are worth their fill, and those that are not."""

from cambist.codecs.vocabulary import Side
from cambist.engine.venue.pricing.hop_split import thrifty_split
from cambist.engine.venue.pricing.ladders import merge
from support.live_books import ONE, USDC, WETH, a_book

BOOKS = (
    a_book("alpha", WETH, USDC, bids="2500 6 | 2400 10", asks="2510 6 | 2600 10"),
    a_book("beta", WETH, USDC, bids="2499 3", asks="2511 3"),
    a_book("gamma", WETH, USDC, bids="2500.5 0.01", asks="2509.5 0.01"),
)


def _makers(side: Side, amount: int, fill_cost: int) -> set[str]:
    give = WETH if side is Side.SELL else USDC
    ladder = merge(BOOKS, give, side)
    assert ladder is not None
    split = ladder.best_split(amount)
    assert split is not None
    return {ladder.makers[share[0]] for share in thrifty_split(ladder, amount, split, fill_cost)}


def test_without_a_cost_everybody_stays() -> None:
    for side in Side:
        assert _makers(side, 8 * ONE[WETH], 0) == {"alpha", "beta", "gamma"}


def test_who_earns_less_than_a_fill_is_left_out() -> None:
    """gamma is better by a few cents, beta by 198 dollars on two WETH that alpha has at 2400 only."""
    for side in Side:
        assert _makers(side, 8 * ONE[WETH], ONE[USDC]) == {"alpha", "beta"}
        assert _makers(side, 8 * ONE[WETH], 250 * ONE[USDC]) == {"alpha"}


def test_whose_depth_is_needed_stays_at_any_cost() -> None:
    for side in Side:
        assert _makers(side, 18 * ONE[WETH], 10**9 * ONE[USDC]) == {"alpha", "beta"}
