"""An indexer on a store, what it has kept, and what a fresh full scan of the same chain keeps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import trio

from cambist.codecs.contracts import contract_events as events
from cambist.engine.chain.index.applied import IndexedContracts, read_events, rows_of
from cambist.engine.chain.index.indexer import Indexer, IndexerState, Projection
from cambist.engine.chain.index.watch import Watch, WatchedAccount
from cambist.engine.chain.port import Chain
from cambist.engine.store.queries import above, by
from cambist.engine.store.rows import ChainCursor
from cambist.engine.store.store import Store
from cambist.engine.store.tables import CHAIN_CURSOR, CHAIN_LOGS
from cambist.engine.store.units import row_of
from support.chain.log_emitter import record
from support.chain.scripted_chain import ScriptedChain, Sent, tx
from support.patience import PATIENCE_S
from support.store.stores import ALICE, BOB, NOW_MS, USDC, WETH, Engine, hash_of, structs_of

RFQ, DELTA, TOKEN = b"\x0f" * 20, b"\xde" * 20, b"\x70" * 20
CONTRACTS = IndexedContracts(RFQ, DELTA)

Kept = dict[str, list[Any]]
"""Table -> its rows, sorted."""


def sqlite_engine(folder: Path) -> Engine:
    """A database file, in this process."""
    return Engine("sqlite:cambist.sqlite3", folder, in_process=True)


class Told:
    """Records the accounts that an indexer reports as touched.

    Attributes:
        pairs: the reported sets since the last `taken`, one per call.
    """

    def __init__(self) -> None:
        self.pairs: list[frozenset[WatchedAccount]] = []

    def __call__(self, chain_id: int, pairs: frozenset[WatchedAccount]) -> None:
        self.pairs.append(pairs)

    def taken(self) -> set[WatchedAccount]:
        """Return all accounts reported since the previous call, and forget them."""
        pairs, self.pairs = self.pairs, []
        return set().union(*pairs)


def an_indexer(
    chain: Chain,
    store: Store,
    *,
    contracts: IndexedContracts = CONTRACTS,
    watch: Watch | None = None,
    told: Callable[[int, frozenset[WatchedAccount]], None] = lambda *_: None,
    logged: Callable[[int], None] = lambda _: None,
    first_block: int | None = 0,
    projection: Projection | None = None,
) -> Indexer:
    return Indexer(
        chain,
        store,
        contracts,
        watch if watch is not None else Watch(),
        begun=trio.Event(),
        touched=told,
        logged=logged,
        now_ms=lambda: NOW_MS,
        first_block=first_block,
        projection=projection,
    )


async def run_dry(indexer: Indexer) -> None:
    """Step until there is nothing more to do."""
    for _ in range(1_000):
        if not await indexer.step():
            return
    raise AssertionError("the indexer never comes to an end")


async def follows(indexer: Indexer, chain: Chain, *, within_s: float = PATIENCE_S) -> None:
    """Wait until an indexer that runs is at the head of the chain."""
    with trio.fail_after(within_s):
        while True:
            head = await chain.block()
            now = indexer.statistics()
            if head and now.block_hash == head.hash and now.state is IndexerState.FOLLOWING:
                return
            await trio.sleep(0.01)  # between two looks at a condition


async def kept_by(store: Store, chain_id: int) -> Kept:
    """Rows that the store has of a chain's logs: table name -> sorted rows."""
    read = await store.read(*(above(table, chain_id, -1, 1_000_000) for table in CHAIN_LOGS))
    return {
        table.name: sorted((row_of(table, row) for row in rows), key=repr)
        for table, rows in zip(CHAIN_LOGS, read, strict=True)
    }


async def scanned(
    chain: Chain, contracts: IndexedContracts = CONTRACTS, known: dict[bytes, int] | None = None
) -> Kept:
    """Rows that a scan of the whole chain gives now: table name -> sorted rows.

    Args:
        known: block hash -> block time; a cache shared by several scans.
    """
    head = await chain.block()
    assert head is not None
    logs = await chain.logs(contracts.filter(), 0, head.number)
    known = {} if known is None else known
    times = {}
    for number, block_hash in {(log.block_number, log.block_hash) for log in logs}:
        if block_hash not in known:
            header = await chain.block(block_hash)
            assert header is not None
            known[block_hash] = header.time_s
        times[number] = known[block_hash]
    kept: Kept = {table.name: [] for table in CHAIN_LOGS}
    for table, row in rows_of(chain.chain_id, read_events(contracts, logs), times):
        kept[table.name].append(row)
    return {name: sorted(rows, key=repr) for name, rows in kept.items()}


async def scanned_of(chain: ScriptedChain) -> Any:
    """Rows that a scan of the same blocks at an error-free node gives."""
    right = ScriptedChain()
    right.line = chain.line
    return await scanned(right)


async def cursor_of(store: Store, chain_id: int = ScriptedChain.chain_id) -> ChainCursor:
    """The stored cursor: the position up to which a chain was read."""
    (cursor,) = await structs_of(store, CHAIN_CURSOR, by(CHAIN_CURSOR, chain_id))
    assert isinstance(cursor, ChainCursor)
    return cursor


# --- Events -----------------------------------------------------------------------------------------------


def a_fill_event(order: int = 1, maker_amount: int = 10, taker_amount: int = 20) -> events.OrderFilled:
    return events.OrderFilled(hash_of(order), ALICE, WETH, maker_amount, BOB, USDC, taker_amount)


def a_cancellation(order: int = 1, maker: bytes = ALICE) -> events.OrderCancelled:
    return events.OrderCancelled(hash_of(order), maker)


def a_settlement(
    order: int = 1, *, nonce: int | None = None, spent: int = 10, is_closed: bool = True
) -> events.OrderSettled:
    used = order if nonce is None else nonce
    return events.OrderSettled(hash_of(order), ALICE, used, WETH, USDC, spent, 2 * spent, spent, is_closed)


def any_event(number: int) -> tuple[str, events.ContractEvent]:
    """(whose, an event) of one of nine kinds; equal numbers are equal events."""
    order = number // 9
    kinds: tuple[tuple[str, events.ContractEvent], ...] = (
        ("rfq", a_fill_event(order)),
        ("rfq", a_cancellation(order)),
        ("delta", a_settlement(order)),
        ("delta", a_settlement(order, is_closed=False)),
        ("delta", events.NonceInvalidated(ALICE, order % 4)),
        ("delta", events.OrderPreSigned(hash_of(order), ALICE, bool(order % 2))),
        ("rfq", events.OrdersCancelledUntil(ALICE, order)),
        ("delta", events.FeeAccrued(hash_of(order), BOB, USDC, order, False)),
        ("delta", events.OrderBridged(hash_of(order), b"\1\2\3\4", 10, USDC, order, order, order)),
    )
    return kinds[number % 9]


def logs_of(name: int, *numbers: int) -> Sent:
    """A transaction with events of each kind, by number."""
    whose = {"rfq": RFQ, "delta": DELTA}
    made = [any_event(number) for number in numbers]
    return tx(b"%d" % name, *((whose[contract], record(event)) for contract, event in made))


def one(contract: bytes, event: events.ContractEvent, name: bytes = b"tx") -> Sent:
    """A transaction with one event."""
    return tx(name, (contract, record(event)))
