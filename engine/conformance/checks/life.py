"""How a pair ends: it is served `{}` for a period, then it is removed.

Every /pairs and /prices of the run is a sighting, and so are prices over the socket.

Source: spec 3.6.
"""

from collections.abc import Iterator, Sequence

from msgspec import Struct

from ..rules import Result, Said, judged, skipped


class Sighting(Struct, frozen=True):
    """What was seen at one time.

    Attributes:
        listed: pair ids of /pairs; None where only prices were seen.
        disabled: pair ids whose grid was `{}`, or had no level.
    """

    listed: frozenset[str] | None = None
    disabled: frozenset[str] = frozenset()


def judge_retirements(sightings: Sequence[Sighting]) -> Iterator[Result]:
    """Every pair that was removed had been disabled before."""
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
