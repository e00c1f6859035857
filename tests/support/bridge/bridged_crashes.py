"""A venue on two chains as a process that is killed, while chains, bridges and agent live on in this one.

async with a_bridged_crash(two, tmp_path) as crash:
    record = await crash.bridging(ACROSS)
    await crash.story.killed_and_started()
    await crash.story.becomes(record, "COMPLETED")

Relayer and attester act at once unless a story orders otherwise; the relayer pays nothing out. Each chain is
behind a node at which requests can be held up.

A venue that is killed while makers swap what a bridge delivers, and the maker on the second chain.

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
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import trio
from bench.peers.ports import held_port, port_of
from msgspec import to_builtins

from cambist.codecs.bridges.arrivals import ArrivalTerms, arrival_address, pack_arrival
from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.crypto.addresses import to_checksum
from cambist.engine.trade.delta.orders.arriving import arrival_code
from support.bridge.bridged_stories import (
    FAIR,
    GRIDS,
    bridge_service,
    bridged_settings,
    show_far_books,
    stocked_far_maker,
    way,
)
from support.bridge.two_chains import RELAYER, TwoChains
from support.chain.world import HOUR_S, ONE, World
from support.contracts.settling import a_market
from support.delta.delta_process import (
    CONFIRMATIONS,
    CrashStory,
    GatedNode,
    Record,
    a_crash_story,
    gated_node,
)
from support.makers.firm_makers import SocketMaker
from support.patience import until, until_found
from support.server.scripted_server import scripted_server


class BridgedCrash:
    """A venue that is killed and started, and both chains with their bridges.

    Attributes:
        story: the venue, over HTTP, with its agent and the first chain's node.
        two: the chains, with relayer, attester and their service.
        far_node: node of the second chain.
        environ: what the settings of the venue refer to.
    """

    def __init__(
        self, story: CrashStory, two: TwoChains, far_node: GatedNode, environ: dict[str, str]
    ) -> None:
        self.story = story
        self.two = two
        self.far = two.worlds[two.second]
        self.far_node = far_node
        self.environ = environ

    async def submitted(
        self, kind: BridgeKind, *, fill_within_s: int | None = None, **changed: Any
    ) -> Record:
        """Record of a new order: the user sells one WETH for 2,400 USDC at least on the second chain."""
        terms: dict[str, Any] = {} if fill_within_s is None else {"fill_within_s": fill_within_s}
        bridge = way(self.two, kind, **terms)
        return await self.story.submitted(await self.story.world.a_delta_order(bridge=bridge, **changed))

    async def bridging(self, kind: BridgeKind, **changed: Any) -> Record:
        """Record of a new order once what it bought is with the bridge."""
        return await self.story.becomes(await self.submitted(kind, **changed), "BRIDGING")

    async def turns(self, record: Record, status: str) -> Record:
        """Record once it has a status, although it may have ended in another before."""
        return await until_found(partial(self.story.record, record), lambda now: now["status"] == status)

    async def killed_and_started(self) -> None:
        """Kill the venue, let requests through to both nodes, and start the venue."""
        await self.story.kill()
        await self.started()

    async def started(self) -> None:
        """Let requests through to both nodes, and start the venue."""
        self.far_node.lets_through()
        self.story.node.lets_through()
        await self.story.start()

    async def pass_time(self, seconds: int) -> None:
        """Let time pass on both chains, and make the last blocks final."""
        for world in (self.story.world, self.far):
            await world.pass_time(seconds)
            await world.chain.mine(CONFIRMATIONS)

    async def confirm(self) -> None:
        """Make all that is mined on either chain final."""
        for world in (self.story.world, self.far):
            await world.chain.mine(CONFIRMATIONS)

    async def traded(self) -> dict[str, int]:
        """WETH and USDC of every account that trades: `account symbol` -> raw units."""
        two, world = self.two, self.story.world
        found = await self.story.traded()
        for name, who in (("user", world.user.address), ("filler", RELAYER.address)):
            found[f"{name} far USDC"] = await two.balance(two.second, "USDC", who)
        return found | {"pool USDC": await two.balance(two.first, "USDC", world.spoke_pool)}

    async def moved(self, before: dict[str, int]) -> dict[str, int]:
        """Balance changes since `before`."""
        after = await self.traded()
        return {name: after[name] - before[name] for name in before if after[name] != before[name]}

    async def relayed_far(self) -> int:
        """Number of transactions of the venue's that were mined on the second chain."""
        return await self.far.chain.nonce(self.story.world.relayer.address)


@asynccontextmanager
async def another_engine(crash: BridgedCrash) -> AsyncGenerator[CrashStory]:
    """A second process of the venue, on the same store; killed in the end."""
    story = crash.story
    folder = story.folder / "another"
    folder.mkdir()
    with held_port() as held:
        port = port_of(held)
        for name in ("venue.toml", "contracts.json"):
            text = (story.folder / name).read_text()
            (folder / name).write_text(text.replace(f"port = {story.port}\n", f"port = {port}\n", 1))
        other = CrashStory(story.market, story.node, story.agents, folder, port, crash.environ)
        await other.start()
        try:
            yield other
        finally:
            await killed(other)
    assert other.logged_errors() == []


async def killed(engine: CrashStory) -> None:
    """Kill an engine that has no store process."""
    engine.process.kill()
    with trio.CancelScope(shield=True):
        await engine.process.ended()


@asynccontextmanager
async def a_bridged_crash(
    two: TwoChains, folder: Path, store_url: str | None = None, more: str = ""
) -> AsyncGenerator[BridgedCrash]:
    """A venue on two chains that serves, in the folder; killed in the end.

    Args:
        store_url: of a database; without it, SQLite with a store process.
        more: TOML of the venue.
    """
    async with bridge_service(two) as port, gated_node(two.chains[two.second]) as (far_node, far_port):
        two.relayer.order(fill_after_s=0, pays_out=False)
        two.attester.order(fast_after_s=0, final_after_s=0)
        far_url = f"http://127.0.0.1:{far_port}"
        settings = bridged_settings(two, folder, port, far_url=far_url)
        environ = settings.environ | ({"CAMBIST__STORE__URL": f'"{store_url}"'} if store_url else {})
        market = await a_market(two.worlds[two.first])
        more = settings.more + more
        async with a_crash_story(folder, "ann", more=more, environ=environ, market=market) as story:
            story.agents["ann"].gives = lambda order: FAIR * int(order.src_amount) // ONE
            yield BridgedCrash(story, two, far_node, environ)


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
