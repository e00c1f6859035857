"""Outcomes of a trade: a sent transaction or an order handed to a venue, and their texts. Pure."""

from collections.abc import Iterator
from enum import Enum
from typing import TYPE_CHECKING, Any, Self

from msgspec import Struct

from ....codecs.amounts import format_units
from ....config.error_text import one_line
from ....crypto.hexadecimal import to_hex
from ...chain.port import Receipt
from ...chain.transact import StepFailedError

if TYPE_CHECKING:
    from rich.table import Table


class TradeVerdict(Enum):
    """The final verdict on a trade.

    A mined transaction: SWAPPED (Market swap), FILLED (fill of an OTC order), REVERTED.
    An order that has ended: SETTLED (Delta, completed), FULFILLED (OTC, all filled), ENDED (any other end).
    An order that the venue has just accepted: PLACED (Delta), POSTED (OTC).
    A dry run, which sends nothing: REHEARSED.
    UNKNOWN: the trade may still succeed, or the chain contradicts the venue.
    """

    SWAPPED = "swapped"
    FILLED = "filled"
    SETTLED = "settled"
    FULFILLED = "fulfilled"
    PLACED = "placed"
    POSTED = "posted"
    REHEARSED = "rehearsed"
    ENDED = "ended"
    REVERTED = "reverted"
    UNKNOWN = "unknown"


class SentOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of a trade that the trader itself sends as a transaction: a Market swap or an OTC fill.

    Attributes:
        step: the transaction's name: `swap`, `fill`, or the `approval` that failed; `price` for the rehearsal
            of a swap that needs an approval first.
        tx_hash: 32 bytes; empty for a rehearsal (dry run).
        spent, received: raw units, from the contract's event; for a rehearsal as simulated or agreed.
        gas: used units of gas; for a rehearsal the gas limit.
        reason: the reason of a revert, or why the outcome is unknown.
        remarks: notes for the trader.
    """

    verdict: TradeVerdict
    step: str
    tx_hash: bytes = b""
    block_number: int = 0
    spent: int = 0
    received: int = 0
    gas: int = 0
    gas_price_wei: int = 0
    reason: str = ""
    remarks: tuple[str, ...] = ()


class OrderOutcome(Struct, frozen=True, kw_only=True):
    """The outcome of an order submitted to a venue: the members common to Delta and OTC orders.

    Attributes:
        order_hash: 32 bytes; empty if no order was built or signed.
        step: `order`, or the preceding transaction that failed: `approval`, `deposit`.
        tx_hash: hash of the failed transaction; empty if none failed.
    """

    verdict: TradeVerdict
    order_hash: bytes = b""
    step: str = "order"
    tx_hash: bytes = b""
    reason: str = ""

    @classmethod
    def failed(cls, failed: StepFailedError, order_hash: bytes = b"") -> Self:
        """The outcome of an order that was not placed because its approval or deposit failed.

        The approval or deposit reverted, or was not mined in time.
        """
        return cls(
            verdict=failed_verdict(failed),
            order_hash=order_hash,
            step=failed.step,
            tx_hash=failed.tx_hash,
            reason=failed.reason,
        )


def mined_outcome(receipt: Receipt, verdict: TradeVerdict, step: str, **members: Any) -> SentOutcome:
    """The outcome of a trade whose transaction was mined, with block and gas from the receipt.

    Args:
        members: further members of the outcome.
    """
    return SentOutcome(
        verdict=verdict,
        step=step,
        tx_hash=receipt.tx_hash,
        block_number=receipt.block_number,
        gas=receipt.gas_used,
        gas_price_wei=receipt.gas_price_wei,
        **members,
    )


def failed_verdict(failed: StepFailedError) -> TradeVerdict:
    """Verdict on a failed transaction: REVERTED if it was mined, UNKNOWN if it may still be mined."""
    return TradeVerdict.REVERTED if failed.receipt is not None else TradeVerdict.UNKNOWN


def failed_outcome(failed: StepFailedError, unmined: str = "") -> SentOutcome:
    """The outcome of a transaction that reverted, or was not mined in time.

    Args:
        unmined: text that precedes the reason if the transaction was not mined.
    """
    verdict = failed_verdict(failed)
    if failed.receipt is not None:
        return mined_outcome(failed.receipt, verdict, failed.step, reason=failed.reason)
    reason = ": ".join(text for text in (unmined, failed.reason) if text)
    return SentOutcome(verdict=verdict, step=failed.step, tx_hash=failed.tx_hash, reason=reason)


def new_table() -> "Table":
    """An empty table for the terms that a trader agrees to: a column of names, a column of terms."""
    from rich.table import Table

    table = Table(show_header=False, box=None, pad_edge=False)
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    return table


def followed_verdict(fault: str, end: TradeVerdict | None) -> tuple[TradeVerdict, str]:
    """(verdict, reason) on an order that was followed at a venue.

    Args:
        fault: text about how the chain contradicts the venue's record; empty if it does not.
        end: the verdict by the venue's record; None if the order has not ended.
    """
    if fault or end is None:
        return TradeVerdict.UNKNOWN, fault or "time is up, and it has not ended"
    return end, ""


def order_lines_of(outcome: OrderOutcome, known: str, *, has_ended: bool) -> Iterator[str]:
    """The first lines of text about an order's outcome: verdict, hash and reason.

    Args:
        known: text of the order's status at the venue; empty without a venue's record.
        has_ended: whether that status is final.
    """
    if known:
        goes_on = outcome.verdict is TradeVerdict.UNKNOWN and not has_ended
        yield f"order {'not ended' if goes_on else outcome.verdict.value}: {known}"
    elif outcome.tx_hash:
        yield f"{outcome.step} {outcome.verdict.value}: {to_hex(outcome.tx_hash)}"
    else:
        unsent = ", nothing was signed" if outcome.verdict is TradeVerdict.REHEARSED else ""
        yield f"order {outcome.verdict.value}{unsent}"
    if outcome.order_hash:
        yield f"hash         {to_hex(outcome.order_hash)}"
    if outcome.reason:
        yield f"reason       {one_line(outcome.reason)}"


def sent_line(outcome: SentOutcome) -> str:
    """Line of text with the step, the verdict and the hash of a trade's transaction."""
    if outcome.tx_hash:
        return f"{outcome.step} {outcome.verdict.value}: {to_hex(outcome.tx_hash)}"
    return f"{outcome.step} {outcome.verdict.value}, nothing was sent"


def gas_lines(outcome: SentOutcome) -> Iterator[str]:
    """Line of text with the gas units and the fee of a mined transaction; no line without a gas price."""
    if outcome.gas_price_wei:
        fee = format_units(outcome.gas * outcome.gas_price_wei, 18)
        yield f"gas          {outcome.gas} units, {fee} of the native token"
