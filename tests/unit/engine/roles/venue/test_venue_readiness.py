"""A venue is ready while some chain can be quoted: one that cannot takes no other out of a load balancer."""

import time
from pathlib import Path

import pytest

from cambist.engine.host.process.clock import WallClock
from support.venue.bridge_apis import THERE, a_bridged_venue, bridge_apis
from support.venue.quiet_venue import CHAIN_ID, DELTA_ONLY, MARKET_ONLY, QuietVenue, a_quiet_venue


def empty(venue: QuietVenue, chain_id: int) -> None:
    index = venue.app.chains[chain_id].index
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


async def test_a_chain_to_which_bridges_deliver_needs_no_books_and_quotes_nothing(tmp_path: Path) -> None:
    priced = (CHAIN_ID, MARKET_ONLY)
    async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis, priced=priced) as venue:
        empty(venue, THERE)
        assert await venue.answer("/readyz") == (200, {"ready": True, "reasons": []})
        for chain_id in priced:
            empty(venue, chain_id)
        told = [f"chain {chain_id}: no maker has a live book" for chain_id in sorted(priced)]
        assert await venue.answer("/readyz") == (503, {"ready": False, "reasons": told})


async def test_a_chain_without_makers_is_told_of_if_no_bridge_delivers_there(tmp_path: Path) -> None:
    async with a_quiet_venue(tmp_path, priced=(CHAIN_ID, MARKET_ONLY)) as venue:
        empty(venue, THERE)
        told = [f"chain {THERE}: no maker has a live book"]
        assert await venue.answer("/readyz") == (200, {"ready": True, "reasons": told})


@pytest.mark.parametrize("moved_s", [60, -60, 3_600, -3_600])
async def test_a_system_clock_that_was_moved_is_told_until_it_is_back(tmp_path: Path, moved_s: int) -> None:
    ahead_s = 0
    clock = WallClock(lambda: time.time_ns() + ahead_s * 1_000_000_000)
    async with a_quiet_venue(tmp_path, clock=clock) as venue:
        before_ms = clock.now_ms()
        ahead_s = moved_s
        told = [f"clock: the system's was moved by {moved_s:+d} s; restart this process"]
        assert await venue.answer("/readyz") == (503, {"ready": False, "reasons": told})
        assert 0 <= clock.now_ms() - before_ms < 60_000, "ours goes on evenly"
        ahead_s = 4
        assert (await venue.answer("/readyz"))[0] == 200
