"""The parts that every trade of a program needs: the open venue, the open chains, tokens by name, the key.

A token's decimals come from its contract if a node of its chain is known, else from the venue's list. A name
that a session has resolved stands for the same token until the session ends.
"""

import os
import time
from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from types import MappingProxyType
from typing import Self

from msgspec import Struct

from .....codecs.messages.resource_messages import TokenList
from .....codecs.messages.tape_messages import TradeKind, TradeMessage, TradeStatistics
from .....config.chains import SHIPPED_CHAINS
from .....config.errors import ConfigError, InvalidInput
from .....config.limits import TAPE_LISTED_DEFAULT
from .....config.secret import Secret, read_secret
from .....config.sections.nodes import NodeSettings
from .....crypto.addresses import checked_address
from .....crypto.custody.keys import signing_key
from .....crypto.secp256k1 import SigningKey
from ....chain.artifacts import known_errors
from ....chain.nodes.rpc import RpcChain
from ....chain.port import Chain
from ..allowing import Allowing
from ..client import VenueClient, checked_url
from ..order_terms import BridgeWish
from ..terms import TradedToken
from ..tokens import find_token, listed_token
from ..trader import Trader
from ..trusted_contract import SigningContract, TradingContract, signing_contract

Key = SigningKey | str
"""A key that signs: a SigningKey, the hexadecimal private key, or `env:NAME` or `file:PATH` of its text."""

BRIDGE_FEE_BPS = 100
"""Default of the highest fee of a bridge, basis points of the amount that enters the bridge."""


class ToChain(Struct, frozen=True):
    """Delivery of the bought tokens on another chain by a bridge.

    Attributes:
        via: token on the origin that has to enter the bridge, and that a failed bridge pays back; None
            accepts the venue's choice.
        bridges: names of the bridges that the venue may choose among; empty for any.
        fee_bps_max: highest fee of the bridge, basis points of the amount that enters the bridge.
        wrapped: wrapped native token of the destination, as which a bridge is handed native tokens that are
            bought there; None for that of a public chain.
    """

    chain_id: int
    via: str | None = None
    bridges: tuple[str, ...] = ()
    fee_bps_max: int = BRIDGE_FEE_BPS
    wrapped: str | None = None


class TradeEnds(Struct, frozen=True):
    """The sold and the bought token of a trade.

    Attributes:
        bridging: the wish for a bridge to the bought token's chain; None for a trade on one chain.
    """

    src: TradedToken
    dest: TradedToken
    bridging: BridgeWish | None = None


