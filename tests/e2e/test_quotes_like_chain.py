"""Quotes on random books execute exactly: makers sign their shown prices and no slippage is allowed, so that
one missing unit leaves the swap without a route or reverts it.

Up to three makers on each pair, one to three hops, one path or two, fees of every kind. The Router and the
executor keep no tokens, and the partner gets the quoted fee.
"""

import random
from collections.abc import Sequence
from itertools import combinations, permutations

import pytest

from cambist.codecs.contracts import router_calldata
from cambist.codecs.messages.market_messages import PriceRoute
from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import NoRoute
from cambist.crypto.addresses import to_checksum
from support.chain.world import World
from support.examples import IS_LONG
from support.makers.firm_books import Levels
from support.makers.firm_makers import Stage, a_stage
from support.venue.market_front import Front
from support.venue.market_place import PARTNER

SYMBOLS: tuple[str, ...] = ("WETH", "USDC", "DAI", "WBTC")
WORTH = {"WETH": 2_500.0, "USDC": 1.0, "DAI": 1.0, "WBTC": 60_000.0}
GRAPHS = {
    "pair": (("WETH", "USDC"),),
    "line": (("WETH", "USDC"), ("USDC", "DAI"), ("DAI", "WBTC")),
    "all": tuple(combinations(SYMBOLS, 2)),
}
SWAPS = 8  # of each side, on the books of one seed
SEEDS = range(12 if IS_LONG else 2)


class Market:
    """A stage whose makers show random books.

    Attributes:
        tokens: by symbol.
    """

    def __init__(self, stage: Stage, source: random.Random, fourth: bytes) -> None:
        world = stage.world
        self.stage = stage
        self.source = source
        self.tokens = dict(zip(SYMBOLS, (world.weth, world.usdc, world.dai, fourth), strict=True))
        stage.decimals[fourth] = 8
        self.front = Front(stage, fourth)

    async def stock(self) -> None:
        world = self.stage.world
        wbtc = self.tokens["WBTC"]
        await world.give(world.user, wbtc, 100 * 10**8, world.at.router)
        for name in self.stage.makers:
            await self.stage.stock(name, *self.tokens.values())

    def quote(self, graph: str) -> None:
        """Every maker shows some of the pairs, each in the one or the other order."""
        for name in self.stage.makers:
            pairs = [pair for pair in GRAPHS[graph] if name != "gamma" or self.source.random() < 0.6]
            books = []
            for pair in pairs:
                base, quote = pair if self.source.random() < 0.5 else pair[::-1]
                books.append((self.tokens[base], self.tokens[quote], *self._sides(base, quote)))
            self.stage.quote(name, *books)

    def _sides(self, base: str, quote: str) -> tuple[Levels, Levels]:
        mid = WORTH[base] / WORTH[quote] * self.source.uniform(0.9995, 1.0005)
        bids, asks = self._side(base, mid, -1), self._side(base, mid, 1)
        return bids, asks

    def _side(self, base: str, mid: float, direction: int) -> Levels:
        levels = []
        price, places = mid, self.source.choice((6, 9, 12))
        for _ in range(self.source.randint(1, 5)):
            price *= 1 + direction * self.source.choice((0.00005, 0.0003, 0.001, 0.01, 0.05))
            size = self.source.choice((10, 1_000, 4_000)) * self.source.random() / WORTH[base]
            levels.append((f"{price:.{places}f}", f"{size:.8f}"))
        deep = 60_000 / WORTH[base]
        levels.append((f"{price * (1 + direction * 0.02):.{places}f}", f"{deep:.4f}"))
        return levels

    def a_swap(self, graph: str, side: Side) -> tuple[str, str, int]:
        """Source, destination and raw amount of the side that is fixed."""
        ends = GRAPHS[graph][0] if graph == "pair" else self.source.choice(list(permutations(SYMBOLS, 2)))
        src, dest = ends if self.source.random() < 0.5 else ends[::-1]
        fixed = src if side is Side.SELL else dest
        usd = self.source.choice((0.01, 5, 900, 9_000, 9_000)) * self.source.uniform(0.1, 1)
        amount = max(int(usd / WORTH[fixed] * 10 ** self.stage.decimals[self.tokens[fixed]]), 1)
        return src, dest, amount

    async def left_behind(self) -> int:
        world = self.stage.world
        return sum(
            [
                await world.balance(token, held)
                for token in self.tokens.values()
                for held in (world.at.executor, world.at.router)
            ]
        )


def most_makers(routes: Sequence[PriceRoute]) -> int:
    return max(
        len(swap.swap_exchanges) for route in routes for part in route.best_route for swap in part.swaps
    )


