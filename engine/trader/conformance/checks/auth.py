"""Checks of a maker's authentication: correctly signed requests, and every kind of wrong signature.

A tampering is a request whose four authentication headers are wrong or unusual. The maker must refuse it with
a 4xx and an error that names the wrong header, unless the tampering is marked as accepted.

The signature covers the body's exact bytes: a case sends spaces and line ends that no encoder would write.

Source: spec 3.10.
Choice: A stale signature is 60 s old, twice the tolerance of "about 30 seconds"; 25 s either way pass.
"""

from collections.abc import Callable, Iterator

import msgspec
from msgspec import Struct

from .....crypto.hmac_auth import (
    ACCESS_KEY_HEADER,
    DOMAIN_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    HmacKey,
    RequestSigner,
)
from ..exchange import HttpExchange, error_text, judge_refusal
from ..rules import Result, Said, judged

STALE_MS = 60_000
WITHIN_MS = 25_000
HEADERS = (DOMAIN_HEADER, ACCESS_KEY_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)


class Credentials:
    """HMAC credentials for a maker's API: domain, access key and secret. The repr shows the domain alone."""

    __slots__ = ("access_key", "domain", "secret")

    def __init__(self, domain: str, access_key: str, secret: bytes) -> None:
        self.domain, self.access_key, self.secret = domain, access_key, secret

    def signer(self) -> RequestSigner:
        """Create a signer of HTTP requests with these credentials."""
        return RequestSigner(self.domain, self.access_key, self.secret)

    def __repr__(self) -> str:
        return f"Credentials({self.domain!r})"


class Plain(Struct, frozen=True):
    """An HTTP request without authentication headers.

    Attributes:
        target: path of the request, with the base URL's path in front.
    """

    method: str
    target: str
    body: bytes = b""


class Target(Struct, frozen=True):
    """Valid requests from which the checks make wrongly signed variants (tamperings).

    Attributes:
        prefix: the base URL's path, without a trailing slash.
        firm: unsigned copy of a POST /firm request that the maker has answered with a quote; None without a
            quote.
    """

    prefix: str
    firm: Plain | None

    def get(self, resource: str) -> Plain:
        """Create an unsigned GET request of a resource, such as `prices`, below the base URL."""
        return Plain("GET", f"{self.prefix}/{resource}")


RequestHeaders = dict[str, str]
Clock = Callable[[], int]  # milliseconds since the Unix epoch


class Tampering(Struct, frozen=True):
    """A request with altered or unusual authentication headers, and the expected answer.

    Attributes:
        check: id of the check that judges the answer.
        what: description of the alteration for findings.
        accepted: whether the maker must accept the signature.
        may_refuse: whether the maker may still refuse the request for another reason than its signature.
        names: the header that a helpful error message names.
    """

    check: str
    what: str
    request: Plain
    headers: RequestHeaders
    accepted: bool = False
    names: str = ""
    may_refuse: bool = False


def sign(credentials: Credentials, request: Plain, now_ms: int) -> RequestHeaders:
    """Return the correct authentication headers of a request signed at `now_ms`, Unix milliseconds."""
    return credentials.signer().headers(now_ms, request.method, request.target, request.body)


def unsigned(target: Target) -> Iterator[Tampering]:
    """Yield unsigned requests: one per GET endpoint, and the POST /firm request if `target` has one."""
    for name in ("tokens", "pairs", "prices", "blacklist"):
        yield Tampering(
            "auth.unsigned", f"GET /{name} without headers", target.get(name), {}, names="X-AUTH-"
        )
    if target.firm is not None:
        yield Tampering("auth.unsigned", "POST /firm without headers", target.firm, {}, names="X-AUTH-")


def tamperings(credentials: Credentials, target: Target, now_ms: Clock) -> Iterator[Tampering]:
    """Yield requests with every kind of wrong signature, and with unusual signatures that are correct.

    Guarantees: each request is signed when the caller takes it from the iterator, so that a signature with an
    age of 25 s is that old on arrival even if the maker answers earlier requests slowly.
    """
    prices = target.get("prices")
    for header in HEADERS:
        right = sign(credentials, prices, now_ms())
        short = {name: value for name, value in right.items() if name != header}
        yield Tampering("auth.missing-header", f"without {header}", prices, short, names=header)
    yield from _wrong_credentials(credentials, target, now_ms)
    yield from _wrong_times(credentials, prices, now_ms)
    yield from _wrong_payloads(credentials, target, now_ms)
    lower = {name.lower(): value for name, value in sign(credentials, prices, now_ms()).items()}
    yield Tampering("auth.header-case", "header names in lower case", prices, lower, accepted=True)
    for check, what, change in _SPOILED_SIGNATURES:
        right = sign(credentials, prices, now_ms())
        wrong = right | {SIGNATURE_HEADER: change(right[SIGNATURE_HEADER])}
        yield Tampering(f"auth.{check}", what, prices, wrong, names=SIGNATURE_HEADER)


