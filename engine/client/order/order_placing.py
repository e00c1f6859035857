"""A Delta order from the first question until the venue has taken it; `order_following` goes on from there.

    offer     contracts.json -> the Delta contract, its code and its domain -> GET /v2/quote, mode DELTA
              -> balance and allowance on the chain
    (the trader agrees)
    place     approve, or sign a permit -> POST .../build -> checked -> a native source is deposited for the
              order's hash -> signed -> POST /v2/delta/orders
    rehearse  the price and a build that is checked; nothing is signed or sent

The Delta contract is trusted for its code, as the Router of a swap is, unless the trader pins the address.

A deposit follows the built and checked order, whose hash it needs. A submission names the quote's partner
where the trader names none.

Source: spec 1.1.12 to 1.1.19, 1.3.1; contracts/Delta.sol.
"""

from collections.abc import Callable
from functools import partial

from msgspec import Struct

from ....codecs.contracts.delta_calldata import deposit_native_and_pre_sign, deposits, withdraw_to
from ....codecs.messages.delta_messages import BuildResponse, OrderRecord, SubmitBody
from ....config import limits
from ....config.errors import ChainError, VenueError
from ....crypto.addresses import to_checksum
from ....crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ....crypto.signatures import to_compact64
from ...chain.port import Chain, EthCall, Receipt
from ..allowing import Allowing, approve_spender, held, signed_permit
from ..client import VenueClient
from ..sending import first_step
from ..submitting import submitted
from ..trusted_contract import trusted_separator
from .order_safety import CheckedOrder, DeltaContract, check_build, check_price, check_record, delta_of
from .order_terms import OrderWish, QuotedDelta, SignableTerms, SigningInputs, build_body, terms_of


class OrderOffer(Struct, frozen=True, kw_only=True):
    """What the trader agrees to.

    Attributes:
        balance, allowance: raw units of the source; the native token is deposited. A TWAP needs no more of it
            at first than its first slice takes, but allowance for all of them.
    """

    terms: SignableTerms
    quoted: QuotedDelta
    contract: DeltaContract
    balance: int
    allowance: int

    @property
    def must_deposit(self) -> bool:
        """Whether native tokens are deposited for the order."""
        return self.terms.wish.src.is_native

    @property
    def must_allow(self) -> bool:
        """Whether the Delta contract may not take the source yet."""
        return not self.must_deposit and self.allowance < self.terms.src_amount_max


class Withdrawal(Struct, frozen=True):
    """Native tokens that are taken back from a deposit.

    Attributes:
        amount_wei: all there is if None.
        receiver: 20 bytes.
    """

    amount_wei: int | None
    receiver: bytes


class Placed(Struct, frozen=True):
    """An order that was handed in.

    Attributes:
        order_hash: 32 bytes.
        record: the venue's; None where it is not known whether the venue took the order: `fault` says why.
    """

    order_hash: bytes
    record: OrderRecord | None
    fault: str = ""


async def delta_contract(
    chain: Chain, venue: VenueClient, chain_id: int, pinned: bytes | None
) -> DeltaContract:
    """The contract that the venue names, once it is proven to be one of ours.

    Args:
        pinned: the one that the trader insists on, whatever its code.

    Raises:
        VenueError: none, or of other code.
        UnsafeTransaction: it is not the pinned one.
        ChainError: it does not tell its signing domain.
    """
    delta = delta_of(await venue.contracts(), chain_id, pinned)
    separator = await trusted_separator(chain, "Delta", delta, "--delta", is_pinned=pinned is not None)
    return DeltaContract(chain_id, delta, separator)


