"""POST /firm requests that a maker must quote, and the functions that judge the signed orders.

Amounts come from a seeded random source. Small amounts, within the first level of the price grid and a
two-hundredth of its depth, must be quoted if the grids before and after the request both hold them. Deep
amounts are up to half of the depth.

Each request has a new user address unless --user gives one, since a maker may blacklist a user that requests
quotes and never trades.

Source: spec 3.9, 3.5; interop.md sections 1 and 4.
Choice: A refusal of a deep amount, up to half of a side, is advice: a maker may reserve funds for open
    quotes.
Choice: The direction of rounding is advice; the price bound allows a few raw units either way.
"""

import random
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Struct

from .....codecs.amounts import parse_amount
from .....config import limits
from .....config.error_text import shown
from .....config.errors import InvalidInput
from .....crypto.addresses import parse_address
from .....crypto.keccak import keccak256
from .....feeds.books.book import Ladder
from ..exchange import HttpExchange, read_json
from ..rules import Result, Said, fault, gap, judged, passed
from .market import GridLeg, MakerMarket, Range, deviation_bps, expected_range

FIRM_KEYS = frozenset(
    {"nonceAndMeta", "expiry", "makerAsset", "takerAsset", "maker", "taker", "makerAmount", "takerAmount"}
    | {"signature"}
)
_AMOUNT_KEYS = ("nonceAndMeta", "makerAmount", "takerAmount")
_ADDRESS_KEYS = ("makerAsset", "takerAsset", "maker", "taker")
_SMALL_PARTS, _TINY_PARTS = 200, 5_000  # divisors of the depth
_MILLISECONDS_FROM = 100_000_000_000  # as seconds this is the year 5138
EXPIRY_FAR_S = 86_400
CLOCK_GRACE_S = 1  # allowed difference between the maker's clock and the harness's


class Asking(Struct, frozen=True):
    """A request for a firm quote, and the checks that its answer decides.

    Attributes:
        leg: the side of the price grid, and the token whose amount the request fixes.
        amount: the fixed amount, raw units.
        purpose: `small`, `deep`, `load` or the name of a variation.
        body: the JSON object to send.
        checks: ids of further checks that pass if the maker quotes the request.
        must: whether a refusal is a fault of the check `firm.quotes` too, not of `checks` alone.
    """

    pair_id: str
    leg: GridLeg
    amount: int
    purpose: str
    body: dict[str, Any]
    checks: tuple[str, ...] = ()
    must: bool = True

    @property
    def raw(self) -> bytes:
        """Body of the request as JSON bytes."""
        return msgspec.json.encode(self.body)

    @property
    def where(self) -> str:
        """Name of the request in findings: pair, leg, fixed amount and purpose."""
        return f"POST firm {self.pair_id} {self.leg.name} {self.leg.given}={self.amount} ({self.purpose})"


class Users:
    """Supplier of user addresses for quote requests: the given address each time, or always a new one."""

    def __init__(self, seed: int, given: str | None) -> None:
        self._seed, self._given, self._count = seed, given, 0

    def next(self) -> str:
        """Return the user address of the next quote request, lower-case hexadecimal."""
        self._count += 1
        if self._given is not None:
            return self._given
        return "0x" + keccak256(b"cambist check %d %d" % (self._seed, self._count))[12:].hex()


def ask(
    market: MakerMarket,
    pair_id: str,
    leg: GridLeg,
    amount: int,
    user: str,
    taker: str,
    purpose: str = "small",
    **more: Any,
) -> Asking:
    """Build a firm-quote request for a fixed amount, in raw units, of one token of a pair.

    Args:
        leg: the side of the price grid, and the token whose amount the request fixes.
        user, taker: addresses that the request names as userAddress and takerAddress.
        more: values of further attributes of the Asking, such as `checks`.
    """
    maker_asset, taker_asset = market.assets(pair_id, leg)
    body = {
        "makerAsset": maker_asset,
        "takerAsset": taker_asset,
        leg.given: str(amount),
        "userAddress": user,
        "takerAddress": taker,
    }
    return Asking(pair_id, leg, amount, purpose, body, **more)


def small_amount(leg: GridLeg, ladder: Ladder, rng: random.Random) -> int:
    """Choose a random amount of at most a two-hundredth of the ladder's depth and of at most the first level.

    Returns:
        Raw units, at least 1, of the token whose amount `leg` fixes.
    """
    return _part(leg, ladder, rng, _SMALL_PARTS)


def tiny_amount(leg: GridLeg, ladder: Ladder, rng: random.Random) -> int:
    """Choose a random amount, raw units, of at most a five-thousandth of the ladder's depth.

    Hundreds of quotes for such amounts tie up little of a maker's funds. The amount is at least 1.
    """
    return _part(leg, ladder, rng, _TINY_PARTS)


