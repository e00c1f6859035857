"""An OTC order, followed at the venue until its end, which is then verified on chain.

    follow   GET /ft/order/{hash}; see `following`
    disproof compares that end with the chain: a FULFILLED or CANCELLED order is closed at the RFQ contract,
             by this order's event in the transaction that the venue names; an EXPIRED order is open, and its
             expiry has passed

An order expires by the later of the local clock and the chain's, since a chain may stand still. The state
after the named transaction's block shows whether the last of several fills took the rest.

Source: spec 2.5; interop.md 1.
"""

from collections.abc import Iterator, Sequence

import trio

from .....codecs.eip712_orders.rfq import RfqOrder
from .....codecs.messages.otc_messages import StoredOrder
from .....codecs.messages.vocabulary import OtcState
from .....config.error_text import one_line
from .....config.errors import ChainError, VenueError
from .....crypto.hexadecimal import parse_hex
from ....chain.port import Chain
from ..events import OtcEventsWanted
from ..following import Follower, receipt_of
from ..trusted_contract import SigningContract
from .otc_reading import kept_of, standing_of
from .otc_safety import CLOSED, OtcOnChain, cancelled_in, fill_in
from .otc_terms import OTC_MEANS, OTC_TERMINAL, SignedOtc

_BY_TRANSACTION = frozenset({OtcState.FULFILLED, OtcState.CANCELLED})


class OtcFollower(Follower[StoredOrder]):
    """Follows an OTC order at a venue, by the order's hash in lower case, until it has ended."""

    def _wanted(self) -> OtcEventsWanted:
        return OtcEventsWanted(order=self._name)

    async def _ask(self) -> StoredOrder:
        return await self._venue.otc_order(self._name)

    def _is_final(self, record: StoredOrder) -> bool:
        return record.state in OTC_TERMINAL

    def _check(self, record: StoredOrder) -> None:
        if record.order_hash.lower() != self._name:
            raise VenueError(f"asked for order {self._name}, the venue answers with {record.order_hash}")

    def _changes(self, before: StoredOrder | None, record: StoredOrder) -> Iterator[str]:
        if before is None or before.state is not record.state:
            yield f"order {self._name} is {record.state.value}: {OTC_MEANS[record.state]}"
        if before is not None and before.fillable_balance != record.fillable_balance:
            left = one_line(record.fillable_balance)
            yield f"{left} raw units are left: {one_line(record.transaction_hash or '')}"

    def _seen(self, record: StoredOrder) -> tuple[object, ...]:
        return record.state, record.fillable_balance, record.swappable_balance, record.transaction_hash


async def disproof(
    chain: Chain, contract: SigningContract, signed: SignedOtc, stored: StoredOrder, wall_s: int
) -> str:
    """Describe how the chain contradicts the venue's record of an OTC order; empty if it does not.

    Args:
        signed: the order, with the hash that the client computed.
        wall_s: the wall clock, Unix seconds.

    Raises:
        ChainError: the chain does not answer. If the named transaction filled only a part of the order, the
            check reads the state at that transaction's block, so that the node must keep old states.
    """
    named = stored.transaction_hash if stored.state in _BY_TRANSACTION else None
    # Before `standing`: `receipt_of` waits for a node that is behind the venue's, whose state read earlier
    # would still show the order as open.
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
    chain: Chain, contract: SigningContract, orders: Sequence[tuple[SignedOtc, StoredOrder]], wall_s: int
) -> list[str]:
    """Describe for each order how the chain contradicts the venue's record, or why the record cannot be
    verified; empty for a verified order. The orders are verified concurrently."""
    faults = [""] * len(orders)

    async def judge(at: int) -> None:
        try:
            faults[at] = await disproof(chain, contract, *orders[at], wall_s)
        except ChainError as error:
            faults[at] = error.detail

    async with trio.open_nursery() as nursery:
        for at in range(len(orders)):
            nursery.start_soon(judge, at)
    return faults


def contradiction(stored: StoredOrder, order: RfqOrder, standing: OtcOnChain, wall_s: int) -> str:
    """Describe how an order's state on chain contradicts the venue's state; empty if it does not.

    Args:
        wall_s: the wall clock, Unix seconds. The order has expired if the later of this time and the block's
            time is past its expiry.
    """
    claim = f"the venue says that it is {stored.state.value}, and"
    if standing.is_closed != (stored.state in _BY_TRANSACTION):
        return f"{claim} on chain it is {'closed' if standing.is_closed else 'open'}"
    now_s = max(wall_s, standing.time_s)
    if stored.state is OtcState.EXPIRED and not (order.expiry and now_s > order.expiry):
        return f"{claim} its time is not over: it can be filled still"
    return ""
