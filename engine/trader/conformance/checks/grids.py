"""Functions that judge a price grid, i.e. a pair's bids and asks: its levels, sides and book.

The input is the raw JSON of a `prices` entry, from GET /prices or a WebSocket message. Results have the check
ids of /prices, such as `prices.sorted`; the caller may map them to others, such as `stream.grids`.

Source: spec 3.4, 3.8; interop.md section 4.
"""

from collections.abc import Iterator, Mapping
from decimal import Decimal
from itertools import pairwise
from typing import Any

from .....codecs.amounts import parse_decimal
from .....config.errors import InvalidInput
from ..rules import Result, Said, fault, judged, passed

SIDES = ("bids", "asks")


def judge_grid(where: str, grid: object, *, rename: Mapping[str, str] | None = None) -> Iterator[Result]:
    """Judge the price grid of a pair by all rules of its levels, its sides and its book.

    Args:
        where: name of the grid in findings, e.g. `GET /prices WETH/USDC`.
        grid: the `prices` entry of the pair as decoded JSON.
        rename: check id -> id to report instead, for grids from the WebSocket; a result is dropped if its
            check is not in `rename`.
    """
    for result in _judge_grid(where, grid):
        if rename is None:
            yield result
        elif result.check in rename:
            yield Result(rename[result.check], result.status, result.where, result.expected, result.got)


def _judge_grid(where: str, grid: object) -> Iterator[Result]:
    if not isinstance(grid, dict):
        yield fault("prices.grid-form", where, "an object with `bids` and `asks`, or {}", grid)
        return
    yield passed("prices.grid-form", where)
    unknown = sorted(grid.keys() - set(SIDES))
    yield judged(
        "prices.unknown-keys", not unknown, where, "no key beside bids and asks", Said(", ".join(unknown))
    )
    best: dict[str, Decimal] = {}
    for side in SIDES:
        if side not in grid:
            continue
        yield from _judge_side(f"{where}.{side}", grid[side], rising=side == "asks")
        prices = _prices(grid[side])
        if prices:
            best[side] = min(prices) if side == "asks" else max(prices)
    if len(best) == 2:
        yield judged(
            "prices.uncrossed",
            best["asks"] > best["bids"],
            where,
            "the best ask above the best bid",
            Said(f"bid {best['bids']}, ask {best['asks']}"),
        )
    if grid:
        lacking = [side for side in SIDES if side not in grid]
        yield judged(
            "prices.both-sides",
            not lacking,
            where,
            "both `bids` and `asks`, [] for an empty side",
            Said(f"without {' and '.join(lacking)}"),
        )


def _judge_side(where: str, side: object, *, rising: bool) -> Iterator[Result]:
    if not isinstance(side, list):
        yield fault("prices.side-form", where, "an array of [price, amount]", side)
        return
    yield passed("prices.side-form", where)
    for at, level in enumerate(side):
        yield from _judge_level(f"{where}[{at}]", level)
    prices = _prices(side)
    for at, (better, worse) in enumerate(pairwise(prices), 1):
        if better != worse and (worse > better) is not rising:
            expected = "the best price first: " + ("asks rise" if rising else "bids fall")
            yield fault("prices.sorted", f"{where}[{at}]", expected, Said(f"{worse} behind {better}"))
            return
    yield passed("prices.sorted", where)


def _judge_level(where: str, level: object) -> Iterator[Result]:
    if not isinstance(level, list) or len(level) != 2:
        yield fault("prices.level-form", where, "[price, amount], exactly two elements", level)
        return
    yield passed("prices.level-form", where)
    for name, text in zip(("price", "amount"), level, strict=True):
        if not isinstance(text, str):
            yield fault("prices.strings", f"{where} {name}", "a decimal string", text)
            continue
        yield passed("prices.strings", where)
        try:
            mantissa, _ = parse_decimal(text)
        except InvalidInput:
            yield fault("prices.decimals", f"{where} {name}", "digits with at most one point between", text)
            continue
        yield passed("prices.decimals", where)
        yield judged("prices.positive", mantissa, f"{where} {name}", "above zero", text)


def _prices(side: object) -> tuple[Decimal, ...]:
    """Return the prices of the well-formed levels of one side of a price grid."""
    prices = []
    for level in side if isinstance(side, list) else ():
        if isinstance(level, list) and level and isinstance(level[0], str):
            try:
                mantissa, scale = parse_decimal(level[0])
            except InvalidInput:
                continue
            prices.append(Decimal(mantissa).scaleb(-scale))
    return tuple(prices)


def is_disabled(grid: Any) -> bool:
    """Whether a price grid disables its pair, i.e. is `{}` or has no level on either side."""
    return isinstance(grid, dict) and not any(grid.get(side) for side in SIDES)
