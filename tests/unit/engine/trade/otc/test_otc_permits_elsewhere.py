"""Permits of orders that another engine runs: they are in the store, and asked for all at once."""

from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.messages.vocabulary import OtcState
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import amount32
from cambist.engine.store.tables import OTC_DOCUMENT
from support.otc.otc_chain import OtcChain
from support.otc.otc_engine import MAKER, a_document, a_permit, an_order, funds_of, otc_store, running

_COUNT = 12


async def test_the_permits_of_orders_that_another_engine_runs_are_read_at_once(
    tmp_path: Path, autojump_clock: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    chain = OtcChain()
    chain.has(MAKER, 10 * _COUNT)
    chain.allows(MAKER, 0)
    chain.mine()
    async with (
        otc_store(tmp_path) as store,
        running(store, chain, name="one", count=128) as one,
        running(store, chain, name="two", count=128) as two,
    ):
        held = one.leases.held()
        mine, others = (next(at for at in range(256) if (at in held) is is_mine) for is_mine in (True, False))
        permit = a_permit(10)
        chain.state.permits[permit] = 10
        rows = [an_order(number, 10, shard=others, status=OtcState.SUSPENDED) for number in range(_COUNT)]
        for row in rows:
            await two.submit(row, a_document(row, permit=permit))
        last = an_order(_COUNT, 10, shard=mine, status=OtcState.SUSPENDED)
        await one.submit(last, a_document(last, permit=permit))
        chain.mine()
        for row in rows:
            await two.when(row, lambda found: funds_of(found) == (10, 10, 10))
        assert funds_of(await one.when(last, lambda found: found.status is OtcState.PENDING)) == (10, 0, 0)
        read, asked = store.read, list[str]()

        async def counted(*queries: Query) -> Any:
            asked.extend(query.sql for query in queries)
            return await read(*queries)

        monkeypatch.setattr(store, "read", counted)
        reads = one.funds.statistics().read, two.funds.statistics().read
        chain.has(MAKER, 10 * _COUNT + 4)
        chain.mine()
        assert funds_of(await one.when(last, lambda found: found.reserved != amount32(0))) == (10, 4, 4)
        looks = one.funds.statistics().read - reads[0] + two.funds.statistics().read - reads[1]
        assert sum(f"FROM {OTC_DOCUMENT.name} WHERE" in sql for sql in asked) <= looks + 1