def _other(digit: str) -> str:
    return "0" if digit != "0" else "1"


_SPOILED_SIGNATURES: tuple[tuple[str, str, Callable[[str], str]], ...] = (
    ("upper-case", "the signature in upper case", str.upper),
    ("wrong-secret", "a signature of zeros", lambda right: "0" * len(right)),
    ("missing-header", "an empty signature", lambda _: ""),
    ("whole-signature", "another last digit", lambda right: right[:-1] + _other(right[-1])),
    ("whole-signature", "another first digit", lambda right: _other(right[0]) + right[1:]),
    ("whole-signature", "without its last digit", lambda right: right[:-1]),
    ("whole-signature", "its first byte alone", lambda right: right[:2]),
    ("whole-signature", "a digit behind it", lambda right: right + "0"),
    ("whole-signature", "a byte behind it", lambda right: right + "00"),
    ("whole-signature", "letters behind it", lambda right: right + "zz"),
    ("whole-signature", "twice", lambda right: right * 2),
)


def _wrong_credentials(credentials: Credentials, target: Target, now_ms: Clock) -> Iterator[Tampering]:
    domain, right, secret = credentials.domain, credentials.access_key, credentials.secret
    wrong = Credentials(domain, right, secret + b"x")
    for name in ("tokens", "pairs", "prices", "blacklist"):
        request = target.get(name)
        headers = sign(wrong, request, now_ms())
        yield Tampering("auth.wrong-secret", "another secret", request, headers, names=SIGNATURE_HEADER)
    for what, access_key in (
        ("another access key", "wrong-key"),
        ("the access key in another case", right.swapcase()),
        ("the access key without its last character", right[:-1].rstrip()),
        ("the access key with a character more", right + "0"),
    ):
        if access_key and access_key != right:
            headers = sign(Credentials(domain, access_key, secret), target.get("prices"), now_ms())
            yield Tampering(
                "auth.wrong-access-key", what, target.get("prices"), headers, names=ACCESS_KEY_HEADER
            )
    headers = sign(Credentials("wrong-domain", right, secret), target.get("prices"), now_ms())
    yield Tampering("auth.wrong-domain", "another domain", target.get("prices"), headers, names=DOMAIN_HEADER)


