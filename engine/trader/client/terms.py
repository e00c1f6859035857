"""A trader's Market swap: the wish, the request to the venue, and the signed bound. Pure.

    Wish --GET /prices--> a route --limit_of--> Terms --POST /transactions--> an envelope (see `safety`)

The bound is fixed when the trader agrees to a price: even if the route is priced again before the signature,
the signed swap gives at least the bound, or costs at most the bound.

Source: spec 1.14; interop.md 2 (how slippage rounds); choices.md#market-swaps.
"""

from decimal import Decimal

from msgspec import Raw, Struct

from ....codecs.amounts import format_units
from ....codecs.eip712_orders.swap_consent import SwapConsent
from ....codecs.messages.market_messages import ConsentBody, PriceRoute, TransactionBody
from ....codecs.messages.vocabulary import Side
from ....codecs.trading_token import NATIVE_TOKEN
from ....config import limits
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex

_PRICE_DIGITS_MAX = 90  # decimal places of a shown price, at most


class TradedToken(Struct, frozen=True):
    """A token that a trade sells or buys, with its symbol and decimals.

    Attributes:
        address: 20 bytes; NATIVE_TOKEN for the native token.
    """

    address: bytes
    symbol: str
    decimals: int

    @property
    def is_native(self) -> bool:
        """Whether the token is the chain's native token."""
        return self.address == NATIVE_TOKEN

    @property
    def text(self) -> str:
        """The token's address as requests to a venue write it."""
        return limits.NATIVE_PLACEHOLDER if self.is_native else to_checksum(self.address)


def amount_text(amount: int, token: TradedToken) -> str:
    """Text of an amount of raw units: in whole tokens, with the token's symbol."""
    return f"{format_units(amount, token.decimals)} {token.symbol}"


def price_text(src: TradedToken, dest: TradedToken, src_amount: int, dest_amount: int) -> str:
    """Text of the price of one source token in destination tokens, such as "1 WETH = 2600.5 USDC".

    The price is rounded down to eight decimal places; a price below 0.1 keeps eight significant digits.

    Args:
        src_amount, dest_amount: raw units.
    """
    divisor = src_amount * 10**dest.decimals
    whole = dest_amount * 10**src.decimals
    digits = 8
    while digits < _PRICE_DIGITS_MAX and 0 < whole * 10**digits < divisor * 10**7:
        digits += 1
    scaled = whole * 10**digits // divisor
    return f"1 {src.symbol} = {format_units(scaled, digits)} {dest.symbol}"


class TradeWish(Struct, frozen=True, kw_only=True):
    """A trader's wish for a swap or an order: the tokens, the amount and the tolerated slippage.

    Attributes:
        amount: raw units of `src` for SELL, of `dest` for BUY.
        slippage_bps: tolerated loss against the quote, basis points: less received for SELL, more spent for
            BUY.
        partner: name by which the venue knows the partner who takes a fee; empty for none.
    """

    chain_id: int
    src: TradedToken
    dest: TradedToken
    side: Side
    amount: int
    slippage_bps: int
    partner: str = ""

    @property
    def is_sale(self) -> bool:
        """Whether the amount is of the source token: SELL."""
        return self.side is Side.SELL

    @property
    def fixed(self) -> TradedToken:
        """The token whose amount is fixed: sold for SELL, bought for BUY."""
        return self.src if self.is_sale else self.dest

    @property
    def bounded(self) -> TradedToken:
        """The token whose amount is bounded: received for SELL, spent for BUY."""
        return self.dest if self.is_sale else self.src


class Wish(TradeWish, frozen=True, kw_only=True):
    """A trader's wished swap.

    Attributes:
        user: 20 bytes, the account that signs and pays.
        receiver: 20 bytes, the account that gets `dest`.
        max_impact: maximum price impact, percent; a route above it, or of unknown impact, is refused. With
            None the price impact refuses no route, and the offer only shows whether the impact is above the
            ceiling of the venue.
    """

    user: bytes
    receiver: bytes
    max_impact: Decimal | None = None


