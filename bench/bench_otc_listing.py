"""Benchmarks of a page of 100 OTC orders and their total number, for a maker with 90,000 of 100,000 orders.

The baselines are the page of a maker with 100 orders, and a listing that the database must sort: the same
rows, found by an index on the maker alone, then sorted and counted.
"""

import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import pytest

from bench.otc_listings import CHAIN_ID, HEAVY, HEAVY_MAKER, LIMIT, PAGES, Asked, answer, fill_store, listings
from bench.trio_thread import Visited, living_in_trio
from cambist.engine.store.sqlite.sqlite import SqliteBackend
from cambist.engine.trade.otc.stored_orders import StoredOtcOrders

_BY_NAME = {requested.what: requested for requested in PAGES}


@pytest.fixture(scope="module")
def stored() -> Iterator[Visited[StoredOtcOrders]]:
    with living_in_trio(_opened) as visited:
        yield visited


@asynccontextmanager
async def _opened() -> AsyncIterator[StoredOtcOrders]:
    async with listings() as found:
        yield found


def _asks(benchmark: Any, stored: Visited[StoredOtcOrders], what: str) -> None:
    requested: Asked = _BY_NAME[what]

    async def work(inside: StoredOtcOrders) -> bytes:
        return await answer(inside, requested)

    assert benchmark(stored.visit, work).startswith(b'{"orders":[{')


def bench_otc_listing(benchmark: Any, stored: Visited[StoredOtcOrders]) -> None:
    """Measure the first page of the OTC orders of a maker with 90,000 orders."""
    _asks(benchmark, stored, "heavy maker, first")


def bench_otc_listing_far(benchmark: Any, stored: Visited[StoredOtcOrders]) -> None:
    """Measure the middle page of the OTC orders of a maker with 90,000 orders, which is slowest to reach."""
    _asks(benchmark, stored, "heavy maker, at 45,000")


def bench_otc_listing_of_taker(benchmark: Any, stored: Visited[StoredOtcOrders]) -> None:
    """Measure the first page of the OTC orders of a taker whom 90,000 orders name.

    The orders name the taker as such or in nonceAndMeta.
    """
    _asks(benchmark, stored, "its taker, first")


def bench_otc_listing_without_small(benchmark: Any, stored: Visited[StoredOtcOrders]) -> None:
    """Measure the first page of a maker's OTC orders without those of small fillable balances.

    The maker has 90,000 orders.
    """
    _asks(benchmark, stored, "heavy maker, no small balances")


def bench_otc_listing_of_few(benchmark: Any, stored: Visited[StoredOtcOrders]) -> None:
    """Baseline: measure the page of the OTC orders of a maker with 100 orders."""
    _asks(benchmark, stored, "light maker")


def bench_otc_listing_sorted(benchmark: Any, tmp_path_factory: pytest.TempPathFactory) -> None:
    """Baseline: measure a first page and a total that need a sort, by an index on the maker alone."""
    path: Path = tmp_path_factory.mktemp("sorted") / "orders.sqlite3"
    SqliteBackend(path, lambda: 0).close()
    fill_store(path)
    with closing(sqlite3.connect(path)) as connection:
        for (name,) in connection.execute(
            "SELECT name FROM sqlite_master WHERE type = 'index' AND name GLOB 'otc_*_*' "
            "AND name NOT GLOB 'otc_order_*'"
        ).fetchall():
            connection.execute(f"DROP INDEX {name}")
        connection.execute("CREATE INDEX otc_order_maker ON otc_order (maker)")
        where = "FROM otc_order WHERE maker = ? AND chain_id = ?"
        page = f"SELECT order_hash {where} ORDER BY created_ms DESC, order_hash DESC LIMIT {LIMIT}"

        def ask() -> tuple[int, int]:
            values = (HEAVY_MAKER, CHAIN_ID)
            rows = connection.execute(page, values).fetchall()
            return len(rows), connection.execute(f"SELECT count(*) {where}", values).fetchone()[0]

        assert benchmark(ask) == (LIMIT, HEAVY)