def hops_of(route: PriceRoute) -> list[int]:
    return [len(part.swaps) for part in route.best_route]


async def swaps_as_quoted(market: Market, graph: str, slippage: int, seen: list[PriceRoute]) -> None:
    """A few swaps of each side, each by a quote of its own."""
    front, world = market.front, market.stage.world
    for number in range(SWAPS):
        for side in Side:
            src, dest, amount = market.a_swap(graph, side)
            kind = market.source.choice(("anon", "wallet", "asked", "direct", "surplus"))
            body: dict[str, object] = {"slippage": slippage}
            fee_bps = 0
            if kind in ("asked", "direct", "surplus"):
                fee_bps = market.source.randint(2, 200)
                body |= {"partnerAddress": to_checksum(PARTNER), "isDirectFeeTransfer": kind == "direct"}
                body |= {"takeSurplus": kind == "surplus", "isCapSurplus": number % 2 == 0}
            asked = {"src_token": src, "dest_token": dest, "amount": str(amount), "side": side}
            asked |= {"partner": "wallet"} if kind == "wallet" else {}
            try:
                route = front.quote_for(fee_bps, **asked)
            except NoRoute:
                continue
            token = market.tokens[dest if side is Side.SELL else src]
            before = await gains(world, token)
            moved = await front.swap(route, **body)
            assert moved == (int(route.src_amount), int(route.dest_amount)) or (
                slippage and is_close(route, moved)
            ), (kind, asked, hops_of(route))
            assert await market.left_behind() == 0
            if kind != "anon" and not slippage:
                assert await gains(world, token) - before == quoted_fee(route)
            seen.append(route)


def is_close(route: PriceRoute, moved: tuple[int, int]) -> bool:
    """A basis point for each hop after the first, and a unit for each fill."""
    fills = sum(len(swap.swap_exchanges) for part in route.best_route for swap in part.swaps)
    bps = max(hops_of(route)) - 1
    spent, received = moved
    if route.side is Side.SELL:
        quoted = int(route.dest_amount)
        return spent == int(route.src_amount) and received >= quoted * (10_000 - bps) // 10_000 - fills
    quoted = int(route.src_amount)
    return received == int(route.dest_amount) and spent <= quoted * (10_000 + bps) // 10_000 + fills


async def gains(world: World, token: bytes) -> int:
    """Of the partner: sent, and kept in the vault."""
    kept = await world.ask(world.at.fee_vault, router_calldata.owed(PARTNER, token))
    return kept + await world.balance(token, PARTNER)


def quoted_fee(route: PriceRoute) -> int:
    """By the amounts of the hops."""
    fee_bps = int(route.partner_fee * 100)
    sells = route.side is Side.SELL
    ends = [part.swaps[-1 if sells else 0].swap_exchanges for part in route.best_route]
    total = sum(int(one.dest_amount if sells else one.src_amount) for part in ends for one in part)
    return total * fee_bps // 10_000


@pytest.mark.parametrize("seed", SEEDS)
async def test_one_hop_is_executed_to_the_unit(world: World, seed: int) -> None:
    seen = await played(world, seed, "pair", slippage=0)
    assert all(hops_of(route) == [1] for route in seen)
    assert most_makers(seen) > 1


@pytest.mark.parametrize("graph", ["line", "all"])
@pytest.mark.parametrize("seed", SEEDS)
async def test_hops_and_paths_are_executed_to_the_unit(world: World, seed: int, graph: str) -> None:
    seen = await played(world, seed, graph, slippage=0)
    assert max(max(hops_of(route)) for route in seen) >= (3 if graph == "line" else 2)
    assert max(len(route.best_route) for route in seen) == (1 if graph == "line" else 2)
    assert most_makers(seen) > 1


@pytest.mark.parametrize("graph", ["line", "all"])
async def test_room_for_slippage_is_not_used_up_where_makers_sign_what_they_show(
    world: World, graph: str
) -> None:
    """Hops between may be asked for more than is needed then."""
    seen = await played(world, 5, graph, slippage=100)
    assert max(max(hops_of(route)) for route in seen) > 1


async def played(world: World, seed: int, graph: str, *, slippage: int) -> Sequence[PriceRoute]:
    seen: list[PriceRoute] = []
    fourth = await world.new_token(symbol="WBTC", decimals=8)
    async with a_stage(world) as stage:
        market = Market(stage, random.Random(seed), fourth)
        await market.stock()
        market.quote(graph)
        await swaps_as_quoted(market, graph, slippage, seen)
    assert len(seen) >= SWAPS
    return seen
