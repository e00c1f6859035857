"""Requests to bridges' fee APIs for a lane, and the fee that follows from the answers. Pure.

    Across   GET {url}/suggested-fees, for a small and a large amount    ->  a line through or above both fees
             400 AMOUNT_TOO_HIGH, or limits below an amount              ->  smaller amounts, and again
    CCTP     GET {url}/v2/burn/USDC/fees/{from domain}/{to domain}       ->  the fee for `finality`, in ppm

    fee(amount) = ceil(amount * ppm / 1,000,000) + fixed, as an owner signs it: at least the asked fee at both
    amounts, plus the margin of the settings

Source: docs.across.to, "suggested-fees"; github.com/across-protocol/frontend, api/suggested-fees.ts and
    api/_errors.ts (the limit in whole tokens stands in the text of a refusal alone); developers.circle.com,
    "Get USDC transfer fees".
Choice: A fee of Across is asked at two amounts and fitted to parts per million and a fixed part, rounded up;
    amounts above the larger are not quoted.
Choice: Where Across takes less than the settings' larger amount, the fee is asked at the most that it takes
    instead, and at a tenth of that if it is below the smaller amount, too.
Choice: Where an answer of Across has `maxDepositInstant`, a quote sends at most this amount over Across.
Choice: A deposit names no exclusive relayer: the fee is asked long before the deposit, and any relayer may
    fill at once.
"""

import re
from collections.abc import Generator
from decimal import ROUND_CEILING, Decimal
from typing import Annotated, NamedTuple
from urllib.parse import urlencode

from msgspec import Meta, Struct

from ...codecs.amounts import parse_amount
from ...codecs.bridges.bridge_terms import FEE_FIXED_MAX, PPM_ONE, BridgeFee, fee_of
from ...codecs.messages.wire import check_number, decoder
from ...codecs.rounding import mul_div_up
from ...config import limits
from ...config.error_text import excerpt
from ...config.errors import BridgeError, InvalidInput
from ...config.sections.bridges import BridgeSettings
from ...crypto.addresses import parse_address, to_checksum

_PPM_OF_BPS = 100
_OK, _BAD_REQUEST = 200, 400
_ASKS_MAX = 5
_SHRINKING = 10
_MOST_OF_REFUSAL = re.compile(rb"max\. deposit limit: ([0-9]{1,40}(?:\.[0-9]{1,40})?)(?![0-9.])")
_TOO_HIGH = b"AMOUNT_TOO_HIGH"


class FeeLane(Struct, frozen=True):
    """A lane of a bridge, with the data of a request for its fee: chains and tokens of both ends.

    Attributes:
        bridge: name of the bridge in the settings.
        chains: ids of the origin chain and of the destination chain.
        tokens: addresses of the token on the two chains, 20 bytes each.
        amounts: the two amounts whose fees are requested, raw units of the origin's token, the smaller first.
        spoke_pool: Across's contract on the origin chain, 20 bytes; empty for another bridge.
        domains: Circle's numbers of the two chains; zeros for another bridge.
        decimals: decimals of the token on the two chains.
    """

    bridge: str
    settings: BridgeSettings
    chains: tuple[int, int]
    tokens: tuple[bytes, bytes]
    amounts: tuple[int, int]
    spoke_pool: bytes
    domains: tuple[int, int]
    decimals: tuple[int, int]


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


class _DepositFee(Struct, frozen=True):
    """What Across answers about a deposit, in raw units of the input token: fee, and limits of deposits.

    Attributes:
        most: largest deposit that relayers fill at once.
        is_too_low: whether the amount of the request is below the smallest deposit.
        fill_s: expected time of a fill; None if the answer has none.
    """

    total: int
    least: int
    most: int
    is_too_low: bool
    fill_s: int | None


class _TierFee(Struct, frozen=True, rename="camel"):
    """Item of CCTP's answer: least fee of a tier, in basis points with or without decimals."""

    finality_threshold: int
    minimum_fee: Decimal

    def __post_init__(self) -> None:
        check_number("minimumFee", self.minimum_fee)


_decode_suggested = decoder(_SuggestedFees, bytes_max=limits.BRIDGE_ANSWER_BYTES_MAX)
_decode_tiers = decoder(tuple[_TierFee, ...], bytes_max=limits.BRIDGE_ANSWER_BYTES_MAX)


class FeeAnswer(NamedTuple):
    """HTTP answer of a bridge's API: status and body."""

    status: int
    body: bytes


FeeAsking = Generator[str, FeeAnswer, LaneFee]
"""Requests for a lane's fee: yields URLs below the API's base URL, takes their answers, returns the fee."""


