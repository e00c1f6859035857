"""Calldata, ABI words, permits and trading tokens: equal to eth-abi, refused by name."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import (
    bytes_tail,
    decode_address,
    decode_bytes,
    decode_uint,
    selector,
    uint_word,
)
from cambist.codecs.contracts.calldata import OrderInfo
from cambist.codecs.contracts.permit import RFQ_FORMS, PermitForm, parse_permit, permit_form, permit_spender
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder
from cambist.codecs.trading_token import NATIVE_TOKEN, parse_trading_token
from cambist.config.errors import InvalidInput, InvalidToken
from support.oracles import Oracle
from support.typed_data import orders

ORDER = "(uint256,uint128,address,address,address,address,uint256,uint256)"
INFO = f"({ORDER},bytes,uint256,bytes,bytes)"

address = st.binary(min_size=20, max_size=20)
digest = st.binary(min_size=32, max_size=32)
uint256 = st.integers(0, 2**256 - 1)
signature = st.binary(max_size=100)
order = orders(RFQ_ORDER)
infos = st.lists(
    st.builds(OrderInfo, order, signature, uint256, st.binary(max_size=70), st.binary(max_size=40)),
    max_size=3,
)
digests = st.lists(digest, max_size=4)

CALLS: list[tuple[str, Callable[..., bytes], list[str], list[st.SearchStrategy[Any]]]] = [
    ("fillOrder", calldata.fill_order, [ORDER, "bytes"], [order, signature]),
    ("fillOrderWithTarget", calldata.fill_order_with_target, [ORDER, "bytes", "address"],
     [order, signature, address]),
    ("partialFillOrder", calldata.partial_fill_order, [ORDER, "bytes", "uint256"],
     [order, signature, uint256]),
    ("partialFillOrderWithTarget", calldata.partial_fill_order_with_target,
     [ORDER, "bytes", "uint256", "address"], [order, signature, uint256, address]),
    ("batchFillOrderWithTarget", calldata.batch_fill_order_with_target, [f"{INFO}[]", "address"],
     [infos, address]),
    ("tryBatchFillOrderTakerAmount", calldata.try_batch_fill_taker_amount,
     [f"{INFO}[]", "uint256", "address"], [infos, uint256, address]),
    ("tryBatchFillOrderMakerAmount", calldata.try_batch_fill_maker_amount,
     [f"{INFO}[]", "uint256", "address"], [infos, uint256, address]),
    ("cancelOrder", calldata.cancel_order, ["bytes32"], [digest]),
    ("cancelOrders", calldata.cancel_orders, ["bytes32[]"], [digests]),
    ("remaining", calldata.remaining, ["address", "bytes32"], [address, digest]),
    ("getRemainingOrderBalance", calldata.remaining_balances, ["address", "bytes32[]"], [address, digests]),
    ("balanceOf", calldata.balance_of, ["address"], [address]),
    ("allowance", calldata.allowance, ["address", "address"], [address, address]),
    ("approve", calldata.approve, ["address", "uint256"], [address, uint256]),
    ("transfer", calldata.transfer, ["address", "uint256"], [address, uint256]),
    ("transferFrom", calldata.transfer_from, ["address", "address", "uint256"], [address, address, uint256]),
]  # fmt: skip


def oracle_value(value: Any, type_name: str) -> Any:
    if type_name.endswith("[]"):
        return [oracle_value(item, type_name[:-2]) for item in value]
    if isinstance(value, RfqOrder):
        return [
            oracle_value(member, "") for member in (getattr(value, name) for name in value.__struct_fields__)
        ]
    if isinstance(value, OrderInfo):
        members = (value.order, value.signature, value.taker_fill_amount)
        return [
            oracle_value(member, "")
            for member in (*members, value.permit_taker_asset, value.permit_maker_asset)
        ]
    return f"hex:{value.hex()}" if isinstance(value, bytes) else f"int:{value}"


@pytest.mark.oracle
@pytest.mark.parametrize(("name", "encode", "types", "strategies"), CALLS, ids=[call[0] for call in CALLS])
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_calls_equal_eth_abi(
    eth_account: Oracle,
    name: str,
    encode: Callable[..., bytes],
    types: list[str],
    strategies: list[st.SearchStrategy[Any]],
    data: st.DataObject,
) -> None:
    arguments = [data.draw(strategy) for strategy in strategies]
    values = [oracle_value(value, kind) for value, kind in zip(arguments, types, strict=True)]
    answer = eth_account.ask(ask="abi", types=types, values=values)
    assert encode(*arguments).hex() == selector(f"{name}({','.join(types)})").hex() + answer["encoded"]


@pytest.mark.oracle
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(infos.filter(bool), address)
def test_a_partial_fill_with_permits_equals_eth_abi(
    eth_account: Oracle, some: list[OrderInfo], target: bytes
) -> None:
    types = [ORDER, "bytes", "uint256", "address", "bytes", "bytes"]
    info = some[0]
    arguments = (info.order, info.signature, info.taker_fill_amount, target)
    permits = (info.permit_taker_asset, info.permit_maker_asset)
    values = [oracle_value(value, "") for value in (*arguments, *permits)]
    answer = eth_account.ask(ask="abi", types=types, values=values)
    encoded = calldata.partial_fill_order_with_target_permit(info, target)
    name = f"partialFillOrderWithTargetPermit({','.join(types)})"
    assert encoded.hex() == selector(name).hex() + answer["encoded"]


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (calldata.BALANCE_OF, "70a08231"),
        (calldata.ALLOWANCE, "dd62ed3e"),
        (calldata.APPROVE, "095ea7b3"),
        (calldata.TRANSFER, "a9059cbb"),
        (calldata.TRANSFER_FROM, "23b872dd"),
        (calldata.DECIMALS, "313ce567"),
        (calldata.SYMBOL, "95d89b41"),
        (calldata.NAME, "06fdde03"),
        (calldata.TOTAL_SUPPLY, "18160ddd"),
    ],
)
def test_known_selectors(value: bytes, expected: str) -> None:
    assert value.hex() == expected


@pytest.mark.parametrize(("length", "padding"), [(0, 0), (1, 31), (31, 1), (32, 0), (65, 31)])
def test_bytes_are_padded_to_whole_words(length: int, padding: int) -> None:
    raw = b"\x07" * length
    assert bytes_tail(raw).tail == uint_word(length) + raw + bytes(padding)


def test_return_data_is_read_within_its_bounds() -> None:
    text = b"USD Coin"
    data = uint_word(32) + uint_word(len(text)) + text.ljust(32, b"\0")
    assert decode_bytes(data) == text
    assert decode_uint(uint_word(5) + uint_word(7), 1) == 7
    assert decode_address(uint_word(1)) == bytes(19) + b"\1"
    for bad in (b"", data[:40], uint_word(2**255), uint_word(32) + uint_word(33) + bytes(32)):
        with pytest.raises(InvalidInput, match="return data"):
            decode_bytes(bad)
    with pytest.raises(InvalidInput, match="return data: expected 2 words, got '32 bytes'"):
        decode_uint(uint_word(5), 1)
    with pytest.raises(InvalidInput, match="an address"):
        decode_address(b"\1" * 32)


@given(st.binary(max_size=200), st.integers(0, 5))
def test_any_return_data_is_a_value_or_our_refusal(returned: bytes, at_word: int) -> None:
    for decode in (decode_uint, decode_address, decode_bytes):
        try:
            decode(returned, at_word)
        except InvalidInput as refusal:
            assert "return data" in refusal.detail  # noqa: PT017  either outcome is right


@pytest.mark.parametrize(
    ("length", "form"),
    [
        (0, PermitForm.NONE),
        (1, PermitForm.PERMIT2_EXISTING),
        (96, PermitForm.PERMIT2_TRANSFER),
        (192, PermitForm.PERMIT2_ALLOWANCE),
        (224, PermitForm.EIP2612),
        (256, PermitForm.DAI),
    ],
)
def test_permit_forms_by_length(length: int, form: PermitForm) -> None:
    assert permit_form(parse_permit("0x" + "ab" * length)) is form
    assert (form in RFQ_FORMS) is (length in (224, 256))


@pytest.mark.parametrize("length", [2, 64, 65, 95, 97, 191, 223, 225, 255, 257, 1000])
def test_a_permit_of_another_length_is_refused(length: int) -> None:
    with pytest.raises(InvalidInput, match="permit: expected 0, 1, 96, 192, 224, 256 bytes"):
        parse_permit("0x" + "00" * length)


@pytest.mark.parametrize("text", ["", "0", "ab", "0x1", "0xzz", None, 5])
def test_a_permit_that_is_no_hexadecimal(text: object) -> None:
    with pytest.raises(InvalidInput, match="permit"):
        parse_permit(text)


def test_the_spender_inside_a_permit() -> None:
    owner, spender = b"\1" * 20, b"\2" * 20
    words = owner.rjust(32, b"\0") + spender.rjust(32, b"\0")
    assert permit_spender(words.ljust(224, b"\0")) == spender
    assert permit_spender(words.ljust(256, b"\0")) == spender
    assert permit_spender(b"") is permit_spender(b"\1") is permit_spender(bytes(96)) is None


def test_the_native_placeholder_has_one_spelling() -> None:
    placeholder = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
    assert parse_trading_token(placeholder, "srcToken") == NATIVE_TOKEN
    assert parse_trading_token("0x" + "Ab" * 20, "destToken") == b"\xab" * 20


@pytest.mark.parametrize("field", ["srcToken", "destToken"])
@pytest.mark.parametrize(
    "text",
    [
        "0x" + "e" * 40,
        "0x" + "E" * 40,
        "0xEEeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE",
        "0x0",
        "0x" + "0" * 40,
        "",
        "x",
        None,
    ],
)
def test_other_spellings_are_the_row_of_the_spec(field: Any, text: object) -> None:
    with pytest.raises(InvalidToken) as refusal:
        parse_trading_token(text, field)
    assert refusal.value.detail.startswith(f"Invalid {field}: expected a token address, or exactly 0xEeee")
