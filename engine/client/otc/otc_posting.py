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
from ....config.errors import ConfigError, InvalidInput, VenueError
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ....crypto.signatures import to_65
from ...chain.port import Chain
from ..allowing import Allowing, approve_spender, held, signed_permit
from ..client import VenueClient
from ..order.order_placing import policed
from ..submitting import submitted
from ..trusted_contract import trusted_separator
from .otc_safety import check_stored, rfq_of
from .otc_terms import OtcWish, RfqContract, SignedOtc, body_of, order_of


class OtcOffer(Struct, frozen=True, kw_only=True):
    """What the maker agrees to.

    Attributes:
        balance, allowance: raw units of what is sold.
        fillable: of them, what the maker's older orders leave; as the venue says.
        allowing: how the RFQ contract is allowed to take what is sold where it may not yet.
    """

    wish: OtcWish
    contract: RfqContract
    balance: int
    allowance: int
    fillable: int
    allowing: Allowing = Allowing.EXACT

    @property
    def must_allow(self) -> bool:
        """Whether the RFQ contract may not take what is sold yet; where any amount is approved, what
        older orders sell besides."""
        is_for_more = self.allowing is Allowing.MOST and self.is_held_back
        return self.allowance < self.wish.src_amount or is_for_more

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


async def rfq_contract(
    chain: Chain, venue: VenueClient | None, chain_id: int, pinned: bytes | None
) -> RfqContract:
    """The contract that the venue names, once it is proven to be one of ours.

    Args:
        venue: None for none: then it has to be pinned.
        pinned: the one that is insisted on, whatever its code.

    Raises:
        VenueError: none, or of other code.
        UnsafeTransaction: it is not the pinned one.
        ChainError: it does not tell its signing domain.
        ConfigError: nobody names it.
    """
    if venue is not None:
        rfq = rfq_of(await venue.contracts(), chain_id, pinned)
    elif pinned is not None:
        rfq = pinned
    else:
        raise ConfigError("--rfq", "is needed where there is no --venue")
    separator = await trusted_separator(chain, "Rfq", rfq, "--rfq", is_pinned=pinned is not None)
    return RfqContract(chain_id, rfq, separator)


class OtcPoster:
    """Posts orders of one key on one chain at one venue.

    Args:
        wall_s: the wall clock, Unix seconds.
        random32: 32 random bytes, others each time.
        tell: one line of progress.
        allowing: how the RFQ contract is allowed to take what is sold where it may not yet.
    """

    def __init__(
        self,
        chain: Chain,
        venue: VenueClient,
        key: SigningKey,
        *,
        wall_s: Callable[[], int],
        random32: Callable[[], bytes],
        tell: Callable[[str], None],
        allowing: Allowing = Allowing.EXACT,
    ) -> None:
        self._chain = chain
        self._venue = venue
        self._key = key
        self._wall_s = wall_s
        self._random32 = random32
        self._tell = tell
        self._allowing = allowing

    async def offer(self, wish: OtcWish, pinned: bytes | None = None) -> OtcOffer:
        """What it takes, and what of it is there.

        Raises:
            VenueError, ChainError, UnsafeTransaction: as `rfq_contract`; or what is sold is no token.
        """
        self._tell("looking at the RFQ contract")
        contract = await rfq_contract(self._chain, self._venue, wish.chain_id, pinned)
        self._tell("looking at balance and allowance")
        balance, allowance = await held(self._chain, wish.src, wish.maker, contract.address)
        fillable = await self._fillable(wish)
        return OtcOffer(
            wish=wish,
            contract=contract,
            balance=balance,
            allowance=allowance,
            fillable=fillable,
            allowing=self._allowing,
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
        if offer.must_allow and self._allowing is not Allowing.PERMIT:
            await approve_spender(
                self._chain,
                policed(self._key, wish.chain_id, wish.src.address, 0),
                wish.src.address,
                offer.contract.address,
                amount=wish.src_amount,
                allowance=offer.allowance,
                any_amount=self._allowing is Allowing.MOST,
                tell=self._tell,
            )
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
        """Its life is counted from the later of two clocks, ours and the chain's."""
        header = await self._chain.block()
        now_s = max(self._wall_s(), header.time_s if header else 0)
        order = order_of(offer.wish, now_s, self._random32())
        permit = b""
        if offer.must_allow and self._allowing is Allowing.PERMIT:
            self._tell("signing a permit")
            permit = await signed_permit(
                self._chain,
                self._key,
                order.maker_asset,
                offer.contract.address,
                order.maker_amount,
                order.expiry or limits.UINT256_MAX,
            )
        order_hash = offer.contract.order_hash(order)
        self._tell(f"signing the order {to_hex(order_hash)}")
        return SignedOtc(order, order_hash, to_65(*self._key.sign(order_hash)), permit)

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
