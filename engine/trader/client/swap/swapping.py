"""A Market swap from the price request to the receipt; `terms` and `safety` hold the decisions.

    offer     contracts.json -> the Router and its code -> GET /prices -> balance and allowance on the chain
    (the trader agrees)
    perform   approve if needed -> a new price if the first is aged -> the permit, if it replaces an approval
              -> the consent -> POST /transactions -> checked -> simulated -> signed -> sent -> followed by
              its receipt
    rehearse  as `perform` up to the simulation, unless an approval must come first; nothing is sent

The Router is trusted for its code: the contract at the address that the venue names must be this release's
Router, unless the trader pins the address. By default, approvals are for the exact amount.

Source: spec 1.1.8 to 1.1.11, 1.3.2; choices.md#quotes-and-routes (a route lives for 30 s).
"""

import trio
from msgspec import Struct

from .....codecs.contracts.contract_events import Swapped
from .....codecs.messages.market_messages import PriceRoute
from .....config import limits
from .....config.errors import UnsafeTransaction, VenueError
from .....config.timeouts import TRADER_DEADLINE_S
from ....chain.port import EthCall, Receipt
from ....chain.together import both
from ....chain.transact import StepFailedError, gas_needed
from ..allowing import Held, MissingAllowance, held
from ..client import ReceivedRoute
from ..outcome import SentOutcome, TradeVerdict, failed_outcome, mined_outcome
from ..safety import check_envelope, check_route, contract_events, fee_bps_of, told_number
from ..terms import BoundedTrade, Terms, Wish, limit_of, quoted_of, swap_consent, transaction_body
from ..trader import VenueTrader
from ..trusted_contract import ROUTER, trusted_address

ROUTE_AGED_S = limits.ROUTE_FRESH_MS / 1_000 / 2


class Offer(BoundedTrade, frozen=True, kw_only=True):
    """A Market swap's terms, shown to the trader before anything is signed.

    Attributes:
        priced_at: time of the price, seconds of trio's clock.
        held: the user's balance and allowance of the source token.
    """

    wish: Wish
    router: bytes
    priced: ReceivedRoute
    priced_at: float
    held: Held

    @property
    def route(self) -> PriceRoute:
        """The Market route of the offered price."""
        return self.priced.route

    @property
    def missing(self) -> MissingAllowance | None:
        """The allowance that the Router needs for the swap and lacks; None if it lacks none."""
        return self.held.missing(self.src_amount_max)


class _CheckedSwap(Struct, frozen=True):
    """A swap's transaction, checked and simulated.

    Attributes:
        moved: the simulated result, raw units: received for SELL, spent for BUY.
    """

    call: EthCall
    gas: int
    moved: int


