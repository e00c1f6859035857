"""Terms of a bridge, as an owner signs them in member `bridge` of an order: fees, times, limits. Pure.

    fee(amount)     = ceil(amount * fee_ppm / 1,000,000) + fee_fixed
    output(amount)  = amount - fee(amount), in raw units of the output token: rounded down
    input(output)   = least amount whose output is `output` or more

    scaling_factor = decimals of the output token - decimals of the bridge's token on the origin

An amount that enters a bridge is in raw units of the bridge's token on the origin (`destToken` of the order),
an amount that arrives in raw units of `outputToken`. The destination amounts of a signed order are outputs.

Source: Across `depositV3`; CCTP V2 `depositForBurn`. The settlement's bridge module has the same arithmetic.
Choice: `destAmount` and `expectedAmount` of an order across chains are raw units of `outputToken`: the owner
    signs the least that arrives.
Choice: The owner signs the bridge's fee in `protocolData`, as parts per million and a fixed part.
Choice: Across's depositor is the order's owner, who gets a deposit back that no relayer fills; Across's
    recipient is the beneficiary.
Choice: `received` of a bridged settlement is the amount that entered the bridge; fee, surplus and promise
    count from this amount too.
Choice: The contract bridges orders of vaults, the venue does not. Crossed orders and handlers' orders have no
    bridge.
"""

from enum import StrEnum
from typing import NamedTuple

import msgspec

from ...config.errors import InvalidInput
from ...config.limits import BRIDGE_SCALING_MAX
from ..contracts.abi import WORD_BYTES, address_word, selector, uint_word
from ..eip712_orders.delta import DeltaBridge
from ..rounding import div_down, div_up, mul_div_up

PPM_ONE = 1_000_000
SCALING_MAX = BRIDGE_SCALING_MAX
"""Largest difference of decimals, in either direction."""
_UINT32_MAX = 2**32 - 1
FEE_FIXED_MAX = 2**128 - 1
_TRANSFER = "(address,address,address,uint256,(bytes4,uint256,address,int8,bytes))"


class BridgeKind(StrEnum):
    """Protocols that the settlement contract's bridge module speaks; each value is the name of a function."""

    ACROSS = "across"
    CCTP = "cctp"


SELECTORS = {kind: selector(f"{kind.value}({_TRANSFER})") for kind in BridgeKind}
"""Protocol -> `protocolSelector` of an order's bridge."""
_KINDS = {selector4: kind for kind, selector4 in SELECTORS.items()}


class BridgeFee(NamedTuple):
    """Fee of a transfer: parts per million of the amount (below a million), plus fixed raw units."""

    ppm: int
    fixed: int


class AcrossTerms(msgspec.Struct, frozen=True):
    """Signed terms of a transfer by Across.

    Attributes:
        fee: fee in units of the bridge's token on the origin.
        fill_within_s: seconds after the settlement in which relayers may fill the deposit; an unfilled
            deposit is refunded afterwards.
        exclusive_relayer: the only relayer that may fill at first, 20 bytes; zero if any relayer may.
        exclusivity_s: seconds after the settlement in which only `exclusive_relayer` may fill.
    """

    fee: BridgeFee
    fill_within_s: int
    exclusive_relayer: bytes
    exclusivity_s: int


class CctpTerms(msgspec.Struct, frozen=True):
    """Signed terms of a transfer by CCTP (V2).

    Attributes:
        fee: largest fee in units of the burned token.
        min_finality: finality that the burn must have before the attester signs: 1000 for confirmed (fast),
            2000 for final.
        domain: Circle's number of the destination chain.
    """

    fee: BridgeFee
    min_finality: int
    domain: int


BridgeTerms = AcrossTerms | CctpTerms


def pack_terms(terms: BridgeTerms) -> bytes:
    """Encode terms as `protocolData` of an order's bridge.

    Raises:
        OverflowError: a number is below 0 or above 2^256 - 1.
    """
    fee = uint_word(terms.fee.ppm) + uint_word(terms.fee.fixed)
    if isinstance(terms, CctpTerms):
        return fee + uint_word(terms.min_finality) + uint_word(terms.domain)
    return (
        fee
        + uint_word(terms.fill_within_s)
        + address_word(terms.exclusive_relayer)
        + uint_word(terms.exclusivity_s)
    )


