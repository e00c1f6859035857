"""A user sells and buys over HTTP: the moved balances equal the quote, to the unit, and the makers' signed
amounts.
"""

from pathlib import Path
from typing import Any

import pytest

from cambist.crypto.addresses import to_checksum
from support.chain.world import ONE, USDC, Moved, World
from support.venue.venue_stories import Route, Story, a_venue_story, by_slippage, makers_of

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

ALPHA: dict[str, Any] = {
    "WETH/USDC": {"bids": [["2500", "5"], ["2499", "20"]], "asks": [["2501", "5"], ["2502", "20"]]}
}
BETA: dict[str, Any] = {
    "WETH/USDC": {"bids": [["2499.5", "5"], ["2495", "20"]], "asks": [["2501.5", "5"], ["2506", "20"]]}
}
PAR: dict[str, Any] = {"DAI/USDC": {"bids": [["0.999", "90000"]], "asks": [["1", "90000"]]}}
THIN: dict[str, Any] = {
    "WETH/USDC": {"bids": [["2500", "2"], ["2300", "9"]], "asks": [["2510", "2"], ["2600", "9"]]}
}
DIRECT: dict[str, Any] = {
    "WETH/DAI": {"bids": [["2499", "2"], ["2290", "9"]], "asks": [["2511", "2"], ["2610", "9"]]}
}
UNITS = {"USDC": 2, "DAI": 2 * 10**12, "WETH": 10**9}
"""Of each token, what two of the coarsest are worth: a unit for each of two makers."""


def bps(amount: int) -> int:
    """Fee of a swap without a partner."""
    return amount // 10_000


def sold(src: str, spent: int, dest: str, gross: int, **makers: tuple[int, int]) -> Moved:
    """A sale: each maker gets (of the source) and gives (of the destination)."""
    moved: Moved = {
        ("user", src): -spent,
        ("user", dest): gross - bps(gross),
        ("vault", dest): bps(gross),
    }
    for name, (got, gave) in makers.items():
        moved |= {(name, src): got, (name, dest): -gave}
    return moved


def bought(src: str, net: int, dest: str, received: int, **makers: tuple[int, int]) -> Moved:
    """A purchase, the fee on top of what it cost."""
    moved: Moved = {
        ("user", src): -net - bps(net),
        ("user", dest): received,
        ("vault", src): bps(net),
    }
    for name, (got, gave) in makers.items():
        moved |= {(name, src): got, (name, dest): -gave}
    return moved


SOLD = sold("WETH", 2 * ONE, "USDC", 5_000 * USDC, alpha=(2 * ONE, 5_000 * USDC))
SOLD_BACK = sold("USDC", 5_002 * USDC, "WETH", 2 * ONE, alpha=(5_002 * USDC, 2 * ONE))
BOUGHT = bought("WETH", 2 * ONE, "USDC", 5_000 * USDC, alpha=(2 * ONE, 5_000 * USDC))
BOUGHT_BACK = bought("USDC", 5_002 * USDC, "WETH", 2 * ONE, alpha=(5_002 * USDC, 2 * ONE))
ONE_HOP = [
    ("SELL", "WETH", "USDC", 2 * ONE, SOLD),
    ("SELL", "USDC", "WETH", 5_002 * USDC, SOLD_BACK),
    ("BUY", "WETH", "USDC", 5_000 * USDC, BOUGHT),
    ("BUY", "USDC", "WETH", 2 * ONE, BOUGHT_BACK),
]
SPLIT = [
    (
        "SELL", "WETH", "USDC", 8 * ONE,
        sold(
            "WETH", 8 * ONE, "USDC", 19_998_500_000,
            alpha=(5 * ONE, 12_500 * USDC), beta=(3 * ONE, 7_498_500_000),
        ),
    ),
    (
        "BUY", "USDC", "WETH", 8 * ONE,
        bought(
            "USDC", 20_009_500_000, "WETH", 8 * ONE,
            alpha=(12_505 * USDC, 5 * ONE), beta=(7_504_500_000, 3 * ONE),
        ),
    ),
]  # fmt: skip


def planned_of(story: Story, route: Route) -> Moved:
    """Quoted amounts that each maker of a route gets and gives."""
    planned: Moved = {}
    for part in route["bestRoute"]:
        for swap in part["swaps"]:
            for one in swap["swapExchanges"]:
                for text, amount in (
                    (swap["srcToken"], int(one["srcAmount"])),
                    (swap["destToken"], -int(one["destAmount"])),
                ):
                    key = one["exchange"], story.symbol(text)
                    planned[key] = planned.get(key, 0) + amount
    return planned


async def check(
    world: World, folder: Path, grids: dict[str, Any], cases: list[tuple[str, str, str, int, Moved]]
) -> None:
    """Each swap is quoted by both endpoints alike, and moves what it should; no slippage is needed."""
    async with a_venue_story(world, folder, grids) as story:
        for side, src, dest, amount, expected in cases:
            route = await story.prices(side, src, dest, amount)
            told = await story.quote(side, src, dest, amount)
            market = told.pop("market")
            assert not told
            for member in ("srcAmount", "destAmount", "bestRoute", "contractAddress", "side", "partnerFee"):
                assert route[member] == market[member], member
            for quoted in (route, market):
                assert await story.swap(quoted, slippage=0) == expected
            assert int(route["srcAmount"]) == -expected["user", src]
            assert int(route["destAmount"]) == expected["user", dest]


