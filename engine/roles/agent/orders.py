"""Parses the orders of an auction round for an agent: addresses, amounts and fees. Pure.

The contract's arithmetic (`chain.proceeds`) gives the user's share of a trade; no bid promises more.

Source: codecs.agent_messages; contracts/Delta.sol, `finish`.
"""

from msgspec import Struct
from msgspec.structs import replace

from ....codecs.amounts import parse_amount
from ....codecs.eip712_orders.partner_and_fee import PartnerAndFee, unpack_partner_and_fee
from ....codecs.messages.agent_messages import AuctionOrder, SolveRequest
from ....codecs.messages.vocabulary import OnChainOrderType, Side
from ....codecs.rounding import mul_div_down, mul_div_up
from ....codecs.trading_token import NATIVE_TOKEN
from ....config import limits
from ....config.errors import InvalidInput
from ....crypto.addresses import parse_address
from ...chain.proceeds import least_before_fee, most_before_fee, of_purchase, of_sale

CROSSABLE = frozenset({OnChainOrderType.ORDER, OnChainOrderType.FILLABLE_ORDER})
"""Order types that the Delta contract's `settleCrossed` accepts."""
SOLVABLE = CROSSABLE | {
    OnChainOrderType.TWAP_ORDER,
    OnChainOrderType.TWAP_BUY_ORDER,
    OnChainOrderType.PRODUCTIVE_ORDER,
}
"""Order types that the Delta contract settles by steps of an executor."""


class OpenOrder(Struct, frozen=True):
    """An order of an auction round that an agent may fill: the whole order, or the next slice of a TWAP.

    Attributes:
        order_hash: hash in hexadecimal, as written in the venue's request.
        owner: address of the account that signed the order, 20 bytes.
        src_token, dest_token: addresses of 20 bytes; the wrapped token in place of the native token.
        src_amount: raw units: the amount to give (SELL), or the most to give (BUY).
        dest_amount: raw units: the least that the user gets (SELL), or the wanted amount (BUY).
        expected: expected proceeds (SELL) or cost (BUY), raw units; a better result counts as surplus. 0 for
            none.
        deadline: Unix seconds after which the order cannot be filled.
        part_min: least part of `fixed_amount` that a bid may fill, raw units. A bid on less than the whole
            must also leave at least this amount unfilled. 0 if only the whole order may be filled.
        whole: (source amount, destination amount, expected amount) that the owner signed, raw units; zeros
            unless the order may be filled in parts.
        is_crosschain: whether a bridge carries the bought tokens to another chain.
    """

    order_hash: str
    order_type: OnChainOrderType
    side: Side
    owner: bytes
    src_token: bytes
    dest_token: bytes
    src_amount: int
    dest_amount: int
    expected: int
    fee: PartnerAndFee
    deadline: int
    part_min: int = 0
    whole: tuple[int, int, int] = (0, 0, 0)
    is_crosschain: bool = False

    @property
    def fixed_amount(self) -> int:
        """Amount that the order fixes, raw units: of the source token (SELL) or destination token (BUY)."""
        return self.src_amount if self.side is Side.SELL else self.dest_amount

    @property
    def limit(self) -> int:
        """Least proceeds (SELL) or greatest cost (BUY) that the order allows, raw units before fees."""
        if self.side is Side.SELL:
            return least_before_fee(self.dest_amount, self.fee.fee_bps)
        return most_before_fee(self.src_amount, self.fee.fee_bps)

    def part(self, amount: int) -> "OpenOrder":
        """Return the order reduced to a part of its fixed amount.

        The method scales and rounds the other amounts as the Delta contract does.

        Args:
            amount: the part of `fixed_amount`, raw units: at least `part_min`, and at least `part_min` less
                than `fixed_amount`; or all of it, for which the method returns the order itself.

        Raises:
            ValueError: the order may not be filled by this amount.
        """
        if amount == self.fixed_amount:
            return self
        if not self.part_min or not self.part_min <= amount <= self.fixed_amount - self.part_min:
            raise ValueError(f"{amount} of {self.fixed_amount} is no part that may be filled")
        src, dest, expected = self.whole
        if self.side is Side.SELL:
            amounts = amount, mul_div_up(dest, amount, src), mul_div_up(expected, amount, src)
        else:
            amounts = mul_div_down(src, amount, dest), amount, mul_div_down(expected, amount, dest)
        return replace(self, src_amount=amounts[0], dest_amount=amounts[1], expected=amounts[2])

    def users_of_sale(self, received: int) -> int | None:
        """Return the proceeds of a sale after fees, raw units; None if below the user's minimum.

        Args:
            received: proceeds of the trade before fees, raw units.
        """
        users = received - of_sale(received, self.expected, self.dest_amount, self.fee).total
        return users if users >= self.dest_amount else None

    def users_of_purchase(self, spent: int) -> int | None:
        """Return the cost of a purchase with fees, raw units; None if above the user's maximum.

        Args:
            spent: cost of the trade before fees, raw units.
        """
        cut = of_purchase(spent, self.expected, self.src_amount, self.fee)
        return None if cut is None else spent + cut.total

    def promised(self, src_amount: int, dest_amount: int, margin_bps: int) -> int | None:
        """Return the amount to promise the user: proceeds of a sale or cost of a purchase, raw units.

        The result is None if the trade breaks the order's limit.

        Args:
            src_amount, dest_amount: input and output of the trade, raw units before fees.
            margin_bps: the agent's margin, basis points: lowers the promised proceeds or raises the promised
                cost, but not beyond the order's limit.
        """
        if self.side is Side.SELL:
            users = self.users_of_sale(dest_amount)
            if users is None:
                return None
            return max(mul_div_down(users, limits.BPS_ONE - margin_bps, limits.BPS_ONE), self.dest_amount)
        users = self.users_of_purchase(src_amount)
        if users is None or dest_amount < self.dest_amount:
            return None
        return min(mul_div_up(users, limits.BPS_ONE + margin_bps, limits.BPS_ONE), self.src_amount)


