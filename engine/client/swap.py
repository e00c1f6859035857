"""A Market swap from the first question to the receipt: the driver of what `terms` and `safety` decide.

    offer     contracts.json -> the Router and its code -> GET /prices -> balance and allowance on the chain
    (the trader agrees)
    perform   approve, or sign a permit -> a price again where the first has aged -> POST /transactions
              -> checked -> simulated -> signed -> sent -> followed by its receipt
    rehearse  the same without approving, signing a transaction and sending

The Router is trusted for its code: what stands at the address that the venue names has to be this release's
Router, unless the trader pins the address. Approvals are of the exact amount unless asked otherwise.

Source: spec 1.1.8 to 1.1.11, 1.3.2; choices.md#quotes-and-routes (a route lives for 30 s).
"""

from collections.abc import Callable
from enum import Enum

import trio
from msgspec import Struct, structs

from ...codecs.contracts.abi import decode_uint
from ...codecs.contracts.contract_events import Swapped, decode_event
from ...codecs.messages.market_messages import PriceRoute
from ...codecs.messages.vocabulary import Side
from ...config import limits
from ...config.errors import ChainError, InvalidInput, UnsafeTransaction, VenueError
from ...config.timeouts import TRADER_DEADLINE_S
from ...crypto.addresses import to_checksum
from ...crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from ...crypto.secp256k1 import SigningKey
from ..chain.deploy.verification import is_code_of
from ..chain.port import Chain, EthCall, Receipt
from .allowing import Allowing, approve_spender, held, signed_permit
from .client import ReceivedRoute, VenueClient
from .safety import check_envelope, check_route, fee_bps_of, router_of
from .sending import StepFailedError, gas_needed, send_and_follow, signed, why_reverted
from .terms import Terms, Wish, limit_of, quoted_of, transaction_body

ROUTE_AGED_S = limits.ROUTE_FRESH_MS / 1_000 / 2


class Offer(Struct, frozen=True, kw_only=True):
    """What the trader agrees to.

    Attributes:
        priced_at: trio's time.
        balance, allowance: raw units of the source; the native token needs no allowance.
    """

    wish: Wish
    route: PriceRoute
    limit: int
    router: bytes
    priced: ReceivedRoute
    priced_at: float
    balance: int
    allowance: int

    @property
    def src_amount_max(self) -> int:
        """The most that is spent."""
        return self.wish.amount if self.wish.side is Side.SELL else self.limit

    @property
    def must_allow(self) -> bool:
        """Whether the Router may not take that yet."""
        return not self.wish.src.is_native and self.allowance < self.src_amount_max


class SwapStatus(Enum):
    """How it ended."""

    SWAPPED = "swapped"
    REHEARSED = "rehearsed"
    REVERTED = "reverted"
    UNKNOWN = "unknown"


class SwapOutcome(Struct, frozen=True, kw_only=True):
    """What became of it.

    Attributes:
        step: the transaction that it is about: `swap`, or the `approval` that came to nothing.
        tx_hash: 32 bytes; empty for a rehearsal.
        spent, received: raw units, as the Router's event says; of a rehearsal, as simulated: the fixed side
            is what was asked for.
        gas: units that were used; of a rehearsal, that it may use.
        reason: of a revert.
    """

    status: SwapStatus
    step: str = "swap"
    tx_hash: bytes = b""
    block_number: int = 0
    spent: int = 0
    received: int = 0
    gas: int = 0
    gas_price_wei: int = 0
    reason: str = ""


class _CheckedSwap(Struct, frozen=True):
    """A checked and simulated swap. `moved` is what the Router answers: received (SELL) or spent (BUY)."""

    call: EthCall
    gas: int
    moved: int


