"""An OTC order from the wish until the venue has taken it.

    offer   contracts.json -> the RFQ contract, its code and its domain -> balance and allowance on the chain
            -> GET /ft/fillablebalance, what older orders leave of them
    (the maker agrees)
    post    approve, or sign a permit -> signed -> POST /ft/p2p/{chainId} -> the answer is of that order

The RFQ contract is trusted for its code, as the Router of a swap is, unless the maker pins the address.

An order above the maker's balance is posted on request: the venue suspends it.

Source: spec 2.2; choices.md#otc-orders; contracts/Rfq.sol.
Choice: A permit posted with an order covers its whole amount until it expires; the first fill shows it.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from ....codecs.amounts import parse_amount
from ....codecs.messages.otc_messages import StoredOrder
from ....config import limits
from ....config.errors import InvalidInput, VenueError
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.signatures import to_65
from ..allowing import Allowing, MissingAllowance, held
from ..client import VenueClient
from ..submitting import submitted
from ..trader import Trader
from ..trusted_contract import RFQ, SigningContract, signing_contract
from .otc_safety import check_stored
from .otc_terms import OtcWish, SignedOtc, body_of, order_of, otc_order_hash


class OtcOffer(Struct, frozen=True, kw_only=True):
    """What the maker agrees to.

    Attributes:
        balance, allowance: raw units of what is sold.
        fillable: of them, what the maker's older orders leave; as the venue says.
        allowing: how the RFQ contract is allowed to take what is sold where it may not yet.
    """

    wish: OtcWish
    contract: SigningContract
    balance: int
    allowance: int
    fillable: int
    allowing: Allowing = Allowing.EXACT

    @property
    def missing(self) -> MissingAllowance | None:
        """The allowance that the RFQ contract lacks; an approval of any amount covers older orders too."""
        wish = self.wish
        is_for_more = self.allowing is Allowing.MOST and self.is_held_back
        if self.allowance >= wish.src_amount and not is_for_more:
            return None
        return MissingAllowance(wish.src.address, self.contract.address, wish.src_amount, self.allowance)

    @property
    def is_held_back(self) -> bool:
        """Whether older orders leave less than it sells, since the contract may take less than there is."""
        return self.fillable < self.wish.src_amount and self.allowance < self.balance

    @property
    def is_short(self) -> bool:
        """Whether the balance does not cover it: the order is suspended then."""
        return self.balance < self.wish.src_amount


class Posted(Struct, frozen=True):
    """An order that was handed in.

    Attributes:
        stored: the venue's; None where it is not known whether the venue took the order: `fault` says why.
    """

    signed: SignedOtc
    stored: StoredOrder | None
    fault: str = ""


class OtcPoster:
    """Posts orders of one key on one chain at one venue.

    Args:
        trader: its `allowing` is about the RFQ contract.
    """

    def __init__(self, trader: Trader, venue: VenueClient) -> None:
        self._trader = trader
        self._chain = trader.chain
        self._venue = venue
        self._tell = trader.tell

    async def offer(self, wish: OtcWish, pinned: bytes | None = None) -> OtcOffer:
        """What it takes, and what of it is there.

        Raises:
            VenueError, ChainError, UnsafeTransaction: as `signing_contract`; or what is sold is no token.
        """
        self._tell("looking at the RFQ contract")
        contract = await signing_contract(self._chain, self._venue, RFQ, pinned)
        self._tell("looking at balance and allowance")
        balance, allowance = await held(self._chain, wish.src, wish.maker, contract.address)
        fillable = await self._fillable(wish)
        return OtcOffer(
            wish=wish,
            contract=contract,
            balance=balance,
            allowance=allowance,
            fillable=fillable,
            allowing=self._trader.allowing,
        )

    async def post(self, offer: OtcOffer, about_to: Callable[[SignedOtc], None] | None = None) -> Posted:
        """Do it.

        Args:
            about_to: told the order before it leaves.

        Raises:
            StepFailedError: the approval came to nothing; nothing was signed.
            VenueError: it refuses.
            ChainError: the approval would be refused, or the chain does not answer.
        """
        wish = offer.wish
        await self._trader.approve(offer.missing)
        signed = await self._signed(offer)
        if about_to is not None:
            about_to(signed)
        order_hash = to_hex(signed.order_hash)
        self._tell(f"posting the order {order_hash}")
        stored = await submitted(
            partial(self._venue.post_otc, wish.chain_id, body_of(signed)),
            partial(self._venue.otc_order, order_hash),
            self._tell,
        )
        if stored is None:
            return Posted(signed, None, "the venue did not say whether it took the order")
        try:
            check_stored(stored, signed, offer.contract)
        except VenueError as fault:
            return Posted(signed, None, fault.detail)
        return Posted(signed, stored)

    # --- Parts ------------------------------------------------------------------------------------

    async def _signed(self, offer: OtcOffer) -> SignedOtc:
        """The signed order, whose life counts from the later of the trader's clock and the chain's."""
        order = order_of(offer.wish, await self._trader.clock_s(), self._trader.random32())
        permit = await self._trader.permit(offer.missing, order.expiry or limits.UINT256_MAX)
        order_hash = otc_order_hash(offer.contract, order)
        self._tell(f"signing the order {to_hex(order_hash)}")
        return SignedOtc(order, order_hash, to_65(*self._trader.key.sign(order_hash)), permit)

    async def _fillable(self, wish: OtcWish) -> int:
        """What the venue says that older orders leave.

        Raises:
            VenueError: it does not say.
        """
        token = to_checksum(wish.src.address)
        told = await self._venue.otc_fillable(wish.chain_id, to_checksum(wish.maker), token)
        try:
            return parse_amount(told.get(token.lower(), "0"), token.lower())
        except InvalidInput as fault:
            raise VenueError(f"GET /ft/fillablebalance: {fault.detail}") from None
