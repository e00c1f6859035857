"""A maker that fails, in whatever way, costs a user nothing but the fallback; without one, nothing moves."""

from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts.calldata import transfer
from cambist.crypto.addresses import to_checksum
from support.chain.world import ONE, USDC, Moved, World
from support.patience import FIRM, FIRM_HARD_S, PATIENCE
from support.venue.venue_fronts import KEYS
from support.venue.venue_stories import Story, a_venue_story, makers_of

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

GOOD = {"bids": [["2505", "50"]], "asks": [["2506", "50"]]}
FAIR = {"bids": [["2500", "50"]], "asks": [["2511", "50"]]}
BETTER: dict[str, Any] = {"WETH/USDC": GOOD}
WORSE: dict[str, Any] = {"WETH/USDC": FAIR}
HASTY = f"soft_s = {2 * PATIENCE}\nhard_s = {FIRM_HARD_S}"
"""Others are asked after a third of the soft bound."""
CURT = "soft_s = 0.2\nhard_s = 0.4"
USER_BARRED, REFUSING = "blacklists", "refuses"


async def fails(story: Story, way: str) -> None:
    """Alpha is as it should be until the user has his quote; then this."""
    front, world = story.fronts["alpha"], story.world
    if way == "has no balance":
        for token in (world.usdc, world.weth):
            everything = await world.balance(token, KEYS["alpha"])
            await world.send(KEYS["alpha"], token, transfer(world.stranger.address, everything))
    elif way == "has no allowance":
        for symbol in ("USDC", "DAI", "WETH"):
            await story.allow(symbol, 0, "alpha")
    elif way == "drifts":
        front.habit, front.worse_bps = way, 300
    else:
        front.habit = way


WAYS = [
    (REFUSING, "refused", FIRM),
    ("babbles", "invalid", FIRM),
    ("cuts", "unavailable", FIRM),
    ("hangs", "late", HASTY),
    ("drifts", "drifted", FIRM),
    ("signs wrongly", "invalid", FIRM),
    ("has no balance", "unfunded", FIRM),
    ("has no allowance", "unfunded", FIRM),
    (USER_BARRED, "", FIRM),
]
WAY = pytest.mark.parametrize(("way", "reason", "firm"), WAYS, ids=[way for way, _, _ in WAYS])
SALE: Moved = {
    ("user", "WETH"): -ONE,
    ("user", "USDC"): 2_499_750_000,
    ("vault", "USDC"): 250_000,
    ("beta", "WETH"): ONE,
    ("beta", "USDC"): -2_500 * USDC,
}
PURCHASE: Moved = {
    ("user", "DAI"): -2_511 * ONE - 2_511 * ONE // 10_000,
    ("user", "WETH"): ONE,
    ("vault", "DAI"): 2_511 * ONE // 10_000,
    ("beta", "DAI"): 2_511 * ONE,
    ("beta", "WETH"): -ONE,
}


@WAY
@pytest.mark.usefixtures("no_excuse")
async def test_the_next_maker_fills_at_its_own_price(
    world: World, tmp_path: Path, way: str, reason: str, firm: str
) -> None:
    """A sale, and a purchase on another pair."""
    books = {"alpha": BETTER | {"WETH/DAI": GOOD}, "beta": WORSE | {"WETH/DAI": FAIR}}
    async with a_venue_story(world, tmp_path, books, firm=firm) as story:
        sale = await story.prices("SELL", "WETH", "USDC", ONE)
        purchase = await story.prices("BUY", "DAI", "WETH", ONE)
        await fails(story, way)
        for number, (route, expected) in enumerate(((sale, SALE), (purchase, PURCHASE)), 1):
            assert makers_of(route) == {"alpha"}
            assert await story.swap(route) == expected
            assert story.fronts["alpha"].asked == (number if reason else 1)
            assert (await story.score("alpha"))["reasons"] == ({reason: number} if reason else {})
        assert (await story.score("beta"))["reasons"] == {}
        shown = {"alpha", "beta"} if way == REFUSING else {"alpha"}
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == shown, "it is bounded, and does not rest"


@WAY
@pytest.mark.usefixtures("no_excuse")
async def test_without_a_fallback_there_is_no_route_and_nothing_moves(
    world: World, tmp_path: Path, way: str, reason: str, firm: str
) -> None:
    firm = CURT if way == "hangs" else firm
    async with a_venue_story(world, tmp_path, {"alpha": BETTER}, firm=firm) as story:
        route = await story.prices("SELL", "WETH", "USDC", ONE)
        await fails(story, way)
        status, details = await story.not_built(route)
        assert status == 400
        assert details.startswith("No route")
        assert f"alpha: {reason or 'blacklisted'}" in details
        shown = set() if way == REFUSING else {"alpha"}
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == shown
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE // 2) == {"alpha"}


