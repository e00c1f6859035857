"""Keystore files: every key and password come back; whatever else a file holds, it is refused politely."""

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import ConfigError
from cambist.crypto.custody.keystore import decrypt_key, encrypt_key
from cambist.crypto.secp256k1 import CURVE_ORDER, SigningKey
from support.exception_chains import everything_told

PASSWORD = "correct horse"
passwords = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)
secrets = st.integers(1, CURVE_ORDER - 1).map(lambda number: number.to_bytes(32, "big"))
SECRET = b"\x5c" * 32
WRITTEN = encrypt_key(
    SigningKey(SECRET), PASSWORD, salt32=b"\1" * 32, iv16=b"\2" * 16, file_id="", scrypt_n=2
)

small = st.none() | st.booleans() | st.integers(-5, 70) | st.floats() | st.text(max_size=70)
values = small | st.integers() | st.lists(small, max_size=3) | st.dictionaries(st.text(), small, max_size=3)


def paths(node: Any, at: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    if not isinstance(node, dict):
        return [at]
    return [at, *(path for key, value in node.items() for path in paths(value, (*at, key)))]


PATHS = paths(json.loads(WRITTEN))[1:]


def read(text: bytes) -> SigningKey | ConfigError:
    try:
        return decrypt_key(text, PASSWORD)
    except ConfigError as error:
        return error


def refused_or_read(text: bytes) -> None:
    outcome = read(text)
    if isinstance(outcome, SigningKey):
        assert outcome.secret32() == SECRET
        return
    told = everything_told(outcome)
    assert SECRET.hex() not in told
    assert PASSWORD not in told
    assert outcome.detail.isprintable()


@given(secrets, passwords, st.binary(min_size=32, max_size=32), st.binary(min_size=16, max_size=16))
def test_what_is_written_is_read(secret: bytes, password: str, salt: bytes, iv: bytes) -> None:
    key = SigningKey(secret)
    text = encrypt_key(key, password, salt32=salt, iv16=iv, file_id="x", scrypt_n=2)
    again = decrypt_key(text, password)
    assert (again.secret32(), again.address) == (secret, key.address)


@given(st.sampled_from(PATHS), values)
def test_any_member_replaced_is_refused_or_does_not_matter(path: tuple[str, ...], value: object) -> None:
    document = json.loads(WRITTEN)
    holder = document
    for key in path[:-1]:
        holder = holder[key]
    if path[-1] == "iv" and isinstance(value, str) and len(value) == 32:
        return  # the MAC does not cover the iv: another one is another key
    holder[path[-1]] = value
    refused_or_read(json.dumps(document).encode(errors="replace"))


@given(st.sets(st.sampled_from(PATHS), min_size=1))
def test_any_members_left_out_are_refused_or_do_not_matter(gone: set[tuple[str, ...]]) -> None:
    document = json.loads(WRITTEN)
    for path in sorted(gone, key=len, reverse=True):
        holder = document
        for key in path[:-1]:
            holder = holder[key]
        del holder[path[-1]]
    refused_or_read(json.dumps(document).encode())


@given(st.binary(max_size=300) | st.text().map(lambda text: text.encode(errors="replace")))
def test_garbage_is_refused(text: bytes) -> None:
    outcome = read(text)
    assert isinstance(outcome, ConfigError)
    assert outcome.key == "keystore"


@given(st.integers(0, len(WRITTEN)))
def test_a_file_cut_short_is_refused_or_whole(length: int) -> None:
    refused_or_read(WRITTEN[:length])
