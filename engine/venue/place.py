"""One chain of a venue: what its endpoints work with."""

from ...config.chains import Chain as ChainSettings
from ..chain.port import Chain
from ..routing.makers import OpenMakers
from ..routing.tokens import TokenTable


class Place(OpenMakers, frozen=True, kw_only=True):
    """A chain that is served, with its makers.

    Attributes:
        router, executor, rfq, delta, fee_vault: 20 bytes; empty where there is none.
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
