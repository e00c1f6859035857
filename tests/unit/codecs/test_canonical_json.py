"""The canonical form under a seal: differences that it keeps, and differences that it removes."""

import contextlib
import time

import pytest

from cambist.codecs.canonical_json import canonical
from cambist.config.errors import InvalidInput
from cambist.config.limits import ROUTE_BYTES_MAX


def test_keys_are_sorted_at_every_level_and_white_space_goes() -> None:
    raw = b' { "b" : [ { "d" : null , "c" : true } ] ,\n "a" : "x" } '
    assert canonical(raw) == b'{"a":"x","b":[{"c":true,"d":null}]}'


def test_strings_have_one_spelling() -> None:
    assert canonical(b'["\\u0041\\/\\u20ac\\ud83d\\ude00"]') == canonical('["A/€😀"]'.encode())
    assert canonical(b'["\\n\\u000a\\"\\\\"]') == b'["\\n\\n\\"\\\\"]'


@pytest.mark.parametrize("number", ["0", "-0", "1", "1.0", "1.00", "1e2", "1E2", "1e+2", "100", "0.10"])
def test_numbers_keep_their_text(number: str) -> None:
    assert canonical(f'{{"n": {number} }}'.encode()) == f'{{"n":{number}}}'.encode()


def test_a_number_longer_than_any_machine_word_keeps_its_digits() -> None:
    digits = b"123456789" * 1000
    assert canonical(digits) == digits


@pytest.mark.parametrize(
    ("sealed", "changed"),
    [
        (b'{"srcAmount":"100"}', b'{"srcAmount":100}'),
        (b'{"srcAmount":"100"}', b'{"srcAmount":"100.0"}'),
        (b'{"percent":100}', b'{"percent":100.0}'),
        (b'{"percent":100}', b'{"percent":1e2}'),
        (b"[1,2]", b"[2,1]"),
        (b'{"bridge":null}', b"{}"),
        (b"{}", b"[]"),
        (b'"a"', b'"A"'),
        (b'"\xc3\xa9"', b'"e\xcc\x81"'),
    ],
)
def test_a_changed_type_digit_or_order_of_items_shows(sealed: bytes, changed: bytes) -> None:
    assert canonical(sealed) != canonical(changed)


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        (b'{"a":1,"a":1}', "twice"),
        (b'{"x":[{"a":1,"\\u0061":2}]}', "twice"),
        (b"NaN", "NaN"),
        (b"[-Infinity]", "-Infinity"),
        (b'"\\ud800"', "surrogate"),
        (b'{"\\udfff":1}', "surrogate"),
        (b'"\xff"', "UTF-8"),
        (b"\xef\xbb\xbf{}", "malformed"),
        (b"", "malformed"),
        (b"{} {}", "malformed"),
        (b"01", "malformed"),
        (b"{'a':1}", "malformed"),
        (b'"a\nb"', "malformed"),
        (b"[" * 100_000 + b"]" * 100_000, "nested too deep"),
        (b'"' + b"a" * ROUTE_BYTES_MAX + b'"', "longer"),
    ],
)
def test_what_has_no_canonical_form_is_refused(raw: bytes, said: str) -> None:
    with pytest.raises(InvalidInput, match=said):
        canonical(raw)


@pytest.mark.parametrize("raw", [b"[" * 200_000, b'{"a":' * 50_000, b"9" * 250_000, b'"' + b'\\"' * 130_000])
def test_hostile_documents_do_not_hold_it_up(raw: bytes) -> None:
    started = time.thread_time()
    with contextlib.suppress(InvalidInput):
        canonical(raw)
    assert time.thread_time() - started < 2.0
