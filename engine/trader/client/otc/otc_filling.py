"""An OTC order filled by its taker, whole or in part: from a venue's or a file's order to the receipt.

    standing  the order's hash -> unfilled rest, the chain's time, the maker's balance, allowance, signature
    offer     the part, within the maker's funds -> the taker's balance and allowance -> simulated
    (the taker agrees)
    fill      approve, or sign a permit -> simulated again -> signed -> sent -> the OrderFilled event
    rehearse  as `fill` up to the simulation, unless an approval must come first; nothing is sent

    fillOrder                        all of an untouched order
    partialFillOrder                 a part, or the rest
    partialFillOrderWithTargetPermit any fill in which either side's permit replaces an allowance

Only the chain is trusted, so that an order from a file needs no venue.

Source: spec 2.11.1 to 2.11.6; interop.md 1; contracts/Rfq.sol.
Choice: A fill is simulated before its approval, so that an approval is never paid for a fill that is refused
    anyway.
"""

from msgspec import Struct

from .....codecs.contracts import calldata
from .....codecs.contracts.calldata import OrderInfo
from .....codecs.contracts.permit import rfq_permit_amount
from .....codecs.eip712_orders.rfq import RfqOrder
from .....config.errors import ChainError, Reverted
from .....config.timeouts import TRADER_DEADLINE_S
from .....crypto.addresses import to_checksum
from ....chain.port import EthCall, Receipt
from ....chain.together import both
from ....chain.transact import StepFailedError, gas_needed
from ..allowing import Held, MissingAllowance, held
from ..following import balance_remarks
from ..outcome import SentOutcome, TradeVerdict, failed_outcome, mined_outcome
from ..permits import accepted, trial_calls
from ..terms import TradedToken
from ..trader import Trader
from ..trusted_contract import SigningContract
from .otc_reading import check_signed, standing_of
from .otc_safety import OtcOnChain, check_fillable, check_funded, fill_in
from .otc_terms import OtcPart, SignedOtc

_FINAL = frozenset(
    (
        "Order expired",
        "Access denied",
        "Order already filled or expired",
        "Invalid Signature",
        "Invalid Taker amount",
        "Maker token fill amount cannot be 0",
        "Invalid amount",
        "Permit failed",
    )
)
"""Revert reasons of a fill that would remain after the taker's approval, so that the fill fails in any case
(interop.md 1)."""


class FillOffer(Struct, frozen=True, kw_only=True):
    """The terms of filling an OTC order, shown to the taker before anything is signed.

    Attributes:
        gives, gets: the tokens that the taker gives (the taker's asset) and gets (the maker's asset).
        standing: the order's state on chain, before the fill.
        shows_permit: whether the fill uses the maker's permit, in place of an allowance that the maker lacks.
        held: the taker's balance and allowance of the token that the taker gives.
    """

    signed: SignedOtc
    contract: SigningContract
    gives: TradedToken
    gets: TradedToken
    part: OtcPart
    standing: OtcOnChain
    shows_permit: bool
    held: Held

    @property
    def order(self) -> RfqOrder:
        """The order that the maker signed."""
        return self.signed.order

    @property
    def missing(self) -> MissingAllowance | None:
        """The allowance of the taker that the RFQ contract needs for the fill and lacks; None if it lacks
        none."""
        return self.held.missing(self.part.taker_amount)

    @property
    def left(self) -> int:
        """Unfilled raw units of the maker's amount, before the fill."""
        return self.standing.left(self.order)


