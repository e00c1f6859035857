"""Where the pairs of one market maker stand: which are routed, and why the others are not. Pure."""

from collections.abc import Mapping
from enum import StrEnum

from msgspec import Struct


class PairStanding(StrEnum):
    """Why a pair is routed, or is not."""

    LIVE = "live"
    WITHHELD = "withheld"  # the whole maker is
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


class CacheStatistics(Struct, frozen=True):
    """One moment of a cache.

    Attributes:
        pairs: standing -> how many pairs have it.
        reasons: pair id -> why it is not live, in words.
        withheld: why the whole maker is; empty while it is not.
        refused: `tokens`, `pairs`, `prices`, `blacklist` -> entries refused since the start.
        blacklisted: addresses that are kept.
        updated_ms: when something was last applied; 0 before that.
    """

    pairs: Mapping[PairStanding, int]
    reasons: Mapping[str, str]
    withheld: tuple[str, ...]
    refused: Mapping[str, int]
    blacklisted: int
    updated_ms: int
