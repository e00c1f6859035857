"""An OTC order filled by its taker, whole or in part: from what a venue or a file says to the receipt.

    offer     the order's hash -> what is left, the chain's time, the maker's signature, balance and allowance
              -> the part -> the taker's balance and allowance -> simulated
    (the taker agrees)
    fill      approve, or sign a permit -> simulated again -> signed -> sent -> the OrderFilled event
    rehearse  the same without approving, signing a transaction and sending

    fillOrder                        all of an order of which nothing was filled
    partialFillOrder                 a part, or the rest
    partialFillOrderWithTargetPermit either, where a permit of one side's stands for an allowance

Nothing but the chain is believed: an order that a file hands over needs no venue.

Source: spec 2.11.1 to 2.11.6; interop.md 1; contracts/Rfq.sol.
Choice: A fill is simulated before its approval, so that an approval is never paid for a fill that is refused
    anyway.
"""

from collections.abc import Callable
from enum import Enum

from msgspec import Struct

from ....codecs.contracts import calldata
from ....codecs.contracts.calldata import OrderInfo
from ....codecs.contracts.permit import rfq_permit_amount
from ....codecs.eip712_orders.rfq import RfqOrder
from ....config.errors import ChainError, Reverted
from ....config.timeouts import TRADER_DEADLINE_S
from ....crypto.addresses import to_checksum
from ....crypto.secp256k1 import SigningKey
from ...chain.port import Chain, EthCall, Receipt
from ..allowing import Allowing, approve_spender, held, signed_permit
from ..order.order_following import balance_remarks
from ..order.order_placing import policed
from ..sending import StepFailedError, first_step, gas_needed
from ..terms import TradedToken, amount_text
from .otc_reading import check_signed, latest, standing_of
from .otc_safety import OtcOnChain, check_fillable, check_funded, fill_in
from .otc_terms import OtcPart, RfqContract, SignedOtc

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
"""What the contract says of an order that no approval of the taker's makes fillable (interop.md 1)."""


class FillOffer(Struct, frozen=True, kw_only=True):
    """What the taker agrees to.

    Attributes:
        gives, gets: the taker's and the maker's asset.
        left: of the maker's amount, before.
        shows_permit: the maker's permit stands for its allowance.
        balance, allowance: the taker's, raw units.
    """

    signed: SignedOtc
    contract: RfqContract
    gives: TradedToken
    gets: TradedToken
    part: OtcPart
    left: int
    is_untouched: bool
    shows_permit: bool
    balance: int
    allowance: int

    @property
    def order(self) -> RfqOrder:
        """What the maker signed."""
        return self.signed.order

    @property
    def must_allow(self) -> bool:
        """Whether the RFQ contract may not take what is given yet."""
        return self.allowance < self.part.taker_amount


class FillVerdict(Enum):
    """How it ended."""

    FILLED = "filled"
    REHEARSED = "rehearsed"
    REVERTED = "reverted"
    UNKNOWN = "unknown"


class FillOutcome(Struct, frozen=True, kw_only=True):
    """What became of it.

    Attributes:
        step: the transaction that it is about: `fill`, or the `approval` that came to nothing.
        tx_hash: 32 bytes; empty for a rehearsal.
        given, received: raw units, as the contract's event says; of a rehearsal, as agreed.
        reason: of a revert, or why it is not known.
        remarks: what else is to be known.
    """

    verdict: FillVerdict
    step: str = "fill"
    tx_hash: bytes = b""
    block_number: int = 0
    given: int = 0
    received: int = 0
    gas: int = 0
    gas_price_wei: int = 0
    reason: str = ""
    remarks: tuple[str, ...] = ()


