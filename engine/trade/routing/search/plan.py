"""Requests to the pathfinder, and the route plans that it returns for Market swaps and Delta orders. Pure.

Tokens are 20-byte addresses of ERC-20 contracts: the native token is its wrapped form here. Amounts are raw
units. A plan is indicative: it names the makers to ask and the amounts, hop by hop.

    PlanTotal: the swap's two amounts and its gas
    RoutePlan -> PathPlan: a path through the tokens -> HopPlan: a pair -> MakerShare: a maker's part

Choice: `srcTokenTransferFee` and `destTokenTransferFee` shrink what the user sends and what the user gets;
    `srcTokenDexTransferFee` and `destTokenDexTransferFee` shrink what enters the first exchange and what
    leaves the last.
"""

from msgspec import Struct

from .....codecs.messages.vocabulary import Side


class Taxes(Struct, frozen=True):
    """Taxes (fees that tokens withhold on transfers), in basis points.

    Attributes:
        src: tax on the user's transfer of the source token.
        dest: tax on the transfer of the destination token to the user.
        src_dex: tax on the transfer of the source token into the first hop.
        dest_dex: tax on the transfer of the destination token out of the last hop.
    """

    src: int = 0
    dest: int = 0
    src_dex: int = 0
    dest_dex: int = 0


NO_TAXES = Taxes()


class SwapRequest(Struct, frozen=True):
    """Request for a plan of a swap: tokens, amount, side and the makers that may take part.

    Attributes:
        amount: raw units of the source for SELL, of the destination for BUY.
        only: names of the makers that may take part; None for all.
        without: names of makers that may not take part.
        route: tokens of the only path allowed, from source to destination; empty for any path.
        gas_price_wei: price of a unit of gas, wei; at 0, gas does not affect the choice of a route.
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
    """Raw units that one maker takes of a hop's source token and gives of its destination token."""

    maker: str
    src_amount: int
    dest_amount: int


class HopPlan(Struct, frozen=True):
    """Planned exchange of one token for another on a path: amounts in raw units, divided among makers.

    Attributes:
        src_amount, dest_amount: sums over the makers' shares.
        shares: makers' shares, the largest first.
    """

    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    shares: tuple[MakerShare, ...]


class PathPlan(Struct, frozen=True):
    """Planned path of a swap from source to destination: amounts in raw units, and its hops in order."""

    src_amount: int
    dest_amount: int
    hops: tuple[HopPlan, ...]


class PlanTotal(Struct, frozen=True):
    """Amounts and gas of a planned swap, before fees.

    Attributes:
        src_amount, dest_amount: raw units that the user gives and gets, with the fees that tokens take on
            transfers counted in.
        gas: units of gas for the whole transaction.
    """

    side: Side
    src_amount: int
    dest_amount: int
    gas: int


class RoutePlan(PlanTotal, frozen=True):
    """Plan of a whole swap, before fees.

    Attributes:
        paths: paths of the swap, the largest first. Their source amounts add up exactly to the part of a
            sale's amount that reaches the makers after the fees that the token takes on transfers. Their
            destination amounts add up exactly to a purchase's amount and the token's fees, which makers pay.
    """

    paths: tuple[PathPlan, ...]

    def makers(self) -> frozenset[str]:
        """Return the names of the makers that have a share in the plan."""
        return frozenset(share.maker for path in self.paths for hop in path.hops for share in hop.shares)
