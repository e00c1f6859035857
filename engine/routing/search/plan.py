"""What is asked of the pathfinder and what it answers: the shapes that pricing, Market and Delta share.

Tokens are 20-byte addresses of ERC-20 contracts: the native token is its wrapped form here. Amounts are raw
units. A plan is indicative: it says which maker is to be asked for how much, hop by hop.

    PlanTotal: what it comes to
    RoutePlan -> PathPlan: one way through the tokens -> HopPlan: one pair -> MakerShare: one maker's part

Choice: TransferFee taxes shrink the amount that arrives at each end; DexTransferFee taxes shrink the amounts
    that arrive at the first exchange and leave the last.
"""

from msgspec import Struct

from ....codecs.messages.vocabulary import Side


class Taxes(Struct, frozen=True):
    """What tokens withhold from transfers, basis points (spec 1.13.20 to 1.13.23;
    choices.md#quotes-and-routes).

    Attributes:
        src, dest: from what arrives at each end.
        src_dex, dest_dex: from what arrives at the first exchange, and from what leaves the last.
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
        route: all tokens of the one path that may be taken, ends included; empty for any.
        gas_price_wei: of a unit of gas; 0 leaves gas out of the choice.
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
    """What one maker is to be asked for on a hop."""

    maker: str
    src_amount: int
    dest_amount: int


class HopPlan(Struct, frozen=True):
    """One pair. Amounts are the sums of the shares; the first share is the largest."""

    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    shares: tuple[MakerShare, ...]


class PathPlan(Struct, frozen=True):
    """One way from source to destination, hop after hop."""

    src_amount: int
    dest_amount: int
    hops: tuple[HopPlan, ...]


class PlanTotal(Struct, frozen=True):
    """What a swap comes to, before fees.

    Attributes:
        src_amount, dest_amount: what the user gives and gets, taxes of the tokens included.
        gas: units that the swap needs, as a whole transaction.
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
        """Everybody who has a share."""
        return frozenset(share.maker for path in self.paths for hop in path.hops for share in hop.shares)
