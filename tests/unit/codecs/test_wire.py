"""The shared JSON coders: refusals, their texts, and their speed."""

import sys
import threading
import time
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from cambist.codecs.messages.vocabulary import ChainId, Side
from cambist.codecs.messages.wire import check_number, decoder, encode
from cambist.config.errors import InvalidInput
from cambist.config.limits import JSON_INT_MAX, JSON_VALUES_MAX

MEGABYTE = 1 << 20


class Item(msgspec.Struct, frozen=True, rename="camel"):
    share_percent: Decimal
    tags: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_number("sharePercent", self.share_percent)


class Order(msgspec.Struct, frozen=True, rename="camel"):
    deadline: int
    note: str | None = None
    chain_id: ChainId = 1
    side: Side = Side.SELL
    items: tuple[Item, ...] = ()
    by_name: dict[str, Item] = {}
    route: msgspec.Raw = msgspec.Raw(b"null")
    anything: Any = None


DEEP = 1_500_000 if sys.version_info >= (3, 14) else 100_000
"""Levels of nesting that no interpreter takes: a thousand were the limit before 3.14, now the C stack is."""

decode_order = decoder(Order, bytes_max=16 * MEGABYTE)


def refusal(raw: bytes) -> InvalidInput:
    with pytest.raises(InvalidInput) as caught:
        decode_order(raw)
    return caught.value


@pytest.mark.parametrize(
    ("raw", "field", "said"),
    [
        (b"{}", "deadline", "deadline: missing"),
        (b'{"deadline":"1"}', "deadline", "deadline: expected an integer, got a string"),
        (b'{"deadline":true}', "deadline", "deadline: expected an integer, got a boolean"),
        (b'{"deadline":null}', "deadline", "deadline: expected an integer, got null"),
        (b'{"deadline":1.0}', "deadline", "got a number with a fraction or exponent"),
        (b'{"deadline":1e3}', "deadline", "got a number with a fraction or exponent"),
        (b'{"deadline":1,"note":2}', "note", "note: expected a string or null, got an integer"),
        (b'{"deadline":1,"chainId":0}', "chainId", "chainId: expected an integer >= 1"),
        (b'{"deadline":1,"side":"HOLD"}', "side", "side: expected one of SELL, BUY, got 'HOLD'"),
        (b'{"deadline":1,"items":{}}', "items", "items: expected an array, got an object"),
        (b'{"deadline":1,"items":[{}]}', "items[0].sharePercent", "items[0].sharePercent: missing"),
        (
            b'{"deadline":1,"items":[{"sharePercent":1,"tags":["a",2]}]}',
            "items[0].tags[1]",
            "items[0].tags[1]: expected a string, got an integer",
        ),
        (
            b'{"deadline":1,"items":[{"sharePercent":1},{"sharePercent":"NaN"}]}',
            "items[1].sharePercent",
            "got NaN",
        ),
        (b'{"deadline":1,"byName":{"a":{"sharePercent":true}}}', "byName[...].sharePercent", "got a boolean"),
        (b"[]", None, "expected an object, got an array"),
        (b"null", None, "expected an object, got null"),
    ],
)
def test_a_refusal_names_the_field_what_was_expected_and_what_came(
    raw: bytes, field: str | None, said: str
) -> None:
    fault = refusal(raw)
    assert fault.field == field
    assert said in fault.detail
    assert fault.detail.startswith("Invalid input: ")


def test_expected_and_got_stand_apart_for_programs() -> None:
    fault = refusal(b'{"deadline":"tomorrow"}')
    assert (fault.expected, fault.got) == ("an integer", "a string")


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"  ",
        b"{",
        b'{"deadline":1',
        b'{"deadline":1} x',
        b'{"deadline":1}{"deadline":1}',
        b'\xef\xbb\xbf{"deadline":1}',
        '{"deadline":1}'.encode("utf-16"),
        b'{"deadline":NaN}',
        b'{"deadline":1,"anything":Infinity}',
        b'{"deadline":01}',
        b'{"deadline":1.}',
        b'{"deadline":+1}',
        b"{'deadline':1}",
        b'{"deadline":1,}',
        b'{"deadline":1,"note":"\n"}',
        b'{"deadline":1,"note":"\\x"}',
    ],
)
def test_what_is_not_json_is_refused(raw: bytes) -> None:
    assert refusal(raw).status == 400


@pytest.mark.parametrize("raw", [b"", b" ", b"\r\n\t"])
def test_an_empty_body_is_said_to_be_empty(raw: bytes) -> None:
    assert str(refusal(raw)) == "Invalid input: the body is empty"


