"""Stores to test with, and what is written to them: orders, steps, fills, cursors, as sentences.

order = await kept(store, a_delta_order(1, owner=ALICE))
order = await moved(store, order, status=OrderStatus.ACTIVE)
assert await found(store, order) == order
"""

import hashlib
import os
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar
from unittest.mock import patch

import pytest
import trio
from msgspec.structs import replace

from cambist.codecs.bridges.bridge_terms import SELECTORS, BridgeKind
from cambist.codecs.messages.vocabulary import (
    OnChainOrderType,
    OrderStatus,
    OrderType,
    OtcState,
    OtcType,
    Side,
)
from cambist.config.settings import parse_settings
from cambist.engine.store.process import process_link
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.queries import (
    DeltaFilter,
    OtcFilter,
    Query,
    among,
    by,
    delta_page,
    events_after,
    otc_page,
)
from cambist.engine.store.rows import (
    NEVER_S,
    AuctionRound,
    BridgeEnd,
    BridgeEndState,
    BridgeTransfer,
    ChainCursor,
    ChainIntent,
    ChainTx,
    DeltaFill,
    DeltaOrderRow,
    DeltaRefund,
    Effect,
    IntentState,
    OrderEvent,
    OtcOrderRow,
    TxStatus,
    amount32,
)
from cambist.engine.store.store import Store
from cambist.engine.store.tables import CHAIN_CURSOR, EFFECT, ORDER_EVENT, OTC_ORDER, Table
from cambist.engine.store.units import Change, Done, Fence, Unit, UnitOutcome, cas, row_of
from cambist.engine.trade.orders.order_units import DELTA, OTC, Intent, OrderKind, step
from support.order_of_tests import IS_WHOLE, drawn
from support.store.warm_store import spawn_warm

NOW_MS = 1_700_000_000_000
ALICE, BOB, CAROL = b"\xa1" * 20, b"\xb0" * 20, b"\xca" * 20
NOBODY = bytes(20)
WETH, USDC = b"\x0e" * 20, b"\x5d" * 20
ONE = 10**18

OrderRow = TypeVar("OrderRow", DeltaOrderRow, OtcOrderRow)


# --- Engines --------------------------------------------------------------------------------------------

_PAIRS = ("sqlite-inline", "postgres-process"), ("sqlite-process", "postgres-inline")
ENGINES = tuple(os.environ.get("STORE_ENGINES", "").split()) or (
    sum(_PAIRS, ()) if IS_WHOLE else _PAIRS[drawn("store engines", len(_PAIRS))]
)
"""Databases, each in this process or in one of its own: all in a whole run, else one of the pairs."""


class Engine:
    """A database of one test's own, which can be opened several times, one after the other.

    Args:
        url: of the `[store]` section.
        in_process: no store process.
    """

    def __init__(self, url: str, folder: Path, *, in_process: bool) -> None:
        self._url = url
        self._folder = folder
        self._in_process = in_process

    @asynccontextmanager
    async def open(self, *, queue_max: int = 1_024, batch_max: int = 256) -> AsyncIterator[Store]:
        """The store, running."""
        settings = parse_settings(
            f'[store]\nurl = "{self._url}"\nqueue_max = {queue_max}\nbatch_max = {batch_max}',
            {},
            self._folder,
        )
        with patch.object(process_link, "_spawn", spawn_warm):
            async with open_store(
                settings, os.environ, self._folder, lambda: NOW_MS, in_process=self._in_process
            ) as store:
                yield store


def engine_for(name: str, request: pytest.FixtureRequest, folder: Path) -> Engine:
    """The engine of ENGINES with this name, for the test of the request."""
    database, _, where = name.partition("-")
    url = request.getfixturevalue("postgres_url") if database == "postgres" else "sqlite:cambist.sqlite3"
    return Engine(url, folder, in_process=where == "inline")


# --- Rows -----------------------------------------------------------------------------------------------


