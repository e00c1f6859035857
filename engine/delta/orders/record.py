"""Makes the public record of a Delta order, which the API returns for a submission and each read. Pure.

    row + document + fills + refunds -> OrderRecord; a new order has no fills or refunds

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
Choice: On one chain `destinationTx` is `originTx`, and an order has no refunds.
"""

from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache

from ....codecs.eip712_orders.delta import KIND_BUY, DeltaOrder
from ....codecs.iso_time import iso_ms
from ....codecs.messages.delta_messages import OrderInput, OrderOutput, OrderRecord, OrderTransaction
from ....codecs.messages.delta_messages import Refund as RefundEntry
from ....codecs.messages.vocabulary import Side
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...orders.order_units import order_id
from ...store.rows import DeltaFill, DeltaOrderRow, DeltaRefund, amount_of
from .document import DeltaDocument, order_of, shown_order
from .terms import OrderTerms, SettledOrder, terms_of

_token_text = lru_cache(maxsize=1_024)(to_checksum)  # many orders, few tokens
_PERCENT = 100
_PERCENT_DECIMALS = 6


def order_record(
    row: DeltaOrderRow, document: DeltaDocument, fills: Sequence[DeltaFill], refunds: Sequence[DeltaRefund]
) -> OrderRecord:
    """Make the public record of a Delta order, as the API returns it, from its stored rows.

    Args:
        fills: fills of the order, oldest first.
    """
    order = order_of(document)
    if not isinstance(order, SettledOrder):
        raise TypeError(f"{document.order_type} is not kept")
    return _record(row, document, order, terms_of(order), fills, refunds)


def new_record(
    row: DeltaOrderRow, document: DeltaDocument, order: SettledOrder, terms: OrderTerms
) -> OrderRecord:
    """Make the public record of a newly submitted Delta order, which has no fills and no refunds.

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
    refunds: Sequence[DeltaRefund],
) -> OrderRecord:
    given, got = _ends(row, order, terms, fills)
    owner = to_checksum(row.owner)
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
        beneficiary=owner if terms.beneficiary == row.owner else to_checksum(terms.beneficiary),
        order_hash=to_hex(row.order_hash),
        partner=row.partner,
        order=shown_order(document),
        transactions=_transactions(order, fills),
        refunds=tuple(_refund(refund) for refund in refunds),
        created_at=created_at,
        updated_at=created_at if row.updated_ms == row.created_ms else iso_ms(row.updated_ms),
        expires_at=iso_ms(row.expires_s * 1_000),
    )


def _ends(
    row: DeltaOrderRow, order: SettledOrder, terms: OrderTerms, fills: Sequence[DeltaFill]
) -> tuple[OrderInput, OrderOutput]:
    src, dest = _token_text(terms.src_token), _token_text(terms.dest_token)
    expected = str(order.expected_amount) if isinstance(order, DeltaOrder) else None
    if row.side is Side.SELL:
        received = str(sum(amount_of(fill.received) for fill in fills)) if fills else None
        return (
            OrderInput(chain_id=row.chain_id, token=src, amount=str(terms.src_total)),
            OrderOutput(
                chain_id=row.chain_id,
                token=dest,
                expected_amount=expected,
                executed_amount=received,
                min_amount=str(terms.dest_total),
            ),
        )
    spent = str(sum(amount_of(fill.spent) for fill in fills)) if fills else None
    return (
        OrderInput(
            chain_id=row.chain_id,
            token=src,
            expected_amount=expected,
            executed_amount=spent,
            max_amount=str(terms.src_total),
        ),
        OrderOutput(chain_id=row.chain_id, token=dest, amount=str(terms.dest_total)),
    )


def _transactions(order: SettledOrder, fills: Sequence[DeltaFill]) -> tuple[OrderTransaction, ...]:
    whole = _whole(order)
    shown, before = [], Decimal(0)
    for fill in fills:
        so_far = _percent(amount_of(fill.filled), whole)
        tx = to_hex(fill.tx_hash)
        shown.append(
            OrderTransaction(
                tx,
                tx if fill.destination_tx is None else to_hex(fill.destination_tx),
                so_far - before,
                str(amount_of(fill.spent)),
                str(amount_of(fill.received)),
            )
        )
        before = so_far
    return tuple(shown)


def _whole(order: SettledOrder) -> int:
    """Return an order's whole size: raw units to sell (SELL) or to buy (BUY); of a TWAP, number of slices."""
    if isinstance(order, DeltaOrder):
        return order.dest_amount if order.kind == KIND_BUY else order.src_amount
    return order.num_slices


def _percent(filled: int, whole: int) -> Decimal:
    scaled = filled * _PERCENT * 10**_PERCENT_DECIMALS // whole
    percent, rest = divmod(scaled, 10**_PERCENT_DECIMALS)
    return Decimal(f"{percent}.{rest:0{_PERCENT_DECIMALS}d}".rstrip("0").rstrip("."))


def _refund(refund: DeltaRefund) -> RefundEntry:
    return RefundEntry(
        to_hex(refund.tx_hash), refund.chain_id, to_checksum(refund.token), str(amount_of(refund.amount))
    )
