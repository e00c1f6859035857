"""GET /v2/delta/orders, by id, by hash, and what orders take of an account's tokens."""

from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import msgspec
import pytest

from cambist.codecs.contracts.calldata import transfer
from cambist.codecs.contracts.delta_calldata import deposit_native_and_pre_sign
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import NodeUnavailable
from cambist.crypto.addresses import parse_address, to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.engine.store.queries import by
from cambist.engine.store.rows import DeltaFill, DeltaOrderRow, amount32
from cambist.engine.store.tables import BRIDGE_TRANSFER, DELTA_FILL, DELTA_ORDER, DELTA_REFUND
from cambist.engine.store.units import put
from cambist.engine.trade.orders.order_units import DELTA
from support.chain.world import NATIVE, ONE, USDC
from support.contracts.settling import Market
from support.delta.order_front import (
    API_KEY,
    BUILD_CANCEL,
    CANCEL,
    CHAIN_ID,
    OPERATOR,
    ORDERS,
    OrderFront,
    an_order_front,
    told,
)
from support.oracles import Oracle, openapi_oracle
from support.store.stores import a_refund_of, a_transfer, moved

pytestmark = pytest.mark.needs("pyrevm")

COMMITTED = f"{ORDERS}/fillablebalance"
AVAILABLE = f"{ORDERS}/availablebalance"
NOBODYS_ID = "00000000-0000-4000-8000-000000000000"
HASH = "0x" + "5a" * 32


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OrderFront]:
    async with an_order_front(tmp_path) as front:
        yield front


async def row_of(front: OrderFront, record: dict[str, Any]) -> DeltaOrderRow:
    (rows,) = await front.store.read(by(DELTA_ORDER, parse_hex(record["orderHash"], "hash")))
    return DELTA.found(rows[0])


async def settled(
    front: OrderFront, record: dict[str, Any], *, filled: int, spent: int, received: int, number: int = 1
) -> None:
    """As the indexer writes it."""
    row = await row_of(front, record)
    fill = DeltaFill(
        CHAIN_ID, bytes([number]) * 32, bytes([number]) * 32, 0, number, row.order_hash, None,
        amount32(spent), amount32(received), 1, amount32(filled), False,
    )  # fmt: skip
    await moved(front.store, row, status=OrderStatus.ACTIVE, more=(put(DELTA_FILL, fill),))


# --- One order ------------------------------------------------------------------------------------------


async def test_by_id_and_by_hash(front: OrderFront) -> None:
    records = [await front.submitted(await front.a_sale()) for _ in range(3)]
    for record in records:
        for path in (record["id"], record["id"].upper(), f"hash/{record['orderHash']}"):
            assert await front.get(f"{ORDERS}/{path}") == record
        assert await front.get(f"{ORDERS}/hash/{record['orderHash'].upper().replace('X', 'x')}") == record


@pytest.mark.parametrize("path", [NOBODYS_ID, "mine", "hash", f"hash/{HASH}", "build", "cancel"])
async def test_orders_that_are_not_there(front: OrderFront, path: str) -> None:
    await front.submitted(await front.a_sale())
    status, error_type, details = told(await front.answer(f"{ORDERS}/{path}"))
    if path == "cancel":
        assert (status, error_type) == (405, "MethodNotAllowed")
    else:
        assert (status, error_type) == (404, "OrderNotFound")
        assert details.startswith("Order not found: ")


@pytest.mark.parametrize("text", ["0x1234", "5a" * 32, "0x" + "zz" * 32, "mine"])
async def test_what_is_no_hash(front: OrderFront, text: str) -> None:
    refusal = told(await front.answer(f"{ORDERS}/hash/{text}"))
    assert refusal[:2] == (400, "InvalidInput")
    assert "hash: expected 0x and 64 hexadecimal digits" in refusal[2]


