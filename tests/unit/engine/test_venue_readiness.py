"""A venue is ready while some chain can be quoted: one that cannot takes no other out of a load balancer."""

from pathlib import Path

from support.quiet_venue import CHAIN_ID, DELTA_ONLY, MARKET_ONLY, QuietVenue, a_quiet_venue


def empty(venue: QuietVenue, chain_id: int) -> None:
    index = venue.app.places[chain_id].index
    for live in tuple(index.books()):
        index.drop(live.maker, live.base, live.quote)


async def test_a_chain_without_books_is_told_of_and_the_last_one_makes_it_not_ready(tmp_path: Path) -> None:
    async with a_quiet_venue(tmp_path) as venue:
        assert await venue.answer("/readyz") == (200, {"ready": True, "reasons": []})
        empty(venue, MARKET_ONLY)
        told = [f"chain {MARKET_ONLY}: no maker has a live book"]
        assert await venue.answer("/readyz") == (200, {"ready": True, "reasons": told})
        for chain_id in (CHAIN_ID, DELTA_ONLY):
            empty(venue, chain_id)
        status, body = await venue.answer("/readyz")
        assert (status, body["ready"], len(body["reasons"])) == (503, False, 3)
