"""Judges a maker's WebSocket messages: the first message, updates, and agreement with GET /prices.

By spec 3.8.1 to 3.8.3 an entry replaces its pair's whole grid: an absent side is cleared, and `{}` disables
the pair. Pairs without an entry are unchanged.

If prices move over GET /prices, the WebSocket must bring a message with prices within twice the duration of
the option --watch.

Source: spec 3.11; choices.md#makers-at-the-venue.
Choice: Socket and HTTP agree on a pair if the socket showed the polled grid between the request and a second
    after the answer, or if the best prices lie within the drift bound.
"""

from collections.abc import Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any

from msgspec import Struct

from .....config.limits import BPS_ONE
from ..exchange import HttpExchange, read_json
from ..rules import Result, Said, fault, gap, judged, passed, skipped
from .grids import SIDES, is_disabled, judge_grid
from .resources import RESOURCES, entries_of, judge_blacklist, judge_pair, judge_token

KEYS = frozenset((*RESOURCES, "message"))
GRACE_MS = 1_000
_GRID_CHECKS = [
    "grid-form",
    "side-form",
    "level-form",
    "strings",
    "decimals",
    "positive",
    "sorted",
    "uncrossed",
]
_OVER_SOCKET = {f"prices.{name}": "stream.grids" for name in _GRID_CHECKS} | {
    "prices.unknown-keys": "stream.strict-entries",
    "prices.both-sides": "stream.strict-entries",
}
_STRICT_ENTRIES = ("unknown-keys", "decimals-zero", "description")
_ADVICE = ("pairs.id", "tokens.unique-addresses")


class Heard(Struct, frozen=True):
    """A message received over the maker's WebSocket, with its time.

    Attributes:
        at_ms: wall clock when the message was read, Unix milliseconds.
        raw: the message's bytes.
    """

    at_ms: int
    raw: bytes


class PriceState(Struct, frozen=True):
    """Price grids of all pairs, as they are after a WebSocket message with prices.

    Attributes:
        at_ms: wall clock when the message was read, Unix milliseconds.
        grids: price grids as decoded JSON, by pair id.
    """

    at_ms: int
    grids: Mapping[str, Any]


class PriceSample(Struct, frozen=True):
    """Price grids of a GET /prices that the harness made while the WebSocket was open.

    Attributes:
        sent_ms, done_ms: wall clock before and after the request, Unix milliseconds.
        grids: price grids as decoded JSON, by pair id.
    """

    sent_ms: int
    done_ms: int
    grids: Mapping[str, Any]


def judge_first(heard: Heard, http: Sequence[Mapping[str, HttpExchange]]) -> Iterator[Result]:
    """Judge whether the first WebSocket message is complete, and agrees with the HTTP endpoints.

    Args:
        heard: the first message.
        http: the four endpoints' answers from before the handshake, and those from after the message;
            agreement with either is enough.
    """
    where = "first message"
    message = read_json(heard.raw).value
    if not isinstance(message, dict):
        yield fault("stream.object", where, "a JSON object", Said(heard.raw[:200].decode("utf-8", "replace")))
        return
    lacking = [
        name for name in RESOURCES if not isinstance(message.get(name), list if name == "blacklist" else dict)
    ]
    got = Said(f"without {', '.join(lacking)}")
    yield judged("stream.first-complete", not lacking, where, "tokens, pairs, prices and blacklist", got)
    yield from judge_content(where, message)
    for name in RESOURCES:
        if name in lacking:
            continue
        bodies = [_comparable(name, entries_of(name, answers[name])) for answers in http]
        # A resource may have changed between the two HTTP answers: the message may agree with either.
        known = [body for body in bodies if body is not None]
        ours = _comparable(name, message.get(name))
        if ours is None or not known:
            continue
        why = _difference(ours, known)
        yield judged("stream.first-agrees", not why, f"{where} {name}", f"what GET /{name} says", Said(why))


def judge_content(where: str, message: Mapping[str, Any]) -> Iterator[Result]:
    """Judge a WebSocket message by the rules for all messages: known keys, no `order`, valid grids."""
    yield passed("stream.object", where)
    yield judged("stream.no-order", "order" not in message, where, "never `order`", "order")
    unknown = sorted(message.keys() - KEYS - {"order"})
    yield judged("stream.keys", not unknown, where, f"of {', '.join(sorted(KEYS))}", Said(", ".join(unknown)))
    text = message.get("message")
    yield judged("stream.message", text is None or isinstance(text, str), where, "a string", text)
    prices = message.get("prices", {})
    if not isinstance(prices, dict):
        yield fault("stream.grids", where, "`prices`: an object", prices)
    else:
        for pair_id, grid in prices.items():
            yield from judge_grid(f"{where} {pair_id}", grid, rename=_OVER_SOCKET)


