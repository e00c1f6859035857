"""Creates the engine of a venue's Delta orders, with the agents and the relayer of each chain.

Section `[relayers.ID]` of the settings names the key of the relayer of the chain with this id.

Choice: Delta is not served on a chain with `delta` and no relayer: nothing would settle an order that an
    owner approved and signed.
"""

from collections.abc import Callable
from contextlib import AsyncExitStack
from functools import partial
from random import Random
from ssl import SSLContext

from msgspec import Struct
from msgspec.structs import replace

from ....codecs.bridges.bridge_terms import kind_of
from ....codecs.eip712_orders.delta import ProductiveOrder
from ....codecs.trading_token import NATIVE_TOKEN
from ....config.errors import ChainError, ConfigError, ServiceUnavailable
from ....config.sections.venue import VenueSettings
from ....config.settings import Settings
from ....crypto.addresses import parse_address
from ....crypto.custody.keys import signing_key
from ....crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from ....crypto.keccak import keccak256_public
from ...chain.port import Chain
from ...chain.relay.relay_state import relay_policy
from ...chain.relay.relayer import Relayer
from ...chain.together import all_of
from ...host.admission.ledger import Ledger
from ...host.process.credentials import check_secrecy
from ...store.leases import Leases
from ...store.store import Store
from ..orders.order_engines import Footing
from ..routing.makers import request_signer
from ..served.bridge_lanes import BridgeLanes
from ..served.delivery_gas import delivery_wei, gas_after
from ..served.served_chain import ServedChain, ServedChains
from .auction.agents import Agents, AuctioneerWakeup
from .auction.auction_queue import AuctionQueue
from .auction.auctioneer import Auctioneer, AuctionIds
from .auction.gas_cover import GasCover
from .auction.own_bids import OwnBids
from .auction.simulating import AuctionAt, covering_cost
from .bids.agent_client import AgentClient
from .bids.bids import RoundOrder
from .bridging.bridged_orders import is_carried
from .engine import DeltaChain, DeltaEngine
from .open_bridge_desk import open_desk
from .orders.arriving import arrival_of
from .orders.live_orders import LiveOrder, LiveOrders
from .orders.terms import is_bridge_only
from .orders.transfers import bridge_of
from .resting.price_watch import PriceWatch
from .resting.resting_price import RestingPrices
from .settlement.funds_watch import FundsWatch
from .settlement.owner_costs import OwnerCosts
from .settlement.projection import DeltaProjection
from .settlement.settling import Settling
from .settlement.vault_reads import VaultReads


def relay_key(settings: Settings, chain_id: int) -> PolicedRelayKey:
    """Load the key of the account (relayer) that sends a chain's settlements.

    The key signs only calls of the Delta contract, of Arrivals and of CCTP's MessageTransmitter, and calls
    from the account to itself, which use up a nonce.

    Raises:
        ConfigError: the chain has no relayer, the key cannot be read, everybody knows it, or the chain has no
            Delta contract; the error names the setting.
    """
    relayer = settings.relayers.get(chain_id)
    if relayer is None:
        raise ConfigError(f"relayers.{chain_id}", "is not set")
    named = settings.keys[relayer.key]
    try:
        key = signing_key(named.source, named.password)
    except ConfigError as error:
        raise ConfigError(f"keys.{relayer.key}", f"{error.key} {error.detail}") from None
    check_secrecy(f"keys.{relayer.key}", key.address, (chain_id,))
    chain = settings.chains[chain_id]
    contract = chain.delta_contract
    if not contract:
        raise ConfigError(f"chains.{chain_id}.delta_contract", "is not set: Delta needs its contract")
    named_contracts = {
        "delta_contract": contract,
        "message_transmitter": chain.message_transmitter,
        "arrivals": chain.arrivals,
    }
    allowed = [
        parse_address(text, f"chains.{chain_id}.{name}") for name, text in named_contracts.items() if text
    ]
    targets = frozenset((chain_id, target) for target in (key.address, *allowed))
    return PolicedRelayKey(key, TransactionPolicy(targets, relayer.fee_cap_wei, relayer.gas_max))


def relayer_of(
    settings: Settings, chain: Chain, store: Store, leases: Leases, now_ms: Callable[[], int]
) -> Relayer:
    """Create the relayer of a chain, which sends settlements; the caller runs its `run` as a task.

    Args:
        leases: leases of the engine's shards, which outlive the relayer.
        now_ms: returns the time, Unix milliseconds.

    Raises:
        ConfigError: the relayer's settings are wrong; see `relay_key`.
    """
    key = relay_key(settings, chain.chain_id)
    confirmations = settings.chains[chain.chain_id].confirmations
    policy = relay_policy(settings.relayers[chain.chain_id], confirmations)
    return Relayer(chain, store, key, leases, policy, now_ms)


