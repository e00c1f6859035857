"""A priceRoute between the quote and the transaction: passed on as it came, and soon, or not at all."""

import copy
import json
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.chain.world import ONE, World
from support.venue.documented import documented
from support.venue.venue_role import CHAIN_ID
from support.venue.venue_stories import Route, Story, a_venue_story

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOKS: dict[str, dict[str, Any]] = {
    "alpha": {"WETH/USDC": {"bids": [["2500", "5"]], "asks": [["2501", "50"]]}},
    "beta": {"WETH/USDC": {"bids": [["2499", "50"]], "asks": [["2502", "50"]]}},
}
Path_ = tuple[str | int, ...]


@pytest.fixture
async def story(world: World, tmp_path: Path) -> AsyncIterator[Story]:
    async with a_venue_story(world, tmp_path, BOOKS, twin=True) as story:
        yield story


def members(value: Any, at: Path_ = ()) -> Iterator[tuple[Path_, Any]]:
    """Every member that is no object and no list, and where it stands."""
    if isinstance(value, dict | list):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            yield from members(inner, (*at, key))
    else:
        yield at, value


def changed(route: Route, at: Path_, value: Any) -> Route:
    """The route with another value there; None takes it out."""
    other = copy.deepcopy(route)
    inner: Any = other
    for key in at[:-1]:
        inner = inner[key]
    if value is None:
        del inner[at[-1]]
    else:
        inner[at[-1]] = value
    return other


def others(value: Any) -> list[Any]:
    """Wrong replacements of a member's value; None removes the member."""
    if isinstance(value, bool):
        return [not value, str(value).lower(), None]
    if isinstance(value, int | float):
        return [value + 1, str(value), None]
    if value.isdigit():
        return [str(int(value) + 1), int(value), f"0{value}", None]
    if value.startswith("0x"):
        return [f"0x{'11' * 20}", f"0x{value[2:].swapcase()}", None]
    return [f"{value}x", None]


async def test_a_route_is_good_for_thirty_seconds(story: Story) -> None:
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    await story.pass_time(20)
    assert (await story.swap(route))["user", "USDC"] == int(route["destAmount"])
    await story.pass_time(10.1)
    status, details = await story.not_built(route)
    assert status == 400
    assert details.startswith("Stale priceRoute: issued ")
    fresh = await story.prices("SELL", "WETH", "USDC", ONE)
    assert (await story.swap(fresh))["user", "USDC"] == int(fresh["destAmount"])


async def test_a_route_that_was_changed_anywhere_is_refused(story: Story) -> None:
    """Two makers, a partner: each member in turn, to another value, to another type, taken out."""
    route = await story.prices("SELL", "WETH", "USDC", 7 * ONE, partner="wallet", otherExchangePrices="true")
    assert len(route["bestRoute"][0]["swaps"][0]["swapExchanges"]) == 2
    before = await story.balances()
    tried = 0
    for at, value in members(route):
        for other in others(value):
            bad = changed(route, at, other)
            assert bad != route
            status, told = await story.ask_transaction(route, priceRoute=bad)
            assert (status, told["errorType"]) == (400, "InvalidPriceRoute"), (at, other, told)
            assert told["error"].startswith("Invalid priceRoute"), told
            tried += 1
    for bad in (
        route | {"more": 1},
        {name: value for name, value in route.items() if name != "bestRoute"},
        route | {"bestRoute": [*route["bestRoute"], *route["bestRoute"]]},
        route | {"hmac": route["hmac"][:-2]},
        route | {"others": {}},
        {},
    ):
        status, told = await story.ask_transaction(route, priceRoute=bad)
        assert (status, told["errorType"]) == (400, "InvalidPriceRoute")
    assert tried >= 150
    assert await story.balances() == before
    assert not any(front.asked for front in story.fronts.values()), "no maker was asked"
    await story.swap(route)


async def test_a_client_may_keep_the_documented_members_alone(story: Story) -> None:
    """Code that is generated from the schema drops every other member; the swap does not depend on them."""
    asked = {"partner": "wallet", "otherExchangePrices": "true", "excludeDEXS": "alpha"}
    route = await story.prices("SELL", "WETH", "USDC", ONE, **asked)
    kept = documented(route)
    assert set(route) - set(kept) == {"others"}
    assert (await story.swap(kept))["user", "USDC"] == int(route["destAmount"])
    assert story.fronts["alpha"].asked == 0, "the better maker is left out, as it was in the price"


async def test_keys_may_stand_in_any_order_and_numbers_may_not_be_rewritten(story: Story) -> None:
    route = await story.prices("SELL", "WETH", "USDC", ONE, partner="wallet")
    assert route["partnerFee"] == 0.5
    backwards = json.loads(
        json.dumps(route), object_pairs_hook=lambda pairs: dict(sorted(pairs, reverse=True))
    )
    assert list(backwards) != list(route)
    assert backwards == route
    assert (await story.swap(backwards))["user", "USDC"] == int(route["destAmount"])
    spaced = json.dumps(story.body(route), indent=3).encode()
    status, _ = await story.web.post(f"/transactions/{CHAIN_ID}", spaced)
    assert status == 200
    rewritten = spaced.replace(b'"partnerFee": 0.5', b'"partnerFee": 0.50')
    assert rewritten != spaced
    status, told = await story.web.post(f"/transactions/{CHAIN_ID}", rewritten)
    assert (status, told["errorType"]) == (400, "InvalidPriceRoute")


async def test_a_seal_stays_with_its_route(story: Story) -> None:
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    other = await story.prices("SELL", "WETH", "USDC", 2 * ONE)
    status, details = await story.not_built(route | {"hmac": other["hmac"]})
    assert (status, details.partition(":")[0]) == (400, "Invalid priceRoute")


async def test_a_route_of_another_chain_is_refused(story: Story) -> None:
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    for chain_id, status, error_type in (
        (story.TWIN, 400, "InvalidPriceRoute"),
        (1, 422, "UnsupportedChain"),
    ):
        got, told = await story.web.post(f"/transactions/{chain_id}", story.body(route))
        assert (got, told["errorType"]) == (status, error_type)


async def test_a_route_serves_again_and_calldata_only_once(story: Story) -> None:
    """Fresh firm quotes are asked for each time; a signed quote is filled once."""
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    first = await story.build(route)
    moved = await story.send(first, route)
    assert (await story.reverted(first)).startswith("StepFailed(step 0")
    second = await story.build(route)
    assert second["data"] != first["data"]
    assert await story.send(second, route) == moved
    assert story.fronts["alpha"].asked == 2


async def test_calldata_is_of_no_use_to_somebody_else(story: Story) -> None:
    world = story.world
    await world.give(world.stranger, world.weth, 5 * ONE, world.at.router)
    built = await story.build(await story.prices("SELL", "WETH", "USDC", ONE))
    assert (await story.reverted(built, world.stranger)).startswith("NotTheUsers(")
    assert (await story.submit(built)).succeeded


async def test_a_route_that_the_books_have_left_is_built_from_those_of_now(story: Story) -> None:
    """Between quote and transaction the better maker leaves; the slippage bounds the loss."""
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    await story.quotes("alpha", **{"WETH/USDC": {"bids": [["2400", "5"]], "asks": [["2501", "50"]]}})
    status, details = await story.not_built(route, slippage=3)
    assert status == 400
    assert details.startswith("No route")
    moved = await story.swap(route)
    assert moved["beta", "USDC"] == -2_499 * 10**6
    assert moved["user", "USDC"] == 2_499 * 10**6 - 249_900
