"""Planted faults: the type of a fault, the functions that make one, and the faults of sockets and of bytes
that no client sends. `faulty_table` has all faults.
"""

import json
import re
from collections.abc import Callable
from typing import Any

import msgspec

from support.conformance.faulty_maker import BLACKLISTED, USDC, Maker

Apply = Callable[[Maker], None]


class Planted(msgspec.Struct, frozen=True):
    """A planted fault.

    Attributes:
        expects: ids of the checks that must fail, each of them and none besides.
        apply: plants it.
        only: patterns of the checks that run; by default the topics of `expects`.
        strict: run with --strict.
    """

    expects: frozenset[str]
    apply: Apply
    only: tuple[str, ...] = ()
    strict: bool = False

    @property
    def patterns(self) -> tuple[str, ...]:
        """Patterns for `Selection.only`."""
        topics = {check.partition(".")[0] for check in self.expects}
        return self.only or tuple(sorted(f"{topic}.*" for topic in topics))


def plant(*expects: str, only: tuple[str, ...] = (), strict: bool = False) -> Callable[[Apply], Planted]:
    """A fault that a function plants."""
    return lambda apply: Planted(frozenset(expects), apply, only, strict)


def flags(*names: str) -> Apply:
    """Plants leniences and habits."""
    return lambda maker: maker.flags.update(names)


def flagged(names: str, *expects: str, only: tuple[str, ...] = ()) -> Planted:
    """A fault that is a lenience or a habit; several flags are joined by spaces."""
    return Planted(frozenset(expects), flags(*names.split()), only)


def entry(resource: str, key: str, changes: dict[str, Any], *expects: str, strict: bool = False) -> Planted:
    """A fault: an entry of a resource with other members."""

    def change(content: dict[str, Any]) -> dict[str, Any]:
        return content | {key: content.get(key, {}) | changes}

    def apply(maker: Maker) -> None:
        maker.entries[resource] = change

    return Planted(frozenset(expects), apply, (f"{resource}.*",), strict)


def grid(changes: Any, *expects: str, strict: bool = False) -> Planted:
    """A fault in the grid of WBTC/USDC, which no quote of `prices.*` needs."""

    def apply(maker: Maker) -> None:
        maker.entries["prices"] = lambda prices: prices | {"WBTC/USDC": changes}

    return Planted(frozenset(expects), apply, ("prices.*",), strict)


def body(resource: str, change: Callable[[bytes], bytes], *expects: str, strict: bool = False) -> Planted:
    """A fault: a resource's body with other bytes."""

    def apply(maker: Maker) -> None:
        maker.raw[resource] = change

    return Planted(frozenset(expects), apply, (f"{resource}.*", "resources.*"), strict)


def terms(change: Callable[[Maker, dict[str, Any]], None], *expects: str) -> Planted:
    """A fault: the maker signs other terms."""

    def apply(maker: Maker) -> None:
        maker.terms = lambda signed: change(maker, signed)

    return Planted(frozenset(expects), apply, ("firm.*",))


def order(change: Callable[[dict[str, Any]], None], *expects: str) -> Planted:
    """A fault: the order in the answer differs from the signed order."""

    def apply(maker: Maker) -> None:
        maker.order = change

    return Planted(frozenset(expects), apply, ("firm.*",))


def domain(**changes: object) -> Planted:
    """A fault: the maker signs for another domain."""

    def apply(maker: Maker) -> None:
        maker.domain |= changes

    return Planted(frozenset({"firm.signature"}), apply, ("firm.*",))


def first(change: Callable[[dict[str, Any]], Any], *expects: str) -> Planted:
    """A fault: another first message of the socket."""

    def apply(maker: Maker) -> None:
        maker.first = change

    return Planted(frozenset(expects), apply, ("stream.*",))


def update(change: Callable[[dict[str, Any]], Any], *expects: str) -> Planted:
    """A fault: other updates of the socket."""

    def apply(maker: Maker) -> None:
        maker.updates = change

    return Planted(frozenset(expects), apply, ("stream.*",))


def _incomplete_later(maker: Maker) -> None:
    start = maker.counter
    maker.first = lambda message: message if maker.counter == start + 1 else {"prices": message["prices"]}


def _drop_blacklist(message: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in message.items() if key != "blacklist"}


def _cross(message: dict[str, Any]) -> dict[str, Any]:
    return message | {"prices": {"WETH/USDC": {"bids": [["3001", "1"]], "asks": [["3000.5", "1"]]}}}


