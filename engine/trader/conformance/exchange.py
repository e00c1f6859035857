"""Recorded HTTP exchanges with a maker, a JSON reader for their bodies, and functions that judge refusals.

The JSON reader is separate from the message decoders: the checks must see faults that a decoder tolerates,
such as duplicate keys, and must distinguish one fault from another.

A 429 answer to a request that must be refused skips the check.
"""

import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from msgspec import Struct

from .rules import Result, Said, fault, gap, judged, passed

_JSON_TYPES = ("application/json", "application/problem+json", "text/json")
_INTEGER_DIGITS_MAX = 400
TOO_MANY = 429


class HttpExchange(Struct, frozen=True, kw_only=True):
    """An HTTP request to the maker, and the answer or the reason for a missing answer.

    Attributes:
        method, target: as sent.
        status: HTTP status; 0 without an answer, in which case `failure` gives the reason.
        headers: headers of the answer, names in lower case.
        sent_ms: wall clock before the request was written, Unix milliseconds.
        latency_ms: milliseconds from `sent_ms` to the complete answer.
    """

    method: str
    target: str
    request_body: bytes = b""
    status: int = 0
    headers: dict[str, str] = {}
    body: bytes = b""
    failure: str = ""
    sent_ms: int = 0
    latency_ms: float = 0.0

    @property
    def succeeded(self) -> bool:
        """Whether the status of the answer is 2xx."""
        return 200 <= self.status <= 299

    @property
    def where(self) -> str:
        """Name of the exchange in reported findings, e.g. `GET /prices`."""
        return f"{self.method} {self.target}"

    @property
    def said(self) -> Said:
        """Text on the answer for findings: status and shortened body, or the reason for a missing answer."""
        if self.failure:
            return Said(self.failure)
        text = self.body[:200].decode("utf-8", "replace")
        return Said(f"{self.status} {text}{'...' if len(self.body) > 200 else ''}")


class JsonDocument(Struct, frozen=True):
    """A parsed JSON text, or the reason why the text is not JSON.

    Attributes:
        value: the parsed value; None if `fault` is set.
        duplicates: keys repeated within one object.
        fault: the reason why the text is not JSON; empty for JSON.
    """

    value: Any = None
    duplicates: tuple[str, ...] = ()
    fault: str = ""


def read_json(raw: bytes) -> JsonDocument:
    """Parse a JSON text; for other texts return a document with a `fault` instead of raising.

    Fractions become Decimal; the last of duplicate keys wins.
    """
    duplicates: list[str] = []

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for key, value in pairs:
            if key in found:
                duplicates.append(key)
            found[key] = value
        return found

    try:
        value = json.loads(
            raw.decode(),
            object_pairs_hook=members,
            parse_int=_integer,
            parse_float=Decimal,
            parse_constant=_not_json,
        )
    except RecursionError:
        return JsonDocument(fault="nested too deep")
    # UnicodeDecodeError is a ValueError, and has to precede it. Decimal raises ArithmeticError for an
    # exponent out of its range.
    except UnicodeDecodeError:
        return JsonDocument(fault="not UTF-8")
    except (ValueError, ArithmeticError) as error:
        return JsonDocument(fault=str(error) or "not JSON")
    return JsonDocument(value, tuple(duplicates))


def _integer(text: str) -> int:
    if len(text) > _INTEGER_DIGITS_MAX:
        raise ValueError("an integer of hundreds of digits")
    return int(text)


def _not_json(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def is_json_type(exchange: HttpExchange) -> bool:
    """Whether the content type of the answer is JSON."""
    return exchange.headers.get("content-type", "").partition(";")[0].strip().lower() in _JSON_TYPES


def is_refused(exchange: HttpExchange) -> bool:
    """Whether the maker refused the request, i.e. answered with a 4xx or 5xx."""
    return not exchange.failure and 400 <= exchange.status <= 599


def error_text(exchange: HttpExchange) -> str:
    """Return the `error` string of an answer's JSON object; empty if the answer has none."""
    value = read_json(exchange.body).value
    text = value.get("error") if isinstance(value, dict) else None
    return text if isinstance(text, str) else ""


def judge_refusal(
    check: str, exchange: HttpExchange, what: str, *, client_error: bool = False
) -> Iterator[Result]:
    """Judge whether the maker refused a request, and whether its error answer has the documented form.

    A 429 answer (too many requests) is no refusal: the check is skipped, and counts as a gap.

    Args:
        check: id of the check that judges the answer.
        what: description of the request for the finding, e.g. `both amounts`.
        client_error: whether only a 4xx counts as refusal; otherwise a 5xx counts too.
    """
    where = f"{exchange.where} ({what})"
    if exchange.status == TOO_MANY:
        yield gap(check, "the maker limits the rate of requests: see --pause")
        return
    held = is_refused(exchange) and not (client_error and exchange.status >= 500)
    expected = "4xx" if client_error else "4xx or 5xx"
    yield judged(check, held, where, f"{expected} and JSON with an `error` string", exchange.said)
    if is_refused(exchange):
        yield from judge_error_form(exchange, where)


def judge_error_form(exchange: HttpExchange, where: str) -> Iterator[Result]:
    """Judge whether an error answer is JSON, is labelled as JSON, and has a non-empty `error` string."""
    kind = exchange.headers.get("content-type", "none")
    yield judged("errors.content-type", is_json_type(exchange), where, "content-type: application/json", kind)
    document = read_json(exchange.body)
    if document.fault:
        yield fault("errors.json", where, "a JSON body", Said(f"{document.fault}: {exchange.said}"))
        return
    yield passed("errors.json", where)
    yield judged(
        "errors.text", error_text(exchange), where, "an object with a non-empty `error` string", exchange.said
    )
