"""Permissions of event streams: any client follows a named owner or taker, only the operator all orders."""

from pathlib import Path
from typing import Any

import pytest

from cambist.crypto.addresses import ZERO_ADDRESS, to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.trade.orders.order_units import order_id
from cambist.feeds.transport.websocket import HandshakeRefused
from support.events.event_streams import OTC_PATH, PATH, an_event_venue, told, written
from support.server.server_harness import answers
from support.store.stores import ALICE, Engine, a_delta_order, an_otc_order, kept
from support.venue.admitting import ALICE_KEY, BOB_KEY, OPERATOR_KEY

DELTA_ORDER, OTC_ORDER = a_delta_order(1, partner="acme"), an_otc_order(2, taker=ZERO_ADDRESS)
OWNER = to_checksum(ALICE)
DELTA_LACKS = b"userAddress: expected an owner; or orderId, orderHash, or an operator's X-API-KEY"
OTC_LACKS = b"maker: expected a maker; or taker, orderHash, or an operator's X-API-KEY"
SEEN = [
    # path, query, API key
    (PATH, f"userAddress={OWNER}", ""),
    (PATH, f"orderId={order_id(DELTA_ORDER.order_hash)}", ""),
    (PATH, f"orderHash={to_hex(DELTA_ORDER.order_hash)}&partner=acme", ""),
    (PATH, "", OPERATOR_KEY),
    (PATH, "chainId=1", OPERATOR_KEY),
    (PATH, "partner=acme", OPERATOR_KEY),
    (PATH, "partner=acme", ALICE_KEY),
    (OTC_PATH, f"maker={OWNER}", ""),
    (OTC_PATH, f"taker={to_checksum(ZERO_ADDRESS)}", ""),
    (OTC_PATH, f"orderHash={to_hex(OTC_ORDER.order_hash)}", ""),
    (OTC_PATH, "", OPERATOR_KEY),
]
UNSEEN = [
    (PATH, "", ""),
    (PATH, "chainId=1", ""),
    (PATH, "after=" + "0" * 32, ""),
    (PATH, "partner=acme", ""),
    (PATH, "partner=acme", BOB_KEY),
    (PATH, "partner=anon", ALICE_KEY),
    (PATH, "partner=", ALICE_KEY),
    (PATH, "", ALICE_KEY),
    (OTC_PATH, "", ""),
    (OTC_PATH, "chainId=1", ALICE_KEY),
    (OTC_PATH, "partner=acme", ALICE_KEY),
]


@pytest.fixture
def engine(tmp_path: Path) -> Engine:
    return Engine("sqlite:cambist.sqlite3", tmp_path, in_process=True)


def headers(key: str) -> list[str]:
    return [f"X-API-KEY: {key}"] if key else []


@pytest.mark.parametrize(("path", "query", "key"), SEEN)
async def test_what_is_heard(engine: Engine, path: str, query: str, key: str) -> None:
    order: Any = DELTA_ORDER if path == PATH else OTC_ORDER
    async with an_event_venue(engine, is_strict=True) as venue:
        async with venue.following(query, *headers(key), path=path) as events:
            await events.begun()
            await kept(venue.store, order)
            assert told(await events.next()) == written(order)
        async with venue.socket(f"{query}&after={'0' * 32}", path=path, key=key) as socket:
            await socket.begun()
            (message,) = await socket.take(1)
            assert told(message) == written(order)


@pytest.mark.parametrize(("path", "query", "key"), UNSEEN)
async def test_what_strangers_are_refused(engine: Engine, path: str, query: str, key: str) -> None:
    async with an_event_venue(engine, is_strict=True) as venue:
        lines = [f"GET {path}?{query} HTTP/1.1", "Host: a", "Connection: close", *headers(key), "", ""]
        (answer,) = answers(await venue.served.converse("\r\n".join(lines).encode()))
        assert answer.status == 400
        assert (DELTA_LACKS if path == PATH else OTC_LACKS) in answer.body
        with pytest.raises(HandshakeRefused, match="400"):
            async with venue.socket(query, path=path, key=key):
                pass
        assert venue.events.statistics().opened == 0
