"""The store's tables as data, from which the statements of both dialects are built. The DDL is in
`migrations/`.

New    insert, unless a row with the same values of one of `unique` exists
Cas    rewrite the `mutable` columns of the row with a key and version, and add 1 to its version
Put    insert; in a `repeatable` table an existing row stays unchanged
Drop   delete by key; a missing row is no error
"""

from typing import get_type_hints

from msgspec import Struct

from .rows import (
    Amount32,
    AuctionRound,
    BridgeEnd,
    BridgeTransfer,
    ChainCursor,
    ChainIntent,
    ChainTx,
    Delivery,
    DeltaFill,
    DeltaOrderRow,
    DeltaRefund,
    Effect,
    IssuedRoute,
    OrderDocument,
    OrderEvent,
    OtcCancel,
    OtcCancelUntil,
    OtcFill,
    OtcOrderRow,
    PartnerRow,
    PreSignature,
    Row,
    UsedNonce,
    Webhook,
)


class Unique(Struct, frozen=True):
    """A set of columns whose values no two rows of a table share, among the rows for which `where` (SQL)
    holds.
    """

    columns: tuple[str, ...]
    where: str = ""


class Table(Struct, frozen=True):
    """A table of the database.

    Attributes:
        row: struct with a field for each column, in the order of the columns, except the columns that the
            database fills in (`seq`, `n`, `tx`).
        unique: sets of columns whose values are unique, the key first; empty for an append-only table.
        mutable: columns that a `Cas` (a change that rewrites a row) sets, in this order. `version`, which
            each rewrite raises by 1, is not among them.
        repeatable: whether a `Put` of a row with an existing key leaves the table as it is; if False, the
            `Put` fails.
    """

    name: str
    row: type[Row]
    unique: tuple[Unique, ...] = ()
    mutable: tuple[str, ...] = ()
    repeatable: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Names of the table's columns, in order, without the columns that the database fills in."""
        return self.row.__struct_fields__

    @property
    def amounts(self) -> frozenset[str]:
        """Names of the columns that hold amounts."""
        kinds = get_type_hints(self.row, include_extras=True)
        return frozenset(name for name, kind in kinds.items() if kind == Amount32)

    @property
    def key(self) -> tuple[str, ...]:
        """Names of the columns that identify a row of the table."""
        return self.unique[0].columns


HOLDS_NONCE = "status NOT IN ('CANCELLED', 'EXPIRED', 'FAILED')"
"""SQL condition: the order occupies its nonce, which must not be signed again (choices.md#delta-orders)."""

_HASH = Unique(("order_hash",))
_LOG = Unique(("chain_id", "block_hash", "tx_hash", "log_index"))

DELTA_ORDER = Table(
    "delta_order",
    DeltaOrderRow,
    (_HASH, Unique(("chain_id", "owner", "nonce"), HOLDS_NONCE)),
    ("status", "updated_ms", "spent", "received", "is_final", "failures"),
)
DELTA_DOCUMENT = Table("delta_document", OrderDocument, (_HASH,))
DELTA_FILL = Table("delta_fill", DeltaFill, (_LOG,), repeatable=True)
BRIDGE_TRANSFER = Table("bridge_transfer", BridgeTransfer, (_LOG,), repeatable=True)
BRIDGE_END = Table(
    "bridge_end",
    BridgeEnd,
    (_LOG, Unique(("destination_chain_id", "end_tx", "end_log"), "state = 'DELIVERED'")),
    ("state", "end_block", "end_number", "end_tx", "end_log", "amount", "at_ms", "is_final"),
)
DELTA_REFUND = Table(
    "delta_refund",
    DeltaRefund,
    (Unique(("chain_id", "block_hash", "tx_hash", "log_index", "entry", "taken")),),
    ("is_final",),
)
AUCTION_ROUND = Table("auction_round", AuctionRound, (Unique(("auction_id", "order_hash")),))
OTC_ORDER = Table(
    "otc_order",
    OtcOrderRow,
    (_HASH,),
    (
        "status",
        "updated_ms",
        "remaining",
        "maker_balance",
        "reserved",
        "swappable",
        "transaction_hash",
        "is_final",
    ),
)
OTC_DOCUMENT = Table("otc_document", OrderDocument, (_HASH,))
ORDER_EVENT = Table("order_event", OrderEvent)
EFFECT = Table("effect", Effect, (Unique(("key",)),), ("state", "attempts", "due_ms", "updated_ms"))
FIRST_OF_NONCE = "replaces IS NULL AND status <> 'REPLACED'"
"""SQL condition for a nonce's first transaction that is not replaced: at most one row per relayer account and
nonce meets it.
"""

