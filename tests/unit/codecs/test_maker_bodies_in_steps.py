"""A large body that is decoded entry by entry is the same as one that is decoded at once."""

from collections.abc import Generator
from typing import Any

import msgspec
import pytest

from cambist.codecs.messages.maker_messages import (
    decode_blacklist,
    decode_pairs,
    decode_prices,
    decode_stream_message,
    decode_tokens,
)
from cambist.config.errors import InvalidInput
from cambist.config.limits import MAKER_ENTRIES_MAX, REFUSED_ENTRIES_MAX

TOKEN = {"address": "0x" + "a1" * 20, "decimals": 18, "type": "ERC20"}
GRID = {"bids": [["1.5", "2"]] * 20, "asks": [["1.6", "2"]] * 20}
COUNT = 2_000


def entries(entry: Any, bad: Any) -> dict[str, Any]:
    return {f"E{at}": bad if at % 100 == 7 else entry for at in range(COUNT)}


BODIES: dict[str, tuple[Any, dict[str, Any]]] = {
    "tokens": (decode_tokens, {"tokens": entries(TOKEN, TOKEN | {"type": "ERC721"}), "message": "hello"}),
    "pairs": (
        decode_pairs,
        {"pairs": entries({"base": "A", "quote": "B", "liquidityUSD": 1.5}, {"base": 1})},
    ),
    "prices": (decode_prices, {"prices": entries(GRID, {"bids": [[1, 2]]}), "message": None}),
    "blacklist": (decode_blacklist, {"blacklist": [*(["0x" + "bb" * 20] * COUNT), 7]}),
    "message": (
        decode_stream_message,
        {"prices": entries(GRID, [1]), "tokens": {"A": TOKEN}, "blacklist": []},
    ),
}


def finished(steps: Generator[None, None, Any]) -> tuple[Any, int]:
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


@pytest.mark.parametrize(("decode", "body"), BODIES.values(), ids=BODIES)
def test_steps_come_to_the_same(decode: Any, body: dict[str, Any]) -> None:
    raw = msgspec.json.encode(body)
    decoded, steps = finished(decode.in_steps(raw))
    assert decoded == decode(raw)
    assert decoded.refused
    assert steps >= COUNT


def test_small_body_takes_no_step() -> None:
    raw = msgspec.json.encode({"prices": {"A/B": GRID}})
    assert finished(decode_prices.in_steps(raw)) == (decode_prices(raw), 0)


@pytest.mark.parametrize(
    "raw",
    [
        b'{"prices":{"A":"' + b"x" * 100_000,
        msgspec.json.encode({"prices": dict.fromkeys(map(str, range(REFUSED_ENTRIES_MAX + 1)), "x" * 99)}),
        msgspec.json.encode({"prices": dict.fromkeys(map(str, range(MAKER_ENTRIES_MAX + 1)), GRID)}),
    ],
    ids=["cut", "noise", "too many"],
)
def test_large_body_that_is_none_is_refused(raw: bytes) -> None:
    with pytest.raises(InvalidInput):
        finished(decode_prices.in_steps(raw))
    with pytest.raises(InvalidInput):
        decode_prices(raw)
