"""Paths through the tokens that a search considers (choices.md#quotes-and-routes)."""

from collections.abc import Mapping
from decimal import Decimal

from cambist.engine.trade.routing.search.paths import NEIGHBOURS_MAX, PATHS_MAX, find_paths, pairs_apart

A, B, C, D, E = (bytes([number]) * 20 for number in range(5))


def _around(edges: Mapping[tuple[bytes, bytes], int]) -> Mapping[bytes, Mapping[bytes, Decimal]]:
    found: dict[bytes, dict[bytes, Decimal]] = {}
    for (one, other), liquidity in edges.items():
        found.setdefault(one, {})[other] = found.setdefault(other, {})[one] = Decimal(liquidity)
    return found


def _paths(
    edges: Mapping[tuple[bytes, bytes], int], src: bytes = A, dest: bytes = D
) -> list[tuple[bytes, ...]]:
    around = _around(edges)
    return [*find_paths(src, dest, lambda token: around.get(token, {}))]


def test_paths_have_up_to_four_tokens_none_of_them_twice() -> None:
    edges = {(A, B): 1, (B, C): 1, (C, D): 1, (B, D): 1}
    assert _paths(edges) == [(A, B, D), (A, B, C, D)]
    assert _paths(edges | {(C, E): 1}, dest=E) == [(A, B, C, E)]
    assert _paths({(A, B): 1, (B, C): 1, (C, E): 1, (E, D): 1}) == []
    assert _paths({}) == []


def test_the_thinnest_pair_decides_the_order_and_the_direct_path_stands_first() -> None:
    edges = {(A, D): 1, (A, B): 900, (B, D): 20, (A, C): 30, (C, D): 500}
    assert _paths(edges) == [(A, D), (A, C, D), (A, B, D)]


def test_the_thinnest_pair_of_a_long_path_decides_wherever_it_stands() -> None:
    shorter = {(A, E): 50, (E, D): 50}
    for liquidity in ((5, 500, 500), (500, 5, 500), (500, 500, 5)):
        longer = dict(zip(((A, B), (B, C), (C, D)), liquidity, strict=True))
        assert _paths(shorter | longer) == [(A, E, D), (A, B, C, D)]


def test_of_equal_liquidity_the_shorter_path_stands_first() -> None:
    edges = {(A, B): 5, (B, D): 5, (B, C): 5, (C, D): 5}
    assert _paths(edges) == [(A, B, D), (A, B, C, D)]


def test_only_the_most_liquid_neighbours_are_followed() -> None:
    middles = [bytes([number]) * 20 for number in range(10, 10 + NEIGHBOURS_MAX + 3)]
    edges = {(A, D): 1} | {(A, middle): 100 + number for number, middle in enumerate(middles)}
    edges |= {(middle, D): 1_000 - number for number, middle in enumerate(middles)}
    found = _paths(edges)
    assert len(found) == PATHS_MAX
    assert found[0] == (A, D)
    assert found[1:] == [(A, middle, D) for middle in middles[:-PATHS_MAX:-1]]


def test_the_destination_is_reached_however_little_liquidity_it_has() -> None:
    middles = [bytes([number]) * 20 for number in range(10, 10 + NEIGHBOURS_MAX + 3)]
    edges = {(A, B): 50, (B, D): 1} | {(B, middle): 1_000 for middle in middles}
    assert _paths(edges) == [(A, B, D)]


def test_pairs_of_paths_without_a_pair_of_tokens_in_common() -> None:
    paths = ((A, D), (A, B, D), (A, C, D), (A, B, C, D), (A, C, B, D))
    assert pairs_apart(paths) == ((0, 1), (0, 2), (0, 3), (0, 4), (1, 2))
