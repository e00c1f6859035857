"""Terms of an OTC order are compared with known facts: a refusal says why, before any signature."""

from typing import Any

import pytest
from msgspec import structs

from cambist.codecs.contracts.contract_events import ORDER_CANCELLED, ORDER_FILLED
from cambist.codecs.eip712_orders.rfq import RfqOrder, rfq_domain_separator
from cambist.codecs.messages.otc_messages import StoredOrder
from cambist.codecs.messages.vocabulary import OtcState, OtcType
from cambist.config import limits
from cambist.config.errors import ChainError, UnsafeTransaction, VenueError
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex
from cambist.engine.chain.port import Log, Receipt
from cambist.engine.trader.client.otc.otc_following import contradiction
from cambist.engine.trader.client.otc.otc_safety import (
    OtcOnChain,
    cancelled_in,
    check_asked,
    check_fillable,
    check_funded,
    check_handed_over,
    check_listed,
    check_stored,
    fill_in,
)
from cambist.engine.trader.client.otc.otc_terms import (
    OtcPart,
    SignedOtc,
    body_of,
    hand_over_of,
    otc_order_hash,
)
from cambist.engine.trader.client.terms import TradedToken
from cambist.engine.trader.client.trusted_contract import SigningContract

MAKER, TAKER, OTHER, RFQ, NOBODY = b"\x11" * 20, b"\x22" * 20, b"\x66" * 20, b"\x33" * 20, bytes(20)
USDC, WETH = b"\x44" * 20, b"\x55" * 20
CONTRACT = SigningContract(5, RFQ, rfq_domain_separator("AUGUSTUS RFQ", 5, RFQ))
ORDER = RfqOrder(7, 2_000, USDC, WETH, MAKER, TAKER, 1_000, 10)
SIGNED = SignedOtc(ORDER, otc_order_hash(CONTRACT, ORDER), b"\x07" * 65)
HASH = f"0x{SIGNED.order_hash.hex()}"
OPEN = OtcOnChain(1_000, 0, 5_000, 5_000)


def a_stored(**changed: Any) -> StoredOrder:
    stored = StoredOrder(
        **structs.asdict(body_of(SIGNED)),
        order_hash=HASH,
        chain_id=5,
        state=OtcState.PENDING,
        type=OtcType.P2P,
        taker_from_meta=to_checksum(TAKER),
        maker_balance="1000",
        fillable_balance="1000",
        reserved_balance="1000",
        swappable_balance="1000",
        transaction_hash=None,
        created_at=1,
        updated_at=1,
    )
    return structs.replace(stored, **changed)


# --- Claims of a venue or a file ----------------------------------------------------------------------


def test_what_was_posted_and_what_was_asked_for_pass() -> None:
    check_stored(a_stored(), SIGNED, CONTRACT)
    check_stored(a_stored(maker=to_checksum(MAKER).lower(), permit_maker_asset="0x"), SIGNED, CONTRACT)
    assert check_asked(a_stored(), SIGNED.order_hash, CONTRACT) == SIGNED
    assert check_handed_over(hand_over_of(SIGNED, 5), CONTRACT, "order.json") == SIGNED