class VenueSession:
    """An open venue, the chain on which the caller trades, and further chains to which bridges deliver.

    Args:
        client: client of the venue; None if only signed OTC orders at a pinned contract are filled.
        chain_id: chain on which the caller trades.
        chains: open chains by id; may lack `chain_id`, and then nothing can be signed.
        tell: receives lines of progress.
        wall_s: returns the time of the wall clock, Unix seconds.
        names: parameter -> name of the argument in errors; a parameter without an entry keeps its name.
    """

    def __init__(
        self,
        client: VenueClient | None,
        chain_id: int,
        chains: Mapping[int, Chain],
        *,
        tell: Callable[[str], None] = lambda _: None,
        wall_s: Callable[[], int] = lambda: int(time.time()),
        names: Mapping[str, str] = MappingProxyType({}),
    ) -> None:
        self._client_or_none = client
        self._chain_id = chain_id
        self._chains = chains
        self._tell = tell
        self._wall_s = wall_s
        self._names = names
        self._lists: dict[int, TokenList] = {}
        self._tokens: dict[tuple[int, str], TradedToken] = {}

    @classmethod
    @asynccontextmanager
    async def open(
        cls,
        url: str,
        chain_id: int,
        *,
        rpc: str | None = None,
        others: Mapping[int, str] | None = None,
        api_key: str | None = None,
        tell: Callable[[str], None] = lambda _: None,
    ) -> AsyncGenerator[Self]:
        """Context manager that connects to a venue and to nodes; runs under trio.

        Args:
            url: base URL of the venue, such as http://127.0.0.1:8080.
            chain_id: chain on which the caller trades.
            rpc: URL of a node of that chain; without it the caller can ask for quotes and watch orders.
            others: chain id -> URL of a node of another chain, which proves deliveries of bridges there.
            api_key: key at the venue, its text or `env:NAME` or `file:PATH` of it; None for none.
            tell: receives lines of progress.

        Raises:
            ConfigError: an argument is malformed, or a node belongs to another chain; the error names the
                argument or the node.
        """
        checked_url(url, "url")
        secret = None if api_key is None else _secret(api_key, "api_key")
        urls = {**({} if rpc is None else {chain_id: rpc}), **(others or {})}
        async with AsyncExitStack() as opened:
            chains: dict[int, Chain] = {}
            for each, node in urls.items():
                field = "rpc" if each == chain_id else f"others[{each}]"
                settings = NodeSettings(urls=(checked_url(node, field),))
                chains[each] = await opened.enter_async_context(RpcChain.open(each, settings, known_errors()))
            client = await opened.enter_async_context(VenueClient.open(url, secret))
            yield cls(client, chain_id, chains, tell=tell)

    @property
    def chain_id(self) -> int:
        """Chain on which the session trades."""
        return self._chain_id

    async def token(self, text: str, chain_id: int | None = None) -> TradedToken:
        """Find a token by its symbol in the venue's list, in any case, or by its address.

        Args:
            chain_id: chain of the token; None for the session's chain.

        Raises:
            ConfigError: the text names no token, or several.
        """
        return await self._token(text, "token", chain_id)

    async def tokens(self, chain_id: int | None = None) -> TokenList:
        """The venue's list of tokens of a chain; the session asks the venue once for each chain.

        Args:
            chain_id: None for the session's chain.
        """
        wanted_id = self._chain_id if chain_id is None else chain_id
        if wanted_id not in self._lists:
            self._tell(f"asking the venue for the tokens of chain {wanted_id}")
            self._lists[wanted_id] = await self._client.tokens(wanted_id)
        return self._lists[wanted_id]

    async def trades(
        self, limit: int = TAPE_LISTED_DEFAULT, kind: TradeKind | None = None
    ) -> list[TradeMessage]:
        """The venue's latest trades on the session's chain, the latest first.

        Args:
            limit: most trades.
            kind: only trades of this kind; None for both.
        """
        return [*await self._client.trades(self._chain_id, limit=limit, kind=kind)]

    async def statistics(self) -> TradeStatistics:
        """Statistics of the venue's trades on the session's chain in the last 24 hours."""
        return await self._client.trade_statistics(self._chain_id)

    # --- For the trades -----------------------------------------------------------------------------

    @property
    def _client(self) -> VenueClient:
        """Client of the venue.

        Raises:
            ConfigError: the session has no venue.
        """
        if self._client_or_none is None:
            raise ConfigError("--venue", "is needed to look an order up by its hash; a FILE needs none")
        return self._client_or_none

    @property
    def _chain(self) -> Chain:
        """The open chain on which the session trades.

        Raises:
            ConfigError: no node of this chain was named.
        """
        chain = self._chains.get(self._chain_id)
        if chain is None:
            raise ConfigError("rpc", f"is needed: no node of chain {self._chain_id} is named")
        return chain

    async def _token(self, text: str, field: str, chain_id: int | None = None) -> TradedToken:
        """Find a token as `token` does.

        Args:
            field: parameter that holds the text, for errors.
        """
        wanted_id = self._chain_id if chain_id is None else chain_id
        found = self._tokens.get((wanted_id, text))
        if found is None:
            chain, listed = self._chains.get(wanted_id), await self.tokens(wanted_id)
            if chain is None:
                found = listed_token(listed, text, field)
            else:
                found = await find_token(chain, listed, text, field)
            self._tokens[wanted_id, text] = found
        return found

    async def _ends(self, sell: str, buy: str, to: int | ToChain | None = None) -> TradeEnds:
        """Find the tokens of a trade.

        Raises:
            ConfigError: an argument names no token, or both name one token of one chain.
        """
        src = await self._token(sell, self._name("sell"))
        if to is None:
            dest = await self._token(buy, self._name("buy"))
            if src.address == dest.address:
                raise ConfigError(self._name("buy"), f"equals {self._name('sell')}")
            return TradeEnds(src, dest)
        there = ToChain(to) if isinstance(to, int) else to
        if there.chain_id == self._chain_id:
            raise ConfigError(self._name("to"), f"is the chain of the trade, {self._chain_id}")
        via = None if there.via is None else await self._token(there.via, self._name("via"))
        dest = await self._token(buy, self._name("buy"), there.chain_id)
        wrapped = await self._wrapped(there) if dest.is_native else None
        bridging = BridgeWish(
            chain_id=there.chain_id,
            fee_bps_max=there.fee_bps_max,
            via=via,
            bridges=there.bridges,
            is_read=there.chain_id in self._chains,
            wrapped=wrapped,
        )
        return TradeEnds(src, dest, bridging)

    async def _wrapped(self, there: ToChain) -> TradedToken:
        """Find the wrapped native token of a destination, on which the trader must not trust the venue.

        Raises:
            ConfigError: the chain is no public one, and the caller names no token.
        """
        public = SHIPPED_CHAINS.get(there.chain_id)
        text = there.wrapped or (public.wrapped_native if public else "")
        if not text:
            why = f"is needed: this release knows no wrapped native token of chain {there.chain_id}"
            raise ConfigError(self._name("wrapped"), why)
        return await self._token(text, self._name("wrapped"), there.chain_id)

    def _name(self, parameter: str) -> str:
        """Name of a parameter in errors."""
        return self._names.get(parameter, parameter)

    def _trader(self, key: Key, allowing: Allowing) -> Trader:
        """The key's account on the session's chain."""
        return Trader(
            chain=self._chain,
            key=key_of(key),
            wall_s=self._wall_s,
            tell=self._tell,
            allowing=allowing,
        )

    async def _contract(self, contract: TradingContract, pinned: bytes | None = None) -> SigningContract:
        """Return a contract, with its signing domain: the venue's, or without a venue the pinned contract.

        Args:
            contract: kind of the contract: Router, Delta or RFQ.
            pinned: address that the contract must have, 20 bytes; its code is then not checked. None: the
                code must be that of this release.

        Raises:
            VenueError, UnsafeTransaction, ConfigError, ChainError: see `signing_contract`.
        """
        self._tell(f"looking at the {contract.name}")
        return await signing_contract(self._chain, self._client_or_none, contract, pinned)


def key_of(key: Key, field: str = "key") -> SigningKey:
    """Convert the `key` argument of a call to a signing key.

    Args:
        key: signing key, private key in hexadecimal, or reference to its text: `env:NAME` or `file:PATH`.
        field: name of the argument, for errors.

    Raises:
        ConfigError: the text is neither a private key nor a reference to one; the error omits the text.
    """
    if isinstance(key, SigningKey):
        return key
    return signing_key(_secret(key, field))


def account_of(text: str | bytes | None, field: str, default: bytes) -> bytes:
    """Return the account that an argument names, 20 bytes.

    Args:
        default: account without an argument.

    Raises:
        ConfigError: the text is no address.
    """
    if text is None:
        return default
    if isinstance(text, bytes):
        return text
    try:
        return checked_address(text, field)
    except InvalidInput as fault:
        raise ConfigError(field, f"expected {fault.expected}, got {text}") from None


def _secret(text: str, field: str) -> Secret:
    """The secret that an argument refers to by `env:NAME` or `file:PATH`, or the argument's own text."""
    is_reference = text.startswith(("env:", "file:"))
    return read_secret(text, os.environ, field) if is_reference else Secret(text, field)