class OtcFiller:
    """Fills orders for one key on one chain.

    Args:
        wall_s: the wall clock, Unix seconds.
        tell: one line of progress; a hash is told before anything is waited for.
        allowing: how the RFQ contract is allowed to take what is given where it may not yet.
    """

    def __init__(
        self,
        chain: Chain,
        key: SigningKey,
        contract: RfqContract,
        *,
        wall_s: Callable[[], int],
        tell: Callable[[str], None],
        allowing: Allowing = Allowing.EXACT,
    ) -> None:
        self._chain = chain
        self._key = key
        self._contract = contract
        self._wall_s = wall_s
        self._tell = tell
        self._allowing = allowing

    async def standing(self, signed: SignedOtc, closed: str = "") -> OtcOnChain:
        """What the chain says of an order that this key may fill.

        Args:
            closed: what is known of an order that is closed.

        Raises:
            ChainError: it may not, or the maker did not sign it; says why.
        """
        self._tell("looking at the order on chain")
        standing = await standing_of(self._chain, self._contract, signed)
        check_fillable(signed.order, standing, self._key.address, closed)
        if not standing.kept:
            await check_signed(self._chain, self._contract, signed)
        return standing

    async def offer(
        self, signed: SignedOtc, standing: OtcOnChain, part: OtcPart, gives: TradedToken, gets: TradedToken
    ) -> FillOffer:
        """What it takes, once it is certain that the contract lets it happen.

        Args:
            part: what is taken.
            gives, gets: the order's taker and maker asset.

        Raises:
            ChainError: one side lacks, or the contract would refuse.
        """
        order, contract = signed.order, self._contract
        permitted = rfq_permit_amount(signed.permit, order.maker, contract.address)
        shows_permit = check_funded(order, standing, part, permitted, gets)
        balance, allowance = await held(self._chain, gives, self._key.address, contract.address)
        if balance < part.taker_amount:
            raise ChainError(
                f"{to_checksum(self._key.address)} has {amount_text(balance, gives)}, "
                f"and {amount_text(part.taker_amount, gives)} is needed"
            )
        offer = FillOffer(
            signed=signed,
            contract=contract,
            gives=gives,
            gets=gets,
            part=part,
            left=standing.left(order),
            is_untouched=not standing.kept,
            shows_permit=shows_permit,
            balance=balance,
            allowance=allowance,
        )
        try:
            await self._chain.call(self._call(offer))
        except Reverted as refusal:
            if not offer.must_allow or refusal.reason in _FINAL:
                raise
        return offer

    async def rehearse(self, offer: FillOffer) -> FillOutcome:
        """Everything but approving and sending; gas is known where nothing has to be approved.

        Raises:
            ChainError: as `fill`.
        """
        gas = 0
        if not offer.must_allow or self._allowing is Allowing.PERMIT:
            call = self._call(offer, await self._permit(offer))
            await self._chain.call(call)
            gas = await gas_needed(self._chain, call)
        part = offer.part
        return FillOutcome(
            verdict=FillVerdict.REHEARSED, given=part.taker_amount, received=part.maker_amount, gas=gas
        )

    async def fill(self, offer: FillOffer) -> FillOutcome:
        """Do it.

        Raises:
            ChainError: it would be refused, was not taken, or the chain does not answer; no fill was sent.
        """
        token, rfq = offer.order.taker_asset, offer.contract.address
        try:
            if offer.must_allow and self._allowing is not Allowing.PERMIT:
                await approve_spender(
                    self._chain,
                    policed(self._key, offer.contract.chain_id, token, 0),
                    token,
                    rfq,
                    amount=offer.part.taker_amount,
                    allowance=offer.allowance,
                    any_amount=self._allowing is Allowing.MOST,
                    tell=self._tell,
                )
            call = self._call(offer, await self._permit(offer))
            self._tell("simulating the fill")
            await self._chain.call(call)
            key = policed(self._key, offer.contract.chain_id, rfq, 0)
            receipt = await first_step(self._chain, key, "fill", call, self._tell)
        except StepFailedError as failed:
            return _failed(failed)
        return await self._proven(offer, receipt)

    # --- Parts ------------------------------------------------------------------------------------

    def _call(self, offer: FillOffer, permit: bytes = b"") -> EthCall:
        """What is sent.

        Args:
            permit: the taker's.
        """
        signed, part, taker = offer.signed, offer.part, self._key.address
        order = signed.order
        if permit or offer.shows_permit:
            info = OrderInfo(
                order,
                signed.signature,
                part.taker_amount,
                permit,
                signed.permit if offer.shows_permit else b"",
            )
            data = calldata.partial_fill_order_with_target_permit(info, taker)
        elif offer.is_untouched and part == OtcPart(order.taker_amount, order.maker_amount):
            data = calldata.fill_order(order, signed.signature)
        else:
            data = calldata.partial_fill_order(order, signed.signature, part.taker_amount)
        return EthCall(offer.contract.address, data, taker)

    async def _permit(self, offer: FillOffer) -> bytes:
        if not offer.must_allow or self._allowing is not Allowing.PERMIT:
            return b""
        self._tell("signing a permit")
        now_s = max(self._wall_s(), (await latest(self._chain)).time_s)
        token, amount = offer.order.taker_asset, offer.part.taker_amount
        return await signed_permit(
            self._chain, self._key, token, offer.contract.address, amount, now_s + TRADER_DEADLINE_S
        )

    async def _proven(self, offer: FillOffer, receipt: Receipt) -> FillOutcome:
        """What a transaction that succeeded moved; UNKNOWN without the event of this very fill."""
        event = fill_in(receipt, offer.contract, offer.signed.order_hash, self._key.address)
        if event is None:
            reason = "it was mined, without the RFQ contract's event of the fill"
            return _mined(receipt, FillVerdict.UNKNOWN, reason=reason)
        moved = OtcPart(event.taker_amount, event.maker_amount)
        verdict, reason = FillVerdict.FILLED, ""
        if moved != offer.part:
            verdict = FillVerdict.UNKNOWN
            reason = (
                f"{offer.part.maker_amount} raw units were agreed, the contract tells of {moved.maker_amount}"
            )
        shown = balance_remarks(
            self._chain,
            offer.order.maker_asset,
            self._key.address,
            {receipt.block_number: moved.maker_amount},
        )
        return _mined(
            receipt, verdict, moved=moved, reason=reason, remarks=tuple([remark async for remark in shown])
        )


def _failed(failed: StepFailedError) -> FillOutcome:
    """It ended before it was done."""
    if failed.receipt is None:
        reason = "it was not mined in time, and may still be"
        return FillOutcome(
            verdict=FillVerdict.UNKNOWN, step=failed.step, tx_hash=failed.tx_hash, reason=reason
        )
    return _mined(failed.receipt, FillVerdict.REVERTED, step=failed.step, reason=failed.reason)


def _mined(
    receipt: Receipt,
    verdict: FillVerdict,
    *,
    step: str = "fill",
    moved: OtcPart = OtcPart(0, 0),  # noqa: B008  it is frozen
    reason: str = "",
    remarks: tuple[str, ...] = (),
) -> FillOutcome:
    return FillOutcome(
        verdict=verdict,
        step=step,
        tx_hash=receipt.tx_hash,
        block_number=receipt.block_number,
        given=moved.taker_amount,
        received=moved.maker_amount,
        gas=receipt.gas_used,
        gas_price_wei=receipt.gas_price_wei,
        reason=reason,
        remarks=remarks,
    )
