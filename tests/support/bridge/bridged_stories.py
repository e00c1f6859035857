"""Orders across two chains as their owners live them: a venue over HTTP, its bridges' actors, both chains.

async with a_bridged_story(two, tmp_path) as story:
    before = await story.balances()
    record = await story.submitted(await story.an_order(ACROSS))
    await story.becomes(record, "COMPLETED")
    assert await story.moved_since(before) == story.carried(ACROSS)

The venue serves both chains, and three bridges: `across`, `cctp` and `express`, the latter CCTP by its fast
tier. The venue asks the service of relayer and attester over a socket. The agent `ann` trades at FAIR for one
WETH, from its contract on the first chain. Balances there have the token's name, on the second chain `far
USDC`.

Orders across chains whose bridge's token is swapped on the destination, by a maker there.

async with a_swapped_story(two, tmp_path) as (story, maker):
    record = await story.becomes(await story.ordered(await quoted_dai(story, "across")), "COMPLETED")

The maker `zoe` on the second chain sells DAI for USDC at RATE by firm quotes, from a socket.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from msgspec import Struct
from msgspec.structs import replace

from cambist.codecs.bridges.bridge_terms import (
    SELECTORS,
    AcrossTerms,
    BridgeFee,
    BridgeKind,
    BridgeTerms,
    CctpTerms,
    output_of,
    pack_terms,
)
from cambist.codecs.bridges.cctp import FINALITY_FINALIZED
from cambist.codecs.eip712_orders.delta import DeltaBridge, DeltaOrder
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.codecs.messages.agent_messages import AuctionOrder
from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.signatures import to_compact64
from cambist.engine.chain.deploy.address_book import chain_entry, write_entries
from cambist.engine.dev.bridge.bridge_service import BridgeService
from cambist.engine.trade.delta.bridging.delivery_watch import DeliveryStatistics
from cambist.engine.trade.routing.firm.firm_scores import FirmMaker, FirmScores
from cambist.engine.trade.served.served_chain import ServedChain
from cambist.feeds.blacklist import MakerBlacklist
from cambist.feeds.books.book import build_book
from cambist.feeds.books.pair_index import LiveBook, PairIndex
from cambist.feeds.firm.firm_client import FirmClient
from cambist.feeds.firm.maker_health import MakerHealth
from cambist.feeds.maker_cache import MakerCache
from support.bridge.two_chains import DOMAINS, RELAYER, AwayChain, TwoChains
from support.chain.world import NOBODY, ONE, RFQ_NAME, USDC, Moved, World, person
from support.contracts.delta_agents import StoryAgent
from support.contracts.settling import Market
from support.delta.delta_stories import CONFIRMATIONS, DeltaStory, Record, running_delta, stocked
from support.makers.firm_makers import SocketMaker
from support.patience import PATIENCE_S, until, until_found
from support.server.asked_front import listening
from support.server.scripted_server import scripted_server
from support.venue.venue_role import DECIMALS, token_text

ACROSS, CCTP = BridgeKind.ACROSS, BridgeKind.CCTP
FAIR = 2_500 * USDC
"""USDC for one WETH, at which the agent sells and buys."""
FEE = BridgeFee(440, 22_000)
"""Fee of Across that owners sign: the dev relayer's, and a tenth more."""
FILL_WITHIN_S = 7_200
TERMS: Mapping[BridgeKind, BridgeTerms] = {
    ACROSS: AcrossTerms(FEE, FILL_WITHIN_S, NOBODY, 0),
    CCTP: CctpTerms(BridgeFee(0, 0), FINALITY_FINALIZED, 0),
}
PAUSES = {
    "courier.BRIDGE_ATTEST_S": 0.05,
    "courier.BRIDGE_RECEIVE_LOOK_S": 0.05,
    "bridge_rounds.BRIDGE_LOOK_S": 0.05,
    "bridge_rounds.BRIDGE_PAUSE_S": 0.02,
    "bridge_rounds.BRIDGE_PAUSE_S_MAX": 0.1,
}
"""Pauses of engine.delta.bridging that stories shorten."""
_BRIDGE = """
[bridges.{name}]
kind = "{kind}"
{tier}url = "http://127.0.0.1:{port}"
every_s = 0.2
stale_s = 36000
[[bridges.{name}.tokens]]
chains = {{ {ends} }}
"""
_CHAIN = """
[chains.{far}]
name = "the other chain"
delta = true
confirmations = {confirmations}
[chains.{far}.node]
urls = ["{url}"]
poll_s = 0.05
[relayers.{far}]
key = "relayer"
"""