def hash_of(number: int, *, shard: int | None = None) -> bytes:
    """32 bytes that no other number has."""
    digest = hashlib.sha256(b"order %d" % number).digest()
    return digest if shard is None else bytes([shard]) + digest[1:]


def a_delta_order(number: int = 1, *, shard: int | None = None, **changed: Any) -> DeltaOrderRow:
    """A pending sell order of Alice on chain 1; its number makes its hash, nonce and time."""
    order_hash = hash_of(number, shard=shard)
    row: dict[str, Any] = {
        "order_hash": order_hash,
        "shard": order_hash[0],
        "chain_id": 1,
        "owner": ALICE,
        "nonce": amount32(number),
        "kind": OnChainOrderType.ORDER,
        "type": OrderType.MARKET,
        "side": Side.SELL,
        "partner": "anon",
        "created_ms": NOW_MS + number,
        "expires_s": NOW_MS // 1_000 + 600,
        "version": 1,
        "status": OrderStatus.PENDING,
        "updated_ms": NOW_MS + number,
        "spent": amount32(0),
        "received": amount32(0),
        "is_final": False,
    }
    return DeltaOrderRow(**{**row, **changed})


def an_otc_order(number: int = 1, *, shard: int | None = None, **changed: Any) -> OtcOrderRow:
    """A pending order of Alice for Bob, 1 WETH for 2000 USDC on chain 1, without expiry."""
    order_hash = hash_of(number, shard=shard)
    row: dict[str, Any] = {
        "order_hash": order_hash,
        "shard": order_hash[0],
        "chain_id": 1,
        "maker": ALICE,
        "taker": BOB,
        "taker_from_meta": NOBODY,
        "maker_asset": WETH,
        "taker_asset": USDC,
        "maker_amount": amount32(ONE),
        "taker_amount": amount32(2_000 * 10**6),
        "type": OtcType.P2P,
        "created_ms": NOW_MS + number,
        "expires_s": NEVER_S,
        "version": 1,
        "status": OtcState.PENDING,
        "updated_ms": NOW_MS + number,
        "remaining": amount32(ONE),
        "maker_balance": amount32(ONE),
        "reserved": amount32(ONE),
        "swappable": amount32(ONE),
        "transaction_hash": None,
        "is_final": False,
    }
    return OtcOrderRow(**{**row, **changed})


def a_fill(order: DeltaOrderRow, *, block: int = 100, log: int = 0, spent: int = ONE) -> DeltaFill:
    """A settlement of an order, whose place in the chain follows from the block and the log."""
    return DeltaFill(
        order.chain_id,
        hash_of(1_000_000 + block),
        hash_of(2_000_000 + block),
        log,
        block,
        order.order_hash,
        None,
        amount32(spent),
        amount32(2_000 * 10**6),
        NOW_MS + block,
        amount32(spent),
        False,
    )


def a_refund(order: DeltaOrderRow, *, tx: int = 1) -> DeltaRefund:
    """A refund of an order's transfer on chain 1."""
    return DeltaRefund(
        1,
        hash_of(3_500_000 + tx),
        hash_of(3_000_000 + tx),
        4,
        0,
        amount32(0),
        1,
        200 + tx,
        order.order_hash,
        hash_of(1_000_000 + tx),
        hash_of(2_000_000 + tx),
        1,
        WETH,
        amount32(ONE),
        NOW_MS + tx,
        is_final=False,
    )


def a_transfer(order: DeltaOrderRow, *, block: int = 100, log: int = 1, **changed: Any) -> BridgeTransfer:
    """A transfer of an order to chain 10, by the settlement of `a_fill` in the same block."""
    row: dict[str, Any] = {
        "chain_id": order.chain_id,
        "block_hash": hash_of(1_000_000 + block),
        "tx_hash": hash_of(2_000_000 + block),
        "log_index": log,
        "block_number": block,
        "order_hash": order.order_hash,
        "selector4": SELECTORS[BridgeKind.ACROSS],
        "destination_chain_id": 10,
        "output_token": USDC,
        "amount": amount32(2_000 * 10**6),
        "output": amount32(1_990 * 10**6),
        "bridge_id": amount32(block),
        "at_ms": NOW_MS + block,
    }
    return BridgeTransfer(**{**row, **changed})


