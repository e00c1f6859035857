"""Standing of one maker's pairs: routed, or the reason why not. Pure."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct

from ..codecs.messages.maker_messages import PriceGrid


class PairStanding(StrEnum):
    """Whether a maker's pair is used for routes (LIVE), or the reason why not."""

    LIVE = "live"
    WITHHELD = "withheld"  # together with the whole maker
    RESTING = "resting"
    STALE = "stale"
    DOUBLED = "doubled"  # another pair id between the same two tokens is shown
    EMPTY = "empty"  # no level on either side
    DISABLED = "disabled"  # `{}`
    UNPRICED = "unpriced"  # absent from the prices
    REFUSED_GRID = "refused grid"
    UNPAIRED = "unpaired"  # absent from the pairs
    REFUSED_PAIR = "refused pair"
    UNKNOWN_TOKEN = "unknown token"  # noqa: S105
    REFUSED_TOKEN = "refused token"  # noqa: S105
    UNLISTED_TOKEN = "unlisted token"  # noqa: S105


REFUSED_STANDINGS = frozenset(
    (
        PairStanding.REFUSED_GRID,
        PairStanding.REFUSED_PAIR,
        PairStanding.REFUSED_TOKEN,
        PairStanding.UNKNOWN_TOKEN,
    )
)
"""Standings of pairs whose data the maker has to mend."""


class PairReport(Struct, frozen=True):
    """A pair of a maker as its cache holds it.

    Attributes:
        reason: text of the reason why the pair is not live; empty for a live pair.
        base, quote: addresses of the tokens, 20 bytes each; empty while unknown.
        confirmed_ms: Unix milliseconds of the last report of the prices; 0 before the first.
        grid: the last prices, routed or not; None without valid ones.
    """

    pair_id: str
    standing: PairStanding
    reason: str
    base: bytes
    quote: bytes
    confirmed_ms: int
    grid: PriceGrid | None


class CacheStatistics(Struct, frozen=True):
    """State of a maker's cache at one moment.

    Attributes:
        pairs: standing -> number of pairs.
        reasons: pair id -> text of the reason why the pair is not live.
        withheld: reasons that keep all of the maker's books out of routing; empty for none.
        refused: `tokens`, `pairs`, `prices`, `blacklist` -> number of entries refused since the start.
        blacklisted: number of blacklisted addresses.
        updated_ms: Unix milliseconds of the last applied answer or message; 0 before the first.
    """

    pairs: Mapping[PairStanding, int]
    reasons: Mapping[str, str]
    withheld: tuple[str, ...]
    refused: Mapping[str, int]
    blacklisted: int
    updated_ms: int