class BoundedTrade(Struct, frozen=True, kw_only=True):
    """A wished trade with the bound that the trader signs: the minimum received or the maximum spent.

    Attributes:
        limit: the bound in raw units: minimum received for SELL, maximum spent for BUY; for a TWAP, of all
            slices together.
    """

    wish: TradeWish
    limit: int

    def row(self, basis: str) -> tuple[str, str]:
        """The row, as (name, text), that shows the bound to the trader.

        Args:
            basis: text that follows the amount, such as " (50 bps)": how the bound was derived.
        """
        name = "at least received" if self.wish.is_sale else "at most spent"
        return name, f"{amount_text(self.limit, self.wish.bounded)}{basis}"

    def keeps(self, moved: int) -> bool:
        """Whether a trade's result is within the bound.

        Args:
            moved: raw units received for SELL, spent for BUY.
        """
        return moved >= self.limit if self.wish.is_sale else moved <= self.limit

    @property
    def src_amount_max(self) -> int:
        """Maximum spent, raw units of the source token: the owner needs this balance, and has to allow or
        deposit as much."""
        return self.wish.amount if self.wish.is_sale else self.limit

    @property
    def dest_amount_min(self) -> int:
        """Minimum received, raw units of the destination token."""
        return self.limit if self.wish.is_sale else self.wish.amount


class Terms(BoundedTrade, frozen=True, kw_only=True):
    """Terms within which a swap may be signed.

    Attributes:
        fee_bps: the partner's quoted fee, basis points.
        router: the Router contract that the swap calls, 20 bytes.
        deadline: Unix seconds.
        permit: the permit for the Router; empty for none.
    """

    wish: Wish
    fee_bps: int
    router: bytes
    deadline: int
    permit: bytes = b""


def slipped(side: Side, src_amount: int, dest_amount: int, slippage_bps: int) -> int:
    """The bound that a quote and a slippage tolerance give, raw units: minimum received for SELL, maximum
    spent for BUY; both rounded down.

    Args:
        src_amount, dest_amount: quoted raw units.
    """
    if side is Side.SELL:
        return dest_amount * (limits.BPS_ONE - slippage_bps) // limits.BPS_ONE
    return src_amount * (limits.BPS_ONE + slippage_bps) // limits.BPS_ONE


def limit_of(route: PriceRoute, side: Side, slippage_bps: int) -> int:
    """The bound of a swap over a Market route, raw units: minimum received for SELL, maximum spent for
    BUY."""
    return slipped(side, int(route.src_amount), int(route.dest_amount), slippage_bps)


def quoted_of(route: PriceRoute, side: Side) -> int:
    """Return the quoted amount that the trader does not fix, raw units.

    The amount is the destination amount for SELL, and the source amount for BUY.
    """
    return int(route.dest_amount if side is Side.SELL else route.src_amount)


def swap_consent(terms: Terms) -> SwapConsent:
    """The consent that the trader signs, so that the makers' stock counts as wanted by its own account."""
    wish = terms.wish
    return SwapConsent(wish.user, wish.src.address, wish.dest.address, terms.src_amount_max, terms.deadline)


def transaction_body(terms: Terms, route: Raw, consent_signature: bytes) -> TransactionBody:
    """The body of POST /transactions/{chainId} that asks for the swap of these terms over a route.

    Args:
        consent_signature: signature of `swap_consent`.
    """
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
        consent=ConsentBody(
            src_amount=str(terms.src_amount_max), deadline=terms.deadline, signature=to_hex(consent_signature)
        ),
    )


def impact_percent(src_text: str, dest_text: str) -> Decimal | None:
    """Share of the value in US dollars that a trade loses, in percent; negative for a gain; None if a token's
    price is not known.

    Args:
        src_text, dest_text: values of the source and the destination amount in US dollars, by the venue; "0"
            without a price.
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
