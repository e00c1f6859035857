"""Requests to bridges' fee APIs for a lane, and the fee that follows from the answers. Pure.

    Across   GET {url}/suggested-fees, for a small and a large amount    ->  a line through or above both fees
    CCTP     GET {url}/v2/burn/USDC/fees/{from domain}/{to domain}       ->  the fee for `finality`, in ppm

    fee(amount) = ceil(amount * ppm / 1,000,000) + fixed, as an owner signs it: at least the asked fee at both
    amounts, plus the margin of the settings

Source: docs.across.to, "suggested-fees"; developers.circle.com, "Get USDC transfer fees".
Choice: A fee of Across is asked at two amounts and fitted to parts per million and a fixed part, rounded up;
    amounts above the larger are not quoted.
Choice: Where an answer of Across has `maxDepositInstant`, a quote sends at most this amount over Across.
Choice: A deposit names no exclusive relayer: the fee is asked long before the deposit, and any relayer may
    fill at once.
"""

from collections.abc import Sequence
from decimal import ROUND_CEILING, Decimal
from typing import Annotated
from urllib.parse import urlencode

from msgspec import Meta, Struct

from ...codecs.amounts import parse_amount
from ...codecs.bridges.bridge_terms import FEE_FIXED_MAX, PPM_ONE, BridgeFee, fee_of
from ...codecs.messages.wire import check_number, decoder
from ...codecs.rounding import mul_div_up
from ...config import limits
from ...config.errors import InvalidInput
from ...config.sections.bridges import BridgeSettings
from ...crypto.addresses import parse_address, to_checksum

_PPM_OF_BPS = 100


class FeeLane(Struct, frozen=True):
    """A lane of a bridge, with the data of a request for its fee: chains and tokens of both ends.

    Attributes:
        bridge: name of the bridge in the settings.
        chains: ids of the origin chain and of the destination chain.
        tokens: addresses of the token on the two chains, 20 bytes each.
        amounts: the two amounts whose fees are requested, raw units of the origin's token, the smaller first.
        spoke_pool: Across's contract on the origin chain, 20 bytes; empty for another bridge.
        domains: Circle's numbers of the two chains; zeros for another bridge.
        is_scaled: whether the decimals of the two tokens differ.
    """

    bridge: str
    settings: BridgeSettings
    chains: tuple[int, int]
    tokens: tuple[bytes, bytes]
    amounts: tuple[int, int]
    spoke_pool: bytes
    domains: tuple[int, int]
    is_scaled: bool


class LaneFee(Struct, frozen=True):
    """Fee of a transfer on a lane, with the range of amounts for which the fee holds.

    Attributes:
        fee: fee in raw units of the origin's token, the margin included.
        least, most: smallest and largest amount that may enter the bridge, raw units.
        estimated_ms: expected time of a transfer, milliseconds.
    """

    fee: BridgeFee
    least: int
    most: int
    estimated_ms: int


class _RelayFee(Struct, frozen=True):
    total: str


class _DepositLimits(Struct, frozen=True, rename="camel"):
    min_deposit: str
    max_deposit: str
    max_deposit_instant: str | None = None


class _SuggestedFees(Struct, frozen=True, rename="camel"):
    """Answer of Across: fee in raw units of the input token, and limits of a deposit."""

    total_relay_fee: _RelayFee
    is_amount_too_low: bool
    spoke_pool_address: str
    limits: _DepositLimits
    estimated_fill_time_sec: Annotated[int, Meta(ge=0, le=86_400)] | None = None


class _TierFee(Struct, frozen=True, rename="camel"):
    """Item of CCTP's answer: least fee of a tier, in basis points with or without decimals."""

    finality_threshold: int
    minimum_fee: Decimal

    def __post_init__(self) -> None:
        check_number("minimumFee", self.minimum_fee)


_decode_suggested = decoder(_SuggestedFees, bytes_max=limits.BRIDGE_ANSWER_BYTES_MAX)
_decode_tiers = decoder(tuple[_TierFee, ...], bytes_max=limits.BRIDGE_ANSWER_BYTES_MAX)


def fee_targets(lane: FeeLane) -> tuple[str, ...]:
    """Return the URLs, below the base URL of the bridge's API, whose answers give a lane's fee."""
    if lane.settings.kind == "cctp":
        origin, destination = lane.domains
        return (f"/v2/burn/USDC/fees/{origin}/{destination}",)
    named = {
        "inputToken": to_checksum(lane.tokens[0]),
        "outputToken": to_checksum(lane.tokens[1]),
        "originChainId": lane.chains[0],
        "destinationChainId": lane.chains[1],
    }
    if lane.is_scaled:
        named["allowUnmatchedDecimals"] = "true"
    return tuple(f"/suggested-fees?{urlencode(named | {'amount': amount})}" for amount in lane.amounts)