class BridgedStory(DeltaStory):
    """A venue on two chains, its agent, its bridges' actors, and who trades there.

    Attributes:
        two: the chains, with relayer, attester and their service.
        far: the world of the second chain.
        nodes: chain id -> the chain as the venue sees it, which can be away.
    """

    def __init__(self, two: TwoChains, story: DeltaStory, nodes: Mapping[int, AwayChain]) -> None:
        super().__init__(story.market, story.web, story.clock, story.agents, story.folder)
        self.two = two
        self.far = two.worlds[two.second]
        self.nodes = nodes
        self.people |= {
            "pool": self.world.spoke_pool,
            "bridges": self.world.at.bridges,
            "filler": RELAYER.address,
        }

    # --- Orders -----------------------------------------------------------------------------------------

    def way(self, kind: BridgeKind, symbol: str = "USDC", **changed: Any) -> DeltaBridge:
        """A bridge to a token on the second chain; changed members are of its terms."""
        return way(self.two, kind, symbol, **changed)

    async def an_order(self, kind: BridgeKind, **changed: Any) -> DeltaOrder:
        """The user sells one WETH for 2,400 USDC at least on the second chain, within the hour."""
        return await self.world.a_delta_order(**{"bridge": self.way(kind)} | changed)

    async def bridging(self, kind: BridgeKind, **changed: Any) -> Record:
        """Record of a new order once what it bought is with the bridge."""
        return await self.becomes(await self.submitted(await self.an_order(kind, **changed)), "BRIDGING")

    async def quoted(self, bridge: str, side: str, amount: int, **changed: str) -> dict[str, Any]:
        """Route of a quote from WETH to USDC on the second chain, by a bridge; parameters may be changed."""
        query = {
            "chainId": self.two.first,
            "destChainId": self.two.second,
            "srcToken": to_checksum(self.world.weth),
            "destToken": to_checksum(self.far.usdc),
            "srcDecimals": 18,
            "destDecimals": 6,
            "side": side,
            "amount": str(amount),
            "includeBridges": bridge,
            "mode": "DELTA",
        }
        told = await self.web.get("/v2/quote", **query | changed)
        return cast("dict[str, Any]", told["delta"]["route"])

    async def ordered(self, route: dict[str, Any], slippage_bps: int = 100) -> Record:
        """Build an order of a route, sign it as a wallet does, and submit it."""
        owner = self.world.user
        asked = {"route": route, "owner": to_checksum(owner.address), "slippage": slippage_bps}
        status, built = await self.web.post(
            "/v2/delta/orders/build", asked | {"deadline": await self.world.now_s() + 3_600}
        )
        assert status == 200, built
        return await self.sent(built)

    async def sent(self, built: dict[str, Any]) -> Record:
        """Sign a built order as a wallet does, and submit it."""
        owner = self.world.user
        signature = to_hex(to_compact64(*owner.sign(parse_hex(built["orderHash"], "orderHash"))))
        sent = {"chainId": self.two.first, "order": built["toSign"]["value"], "signature": signature}
        status, record = await self.web.post("/v2/delta/orders", sent | {"partner": "anon"})
        assert status == 200, record
        return cast("Record", record)

    async def arrives(self, record: Record, count: int) -> Record:
        """Record once so many of its settlements have arrived."""

        def has_arrived(now: Record) -> bool:
            return sum(one["destinationTx"] is not None for one in now["transactions"]) >= count

        return await until_found(partial(self.record, record["id"]), has_arrived)

    async def is_refunded(self, record: Record) -> Record:
        """Record once it has a refund."""
        return await until_found(partial(self.record, record["id"]), lambda now: now["refunds"])

    async def is_listed(self, record: Record, status: str) -> None:
        """Check that its owner's orders of a status are this one."""
        query = {"userAddress": record["owner"], "status": status}
        listed = await self.web.get("/v2/delta/orders", **query)
        assert [one["id"] for one in listed["data"]] == [record["id"]]

    async def turns(self, record: Record, status: str) -> Record:
        """Record once it has a status, although it may have ended in another before."""
        return await until_found(partial(self.record, record["id"]), lambda now: now["status"] == status)

    # --- Both chains ------------------------------------------------------------------------------------

    async def balances(self) -> Moved:
        """Tokens of all accounts on both chains, native ones left out."""
        near = {key: amount for key, amount in (await super().balances()).items() if key[1] != "ETH"}
        return near | await far_balances(self.far, self.people)

    async def pass_time(self, seconds: int) -> None:
        """Let time pass for the venue, and for both chains."""
        await self.stands_still(seconds)
        await self.far.pass_time(seconds)

    async def stands_still(self, seconds: int) -> None:
        """Let time pass for the venue and the first chain: the second chain makes no block."""
        await super().pass_time(seconds)

    async def has_read_what_left(self) -> None:
        """Wait until the venue has found a deposit or burn in the receipt of its settlement."""
        watch = self.web.app.delta.bridges._deliveries[self.two.second]
        await until(lambda: watch._sent)

    def deliveries(self) -> DeliveryStatistics:
        """Counters of the venue's watch of the second chain."""
        return self.web.app.delta.bridges.statistics()[self.two.second].deliveries

    async def confirm(self) -> None:
        """Make all that is mined on either chain final."""
        for world in (self.world, self.far):
            await world.chain.mine(CONFIRMATIONS)

    async def becomes_final(self, record: Record) -> None:
        """Mine blocks on both chains until no re-organisation can change an order's end."""
        orders = self.web.app.delta.orders
        with trio.fail_after(PATIENCE_S):
            while orders.get(self.hash_of(record)) is not None:
                await self.world.chain.mine()
                await self.far.chain.mine()
                await trio.sleep(0.02)  # as chains make their blocks

    # --- What has to have moved ---------------------------------------------------------------------------

    def sold(self, bought: int = FAIR, spent: int = ONE, *, by: BridgeKind = ACROSS) -> Moved:
        """Movements of a settlement: what was bought is in Across's pool, or burned."""
        moved = {("user", "WETH"): -spent, ("agent", "WETH"): spent, ("agent", "USDC"): -bought}
        return moved | ({("pool", "USDC"): bought} if by is ACROSS else {})

    def carried(self, kind: BridgeKind) -> Moved:
        """Movements of the settlement and the delivery of an order of one WETH."""
        if kind is ACROSS:
            return self.sold() | {("user", "far USDC"): arriving(), ("filler", "far USDC"): -arriving()}
        return self.sold(by=kind) | {("user", "far USDC"): FAIR}


