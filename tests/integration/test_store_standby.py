"""A PostgreSQL server that only reads, as after a switch to another one: writes wait, reads go on."""

from contextlib import closing
from pathlib import Path

import psycopg
import pytest

from cambist.config.errors import StoreUnavailable
from cambist.engine.store.postgres.postgres import PostgresBackend
from cambist.engine.store.queries import by
from cambist.engine.store.tables import DELTA_ORDER
from cambist.engine.store.units import DONE
from support.store.postgres import running_postgres
from support.store.store_orders import an_order, submitted

WRITER = b"one writer's id."


def test_a_standby_is_away_for_writes_until_it_is_promoted() -> None:
    order = an_order()
    with running_postgres() as server:
        url = server.migrated_database()
        with closing(PostgresBackend(url, lambda: 0)) as backend:
            backend.apply(WRITER, 1, [submitted(order)])
        with psycopg.connect(server.url(), autocommit=True) as connection:
            ((folder,),) = connection.execute("SHOW data_directory")
        server.stop()
        (Path(folder) / "standby.signal").touch()
        server.start()
        with closing(PostgresBackend(url, lambda: 0)) as backend:
            late = an_order()
            with pytest.raises(StoreUnavailable, match="during recovery"):
                backend.apply(WRITER, 2, [submitted(late)])
            with pytest.raises(StoreUnavailable, match="during recovery"):
                backend.lease("us", 1, 0, 1)
            assert len(backend.read([by(DELTA_ORDER, order.order_hash)])[0]) == 1
            with psycopg.connect(server.url(), autocommit=True) as connection:
                connection.execute("SELECT pg_promote()")
            assert backend.apply(WRITER, 3, [submitted(late)]) == [DONE]