def judge_update(number: int, heard: Heard, content: dict[str, Any]) -> Iterator[Result]:
    """Judge a WebSocket message after the first, and add its entries to `content`.

    Args:
        number: the message's position in the stream, from 1.
        content: tokens, pairs and blacklist received so far; see `content_of`.
    """
    where = f"message {number}"
    message = read_json(heard.raw).value
    if not isinstance(message, dict):
        yield fault("stream.object", where, "a JSON object", Said(heard.raw[:200].decode("utf-8", "replace")))
        return
    yield from judge_content(where, message)
    # Tokens first: a new pair may be of tokens that the same message brings.
    for name in ("tokens", "pairs"):
        entries = message.get(name, {})
        if not isinstance(entries, dict):
            yield fault("stream.entries", where, f"`{name}`: an object", entries)
            continue
        for key, entry in entries.items():
            found = (
                judge_token(f"{where} {key}", entry)
                if name == "tokens"
                else judge_pair(f"{where} {key}", key, entry, content["tokens"])
            )
            yield from map(_as_entry, (result for result in found if result.check not in _ADVICE))
        # Compared before the entries are added: afterwards each entry would seem to be sent again.
        if entries:
            again = sorted(key for key, entry in entries.items() if content[name].get(key) == entry)
            expected = f"new or changed {name} only"
            yield judged("stream.changes-only", not again, where, expected, Said(", ".join(again[:3])))
            content[name] |= entries
    yield from _judge_new_addresses(where, message, content)


def _as_entry(result: Result) -> Result:
    strict = result.check.partition(".")[2] in _STRICT_ENTRIES
    check = "stream.strict-entries" if strict else "stream.entries"
    return Result(check, result.status, result.where, result.expected, result.got)


def _judge_new_addresses(where: str, message: Mapping[str, Any], content: dict[str, Any]) -> Iterator[Result]:
    addresses = message.get("blacklist", [])
    if not isinstance(addresses, list):
        yield fault("stream.blacklist-new", where, "`blacklist`: an array", addresses)
        return
    if not addresses:
        return
    for result in judge_blacklist(f"{where} blacklist", addresses):
        yield Result("stream.blacklist-new", result.status, result.where, result.expected, result.got)
    known: set[str] = content["blacklist"]
    again = [address for address in addresses if str(address).lower() in known]
    known.update(str(address).lower() for address in addresses)
    yield judged(
        "stream.blacklist-new", not again, where, "new addresses only", Said(", ".join(map(str, again[:3])))
    )


def content_of(first: Heard) -> dict[str, Any]:
    """Return the content of the first WebSocket message, which `judge_update` extends.

    The keys are `tokens` and `pairs` (entries by id) and `blacklist` (set of lower-case addresses). A member
    that is missing or malformed is empty.
    """
    message = read_json(first.raw).value
    message = message if isinstance(message, dict) else {}
    entries = {name: message.get(name) for name in ("tokens", "pairs")}
    blacklist = message.get("blacklist")
    return {name: dict(found) if isinstance(found, dict) else {} for name, found in entries.items()} | {
        "blacklist": {str(address).lower() for address in blacklist} if isinstance(blacklist, list) else set()
    }


def price_states(messages: Sequence[Heard]) -> list[PriceState]:
    """List the price grids of all pairs as they are after each WebSocket message with prices."""
    states: list[PriceState] = []
    grids: dict[str, Any] = {}
    for heard in messages:
        message = read_json(heard.raw).value
        prices = message.get("prices") if isinstance(message, dict) else None
        if isinstance(prices, dict):
            grids = grids | prices
            states.append(PriceState(heard.at_ms, grids))
    return states


def judge_agreement(
    states: Sequence[PriceState], samples: Sequence[PriceSample], drift_bps: int
) -> Iterator[Result]:
    """Judge whether each GET /prices agrees with the grids that the WebSocket sent at about the same time.

    Args:
        drift_bps: largest allowed distance between the best prices of a side whose levels differ, basis
            points.
    """
    if not states or not samples:
        yield gap("stream.agrees", "no prices over both ways")
        return
    for sample in samples:
        before = [state for state in states if state.at_ms <= sample.sent_ms]
        near = [state for state in states if sample.sent_ms < state.at_ms <= sample.done_ms + GRACE_MS]
        near = before[-1:] + near
        if not near:
            continue
        for pair_id in sorted(sample.grids.keys() | near[-1].grids.keys()):
            grid = sample.grids.get(pair_id, {})
            candidates = [state.grids.get(pair_id, {}) for state in near]
            held = any(_agree(grid, candidate, drift_bps) for candidate in candidates)
            expected = f"the grid of GET /prices, {_best(grid)}"
            got = Said(f"the socket has {_best(candidates[-1])}")
            yield judged("stream.agrees", held, pair_id, expected, got)