class DeltaOpening(Struct, frozen=True):
    """Inputs from which the engine of Delta orders is created.

    Attributes:
        footing: store, leases, scheduler, clock and chains, shared with the other order engines.
        lanes: lanes between the chains, with their present fees.
        ledger: ledger of what callers and owners cost the venue.
        tls: TLS context for the connections to agents.
    """

    settings: Settings
    venue: VenueSettings
    footing: Footing
    lanes: BridgeLanes
    ledger: Ledger
    random: Random
    tls: SSLContext


async def open_delta(
    owned: AsyncExitStack, opening: DeltaOpening, served_chains: ServedChains
) -> DeltaEngine:
    """Create the engine of Delta orders, for the chains that have a Delta contract and a relayer.

    Args:
        owned: exit stack that closes the connections to the agents and to the attestation service.

    Raises:
        ConfigError: a setting is wrong; the error names it.
    """
    footing = opening.footing
    orders = LiveOrders(footing.store, footing.leases)
    ids = AuctionIds()
    chains = {
        chain_id: await _chain(owned, opening, served_chains, served, orders, ids)
        for chain_id, served in served_chains.items()
        if not served.no_delta
    }
    bridges = await open_desk(
        owned,
        opening.settings.bridges,
        served_chains,
        {
            chain_id: (chain.relayer, opening.settings.relayers[chain_id].gas_max)
            for chain_id, chain in chains.items()
        },
        store=footing.store,
        orders=orders,
        tls=opening.tls,
        wall_ms=footing.wall_ms,
    )
    return DeltaEngine(
        footing.store,
        footing.scheduler,
        orders=orders,
        chains=chains,
        bridges=bridges,
        wall_ms=footing.wall_ms,
    )


async def _chain(
    owned: AsyncExitStack,
    opening: DeltaOpening,
    served_chains: ServedChains,
    served: ServedChain,
    orders: LiveOrders,
    ids: AuctionIds,
) -> DeltaChain:
    store, scheduler, wall_ms = opening.footing.store, opening.footing.scheduler, opening.footing.wall_ms
    delta = opening.venue.delta
    followed = opening.footing.chains.of(served.chain_id)
    relayer = _relayer(opening, served)
    gas_max = opening.settings.relayers[served.chain_id].gas_max
    wakeup, head_time_s = AuctioneerWakeup(), lambda: served.pulse.head_time_s
    clients = await _agents(owned, opening, served)
    agents = Agents(clients, chain_id=served.chain_id, settings=delta, wakeup=wakeup, wall_ms=wall_ms)
    own_bids = _own_bids(opening, served_chains, served, relayer.address, agents)
    costs, gas = _owner_costs(opening, served), GasCover(opening.ledger, served.chain_id, delta)
    queue = AuctionQueue(
        served.chain,
        agents,
        own_bids,
        wakeup,
        orders,
        scheduler,
        head_time_s=head_time_s,
        is_carried=lambda live: is_carried(opening.lanes, live, wall_ms(), own_bids.entering(live)),
        owner_rests_until_ms=costs.rests_until_ms,
        settings=delta,
        wall_ms=wall_ms,
    )
    prices = _price_watch(opening, served, queue)
    funds = FundsWatch(
        served.chain,
        orders,
        followed.watch,
        delta=served.delta,
        vaults=VaultReads(served.chain, delta=served.delta, relayer=relayer.address, gas_max=gas_max),
        revalued=prices.revalued,
        read_to=followed.read_to,
        wall_ms=wall_ms,
    )
    settling = Settling(
        relayer,
        served.chain,
        store,
        orders,
        delta=served.delta,
        gas_max=gas_max,
        failures_max=delta.failures_max,
        tell=own_bids.tell,  # which passes on to the agents what is about theirs
        are_lacking=funds.are_lacking,
        calls_contract=partial(_calls_contract, served.chain),
        owner_costs=costs,
        unspent=gas.unspent,
        # Not `followed.read_to`, which is None while the indexer is behind: `Settling` waits for a height.
        read_to=lambda: followed.indexer.statistics().block_number,
        wall_ms=wall_ms,
    )
    auctioneer = Auctioneer(
        AuctionAt(served, relayer.address, gas_max),
        agents,
        own_bids,
        wakeup,
        queue,
        orders,
        store,
        gas=gas,
        is_barred=costs.is_barred,
        there_wei=partial(_there_wei, served_chains, served),
        settling=settling,
        claims=funds.claims,
        unsettled=prices.again,
        ids=ids,
        settings=delta,
        wall_ms=wall_ms,
    )
    followed.join(_projection(opening, served, orders), funds.touched)
    return DeltaChain(relayer, followed, settling, auctioneer, prices, funds, head_time_s)


