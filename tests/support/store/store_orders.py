"""Rows and units for tests of the store."""

import os
from typing import Any

from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.engine.store.rows import (
    NEVER_S,
    ChainCursor,
    DeltaFill,
    DeltaOrderRow,
    Effect,
    EffectState,
    amount32,
)
from cambist.engine.store.units import Fence, Unit
from cambist.engine.trade.orders.order_units import DELTA, Intent, step

ZERO = amount32(0)


def an_order(order_hash: bytes | None = None, **changed: Any) -> DeltaOrderRow:
    """A new order; its hash, nonce and owner are random unless given."""
    order_hash = order_hash or os.urandom(32)
    values: dict[str, Any] = {
        "order_hash": order_hash,
        "shard": order_hash[0],
        "chain_id": 1,
        "owner": os.urandom(20),
        "nonce": os.urandom(32),
        "kind": OnChainOrderType.ORDER,
        "type": OrderType.MARKET,
        "side": Side.SELL,
        "partner": "anon",
        "created_ms": 1_000,
        "expires_s": NEVER_S,
        "version": 1,
        "status": OrderStatus.PENDING,
        "updated_ms": 1_000,
        "spent": ZERO,
        "received": ZERO,
        "is_final": False,
    }
    return DeltaOrderRow(**{**values, **changed})


def submitted(order: DeltaOrderRow, *kinds: str) -> Unit:
    """Keep an order, with an effect of each kind."""
    return DELTA.submitted(order, b"document", [Intent(kind) for kind in kinds])


def advanced(
    order: DeltaOrderRow, status: OrderStatus, *kinds: str, fence: Fence | None = None, more: Any = ()
) -> tuple[DeltaOrderRow, Unit]:
    """(the order after a step, the step)."""
    after = step(order, 2_000, status=status)
    effects = [Intent(kind) for kind in kinds]
    return after, DELTA.advanced(order, after, effects=effects, fence=fence, more=more)


def an_effect(key: str) -> Effect:
    return Effect(key, bytes(32), 0, "test", b"", 1, 1, EffectState.INTENDED, 0, 0, 1)


def a_cursor(version: int = 1, block_number: int = 1) -> ChainCursor:
    return ChainCursor(1, version, block_number, bytes(32), b"", 1)


def a_fill(order: DeltaOrderRow, log_index: int = 0, block_hash: bytes = bytes(32)) -> DeltaFill:
    return DeltaFill(
        1, block_hash, bytes(32), log_index, 5, order.order_hash, None, ZERO, ZERO, 1, ZERO, False
    )
