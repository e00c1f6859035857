"""Frequent queries use an index: ended orders do not make them slower, however many there are."""

import inspect
import sqlite3
from collections.abc import Iterator

import pytest

from cambist.engine.store import queries
from cambist.engine.store.prune import PRUNES
from cambist.engine.store.queries import DeltaFilter, Query
from cambist.engine.store.tables import (
    CHAIN_LOGS,
    CHAIN_TX,
    DELTA_DOCUMENT,
    DELTA_FILL,
    DELTA_ORDER,
    EFFECT,
    OTC_FILL,
    OTC_ORDER,
)
from support.store.query_plans import empty_database, plan_of, steps_of

ACCOUNT, HASH = b"\xa1" * 20, b"\xa2" * 32

PLANS: dict[str, tuple[Query, str]] = {
    "by": (queries.by(DELTA_ORDER, HASH), "delta_order_hash (order_hash=?)"),
    "by nonce": (queries.by(DELTA_ORDER, 1, ACCOUNT, HASH, unique=1), "delta_order_nonce "),
    "among": (queries.among(EFFECT, "order_hash", [HASH]), "effect_order (order_hash=?)"),
    "between": (queries.between(DELTA_ORDER, HASH, HASH), "delta_order_hash (order_hash>? AND order_hash<?)"),
    "delta_page": (queries.delta_page(DeltaFilter(owner=ACCOUNT), 5, 0)[0], "delta_order_owner (owner=?)"),
    "open_orders": (
        queries.open_orders(DELTA_ORDER, [1, 2], HASH, 5),
        "delta_order_open (is_final=? AND rowid>?)",
    ),
    "open_orders of otc": (
        queries.open_orders(OTC_ORDER, [1], HASH, 5),
        "otc_order_open (is_final=? AND rowid>?)",
    ),
    "intended_effects": (queries.intended_effects([1, 2], "", 5), "effect_intended (shard=? AND key>?)"),
    "open_transactions": (queries.open_transactions(1, ACCOUNT), "chain_tx_open (chain_id=? AND sender=?)"),
    "settled_transactions": (
        queries.settled_transactions(1, ACCOUNT, 7, 5),
        "chain_tx_sender (chain_id=? AND sender=? AND nonce>?)",
    ),
    "signed_intents": (
        queries.signed_intents(1, ACCOUNT),
        "chain_intent_open (chain_id=? AND sender=? AND state=?)",
    ),
    "waiting_intents": (
        queries.waiting_intents(1, ACCOUNT, 5),
        "chain_intent_open (chain_id=? AND sender=? AND state=?)",
    ),
    "open_intents_count": (
        queries.open_intents_count(1, ACCOUNT),
        "chain_intent_open (chain_id=? AND sender=? AND state=?)",
    ),
    "fills": (queries.fills(HASH), "delta_fill_order (order_hash=?)"),
    "of_order": (queries.of_order(OTC_FILL, HASH), "otc_fill_order (order_hash=?)"),
    "of_nonce": (queries.of_nonce(1, ACCOUNT, HASH), "delta_order_owner (owner=?)"),
    "refunds": (queries.refunds(HASH), "delta_refund_order (order_hash=?)"),
    **{
        f"above in {table.name}": (
            queries.above(table, 1, 7, 5),
            f"{table.name}_block (chain_id=? AND block_number>?)",
        )
        for table in CHAIN_LOGS
    },
    **{
        f"within in {table.name}": (
            queries.within(table, 1, 7, 9, 5),
            f"{table.name}_block (chain_id=? AND block_number>? AND block_number<?)",
        )
        for table in (DELTA_FILL, OTC_FILL)
    },
    "among by transaction": (queries.among(CHAIN_TX, "tx_hash", [HASH]), "(tx_hash=?)"),
    "auction_rounds": (queries.auction_rounds(7), "PRIMARY KEY (auction_id=?)"),
    "latest_rounds": (queries.latest_rounds(1, 7, 5), "PRIMARY KEY (auction_id>?)"),
    "last_rounds": (queries.last_rounds(HASH, 5), "auction_round_order (order_hash=?)"),
    "unfinished_otc": (
        queries.unfinished_otc(1, ACCOUNT),
        "otc_maker_count (maker=? AND chain_id=?)",
    ),
    "events_after": (queries.events_after((0, 7), 5), "INTEGER PRIMARY KEY (rowid>?)"),
    "events_after of an owner": (
        queries.events_after((0, 7), 5, ACCOUNT),
        "order_event_owner (owner=? AND rowid>?)",
    ),
    "expired_routes": (queries.expired_routes(7, 5), "issued_route_expiry (expires_ms<?)"),
    "due_deliveries": (
        queries.due_deliveries("hook", 7, 5),
        "delivery_due (webhook=? AND state=? AND due_ms<?)",
    ),
    "next_delivery": (queries.next_delivery("hook"), "delivery_due (webhook=? AND state=?)"),
    "overdue_deliveries": (
        queries.overdue_deliveries("hook", 7, 5),
        "delivery_waiting (webhook=? AND created_ms<?)",
    ),
    "deliveries": (queries.deliveries("hook", "DEAD", "", 5), "PRIMARY KEY (webhook=? AND token>?)"),
    "delivery_counts": (queries.delivery_counts("hook"), "delivery_due (webhook=?)"),
}
OF_ONE_ORDER = {"fills", "of_order", "refunds", "unfinished_otc"}
"""Queries that sort their rows, which are few."""
ELSEWHERE = {
    "otc_page", "live_otc",  # test_otc_queries
    "last_event", "as_of_now",  # the end of a table
    "render",
}  # fmt: skip