def fee_from(lane: FeeLane, answers: Sequence[bytes]) -> LaneFee:
    """Derive the fee of a lane from the bodies of the answers to `fee_targets`.

    Raises:
        InvalidInput: an answer is malformed or contradicts the settings, the larger amount is too low for the
            bridge, or the fee is out of bounds: 100 % or more, or its fixed part above FEE_FIXED_MAX.
    """
    margin_bps = lane.settings.margin_bps
    if lane.settings.kind == "cctp":
        (answer,) = answers
        fee = _with_margin(BridgeFee(_tier_ppm(lane, answer), 0), margin_bps)
        return LaneFee(fee, 1, limits.UINT256_MAX // PPM_ONE, lane.settings.estimated_ms)
    small, large = (_suggested(lane, answer) for answer in answers)
    if large.is_amount_too_low:
        raise InvalidInput("the larger amount is too low for the bridge", field="isAmountTooLow")
    fee = fitted(
        (lane.amounts[0], parse_amount(small.total_relay_fee.total, "totalRelayFee.total")),
        (lane.amounts[1], parse_amount(large.total_relay_fee.total, "totalRelayFee.total")),
    )
    said_s = large.estimated_fill_time_sec
    return LaneFee(
        _with_margin(fee, margin_bps),
        max(_least(large), _least(small), lane.amounts[0] + 1 if small.is_amount_too_low else 1),
        min(_most(large), _most(small), lane.amounts[1]),
        lane.settings.estimated_ms if said_s is None else said_s * 1_000,
    )


def fitted(small: tuple[int, int], large: tuple[int, int]) -> BridgeFee:
    """Fit parts per million and a fixed part to two fees, so that neither fee is above the fitted fee.

    Args:
        small, large: (amount, fee of the amount) in raw units; the amounts differ.

    Raises:
        InvalidInput: the fee grows at least as fast as the amount.
    """
    (low, fee_low), (high, fee_high) = small, large
    ppm = mul_div_up(max(0, fee_high - fee_low), PPM_ONE, high - low)
    if ppm >= PPM_ONE:
        raise InvalidInput("the fee grows as fast as the amount", field="totalRelayFee.total")
    bare = BridgeFee(ppm, 0)
    return BridgeFee(ppm, max(0, fee_low - fee_of(bare, low), fee_high - fee_of(bare, high)))


def _with_margin(fee: BridgeFee, margin_bps: int) -> BridgeFee:
    whole = limits.BPS_ONE + margin_bps
    ppm, fixed = (mul_div_up(part, whole, limits.BPS_ONE) for part in fee)
    if fixed > FEE_FIXED_MAX:
        raise InvalidInput(field="totalRelayFee.total", expected=f"at most {FEE_FIXED_MAX}", got=fixed)
    return BridgeFee(min(ppm, PPM_ONE - 1), fixed)


def _suggested(lane: FeeLane, answer: bytes) -> _SuggestedFees:
    found = _decode_suggested(answer)
    pool = parse_address(found.spoke_pool_address, "spokePoolAddress")
    if pool != lane.spoke_pool:
        raise InvalidInput(
            field="spokePoolAddress",
            expected=f"{to_checksum(lane.spoke_pool)}, the settings' of chain {lane.chains[0]}",
            got=found.spoke_pool_address,
        )
    return found


def _least(found: _SuggestedFees) -> int:
    return parse_amount(found.limits.min_deposit, "limits.minDeposit")


def _most(found: _SuggestedFees) -> int:
    most = parse_amount(found.limits.max_deposit, "limits.maxDeposit")
    if found.limits.max_deposit_instant is None:
        return most
    return min(most, parse_amount(found.limits.max_deposit_instant, "limits.maxDepositInstant"))


def _tier_ppm(lane: FeeLane, answer: bytes) -> int:
    """Return the fee of a lane's tier of CCTP in parts per million, rounded up."""
    wanted = lane.settings.finality
    bps = next(
        (tier.minimum_fee for tier in _decode_tiers(answer) if tier.finality_threshold == wanted), None
    )
    if bps is None:
        raise InvalidInput(field="finalityThreshold", expected=f"an entry with {wanted}")
    if not 0 <= bps < limits.BPS_ONE:
        raise InvalidInput(field="minimumFee", expected=f"0 to {limits.BPS_ONE} basis points", got=bps)
    return int((bps * _PPM_OF_BPS).to_integral_value(ROUND_CEILING))
