"""OTC orders of a program: posted, followed, cancelled on chain, and filled whole or in part."""

from collections.abc import Awaitable, Callable

from .....codecs.messages.otc_messages import StoredOrder
from .....codecs.messages.resource_messages import TokenList
from .....codecs.messages.vocabulary import OtcState, Side
from .....codecs.messages.wire import encode
from .....config.error_text import one_line
from .....config.errors import ChainError, ConfigError, InvalidInput, VenueError
from .....config.timeouts import TRADER_LIMIT_ORDER_S, TRADER_WATCH_S
from .....crypto.addresses import ZERO_ADDRESS, to_checksum
from .....crypto.hexadecimal import parse_hex, to_hex
from ....chain.together import both
from ....chain.transact import StepFailedError
from ..allowing import Allowing
from ..otc.otc_cancelling import Cancelled, cancel_otc
from ..otc.otc_filling import FillOffer, OtcFiller
from ..otc.otc_following import OtcFollower, disproof
from ..otc.otc_posting import OtcOffer, OtcPoster
from ..otc.otc_safety import OtcOnChain, check_asked, check_handed_over
from ..otc.otc_terms import (
    OTC_TERMINAL,
    OtcHandOver,
    OtcPart,
    OtcWish,
    SignedOtc,
    decode_hand_over,
    hand_over_of,
    part_given,
    part_received,
    rest_of,
)
from ..otc.otc_view import OtcOutcome, followed
from ..outcome import TradeVerdict
from ..terms import TradedToken
from ..tokens import find_token
from ..trusted_contract import RFQ, SigningContract, signing_contract
from .amounts import Amount, limit_price, raw_units
from .offers import Agree, ask, offered_fill, offered_otc
from .results import OtcOrderState, TradeResult, trade_failed, trade_result
from .session import Key, VenueSession, account_of

Otc = OtcOrderState | OtcHandOver | str
"""An OTC order: the state that a call returned, its hash, or the signed order, decoded or as JSON."""


