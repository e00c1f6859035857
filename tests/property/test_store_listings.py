"""A listing, read page by page while orders come in, is what it was: all of it, once, in order."""

import tempfile
from contextlib import closing
from pathlib import Path
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderType, OtcType
from cambist.engine.store.queries import DeltaFilter, OtcFilter, Query, as_of_now, delta_page, otc_page
from cambist.engine.store.rows import NEVER_S, DeltaOrderRow, OtcOrderRow, amount32
from cambist.engine.store.sqlite.sqlite import SqliteBackend
from cambist.engine.store.tables import DELTA_ORDER, OTC_ORDER, Table
from cambist.engine.store.units import Done, Unit
from cambist.engine.trade.orders.order_units import DELTA
from support.store.stores import (
    ALICE,
    BOB,
    CAROL,
    NOBODY,
    NOW_MS,
    USDC,
    WETH,
    a_delta_order,
    an_otc_order,
    submission,
)

ACCOUNTS, CHAINS, TOKENS = st.sampled_from([ALICE, BOB, CAROL]), st.sampled_from([1, 10]), [WETH, USDC]

DELTA_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "owner": ACCOUNTS,
            "chain_id": CHAINS,
            "type": st.sampled_from(OrderType),
            "kind": st.sampled_from(OnChainOrderType),
        }
    ),
    max_size=25,
)
DELTA_FILTERS = st.builds(
    DeltaFilter,
    owner=st.none() | ACCOUNTS,
    chain_ids=st.lists(CHAINS, max_size=2).map(tuple),
    type=st.none() | st.sampled_from(OrderType),
    kind=st.none() | st.sampled_from(OnChainOrderType),
)
OTC_ROWS = st.lists(
    st.fixed_dictionaries(
        {
            "maker": ACCOUNTS,
            "taker": st.sampled_from([BOB, CAROL, NOBODY]),
            "taker_from_meta": st.sampled_from([BOB, CAROL, NOBODY]),
            "chain_id": CHAINS,
            "type": st.sampled_from(OtcType),
            "maker_asset": st.sampled_from(TOKENS),
            "swappable": st.integers(0, 4).map(amount32),
            "expires_s": st.sampled_from([5, 6, NEVER_S]),
            "created_ms": st.integers(NOW_MS, NOW_MS + 3),
            "updated_ms": st.integers(NOW_MS, NOW_MS + 3),
        }
    ),
    max_size=25,
)
OTC_FILTERS = st.builds(
    lambda role, account, **rest: OtcFilter(**{role: account}, **rest),
    role=st.sampled_from(["maker", "taker"]),
    account=st.sampled_from([ALICE, BOB, CAROL, NOBODY]),
    chain_id=CHAINS,
    type=st.none() | st.sampled_from(OtcType),
    swappable_min=st.none()
    | st.dictionaries(st.sampled_from(TOKENS), st.integers(0, 4).map(amount32)).map(
        lambda least: tuple(least.items())
    ),
    order_by=st.sampled_from(["created_ms", "updated_ms", "expires_s"]),
)


def listed_by(wanted: DeltaFilter, order: DeltaOrderRow) -> bool:
    """Whether a filter lets an order through (spec 2.8 and 2.9)."""
    return (not wanted.chain_ids or order.chain_id in wanted.chain_ids) and all(
        value in (None, of_order)
        for value, of_order in (
            (wanted.owner, order.owner),
            (wanted.type, order.type),
            (wanted.kind, order.kind),
        )
    )


def otc_listed_by(wanted: OtcFilter, order: OtcOrderRow) -> bool:
    """As `listed_by`."""
    least = amount32(0)
    if wanted.swappable_min is not None:
        least = max(dict(wanted.swappable_min).get(order.maker_asset, b""), amount32(1))
    return (
        wanted.chain_id == order.chain_id
        and wanted.maker in (None, order.maker)
        and (wanted.taker is None or wanted.taker in (order.taker, order.taker_from_meta))
        and wanted.type in (None, order.type)
        and order.swappable >= least
    )


class Database:
    """A SQLite file of one example's own."""

    def __init__(self, backend: SqliteBackend) -> None:
        self._backend = backend
        self._batch = 0

    def keep(self, *orders: Any) -> None:
        """Write orders, in their order."""
        self._batch += 1
        units: list[Unit] = [submission(order) for order in orders]
        assert self._backend.apply(bytes(16), self._batch, units) == [Done()] * len(orders)

    def now(self, table: Table) -> str:
        """As of when the present state is."""
        (((text,),),) = self._backend.read([as_of_now(table)])
        return str(text)

    def page(self, queries: tuple[Query, Query]) -> tuple[list[Any], int]:
        """(rows, total)."""
        rows, (counts,) = self._backend.read(queries)
        return rows, sum(counts)


@given(DELTA_ROWS, DELTA_ROWS, DELTA_FILTERS, st.integers(1, 7))
def test_pages_of_delta_orders_are_the_filter_as_it_was(
    before: list[dict[str, Any]], later: list[dict[str, Any]], wanted: DeltaFilter, limit: int
) -> None:
    orders = [a_delta_order(number, **row) for number, row in enumerate(before)]
    incoming = [a_delta_order(1_000 + number, **row) for number, row in enumerate(later)]
    expected = [order for order in reversed(orders) if listed_by(wanted, order)]
    with tempfile.TemporaryDirectory() as folder, closing(
        SqliteBackend(Path(folder) / "db", lambda: NOW_MS)
    ) as backend:  # fmt: skip
        database = Database(backend)
        database.keep(*orders)
        then, got = database.now(DELTA_ORDER), list[DeltaOrderRow]()
        while True:
            rows, total = database.page(delta_page(wanted, limit, len(got), then))
            assert total == len(expected)
            got += map(DELTA.found, rows)
            if len(rows) < limit:
                break
            database.keep(*incoming[:3])
            del incoming[:3]
        assert got == expected


@given(OTC_ROWS, OTC_ROWS, OTC_FILTERS, st.integers(1, 7))
def test_pages_of_otc_orders_are_the_filter_as_it_was_sorted_as_asked(
    before: list[dict[str, Any]], later: list[dict[str, Any]], wanted: OtcFilter, limit: int
) -> None:
    orders = [an_otc_order(number, **row) for number, row in enumerate(before)]
    incoming = [an_otc_order(1_000 + number, **row) for number, row in enumerate(later)]
    expected = [order for order in orders if otc_listed_by(wanted, order)]
    expected.sort(
        key=lambda order: (getattr(order, wanted.order_by) % NEVER_S, order.order_hash), reverse=True
    )
    with tempfile.TemporaryDirectory() as folder, closing(
        SqliteBackend(Path(folder) / "db", lambda: NOW_MS)
    ) as backend:  # fmt: skip
        database = Database(backend)
        database.keep(*orders)
        then, got = database.now(OTC_ORDER), list[bytes]()
        while True:
            rows, total = database.page(otc_page(wanted, limit, len(got), then))
            assert total == len(expected)
            got += [order_hash for order_hash, _ in rows]
            if len(rows) < limit:
                break
            database.keep(*incoming[:3])
            del incoming[:3]
        assert got == [order.order_hash for order in expected]
        (counts,) = backend.read([otc_page(wanted, 1, 0, then)[1]])[0]
        for known in ((), counts):
            backwards, _ = database.page(otc_page(wanted, 50, 0, then, is_backwards=True, counts=known))
            assert [order_hash for order_hash, _ in backwards] == got[::-1]
