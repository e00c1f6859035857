"""Settings made of anything: read, or refused with a ConfigError that shows no secret."""

from pathlib import Path
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from cambist.config.errors import ConfigError
from cambist.config.settings import Settings, parse_settings

SECRET = "correct horse battery staple"
ENVIRON = {"K": SECRET}

WORDS = (
    "chains tokens partners tiers keys auth domains policy contracts amounts_max source secret password "
    "access_key route_seal_keys state_dir 1 31337 name address symbol decimals fee_bps tier default "
    "confirmations chain_id x"
)
names = st.sampled_from(WORDS.split()) | st.text(max_size=5)
scalars = st.one_of(
    st.booleans(),
    st.integers(),
    st.floats(),
    st.text(max_size=5),
    st.sampled_from(["env:K", "env:", "file:/nowhere", "0x" + "11" * 20, "hex"]),
)
trees = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4),
    max_leaves=12,
)


def toml(node: Any) -> str:
    """Any tree as a TOML value."""
    if isinstance(node, dict):
        return "{" + ", ".join(f"{quoted(key)} = {toml(value)}" for key, value in node.items()) + "}"
    if isinstance(node, list):
        return "[" + ", ".join(map(toml, node)) + "]"
    if isinstance(node, bool):
        return "true" if node else "false"
    return quoted(node) if isinstance(node, str) else str(node)


def quoted(text: str) -> str:
    return '"' + "".join(f"\\U{ord(char):08x}" for char in text) + '"'


def read_or_refused(text: str, environ: dict[str, str] = ENVIRON) -> None:
    outcome = read(text, environ)
    if isinstance(outcome, Settings):
        assert SECRET not in repr(outcome)
        return
    assert outcome.detail.isprintable()
    assert outcome.key
    assert SECRET not in str(outcome)


def read(text: str, environ: dict[str, str]) -> Settings | ConfigError:
    try:
        return parse_settings(text, environ, Path())
    except ConfigError as error:
        return error


@given(st.dictionaries(names, trees, max_size=4))
@example({"partners": {"a": {"address": "0x" + "11" * 20}, "b": 1}, "tiers": {"c": 1}})
def test_any_tree(tree: dict[str, Any]) -> None:
    read_or_refused("\n".join(f"{quoted(key)} = {toml(value)}" for key, value in tree.items()))


@given(st.text())
@example("x = " + "9" * 5_000)
@example("x = " + "[" * 5_000)
@example("a." * 2_000 + "a = 1")
def test_any_text(text: str) -> None:
    read_or_refused(text)


env_names = st.lists(names, min_size=1, max_size=4).map(lambda parts: "CAMBIST__" + "__".join(parts).upper())


@given(st.dictionaries(env_names, st.text() | scalars.map(toml) | trees.map(toml), max_size=3))
def test_any_environment(environ: dict[str, str]) -> None:
    read_or_refused("", {**environ, **ENVIRON})