STEPS = ("SEARCH ", "LIST ", "REUSE LIST ", "CORRELATED ", "USE TEMP ", "SCAN ")  # REUSE: SQLite 3.53


@pytest.fixture(scope="module")
def database() -> Iterator[sqlite3.Connection]:
    with empty_database() as connection:
        yield connection


def test_every_query_is_here() -> None:
    public = {
        name
        for name, of in inspect.getmembers(queries, inspect.isfunction)
        if of.__module__ == queries.__name__ and not name.startswith("_")
    }
    assert public == {name.split(" ")[0] for name in PLANS} | ELSEWHERE


@pytest.mark.parametrize("name", PLANS)
def test_rows_are_found_along_an_index(name: str, database: sqlite3.Connection) -> None:
    query, index = PLANS[name]
    first, *rest = plan_of(query, database)
    assert first.startswith("SEARCH ")
    assert index in first
    assert not any("SCAN" in step for step in rest)
    is_sorted = name in OF_ONE_ORDER or name == "intended_effects"  # of all shards
    assert any("TEMP B-TREE" in step for step in rest) == is_sorted


def test_what_of_an_order_waits_before_is_found_among_its_own(database: sqlite3.Connection) -> None:
    for query in (queries.due_deliveries("hook", 7, 5), queries.next_delivery("hook")):
        assert plan_of(query, database)[-1].endswith(
            "INDEX delivery_order (order_hash=? AND webhook=? AND state=? AND token<?)"
        )


@pytest.mark.parametrize("statement", PRUNES, ids=lambda sql: " ".join(sql.split(" ")[:5]))
def test_what_has_ended_is_deleted_along_indexes(statement: str, database: sqlite3.Connection) -> None:
    """A scan is of the oldest rows, along an index and cut; or of a view's rows that were found."""
    steps = steps_of(statement, {"before_ms": 5, "rows_max": 5}, database)
    assert [step for step in steps if not step.startswith(STEPS)] == []
    scans = {step for step in steps if step.startswith("SCAN ")}
    assert scans <= {
        "SCAN order_event",
        "SCAN delivery USING COVERING INDEX delivery_age",
        "SCAN delta_document",
        "SCAN otc_document",
    }
    assert not any("(chain_id=?)" in step for step in steps), "all rows of a chain"


def test_documents_are_found_by_their_orders(database: sqlite3.Connection) -> None:
    first, *rest = plan_of(queries.among(DELTA_DOCUMENT, "order_hash", [HASH]), database)
    assert "delta_order_hash (order_hash=?)" in first
    assert all(step.startswith("SEARCH ") for step in rest)
