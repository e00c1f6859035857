"""Hypothesis strategies for wire messages, made from what msgspec knows of their types."""

import json
from decimal import Decimal
from functools import cache
from typing import Any

import msgspec
from hypothesis import strategies as st
from msgspec import inspect

from cambist.codecs.messages.wire import encode
from cambist.config.errors import InvalidInput

INT_MAX = 2**53 - 1

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
numbers = st.decimals(0, 10**9, places=6).map(str).map(Decimal)
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-INT_MAX, INT_MAX) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=6,
)
raw_objects = st.dictionaries(texts, json_values, max_size=3).map(encode).map(msgspec.Raw)


@cache
def messages(kind: Any, words: st.SearchStrategy[str] = texts) -> st.SearchStrategy[Any]:
    """Every value of a message type, absent and null members included, with `words` for its strings."""
    return _of(inspect.type_info(kind), words)


def _of(node: Any, words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    match node:
        case inspect.StructType():
            return _struct(node, words)
        case inspect.Metadata():
            return _of(node.type, words)
        case inspect.UnionType():
            return st.one_of([_of(option, words) for option in node.types])
        case inspect.VarTupleType():
            some = st.lists(_of(node.item_type, words), min_size=1, max_size=3).map(tuple)
            return some if node.min_length else some | st.just(())
        case inspect.TupleType():
            return st.tuples(*[_of(item, words) for item in node.item_types])
        case inspect.DictType():
            return st.dictionaries(_of(node.key_type, words), _of(node.value_type, words), max_size=3)
        case inspect.IntType():
            return st.integers(_bound(node.ge, -INT_MAX), _bound(node.le, INT_MAX))
        case inspect.EnumType():
            return st.sampled_from(list(node.cls))
        case inspect.StrType():
            return words
    return _PLAIN[type(node)]


_PLAIN: dict[type, st.SearchStrategy[Any]] = {
    inspect.DecimalType: numbers,
    inspect.FloatType: st.floats(0, 1e9),
    inspect.RawType: raw_objects,
    inspect.AnyType: json_values,
    inspect.BoolType: st.booleans(),
    inspect.NoneType: st.none(),
}


def _bound(bound: Any, default: int) -> int:
    return default if bound is None else int(bound)


def _struct(node: inspect.StructType, words: st.SearchStrategy[str]) -> st.SearchStrategy[Any]:
    def build(values: dict[str, Any]) -> Any:
        try:
            return node.cls(**values)
        except (ValueError, InvalidInput):  # a rule across fields, such as exactly one of two
            return None

    members = {field.name: _of(field.type, words) for field in node.fields}
    required = {field.name: members.pop(field.name) for field in node.fields if field.required}
    built = st.fixed_dictionaries(required, optional=members).map(build)
    return built.filter(lambda value: value is not None)


@st.composite
def respelled(draw: st.DrawFn, value: Any) -> str:
    """The JSON document `value`, with keys in another order, other white space and other string escapes."""
    space = st.sampled_from(["", " ", "\n", "\t\r "])

    def spell(node: Any) -> str:
        if isinstance(node, dict):
            keys = draw(st.permutations(list(node)))
            return (
                "{"
                + ",".join(f"{pad()}{string(key)}{pad()}:{spell(node[key])}" for key in keys)
                + pad()
                + "}"
            )
        if isinstance(node, list):
            return "[" + ",".join(spell(item) for item in node) + pad() + "]"
        return pad() + (string(node) if isinstance(node, str) else json.dumps(node)) + pad()

    def string(text: str) -> str:
        return json.dumps(text, ensure_ascii=draw(st.booleans()))

    def pad() -> str:
        return draw(space)

    return spell(value)
