"""Write a bidding strategy for the auctions of Delta orders, which `cambist agent serve` runs.

    class MySolver:
        def __init__(self, options, context): ...

        async def solve(self, request, market):
            return [market.bid(order, await market.signed(order)) for order in market.orders]

The names in `__all__` are public: docs/reference/stability.md. docs/guides/agents.md describes strategies.
"""

from .codecs.messages.agent_messages import (
    BidPart,
    BidStep,
    Notice,
    NoticeEntry,
    NotifyRequest,
    SolverBid,
    SolveRequest,
)
from .codecs.messages.vocabulary import OnChainOrderType, Side
from .config.errors import CambistError, ConfigError
from .config.secret import Secret
from .crypto.addresses import parse_address, to_checksum
from .crypto.secp256k1 import SigningKey
from .engine.roles.agent.desk import AgentDesk
from .engine.roles.agent.market import RoundMarket
from .engine.roles.agent.orders import OpenOrder
from .engine.roles.agent.strategy import SolverStrategy, StrategyContext
from .engine.trade.routing.firm.firm_route import FirmRoute

__all__ = [
    "AgentDesk",
    "BidPart",
    "BidStep",
    "CambistError",
    "ConfigError",
    "FirmRoute",
    "Notice",
    "NoticeEntry",
    "NotifyRequest",
    "OnChainOrderType",
    "OpenOrder",
    "RoundMarket",
    "Secret",
    "Side",
    "SigningKey",
    "SolveRequest",
    "SolverBid",
    "SolverStrategy",
    "StrategyContext",
    "parse_address",
    "to_checksum",
]