class OtcTrading(VenueSession):
    """OTC orders at a venue."""

    async def otc(
        self,
        sell: str,
        buy: str,
        amount: Amount,
        *,
        key: Key,
        price: Amount | None = None,
        receive: Amount | None = None,
        taker: str | bytes | None = None,
        life_s: int = TRADER_LIMIT_ORDER_S,
        allowing: Allowing = Allowing.EXACT,
        agree: Agree[OtcOffer] | None = None,
        about_to: Callable[[SignedOtc], None] | None = None,
        rehearse: bool = False,
        pinned: bytes | None = None,
    ) -> OtcOrderState:
        """Post an OTC order: sell an amount at a price, to one account or to anyone.

        Args:
            sell, buy: ERC-20 tokens, by symbol or address.
            amount: whole tokens of `sell`.
            price: bought tokens for one sold token; exactly one of `price` and `receive` is given.
            receive: whole tokens of `buy` for the whole order.
            taker: the one account that may fill the order; None for anyone.
            life_s: seconds from now to the expiry; 0 for no expiry.
            allowing: the way to give a missing allowance to the RFQ contract.
            agree: receives the terms and returns whether the order may be signed; None agrees, unless the
                balance does not cover the order.
            about_to: receives the signed order before it is posted.
            rehearse: read and check everything, and sign nothing.
            pinned: RFQ contract that the caller insists on, 20 bytes, without a check of its code.

        Raises:
            ConfigError: an argument is malformed, or contradicts another one; the error names the argument.
            OfferDeclined: `agree` returned False; nothing was signed.
            VenueError, ChainError, PolicyError: the order was not posted; the error says why.
            TradeFailed: the approval failed, or the venue did not say whether it has the order.
        """
        if (price is None) == (receive is None):
            raise ConfigError(self._name("price"), "one of price and receive is needed")
        trader, ends = self._trader(key, allowing), await self._ends(sell, buy)
        src, dest = ends.src, ends.dest
        for token, field in ((src, self._name("sell")), (dest, self._name("buy"))):
            if token.is_native:
                raise ConfigError(field, "is the native token: OTC orders are of ERC-20 tokens, so wrap it")
        src_amount = raw_units(amount, src, self._name("amount"))
        if price is not None:
            field = self._name("price")
            dest_amount = limit_price(price, field).limit_amount(Side.SELL, src_amount, src, dest, field)
        else:
            dest_amount = raw_units(receive or "", dest, self._name("receive"))
        maker = trader.key.address
        named = account_of(taker, self._name("taker"), ZERO_ADDRESS)
        if taker is not None and named in (maker, ZERO_ADDRESS):
            said = "is the account of the key itself" if named == maker else "the zero address is no account"
            raise ConfigError(self._name("taker"), said)
        wish = OtcWish(
            chain_id=self.chain_id,
            src=src,
            dest=dest,
            src_amount=src_amount,
            dest_amount=dest_amount,
            maker=maker,
            taker=named,
            life_s=life_s,
        )
        poster = OtcPoster(trader, self._client)
        offer = await poster.offer(wish, pinned)
        if agree is None and offer.is_short and not rehearse:
            offer.held.check_balance(src_amount)
        ask(agree, offered_otc(offer))
        if rehearse:
            return self._otc_state(OtcOutcome(verdict=TradeVerdict.REHEARSED), offer)
        return self._otc_state(await _posted(poster, offer, about_to), offer)

    async def follow_otc(
        self, order: OtcOrderState | str, *, timeout_s: float = TRADER_WATCH_S, pinned: bytes | None = None
    ) -> OtcOrderState:
        """Follow an OTC order to its end, and verify the end on the chain if a node is known.

        Args:
            timeout_s: seconds to follow; the order lives on afterwards.
            pinned: RFQ contract of the order's chain, 20 bytes, without a check of its code.

        Returns:
            The order's state; `has_ended` is False if time was up. If the venue refuses after its first
            record, the verdict is UNKNOWN with a reason.

        Raises:
            VenueError: before its first record the venue refuses, does not answer, or answers with another
                order.
        """
        seen = order.outcome if isinstance(order, OtcOrderState) else None
        name = (order.order_hash if isinstance(order, OtcOrderState) else order).lower()
        follower = OtcFollower(self._client, name, self._tell)
        if seen is not None and seen.stored is not None:
            follower.see(seen.stored)
        stored, refusal = await follower.latest(timeout_s)
        # None: the chain was not asked. Empty: the chain confirms the record, and `followed` calls it proven.
        fault: str | None = refusal or None
        order_hash, chain = parse_hex(stored.order_hash, "orderHash"), self._chains.get(stored.chain_id)
        if fault is None and chain is not None and stored.state in OTC_TERMINAL:
            try:
                self._tell(f"looking at the {RFQ.name}")
                # Of the order's chain, which need not be the session's.
                contract = await signing_contract(chain, self._client, RFQ, pinned)
                signed = check_asked(stored, order_hash, contract)
                fault = await disproof(chain, contract, signed, stored, self._wall_s())
            except (ChainError, VenueError) as error:
                fault = error.detail
        outcome = followed(stored, order_hash, fault, None if seen is None else seen.signed)
        return self._otc_state(outcome, None if isinstance(order, str) else order.offer)

    async def fill(
        self,
        order: Otc,
        *,
        key: Key,
        amount: Amount | None = None,
        receive: Amount | None = None,
        allowing: Allowing = Allowing.EXACT,
        agree: Agree[FillOffer] | None = None,
        rehearse: bool = False,
        pinned: bytes | None = None,
    ) -> TradeResult:
        """Fill an OTC order on chain, whole or in part; the key's account pays the gas.

        Args:
            order: the order, its hash at the venue, or the signed order as JSON.
            amount: most whole tokens to give; None and no `receive` for all that is left.
            receive: in place of `amount`: whole tokens to receive.
            allowing: the way to give a missing allowance to the RFQ contract.
            agree: receives the amounts and returns whether the fill may be signed; None agrees.
            rehearse: simulate, and sign no transaction.
            pinned: RFQ contract that the caller insists on, 20 bytes, without a check of its code.

        Raises:
            ConfigError: an argument is malformed, or contradicts another one; the error names the argument.
            OfferDeclined: `agree` returned False; nothing was signed.
            VenueError, ChainError: nothing was filled; the error says why.
            TradeFailed: a transaction reverted, or may still be mined.
        """
        if amount is not None and receive is not None:
            raise ConfigError(self._name("amount"), "excludes receive")
        trader, contract = self._trader(key, allowing), await self._contract(RFQ, pinned)
        signed, stored = await self._signed(order, contract)
        filler = OtcFiller(trader, contract)
        standing, (gives, gets) = await both(
            lambda: filler.standing(signed, _closed(stored)), lambda: self._assets(signed)
        )
        offer = await filler.offer(
            signed, standing, self._part(signed, standing, gives, gets, amount, receive), gives, gets
        )
        ask(agree, offered_fill(offer))
        outcome = await (filler.rehearse(offer) if rehearse else filler.fill(offer))
        return trade_result(offer, outcome, gives, gets)

    async def cancel_otc(self, *orders: Otc, key: Key, pinned: bytes | None = None) -> Cancelled:
        """Cancel OTC orders of the key's account on chain, in one transaction; ended orders are left out.

        Raises:
            ChainError: an order is another maker's, and nothing was cancelled; or the contract refuses.
            StepFailedError: the transaction reverted, or may still be mined.
        """
        trader, contract = self._trader(key, Allowing.EXACT), await self._contract(RFQ, pinned)
        signed = [await self._signed(order, contract) for order in orders]
        return await cancel_otc(trader, contract, {otc.order_hash: otc.order for otc, _ in signed})

    # --- Parts ------------------------------------------------------------------------------------

    async def _assets(self, signed: SignedOtc) -> tuple[TradedToken, TradedToken]:
        """Read from the chain the tokens that a taker of an order gives and gets."""

        def found(asset: bytes, field: str) -> Awaitable[TradedToken]:
            return find_token(self._chain, TokenList(()), to_checksum(asset), field)

        order = signed.order
        return await both(
            lambda: found(order.taker_asset, "takerAsset"), lambda: found(order.maker_asset, "makerAsset")
        )

    async def _signed(self, order: Otc, contract: SigningContract) -> tuple[SignedOtc, StoredOrder | None]:
        """The signed order that an argument names, checked against its hash, and the venue's record, if any.

        Raises:
            ConfigError: the text is no hash and no signed order.
            VenueError, ChainError: the order is not known, malformed, or of another contract or chain.
        """
        field = self._name("order")
        if isinstance(order, OtcOrderState):
            order = order.signed or order.order_hash
        if isinstance(order, OtcHandOver):
            return check_handed_over(order, contract, field), None
        try:
            if order.lstrip().startswith("{"):
                return check_handed_over(decode_hand_over(order.encode()), contract, field), None
            order_hash = parse_hex(order, field)
        except InvalidInput as fault:
            raise ConfigError(field, fault.detail) from None
        stored = await self._client.otc_order(to_hex(order_hash))
        return check_asked(stored, order_hash, contract), stored

    def _part(
        self,
        signed: SignedOtc,
        standing: OtcOnChain,
        gives: TradedToken,
        gets: TradedToken,
        amount: Amount | None,
        receive: Amount | None,
    ) -> OtcPart:
        """The amounts of a fill: of an amount to give, of an amount to receive, or of all that is left.

        Raises:
            ConfigError: an amount is malformed.
            ChainError: the amounts exceed the unfilled amount of the order.
        """
        order, left = signed.order, standing.left(signed.order)
        if amount is not None:
            field = self._name("amount")
            return part_given(order, left, raw_units(amount, gives, field), gives, field)
        if receive is not None:
            field = self._name("receive")
            return part_received(order, left, raw_units(receive, gets, field), gets, field)
        return rest_of(order, left)

    def _otc_state(self, outcome: OtcOutcome, offer: OtcOffer | None) -> OtcOrderState:
        signed, stored = outcome.signed, outcome.stored
        return OtcOrderState(
            verdict=outcome.verdict,
            order_hash=to_hex(outcome.order_hash) if outcome.order_hash else "",
            state=None if stored is None else stored.state,
            signed="" if signed is None else encode(hand_over_of(signed, self.chain_id)).decode(),
            reason=outcome.reason,
            offer=offer,
            outcome=outcome,
        )


