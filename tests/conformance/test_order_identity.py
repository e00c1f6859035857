"""Identity of orders; a signature cancels orders of one chain only."""

from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest
from msgspec.structs import replace

from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.engine.store.queries import by
from cambist.engine.store.tables import DELTA_DOCUMENT, DELTA_ORDER
from cambist.engine.store.units import Done, row_of
from cambist.engine.trade.orders.order_units import DELTA, order_id
from support.delta.order_front import BUILD_CANCEL, CANCEL, OrderFront, an_order_front, told


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OrderFront]:
    async with an_order_front(tmp_path) as front:
        yield front


async def test_an_id_is_a_uuid4_made_of_the_hash_and_so_is_the_shard(front: OrderFront) -> None:
    for _ in range(4):
        order = await front.a_sale()
        record = await front.submitted(order)
        order_hash = front.world.delta_hash(order)
        assert record["orderHash"] == to_hex(order_hash)
        known = UUID(record["id"])
        assert (known.version, str(known)) == (4, record["id"])
        random_bits = ~(0xF << 76 | 0x3 << 62)  # without version and variant
        assert known.int & random_bits == int.from_bytes(order_hash[:16], "big") & random_bits
        assert (await front.submitted(order))["id"] == record["id"]
        (rows,) = await front.store.read(by(DELTA_ORDER, order_hash))
        assert DELTA.found(rows[0]).shard == order_hash[0]


@pytest.mark.parametrize("path", [CANCEL, BUILD_CANCEL])
async def test_orders_of_two_chains_are_not_cancelled_together(front: OrderFront, path: str) -> None:
    """The other one is of the same owner, and was taken in by another process of the venue."""
    here = await front.submitted(await front.a_sale())
    rows, documents = await front.store.read(
        by(DELTA_ORDER, parse_hex(here["orderHash"], "hash")),
        by(DELTA_DOCUMENT, parse_hex(here["orderHash"], "hash")),
    )
    there = replace(DELTA.found(rows[0]), chain_id=10, order_hash=b"\x10" * 32, shard=0x10)
    kept = row_of(DELTA_DOCUMENT, documents[0])
    assert await front.store.write(DELTA.submitted(there, kept.body)) == Done()
    ids = [here["id"], str(order_id(there.order_hash))]
    refusal = told(await front.post(path, front.world.cancel_body(ids)))
    assert refusal[:2] == (400, "InvalidInput")
    assert "orders must belong to the same user and chain" in refusal[2]
    assert {one["status"] for one in (await front.listed())["data"]} == {"PENDING"}