class Swapper(VenueTrader):
    """Makes Market swaps with one key on one chain through one venue."""

    async def offer(self, wish: Wish, pinned: bytes | None = None) -> Offer:
        """Ask the venue for a price of the wished swap, and read the user's balance and allowance on chain.

        Args:
            pinned: the Router that the trader insists on; its code is not checked.

        Raises:
            PolicyError: the wish is of another chain than the trader.
            VenueError: the venue has no price, or its route is not the requested one.
            ChainError: the source balance is too low, or the chain does not answer.
        """
        self._trader.check_chain(wish.chain_id)
        self._tell("looking at the router")
        self._tell("asking for a price")
        router, priced = await both(
            lambda: trusted_address(self._chain, self._venue, ROUTER, pinned),
            lambda: self._venue.prices(wish),
        )
        _check_priced(priced, wish, router)
        limit = limit_of(priced.route, wish.side, wish.slippage_bps)
        if limit == 0:
            raise VenueError("this slippage allows a receipt of 0: use less slippage")
        has, now = await held(self._chain, wish.src, wish.user, router), trio.current_time()
        offer = Offer(wish=wish, limit=limit, router=router, priced=priced, priced_at=now, held=has)
        has.check_balance(offer.src_amount_max)
        return offer

    async def rehearse(self, offer: Offer) -> SentOutcome | None:
        """Build, check and simulate the swap without sending it; None if an approval must come first.

        Raises:
            VenueError, ChainError: the venue has no safe transaction within the bound, or the swap would
                revert.
        """
        if self._trader.allowing.approves(offer.missing):
            return None
        built = await self._built(offer)
        wish, moved = offer.wish, built.moved
        spent, received = (wish.amount, moved) if wish.is_sale else (moved, wish.amount)
        return SentOutcome(
            verdict=TradeVerdict.REHEARSED, step="swap", spent=spent, received=received, gas=built.gas
        )

    async def perform(self, offer: Offer) -> SentOutcome:
        """Make the agreed swap, at the offer's bound or better: approve or sign a permit, have the
        transaction built, check, simulate, sign and send it.

        Raises:
            VenueError: the venue has no route within the bound any more, or its transaction is unsafe; no
                swap was signed.
            ChainError: the swap would revert, was refused, or the chain does not answer; no swap was sent.
        """
        value_max_wei = offer.src_amount_max if offer.wish.src.is_native else 0
        try:
            await self._trader.approve(offer.missing)
            built = await self._built(offer)
            self._tell("signing the swap")
            receipt = await self._trader.send(
                "swap", built.call, offer.router, value_max_wei=value_max_wei, gas=built.gas
            )
        except StepFailedError as failed:
            return failed_outcome(failed)
        return swapped_outcome(receipt, offer.router, offer.wish.user)

    # --- Parts ------------------------------------------------------------------------------------

    async def _fresh(self, offer: Offer) -> ReceivedRoute:
        """The route of the offer, or a new route if the offer is older than ROUTE_AGED_S seconds.

        Raises:
            VenueError: the new price is worse than the agreed bound, or the partner's fee has risen.
        """
        if trio.current_time() - offer.priced_at < ROUTE_AGED_S:
            return offer.priced
        self._tell("asking for the price again")
        wish = offer.wish
        priced = await self._venue.prices(wish)
        _check_priced(priced, wish, offer.router)
        now = quoted_of(priced.route, wish.side)
        if not offer.keeps(now):
            raise VenueError(f"the price has moved beyond the slippage: {now} now, {offer.limit} was agreed")
        if fee_bps_of(priced.route) > fee_bps_of(offer.route):
            raise VenueError("the partner's fee is above the agreed fee")
        return priced

    async def _built(self, offer: Offer) -> _CheckedSwap:
        """Have the venue build the swap's transaction, then check and simulate it before it is signed."""
        priced, clock_s = await both(lambda: self._fresh(offer), self._trader.clock_s)
        deadline = clock_s + TRADER_DEADLINE_S
        terms = Terms(
            wish=offer.wish,
            limit=offer.limit,
            fee_bps=fee_bps_of(priced.route),
            router=offer.router,
            deadline=deadline,
            permit=await self._trader.permit(offer.missing, deadline),
        )
        self._tell("asking the makers for firm quotes")
        consent = self._trader.consent(swap_consent(terms), offer.router)
        body = transaction_body(terms, priced.raw, consent)
        envelope = await self._venue.transaction(offer.wish.chain_id, body)
        data, value_wei = check_envelope(envelope, terms)
        self._tell("simulating the swap")
        call = EthCall(offer.router, data, offer.wish.user, value_wei)
        fault = "the router's answer to a simulation has no amount"
        answer, gas = await both(
            lambda: self._chain.call(call), lambda: gas_needed(self._chain, call)
        )  # firm quotes grow older meanwhile
        moved = told_number(answer, fault)
        if not offer.keeps(moved):
            name, least = ("receipt", "at least") if offer.wish.is_sale else ("spending", "at most")
            raise UnsafeTransaction(f"simulated {name}", f"{least} {offer.limit}", moved)
        return _CheckedSwap(call, gas, moved)


def _check_priced(priced: ReceivedRoute, wish: Wish, router: bytes) -> None:
    """Check that a venue's price is of the wished swap. Raises VenueError."""
    check_route(priced.route, wish, router)
    if wish.max_impact is not None and priced.route.max_impact_reached:
        raise VenueError(f"the price impact is above {wish.max_impact} %, or not known")


def swapped_outcome(receipt: Receipt, router: bytes, user: bytes) -> SentOutcome:
    """The outcome of a swap whose transaction succeeded; UNKNOWN if the receipt has no event of this user's
    swap."""
    for event in contract_events(receipt, router, Swapped):
        if event.sender == user:
            return mined_outcome(
                receipt, TradeVerdict.SWAPPED, "swap", spent=event.spent, received=event.received
            )
    reason = "it was mined, without the Router's event of a swap"
    return mined_outcome(receipt, TradeVerdict.UNKNOWN, "swap", reason=reason)