class Swapper:
    """Trades for one key on one chain through one venue.

    Args:
        wall_s: the wall clock, Unix seconds.
        tell: one line of progress; a hash is told before anything is waited for.
        allowing: how the Router is allowed to take the source where it may not yet.
    """

    def __init__(
        self,
        chain: Chain,
        venue: VenueClient,
        key: SigningKey,
        *,
        wall_s: Callable[[], int],
        tell: Callable[[str], None],
        allowing: Allowing = Allowing.EXACT,
    ) -> None:
        self._chain = chain
        self._venue = venue
        self._key = key
        self._wall_s = wall_s
        self._tell = tell
        self._allowing = allowing

    async def offer(self, wish: Wish, pinned: bytes | None = None) -> Offer:
        """A price, and whether it can be paid.

        Args:
            pinned: the Router that the trader insists on, whatever its code.

        Raises:
            VenueError: there is no price, or it is not of what was asked.
            ChainError: the source does not suffice, or the chain does not answer.
        """
        self._tell("looking at the router")
        router = router_of(await self._venue.contracts(), wish.chain_id, pinned)
        if pinned is None and not is_code_of("Router", await self._chain.code(router)):
            raise VenueError(
                f"the code at {to_checksum(router)} on chain {wish.chain_id} is not that of this release's "
                "Router: --router pins an address that you trust"
            )
        self._tell("asking for a price")
        priced = await self._priced(wish, router)
        limit = limit_of(priced.route, wish.side, wish.slippage_bps)
        if limit == 0:
            raise VenueError("with this slippage nothing would have to be received: ask for less slippage")
        balance, allowance = await held(self._chain, wish.src, wish.user, router)
        offer = Offer(
            wish=wish,
            route=priced.route,
            limit=limit,
            router=router,
            priced=priced,
            priced_at=trio.current_time(),
            balance=balance,
            allowance=allowance,
        )
        if balance < offer.src_amount_max:
            raise ChainError(
                f"{to_checksum(wish.user)} has {balance} raw units of {wish.src.symbol}, "
                f"and {offer.src_amount_max} are needed"
            )
        return offer

    async def rehearse(self, offer: Offer) -> SwapOutcome | None:
        """Everything but approving and sending; None where it cannot be simulated before an approval.

        Raises:
            VenueError, ChainError: as `perform`.
        """
        if offer.must_allow and self._allowing is not Allowing.PERMIT:
            return None
        built = await self._built(offer)
        spent, received = self._sides(offer.wish, built.moved)
        return SwapOutcome(status=SwapStatus.REHEARSED, spent=spent, received=received, gas=built.gas)

    async def perform(self, offer: Offer) -> SwapOutcome:
        """Do it, at the offer's bound or better.

        Raises:
            VenueError: no route at that bound any more, or an unsafe transaction; no swap was signed.
            ChainError: it would be refused, was not taken, or the chain does not answer; no swap was sent.
        """
        key = self._policed(offer)
        try:
            if offer.must_allow and self._allowing is not Allowing.PERMIT:
                await self._approve(offer, key)
        except StepFailedError as failed:
            return _ended(failed)
        built = await self._built(offer)
        self._tell("signing the swap")
        transaction = await signed(self._chain, key, built.call, built.gas)
        self._tell(f"sending the swap 0x{transaction.tx_hash.hex()}")
        receipt = await send_and_follow(self._chain, transaction)
        if receipt is None:
            return SwapOutcome(status=SwapStatus.UNKNOWN, tx_hash=transaction.tx_hash)
        if not receipt.succeeded:
            reason = await why_reverted(self._chain, built.call, receipt)
            return _mined(receipt, SwapStatus.REVERTED, reason=reason)
        return swapped_outcome(receipt, offer.router, offer.wish.user)

    # --- Parts ------------------------------------------------------------------------------------

    async def _priced(self, wish: Wish, router: bytes) -> ReceivedRoute:
        priced = await self._venue.prices(
            chain_id=wish.chain_id,
            src_token=wish.src.text,
            dest_token=wish.dest.text,
            src_decimals=wish.src.decimals,
            dest_decimals=wish.dest.decimals,
            amount=wish.amount,
            side=wish.side,
            user=to_checksum(wish.user),
            receiver="" if wish.receiver == wish.user else to_checksum(wish.receiver),
            partner=wish.partner,
            max_impact=wish.max_impact,
        )
        check_route(priced.route, wish, router)
        if wish.max_impact is not None and priced.route.max_impact_reached:
            raise VenueError(f"the price impact is above {wish.max_impact} %, or not known")
        return priced

    async def _fresh(self, offer: Offer) -> ReceivedRoute:
        """The offer's route, or a new one at the same bound where that has aged."""
        if trio.current_time() - offer.priced_at < ROUTE_AGED_S:
            return offer.priced
        self._tell("asking for the price again")
        wish = offer.wish
        priced = await self._priced(wish, offer.router)
        now = quoted_of(priced.route, wish.side)
        if now < offer.limit if wish.side is Side.SELL else now > offer.limit:
            raise VenueError(f"the price has moved beyond the slippage: {now} now, {offer.limit} was agreed")
        if fee_bps_of(priced.route) > fee_bps_of(offer.route):
            raise VenueError("the partner's fee is above what was agreed")
        return priced

    async def _built(self, offer: Offer) -> _CheckedSwap:
        """The swap as it would be signed now: checked, then simulated."""
        priced = await self._fresh(offer)
        terms = Terms(
            wish=offer.wish,
            limit=offer.limit,
            fee_bps=fee_bps_of(priced.route),
            router=offer.router,
            deadline=await self._deadline(),
        )
        if offer.must_allow and self._allowing is Allowing.PERMIT:
            terms = structs.replace(terms, permit=await self._permit(offer, terms.deadline))
        self._tell("asking the makers for firm quotes")
        body = transaction_body(terms, priced.raw)
        envelope = await self._venue.transaction(offer.wish.chain_id, body)
        data, value_wei = check_envelope(envelope, terms)
        self._tell("simulating the swap")
        call = EthCall(offer.router, data, offer.wish.user, value_wei)
        moved = _number(await self._chain.call(call))
        if offer.wish.side is Side.SELL and moved < offer.limit:
            raise UnsafeTransaction("what is received in a simulation", f"at least {offer.limit}", moved)
        if offer.wish.side is Side.BUY and moved > offer.limit:
            raise UnsafeTransaction("what is spent in a simulation", f"at most {offer.limit}", moved)
        return _CheckedSwap(call, await gas_needed(self._chain, call), moved)

    async def _deadline(self) -> int:
        """Counted from the later of two clocks, ours and the chain's."""
        header = await self._chain.block()
        return max(self._wall_s(), header.time_s if header else 0) + TRADER_DEADLINE_S

    async def _permit(self, offer: Offer, deadline: int) -> bytes:
        self._tell("signing a permit")
        token, amount = offer.wish.src.address, offer.src_amount_max
        return await signed_permit(self._chain, self._key, token, offer.router, amount, deadline)

    async def _approve(self, offer: Offer, key: PolicedRelayKey) -> None:
        await approve_spender(
            self._chain,
            key,
            offer.wish.src.address,
            offer.router,
            amount=offer.src_amount_max,
            allowance=offer.allowance,
            any_amount=self._allowing is Allowing.MOST,
            tell=self._tell,
        )

    def _policed(self, offer: Offer) -> PolicedRelayKey:
        """The key, for what this swap needs and nothing else."""
        wish = offer.wish
        targets = {offer.router} if wish.src.is_native else {offer.router, wish.src.address}
        policy = TransactionPolicy(
            contracts=frozenset((wish.chain_id, target) for target in targets),
            fee_max_wei=limits.RELAY_FEE_CAP_WEI,
            gas_max=limits.RELAY_GAS_MAX,
            value_max_wei=offer.src_amount_max if wish.src.is_native else 0,
        )
        return PolicedRelayKey(self._key, policy)

    @staticmethod
    def _sides(wish: Wish, moved: int) -> tuple[int, int]:
        return (wish.amount, moved) if wish.side is Side.SELL else (moved, wish.amount)


