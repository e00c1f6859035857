"""Orders across chains whose bridge's token is swapped on the destination, by a maker there.

async with a_swapped_story(two, tmp_path) as (story, maker):
    record = await story.becomes(await story.ordered(await quoted_dai(story, "across")), "COMPLETED")

The maker `zoe` on the second chain sells DAI for USDC at RATE by firm quotes, from a socket.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, cast

import pytest

from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.crypto.addresses import to_checksum
from cambist.engine.routing.firm.firm_scores import FirmMaker, FirmScores
from cambist.engine.served.served_chain import ServedChain
from cambist.feeds.blacklist import MakerBlacklist
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook, PairIndex
from cambist.feeds.firm.firm_client import FirmClient
from cambist.feeds.firm.maker_health import MakerHealth
from cambist.feeds.maker_cache import MakerCache
from support.bridge.bridged_stories import BridgedStory, a_bridged_story
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, RFQ_NAME, World, person
from support.makers.firm_makers import SocketMaker
from support.patience import until
from support.server.scripted_server import scripted_server

RATE = Decimal("1.25")
"""USDC for one DAI, at which the maker on the second chain sells."""
SWAP_PAUSES = {"ARRIVAL_LOOK_S": 0.05, "ARRIVAL_PAUSE_S": 0.05, "ARRIVAL_PAUSE_S_MAX": 0.2}


def dai_for(usdc: int) -> int:
    """Raw units of DAI that the maker gives for raw units of USDC."""
    return int(usdc * 10**12 / RATE)


async def quoted_dai(story: BridgedStory, bridge: str, amount: int = ONE, **changed: str) -> dict[str, Any]:
    """Route of a quote from WETH to DAI on the second chain, which no bridge delivers."""
    dest = {"destToken": to_checksum(story.far.dai), "destDecimals": "18"}
    return await story.quoted(bridge, "SELL", amount, **dest | changed)


def far_place(story: BridgedStory) -> ServedChain:
    """The second chain as the venue serves it."""
    return story.web.app.places[story.two.second]


GRIDS = {
    "DAI/USDC": PriceGrid(bids=(("1.24", "50000"),), asks=((str(RATE), "50000"),)),
    "WETH/USDC": PriceGrid(bids=(("2500", "50"),), asks=(("2501", "50"),)),
}
"""Pair of the maker on the second chain -> its prices."""


def show_far_books(far: World, maker: str, *indexes: PairIndex) -> None:
    """Put the books of the maker on the second chain into indexes, as its feed would."""
    for base, pair in ((far.dai, "DAI/USDC"), (far.weth, "WETH/USDC")):
        book = build_book(GRIDS[pair], 18, 6)
        for index in indexes:
            index.put(LiveBook(maker, base, far.usdc, book, Decimal(1_000_000)))


async def stocked_far_maker(far: World, now_s: Callable[[], int]) -> SocketMaker:
    """The maker `zoe`, whose funds are on the second chain; it has them still after a restart of a venue."""
    separator = rfq_domain_separator(RFQ_NAME, far.chain.chain_id, far.at.rfq)
    maker = SocketMaker("zoe", person(23), RFQ_ORDER.compiled.digest_for(separator))
    maker.now_s = now_s
    if not await far.balance(far.dai, maker.key):
        await far.chain.set_balance(maker.key.address, ONE)
        await far.give(maker.key, far.dai, 100_000 * ONE, far.at.rfq)
    return maker


@asynccontextmanager
async def a_far_maker(story: BridgedStory) -> AsyncGenerator[SocketMaker]:
    """The maker on a socket, whom the venue's firm-quote desk of the second chain knows."""
    far, place = story.far, far_place(story)
    maker = await stocked_far_maker(far, lambda: place.desk.wall_ms() // 1_000)
    async with AsyncExitStack() as owned:
        port = await owned.enter_async_context(scripted_server(maker.script))
        client = FirmClient(
            maker.name,
            f"http://127.0.0.1:{port}/zoe",
            signer=None,
            connections_max=8,
            wall_ms=place.desk.wall_ms,
        )
        await owned.enter_async_context(client)
        decimals = {far.dai: 18, far.usdc: 6, far.weth: 18}
        cache = MakerCache(
            maker.name, place.index, decimals, stale_ms=10**9, blacklist=MakerBlacklist(60_000)
        )
        known = cast("dict[str, FirmMaker]", place.desk.makers)
        known[maker.name] = FirmMaker(client, MakerHealth(1, 1), cache)
        desk = place.desk
        desk.scores = FirmScores(known, desk.digest_of, desk.settings.hard_s, desk.wall_ms)
        show_far_books(far, maker.name, place.index, maker.index)
        story.people["zoe"] = maker.key.address
        await until(lambda: place.gas.is_fresh)
        yield maker


@asynccontextmanager
async def a_swapped_story(two: TwoChains, folder: Path) -> AsyncGenerator[tuple[BridgedStory, SocketMaker]]:
    """A story whose venue swaps on the second chain, with the maker there."""
    with pytest.MonkeyPatch.context() as patch:
        for name, pause_s in SWAP_PAUSES.items():
            patch.setattr(f"cambist.engine.delta.arriving.arrival_swaps.{name}", pause_s)
        async with a_bridged_story(two, folder) as story, a_far_maker(story) as maker:
            yield story, maker