_OLD_GRID = {"bids": [["2800", "1"]], "asks": [["2801", "1"]]}
STREAM: dict[str, Planted] = {
    "first message incomplete": first(_drop_blacklist, "stream.first-complete", "stream.reconnect"),
    "first message only once": plant("stream.reconnect", only=("stream.*",))(_incomplete_later),
    "first message of another book": first(
        lambda message: message | {"pairs": {}, "prices": {}}, "stream.first-agrees", "stream.agrees"
    ),
    "an order in the updates": update(lambda message: message | {"order": {}}, "stream.no-order"),
    "a message of the updates no text": update(lambda message: message | {"message": {}}, "stream.message"),
    "the same tokens and pairs again": flagged("repeats", "stream.changes-only"),
    "updates are arrays": update(lambda message: [message], "stream.object", "stream.follows"),
    "updates are no JSON": update(lambda message: "tick", "stream.object", "stream.follows"),
    "updates cross": update(_cross, "stream.grids"),
    "a token of the updates cut": update(
        lambda message: (
            message | {"tokens": {"DAI": {"address": USDC, "name": json.dumps(message["prices"])}}}
        ),
        "stream.entries",
    ),
    "a token deleted over the socket": update(
        lambda message: message | {"tokens": {"DAI": None}}, "stream.entries", "stream.changes-only"
    ),
    "a pair deleted over the socket": update(
        lambda message: message | {"pairs": {"WETH/DAI": None}}, "stream.entries", "stream.changes-only"
    ),
    "a pair removed by null": update(
        lambda message: message | {"prices": message["prices"] | {"DAI/USDC": None}},
        "stream.grids",
        "stream.agrees",
    ),
    "tokens of the updates in an array": update(lambda message: message | {"tokens": []}, "stream.entries"),
    "prices of an hour ago over the socket": update(
        lambda message: (
            message | {"prices": {"WETH/USDC": {"bids": [["2800", "1"]], "asks": [["2801", "1"]]}}}
        ),
        "stream.agrees",
    ),
    "the blacklist again": update(
        lambda message: message | {"blacklist": [BLACKLISTED]}, "stream.blacklist-new"
    ),
    "the socket disables what HTTP quotes": update(
        lambda message: message | {"prices": {"WBTC/USDC": {}}}, "stream.agrees"
    ),
    "nothing behind the first message while prices move": flagged("mute-socket", "stream.follows"),
    "all but prices behind the first message": update(
        lambda message: {key: value for key, value in message.items() if key != "prices"}, "stream.follows"
    ),
    "the socket open to all": flagged("open-socket", "stream.unsigned", "stream.wrong-signature"),
    "nothing on the socket": flagged("silent-socket", "stream.first-complete", "stream.reconnect"),
    "leaves while it trades": flagged("leaves", "stream.stays"),
    "no pong": flagged("deaf-socket", "stream.ping", only=("stream.ping", "stream.handshake")),
    "dies of broken frames": flagged("dies-on-frames", "stream.after"),
    "strict: a side missing on the socket": Planted(
        frozenset({"stream.strict-entries"}),
        lambda maker: setattr(
            maker,
            "updates",
            lambda message: (
                message | {"prices": {"WETH/DAI": {"bids": message["prices"]["WETH/USDC"]["bids"]}}}
            ),
        ),
        ("stream.strict-entries",),
        strict=True,
    ),
    "dies of a client's message": flagged(
        "dies-on-chatter", "stream.one-way", only=("stream.one-way", "stream.handshake")
    ),
}


def framed(pattern: bytes, by: bytes, *expects: str) -> Planted:
    """A fault of framing: all matches within each answer's head are other bytes."""

    def spoil(raw: bytes) -> bytes:
        head, end, body = raw.partition(b"\r\n\r\n")
        return re.sub(pattern, by, head + end) + body

    return Planted(frozenset(expects), lambda maker: setattr(maker, "wire", spoil))


_LENGTH = rb"(?i)content-length: (\d+)\r\n"
FRAMING: dict[str, Planted] = {
    "an answer of HTTP/1.0": framed(rb"HTTP/1\.1", b"HTTP/1.0", "framing.version"),
    "lines that end in LF": framed(rb"\r\n", b"\n", "framing.line-ends"),
    "a folded field": framed(_LENGTH, rb"Content-Length: \1\r\nX-Long: a\r\n b\r\n", "framing.folds"),
    "white space ahead of a colon": framed(_LENGTH, rb"Content-Length : \1\r\n", "framing.colons"),
    "an equal length twice": framed(
        _LENGTH, rb"Content-Length: \1\r\nContent-Length: \1\r\n", "framing.length"
    ),
    "a list of equal lengths": framed(_LENGTH, rb"Content-Length: \1, \1\r\n", "framing.length"),
    "a body that ends with the connection": framed(_LENGTH, b"", "framing.length", "framing.persists"),
    "a connection for each answer": framed(
        _LENGTH, rb"Content-Length: \1\r\nConnection: close\r\n", "framing.persists"
    ),
}
"""Name -> framing that a client may take: each is advice."""

HOSTILE: dict[str, Planted] = {
    "dies of noise": flagged("dies", "hostile.survives", only=("hostile.*",)),
    "no answer to noise": flagged("sulks", "hostile.garbage", only=("hostile.garbage",)),
    "nods to anything": flagged(
        "nods",
        "hostile.garbage",
        "hostile.large-head",
        "hostile.large-body",
        "hostile.deep-json",
        "hostile.two-lengths",
        "hostile.length-and-chunked",
        "hostile.bad-length",
        "hostile.bad-chunk",
        "hostile.bad-head",
        only=("hostile.*",),
    ),
    "answers out of order": flagged("shuffles", "hostile.pipelined", only=("hostile.pipelined",)),
    "one connection at a time": flagged(
        "one-at-a-time",
        "hostile.half-request",
        "hostile.survives",
        only=("hostile.half-request", "hostile.survives"),
    ),
    "expects a head in one piece": flagged(
        "one-read", "hostile.split-request", only=("hostile.split-request",)
    ),
    "forgives lengths": flagged(
        "forgives-lengths", "hostile.two-lengths", "hostile.length-and-chunked", only=("hostile.*",)
    ),
}
