"""Hostile requests, which a maker must answer with an error or a close, and continue to serve.

The module also judges the answers. An error in answer to broken framing need not be JSON, since many makers
are behind a proxy.

Source: spec 3.1; RFC 9112 6.1, 6.3, 9.3.2; RFC 9110 7.2.
"""

import random
import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct

from ..rules import Result, Said, fault, judged, passed

_status_line = re.compile(rb"HTTP/1\.[01] ([1-5][0-9]{2})").match
_LARGE = 1 << 20
_LARGE_BODY = 8 << 20
_TLS_HELLO = bytes.fromhex("1603010200010001fc0303") + bytes(64)


class Hostile(Struct, frozen=True):
    """A malformed or oversized request as raw bytes, sent on a connection of its own.

    Attributes:
        check: id of the check that judges the answer.
        what: description of the request for findings.
        payload: all bytes sent.
    """

    check: str
    what: str
    payload: bytes


class RawAnswer(Struct, frozen=True):
    """The maker's answer on a connection, as raw bytes.

    Attributes:
        data: the first bytes received.
        closed: whether the maker closed the connection.
    """

    data: bytes
    closed: bool

    @property
    def status(self) -> int:
        """HTTP status of the first answer; 0 without an answer."""
        found = _status_line(self.data)
        return int(found[1]) if found else 0

    @property
    def said(self) -> Said:
        """Text on the answer for findings: its first line, and whether the maker closed the connection."""
        if self.data:
            line = self.data.partition(b"\r\n")[0][:60].decode("latin-1")
            return Said(f"{line}{', then closed' if self.closed else ''}")
        return Said("closed without an answer" if self.closed else "neither an answer nor a close")


