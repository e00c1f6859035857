"""Crossings: both sides keep their limits by the contract's arithmetic, and nothing is created or lost."""

from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee
from cambist.codecs.messages.vocabulary import OnChainOrderType, Side
from cambist.engine.chain.proceeds import of_sale
from cambist.engine.roles.agent.bids import Filling, crossed_part
from cambist.engine.roles.agent.crossing import Crossing, crossings
from cambist.engine.roles.agent.orders import OpenOrder

X, Y, Z = (bytes([number]) * 20 for number in (1, 2, 3))
AT = Filling(bytes([9]) * 20, bytes([8]) * 20)
FREE = PartnerAndFee(bytes(20), 0, partner_takes_surplus=False, cap_surplus=False)


def a_sale(name: str, src: bytes, amount: int, dest: bytes, least: int, **changed: object) -> OpenOrder:
    order = {
        "order_hash": name,
        "order_type": OnChainOrderType.ORDER,
        "side": Side.SELL,
        "owner": name.encode().rjust(20, b"\0")[-20:],
        "src_token": src,
        "dest_token": dest,
        "src_amount": amount,
        "dest_amount": least,
        "expected": 0,
        "fee": FREE,
        "deadline": 2_000_000_000,
    }
    return OpenOrder(**(order | changed))  # type: ignore[arg-type]


def nobody(_: OpenOrder) -> int:
    return 0


def at_rate(rate: Fraction) -> object:
    """Books that buy and sell X for `rate` of Y, whatever the amount."""

    def alone(order: OpenOrder) -> int:
        return int(order.src_amount * rate) if order.src_token == X else int(order.src_amount / rate)

    return alone


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        ((100, 250), (250, 100), [(100, 0)]),  # each gives exactly what the other wants
        ((100, 240), (250, 90), [(100, 0)]),
        ((100, 251), (250, 100), []),  # the first wants more than there is
        ((100, 250), (250, 101), []),
        ((100, 0), (250, 0), [(100, 0)]),
    ],
)
def test_whole_for_whole_without_makers(
    one: tuple[int, int], other: tuple[int, int], found: list[tuple[int, int]]
) -> None:
    orders = [a_sale("a", X, one[0], Y, one[1]), a_sale("b", Y, other[0], X, other[1])]
    assert [(cross.to_short, cross.rest) for cross in crossings(orders, nobody)] == found


def test_the_rest_of_the_long_order_goes_to_makers_and_both_gain() -> None:
    """1 X is worth 2.5 Y to makers, who take a tenth of it from either side."""
    one, other = a_sale("a", X, 1_000, Y, 2_000), a_sale("b", Y, 1_000, X, 300)

    def alone(order: OpenOrder) -> int:
        return order.src_amount * 225 // 100 if order.src_token == X else order.src_amount * 36 // 100

    (cross,) = crossings([one, other], alone)
    assert (cross.long, cross.short) == (one, other)
    assert cross.to_short == 402  # between 360, which makers would give, and 444, for which they give 1,000
    assert cross.to_short + cross.rest == one.src_amount
    assert cross.short.src_amount + cross.rest * 225 // 100 > alone(one)


def test_nobody_is_crossed_for_less_than_the_books_give() -> None:
    orders = [a_sale("a", X, 1_000, Y, 1), a_sale("b", Y, 2_000, X, 1)]
    assert crossings(orders, nobody)
    (cross,) = crossings(orders, at_rate(Fraction(5, 2)))  # type: ignore[arg-type]
    assert cross.to_short == 800
    assert cross.rest == 200


@pytest.mark.parametrize(
    "changed",
    [
        {"side": Side.BUY},
        {"order_type": OnChainOrderType.TWAP_ORDER},
        {"dest_token": Z},
        {"src_amount": 0},
        {"is_crosschain": True},
    ],
)
def test_other_orders_are_not_crossed(changed: dict[str, object]) -> None:
    orders = [a_sale("a", X, 100, Y, 0), a_sale("b", Y, 250, X, 0, **changed)]
    assert crossings(orders, nobody) == ()


FEES = st.builds(PartnerAndFee, st.just(bytes(20)), st.integers(0, 200), st.booleans(), st.booleans())
AMOUNTS = st.integers(1, 10**6) | st.integers(10**15, 10**24)


@st.composite
def rounds(draw: st.DrawFn) -> list[OpenOrder]:
    """Sales of three tokens, near a rate of one for two, with fees and shares of surplus."""
    orders = []
    for number in range(draw(st.integers(0, 8))):
        src, dest = draw(st.sampled_from([(X, Y), (Y, X), (X, Z), (Z, X)]))
        amount = draw(AMOUNTS)
        fair = amount * 2 if src == X else amount // 2
        least = fair * draw(st.integers(0, 11_000)) // 10_000
        expected = draw(st.sampled_from([0, least, fair]))
        orders.append(a_sale(f"{number:02d}", src, amount, dest, least, expected=expected, fee=draw(FEES)))
    return orders


@given(rounds(), st.sampled_from([None, Fraction(2), Fraction(19, 10), Fraction(21, 10)]), st.randoms())
def test_every_crossing_keeps_every_limit_and_conserves_every_token(
    orders: list[OpenOrder], rate: Fraction | None, shuffled: object
) -> None:
    alone = nobody if rate is None else at_rate(rate)
    found = crossings(orders, alone)  # type: ignore[arg-type]
    names = [order.order_hash for cross in found for order in (cross.long, cross.short)]
    assert len(names) == len(set(names))
    for cross in found:
        check(cross, alone(cross.long))  # type: ignore[operator]
    mixed = list(orders)
    shuffled.shuffle(mixed)  # type: ignore[attr-defined]
    assert {frozenset(pair(cross)) for cross in crossings(mixed, alone)} == {  # type: ignore[arg-type]
        frozenset(pair(cross)) for cross in found
    }


def pair(cross: Crossing) -> tuple[tuple[str, int], tuple[str, int]]:
    """Each order, and what it gives to the other one."""
    return (cross.long.order_hash, cross.to_short), (cross.short.order_hash, cross.short.src_amount)


def check(cross: Crossing, alone_long: int) -> None:
    """Makers give for the rest what they would give for all, in proportion."""
    assert (cross.long.src_token, cross.long.dest_token) == (cross.short.dest_token, cross.short.src_token)
    assert 0 <= cross.rest < cross.long.src_amount
    assert cross.to_short + cross.rest == cross.long.src_amount
    received = -(-cross.rest * alone_long // cross.long.src_amount)
    for order, paid in ((cross.long, cross.paid_to_long(received)), (cross.short, cross.to_short)):
        users = paid - of_sale(paid, order.expected, order.dest_amount, order.fee).total
        assert users >= order.dest_amount
        part = crossed_part(order, paid, AT)
        assert part is not None
        assert (part.promised_amount, part.paid) == (str(users), str(paid))