class OrderPlacer:
    """Places orders of one key on one chain through one venue.

    Args:
        wall_s: the wall clock, Unix seconds.
        random32: 32 random bytes, others each time.
        tell: one line of progress.
        allowing: how the Delta contract is allowed to take the source where it may not yet.
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

    async def offer(self, wish: OrderWish, pinned: bytes | None = None) -> OrderOffer:
        """A price, and whether it can be paid.

        Raises:
            VenueError: there is no price, or it is not of what was asked.
            ChainError: the source does not suffice, or the chain does not answer.
        """
        self._tell("looking at the Delta contract")
        contract = await delta_contract(self._chain, self._venue, wish.chain_id, pinned)
        self._tell("asking for a price")
        quoted = await self._venue.delta_quote(
            chain_id=wish.chain_id,
            src_token=wish.src.text,
            dest_token=wish.dest.text,
            src_decimals=wish.src.decimals,
            dest_decimals=wish.dest.decimals,
            amount=wish.priced_amount,
            side=wish.side,
            user=to_checksum(wish.owner),
            beneficiary="" if wish.beneficiary == wish.owner else to_checksum(wish.beneficiary),
            partner=wish.partner,
        )
        fee_bps = check_price(quoted.block, wish, contract.address)
        terms = terms_of(wish, quoted.block, contract.address, fee_bps)
        _check_bounds(terms)
        balance, allowance = await held(self._chain, wish.src, wish.owner, contract.address)
        needed = terms.src_amount_max if wish.src.is_native else terms.src_amount_first
        if balance < needed:
            raise ChainError(
                f"{to_checksum(wish.owner)} has {balance} raw units of {wish.src.symbol}, "
                f"and {needed} are needed"
            )
        return OrderOffer(terms=terms, quoted=quoted, contract=contract, balance=balance, allowance=allowance)

    async def rehearse(self, offer: OrderOffer) -> CheckedOrder:
        """The order as it would be signed, without a permit.

        Raises:
            VenueError: as `place`.
        """
        checked, _ = await self._built(offer, await self._signing(offer))
        return checked

    async def place(self, offer: OrderOffer, about_to: Callable[[bytes], None] | None = None) -> Placed:
        """Do it.

        Args:
            about_to: told the order's hash before anything of it leaves: a deposit, or the submission.

        Raises:
            StepFailedError: the approval or the deposit came to nothing; nothing was signed.
            VenueError: what it wants to be signed is not what was agreed, or it refuses.
            ChainError: a transaction would be refused, or the chain does not answer.
        """
        if offer.must_allow and self._allowing is not Allowing.PERMIT:
            await approve_spender(
                self._chain,
                self._policed(offer),
                offer.terms.wish.src.address,
                offer.contract.address,
                amount=offer.terms.src_amount_max,
                allowance=offer.allowance,
                any_amount=self._allowing is Allowing.MOST,
                tell=self._tell,
            )
        signing = await self._signing(offer)
        if offer.must_allow and self._allowing is Allowing.PERMIT:
            signing = SigningInputs(
                signing.deadline, signing.nonce, await self._permit(offer, signing.deadline)
            )
        checked, built = await self._built(offer, signing)
        if about_to is not None:
            about_to(checked.order_hash)
        if offer.must_deposit:
            await self._deposit(offer, checked.order_hash)
        self._tell(f"signing the order {to_hex(checked.order_hash)}")
        body = SubmitBody(
            chain_id=offer.contract.chain_id,
            order=built.to_sign.value,
            signature=to_hex(to_compact64(*self._key.sign(checked.order_hash))),
            partner=offer.terms.wish.partner or offer.terms.partner,
            type=offer.terms.wish.type,
            partially_fillable=offer.terms.wish.is_partial,
        )
        try:
            record = await submitted(
                partial(self._venue.submit_order, body),
                partial(self._venue.order, to_hex(checked.order_hash)),
                self._tell,
            )
        except VenueError as fault:
            if not offer.must_deposit:
                raise
            raise _with_deposit(fault) from None
        return _placed(record, checked.order_hash, offer.terms)

    # --- Parts ------------------------------------------------------------------------------------

    async def _signing(self, offer: OrderOffer) -> SigningInputs:
        """The deadline is counted from the later of two clocks, ours and the chain's."""
        header = await self._chain.block()
        now_s = max(self._wall_s(), header.time_s if header else 0)
        return SigningInputs(now_s + offer.terms.wish.life_s, int.from_bytes(self._random32(), "big"))

    async def _permit(self, offer: OrderOffer, deadline: int) -> bytes:
        self._tell("signing a permit")
        token, amount = offer.terms.wish.src.address, offer.terms.src_amount_max
        return await signed_permit(self._chain, self._key, token, offer.contract.address, amount, deadline)

    async def _built(self, offer: OrderOffer, signing: SigningInputs) -> tuple[CheckedOrder, BuildResponse]:
        self._tell("having the order built")
        built = await self._venue.build_order(build_body(offer.terms, signing, offer.quoted.route))
        return check_build(built, offer.terms, signing, offer.contract), built

    async def _deposit(self, offer: OrderOffer, order_hash: bytes) -> None:
        amount = offer.terms.src_amount_max
        data = deposit_native_and_pre_sign(order_hash)
        call = EthCall(offer.contract.address, data, self._key.address, amount)
        await first_step(self._chain, self._policed(offer), "deposit", call, self._tell)

    def _policed(self, offer: OrderOffer) -> PolicedRelayKey:
        """The key, for what this order needs and nothing else."""
        target = offer.contract.address if offer.must_deposit else offer.terms.wish.src.address
        return policed(
            self._key,
            offer.contract.chain_id,
            target,
            offer.terms.src_amount_max if offer.must_deposit else 0,
        )