def kind_of(bridge: DeltaBridge) -> BridgeKind:
    """Return the protocol of a signed bridge.

    Raises:
        InvalidInput: the bridge's `protocolSelector` belongs to no known protocol.
    """
    kind = _KINDS.get(bridge.protocol_selector)
    if kind is None:
        raise InvalidInput(
            field="bridge.protocolSelector",
            expected=" or ".join(f"0x{known.hex()} ({kind})" for kind, known in SELECTORS.items()),
            got=f"0x{bridge.protocol_selector.hex()}",
        )
    return kind


def parse_terms(bridge: DeltaBridge) -> BridgeTerms:
    """Decode and check the terms in `protocolData` of a signed bridge.

    Raises:
        InvalidInput: the bridge module does not accept the selector, the length, a number or the scaling
            factor.
    """
    kind = kind_of(bridge)
    # The bounds are those of `feeOf` in contracts/Bridges.sol: an order beyond them would revert when it is
    # settled. CCTP mints the token that it burned, with the same decimals, and so scales nothing.
    scaling_max = 0 if kind is BridgeKind.CCTP else SCALING_MAX
    if abs(bridge.scaling_factor) > scaling_max:
        raise InvalidInput(
            field="bridge.scalingFactor", expected=f"at most {scaling_max}", got=bridge.scaling_factor
        )
    words = _words(bridge.protocol_data, 4 if kind is BridgeKind.CCTP else 5)
    fee = BridgeFee(
        _bounded(words[0], "fee in parts per million", PPM_ONE - 1),  # `input_of` divides by the rest
        _bounded(words[1], "fixed fee", FEE_FIXED_MAX),
    )
    if kind is BridgeKind.CCTP:
        return CctpTerms(
            fee,
            _bounded(words[2], "minFinalityThreshold", _UINT32_MAX),
            _bounded(words[3], "destinationDomain", _UINT32_MAX),
        )
    return AcrossTerms(
        fee,
        _bounded(words[2], "seconds to fill", _UINT32_MAX),
        _bounded(words[3], "exclusive relayer", 2**160 - 1).to_bytes(20, "big"),
        _bounded(words[4], "seconds of exclusivity", _UINT32_MAX),
    )


def fee_of(fee: BridgeFee, amount: int) -> int:
    """Compute the fee of an amount that enters a bridge, raw units, rounded up."""
    return mul_div_up(amount, fee.ppm, PPM_ONE) + fee.fixed


def output_of(fee: BridgeFee, scaling_factor: int, amount: int) -> int:
    """Compute the amount that arrives if `amount` enters a bridge, rounded down; 0 if the fee takes all."""
    left = max(0, amount - fee_of(fee, amount))
    scale: int = 10 ** abs(scaling_factor)
    return left * scale if scaling_factor >= 0 else div_down(left, scale)


def input_of(fee: BridgeFee, scaling_factor: int, output: int) -> int:
    """Compute the least amount that has to enter a bridge for `output` or more to arrive; 0 for output 0."""
    if output == 0:
        return 0
    scale: int = 10 ** abs(scaling_factor)
    left = div_up(output, scale) if scaling_factor >= 0 else output * scale
    return mul_div_up(left + fee.fixed, PPM_ONE, PPM_ONE - fee.ppm)


def _words(data: bytes, count: int) -> list[int]:
    if len(data) != count * WORD_BYTES:
        raise InvalidInput(
            field="bridge.protocolData", expected=f"{count * WORD_BYTES} bytes", got=f"{len(data)} bytes"
        )
    return [int.from_bytes(data[at : at + WORD_BYTES], "big") for at in range(0, len(data), WORD_BYTES)]


def _bounded(value: int, name: str, highest: int) -> int:
    if value > highest:
        raise InvalidInput(field="bridge.protocolData", expected=f"{name} of at most {highest}", got=value)
    return value
