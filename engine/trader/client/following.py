"""An order of any kind at a venue: submitted once, followed until its end, and verified on chain.

    placed   the venue may have accepted an unanswered submission, which is not repeated: the order is looked
             up by its hash for TRADER_FOUND_S
    follow   asks for the order after each change that the venue pushes, until a final state or until time is
             up; polls with growing pauses if the venue does not push

The follower repeats an unanswered request while time is left.
"""

from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Generic, TypeVar

import trio
from msgspec import Struct

from ....codecs.contracts.calldata import balance_of
from ....codecs.trading_token import NATIVE_TOKEN
from ....config.errors import ChainError, VenueError
from ....config.timeouts import (
    TRADER_FOUND_S,
    TRADER_ORDER_LOOK_S,
    TRADER_ORDER_LOOK_S_MAX,
    TRADER_PAUSE_S,
    TRADER_RECEIPT_S,
    TRANSACTION_LOOK_S,
)
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...chain.port import Chain, EthCall, Receipt
from ...chain.together import all_of
from .client import VenueClient
from .events import EventSelection, pushed
from .safety import told_number

Record = TypeVar("Record")
_REFUSAL, _SERVER_FAULT, _BUSY = 400, 500, 503


def was_refused(fault: VenueError) -> bool:
    """Whether the venue refused a POST, which then had no effect; if False, the POST may have taken
    effect."""
    return _REFUSAL <= fault.status < _SERVER_FAULT or fault.status == _BUSY


class Placed(Struct, Generic[Record], frozen=True):
    """An order that was submitted to a venue.

    Attributes:
        order_hash: 32 bytes.
        record: the venue's record of the order; None if the client does not know whether the venue accepted
            the order.
        fault: text about why `record` is None; empty with a record.
    """

    order_hash: bytes
    record: Record | None
    fault: str = ""


async def placed(
    order_hash: bytes,
    submit: Callable[[], Awaitable[Record]],
    find: Callable[[str], Awaitable[Record]],
    check: Callable[[Record], None],
    tell: Callable[[str], None],
) -> Placed[Record]:
    """Submit an order once, and check that the venue's record is of this order.

    If the venue does not answer, the client asks for the order by its hash until TRADER_FOUND_S seconds are
    over.

    Args:
        order_hash: 32 bytes.
        submit: sends the order to the venue.
        find: asks the venue for the order with a given hash.
        check: raises VenueError for a record of another order.
        tell: receives lines of progress.

    Raises:
        VenueError: the venue refuses the order.
    """
    record: Record | None
    try:
        record = await submit()
    except VenueError as fault:
        if was_refused(fault):
            raise
        tell(f"{fault.detail}: looking for the order")
        record = await _found(partial(find, to_hex(order_hash)), tell)
    if record is None:
        return Placed(order_hash, None, "the venue did not say whether it took the order")
    try:
        check(record)
    except VenueError as fault:
        # No error: the venue has an order, perhaps this one, and the caller needs the hash to look for it.
        return Placed(order_hash, None, fault.detail)
    return Placed(order_hash, record)


async def _found(find: Callable[[], Awaitable[Record]], tell: Callable[[str], None]) -> Record | None:
    """The record of an order that the venue may have accepted.

    None if the venue does not return a record within TRADER_FOUND_S seconds.
    """
    pause_s = TRADER_PAUSE_S
    with trio.move_on_after(TRADER_FOUND_S):
        while True:
            try:
                return await find()
            except VenueError as fault:
                tell(fault.detail)
            await trio.sleep(pause_s)
            pause_s *= 2
    return None


