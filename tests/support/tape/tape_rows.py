"""Rows of fills and of settled Delta orders, as sentences.

store_settled(number, agent="ann", spent=ONE, received=2_500 * USD)    rows of a settled order, for the store
"""

from typing import Any

import msgspec

from cambist.codecs.eip712_orders.delta import KIND_BUY, AnyDeltaOrder, DeltaOrder
from cambist.codecs.messages.vocabulary import OrderType
from cambist.engine.store.rows import (
    ChainTx,
    DeltaFill,
    DeltaOrderRow,
    Effect,
    EffectState,
    OrderDocument,
    OtcFill,
    TxStatus,
    amount32,
)
from cambist.engine.store.tables import CHAIN_TX, DELTA_DOCUMENT, DELTA_FILL, DELTA_ORDER, EFFECT, OTC_FILL
from cambist.engine.store.units import Change, new, put
from cambist.engine.trade.delta.orders.document import DeltaDocument, encode_document, order_json
from cambist.engine.trade.delta.orders.life import SETTLE
from cambist.engine.trade.delta.settlement.settling import Settlement
from cambist.engine.trade.tape.trades import TradeAccounts, TradedOrder
from support.delta.bidding import a_round_order
from support.store.stores import NOW_MS, USDC, WETH, a_delta_order, hash_of

CHAIN_ID = 1
ROUTER, EXECUTOR, DELTA_CONTRACT = b"\x01" * 20, b"\x04" * 20, b"\x02" * 20
ALPHA, BETA, STRANGER = b"\x0a" * 20, b"\x0b" * 20, b"\x0c" * 20
DAI = b"\xda" * 20
ACCOUNTS = TradeAccounts(ROUTER, EXECUTOR, {ALPHA: "alpha", BETA: "beta"})
ONE, USD = 10**18, 10**6


def an_otc_fill(number: int, **changed: Any) -> OtcFill:
    """Alpha gives 2,500 USDC for a WETH, to the Router, in block and transaction `number`."""
    values: dict[str, Any] = {
        "chain_id": CHAIN_ID,
        "block_hash": hash_of(1_000 + number),
        "tx_hash": hash_of(2_000 + number),
        "log_index": 3,
        "block_number": number,
        "order_hash": hash_of(3_000 + number),
        "maker": ALPHA,
        "taker": ROUTER,
        "maker_asset": USDC,
        "taker_asset": WETH,
        "maker_amount": 2_500 * USD,
        "taker_amount": ONE,
        "at_ms": NOW_MS + number * 1_000,
    } | changed
    for name in ("maker_amount", "taker_amount"):
        values[name] = amount32(values[name])
    return OtcFill(**values)


def a_delta_fill(number: int, **changed: Any) -> DeltaFill:
    """A settlement of the order `number`, whole: a WETH for 2,500 USDC."""
    values: dict[str, Any] = {
        "chain_id": CHAIN_ID,
        "block_hash": hash_of(1_000 + number),
        "tx_hash": hash_of(2_000 + number),
        "log_index": 7,
        "block_number": number,
        "order_hash": hash_of(number),
        "destination_tx": None,
        "spent": ONE,
        "received": 2_500 * USD,
        "at_ms": NOW_MS + number * 1_000,
        "filled": ONE,
        "is_closed": True,
    } | changed
    for name in ("spent", "received", "filled"):
        values[name] = amount32(values[name])
    return DeltaFill(**values)


def a_sale(**changed: Any) -> DeltaOrder:
    """A signed order: a WETH for 2,400 USDC at least, 2,490 expected."""
    order = a_round_order(1).order
    assert isinstance(order, DeltaOrder)
    amounts = {"src_amount": ONE, "dest_amount": 2_400 * USD, "expected_amount": 2_490 * USD}
    return msgspec.structs.replace(order, src_token=WETH, dest_token=USDC, **amounts | changed)


def a_purchase(**changed: Any) -> DeltaOrder:
    """A signed order: 2,500 USDC for 1.1 WETH at most, 1.01 expected."""
    amounts = {"src_amount": ONE * 11 // 10, "dest_amount": 2_500 * USD, "expected_amount": ONE * 101 // 100}
    return a_sale(kind=KIND_BUY, **amounts | changed)


def a_settlement(key: str = "key", agent: str = "ann", **changed: Any) -> Settlement:
    values: dict[str, Any] = {"data": b"", "gas": 1, "deadline_s": 1, "auction_id": 7, "amount": "1"}
    values |= {"key": key, "agent": agent, "part_amount": str(ONE)} | changed
    return Settlement(**values)


def an_order_row(number: int, **changed: Any) -> DeltaOrderRow:
    """The row of order `number`, submitted 900 ms before its fill."""
    created_ms = NOW_MS + number * 1_000 - 900
    return msgspec.structs.replace(
        a_delta_order(number), **{"created_ms": created_ms, "type": OrderType.MARKET} | changed
    )


def traded(
    number: int = 1, order: AnyDeltaOrder | None = None, settlement: Settlement | None = None, **row: Any
) -> TradedOrder:
    return TradedOrder(an_order_row(number, **row), order or a_sale(), settlement)


def settled_rows(
    number: int, *agents: str, order: AnyDeltaOrder | None = None, fill: DeltaFill | None = None, **row: Any
) -> tuple[Change, ...]:
    """Rows of order `number` and its settlement, by the last of some agents; those before it have failed."""
    order, fill = order or a_sale(), fill or a_delta_fill(number)
    kept = an_order_row(number, order_hash=fill.order_hash, shard=fill.order_hash[0], **row)
    document = DeltaDocument("Order", order_json("Order", order), b"")
    changes: list[Change] = [
        new(DELTA_ORDER, kept),
        put(DELTA_DOCUMENT, OrderDocument(fill.order_hash, encode_document(document))),
        put(DELTA_FILL, fill),
    ]
    for at, agent in enumerate(agents):
        key = f"{number}:{at}"
        payload = msgspec.msgpack.encode(a_settlement(key, agent))
        is_last = at + 1 == len(agents)
        state = EffectState.INTENDED if is_last else EffectState.FAILED
        effect = Effect(key, fill.order_hash, kept.shard, SETTLE, payload, NOW_MS, 1, state, 0, 0, 0)
        changes.append(new(EFFECT, effect))
        if is_last:
            changes.append(new(CHAIN_TX, a_relay_tx(fill.tx_hash, key, number)))
    return tuple(changes)


def a_relay_tx(tx_hash: bytes, key: str, nonce: int) -> ChainTx:
    return ChainTx(
        tx_hash=tx_hash,
        chain_id=CHAIN_ID,
        sender=STRANGER,
        nonce=nonce,
        raw=b"",
        fee_max_wei=amount32(1),
        effect_key=key,
        replaces=None,
        created_ms=NOW_MS,
        version=1,
        status=TxStatus.SIGNED,
        updated_ms=NOW_MS,
        block_number=None,
        block_hash=None,
    )


def filled_rows(*fills: OtcFill) -> tuple[Change, ...]:
    return tuple([put(OTC_FILL, fill) for fill in fills])
