"""canonical(): equal exactly for the same document up to key order, white space and string escapes."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.canonical_json import canonical
from cambist.config.errors import InvalidInput
from support.message_strategies import json_values, respelled


@given(json_values.flatmap(lambda value: st.tuples(st.just(value), respelled(value))))
def test_another_spelling_of_a_document_has_the_same_canonical_form(case: tuple[Any, str]) -> None:
    value, spelling = case
    plain = json.dumps(value).encode()
    assert canonical(spelling.encode()) == canonical(plain)
    assert json.loads(canonical(plain)) == value
    assert canonical(canonical(plain)) == canonical(plain)


@given(json_values, json_values)
def test_different_documents_have_different_canonical_forms(one: Any, other: Any) -> None:
    same_document = json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)
    assert (canonical(json.dumps(one).encode()) == canonical(json.dumps(other).encode())) is same_document


@given(
    st.from_regex(r"-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
    st.from_regex(r"-?(0|[1-9][0-9]{0,5})(\.[0-9]{1,5})?([eE][+-]?[0-9]{1,3})?", fullmatch=True),
)
def test_numbers_are_equal_only_digit_for_digit(one: str, other: str) -> None:
    assert (canonical(f"[{one}]".encode()) == canonical(f"[{other}]".encode())) is (one == other)
    assert canonical(f" [ {one} ] ".encode()) == f"[{one}]".encode()


@given(st.binary(max_size=60) | st.text('{}[]",:0123456789.eE-\\untrfalsNI ', max_size=60).map(str.encode))
def test_any_bytes_give_a_canonical_form_or_invalid_input(raw: bytes) -> None:
    try:
        form = canonical(raw)
    except InvalidInput:
        return
    assert canonical(form) == form
