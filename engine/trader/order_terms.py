"""What a trader wants of a Delta order, what the venue is asked for it, and the order that is signed. Pure.

    OrderWish --GET /v2/quote, DELTA--> a price --terms_of--> OrderTerms --POST .../build--> typed data

Everything of the order but the fee's receiver follows from the terms: the nonce too is the trader's. So what
comes back to be signed is compared with what has to come, member by member.

Source: document 1, "Delta flow", POST /v2/delta/orders/build; interop.md 2 (how slippage rounds).
Choice: an order is signed at the price that was agreed to, however old that is by then: the bound protects
    the trader, and agents bid above it. Only the venue may find the route too old.
Choice: surplus is the user's: no partner is given a share of it.
"""

from msgspec import Raw, Struct

from ...codecs.delta_messages import BuildBody, DeltaBlock
from ...codecs.eip712_orders.delta import KIND_BUY, KIND_SELL, SAME_CHAIN, DeltaOrder
from ...codecs.vocabulary import OrderType, Side
from ...config import limits
from ...crypto.addresses import to_checksum
from ...crypto.hexadecimal import to_hex
from .terms import TradedToken


class OrderWish(Struct, frozen=True, kw_only=True):
    """An order as a trader wants it.

    Attributes:
        amount: raw units of `src` for SELL, of `dest` for BUY.
        slippage_bps: how much worse than quoted the other side may become.
        limit_amount: raw units of the other side: the limit price of a LIMIT order, in place of slippage.
        owner: 20 bytes, who signs and gives; beneficiary: who gets the destination.
        partner: its key; empty for none.
        life_s: seconds from the build to the deadline.
    """

    chain_id: int
    src: TradedToken
    dest: TradedToken
    side: Side
    amount: int
    slippage_bps: int
    limit_amount: int | None
    type: OrderType
    owner: bytes
    beneficiary: bytes
    partner: str
    life_s: int


class QuotedDelta(Struct, frozen=True):
    """A Delta price: read, and its route as it came, which goes back byte for byte."""

    block: DeltaBlock
    route: Raw


class OrderTerms(Struct, frozen=True, kw_only=True):
    """What may be signed.

    Attributes:
        delta: 20 bytes: the Delta contract, which takes the source.
        src_quoted, dest_quoted: raw units.
        fee_bps: that was quoted; partner: whose it is.
        limit: raw units of the side that is not fixed: the least that is received, or the most that is spent.
    """

    wish: OrderWish
    delta: bytes
    src_quoted: int
    dest_quoted: int
    fee_bps: int
    partner: str
    limit: int

    @property
    def expected(self) -> int:
        """Of the side that is not fixed; surplus is counted from it."""
        if self.wish.limit_amount is not None:
            return self.wish.limit_amount
        return self.dest_quoted if self.wish.side is Side.SELL else self.src_quoted

    @property
    def src_amount_max(self) -> int:
        """The most that is spent: what has to be there, and to be allowed or deposited."""
        return self.wish.amount if self.wish.side is Side.SELL else self.limit

    @property
    def dest_amount_min(self) -> int:
        """The least that is received."""
        return self.limit if self.wish.side is Side.SELL else self.wish.amount


class Signing(Struct, frozen=True):
    """What is settled only when an order is built.

    Attributes:
        deadline: Unix seconds.
        nonce: of the owner's, never used before.
        permit: what the Delta contract is shown; empty for none.
    """

    deadline: int
    nonce: int
    permit: bytes = b""


def terms_of(wish: OrderWish, quoted: DeltaBlock, delta: bytes, fee_bps: int) -> OrderTerms:
    """The terms at a price.

    Args:
        quoted: with amounts that were checked.
    """
    src = int(quoted.route.origin.input.amount)
    dest = int(quoted.route.destination.output.amount)
    return OrderTerms(
        wish=wish,
        delta=delta,
        src_quoted=src,
        dest_quoted=dest,
        fee_bps=fee_bps,
        partner=quoted.partner.name,
        limit=_limit(wish, src, dest),
    )


def build_body(terms: OrderTerms, signing: Signing, route: Raw) -> BuildBody:
    """POST /v2/delta/orders/build for an order of these terms."""
    wish = terms.wish
    return BuildBody(
        route=route,
        owner=to_checksum(wish.owner),
        deadline=signing.deadline,
        side=wish.side,
        beneficiary=None if wish.beneficiary == wish.owner else to_checksum(wish.beneficiary),
        nonce=str(signing.nonce),
        permit=to_hex(signing.permit) if signing.permit else None,
        slippage=wish.slippage_bps,
        limit_amount=None if wish.limit_amount is None else str(wish.limit_amount),
        partner=wish.partner or None,
    )


def order_of(terms: OrderTerms, signing: Signing, partner_and_fee: int) -> DeltaOrder:
    """The order as it has to be.

    Args:
        partner_and_fee: as the venue packed it; checked before.
    """
    wish = terms.wish
    sells = wish.side is Side.SELL
    return DeltaOrder(
        owner=wish.owner,
        beneficiary=wish.beneficiary,
        src_token=wish.src.address,
        dest_token=wish.dest.address,
        src_amount=terms.src_amount_max,
        dest_amount=terms.dest_amount_min,
        expected_amount=terms.expected,
        deadline=signing.deadline,
        kind=KIND_SELL if sells else KIND_BUY,
        nonce=signing.nonce,
        partner_and_fee=partner_and_fee,
        permit=signing.permit,
        metadata=b"",
        bridge=SAME_CHAIN,
    )


def _limit(wish: OrderWish, src: int, dest: int) -> int:
    if wish.limit_amount is not None:
        return wish.limit_amount
    if wish.side is Side.SELL:
        return dest * (limits.BPS_ONE - wish.slippage_bps) // limits.BPS_ONE
    return src * (limits.BPS_ONE + wish.slippage_bps) // limits.BPS_ONE
