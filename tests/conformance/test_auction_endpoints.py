"""Auctions over HTTP: closed rounds, explanations and agents, from a real store."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from cambist.codecs.eip712_orders.delta import ExternalOrder
from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.agent_messages import Notice
from cambist.config.sections.venue import RateTier
from cambist.engine.host.server import Router
from cambist.engine.store.store import Store
from cambist.engine.store.tables import AUCTION_ROUND
from cambist.engine.store.units import Done, Unit, put
from cambist.engine.trade.api.openapi import openapi_document
from cambist.engine.trade.api.routes import encode_trading_error, surface_of
from cambist.engine.trade.delta.auction.auction import decide
from cambist.engine.trade.delta.auction.auction_record import Rejections, RoundTimes, round_rows
from cambist.engine.trade.delta.bids.agent_rest import AgentReport
from cambist.engine.trade.delta.bids.bids import Rejection, RoundOrder
from cambist.engine.trade.delta.bids.simulation import Proven
from cambist.engine.trade.delta.endpoints.auctions import Auctions
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.terms import SettledOrder
from cambist.engine.trade.orders.order_units import order_id
from cambist.feeds.transport.http_client import HttpClient
from support.delta.bidding import ONE, USDC_ONE, a_proven, a_round_order
from support.patience import PATIENCE_S
from support.server.server_harness import NOW_MS, serving
from support.store.stores import Engine, kept
from support.store.stores import a_delta_order as a_row
from support.venue.admitting import an_admission

AUCTIONS = "/v2/delta/auctions"
FAIR = 2_500 * USDC_ONE
LATE = Rejection("gamma", 1_000, Notice.LATE, "no answer")


class KnownAuctions:
    """The auctions of a chain, as far as the endpoints ask."""

    chain_s = 0

    def __init__(self) -> None:
        self.agents = {"beta": AgentReport(3, 1, {}, 0, 0), "alpha": AgentReport(3, 1, {}, 0, 0)}
        self.closed: dict[bytes, int] = {}

    def reports(self) -> Mapping[str, AgentReport]:
        return self.agents

    def is_own(self, order: SettledOrder) -> bool:
        return isinstance(order, ExternalOrder)

    def is_carried(self, live: LiveOrder) -> bool:
        return True

    def own_rests_until_ms(self, order: SettledOrder) -> int:
        return 0

    def owner_rests_until_ms(self, owner: bytes) -> int:
        return 0

    def last_round_ms(self, order_hash: bytes) -> int:
        return self.closed.get(order_hash, 0)


class Front:
    """Asks the endpoints."""

    def __init__(self, store: Store, client: HttpClient) -> None:
        self.store = store
        self.auctions = KnownAuctions()
        self.live: dict[bytes, LiveOrder] = {}
        self._client = client

    async def answer(self, target: str) -> tuple[int, Any]:
        response = await self._client.request(b"GET", target.encode(), deadline_s=PATIENCE_S)
        return response.status, msgspec.json.decode(response.body)

    async def get(self, target: str) -> Any:
        status, told = await self.answer(target)
        assert status == 200, told
        return told

    async def close(self, auction_id: int, orders: list[RoundOrder], *found: Proven | Rejection) -> None:
        """Keep the rows of a round."""
        bids = [one for one in found if isinstance(one, Proven)]
        rejections = [one for one in found if isinstance(one, Rejection)]
        times = RoundTimes(auction_id, 1, NOW_MS, NOW_MS + 1_000)
        verdicts = decide(orders, bids, 0, {}).verdicts.values()
        rows = round_rows(times, verdicts, Rejections(rejections))
        changes = tuple(put(AUCTION_ROUND, row) for row in rows)
        assert await self.store.write(Unit(changes)) == Done()


def places() -> Any:
    """Two chains, the second one without Delta."""
    return {
        1: SimpleNamespace(chain_id=1, no_delta=""),
        2: SimpleNamespace(chain_id=2, no_delta="Delta is not served on chain 2"),
        3: SimpleNamespace(chain_id=3, no_delta=""),
    }


@asynccontextmanager
async def a_front(folder: Path) -> AsyncIterator[Front]:
    engine = Engine("sqlite:cambist.sqlite3", folder, in_process=True)
    auctions, live = KnownAuctions(), dict[bytes, LiveOrder]()
    async with engine.open() as store:
        router = Router(encode_trading_error)
        told = Auctions(places(), store, live.get, {1: auctions})
        admission = an_admission(public=RateTier(per_s=1_000, burst=1_000))
        router.mount(surface_of(told.endpoints(), admission, cors_origins=(), body_bytes_max=1 << 16))
        async with (
            serving(router, reactor=False) as served,
            HttpClient("127.0.0.1", served.port, connections_max=2, limits=Http1Limits()) as client,
        ):
            front = Front(store, client)
            front.auctions, front.live = auctions, live
            yield front


async def test_a_closed_round_tells_every_order_with_its_bids(tmp_path: Path) -> None:
    one, other = a_round_order(1), a_round_order(2, buys=True)
    async with a_front(tmp_path) as front:
        await front.close(
            7,
            [one, other],
            a_proven("alpha", (one, FAIR), (other, ONE)),
            a_proven("beta", (one, FAIR - 1)),
            LATE,
        )
        told = await front.get(f"{AUCTIONS}/7")
        assert await front.get(f"{AUCTIONS}/7/") == told
    assert {key: told[key] for key in ("auctionId", "chainId", "openedAt", "closedAt")} == {
        "auctionId": 7,
        "chainId": 1,
        "openedAt": "2023-11-14T22:13:20.000Z",
        "closedAt": "2023-11-14T22:13:21.000Z",
    }
    orders = {order["orderHash"]: order for order in told["orders"]}
    assert list(orders) == sorted(f"0x{order.order_hash.hex()}" for order in (one, other))
    sale = orders[f"0x{one.order_hash.hex()}"]
    assert [(bid["agent"], bid["notice"]) for bid in sale["bids"]] == [
        ("alpha", "won"),
        ("beta", "lost"),
        ("gamma", "late"),
    ]
    assert sale["bids"][0] == {
        "agent": "alpha",
        "notice": "won",
        "promisedAmount": str(FAIR),
        "simulatedAmount": str(FAIR),
        "netAmount": str(FAIR),
        "gas": 200_000,
        "arrivalMs": 0,
        "crossedWith": [f"0x{other.order_hash.hex()}"],
        "detail": "",
        "surplusAmount": str(100 * USDC_ONE),
        "partAmount": None,
    }
    assert sale["partMin"] is None
    assert (sale["winner"], sale["runnersUp"], sale["orderId"]) == (
        "alpha",
        ["beta"],
        str(order_id(one.order_hash)),
    )


@pytest.mark.parametrize("auction_id", ["8", "0", "x", "-7", "7.0", "9" * 17, "%37x"])
async def test_a_round_that_is_open_or_never_was_is_not_found(tmp_path: Path, auction_id: str) -> None:
    async with a_front(tmp_path) as front:
        await front.close(7, [a_round_order(1)], a_proven("alpha", (a_round_order(1), FAIR)))
        status, told = await front.answer(f"{AUCTIONS}/{auction_id}")
    assert (status, told["errorType"]) == (404, "AuctionNotFound")
    assert told["details"].startswith("Auction not found")


async def test_an_order_is_explained_by_its_last_rounds_the_latest_first(tmp_path: Path) -> None:
    async with a_front(tmp_path) as front:
        row = await kept(front.store, a_row(1))
        asked = msgspec.structs.replace(a_round_order(1), order_hash=row.order_hash)
        for number in range(8):
            below = Rejection("alpha", 5, Notice.BELOW_LIMIT, "why", {row.order_hash: number})
            await front.close(100 + number, [asked], below)
        path = f"/v2/delta/orders/{order_id(row.order_hash)}/explain"
        told = await front.get(path)
        assert (told["orderId"], told["orderHash"], told["status"]) == (
            str(order_id(row.order_hash)),
            f"0x{row.order_hash.hex()}",
            "PENDING",
        )
        assert [one["auctionId"] for one in told["lastRounds"]] == [107, 106, 105, 104, 103]
        (reason,) = told["reasons"]
        assert reason["code"] == "belowLimit"
        assert reason["text"] == "no bid meets the limit, at least 2400000000; the best promised 7"
        assert [one["amount"] for one in reason["amounts"]] == ["2400000000", "7"]
        assert (
            await front.get(
                path.upper().replace("/V2/DELTA/ORDERS", "/v2/delta/orders").replace("EXPLAIN", "explain")
            )
        )["reasons"] == told["reasons"]
        front.auctions.closed[row.order_hash] = NOW_MS + 9_000
        assert (await front.get(path))["reasons"] == told["reasons"], (
            "a round that came to nothing says nothing"
        )
        await front.close(108, [asked])
        (silent,) = (await front.get(path))["reasons"]
        assert silent["code"] == "noBids"
        front.auctions.agents = {}
        front.auctions.closed = {}
        assert [one["code"] for one in (await front.get(path))["reasons"]] == ["noAgents", "noBids"]


async def test_what_runs_an_order_is_known_to_its_explanation(tmp_path: Path) -> None:
    async with a_front(tmp_path) as front:
        row = await kept(front.store, a_row(1))
        asked = a_round_order(1)
        front.live[row.order_hash] = LiveOrder(row, asked.order, asked.document, asked.terms, settling="key")
        told = await front.get(f"/v2/delta/orders/{order_id(row.order_hash)}/explain")
        assert [one["code"] for one in told["reasons"]] == ["settling"]


@pytest.mark.parametrize("text", [str(order_id(b"\7" * 32)), "x", "0x12"])
async def test_an_order_that_is_not_there_is_not_explained(tmp_path: Path, text: str) -> None:
    async with a_front(tmp_path) as front:
        status, told = await front.answer(f"/v2/delta/orders/{text}/explain")
    assert (status, told["errorType"]) == (404, "OrderNotFound")


async def test_agents_are_listed_by_name_and_chain(tmp_path: Path) -> None:
    async with a_front(tmp_path) as front:
        assert await front.get("/v2/delta/agents/list/1") == ["alpha", "beta"]
        assert await front.get("/v2/delta/agents/list/3") == []
        for chain_id, status, error in (
            ("2", 422, "UnsupportedChain"),
            ("9", 422, "UnsupportedChain"),
            ("x", 400, "InvalidInput"),
        ):
            got, told = await front.answer(f"/v2/delta/agents/list/{chain_id}")
            assert (got, told["errorType"]) == (status, error)


async def test_the_endpoints_are_described(tmp_path: Path) -> None:
    async with a_front(tmp_path) as front:
        rows = Auctions(places(), front.store, front.live.get, {1: front.auctions}).endpoints()
        document = openapi_document(rows, {})
    for path, shape in (
        (f"{AUCTIONS}/{{auctionId}}", "Auction"),
        ("/v2/delta/orders/{orderId}/explain", "Explanation"),
    ):
        described = document["paths"][path]["get"]
        assert described["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith(
            f"/{shape}"
        )
        assert described["responses"]["404"]["description"].endswith("not found")
        assert described["parameters"][0]["description"]
        assert document["components"]["schemas"][shape]["description"]
