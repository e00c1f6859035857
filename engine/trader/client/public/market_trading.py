"""Quotes and Market swaps of a program, each by one call."""

from decimal import Decimal

from .....codecs.amounts import parse_amount
from .....codecs.messages.market_messages import QuoteResponse
from .....codecs.messages.vocabulary import Mode, Side
from .....config.errors import InvalidInput, VenueError
from ..allowing import Allowing
from ..outcome import SentOutcome, TradeVerdict
from ..swap.swapping import Offer, Swapper
from ..terms import BoundedTrade, TradeWish, Wish, amount_text
from .amounts import Amount, TokenAmount, raw_units
from .offers import Agree, Quote, ask, offered_swap
from .results import TradeResult, trade_result
from .session import Key, ToChain, TradeEnds, VenueSession, account_of

SLIPPAGE_BPS = 50
"""Default of the tolerated loss against the quote, basis points."""


class MarketTrading(VenueSession):
    """Quotes and Market swaps at a venue."""

    async def quote(
        self,
        sell: str,
        buy: str,
        amount: Amount,
        *,
        side: Side | str = Side.SELL,
        mode: Mode | str = Mode.ALL,
        to: int | ToChain | None = None,
        partner: str = "",
    ) -> Quote:
        """Ask the venue for the price of an amount; the price binds nobody, and nothing is signed.

        Args:
            sell, buy: tokens, by symbol or address.
            amount: whole tokens: of `sell` with side SELL, of `buy` with side BUY.
            mode: ALL: the price of a Delta order, or of a Market swap if the venue has no such price; DELTA
                or MARKET: that price alone.
            to: chain on which the bought tokens arrive; None for the session's chain.
            partner: name of a partner who takes a fee; empty for none.

        Raises:
            ConfigError: an argument is malformed, or names no token; the error names the argument.
            VenueError: the venue has no price, refuses or does not answer.
        """
        ends = await self._ends(sell, buy, to)
        wish = self._trade_wish(ends, amount, Side(side), SLIPPAGE_BPS, partner)
        bridging = ends.bridging
        answer = await self._client.quote(
            wish,
            Mode(mode),
            None if bridging is None else bridging.chain_id,
            () if bridging is None else bridging.bridges,
        )
        return _quote(answer, wish)

    async def swap(
        self,
        sell: str,
        buy: str,
        amount: Amount,
        *,
        key: Key,
        side: Side | str = Side.SELL,
        limit: Amount | None = None,
        slippage_bps: int = SLIPPAGE_BPS,
        max_impact: Decimal | None = None,
        receiver: str | bytes | None = None,
        partner: str = "",
        allowing: Allowing = Allowing.EXACT,
        agree: Agree[Offer] | None = None,
        rehearse: bool = False,
        pinned: bytes | None = None,
    ) -> TradeResult:
        """Swap on the Market route: price, approve or sign a permit, have makers sign, check, simulate, send.

        Args:
            sell, buy: tokens, by symbol or address.
            amount: whole tokens: of `sell` with side SELL, of `buy` with side BUY.
            limit: least receipt (SELL) or largest spending (BUY), whole tokens; a swap that may do worse is
                not signed. None leaves the bound to the quote and `slippage_bps`.
            slippage_bps: tolerated loss against the quote, basis points.
            max_impact: largest accepted price impact, percent; None accepts any.
            receiver: account that gets the bought tokens; None for the key's account.
            partner: name of a partner who takes a fee; empty for none.
            allowing: the way to give a missing allowance to the Router.
            agree: receives the terms and returns whether the swap may be signed; None agrees.
            rehearse: price, check and simulate, and sign no transaction.
            pinned: Router that the caller insists on, 20 bytes, without a check of its code; None for the
                Router that the venue names, if the Router's code is this release's.

        Raises:
            ConfigError: an argument is malformed, or names no token; the error names the argument.
            OfferDeclined: `agree` returned False; nothing was signed.
            VenueError, ChainError, PolicyError: nothing was swapped; the error says why.
            TradeFailed: a transaction reverted, or may still be mined.
        """
        trader, ends = self._trader(key, allowing), await self._ends(sell, buy)
        common = self._trade_wish(ends, amount, Side(side), slippage_bps, partner)
        bound = None if limit is None else raw_units(limit, common.bounded, self._name("limit"))
        user = trader.key.address
        wish = Wish(
            chain_id=common.chain_id,
            src=common.src,
            dest=common.dest,
            side=common.side,
            amount=common.amount,
            slippage_bps=slippage_bps,
            partner=partner,
            user=user,
            receiver=account_of(receiver, self._name("receiver"), user),
            max_impact=max_impact,
        )
        swapper = Swapper(trader, self._client)
        offer = await swapper.offer(wish, pinned)
        check_limit(offer, bound)
        ask(agree, offered_swap(offer))
        # `rehearse` returns None if an approval has to come first: only the price was tried then.
        if rehearse:
            outcome = await swapper.rehearse(offer) or SentOutcome(
                verdict=TradeVerdict.REHEARSED, step="price"
            )
        else:
            outcome = await swapper.perform(offer)
        return trade_result(offer, outcome, ends.src, ends.dest)

    def _trade_wish(
        self, ends: TradeEnds, amount: Amount, side: Side, slippage_bps: int, partner: str
    ) -> TradeWish:
        """Convert the arguments that all kinds of trades share to a wish.

        Raises:
            ConfigError: the amount is no amount of its token.
        """
        fixed = ends.src if side is Side.SELL else ends.dest
        return TradeWish(
            chain_id=self.chain_id,
            src=ends.src,
            dest=ends.dest,
            side=side,
            amount=raw_units(amount, fixed, self._name("amount")),
            slippage_bps=slippage_bps,
            partner=partner,
        )


def check_limit(trade: BoundedTrade, limit: int | None) -> None:
    """Refuse terms whose bound is worse than the caller's limit.

    Args:
        limit: least receipt (SELL) or largest spending (BUY), raw units; None for no limit.

    Raises:
        VenueError: the bound is worse.
    """
    if limit is None:
        return
    wish, is_sale = trade.wish, trade.wish.is_sale
    if trade.limit < limit if is_sale else trade.limit > limit:
        word = "least" if is_sale else "most"
        bound, wanted = amount_text(trade.limit, wish.bounded), amount_text(limit, wish.bounded)
        raise VenueError(f"the quote and the slippage give at {word} {bound}, and limit is {wanted}")


def _quote(answer: QuoteResponse, wish: TradeWish) -> Quote:
    """The public form of the venue's answer.

    Raises:
        VenueError: the answer has no price, a malformed or zero amount, or the price of another amount.
    """
    if answer.delta:
        route, mode = answer.delta.route, Mode.DELTA
        amounts = route.origin.input.amount, route.destination.output.amount
    elif answer.market:
        amounts, mode = (answer.market.src_amount, answer.market.dest_amount), Mode.MARKET
    else:
        raise VenueError("GET /v2/quote: the answer has no price")
    try:
        sell, buy = map(parse_amount, amounts)
    except InvalidInput as fault:
        raise VenueError(f"GET /v2/quote: {fault.detail}") from None
    fixed = sell if wish.is_sale else buy
    if fixed != wish.amount or not sell or not buy:
        raise VenueError(
            f"GET /v2/quote: expected a price of {wish.amount} raw units ({wish.side.value}), "
            f"got {sell} for {buy}"
        )
    reason = answer.fallback_reason.details if answer.fallback_reason else ""
    return Quote(mode=mode, sell=TokenAmount(sell, wish.src), buy=TokenAmount(buy, wish.dest), reason=reason)