CHAIN_TX = Table(
    "chain_tx",
    ChainTx,
    (Unique(("tx_hash",)), Unique(("chain_id", "sender", "nonce"), FIRST_OF_NONCE)),
    ("status", "updated_ms", "block_number", "block_hash"),
)
CHAIN_INTENT = Table(
    "chain_intent",
    ChainIntent,
    (Unique(("effect_key",)),),
    ("state", "reason", "mined_hash", "block_number", "block_hash", "updated_ms", "cause", "error4"),
)
CHAIN_CURSOR = Table(
    "chain_cursor",
    ChainCursor,
    (Unique(("chain_id",)),),
    ("block_number", "block_hash", "ring", "updated_ms"),
)
NONCE_USED = Table("nonce_used", UsedNonce, (Unique(("chain_id", "owner", "nonce")),), repeatable=True)
OTC_FILL = Table("otc_fill", OtcFill, (_LOG,), repeatable=True)
OTC_CANCEL = Table("otc_cancel", OtcCancel, (_LOG,), repeatable=True)
OTC_CANCEL_UNTIL = Table("otc_cancel_until", OtcCancelUntil, (_LOG,), repeatable=True)
PRE_SIGNATURE = Table("pre_signature", PreSignature, (_LOG,), repeatable=True)
ISSUED_ROUTE = Table("issued_route", IssuedRoute, (Unique(("digest",)),), repeatable=True)
PARTNER = Table("partner", PartnerRow, (Unique(("name",)),), ("address", "fee_bps", "tier", "updated_ms"))
WEBHOOK = Table("webhook", Webhook, (Unique(("name",)),), ("token", "updated_ms"))
DELIVERY = Table(
    "delivery",
    Delivery,
    (Unique(("webhook", "token")),),
    ("created_ms", "state", "tries", "due_ms", "reason", "updated_ms"),
    repeatable=True,
)

TABLES = {
    table.name: table
    for table in (
        DELTA_ORDER,
        DELTA_DOCUMENT,
        DELTA_FILL,
        BRIDGE_TRANSFER,
        BRIDGE_END,
        DELTA_REFUND,
        AUCTION_ROUND,
        OTC_ORDER,
        OTC_DOCUMENT,
        ORDER_EVENT,
        EFFECT,
        CHAIN_TX,
        CHAIN_INTENT,
        CHAIN_CURSOR,
        NONCE_USED,
        OTC_FILL,
        OTC_CANCEL,
        OTC_CANCEL_UNTIL,
        PRE_SIGNATURE,
        ISSUED_ROUTE,
        PARTNER,
        WEBHOOK,
        DELIVERY,
    )
}
"""Every table that a unit of changes may write: name -> table."""

CHAIN_LOGS = (
    DELTA_FILL,
    BRIDGE_TRANSFER,
    OTC_FILL,
    OTC_CANCEL,
    OTC_CANCEL_UNTIL,
    PRE_SIGNATURE,
    NONCE_USED,
)
"""Tables of a chain's logs, each with `chain_id` and `block_number`: a re-organisation deletes the rows above
the last common block.
"""