def head(method: str, target: str, host: str, headers: Mapping[str, str], *lines: str) -> bytes:
    """Build the head of an HTTP/1.1 request from these headers and further header lines."""
    fields = [f"{name}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"{method} {target} HTTP/1.1", f"Host: {host}", *fields, *lines, "", ""]).encode()


class Aim(Struct, frozen=True):
    """Builder of the ordinary HTTP requests from which hostile requests are derived.

    Attributes:
        prefix: the base URL's path.
        host: the Host header's value.
        signed: (method, target, body) -> correct authentication headers, empty without credentials; with a
            valid signature, malformed content reaches even a maker that verifies first.
        firm_body: body of a firm-quote request that the maker has answered with a quote, so that a maker that
            tolerates broken framing answers 200.
    """

    prefix: str
    host: str
    signed: Callable[[str, str, bytes], Mapping[str, str]]
    firm_body: bytes

    def get(self, name: str, *lines: str) -> bytes:
        """Build the bytes of a signed GET of a resource, such as `tokens`, with further header lines."""
        target = f"{self.prefix}/{name}"
        return head("GET", target, self.host, self.signed("GET", target, b""), *lines)

    def post(self, body: bytes, *lines: str) -> bytes:
        """Build the head of a POST /firm request, signed over `body`, with further header lines."""
        target = f"{self.prefix}/firm"
        headers = self.signed("POST", target, body)
        return head("POST", target, self.host, headers, "Content-Type: application/json", *lines)

    def whole(self, body: bytes) -> bytes:
        """Build the bytes of a complete, signed POST /firm request with this body."""
        return self.post(body, f"Content-Length: {len(body)}") + body


def hostile_cases(aim: Aim, seed: int) -> Iterator[Hostile]:
    """Yield hostile requests that the maker must refuse; `seed` determines the random bytes."""
    noise = random.Random(seed).randbytes(2_048)  # noqa: S311  not a secret
    yield Hostile("hostile.garbage", "2 KiB of noise", noise + b"\r\n\r\n")
    yield Hostile("hostile.garbage", "a TLS hello", _TLS_HELLO + b"\r\n\r\n")
    yield Hostile("hostile.garbage", "a word", b"EHLO maker.example\r\n\r\n")
    yield Hostile("hostile.large-head", "a header of 1 MiB", aim.get("tokens", f"X-Long: {'a' * _LARGE}"))
    many = (f"X-{number}: 1" for number in range(20_000))
    yield Hostile("hostile.large-head", "20,000 headers", aim.get("tokens", *many))
    yield Hostile("hostile.large-head", "a path of 1 MiB", aim.get("a" * _LARGE))
    yield Hostile("hostile.large-body", "8 MiB", aim.whole(b" " * _LARGE_BODY + b"{}"))
    yield Hostile("hostile.deep-json", "100,000 arrays", aim.whole(b"[" * 100_000))
    yield Hostile("hostile.deep-json", "100,000 objects", aim.whole(b'{"a":' * 100_000))
    yield from _broken_framing(aim)
    yield from _broken_heads(aim)


def _broken_framing(aim: Aim) -> Iterator[Hostile]:
    body = aim.firm_body
    size = len(body)
    two = aim.post(body, f"Content-Length: {size}", f"Content-Length: {size + 1}") + body + b"\n"
    yield Hostile("hostile.two-lengths", f"{size} and {size + 1}", two)
    chunked = b"%x\r\n%b\r\n0\r\n\r\n" % (size, body)
    both = aim.post(body, f"Content-Length: {size}", "Transfer-Encoding: chunked") + chunked
    yield Hostile("hostile.length-and-chunked", "both at once", both)
    for length in ("-1", f"+{size}", f"{size}x", hex(size)):
        yield Hostile("hostile.bad-length", length, aim.post(body, f"Content-Length: {length}") + body)
    bad = aim.post(body, "Transfer-Encoding: chunked") + b"zz\r\n%b\r\n0\r\n\r\n" % body
    yield Hostile("hostile.bad-chunk", "a chunk of zz bytes", bad)


def _broken_heads(aim: Aim) -> Iterator[Hostile]:
    good = aim.get("tokens")
    host = f"Host: {aim.host}\r\n".encode()
    for what, spoiled in (
        ("no Host", good.replace(host, b"", 1)),
        ("two Hosts", good.replace(host, host + b"Host: other.example\r\n", 1)),
    ):
        yield Hostile("hostile.host-header", what, spoiled)
    for what, spoiled in (
        ("HTTP/9.9", good.replace(b"HTTP/1.1", b"HTTP/9.9", 1)),
        ("a zero byte in a header", aim.get("tokens", "X-Zero: a\0b")),
        ("a space behind a header's name", good.replace(b"Host:", b"Host :", 1)),
    ):
        yield Hostile("hostile.bad-head", what, spoiled)


def judge_hostile(case: Hostile, answer: RawAnswer, bound_s: float) -> Iterator[Result]:
    """Judge whether the maker answered a hostile request with an error, or closed without an answer.

    Args:
        bound_s: longest wait for the answer, seconds, for findings.
    """
    refused = 400 <= answer.status <= 599 or (answer.closed and not answer.data)
    expected = f"4xx, 5xx or a close, within {bound_s:g} s"
    yield judged(case.check, refused, f"bytes ({case.what})", expected, answer.said)


def judge_survival(after: str, *, alive: bool, said: Said) -> Iterator[Result]:
    """Judge whether the maker still answered GET /tokens after a hostile request.

    Args:
        after: description of the hostile request for findings.
        alive: whether the maker answered with success.
        said: text on the answer for findings.
    """
    yield judged("hostile.survives", alive, f"GET /tokens ({after})", "200, as ever", said)


def halves(aim: Aim) -> Iterator[Hostile]:
    """Yield incomplete requests; a maker that waits for the missing bytes must serve other connections."""
    yield Hostile("hostile.half-request", "a head without its end", aim.get("tokens")[:-2])
    yield Hostile("hostile.half-request", "a body without its end", aim.whole(aim.firm_body)[:-5])


def judge_half(case: Hostile, *, alive: bool, said: Said) -> Iterator[Result]:
    """Judge whether the maker served another connection while a request on the first was incomplete.

    Args:
        alive: whether the other connection got an answer with success.
        said: text on that answer for findings.
    """
    yield judged(case.check, alive, f"bytes ({case.what})", "200 on another connection meanwhile", said)


PIPELINED = ("tokens", "pairs", "blacklist")


def judge_pipelined(answer: RawAnswer) -> Iterator[Result]:
    """Judge whether answers to pipelined requests keep the requests' order.

    The maker may close the connection after the first answer.
    """
    where = f"bytes (GET {', '.join(PIPELINED)} at once)"
    found = [(answer.data.find(b'"%b"' % name.encode()), name) for name in PIPELINED]
    order = [name for at, name in sorted(found) if at >= 0]
    if not order:
        yield fault("hostile.pipelined", where, "an answer", answer.said)
        return
    complete = len(order) == len(PIPELINED) or answer.closed
    held = order == list(PIPELINED[: len(order)]) and complete
    expected = f"the answers to {', '.join(PIPELINED)}, in order, or a close behind the first"
    yield judged("hostile.pipelined", held, where, expected, Said(", ".join(order)))


def judge_split(answer: RawAnswer) -> Iterator[Result]:
    """Judge whether the maker answers with status 200 to a GET /tokens that arrives byte by byte."""
    where = "bytes (GET /tokens, one byte at a time)"
    if answer.status == 200:
        yield passed("hostile.split-request", where)
    else:
        yield fault("hostile.split-request", where, "200", answer.said)
