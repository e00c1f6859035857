"""Requests and plans of the pathfinder: the shapes that pricing, Market and Delta share.

Tokens are 20-byte addresses of ERC-20 contracts: the native token is its wrapped form here. Amounts are raw
units. A plan is indicative: it names the makers to ask and the amounts, hop by hop.

    PlanTotal: the swap's two amounts and its gas
    RoutePlan -> PathPlan: a path through the tokens -> HopPlan: a pair -> MakerShare: a maker's part

Choice: TransferFee taxes shrink the amount that arrives at each end; DexTransferFee taxes shrink the amounts
    that arrive at the first exchange and leave the last.
"""

from msgspec import Struct

from ....codecs.messages.vocabulary import Side


class Taxes(Struct, frozen=True):
    """Taxes that tokens withhold from transfers, basis points (spec 1.13.20 to 1.13.23;
    choices.md#quotes-and-routes).

    Attributes:
        src, dest: of the amount that arrives at each end.
        src_dex, dest_dex: of the amount that arrives at the first exchange, and that leaves the last.
    """

    src: int = 0
    dest: int = 0
    src_dex: int = 0
    dest_dex: int = 0


NO_TAXES = Taxes()


class SwapRequest(Struct, frozen=True):
    """A swap to be priced.

    Attributes:
        amount: of the source for SELL, of the destination for BUY.
        only: names of makers; None for any.
        without: makers that are left out.
        route: tokens of the only path allowed, ends included; empty for any path.
        gas_price_wei: price of a unit of gas; 0 leaves gas out of the choice.
    """

    src_token: bytes
    dest_token: bytes
    amount: int
    side: Side
    only: frozenset[str] | None = None
    without: frozenset[str] = frozenset()
    route: tuple[bytes, ...] = ()
    taxes: Taxes = NO_TAXES
    gas_price_wei: int = 0


class MakerShare(Struct, frozen=True):
    """Amounts to ask a maker for on a hop."""

    maker: str
    src_amount: int
    dest_amount: int


class HopPlan(Struct, frozen=True):
    """A pair of tokens with its makers. Amounts sum up the shares; the largest share stands first."""

    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    shares: tuple[MakerShare, ...]


class PathPlan(Struct, frozen=True):
    """A path from source to destination, hop after hop."""

    src_amount: int
    dest_amount: int
    hops: tuple[HopPlan, ...]


class PlanTotal(Struct, frozen=True):
    """Amounts and gas of a swap, before fees.

    Attributes:
        src_amount, dest_amount: raw units that the user gives and gets, after taxes of the tokens.
        gas: units of gas for the whole transaction.
    """

    side: Side
    src_amount: int
    dest_amount: int
    gas: int


class RoutePlan(PlanTotal, frozen=True):
    """The whole swap, before fees.

    Attributes:
        paths: the largest first. Their amounts add up to the fixed side exactly, less the taxes on it.
    """

    paths: tuple[PathPlan, ...]

    def makers(self) -> frozenset[str]:
        """Names of the makers with a share."""
        return frozenset(share.maker for path in self.paths for hop in path.hops for share in hop.shares)
