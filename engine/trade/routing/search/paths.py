"""Finds the paths of tokens that a swap's route may take from source to destination. Pure.

A path is two to four different tokens. The search follows each token's most liquid neighbours only, and keeps
the paths whose least liquid pair is most liquid; the direct path is always kept.

Source: choices.md#quotes-and-routes; spec 1.13.17: at most four tokens.
Choice: `liquidityUSD` of a pair is the sum over the makers that may take part. The sum orders and prunes the
    candidates of route search, and never changes a route's worth.
"""

from collections.abc import Callable, Mapping
from decimal import Decimal
from functools import lru_cache
from itertools import combinations, pairwise

from .....config import limits

NEIGHBOURS_MAX = 12  # neighbours of a token that are followed, besides the destination
PATHS_MAX = 10  # paths that are priced
_PAIRS_KEPT_MAX = 1_024  # sets of paths whose pairs are kept

Path = tuple[bytes, ...]


def find_paths(
    src: bytes, dest: bytes, around: Callable[[bytes], Mapping[bytes, Decimal]]
) -> tuple[Path, ...]:
    """List the paths of tokens from a source to a destination: the direct path, then the most liquid first.

    Args:
        around: token -> {token that it is traded with: liquidity of the pair, US dollars}.
    """
    found: list[tuple[Decimal, int, Path]] = []
    nearest: dict[bytes, Mapping[bytes, Decimal]] = {}

    def follow(path: Path, thinnest: Decimal | None) -> None:
        token = path[-1]
        if token not in nearest:
            nearest[token] = around(token)
        near = nearest[token]
        if dest in near:
            bottleneck = near[dest] if thinnest is None else min(thinnest, near[dest])
            found.append((-bottleneck, len(path), (*path, dest)))
        if len(path) + 2 > limits.ROUTE_TOKENS_MAX:  # a longer path adds a token here, and `dest`
            return
        onward = (other for other in near if other != dest and other not in path)
        for other in sorted(onward, key=lambda other: (-near[other], other))[:NEIGHBOURS_MAX]:
            follow((*path, other), near[other] if thinnest is None else min(thinnest, near[other]))

    follow((src,), None)
    # The direct path first, however thin: the cut to PATHS_MAX never drops it. Equal liquidity is decided by
    # the addresses, here and above, so that every process finds the same paths.
    found.sort(key=lambda row: (len(row[2]) > 2, row))
    return tuple(path for _, _, path in found[:PATHS_MAX])


@lru_cache(_PAIRS_KEPT_MAX)
def pairs_apart(paths: tuple[Path, ...]) -> tuple[tuple[int, int], ...]:
    """List, by index, the combinations of two paths that have no token pair in common, in either direction.

    Two such paths share no books, so that both fill independently.
    """
    steps = [{frozenset(step) for step in pairwise(path)} for path in paths]
    return tuple(
        (one, other) for one, other in combinations(range(len(paths)), 2) if not steps[one] & steps[other]
    )