def open_orders(request: SolveRequest) -> tuple[OpenOrder, ...]:
    """Parse the orders of a venue's solve request, in the sequence of the request.

    Raises:
        InvalidInput: an order has a malformed member, or the orders are too many; the error names the field.
    """
    if len(request.orders) > limits.AGENT_ORDERS_MAX:
        raise InvalidInput(
            field="orders", expected=f"at most {limits.AGENT_ORDERS_MAX}", got=len(request.orders)
        )
    wrapped_native = parse_address(request.wrapped_native, "wrappedNative")
    return tuple(
        [_open_order(order, f"orders[{at}]", wrapped_native) for at, order in enumerate(request.orders)]
    )


def _open_order(order: AuctionOrder, field: str, wrapped_native: bytes) -> OpenOrder:
    packed = parse_amount(order.partner_and_fee, f"{field}.partnerAndFee")
    return OpenOrder(
        order.order_hash,
        order.order_type,
        order.side,
        parse_address(order.owner, f"{field}.owner"),
        _traded(parse_address(order.src_token, f"{field}.srcToken"), wrapped_native),
        _traded(parse_address(order.dest_token, f"{field}.destToken"), wrapped_native),
        parse_amount(order.src_amount, f"{field}.srcAmount"),
        parse_amount(order.dest_amount, f"{field}.destAmount"),
        parse_amount(order.expected_amount, f"{field}.expectedAmount"),
        unpack_partner_and_fee(packed, f"{field}.partnerAndFee"),
        order.deadline,
        *_parts(order, field),
        is_crosschain=order.destination_chain_id != 0,
    )


def _parts(order: AuctionOrder, field: str) -> tuple[int, tuple[int, int, int]]:
    """Parse `part_min` and `whole` of an `OpenOrder`; zeros for an order that may only be filled whole."""
    whole = order.whole
    if not order.part_min or whole is None:
        return 0, (0, 0, 0)
    amounts = (
        parse_amount(whole.src_amount, f"{field}.whole.srcAmount"),
        parse_amount(whole.dest_amount, f"{field}.whole.destAmount"),
        parse_amount(whole.expected_amount, f"{field}.whole.expectedAmount"),
    )
    if not amounts[0 if order.side is Side.SELL else 1]:
        raise InvalidInput(field=f"{field}.whole", expected="a fixed amount above 0", got=0)
    return parse_amount(order.part_min, f"{field}.partMin"), amounts


def _traded(token: bytes, wrapped_native: bytes) -> bytes:
    return wrapped_native if token == NATIVE_TOKEN else token
