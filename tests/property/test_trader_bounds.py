"""The terms that a trader sees and signs bind every settlement: limit prices, and TWAPs slice by slice."""

from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.delta import SAME_CHAIN, TwapBuyOrder, TwapOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import ConfigError
from cambist.engine.trade.delta.orders.terms import DeltaPart, next_part, terms_of
from cambist.engine.trader.client.limit_price import LimitPrice, percent_away
from cambist.engine.trader.client.schedule import Schedule, duration_text
from cambist.engine.trader.client.terms import TradedToken

OWNER, SRC, DEST = b"\x0a" * 20, b"\x51" * 20, b"\xd5" * 20
AMOUNTS = st.integers(1, 10**30)
DECIMALS = st.integers(0, 24)
HEAD = (OWNER, OWNER, SRC, DEST, 1, 0, 10**9)
TAIL = (b"", b"", SAME_CHAIN)


def parts(order: TwapOrder | TwapBuyOrder) -> list[DeltaPart]:
    """Parts in the sequence in which the contract settles them."""
    found = [next_part(order, done) for done in range(order.num_slices)]
    return [part for part in found if part is not None]


@given(total=AMOUNTS, slices=st.integers(2, 40), least=AMOUNTS)
def test_the_slices_of_a_sale_give_what_is_shown_and_no_less_than_was_asked(
    total: int, slices: int, least: int
) -> None:
    assume(total >= slices)
    schedule = Schedule(slices, 60)
    per_slice = schedule.least_per_slice(total, least)
    order = TwapOrder(*HEAD, 60, slices, per_slice, total, *TAIL)
    settled = parts(order)
    given_up, got = sum(part.src_amount for part in settled), sum(part.dest_amount for part in settled)
    assert given_up == total
    assert got == schedule.least_of(total, per_slice) == terms_of(order).dest_total
    assert least <= got <= least + 2 * slices + schedule.last_of(total) // schedule.slice_of(total)
    assert [part.src_amount for part in settled[-2:]] == [schedule.slice_of(total), schedule.last_of(total)]


@given(total=AMOUNTS, slices=st.integers(2, 40), most=AMOUNTS)
def test_the_slices_of_a_purchase_spend_no_more_than_was_allowed(total: int, slices: int, most: int) -> None:
    assume(total >= slices)
    schedule = Schedule(slices, 60)
    order = TwapBuyOrder(*HEAD, 60, slices, total, most, *TAIL)
    settled = parts(order)
    assert sum(part.dest_amount for part in settled) == total
    assert most - slices <= sum(part.src_amount for part in settled) <= most
    assert settled[0].src_amount == schedule.most_per_slice(total, most)
    assert schedule.most_per_slice(total, schedule.most_of(total, most)) <= most


@given(mantissa=AMOUNTS, scale=st.integers(0, 36), amount=AMOUNTS, src=DECIMALS, dest=DECIMALS)
def test_a_price_is_had_or_bettered_by_less_than_a_unit(
    mantissa: int, scale: int, amount: int, src: int, dest: int
) -> None:
    price = LimitPrice(mantissa, scale)
    tokens = TradedToken(SRC, "SRC", src), TradedToken(DEST, "DEST", dest)
    exact = Fraction(mantissa * 10**dest, 10 ** (scale + src))
    least = price.limit_amount(Side.SELL, amount, *tokens, "--limit")
    assert 0 <= least - amount * exact < 1
    if amount < exact:
        with pytest.raises(ConfigError, match="--limit: at this price not one unit of SRC may be spent"):
            price.limit_amount(Side.BUY, amount, *tokens, "--limit")
    else:
        assert 0 <= amount / exact - price.limit_amount(Side.BUY, amount, *tokens, "--limit") < 1


@pytest.mark.parametrize(
    ("now", "limit", "away"),
    [((1, 2_500), (2, 5_200), "4.00"), ((1, 2_500), (1, 2_500), "0.00"), ((4, 10_000), (1, 2_250), "-10.00")],
)
def test_how_far_a_limit_is_counts_what_a_source_token_has_to_bring(
    now: tuple[int, int], limit: tuple[int, int], away: str
) -> None:
    assert percent_away(*now, *limit) == Decimal(away)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [
        (59, "59 s"),
        (60, "1 min"),
        (90, "1 min 30 s"),
        (5_400, "1 h 30 min"),
        (7 * 86_400, "7 d"),
        (90_061, "1 d 1 h 1 min 1 s"),
    ],
)
def test_times_are_told_as_people_say_them(seconds: int, text: str) -> None:
    assert duration_text(seconds) == text
