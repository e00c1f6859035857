"""Opens what runs the Delta orders of a venue: agents, relayers, indexers, and the engine over them.

Choice: a chain with `delta` and without a relayer is priced and built for, and takes no orders: nothing would
    settle them.
"""

import secrets
from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from random import Random
from ssl import SSLContext

from msgspec import Struct
from msgspec.structs import replace

from ....config.settings import Settings
from ....config.venue import VenueSettings
from ...chain.applied import Contracts
from ...chain.indexer import Indexer, IndexerState
from ...chain.relayer import Relayer
from ...chain.relaying import relayer_of
from ...chain.ring import NOTHING_READ
from ...chain.watch import Watch
from ...routing.makers import request_signer
from ...scheduler import Scheduler
from ...store.leases import Leases
from ...store.store import Store
from ..place import Place
from .agent_client import AgentClient
from .auctioneer import Auctioneer, AuctionIds
from .engine import DeltaChain, DeltaEngine
from .funds_watch import FundsWatch
from .live_orders import LiveOrders
from .price_watch import PriceWatch
from .projection import DeltaProjection
from .resting_price import RestingPrices
from .settling import Settling
from .simulating import AuctionAt


class DeltaOpening(Struct, frozen=True):
    """What it is opened with.

    Attributes:
        wall_ms: Unix milliseconds.
    """

    settings: Settings
    venue: VenueSettings
    store: Store
    wall_ms: Callable[[], int]
    random: Random
    tls: SSLContext


async def open_delta(
    owned: AsyncExitStack, opening: DeltaOpening, places: Mapping[int, Place]
) -> DeltaEngine:
    """The engine of the chains that have Delta and a relayer; connections to agents close with `owned`.

    Raises:
        ConfigError: names the setting that is wrong.
    """
    store, wall_ms = opening.store, opening.wall_ms
    leases = Leases(
        store, f"venue-{secrets.token_hex(8)}", life_s=opening.settings.store.lease_s, now_ms=wall_ms
    )
    scheduler = Scheduler(wall_ms)
    orders = LiveOrders(store, leases)
    ids = AuctionIds()
    chains = {
        chain_id: await _chain(owned, opening, place, orders, leases, scheduler, ids)
        for chain_id, place in places.items()
        if place.settings.delta and chain_id in opening.settings.relayers
    }
    return DeltaEngine(store, leases, scheduler, orders=orders, chains=chains, wall_ms=wall_ms)


async def _chain(
    owned: AsyncExitStack,
    opening: DeltaOpening,
    place: Place,
    orders: LiveOrders,
    leases: Leases,
    scheduler: Scheduler,
    ids: AuctionIds,
) -> DeltaChain:
    store, delta = opening.store, opening.venue.delta
    relayer = _relayer(opening, place, leases)
    auctioneer = Auctioneer(
        AuctionAt(place, relayer.address, opening.settings.relayers[place.chain_id].gas_max),
        await _agents(owned, opening, place),
        orders,
        store,
        scheduler,
        ids=ids,
        settings=delta,
        wall_ms=opening.wall_ms,
    )
    watch = Watch()
    funds = FundsWatch(
        place.chain,
        orders,
        watch,
        delta=place.delta,
        read_to=lambda: _read_to(indexer),
        wall_ms=opening.wall_ms,
    )
    settling = Settling(
        relayer,
        store,
        orders,
        delta=place.delta,
        failures_max=delta.failures_max,
        tell=auctioneer.tell,
        are_lacking=funds.are_lacking,
        is_followed=lambda: indexer.statistics().block_number > NOTHING_READ,
        wall_ms=opening.wall_ms,
    )
    auctioneer.settling = settling
    auctioneer.claims = funds.claims
    prices = PriceWatch(
        place.index,
        RestingPrices(place.pathfinder, place.usd, place.tokens, opening.venue.delta_gas),
        auctioneer,
        gas_price_wei=lambda: place.gas.gas_price_wei,
        wall_ms=opening.wall_ms,
    )
    projection = DeltaProjection(
        store,
        orders,
        confirmations=place.settings.confirmations,
        failures_max=delta.failures_max,
        now_ms=opening.wall_ms,
    )
    indexer = Indexer(
        place.chain,
        store,
        Contracts(delta=place.delta),
        watch,
        touched=funds.touched,
        now_ms=opening.wall_ms,
        confirmations=place.settings.confirmations,
        projection=projection,
    )
    return DeltaChain(relayer, indexer, settling, auctioneer, prices, funds)


async def _agents(owned: AsyncExitStack, opening: DeltaOpening, place: Place) -> dict[str, AgentClient]:
    """Those of a chain, by name."""
    return {
        name: await owned.enter_async_context(
            AgentClient(
                name,
                agent.url,
                signer=request_signer(f"venue.agents.{name}.credentials", agent.credentials),
                wall_ms=opening.wall_ms,
                tls=opening.tls,
            )
        )
        for name, agent in sorted(opening.venue.agents.items())
        if not agent.chains or place.chain_id in agent.chains
    }


def _read_to(indexer: Indexer) -> int | None:
    """How far the chain is read; None until that is its head."""
    told = indexer.statistics()
    return told.block_number if told.state is IndexerState.FOLLOWING else None


def _relayer(opening: DeltaOpening, place: Place, leases: Leases) -> Relayer:
    """The relayer. Its settings know the contract where contracts.json named it."""
    chains = opening.settings.chains | {place.chain_id: place.settings}
    settings = replace(opening.settings, chains=chains)
    return relayer_of(settings, place.chain, opening.store, leases, opening.wall_ms)