def policed(key: SigningKey, chain_id: int, target: bytes, value_wei: int) -> PolicedRelayKey:
    """A key that signs transactions to one contract, which carry at most `value_wei`."""
    policy = TransactionPolicy(
        contracts=frozenset(((chain_id, target),)),
        fee_max_wei=limits.RELAY_FEE_CAP_WEI,
        gas_max=limits.RELAY_GAS_MAX,
        value_max_wei=value_wei,
    )
    return PolicedRelayKey(key, policy)


async def take_back(
    chain: Chain,
    key: SigningKey,
    contract: DeltaContract,
    withdrawal: Withdrawal,
    tell: Callable[[str], None],
) -> tuple[Receipt, int]:
    """Take back native tokens of the key's deposit.

    Returns:
        The receipt, and how much it was, in wei.

    Raises:
        ChainError: there is none, or the chain does not answer.
        StepFailedError: the transaction came to nothing.
    """
    answer = await chain.call(EthCall(contract.address, deposits(key.address)))
    there = int.from_bytes(answer, "big")
    amount = there if withdrawal.amount_wei is None else withdrawal.amount_wei
    if amount > there or not amount:
        raise ChainError(f"{to_checksum(key.address)} has deposited {there} wei")
    call = EthCall(contract.address, withdraw_to(amount, withdrawal.receiver), key.address)
    relay_key = policed(key, contract.chain_id, contract.address, 0)
    return await first_step(chain, relay_key, "withdrawal", call, tell), amount


def _check_bounds(terms: SignableTerms) -> None:
    """Pass for bounds that bind, and under which something can be settled."""
    if terms.limit == 0:
        raise VenueError("with this slippage nothing would have to be received: ask for less slippage")
    if terms.wish.schedule is not None and terms.slice_limit == 0:
        raise VenueError("no slice could spend one unit: ask for fewer slices, or allow more to be spent")


def _placed(record: OrderRecord | None, order_hash: bytes, terms: SignableTerms) -> Placed:
    if record is None:
        return Placed(order_hash, None, "the venue did not say whether it took the order")
    try:
        check_record(record, order_hash, terms)
    except VenueError as fault:
        return Placed(order_hash, None, fault.detail)
    return Placed(order_hash, record)


def _with_deposit(fault: VenueError) -> VenueError:
    """The refusal, and the way to the deposit."""
    return VenueError(
        f"{fault.detail}. The deposit is still there; `cambist order withdraw` takes it back",
        status=fault.status,
        error_type=fault.error_type,
        details=fault.details,
        request_id=fault.request_id,
    )
