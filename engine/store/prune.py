"""The SQL by which retention deletes rows: orders that ended long ago with their dependent rows, expired
routes, and old deliveries to webhooks in any state.

An order with an unfinished effect is not deleted, even in a final state: a refund may be due.

A relayer's intent is deleted once it has ended and no effect has its key: while an effect has the key, the
intent keeps the effect from being done twice. The intent's transactions are deleted with it, as are
transactions that only filled a nonce.

The RFQ contract also logs fills of firm quotes: a log without an order of this venue is deleted by age.

Events are deleted by age alone, the oldest first: a resume token older than the retention period starts at
the oldest event left. Nonces used on the chain stay, so that they are never accepted in a new signature.
"""

from .tables import DELTA_ORDER, OTC_ORDER

_OF_DELTA = (
    "delta_document",
    "delta_fill",
    "bridge_transfer",
    "bridge_end",
    "delta_refund",
    "auction_round",
    "pre_signature",
)
_OF_RFQ = ("otc_fill", "otc_cancel")
_OF_OTC = ("otc_document", *_OF_RFQ)


def _ended(table: str) -> str:
    return (
        f"SELECT order_hash FROM {table} o WHERE is_final = TRUE AND updated_ms < :before_ms AND NOT EXISTS "
        "(SELECT 1 FROM effect e WHERE e.order_hash = o.order_hash AND e.state = 'INTENDED') "
        "ORDER BY updated_ms, order_hash LIMIT :rows_max"
    )


def _statements(table: str, belonging: tuple[str, ...]) -> tuple[str, ...]:
    ended = _ended(table)
    return (
        f"DELETE FROM effect WHERE order_hash IN ({ended})",
        *(f"DELETE FROM {name} WHERE order_hash IN ({ended})" for name in belonging),
        f"DELETE FROM {table} WHERE order_hash IN ({ended})",
    )


PRUNES = (
    *_statements(DELTA_ORDER.name, _OF_DELTA),
    *_statements(OTC_ORDER.name, _OF_OTC),
    (
        "DELETE FROM chain_intent WHERE effect_key IN (SELECT effect_key FROM chain_intent i "
        "WHERE state IN ('FINAL', 'FAILED', 'CANCELLED') AND updated_ms < :before_ms "
        "AND NOT EXISTS (SELECT 1 FROM effect e WHERE e.key = i.effect_key) "
        "ORDER BY updated_ms LIMIT :rows_max)"
    ),
    (
        "DELETE FROM chain_tx WHERE tx_hash IN (SELECT tx_hash FROM chain_tx t "
        "WHERE status IN ('FINAL', 'FAILED', 'REPLACED') AND updated_ms < :before_ms "
        "AND NOT EXISTS (SELECT 1 FROM chain_intent i WHERE i.effect_key = t.effect_key) "
        "ORDER BY updated_ms LIMIT :rows_max)"
    ),
    *(
        f"DELETE FROM {name} WHERE at_ms < :before_ms AND order_hash IN (SELECT order_hash FROM {name} r "
        "WHERE at_ms < :before_ms "
        "AND NOT EXISTS (SELECT 1 FROM otc_order o WHERE o.order_hash = r.order_hash) "
        "ORDER BY at_ms LIMIT :rows_max)"
        for name in _OF_RFQ
    ),
    (
        "DELETE FROM order_event WHERE at_ms < :before_ms "
        "AND n IN (SELECT n FROM order_event ORDER BY n LIMIT :rows_max)"
    ),
    (
        "DELETE FROM delivery WHERE created_ms < :before_ms AND (webhook, token) IN "
        "(SELECT webhook, token FROM delivery ORDER BY created_ms LIMIT :rows_max)"
    ),
    (
        "DELETE FROM issued_route WHERE digest IN "
        "(SELECT digest FROM issued_route WHERE expires_ms < :before_ms ORDER BY expires_ms LIMIT :rows_max)"
    ),
)
"""DELETE statements of one retention step, run in this order in one transaction. Parameters: `before_ms`,
Unix milliseconds, and `rows_max`.
"""