UNIQUE = decoder(Order, bytes_max=10_000, unique_keys=True)
TWICE = {
    "a field": b'{"deadline":1,"deadline":1}',
    "a skipped member": b'{"deadline":1,"more":1,"x":2,"more":1}',
    "white space around": b'{"deadline":1 , "note" : "a" , "note" : "b"}',
    "inside an array": b'{"deadline":1,"anything":[[{"a":1},{"b":1,"b":{}}]]}',
    "inside what is kept as it came": b'{"deadline":1,"route":{"a":{"a":1,"b":{"c":1,"c":1}}}}',
    "written differently": b'{"deadline":1,"note":"x","n\\u006fte":"y"}',
    "hidden behind an escaped colon": b'{"deadline":1,"note":"\\u003a","deadline":2}',
    "hidden behind a colon in a string": b'{"deadline":1,"note":":","deadline":2}',
    "keys that are colons": b'{"deadline":1,":":2,":":3}',
    "empty keys": b'{"deadline":1,"":2,"":3}',
    "beside giant numbers": b'{"deadline":1,"x":1e99999,"y":%b,"x":1}' % (b"9" * 5_000),
}


@pytest.mark.parametrize("raw", TWICE.values(), ids=TWICE)
def test_a_key_given_twice_is_refused_where_keys_are_unique(raw: bytes) -> None:
    decode_order(raw)
    with pytest.raises(InvalidInput) as caught:
        UNIQUE(raw)
    assert "given twice in one object" in str(caught.value)


def test_the_key_given_twice_is_named() -> None:
    with pytest.raises(InvalidInput, match="Invalid input: deadline: given twice in one object"):
        UNIQUE(b'{"deadline":1,"deadline":2}')


