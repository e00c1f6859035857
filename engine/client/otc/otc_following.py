"""An OTC order, followed at the venue until its end, which is then verified on chain.

    follow   GET /ft/order/{hash} after each change that the venue pushes, until the order has ended or time
             is up; polled with growing pauses if the venue does not push
    disproof compares that end with the chain: a FULFILLED or CANCELLED order is closed at the RFQ contract,
             by this order's event in the transaction that the venue names; an EXPIRED order is open, and its
             expiry has passed

An order expires by the later of the local clock and the chain's, since a chain may stand still. The state
after the named transaction's block shows whether the last of several fills took the rest.

Source: spec 2.5; interop.md 1.
"""

from collections.abc import Callable, Sequence

import trio

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.messages.otc_messages import StoredOrder
from ....codecs.messages.vocabulary import OtcState
from ....config.error_text import one_line
from ....config.errors import ChainError, VenueError
from ....crypto.hexadecimal import parse_hex
from ...chain.port import Chain
from ..client import VenueClient
from ..events import OtcEventsWanted, pushed
from ..order.order_following import look_until_ended, receipt_of
from ..trusted_contract import SigningContract
from .otc_reading import kept_of, standing_of
from .otc_safety import CLOSED, OtcOnChain, cancelled_in, fill_in
from .otc_terms import OTC_MEANS, OTC_TERMINAL, SignedOtc

_ANSWERED = 200  # a status that `may_pass` counts as final
_BY_TRANSACTION = frozenset({OtcState.FULFILLED, OtcState.CANCELLED})


class OtcFollower:
    """A follower of one order at its venue.

    Args:
        order_hash: in lower case.
        tell: receives a line for each change of state and for each fill.

    Attributes:
        stored: the venue's latest answer; None before the first.
    """

    def __init__(self, venue: VenueClient, order_hash: str, tell: Callable[[str], None]) -> None:
        self._venue = venue
        self._order_hash = order_hash
        self._tell = tell
        self.stored: StoredOrder | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the order's state is final."""
        return self.stored is not None and self.stored.state in OTC_TERMINAL

    async def follow(self, timeout_s: float) -> None:
        """Follow the order until it has ended or time is up.

        Raises:
            VenueError: a final refusal, or an answer about another order.
        """
        with trio.move_on_after(timeout_s):
            async with pushed(self._venue, OtcEventsWanted(order=self._order_hash), self._tell) as push:
                await look_until_ended(self.look, lambda: self.has_ended, push, self._tell)

    async def look(self) -> bool:
        """Ask the venue once; return whether the order has changed.

        Raises:
            VenueError: any refusal, no answer, or an answer about another order.
        """
        return self.see(await self._venue.otc_order(self._order_hash))

    def see(self, stored: StoredOrder) -> bool:
        """Record the venue's answer; return whether the order has changed.

        Raises:
            VenueError: the answer is about another order.
        """
        before = self.stored
        if stored.order_hash.lower() != self._order_hash:
            raise VenueError(
                f"asked for order {self._order_hash}, the venue answers with {stored.order_hash}",
                status=_ANSWERED,
            )
        self.stored = stored
        if before is None or before.state is not stored.state:
            self._tell(f"order {self._order_hash} is {stored.state.value}: {OTC_MEANS[stored.state]}")
        if before is not None and before.fillable_balance != stored.fillable_balance:
            left = one_line(stored.fillable_balance)
            self._tell(f"{left} raw units are left: {one_line(stored.transaction_hash or '')}")
        return before is None or _seen(before) != _seen(stored)


async def disproof(
    chain: Chain, contract: SigningContract, signed: SignedOtc, stored: StoredOrder, wall_s: int
) -> str:
    """The contradiction between the chain and the venue; empty if none.

    Args:
        signed: the order, with the hash computed here.
        wall_s: the wall clock, Unix seconds.

    Raises:
        ChainError: the chain does not answer; the last of several fills needs a node with old states.
    """
    named = stored.transaction_hash if stored.state in _BY_TRANSACTION else None
    receipt = None
    if named is not None:
        receipt = await receipt_of(chain, parse_hex(named, "transactionHash"))
    standing = await standing_of(chain, contract, signed)
    fault = contradiction(stored, signed.order, standing, wall_s)
    if fault or stored.state not in _BY_TRANSACTION:
        return fault
    if named is None:
        return f"the venue says that it is {stored.state.value}, and names no transaction"
    if receipt is None:
        return f"the chain does not know the transaction {named}"
    maker = signed.order.maker
    if stored.state is OtcState.CANCELLED:
        is_so = signed.order_hash in cancelled_in(receipt, contract, maker)
        return "" if is_so else f"the transaction {named} does not cancel this order"
    event = fill_in(receipt, contract, signed.order_hash)
    if event is None:
        return f"the transaction {named} fills nothing of this order"
    if event.maker_amount != signed.order.maker_amount:
        (kept,) = await kept_of(chain, contract, maker, [signed.order_hash], receipt.block_hash)
        if kept != CLOSED:
            return f"the venue says that it is FULFILLED, and after the transaction {named} it is open"
    return ""


async def disproofs(
    chain: Chain, contract: SigningContract, told: Sequence[tuple[SignedOtc, StoredOrder]], wall_s: int
) -> list[str]:
    """`disproof` of each order, concurrently; a ChainError's text for an order that cannot be verified."""
    faults = [""] * len(told)

    async def judge(at: int) -> None:
        try:
            faults[at] = await disproof(chain, contract, *told[at], wall_s)
        except ChainError as error:
            faults[at] = error.detail

    async with trio.open_nursery() as nursery:
        for at in range(len(told)):
            nursery.start_soon(judge, at)
    return faults


def contradiction(stored: StoredOrder, order: RfqOrder, standing: OtcOnChain, wall_s: int) -> str:
    """The contradiction between the chain's state and the venue's; empty if none."""
    told = f"the venue says that it is {stored.state.value}, and"
    if standing.is_closed != (stored.state in _BY_TRANSACTION):
        return f"{told} on chain it is {'closed' if standing.is_closed else 'open'}"
    now_s = max(wall_s, standing.time_s)
    if stored.state is OtcState.EXPIRED and not (order.expiry and now_s > order.expiry):
        return f"{told} its time is not over: it can be filled still"
    return ""


def _seen(stored: StoredOrder) -> tuple[object, ...]:
    return stored.state, stored.fillable_balance, stored.swappable_balance, stored.transaction_hash
