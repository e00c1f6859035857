"""Request signatures under random requests, changes and garbage."""

import hmac
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cambist.config.errors import AuthError
from cambist.crypto.hmac_auth import (
    ACCESS_KEY_HEADER,
    DOMAIN_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    HmacKey,
    ReplayWindow,
    RequestSigner,
    RequestVerifier,
)
from support.exception_chains import everything_told

SECRET = b"correct horse battery staple"
NOW_MS = 1_700_000_000_000
HEADERS = (DOMAIN_HEADER, ACCESS_KEY_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
PARTS = ("timestamp", "method", "target", "body", "signature")

methods = st.sampled_from(["GET", "POST", "PUT", "DELETE", "PATCH"])
targets = st.text(st.characters(min_codepoint=0x21, max_codepoint=0x7E), max_size=80).map("/".__add__)
bodies = st.binary(max_size=200)
times_ms = st.integers(NOW_MS - 30_000, NOW_MS + 30_000)
verifier = RequestVerifier({"venue": [("k0", b"another secret"), ("k1", SECRET)]})


def signed(method: str, target: str, body: bytes, at_ms: int) -> dict[str, bytes]:
    """The parts of a request that its signature covers, and the signature."""
    headers = RequestSigner("venue", "k1", SECRET).headers(at_ms, method, target, body)
    assert tuple(headers) == HEADERS
    parts = (headers[TIMESTAMP_HEADER].encode(), method.encode(), target.encode(), body)
    return dict(zip(PARTS, (*parts, headers[SIGNATURE_HEADER].encode()), strict=True))


def verify(parts: dict[str, bytes], now_ms: int = NOW_MS, by: RequestVerifier = verifier) -> bytes:
    return by.verify(
        b"venue", b"k1", parts["timestamp"], parts["signature"],
        parts["method"], parts["target"], parts["body"], now_ms,
    )  # fmt: skip


requests = st.builds(signed, methods, targets, bodies, times_ms)


@given(requests)
def test_what_is_signed_is_verified(parts: dict[str, bytes]) -> None:
    assert verify(parts) == b"venue"


@given(requests, st.data())
def test_any_changed_byte_is_refused(parts: dict[str, bytes], data: st.DataObject) -> None:
    name = data.draw(st.sampled_from([part for part in PARTS if parts[part]]))
    was = parts[name]
    at = data.draw(st.integers(0, len(was) - 1))
    byte = data.draw(st.integers(0, 255).filter(lambda byte: byte != was[at]))
    changed = parts | {name: was[:at] + bytes([byte]) + was[at + 1 :]}
    refused = refusal(changed)
    assert refused.header in (TIMESTAMP_HEADER, SIGNATURE_HEADER)
    payload = b"".join(changed[part] for part in PARTS[:4])
    told = everything_told(refused)
    assert hmac.new(SECRET, payload, "sha256").hexdigest() not in told
    assert SECRET.decode() not in told


@given(requests, st.sampled_from(["method", "target", "body"]), st.binary(min_size=1, max_size=20))
def test_anything_added_is_refused(parts: dict[str, bytes], name: str, more: bytes) -> None:
    assert refusal(parts | {name: parts[name] + more}).header == SIGNATURE_HEADER


@given(methods, targets, bodies, st.integers(-100_000, 100_000))
def test_only_a_timestamp_within_30_s_passes(method: str, target: str, body: bytes, off_ms: int) -> None:
    parts = signed(method, target, body, NOW_MS + off_ms)
    if abs(off_ms) <= 30_000:
        assert verify(parts) == b"venue"
    else:
        assert refusal(parts).header == TIMESTAMP_HEADER


headers = st.none() | st.binary(max_size=300) | st.sampled_from([b"venue", b"k1", b"%d" % NOW_MS, b"0" * 64])


@given(st.tuples(headers, headers, headers, headers), st.binary(), st.binary(), st.binary(), st.integers())
def test_garbage_is_an_auth_error_and_nothing_else(
    raw: tuple[Any, Any, Any, Any], method: bytes, target: bytes, body: bytes, now_ms: int
) -> None:
    try:
        verifier.verify(*raw, method, target, body, now_ms)
    except AuthError as error:
        told = error
    else:
        raise AssertionError("garbage was verified")
    assert all(name in HEADERS for name in told.header.split(", "))
    assert told.detail.isprintable()
    assert len(told.detail) < 500


@given(st.binary(min_size=1, max_size=200), st.binary(max_size=500))
def test_hmac_is_the_standard_librarys(key: bytes, message: bytes) -> None:
    assert HmacKey(key).hex_digest(message) == hmac.new(key, message, "sha256").hexdigest()


@given(st.lists(st.tuples(st.integers(0, 5), st.integers(0, 25_000)), max_size=40))
def test_the_replay_window_admits_no_post_twice_within_its_life(steps: list[tuple[int, int]]) -> None:
    """Requests signed at the edge of the tolerance come again and again while the clock goes on."""
    by = RequestVerifier({"venue": [("k1", SECRET)]}, replay_window=ReplayWindow())
    now_ms, admitted = NOW_MS, set[bytes]()
    for number, step_ms in steps:
        now_ms += step_ms
        parts = signed("POST", "/firm", b"%d" % number, NOW_MS + 30_000 * number)
        try:
            verify(parts, now_ms, by)
        except AuthError:
            fresh = abs(int(parts["timestamp"]) - now_ms) <= 30_000
            assert not fresh or parts["signature"] in admitted
        else:
            assert parts["signature"] not in admitted
            admitted.add(parts["signature"])


def refusal(parts: dict[str, bytes]) -> AuthError:
    try:
        verify(parts)
    except AuthError as error:
        return error
    raise AssertionError(f"verified: {parts}")