def test_the_keys_of_a_long_body_are_compared_too() -> None:
    unique = decoder(Order, bytes_max=MEGABYTE, unique_keys=True)
    padding = b"z" * (MEGABYTE // 2)
    assert unique(b'{"deadline":1,"x":"\\u003A","more":"%b"}' % padding).deadline == 1
    with pytest.raises(InvalidInput, match="x: given twice in one object"):
        unique(b'{"deadline":1,"x":1,"x":1,"more":"%b"}' % padding)


@pytest.mark.parametrize("value", [b"{}", b'{"a":1}', b"[]", b"1"])
def test_a_body_has_as_many_values_as_its_keys_are_compared_in_time(value: bytes) -> None:
    unique = decoder(Order, bytes_max=MEGABYTE, unique_keys=True)
    frame, marks = b'{"deadline":1,"more":[%b]}', 1 + value.count(b"{") + value.count(b"[")
    most = (JSON_VALUES_MAX - frame.count(b"{") - frame.count(b"[")) // marks
    assert unique(frame % b",".join([value] * most)).deadline == 1
    with pytest.raises(InvalidInput, match=f"expected at most {JSON_VALUES_MAX} commas and opening brackets"):
        unique(frame % b",".join([value] * (most + 2)))


@pytest.mark.parametrize(
    "raw",
    [
        b'{"deadline":1,"route":{"deadline":1,"note":[{"a":1},{"a":1}]},"note":"a:b:c"}',
        b'{"deadline":1,"note":"\\"deadline\\":1","anything":"http://a:1/b?c=\\u003a"}',
        b'{"deadline":1,"anything":{"a":1e999,"b":1E-999,"c":-0.0,"d":null,"e":"\\ud83d\\ude00:"}}',
    ],
)
def test_a_key_may_stand_once_in_each_of_several_objects(raw: bytes) -> None:
    assert UNIQUE(raw) == decode_order(raw)


@pytest.mark.parametrize("key", ["note", "route", "anything", "unknown"])
@pytest.mark.parametrize(
    "text", [b'"\\ud800"', b'"\\udc00"', b'"\\ud800\\u0041"', b'"\xed\xa0\x80"', b'"\xff"', b'"\xc0\x80"']
)
def test_half_characters_are_refused_wherever_they_stand(key: str, text: bytes) -> None:
    refusal(b'{"deadline":1,"%s":%s}' % (key.encode(), text))


def test_whole_characters_survive() -> None:
    order = decode_order('{"deadline":1,"note":"\\ud83d\\ude00 € \\u0000"}'.encode())
    assert order.note == "\U0001f600 € \x00"
    assert decode_order(encode(order)) == order


@pytest.mark.parametrize("key", ["deadline", "anything"])
def test_an_integer_of_5000_digits_is_refused(key: str) -> None:
    refusal(b'{"deadline":1,"%s":%s}' % (key.encode(), b"9" * 5000))


def test_integers_end_where_json_readers_stop_being_exact() -> None:
    assert decode_order(b'{"deadline":1,"chainId":%d}' % JSON_INT_MAX).chain_id == JSON_INT_MAX
    assert refusal(b'{"deadline":1,"chainId":%d}' % (JSON_INT_MAX + 1)).field == "chainId"


def test_of_a_key_given_twice_the_last_one_counts() -> None:
    assert decode_order(b'{"deadline":1,"deadline":2}').deadline == 2


def test_unknown_keys_are_ignored() -> None:
    assert decode_order(b'{"deadline":1,"special":{"a":[1,2]}}') == Order(1)


def test_no_number_becomes_a_float() -> None:
    order = decode_order(b'{"deadline":1,"anything":[0.1,1e400,7],"items":[{"sharePercent":33.30}]}')
    assert order.anything == [Decimal("0.1"), Decimal("1E+400"), 7]
    assert str(order.items[0].share_percent) == "33.30"


@pytest.mark.parametrize("number", ["0", "100", "33.30", "-0.01", "0.000001", "1E-18", "1E+3"])
def test_a_decimal_is_written_as_a_json_number_with_its_digits(number: str) -> None:
    assert encode(Item(Decimal(number))) == f'{{"sharePercent":{number},"tags":[]}}'.encode()


@pytest.mark.parametrize("number", ["NaN", "Infinity", "-Infinity", "sNaN", "1E+36", "1E-37", "0E+99"])
def test_a_number_without_a_sane_length_is_never_held(number: str) -> None:
    with pytest.raises(ValueError, match="sharePercent"):
        Item(Decimal(number))


def test_a_body_above_its_size_is_refused() -> None:
    decode = decoder(Order, bytes_max=20)
    assert decode(b'{"deadline":1}').deadline == 1
    with pytest.raises(InvalidInput, match="at most 20 bytes, got 21 bytes"):
        decode(b'{"deadline":1}       ')


@pytest.mark.parametrize("key", ["route", "anything", "unknown"])
@pytest.mark.parametrize(("opening", "closing"), [(b"[", b"]"), (b'{"a":', b"}"), (b'[{"]}":', b"}]")])
def test_nesting_is_refused_before_it_exhausts_the_stack(key: str, opening: bytes, closing: bytes) -> None:
    shallow, deep = (opening * levels + b"1" + closing * levels for levels in (60, DEEP))
    decode_order(b'{"deadline":1,"%s":%s}' % (key.encode(), shallow))
    assert "nested too deep" in refusal(b'{"deadline":1,"%s":%s}' % (key.encode(), deep)).detail


@pytest.mark.parametrize(
    "raw",
    [
        b"[" * DEEP,
        b"[" * DEEP + b"]" * DEEP,
        b'{"a":' * DEEP,
        b'{"deadline":1,"unknown":' + b"[" * DEEP + b"]" * DEEP + b"}",
        b'{"deadline":' + b"9" * MEGABYTE + b"}",
        b'{"deadline":"' + b"a" * (10 * MEGABYTE) + b'"}',
        b'"' + b'\\"' * MEGABYTE,
        b'"[' * (MEGABYTE // 2),
        b"\\" * MEGABYTE,
        b"\xff" * MEGABYTE,
        b"x" * (17 * MEGABYTE),
    ],
    ids=[
        "open",
        "arrays",
        "objects",
        "skipped",
        "digits",
        "string",
        "quotes",
        "pairs",
        "slash",
        "utf8",
        "size",
    ],
)
def test_hostile_bodies_are_refused_quickly(raw: bytes) -> None:
    started = time.thread_time()
    refusal(raw)
    assert time.thread_time() - started < 2.0  # most take milliseconds, the worst 0.2 s


def test_error_texts_stay_short() -> None:
    for raw in (b'{"deadline":1,"side":"%s"}' % (b"x" * 10_000), b'{"deadline":1,"side":"\\n\\u2028"}'):
        assert len(refusal(raw).detail) < 200
        assert refusal(raw).detail.isprintable()


def test_coders_may_be_shared_by_threads() -> None:
    raws = [encode(Order(number, note="n" * number)) for number in range(8)]
    wrong = []

    def work(number: int) -> None:
        for _ in range(500):
            wrong.extend([number] if encode(decode_order(raws[number])) != raws[number] else [])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_an_enum_inside_collections_names_its_words() -> None:
    with pytest.raises(InvalidInput) as caught:
        decoder(dict[str, tuple[Side | None, ...]], bytes_max=100)(b'{"x":["SELL",null,"HOLD"]}')
    assert "[...][2]: expected one of SELL, BUY, got 'HOLD'" in caught.value.detail
