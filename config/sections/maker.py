"""Settings of a market maker: per chain its tokens, pairs, price source, key, funds and bounds.

Amounts are decimal strings in whole tokens ("1.5"), never numbers: no float touches money.
"""

import math
from collections.abc import Mapping
from decimal import Decimal
from typing import Any, Literal

import msgspec

from .. import limits

EXPIRY_MIN_S = limits.FIRM_EXPIRY_MIN_S + 5  # the receiver of the quote counts 2 minutes (spec 3.5.6)

AuthMode = Literal["required", "optional", "off"]
"""Whether requests must carry the HMAC headers. `optional` accepts unsigned requests and verifies others."""


class MakerToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A maker's entry of /tokens, with the balance and the largest quoted amount of that token.

    Amounts are in whole tokens, e.g. "1.5".

    Attributes:
        address, decimals: address and decimals of the token's contract.
        symbol: symbol in the entry; empty for the token's id.
        name, description: informational; strict consumers refuse an empty description.
        balance: without a configured node, the amount that all live firm quotes together may promise. With a
            node, an upper bound on the balance that the maker reads from the node; empty sets no bound.
        quote_max: largest amount of this token that a firm quote gives; empty sets no bound.
    """

    address: str
    decimals: int
    symbol: str = ""
    name: str = ""
    description: str = ""
    balance: str = ""
    quote_max: str = ""

    def __post_init__(self) -> None:
        if not 0 <= self.decimals <= limits.TOKEN_DECIMALS_MAX:
            raise ValueError(f"decimals is 0 to {limits.TOKEN_DECIMALS_MAX}, got {self.decimals}")


class MakerPair(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A maker's entry of /pairs, with the limits on firm quotes of that pair.

    Attributes:
        base, quote: ids of the base token and the quote token, as in the maker's `tokens`.
        liquidity_usd: estimated liquidity of the pair in US dollars, for the route search of venues.
        retired: whether the pair is listed but disabled (empty object as price), the step before removal.
        notional_max: largest notional of one firm quote, in whole quote tokens; empty sets no bound.
        open_notional_max: largest notional of all live (neither expired nor filled) firm quotes together, in
            whole quote tokens; empty sets no bound.
    """

    base: str
    quote: str
    liquidity_usd: Decimal
    retired: bool = False
    notional_max: str = ""
    open_notional_max: str = ""


class MakerChain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of a market maker on one chain: its endpoints, key, price source and limits.

    Attributes:
        prefix: path in front of the five endpoints; `/<chain id>` if absent.
        host: only requests with this Host header are served; empty takes any Host.
        auth: whether requests must be signed: required, optional or off; `[auth.domains]` has the signers.
        key: name of the signing key in `[keys]`.
        maker: address of the contract (EIP-1271) that holds the funds; empty if the key's own address does.
        price_source: source of prices: `static`, `random_walk`, `replay`, or `module:Class`.
        price_options: own settings of the price source.
        price_life_ms: milliseconds after which a price is too old to be shown or signed.
        refresh_ms: milliseconds after which an unchanged price is sent again over the WebSocket.
        expiry_s: seconds from the signature of a firm quote to its expiry.
        takers: addresses that may be the taker of a firm quote.
        takers_url, takers_every_s: URL of a venue's /adapters/contract-takers, which lists more such
            addresses, and seconds between two reads of the URL.
        node_url: JSON-RPC node for balances, allowances and fills; may be `env:NAME` or `file:PATH`.
        node_every_ms: milliseconds between two reads of the node.
        node_stale_s: seconds without a node's answer after which no firm quote is signed.
        node_head_max_s: largest age of the latest block in seconds; an answer of a node with an older block
            does not count. 0 turns the check off, for a devnet that mines only on demand.
        blacklist: addresses of users who get no firm quotes.
        unused_quotes_max, unused_window_s, blacklist_s: number of firm quotes that a user may leave unused
            within `unused_window_s` seconds; one more blacklists the user for `blacklist_s` seconds. 0 sets
            no bound. Fills are seen through the node: without a node, every quote counts as unused.
        live_quotes_max: most firm quotes at a time that are neither expired nor filled.
        message: text of the member `message` of every successful answer, which the venue logs; strict
            consumers refuse an answer with that member. Empty sends none.
        tokens, pairs: entries of /tokens and /pairs by id.
    """

    prefix: str | None = None
    host: str = ""
    auth: AuthMode = "required"
    key: str
    maker: str = ""
    price_source: str
    price_options: dict[str, Any] = {}
    price_life_ms: int = 10_000
    refresh_ms: int = 2_000
    expiry_s: int = 150
    takers: tuple[str, ...] = ()
    takers_url: str = ""
    takers_every_s: float = 60.0
    node_url: str = ""
    node_every_ms: int = 1_000
    node_stale_s: float = 30.0
    node_head_max_s: float = 120.0
    blacklist: tuple[str, ...] = ()
    unused_quotes_max: int = 0
    unused_window_s: int = 3_600
    blacklist_s: int = 3_600
    live_quotes_max: int = 500_000
    message: str = ""
    tokens: dict[str, MakerToken]
    pairs: dict[str, MakerPair]

    def __post_init__(self) -> None:
        if self.expiry_s < EXPIRY_MIN_S:
            raise ValueError(f"expiry_s is at least {EXPIRY_MIN_S}, got {self.expiry_s}")
        if self.prefix and (not self.prefix.startswith("/") or self.prefix.endswith("/")):
            raise ValueError(f"prefix is /path without a slash at its end, got {self.prefix!r}")
        for name in ("price_life_ms", "refresh_ms", "node_every_ms", "node_stale_s", "takers_every_s",
                     "unused_window_s", "blacklist_s", "live_quotes_max"):  # fmt: skip
            if not 0 < getattr(self, name) < math.inf:  # NaN fails both comparisons
                raise ValueError(f"{name} is above 0, got {getattr(self, name)}")
        if not 0 <= self.node_head_max_s < math.inf:
            raise ValueError(f"node_head_max_s is 0 or more, got {self.node_head_max_s}")
        if self.unused_quotes_max < 0:
            raise ValueError(f"unused_quotes_max is 0 or more, got {self.unused_quotes_max}")
        for pair_id, pair in self.pairs.items():
            _check_pair(pair_id, pair, self.tokens)


class AdminSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of the listener for the operator alone: kill switches, health, counters.

    Attributes:
        host, port: address of the listener, on loopback or a private network only.
        domains: names in `[auth.domains]` that may halt and resume; their requests are signed.
        metrics_open: whether clients on other machines may read `GET /metrics`.
    """

    host: str = "127.0.0.1"
    port: int
    domains: tuple[str, ...]
    metrics_open: bool = False


class MakerSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of the market maker role.

    Attributes:
        chains: chain id -> the maker's settings on that chain.
        halt_file: file in which the kill switch records which trading is halted; `<state_dir>/halt` if empty.
        admin: settings of the admin listener; None starts none.
    """

    chains: dict[int, MakerChain]
    halt_file: str = ""
    admin: AdminSettings | None = None


def _check_pair(pair_id: str, pair: MakerPair, tokens: Mapping[str, MakerToken]) -> None:
    for side in ("base", "quote"):
        if getattr(pair, side) not in tokens:
            raise ValueError(f"pair {pair_id}: {side} is no token of this chain: {getattr(pair, side)!r}")
    if pair.base == pair.quote:
        raise ValueError(f"pair {pair_id}: base and quote are the same token")
