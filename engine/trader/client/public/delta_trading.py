"""Delta orders of a program: placed, followed to their verified end, explained and cancelled."""

import math
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress

import trio
from msgspec.structs import replace

from .....codecs.messages.auction_messages import Explanation
from .....codecs.messages.delta_messages import OrderRecord
from .....codecs.messages.resource_messages import TokenEntry, TokenList
from .....codecs.messages.vocabulary import OrderType, Side
from .....config import limits
from .....config.errors import ChainError, ConfigError, VenueError
from .....config.timeouts import TRADER_LIMIT_ORDER_S, TRADER_ORDER_S, TRADER_WATCH_S
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import parse_hex
from ....chain.transact import StepFailedError
from ..allowing import Allowing
from ..listing import reason_text
from ..order.order_cancelling import cancel, follow_all
from ..order.order_following import TERMINAL, OfferTokens, OrderFollower, Subject, is_crosschain, proven
from ..order.order_placing import OrderOffer, OrderPlacer, take_back
from ..order.order_safety import signed_order
from ..order.order_view import DeltaOutcome, outcome_of
from ..order_terms import OrderWish
from ..outcome import TradeVerdict
from ..schedule import Schedule, checked_life_s
from ..terms import TradedToken
from ..tokens import find_token
from ..trusted_contract import DELTA, SigningContract, signing_contract
from .amounts import Amount, TokenAmount, limit_price, raw_units
from .market_trading import SLIPPAGE_BPS, MarketTrading
from .offers import Agree, ask, offered_order
from .results import DeltaOrderState, order_state, trade_failed
from .session import Key, ToChain, account_of, key_of

Order = DeltaOrderState | str
"""An order: the state that a call returned, or the order's id or hash."""


