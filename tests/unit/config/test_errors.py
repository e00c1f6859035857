"""The error tree: texts of errors; outside input cannot make an error say more."""

from collections.abc import Callable
from enum import Enum

import pytest

from cambist.config import errors
from cambist.config.error_text import NOTHING, shown
from cambist.config.errors import (
    AuthError,
    CambistError,
    ConfigError,
    InvalidInput,
    InvalidToken,
    NoRoute,
    RequestError,
    TwapTotalTooSmall,
    catalogue_rows,
)

DETAIL_CHARS_MAX = 1_000
SHOWN_CHARS_MAX = 120


class Side(Enum):
    SELL = "SELL"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("abc", "'abc'", id="text"),
        pytest.param("a\nb\tc", r"'a\nb\tc'", id="control characters"),
        pytest.param("é€😀", r"'\xe9\u20ac\U0001f600'", id="not ASCII"),
        pytest.param("\ud800", r"'\ud800'", id="lone surrogate"),
        pytest.param("\u202egnp.exe", r"'\u202egnp.exe'", id="right-to-left override"),
        pytest.param(b"\x00\xff", r"'\x00\xff'", id="bytes"),
        pytest.param(None, "null", id="null"),
        pytest.param(True, "true", id="boolean"),
        pytest.param(-7, "-7", id="number"),
        pytest.param(2**256 - 1, f"{2**256 - 1}", id="largest amount, in full"),
        pytest.param(2**512, "an integer of 513 bits", id="too large a number"),
        pytest.param(-(10**6000), f"an integer of {(10**6000).bit_length()} bits", id="huge negative"),
        pytest.param([1, "secret"], "an array of 2", id="list, without its items"),
        pytest.param({"a": 1}, "an object of 1", id="object, without its members"),
        pytest.param((), "an array of 0", id="empty tuple"),
        pytest.param(Side.SELL, "'SELL'", id="enum"),
        pytest.param("x" * 80, repr("x" * 80)[:80] + "...", id="longest shown"),
        pytest.param("x" * 81, repr("x" * 40) + "... (81 long)", id="cut, with its length"),
        pytest.param(b"y" * 5_000_000, repr("y" * 40) + "... (5000000 long)", id="megabytes"),
    ],
)
def test_shown(value: object, text: str) -> None:
    assert shown(value) == text


@pytest.mark.parametrize(
    "value",
    ["\U0010ffff" * 80, "\U0010ffff" * 81, b"\xff" * 80, b"\xff" * 81, "\n" * 4_000, list(range(10**5))],
    ids=["80 wide", "81 wide", "80 bytes", "81 bytes", "line breaks", "long list"],
)
def test_shown_is_short_and_printable_whatever_came(value: object) -> None:
    text = shown(value)
    assert len(text) <= SHOWN_CHARS_MAX
    assert text.isascii()
    assert text.isprintable()


@pytest.mark.parametrize(
    ("error", "text"),
    [
        pytest.param(InvalidInput(), "Invalid input", id="message alone"),
        pytest.param(InvalidInput("why"), "Invalid input: why", id="detail"),
        pytest.param(InvalidInput(field="amount"), "Invalid input: amount", id="field"),
        pytest.param(
            InvalidInput("why", field="amount", expected="a number", got="x"),
            "Invalid input: amount: expected a number, got 'x': why",
            id="all",
        ),
        pytest.param(InvalidInput(got=None), "Invalid input: got null", id="null came"),
        pytest.param(InvalidInput(expected="a number"), "Invalid input: expected a number", id="none came"),
        pytest.param(
            InvalidToken(got="0x0", message="Invalid destToken"),
            "Invalid destToken: got '0x0'",
            id="second message",
        ),
        pytest.param(AuthError("X-AUTH-DOMAIN", "unknown"), "X-AUTH-DOMAIN: unknown", id="auth"),
        pytest.param(ConfigError("chains.1.name", "is odd"), "chains.1.name: is odd", id="config"),
    ],
)
def test_text(error: CambistError, text: str) -> None:
    assert str(error) == error.detail == text