def _part(leg: GridLeg, ladder: Ladder, rng: random.Random, parts: int) -> int:
    most = _most(leg, ladder, parts)
    return rng.randint(max(most // 10, 1), most)


def _most(leg: GridLeg, ladder: Ladder, parts: int) -> int:
    return max(min(leg.first_level(ladder), leg.depth(ladder) // parts), 1)


def deep_amount(leg: GridLeg, ladder: Ladder, rng: random.Random) -> int:
    """Choose a random amount of the token that `leg` fixes, from a tenth to half of the ladder's depth.

    The amount, in raw units, exceeds the first level. If that level holds half of the depth or more, the
    amount is half of the depth.
    """
    most = max(leg.depth(ladder) // 2, 1)
    return rng.randint(max(most // 5, min(leg.first_level(ladder) + 1, most)), most)


def askings(market: MakerMarket, rng: random.Random, users: Users, taker: str) -> list[Asking]:
    """Build firm-quote requests for small amounts, up to four per pair, which the maker must quote.

    The four requests of a pair buy or sell, and fix the base or the quote amount.
    """
    return [
        ask(market, pair_id, leg, small_amount(leg, ladder, rng), users.next(), taker)
        for pair_id, leg, ladder in market.legs()
    ]


def deep_askings(market: MakerMarket, rng: random.Random, users: Users, taker: str) -> list[Asking]:
    """Build firm-quote requests for up to half of the depth of the price grid, up to four per pair.

    The four requests of a pair buy or sell, and fix the base or the quote amount.
    """
    return [
        ask(
            market,
            pair_id,
            leg,
            deep_amount(leg, ladder, rng),
            users.next(),
            taker,
            "deep",
            checks=("firm.deep",),
            must=False,
        )
        for pair_id, leg, ladder in market.legs()
    ]


def variations(market: MakerMarket, rng: random.Random, users: Users, taker: str) -> Iterator[Asking]:
    """Yield firm-quote requests of unusual but valid form, which the maker must quote.

    Variations: addresses in upper case and unknown JSON keys, on the first pair; amounts 0.01 % or 1 % above
    a small amount, on each side of each pair. The market must have at least one price.
    """
    legs = market.legs()
    pair_id, leg, ladder = legs[0]
    amount = small_amount(leg, ladder, rng)
    for purpose, check, change in _CLOTHES:
        asking = ask(market, pair_id, leg, amount, users.next(), taker, purpose, checks=(check,), must=False)
        change(asking.body)
        yield asking
    for pair_id, leg, ladder in legs:
        amount = _most(leg, ladder, _SMALL_PARTS)
        if leg.given == "takerAmount":
            over, check = amount * 10_100 // limits.BPS_ONE, "firm.over-asked-sell"
        else:
            over, check = amount * 10_001 // limits.BPS_ONE, "firm.over-asked-buy"
        if over <= leg.depth(ladder):
            yield ask(
                market, pair_id, leg, over, users.next(), taker, "a little more", checks=(check,), must=False
            )


def _upper_case(body: dict[str, Any]) -> None:
    for key in ("makerAsset", "takerAsset", "userAddress", "takerAddress"):
        body[key] = "0x" + body[key][2:].upper()


def _more_keys(body: dict[str, Any]) -> None:
    body |= {"partner": "cambist-check", "special": True, "cambistUnknown": {"nested": [1, None]}}


_CLOTHES = (
    ("addresses in upper case", "firm.address-case", _upper_case),
    ("keys that the specification does not have", "firm.unknown-keys", _more_keys),
)


class Quoted(Struct, frozen=True):
    """A firm-quote request, and the well-formed order in the maker's answer.

    Attributes:
        order: JSON object with all keys, the right JSON types, and numbers within their ranges.
    """

    asking: Asking
    exchange: HttpExchange
    order: dict[str, Any]

    @property
    def nonce_and_meta(self) -> int:
        """Member nonceAndMeta of the order as an integer."""
        return int(self.order["nonceAndMeta"])


def judge_answer(
    asking: Asking, exchange: HttpExchange, before: MakerMarket, after: MakerMarket
) -> Iterator[Result | Quoted]:
    """Judge an answer to POST /firm: success, and the form of the order; then yield the order as Quoted.

    Args:
        before, after: the maker's market just before and just after the request; a refusal is a fault only
            if the price grids of both have enough depth for the amount.
    """
    where = asking.where
    # Without depth in both grids a refusal proves nothing, but an order has to be right all the same.
    holds = expected_range(before, after, asking.pair_id, asking.leg, asking.amount) is not None
    if not holds:
        for check in asking.checks:
            yield gap(check, "the grids around the quote do not hold the amount")
        if not exchange.succeeded:
            return
    if asking.must or exchange.succeeded:
        yield from _judge_success(asking, exchange)
    for check in asking.checks:
        yield judged(check, exchange.succeeded, where, "200 with an order", exchange.said)
    if not exchange.succeeded:
        return
    document = read_json(exchange.body)
    order = document.value.get("order") if isinstance(document.value, dict) else None
    if not isinstance(order, dict):
        return  # `_judge_success` has reported the missing order
    extra = sorted(document.value.keys() - {"order", "message"}) + sorted(order.keys() - FIRM_KEYS)
    yield judged("firm.one-key", not extra, where, "documented keys only", Said(", ".join(extra)))
    bad = _bad_member(order)
    expected = "nine members: amounts as strings of digits, expiry an integer, addresses 0x"
    yield judged("firm.order-form", not bad, where, expected, Said(bad))
    if not bad:
        yield Quoted(asking, exchange, order)


def _judge_success(asking: Asking, exchange: HttpExchange) -> Iterator[Result]:
    where = asking.where
    if not exchange.succeeded:
        yield fault("firm.quotes", where, "200 with an order: the grids hold this amount", exchange.said)
        return
    document = read_json(exchange.body)
    if document.fault or not isinstance(document.value, dict):
        yield fault("firm.quotes", where, "a JSON object", exchange.said)
        return
    yield passed("firm.quotes", where)
    expected = "`order`: a success without it says that the user is blacklisted"
    yield judged(
        "firm.order-present", isinstance(document.value.get("order"), dict), where, expected, exchange.said
    )
    message = document.value.get("message")
    yield judged("resources.message", message is None or isinstance(message, str), where, "a string", message)


def _bad_member(order: Mapping[str, Any]) -> str:
    """Describe the first missing or malformed member of an order; empty if all members are valid."""
    missing = sorted(FIRM_KEYS - order.keys())
    if missing:
        return f"without {', '.join(missing)}"
    try:
        for key in _AMOUNT_KEYS:
            parse_amount(order[key], key)
        for key in _ADDRESS_KEYS:
            parse_address(order[key], key)
    except InvalidInput as error:
        return error.detail
    expiry = order["expiry"]
    if not isinstance(expiry, int) or isinstance(expiry, bool) or not 0 <= expiry < 1 << 128:
        return f"expiry: expected a JSON integer, without fraction or exponent, got {shown(expiry)}"
    return "" if isinstance(order["signature"], str) else "signature is no string"


def judge_terms(quoted: Quoted, before: MakerMarket, after: MakerMarket, drift_bps: int) -> Iterator[Result]:
    """Judge whether an order repeats the request's tokens, taker and amount, and has the displayed price.

    Args:
        before, after: the maker's market just before and just after the quote.
        drift_bps: largest allowed distance of the price from the range between the prices of the two markets,
            basis points.
    """
    asking, order, where = quoted.asking, quoted.order, quoted.asking.where
    leg, body = asking.leg, asking.body
    for key in ("makerAsset", "takerAsset"):
        same = order[key].lower() == body[key].lower()
        yield judged("firm.echo-assets", same, where, f"{key} {body[key]}", order[key])
    same = order["taker"].lower() == body["takerAddress"].lower()
    yield judged("firm.echo-taker", same, where, f"taker {body['takerAddress']}", order["taker"])
    given = order[leg.given]
    yield judged(
        "firm.echo-amount", int(given) == asking.amount, where, f"{leg.given} {asking.amount}", given
    )
    expected = expected_range(before, after, asking.pair_id, leg, asking.amount)
    if expected is None or int(given) != asking.amount:
        return
    yield from _judge_price(quoted, expected, drift_bps)


def _judge_price(quoted: Quoted, expected: Range, drift_bps: int) -> Iterator[Result]:
    leg, where = quoted.asking.leg, quoted.asking.where
    amount = int(quoted.order[leg.computed])
    off = deviation_bps(amount, expected)
    if expected.still:
        wanted = f"{leg.computed} {expected.low}, at most {drift_bps} bps off"
    else:
        wanted = f"{leg.computed} from {expected.low} to {expected.high}, at most {drift_bps} bps off"
    got = Said(f"{amount}, {float(off):+.2f} bps")
    yield judged(f"firm.price-{leg.name}", abs(off) <= drift_bps, where, wanted, got)
    if expected.still and abs(off) <= drift_bps:
        side = "down, as the user receives it" if leg.user_receives else "up, as the user pays it"
        exact = f"{expected.low}: the walk over the grid, rounded {side}"
        yield judged("firm.rounding", amount == expected.low, where, exact, Said(str(amount)))


def judge_expiry(quoted: Quoted) -> Iterator[Result]:
    """Judge whether an order's expiry is in Unix seconds, and neither too near nor too far.

    The bounds are FIRM_EXPIRY_MIN_S and EXPIRY_FAR_S seconds after the request.
    """
    where, expiry = quoted.asking.where, quoted.order["expiry"]
    sent_s = quoted.exchange.sent_ms // 1000
    if expiry >= _MILLISECONDS_FROM:
        yield fault("firm.expiry-unit", where, "Unix seconds", Said(f"{expiry}: milliseconds?"))
        return
    yield passed("firm.expiry-unit", where)
    ahead = expiry - sent_s
    least = limits.FIRM_EXPIRY_MIN_S
    got = Said(f"{expiry}, {ahead} s ahead")
    yield judged("firm.expiry-life", ahead >= least - CLOCK_GRACE_S, where, f"at least {least} s ahead", got)
    yield judged("firm.expiry-far", ahead <= EXPIRY_FAR_S, where, f"at most {EXPIRY_FAR_S} s ahead", got)