@pytest.mark.parametrize(
    "changed",
    [
        {"nonce_and_meta": "8"},
        {"expiry": 2_001},
        {"maker_asset": to_checksum(WETH)},
        {"taker_asset": to_checksum(USDC)},
        {"maker": to_checksum(OTHER)},
        {"taker": to_checksum(OTHER)},
        {"maker_amount": "999"},
        {"taker_amount": "11"},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_every_member_that_is_signed_is_held(changed: dict[str, Any]) -> None:
    lie = a_stored(**changed)
    (member,) = changed
    with pytest.raises(VenueError, match=f"order differs: {member} is"):
        check_stored(lie, SIGNED, CONTRACT)
    with pytest.raises(UnsafeTransaction, match=HASH):
        check_asked(lie, SIGNED.order_hash, CONTRACT)
    handed = structs.replace(hand_over_of(SIGNED, 5), **changed)
    with pytest.raises(ChainError, match="it was changed, or is of another contract"):
        check_handed_over(handed, CONTRACT, "order.json")


def test_another_domain_makes_another_hash() -> None:
    other = SigningContract(5, OTHER, rfq_domain_separator("AUGUSTUS RFQ", 5, OTHER))
    with pytest.raises(ChainError, match="is of another contract"):
        check_handed_over(hand_over_of(SIGNED, 5), other, "order.json")
    with pytest.raises(UnsafeTransaction):
        check_asked(a_stored(), SIGNED.order_hash, other)


@pytest.mark.parametrize("role", ["maker", "taker"])
def test_a_listing_is_of_its_account(role: str) -> None:
    account = MAKER if role == "maker" else TAKER
    check_listed(a_stored(), 5, role, account)
    with pytest.raises(VenueError, match="which is none"):
        check_listed(a_stored(), 6, role, account)
    with pytest.raises(VenueError, match="which is none"):
        check_listed(a_stored(), 5, role, OTHER)
    with pytest.raises(VenueError, match="which is none"):
        check_listed(a_stored(maker="x", taker="y", taker_from_meta="z"), 5, role, account)


def test_a_taker_of_the_nonce_alone_is_one() -> None:
    check_listed(a_stored(taker=to_checksum(NOBODY), taker_from_meta=to_checksum(OTHER)), 5, "taker", OTHER)


# --- Answers of the chain -----------------------------------------------------------------------------


def test_an_order_is_fillable_by_its_taker_up_to_its_last_second() -> None:
    check_fillable(ORDER, structs.replace(OPEN, time_s=2_000), TAKER)
    check_fillable(structs.replace(ORDER, expiry=0), structs.replace(OPEN, time_s=10**10), TAKER)
    check_fillable(structs.replace(ORDER, taker=NOBODY), OPEN, OTHER)
    assert OPEN.left(ORDER) == 1_000
    assert structs.replace(OPEN, kept=301).left(ORDER) == 300


@pytest.mark.parametrize(
    ("order", "standing", "taker", "said"),
    [
        ({}, {}, OTHER, f"names {to_checksum(TAKER)} as its taker, and the key is of {to_checksum(OTHER)}"),
        ({}, {"kept": 1}, TAKER, "the order has no unfilled amount: it was filled or cancelled"),
        ({}, {"time_s": 2_001}, TAKER, "the order expired at 2000, and the chain's time is 2001"),
        ({"maker_amount": 0}, {}, TAKER, "has an amount of 0"),
        ({"taker_amount": 0}, {}, TAKER, "has an amount of 0"),
        ({"taker_asset": parse_hex(limits.NATIVE_PLACEHOLDER, "")}, {}, TAKER, "is of the native token"),
    ],
    ids=["stranger", "closed", "expired", "gives nothing", "wants nothing", "native"],
)
def test_what_cannot_be_filled_says_why(
    order: dict[str, Any], standing: dict[str, Any], taker: bytes, said: str
) -> None:
    with pytest.raises(ChainError) as refused:
        check_fillable(structs.replace(ORDER, **order), structs.replace(OPEN, **standing), taker)
    assert said in refused.value.detail


def test_what_is_known_of_a_closed_order_is_told() -> None:
    with pytest.raises(ChainError, match="unfilled amount: cancelled by 0x12"):
        check_fillable(ORDER, structs.replace(OPEN, kept=1), TAKER, "cancelled by 0x12")


def test_a_permit_is_needed_only_where_the_allowance_lacks() -> None:
    part, gets = OtcPart(5, 500), TradedToken(USDC, "USDC", 2)
    assert not check_funded(ORDER, OPEN, part, 0, gets)
    assert not check_funded(ORDER, structs.replace(OPEN, balance=500, allowance=500), part, 0, gets)
    assert check_funded(ORDER, structs.replace(OPEN, allowance=499), part, 500, gets)
    for lacking, permitted, said in (
        ({"balance": 499}, 10**9, "has 4.99 USDC, and 5 USDC would be taken: 4 USDC at most can be had"),
        ({"allowance": 3}, 499, "allows 4.99 USDC, and 5 USDC would be taken: 4 USDC at most can be had"),
        ({"allowance": 3}, 0, "allows 0.03 USDC, and 5 USDC would be taken: 0 USDC at most can be had"),
        ({"balance": 499, "kept": 301}, 0, "4.99 USDC, and 5 USDC would be taken: 3 USDC at most can be had"),
    ):
        with pytest.raises(ChainError, match=said):
            check_funded(ORDER, structs.replace(OPEN, **lacking), part, permitted, gets)


@pytest.mark.parametrize(
    ("state", "kept", "is_borne_out"),
    [
        (OtcState.FULFILLED, 1, True),
        (OtcState.FULFILLED, 0, False),
        (OtcState.CANCELLED, 5, False),
        (OtcState.EXPIRED, 0, True),
        (OtcState.EXPIRED, 1, False),
        (OtcState.PENDING, 5, True),
        (OtcState.PENDING, 1, False),
        (OtcState.SUSPENDED, 1, False),
    ],
)
def test_the_chain_bears_a_state_out_or_not(state: OtcState, kept: int, is_borne_out: bool) -> None:
    fault = contradiction(a_stored(state=state), ORDER, structs.replace(OPEN, kept=kept), 2_001)
    assert (not fault) == is_borne_out


@pytest.mark.parametrize(
    ("expiry", "wall_s", "time_s", "is_over"),
    [(2_000, 2_001, 0, True), (2_000, 0, 2_001, True), (2_000, 2_000, 2_000, False), (0, 10**10, 0, False)],
)
def test_an_order_has_expired_by_the_later_of_two_clocks(
    expiry: int, wall_s: int, time_s: int, is_over: bool
) -> None:
    order, standing = structs.replace(ORDER, expiry=expiry), structs.replace(OPEN, time_s=time_s)
    fault = contradiction(a_stored(state=OtcState.EXPIRED), order, standing, wall_s)
    assert fault == (
        ""
        if is_over
        else "the venue says that it is EXPIRED, and its time is not over: it can be filled still"
    )


# --- Receipts -----------------------------------------------------------------------------------------


def a_log(
    topic: bytes, order_hash: bytes, maker: bytes, *, address: bytes = RFQ, taker: bytes = TAKER
) -> Log:
    topics: tuple[bytes, ...] = (topic, order_hash, maker.rjust(32, b"\0"))
    data = b""
    if topic == ORDER_FILLED:
        topics += (taker.rjust(32, b"\0"),)
        data = b"".join(
            word if isinstance(word, bytes) else word.to_bytes(32, "big")
            for word in (USDC.rjust(32, b"\0"), 500, WETH.rjust(32, b"\0"), 5)
        )
    return Log(address, topics, data, 9, b"\x01" * 32, b"\x02" * 32, 0, 0)


def a_receipt(*logs: Log, succeeded: bool = True) -> Receipt:
    return Receipt(b"\x02" * 32, succeeded, 9, b"\x01" * 32, 0, 21_000, 1, None, logs)


def test_only_the_contracts_own_event_of_this_order_and_taker_is_a_fill() -> None:
    own = a_log(ORDER_FILLED, SIGNED.order_hash, MAKER)
    event = fill_in(a_receipt(own), CONTRACT, SIGNED.order_hash, TAKER)
    assert event is not None
    assert (event.maker_amount, event.taker_amount) == (500, 5)
    assert fill_in(a_receipt(own), CONTRACT, SIGNED.order_hash) == event
    for receipt in (
        a_receipt(own, succeeded=False),
        a_receipt(a_log(ORDER_FILLED, b"\x09" * 32, MAKER)),
        a_receipt(a_log(ORDER_FILLED, SIGNED.order_hash, MAKER, address=OTHER)),
        a_receipt(a_log(ORDER_FILLED, SIGNED.order_hash, MAKER, taker=OTHER)),
        a_receipt(),
    ):
        assert fill_in(receipt, CONTRACT, SIGNED.order_hash, TAKER) is None


def test_cancellations_are_those_of_the_maker_by_the_contract() -> None:
    hashes = [bytes([at]) * 32 for at in range(1, 4)]
    logs = (
        a_log(ORDER_CANCELLED, hashes[0], MAKER),
        a_log(ORDER_CANCELLED, hashes[1], OTHER),
        a_log(ORDER_CANCELLED, hashes[2], MAKER, address=OTHER),
        a_log(ORDER_FILLED, hashes[2], MAKER),
    )
    assert cancelled_in(a_receipt(*logs), CONTRACT, MAKER) == {hashes[0]}