@pytest.mark.parametrize(
    ("query", "headers", "status"),
    [
        ({}, {}, 400),
        ({"chainId": CHAIN_ID, "status": "PENDING", "limit": 1}, {}, 400),
        ({"userAddress": ""}, {}, 400),
        ({}, {"x-api-key": API_KEY}, 400),
        ({}, OPERATOR, 200),
        ({"userAddress": to_checksum(b"\x77" * 20)}, {}, 200),
        ({"ids": NOBODYS_ID}, {}, 200),
    ],
)
async def test_a_stranger_is_not_told_everybodys_orders(
    front: OrderFront, query: dict[str, Any], headers: dict[str, str], status: int
) -> None:
    """A listing needs an owner, ids, or the operator's key."""
    record = await front.submitted(await front.a_sale())
    response = await front.ask("GET", f"{ORDERS}?{urlencode(query)}", headers=headers)
    assert response.status == status
    told_of = msgspec.json.decode(response.body)
    if status == 200:
        assert [one["id"] for one in told_of["data"]] == ([record["id"]] if headers else [])
    else:
        assert "userAddress: expected an owner; or ids of orders, or an operator's" in told_of["details"]
        assert record["id"] not in response.body.decode()


async def test_every_address_of_a_record_has_its_checksum(front: OrderFront) -> None:
    world = front.world
    await world.give(world.user, world.dai, ONE, world.at.delta)
    body = front.world.delta_body(await front.a_sale(src_token=world.dai, dest_token=NATIVE))
    lowered = {name: text.lower() if is_address(text) else text for name, text in body["order"].items()}
    status, record = await front.post(ORDERS, body | {"order": lowered})
    assert status == 200, record
    texts = addresses_of(record)
    assert len(texts) == 9
    assert texts == [to_checksum(parse_address(text)) for text in texts]
    native = "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"
    assert record["output"]["token"] == record["order"]["destToken"] == native
    assert await front.get(f"{ORDERS}/{record['id']}") == record


def is_address(value: object) -> bool:
    return isinstance(value, str) and value.startswith("0x") and len(value) == 42


def addresses_of(value: Any) -> list[str]:
    """Every address in a JSON value, in its order."""
    if isinstance(value, dict):
        return [address for member in value.values() for address in addresses_of(member)]
    if isinstance(value, list):
        return [address for item in value for address in addresses_of(item)]
    return [value] if is_address(value) else []


