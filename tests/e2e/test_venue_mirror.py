"""A maker whose prices are another maker's with a spread: it is routed beside that one, and settles."""

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from cambist.feeds.books.fill import quote_received
from support.patience import until
from support.venue_role import CHAIN_ID
from support.venue_stories import Story, a_venue_story
from support.world import ONE, USDC, World

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOK: dict[str, Any] = {"WETH/USDC": {"bids": [["2500", "4"], ["2400", "9"]], "asks": [["2600", "4"]]}}


def mirroring(name: str, ports: Mapping[str, int]) -> dict[str, Any]:
    """Beta has no prices of its own: alpha's, a per mille worse, and half of its amounts."""
    if name != "beta":
        return {}
    options = {
        "url": f"http://127.0.0.1:{ports['alpha']}/{CHAIN_ID}",
        "credentials": {"domain": "venue", "access_key": "key-1", "secret": "env:ALPHA_SECRET"},
        "bid_spread_bps": 10,
        "ask_spread_bps": 10,
        "amount_factor": "0.5",
        "prices_every_s": 0.1,
        "refresh_ms": 50,
    }
    return {"price_source": "mirror", "price_options": options}


@pytest.fixture
async def story(world: World, tmp_path: Path) -> AsyncIterator[Story]:
    books = {"alpha": BOOK, "beta": {pair: {} for pair in BOOK}}
    async with a_venue_story(world, tmp_path, books, changed=mirroring) as story:
        yield story


async def test_the_mirrors_price_is_the_other_makers_with_its_spread(story: Story) -> None:
    for side, src, dest, maker_usdc in (
        ("SELL", "WETH", "USDC", -2_500 * USDC * 9_990 // 10_000),
        ("BUY", "USDC", "WETH", 2_600 * USDC * 10_010 // 10_000),
    ):
        route = await story.prices(side, src, dest, ONE, includeDEXS="beta")
        moved = await story.swap(route, slippage=0)
        assert moved["beta", "USDC"] == maker_usdc
        assert abs(moved["beta", "WETH"]) == ONE
        assert not {who for who, _ in moved} & {"alpha"}


async def test_both_share_what_is_too_much_for_one(story: Story) -> None:
    """Alpha's four at 2,500; then the mirror's two at 2,497.5, which are better than alpha's next."""
    route = await story.prices("SELL", "WETH", "USDC", 6 * ONE)
    moved = await story.swap(route, slippage=0)
    assert (moved["alpha", "WETH"], moved["alpha", "USDC"]) == (4 * ONE, -10_000 * USDC)
    assert (moved["beta", "WETH"], moved["beta", "USDC"]) == (2 * ONE, -4_995 * USDC)
    assert moved["user", "USDC"] == int(route["destAmount"])


async def test_when_the_other_maker_moves_the_mirror_follows(story: Story) -> None:
    before = await story.prices("SELL", "WETH", "USDC", ONE, includeDEXS="beta")
    await story.quotes("alpha", **{"WETH/USDC": {"bids": [["2550", "4"]], "asks": [["2600", "4"]]}})

    gross = 2_550 * USDC * 9_990 // 10_000
    assert int(before["destAmount"]) < gross - gross // 10_000
    between = story.web.app.places[CHAIN_ID].index.between

    def promised() -> int | None:
        books = between(story.world.weth, story.world.usdc).values()
        return next((quote_received(live.book.bids, ONE) for live in books if live.maker == "beta"), None)

    await until(lambda: promised() == gross)
    moved = await story.swap(await story.prices("SELL", "WETH", "USDC", ONE, includeDEXS="beta"), slippage=0)
    assert moved["beta", "USDC"] == -gross
