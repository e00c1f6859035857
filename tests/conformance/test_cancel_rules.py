"""POST /v2/delta/orders/build/cancellation and POST /v2/delta/orders/cancel."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest

from cambist.codecs.contracts.abi import address_word
from cambist.codecs.contracts.calldata import approve
from cambist.codecs.contracts.delta_calldata import set_pre_signature
from cambist.codecs.eip712_orders.delta import (
    ORDER_CANCELLATIONS,
    OrderCancellations,
    delta_domain_separator,
)
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import NodeUnavailable
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.signatures import to_65, to_compact64
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.store.queries import among, by
from cambist.engine.store.rows import DeltaOrderRow
from cambist.engine.store.tables import DELTA_ORDER, EFFECT
from cambist.engine.store.units import row_of
from cambist.engine.trade.orders.order_units import DELTA
from support.chain.world import ONE
from support.contracts.rfq_stories import execute
from support.delta.order_front import BUILD_CANCEL, CANCEL, ORDERS, OrderFront, an_order_front, told
from support.oracles import Oracle
from support.store.stores import moved

pytestmark = pytest.mark.needs("pyrevm")

INVALID = 400, "InvalidInput"
SIGNATURE = 400, "InvalidSignature"
SETTLED = 400, "OrderAlreadySettled"
S = OrderStatus
WAYS: dict[OrderStatus, tuple[OrderStatus, ...]] = {
    S.PENDING: (), S.ACTIVE: (S.ACTIVE,), S.SUSPENDED: (S.SUSPENDED,), S.CANCELLING: (S.CANCELLING,),
    S.CANCELLED: (S.CANCELLED,), S.COMPLETED: (S.COMPLETED,), S.FAILED: (S.FAILED,),
    S.EXPIRED: (S.EXPIRED,), S.BRIDGING: (S.BRIDGING,), S.REFUNDING: (S.BRIDGING, S.REFUNDING),
    S.REFUNDED: (S.BRIDGING, S.REFUNDING, S.REFUNDED),
}  # fmt: skip
"""Status -> the states that lead to it from PENDING."""
OPEN = (S.PENDING, S.ACTIVE, S.SUSPENDED)

NOBODYS_ID = "00000000-0000-4000-8000-000000000000"


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OrderFront]:
    async with an_order_front(tmp_path) as front:
        yield front


async def an_order(front: OrderFront, **changed: Any) -> str:
    """The id of one."""
    record = await front.submitted(await front.a_sale(**changed))
    order_id: str = record["id"]
    return order_id


async def row_of_id(front: OrderFront, order_id: str) -> DeltaOrderRow:
    record = await front.get(f"{ORDERS}/{order_id}")
    order_hash = parse_hex(record["orderHash"], "hash")
    (rows,) = await front.store.read(by(DELTA_ORDER, order_hash))
    return DELTA.found(rows[0])


async def brought_to(front: OrderFront, order_id: str, status: OrderStatus) -> None:
    """Bring the order to `status` in the store alone, as another process does."""
    row = await row_of_id(front, order_id)
    for state in WAYS[status]:
        row = await moved(front.store, row, status=state)


async def _approve(front: OrderFront, wallet: bytes) -> None:
    world = front.world
    await world.send(world.user, wallet, execute(world.dai, approve(world.at.delta, ONE)))


async def status_of(front: OrderFront, order_id: str) -> str:
    status: str = (await front.get(f"{ORDERS}/{order_id}"))["status"]
    return status


# --- What is cancelled ----------------------------------------------------------------------------------


async def test_orders_are_cancelled_together(front: OrderFront) -> None:
    ids = [await an_order(front) for _ in range(3)]
    answer = await front.post(CANCEL, front.world.cancel_body(ids[:2]))
    assert answer == (200, {"success": True, "cancelled": ids[:2]})
    assert [await status_of(front, one) for one in ids] == ["CANCELLING", "CANCELLING", "PENDING"]
    hashes = [(await row_of_id(front, one)).order_hash for one in ids]
    (effects,) = await front.store.read(among(EFFECT, "order_hash", hashes))
    told_of = [row_of(EFFECT, values) for values in effects]
    assert {(effect.kind, effect.state) for effect in told_of} == {("cancel", "INTENDED")}
    assert len(told_of) == 2


async def test_cancelling_again_is_answered_again(front: OrderFront) -> None:
    ids = [await an_order(front)]
    for _ in range(2):
        answer = await front.post(CANCEL, front.world.cancel_body(ids))
        assert answer == (200, {"success": True, "cancelled": ids})
    more = [*ids, await an_order(front)]
    assert (await front.post(CANCEL, front.world.cancel_body(more)))[1]["cancelled"] == more


async def test_an_id_twice_and_in_capitals(front: OrderFront) -> None:
    """The signature covers the ids as sent; the order is cancelled once."""
    order_id = await an_order(front)
    answer = await front.post(CANCEL, front.world.cancel_body([order_id, order_id.upper()]))
    assert answer == (200, {"success": True, "cancelled": [order_id]})


@pytest.mark.parametrize("status", OPEN, ids=lambda status: status.value)
async def test_each_state_that_can_be_cancelled(front: OrderFront, status: OrderStatus) -> None:
    order_id = await an_order(front)
    await brought_to(front, order_id, status)
    assert (await front.post(CANCEL, front.world.cancel_body([order_id])))[0] == 200
    assert await status_of(front, order_id) == "CANCELLING"


@pytest.mark.parametrize(
    "status", [status for status in WAYS if status not in (*OPEN, S.CANCELLING)], ids=lambda one: one.value
)
async def test_one_that_is_finalized_keeps_all(front: OrderFront, status: OrderStatus) -> None:
    ended, alive = await an_order(front), await an_order(front)
    await brought_to(front, ended, status)
    before = await front.listed()
    expected = f"Order already settled: orderIds: {ended} is already finalized: {status.value}"
    for path, body in (
        (CANCEL, front.world.cancel_body([alive, ended])),
        (BUILD_CANCEL, {"orderIds": [alive, ended]}),
    ):
        refusal = told(await front.post(path, body))
        assert refusal == (*SETTLED, expected)
    assert await front.listed() == before


async def test_an_order_that_waits_for_its_signature(front: OrderFront) -> None:
    world = front.world
    wallet = await create(world.chain, world.owner, "DevWallet", address_word(world.user.address))
    await world.mint(world.dai, wallet, ONE)
    await _approve(front, wallet)
    order = await front.a_sale(owner=wallet, src_token=world.dai)
    record = await front.submitted(order, signature=b"")
    assert record["status"] == "AWAITING_SIGNATURE"
    assert (await front.post(CANCEL, front.world.cancel_body([record["id"]])))[0] == 200
    assert await status_of(front, record["id"]) == "CANCELLING"


# --- Which orders ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("path", [CANCEL, BUILD_CANCEL])
async def test_at_most_a_hundred(front: OrderFront, path: str) -> None:
    ids = [str(uuid4()) for _ in range(101)]
    refusal = told(await front.post(path, {"orderIds": ids, "signature": "0x"}))
    assert refusal == (400, "TooManyOrderIds", "orderIds.length > 100: orderIds: got 101")
    refusal = told(await front.post(path, {"orderIds": ids[:100], "signature": "0x"}))
    assert refusal[1] == "OrderNotFound"


async def test_a_hundred_are_cancelled(front: OrderFront) -> None:
    ids = [await an_order(front, src_amount=ONE // 20) for _ in range(100)]
    assert (await front.post(CANCEL, front.world.cancel_body(ids)))[1] == {"success": True, "cancelled": ids}
    page = await front.listed(status="CANCELLING")
    assert page["total"] == 100


@pytest.mark.parametrize("path", [CANCEL, BUILD_CANCEL])
@pytest.mark.parametrize("unknown", [NOBODYS_ID, "mine", "", f"{{{NOBODYS_ID}}}"])
async def test_an_unknown_id_keeps_all(front: OrderFront, path: str, unknown: str) -> None:
    known = await an_order(front)
    refusal = told(await front.post(path, front.world.cancel_body([known, unknown])))
    assert refusal[:2] == (400, "OrderNotFound")
    assert refusal[2] == f"Orders not found: orderIds: expected ids of orders, got {unknown!r}"
    assert await status_of(front, known) == "PENDING"


@pytest.mark.parametrize("path", [CANCEL, BUILD_CANCEL])
async def test_orders_of_two_users(front: OrderFront, path: str) -> None:
    world = front.world
    await world.give(world.stranger, world.weth, ONE, world.at.delta)
    theirs = await front.submitted(await front.a_sale(owner=world.stranger.address), world.stranger)
    ids = [await an_order(front), theirs["id"]]
    refusal = told(await front.post(path, front.world.cancel_body(ids)))
    assert refusal[:2] == INVALID
    assert "orders must belong to the same user and chain" in refusal[2]
    assert [await status_of(front, one) for one in ids] == ["PENDING", "PENDING"]


@pytest.mark.parametrize("path", [CANCEL, BUILD_CANCEL])
@pytest.mark.parametrize(
    ("body", "field"),
    [
        ({"orderIds": []}, "orderIds: expected 1 to 100 ids"),
        ({}, "orderIds: missing"),
        ({"orderIds": "one"}, "orderIds: expected an array"),
        ({"orderIds": [5]}, "orderIds[0]: expected a string"),
    ],
)
async def test_bodies(front: OrderFront, path: str, body: dict[str, Any], field: str) -> None:
    refusal = told(await front.post(path, {"signature": "0x", **body}))
    assert refusal[:2] == INVALID
    assert refusal[2].startswith(f"Invalid input: {field}"), refusal


# --- Who signs ------------------------------------------------------------------------------------------


async def test_other_signatures(front: OrderFront) -> None:
    ids = [await an_order(front), await an_order(front)]
    user, stranger = front.world.user, front.world.stranger
    right = front.world.cancel_body(ids)["signature"]
    for signature in (
        front.world.cancel_body(ids, stranger)["signature"],
        front.world.cancel_body(ids[::-1])["signature"],
        front.world.cancel_body(ids[:1])["signature"],
        to_hex(bytes(64)),
        "0x",
        "0x01",
        "signed",
        to_hex(to_65(*user.sign(bytes(32)))),
        right[:-2],
    ):
        refusal = told(await front.post(CANCEL, {"orderIds": ids, "signature": signature}))
        assert refusal[:2] == SIGNATURE
        assert refusal[2].startswith("Invalid signature")
    assert {await status_of(front, one) for one in ids} == {"PENDING"}
    assert (await front.post(CANCEL, {"orderIds": ids, "signature": right}))[0] == 200


async def test_a_signature_for_another_name_is_named(front: OrderFront) -> None:
    ids, world = [await an_order(front)], front.world
    separator = delta_domain_separator("Cambist Delta", "1", world.chain.chain_id, world.at.delta)
    digest32 = ORDER_CANCELLATIONS.compiled.digest_for(separator)(OrderCancellations(tuple(ids)))
    signature = to_hex(to_compact64(*world.user.sign(digest32)))
    refusal = told(await front.post(CANCEL, {"orderIds": ids, "signature": signature}))
    assert refusal[:2] == SIGNATURE
    assert "expected Portikus version 2.0.0, chain" in refusal[2]
    assert "signed for the domain Cambist Delta version 1, chain" in refusal[2]


async def test_a_signature_of_65_bytes(front: OrderFront) -> None:
    ids = [await an_order(front)]
    signature = to_hex(to_65(*front.world.user.sign(front.world.cancel_hash(ids))))
    assert (await front.post(CANCEL, {"orderIds": ids, "signature": signature}))[0] == 200


@pytest.mark.oracle
async def test_what_is_built_is_signed_by_others(front: OrderFront, javascript: Oracle) -> None:
    """ethers and viem find the primary type, make the same hash, and their signatures cancel."""
    for member in ("ethersSignature", "viemSignature", "compactSignature"):
        ids = [await an_order(front), await an_order(front)]
        status, built = await front.post(BUILD_CANCEL, {"orderIds": ids})
        assert status == 200
        to_sign = built["toSign"]
        assert to_sign["types"] == {"OrderCancellations": [{"name": "orderIds", "type": "string[]"}]}
        assert to_sign["value"] == {"orderIds": ids}
        assert to_sign["domain"]["chainId"] == front.world.chain.chain_id
        signed = javascript.ask(
            **to_sign, primaryType="OrderCancellations", key=to_hex(front.world.user.secret32())
        )
        assert signed["inferredPrimaryType"] == "OrderCancellations"
        assert built["hash"] == signed["ethersDigest"] == signed["viemDigest"]
        answer = await front.post(CANCEL, {"orderIds": ids, "signature": signed[member]})
        assert answer == (200, {"success": True, "cancelled": ids})


async def test_a_contract_cancels(front: OrderFront) -> None:
    """By a signature that it accepts, or by a call that signs the hash of the build."""
    world = front.world
    wallet = await create(world.chain, world.owner, "DevWallet", address_word(world.user.address))
    await world.mint(world.dai, wallet, ONE)
    await _approve(front, wallet)
    ids = []
    for number in range(2):
        order = await front.a_sale(owner=wallet, src_token=world.dai, nonce=number)
        ids.append((await front.submitted(order))["id"])
    wrong = front.world.cancel_body(ids[:1], world.stranger)
    assert told(await front.post(CANCEL, wrong))[2].endswith("the owner's contract does not accept it")
    assert (await front.post(CANCEL, front.world.cancel_body(ids[:1])))[0] == 200
    by_call = {"orderIds": ids[1:], "signature": "0x"}
    refusal = told(await front.post(CANCEL, by_call))
    assert refusal[:2] == SIGNATURE
    assert "the owner has not signed the cancellation by a call" in refusal[2]
    _, built = await front.post(BUILD_CANCEL, {"orderIds": ids[1:]})
    signs = execute(world.at.delta, set_pre_signature(parse_hex(built["hash"], "hash"), is_signed=True))
    await world.send(world.user, wallet, signs)
    assert (await front.post(CANCEL, by_call))[0] == 200


class AwayAtTimes:
    """A chain that cannot always be asked."""

    def __init__(self, chain: Any) -> None:
        self._chain = chain
        self.is_away = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)

    async def block(self, *at: Any) -> Any:
        if self.is_away:
            raise NodeUnavailable("gone")
        return await self._chain.block(*at)


async def test_without_the_chain_a_key_cancels_and_a_contract_does_not(tmp_path: Path) -> None:
    chains: list[AwayAtTimes] = []

    def chain_of(chain: Any) -> AwayAtTimes:
        chains.append(AwayAtTimes(chain))
        return chains[-1]

    async with an_order_front(tmp_path, chain=chain_of) as front:
        ids = [await an_order(front)]
        chains[0].is_away = True
        wrong = front.world.cancel_body(ids, front.world.stranger)
        assert told(await front.post(CANCEL, wrong))[:2] == (503, "ServiceUnavailable")
        assert await status_of(front, ids[0]) == "PENDING"
        assert (await front.post(CANCEL, front.world.cancel_body(ids)))[0] == 200


async def test_a_slash_at_the_end(front: OrderFront) -> None:
    ids = [await an_order(front)]
    assert (await front.post(f"{BUILD_CANCEL}/", {"orderIds": ids}))[0] == 200
    assert (await front.post(f"{CANCEL}/", front.world.cancel_body(ids)))[0] == 200


async def test_what_the_store_knows_wins_over_what_is_in_memory(front: OrderFront) -> None:
    order_id = await an_order(front)
    assert (await front.post(CANCEL, front.world.cancel_body([order_id])))[0] == 200
    await moved(front.store, await row_of_id(front, order_id), status=S.COMPLETED)  # as the indexer does it
    refusal = told(await front.post(CANCEL, front.world.cancel_body([order_id])))
    assert refusal[:2] == SETTLED
    assert "is already finalized: COMPLETED" in refusal[2]
