"""A trade's terms before anything is signed, and the price of a quote, in whole tokens. Pure."""

from collections.abc import Callable
from decimal import Context, Decimal
from typing import Any, Generic, TypeVar

from msgspec import Struct

from .....codecs.messages.vocabulary import Mode, Side
from .....config.errors import OfferDeclined
from ..order.order_placing import OrderOffer
from ..otc.otc_filling import FillOffer
from ..otc.otc_posting import OtcOffer
from ..swap.swapping import Offer
from ..terms import BoundedTrade
from .amounts import TokenAmount

Detail = TypeVar("Detail")

_DIGITS = Context(prec=18)


class Quote(Struct, frozen=True, kw_only=True):
    """A venue's price of a trade, which binds nobody.

    Attributes:
        mode: DELTA: the price of an order that agents settle, gas included; MARKET: the price of a swap that
            the trader sends.
        sell, buy: the amounts; the amount that the caller named is one of them.
        reason: reason why the venue gives no Delta price; empty for a Delta price.
    """

    mode: Mode
    sell: TokenAmount
    buy: TokenAmount
    reason: str = ""

    @property
    def price(self) -> Decimal:
        """Bought tokens for one sold token, both whole, to 18 digits."""
        return _DIGITS.divide(self.buy.whole, self.sell.whole)

    def __str__(self) -> str:
        """The quote on two lines: the amounts, then price and mode."""
        tokens = f"{self.buy.token.symbol} for 1 {self.sell.token.symbol}"
        return f"{self.sell} for {self.buy}\n{self.price:f} {tokens}, {self.mode.value}"


class OfferedTrade(Struct, Generic[Detail], frozen=True, kw_only=True):
    """A trade's terms, for the trader's consent before anything is signed.

    Attributes:
        sell, buy: the quoted amounts; of a TWAP those of one slice.
        side: SELL: `sell` is fixed; BUY: `buy` is fixed.
        bound: the amount that is signed: at least received (SELL) or at most spent (BUY); of a TWAP for all
            slices together.
        detail: the offer with all of its members, which may change between versions.
    """

    sell: TokenAmount
    buy: TokenAmount
    side: Side
    bound: TokenAmount
    detail: Detail

    @property
    def price(self) -> Decimal:
        """Bought tokens for one sold token, both whole, to 18 digits."""
        return _DIGITS.divide(self.buy.whole, self.sell.whole)

    def __str__(self) -> str:
        """The terms on two lines: the quoted amounts, then the amount that is signed."""
        bound = "at least" if self.side is Side.SELL else "at most"
        return f"{self.sell} for {self.buy}\n{bound} {self.bound}"


Agree = Callable[[OfferedTrade[Detail]], bool]
"""Function that receives a trade's terms and returns whether the trade may be signed."""


def ask(agree: Agree[Detail] | None, offered: OfferedTrade[Detail]) -> None:
    """Ask the caller's function, if there is one, whether a trade may be signed.

    Raises:
        OfferDeclined: the function returned False.
    """
    if agree is not None and not agree(offered):
        raise OfferDeclined(f"declined: {offered.sell} for {offered.buy}")


def offered_swap(offer: Offer) -> OfferedTrade[Offer]:
    """The public form of a Market swap's terms."""
    return _offered(offer, int(offer.route.src_amount), int(offer.route.dest_amount), offer)


def offered_order(offer: OrderOffer) -> OfferedTrade[OrderOffer]:
    """The public form of a Delta order's terms."""
    return _offered(offer.terms, offer.terms.src_quoted, offer.terms.dest_quoted, offer)


def offered_otc(offer: OtcOffer) -> OfferedTrade[OtcOffer]:
    """The public form of an OTC order's terms, whose amounts are exact."""
    wish = offer.wish
    buy = TokenAmount(wish.dest_amount, wish.dest)
    return OfferedTrade(
        sell=TokenAmount(wish.src_amount, wish.src), buy=buy, side=Side.SELL, bound=buy, detail=offer
    )


def offered_fill(offer: FillOffer) -> OfferedTrade[FillOffer]:
    """The public form of the terms of filling an OTC order, whose amounts are exact."""
    buy = TokenAmount(offer.part.maker_amount, offer.gets)
    sell = TokenAmount(offer.part.taker_amount, offer.gives)
    return OfferedTrade(sell=sell, buy=buy, side=Side.SELL, bound=buy, detail=offer)


def _offered(trade: BoundedTrade, src_amount: int, dest_amount: int, detail: Any) -> OfferedTrade[Any]:
    wish = trade.wish
    return OfferedTrade(
        sell=TokenAmount(src_amount, wish.src),
        buy=TokenAmount(dest_amount, wish.dest),
        side=wish.side,
        bound=TokenAmount(trade.limit, wish.bounded),
        detail=detail,
    )
