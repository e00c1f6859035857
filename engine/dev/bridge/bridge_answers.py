"""Bodies of the HTTP answers of Across and Circle, as a dev bridge gives them. Pure.

Amounts are decimal texts. A `pct` is a share of the deposited amount times 10^18.

Source: https://docs.across.to, "GET /suggested-fees"; github.com/across-protocol/frontend,
    api/suggested-fees.ts (refusals in their order and words) and api/_errors.ts (their shape);
    https://developers.circle.com/openapi/cctp.yaml.
"""

from typing import Any

from ....codecs.amounts import format_units
from ....codecs.bridges.cctp import (
    FINALITY_CONFIRMED,
    FINALITY_FINALIZED,
    CctpMessage,
    parse_burn,
    parse_message,
)
from ....codecs.rounding import mul_div_up
from ....config.errors import InvalidInput
from ....crypto.addresses import ZERO_ADDRESS, to_checksum
from ....crypto.hexadecimal import to_hex
from .attest_plan import AttesterOrders
from .attester import SentMessage
from .lanes import RelayerTerms, RelayFee, RelayLane

_PCT_ONE = 10**18
_LEAST_GAS_FEES = 2
"""Number of gas fees that the smallest deposit exceeds."""
FILL_DEADLINE_S = 4 * 3_600
"""Seconds from the quote to the suggested fill deadline; the pool's bound is 6 hours."""


def across_refusal(code: str, message: str) -> dict[str, Any]:
    """Return the body of Across's answers with status 400."""
    return {"type": "AcrossApiError", "code": code, "status": 400, "message": message}


def fees_refusal(lane: RelayLane, amount: int, funds: int, *, skips_limit: bool) -> dict[str, Any] | None:
    """Return the body with which `GET /suggested-fees` refuses an amount, or None for one within limits.

    Args:
        amount, funds: as in `suggested_fees`.
        skips_limit: whether the caller asked for the fees of too small an amount (`skipAmountLimit`).
    """
    most = lane.leaving(funds)
    if amount > most:
        told = format_units(most, lane.origin.decimals)
        told = told if "." in told else f"{told}.0"  # as ethers' formatUnits
        return across_refusal("AMOUNT_TOO_HIGH", f"Amount exceeds max. deposit limit: {told} {lane.symbol}")
    if amount < _least(lane) and not skips_limit:
        return across_refusal("AMOUNT_TOO_LOW", "Sent amount is too low relative to fees")
    return None


def suggested_fees(
    lane: RelayLane,
    amount: int,
    terms: RelayerTerms,
    *,
    funds: int,
    pools: tuple[bytes, bytes],
    time_s: int,
    fill_s: float,
) -> dict[str, Any]:
    """Return the body of an answer to `GET /suggested-fees` for an amount that `fees_refusal` lets pass.

    Args:
        amount: raw units that are to be deposited, above zero.
        funds: raw units that the relayer has on the destination.
        pools: addresses of the pools of origin and destination.
        time_s: time of the origin's latest block, Unix seconds.
        fill_s: seconds that a fill is expected to take.
    """
    fee = lane.fee(amount, terms)
    least = _least(lane)
    most = lane.leaving(funds)
    return {
        "totalRelayFee": _share(fee.total, amount),
        "relayerCapitalFee": _share(fee.capital, amount),
        "relayerGasFee": _share(fee.gas, amount),
        "lpFee": _share(fee.lp, amount),
        "timestamp": str(time_s),
        "fillDeadline": str(time_s + FILL_DEADLINE_S),
        "isAmountTooLow": amount < least,
        "outputAmount": str(_output(lane, amount, fee)),
        "spokePoolAddress": to_checksum(pools[0]),
        "destinationSpokePoolAddress": to_checksum(pools[1]),
        "exclusiveRelayer": to_checksum(ZERO_ADDRESS),
        "exclusivityDeadline": 0,
        "estimatedFillTimeSec": max(1, round(fill_s)),
        "limits": {
            "minDeposit": str(least),
            "maxDeposit": str(most),
            "maxDepositInstant": str(most),
            "maxDepositShortDelay": str(most),
            "recommendedDepositInstant": str(most),
        },
    }


def burn_fees(orders: AttesterOrders) -> list[dict[str, int]]:
    """Return the body of an answer to `GET /v2/burn/USDC/fees/...`, with fees in basis points."""
    return [
        {"finalityThreshold": FINALITY_CONFIRMED, "minimumFee": orders.fast_fee_bps},
        {"finalityThreshold": FINALITY_FINALIZED, "minimumFee": 0},
    ]


def message_entry(found: SentMessage) -> dict[str, Any]:
    """Return an entry of the `messages` of an answer to `GET /v2/messages/{domain}`."""
    is_complete = bool(found.raw)
    return {
        "message": to_hex(found.raw),
        "eventNonce": to_hex(found.nonce),
        "attestation": to_hex(found.attestation) if is_complete else "PENDING",
        "decodedMessage": _decoded(parse_message(found.raw)) if is_complete else None,
        "cctpVersion": 2,
        "status": "complete" if is_complete else "pending_confirmations",
        "delayReason": found.delay_reason or None,
    }


def _share(fee: int, amount: int) -> dict[str, str]:
    return {"pct": str(mul_div_up(fee, _PCT_ONE, amount)), "total": str(fee)}


def _least(lane: RelayLane) -> int:
    return _LEAST_GAS_FEES * lane.gas_fee() + 1


def _output(lane: RelayLane, amount: int, fee: RelayFee) -> int:
    return lane.arriving(max(0, amount - fee.total))


def _decoded(message: CctpMessage) -> dict[str, Any]:
    return {
        "sourceDomain": str(message.source_domain),
        "destinationDomain": str(message.destination_domain),
        "nonce": to_hex(message.nonce),
        "sender": _account(message.sender),
        "recipient": _account(message.recipient),
        "destinationCaller": _account(message.destination_caller),
        "minFinalityThreshold": str(message.min_finality),
        "finalityThresholdExecuted": str(message.finality_executed),
        "messageBody": to_hex(message.body),
        "decodedMessageBody": _decoded_burn(message.body),
    }


def _decoded_burn(body: bytes) -> dict[str, Any] | None:
    try:
        burn = parse_burn(body)
    except InvalidInput:
        return None
    return {
        "burnToken": _account(burn.burn_token),
        "mintRecipient": _account(burn.mint_recipient),
        "amount": str(burn.amount),
        "messageSender": _account(burn.message_sender),
        "maxFee": str(burn.max_fee),
        "feeExecuted": str(burn.fee_executed),
        "expirationBlock": str(burn.expiration_block),
        "hookData": to_hex(burn.hook_data),
    }


def _account(word: bytes) -> str:
    return to_hex(word) if any(word[:12]) else to_hex(word[12:])
