"""Settings of the bridges that orders across chains use: protocol, fee API, and tokens by chain.

    [bridges.across]
    kind = "across"
    url = "https://app.across.to/api"
    [[bridges.across.tokens]]
    [bridges.across.tokens.chains]
    1 = "0xA0b86991c6218b36c1d19D4a2e9Eb0cE3606eB48"
    8453 = "0x833589fCD6eDb6E08f4c7C32D4f71b54bdA02913"

A bridge carries a token from each chain of `chains` to each other chain: every such pair is a lane. The
tokens have to be listed in `[[tokens]]`. The contracts of a bridge are settings of their chains:
`spoke_pool` for Across; `token_messenger`, `message_transmitter` and `cctp_domain` for CCTP.
"""

from decimal import Decimal
from typing import Literal

import msgspec

from .. import limits, timeouts
from .endpoint_url import HTTP, check_url
from .venue import Seconds

FINALITY = {"fast": 1_000, "standard": 2_000}
"""Tier of a CCTP transfer -> least finality of the burn, `minFinalityThreshold`."""
_ESTIMATED_S = {"across": 30.0, "fast": 30.0, "standard": 1_140.0}
"""Usual time of a transfer by protocol, or by tier of CCTP, seconds."""


class BridgedToken(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A token that a bridge carries between chains.

    Attributes:
        chains: chain id -> address of the token on that chain; two chains at least.
        amounts: two amounts in whole tokens, the smaller first, whose fees the venue requests from Across. No
            quote is for more than the larger amount.
    """

    chains: dict[int, str]
    amounts: tuple[Decimal, Decimal] = (Decimal(10), Decimal(100_000))

    def __post_init__(self) -> None:
        if not 2 <= len(self.chains) <= limits.BRIDGE_CHAINS_MAX:
            raise ValueError(f"chains are 2 to {limits.BRIDGE_CHAINS_MAX}, got {len(self.chains)}")
        small, large = self.amounts
        if not (small.is_finite() and large.is_finite() and 0 < small < large <= limits.BRIDGE_TOKENS_MAX):
            raise ValueError(
                f"amounts are two, the smaller first, above 0 and at most {limits.BRIDGE_TOKENS_MAX}"
            )

    def raw_amounts(self, decimals: int) -> tuple[int, int]:
        """Return the two amounts in raw units of a token with this number of decimals, rounded down.

        The first is at least 1, the second larger than the first.
        """
        small, large = (int(amount.scaleb(decimals)) for amount in self.amounts)
        least = max(small, 1)
        return least, max(large, least + 1)


class BridgeSettings(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A bridge that the venue quotes, and accepts in orders across chains.

    Attributes:
        kind: protocol that the bridge speaks.
        url: base URL (http or https) of the API that serves `/suggested-fees` for Across, or
            `/v2/burn/USDC/fees` for CCTP.
        tokens: tokens that the bridge carries.
        display_name: name for people; empty for the protocol's, as "Across" or "CCTP, fast".
        tier: only for CCTP: with `fast` a burn is attested once the burn is confirmed, with `standard` once
            the burn is final.
        margin_bps: part of the API's fee, in basis points, that is added to the fee that an owner signs.
        fill_within_s: only for Across: seconds from the settlement until an unfilled deposit is refunded.
        estimated_s: expected time of a transfer; None for the usual time of the protocol. The bridge's own
            estimate, if its API has one, takes precedence.
        late_s: age at which a transfer under way raises an alarm; None for three times the expected time
            (`estimated_s`, or the usual time), at least five minutes.
        refund_late_s: only for Across: time after a transfer's failure at which a missing refund raises an
            alarm.
        every_s: seconds between two requests for the fee of a lane.
        stale_s: age from which a fee is no longer used.
        request_s: time-out of a request.
    """

    kind: Literal["across", "cctp"]
    url: str
    tokens: tuple[BridgedToken, ...]
    display_name: str = ""
    tier: Literal["fast", "standard"] | None = None
    margin_bps: int = 1_000
    fill_within_s: int = 7_200
    estimated_s: Seconds | None = None
    late_s: Seconds | None = None
    refund_late_s: Seconds = timeouts.BRIDGE_REFUND_LATE_S
    every_s: Seconds = timeouts.BRIDGE_FEE_EVERY_S
    stale_s: Seconds = timeouts.BRIDGE_FEE_STALE_S
    request_s: Seconds = timeouts.BRIDGE_FEE_REQUEST_S

    def __post_init__(self) -> None:
        check_url("url", self.url, HTTP)
        if "?" in self.url:
            raise ValueError("url has no query: it is the base of the bridge's endpoints")
        if not 1 <= len(self.tokens) <= limits.BRIDGE_TOKENS_LISTED_MAX:
            raise ValueError(f"tokens are 1 to {limits.BRIDGE_TOKENS_LISTED_MAX}, got {len(self.tokens)}")
        if self.tier is not None and self.kind != "cctp":
            raise ValueError("tier is for cctp alone")
        if not 0 <= self.margin_bps <= limits.BPS_ONE:
            raise ValueError(f"margin_bps is 0 to {limits.BPS_ONE}, got {self.margin_bps}")
        low, high = limits.BRIDGE_FILL_MIN_S, limits.BRIDGE_FILL_MAX_S
        if not low <= self.fill_within_s <= high:
            raise ValueError(f"fill_within_s is {low} to {high}, got {self.fill_within_s}")
        if self.stale_s <= self.every_s:
            raise ValueError("stale_s is above every_s, or fees are stale between two requests")

    @property
    def finality(self) -> int:
        """Finality that a burn must have before an attestation: 1000 (fast) or 2000 (standard, default)."""
        return FINALITY[self.tier or "standard"]

    @property
    def estimated_ms(self) -> int:
        """Expected time of a transfer, milliseconds."""
        usual_s = _ESTIMATED_S["across" if self.kind == "across" else self.tier or "standard"]
        return round((self.estimated_s or usual_s) * 1_000)

    @property
    def late_ms(self) -> int:
        """Age at which a transfer under way raises an alarm, milliseconds."""
        usual_ms = max(3 * self.estimated_ms, round(timeouts.BRIDGE_LATE_S_MIN * 1_000))
        return usual_ms if self.late_s is None else round(self.late_s * 1_000)