class Follower(ABC, Generic[Record]):
    """Follows one order at a venue until its end; a subclass for each kind of order (Delta, OTC) reads its
    records.

    Args:
        name: the order's id or hash.
        tell: receives a line for each change.

    Attributes:
        record: the venue's latest record of the order; None before the first answer.
    """

    def __init__(self, venue: VenueClient, name: str, tell: Callable[[str], None]) -> None:
        self._venue = venue
        self._name = name
        self._tell = tell
        self.record: Record | None = None

    @property
    def has_ended(self) -> bool:
        """Whether the order has ended according to the venue's latest record."""
        return self.record is not None and self._is_final(self.record)

    async def follow(self, timeout_s: float, hear: Callable[[Record], Awaitable[None]] | None = None) -> None:
        """Ask for the order after each change that the venue pushes, or by polling, until its end.

        The method returns after `timeout_s` seconds at the latest, and sends no request for an order that has
        ended already.

        Args:
            hear: awaited with each record that shows progress, before the next request.

        Raises:
            VenueError: a refusal that a repeated request would not change, or a record of another order.
        """
        if self.record is not None and self._is_final(self.record):
            return
        with trio.move_on_after(timeout_s):
            async with pushed(self._venue, self._wanted(), self._tell) as push:
                pause_s = TRADER_ORDER_LOOK_S
                while True:
                    has_changed = await self.try_look()
                    # Before the end is looked at: `hear` gets the last record too.
                    if has_changed and hear is not None and self.record is not None:
                        await hear(self.record)
                    if self.has_ended:
                        return
                    longer_s = min(pause_s * 1.5, TRADER_ORDER_LOOK_S_MAX)
                    pause_s = TRADER_ORDER_LOOK_S if has_changed else longer_s
                    await push.wait(pause_s)

    async def latest(self, timeout_s: float) -> tuple[Record, str]:
        """Follow the order as `follow` does.

        Returns:
            The venue's latest record, and the venue's refusal of a later request; empty without a refusal.

        Raises:
            VenueError: before its first record the venue refuses, does not answer, or answers with another
                order.
        """
        refusal = ""
        try:
            await self.follow(timeout_s)
        except VenueError as error:
            if self.record is None:
                raise
            refusal = error.detail
        if self.record is None:
            raise VenueError(f"order {self._name}: the venue does not answer")
        return self.record, refusal

    async def look(self) -> Record:
        """Ask the venue for the order once; return its record.

        Raises:
            VenueError: the venue refuses or does not answer, or its record is of another order.
        """
        record = await self._ask()
        self.see(record)
        return record

    async def try_look(self) -> bool:
        """Ask the venue for the order once; return whether the record shows progress.

        After a failure that a repeated request may avoid, the method prints the failure and returns False.

        Raises:
            VenueError: the venue refuses for good, or its record is of another order.
        """
        try:
            record = await self._ask()
        except VenueError as fault:
            if not _may_pass(fault):
                raise
            self._tell(f"{fault.detail}: asking again")
            return False
        return self.see(record)

    def see(self, record: Record) -> bool:
        """Check and keep a record of the order, and print changes; return whether the record shows progress.

        A first record is progress, and so is a change of the members that `_seen` returns.

        Raises:
            VenueError: the record is of another order, or invalid.
        """
        before = self.record
        self._check(record)
        self.record = record
        for line in self._changes(before, record):
            self._tell(line)
        return before is None or self._seen(before) != self._seen(record)

    # --- The kind of order ------------------------------------------------------------------------

    @abstractmethod
    def _wanted(self) -> EventSelection:
        """Filters that select the events of the followed order."""

    @abstractmethod
    async def _ask(self) -> Record:
        """Ask the venue for its record of the followed order."""

    @abstractmethod
    def _is_final(self, record: Record) -> bool:
        """Whether an order with this record has ended."""

    @abstractmethod
    def _check(self, record: Record) -> None:
        """Check that a record is of the followed order.

        Raises:
            VenueError: the record is of another order, or invalid.
        """

    @abstractmethod
    def _changes(self, before: Record | None, record: Record) -> Iterator[str]:
        """Lines of text for the trader: one for each difference between the record `before` and `record`.

        Args:
            before: the previous record; None if `record` is the first.
        """

    @abstractmethod
    def _seen(self, record: Record) -> tuple[object, ...]:
        """Members of the record whose change counts as progress, which resets the pause between two polls."""


def _may_pass(fault: VenueError) -> bool:
    """Whether a failed request may succeed if repeated, as after no answer, 429, or a server error."""
    return fault.status in (0, 429) or fault.status >= _SERVER_FAULT


async def receipt_of(chain: Chain, tx_hash: bytes) -> Receipt | None:
    """The receipt of a transaction that a venue names.

    None if the trader's node does not know the transaction within TRADER_RECEIPT_S seconds. The function
    waits because this node may see a block later than the venue's node.
    """
    with trio.move_on_after(TRADER_RECEIPT_S):
        while True:
            receipt = await chain.receipt(tx_hash)
            if receipt is not None:
                return receipt
            # The head before the receipt: a block that is mined in between ends the wait below at once.
            header = await chain.block()
            receipt = await chain.receipt(tx_hash)
            if receipt is not None:
                return receipt
            with trio.move_on_after(TRANSACTION_LOOK_S):
                await chain.wait_head(header.hash if header else b"")
    return None


async def balance_remarks(
    chain: Chain, token: bytes, who: bytes, received: Mapping[int, int]
) -> tuple[str, ...]:
    """Lines of text about blocks in which the receiver's balance grew by less than was settled.

    A block whose balances the node cannot return has a line too.

    Args:
        who: 20 bytes, the receiver.
        received: block height -> raw units of `token` that were settled for `who` in that block.
    """
    remarks = []
    for number, amount in received.items():
        try:
            before, after = await all_of(lambda at: _balance(chain, token, who, at), (number - 1, number), 2)
        except ChainError:
            remarks.append(f"the node does not tell balances at block {number}")
            continue
        moved = after - before
        if moved < amount:
            remarks.append(
                f"block {number}: {amount} raw units were settled for {to_checksum(who)}, "
                f"its balance moved by {moved}"
            )
    return tuple(remarks)


async def _balance(chain: Chain, token: bytes, who: bytes, number: int) -> int:
    if token == NATIVE_TOKEN:
        return await chain.balance(who, number)
    return told_number(await chain.call(EthCall(token, balance_of(who)), number), "no balance")