def _wrong_times(credentials: Credentials, prices: Plain, now_ms: Clock) -> Iterator[Tampering]:
    for check, what, shift_ms, accepted in (
        ("stale", "signed 60 s ago", -STALE_MS, False),
        ("future", "signed 60 s ahead", STALE_MS, False),
        ("within-tolerance", "signed 25 s ago", -WITHIN_MS, True),
        ("within-tolerance", "signed 25 s ahead", WITHIN_MS, True),
    ):
        headers = sign(credentials, prices, now_ms() + shift_ms)
        yield Tampering(f"auth.{check}", what, prices, headers, accepted, TIMESTAMP_HEADER)
    seconds = sign(credentials, prices, now_ms() // 1000)
    yield Tampering("auth.timestamp-unit", "seconds, not ms", prices, seconds, names=TIMESTAMP_HEADER)
    words = sign(credentials, prices, now_ms()) | {
        TIMESTAMP_HEADER: "now",
        SIGNATURE_HEADER: HmacKey(credentials.secret).hex_digest(f"nowGET{prices.target}".encode()),
    }
    yield Tampering("auth.timestamp-text", "no number", prices, words, names=TIMESTAMP_HEADER)
    at_ms = now_ms()
    moved = sign(credentials, prices, at_ms) | {TIMESTAMP_HEADER: str(at_ms + 1)}
    yield Tampering("auth.timestamp-unsigned", "not the one signed", prices, moved, names=SIGNATURE_HEADER)


def _wrong_payloads(credentials: Credentials, target: Target, now_ms: Clock) -> Iterator[Tampering]:
    prices, pairs = target.get("prices"), target.get("pairs")

    def case(check: str, what: str, signed: Plain, sent: Plain, *, accepted: bool = False) -> Tampering:
        headers = sign(credentials, signed, now_ms())
        return Tampering(
            check=f"auth.{check}",
            what=what,
            request=sent,
            headers=headers,
            accepted=accepted,
            names=SIGNATURE_HEADER,
            may_refuse=accepted,
        )

    # `signed` is the request under the signature, `sent` the one on the wire; accepted cases have them equal.
    queried = Plain("GET", f"{prices.target}?cambist=check")
    yield case("path-altered", "signed for /pairs", pairs, prices)
    yield case("query-added", "a query added behind the signature", prices, queried)
    yield case("query-dropped", "a query dropped behind the signature", queried, prices)
    yield case("query-signed", "a query, signed", queried, queried, accepted=True)
    if target.prefix:
        stripped = Plain("GET", "/prices")
        yield case("prefix-stripped", "signed without the path's prefix", stripped, prices)
    yield case("method-confused", "signed as POST", Plain("POST", prices.target), prices)
    firm = target.firm
    if firm is None:
        return
    other = Plain("POST", firm.target, firm.body.replace(b'"userAddress"', b'"_":0,"userAddress"'))
    yield case("body-swapped", "signed over another body", other, firm)
    yield case("body-swapped", "signed without the body", Plain("POST", firm.target), firm)
    spaced = Plain("POST", firm.target, _spaced(firm.body))
    yield case("body-raw", "spaces and line ends in the body", spaced, spaced, accepted=True)
    yield case("body-swapped", "signed over the same JSON without spaces", firm, spaced)
    yield case("method-confused", "signed as GET", Plain("GET", firm.target, firm.body), firm)


def _spaced(body: bytes) -> bytes:
    """Encode a JSON object again, with spaces and line ends that an encoder would not write."""
    encode, entries = msgspec.json.encode, msgspec.json.decode(body).items()
    members = [b"%b  :   %b" % (encode(key), encode(value)) for key, value in entries]
    return b"{\n " + b" ,\r\n\t".join(members) + b"\n}\n"


def judge_tampering(case: Tampering, exchange: HttpExchange, right_signature: str) -> Iterator[Result]:
    """Judge the maker's answer to a request with altered or unusual authentication headers.

    Args:
        right_signature: the correct signature of the request as sent; the answer must not contain it.
    """
    where = f"{exchange.where} ({case.what})"
    if case.accepted:
        held = exchange.succeeded or (case.may_refuse and _is_other_refusal(exchange))
        yield judged(case.check, held, where, "200: the signature is right", exchange.said)
        return
    yield from judge_refusal(case.check, exchange, case.what, client_error=True)
    text = error_text(exchange)
    if not text:
        return
    leaked = right_signature.encode() in exchange.body.lower()
    yield judged(
        "auth.no-leak", not leaked, where, "no word of the right signature", Said("it is in the error")
    )
    if case.names and 400 <= exchange.status <= 499:
        named = case.names.lower() in text.lower()
        yield judged("auth.specific", named, where, f"an error that names {case.names}", text)


def _is_other_refusal(exchange: HttpExchange) -> bool:
    """Whether the answer is a 4xx for another reason than authentication."""
    about_auth = exchange.status in (401, 403) or "x-auth" in error_text(exchange).lower()
    return 400 <= exchange.status <= 499 and not about_auth


def judge_signed(resource: str, exchange: HttpExchange) -> Iterator[Result]:
    """Judge whether the maker accepts the signature of a correctly signed request.

    Args:
        resource: name of the request for findings, e.g. `GET /prices`.
    """
    refused = exchange.status in (401, 403)
    yield judged(
        "auth.signed", not refused and not exchange.failure, exchange.where, f"{resource}: 200", exchange.said
    )


def socket_tamperings(credentials: Credentials, path: str, now_ms: int) -> Iterator[Tampering]:
    """Yield WebSocket handshakes with a missing or wrong signature, which the maker must refuse."""
    right = Plain("GET", path)
    yield Tampering("stream.unsigned", "without headers", right, {})
    wrong = Credentials(credentials.domain, credentials.access_key, credentials.secret + b"x")
    yield Tampering("stream.wrong-signature", "another secret", right, sign(wrong, right, now_ms))
    stale = sign(credentials, right, now_ms - STALE_MS)
    yield Tampering("stream.wrong-signature", "signed 60 s ago", right, stale)
    elsewhere = sign(credentials, Plain("GET", f"{path}/elsewhere"), now_ms)
    yield Tampering("stream.wrong-signature", "signed for another path", right, elsewhere)