async def test_a_record_follows_its_settlements(front: OrderFront) -> None:
    record = await front.submitted(await front.a_sale(), partiallyFillable=True)
    await settled(front, record, filled=ONE // 4, spent=ONE // 4, received=625 * USDC)
    after = await front.get(f"{ORDERS}/{record['id']}")
    assert after["output"]["executedAmount"] == str(625 * USDC)
    (transaction,) = after["transactions"]
    tx = "0x" + "01" * 32
    assert transaction == {
        "originTx": tx, "destinationTx": tx, "filledPercent": 25,
        "spentAmount": str(ONE // 4), "receivedAmount": str(625 * USDC),
    }  # fmt: skip
    await settled(front, after, filled=ONE, spent=3 * ONE // 4, received=1_900 * USDC, number=2)
    last = await front.get(f"{ORDERS}/{record['id']}")
    assert [one["filledPercent"] for one in last["transactions"]] == [25, 75]
    assert last["output"]["executedAmount"] == str(2_525 * USDC)
    assert last["status"] == "ACTIVE"
    same = {"id", "order", "owner", "createdAt", "expiresAt", "input", "orderHash"}
    assert {name: last[name] for name in same} == {name: record[name] for name in same}
    row = await row_of(front, last)
    sent = a_transfer(row, block=3)
    more = (put(BRIDGE_TRANSFER, sent), put(DELTA_REFUND, a_refund_of(sent)))
    await moved(front.store, row, more=more)
    assert len((await front.get(f"{ORDERS}/{record['id']}"))["refunds"]) == 1


async def test_records_of_purchases_and_twaps(front: OrderFront) -> None:
    market = Market(front.world, b"")
    bought = await front.submitted(await front.a_purchase())
    assert bought["input"]["maxAmount"] == str(11 * ONE // 10)
    assert (bought["input"]["expectedAmount"], bought["input"]["executedAmount"]) == (str(ONE), None)
    assert bought["output"] == {
        "chainId": CHAIN_ID, "token": to_checksum(front.world.usdc), "amount": str(2_500 * USDC),
    }  # fmt: skip
    await settled(front, bought, filled=2_500 * USDC, spent=ONE, received=2_500 * USDC)
    after = await front.get(f"{ORDERS}/{bought['id']}")
    assert after["input"]["executedAmount"] == str(ONE)
    twap = await front.submitted(await market.a_twap())
    assert twap["output"]["expectedAmount"] is None
    await settled(front, twap, filled=1, spent=ONE // 3, received=800 * USDC, number=2)
    assert (await front.get(f"{ORDERS}/{twap['id']}"))["transactions"][0]["filledPercent"] == 33.333333


@pytest.fixture(scope="module")
def openapi() -> Iterator[Oracle]:
    with openapi_oracle() as oracle:
        yield oracle


@pytest.mark.oracle
async def test_answers_are_as_openapi_describes_them(front: OrderFront, openapi: Oracle) -> None:
    sale = await front.submitted(await front.a_sale(), partiallyFillable=True)
    await front.submitted(await front.a_purchase())
    await front.submitted(await Market(front.world, b"").a_twap())
    await settled(front, sale, filled=ONE // 3, spent=ONE // 3, received=1)
    _, built = await front.post(BUILD_CANCEL, {"orderIds": [sale["id"]]})
    _, cancelled = await front.post(CANCEL, front.world.cancel_body([sale["id"]]))
    user = to_hex(front.world.user.address)
    page = await front.listed()
    for method, path, told_of in (
        ("post", ORDERS, sale),
        ("get", f"{ORDERS}/{{orderId}}", await front.get(f"{ORDERS}/{sale['id']}")),
        ("get", ORDERS, page),
        *[
            ("get", f"{path}/{{chainId}}/{{user}}", await front.get(f"{path}/{CHAIN_ID}/{user}"))
            for path in (COMMITTED, AVAILABLE)
        ],
        ("post", BUILD_CANCEL, built),
        ("post", CANCEL, cancelled),
    ):
        described = front.document["paths"][path][method]["responses"]["200"]["content"]
        schema = described["application/json"]["schema"]
        asked = {"ask": "instance", "document": front.document, "schema": schema}
        assert openapi.ask(**asked, instance=told_of) == {"errors": []}, path
        assert openapi.ask(**asked, instance=[])["errors"], path
    assert len(page["data"]) == 3


# --- Listings -------------------------------------------------------------------------------------------


async def ids_of(front: OrderFront, **query: Any) -> list[str]:
    page = await front.listed(**query)
    assert len(page["data"]) == page["total"]
    return [record["id"] for record in page["data"]]


async def test_filters(front: OrderFront) -> None:
    world, market = front.world, Market(front.world, b"")
    await world.give(world.stranger, world.weth, ONE, world.at.delta)
    sale = (await front.submitted(await front.a_sale()))["id"]
    limit = (await front.submitted(await front.a_sale(), type="LIMIT"))["id"]
    parts = (await front.submitted(await front.a_sale(), partiallyFillable=True))["id"]
    twap = (await front.submitted(await market.a_twap()))["id"]
    theirs = await front.submitted(await front.a_sale(owner=world.stranger.address), world.stranger)
    assert (await front.post(CANCEL, front.world.cancel_body([sale])))[0] == 200
    everything = [theirs["id"], twap, parts, limit, sale]
    for query, expected in (
        ({}, everything),
        ({"userAddress": to_checksum(world.user.address)}, [twap, parts, limit, sale]),
        ({"userAddress": to_hex(world.stranger.address)}, [theirs["id"]]),
        ({"userAddress": to_hex(world.taker.address)}, []),
        ({"userAddress": ""}, everything),
        ({"chainId": CHAIN_ID}, everything),
        ({"chainId": f"1,{CHAIN_ID}"}, everything),
        ({"chainId": "1,10"}, []),
        ({"type": "LIMIT"}, [limit]),
        ({"type": "MARKET"}, [theirs["id"], twap, parts, sale]),
        ({"onChainOrderType": "FillableOrder"}, [parts]),
        ({"onChainOrderType": "TWAPOrder"}, [twap]),
        ({"onChainOrderType": "Order"}, [theirs["id"], limit, sale]),
        ({"status": "CANCELLING"}, [sale]),
        ({"status": "CANCELLING,PENDING"}, everything),
        ({"status": "COMPLETED,FAILED"}, []),
        ({"status": "PENDING", "type": "MARKET", "onChainOrderType": "Order"}, [theirs["id"]]),
        ({"ids": f"{sale},{twap}"}, [twap, sale]),
        ({"ids": f"{sale.upper()},{NOBODYS_ID},mine,{sale}"}, [sale]),
        ({"ids": f"{sale},{twap}", "status": "PENDING"}, [twap]),
        ({"ids": theirs["id"], "userAddress": to_hex(world.user.address)}, []),
        ({"ids": f"{sale},{limit}", "type": "LIMIT"}, [limit]),
        ({"ids": f"{sale},{parts}", "onChainOrderType": "FillableOrder"}, [parts]),
        ({"ids": sale, "chainId": 1}, []),
    ):
        assert await ids_of(front, **query) == expected, query


@pytest.mark.parametrize("by_ids", [False, True])
async def test_pages(front: OrderFront, *, by_ids: bool) -> None:
    ids = [(await front.submitted(await front.a_sale()))["id"] for _ in range(5)][::-1]
    more = {"ids": ",".join(ids)} if by_ids else {}
    first = await front.listed(limit=2, **more)
    shape = {name: first[name] for name in ("total", "page", "limit", "hasMore")}
    assert shape == {"total": 5, "page": 1, "limit": 2, "hasMore": True}
    pages = [await front.listed(limit=2, page=page, **more) for page in (1, 2, 3, 4)]
    assert [one["id"] for page in pages for one in page["data"]] == ids
    assert [page["hasMore"] for page in pages] == [True, True, False, False]
    assert [page["page"] for page in pages] == [1, 2, 3, 4]
    everything = await front.listed(**more)
    assert (everything["limit"], everything["hasMore"]) == (100, False)
    assert [await front.get(f"{ORDERS}/{one['id']}") for one in everything["data"]] == everything["data"]


@pytest.mark.parametrize(
    ("query", "field"),
    [
        ({"page": 0}, "page"), ({"page": "-1"}, "page"), ({"limit": 0}, "limit"), ({"limit": 1001}, "limit"),
        ({"userAddress": "me"}, "userAddress"), ({"chainId": "one"}, "chainId"), ({"type": "TWAP"}, "type"),
        ({"status": "OPEN"}, "status"), ({"onChainOrderType": "order"}, "onChainOrderType"),
        ({"ids": ",".join(["x"] * 101)}, "ids: expected at most 100 ids, got 101"),
    ],
)  # fmt: skip
async def test_parameters_that_are_refused(front: OrderFront, query: dict[str, Any], field: str) -> None:
    refusal = told(await front.answer(ORDERS, **query))
    assert refusal[:2] == (400, "InvalidInput")
    assert refusal[2].startswith(f"Invalid input: {field}")


async def test_the_bounds_themselves(front: OrderFront) -> None:
    assert (await front.listed(limit=1_000, page=2**53 - 1))["data"] == []
    assert (await front.listed(ids=",".join(["x"] * 100)))["total"] == 0


# --- Commitments ----------------------------------------------------------------------------------------


async def test_open_limit_orders_commit_what_they_may_still_take(front: OrderFront) -> None:
    world, market = front.world, Market(front.world, b"")
    user, weth, usdc = to_checksum(world.user.address), to_hex(world.weth), to_hex(world.usdc)
    everything = f"{COMMITTED}/{CHAIN_ID}/{user}"
    path = f"{everything}/{to_checksum(world.weth)}"
    nothing = dict.fromkeys(map(to_hex, (NATIVE, world.weth, world.usdc, world.dai, front.odd)), "0")
    assert await front.get(path) == {weth: "0"}
    assert await front.get(everything) == nothing
    for order in (await front.a_sale(), await market.a_twap(), await front.a_purchase()):
        await front.submitted(order)
    assert await front.get(path) == {weth: "0"}, "no limit order"
    limit = await front.submitted(await front.a_sale(), type="LIMIT", partiallyFillable=True)
    assert await front.get(path) == {weth: str(ONE)}
    purchase = await front.submitted(await front.a_purchase(), type="LIMIT")
    committed = ONE + 11 * ONE // 10
    assert await front.get(f"{path}/") == {weth: str(committed)}
    assert await front.get(everything) == nothing | {weth: str(committed)}
    assert await front.get(f"{everything}/{usdc}") == {usdc: "0"}
    assert await front.get(f"{COMMITTED}/{CHAIN_ID}/{to_hex(world.stranger.address)}/{weth}") == {weth: "0"}
    await settled(front, limit, filled=ONE // 4, spent=ONE // 4, received=1)
    assert await front.get(path) == {weth: str(committed - ONE // 4)}
    await world.approve(world.user, world.weth, world.at.delta, 0)
    assert await front.get(path) == {weth: str(committed - ONE // 4)}, "whatever the wallet has"
    assert (await front.post(CANCEL, front.world.cancel_body([purchase["id"]])))[0] == 200
    assert await front.get(path) == {weth: str(3 * ONE // 4)}
    await moved(front.store, await row_of(front, limit), status=OrderStatus.SUSPENDED)
    assert await front.get(path) == {weth: "0"}, "an order that cannot be filled commits nothing"


async def test_a_limit_order_of_native_tokens_commits_nothing_of_the_balance(front: OrderFront) -> None:
    world = front.world
    order = await front.a_sale(src_token=NATIVE)
    deposit = deposit_native_and_pre_sign(world.delta_hash(order))
    await world.send(world.user, world.at.delta, deposit, value_wei=ONE)
    await front.submitted(order, type="LIMIT")
    path = f"{COMMITTED}/{CHAIN_ID}/{to_hex(world.user.address)}/{to_hex(NATIVE)}"
    assert await front.get(path) == {to_hex(NATIVE): "0"}


# --- Available balances ----------------------------------------------------------------------------------


async def test_what_an_account_can_still_give(front: OrderFront) -> None:
    world, market = front.world, Market(front.world, b"")
    user, weth = to_checksum(world.user.address), to_hex(world.weth)
    path = f"{AVAILABLE}/{CHAIN_ID}/{user}/{to_checksum(world.weth)}"
    assert await front.get(path) == {weth: str(10 * ONE)}
    sale = await front.submitted(await front.a_sale(), partiallyFillable=True)
    await front.submitted(await front.a_purchase())
    await front.submitted(await market.a_twap())
    left = 10 * ONE - ONE - 11 * ONE // 10 - ONE
    assert await front.get(path) == {weth: str(left)}
    await settled(front, sale, filled=ONE // 4, spent=ONE // 4, received=1)
    assert await front.get(path) == {weth: str(left + ONE // 4)}  # the balance here has not moved
    row = await row_of(front, sale)
    await moved(front.store, row, status=OrderStatus.FAILED)
    assert await front.get(path) == {weth: str(left + ONE)}
    await world.approve(world.user, world.weth, world.at.delta, 3 * ONE)
    assert await front.get(path) == {weth: str(left + ONE - 7 * ONE)}
    await world.approve(world.user, world.weth, world.at.delta, ONE)
    assert await front.get(f"{path}/") == {weth: "0"}


@pytest.mark.parametrize("status", [OrderStatus.SUSPENDED, OrderStatus.CANCELLING])
async def test_an_order_that_is_suspended_takes_nothing_and_one_that_is_cancelled_still_may(
    front: OrderFront, status: OrderStatus
) -> None:
    world = front.world
    path = f"{AVAILABLE}/{CHAIN_ID}/{to_hex(world.user.address)}/{to_hex(world.weth)}"
    await front.submitted(await front.a_sale())
    giant = await front.submitted(await front.a_sale(src_amount=9 * ONE))
    assert await front.get(path) == {to_hex(world.weth): "0"}
    await moved(front.store, await row_of(front, giant), status=status)
    left = 9 * ONE if status is OrderStatus.SUSPENDED else 0
    assert await front.get(path) == {to_hex(world.weth): str(left)}


@pytest.mark.parametrize("status", ["BRIDGING", "REFUNDING", "REFUNDED"])
async def test_an_order_that_a_bridge_has_takes_nothing(front: OrderFront, status: str) -> None:
    weth, user = front.world.weth.hex(), front.world.user.address.hex()
    before = await front.get(f"{AVAILABLE}/{CHAIN_ID}/0x{user}/0x{weth}")
    record = await front.submitted(await front.a_sale(), type="LIMIT")
    while_open = await front.get(f"{AVAILABLE}/{CHAIN_ID}/0x{user}/0x{weth}")
    assert int(while_open[f"0x{weth}"]) == int(before[f"0x{weth}"]) - ONE
    for step in (OrderStatus.ACTIVE, OrderStatus.BRIDGING, OrderStatus.REFUNDING, OrderStatus.REFUNDED):
        row = await row_of(front, record)
        if row.status != status and row.status is not step:
            await moved(front.store, row, status=step)
    assert (await front.get(f"{ORDERS}/{record['id']}"))["status"] == status
    assert await front.get(f"{AVAILABLE}/{CHAIN_ID}/0x{user}/0x{weth}") == before
    assert await front.get(f"{COMMITTED}/{CHAIN_ID}/0x{user}/0x{weth}") == {f"0x{weth}": "0"}


async def test_a_fill_between_the_two_reads_does_not_show_more_than_there_is(tmp_path: Path) -> None:
    class Fills:
        """The chain; right after it has told of balances, an order is filled."""

        def __init__(self, chain: Any) -> None:
            self._chain = chain
            self.fill: Callable[[], Awaitable[None]] | None = None

        def __getattr__(self, name: str) -> Any:
            return getattr(self._chain, name)

        async def call_many(self, *asked: Any) -> Any:
            told_of = await self._chain.call_many(*asked)
            fill, self.fill = self.fill, None
            if fill is not None:
                await fill()
            return told_of

    chains: list[Fills] = []

    def filling(chain: Any) -> Fills:
        chains.append(Fills(chain))
        return chains[0]

    async with an_order_front(tmp_path, chain=filling) as front:
        world = front.world
        record = await front.submitted(await front.a_sale())

        async def fill() -> None:
            await world.send(world.user, world.weth, transfer(world.taker.address, ONE))
            row = await row_of(front, record)
            active = await moved(front.store, row, status=OrderStatus.ACTIVE)
            await moved(front.store, active, status=OrderStatus.COMPLETED)

        (filling_chain,) = chains
        filling_chain.fill = fill
        weth = to_hex(world.weth)
        told_of = await front.get(f"{AVAILABLE}/{CHAIN_ID}/{to_hex(world.user.address)}/{weth}")
        assert not filling_chain.__dict__["fill"]
        assert int(told_of[weth]) <= await world.balance(world.weth, world.user)


async def test_all_listed_tokens(front: OrderFront) -> None:
    world = front.world
    await world.give(world.stranger, world.usdc, 5, world.at.delta)
    await world.mint(world.dai, world.stranger, 7)
    told_of = await front.get(f"{AVAILABLE}/{CHAIN_ID}/{to_hex(world.stranger.address)}")
    native = told_of.pop(to_hex(NATIVE))
    assert int(native) == await world.chain.balance(world.stranger.address)
    assert told_of == {
        to_hex(world.weth): "0", to_hex(world.usdc): "5", to_hex(world.dai): "0", to_hex(front.odd): "0",
    }  # fmt: skip


async def test_native_tokens_of_orders_are_deposited_already(front: OrderFront) -> None:
    world = front.world
    path = f"{AVAILABLE}/{CHAIN_ID}/{to_checksum(world.user.address)}/{to_hex(NATIVE)}"
    order = await front.a_sale(src_token=NATIVE)
    await world.send(
        world.user, world.at.delta, deposit_native_and_pre_sign(world.delta_hash(order)), value_wei=ONE
    )
    before = await front.get(path)
    await front.submitted(order)
    assert await front.get(path) == before


async def test_tokens_that_are_not_listed(front: OrderFront) -> None:
    path = f"{AVAILABLE}/{CHAIN_ID}/{to_hex(front.world.user.address)}"
    other = "0x" + "Ab" * 20
    assert await front.get(f"{path}/{other}") == {other.lower(): "0"}


@pytest.mark.parametrize(
    ("path", "status", "error_type"),
    [
        ("1/0x" + "11" * 20, 422, "UnsupportedChain"),
        ("100/0x" + "11" * 20, 422, "UnsupportedChain"),
        ("one/0x" + "11" * 20, 400, "InvalidInput"),
        (f"{CHAIN_ID}/me", 400, "InvalidInput"),
        (f"{CHAIN_ID}/0x{'11' * 20}/WETH", 400, "InvalidInput"),
    ],
)
async def test_balances_that_are_refused(front: OrderFront, path: str, status: int, error_type: str) -> None:
    for balances in (COMMITTED, AVAILABLE):
        assert told(await front.answer(f"{balances}/{path}"))[:2] == (status, error_type)


async def test_without_the_chain_the_commitments_alone_are_told(tmp_path: Path) -> None:
    class Away:
        def __init__(self, chain: Any) -> None:
            self._chain = chain

        def __getattr__(self, name: str) -> Any:
            return getattr(self._chain, name)

        async def block(self, *_: Any) -> Any:
            raise NodeUnavailable("gone")

    async with an_order_front(tmp_path, chain=Away) as front:
        account = f"{CHAIN_ID}/{to_hex(front.world.user.address)}"
        refusal = told(await front.answer(f"{AVAILABLE}/{account}"))
        assert refusal[:2] == (503, "ServiceUnavailable")
        assert set((await front.get(f"{COMMITTED}/{account}")).values()) == {"0"}