def a_refund_of(transfer: BridgeTransfer, *, tx: int = 1, **changed: Any) -> DeltaRefund:
    """The refund of a transfer, by an entry of its own."""
    refund = a_refund(a_delta_order(order_hash=transfer.order_hash), tx=tx)
    place: dict[str, Any] = {"transfer_block": transfer.block_hash, "transfer_tx": transfer.tx_hash}
    place |= {"transfer_log": transfer.log_index, "chain_id": transfer.chain_id, "amount": transfer.amount}
    return replace(refund, **{**place, **changed})


def an_end(transfer: BridgeTransfer, *, is_delivered: bool = True, **changed: Any) -> BridgeEnd:
    """The end of a transfer at its destination, delivered as promised, or failed."""
    row: dict[str, Any] = {
        "chain_id": transfer.chain_id,
        "block_hash": transfer.block_hash,
        "tx_hash": transfer.tx_hash,
        "log_index": transfer.log_index,
        "order_hash": transfer.order_hash,
        "destination_chain_id": transfer.destination_chain_id,
        "version": 1,
        "state": BridgeEndState.DELIVERED if is_delivered else BridgeEndState.FAILED,
        "end_block": hash_of(4_000_000 + transfer.block_number),
        "end_number": 500 + transfer.block_number,
        "end_tx": hash_of(4_500_000 + transfer.block_number) if is_delivered else None,
        "end_log": transfer.log_index if is_delivered else None,
        "amount": transfer.output if is_delivered else amount32(0),
        "at_ms": transfer.at_ms + 60_000,
        "is_final": not is_delivered,
    }
    return BridgeEnd(**{**row, **changed})


def a_cursor(*, block: int = 100, version: int = 1, chain_id: int = 1) -> ChainCursor:
    """A chain, read up to a block."""
    return ChainCursor(chain_id, version, block, hash_of(1_000_000 + block), b"", NOW_MS + block)


def a_round(order: DeltaOrderRow, *, number: int) -> AuctionRound:
    """A round that the agent `solver` won."""
    return AuctionRound(number, order.order_hash, order.chain_id, NOW_MS, NOW_MS + 1_000, "solver", b"{}")


def a_transaction(effect: str, *, nonce: int, status: TxStatus = TxStatus.FINAL) -> ChainTx:
    """A signed transaction of Carol's on chain 1, for an effect."""
    fee = amount32(10**9)
    tx_hash = hash_of(2_000_000 + nonce)
    return ChainTx(tx_hash, 1, CAROL, nonce, b"raw", fee, effect, None, NOW_MS, 1, status, NOW_MS, None, None)


def a_relay_intent(key: str, *, state: IntentState = IntentState.FINAL) -> ChainIntent:
    """An intent: an effect that Carol relays on chain 1."""
    return ChainIntent(
        key, 1, CAROL, BOB, b"", amount32(0), 50_000, NEVER_S, NOW_MS, 1, state, "", None, None, None, NOW_MS,
        None, None,
    )  # fmt: skip


# --- Writes and reads ------------------------------------------------------------------------------------


def surface_of(order: OrderRow) -> OrderKind[OrderRow]:
    """Kind of an order: its tables in the store."""
    surface: Any = DELTA if isinstance(order, DeltaOrderRow) else OTC
    return surface  # type: ignore[no-any-return]


def document_of(order: DeltaOrderRow | OtcOrderRow) -> bytes:
    """Signed document that these tests keep with an order."""
    return b"signed " + order.order_hash


def submission(order: DeltaOrderRow | OtcOrderRow, *effects: Intent) -> Unit:
    """Unit that keeps a new order."""
    surface: Any = DELTA if isinstance(order, DeltaOrderRow) else OTC
    unit: Unit = surface.submitted(order, document_of(order), effects)
    return unit


