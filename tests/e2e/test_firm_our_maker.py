"""The desk and our own maker, HMAC-signed over sockets, and the swap on the chain."""

from pathlib import Path

import msgspec
import pytest

from cambist.codecs.eip712_orders.rfq import rfq_domain_separator
from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import NoRoute
from cambist.config.settings import Settings, parse_settings
from cambist.crypto.hmac_auth import RequestSigner
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.host.process.clock import WallClock
from cambist.engine.trade.routing.firm.firm_desk import FirmDesk
from cambist.engine.trade.routing.firm.firm_scores import FirmMaker
from cambist.engine.trade.routing.search.pathfinder import Pathfinder
from cambist.engine.trade.routing.search.plan import SwapRequest
from cambist.feeds.blacklist import MakerBlacklist
from cambist.feeds.books.pair_index import PairIndex
from cambist.feeds.firm.firm_client import FirmClient
from cambist.feeds.firm.maker_health import MakerHealth
from cambist.feeds.maker_cache import MakerCache
from support.chain.world import ONE, World
from support.makers import maker_role
from support.makers.firm_books import a_live_book
from support.makers.firm_makers import PATIENT, execute
from support.makers.maker_role import (
    CHAIN_ID,
    CONTRACT,
    DAI,
    ENVIRON,
    KEY_HEX,
    PREFIX,
    SECRET,
    TAKER,
    TEXT,
    USDC,
    WETH,
    Venue,
    running_maker,
)

UNIT = 10**6


def settings_in(world: World, more: str = "") -> Settings:
    """The maker's settings, with the contracts and tokens of a world."""
    text = TEXT + more
    for name, address in (
        (CONTRACT, world.at.rfq), (TAKER, world.at.executor), (WETH, world.weth), (USDC, world.usdc),
        (DAI, world.dai),
    ):  # fmt: skip
        text = text.replace(name, f"0x{address.hex()}")
    assert world.chain.chain_id == maker_role.CHAIN_ID
    return parse_settings(text, ENVIRON, Path())


def a_desk(world: World, client: FirmClient) -> FirmDesk:
    """With our maker's book as it is on its board."""
    index, clock = PairIndex(), WallClock()
    grid = maker_role.GRID
    assert not isinstance(grid.bids, msgspec.UnsetType)
    assert not isinstance(grid.asks, msgspec.UnsetType)
    index.put(a_live_book("ours", world.weth, world.usdc, grid.bids, grid.asks, decimals=(18, 6)))
    cache = MakerCache("ours", index, {}, stale_ms=10_000, blacklist=MakerBlacklist(60_000))
    return FirmDesk(
        {"ours": FirmMaker(client, MakerHealth(5_000, 900_000), cache)},
        Pathfinder(index, world.weth),
        index,
        world.chain,
        rfq=world.at.rfq,
        executor=world.at.executor,
        separator=rfq_domain_separator("AUGUSTUS RFQ", CHAIN_ID, world.at.rfq),
        settings=PATIENT,
        ledger=Ledger(),
        wall_ms=clock.now_ms,
    )


def a_client(venue: Venue) -> FirmClient:
    return FirmClient(
        "ours",
        f"http://127.0.0.1:{venue.port}{PREFIX}",
        signer=RequestSigner("venue", "key-1", SECRET.encode()),
        connections_max=4,
        wall_ms=venue.wall_ms,
    )


@pytest.mark.parametrize(
    ("side", "src", "dest", "amount", "other"),
    [
        (Side.SELL, "weth", "usdc", 2 * ONE, 4_999_500_000),
        (Side.SELL, "usdc", "weth", 2_501 * UNIT, ONE),
        (Side.BUY, "weth", "usdc", 2_500 * UNIT, ONE),
        (Side.BUY, "usdc", "weth", ONE // 2, 1_250_500_000),
    ],
)
async def test_our_maker_fills_what_it_shows(
    world: World, tmp_path: Path, side: Side, src: str, dest: str, amount: int, other: int
) -> None:
    ours = SigningKey(bytes.fromhex(KEY_HEX))
    await world.chain.set_balance(ours.address, 1_000 * ONE)
    await world.give(ours, world.weth, 10 * ONE, world.at.rfq)
    await world.give(ours, world.usdc, 100_000 * UNIT, world.at.rfq)
    await world.give(world.user, world.weth, 10 * ONE, world.at.router)
    await world.give(world.user, world.usdc, 100_000 * UNIT, world.at.router)
    tokens = {"weth": world.weth, "usdc": world.usdc}
    async with running_maker(tmp_path, settings_in(world)) as (_, venue), a_client(venue) as client:
        desk = a_desk(world, client)
        wanted = SwapRequest(tokens[src], tokens[dest], amount, side)
        plan = desk.pathfinder.find(wanted)
        assert plan is not None
        limit = plan.dest_amount if side is Side.SELL else plan.src_amount
        route = await desk.fill(plan, wanted, user=world.user.address, limit=limit)
    expected = (amount, other) if side is Side.SELL else (other, amount)
    assert (route.src_amount, route.dest_amount) == expected
    assert await execute(world, route) == expected


async def test_our_maker_that_has_nothing_on_chain_is_found_out(world: World, tmp_path: Path) -> None:
    async with running_maker(tmp_path, settings_in(world)) as (_, venue), a_client(venue) as client:
        desk = a_desk(world, client)
        wanted = SwapRequest(world.weth, world.usdc, ONE, Side.SELL)
        plan = desk.pathfinder.find(wanted)
        assert plan is not None
        with pytest.raises(NoRoute, match="ours: unfunded"):
            await desk.fill(plan, wanted, user=world.user.address, limit=0)
