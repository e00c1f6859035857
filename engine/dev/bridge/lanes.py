"""Tokens that a dev relayer bridges, and its fees. Pure.

    capital fee = ceil(amount * capital_ppm / 1,000,000)      for the relayer's money
    gas fee     = a fixed part of one whole token             for the relayer's transaction
    lp fee      = ceil(amount * lp_ppm / 1,000,000)           for the pool that repays the relayer

All fees are raw units of the token on the origin chain.

Source: https://docs.across.to, "Fees".
"""

from collections.abc import Mapping

from msgspec import Struct

from ....codecs.bridges.bridge_terms import PPM_ONE
from ....codecs.rounding import div_down, div_up, mul_div_up

_MICRO = 1_000_000


class LaneEnd(Struct, frozen=True):
    """A bridged token on one chain: address of 20 bytes, and decimals."""

    token: bytes
    decimals: int


class RelayedToken(Struct, frozen=True):
    """A token that a relayer bridges.

    Attributes:
        ends: chain id -> the token on the chain.
        gas_micro: gas fee of a fill, in millionths of one whole token.
    """

    symbol: str
    ends: Mapping[int, LaneEnd]
    gas_micro: int


class RelayerTerms(Struct, frozen=True):
    """Fees of a relayer in parts per million of the amount."""

    capital_ppm: int = 300
    lp_ppm: int = 100


class RelayFee(Struct, frozen=True):
    """Fees of a transfer, raw units of the token on the origin chain."""

    capital: int
    gas: int
    lp: int

    @property
    def total(self) -> int:
        """Sum of the fees."""
        return self.capital + self.gas + self.lp


class RelayLane(Struct, frozen=True):
    """Way of a token from an origin chain to a destination chain."""

    symbol: str
    origin: LaneEnd
    destination: LaneEnd
    gas_micro: int

    def fee(self, amount: int, terms: RelayerTerms) -> RelayFee:
        """Compute the fees of an amount, raw units on the origin."""
        return RelayFee(
            mul_div_up(amount, terms.capital_ppm, PPM_ONE),
            self.gas_fee(),
            mul_div_up(amount, terms.lp_ppm, PPM_ONE),
        )

    def gas_fee(self) -> int:
        """Gas fee of a fill, raw units on the origin."""
        return mul_div_up(10**self.origin.decimals, self.gas_micro, _MICRO)

    def arriving(self, amount: int) -> int:
        """Convert raw units on the origin to raw units on the destination, rounded down."""
        return _rescaled(amount, self.destination.decimals - self.origin.decimals, up=False)

    def leaving(self, amount: int) -> int:
        """Convert raw units on the destination to raw units on the origin, rounded up."""
        return _rescaled(amount, self.origin.decimals - self.destination.decimals, up=True)


def lane_of(
    tokens: tuple[RelayedToken, ...], origin: tuple[int, bytes], destination: tuple[int, bytes]
) -> RelayLane | None:
    """Find the lane between two tokens; None if the relayer has no such lane.

    Args:
        origin, destination: chain id, and address of the token of 20 bytes.
    """
    for bridged in tokens:
        first, last = bridged.ends.get(origin[0]), bridged.ends.get(destination[0])
        if first and last and (first.token, last.token) == (origin[1], destination[1]):
            if origin[0] == destination[0]:
                return None
            return RelayLane(bridged.symbol, first, last, bridged.gas_micro)
    return None


def _rescaled(amount: int, by: int, *, up: bool) -> int:
    scale: int = 10 ** abs(by)
    if by >= 0:
        return amount * scale
    return div_up(amount, scale) if up else div_down(amount, scale)