def _projection(opening: DeltaOpening, served: ServedChain, orders: LiveOrders) -> DeltaProjection:
    return DeltaProjection(
        opening.footing.store,
        orders,
        confirmations=served.settings.confirmations,
        failures_max=opening.venue.delta.failures_max,
        now_ms=opening.footing.wall_ms,
    )


def _own_bids(
    opening: DeltaOpening, chains: ServedChains, served: ServedChain, relayer: bytes, agents: Agents
) -> OwnBids:
    return OwnBids(
        served.delta,
        relayer,
        served.tokens.wrapped_native,
        partial(_worth_of_gas, chains, served),
        opening.venue.delta,
        agents.tell,
        opening.footing.wall_ms,
    )


def _there_wei(chains: ServedChains, served: ServedChain, order: RoundOrder) -> int:
    bridge = bridge_of(order.order)
    there = chains.get(bridge.destination_chain_id)
    if there is None:
        return 0
    arrival = arrival_of(order.order, order.document.arrivals)
    # A bridge-only order pays for a swap there in advance; what another order's swap brings is worth its gas.
    is_paid = is_bridge_only(order.order, served.tokens.wrapped_native)
    after = gas_after(arrival) if arrival is not None and (arrival.is_wrap or is_paid) else 0
    return delivery_wei(kind_of(bridge), served, there, after)


def _worth_of_gas(chains: ServedChains, served: ServedChain, order: RoundOrder, units: int) -> int:
    """Worth of units of gas and of an order's delivery, raw units of its token; 0 if either has no price."""
    cost_of = covering_cost(order, served)
    try:
        wei = units * served.gas.gas_price_wei + _there_wei(chains, served, order)
    except ServiceUnavailable:  # the gas has no price yet
        return 0
    return 0 if cost_of is None else cost_of(wei)


def _owner_costs(opening: DeltaOpening, served: ServedChain) -> OwnerCosts:
    delta = opening.venue.delta
    return OwnerCosts(
        opening.ledger,
        served.chain_id,
        partial(_codes_of, served.chain),
        rest_ms=round(delta.rest_s * 1_000),
        rest_ms_max=round(delta.rest_s_max * 1_000),
        wall_ms=opening.footing.wall_ms,
    )


def _price_watch(opening: DeltaOpening, served: ServedChain, queue: AuctionQueue) -> PriceWatch:
    return PriceWatch(
        served.index,
        RestingPrices(served.pathfinder, served.usd, served.tokens, opening.venue.delta_gas),
        queue,
        gas_price_wei=lambda: served.gas.gas_price_wei,
        wall_ms=opening.footing.wall_ms,
    )


async def _codes_of(chain: Chain, live: LiveOrder) -> frozenset[bytes]:
    """Hashes, 32 bytes each, of the code that a settlement runs for the order's owner.

    The owner itself and the receiver of native tokens may have such code. The vault from which an order sells
    is the operator's choice, and counts for no owner.

    Raises:
        ChainError: no node answers.
    """
    terms = live.terms
    called = {terms.owner, terms.beneficiary} if terms.dest_token == NATIVE_TOKEN else {terms.owner}
    codes = await all_of(chain.code, sorted(called), len(called))
    return frozenset(keccak256_public(code) for code in codes if code)


async def _calls_contract(chain: Chain, live: LiveOrder) -> bool:
    """Whether a settlement calls a contract that is the order's owner or that the owner chose.

    The owner itself, the receiver of native tokens and the vault from which the order sells are such
    contracts. The result is False if the chain does not answer.
    """
    try:
        return isinstance(live.order, ProductiveOrder) or bool(await _codes_of(chain, live))
    except ChainError:
        return False


async def _agents(
    owned: AsyncExitStack, opening: DeltaOpening, served: ServedChain
) -> dict[str, AgentClient]:
    """Open the HTTP clients of the agents that bid on a chain, by agent name."""
    return {
        name: await owned.enter_async_context(
            AgentClient(
                name,
                agent.url,
                signer=request_signer(f"venue.agents.{name}.credentials", agent.credentials),
                wall_ms=opening.footing.wall_ms,
                tls=opening.tls,
            )
        )
        for name, agent in sorted(opening.venue.agents.items())
        if not agent.chains or served.chain_id in agent.chains
    }


def _relayer(opening: DeltaOpening, served: ServedChain) -> Relayer:
    """Create the relayer of a chain; the address of its Delta contract may come from contracts.json."""
    footing = opening.footing
    chains = opening.settings.chains | {served.chain_id: served.settings}
    settings = replace(opening.settings, chains=chains)
    return relayer_of(settings, served.chain, footing.store, footing.leases, footing.wall_ms)