async def _posted(
    poster: OtcPoster, offer: OtcOffer, about_to: Callable[[SignedOtc], None] | None
) -> OtcOutcome:
    """Post an order of agreed terms.

    Raises:
        TradeFailed: the approval failed, or the venue did not say whether it has the order.
    """
    try:
        signed, placed = await poster.post(offer, about_to)
    except StepFailedError as failed:
        raise trade_failed(OtcOutcome.failed(failed), offer) from None
    verdict = TradeVerdict.UNKNOWN if placed.record is None else TradeVerdict.POSTED
    outcome = OtcOutcome(
        verdict=verdict,
        order_hash=signed.order_hash,
        signed=signed,
        stored=placed.record,
        reason=placed.fault,
    )
    if placed.record is None:
        raise trade_failed(outcome, offer)
    return outcome


def _closed(stored: StoredOrder | None) -> str:
    """Describe, by the venue's record, how an order that is closed on chain ended; empty without a record."""
    if stored is None or stored.state not in (OtcState.FULFILLED, OtcState.CANCELLED):
        return ""
    means = "filled" if stored.state is OtcState.FULFILLED else "cancelled"
    by = f" by {one_line(stored.transaction_hash)}" if stored.transaction_hash else ""
    return f"the venue says that it was {means}{by}"
