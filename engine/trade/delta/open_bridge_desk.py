"""Creates the bridges of a venue from its settings: ends, bounds, client of the attestation service."""

from collections.abc import Callable, Mapping
from contextlib import AsyncExitStack
from ssl import SSLContext

from ....codecs.bridges.bridge_terms import BridgeKind
from ....config.sections.bridges import BridgeSettings
from ....config.timeouts import BRIDGE_LATE_S_MIN, BRIDGE_REFUND_LATE_S
from ....crypto.addresses import parse_address
from ...chain.relay.relayer import Relayer
from ...store.store import Store
from ..served.served_chain import ServedChain, ServedChains
from .arriving.arrival_place import ArrivalPlace
from .bridge_desk import BridgeDesk
from .bridging.attester_client import AttesterClient, attester_http
from .bridging.bridge_places import BridgeBounds, BridgePlace
from .orders.live_orders import LiveOrders


async def open_desk(
    owned: AsyncExitStack,
    bridges: Mapping[str, BridgeSettings],
    chains: ServedChains,
    relayers: Mapping[int, tuple[Relayer, int]],
    *,
    store: Store,
    orders: LiveOrders,
    tls: SSLContext,
    wall_ms: Callable[[], int],
) -> BridgeDesk:
    """Create the desk whose task follows the bridge transfers of a venue's orders.

    Args:
        owned: exit stack that closes the client of the attestation service.
        bridges: settings of the bridges by name; the first bridge of CCTP names the attestation service.
        relayers: chain id -> (relayer, most units of gas of a call); relayers hand in attested messages, and
            send the swaps of arrivals.
    """
    cctp = next((bridge for bridge in bridges.values() if bridge.kind == "cctp"), None)
    attester = None
    if cctp is not None:
        http = await owned.enter_async_context(attester_http(tls))
        attester = AttesterClient(cctp.url, http, cctp.request_s)
    ends = {
        chain_id: end
        for chain_id, served in chains.items()
        if (end := _bridge_end(served, relayers.get(chain_id, (None, 0))[0])).spoke_pool or end.transmitter
    }
    arrivals = {
        chain_id: ArrivalPlace(chains[chain_id], *relayers[chain_id])
        for chain_id in ends
        if chains[chain_id].arrivals and chain_id in relayers
    }
    return BridgeDesk(
        store,
        orders,
        ends,
        arrivals=arrivals,
        attester=attester,
        bounds=bounds_of(bridges),
        wall_ms=wall_ms,
    )


def bounds_of(bridges: Mapping[str, BridgeSettings]) -> BridgeBounds:
    """Return the ages at which waiting transfers raise alarms: per protocol, its bridges' longest age."""
    least_ms = round(BRIDGE_LATE_S_MIN * 1_000)
    late_ms = {
        kind: max(
            (bridge.late_ms for bridge in bridges.values() if bridge.kind == kind.value), default=least_ms
        )
        for kind in BridgeKind
    }
    of_refunds = [bridge.refund_late_s for bridge in bridges.values() if bridge.kind == "across"]
    return BridgeBounds(late_ms, round(max(of_refunds, default=BRIDGE_REFUND_LATE_S) * 1_000))


def _bridge_end(served: ServedChain, relayer: Relayer | None) -> BridgePlace:
    settings = served.settings
    return BridgePlace(
        served.chain,
        settings.confirmations,
        _address(served, "spoke_pool", settings.spoke_pool),
        _address(served, "message_transmitter", settings.message_transmitter),
        settings.cctp_domain,
        relayer,
        served.tokens.wrapped_native,
    )


def _address(served: ServedChain, name: str, text: str) -> bytes | None:
    return parse_address(text, f"chains.{served.chain_id}.{name}") if text else None
