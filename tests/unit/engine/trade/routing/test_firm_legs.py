"""Sums of signed orders, hop after hop: amounts, reports of hops, and shortfalls."""

from typing import Any

import msgspec

from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.firm.firm_route import FirmRoute, SignedFill
from cambist.engine.trade.routing.firm.legs import (
    Exchanged,
    FirmLeg,
    Short,
    arranged,
    bought,
    over_asked,
    sold,
)

A, B, C, D = (letter * 20 for letter in (b"\xaa", b"\xbb", b"\xcc", b"\xdd"))


def an_order(taker_amount: int, maker_amount: int, **changed: Any) -> RfqOrder:
    order = RfqOrder(0, 1_000, B, A, b"\x01" * 20, bytes(20), maker_amount, taker_amount)
    return msgspec.structs.replace(order, **changed)


def a_fill(taker_amount: int, maker_amount: int, **changed: Any) -> SignedFill:
    return SignedFill("alpha", an_order(taker_amount, maker_amount, **changed), b"")


def a_leg(src: bytes, dest: bytes, *fills: SignedFill, amount: int = 0) -> FirmLeg:
    return FirmLeg(src, dest, amount, fills)


def route(side: Side, *paths: list[FirmLeg]) -> FirmRoute:
    found = arranged(side, paths)
    assert isinstance(found, FirmRoute), found
    return found


def test_a_sale_rounds_down_on_each_order_and_a_purchase_up() -> None:
    orders = [an_order(10, 33), an_order(7, 5)]
    assert sold(orders, 10) == Exchanged(10, 33)
    assert sold(orders, 9) == Exchanged(9, 29)
    assert sold(orders, 13) == Exchanged(13, 33 + 2)
    assert sold(orders, 17) == Exchanged(17, 38)
    assert sold(orders, 20) == Exchanged(17, 38)
    assert bought(orders, 33) == Exchanged(10, 33)
    assert bought(orders, 32) == Exchanged(10, 32)
    assert bought(orders, 34) == Exchanged(10 + 2, 34)
    assert bought(orders, 38) == Exchanged(17, 38)
    assert bought(orders, 40) == Exchanged(17, 38)


def test_an_order_that_would_give_nothing_is_passed_over() -> None:
    dear, cheap = an_order(10, 1), an_order(1, 1)
    assert sold([dear], 9) == Exchanged(0, 0)
    assert sold([dear, cheap], 9) == Exchanged(1, 1)
    assert sold([cheap, dear], 9) == Exchanged(1, 1)
    assert sold([cheap, dear], 11) == Exchanged(11, 2)


def test_a_sale_over_one_hop_sells_all_that_is_there() -> None:
    found = route(Side.SELL, [a_leg(A, B, a_fill(10, 33), amount=10)])
    assert (found.src_amount, found.dest_amount, found.expiry_s) == (10, 33, 1_000)
    assert [(hop.taker_amount, hop.maker_amount) for hop in found.hops] == [(0, 0)]


def test_a_sale_over_two_hops_passes_on_what_the_first_really_gives() -> None:
    found = route(Side.SELL, [a_leg(A, B, a_fill(10, 95), amount=10), a_leg(B, C, a_fill(101, 202))])
    assert (found.src_amount, found.dest_amount) == (10, 190)
    assert [hop.taker_amount for hop in found.hops] == [0, 0]


def test_a_hop_that_cannot_take_all_says_how_much_it_takes() -> None:
    found = route(Side.SELL, [a_leg(A, B, a_fill(10, 120), amount=10), a_leg(B, C, a_fill(101, 202))])
    assert (found.src_amount, found.dest_amount) == (10, 202)
    assert [hop.taker_amount for hop in found.hops] == [0, 101]


def test_the_best_price_is_filled_first() -> None:
    worse, better = a_fill(60, 60), a_fill(60, 90)
    found = route(Side.SELL, [a_leg(A, B, a_fill(10, 80), amount=10), a_leg(B, C, worse, better)])
    assert found.hops[1].fills == (better, worse)
    assert found.dest_amount == 90 + 20


def test_paths_say_how_much_they_sell_of_the_source() -> None:
    found = route(
        Side.SELL,
        [a_leg(A, B, a_fill(10, 40), amount=10), a_leg(B, D, a_fill(41, 41))],
        [a_leg(A, C, a_fill(5, 20), amount=5), a_leg(C, D, a_fill(21, 21))],
    )
    assert (found.src_amount, found.dest_amount) == (15, 60)
    assert [hop.taker_amount for hop in found.hops] == [10, 0, 5, 0]


def test_what_one_path_leaves_of_a_token_is_not_sold_by_the_next() -> None:
    found = route(
        Side.SELL,
        [a_leg(A, B, a_fill(10, 40), amount=10), a_leg(B, D, a_fill(30, 30))],
        [a_leg(A, C, a_fill(5, 20), amount=5), a_leg(C, B, a_fill(20, 20)), a_leg(B, D, a_fill(25, 25))],
    )
    assert (found.src_amount, found.dest_amount) == (15, 50)
    assert [hop.taker_amount for hop in found.hops] == [10, 30, 5, 0, 20]


def test_a_purchase_is_followed_from_what_is_bought() -> None:
    found = route(Side.BUY, [a_leg(A, B, a_fill(50, 102)), a_leg(B, C, a_fill(101, 200), amount=200)])
    assert (found.src_amount, found.dest_amount) == (50, 200)
    assert [(hop.taker_amount, hop.maker_amount) for hop in found.hops] == [(0, 101), (0, 200)]


def test_a_purchase_over_two_paths_adds_up() -> None:
    found = route(
        Side.BUY,
        [a_leg(A, D, a_fill(7, 30), amount=30)],
        [a_leg(A, B, a_fill(10, 41)), a_leg(B, D, a_fill(40, 20), amount=20)],
    )
    assert (found.src_amount, found.dest_amount) == (7 + 10, 50)
    assert [hop.maker_amount for hop in found.hops] == [30, 40, 20]


def test_a_purchase_whose_first_hop_brings_too_little_is_short() -> None:
    legs = [a_leg(A, B, a_fill(50, 100)), a_leg(B, C, a_fill(101, 200), amount=200)]
    assert arranged(Side.BUY, [legs]) == Short(0, 0, 101)
    assert arranged(Side.BUY, [[legs[1]], legs]) == Short(1, 0, 101)


def test_a_sale_of_which_a_hop_can_take_nothing_is_short() -> None:
    legs = [a_leg(A, B, a_fill(10, 3), amount=10), a_leg(B, C, a_fill(100, 1))]
    assert arranged(Side.SELL, [legs]) == Short(0, 1, 0)


def test_the_first_expiry_is_the_routes() -> None:
    soon, later = a_fill(5, 5, expiry=500), a_fill(5, 5, expiry=900)
    assert route(Side.SELL, [a_leg(A, B, later, soon, amount=10)]).expiry_s == 500


def test_over_asking_rounds_down() -> None:
    assert over_asked(10_000, 100) == 10_100
    assert over_asked(99, 100) == 99
    assert over_asked(10**18, 1) == 1_000_100_000_000_000_000
