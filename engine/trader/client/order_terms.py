"""A trader's Delta order: the wish, the requests to the venue, and the order that is signed. Pure.

    OrderWish --GET /v2/quote, DELTA--> a price --terms_of--> SignableTerms --POST .../build--> typed data

The terms and the trader's signing inputs determine every member of the order, except `partnerAndFee` and the
number of a vault's shares, which have checks of their own. The built order is therefore compared with the
expected order member by member. A TWAP is priced for one slice and bounded as a whole (see `schedule`). An
order across chains buys its bridge's token on the origin; its destination amounts are raw units of the token
that arrives on the other chain.

Source: spec 1.1.12 to 1.1.19, 1.16; interop.md 2 (how slippage rounds).
Choice: An order is signed at the agreed price however old it is: the bound protects the trader, and the venue
    alone judges the route's age.
Choice: Surplus is the user's: `cambist swap` and `order` give no partner a share.
Choice: With `--strategy` the order sells shares of the vault, as many as give the amount now by the trader's
    own node. The order that the venue builds may have at most this number plus the slippage.
"""

from typing import Any

from msgspec import Raw, Struct, structs

from ....codecs.bridges.bridge_terms import BridgeTerms
from ....codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    ORDER,
    PRODUCTIVE_ORDER,
    SAME_CHAIN,
    TWAP_BUY_ORDER,
    TWAP_ORDER,
    DeltaBridge,
    DeltaOrder,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
)
from ....codecs.eip712_orders.typed_struct import TypedStruct
from ....codecs.messages.delta_messages import BuildBody, DeltaBlock
from ....codecs.messages.vocabulary import BuildOrderType, OnChainOrderType, OrderType
from ....codecs.rounding import mul_div_up
from ....config.limits import BPS_ONE
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from .schedule import Schedule
from .terms import BoundedTrade, TradedToken, TradeWish, slipped

SignableOrder = DeltaOrder | TwapOrder | TwapBuyOrder | ProductiveOrder
"""A Delta order in one of the four forms that a trader can sign."""


class BridgeWish(Struct, frozen=True, kw_only=True):
    """A trader's wish that a bridge delivers the bought tokens on another chain.

    Attributes:
        chain_id: the destination chain.
        fee_bps_max: highest fee of the bridge, basis points of the amount that enters the bridge.
        via: the bridge's token on the origin; None accepts the venue's choice.
        bridges: names of the bridges that the venue may choose among; empty for any.
        is_read: whether the decimals of the bought token come from its contract, not from the venue.
        wrapped: wrapped native token of the destination, which the bridge unwraps; None unless the native
            token is bought.
    """

    chain_id: int
    fee_bps_max: int
    via: TradedToken | None = None
    bridges: tuple[str, ...] = ()
    is_read: bool = True
    wrapped: TradedToken | None = None


class OrderWish(TradeWish, frozen=True, kw_only=True):
    """A trader's wish for a Delta order.

    Attributes:
        dest: the bought token, on the destination chain.
        amount: raw units of `src` for SELL, of `dest` for BUY; for a TWAP the total, at least one unit per
            slice.
        limit_amount: raw units of the other token, for the whole order: the limit of a LIMIT order, or the
            bound of a TWAP; None to derive the bound from slippage.
        owner: 20 bytes, the account that signs the order and pays `src`.
        beneficiary: 20 bytes, the receiver of `dest`.
        life_s: seconds from the time at which the order is built to its deadline.
        schedule: division of a TWAP into slices; None for an order without slices.
        is_partial: whether the venue may settle the order in parts; the signature does not cover this flag,
            so the trader trusts the venue to respect it.
        vault: vault from whose shares the order sells `src`; None for an order that sells `src` itself.
        bridging: the wish for a bridge to another chain; None for an order on one chain.
    """

    limit_amount: int | None
    type: OrderType
    owner: bytes
    beneficiary: bytes
    life_s: int
    schedule: Schedule | None = None
    is_partial: bool = False
    vault: TradedToken | None = None
    bridging: BridgeWish | None = None

    @property
    def dest_chain_id(self) -> int:
        """The chain on which the order pays `dest`."""
        return self.chain_id if self.bridging is None else self.bridging.chain_id

    @property
    def priced_amount(self) -> int:
        """Raw units for which a price is requested: the order's whole amount, or for a TWAP the amount of one
        slice."""
        return self.amount if self.schedule is None else self.schedule.slice_of(self.amount)

    @property
    def build_type(self) -> BuildOrderType:
        """The order type that the request to build the order names."""
        if self.vault is not None:
            return BuildOrderType.PRODUCTIVE_ORDER
        if self.schedule is None:
            return BuildOrderType.ORDER
        return BuildOrderType.TWAP_ORDER if self.is_sale else BuildOrderType.TWAP_BUY_ORDER

    @property
    def kind(self) -> OnChainOrderType:
        """The on-chain order type that the venue's record of this order must have."""
        return OnChainOrderType.FILLABLE_ORDER if self.is_partial else OnChainOrderType(self.build_type.value)

    @property
    def struct_type(self) -> TypedStruct[Any]:
        """The EIP-712 struct type that the trader signs for this order."""
        return _STRUCTS[self.build_type]