class OtcFiller:
    """Fills OTC orders on chain for one key, the taker.

    Args:
        trader: the key's account; its `allowing` says how the RFQ contract gets a missing allowance.
    """

    def __init__(self, trader: Trader, contract: SigningContract) -> None:
        self._trader = trader
        self._chain = trader.chain
        self._account = trader.key.address
        self._contract = contract
        self._tell = trader.tell

    async def standing(self, signed: SignedOtc, closed: str = "") -> OtcOnChain:
        """Read an order's on-chain state, and check that this key may fill the order.

        Args:
            closed: text about how a closed order ended, for the error; empty if not known.

        Raises:
            ChainError: the key may not fill the order, or the maker did not sign it.
        """
        self._tell("looking at the order on chain")
        standing = await standing_of(self._chain, self._contract, signed)
        check_fillable(signed.order, standing, self._account, closed)
        if not standing.kept:
            await check_signed(self._chain, self._contract, signed)
        return standing

    async def offer(
        self, signed: SignedOtc, standing: OtcOnChain, part: OtcPart, gives: TradedToken, gets: TradedToken
    ) -> FillOffer:
        """Check the maker's and the taker's funds for a fill, and simulate the fill.

        While the taker's allowance is missing, the method ignores a revert of the simulation, unless the
        revert's reason shows that an approval would not help.

        Args:
            signed: the order.
            standing: the order's state on chain.
            part: the amounts of the fill.
            gives, gets: the tokens that the taker gives and gets.

        Raises:
            ChainError: the maker lacks balance or allowance, the token refuses the maker's permit, the taker
                lacks balance, or the contract would refuse the fill.
        """
        order, contract = signed.order, self._contract
        permitted = rfq_permit_amount(signed.permit, order.maker, contract.address)
        shows_permit = check_funded(order, standing, part, permitted, gets)
        has = await held(self._chain, gives, self._account, contract.address)
        has.check_balance(part.taker_amount)
        offer = FillOffer(
            signed=signed,
            contract=contract,
            gives=gives,
            gets=gets,
            part=part,
            standing=standing,
            shows_permit=shows_permit,
            held=has,
        )
        try:
            await self._chain.call(self._call(offer))
        except Reverted as refusal:
            # This simulation is without the missing allowance, whose revert has any words of the token.
            if offer.missing is None or refusal.reason in _FINAL:
                raise
            # Nor has the revert the reason of a token that answers a permit without an effect.
            if shows_permit:
                await self._check_permit(signed)
        return offer

    async def rehearse(self, offer: FillOffer) -> SentOutcome:
        """Simulate the fill and estimate its gas, without sending a transaction.

        If an approval must come first, the method does neither, and the outcome's gas is 0.

        Raises:
            ChainError: the fill would revert, or the chain does not answer.
        """
        gas = 0
        if not self._trader.allowing.approves(offer.missing):
            call = self._call(offer, await self._permit(offer))
            _, gas = await both(lambda: self._chain.call(call), lambda: gas_needed(self._chain, call))
        spent, received = offer.part.taker_amount, offer.part.maker_amount
        return SentOutcome(
            verdict=TradeVerdict.REHEARSED, step="fill", spent=spent, received=received, gas=gas
        )

    async def fill(self, offer: FillOffer) -> SentOutcome:
        """Fill the order: approve or sign a permit, simulate, sign and send, and read the OrderFilled event.

        Raises:
            ChainError: the fill would revert, was refused, or the chain does not answer; no fill was sent.
        """
        try:
            await self._trader.approve(offer.missing)
            call = self._call(offer, await self._permit(offer))
            self._tell("simulating the fill")
            await self._chain.call(call)
            receipt = await self._trader.send("fill", call, offer.contract.address)
        except StepFailedError as failed:
            return failed_outcome(failed, "it was not mined in time, and may still be")
        return await self._proven(offer, receipt)

    # --- Parts ------------------------------------------------------------------------------------

    async def _check_permit(self, signed: SignedOtc) -> None:
        """Check that the token accepts the maker's permit, which the fill needs.

        Raises:
            ChainError: the token refuses the permit, or accepts any.
        """
        token = signed.order.maker_asset
        calls = trial_calls([signed.permit], token, self._contract.address)
        permit, reason = accepted([signed.permit], await self._chain.call_many(calls))
        if not permit:
            raise ChainError(f"{to_checksum(token)}: {reason}")

    def _call(self, offer: FillOffer, permit: bytes = b"") -> EthCall:
        """The call of the RFQ contract that fills the order.

        Args:
            permit: the taker's permit; empty for none.
        """
        signed, part, taker = offer.signed, offer.part, self._account
        order = signed.order
        if permit or offer.shows_permit:
            makers = signed.permit if offer.shows_permit else b""
            info = OrderInfo(order, signed.signature, part.taker_amount, permit, makers)
            data = calldata.partial_fill_order_with_target_permit(info, taker)
        elif not offer.standing.kept and part == OtcPart(order.taker_amount, order.maker_amount):
            data = calldata.fill_order(order, signed.signature)
        else:
            data = calldata.partial_fill_order(order, signed.signature, part.taker_amount)
        return EthCall(offer.contract.address, data, taker)

    async def _permit(self, offer: FillOffer) -> bytes:
        deadline = await self._trader.clock_s() + TRADER_DEADLINE_S
        return await self._trader.permit(offer.missing, deadline)

    async def _proven(self, offer: FillOffer, receipt: Receipt) -> SentOutcome:
        """The outcome of a fill whose transaction succeeded; UNKNOWN if the receipt has no event of this
        fill, or one with other amounts."""
        event = fill_in(receipt, offer.contract, offer.signed.order_hash, self._account)
        if event is None:
            reason = "it was mined, without the RFQ contract's event of the fill"
            return mined_outcome(receipt, TradeVerdict.UNKNOWN, "fill", reason=reason)
        verdict, reason = TradeVerdict.FILLED, ""
        if (event.taker_amount, event.maker_amount) != (offer.part.taker_amount, offer.part.maker_amount):
            verdict = TradeVerdict.UNKNOWN
            reason = (
                f"{offer.part.maker_amount} raw units were agreed, the contract tells of {event.maker_amount}"
            )
        spent, received = event.taker_amount, event.maker_amount
        by_block = {receipt.block_number: received}
        remarks = await balance_remarks(self._chain, offer.order.maker_asset, self._account, by_block)
        return mined_outcome(
            receipt, verdict, "fill", spent=spent, received=received, reason=reason, remarks=remarks
        )
