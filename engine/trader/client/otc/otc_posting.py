"""An OTC order from the wish until the venue has accepted it.

    offer   contracts.json -> the RFQ contract, its code and its domain -> balance and allowance on the chain
            -> GET /ft/fillablebalance, the amount that older orders leave
    (the maker agrees)
    post    approve, or sign a permit -> signed -> POST /ft/p2p/{chainId} -> the answer equals the order

The RFQ contract is trusted for its code, like a swap's Router, unless the maker pins the address. An order
above the maker's balance may be posted: the venue suspends it.

Source: spec 2.2; choices.md#otc-orders; contracts/Rfq.sol.
Choice: A permit posted with an order covers the order's whole amount until the order expires; the first fill
    uses the permit.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from .....codecs.amounts import parse_amount
from .....codecs.messages.otc_messages import StoredOrder
from .....config import limits
from .....config.errors import InvalidInput, VenueError
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import to_hex
from .....crypto.signatures import to_65
from ....chain.together import both
from ..allowing import Allowing, Held, MissingAllowance, held
from ..following import Placed, placed
from ..trader import VenueTrader
from ..trusted_contract import RFQ, SigningContract, signing_contract
from .otc_safety import check_stored
from .otc_terms import OtcWish, SignedOtc, body_of, order_of, otc_order_hash


class OtcOffer(Struct, frozen=True, kw_only=True):
    """An OTC order's terms, shown to the maker before anything is signed.

    Attributes:
        held: the maker's balance and allowance of the sold token.
        fillable: raw units of the sold token that the maker's older orders leave for this one, by the venue's
            answer.
        allowing: the way in which a missing allowance is given to the RFQ contract.
    """

    wish: OtcWish
    contract: SigningContract
    held: Held
    fillable: int
    allowing: Allowing = Allowing.EXACT

    @property
    def missing(self) -> MissingAllowance | None:
        """The allowance that the RFQ contract lacks for the order; None if it lacks none.

        With Allowing.MOST (an approval of any amount), an allowance that the maker's older orders use up is
        missing too.
        """
        amount, has = self.wish.src_amount, self.held
        if self.allowing is Allowing.MOST and self.is_held_back:
            return MissingAllowance(has.token.address, has.spender, amount, has.allowance)
        return has.missing(amount)

    @property
    def is_held_back(self) -> bool:
        """Whether the maker's older orders use up too much allowance, and a higher allowance could help."""
        return self.fillable < self.wish.src_amount and self.held.allowance < self.held.balance

    @property
    def is_short(self) -> bool:
        """Whether the balance is below the sold amount, so that the venue suspends the order."""
        return self.held.balance < self.wish.src_amount


class OtcPoster(VenueTrader):
    """Posts OTC orders of one key, the maker, on one chain at one venue."""

    async def offer(self, wish: OtcWish, pinned: bytes | None = None) -> OtcOffer:
        """Read the facts that the maker needs to agree to an order: the RFQ contract, the balance, the
        allowance, and the amount that older orders leave.

        Args:
            pinned: the RFQ contract that the maker insists on; its code is not checked.

        Raises:
            PolicyError: the wish is of another chain than the trader.
            VenueError, ChainError, UnsafeTransaction: as `signing_contract`; or the sold asset is no token,
                or the venue does not report the fillable amount.
        """
        self._trader.check_chain(wish.chain_id)
        self._tell("looking at the RFQ contract")
        contract = await signing_contract(self._chain, self._venue, RFQ, pinned)
        self._tell("looking at balance and allowance")
        has, fillable = await both(
            lambda: held(self._chain, wish.src, wish.maker, contract.address), lambda: self._fillable(wish)
        )
        allowing = self._trader.allowing
        return OtcOffer(wish=wish, contract=contract, held=has, fillable=fillable, allowing=allowing)

    async def post(
        self, offer: OtcOffer, about_to: Callable[[SignedOtc], None] | None = None
    ) -> tuple[SignedOtc, Placed[StoredOrder]]:
        """Approve or sign a permit, then sign the order and post it to the venue.

        Args:
            about_to: receives the signed order before it is posted.

        Returns:
            (the signed order, the venue's answer).

        Raises:
            StepFailedError: the approval failed, or may still be mined; no order was signed.
            VenueError: the venue refuses the order.
            ChainError: the approval would be refused, or the chain does not answer.
        """
        wish = offer.wish
        # Before the signature, from which the expiry counts: the wait for the approval shortens no order.
        await self._trader.approve(offer.missing)
        signed = await self._signed(offer)
        # Before the post: an interrupt from here on may leave a live order, which the caller then knows.
        if about_to is not None:
            about_to(signed)
        self._tell(f"posting the order {to_hex(signed.order_hash)}")
        return signed, await placed(
            signed.order_hash,
            partial(self._venue.post_otc, wish.chain_id, body_of(signed)),
            self._venue.otc_order,
            partial(check_stored, signed=signed, contract=offer.contract),
            self._tell,
        )

    # --- Parts ------------------------------------------------------------------------------------

    async def _signed(self, offer: OtcOffer) -> SignedOtc:
        """Sign the agreed OTC order; its expiry counts from the later of the trader's clock and the
        chain's."""
        order = order_of(offer.wish, await self._trader.clock_s(), self._trader.random32())
        permit = await self._trader.permit(offer.missing, order.expiry or limits.UINT256_MAX)
        order_hash = otc_order_hash(offer.contract, order)
        self._tell(f"signing the order {to_hex(order_hash)}")
        return SignedOtc(order, order_hash, to_65(*self._trader.key.sign(order_hash)), permit)

    async def _fillable(self, wish: OtcWish) -> int:
        """Raw units of the sold token that the maker's older orders leave, by the venue's answer.

        Raises:
            VenueError: the venue does not answer, or not with an amount.
        """
        token = to_checksum(wish.src.address)
        fillable = await self._venue.otc_fillable(wish.chain_id, to_checksum(wish.maker), token)
        try:
            return parse_amount(fillable.get(token.lower(), "0"), token.lower())
        except InvalidInput as fault:
            raise VenueError(f"GET /ft/fillablebalance: {fault.detail}") from None