async def test_over_one_hop_what_was_quoted_moves(world: World, tmp_path: Path) -> None:
    await check(world, tmp_path, {"alpha": ALPHA}, ONE_HOP)


async def test_two_makers_share_what_is_too_much_for_one(world: World, tmp_path: Path) -> None:
    await check(world, tmp_path, {"alpha": ALPHA, "beta": BETA}, SPLIT)


async def test_over_two_hops_what_was_quoted_moves(world: World, tmp_path: Path) -> None:
    sale: Moved = {
        ("user", "WETH"): -2 * ONE,
        ("user", "DAI"): 5_000 * ONE - ONE // 2,
        ("vault", "DAI"): ONE // 2,
        ("alpha", "WETH"): 2 * ONE,
        ("alpha", "USDC"): -5_000 * USDC,
        ("beta", "USDC"): 5_000 * USDC,
        ("beta", "DAI"): -5_000 * ONE,
    }
    purchase: Moved = {
        ("user", "WETH"): -ONE - ONE // 10_000,
        ("user", "DAI"): 2_500 * ONE,
        ("vault", "WETH"): ONE // 10_000,
        ("alpha", "WETH"): ONE,
        ("alpha", "USDC"): -2_500 * USDC,
        ("beta", "USDC"): 2_500 * USDC,
        ("beta", "DAI"): -2_500 * ONE,
    }
    cases = [
        ("SELL", "WETH", "DAI", 2 * ONE, sale),
        ("BUY", "WETH", "DAI", 2_500 * ONE, purchase),
    ]
    await check(world, tmp_path, {"alpha": ALPHA, "beta": PAR}, cases)


@pytest.mark.parametrize("side", ["SELL", "BUY"])
async def test_over_two_paths_what_was_quoted_moves(world: World, tmp_path: Path, side: str) -> None:
    """The direct pair and the way over USDC are each too thin for all of it."""
    amount = 4 * ONE if side == "SELL" else 9_998 * ONE
    async with a_venue_story(world, tmp_path, {"alpha": THIN, "beta": PAR, "gamma": DIRECT}) as story:
        route = await story.prices(side, "WETH", "DAI", amount)
        assert sorted(len(part["swaps"]) for part in route["bestRoute"]) == [1, 2]
        assert sum(part["percent"] for part in route["bestRoute"]) == 100
        moved = await story.swap(route, slippage=1)
        planned = planned_of(story, route) | {
            ("user", "WETH"): -int(route["srcAmount"]),
            ("user", "DAI"): int(route["destAmount"]),
        }
        for key, amount in planned.items():
            assert abs(moved[key] - amount) <= UNITS[key[1]], key
        assert sum(moved[who, "DAI"] for who in ("beta", "gamma")) in range(-9_998 * ONE, -9_990 * ONE)


@pytest.mark.parametrize("side", ["SELL", "BUY"])
async def test_a_second_hop_that_costs_more_stays_within_slippage(
    world: World, tmp_path: Path, side: str
) -> None:
    """The margin beyond the need reaches a worse level: the swap misses the quote and meets the bound."""
    steep = {"DAI/USDC": {"bids": [["0.9", "9"]], "asks": [["1.0001", "5000.03"], ["1.01", "50000"]]}}
    uneven = {"WETH/USDC": {"bids": [["2500.07", "2"], ["2400", "20"]], "asks": [["2600", "20"]]}}
    amount = 2 * ONE if side == "SELL" else 4_999 * ONE
    async with a_venue_story(world, tmp_path, {"alpha": uneven, "beta": steep}) as story:
        route = await story.prices(side, "WETH", "DAI", amount)
        assert [len(part["swaps"]) for part in route["bestRoute"]] == [2]
        moved = await story.swap(route)
        if side == "SELL":
            assert by_slippage(route["destAmount"], 3) <= moved["user", "DAI"] <= int(route["destAmount"])
        else:
            assert moved["user", "DAI"] == amount
            assert -moved["user", "WETH"] <= int(route["srcAmount"]) * 10_003 // 10_000


async def test_another_receives_and_symbols_stand_for_addresses(world: World, tmp_path: Path) -> None:
    receiver = "0x" + "7e" * 20
    async with a_venue_story(world, tmp_path, {"alpha": ALPHA, "beta": BETA}) as story:
        told = await story.web.get(
            "/prices", srcToken="WETH", destToken="USDC", amount=ONE, network=31337, version="6.2",
            userAddress=to_checksum(world.user.address), receiver=receiver,
        )  # fmt: skip
        route = told["priceRoute"]
        assert makers_of(route) == {"alpha"}
        moved = await story.swap(
            route,
            srcToken="WETH",
            destToken="USDC",
            receiver=receiver,
            slippage=None,
            destAmount=route["destAmount"],
        )
        assert moved["receiver", "USDC"] == int(route["destAmount"])
        assert ("user", "USDC") not in moved
