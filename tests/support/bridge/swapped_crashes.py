"""A venue that is killed while makers swap what a bridge delivers, and the maker on the second chain.

async with a_swapped_crash(two, tmp_path) as crash:
    record = await crash.delivered(ACROSS)
    await crash.killed_and_started()
    await crash.story.becomes(record, "COMPLETED")

The maker `zoe` is one of the venue's settings, on a socket of this process: the venue polls its prices, and
asks it for firm quotes.
"""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import count
from pathlib import Path
from typing import Any

from msgspec import to_builtins

from cambist.codecs.bridges.arrivals import ArrivalTerms, arrival_address, pack_arrival
from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.crypto.addresses import to_checksum
from cambist.engine.delta.orders.arriving import arrival_code
from support.bridge.bridged_crashes import BridgedCrash, a_bridged_crash
from support.bridge.swapped_stories import GRIDS, show_far_books, stocked_far_maker
from support.bridge.two_chains import TwoChains
from support.chain.world import HOUR_S, ONE, World
from support.delta.delta_process import Record
from support.makers.firm_makers import SocketMaker
from support.patience import until
from support.server.scripted_server import scripted_server

_MAKER = """
[venue.makers.zoe.chains.{chain_id}]
url = "http://127.0.0.1:{port}/zoe"
prices_every_s = 0.2
"""


class SwappedCrash(BridgedCrash):
    """A venue that is killed and started, both chains with their bridges, and the maker on the second one.

    Attributes:
        maker: on the second chain; its `habit` decides whether it fills.
    """

    def __init__(self, crash: BridgedCrash, maker: SocketMaker) -> None:
        super().__init__(crash.story, crash.two, crash.far_node, crash.environ)
        self.maker = maker
        self._salts = count()

    async def submitted(
        self, kind: BridgeKind, *, fill_within_s: int | None = None, **changed: Any
    ) -> Record:
        """Record of a new sale of one WETH: the USDC that a bridge delivers is swapped for a DAI at least."""
        far, deadline = self.far, await self.story.world.now_s() + HOUR_S
        user, salt = self.story.world.user.address, next(self._salts).to_bytes(32, "big")
        terms = ArrivalTerms(user, far.usdc, far.dai, ONE, deadline + HOUR_S, salt)
        account = arrival_address(far.at.arrivals, terms, arrival_code())
        ends = {"beneficiary": account, "metadata": pack_arrival(terms), "deadline": deadline}
        return await super().submitted(kind, fill_within_s=fill_within_s, **ends | changed)

    async def delivered(self, kind: BridgeKind) -> Record:
        """Record of a new sale whose bridge has delivered, and which the maker has refused to fill."""
        self.maker.habit = "refuses"
        record = await self.bridging(kind)
        await until(lambda: self.maker.asked)
        return record

    async def is_swapped(self) -> bool:
        """Whether the user has DAI on the second chain beside its stock."""
        return await self.far.balance(self.far.dai, self.maker.key) < self.stock

    async def traded(self) -> dict[str, int]:
        """Balances as `BridgedCrash.traded` has them, with those of the swap."""
        far = self.far
        people = {"user": self.story.world.user.address, "zoe": self.maker.key.address}
        found = await super().traded()
        for name, who in people.items():
            for symbol, token in (("DAI", far.dai), ("USDC", far.usdc)):
                found[f"{name} far {symbol}"] = await far.balance(token, who)
        self.stock = found["zoe far DAI"]
        return found


@asynccontextmanager
async def a_swapped_crash(two: TwoChains, folder: Path) -> AsyncGenerator[SwappedCrash]:
    """A venue on two chains that serves, in the folder, with the maker on the second; killed in the end."""
    far = two.worlds[two.second]
    maker = await stocked_far_maker(far, lambda: int(time.time()))
    maker.resources = _resources(far)
    show_far_books(far, maker.name, maker.index)
    async with scripted_server(maker.script) as port:
        text = _MAKER.format(chain_id=two.second, port=port)
        async with a_bridged_crash(two, folder, more=text) as crash:
            yield SwappedCrash(crash, maker)


def _resources(far: World) -> dict[bytes, Any]:
    tokens = {
        symbol: {"address": to_checksum(token), "decimals": decimals, "type": "ERC20", "symbol": symbol}
        for symbol, token, decimals in (("DAI", far.dai, 18), ("WETH", far.weth, 18), ("USDC", far.usdc, 6))
    }
    pairs = {pair: {"base": pair.split("/")[0], "quote": "USDC", "liquidityUSD": 1_000_000} for pair in GRIDS}
    return {
        b"tokens": {"tokens": tokens},
        b"pairs": {"pairs": pairs},
        b"prices": {"prices": to_builtins(GRIDS)},
        b"blacklist": {"blacklist": []},
    }