def swapped_outcome(receipt: Receipt, router: bytes, user: bytes) -> SwapOutcome:
    """What a transaction that succeeded moved; UNKNOWN without an event of this user's swap."""
    for log in receipt.logs:
        if log.address != router:
            continue
        try:
            event = decode_event(log.topics, log.data)
        except InvalidInput:
            continue
        if isinstance(event, Swapped) and event.sender == user:
            return _mined(receipt, SwapStatus.SWAPPED, spent=event.spent, received=event.received)
    return _mined(receipt, SwapStatus.UNKNOWN, reason="it was mined, without the Router's event of a swap")


def _ended(failed: StepFailedError) -> SwapOutcome:
    """The swap ended before it began."""
    if failed.receipt is None:
        return SwapOutcome(status=SwapStatus.UNKNOWN, step=failed.step, tx_hash=failed.tx_hash)
    return _mined(failed.receipt, SwapStatus.REVERTED, step=failed.step, reason=failed.reason)


def _mined(
    receipt: Receipt,
    status: SwapStatus,
    *,
    step: str = "swap",
    spent: int = 0,
    received: int = 0,
    reason: str = "",
) -> SwapOutcome:
    return SwapOutcome(
        status=status,
        step=step,
        tx_hash=receipt.tx_hash,
        block_number=receipt.block_number,
        spent=spent,
        received=received,
        gas=receipt.gas_used,
        gas_price_wei=receipt.gas_price_wei,
        reason=reason,
    )


def _number(returned: bytes) -> int:
    try:
        return decode_uint(returned)
    except InvalidInput:
        raise ChainError("the router answers a simulation without a number") from None