def way(
    two: TwoChains, kind: BridgeKind, symbol: str = "USDC", *, origin: int | None = None, **changed: Any
) -> DeltaBridge:
    """A bridge to a token on the other chain than the origin; changed members are of its terms.

    Args:
        origin: id of the chain; by default the first one.
    """
    origin = two.first if origin is None else origin
    destination, terms = two.other(origin), TERMS[kind]
    if isinstance(terms, CctpTerms):
        terms = replace(terms, domain=DOMAINS[destination])
    scaling = two.decimals(symbol, destination) - two.decimals(symbol, origin)
    token = two.tokens[symbol][destination]
    return DeltaBridge(SELECTORS[kind], destination, token, scaling, pack_terms(replace(terms, **changed)))


def arriving(entered: int = FAIR, scaling: int = 0) -> int:
    """Raw units that Across delivers of an amount that enters it."""
    return output_of(FEE, scaling, entered)


async def far_balances(far: World, people: Mapping[str, bytes]) -> Moved:
    """Tokens of accounts on the second chain, of its pool, and of the account that gets CCTP's fees."""
    tokens = {"WETH": far.weth, "USDC": far.usdc, "DAI": far.dai}
    people = {**people, "pool": far.spoke_pool, "circle": far.owner.address}
    return {(who, f"far {token}"): has for (who, token), has in (await far.held(people, tokens)).items()}


class BridgedSettings(Struct, frozen=True):
    """Settings of a second chain and of bridges, for a venue whose settings are of the first chain alone."""

    more: str
    environ: dict[str, str]