class DeltaTrading(MarketTrading):
    """Delta orders at a venue."""

    async def order(
        self,
        sell: str,
        buy: str,
        amount: Amount,
        *,
        key: Key,
        side: Side | str = Side.SELL,
        price: Amount | None = None,
        limit: Amount | None = None,
        slippage_bps: int = SLIPPAGE_BPS,
        life_s: int | None = None,
        is_partial: bool = False,
        to: int | ToChain | None = None,
        vault: str | None = None,
        receiver: str | bytes | None = None,
        partner: str = "",
        allowing: Allowing = Allowing.EXACT,
        agree: Agree[OrderOffer] | None = None,
        about_to: Callable[[bytes], None] | None = None,
        rehearse: bool = False,
        pinned: bytes | None = None,
    ) -> DeltaOrderState:
        """Place a Delta order: at the market's price, or a limit order if a price or a limit is given.

        Args:
            sell, buy: tokens, by symbol or address.
            amount: whole tokens: of `sell` with side SELL, of `buy` with side BUY.
            price: limit price, bought tokens for one sold token; the order is filled at this price or better.
            limit: in place of the price: least total receipt (SELL) or largest total spending (BUY), whole
                tokens.
            slippage_bps: for an order at the market's price: tolerated loss against the quote, basis points.
            life_s: seconds from now to the order's deadline; None for twenty minutes, or for a week if the
                order is a limit order.
            is_partial: whether a limit order may be settled in parts.
            to: chain on which a bridge delivers the bought tokens; None for the session's chain. Without
                `agree`, `ToChain.via` has to name the token that a failed bridge pays back.
            vault: ERC-4626 vault of `sell`, whose shares are sold, as many as give the amount now.
            receiver: account that gets the bought tokens; None for the key's account.
            partner: name of a partner who takes a fee; empty for none.
            allowing: the way to give a missing allowance to the Delta contract.
            agree: receives the terms and returns whether the order may be signed; None agrees.
            about_to: receives the order's hash, 32 bytes, before the order can become live.
            rehearse: price, build and check the order, and sign nothing.
            pinned: Delta contract that the caller insists on, 20 bytes, without a check of its code; None for
                the contract that the venue names, if the contract's code is this release's.

        Raises:
            ConfigError: an argument is malformed, or contradicts another one; the error names the argument.
            OfferDeclined: `agree` returned False; nothing was signed.
            VenueError, ChainError, PolicyError: no order was placed; the error says why.
            TradeFailed: the approval or deposit failed, or the venue did not say whether it has the order.
        """
        is_limit = price is not None or limit is not None
        if price is not None and limit is not None:
            raise ConfigError(self._name("price"), "excludes limit")
        if is_partial and not is_limit:
            raise ConfigError(self._name("is_partial"), "is for limit orders: give a price or a limit")
        wish = await self._wish(key, sell, buy, amount, Side(side), slippage_bps, to, receiver, partner)
        if vault is not None:
            wish = replace(wish, vault=await self._vault(vault, wish, is_partial=is_partial))
        if is_partial and wish.bridging is not None:
            raise ConfigError(
                self._name("is_partial"), "not with another chain, where each part would pay the bridge"
            )
        bound: int | None = None
        if price is not None:
            exact = limit_price(price, self._name("price"))
            bound = exact.limit_amount(wish.side, wish.amount, wish.src, wish.dest, self._name("price"))
        elif limit is not None:
            bound = raw_units(limit, wish.bounded, self._name("limit"))
        default_s = TRADER_LIMIT_ORDER_S if is_limit else TRADER_ORDER_S
        wish = replace(
            wish,
            type=OrderType.LIMIT if is_limit else OrderType.MARKET,
            limit_amount=bound,
            is_partial=is_partial,
            life_s=default_s if life_s is None else life_s,
        )
        return await self._placed(wish, key, allowing, agree, about_to, rehearse=rehearse, pinned=pinned)

    async def twap(
        self,
        sell: str,
        buy: str,
        amount: Amount,
        *,
        key: Key,
        slices: int,
        interval_s: int,
        side: Side | str = Side.SELL,
        limit: Amount | None = None,
        slippage_bps: int = SLIPPAGE_BPS,
        life_s: int | None = None,
        to: int | ToChain | None = None,
        receiver: str | bytes | None = None,
        partner: str = "",
        allowing: Allowing = Allowing.EXACT,
        agree: Agree[OrderOffer] | None = None,
        about_to: Callable[[bytes], None] | None = None,
        rehearse: bool = False,
        pinned: bytes | None = None,
    ) -> DeltaOrderState:
        """Place a TWAP: one order that is settled slice by slice.

        Args:
            amount: whole tokens of all slices together: of `sell` with side SELL, of `buy` with side BUY.
            slices: number of slices, 2 or more; interval_s: least seconds between two slices.
            limit: least receipt (SELL) or largest spending (BUY) of all slices together, whole tokens.
            slippage_bps: without `limit`: tolerated loss of a slice against the price now, basis points.
            life_s: seconds from now to the deadline; None for the schedule and some time more.
            further arguments: as of `order`.

        Raises:
            As `order`.
        """
        schedule = Schedule(slices, interval_s)
        valid_s = checked_life_s(schedule, life_s, self._name)
        # The venue refuses a permit with a TWAP too, but only after the permit was signed.
        if allowing is Allowing.PERMIT:
            raise ConfigError("allowing", "a TWAP needs an approval, not a permit")
        wish = await self._wish(key, sell, buy, amount, Side(side), slippage_bps, to, receiver, partner)
        if wish.amount < slices:
            raise ConfigError(
                self._name("slices"), f"expected at most {wish.amount}, a raw unit for each, got {slices}"
            )
        bound = None if limit is None else raw_units(limit, wish.bounded, self._name("limit"))
        wish = replace(wish, limit_amount=bound, schedule=schedule, life_s=valid_s)
        return await self._placed(wish, key, allowing, agree, about_to, rehearse=rehearse, pinned=pinned)

    async def follow(
        self, order: Order, *, timeout_s: float = TRADER_WATCH_S, pinned: bytes | None = None
    ) -> DeltaOrderState:
        """Follow a Delta order to its end, and verify the end on the chain if a node is known.

        Args:
            timeout_s: seconds to follow; the order lives on afterwards.
            pinned: Delta contract that the caller insists on, 20 bytes.

        Returns:
            The order's state; `has_ended` is False if time was up. If the venue refuses after its first
            record, the verdict is UNKNOWN with a reason.

        Raises:
            VenueError: before its first record the venue refuses, does not answer, or answers with another
                order.
        """
        record, fault = await self._follower(order).latest(timeout_s)
        return await self._end(order, record, pinned, fault)

    async def state(self, record: OrderRecord, *, pinned: bytes | None = None) -> DeltaOrderState:
        """The state of an order by a venue's record, verified on the chain if the order has ended.

        Returns:
            The state; its verdict is UNKNOWN with a reason if the order has not ended, or if the chain
            contradicts the record or cannot be asked.
        """
        return await self._end(record.id, record, pinned)

    @asynccontextmanager
    async def watch(self, order: Order) -> AsyncGenerator[trio.MemoryReceiveChannel[OrderRecord]]:
        """Context manager of a channel that gives a Delta order's record now, and again after each change.

        The channel ends with the order. A record is the venue's; `follow` verifies the end.

        Raises:
            VenueError: the venue refuses for good, or answers with another order; raised by the context. An
                error of the caller's own code inside the context passes unchanged.
        """
        follower = OrderFollower(self._client, _id_of(order), self._tell)
        # No buffer: the follower waits until a record is taken, so that a slow caller gets no old records.
        send, receive = trio.open_memory_channel[OrderRecord](0)
        failure: Exception | None = None

        async def relay() -> None:
            nonlocal failure
            async with send:
                try:
                    with suppress(trio.BrokenResourceError):  # the caller has closed the channel
                        await follower.follow(math.inf, send.send)
                except VenueError as fault:
                    failure = fault

        async with trio.open_nursery() as nursery, receive:
            nursery.start_soon(relay)
            try:
                yield receive
            except Exception as error:  # noqa: BLE001 - raised below, where the nursery does not group it
                failure = error
            nursery.cancel_scope.cancel()
        if failure is not None:
            raise failure

    async def explain(self, order: Order) -> Explanation:
        """Ask the venue why a Delta order is not filled."""
        return await self._client.explanation(_id_of(order))

    async def cancel(
        self,
        *orders: Order,
        key: Key,
        timeout_s: float = TRADER_WATCH_S,
        pinned: bytes | None = None,
    ) -> tuple[DeltaOrderState, ...]:
        """Cancel Delta orders by one signature, all of them or none, and follow each to its end.

        A settlement under way may still win: each state shows how the order ended.

        Raises:
            VenueError: an order is not the key's or has ended, or the venue refuses; nothing was cancelled.
            ChainError: the chain does not answer.
        """
        trader = self._trader(key, Allowing.EXACT)
        contract = await self._contract(DELTA, pinned)
        followers = await cancel(trader, self._client, contract, [_id_of(order) for order in orders])
        await follow_all(followers, timeout_s)
        return tuple(
            [
                await self._end(follower.record.id, follower.record, pinned)
                for follower in followers
                if follower.record
            ]
        )

    async def withdraw(
        self,
        *,
        key: Key,
        amount: Amount | None = None,
        receiver: str | bytes | None = None,
        pinned: bytes | None = None,
    ) -> TokenAmount:
        """Take back native tokens that the key's account has deposited for orders.

        Args:
            amount: whole tokens; None for the whole deposit.

        Returns:
            The amount that was taken back.

        Raises:
            ChainError: the deposit is empty or too small, or the chain does not answer.
            StepFailedError: the transaction reverted, or may still be mined.
        """
        trader, contract = self._trader(key, Allowing.EXACT), await self._contract(DELTA, pinned)
        native = await self._token(limits.NATIVE_PLACEHOLDER, "native")
        wanted = None if amount is None else raw_units(amount, native, self._name("amount"))
        to = account_of(receiver, self._name("receiver"), trader.key.address)
        _, taken = await take_back(trader, contract, wanted, to)
        return TokenAmount(taken, native)

    # --- Parts ------------------------------------------------------------------------------------

    async def _wish(
        self,
        key: Key,
        sell: str,
        buy: str,
        amount: Amount,
        side: Side,
        slippage_bps: int,
        to: int | ToChain | None,
        receiver: str | bytes | None,
        partner: str,
    ) -> OrderWish:
        """The wish for an order at the market's price, with the members that all kinds of orders share."""
        ends = await self._ends(sell, buy, to)
        common = self._trade_wish(ends, amount, side, slippage_bps, partner)
        owner = key_of(key).address
        return OrderWish(
            chain_id=common.chain_id,
            src=common.src,
            dest=common.dest,
            side=side,
            amount=common.amount,
            slippage_bps=slippage_bps,
            limit_amount=None,
            type=OrderType.MARKET,
            owner=owner,
            beneficiary=account_of(receiver, self._name("receiver"), owner),
            partner=partner,
            life_s=TRADER_ORDER_S,
            bridging=ends.bridging,
        )

    async def _vault(self, text: str, wish: OrderWish, *, is_partial: bool) -> TradedToken:
        """The vault whose shares an order sells.

        Raises:
            ConfigError: the text is no address of a token, or the order's kind excludes a vault.
        """
        if wish.bridging is not None or wish.side is not Side.SELL:
            raise ConfigError(self._name("vault"), "only for a sale on one chain")
        if is_partial:
            raise ConfigError(self._name("is_partial"), "not with a vault")
        return await find_token(self._chain, TokenList(()), text, self._name("vault"))

    async def _placed(
        self,
        wish: OrderWish,
        key: Key,
        allowing: Allowing,
        agree: Agree[OrderOffer] | None,
        about_to: Callable[[bytes], None] | None,
        *,
        rehearse: bool,
        pinned: bytes | None,
    ) -> DeltaOrderState:
        """Price an order, give the terms to `agree`, and place the order.

        Args:
            rehearse: have the order built and checked instead, and sign nothing.
        """
        bridging = wish.bridging
        if bridging is not None and bridging.via is None and agree is None and not rehearse:
            raise ConfigError(
                "via",
                "is needed without agree, or the venue chooses what a failed bridge pays back",
            )
        placer = OrderPlacer(self._trader(key, allowing), self._client)
        offer = await placer.offer(wish, pinned)
        ask(agree, offered_order(offer))
        bridge = offer.terms.bridge
        tokens = OfferTokens(wish.src, wish.dest, None if bridge is None else bridge.token)
        if rehearse:
            checked = await placer.rehearse(offer)
            outcome = DeltaOutcome(verdict=TradeVerdict.REHEARSED, order_hash=checked.order_hash)
            return order_state(outcome, tokens, offer)
        # Kept for the error of a failed deposit, which names the order for whose hash the deposit was.
        known_hash = b""

        def known(order_hash: bytes) -> None:
            nonlocal known_hash
            known_hash = order_hash
            if about_to is not None:
                about_to(order_hash)

        try:
            placed = await placer.place(offer, known)
        except StepFailedError as failed:
            raise trade_failed(DeltaOutcome.failed(failed, known_hash), offer) from None
        verdict = TradeVerdict.UNKNOWN if placed.record is None else TradeVerdict.PLACED
        outcome = DeltaOutcome(
            verdict=verdict, order_hash=placed.order_hash, record=placed.record, reason=placed.fault
        )
        if placed.record is None:
            raise trade_failed(outcome, offer)
        return order_state(outcome, tokens, offer)

    def _follower(self, order: Order) -> OrderFollower:
        """A follower of an order; if the argument is a state, the follower starts with the state's record."""
        if isinstance(order, str):
            return OrderFollower(self._client, order, self._tell)
        follower = OrderFollower(self._client, _id_of(order), self._tell, order.tokens)
        if order.outcome.record is not None:
            follower.see(order.outcome.record)
        return follower

    async def _end(
        self, order: Order, record: OrderRecord, pinned: bytes | None, fault: str = ""
    ) -> DeltaOrderState:
        """The state of an order by the venue's latest record, verified on the chain if it has ended.

        Args:
            fault: text about why the venue's record may not be the latest; empty for none.

        Returns:
            The state; its verdict is UNKNOWN with a reason if the chain cannot be asked.
        """
        if record.status not in TERMINAL:
            await self._tell_why(record)
        # A record that may be out of date is not verified: the chain would seem to contradict it.
        if not fault:
            try:
                return await self._verified(order, record, pinned)
            except (ChainError, VenueError) as error:
                fault = error.detail
        outcome = DeltaOutcome(
            verdict=TradeVerdict.UNKNOWN,
            order_hash=parse_hex(record.order_hash, "orderHash"),
            record=record,
            reason=fault,
        )
        seen = None if isinstance(order, str) else order
        return order_state(outcome, seen.tokens if seen else OfferTokens(), seen.offer if seen else None)

    async def _verified(self, order: Order, record: OrderRecord, pinned: bytes | None) -> DeltaOrderState:
        """State of an order that a venue's record shows, verified on the chain if the order has ended.

        A client without a node of the chain verifies nothing.

        Raises:
            ChainError, VenueError: the state cannot be verified.
        """
        seen = None if isinstance(order, str) else order
        chain = self._chains.get(record.input.chain_id)
        if seen is not None and seen.offer is not None:
            contract, tokens, offer = seen.offer.contract, seen.tokens, seen.offer
        elif chain is None:
            return order_state(outcome_of(record, None), OfferTokens())
        else:
            contract, offer = await signing_contract(chain, self._client, DELTA, pinned), None
            tokens = await self._tokens_of(record, contract)
        there = self._chains.get(record.output.chain_id) if is_crosschain(record) else None
        subject = Subject(contract.address, signed_order(record, contract), there)
        has_ended = chain is not None and record.status in TERMINAL
        settled = await proven(chain, subject, record) if has_ended and chain else None
        return order_state(outcome_of(record, settled), tokens, offer)

    async def _tokens_of(self, record: OrderRecord, contract: SigningContract) -> OfferTokens:
        """The tokens of a venue's record; across chains, the bought token is None if it is not found.

        Raises:
            VenueError: the record names a token that its chain does not have.
        """
        here, there = record.input.chain_id, record.output.chain_id
        try:
            src = await self._token(record.input.token, "input.token", here)
            if not is_crosschain(record):
                return OfferTokens(src, await self._token(record.output.token, "output.token", there))
            entered = to_checksum(signed_order(record, contract).order.dest_token)
            bridged = await self._token(entered, "order.destToken", here)
        except ConfigError as error:  # the venue's words, not an argument of the caller's
            raise VenueError(f"the venue's record: {error.detail}") from None
        try:
            dest = await self._token(record.output.token, "output.token", there)
        except ConfigError:
            return OfferTokens(src, None, bridged)
        return OfferTokens(src, dest, bridged)

    async def _tell_why(self, record: OrderRecord) -> None:
        """Pass the venue's reasons why an order is not settled yet to the caller's `tell`.

        A refusal by the venue is ignored, since the reasons only inform.
        """
        with suppress(VenueError):
            reasons = (await self._client.explanation(record.id)).reasons
            chain_id = record.input.chain_id
            tokens: dict[tuple[int, str], TokenEntry] = {}
            for chain in {chain_id, record.output.chain_id} if reasons else ():
                with suppress(VenueError):  # amounts of a chain without a list stay in raw units
                    listed = await self.tokens(chain)
                    tokens |= {(chain, token.address.lower()): token for token in listed.tokens}
            for reason in reasons:
                self._tell(reason_text(reason, chain_id, tokens))


def _id_of(order: Order) -> str:
    return order if isinstance(order, str) else order.id or order.order_hash