def asking_fee(lane: FeeLane) -> FeeAsking:
    """Ask for the fee of a lane.

    Raises:
        BridgeError: the API refused, or its limits changed with each answer.
        InvalidInput: an answer is malformed or contradicts the settings, the larger amount is too low for the
            bridge, or the fee is out of bounds: 100 % or more, or its fixed part above FEE_FIXED_MAX.
    """
    return _asking_cctp(lane) if lane.settings.kind == "cctp" else _asking_across(lane)


def _asking_cctp(lane: FeeLane) -> FeeAsking:
    origin, destination = lane.domains
    answer = _taken((yield f"/v2/burn/USDC/fees/{origin}/{destination}"))
    fee = _with_margin(BridgeFee(_tier_ppm(lane, answer), 0), lane.settings.margin_bps)
    return LaneFee(fee, 1, limits.UINT256_MAX // PPM_ONE, lane.settings.estimated_ms)


def _asking_across(lane: FeeLane) -> FeeAsking:
    low, high = lane.amounts
    found: dict[int, _DepositFee] = {}
    for _ in range(_ASKS_MAX):
        amount = high if low in found else low
        answer = yield _suggested_target(lane, amount)
        most = _most_of_refusal(lane, amount, answer)
        if most is None:
            found[amount] = _suggested(lane, _taken(answer))
            most = found[amount].most
        if high > most:
            high, low = most, min(low, most // _SHRINKING)
            if not low:
                return LaneFee(BridgeFee(0, 0), 1, 0, lane.settings.estimated_ms)  # no amount may enter
        if low in found and high in found:
            return _between(lane, (low, found[low]), (high, found[high]))
    raise BridgeError(f"its limits changed with each of {_ASKS_MAX} answers")


def _suggested_target(lane: FeeLane, amount: int) -> str:
    named = {
        "inputToken": to_checksum(lane.tokens[0]),
        "outputToken": to_checksum(lane.tokens[1]),
        "originChainId": lane.chains[0],
        "destinationChainId": lane.chains[1],
        "skipAmountLimit": "true",  # else an amount below `minDeposit` is refused without the limits
    }
    if lane.decimals[0] != lane.decimals[1]:
        named["allowUnmatchedDecimals"] = "true"
    return f"/suggested-fees?{urlencode(named | {'amount': amount})}"


def _most_of_refusal(lane: FeeLane, amount: int, answer: FeeAnswer) -> int | None:
    """Return the largest deposit, raw units, that Across's refusal of a larger amount tells.

    The result is None for another answer, and a tenth of the amount for a refusal without a limit below it.
    """
    if answer.status != _BAD_REQUEST:
        return None
    told = _MOST_OF_REFUSAL.search(answer.body)
    if told is None and _TOO_HIGH not in answer.body:
        return None
    most = amount if told is None else int(Decimal(told[1].decode()).scaleb(lane.decimals[0]))
    return most if most < amount else amount // _SHRINKING


def _taken(answer: FeeAnswer) -> bytes:
    """Return the body of a successful answer; raise BridgeError for another one."""
    if answer.status != _OK:
        raise BridgeError(f"answered {answer.status}: {excerpt(answer.body)}")
    return answer.body


def _between(lane: FeeLane, small: tuple[int, _DepositFee], large: tuple[int, _DepositFee]) -> LaneFee:
    """Derive a lane's fee from Across's answers for two amounts, of which the larger is the most."""
    (low, of_low), (high, of_high) = small, large
    if of_high.is_too_low and high == lane.amounts[1]:
        raise InvalidInput("the larger amount is too low for the bridge", field="isAmountTooLow")
    return LaneFee(
        _with_margin(fitted((low, of_low.total), (high, of_high.total)), lane.settings.margin_bps),
        max(of_high.least, of_low.least, low + 1 if of_low.is_too_low else 1),
        min(of_high.most, of_low.most, high),
        lane.settings.estimated_ms if of_high.fill_s is None else of_high.fill_s * 1_000,
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


def _suggested(lane: FeeLane, answer: bytes) -> _DepositFee:
    found = _decode_suggested(answer)
    pool = parse_address(found.spoke_pool_address, "spokePoolAddress")
    if pool != lane.spoke_pool:
        raise InvalidInput(
            field="spokePoolAddress",
            expected=f"{to_checksum(lane.spoke_pool)}, the settings' of chain {lane.chains[0]}",
            got=found.spoke_pool_address,
        )
    most = parse_amount(found.limits.max_deposit, "limits.maxDeposit")
    if found.limits.max_deposit_instant is not None:
        most = min(most, parse_amount(found.limits.max_deposit_instant, "limits.maxDepositInstant"))
    return _DepositFee(
        total=parse_amount(found.total_relay_fee.total, "totalRelayFee.total"),
        least=parse_amount(found.limits.min_deposit, "limits.minDeposit"),
        most=most,
        is_too_low=found.is_amount_too_low,
        fill_s=found.estimated_fill_time_sec,
    )


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
