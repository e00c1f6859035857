"""The planted faults of sockets and of bytes that no client sends; `faulty_table` has all."""

import json
from typing import Any

from support.conformance.faulty_maker import BLACKLISTED, USDC, Maker
from support.conformance.faulty_planting import Planted, first, flagged, plant, update


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
