"""Life of a Delta order over HTTP (spec 1.16 to 1.22): asked by httpx, signed by eth-account, field by field.

A row is a change of a plain request and what it makes of what is signed, or of the record; a row that does
not hold is named in the list that the test holds against an empty one.
"""

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.oracles import Oracle
from support.patience import PATIENCE_S
from support.venue.trading_requests import API_KEY, NOBODY, PARTNER, PARTNERS, TRADER
from support.venue.venue_role import CHAIN_ID, USER, RunningVenue, running_venue

pytestmark = pytest.mark.oracle

ORDERS, BUILD = "/v2/delta/orders", "/v2/delta/orders/build"
HOUR_S = 3_600
ONE, USDC = 10**18, 10**6
ZERO = "0x" + "00" * 20
DOMAIN = {"name": "string", "version": "string", "chainId": "uint256", "verifyingContract": "address"}
Json = dict[str, Any]
Row = tuple[Json, Callable[[Json], bool]]


class Client:
    """A trader with httpx and eth-account."""

    def __init__(self, venue: RunningVenue, http: httpx.AsyncClient, signer: Oracle) -> None:
        self.venue = venue
        self.http = http
        self.signer = signer

    async def told(self, answer: httpx.Response) -> Any:
        assert answer.status_code == 200, answer.text
        return answer.json()

    async def get(self, path: str, **query: Any) -> Any:
        return await self.told(await self.http.get(path, params=query))

    async def post(self, path: str, body: Json) -> Any:
        sent = {name: value for name, value in body.items() if value is not None}
        return await self.told(await self.http.post(path, json=sent))

    async def route(self, *, buys: bool = False) -> Json:
        venue = self.venue
        asked = venue.buying("USDC", 2_500, "WETH") if buys else venue.selling("WETH", 1, "USDC")
        route: Json = (await self.get("/v2/quote", **asked, mode="DELTA"))["delta"]["route"]
        return route

    async def build(self, **changed: Any) -> Json:
        buys = changed.get("side") == "BUY"
        body = {"route": await self.route(buys=buys), "owner": TRADER, "deadline": _in_an_hour()} | changed
        built: Json = await self.post(BUILD, body)
        return built

    def sign(self, to_sign: Json) -> tuple[str, str]:
        """Digest and signature in the compact form of ERC-2098, of typed data as it came."""
        types = to_sign["types"]
        used = {member["type"].removesuffix("[]") for members in types.values() for member in members}
        (primary,) = types.keys() - used
        domain = [{"name": name, "type": kind} for name, kind in DOMAIN.items()]
        document = {
            "types": types | {"EIP712Domain": domain},
            "primaryType": primary,
            "domain": to_sign["domain"],
            "message": to_sign["value"],
        }
        answer = self.signer.ask(ask="typed_data", document=document, key="0x" + USER.secret32().hex())
        raw = bytes.fromhex(answer["signature"])
        s_and_parity = int.from_bytes(raw[32:64], "big") | (raw[64] - 27) << 255
        return f"0x{answer['digest']}", f"0x{(raw[:32] + s_and_parity.to_bytes(32, 'big')).hex()}"

    async def submit(self, built: Json, **changed: Any) -> Json:
        digest, signature = self.sign(built["toSign"])
        assert digest == built["orderHash"]
        body = {
            "chainId": CHAIN_ID,
            "order": built["toSign"]["value"],
            "signature": signature,
            "partner": "anon",
        }
        record: Json = await self.post(ORDERS, body | changed)
        return record


def _in_an_hour() -> int:
    return int(time.time()) + HOUR_S


@asynccontextmanager
async def a_client(folder: Path, signer: Oracle) -> AsyncIterator[Client]:
    async with running_venue(folder, more=PARTNERS, environ={"API_KEY": API_KEY}) as venue:
        await venue.devnet.allow(USER, "WETH", "delta")
        async with httpx.AsyncClient(base_url=venue.url, timeout=PATIENCE_S) as http:
            yield Client(venue, http, signer)


# --- What a build makes of its fields -------------------------------------------------------------------


def _is(**members: Any) -> Callable[[Json], bool]:
    return lambda now: {name: now[name] for name in members} == members


def _fee(partner: str, bps: int, *, capped: bool = True, taken: bool = False) -> Callable[[Json], bool]:
    packed = int(partner, 16) << 96 | capped << 9 | taken << 8 | bps
    return _is(partnerAndFee=str(packed))


def _bound(bps: int, *, buys: bool = False) -> Callable[[Json], bool]:
    """Of what is expected, rounded in favour of the user by a unit at most."""
    if buys:
        return lambda now: int(now["srcAmount"]) == int(now["expectedAmount"]) * (10_000 + bps) // 10_000
    return lambda now: int(now["destAmount"]) == int(now["expectedAmount"]) * (10_000 - bps) // 10_000


