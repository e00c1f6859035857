"""One chain of a venue: what its endpoints work with."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from msgspec import Struct

from ...config.chains import Chain as ChainSettings
from ...feeds.pair_index import PairIndex
from ..chain.port import Chain
from .tokens import TokenTable

if TYPE_CHECKING:
    from ...feeds.supervisor import MakerFeed
    from ...feeds.usd_prices import UsdPrices
    from .market.firm_desk import FirmDesk
    from .pricing.gas_watch import GasWatch
    from .pricing.pathfinder import Pathfinder


class Place(Struct, frozen=True):
    """A chain that is served.

    Attributes:
        router, executor, rfq, delta, fee_vault: 20 bytes; empty where there is none.
        feeds: maker -> what keeps its books here.
    """

    chain_id: int
    settings: ChainSettings
    chain: Chain
    router: bytes
    executor: bytes
    rfq: bytes
    delta: bytes
    fee_vault: bytes
    tokens: TokenTable
    index: PairIndex
    usd: "UsdPrices"
    pathfinder: "Pathfinder"
    gas: "GasWatch"
    desk: "FirmDesk"
    feeds: Mapping[str, "MakerFeed"]

    def barred(self, *users: bytes, now_ms: int) -> frozenset[str]:
        """Makers that have blacklisted one of these addresses."""
        return frozenset(
            maker
            for maker, feed in self.feeds.items()
            if any(feed.cache.blacklist.holds(user, now_ms) for user in users)
        )
