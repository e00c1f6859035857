"""The parts that can be taken of an OTC order, by the contract's arithmetic; signed orders on the wire."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, structs

from cambist.codecs.contracts.permit import rfq_permit_amount
from cambist.codecs.eip712_orders.nonce_and_meta import taker_from_meta
from cambist.codecs.eip712_orders.rfq import RfqOrder, rfq_domain_separator
from cambist.codecs.messages.wire import encode
from cambist.config.errors import ChainError, InvalidInput
from cambist.engine.trader.client.otc.otc_terms import (
    OtcHandOver,
    OtcPart,
    OtcWish,
    SignedOtc,
    body_of,
    decode_hand_over,
    hand_over_of,
    order_of,
    otc_order_hash,
    part_given,
    part_received,
    rest_of,
    signed_of,
)
from cambist.engine.trader.client.terms import TradedToken
from cambist.engine.trader.client.trusted_contract import SigningContract

MAKER, TAKER, RFQ = b"\x11" * 20, b"\x22" * 20, b"\x33" * 20
USDC, WETH = TradedToken(b"\x44" * 20, "USDC", 6), TradedToken(b"\x55" * 20, "WETH", 18)
CONTRACT = SigningContract(5, RFQ, rfq_domain_separator("AUGUSTUS RFQ", 5, RFQ))
AMOUNTS = st.integers(1, 40) | st.integers(1, 2**128)


def an_order(maker_amount: int, taker_amount: int) -> RfqOrder:
    return RfqOrder(7, 0, USDC.address, WETH.address, MAKER, TAKER, maker_amount, taker_amount)


def is_taken(order: RfqOrder, left: int, taker_amount: int) -> int | None:
    """Maker amount that contracts/Rfq.sol, `bookPart`, gives for a taker amount; None if it refuses."""
    if not 0 < taker_amount <= order.taker_amount:
        return None
    maker_amount = taker_amount * order.maker_amount // order.taker_amount
    return maker_amount if 0 < maker_amount <= left else None


# --- Parts --------------------------------------------------------------------------------------------


@given(st.integers(1, 40), st.integers(1, 40), st.integers(1, 40))
def test_a_rest_is_the_most_that_can_be_had_at_the_least_that_it_costs(
    maker_amount: int, taker_amount: int, left: int
) -> None:
    order, left = an_order(maker_amount, taker_amount), min(left, maker_amount)
    takable = {given: is_taken(order, left, given) for given in range(1, taker_amount + 1)}
    best = max((got for got in takable.values() if got is not None), default=0)
    if not best:
        with pytest.raises(ChainError, match="less than one unit"):
            rest_of(order, left)
        return
    cheapest = min(given for given, got in takable.items() if got == best)
    assert rest_of(order, left) == OtcPart(cheapest, best)


@given(AMOUNTS, AMOUNTS, st.integers(0, 2**128), st.integers(1, 2**128))
def test_a_part_is_what_the_contract_takes_or_is_refused(
    maker_amount: int, taker_amount: int, filled: int, wanted: int
) -> None:
    order = an_order(maker_amount, taker_amount)
    left = maker_amount - filled % maker_amount
    for part_of, token in ((part_given, WETH), (part_received, USDC)):
        try:
            part = part_of(order, left, wanted, token, "--field")
        except ChainError:
            continue
        assert is_taken(order, left, part.taker_amount) == part.maker_amount
        cheaper = is_taken(order, left, part.taker_amount - 1)
        if part_of is part_given:
            assert part.taker_amount <= wanted
            assert part.maker_amount == is_taken(order, left, wanted)
            assert cheaper is None or cheaper < part.maker_amount
        else:
            assert part.maker_amount >= wanted
            assert cheaper is None or cheaper < wanted


@given(AMOUNTS, AMOUNTS)
def test_what_can_be_given_or_had_is_never_refused(maker_amount: int, taker_amount: int) -> None:
    order = an_order(maker_amount, taker_amount)
    try:
        rest = rest_of(order, maker_amount)
    except ChainError:
        return
    assert part_given(order, maker_amount, rest.taker_amount, WETH, "--amount") == rest
    assert part_received(order, maker_amount, rest.maker_amount, USDC, "--receive") == rest
    assert rest == OtcPart(taker_amount, maker_amount), "of an order that nobody touched that is all of it"


def test_too_much_and_too_little_say_what_there_is() -> None:
    order = an_order(10, 10**17)
    for wanted, said in (
        (6 * 10**16, "--a: too much: 0.05 WETH at most can be given, got 0.06 WETH"),
        (10**16 - 1, "--a: too little: 0.009999999999999999 WETH brings nothing"),
    ):
        with pytest.raises(ChainError, match=said):
            part_given(order, 5, wanted, WETH, "--a")
    with pytest.raises(ChainError, match=r"--r: too much: 0\.000005 USDC at most can be had, got 0\.000006"):
        part_received(order, 5, 6, USDC, "--r")


def test_what_would_bring_no_further_unit_is_not_given() -> None:
    assert part_given(an_order(3, 3_000), 3, 1_999, WETH, "--a") == OtcPart(1_000, 1)


# --- Orders -------------------------------------------------------------------------------------------


def a_wish(life_s: int = 60) -> OtcWish:
    return OtcWish(
        chain_id=5,
        src=USDC,
        dest=WETH,
        src_amount=2_500,
        dest_amount=10,
        maker=MAKER,
        taker=TAKER,
        life_s=life_s,
    )


def test_an_order_packs_its_maker_and_a_nonce_and_may_live_for_ever() -> None:
    order = order_of(a_wish(), 1_000, b"\xff" * 12 + b"\0" * 20)
    assert order.nonce_and_meta == int.from_bytes(MAKER + b"\xff" * 12, "big")
    assert taker_from_meta(order.nonce_and_meta, order.maker, order.taker) == TAKER
    assert (order.expiry, order.maker_amount, order.taker_amount) == (1_060, 2_500, 10)
    assert order_of(a_wish(0), 1_000, bytes(32)).expiry == 0


@pytest.mark.parametrize("permit", [b"", b"\x01" * 224])
def test_a_signed_order_is_the_same_after_it_was_handed_over(permit: bytes) -> None:
    order = order_of(a_wish(), 1_000, b"\x01" * 32)
    signed = SignedOtc(order, otc_order_hash(CONTRACT, order), b"\x07" * 65, permit)
    handed = decode_hand_over(encode(hand_over_of(signed, 5)))
    assert signed_of(handed, CONTRACT) == signed
    assert (handed.chain_id, handed.order_hash) == (5, "0x" + signed.order_hash.hex())
    bare = decode_hand_over(encode(body_of(signed)))
    assert (bare.chain_id, bare.order_hash) == (UNSET, UNSET)
    assert signed_of(bare, CONTRACT) == signed


@pytest.mark.parametrize(
    ("member", "text"),
    [
        ("nonce_and_meta", "-1"),
        ("maker_asset", "0x12"),
        ("taker_amount", "1.5"),
        ("maker_amount", str(2**256)),
        ("signature", "0x1"),
        ("permit_maker_asset", "permit"),
    ],
)
def test_an_order_that_makes_no_sense_names_the_member(member: str, text: str) -> None:
    order = order_of(a_wish(), 1_000, b"\x01" * 32)
    body: OtcHandOver = hand_over_of(SignedOtc(order, otc_order_hash(CONTRACT, order), b"\x07" * 65), 5)
    camel = "".join(word.title() if at else word for at, word in enumerate(member.split("_")))
    with pytest.raises(InvalidInput, match=camel):
        signed_of(structs.replace(body, **{member: text}), CONTRACT)


# --- Permits ------------------------------------------------------------------------------------------


def words(*numbers: int | bytes) -> bytes:
    return b"".join(
        number.rjust(32, b"\0") if isinstance(number, bytes) else number.to_bytes(32, "big")
        for number in numbers
    )


@pytest.mark.parametrize(
    ("permit", "amount"),
    [
        (words(MAKER, RFQ, 77, 9, 27, 1, 2), 77),
        (words(MAKER, RFQ, 3, 9, 1, 27, 1, 2), 2**256 - 1),
        (words(MAKER, RFQ, 3, 9, 0, 27, 1, 2), 0),
        (words(MAKER, TAKER, 77, 9, 27, 1, 2), 0),
        (words(TAKER, RFQ, 77, 9, 27, 1, 2), 0),
        (words(MAKER, RFQ, 77), 0),
        (b"", 0),
    ],
    ids=["eip2612", "dai", "dai revoking", "spender", "owner", "length", "none"],
)
def test_a_permit_says_what_it_lets_be_taken(permit: bytes, amount: int) -> None:
    assert rfq_permit_amount(permit, MAKER, RFQ) == amount
