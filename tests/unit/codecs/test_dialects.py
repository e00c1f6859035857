"""JSON as languages write it: whole numbers in quotes or with a fraction of zero, nulls, empty arrays."""

from typing import Annotated

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from cambist.codecs.messages.dialects import NumeralText, dialect_mender
from cambist.codecs.messages.wire import decoder, encode
from cambist.config.errors import InvalidInput


class Item(Struct, frozen=True):
    expiry: Annotated[int, Meta(ge=0, le=2**53 - 1)]
    amount: str = "1"


class Body(Struct, frozen=True):
    deadline: int | None = None
    fee: NumeralText | None = None
    side: int | UnsetType = UNSET
    items: tuple[Item, ...] = ()
    kept: Raw = Raw(b"null")


decode = decoder(Body, bytes_max=10_000, tolerant=True)


@given(st.integers(0, 2**53 - 1), st.booleans(), st.booleans())
def test_a_number_may_stand_in_quotes_and_text_without(number: int, quoted: bool, texted: bool) -> None:
    said = str(number) if quoted else number
    fee = str(number) if texted else number
    body = decode(encode({"deadline": said, "fee": fee, "side": said, "items": [{"expiry": said}]}))
    assert (body.deadline, body.side, body.items[0].expiry, body.fee) == (number, number, number, str(number))


@pytest.mark.parametrize(
    "text", ["", " 5", "5 ", "+5", "-5", "0x5", "5.0", "5e0", "1_0", "\u0665", "five", "null", "9" * 20]
)
def test_what_is_no_string_of_digits_is_no_number(text: str) -> None:
    with pytest.raises(
        InvalidInput, match=r"^Invalid input: deadline: expected an integer or null, got a string$"
    ):
        decode(encode({"deadline": text}))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (
            b'{"items":[{"expiry":"9007199254740992"}]}',
            "items[0].expiry: expected an integer <= 9007199254740991",
        ),
        (b'{"items":[{"expiry":"5","amount":5}]}', "items[0].amount: expected a string, got an integer"),
        (b'{"items":{"expiry":"5"}}', "items: expected an array"),
        (b'{"fee":5.0}', "fee: expected a string or null, got a number"),
        (b'{"fee":-5}', "fee: expected a string or null, got an integer"),
        (b'["5"]', "expected an object, got an array"),
        (b'{"deadline":"5"', "the JSON ends too early"),
        (b'{"deadline":"5","items":[}', "JSON is malformed"),
    ],
)
def test_what_else_is_wrong_is_told(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        decode(raw)
    assert said in caught.value.detail


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (b"5.0", 5),
        (b"5e0", 5),
        (b"1.5E+3", 1_500),
        (b"9007199254740991.000", 2**53 - 1),
        (b"-0.0", 0),
    ],
)
def test_a_whole_number_may_have_a_fraction_of_zero(number: bytes, said: int) -> None:
    assert decode(b'{"deadline":%b,"side":%b,"items":[{"expiry":%b}]}' % (number, number, number)) == Body(
        deadline=said, side=said, items=(Item(said),)
    )


@pytest.mark.parametrize("number", [b"5.5", b"1e-1", b"1e99", b"1e300", b"true", b'"5.0"', b"[]", b"{}"])
def test_what_is_no_whole_number_stays_one(number: bytes) -> None:
    with pytest.raises(InvalidInput, match=r"items\[0\]\.expiry: expected an integer"):
        decode(b'{"items":[{"expiry":%b}]}' % number)


def test_a_null_is_an_absent_member_or_an_empty_collection() -> None:
    assert decode(b'{"deadline":null,"fee":null,"side":null,"items":null,"kept":null}') == Body()
    with pytest.raises(InvalidInput, match=r"items\[0\]\.expiry: expected an integer, got null"):
        decode(b'{"items":[{"expiry":null}]}')


class Table(Struct, frozen=True):
    rows: dict[str, Item | None]
    empty: Body
    own: Body | UnsetType | None = UNSET


def test_collections_of_other_languages() -> None:
    read = decoder(Table, bytes_max=1_000, tolerant=True)
    assert read(b' {"rows":[],"empty":[ ]} ') == read(b'{"rows":null,"empty":null}') == Table({}, Body())
    assert read(b'{"rows":{"a":null,"b":{"expiry":"7"}},"empty":{},"own":null}') == Table(
        {"a": None, "b": Item(7)}, Body(), None
    )
    with pytest.raises(InvalidInput, match="rows: expected an object, got an array"):
        read(b'{"rows":[1],"empty":[]}')


def test_other_members_come_through_byte_for_byte() -> None:
    body = decode(b' {"deadline" : "007", "kept": { "a" : 1.0 ,"deadline":"5"}, "more": ["5"]} ')
    assert (body.deadline, bytes(body.kept)) == (7, b'{ "a" : 1.0 ,"deadline":"5"}')


def test_a_decoder_that_is_not_tolerant_mends_nothing() -> None:
    with pytest.raises(InvalidInput, match="deadline: expected an integer or null, got a string"):
        decoder(Body, bytes_max=10_000)(b'{"deadline":"5"}')
    with pytest.raises(TypeError, match="has nothing to mend"):
        dialect_mender(str)
