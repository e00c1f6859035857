"""A firm quote against its request: each term, each kind of signature, and the book beside it."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.codecs.messages.maker_messages import FirmOrder
from cambist.codecs.messages.vocabulary import Side
from cambist.config import limits
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65, to_compact64
from cambist.feeds.firm.firm_check import (
    AGAINST_MAKER,
    CheckedQuote,
    FirmAsked,
    FirmFailure,
    FirmFault,
    book_amount,
    check_firm,
    is_drifted,
)
from support.makers.firm_books import DAI, USDC, WETH, a_live_book

NOW_S = 1_795_000_000
KEY, OTHER_KEY = SigningKey(b"\x01" * 32), SigningKey(b"\x02" * 32)
USER, EXECUTOR, RFQ = b"\xbb" * 20, b"\xaa" * 20, b"\x0f" * 20
DIGEST_OF = RFQ_ORDER.compiled.digest_for(rfq_domain_separator("AUGUSTUS RFQ", 31_337, RFQ))
SALE = FirmAsked(WETH, USDC, Side.SELL, 10**18, USER, EXECUTOR)
PURCHASE = FirmAsked(WETH, USDC, Side.BUY, 2_500 * 10**6, USER, EXECUTOR)


def an_order(**changed: Any) -> RfqOrder:
    order = RfqOrder(
        pack_firm(USER, 12_345), NOW_S + 150, USDC, WETH, KEY.address, EXECUTOR, 2_500 * 10**6, 10**18
    )
    return msgspec.structs.replace(order, **changed)


def written(order: RfqOrder, signature: bytes | None = None, **changed: Any) -> FirmOrder:
    """As a maker writes it, signed unless a signature is given."""
    signed = to_65(*KEY.sign(DIGEST_OF(order))) if signature is None else signature
    answer = FirmOrder(
        str(order.nonce_and_meta),
        order.expiry,
        f"0x{order.maker_asset.hex()}",
        f"0x{order.taker_asset.hex()}",
        f"0x{order.maker.hex()}",
        f"0x{order.taker.hex()}",
        str(order.maker_amount),
        str(order.taker_amount),
        f"0x{signed.hex()}",
    )
    return msgspec.structs.replace(answer, **changed)


def checked(answer: FirmOrder, asked: FirmAsked = SALE) -> CheckedQuote:
    return check_firm(answer, asked, DIGEST_OF, NOW_S)


def refusal(answer: FirmOrder, asked: FirmAsked = SALE) -> str:
    with pytest.raises(FirmFailure) as caught:
        checked(answer, asked)
    assert caught.value.fault is FirmFault.INVALID
    return caught.value.detail


@pytest.mark.parametrize("asked", [SALE, PURCHASE], ids=["sale", "purchase"])
def test_what_was_asked_for_is_taken(asked: FirmAsked) -> None:
    order = an_order()
    quote = checked(written(order), asked)
    assert quote.order == order
    assert quote.digest32 == DIGEST_OF(order)
    assert quote.is_proven
    assert quote.signature == to_65(*KEY.sign(DIGEST_OF(order)))


def test_a_compact_signature_and_any_case_are_taken() -> None:
    order = an_order()
    compact = to_compact64(*KEY.sign(DIGEST_OF(order)))
    answer = written(order, compact, maker_asset=f"0x{USDC.hex().upper()}")
    assert checked(answer).is_proven


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"maker_asset": DAI}, "makerAsset"),
        ({"taker_asset": DAI}, "takerAsset"),
        ({"taker": USER}, "taker"),
        ({"taker": bytes(20)}, "taker"),
        ({"nonce_and_meta": pack_firm(EXECUTOR, 12_345)}, "user in nonceAndMeta"),
        ({"nonce_and_meta": int.from_bytes(KEY.address, "big") << 96 | 1}, "user in nonceAndMeta"),
        ({"maker": bytes(20)}, "maker"),
        ({"maker": EXECUTOR}, "maker"),
        ({"taker_amount": 10**18 - 1}, "takerAmount"),
        ({"taker_amount": 10**18 + 1}, "takerAmount"),
        ({"maker_amount": 0}, "makerAmount"),
        ({"maker_amount": limits.UINT256_MAX // (10**18 + 1) + 1}, "makerAmount"),
        ({"expiry": 0}, "expiry"),
        ({"expiry": NOW_S}, "expiry"),
        ({"expiry": NOW_S + limits.FIRM_EXPIRY_MIN_S - limits.MAKER_FIRM_EXPIRY_GRACE_S - 1}, "expiry"),
        ({"expiry": NOW_S + limits.MAKER_FIRM_EXPIRY_MAX_S + 1}, "expiry"),
        ({"expiry": NOW_S * 1_000}, "expiry"),
    ],
)
def test_a_term_that_was_not_asked_for_is_refused(changed: dict[str, Any], field: str) -> None:
    assert refusal(written(an_order(**changed))).startswith(f"invalid: {field}: expected ")


def test_an_expiry_within_the_grace_is_taken() -> None:
    earliest = NOW_S + limits.FIRM_EXPIRY_MIN_S - limits.MAKER_FIRM_EXPIRY_GRACE_S
    for expiry in (earliest, NOW_S + limits.MAKER_FIRM_EXPIRY_MAX_S):
        assert checked(written(an_order(expiry=expiry))).order.expiry == expiry


def test_of_a_purchase_the_maker_amount_is_fixed_and_the_other_above_zero() -> None:
    assert "makerAmount: expected 2500000000, got 2499999999" in refusal(
        written(an_order(maker_amount=2_500 * 10**6 - 1)), PURCHASE
    )
    assert "takerAmount: expected above 0" in refusal(written(an_order(taker_amount=0)), PURCHASE)
    assert checked(written(an_order(taker_amount=7)), PURCHASE).order.taker_amount == 7


def test_the_largest_amount_that_the_contract_can_multiply_is_taken() -> None:
    most = limits.UINT256_MAX // (10**18 + 1)
    assert checked(written(an_order(maker_amount=most))).order.maker_amount == most


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"nonce_and_meta": "-1"}, "nonceAndMeta"),
        ({"nonce_and_meta": str(1 << 256)}, "nonceAndMeta"),
        ({"maker_amount": "1e9"}, "makerAmount"),
        ({"taker_amount": ""}, "takerAmount"),
        ({"maker": "0x12"}, "maker"),
        ({"signature": "0x1"}, "signature"),
        ({"signature": "0x" + "00" * (limits.MAKER_SIGNATURE_BYTES_MAX + 1)}, "signature"),
    ],
)
def test_a_text_that_cannot_be_read_is_named(changed: dict[str, str], field: str) -> None:
    answer = msgspec.structs.replace(written(an_order()), **changed)
    assert refusal(answer).startswith(f"invalid: {field}: expected ")


@pytest.mark.parametrize(
    "signature",
    [
        to_65(*OTHER_KEY.sign(DIGEST_OF(an_order()))),
        to_65(*KEY.sign(b"\x07" * 32)),
        b"",
        bytes(65),
        b"\x01" * 300,
    ],
    ids=["another key", "another digest", "empty", "zeros", "long"],
)
def test_what_the_makers_key_did_not_sign_is_for_its_contract_to_say(signature: bytes) -> None:
    quote = checked(written(an_order(), signature))
    assert not quote.is_proven
    assert quote.signature == signature


@pytest.mark.parametrize(
    ("src", "dest", "side", "amount", "shown"),
    [
        (WETH, USDC, Side.SELL, 10**18, 2_500 * 10**6),
        (WETH, USDC, Side.SELL, 3 * 10**18, 7_499 * 10**6),
        (USDC, WETH, Side.SELL, 2_501 * 10**6, 10**18),
        (WETH, USDC, Side.BUY, 2_500 * 10**6, 10**18),
        (USDC, WETH, Side.BUY, 10**18, 2_501 * 10**6),
        (USDC, WETH, Side.BUY, 100 * 10**18, None),
    ],
)
def test_the_book_answers_the_same_question(
    src: bytes, dest: bytes, side: Side, amount: int, shown: int | None
) -> None:
    asked = FirmAsked(src, dest, side, amount, USER, EXECUTOR)
    assert book_amount(a_live_book(), asked) == shown


def test_a_quote_has_drifted_beyond_the_bound_and_not_at_it() -> None:
    shown = 2_500 * 10**6
    at_bound, beyond = shown * 9_950 // 10_000 - 1, shown * 9_950 // 10_000 - 2
    assert not is_drifted(an_order(maker_amount=at_bound), Side.SELL, shown, 50)
    assert is_drifted(an_order(maker_amount=beyond), Side.SELL, shown, 50)
    assert not is_drifted(an_order(maker_amount=2 * shown), Side.SELL, shown, 50)
    shown = 10**18
    at_bound = shown * 10_050 // 10_000 + 1
    assert not is_drifted(an_order(taker_amount=at_bound), Side.BUY, shown, 50)
    assert is_drifted(an_order(taker_amount=at_bound + 1), Side.BUY, shown, 50)
    assert not is_drifted(an_order(taker_amount=2 * shown), Side.BUY, None, 50)


def test_a_unit_of_rounding_is_no_drift_however_little_is_asked_for() -> None:
    assert not is_drifted(an_order(maker_amount=1), Side.SELL, 2, 50)
    assert is_drifted(an_order(maker_amount=1), Side.SELL, 3, 50)
    assert not is_drifted(an_order(taker_amount=2), Side.BUY, 1, 50)
    assert is_drifted(an_order(taker_amount=3), Side.BUY, 1, 50)


@pytest.mark.parametrize("signature", [None, b"\x01" * 70], ids=["its key", "its contract"])
def test_a_user_who_names_the_makers_own_account_is_no_fault_of_the_makers(signature: bytes | None) -> None:
    asked = msgspec.structs.replace(SALE, user=KEY.address)
    order = an_order(nonce_and_meta=pack_firm(KEY.address, 12_345))
    with pytest.raises(FirmFailure) as caught:
        checked(written(order, signature), asked)
    assert caught.value.fault is FirmFault.SELF_DEALT


def test_a_refusal_and_what_lies_with_the_user_or_with_us_is_no_fault_of_the_makers() -> None:
    assert set(FirmFault) - AGAINST_MAKER == {
        FirmFault.REFUSED,
        FirmFault.BLACKLISTED,
        FirmFault.TOO_STRICT,
        FirmFault.OUT_OF_TIME,
        FirmFault.OVERDRAWN,
        FirmFault.SELF_DEALT,
        FirmFault.NO_SHARE,
    }
