"""Every message survives encoding and decoding; no bytes make a decoder raise anything but InvalidInput."""

from decimal import Decimal
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cambist.codecs.canonical_json import canonical
from cambist.codecs.messages import (
    delta_messages,
    maker_messages,
    market_messages,
    otc_messages,
    resource_messages,
)
from cambist.codecs.messages.query import query_decoder
from cambist.codecs.messages.wire import decoder, encode
from cambist.config.errors import InvalidInput
from support.examples import examples
from support.message_strategies import messages

MODULES = (delta_messages, maker_messages, market_messages, otc_messages, resource_messages)


def _is_message(value: Any, module: Any) -> bool:
    return (
        isinstance(value, type) and issubclass(value, msgspec.Struct) and value.__module__ == module.__name__
    )


MESSAGES = [
    value
    for module in MODULES
    for value in vars(module).values()
    if _is_message(value, module) and value is not maker_messages.Decoded
]
QUERIES = [kind for kind in MESSAGES if kind.__name__.endswith("Query")]
MESSAGES = [kind for kind in MESSAGES if kind not in QUERIES]
MESSAGES += [dict[str, delta_messages.StrategyToken], tuple[resource_messages.ChainEntry, ...]]
DECODERS = {
    f"{module.__name__.rpartition('.')[2]}.{name}": value
    for module in MODULES
    for name, value in vars(module).items()
    if name.startswith("decode_")
}
DAMAGE = [b"", b'"', b"[", b"{", b"null", b"1.5", b"-1", b"\\ud800", b"\xff", b"NaN", b"9" * 5000]
QUERY_WORDS = st.text(
    st.characters(exclude_categories=["Cs"], exclude_characters=","), min_size=1, max_size=12
)
QUERY_NAMES = ["chainId", "srcToken", "destToken", "amount", "side", "mode", "version", "maxImpact", "status"]

quick = settings(
    max_examples=examples(10),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
    deadline=None,
)


@pytest.mark.parametrize("kind", MESSAGES, ids=lambda kind: getattr(kind, "__name__", str(kind)))
@quick
@given(data=st.data())
def test_a_decoded_message_is_the_one_that_was_encoded_and_a_damaged_one_is_a_value_or_invalid_input(
    kind: Any, data: st.DataObject
) -> None:
    message = data.draw(messages(kind))
    raw = encode(message)
    decode = decoder(kind, bytes_max=1 << 20)
    assert decode(raw) == message
    canonical(raw)  # strict JSON: no NaN, no duplicate key, no lone surrogate
    damaged = bytearray(raw)
    for _ in range(data.draw(st.integers(1, 3))):
        place = data.draw(st.integers(0, len(damaged)))
        damaged[place : place + data.draw(st.integers(0, 3))] = data.draw(st.sampled_from(DAMAGE))
    assert _complaint(decode, bytes(damaged)).isprintable()


def _complaint(decode: Any, raw: bytes) -> str:
    try:
        decode(raw)
    except InvalidInput as fault:
        return fault.detail
    return ""


def _as_query(message: Any) -> bytes:
    """The query string a client would write for `message`; absent and empty members are left out."""
    given = {}
    for field in msgspec.structs.fields(message):
        value = getattr(message, field.name)
        items = value if isinstance(value, tuple) else [value]
        if value is not None and items:
            given[field.encode_name] = ",".join(_as_text(item) for item in items)
    return urlencode(given).encode()


def _as_text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return format(value, "f") if isinstance(value, Decimal) else str(value)


@pytest.mark.parametrize("kind", QUERIES, ids=lambda kind: kind.__name__)
@quick
@given(data=st.data())
def test_a_decoded_query_is_the_one_that_was_written(kind: Any, data: st.DataObject) -> None:
    message = data.draw(messages(kind, QUERY_WORDS))
    emptied = {name: None for name, value in msgspec.structs.asdict(message).items() if value == ()}
    assert query_decoder(kind)(_as_query(message)) == msgspec.structs.replace(message, **emptied)


@pytest.mark.parametrize("decode", DECODERS.values(), ids=DECODERS)
@quick
@given(
    raw=st.binary(max_size=80)
    | st.text('{}[]",:0123456789.eE-\\untrfals ', max_size=80).map(str.encode)
    | st.lists(st.tuples(st.sampled_from(QUERY_NAMES), st.binary(max_size=8)), max_size=6).map(
        lambda pairs: b"&".join(name.encode() + b"=" + value for name, value in pairs)
    )
)
def test_any_bytes_give_a_value_or_invalid_input(decode: Any, raw: bytes) -> None:
    assert _complaint(decode, raw).isprintable()
