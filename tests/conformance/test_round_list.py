"""GET /v2/delta/auctions over real sockets: everybody sees rounds without whose orders they were.

An agent that signs its request sees the rounds in which it bid in full, an operator all.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
import trio

from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.agent_messages import Notice
from cambist.codecs.messages.auction_messages import AuctionedOrder, AuctionSettlement, ListedRound
from cambist.codecs.messages.vocabulary import Side
from cambist.config.secret import Secret
from cambist.config.sections.venue import MakerCredentials, RateTier
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hmac_auth import RequestSigner
from cambist.engine.host.server import Router
from cambist.engine.store.store import Store
from cambist.engine.store.tables import AUCTION_ROUND
from cambist.engine.store.units import Done, Unit, put
from cambist.engine.trade.api.routes import encode_trading_error, surface_of
from cambist.engine.trade.delta.auction.auction import decide
from cambist.engine.trade.delta.auction.auction_record import Rejections, RoundTimes, round_rows
from cambist.engine.trade.delta.bids.bids import Rejection, RoundOrder
from cambist.engine.trade.delta.bids.simulation import Proven
from cambist.engine.trade.delta.endpoints.round_list import RoundList, listed_order, public_round
from cambist.engine.trade.makers.signed_callers import SignedCallers
from cambist.engine.trade.orders.order_units import order_id
from cambist.feeds.transport.http_client import HttpClient
from support.delta.bidding import ALICE, USDC_ONE, a_proven, a_round_order
from support.patience import PATIENCE_S
from support.server.server_harness import NOW_MS, serving
from support.store.stores import Engine
from support.venue.admitting import OPERATOR_KEY, an_admission

LIST = "/v2/delta/auctions?chainId=1"
FAIR = 2_500 * USDC_ONE
OPENED_MS = NOW_MS - 5_877
"""Id of the round as well: the time at which it opened."""
SECRETS = {"alpha": b"the secret of alpha", "beta": b"the secret of beta"}


class Front:
    """Asks for rounds, in full as an operator, signed as an agent, or as anybody.

    Attributes:
        reads: number of reads of the store.
        now_ms: time of the endpoint.
    """

    def __init__(self, store: Store, client: HttpClient) -> None:
        self.store = store
        self.reads = 0
        self.now_ms = NOW_MS
        self._client = client

    async def raw(self, target: str = LIST, *, agent: str = "", key: str = "", secret: bytes = b"") -> Any:
        headers: dict[str, str] = {"x-api-key": key} if key else {}
        if agent:
            signer = RequestSigner("venue", "key-1", secret or SECRETS[agent])
            headers |= signer.headers(NOW_MS, "GET", target)
        sent = [(name.encode(), value.encode()) for name, value in headers.items()]
        return await self._client.request(b"GET", target.encode(), sent, deadline_s=PATIENCE_S)

    async def rounds(self, target: str = LIST, **caller: Any) -> list[dict[str, Any]]:
        response = await self.raw(target, **caller)
        assert response.status == 200, response.body
        assert msgspec.json.decode(response.body, type=tuple[ListedRound, ...]) is not None
        told: list[dict[str, Any]] = msgspec.json.decode(response.body)
        return told

    async def close(self, auction_id: int, orders: list[RoundOrder], *found: Proven | Rejection) -> None:
        bids = [one for one in found if isinstance(one, Proven)]
        rejections = Rejections([one for one in found if isinstance(one, Rejection)])
        times = RoundTimes(auction_id, 1, auction_id, auction_id + 1_003)
        verdicts = decide(orders, bids, 0, {}).verdicts.values()
        changes = tuple(put(AUCTION_ROUND, row) for row in round_rows(times, verdicts, rejections))
        assert await self.store.write(Unit(changes)) == Done()


@asynccontextmanager
async def a_front(folder: Path) -> AsyncIterator[Front]:
    engine = Engine("sqlite:cambist.sqlite3", folder, in_process=True)
    chains: Any = {
        1: SimpleNamespace(chain_id=1, no_delta=""),
        2: SimpleNamespace(chain_id=2, no_delta="none"),
    }
    agents = {
        name: MakerCredentials(domain="venue", access_key="key-1", secret=Secret(secret.decode(), "env:X"))
        for name, secret in SECRETS.items()
    }
    async with engine.open() as store:
        fast = RateTier(per_s=1_000, burst=1_000)
        admission, router = an_admission(public=fast, keyed=fast), Router(encode_trading_error)
        front = Front(store, None)  # type: ignore[arg-type]  # set below

        class Counted:
            """The store, which counts its reads."""

            async def read(self, *queries: Any) -> Any:
                front.reads += 1
                return await store.read(*queries)

        counted: Any = Counted()
        signed = SignedCallers(agents | {"none": None})
        told = RoundList(chains, counted, signed, admission.sees_orders, lambda: front.now_ms)
        router.mount(surface_of(told.endpoints(), admission, cors_origins=(), body_bytes_max=1 << 16))
        async with (
            serving(router, reactor=False) as served,
            HttpClient("127.0.0.1", served.port, connections_max=16, limits=Http1Limits()) as client,
        ):
            front._client = client
            yield front


def leading_to(*orders: RoundOrder) -> list[bytes]:
    """All spellings of hash, id and owner of orders, and the id of their round."""
    found = [str(OPENED_MS).encode(), ALICE.hex().encode()]
    for order in orders:
        found += [order.order_hash.hex().encode(), str(order_id(order.order_hash)).encode()]
        found.append(str(order_id(order.order_hash)).replace("-", "").encode())
    return found


async def test_everybody_sees_bids_and_outcomes_and_nothing_that_leads_to_an_order(tmp_path: Path) -> None:
    one, other = a_round_order(1), a_round_order(2, buys=True)
    text = f"0x{one.order_hash.hex()} has a better bid alone"
    async with a_front(tmp_path) as front:
        await front.close(
            OPENED_MS,
            [one, other],
            a_proven("alpha", (one, FAIR), (other, 10**18)),
            a_proven("beta", (one, FAIR - 7)),
            Rejection("gamma", 12, Notice.BELOW_LIMIT, text, {one.order_hash: 5, other.order_hash: 6}),
        )
        body = (await front.raw()).body.lower()
        assert [secret for secret in leading_to(one, other) if secret in body] == []
        (found,) = await front.rounds()
        in_full = (await front.raw(key=OPERATOR_KEY)).body.lower()
        for order in (one, other):
            assert order.order_hash.hex().encode() in in_full
            assert str(order_id(order.order_hash)).encode() in in_full
    assert (found["auctionId"], found["chainId"]) == (None, 1)
    assert (found["openedAt"], found["closedAt"]) == ("2023-11-14T22:13:14.000Z", "2023-11-14T22:13:15.000Z")
    sale = next(order for order in found["orders"] if order["side"] == "SELL")
    assert (sale["orderHash"], sale["orderId"]) == (None, None)
    assert (sale["winner"], sale["runnersUp"], sale["marginAmount"]) == ("alpha", ["beta"], "7")
    assert [(bid["agent"], bid["notice"], bid["netAmount"]) for bid in sale["bids"]] == [
        ("alpha", "won", str(FAIR)),
        ("beta", "lost", str(FAIR - 7)),
        ("gamma", "belowLimit", None),
    ]
    assert sale["bids"][2]["arrivalMs"] == 12
    assert {(bid["detail"], *bid["crossedWith"]) for bid in sale["bids"]} == {("",)}


async def test_the_contract_of_an_order_without_agents_may_be_its_owners_and_is_not_shown(
    tmp_path: Path,
) -> None:
    order = a_round_order(1)
    async with a_front(tmp_path) as front:
        await front.close(OPENED_MS, [order], a_proven(to_checksum(ALICE), (order, FAIR)))
        assert ALICE.hex().encode() not in (await front.raw()).body.lower()
        (found,) = await front.rounds()
        (in_full,) = await front.rounds(key=OPERATOR_KEY)
    assert (found["orders"][0]["winner"], found["orders"][0]["bids"][0]["agent"]) == ("0x", "0x")
    assert in_full["orders"][0]["winner"] == to_checksum(ALICE)


def test_settlements_are_shown_without_their_transactions_and_texts() -> None:
    owner = to_checksum(ALICE)
    settlement = AuctionSettlement(
        agent=owner, state="reverted", promised_amount="7", simulated_amount="8", settled_amount=None,
        tx_hash="0x" + "7e" * 32, detail=f"{owner} refused",
    )  # fmt: skip
    order = AuctionedOrder(
        order_hash="0x" + "5a" * 32, order_id="5a5a5a5a-5a5a-4a5a-9a5a-5a5a5a5a5a5a", side=Side.SELL,
        src_token="0xa", dest_token="0xb", src_amount="1", dest_amount="2", winner=owner,
        runners_up=(owner, "beta"), bids=(), bids_left_out=0, settlements=(settlement,),
    )  # fmt: skip
    whole = ListedRound(
        auction_id=7, chain_id=1, opened_at="2026-01-01T00:00:00.999Z", closed_at="2026-01-01T00:00:02.001Z",
        orders=(listed_order(order),),
    )  # fmt: skip
    found = public_round(whole)
    text = msgspec.json.encode(found).lower()
    assert [secret for secret in (b"5a5a", b"7e7e", ALICE.hex().encode()) if secret in text] == []
    ((shown,), times) = found.orders[0].settlements, (found.opened_at, found.closed_at)
    assert (shown.state, shown.promised_amount, shown.tx_hash, shown.detail) == ("reverted", "7", None, "")
    assert times == ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:02.000Z")
    assert found.orders[0].runners_up == ("0x", "beta")
    assert whole.orders[0].settlements[0] == settlement


async def test_an_agent_sees_the_rounds_in_which_it_bid_in_full_and_no_other(tmp_path: Path) -> None:
    orders = [a_round_order(number) for number in (1, 2, 3)]
    async with a_front(tmp_path) as front:
        await front.close(OPENED_MS, orders[:1], a_proven("alpha", (orders[0], FAIR)))
        await front.close(OPENED_MS + 1, orders[1:2], a_proven("beta", (orders[1], FAIR)))
        await front.close(OPENED_MS + 2, orders[2:], Rejection("alpha", 900, Notice.LATE, "no answer"))
        seen = {}
        for agent in ("alpha", "beta"):
            rounds = await front.rounds(agent=agent)
            seen[agent] = [(found["auctionId"], found["orders"][0]["orderId"]) for found in rounds]
        (whole, *_) = await front.rounds(agent="alpha")
        everybody = await front.rounds()
    ids = [str(order_id(order.order_hash)) for order in orders]
    assert seen["alpha"] == [(OPENED_MS + 2, ids[2]), (None, None), (OPENED_MS, ids[0])]
    assert seen["beta"] == [(None, None), (OPENED_MS + 1, ids[1]), (None, None)]
    assert whole["openedAt"] == "2023-11-14T22:13:14.125Z"
    assert whole["orders"][0]["bids"][0]["detail"] == "no answer"
    assert {found["auctionId"] for found in everybody} == {None}, "no agent's answer is kept for others"


@pytest.mark.parametrize("target", [LIST, f"{LIST}&limit=3"])
async def test_a_wrong_signature_is_refused(tmp_path: Path, target: str) -> None:
    async with a_front(tmp_path) as front:
        response = await front.raw(target, agent="alpha", secret=b"guessed")
        assert (response.status, b"X-AUTH-SIGNATURE" in response.body) == (401, True)
        for key in ("unknown", "alice-4f1c"):
            assert await front.rounds(target, key=key) == []


async def test_an_operators_rounds_are_whole_and_the_latest_come_first(tmp_path: Path) -> None:
    orders = [a_round_order(number) for number in range(4)]
    async with a_front(tmp_path) as front:
        await front.close(OPENED_MS, orders[:2], a_proven("alpha", (orders[0], FAIR)))
        await front.close(OPENED_MS + 5, orders[2:3])
        await front.close(NOW_MS - 86_400_001, orders[3:])
        found = await front.rounds(key=OPERATOR_KEY)
        assert [one["auctionId"] for one in found] == [OPENED_MS + 5, OPENED_MS]
        hashes = {order["orderHash"] for one in found for order in one["orders"]}
        assert hashes == {f"0x{order.order_hash.hex()}" for order in orders[:3]}
        assert [order["marginAmount"] for one in found for order in one["orders"]] == [None] * 3
        (last,) = await front.rounds(f"{LIST}&limit=1", key=OPERATOR_KEY)
        assert last["auctionId"] == OPENED_MS + 5


async def test_the_public_list_is_read_once_for_all_who_ask(tmp_path: Path) -> None:
    async with a_front(tmp_path) as front:
        await front.close(OPENED_MS, [a_round_order(1)])
        await front.rounds()
        reads = front.reads
        async with trio.open_nursery() as nursery:
            for _ in range(20):
                nursery.start_soon(front.rounds)
        assert front.reads == reads
        await front.close(OPENED_MS + 1, [a_round_order(2)])
        front.now_ms += 999
        assert len(await front.rounds()) == 1
        front.now_ms += 1
        assert len(await front.rounds()) == 2
        assert front.reads == 2 * reads
        await front.rounds(agent="alpha")
        assert front.reads == 3 * reads, "an agent's answer is its own"


@pytest.mark.parametrize(
    ("query", "status", "error"),
    [
        ("chainId=2", 422, "UnsupportedChain"),
        ("chainId=9", 422, "UnsupportedChain"),
        ("limit=5", 400, "InvalidInput"),
        ("chainId=1&limit=0", 400, "InvalidInput"),
        ("chainId=1&limit=201", 400, "InvalidInput"),
    ],
)
async def test_other_queries_are_refused(tmp_path: Path, query: str, status: int, error: str) -> None:
    async with a_front(tmp_path) as front:
        response = await front.raw(f"/v2/delta/auctions?{query}")
        assert (response.status, msgspec.json.decode(response.body)["errorType"]) == (status, error)
