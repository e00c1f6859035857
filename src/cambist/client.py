"""Trade at a venue: quotes, swaps, orders and OTC orders, in whole tokens.

    from cambist.client import BlockingVenue

    with BlockingVenue.open("http://127.0.0.1:8080", 31337, rpc="http://127.0.0.1:8545") as venue:
        print(venue.quote("WETH", "USDC", "1.5"))
        swap = venue.swap("WETH", "USDC", "1.5", key="env:KEY")

`Venue` is for programs on trio, `AsyncioVenue` for asyncio, `BlockingVenue` for plain code.

The names in `__all__` are public: docs/reference/stability.md.
"""

from .codecs.messages.auction_messages import Explanation
from .codecs.messages.delta_messages import OrderRecord
from .codecs.messages.resource_messages import TokenEntry, TokenList
from .codecs.messages.tape_messages import (
    AgentVolume,
    HourVolume,
    MakerVolume,
    TradeKind,
    TradeMessage,
    TradeStatistics,
)
from .codecs.messages.vocabulary import Mode, OrderStatus, OtcState, Side
from .config.errors import (
    CambistError,
    ChainError,
    ConfigError,
    OfferDeclined,
    PolicyError,
    TradeFailed,
    UnsafeTransaction,
    VenueError,
)
from .crypto.secp256k1 import SigningKey
from .engine.trader.client.allowing import Allowing
from .engine.trader.client.otc.otc_cancelling import Cancelled
from .engine.trader.client.outcome import TradeVerdict
from .engine.trader.client.public.amounts import Amount, TokenAmount
from .engine.trader.client.public.asyncio_venue import AsyncioVenue
from .engine.trader.client.public.blocking import BlockingVenue
from .engine.trader.client.public.offers import OfferedTrade, Quote
from .engine.trader.client.public.results import DeltaOrderState, OtcOrderState, TradeResult
from .engine.trader.client.public.session import Key, ToChain
from .engine.trader.client.public.venue import Venue
from .engine.trader.client.terms import TradedToken

__all__ = [
    "AgentVolume",
    "Allowing",
    "Amount",
    "AsyncioVenue",
    "BlockingVenue",
    "CambistError",
    "Cancelled",
    "ChainError",
    "ConfigError",
    "DeltaOrderState",
    "Explanation",
    "HourVolume",
    "Key",
    "MakerVolume",
    "Mode",
    "OfferDeclined",
    "OfferedTrade",
    "OrderRecord",
    "OrderStatus",
    "OtcOrderState",
    "OtcState",
    "PolicyError",
    "Quote",
    "Side",
    "SigningKey",
    "ToChain",
    "TokenAmount",
    "TokenEntry",
    "TokenList",
    "TradeFailed",
    "TradeKind",
    "TradeMessage",
    "TradeResult",
    "TradeStatistics",
    "TradeVerdict",
    "TradedToken",
    "UnsafeTransaction",
    "Venue",
    "VenueError",
]
