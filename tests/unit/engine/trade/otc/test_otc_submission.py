"""Checks of a posted order, without HTTP and chain: terms, the chain's answers, the first row."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from cambist.codecs.eip712_orders.signing_names import NamedDomain
from cambist.codecs.messages.otc_messages import OtcOrderBody, posted
from cambist.codecs.messages.vocabulary import OtcState, OtcType
from cambist.config.errors import (
    InvalidInput,
    InvalidSignature,
    OrderClosed,
    OrderExpired,
    Reverted,
    ServiceUnavailable,
)
from cambist.config.limits import UINT256_MAX
from cambist.crypto.addresses import to_checksum
from cambist.crypto.eip1271 import MAGIC_VALUE4
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65, to_compact64
from cambist.engine.chain.holdings import Holding
from cambist.engine.store.rows import NEVER_S, OtcFill, OtcOrderRow, amount32, amount_of
from cambist.engine.trade.otc.document import decode_document, encode_document, order_of, stored_order
from cambist.engine.trade.otc.endpoints import fillable, promised
from cambist.engine.trade.otc.submission import (
    Answered,
    Begun,
    answered,
    begun,
    left_of,
    new_document,
    new_row,
    submission_calls,
)
from cambist.engine.trade.otc.terms import OtcTerms, checked, identify, otc_domain
from support.store.stores import USDC as OTHER_ASSET
from support.store.stores import an_otc_order

NOW_MS = 1_795_000_000_500
NOW_S = NOW_MS // 1_000
CHAIN_ID = 31_337
RFQ = b"\xf1" * 20
KEY = SigningKey(b"\7" * 32)
USDC, WETH, TAKER = b"\x5d" * 20, b"\xe0" * 20, b"\x7a" * 20
NAMED = [NamedDomain("AUGUSTUS RFQ", "1", chain_id, RFQ) for chain_id in (1, CHAIN_ID)]
DOMAINS = {here.chain_id: otc_domain(here, NAMED) for here in NAMED}
ORDER = RfqOrder(7, 0, USDC, WETH, KEY.address, TAKER, 2_500, 1_000)
ADDRESSED = ("maker_asset", "taker_asset", "maker", "taker")
ADDRESSES = st.binary(min_size=20, max_size=20)
AMOUNTS = st.integers(0, UINT256_MAX)


def a_body(order: RfqOrder = ORDER, *, signature: bytes | None = None, **more: Any) -> OtcOrderBody:
    digest32 = RFQ_ORDER.compiled.digest_for(DOMAINS[CHAIN_ID].separator)(order)
    signed = to_65(*KEY.sign(digest32)) if signature is None else signature
    wire: dict[str, Any] = {
        "nonce_and_meta": str(order.nonce_and_meta),
        "expiry": order.expiry,
        "maker_amount": str(order.maker_amount),
        "taker_amount": str(order.taker_amount),
        **{
            name: to_checksum(getattr(order, name))
            for name in ("maker_asset", "taker_asset", "maker", "taker")
        },
        "signature": to_hex(signed),
    }
    return OtcOrderBody(**wire | more)


def terms_of(body: OtcOrderBody) -> OtcTerms:
    return checked(body, identify(body, DOMAINS[CHAIN_ID]), DOMAINS, CHAIN_ID, NOW_MS)


def answers(**changed: Any) -> dict[str, Any]:
    told = {
        "makerAsset": 10_000,
        "takerAsset": 0,
        "allowance": 8_000,
        "remaining": 0,
        "cancelledUntil": 0,
    } | changed
    return {name: uint_word(told) if isinstance(told, int) else told for name, told in told.items()}


# --- Terms ----------------------------------------------------------------------------------------------


@given(AMOUNTS, ADDRESSES, ADDRESSES, ADDRESSES, ADDRESSES, AMOUNTS, AMOUNTS, st.integers(0, 2**53 - 1))
def test_a_body_is_the_struct_that_was_signed(
    meta: int, maker: bytes, taker: bytes, give: bytes, want: bytes, offered: int, asked: int, expiry: int
) -> None:
    order = RfqOrder(meta, expiry, give, want, maker, taker, offered, asked)
    found = identify(a_body(order), DOMAINS[CHAIN_ID])
    assert found.order == order
    assert found.order_hash == RFQ_ORDER.compiled.digest_for(DOMAINS[CHAIN_ID].separator)(order)
    assert found.order_hash != identify(a_body(order), DOMAINS[1]).order_hash


@given(st.integers(1, 2**53 - 1))
def test_an_expiry_is_never_or_to_come(expiry: int) -> None:
    body = a_body(replace(ORDER, expiry=expiry))
    if expiry <= NOW_S:
        with pytest.raises(OrderExpired):
            terms_of(body)
    else:
        assert terms_of(body).order.expiry == expiry


@pytest.mark.parametrize(
    ("expiry", "is_over"), [(0, False), (1, True), (NOW_S - 1, True), (NOW_S, True), (NOW_S + 1, False)]
)
def test_an_expiry_is_over_with_its_second(expiry: int, is_over: bool) -> None:
    body = a_body(replace(ORDER, expiry=expiry))
    if is_over:
        with pytest.raises(OrderExpired):
            terms_of(body)
    else:
        assert terms_of(body).order.expiry == expiry


@pytest.mark.parametrize(("taker", "kind"), [(TAKER, OtcType.P2P), (bytes(20), OtcType.LIMIT)])
def test_type_and_receiver(taker: bytes, kind: OtcType) -> None:
    terms = terms_of(a_body(replace(ORDER, taker=taker)))
    assert (terms.type, terms.taker_from_meta) == (kind, (7).to_bytes(20, "big"))
    own = int.from_bytes(KEY.address, "big") << 96 | 5
    assert terms_of(a_body(replace(ORDER, taker=taker, nonce_and_meta=own))).taker_from_meta == taker


def test_a_signature_is_shown_as_it_came_but_for_v() -> None:
    rs64, recovery_id = KEY.sign(identify(a_body(), DOMAINS[CHAIN_ID]).order_hash)
    for sent, shown in (
        (to_65(rs64, recovery_id), to_65(rs64, recovery_id)),
        (rs64 + bytes([recovery_id]), to_65(rs64, recovery_id)),
        (to_compact64(rs64, recovery_id), to_compact64(rs64, recovery_id)),
    ):
        terms = terms_of(a_body(signature=sent))
        assert terms.signature.is_by_key
        assert terms.shown_signature == shown


def test_a_signature_of_another_chain_is_told() -> None:
    wrong = to_65(*KEY.sign(identify(a_body(), DOMAINS[1]).order_hash))
    with pytest.raises(
        InvalidSignature,
        match=r"signed for the domain AUGUSTUS RFQ version 1, chain 1, .*expected .*, chain 31337,",
    ):
        terms_of(a_body(signature=wrong))


# --- Answers of the chain -------------------------------------------------------------------------------


def test_what_is_asked() -> None:
    assert submission_calls(terms_of(a_body()), RFQ).keys() == {
        "makerAsset", "takerAsset", "allowance", "remaining", "cancelledUntil",
    }  # fmt: skip
    by_contract = submission_calls(terms_of(a_body(signature=b"")), RFQ)["signature"]
    assert (by_contract.to, by_contract.sender) == (KEY.address, RFQ)
    permit = b"".join((KEY.address.rjust(32, b"\0"), RFQ.rjust(32, b"\0"), bytes(160)))
    with_permit = submission_calls(terms_of(a_body(permit_maker_asset=to_hex(permit))), RFQ)
    assert with_permit["permit"].sender == RFQ
    assert with_permit["permit"].to == USDC


@pytest.mark.parametrize(
    ("signature", "has_code", "answer", "expected"),
    [
        (None, False, None, True),
        (b"", True, Reverted("no"), False),
        (b"", True, MAGIC_VALUE4.ljust(32, b"\0"), True),
        (b"\1" * 65, True, bytes(32), False),
        (b"\1" * 65, True, b"", False),
    ],
)
def test_who_has_signed(signature: bytes | None, has_code: bool, answer: Any, expected: bool) -> None:
    told = answers(**({} if answer is None else {"signature": answer}))
    found = answered(terms_of(a_body(signature=signature)), told, without_code=(), has_code=has_code)
    assert found == Answered(expected, Holding(10_000, 8_000), 0, None)


def test_an_account_without_code_never_signs_by_contract() -> None:
    with pytest.raises(InvalidSignature, match="a wallet that is not deployed yet cannot sign"):
        answered(terms_of(a_body(signature=b"")), answers(signature=b""), without_code=(), has_code=False)


@pytest.mark.parametrize("field", ["makerAsset", "takerAsset"])
@pytest.mark.parametrize("answer", [Reverted("no"), b"", b"\1" * 31])
def test_assets_that_tell_no_balance(field: str, answer: Any) -> None:
    said = f"{field}: expected an ERC-20 token, got"
    with pytest.raises(InvalidInput, match=f"{said} 'a contract that tells no balance"):
        answered(terms_of(a_body()), answers(**{field: answer}), without_code=(), has_code=False)
    with pytest.raises(InvalidInput, match=f"{said} 'no contract at 0x"):
        answered(terms_of(a_body()), answers(), without_code=(field,), has_code=False)


def test_a_token_that_tells_no_allowance() -> None:
    with pytest.raises(
        InvalidInput, match="makerAsset: expected an ERC-20 token, got 'a contract without all"
    ):
        answered(terms_of(a_body()), answers(allowance=Reverted("no")), without_code=(), has_code=False)


def test_an_rfq_contract_that_does_not_answer() -> None:
    with pytest.raises(ServiceUnavailable, match="RFQ contract"):
        answered(terms_of(a_body()), answers(remaining=Reverted("no")), without_code=(), has_code=False)


@pytest.mark.parametrize("allowance", [0, 100])
@pytest.mark.parametrize(("answer", "granted"), [(b"", 1_000), (Reverted("used"), 0)])
def test_a_permit_grants_what_its_token_takes_it_for(answer: Any, granted: int, allowance: int) -> None:
    permit = b"".join(
        (KEY.address.rjust(32, b"\0"), RFQ.rjust(32, b"\0"), uint_word(1_000), uint_word(NOW_S))
    )
    terms = terms_of(a_body(permit_maker_asset=to_hex(permit + bytes(96))))
    told = answers(allowance=allowance, permit=answer, forged=Reverted("forged"))
    found = answered(terms, told, without_code=(), has_code=False)
    assert found == Answered(is_signed=True, holding=Holding(10_000, allowance), permitted=granted, left=None)
    row = new_row(terms, found, Begun(), [], CHAIN_ID, NOW_MS)
    assert amount_of(row.maker_balance) == max(granted, allowance)
    assert row.status is (
        OtcState.SUSPENDED if max(granted, allowance) < ORDER.maker_amount else OtcState.PENDING
    )


@pytest.mark.parametrize(
    ("until_s", "expiry", "is_refused"),
    [
        (0, 0, False),
        (0, NOW_S + 5, False),
        (1, 0, True),
        (NOW_S + 4, NOW_S + 5, False),
        (NOW_S + 5, NOW_S + 5, True),
        (NOW_S + 6, NOW_S + 5, True),
        (UINT256_MAX, 0, True),
    ],
)
def test_an_order_that_its_maker_has_cancelled_with_others(
    until_s: int, expiry: int, is_refused: bool
) -> None:
    terms = terms_of(a_body(replace(ORDER, expiry=expiry)))
    told = answers(cancelledUntil=until_s)
    if is_refused:
        with pytest.raises(OrderClosed, match=f"expected a time after {until_s}, got {expiry}"):
            answered(terms, told, without_code=(), has_code=False)
    else:
        assert answered(terms, told, without_code=(), has_code=False).is_signed


@pytest.mark.parametrize("answer", [Reverted("no such function"), b"", b"\xff" * 31])
def test_a_contract_without_bulk_cancellations_has_cancelled_none(answer: bytes | Exception) -> None:
    told = answers(cancelledUntil=answer)
    assert answered(terms_of(a_body()), told, without_code=(), has_code=False).left is None


@given(AMOUNTS)
def test_what_is_left_by_the_contract(told: int) -> None:
    terms = terms_of(a_body())
    if told == 1:
        with pytest.raises(OrderClosed):
            left_of(uint_word(told), terms)
    else:
        assert left_of(uint_word(told), terms) == (told - 1 if told else None)


# --- The first row --------------------------------------------------------------------------------------


def a_fill(amount: int, log: int = 0) -> OtcFill:
    return OtcFill(
        CHAIN_ID, bytes(32), bytes([log]) * 32, log, 5, bytes(32), KEY.address, TAKER, USDC, WETH,
        amount32(amount), amount32(1), 1,
    )  # fmt: skip


@given(st.integers(1, UINT256_MAX), st.data())
def test_what_was_filled_before_is_what_no_row_has(whole: int, data: st.DataObject) -> None:
    filled = data.draw(st.integers(0, whole - 1))
    known = data.draw(st.integers(0, filled))
    fills = [a_fill(known)] if known else []
    start = begun(whole, whole - filled, fills)
    assert start.filled_before + sum(amount_of(fill.maker_amount) for fill in start.fills) == filled
    assert (start.filled_before, start.fills) == (filled - known, tuple(fills))
    assert begun(whole, whole, [a_fill(1)]).filled_before == 0, "never less than nothing"
    assert begun(whole, None, fills) == Begun()


@given(st.integers(1, 10_000), st.integers(0, 12_000), st.integers(0, 12_000), st.booleans(), st.data())
def test_the_first_row_stands_by_its_funds(
    amount: int, balance: int, allowance: int, is_signed: bool, data: st.DataObject
) -> None:
    filled = data.draw(st.integers(0, amount - 1))
    older = [
        replace(
            an_otc_order(number), remaining=amount32(left), maker_balance=amount32(left), created_ms=number
        )
        for number, left in enumerate(data.draw(st.lists(st.integers(1, 5_000), max_size=3)), 1)
    ]
    terms = terms_of(a_body(replace(ORDER, maker_amount=amount)))
    told = Answered(is_signed, Holding(balance, allowance), 0, amount - filled)
    row = new_row(terms, told, Begun(filled), older, CHAIN_ID, NOW_MS)
    left = amount - filled
    assert amount_of(row.remaining) == left
    assert amount_of(row.maker_balance) == min(balance, allowance, left)
    if not is_signed:
        assert (row.status, row.reserved, row.swappable) == (OtcState.DRAFT, amount32(0), amount32(0))
    else:
        assert (row.status is OtcState.PENDING) == (min(balance, allowance) >= left)
        usable = min(balance, allowance)
        before = sum(left for order in older if (left := amount_of(order.remaining)) <= usable)
        assert amount_of(row.reserved) <= max(balance - min(before, balance), 0)
        swappable = min(row.reserved, row.maker_balance) if row.status is OtcState.PENDING else amount32(0)
        assert row.swappable == swappable


@pytest.mark.parametrize(
    ("other", "reserved"),
    [
        ({"status": OtcState.DRAFT}, 2_500),
        ({"status": OtcState.SUSPENDED}, 2_000),
        ({"remaining": amount32(3_001)}, 2_500),
        ({}, 2_000),
        ({"created_ms": NOW_MS + 1}, 2_500),
        ({"created_ms": NOW_MS, "order_hash": bytes(32)}, 2_000),
        ({"created_ms": NOW_MS, "order_hash": b"\xff" * 32}, 2_500),
    ],
)
def test_older_orders_that_have_their_funds_are_served_first(other: dict[str, Any], reserved: int) -> None:
    terms = terms_of(a_body())
    left = amount32(1_000)
    columns: dict[str, Any] = {"remaining": left, "maker_balance": left, "created_ms": 1}
    older = an_otc_order(**columns | other)
    told = Answered(is_signed=True, holding=Holding(3_000, 5_000), permitted=0, left=None)
    row = new_row(terms, told, Begun(), [older], CHAIN_ID, NOW_MS)
    assert amount_of(row.reserved) == reserved
    itself = replace(older, order_hash=terms.order_hash)
    assert amount_of(new_row(terms, told, Begun(), [itself], CHAIN_ID, NOW_MS).reserved) == 2_500


def test_an_older_order_has_the_allowance_of_its_own_permit() -> None:
    terms = terms_of(a_body())
    left = amount32(1_000)
    older = an_otc_order(remaining=left, maker_balance=left, created_ms=1)
    told = Answered(is_signed=True, holding=Holding(3_000, 0), permitted=2_500, left=None)
    row = new_row(terms, told, Begun(), [older], CHAIN_ID, NOW_MS)
    assert amount_of(row.reserved) == 2_000


@pytest.mark.parametrize(("filled", "left"), [(2_499, 1), (2_500, 0), (2_501, 0)])
def test_no_less_than_nothing_is_left(filled: int, left: int) -> None:
    told = Answered(is_signed=True, holding=Holding(5_000, 5_000), permitted=0, left=None)
    row = new_row(terms_of(a_body()), told, Begun(filled), [], CHAIN_ID, NOW_MS)
    assert amount_of(row.remaining) == left


def test_every_column_of_a_first_row() -> None:
    order = replace(ORDER, expiry=NOW_S + 5)
    terms = terms_of(a_body(order))
    told = Answered(is_signed=True, holding=Holding(2_450, 5_000), permitted=0, left=None)
    row = new_row(terms, told, Begun(100, (a_fill(50, 1),)), [], CHAIN_ID, NOW_MS)
    left = amount32(2_350)
    assert row == OtcOrderRow(
        order_hash=terms.order_hash,
        shard=terms.order_hash[0],
        chain_id=CHAIN_ID,
        maker=KEY.address,
        taker=TAKER,
        taker_from_meta=(7).to_bytes(20, "big"),
        maker_asset=USDC,
        taker_asset=WETH,
        maker_amount=amount32(2_500),
        taker_amount=amount32(1_000),
        type=OtcType.P2P,
        created_ms=NOW_MS,
        expires_s=NOW_S + 5,
        version=1,
        status=OtcState.PENDING,
        updated_ms=NOW_MS,
        remaining=left,
        maker_balance=left,
        reserved=left,
        swappable=left,
        transaction_hash=b"\1" * 32,
        is_final=False,
    )


def test_row_and_document_are_the_order_again() -> None:
    order = replace(ORDER, expiry=NOW_S + 5)
    terms = terms_of(a_body(order, permit_maker_asset="0x"))
    told = Answered(is_signed=True, holding=Holding(5_000, 5_000), permitted=0, left=None)
    start = Begun(100, (a_fill(50, 1), a_fill(25, 2)))
    row, document = new_row(terms, told, start, [], CHAIN_ID, NOW_MS), new_document(terms, start)
    assert decode_document(encode_document(document)) == document
    assert order_of(row, document) == order
    assert (row.expires_s, row.transaction_hash) == (NOW_S + 5, b"\2" * 32)
    stored = stored_order(row, document)
    assert (stored.permit_maker_asset, stored.fillable_balance, stored.expiry) == ("0x", "2325", NOW_S + 5)
    assert posted(stored).order == stored
    never = new_row(terms_of(a_body()), told, Begun(), [], CHAIN_ID, NOW_MS)
    assert (never.expires_s, never.transaction_hash) == (NEVER_S, None)


# --- Fillable balances ----------------------------------------------------------------------------------


@given(
    st.lists(st.tuples(st.sampled_from(OtcState), st.integers(0, 2**200)), max_size=6), st.integers(0, 2**201)
)
def test_what_is_promised_is_not_fillable(orders: list[tuple[OtcState, int]], usable: int) -> None:
    rows = [
        an_otc_order(number, status=status, remaining=amount32(left))
        for number, (status, left) in enumerate(orders)
    ]
    token = an_otc_order().maker_asset
    taken = promised(rows)
    expected = sum(left for status, left in orders if status is OtcState.PENDING)
    assert taken.get(token, 0) == expected
    assert fillable({token: usable}, taken, token) == max(usable - expected, 0)
    assert fillable({token: usable}, taken, OTHER_ASSET) == 0