class QuotedDelta(Struct, frozen=True):
    """A venue's price of a Delta order: the decoded answer, and its undecoded route, which the build request
    returns byte for byte."""

    block: DeltaBlock
    route: Raw


class CheckedBridge(Struct, frozen=True, kw_only=True):
    """The bridge of a venue's price that passed the trader's checks.

    Attributes:
        name: the venue's name of the bridge.
        token: token on the origin that enters the bridge and that a refund pays.
        signed: member `bridge` of the order; terms: its decoded terms.
        estimated_ms: time of a transfer by the venue's estimate, milliseconds.
        fee: raw units of `token` that the bridge keeps of the priced amount.
        contract: Across's pool or CCTP's messenger on the origin, 20 bytes; empty until it is read.
    """

    name: str
    token: TradedToken
    signed: DeltaBridge
    terms: BridgeTerms
    estimated_ms: int
    fee: int
    contract: bytes = b""


class SignableTerms(BoundedTrade, frozen=True, kw_only=True):
    """Terms within which a trader agrees to sign a Delta order.

    Attributes:
        delta: the Delta contract, which takes the source token, 20 bytes.
        src_quoted, dest_quoted: amounts of the venue's price, raw units; for a TWAP those of one slice.
        fee_bps: the partner's quoted fee, basis points; partner: the name of the partner, who receives it.
        slice_limit: the bound of each slice of a TWAP but the last, raw units; 0 for other orders.
        bridge: the bridge of an order across chains; None for an order on one chain.
        shares: shares of the wish's vault that give the sold amount now; 0 without a vault.
    """

    wish: OrderWish
    delta: bytes
    src_quoted: int
    dest_quoted: int
    fee_bps: int
    partner: str
    slice_limit: int = 0
    bridge: CheckedBridge | None = None
    shares: int = 0

    @property
    def shares_max(self) -> int:
        """Most shares of a vault that the order may sell; 0 without a vault."""
        return mul_div_up(self.shares, BPS_ONE + self.wish.slippage_bps, BPS_ONE)

    @property
    def held_token(self) -> TradedToken:
        """Token that the contract takes from the owner: the shares of a vault, or the sold token."""
        return self.wish.src if self.wish.vault is None else self.wish.vault

    @property
    def held_max(self) -> int:
        """Raw units of `held_token` that the contract takes at most."""
        return self.src_amount_max if self.wish.vault is None else self.shares_max

    @property
    def expected(self) -> int:
        """Expected raw units that the order receives (SELL) or spends (BUY); a better result is surplus."""
        if self.wish.limit_amount is not None:
            return self.wish.limit_amount
        return self.dest_quoted if self.wish.is_sale else self.src_quoted

    @property
    def src_amount_first(self) -> int:
        """Raw units of `held_token` that the owner must hold when the order is placed: the most that the
        first settlement takes, or `shares` for an order that sells from a vault."""
        if self.wish.schedule is None:
            return self.src_amount_max if self.wish.vault is None else self.shares
        return self.wish.priced_amount if self.wish.is_sale else self.slice_limit


class SigningInputs(Struct, frozen=True):
    """Members of a Delta order that the trader chooses when the order is built, after the terms were agreed.

    Attributes:
        deadline: Unix seconds.
        nonce: an unused nonce of the owner.
        permit: the permit for the Delta contract; empty for none.
    """

    deadline: int
    nonce: int
    permit: bytes = b""


def terms_of(
    wish: OrderWish,
    quoted: DeltaBlock,
    delta: bytes,
    fee_bps: int,
    bridge: CheckedBridge | None = None,
    shares: int = 0,
) -> SignableTerms:
    """The terms of a wished order at a venue's price.

    Args:
        quoted: the venue's price, which `check_price` accepted.
        delta: the Delta contract, 20 bytes.
        fee_bps: the partner's quoted fee, basis points.
        bridge: the checked bridge of a price across chains.
        shares: shares of the wish's vault that give the sold amount now; 0 without a vault.
    """
    src = int(quoted.route.origin.input.amount)
    dest = int(quoted.route.destination.output.amount)
    limit, slice_limit = _limits(wish, src, dest)
    return SignableTerms(
        wish=wish,
        delta=delta,
        src_quoted=src,
        dest_quoted=dest,
        fee_bps=fee_bps,
        partner=quoted.partner.name,
        limit=limit,
        slice_limit=slice_limit,
        bridge=bridge,
        shares=shares,
    )


