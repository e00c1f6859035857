"""Opens what runs the OTC orders of a venue: the engine, and on each chain its watches and its projection.

Choice: OTC orders need `rfq` on the chain and no relayer.
"""

from ..orders.order_engines import Footing
from ..served.served_chain import ServedChain, ServedChains
from .drafts import Drafts
from .engine import OtcChain, OtcEngine
from .funds_watch import OtcFundsWatch
from .live_orders import OtcOrders
from .projection import OtcProjection


def open_otc(footing: Footing, places: ServedChains) -> OtcEngine:
    """The engine of the chains that have an RFQ contract.

    Args:
        footing: what it shares with other engines.
    """
    orders = OtcOrders(footing.store, footing.leases)
    chains = {
        chain_id: _chain(footing, place, orders)
        for chain_id, place in places.items()
        if place.settings.rfq and place.rfq
    }
    return OtcEngine(footing.leases, footing.scheduler, orders=orders, chains=chains, wall_ms=footing.wall_ms)


def _chain(footing: Footing, place: ServedChain, orders: OtcOrders) -> OtcChain:
    followed = footing.chains.of(place.chain_id)
    funds = OtcFundsWatch(
        place.chain,
        footing.store,
        orders,
        followed.watch,
        rfq=place.rfq,
        read_to=followed.read_to,
        wall_ms=footing.wall_ms,
    )
    drafts = Drafts(
        place.chain,
        orders,
        rfq=place.rfq,
        read_to=followed.read_to,
        is_short=funds.is_short,
        wall_ms=footing.wall_ms,
    )
    projection = OtcProjection(
        footing.store,
        orders,
        confirmations=place.settings.confirmations,
        is_short=funds.is_short,
        now_ms=footing.wall_ms,
    )
    followed.join(projection, funds.touched)
    return OtcChain(followed, funds, drafts)
