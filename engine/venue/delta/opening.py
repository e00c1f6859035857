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
from ...chain.indexer import Indexer
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
from .auctioneer import AuctionAt, Auctioneer
from .engine import DeltaChain, DeltaEngine
from .live_orders import LiveOrders
from .projection import DeltaProjection
from .settling import Settling


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
    chains = {
        chain_id: await _chain(owned, opening, place, orders, leases, scheduler)
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
) -> DeltaChain:
    store, delta = opening.store, opening.venue.delta
    relayer = _relayer(opening, place, leases)
    agents = {
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
    auctioneer = Auctioneer(
        AuctionAt(place, relayer.address, opening.settings.relayers[place.chain_id].gas_max),
        agents,
        orders,
        store,
        scheduler,
        settings=delta,
        wall_ms=opening.wall_ms,
    )
    settling = Settling(
        relayer,
        store,
        orders,
        delta=place.delta,
        failures_max=delta.failures_max,
        tell=auctioneer.tell,
        is_followed=lambda: indexer.statistics().block_number > NOTHING_READ,
        wall_ms=opening.wall_ms,
    )
    auctioneer.settling = settling
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
        Watch(),
        touched=lambda *_: None,
        now_ms=opening.wall_ms,
        confirmations=place.settings.confirmations,
        projection=projection,
    )
    return DeltaChain(relayer, indexer, settling, auctioneer)


def _relayer(opening: DeltaOpening, place: Place, leases: Leases) -> Relayer:
    """The relayer. Its settings know the contract where contracts.json named it."""
    chains = opening.settings.chains | {place.chain_id: place.settings}
    settings = replace(opening.settings, chains=chains)
    return relayer_of(settings, place.chain, opening.store, leases, opening.wall_ms)
