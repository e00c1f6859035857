"""The removal of pairs: a maker must serve `{}` for a pair's prices before it removes the pair.

Every /pairs and /prices of the run is a sighting, and so are prices from the WebSocket.

Source: spec 3.6.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..rules import Result, Said, judged, skipped


class Sighting(Struct, frozen=True):
    """The pairs listed and disabled in an answer or a WebSocket message.

    Attributes:
        listed: pair ids of /pairs; None if only prices were seen.
        disabled: pair ids with a grid of `{}` or without levels.
    """

    listed: frozenset[str] | None = None
    disabled: frozenset[str] = frozenset()


def judge_retirements(sightings: Sequence[Sighting]) -> Iterator[Result]:
    """Check that every removed pair had been disabled before its removal."""
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