def build_body(terms: SignableTerms, signing: SigningInputs, route: Raw) -> BuildBody:
    """The body of POST /v2/delta/orders/build, which asks the venue to build an order of these terms."""
    wish, schedule = terms.wish, terms.wish.schedule
    sells = wish.is_sale
    body = BuildBody(
        route=route,
        owner=to_checksum(wish.owner),
        deadline=signing.deadline,
        side=wish.side,
        beneficiary=None if wish.beneficiary == wish.owner else to_checksum(wish.beneficiary),
        nonce=str(signing.nonce),
        permit=to_hex(signing.permit) if signing.permit else None,
        slippage=wish.slippage_bps,
        limit_amount=None if wish.limit_amount is None else str(wish.limit_amount),
        partially_fillable=wish.is_partial,
        partner=wish.partner or None,
    )
    if wish.vault is not None:
        return structs.replace(body, order_type=wish.build_type, strategy=wish.vault.text)
    if schedule is None:
        return body
    # The venue reads `limitAmount` of a TWAP sale per slice. It refuses the member for a TWAP purchase, whose
    # bound of all slices is `maxSrcAmount` (choices.md#delta-orders).
    return structs.replace(
        body,
        limit_amount=str(terms.slice_limit) if sells else None,
        order_type=wish.build_type,
        interval=schedule.interval_s,
        num_slices=schedule.slices,
        total_src_amount=str(wish.amount) if sells else None,
        total_dest_amount=None if sells else str(wish.amount),
        max_src_amount=None if sells else str(terms.limit),
    )


def order_of(
    terms: SignableTerms, signing: SigningInputs, partner_and_fee: int, shares: int = 0
) -> SignableOrder:
    """The order that the trader expects the venue to build for these terms.

    Args:
        partner_and_fee: member of the venue's order that packs the partner and the fee; `check_build` checks
            it.
        shares: shares of a vault that the venue's order sells; `check_build` checks them.
    """
    wish, schedule, bridge = terms.wish, terms.wish.schedule, terms.bridge
    sells = wish.is_sale
    shared: dict[str, Any] = {
        "owner": wish.owner,
        "beneficiary": wish.beneficiary,
        "src_token": wish.src.address,
        "dest_token": wish.dest.address if bridge is None else bridge.token.address,
        "nonce": signing.nonce,
        "partner_and_fee": partner_and_fee,
        "deadline": signing.deadline,
        "permit": signing.permit,
        "metadata": b"",
        "bridge": SAME_CHAIN if bridge is None else bridge.signed,
    }
    if schedule is None:
        shared |= {"src_amount": terms.src_amount_max, "dest_amount": terms.dest_amount_min}
        shared |= {"expected_amount": terms.expected}
        if wish.vault is not None:
            return ProductiveOrder(**shared, strategy=wish.vault.address, shares=shares, use_shares=True)
        return DeltaOrder(**shared, kind=KIND_SELL if sells else KIND_BUY)
    shared |= {"interval": schedule.interval_s, "num_slices": schedule.slices}
    if sells:
        return TwapOrder(**shared, dest_amount_per_slice=terms.slice_limit, total_src_amount=wish.amount)
    return TwapBuyOrder(**shared, total_dest_amount=wish.amount, max_src_amount=terms.limit)


def _limits(wish: OrderWish, src: int, dest: int) -> tuple[int, int]:
    """Bounds of an order as (bound of the whole order, bound of each slice of a TWAP or 0), raw units: from
    the wished limit, or from the price and the slippage.

    Args:
        src, dest: amounts of the venue's price, raw units.
    """
    worst = slipped(wish.side, src, dest, wish.slippage_bps)
    schedule = wish.schedule
    if schedule is None:
        return worst if wish.limit_amount is None else wish.limit_amount, 0
    if wish.is_sale:
        if wish.limit_amount is not None:
            worst = schedule.least_per_slice(wish.amount, wish.limit_amount)
        return schedule.least_of(wish.amount, worst), worst
    most = schedule.most_of(wish.amount, worst) if wish.limit_amount is None else wish.limit_amount
    return most, schedule.most_per_slice(wish.amount, most)


_STRUCTS: dict[BuildOrderType, TypedStruct[Any]] = {
    BuildOrderType.ORDER: ORDER,
    BuildOrderType.TWAP_ORDER: TWAP_ORDER,
    BuildOrderType.TWAP_BUY_ORDER: TWAP_BUY_ORDER,
    BuildOrderType.PRODUCTIVE_ORDER: PRODUCTIVE_ORDER,
}