def has_moved(samples: Sequence[PriceSample]) -> list[str]:
    """List the ids of pairs whose grids in GET /prices changed after the first sample, sorted."""
    first = samples[0].grids if samples else {}
    return sorted(
        {
            pair_id
            for sample in samples[1:]
            for pair_id in first.keys() | sample.grids.keys()
            if sample.grids.get(pair_id, {}) != first.get(pair_id, {})
        }
    )


def judge_following(moved: Sequence[str], updates: int, listened_s: float) -> Iterator[Result]:
    """Judge whether prices that changed over HTTP also came over the WebSocket.

    Args:
        moved: ids of pairs whose grids changed over HTTP.
        updates: number of WebSocket messages with prices after the first message.
        listened_s: seconds for which the harness received messages.
    """
    if not moved:
        yield skipped("stream.follows", "no prices moved while listening: see --watch")
        return
    where = f"{', '.join(moved[:3])}, moved over GET /prices"
    got = Said(f"no prices behind the first message in {listened_s:.1f} s")
    yield judged("stream.follows", updates, where, "messages with `prices`", got)


def _agree(one: Any, other: Any, drift_bps: int) -> bool:
    if is_disabled(one) or is_disabled(other):
        return is_disabled(one) and is_disabled(other)
    if not isinstance(one, dict) or not isinstance(other, dict):
        return False
    return all(_near(one.get(side) or [], other.get(side) or [], drift_bps) for side in SIDES)


def _near(one: Any, other: Any, drift_bps: int) -> bool:
    if one == other:
        return True
    if not one or not other:
        return False
    try:
        first, second = Decimal(one[0][0]), Decimal(other[0][0])
    except (ArithmeticError, TypeError, LookupError, ValueError):
        return False
    return abs(first - second) * BPS_ONE <= drift_bps * first


def _best(grid: Any) -> str:
    if is_disabled(grid):
        return "disabled"
    if not isinstance(grid, dict):
        return "no grid"
    sides = {side: grid[side] for side in SIDES if isinstance(grid.get(side), list) and grid[side]}
    return ", ".join(f"{side} {levels[0]}" for side, levels in sides.items())[:100]


def _comparable(name: str, content: Any) -> dict[str, Any] | None:
    """Entries of a resource, reduced to the values that HTTP and WebSocket must share; None without entries.

    Args:
        name: `tokens`, `pairs`, `prices` or `blacklist`; of `prices` only the pair ids are compared, since
            prices move.
    """
    if content is None:
        return None
    if name == "blacklist":
        return {str(address).lower(): True for address in content}
    if name == "prices":
        return dict.fromkeys(content, True)
    return {key: _meant(name, entry) for key, entry in content.items()}


_MEANT = {"tokens": ("address", "decimals", "type"), "pairs": ("base", "quote")}


def _meant(name: str, entry: Any) -> Any:
    """Return the members of a token or pair that must agree between HTTP and WebSocket.

    Other members are informative and may change any time.
    """
    if not isinstance(entry, dict):
        return entry
    address = entry.get("address")
    lower = {"address": address.lower()} if isinstance(address, str) else {}
    return {member: (entry | lower).get(member) for member in _MEANT[name]}


def _difference(ours: Mapping[str, Any], theirs: Sequence[Mapping[str, Any]]) -> str:
    """Describe how WebSocket entries differ from HTTP; empty if each entry matches some HTTP answer.

    Args:
        ours, theirs: entries of the WebSocket message, and of each HTTP answer.
    """
    missing = sorted(key for key in theirs[0] if all(key in body for body in theirs) and key not in ours)
    if missing:
        return f"without {', '.join(missing[:3])}"
    unknown = sorted(key for key in ours if not any(key in body for body in theirs))
    if unknown:
        return f"with {', '.join(unknown[:3])} besides"
    other = [key for key in ours if not any(body.get(key) == ours[key] for body in theirs)]
    return f"another {', '.join(sorted(other)[:3])}" if other else ""