BUILT: list[Row] = [
    ({}, _is(owner=TRADER, beneficiary=TRADER, kind=0, permit="0x", metadata="0x")),
    ({}, _is(srcAmount=str(ONE))),
    ({}, _bound(100)),
    ({}, _fee(ZERO, 1)),
    ({"side": "SELL"}, _is(kind=0)),
    ({"side": "BUY"}, _is(kind=1, destAmount=str(2_500 * USDC))),
    ({"side": "BUY"}, _bound(100, buys=True)),
    ({"deadline": 4_000_000_000}, _is(deadline=4_000_000_000)),
    ({"beneficiary": NOBODY}, _is(owner=TRADER, beneficiary=NOBODY)),
    ({"nonce": "77"}, _is(nonce="77")),
    ({"permit": "0x"}, _is(permit="0x")),
    ({"slippage": 0}, _bound(0)),
    ({"slippage": 33}, _bound(33)),
    ({"slippage": 10_000}, _is(destAmount="0")),
    ({"limitAmount": "2600000000", "slippage": 5_000}, _is(srcAmount=str(ONE), destAmount="2600000000")),
    ({"limitAmount": "7", "side": "BUY"}, _is(srcAmount="7", destAmount=str(2_500 * USDC))),
    ({"metadata": "0xbeef"}, _is(metadata="0xbeef")),
    ({"partner": "acme"}, _fee(PARTNER, 10)),
    ({"partner": "acme", "partnerFeeBps": 5}, _fee(PARTNER, 15)),
    ({"partnerAddress": NOBODY, "partnerFeeBps": 25}, _fee(NOBODY, 25)),
    ({"partner": "acme", "partnerTakesSurplus": True}, _fee(PARTNER, 10, taken=True)),
    (
        {"partner": "acme", "partnerTakesSurplus": True, "capSurplus": False},
        _fee(PARTNER, 10, taken=True, capped=False),
    ),
    ({"orderType": "Order"}, _is(kind=0)),
    (
        {"orderType": "TWAPOrder", "interval": 61, "numSlices": 3, "totalSrcAmount": str(3 * ONE + 2)},
        _is(interval=61, numSlices=3, totalSrcAmount=str(3 * ONE + 2)),
    ),
    (
        {
            "orderType": "TWAPBuyOrder", "side": "BUY", "interval": 60, "numSlices": 2,
            "totalDestAmount": str(5_000 * USDC + 1), "maxSrcAmount": str(4 * ONE),
        },
        _is(interval=60, numSlices=2, totalDestAmount=str(5_000 * USDC + 1), maxSrcAmount=str(4 * ONE)),
    ),
]  # fmt: skip


async def test_each_field_of_a_build_is_in_what_is_signed(tmp_path: Path, eth_account: Oracle) -> None:
    faults = []
    async with a_client(tmp_path, eth_account) as client:
        for changed, holds in BUILT:
            built = await client.build(**changed)
            assert built.keys() == {"toSign", "orderHash"}
            assert built["toSign"].keys() == {"domain", "types", "value"}
            assert built["toSign"]["domain"].keys() == DOMAIN.keys()
            assert client.sign(built["toSign"])[0] == built["orderHash"], changed
            value = built["toSign"]["value"]
            faults += [] if holds(value) else [f"{changed}: {value}"]
    assert faults == []


# --- What a submission makes of its fields --------------------------------------------------------------

SUBMITTED: list[Row] = [
    ({}, _is(status="PENDING", type="MARKET", side="SELL", onChainOrderType="Order", partner="anon")),
    ({"type": "LIMIT"}, _is(type="LIMIT")),
    ({"type": "MARKET"}, _is(type="MARKET")),
    ({"partiallyFillable": True}, _is(onChainOrderType="FillableOrder")),
    ({"partiallyFillable": False}, _is(onChainOrderType="Order")),
]


async def test_each_field_of_a_submission_is_in_the_record(tmp_path: Path, eth_account: Oracle) -> None:
    faults, ids = [], []
    async with a_client(tmp_path, eth_account) as client:
        for changed, holds in SUBMITTED:
            built = await client.build()
            record = await client.submit(built, **changed)
            faults += [] if holds(record) else [f"{changed}: {record}"]
            assert record["order"] == built["toSign"]["value"]
            assert record["orderHash"] == built["orderHash"]
            by_hash = await client.get(f"{ORDERS}/hash/{built['orderHash']}")
            assert by_hash["id"] == (await client.get(f"{ORDERS}/{record['id']}"))["id"] == record["id"]
            ids.append(record["id"])
        page = await client.get(ORDERS, userAddress=TRADER, chainId=CHAIN_ID, limit=3, page=2)
        assert [one["id"] for one in page["data"]] == ids[::-1][3:]
        assert (page["total"], page["page"], page["limit"], page["hasMore"]) == (len(ids), 2, 3, False)
        limits = await client.get(ORDERS, userAddress=TRADER, type="LIMIT")
        assert [one["id"] for one in limits["data"]] == [ids[1]]
        parts = await client.get(ORDERS, userAddress=TRADER, onChainOrderType="FillableOrder")
        assert [one["id"] for one in parts["data"]] == [ids[3]]
    assert faults == []


async def test_a_cancellation_is_signed_as_it_is_built(tmp_path: Path, eth_account: Oracle) -> None:
    async with a_client(tmp_path, eth_account) as client:
        ids = [(await client.submit(await client.build()))["id"] for _ in range(2)]
        built = await client.post(f"{BUILD}/cancellation", {"orderIds": ids})
        digest, signature = client.sign(built["toSign"])
        assert digest == built["hash"]
        told = await client.post(f"{ORDERS}/cancel", {"orderIds": ids, "signature": signature})
        assert told == {"success": True, "cancelled": ids}
        for order_id in ids:
            assert (await client.get(f"{ORDERS}/{order_id}"))["status"] in ("CANCELLING", "CANCELLED")
