"""What a trader wants of a Market swap, what the venue is asked for it, and the bound that is signed. Pure.

    Wish --GET /prices--> a route --limit_of--> Terms --POST /transactions--> an envelope (see `safety`)

The bound is fixed when the trader agrees to a price and stays: however often the route is priced again
meanwhile, what is signed gives at least that, or costs at most that.

Source: spec 1.14; interop.md 2 (how slippage rounds); choices.md#market-swaps.
"""

from decimal import Decimal

from msgspec import Raw, Struct

from ...codecs.amounts import format_units
from ...codecs.messages.market_messages import PriceRoute, TransactionBody
from ...codecs.messages.vocabulary import Side
from ...codecs.trading_token import NATIVE_TOKEN
from ...config import limits
from ...crypto.addresses import to_checksum
from ...crypto.hexadecimal import to_hex

_PRICE_DIGITS_MAX = 90  # a price of less is none


class TradedToken(Struct, frozen=True):
    """One token of a swap.

    Attributes:
        address: 20 bytes; the placeholder's for the native token.
    """

    address: bytes
    symbol: str
    decimals: int

    @property
    def is_native(self) -> bool:
        """Whether it is the chain's own."""
        return self.address == NATIVE_TOKEN

    @property
    def text(self) -> str:
        """The address as requests carry it."""
        return limits.NATIVE_PLACEHOLDER if self.is_native else to_checksum(self.address)


def amount_text(amount: int, token: TradedToken) -> str:
    """In whole tokens, with the symbol."""
    return f"{format_units(amount, token.decimals)} {token.symbol}"


def price_text(src: TradedToken, dest: TradedToken, src_amount: int, dest_amount: int) -> str:
    """Of one source token, in destination tokens, rounded down: to eight digits after the point, or to eight
    significant ones of a price below that."""
    ones = src_amount * 10**dest.decimals
    whole = dest_amount * 10**src.decimals
    digits = 8
    while digits < _PRICE_DIGITS_MAX and 0 < whole * 10**digits < ones * 10**7:
        digits += 1
    scaled = whole * 10**digits // ones
    return f"1 {src.symbol} = {format_units(scaled, digits)} {dest.symbol}"


class Wish(Struct, frozen=True, kw_only=True):
    """A swap as a trader wants it.

    Attributes:
        amount: raw units of `src` for SELL, of `dest` for BUY.
        slippage_bps: how much worse than quoted the other side may become.
        user: 20 bytes, who signs and pays; receiver: who gets the destination.
        partner: its key; empty for none.
        max_impact: percent; a route above it is no offer. None: whoever trades sees whether the venue's own
            ceiling is reached.
    """

    chain_id: int
    src: TradedToken
    dest: TradedToken
    side: Side
    amount: int
    slippage_bps: int
    user: bytes
    receiver: bytes
    partner: str = ""
    max_impact: Decimal | None = None


class Terms(Struct, frozen=True, kw_only=True):
    """What may be signed.

    Attributes:
        limit: raw units of the side that is not fixed: the least that is received, or the most that is spent.
        fee_bps: of the partner, as it was quoted.
        router: 20 bytes; the one contract that is called.
        deadline: Unix seconds.
        permit: what the Router is shown; empty for none.
    """

    wish: Wish
    limit: int
    fee_bps: int
    router: bytes
    deadline: int
    permit: bytes = b""

    @property
    def src_amount_max(self) -> int:
        """The most that is spent: what has to be there, and to be allowed to the Router."""
        return self.wish.amount if self.wish.side is Side.SELL else self.limit

    @property
    def dest_amount_min(self) -> int:
        """The least that is received."""
        return self.limit if self.wish.side is Side.SELL else self.wish.amount


def limit_of(route: PriceRoute, side: Side, slippage_bps: int) -> int:
    """The bound that follows from a quote: SELL of the destination, BUY of the source; both rounded down."""
    if side is Side.SELL:
        return int(route.dest_amount) * (limits.BPS_ONE - slippage_bps) // limits.BPS_ONE
    return int(route.src_amount) * (limits.BPS_ONE + slippage_bps) // limits.BPS_ONE


def quoted_of(route: PriceRoute, side: Side) -> int:
    """What was quoted of the side that is not fixed."""
    return int(route.dest_amount if side is Side.SELL else route.src_amount)


def transaction_body(terms: Terms, route: Raw) -> TransactionBody:
    """POST /transactions for a route of these terms."""
    wish = terms.wish
    return TransactionBody(
        price_route=route,
        src_token=wish.src.text,
        dest_token=wish.dest.text,
        src_decimals=wish.src.decimals,
        dest_decimals=wish.dest.decimals,
        src_amount=str(terms.src_amount_max),
        dest_amount=str(terms.dest_amount_min),
        user_address=to_checksum(wish.user),
        receiver=None if wish.receiver == wish.user else to_checksum(wish.receiver),
        partner=wish.partner or None,
        permit=to_hex(terms.permit) if terms.permit else None,
        deadline=terms.deadline,
        is_surplus_to_user=True,
    )


def impact_percent(src_text: str, dest_text: str) -> Decimal | None:
    """How much of the value is lost, in percent; negative for a gain; None where a price is not known.

    Args:
        src_text, dest_text: US dollars of either side, as a venue tells them; "0" where it has no price.
    """
    src_usd, dest_usd = _usd(src_text), _usd(dest_text)
    if not src_usd or not dest_usd:
        return None
    return (100 * (src_usd - dest_usd) / src_usd).quantize(Decimal("0.01"))


def _usd(text: str) -> Decimal | None:
    try:
        value = Decimal(text)
    except ArithmeticError:
        return None
    return value if value.is_finite() and value >= 0 else None