def a_step(
    order: DeltaOrderRow | OtcOrderRow,
    *,
    effects: Sequence[Intent] = (),
    more: Sequence[Change] = (),
    fence: Fence | None = None,
    **changed: Any,
) -> Unit:
    """Unit that takes an order a step further, ten seconds later."""
    after = _after(order, changed)
    surface: Any = DELTA if isinstance(order, DeltaOrderRow) else OTC
    unit: Unit = surface.advanced(order, after, effects=effects, more=more, fence=fence)
    return unit


def a_block(cursor: ChainCursor, *steps: Unit) -> Unit:
    """Unit that moves a chain's cursor a block further, with the steps of the block's logs."""
    after = a_cursor(block=cursor.block_number + 1, version=cursor.version, chain_id=cursor.chain_id)
    return Unit((cas(CHAIN_CURSOR, after), *(change for unit in steps for change in unit.changes)))


async def kept(store: Store, order: OrderRow, *effects: Intent) -> OrderRow:
    """Submit an order; returns it."""
    assert await store.write(submission(order, *effects)) == Done()
    return order


async def moved(store: Store, order: OrderRow, **step_and_changes: Any) -> OrderRow:
    """Take an order a step further; returns it as it is then."""
    assert await store.write(a_step(order, **step_and_changes)) == Done()
    known = {"effects", "more", "fence"}
    after: OrderRow = _after(
        order, {name: value for name, value in step_and_changes.items() if name not in known}
    )
    return after


async def found(store: Store, order: OrderRow) -> OrderRow | None:
    """An order as it is stored, by its hash."""
    surface = surface_of(order)
    rows = await rows_of(store, by(surface.orders, order.order_hash))
    return surface.found(rows[0]) if rows else None


async def rows_of(store: Store, query: Query) -> list[tuple[Any, ...]]:
    """The rows of one question."""
    (rows,) = await store.read(query)
    return [tuple(row) for row in rows]


async def structs_of(store: Store, table: Table, query: Query) -> list[Any]:
    """The rows of one question, as structs."""
    return [row_of(table, row) for row in await rows_of(store, query)]


async def page_of(
    store: Store, wanted: DeltaFilter | OtcFilter, limit: int = 100, offset: int = 0, as_of: str = ""
) -> tuple[list[Any], int]:
    """(orders, total) of a listing."""
    if isinstance(wanted, DeltaFilter):
        rows, ((total,),) = await store.read(*delta_page(wanted, limit, offset, as_of))
        return [DELTA.found(row) for row in rows], total
    places, (counts,) = await store.read(*otc_page(wanted, limit, offset, as_of))
    hashes = [order_hash for order_hash, _ in places]
    (rows,) = await store.read(among(OTC_ORDER, "order_hash", hashes))
    found = {order.order_hash: order for order in map(OTC.found, rows)}
    return [found[order_hash] for order_hash in hashes], sum(counts)


async def events_of(store: Store, owner: bytes | None = None) -> list[OrderEvent]:
    """All events, in their order."""
    return [row_of(ORDER_EVENT, row[2:]) for row in await rows_of(store, events_after((0, 0), 1_000, owner))]


async def effect_of(store: Store, key: str) -> Effect:
    """An effect, by its key."""
    (effect,) = await structs_of(store, EFFECT, by(EFFECT, key))
    assert isinstance(effect, Effect)
    return effect


async def all_at_once(store: Store, *units: Unit) -> list[UnitOutcome | Exception]:
    """Write units at once, so that they share a batch; the outcome of each, in order."""
    came: list[UnitOutcome | Exception] = [ValueError("nothing came of it")] * len(units)

    async def write(number: int, unit: Unit) -> None:
        try:
            came[number] = await store.write(unit)
        except Exception as error:  # noqa: BLE001  it is what came of it
            came[number] = error

    async with trio.open_nursery() as nursery:
        for number, unit in enumerate(units):
            nursery.start_soon(write, number, unit)
    return came


def _after(order: Any, changed: dict[str, Any]) -> Any:
    return step(order, changed.pop("at_ms", order.updated_ms + 10_000), **changed)
