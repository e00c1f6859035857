"""Settings of a venue: its makers and agents, the bounds of requests to them, and the bounds of callers.

    [venue.makers.alpha]
    credentials = { domain = "venue", access_key = "key-1", secret = "env:ALPHA_SECRET" }
    [venue.makers.alpha.chains.1]
    url = "https://alpha.example/1"

`[chains]` sets the served chains and their surfaces: a chain with `market` or `delta` needs its node, its
contracts and its listed tokens.
"""

import re
from decimal import Decimal
from enum import StrEnum
from ipaddress import ip_address
from typing import Annotated, Literal

import msgspec

from .. import limits, timeouts
from ..error_text import shown
from ..secret import Secret, SecretEncoding
from .endpoint_url import HTTP, WEBSOCKET, check_url
from .webhooks import WebhookSettings

Seconds = Annotated[float, msgspec.Meta(gt=0, le=86_400)]
_ADDRESS = re.compile(r"0x[0-9a-fA-F]{40}")
_WEBHOOK_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


class MakerCredentials(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Credentials that were exchanged with a maker at onboarding (spec 3.10.2 to 3.10.4).

    Attributes:
        domain: name under which the maker knows the sender of requests.
        access_key: public name of the credential.
        secret: `env:NAME` or `file:PATH` of the secret that signs requests.
        secret_encoding: encoding of the secret's text: utf8, base64 or hex.
    """

    domain: str
    access_key: str
    secret: Secret
    secret_encoding: SecretEncoding = "utf8"  # noqa: S105


class VenueMakerChain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A maker's endpoints on one chain, and how often the venue polls them.

    Attributes:
        url: base URL of the maker's five endpoints, http or https, prefix included.
        ws_url: URL of the maker's WebSocket, ws or wss; empty if the maker has none.
        tokens_every_s, pairs_every_s, prices_every_s, blacklist_every_s: seconds between two polls; with a
            WebSocket, /prices is polled three times in `stale_s` instead.
        stale_s: seconds after which the maker's prices of a pair are left out of routes, unless the maker has
            sent them again.
    """

    url: str
    ws_url: str = ""
    tokens_every_s: Seconds = timeouts.FEED_TOKENS_EVERY_S
    pairs_every_s: Seconds = timeouts.FEED_PAIRS_EVERY_S
    prices_every_s: Seconds = timeouts.FEED_PRICES_EVERY_S
    blacklist_every_s: Seconds = timeouts.FEED_BLACKLIST_EVERY_S
    stale_s: Seconds = timeouts.BOOK_STALE_S

    def __post_init__(self) -> None:
        check_url("url", self.url, HTTP)
        if "?" in self.url:
            raise ValueError("url has no query: it is the base of five endpoints")
        if self.ws_url:
            check_url("ws_url", self.ws_url, WEBSOCKET)
        if not self.ws_url and self.stale_s <= self.prices_every_s:
            raise ValueError("stale_s is above prices_every_s, or books are stale between two polls")


class VenueMaker(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A market maker that the venue asks for prices and firm quotes.

    Attributes:
        credentials: None sends unsigned requests.
        chains: chain id -> the maker's endpoints on that chain.
        notify_url: http or https URL that receives the maker's faults and refusals; empty sends none.
        accounts: addresses that sign the maker's quotes, by which trades name the maker; trades name no maker
            for other addresses.
    """

    chains: dict[int, VenueMakerChain]
    credentials: MakerCredentials | None = None
    notify_url: str = ""
    accounts: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.notify_url:
            check_url("notify_url", self.notify_url, HTTP)
            if "?" in self.notify_url:
                raise ValueError("notify_url has no query")
        if len(self.accounts) > limits.MAKER_ACCOUNTS_MAX:
            raise ValueError(f"accounts are at most {limits.MAKER_ACCOUNTS_MAX}, got {len(self.accounts)}")
        for account in self.accounts:
            if not _ADDRESS.fullmatch(account):
                raise ValueError(f"accounts are 0x and 40 hexadecimal digits each, got {shown(account)}")


class FirmSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Limits of firm quote requests (ARCHITECTURE.md, "Firm quotes").

    Attributes:
        soft_s: seconds from the first request of a swap after which the venue asks no further maker.
        hard_s: seconds from the first request of a swap after which the venue awaits no answer.
        connections_max: most open connections to one maker.
        over_ask_bps: basis points by which the requested amount of a hop exceeds its expected amount, for
            each hop but the first of a SELL.
        over_ask_buy_bps: the same basis points for each hop but the last of a BUY.
        drift_bps: most basis points by which a firm quote may be worse than the prices that its maker has
            published; a worse quote is the maker's fault.
        rest_s, rest_s_max: cool-down in seconds of a pair or a maker after the first fault beyond the
            tolerated ones; doubles with each further fault, up to rest_s_max (`feeds.firm.maker_health`).
            After a refusal, the venue requests only smaller amounts from the maker for the same time.
        unfilled_max: most unfilled swaps on one chain of one network that calls without an API key. A swap
            is unfilled while makers' signed quotes for the swap are valid and no transaction has filled them.
        unfilled_user_max: most unfilled swaps on one chain of one user who has shown that they are its own.
        unfilled_keyed_max: most unfilled swaps on one chain of the callers with one API key.
    """

    soft_s: Seconds = timeouts.FIRM_SOFT_S
    hard_s: Seconds = timeouts.FIRM_HARD_S
    connections_max: int = 64
    over_ask_bps: int = 100
    over_ask_buy_bps: int = 1
    drift_bps: int = 50
    rest_s: Seconds = 2.0
    rest_s_max: Seconds = 900.0
    unfilled_max: int = 8
    unfilled_user_max: int = 16
    unfilled_keyed_max: int = 1_024

    def __post_init__(self) -> None:
        if self.soft_s > self.hard_s:
            raise ValueError("soft_s is above hard_s")
        if not 1 <= self.connections_max <= 1_024:
            raise ValueError(f"connections_max is 1 to 1024, got {self.connections_max}")
        if self.rest_s > self.rest_s_max:
            raise ValueError("rest_s is above rest_s_max")
        for name in ("unfilled_max", "unfilled_user_max", "unfilled_keyed_max"):
            if not 1 <= getattr(self, name) <= 100_000:
                raise ValueError(f"{name} is 1 to 100000, got {getattr(self, name)}")
        for name in ("over_ask_bps", "over_ask_buy_bps", "drift_bps"):
            if not 0 <= getattr(self, name) <= 1_000:
                raise ValueError(f"{name} is 0 to 1000, got {getattr(self, name)}")


class VenueAgent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An agent (solver), which bids for Delta orders.

    Attributes:
        url: base URL of the agent's endpoints /solve and /notify, http or https, prefix included.
        chains: ids of the chains that the agent bids on; empty names every Delta chain.
        credentials: None sends unsigned requests.
    """

    url: str
    chains: tuple[int, ...] = ()
    credentials: MakerCredentials | None = None

    def __post_init__(self) -> None:
        check_url("url", self.url, HTTP)
        if "?" in self.url:
            raise ValueError("url has no query: it is the base of two endpoints")


class GasPolicy(StrEnum):
    """Who pays for settlements worth less than their gas (`engine.trade.delta.auction.gas_cover`)."""

    COVERED = "covered"
    SUBSIDISED = "subsidised"
    FREE = "free"


class DeltaSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Timing and limits of auctions and settlements of Delta orders (ARCHITECTURE.md, "Auction").

    Attributes:
        round_s: seconds of one auction round, in which agents may bid.
        gather_s: seconds that a new order waits for other orders to share its first round.
        again_s, again_s_max: seconds before an order without a valid bid is auctioned again; doubles with
            each try, up to again_s_max.
        settlement_s: seconds in which a settlement must be mined before it is given up.
        failures_max: failed settlements after which an order fails (choices.md#delta-orders).
        rest_s, rest_s_max: cool-down in seconds of an agent after the first fault that counts against it;
            doubles with each further such fault, up to rest_s_max (`engine.trade.delta.bids.agent_rest`). An
            owner whose code fails a settlement rests likewise.
        gas_policy: which settlements the relayer pays for: `covered`, those whose gain over the limit and fee
            are worth their gas; `subsidised`, also others, up to a budget; `free`, besides all of orders that
            were submitted with an API key.
        gas_subsidy_owner, gas_subsidy: units of gas of a day and chain that the relayer gives to settlements
            that are not covered: of one owner, and of all.
    """

    round_s: Seconds = timeouts.AUCTION_ROUND_S
    gather_s: Seconds = timeouts.AUCTION_GATHER_S
    again_s: Seconds = timeouts.AUCTION_AGAIN_S
    again_s_max: Seconds = timeouts.AUCTION_AGAIN_S_MAX
    settlement_s: Seconds = timeouts.SETTLEMENT_S
    failures_max: int = 10
    rest_s: Seconds = 5.0
    rest_s_max: Seconds = 900.0
    gas_policy: GasPolicy = GasPolicy.SUBSIDISED
    gas_subsidy_owner: int = 1_000_000
    gas_subsidy: int = 10_000_000

    def __post_init__(self) -> None:
        for name in ("gas_subsidy_owner", "gas_subsidy"):
            if not 0 <= getattr(self, name) <= 10**12:
                raise ValueError(f"{name} is 0 to {10**12}, got {getattr(self, name)}")
        if self.again_s > self.again_s_max:
            raise ValueError("again_s is above again_s_max")
        if self.rest_s > self.rest_s_max:
            raise ValueError("rest_s is above rest_s_max")
        if not 1 <= self.failures_max <= 1_000:
            raise ValueError(f"failures_max is 1 to 1000, got {self.failures_max}")


class Rate(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A token bucket for rate limits.

    Attributes:
        per_s: tokens that the bucket gains a second.
        burst: most tokens that the bucket holds.
    """

    per_s: float
    burst: float

    def __post_init__(self) -> None:
        if not 0 < self.per_s <= 1_000_000 or not 1 <= self.burst <= 1_000_000:
            raise ValueError("per_s is above 0 and burst at least 1, both at most 1000000")


class RateTier(Rate, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Request rate of one caller: a token bucket, from which a request takes the cost of its endpoint.

    Attributes:
        per_s: tokens that the bucket gains a second.
        burst: most tokens that the bucket holds.
        wrong_signatures: rate of the caller's wrong signatures; None means a hundredth of `per_s` and a fifth
            of `burst`, but a burst of VENUE_SWAP_ORDERS_MAX at least.
    """

    wrong_signatures: Rate | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        least = limits.VENUE_SWAP_ORDERS_MAX
        if self.wrong_signatures is not None and self.wrong_signatures.burst < least:
            raise ValueError(f"wrong_signatures.burst is at least {least}, the signatures of one swap")

    @property
    def signature_rate(self) -> Rate:
        """Most wrong signatures of a caller: `wrong_signatures`, or a rate from `per_s` and `burst`."""
        burst = max(self.burst / 5, limits.VENUE_SWAP_ORDERS_MAX)
        return self.wrong_signatures or Rate(per_s=self.per_s / 100, burst=burst)


SHIPPED_RATE_TIERS = {
    "public": RateTier(per_s=20, burst=100),
    "keyed": RateTier(per_s=200, burst=1_000),
}


class ApiKey(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An API key, by which the venue knows a caller.

    Attributes:
        secret: text that the caller sends in the header X-API-KEY.
        tier: name of the rate tier that limits the caller.
        partner: the caller's default partner, whose orders' events the caller may receive; empty for none.
        operator: whether the caller may list every order and receive every event.
    """

    secret: Secret
    tier: str = "keyed"
    partner: str = ""
    operator: bool = False


class VenueSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Settings of the venue role.

    Attributes:
        makers: settings of each maker by name; the name is the `exchange` of quotes.
        firm: limits of firm quote requests.
        agents: settings of each agent by name; includeAgents and excludeAgents use this name.
        delta: auctions and settlements of Delta orders.
        blacklist_s: seconds in which the venue requests no firm quotes for a user from a maker that has
            blacklisted the user's address.
        rate_tiers: request rates by name of the tier. `public` applies to each IP address that calls without
            a key, `keyed` to each key without another tier. A settings file that sets one of the two tiers,
            or one member of a tier, leaves the other defaults as they are.
        api_keys: API keys by name.
        unknown_api_keys: `anonymous` serves a request with an unknown key as one without a key; `refuse`
            answers 401.
        webhooks: receivers of order events, by name.
        trusted_proxies: addresses whose X-Forwarded-For is believed.
        metrics_open: whether /metrics is served to every address instead of loopback alone.
        quote_streams_max, event_streams_max, trade_streams_max: most quote streams, most streams of order
            events, and most streams of trades, at a time.
        delta_gas: expected units of gas of a Delta settlement, the gas of its fills not included.
        route_life_s: least time in seconds, from the issue of a route, for which a request to build a Delta
            order may use the route (choices.md#delta-orders).
        otc_small_usd: value, in US dollars, below which a fillable amount is a small balance, and an OTC
            order's funds do not back its place in memory (choices.md#otc-orders).
    """

    makers: dict[str, VenueMaker] = {}
    firm: FirmSettings = FirmSettings()
    agents: dict[str, VenueAgent] = {}
    delta: DeltaSettings = DeltaSettings()
    blacklist_s: Seconds = 3_600.0
    rate_tiers: dict[str, RateTier] = msgspec.field(default_factory=SHIPPED_RATE_TIERS.copy)
    api_keys: dict[str, ApiKey] = {}
    unknown_api_keys: Literal["anonymous", "refuse"] = "anonymous"
    webhooks: dict[str, WebhookSettings] = {}
    trusted_proxies: tuple[str, ...] = ()
    metrics_open: bool = False
    quote_streams_max: int = 1_024
    event_streams_max: int = 4_096
    trade_streams_max: int = 1_024
    delta_gas: int = 150_000
    route_life_s: Seconds = 600.0
    otc_small_usd: Decimal = Decimal(1)

    def __post_init__(self) -> None:
        self._check_numbers()
        for name in (*self.makers, *self.agents):
            if not name or len(name) > limits.NAME_CHARS_MAX or "," in name:
                raise ValueError("the name of a maker or agent is 1 to 128 characters without a comma")
        if any(name.startswith("0x") for name in self.agents):  # records name the venue's own bids so
            raise ValueError("the name of an agent does not begin with 0x")
        for name in SHIPPED_RATE_TIERS:
            if name not in self.rate_tiers:
                raise ValueError(f"rate_tiers lacks {name}")
        for name, key in self.api_keys.items():
            if key.tier not in self.rate_tiers:
                raise ValueError(f"api_keys.{name}: unknown tier {key.tier}")
        self._check_accounts()
        self._check_webhooks()
        for address in self.trusted_proxies:
            try:
                ip_address(address)
            except ValueError:
                raise ValueError(f"trusted_proxies are IP addresses, got {address}") from None

    def _check_accounts(self) -> None:
        owners: dict[str, str] = {}
        for name, maker in self.makers.items():
            for account in maker.accounts:
                owner = owners.setdefault(account.lower(), name)
                if owner != name:
                    raise ValueError(f"makers.{name}: {account} is an account of {owner}, too")

    def _check_numbers(self) -> None:
        if not 0 <= self.delta_gas <= limits.RELAY_GAS_MAX:
            raise ValueError(f"delta_gas is 0 to {limits.RELAY_GAS_MAX}, got {self.delta_gas}")
        if not self.otc_small_usd.is_finite() or self.otc_small_usd < 0:
            raise ValueError(f"otc_small_usd is 0 or more, got {self.otc_small_usd}")
        for name in ("quote_streams_max", "event_streams_max", "trade_streams_max"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} is at least 1, got {getattr(self, name)}")

    def _check_webhooks(self) -> None:
        for name, hook in self.webhooks.items():
            if len(name) > limits.NAME_CHARS_MAX or not _WEBHOOK_NAME.fullmatch(name):
                raise ValueError(
                    "a webhook's name is 1 to 128 letters, digits, dots, - and _, the first a letter or digit"
                )
            if hook.api_key and hook.api_key not in self.api_keys:
                raise ValueError(f"webhooks.{name}: unknown key {shown(hook.api_key)}")
