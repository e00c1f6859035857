"""Judges the removal of pairs: a maker must serve `{}` as a pair's prices before it removes the pair.

The evidence is every answer of /pairs and /prices in the run, and every WebSocket message with prices.

Source: spec 3.6.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..rules import Result, Said, judged, skipped


class Sighting(Struct, frozen=True):
    """Listed and disabled pairs, as the answers of /pairs and /prices or a WebSocket message show them.

    Attributes:
        listed: pair ids of /pairs; None if the answer or message has prices only.
        disabled: ids of pairs whose price grid is `{}` or has no levels.
    """

    listed: frozenset[str] | None = None
    disabled: frozenset[str] = frozenset()


def judge_retirements(sightings: Sequence[Sighting]) -> Iterator[Result]:
    """Judge whether the prices of every pair removed from /pairs had been disabled before its removal.

    Args:
        sightings: listed and disabled pairs of all answers and messages of the run, earliest first.
    """
    listed: frozenset[str] = frozenset()
    disabled: set[str] = set()
    removed: list[tuple[str, bool]] = []
    for sighting in sightings:
        if sighting.listed is not None:
            removed += [(pair_id, pair_id in disabled) for pair_id in sorted(listed - sighting.listed)]
            listed = sighting.listed
        disabled |= sighting.disabled
    if not removed:
        yield skipped("life.retired", "no pair was removed during the run")
    for pair_id, was_disabled in removed:
        got = Said("removed while it was quoted")
        yield judged("life.retired", was_disabled, f"GET /pairs {pair_id}", "{} for its prices first", got)