def test_attributes_say_what_the_text_says() -> None:
    error = TwapTotalTooSmall(
        "why", field="f", expected="e", got=3, message="maxSrcAmount must be >= numSlices"
    )
    assert (error.field, error.expected, error.got) == ("f", "e", 3)
    assert error.message == "maxSrcAmount must be >= numSlices"
    assert InvalidInput().got is NOTHING
    assert repr(NOTHING) == "NOTHING"
    assert AuthError("H", "r").header == "H"
    assert ConfigError("k", "d").key == "k"


def test_message_of_another_row_is_refused() -> None:
    with pytest.raises(ValueError, match=r"is not a message of NoRoute"):
        NoRoute(message="Order expired")


@pytest.mark.parametrize(
    "hostile",
    ["a\r\nSet-Cookie: x", "\x1b[31m", "\u202e", "\ud800", "\u2028", "\0", "x" * 10_000, "\n" * 10_000],
    ids=["header", "terminal", "right to left", "surrogate", "line separator", "zero", "long", "lines"],
)
@pytest.mark.parametrize(
    "make",
    [
        pytest.param(lambda text: InvalidInput(field=f"types.{text}", got="x"), id="field"),
        pytest.param(InvalidInput, id="detail"),
        pytest.param(lambda text: InvalidInput(got=text), id="got"),
        pytest.param(lambda text: InvalidInput(expected=text), id="expected"),
        pytest.param(lambda text: AuthError("X-AUTH-DOMAIN", text), id="auth reason"),
        pytest.param(lambda text: ConfigError(text, "is not a setting"), id="config key"),
        pytest.param(errors.MakerError, id="maker"),
        pytest.param(errors.ChainError, id="chain"),
    ],
)
def test_text_is_one_bounded_line_whatever_came(make: Callable[[str], CambistError], hostile: str) -> None:
    error = make(hostile)
    assert str(error) == error.detail
    assert error.detail.isprintable()
    assert len(error.detail) <= DETAIL_CHARS_MAX + 3
    error.detail.encode()
    if isinstance(error, RequestError):
        assert error.detail.startswith(error.message)


def test_words_of_other_scripts_stay_readable() -> None:
    assert InvalidInput("Zürich 東京").detail == "Invalid input: Zürich 東京"


@pytest.mark.parametrize("row", catalogue_rows(), ids=lambda row: row.__name__)
def test_every_row_is_complete(row: type[RequestError] | type[AuthError]) -> None:
    assert row.messages
    assert all(message == message.strip() and message.isprintable() for message in row.messages)
    assert 400 <= row.status < 600
    assert row.error_type.isidentifier()
    assert row.endpoint
    assert row.cause
    assert row.fix
    assert "|" not in row.cause + row.fix, "they stand in a table"
    if issubclass(row, RequestError):
        assert row().detail == row.messages[0]
        assert row.retry_after_s is None or row.retry_after_s > 0


def test_rows_are_listed_once_and_in_the_files_order() -> None:
    rows = catalogue_rows()
    in_file = [
        value
        for value in vars(errors).values()
        if isinstance(value, type) and issubclass(value, RequestError) and value is not RequestError
    ]
    assert rows == [*in_file, AuthError]


def test_a_message_belongs_to_one_tag() -> None:
    tags: dict[str, set[str]] = {}
    for row in catalogue_rows():
        for message in row.messages:
            tags.setdefault(message, set()).add(row.error_type)
    assert {message: owners for message, owners in tags.items() if len(owners) > 1} == {}


def test_tree_is_the_one_drawn_at_the_top() -> None:
    assert {child.__name__ for child in CambistError.__subclasses__()} == {
        "RequestError", "AuthError", "MakerError", "ChainError", "StoreError", "PolicyError",
        "TransitionError", "ConfigError", "VenueError", "WebSocketClosed", "BridgeError", "OfferDeclined",
        "TradeFailed",
    }  # fmt: skip
    drawn = errors.__doc__ or ""
    assert all(child.__name__ in drawn for child in CambistError.__subclasses__())


def test_authentication_fails_with_401() -> None:
    assert AuthError("X-AUTH-SIGNATURE", "no").status == 401