def bridged_settings(
    two: TwoChains, folder: Path, port: int, *, far_url: str = "http://127.0.0.1:9"
) -> BridgedSettings:
    """Write the second chain to the folder's address book; TOML and environment of chain and bridges.

    Args:
        port: of the bridges' service.
    """
    environ = {}
    for chain_id, place in two.places.items():
        for name, value in (
            ("spoke_pool", f'"{to_checksum(place.spoke_pool)}"'),
            ("token_messenger", f'"{to_checksum(place.messenger)}"'),
            ("message_transmitter", f'"{to_checksum(place.transmitter)}"'),
            ("cctp_domain", str(place.domain)),
        ):
            environ[f"CAMBIST__CHAINS__{chain_id}__{name.upper()}"] = value
    far = two.worlds[two.second]
    entry = chain_entry("far", far.at, wrappedNative=to_checksum(far.weth), permit2=to_checksum(far.permit2))
    write_entries(folder, {two.second: entry})
    text = _CHAIN.format(far=two.second, url=far_url, confirmations=CONFIRMATIONS)
    listed = [("USDT", two.first)] + [(symbol, two.second) for symbol in two.tokens]
    for symbol, chain_id in listed:
        address = to_checksum(two.tokens[symbol][chain_id])
        text += token_text(chain_id, symbol, address, two.decimals(symbol, chain_id))
    for name, kind, tier, symbols in (
        ("across", "across", "", ("USDC", "USDT", "WETH")),
        ("cctp", "cctp", "", ("USDC",)),
        ("express", "cctp", 'tier = "fast"\n', ("USDC",)),
    ):
        tokens = [
            ", ".join(f'{one} = "{to_checksum(address)}"' for one, address in two.tokens[symbol].items())
            for symbol in symbols
        ]
        text += _BRIDGE.format(name=name, kind=kind, tier=tier, port=port, ends=tokens[0])
        text += "".join(f"[[bridges.{name}.tokens]]\nchains = {{ {ends} }}\n" for ends in tokens[1:])
    return BridgedSettings(text, environ)


@asynccontextmanager
async def bridge_service(two: TwoChains) -> AsyncGenerator[int]:
    """Port at which the service of relayer and attester is served."""
    async with listening(BridgeService(two.relayer, two.attester).server.serve) as port:
        yield port


@asynccontextmanager
async def a_bridged_story(
    two: TwoChains, folder: Path, *, is_two_way: bool = False
) -> AsyncGenerator[BridgedStory]:
    """A story whose venue serves; relayer and attester act at once, and the relayer pays nothing out.

    Args:
        is_two_way: the second chain has a market, too, with the agent `bob`.
    """
    two.relayer.order(fill_after_s=0, pays_out=False)
    two.attester.order(fast_after_s=0, final_after_s=0)
    markets = {"ann": await stocked(two.worlds[two.first])}
    if is_two_way:
        markets["bob"] = await stocked(two.worlds[two.second])
    agents = {name: _dealer(name, market) for name, market in markets.items()}
    with pytest.MonkeyPatch.context() as patch:
        for name, pause_s in PAUSES.items():
            patch.setattr(f"cambist.engine.trade.delta.bridging.{name}", pause_s)
        async with bridge_service(two) as port, a_bridged_venue(two, folder, agents, port) as story:
            yield story


@asynccontextmanager
async def a_bridged_venue(
    two: TwoChains, folder: Path, agents: dict[str, StoryAgent], port: int
) -> AsyncGenerator[BridgedStory]:
    """A venue with these agents, `ann` among them; a second venue in the same folder is a restart."""
    settings = bridged_settings(two, folder, port)
    nodes = {chain_id: AwayChain(chain) for chain_id, chain in two.chains.items()}
    async with running_delta(
        agents["ann"].market,
        folder,
        agents,
        more=settings.more,
        environ=settings.environ,
        chains=cast("Any", nodes),
    ) as running:
        story = BridgedStory(two, running, nodes)
        _show_books(story.world, running)
        await until(lambda: all(lane.fees.statistics().answers for lane in running.web.app.bridges))
        yield story


def _dealer(name: str, market: Market) -> StoryAgent:
    """An agent that trades WETH at FAIR on the chain of its market."""
    agent = StoryAgent(name, market)

    def is_mine(order: AuctionOrder) -> bool:
        return agent.traded(order.src_token) == market.world.weth

    agent.gives = lambda order: FAIR * int(order.src_amount) // ONE if is_mine(order) else None
    agent.takes = lambda order: -(-ONE * int(order.dest_amount) // FAIR) if is_mine(order) else None
    return agent


def _show_books(world: World, running: DeltaStory) -> None:
    grid = PriceGrid(bids=(("2500", "50"),), asks=(("2501", "50"),))
    book = build_book(grid, DECIMALS["WETH"], DECIMALS["USDC"])
    index = running.web.app.chains[world.chain.chain_id].index
    index.put(LiveBook("alpha", world.weth, world.usdc, book, Decimal(1_000_000)))


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
    return story.web.app.chains[story.two.second]


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
            patch.setattr(f"cambist.engine.trade.delta.arriving.arrival_swaps.{name}", pause_s)
        async with a_bridged_story(two, folder) as story, a_far_maker(story) as maker:
            yield story, maker
