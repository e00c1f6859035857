"""Chain that the venue serves: settings, makers, contracts and state, as the HTTP endpoints use them."""

from collections.abc import Mapping

import trio
from msgspec import field

from ....config.chains import ChainSettings
from ....config.errors import UnsupportedChain
from ...chain.port import Chain
from ...chain.pulse import Pulse
from ..routing.makers import OpenMakers
from ..routing.tokens import ListedToken, TokenTable

NO_BOOK = "no maker has a live book"
"""Reason why a chain with pairs is not ready."""


class ServedChain(OpenMakers, frozen=True, kw_only=True):
    """A chain that the venue serves: contract addresses, nodes, tokens, and makers that quote on the chain.

    Attributes:
        pulse: record of whether the chain's nodes answer at present.
        followed: event that is set once the indexer has begun to read the chain and leaves out no later
            block. The venue stores no order before, since the indexer could miss the order's end.
        has_relayer: whether a relayer settles the chain's Delta orders.
        router, executor, rfq, delta, fee_vault, arrivals: 20 bytes; empty for a contract that is not
            deployed.
    """

    chain_id: int
    settings: ChainSettings
    chain: Chain
    pulse: Pulse
    has_relayer: bool
    router: bytes
    executor: bytes
    rfq: bytes
    delta: bytes
    fee_vault: bytes
    tokens: TokenTable
    arrivals: bytes = b""
    followed: trio.Event = field(default_factory=trio.Event)

    @property
    def no_delta(self) -> str:
        """Reason why the venue refuses Delta quotes and orders on this chain; empty if Delta is available."""
        if not self.settings.delta:
            return f"Delta is not served on chain {self.chain_id}"
        if not self.has_relayer:
            return f"Delta is not served on chain {self.chain_id}: no relayer settles its orders"
        return ""

    def values_gas_in(self, token: ListedToken) -> bool:
        """Whether the price of gas can be told in a token: it is the native one, or both have a price."""
        native = self.tokens.wrapped_native
        if token.routed == native:
            return True
        return all(self.usd.value(priced, 1) is not None for priced in (native, token.routed))

    def not_ready(self, *, needs_books: bool = True) -> list[str]:
        """Reasons why the venue cannot trade on this chain now: no node, no gas price, or no maker's book.

        Args:
            needs_books: whether the venue prices pairs on this chain.
        """
        reasons = []
        if self.pulse.fault:
            reasons.append(f"no node answers: {self.pulse.fault}")
        elif not self.gas.is_fresh:
            reasons.append("the price of gas is not known")
        if needs_books and not any(self.index.books()):
            reasons.append(NO_BOOK)
        return [f"chain {self.chain_id}: {reason}" for reason in reasons]


ServedChains = Mapping[int, ServedChain]
"""Chain id -> chain that the venue serves."""


def served_chain_at(chains: ServedChains, chain_id: int, field: str) -> ServedChain:
    """Look up the served chain whose chain id a request contains.

    Args:
        field: member of the request that holds the chain id, for errors.

    Raises:
        UnsupportedChain: the venue does not serve the chain (choices.md#chains-and-tokens).
    """
    served = chains.get(chain_id)
    if served is None:
        raise UnsupportedChain(field=field, expected="a chain of GET /chains", got=chain_id)
    return served


def market_chain_at(chains: ServedChains, chain_id: int, field: str) -> ServedChain:
    """Look up the served chain whose chain id a request about Market swaps contains.

    Args:
        field: member of the request that holds the chain id, for errors.

    Raises:
        UnsupportedChain: the venue does not serve the chain, or no Market swaps on it.
    """
    served = chains.get(chain_id)
    if served is None or not (served.settings.market and served.router):
        raise UnsupportedChain(field=field, expected="a Market chain of GET /chains", got=chain_id)
    return served


def otc_chain_at(chains: ServedChains, chain_id: int, field: str) -> ServedChain:
    """Look up the served chain whose chain id a request about OTC orders contains.

    Args:
        field: member of the request that holds the chain id, for errors.

    Raises:
        UnsupportedChain: the venue does not serve the chain, or the chain has no RFQ contract.
    """
    served = served_chain_at(chains, chain_id, field)
    if not (served.settings.rfq and served.rfq):
        raise UnsupportedChain(field=field, expected="a chain with `rfq`", got=chain_id)
    return served


def delta_chain_at(chains: ServedChains, chain_id: int, field: str) -> ServedChain:
    """Look up the served chain whose chain id a request about Delta orders contains.

    Args:
        field: member of the request that holds the chain id, for errors.

    Raises:
        UnsupportedChain: the venue does not serve the chain, or no Delta orders on it; the error gives the
            reason.
    """
    served = served_chain_at(chains, chain_id, field)
    if served.no_delta:
        raise UnsupportedChain(served.no_delta, field=field)
    return served