async def test_a_price_that_has_moved_a_little_is_the_users_within_his_bound(
    world: World, tmp_path: Path
) -> None:
    """Alpha signs ten basis points less than it showed: no fault, and still better than beta."""
    async with a_venue_story(world, tmp_path, {"alpha": BETTER, "beta": WORSE}) as story:
        route = await story.prices("SELL", "WETH", "USDC", ONE)
        front = story.fronts["alpha"]
        front.habit, front.worse_bps = "drifts", 10
        moved = await story.swap(route)
        assert moved["alpha", "USDC"] == -2_505 * USDC * 9_990 // 10_000
        assert moved["user", "USDC"] == 2_502_495_000 - 250_249
        assert (await story.score("alpha"))["reasons"] == {}


async def test_one_of_two_makers_of_a_split_fails(world: World, tmp_path: Path) -> None:
    """Another maker signs the failing maker's amount; the others' signed quotes stay in the swap."""
    book: dict[str, Any] = {"WETH/USDC": {"bids": [["2505", "5"]], "asks": [["2600", "5"]]}}
    books = {"alpha": book, "beta": WORSE, "gamma": WORSE}
    async with a_venue_story(world, tmp_path, books) as story:
        route = await story.prices("SELL", "WETH", "USDC", 60 * ONE)
        assert {len(swap["swapExchanges"]) for swap in route["bestRoute"][0]["swaps"]} == {3}
        await fails(story, "refuses")
        moved = await story.swap(route)
        assert ("alpha", "WETH") not in moved
        assert moved["beta", "WETH"] + moved["gamma", "WETH"] == 60 * ONE
        assert moved["user", "USDC"] == 150_000 * USDC - 15 * USDC


async def test_one_hop_of_two_fails(world: World, tmp_path: Path) -> None:
    def par(price: str) -> dict[str, Any]:
        return {"DAI/USDC": {"bids": [["0.9", "90000"]], "asks": [[price, "90000"]]}}

    books = {"alpha": par("1"), "beta": BETTER, "gamma": par("1.002")}
    async with a_venue_story(world, tmp_path, books) as story:
        route = await story.prices("SELL", "WETH", "DAI", 2 * ONE)
        await fails(story, "signs wrongly")
        moved = await story.swap(route)
        assert moved["gamma", "USDC"] == -moved["beta", "USDC"] == 5_010 * USDC
        assert moved["user", "DAI"] in range(4_999 * ONE, 5_000 * ONE)
        assert story.fronts["beta"].asked == 1, "its quote was kept"


async def test_a_user_whom_a_maker_does_not_serve_is_served_by_the_others(
    world: World, tmp_path: Path
) -> None:
    """The maker's own blacklist, which the venue has read: the venue neither asks nor scores the maker."""
    user = to_checksum(world.user.address)
    async with a_venue_story(
        world,
        tmp_path,
        {"alpha": BETTER, "beta": WORSE},
        changed=lambda name, _: {"blacklist": (user.lower(),)} if name == "alpha" else {},
    ) as story:
        anybodys = await story.prices("SELL", "WETH", "USDC", ONE)
        his = await story.prices("SELL", "WETH", "USDC", ONE, userAddress=user)
        assert int(his["destAmount"]) == SALE["user", "USDC"] < int(anybodys["destAmount"])
        for route in (anybodys, his):
            assert await story.swap(route) == SALE
        assert not story.fronts["alpha"].asked
        assert (await story.score("alpha"))["quotes"] == 0
        other = to_checksum(world.stranger.address)
        status, details = await story.not_built(anybodys, userAddress=other)
        assert (status, details.partition(":")[0]) == (400, "InsufficientBalance")


async def test_a_user_whom_a_maker_turned_away_is_not_sent_to_it_again(world: World, tmp_path: Path) -> None:
    """A success without an order; for the blacklist's time, and for this user alone."""
    async with a_venue_story(world, tmp_path, {"alpha": BETTER, "beta": WORSE}) as story:
        user = to_checksum(world.user.address)
        route = await story.prices("SELL", "WETH", "USDC", ONE)
        front = story.fronts["alpha"]
        front.habit = USER_BARRED
        assert await story.swap(route) == SALE
        front.habit = ""
        assert await story.swap(route) == SALE
        assert front.asked == 1
        his = await story.prices("SELL", "WETH", "USDC", ONE, userAddress=user)
        assert int(his["destAmount"]) == SALE["user", "USDC"]
        await story.pass_time(61)
        route = await story.prices("SELL", "WETH", "USDC", ONE, userAddress=user)
        assert (await story.swap(route))["alpha", "WETH"] == ONE
