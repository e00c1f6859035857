"""Makes the public record of a Delta order, which the API returns for a submission and each read. Pure.

    row + document + fills + transfers -> OrderRecord; a new order has no fills or transfers

             SELL                                      BUY
    input    amount                                    expectedAmount, executedAmount, maxAmount
    output   expectedAmount, executedAmount, minAmount amount

Source: spec 1.10; interop.md 2 (`Record`).
Choice: `expectedAmount` is the order's, null for a TWAP. `executedAmount` is null before the first fill, then
    the sum of all fills.
Choice: `filledPercent` is a transaction's own share with at most 6 decimals; shares of a filled order add up
    to exactly 100.
Choice: Addresses of a record have checksums, in the signed struct too: the native placeholder returns as it
    is accepted.
Choice: `input.amount` of a sale of a vault's shares is the estimate that its owner signed; `executedAmount`
    beside it is the amount that the shares gave.
Choice: On one chain `destinationTx` is `originTx`, and an order has no refunds. Across chains `destinationTx`
    and `receivedAmount` of a transaction are null until its delivery is verified, and a sale's
    `executedAmount` counts verified deliveries alone.
Choice: With a swap on the destination, `beneficiary` and `output` are those of the swap, `expectedAmount` is
    null, and `destinationTx` is the swap's transaction. If the bridge's token was paid out instead, `output`
    is of that token.
Choice: `output.token` is the native placeholder where the bridge unwraps its token for the beneficiary: as
    the order's submission found the account, and after a delivery, as its transaction shows.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from msgspec import UNSET
from msgspec.structs import replace

from .....codecs.bridges.arrivals import ArrivalTerms
from .....codecs.iso_time import iso_ms
from .....codecs.messages.delta_messages import OrderInput, OrderOutput, OrderRecord, OrderTransaction
from .....codecs.messages.delta_messages import Refund as RefundEntry
from .....codecs.messages.vocabulary import Side
from .....config.limits import NATIVE_PLACEHOLDER
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import to_hex
from ....store.rows import BridgeEndState, DeltaFill, DeltaOrderRow, DeltaRefund, amount_of
from ...orders.order_units import order_id
from .arriving import arrival_of
from .document import DeltaDocument, order_of, shown_order
from .terms import (
    OrderTerms,
    SettledOrder,
    UnslicedOrder,
    output_total,
    sells_shares,
    terms_of,
    whole_of,
)
from .transfers import OrderTransfer, bridge_of, delivered, transfers_of_fills

_token_text = lru_cache(maxsize=1_024)(to_checksum)  # many orders, few tokens
_AS_IT_CAME = (BridgeEndState.DELIVERED, BridgeEndState.UNWRAPPED)
_PERCENT = 100
_PERCENT_DECIMALS = 6


def order_record(
    row: DeltaOrderRow,
    document: DeltaDocument,
    fills: Sequence[DeltaFill],
    transfers: Sequence[OrderTransfer],
) -> OrderRecord:
    """Make the public record of a Delta order, as the API returns it, from its stored rows.

    Args:
        fills: fills of the order, oldest first.
        transfers: bridge transfers of the order, oldest first; empty for an order on one chain.
    """
    order = order_of(document)
    return _record(row, document, order, terms_of(order), fills, transfers)


def new_record(
    row: DeltaOrderRow, document: DeltaDocument, order: SettledOrder, terms: OrderTerms
) -> OrderRecord:
    """Make the public record of a newly submitted Delta order, which has no fills and no transfers.

    Args:
        order, terms: decoded struct of the document, and its terms.
    """
    return _record(row, document, order, terms, (), ())


def _record(
    row: DeltaOrderRow,
    document: DeltaDocument,
    order: SettledOrder,
    terms: OrderTerms,
    fills: Sequence[DeltaFill],
    transfers: Sequence[OrderTransfer],
) -> OrderRecord:
    given, got = _ends(row, order, terms, fills, transfers)
    if _is_unwrapped(document, transfers):
        got = replace(got, token=NATIVE_PLACEHOLDER)
    owner, beneficiary = to_checksum(row.owner), terms.beneficiary
    arrival = arrival_of(order, document.arrivals)
    if arrival is not None:
        # After a pay-out the beneficiary has the bridge's token: `output` stays in the units of that token.
        beneficiary = arrival.beneficiary
        if BridgeEndState.PAID_OUT not in _end_states(transfers) and not arrival.is_wrap:
            got = _swapped(got, arrival)
    created_at = iso_ms(row.created_ms)
    return OrderRecord(
        id=str(order_id(row.order_hash)),
        status=row.status,
        side=row.side,
        type=row.type,
        on_chain_order_type=row.kind,
        input=given,
        output=got,
        owner=owner,
        beneficiary=owner if beneficiary == row.owner else to_checksum(beneficiary),
        order_hash=to_hex(row.order_hash),
        partner=row.partner,
        order=shown_order(document),
        transactions=_transactions(order, fills, transfers),
        refunds=_refunds(transfers),
        created_at=created_at,
        updated_at=created_at if row.updated_ms == row.created_ms else iso_ms(row.updated_ms),
        expires_at=iso_ms(row.expires_s * 1_000),
    )


def _ends(
    row: DeltaOrderRow,
    order: SettledOrder,
    terms: OrderTerms,
    fills: Sequence[DeltaFill],
    transfers: Sequence[OrderTransfer],
) -> tuple[OrderInput, OrderOutput]:
    bridge = bridge_of(order)
    is_bridged = bridge.destination_chain_id != 0
    dest_chain = bridge.destination_chain_id if is_bridged else row.chain_id
    src, dest = (
        _token_text(terms.src_token),
        _token_text(bridge.output_token if is_bridged else terms.dest_token),
    )
    expected = str(order.expected_amount) if isinstance(order, UnslicedOrder) else None
    spent = str(sum(amount_of(fill.spent) for fill in fills)) if fills else None
    if row.side is Side.SELL:
        received = _received(fills, transfers, is_bridged=is_bridged)
        return (
            OrderInput(
                chain_id=row.chain_id,
                token=src,
                amount=str(terms.src_total),
                executed_amount=spent if sells_shares(order) else UNSET,
            ),
            OrderOutput(
                chain_id=dest_chain,
                token=dest,
                expected_amount=expected,
                executed_amount=received,
                min_amount=str(output_total(order)),
            ),
        )
    return (
        OrderInput(
            chain_id=row.chain_id,
            token=src,
            expected_amount=expected,
            executed_amount=spent,
            max_amount=str(terms.src_total),
        ),
        OrderOutput(chain_id=dest_chain, token=dest, amount=str(output_total(order))),
    )


def _end_states(transfers: Sequence[OrderTransfer]) -> list[BridgeEndState]:
    return [transfer.end.state for transfer in transfers if transfer.end is not None]


def _is_unwrapped(document: DeltaDocument, transfers: Sequence[OrderTransfer]) -> bool:
    """Whether the beneficiary gets native tokens: as the last delivery shows, else as expected."""
    told = [state is BridgeEndState.UNWRAPPED for state in _end_states(transfers) if state in _AS_IT_CAME]
    return told[-1] if told else document.is_unwrapped


def _swapped(output: OrderOutput, arrival: ArrivalTerms) -> OrderOutput:
    """Return the output of an order with a swap on its destination, in units of the token that is wanted."""
    return replace(
        output, token=_token_text(arrival.dest_token), expected_amount=None, min_amount=str(arrival.least)
    )


def _received(
    fills: Sequence[DeltaFill], transfers: Sequence[OrderTransfer], *, is_bridged: bool
) -> str | None:
    if is_bridged:
        return str(delivered(transfers)) if any(transfer.delivery for transfer in transfers) else None
    return str(sum(amount_of(fill.received) for fill in fills)) if fills else None


def _transactions(
    order: SettledOrder, fills: Sequence[DeltaFill], transfers: Sequence[OrderTransfer]
) -> tuple[OrderTransaction, ...]:
    whole = whole_of(order)
    is_bridged = bridge_of(order).destination_chain_id != 0
    shown, before = [], Decimal(0)
    for fill, transfer in zip(fills, transfers_of_fills(fills, transfers), strict=True):
        so_far = _percent(amount_of(fill.filled), whole)
        tx = to_hex(fill.tx_hash)
        arrived, received = (None, None) if is_bridged else (tx, str(amount_of(fill.received)))
        delivery = None if transfer is None else transfer.delivery
        if delivery is not None and delivery.end_tx is not None:
            arrived, received = to_hex(delivery.end_tx), str(amount_of(delivery.amount))
        shown.append(OrderTransaction(tx, arrived, so_far - before, str(amount_of(fill.spent)), received))
        before = so_far
    return tuple(shown)


def _percent(filled: int, whole: int) -> Decimal:
    scaled = filled * _PERCENT * 10**_PERCENT_DECIMALS // whole
    percent, rest = divmod(scaled, 10**_PERCENT_DECIMALS)
    return Decimal(f"{percent}.{rest:0{_PERCENT_DECIMALS}d}".rstrip("0").rstrip("."))


def _refunds(transfers: Sequence[OrderTransfer]) -> tuple[RefundEntry, ...]:
    refunds = [refund for transfer in transfers for refund in transfer.refunds]
    return tuple(map(_refund, sorted(refunds, key=lambda refund: refund.at_ms)))


def _refund(refund: DeltaRefund) -> RefundEntry:
    return RefundEntry(
        to_hex(refund.tx_hash), refund.chain_id, to_checksum(refund.token), str(amount_of(refund.amount))
    )
