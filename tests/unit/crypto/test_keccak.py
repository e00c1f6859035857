"""Keccak-256: known answers, the fast form against the public one, threads, the fallback."""

import threading
from collections.abc import Callable
from typing import Any

import pytest
from Crypto.Hash import keccak as pycryptodome

from cambist.crypto import keccak
from cambist.crypto.keccak import KECCAK_EMPTY, keccak256, keccak256_public

Maker = Callable[[], Callable[[bytes], bytes] | None]
LIBRARY: Any = pycryptodome._raw_keccak_lib


class RefusesOnce:
    """pycryptodome's library, one call of which returns an error and writes nothing.

    Args:
        function: name of the function that refuses.
        answered: number of calls of that function that are answered before.
    """

    def __init__(self, function: str, answered: int) -> None:
        self._function, self._answered = function, answered

    def __getattr__(self, name: str) -> Any:
        return self._counted if name == self._function else getattr(LIBRARY, name)

    def _counted(self, *arguments: Any) -> Any:
        self._answered -= 1
        return 1 if self._answered == -1 else getattr(LIBRARY, self._function)(*arguments)


def test_fast_form_is_in_use() -> None:
    assert keccak256 is not keccak256_public


@pytest.mark.parametrize(
    ("data", "digest"),
    [
        (b"", "c5d2460186f7233c927e7db2dcc703c0e500b653ca82273b7bfad8045d85a470"),
        (b"abc", "4e03657aea45a94fc7d47ba826c8d667c0d1e6e33a64a036ec44f58fa12d6c45"),
        (b"hello", "1c8aff950685c2ed4bc3174f3472287b56d9517b9c948127319a09a7a36deac8"),
    ],
)
def test_known_answers(data: bytes, digest: str) -> None:
    assert keccak256(data).hex() == digest
    assert keccak256_public(data).hex() == digest


FORMS = pytest.mark.parametrize("make", [keccak.one_shot, keccak.reused_state])


@FORMS
def test_every_length_around_the_block_size_agrees_with_the_public_form(make: Maker) -> None:
    form = make()
    assert form
    assert keccak.proven(form) is form
    for length in range(600):
        data = bytes([length % 251]) * length
        assert form(data) == keccak256_public(data)


def test_the_empty_digest() -> None:
    assert keccak256(b"") == KECCAK_EMPTY


@FORMS
def test_threads_do_not_disturb_one_another(make: Maker) -> None:
    form = make()
    assert form
    data = [bytes([number]) * 10_000 for number in range(8)]
    expected = [keccak256_public(item) for item in data]
    wrong: list[int] = []

    def work(number: int) -> None:
        wrong.extend(number for _ in range(300) if form(data[number]) != expected[number])

    threads = [threading.Thread(target=work, args=(number,)) for number in range(len(data))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    ("make", "function"),
    [
        (keccak.one_shot, "keccak_oneshot"),
        (keccak.reused_state, "keccak_reset"),
        (keccak.reused_state, "keccak_absorb"),
        (keccak.reused_state, "keccak_digest"),
    ],
)
def test_a_digest_that_the_library_refuses_is_the_public_forms(
    make: Maker, function: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pycryptodome, "_raw_keccak_lib", RefusesOnce(function, 1))
    form = make()
    assert form is not None
    assert [form(data) for data in (b"one", b"two", b"three")] == [
        keccak256_public(data) for data in (b"one", b"two", b"three")
    ]


def test_no_digest_that_the_library_gives_is_made_again_by_the_public_form(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    prefix34, data = b"\x19\x01" + bytes(32), b"hello"
    expected = keccak256_public(data), keccak256_public(prefix34 + keccak256_public(data))
    forms = [keccak.one_shot(), keccak.reused_state()]
    monkeypatch.setattr(keccak, "keccak256_public", raising)
    for form in forms:
        assert form is not None
        assert form(data) == expected[0]
    assert keccak.typed_digest(prefix34)(data) == expected[1]


@pytest.mark.parametrize("answered", [0, 1])
def test_a_typed_digest_of_which_the_library_refuses_either_step_is_the_public_forms(
    answered: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pycryptodome, "_raw_keccak_lib", RefusesOnce("keccak_oneshot", answered))
    digest = keccak.typed_digest(b"\x19\x01" + bytes(32))
    assert digest(b"data") == keccak256_public(b"\x19\x01" + bytes(32) + keccak256_public(b"data"))


def raising(data: bytes) -> bytes:
    raise TypeError(data)


@pytest.mark.parametrize(
    "broken",
    [
        None,
        lambda data: bytes(32),
        lambda data: keccak256_public(data + b"\0") if len(data) == 136 else keccak256_public(data),
        raising,
    ],
    ids=["missing", "constant", "wrong at the block size", "raising"],
)
def test_a_form_that_cannot_be_proven_is_replaced_by_the_public_one(broken: object) -> None:
    assert keccak.proven(broken) is keccak256_public  # type: ignore[arg-type]


def test_the_second_form_stands_in_for_the_first() -> None:
    second = keccak.reused_state()
    assert keccak.proven(None, raising, second) is second
