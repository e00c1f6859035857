"""Results of trades in whole tokens, and the error of a trade that did not succeed. Pure."""

from typing import Any

from msgspec import Struct

from .....codecs.messages.vocabulary import OrderStatus, OtcState
from .....config.error_text import one_line
from .....config.errors import TradeFailed
from .....crypto.hexadecimal import to_hex
from ..order.order_following import TERMINAL, OfferTokens
from ..order.order_placing import OrderOffer
from ..order.order_view import DeltaOutcome
from ..otc.otc_terms import OTC_TERMINAL
from ..otc.otc_view import OtcOutcome
from ..outcome import OrderOutcome, SentOutcome, TradeVerdict
from ..terms import TradedToken
from .amounts import TokenAmount


def trade_failed(outcome: SentOutcome | OrderOutcome, offer: Any) -> TradeFailed:
    """The error of a trade that did not succeed after something was signed.

    Args:
        offer: the terms of the trade.
    """
    order_hash = outcome.order_hash if isinstance(outcome, OrderOutcome) else b""
    name = to_hex(outcome.tx_hash or order_hash) if outcome.tx_hash or order_hash else ""
    return TradeFailed(
        f"{outcome.step} {outcome.verdict.value}{f' ({name})' if name else ''}{_because(outcome.reason)}",
        verdict=outcome.verdict,
        tx_hash=to_hex(outcome.tx_hash) if outcome.tx_hash else "",
        order_hash=to_hex(order_hash) if order_hash else "",
        outcome=outcome,
        offer=offer,
    )


class TradeResult(Struct, frozen=True, kw_only=True):
    """The result of a transaction of the trader: a Market swap, or the fill of an OTC order.

    Attributes:
        verdict: SWAPPED or FILLED; REHEARSED for a rehearsal, which signs no transaction.
        spent, received: amounts by the contract's event; of a rehearsal as simulated.
        tx_hash: hash of the transaction in hexadecimal; empty for a rehearsal.
        gas_wei: fee of the transaction, wei of the native token.
        offer, outcome: the terms and the outcome with all members, which may change between versions.
    """

    verdict: TradeVerdict
    spent: TokenAmount
    received: TokenAmount
    tx_hash: str
    block_number: int
    gas_wei: int
    offer: Any
    outcome: SentOutcome

    def __str__(self) -> str:
        """The result on two lines: verdict and amounts, then the transaction, which a rehearsal lacks."""
        sent = f"\ntransaction {self.tx_hash} in block {self.block_number}" if self.tx_hash else ""
        return f"{self.verdict.value}: {self.spent} for {self.received}{sent}"


class DeltaOrderState(Struct, frozen=True, kw_only=True):
    """A Delta order as the venue shows it, checked on the chain where a node is known.

    Attributes:
        verdict: PLACED if the venue has just accepted the order, SETTLED if the order is completed, ENDED
            after another end; UNKNOWN if the chain contradicts the venue or cannot be asked, or if an order
            that was followed or looked at has not ended; REHEARSED for a rehearsal.
        id: the venue's id; empty for a rehearsal.
        order_hash: the hash in hexadecimal that the owner signed.
        status: the venue's status; None for a rehearsal.
        spent, received: amounts that the settlements moved, by the chain; None before the order ended, or if
            a token is not known.
        reason: reason of the verdict UNKNOWN; empty for none.
        tokens, offer, outcome: tokens, terms and outcome with all members, which may change between versions.
    """

    verdict: TradeVerdict
    id: str
    order_hash: str
    status: OrderStatus | None
    spent: TokenAmount | None
    received: TokenAmount | None
    reason: str
    tokens: OfferTokens
    offer: OrderOffer | None
    outcome: DeltaOutcome

    @property
    def has_ended(self) -> bool:
        """Whether the order has ended, by the venue's record."""
        return self.status in TERMINAL

    @property
    def is_settled(self) -> bool:
        """Whether the order is completed, and nothing on the chain contradicts that."""
        return self.verdict is TradeVerdict.SETTLED

    def __str__(self) -> str:
        """The order on two lines: verdict and moved amounts or the reason, then id and status."""
        moved = f": {self.spent} for {self.received}" if self.spent and self.received else ""
        named = f"\norder {self.id} {self.status.value}" if self.status else ""
        return f"{self.verdict.value}{moved or _because(self.reason)}{named}"


class OtcOrderState(Struct, frozen=True, kw_only=True):
    """An OTC order as the venue shows it.

    Attributes:
        verdict: POSTED if the venue has just accepted the order, FULFILLED or ENDED at its end; UNKNOWN if
            the chain contradicts the venue, or if a followed order has not ended; REHEARSED for a rehearsal.
        order_hash: the hash in hexadecimal; empty for a rehearsal.
        state: the venue's state; None for a rehearsal.
        signed: the signed order as JSON, which a taker can fill without the venue; empty for an order that
            was not posted by this call.
        outcome: the outcome with all of its members, which may change between versions.
    """

    verdict: TradeVerdict
    order_hash: str
    state: OtcState | None
    signed: str
    reason: str
    offer: Any
    outcome: OtcOutcome

    @property
    def has_ended(self) -> bool:
        """Whether the order has ended, by the venue's record."""
        return self.state in OTC_TERMINAL

    def __str__(self) -> str:
        """The order on two lines: verdict and reason, then hash and state."""
        named = f"\norder {self.order_hash} {self.state.value}" if self.state else ""
        return f"{self.verdict.value}{_because(self.reason)}{named}"


def _because(reason: str) -> str:
    return f": {one_line(reason)}" if reason else ""


def trade_result(offer: Any, outcome: SentOutcome, src: TradedToken, dest: TradedToken) -> TradeResult:
    """The result of a transaction that succeeded or was rehearsed.

    Raises:
        TradeFailed: the transaction reverted, or its end is not known.
    """
    if outcome.verdict in (TradeVerdict.REVERTED, TradeVerdict.UNKNOWN):
        raise trade_failed(outcome, offer)
    return TradeResult(
        verdict=outcome.verdict,
        spent=TokenAmount(outcome.spent, src),
        received=TokenAmount(outcome.received, dest),
        tx_hash=to_hex(outcome.tx_hash) if outcome.tx_hash else "",
        block_number=outcome.block_number,
        gas_wei=outcome.gas * outcome.gas_price_wei,
        offer=offer,
        outcome=outcome,
    )


def order_state(
    outcome: DeltaOutcome, tokens: OfferTokens, offer: OrderOffer | None = None
) -> DeltaOrderState:
    """The public form of a Delta order's outcome."""
    record, settled = outcome.record, outcome.settled
    return DeltaOrderState(
        verdict=outcome.verdict,
        id="" if record is None else record.id,
        order_hash=to_hex(outcome.order_hash) if outcome.order_hash else "",
        status=None if record is None else record.status,
        spent=None if settled is None or tokens.src is None else TokenAmount(settled.spent, tokens.src),
        received=None
        if settled is None or tokens.dest is None
        else TokenAmount(settled.received, tokens.dest),
        reason=outcome.reason,
        tokens=tokens,
        offer=offer,
        outcome=outcome,
    )
