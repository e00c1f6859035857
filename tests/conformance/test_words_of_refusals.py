"""Refusals speak of JSON: no message shows a value as Python writes it.

Each row of the catalogue is given odd values, and so is each parameter and member of the venue's API.
"""

import re
from collections.abc import AsyncIterator, Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any
from urllib.parse import quote, urlencode

import msgspec
import pytest

from cambist.codecs.messages.resource_messages import maker_error_body, trading_error_body
from cambist.codecs.messages.vocabulary import OnChainOrderType, Side
from cambist.config.errors import RequestError, catalogue_rows
from support.venue.quiet_venue import A_SALE, BUILD, CHAIN_ID, USER, QuietVenue, a_quiet_venue, routed

PYTHON = re.compile(
    r"""\bb['"]|\b(None|True|False|NoneType|UNSET|bytearray|inf|nan)\b|\b(tuple|dict|set|list|frozenset)\sof\b
    |`(str|int|bool|float|dict|list|null|array|object)[`\s]|Decimal\(|Fraction\(|<[A-Za-z_]+[.:\s]|\sat\s0x[0-9a-f]{6,}
    |['"]\]|\('|line\s\d+\scolumn""",
    re.VERBOSE,
)
"""Marks of messages that Python or msgspec wrote."""
ODD: tuple[Any, ...] = (
    None,
    True,
    -1,
    1.5,
    1e300,
    2**53,
    10**5_000,
    "",
    " ",
    "x",
    "-1",
    "1.5",
    "\x00",
    "\u202e\ud83d".encode("utf-16", "surrogatepass").decode("utf-16", "replace"),
    "y" * 300,
    [],
    [None],
    [[1]],
    {},
    {"": None},
)
INSIDE: tuple[Any, ...] = (
    *ODD,
    b"\x00\xff",
    bytearray(b"a"),
    (),
    ("a",),
    {1},
    frozenset({1}),
    Decimal("1.5"),
    Side.BUY,
    OnChainOrderType.TWAP_ORDER,
    msgspec.UNSET,
)
"""Values that code hands to errors and JSON does not know."""


ROWS = [kind for kind in catalogue_rows() if issubclass(kind, RequestError)]


@pytest.mark.parametrize("kind", ROWS, ids=[kind.__name__ for kind in ROWS])
def test_each_row_tells_odd_values_in_words_of_json(kind: type[RequestError]) -> None:
    for message in kind.messages:
        for value in INSIDE:
            error = kind(field="x", expected="another", got=value, message=message)
            for body in (trading_error_body(error, "1").details, maker_error_body(error).error):
                assert body.startswith(f"{message}: x: expected another, got ")
                assert not PYTHON.search(body.removeprefix(message)), body


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[QuietVenue]:
    async with a_quiet_venue(tmp_path) as venue:
        yield venue


def _operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    for path, methods in document["paths"].items():
        for method, operation in methods.items():
            if "text/event-stream" not in operation["responses"]["200"].get("content", {}):
                yield method.upper(), path, operation


def _members(document: dict[str, Any], operation: dict[str, Any]) -> list[str]:
    """The members of an operation's body."""
    schema = operation["requestBody"]["content"]["application/json"]["schema"]
    return list(document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]["properties"])


async def _good(venue: QuietVenue) -> dict[str, Any]:
    """Values under which most endpoints go on to the next one."""
    route = await routed(venue)
    market = (await venue.get("/v2/quote", **A_SALE | {"mode": "MARKET"}))["market"]
    built = await venue.ask(
        "POST", BUILD, msgspec.json.encode({"route": route, "owner": USER, "deadline": 2**37})
    )
    order = msgspec.json.decode(built.body)["toSign"]["value"]
    amounts = {"srcAmount": A_SALE["amount"], "makerAmount": "1", "takerAmount": "1", "nonceAndMeta": "0"}
    return A_SALE | amounts | {
        "network": CHAIN_ID, "user": USER, "account": USER, "userAddress": USER, "owner": USER, "maker": USER,
        "taker": USER, "makerAsset": A_SALE["srcToken"], "takerAsset": A_SALE["destToken"], "expiry": 0,
        "route": route, "priceRoute": market, "order": order, "signature": "0x" + "11" * 64, "slippage": 50,
        "deadline": 2**37, "orderIds": ["x"], "version": "6.2", "hash": "0x" + "11" * 32, "partner": "acme",
    }  # fmt: skip


async def test_each_parameter_and_member_is_refused_in_words_of_json(venue: QuietVenue) -> None:
    document, good = await venue.get("/openapi.json"), await _good(venue)
    refusals: dict[str, set[str]] = {}
    for method, path, operation in _operations(document):
        told = refusals.setdefault(f"{method} {path}", set())
        for target, body in _requests(method, path, operation, document, good):
            reply = await venue.ask(method, target, body)
            assert reply.status != 500, (target, body)
            if reply.status >= 400:
                details = msgspec.json.decode(reply.body)["details"]
                assert not PYTHON.search(details), (details, target, body)
                told.add(details)
    assert sum(map(len, refusals.values())) > 1_000, "odd values are hardly refused"
    untold = {name for name, told in refusals.items() if not told}
    assert all(name.startswith("GET /") and "{" not in name for name in untold), untold


def _requests(
    method: str, path: str, operation: dict[str, Any], document: dict[str, Any], good: dict[str, Any]
) -> Iterator[tuple[str, bytes]]:
    """Targets and bodies: each parameter and member with each odd value, the others as they should be."""
    places: dict[str, list[str]] = {"path": [], "query": [], "header": []}
    for parameter in operation.get("parameters", ()):
        places[parameter["in"]].append(parameter["name"])
    members = _members(document, operation) if "requestBody" in operation else []
    query = {name: good[name] for name in places["query"] if isinstance(good.get(name), str | int)}
    body = {name: good[name] for name in members if name in good}

    def target(in_path: dict[str, Any], in_query: dict[str, Any]) -> str:
        filled = re.sub(
            r"\{(\w+)\}", lambda hole: quote(str(in_path.get(hole[1], good.get(hole[1], 1))), safe=""), path
        )
        return f"{filled}?{urlencode(in_query)}" if in_query else filled

    raw = msgspec.json.encode(body) if members else b""
    for value in ODD:
        if isinstance(value, str | int | float) and value not in ("", True, 10**5_000):
            for name in places["path"]:
                yield target({name: value}, query), raw
            for name in places["query"]:
                yield target({}, query | {name: value}), raw
    for odd in _bodies(members, body) if members else ():
        yield target({}, query), odd


def _bodies(members: list[str], body: dict[str, Any]) -> Iterator[bytes]:
    """Bodies with an odd value each, whole ones too, and what is no JSON."""
    for value in ODD:
        yield _json(value)
        for name in members:
            yield _json(body | {name: value})
            for inner in body[name] if isinstance(body.get(name), dict) else ():
                yield _json(body | {name: body[name] | {inner: value}})
    yield from (b"", b"{", b"\xff", b'{"x":NaN}', b"[" * 2_000, b'{"z":1,"z":1,' + _json(body)[1:])


def _json(value: Any) -> bytes:
    """As json writes it: msgspec has no integers of 5,000 digits."""
    if value == 10**5_000 and not isinstance(value, bool):
        return b"1" + b"0" * 5_000
    if isinstance(value, dict):
        return b"{%b}" % b",".join(
            msgspec.json.encode(name) + b":" + _json(inner) for name, inner in value.items()
        )
    return msgspec.json.encode(value)
