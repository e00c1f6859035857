"""POST /firm requests that the maker must refuse, each made by a single change of a valid request.

Each row of the table takes the body of a request that the maker quotes, and changes a part of it. The answer
must be an error: an order would sign a meaningless request, and a success without order would mean that the
user is blacklisted.

Source: spec 3.9.14.
Choice: An amount is digits alone: a maker refuses `1_000`, ` 1 `, `0x10` and `1e3`, which some parsers take.
Choice: Acceptance of text behind a sound JSON object, or of invalid UTF-8 in an ignored member, is advice:
    JSON readers of Go, JavaScript or Rust pass over them.
"""

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from .....config.limits import UINT256_MAX
from ..exchange import HttpExchange, read_json
from ..rules import Result, judged, skipped
from .firm import Asking, ask
from .market import MakerMarket

STRANGER = "0x" + "57" * 20  # a well-formed address that is no token and no allowed taker
JSON_TYPE = "application/json"


class Spoiled(Struct, frozen=True):
    """A POST /firm request that the maker must refuse, made by one change of a valid request.

    Attributes:
        check: id of the check that judges the answer.
        what: description of the change.
        raw: body of the request.
    """

    check: str
    what: str
    raw: bytes
    content_type: str = JSON_TYPE


Body = dict[str, Any]
BodyChange = Callable[[Body, str], None]  # (body, key of the given amount)


def _put(key: str, value: object) -> BodyChange:
    def change(body: Body, given: str) -> None:
        body[given if key == "amount" else key] = value

    return change


def _drop(key: str) -> BodyChange:
    def change(body: Body, given: str) -> None:
        body.pop(given if key == "amount" else key)

    return change


def _same_token(body: Body, given: str) -> None:
    del given
    body["takerAsset"] = body["makerAsset"]


_CHANGES: tuple[tuple[str, str, BodyChange], ...] = (
    ("no-amount", "neither amount", _drop("amount")),
    ("unknown-token", "a makerAsset that is no token", _put("makerAsset", STRANGER)),
    ("unknown-token", "a takerAsset that is no token", _put("takerAsset", STRANGER)),
    ("same-token", "one token twice", _same_token),
    ("zero-amount", "amount 0", _put("amount", "0")),
    ("negative-amount", "amount -1", _put("amount", "-1")),
    ("fraction", "amount 1.5", _put("amount", "1.5")),
    ("exponent", "amount 1e3", _put("amount", "1e3")),
    ("huge-amount", "amount 2^256", _put("amount", str(UINT256_MAX + 1))),
    ("huge-amount", "an amount of 1000 digits", _put("amount", "9" * 1000)),
    ("loose-amount", "amount 1_000", _put("amount", "1_000")),
    ("loose-amount", "amount 0x10", _put("amount", "0x10")),
    ("loose-amount", "amount with spaces", _put("amount", " 1000 ")),
    ("loose-amount", "an empty amount", _put("amount", "")),
    ("loose-amount", "a word for an amount", _put("amount", "abc")),
    ("malformed-user", "a short userAddress", _put("userAddress", "0x1234")),
    ("malformed-user", "a userAddress of no hexadecimal", _put("userAddress", "0x" + "zz" * 20)),
    ("missing-user", "no userAddress", _drop("userAddress")),
    ("malformed-taker", "a short takerAddress", _put("takerAddress", "0x1234")),
    ("missing-taker", "no takerAddress", _drop("takerAddress")),
    ("missing-asset", "no makerAsset", _drop("makerAsset")),
    ("missing-asset", "no takerAsset", _drop("takerAsset")),
    ("wrong-type", "makerAsset a number", _put("makerAsset", 1)),
    ("wrong-type", "userAddress null", _put("userAddress", None)),
    ("wrong-type", "the amount an array", _put("amount", ["1"])),
)


