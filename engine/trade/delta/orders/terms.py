"""Terms by which orders of any kind are settled: parties, tokens, amounts, and the next part. Pure.

    order + its settled amount -> DeltaPart: the next settlement, with the amounts that the contract enforces
                               -> a smaller DeltaPart of a swap or limit order, pro rata
                               -> fits_until: latest time of the next part that leaves time for all later ones

Destination amounts of an order across chains are the amounts that have to enter its bridge (`entering`),
except the `amount` of a purchase, which is in units of the token that arrives.

The arithmetic is the contract's, unit for unit: a part of a sale rounds its minimum up, a part of a purchase
its maximum down; the last slice of a TWAP takes the remainder.

A sale of a vault's shares (a ProductiveOrder with `useShares`) is counted in shares. The shares' worth in
source tokens moves; here it is the estimate that the owner has signed as `srcAmount`.

Source: contracts/Delta.sol, `settle`, `settleTwap`, `settleTwapBuy`, `settleProductive`, `settleExternal`.
Choice: A part of a partially fillable order is at least a tenth of the rest, rounded up, and leaves nothing,
    or at least that tenth.
Choice: A TWAP is EXPIRED once its remaining slices, one interval apart, no longer fit before the deadline.
Choice: `partiallyFillable` is not signed: the venue keeps to the submission's flag, and the contract enforces
    pro rata limits and counts fills by order hash.
Choice: The first slice of a TWAP is due at once, each further slice one interval after the time on chain
    of the slice before. Missed slices do not pile up; the last one takes the remainder, with the pro rata
    minimum rounded up.
Choice: A slice of a purchase spends at most `floor(maxSrcAmount * slice / total)` and nothing rolls over.
    `orderType` fixes the side: another `side` is refused, and so is `limitAmount` of a TWAPBuyOrder.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from .....codecs.eip712_orders.delta import (
    KIND_BUY,
    AnyDeltaOrder,
    DeltaOrder,
    ExternalOrder,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
)
from .....codecs.eip712_orders.partner_and_fee import PartnerAndFee, unpack_partner_and_fee
from .....codecs.messages.vocabulary import Side
from .....codecs.rounding import div_up, mul_div_down, mul_div_up
from .....codecs.trading_token import NATIVE_TOKEN
from .....crypto.addresses import ZERO_ADDRESS
from ....chain.proceeds import least_before_fee, most_before_fee, of_purchase, of_sale
from .entering import entering, is_crosschain

SettledOrder = AnyDeltaOrder
"""Struct types of orders that the Delta contract settles (choices.md#quotes-and-routes)."""
UnslicedOrder = DeltaOrder | ExternalOrder | ProductiveOrder
"""Struct types of orders that one settlement can close; the other types settle slice by slice."""
ORDER_PART_MIN = 10
"""Divisor: a part of a partially fillable order is at least the open amount divided by this number."""


class DeltaPart(Struct, frozen=True):
    """Amounts of one settlement of an order.

    Attributes:
        amount: raw units of the source token (SELL) or the destination token (BUY), as passed to the
            contract's `settle`; raw units of vault shares if the order sells shares.
        src_amount: raw units that the user gives (SELL), or the most that the user gives (BUY); the worth of
            the shares in the source token if the order sells shares.
        dest_amount: least raw units that the user receives (SELL), or the wanted raw units (BUY).
        expected: expected output (SELL) or cost (BUY), raw units; 0 if the order names none.
        is_last: whether the part closes the order.
    """

    amount: int
    src_amount: int
    dest_amount: int
    expected: int
    is_last: bool


class OrderTerms(Struct, frozen=True, gc=False):
    """Terms of a Delta order that hold for all its settlements: parties, tokens, total amounts, fee.

    Attributes:
        beneficiary: receiver of the destination tokens; the owner if the order names no receiver.
        deadline: last second at which the order may settle, Unix seconds.
        src_total: source raw units that all settlements take together, exactly (SELL) or at most (BUY); an
            approval has to cover them.
        dest_total: destination raw units that all settlements give together: the least (SELL), or the wanted
            amount (BUY).
        fee: partner and fee, as the owner has signed them in `partnerAndFee`.
        held_token: token that the contract takes from the owner: the vault's shares for a ProductiveOrder,
            `src_token` for every other order.
        held_total: raw units of `held_token` that all settlements take together, or at most take.
    """

    owner: bytes
    beneficiary: bytes
    src_token: bytes
    dest_token: bytes
    side: Side
    nonce: int
    deadline: int
    src_total: int
    dest_total: int
    fee: PartnerAndFee
    permit: bytes
    held_token: bytes
    held_total: int


def terms_of(order: SettledOrder) -> OrderTerms:
    """Derive the terms of a signed order that hold for all its settlements.

    Raises:
        InvalidInput: `partnerAndFee` has an undefined bit or too high a fee.
    """
    side = side_of(order)
    src_total, dest_total = _totals(order, partial(entering, order))
    return OrderTerms(
        order.owner,
        _beneficiary(order),
        order.src_token,
        order.dest_token,
        side,
        order.nonce,
        order.deadline,
        src_total,
        dest_total,
        unpack_partner_and_fee(order.partner_and_fee),
        order.permit,
        *held_of(order, src_total),
    )


def is_bridge_only(order: SettledOrder, wrapped_native: bytes) -> bool:
    """Whether an order's source is the token that enters its bridge, so that nothing is traded.

    Args:
        wrapped_native: address of the chain's wrapped native token, 20 bytes; empty for none.
    """
    src = wrapped_native if order.src_token == NATIVE_TOKEN else order.src_token
    return is_crosschain(order) and src == order.dest_token


def bridge_only_promise(terms: OrderTerms, part: DeltaPart, gas: int = 0) -> int | None:
    """Compute what a settlement of a bridge-only order can promise; None if the limit is out of reach.

    Args:
        part: the settled part.
        gas: raw units that pay for the settlement's gas, at most `bridge_only_room`.

    Returns:
        Raw units that enter the bridge, after gas, fee and shares of surplus (SELL); or raw units that the
        owner spends at most (BUY).
    """
    if terms.side is Side.SELL:
        received = part.src_amount - gas
        sent = received - of_sale(received, part.expected, part.dest_amount, terms.fee).total
        return sent if sent >= part.dest_amount else None
    needed = part.dest_amount + gas
    paid = of_purchase(needed, part.expected, part.src_amount, terms.fee)
    if paid is None:
        return None
    return min(needed + paid.total + 1, part.src_amount)  # rounding a share may take one unit more


def bridge_only_room(terms: OrderTerms, part: DeltaPart) -> int:
    """Compute what the limit of a bridge-only order leaves for gas, raw units of its token; 0 for nothing."""
    if terms.side is Side.SELL:
        return max(part.src_amount - least_before_fee(part.dest_amount, terms.fee.fee_bps), 0)
    return max(most_before_fee(part.src_amount, terms.fee.fee_bps) - part.dest_amount, 0)


def held_of(order: SettledOrder, src_total: int) -> tuple[bytes, int]:
    """Return the token that the contract takes from an order's owner (20 bytes), and the total amount.

    Args:
        src_total: raw units of the source token that all settlements take together.
    """
    if isinstance(order, ProductiveOrder):
        return order.strategy, order.shares
    return order.src_token, src_total


def _beneficiary(order: SettledOrder) -> bytes:
    if isinstance(order, ExternalOrder) or order.beneficiary == ZERO_ADDRESS:
        return order.owner
    return order.beneficiary


def side_of(order: SettledOrder) -> Side:
    """Return the side of an order: SELL if it fixes the source amount, BUY if the destination amount."""
    match order:
        case DeltaOrder(kind=kind) | ExternalOrder(kind=kind):
            return Side.BUY if kind == KIND_BUY else Side.SELL
        case TwapOrder() | ProductiveOrder():
            return Side.SELL
        case TwapBuyOrder():
            return Side.BUY


def next_part(order: SettledOrder, filled: int) -> DeltaPart | None:
    """Compute the amounts of an order's next settlement; None if the order is fully settled.

    Args:
        filled: settled raw units of the source token (SELL) or the destination token (BUY); for a TWAP, the
            number of settled slices; for an order that sells vault shares, the number of settled shares.
    """
    match order:
        case DeltaOrder() | ExternalOrder() | ProductiveOrder():
            return _rest(order, filled)
        case TwapOrder():
            return _sale_slice(order, filled)
        case TwapBuyOrder():
            return _purchase_slice(order, filled)


def part_of(order: UnslicedOrder, left: int, amount: int) -> DeltaPart:
    """Compute the pro rata amounts of a settlement that fills a part of a swap or limit order.

    Args:
        left: unfilled raw units of the source token (SELL) or the destination token (BUY).
        amount: raw units of the same token in the part, from 1 to `left`.
    """
    whole, is_last = whole_of(order), amount == left
    if side_of(order) is Side.BUY:
        most = mul_div_down(order.src_amount, amount, whole)
        cost = mul_div_down(order.expected_amount, amount, whole)
        return DeltaPart(amount, most, entering(order, amount), cost, is_last)
    given = mul_div_down(order.src_amount, amount, whole) if sells_shares(order) else amount
    least = entering(order, mul_div_up(order.dest_amount, amount, whole))
    expected = entering(order, mul_div_up(order.expected_amount, amount, whole))
    return DeltaPart(amount, given, least, expected, is_last)


def sells_shares(order: SettledOrder) -> bool:
    """Whether an order sells a fixed number of a vault's shares, whose worth in source tokens moves."""
    return isinstance(order, ProductiveOrder) and order.use_shares


def part_min(left: int) -> int:
    """Return the least raw units that one settlement may fill of a partially fillable order.

    Args:
        left: unfilled raw units of the source token (SELL) or the destination token (BUY).
    """
    return div_up(left, ORDER_PART_MIN)


def is_part(amount: int, left: int) -> bool:
    """Whether one settlement may fill an amount of a partially fillable order.

    True for the whole unfilled amount, and for a part if the part and the amount that remains after it are
    each at least `part_min`.

    Args:
        amount: raw units to fill, of the same token as `left`.
        left: unfilled raw units of the source token (SELL) or the destination token (BUY).
    """
    least = part_min(left)
    return amount == left or least <= amount <= left - least


def slice_due(order: SettledOrder, last_fill_s: int) -> int:
    """Return the chain time from which a TWAP's next slice may settle, Unix seconds.

    The result is 0 if the slice may settle at once, and for an order that is no TWAP.

    Args:
        last_fill_s: time of the last fill, Unix seconds; 0 before the first.
    """
    match order:
        case TwapOrder(interval=interval) | TwapBuyOrder(interval=interval):
            return last_fill_s + interval if last_fill_s else 0
        case _:
            return 0


def fits_until(order: SettledOrder, filled: int, last_fill_s: int) -> int:
    """Compute the last second at which an order's next part may settle and leave time for all later parts.

    The result is the deadline; for a TWAP, the deadline less one interval for each slice after the next
    slice, or 0 if the next slice is due only after that time.

    Args:
        filled: settled raw units of the source token (SELL) or the destination token (BUY); of a TWAP, the
            number of settled slices.
        last_fill_s: time of the last fill, Unix seconds; 0 before the first.

    Returns:
        Unix seconds.

    Source: spec 1.16.39 to 1.16.42.
    """
    if isinstance(order, UnslicedOrder):
        return order.deadline
    until_s = order.deadline - order.interval * max(order.num_slices - filled - 1, 0)
    is_due_too_late = last_fill_s > 0 and last_fill_s + order.interval > until_s
    return 0 if is_due_too_late else until_s


def output_total(order: SettledOrder) -> int:
    """Return the raw units that an order's beneficiary gets in all: the least (SELL), or the wanted (BUY).

    For an order across chains, the amount is in units of the token that arrives there.
    """
    return _totals(order, int)[1]


def _totals(order: SettledOrder, paid_for: Callable[[int], int]) -> tuple[int, int]:
    """Return the source and destination raw units of all settlements together.

    Args:
        paid_for: returns the amount that a settlement pays out so that its beneficiary gets a given amount.
    """
    match order:
        case DeltaOrder() | ExternalOrder() | ProductiveOrder():
            return order.src_amount, paid_for(order.dest_amount)
        case TwapOrder():
            slice_amount = order.total_src_amount // order.num_slices if order.num_slices else 0
            last = order.total_src_amount - slice_amount * (order.num_slices - 1)
            least = paid_for(order.dest_amount_per_slice) * (order.num_slices - 1)
            if slice_amount:
                least += paid_for(mul_div_up(order.dest_amount_per_slice, last, slice_amount))
            return order.total_src_amount, least
        case TwapBuyOrder():
            slice_amount = order.total_dest_amount // order.num_slices if order.num_slices else 0
            last = order.total_dest_amount - slice_amount * (order.num_slices - 1)
            return order.max_src_amount, paid_for(slice_amount) * (order.num_slices - 1) + paid_for(last)


def _rest(order: UnslicedOrder, filled: int) -> DeltaPart | None:
    left = whole_of(order) - filled
    return part_of(order, left, left) if left > 0 else None


def whole_of(order: SettledOrder) -> int:
    """Return an order's whole size: raw units to sell (SELL) or to buy (BUY).

    The size of a TWAP is its number of slices, the size of a sale of shares is the number of shares.
    """
    match order:
        case TwapOrder() | TwapBuyOrder():
            return order.num_slices
        case ProductiveOrder():
            return order.shares if order.use_shares else order.src_amount
        case DeltaOrder() | ExternalOrder():
            return order.dest_amount if order.kind == KIND_BUY else order.src_amount


def is_scheduled(order: SettledOrder) -> bool:
    """Whether an order settles slice by slice, i.e. is a TWAP."""
    return not isinstance(order, UnslicedOrder)


def _sale_slice(order: TwapOrder, done: int) -> DeltaPart | None:
    if done >= order.num_slices:
        return None
    slice_amount = order.total_src_amount // order.num_slices
    is_last = done + 1 == order.num_slices
    amount = order.total_src_amount - slice_amount * done if is_last else slice_amount
    least = order.dest_amount_per_slice
    if is_last:
        least = mul_div_up(order.dest_amount_per_slice, amount, slice_amount)
    return DeltaPart(amount, amount, entering(order, least), 0, is_last)


def _purchase_slice(order: TwapBuyOrder, done: int) -> DeltaPart | None:
    if done >= order.num_slices:
        return None
    slice_amount = order.total_dest_amount // order.num_slices
    is_last = done + 1 == order.num_slices
    amount = order.total_dest_amount - slice_amount * done if is_last else slice_amount
    most = mul_div_down(order.max_src_amount, amount, order.total_dest_amount)
    return DeltaPart(amount, most, entering(order, amount), 0, is_last)
