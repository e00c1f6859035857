"""Request signatures: the documented payload and headers, and every way of not being authenticated."""

import base64
import hashlib
import hmac
import pickle
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import pytest

from cambist.config.errors import AuthError, ConfigError
from cambist.config.secret import SecretEncoding
from cambist.crypto.hmac_auth import (
    ACCESS_KEY_HEADER,
    DOMAIN_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    HmacKey,
    ReplayWindow,
    RequestSigner,
    RequestVerifier,
    decode_secret,
    request_payload,
)
from support.exception_chains import everything_told

NOW_MS = 1_700_000_000_000
SECRET = b"correct horse battery staple"


class Request(NamedTuple):
    """A request as it arrives: raw headers, request line and body."""

    domain: bytes | None
    access_key: bytes | None
    timestamp: bytes | None
    signature: bytes | None
    method: bytes
    target: bytes
    body: bytes


def signed(
    method: str = "POST",
    target: str = "/1/firm",
    body: bytes = b"{}",
    *,
    at_ms: int = NOW_MS,
    domain: str = "venue",
    access_key: str = "k1",
    secret: bytes = SECRET,
) -> Request:
    headers = RequestSigner(domain, access_key, secret).headers(at_ms, method, target, body)
    names = (DOMAIN_HEADER, ACCESS_KEY_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
    first, second, third, fourth = (headers[name].encode() for name in names)
    return Request(first, second, third, fourth, method.encode(), target.encode(), body)


def verifier(*keys: tuple[str, bytes], **options: Any) -> RequestVerifier:
    return RequestVerifier({"venue": keys or (("k1", SECRET),)}, **options)


def refusal(request: Request, checked_by: RequestVerifier | None = None, now_ms: int = NOW_MS) -> AuthError:
    with pytest.raises(AuthError) as caught:
        (checked_by or verifier()).verify(*request, now_ms)
    told = everything_told(caught.value)
    assert SECRET.decode() not in told
    if request.timestamp and request.timestamp.isdigit():
        payload = b"".join((request.timestamp, request.method, request.target, request.body))
        assert hmac.new(SECRET, payload, "sha256").hexdigest() not in told
    return caught.value


def test_known_answers(vectors: dict[str, Any]) -> None:
    assert vectors["hmac"]["vectors"]
    for vector in vectors["hmac"]["vectors"]:
        target = "/" + vector["url"].partition("://")[2].partition("/")[2]
        body, headers = vector["body"].encode(), vector["headers"]
        at_ms, secret = int(vector["timestamp"]), vector["secretKey"].encode()
        assert request_payload(at_ms, vector["method"], target, body) == vector["payload"].encode()
        signer = RequestSigner(headers[DOMAIN_HEADER], headers[ACCESS_KEY_HEADER], secret)
        assert signer.headers(at_ms, vector["method"], target, body) == headers
        domain, access_key = headers[DOMAIN_HEADER].encode(), headers[ACCESS_KEY_HEADER].encode()
        known = RequestVerifier({headers[DOMAIN_HEADER]: [(headers[ACCESS_KEY_HEADER], secret)]})
        timestamp, signature = headers[TIMESTAMP_HEADER].encode(), headers[SIGNATURE_HEADER].encode()
        raw = (domain, access_key, timestamp, signature, vector["method"].encode(), target.encode(), body)
        assert known.verify(*raw, at_ms) == domain


@pytest.mark.parametrize(
    ("method", "target", "body", "payload"),
    [
        pytest.param("GET", "/prices", b"", b"5GET/prices", id="no body"),
        pytest.param("get", "/prices", b"", b"5GET/prices", id="method in upper case"),
        pytest.param("GET", "/a/b/prices?x=1&x=%20", b"", b"5GET/a/b/prices?x=1&x=%20", id="query as sent"),
        pytest.param("GET", "/prices?", b"", b"5GET/prices?", id="empty query"),
        pytest.param("POST", "/firm", b'{ "a" : 1 }\n', b'5POST/firm{ "a" : 1 }\n', id="body as sent"),
        pytest.param("POST", "/firm", b"\x00\xff", b"5POST/firm\x00\xff", id="any bytes"),
    ],
)
def test_payload_is_the_documented_concatenation(
    method: str, target: str, body: bytes, payload: bytes
) -> None:
    assert request_payload(5, method, target, body) == payload
    headers = RequestSigner("d", "k", SECRET).headers(5, method, target, body)
    assert headers == {
        "X-AUTH-DOMAIN": "d",
        "X-AUTH-ACCESS-KEY": "k",
        "X-AUTH-TIMESTAMP": "5",
        "X-AUTH-SIGNATURE": hmac.new(SECRET, payload, hashlib.sha256).hexdigest(),
    }


@pytest.mark.parametrize("length", [1, 31, 32, 63, 64, 65, 128, 1_000])
def test_hmac_of_keys_of_every_length_is_the_standard_one(length: int) -> None:
    key = HmacKey(b"\xa5" * length)
    for message in (b"", b"x", b"y" * 1_000):
        assert key.hex_digest(message) == hmac.new(b"\xa5" * length, message, "sha256").hexdigest()


def test_hmac_rfc_4231_case_2() -> None:
    digest = "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843"
    assert HmacKey(b"Jefe").hex_digest(b"what do ya want for nothing?") == digest


def test_an_empty_key_is_refused() -> None:
    with pytest.raises(ValueError, match="not empty"):
        HmacKey(b"")


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
@pytest.mark.parametrize("body", [b"", b"{}", b"\x00" * 10_000], ids=["none", "some", "much"])
def test_a_signed_request_is_verified(method: str, body: bytes) -> None:
    assert verifier().verify(*signed(method, "/137/firm?a=b", body), NOW_MS) == b"venue"


def test_a_socket_handshake_signs_its_path_alone() -> None:
    assert verifier().verify(*signed("GET", "/ws", b""), NOW_MS) == b"venue"


MISSING: dict[str, tuple[dict[str, Any], str]] = {
    "domain": ({"domain": None}, "X-AUTH-DOMAIN"),
    "access key": ({"access_key": None}, "X-AUTH-ACCESS-KEY"),
    "timestamp": ({"timestamp": None}, "X-AUTH-TIMESTAMP"),
    "signature": ({"signature": None}, "X-AUTH-SIGNATURE"),
    "two": ({"domain": None, "signature": None}, "X-AUTH-DOMAIN, X-AUTH-SIGNATURE"),
    "all": (
        dict.fromkeys(["domain", "access_key", "timestamp", "signature"]),
        "X-AUTH-DOMAIN, X-AUTH-ACCESS-KEY, X-AUTH-TIMESTAMP, X-AUTH-SIGNATURE",
    ),
}


@pytest.mark.parametrize(("absent", "header"), MISSING.values(), ids=MISSING)
def test_a_missing_header_is_named(absent: dict[str, Any], header: str) -> None:
    error = refusal(signed()._replace(**absent))
    assert error.header == header
    assert error.detail == f"{header}: header missing"
    assert error.status == 401


GOOD = signed().signature or b""
WRONG: dict[str, tuple[dict[str, bytes], str, str]] = {
    "unknown domain": ({"domain": b"other"}, DOMAIN_HEADER, "unknown domain 'other'"),
    "empty domain": ({"domain": b""}, DOMAIN_HEADER, "unknown domain ''"),
    "domain in another case": ({"domain": b"VENUE"}, DOMAIN_HEADER, "unknown domain 'VENUE'"),
    "domain of any bytes": ({"domain": b"\xff\x00"}, DOMAIN_HEADER, r"unknown domain '\xff\x00'"),
    "wrong access key": ({"access_key": b"k2"}, ACCESS_KEY_HEADER, "wrong access key for domain 'venue'"),
    "empty access key": ({"access_key": b""}, ACCESS_KEY_HEADER, "wrong access key for domain 'venue'"),
    "longer access key": ({"access_key": b"k1 "}, ACCESS_KEY_HEADER, "wrong access key for domain 'venue'"),
    "empty timestamp": ({"timestamp": b""}, TIMESTAMP_HEADER, "expected milliseconds since the Unix epoch"),
    "negative timestamp": ({"timestamp": b"-5"}, TIMESTAMP_HEADER, "expected milliseconds since"),
    "signed timestamp": ({"timestamp": b"+1700000000000"}, TIMESTAMP_HEADER, "expected milliseconds since"),
    "timestamp with a space": ({"timestamp": b"1700000000000 "}, TIMESTAMP_HEADER, "expected milliseconds"),
    "fractional timestamp": ({"timestamp": b"1700000000000.0"}, TIMESTAMP_HEADER, "expected milliseconds"),
    "underscores": ({"timestamp": b"1_700_000_000_000"}, TIMESTAMP_HEADER, "expected milliseconds"),
    "hexadecimal timestamp": ({"timestamp": b"0x18bcfe56800"}, TIMESTAMP_HEADER, "expected milliseconds"),
    "digits of another script": (
        {"timestamp": "\u0661\u0667".encode()},
        TIMESTAMP_HEADER,
        "expected milliseconds",
    ),
    "17 digits": ({"timestamp": b"0" * 4 + b"1700000000000"}, TIMESTAMP_HEADER, "expected milliseconds"),
    "megabytes of digits": ({"timestamp": b"1" * 2_000_000}, TIMESTAMP_HEADER, "expected milliseconds"),
    "seconds": (
        {"timestamp": b"1700000000"},
        TIMESTAMP_HEADER,
        "; this looks like seconds, and milliseconds are expected",
    ),
    "microseconds": (
        {"timestamp": b"1700000000000000"},
        TIMESTAMP_HEADER,
        "; this looks like microseconds, and milliseconds are expected",
    ),
    "another timestamp": ({"timestamp": b"1700000000001"}, SIGNATURE_HEADER, "does not match timestamp"),
    "same timestamp, written longer": ({"timestamp": b"01700000000000"}, SIGNATURE_HEADER, "does not match"),
    "empty signature": ({"signature": b""}, SIGNATURE_HEADER, "expected 64 hexadecimal digits, got 0 char"),
    "short signature": ({"signature": GOOD[:-1]}, SIGNATURE_HEADER, "expected 64 hexadecimal digits, got 63"),
    "long signature": (
        {"signature": GOOD + b"0"},
        SIGNATURE_HEADER,
        "expected 64 hexadecimal digits, got 65",
    ),
    "0x": ({"signature": b"0x" + GOOD}, SIGNATURE_HEADER, "expected 64 hexadecimal digits, got 66"),
    "upper case": ({"signature": GOOD.upper()}, SIGNATURE_HEADER, "expected lower-case hexadecimal"),
    "not hexadecimal": ({"signature": b"g" * 64}, SIGNATURE_HEADER, "expected lower-case hexadecimal"),
    "signature of any bytes": ({"signature": b"\xff" * 64}, SIGNATURE_HEADER, "expected lower-case hexade"),
    "another signature": ({"signature": b"0" * 64}, SIGNATURE_HEADER, "does not match timestamp + 'POST'"),
    "another method": ({"method": b"PUT"}, SIGNATURE_HEADER, "does not match timestamp + 'PUT' + '/1/firm'"),
    "method in lower case": ({"method": b"post"}, SIGNATURE_HEADER, "does not match timestamp + 'post'"),
    "another path": (
        {"target": b"/1/firn"},
        SIGNATURE_HEADER,
        "does not match timestamp + 'POST' + '/1/firn'",
    ),
    "a slash more": ({"target": b"/1/firm/"}, SIGNATURE_HEADER, "+ '/1/firm/' + body of 2 bytes"),
    "a query more": ({"target": b"/1/firm?"}, SIGNATURE_HEADER, "+ '/1/firm?' + body of 2 bytes"),
    "another body": ({"body": b"{ }"}, SIGNATURE_HEADER, "+ body of 3 bytes"),
    "no body": ({"body": b""}, SIGNATURE_HEADER, "+ body of 0 bytes"),
}


@pytest.mark.parametrize(("change", "header", "said"), WRONG.values(), ids=WRONG)
def test_a_wrong_header_is_named_with_the_reason(change: dict[str, bytes], header: str, said: str) -> None:
    error = refusal(signed()._replace(**change))
    assert error.header == header
    assert said in error.reason
    assert error.detail == f"{header}: {error.reason}"
    assert error.detail.isprintable()
    assert len(error.detail) < 400


@pytest.mark.parametrize(
    ("off_ms", "said"),
    [
        (-30_001, "30001 ms behind this server's clock; at most 30000 ms either way"),
        (-30_000, None),
        (0, None),
        (30_000, None),
        (30_001, "30001 ms ahead of this server's clock; at most 30000 ms either way"),
    ],
)
def test_a_timestamp_passes_up_to_30_s_either_way(off_ms: int, said: str | None) -> None:
    request = signed(at_ms=NOW_MS + off_ms)
    if said is None:
        assert verifier().verify(*request, NOW_MS) == b"venue"
    else:
        error = refusal(request)
        assert (error.header, error.reason) == (TIMESTAMP_HEADER, said)


@pytest.mark.parametrize(
    ("timestamp", "per_ms", "unit"),
    [(b"1700000000", 1_000, "seconds"), (b"1700000000000000", Fraction(1, 1_000), "microseconds")],
)
def test_another_unit_is_recognised_within_a_day_of_the_clock(
    timestamp: bytes, per_ms: Fraction | int, unit: str
) -> None:
    meant_ms = int(int(timestamp) * per_ms)
    for off_ms, is_told in ((86_400_000, True), (86_400_001, False)):
        for now_ms in (meant_ms + off_ms, meant_ms - off_ms):
            error = refusal(signed()._replace(timestamp=timestamp), now_ms=now_ms)
            assert (f"this looks like {unit}" in error.reason) is is_told


def test_a_stale_timestamp_is_told_before_its_signature_is_looked_at() -> None:
    stale = signed(at_ms=NOW_MS - 60_000)._replace(signature=b"0" * 64)
    assert refusal(stale).header == TIMESTAMP_HEADER


LIVE = {
    "two access keys": (("k1", b"one"), ("k2", b"two")),
    "one access key with two secrets": (("k1", b"one"), ("k1", b"two")),
}


@pytest.mark.parametrize("keys", LIVE.values(), ids=LIVE)
def test_both_live_keys_verify_while_a_secret_is_rotated(keys: tuple[tuple[str, bytes], ...]) -> None:
    live = verifier(*keys)
    for access_key, secret in keys:
        assert live.verify(*signed(access_key=access_key, secret=secret), NOW_MS) == b"venue"
    assert refusal(signed(access_key="k1", secret=b"three"), live).header == SIGNATURE_HEADER
    assert refusal(signed(access_key="k3", secret=b"one"), live).header == ACCESS_KEY_HEADER


def test_a_secret_serves_only_its_own_access_key() -> None:
    live = verifier(("k1", b"one"), ("k2", b"two"))
    assert refusal(signed(access_key="k1", secret=b"two"), live).header == SIGNATURE_HEADER


def test_a_secret_serves_only_its_own_domain() -> None:
    both = RequestVerifier({"venue": [("k1", b"one")], "other": [("k1", b"two")]})
    assert both.verify(*signed(domain="other", secret=b"two"), NOW_MS) == b"other"
    assert refusal(signed(domain="other", secret=b"one"), both).header == SIGNATURE_HEADER


@pytest.mark.parametrize("keys", [[], [("k", b"s")] * 3], ids=["none", "three"])
def test_a_domain_has_one_or_two_keys(keys: list[tuple[str, bytes]]) -> None:
    with pytest.raises(ConfigError, match=f"domain venue: needs 1 to 2 keys, has {len(keys)}"):
        RequestVerifier({"venue": keys})


def test_without_domains_nobody_is_let_in() -> None:
    assert refusal(signed(), RequestVerifier({})).header == DOMAIN_HEADER


PREFIXES = [
    # (setting, target as the client signed it, target as it arrives, verified)
    ("", "/api/prices", "/api/prices", True),
    ("", "/prices", "/api/prices", False),
    ("/api", "/prices", "/api/prices", True),
    ("/api", "/prices?x=1", "/api/prices?x=1", True),
    ("/api", "/prices", "/prices", True),
    ("/api", "/api/prices", "/api/prices", False),
    ("/api", "/api/prices", "/api/api/prices", True),
    ("/1", "/137/prices", "/137/prices", True),
    ("/1", "/prices", "/1/prices", True),
    ("/api", "/apiprices", "/apiprices", True),
    ("/api", "/api", "/api", True),
]


@pytest.mark.parametrize(("prefix", "sent", "arrives", "holds"), PREFIXES)
def test_a_prefix_is_taken_off_where_it_stands(prefix: str, sent: str, arrives: str, holds: bool) -> None:
    request = signed("GET", sent, b"")._replace(target=arrives.encode())
    behind = verifier(strip_prefix=prefix)
    if holds:
        assert behind.verify(*request, NOW_MS) == b"venue"
    else:
        assert refusal(request, behind).header == SIGNATURE_HEADER


ENCODED: list[tuple[SecretEncoding, str, bytes]] = [
    ("utf8", "secret", b"secret"),
    ("utf8", "sécret ", "sécret ".encode()),
    ("utf8", "deadbeef", b"deadbeef"),
    ("hex", "00ffA5", b"\x00\xff\xa5"),
    ("base64", base64.b64encode(b"\x00\xff>?").decode(), b"\x00\xff>?"),
]


@pytest.mark.parametrize(("encoding", "text", "key"), ENCODED)
def test_a_secret_is_read_as_it_was_exchanged(encoding: SecretEncoding, text: str, key: bytes) -> None:
    assert decode_secret(text, encoding) == key


@pytest.mark.parametrize(
    ("encoding", "text", "said"),
    [
        ("utf8", "", "secret: is empty"),
        ("hex", "", "secret: is empty"),
        ("base64", "", "secret: is empty"),
        ("hex", "horse", "secret: is not hex text"),
        ("hex", "0x00", "secret: is not hex text"),
        ("hex", "abc", "secret: is not hex text"),
        ("base64", "horse", "secret: is not base64 text"),
        ("base64", "aG9yc2U", "secret: is not base64 text"),
        ("base64", "aG9y\nc2U=", "secret: is not base64 text"),
        ("base64", "_-_-", "secret: is not base64 text"),
        ("base64", "hörse", "secret: is not base64 text"),
        ("utf8", "horse\udcff", "secret: is not utf8 text"),
    ],
)
def test_a_secret_of_another_encoding_is_refused_and_not_repeated(
    encoding: SecretEncoding, text: str, said: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        decode_secret(text, encoding)
    assert str(caught.value) == said
    assert not text or text not in everything_told(caught.value)
    assert "rse" not in everything_told(caught.value)


SHOWN: dict[str, Callable[[], object]] = {
    "key": lambda: HmacKey(SECRET),
    "signer": lambda: RequestSigner("venue", "k1", SECRET),
    "verifier": verifier,
}


@pytest.mark.parametrize("make", SHOWN.values(), ids=SHOWN)
def test_nothing_that_holds_a_key_shows_or_pickles_it(make: Callable[[], object]) -> None:
    holder = make()
    for text in (repr(holder), str(holder), f"{holder}"):
        assert "correct horse" not in text
        assert "k1" not in text
    for protocol in range(pickle.HIGHEST_PROTOCOL + 1):
        with pytest.raises(TypeError):
            pickle.dumps(holder, protocol)


def test_replays_pass_unless_told_otherwise() -> None:
    plain = verifier()
    assert {plain.verify(*signed(), NOW_MS) for _ in range(3)} == {b"venue"}


def test_a_repeated_post_is_refused_for_as_long_as_its_timestamp_passes() -> None:
    window = verifier(replay_window=ReplayWindow())
    request = signed(at_ms=NOW_MS + 30_000)
    assert window.verify(*request, NOW_MS) == b"venue"
    for later_ms in (0, 1, 30_000, 59_999, 60_000):
        error = refusal(request, window, NOW_MS + later_ms)
        assert (error.header, error.reason) == (
            SIGNATURE_HEADER,
            "this signed request was already received",
        )
    assert refusal(request, window, NOW_MS + 60_001).header == TIMESTAMP_HEADER


def test_a_repeated_get_passes() -> None:
    window = verifier(replay_window=ReplayWindow(entries_max=0))
    assert {window.verify(*signed("GET", "/prices", b""), NOW_MS) for _ in range(3)} == {b"venue"}


def test_a_request_that_fails_is_not_remembered() -> None:
    window = verifier(replay_window=ReplayWindow(entries_max=1))
    refusal(signed(body=b"a")._replace(body=b"b"), window)
    assert window.verify(*signed(body=b"a"), NOW_MS) == b"venue"


def test_a_repeated_post_is_caught_behind_a_prefix_too() -> None:
    window = verifier(strip_prefix="/api", replay_window=ReplayWindow())
    request = signed(target="/firm")
    assert window.verify(*request, NOW_MS) == b"venue"
    assert refusal(request._replace(target=b"/api/firm"), window).header == SIGNATURE_HEADER


def test_the_same_body_signed_later_is_another_request() -> None:
    window = verifier(replay_window=ReplayWindow())
    for at_ms in range(NOW_MS, NOW_MS + 5):
        assert window.verify(*signed(at_ms=at_ms), NOW_MS) == b"venue"