def spoiled(good: Asking, depth: int, other: int) -> Iterator[Spoiled]:
    """Yield every variant of a valid firm-quote request that one change makes invalid.

    Args:
        good: a request that the maker quotes.
        depth: the largest amount for which the price grid has levels on the request's side, raw units.
        other: approximate amount that the maker computes, raw units, for the variant that fixes both amounts.
    """
    both = good.body | {good.leg.computed: str(other)}
    yield Spoiled("refuse.both-amounts", "makerAmount and takerAmount", msgspec.json.encode(both))
    for name, what, change in _CHANGES:
        body = dict(good.body)
        change(body, good.leg.given)
        yield Spoiled(f"refuse.{name}", what, msgspec.json.encode(body))
    over = good.body | {good.leg.given: str(min(depth * 10 + 1, UINT256_MAX))}
    yield Spoiled("refuse.over-depth", "ten times the depth", msgspec.json.encode(over))
    raw = good.raw
    yield Spoiled("refuse.malformed-json", "JSON cut short", raw[:-1])
    yield Spoiled("refuse.text-behind", "text behind the JSON", raw + b"}")
    yield Spoiled("refuse.malformed-json", "a word", b"firm")
    yield Spoiled("refuse.empty-body", "no body", b"")
    yield Spoiled("refuse.not-an-object", "an array", b"[" + raw + b"]")
    yield Spoiled("refuse.not-an-object", "null", b"null")
    yield Spoiled("refuse.bad-utf8", "invalid UTF-8", raw[:-1] + b',"note":"\xff"}')
    form = urlencode(good.body).encode()
    yield Spoiled("refuse.form-body", "a web form's body", form, "application/x-www-form-urlencoded")


def unlisted(good: Asking, market: MakerMarket) -> Iterator[Spoiled]:
    """Yield a firm-quote request for two listed tokens without a pair, if the market has such tokens."""
    joined = {frozenset((pair.base, pair.quote)) for pair in market.pairs.values()}
    ids = list(market.tokens)
    for at, base in enumerate(ids):
        for quote in ids[at + 1 :]:
            if frozenset((base, quote)) not in joined:
                one, other = (market.tokens[token].address.lower() for token in (base, quote))
                body = good.body | {"makerAsset": one, "takerAsset": other}
                yield Spoiled("refuse.unlisted-pair", f"{base} for {quote}", msgspec.json.encode(body))
                return


def silent(good: Asking, market: MakerMarket) -> Iterator[Spoiled]:
    """Yield a firm-quote request on a disabled pair and one on an empty side of a price grid, if present."""
    seen: set[str] = set()
    for pair_id, leg in market.silent_legs():
        check = "refuse.disabled-pair" if market.is_disabled(pair_id) else "refuse.silent-side"
        if check not in seen:
            seen.add(check)
            body = good.body
            asking = ask(market, pair_id, leg, good.amount, body["userAddress"], body["takerAddress"])
            yield Spoiled(check, f"{pair_id} {leg.name}", asking.raw)


def wrong_taker(good: Asking) -> Spoiled:
    """Build a copy of a quoted request with a taker address that the maker does not allow."""
    return Spoiled(
        "refuse.wrong-taker", STRANGER, msgspec.json.encode(good.body | {"takerAddress": STRANGER})
    )


def not_there(market: MakerMarket, *, taker_given: bool) -> Iterator[Result]:
    """Yield a skipped result for each kind of refusal that the run cannot test.

    The kinds are: a wrong taker without the option --taker, a disabled pair if no pair is disabled, and an
    empty side of a price grid if every pair has both sides.

    Args:
        taker_given: whether the option --taker is given.
    """
    if not taker_given:
        yield skipped("refuse.wrong-taker", "needs --taker, one that the maker allows")
    disabled = {market.is_disabled(pair_id) for pair_id, _ in market.silent_legs()}
    if True not in disabled:
        yield skipped("refuse.disabled-pair", "no listed pair is disabled")
    if False not in disabled:
        yield skipped("refuse.silent-side", "every pair has both sides")


def judge_blacklisted(exchange: HttpExchange, address: str) -> Iterator[Result]:
    """Judge whether POST /firm answers a blacklisted user with a success without `order`."""
    where = f"{exchange.where} (user {address})"
    value = read_json(exchange.body).value
    held = exchange.succeeded and isinstance(value, dict) and "order" not in value
    yield judged("firm.blacklisted", held, where, "200 and a JSON object without `order`", exchange.said)
