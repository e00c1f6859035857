"""Chain reads of POST /v2/delta/orders: nonces, fills, approvals, balances, deposits."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.delta_calldata import (
    deposit_native_and_pre_sign,
    invalidate_nonces,
    set_pre_signature,
    withdraw_native,
)
from cambist.config.errors import ChainError, NodeUnavailable
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.port import EthCall
from cambist.engine.trade.delta.orders.terms import SettledOrder
from cambist.engine.trade.served import asking
from support.chain.remembering import Remembering
from support.chain.world import NATIVE, ONE, USDC
from support.contracts.rfq_stories import a_wallet_that_sells, execute
from support.contracts.settling import Market, a_market
from support.delta.order_front import OrderFront, an_order_front

pytestmark = pytest.mark.needs("pyrevm")

ALLOWANCE = 400, "InsufficientAllowance"
BALANCE = 400, "InsufficientBalance"


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OrderFront]:
    async with an_order_front(tmp_path) as front:
        yield front


# --- Nonces and fills -----------------------------------------------------------------------------------


async def test_a_nonce_that_was_given_up(front: OrderFront) -> None:
    order = await front.a_sale()
    await front.world.send(front.world.user, front.world.at.delta, invalidate_nonces([order.nonce]))
    refusal = await front.fault(order)
    assert refusal[:2] == (400, "NonceUsed")
    assert "order.nonce: expected a nonce of no order on chain" in refusal[2]


async def settled(front: OrderFront, order: Any, amount: int) -> None:
    market = await a_market(front.world)
    await market.settle(order, *market.agent_steps(2_500 * USDC * amount // ONE, amount), amount=amount)


async def test_an_order_that_was_settled_in_whole_or_in_part(front: OrderFront) -> None:
    for amount in (ONE, ONE // 2):
        order = await front.a_sale()
        await settled(front, order, amount)
        refusal = await front.fault(order)
        assert refusal[:2] == (400, "OrderAlreadySettled")
        assert refusal[2].startswith("Order already settled: order: by the chain")
        other = await front.a_sale(nonce=order.nonce, dest_amount=1)
        assert (await front.fault(other))[:2] == (400, "NonceUsed")


async def test_a_slice_that_was_settled(front: OrderFront) -> None:
    market = await a_market(front.world)
    order = await market.a_twap()
    await market.settle(order, *market.agent_steps(2_500 * USDC // 3, ONE // 3))
    assert (await front.fault(order))[:2] == (400, "OrderAlreadySettled")


async def test_a_nonce_of_an_order_that_lives(front: OrderFront) -> None:
    first = await front.a_sale()
    await front.submitted(first)
    refusal = await front.fault(await front.a_sale(nonce=first.nonce, dest_amount=1))
    assert refusal == (
        400,
        "NonceUsed",
        "Nonce already used: order.nonce: expected a nonce of no live or filled order",
    )


# --- Approvals and balances -----------------------------------------------------------------------------


async def test_the_whole_has_to_be_approved_for_the_delta_contract(front: OrderFront) -> None:
    world = front.world
    order = await front.a_sale()
    await world.approve(world.user, world.weth, world.at.delta, 0)
    await world.approve(world.user, world.weth, world.at.router)
    status, error_type, details = await front.fault(order)
    assert (status, error_type) == ALLOWANCE
    assert details.lower().endswith(
        f"at least {ONE} of srctoken for the delta contract {to_hex(world.at.delta)}, got 0"
    )
    await world.approve(world.user, world.weth, world.at.delta, ONE - 1)
    assert (await front.fault(order))[:2] == ALLOWANCE
    await world.approve(world.user, world.weth, world.at.delta, ONE)
    await front.submitted(order)


async def test_the_most_that_a_purchase_takes_counts(front: OrderFront) -> None:
    world = front.world
    order = await front.a_purchase()
    await world.approve(world.user, world.weth, world.at.delta, 11 * ONE // 10 - 1)
    assert (await front.fault(order))[:2] == ALLOWANCE
    await world.approve(world.user, world.weth, world.at.delta, 11 * ONE // 10)
    await front.submitted(order)


async def left(front: OrderFront, amount: int) -> None:
    """The user has so much WETH."""
    world = front.world
    has = await world.balance(world.weth, world.user)
    await world.send(world.user, world.weth, calldata.transfer(world.stranger.address, has - amount))


@pytest.mark.parametrize(
    ("side", "terms", "needed"),
    [
        ("sale", {}, ONE),
        ("purchase", {}, ONE),
        ("purchase", {"expected_amount": 0}, 11 * ONE // 10),
        ("purchase", {"expected_amount": 2 * ONE}, 11 * ONE // 10),
    ],
    ids=[
        "sale",
        "purchase that is expected to cost less",
        "purchase without an expectation",
        "above the most",
    ],
)
async def test_the_balance_covers_the_order(
    front: OrderFront, side: str, terms: dict[str, int], needed: int
) -> None:
    """Of a purchase, what it is expected to cost."""
    made = front.a_sale if side == "sale" else front.a_purchase
    await left(front, needed)
    await front.submitted(await made(**terms))
    await left(front, needed - 1)
    refusal = await front.fault(await made(**terms))
    assert refusal[:2] == BALANCE
    assert refusal[2].endswith(f"at least {needed} of srcToken, got {needed - 1}")


async def test_other_orders_of_the_owner_do_not_count(front: OrderFront) -> None:
    await left(front, ONE)
    for _ in range(3):
        await front.submitted(await front.a_sale())


@pytest.mark.parametrize("kind", ["sale", "purchase"])
async def test_of_a_twap_all_is_approved_and_a_slice_is_there(front: OrderFront, kind: str) -> None:
    world, market = front.world, Market(front.world, b"")
    whole = ONE if kind == "sale" else 11 * ONE // 10
    slice_amount = 2_500 * USDC // 3
    part = ONE // 3 if kind == "sale" else whole * slice_amount // (2_500 * USDC)

    async def a_twap() -> SettledOrder:
        return await (market.a_twap() if kind == "sale" else market.a_twap_purchase())

    await world.approve(world.user, world.weth, world.at.delta, whole - 1)
    assert (await front.fault(await a_twap()))[:2] == ALLOWANCE
    await world.approve(world.user, world.weth, world.at.delta, whole)
    await left(front, part)
    await front.submitted(await a_twap())
    await left(front, part - 1)
    assert (await front.fault(await a_twap()))[:2] == BALANCE


# --- Native tokens --------------------------------------------------------------------------------------


async def test_native_tokens_are_deposited_for_the_order(front: OrderFront) -> None:
    world, user = front.world, front.world.user
    order = await front.a_sale(src_token=NATIVE)
    order_hash = world.delta_hash(order)
    await world.send(world.stranger, world.at.delta, deposit_native_and_pre_sign(order_hash), value_wei=ONE)
    await world.send(user, world.at.delta, deposit_native_and_pre_sign(order_hash), value_wei=ONE - 1)
    refusal = await front.fault(order)
    call = f"depositNativeAndPreSign(0x{order_hash.hex()}) of {to_checksum(world.at.delta)} with 1 wei more"
    expected = f"at least {ONE} wei deposited by the owner: {call}, got {ONE - 1}"
    assert refusal == (*BALANCE, f"InsufficientBalance: deposit: expected {expected}")
    await world.send(user, world.at.delta, deposit_native_and_pre_sign(order_hash), value_wei=1)
    record = await front.submitted(order)
    assert record["input"]["token"] == "0xEeeeeEeeeEeEeeEeEeEeeEEEeeeeEeeeeeeeEEeE"


async def test_a_deposit_that_was_taken_back(front: OrderFront) -> None:
    world = front.world
    order = await front.a_sale(src_token=NATIVE)
    order_hash = world.delta_hash(order)
    await world.send(world.user, world.at.delta, deposit_native_and_pre_sign(order_hash), value_wei=ONE)
    await world.send(world.user, world.at.delta, withdraw_native(ONE))
    assert (await front.fault(order))[:2] == BALANCE


# --- A chain that does not answer -----------------------------------------------------------------------


class Away:
    """A chain of which one question is not answered, or not in time.

    Attributes:
        fails: the method, and what it raises; None to answer nothing at all.
    """

    def __init__(self, chain: Any, name: str, error: ChainError | None) -> None:
        self._chain = chain
        self._name = name
        self._error = error

    def __getattr__(self, name: str) -> Any:
        return self._fail if name == self._name else getattr(self._chain, name)

    async def _fail(self, *_: object) -> Any:
        if self._error is None:
            await trio.sleep_forever()
        assert self._error
        raise self._error


@pytest.mark.parametrize("name", ["recent_block", "call_many", "code"])
@pytest.mark.parametrize("error", [NodeUnavailable("gone"), None], ids=["fails", "is silent"])
async def test_nothing_is_taken_in_unchecked(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, error: ChainError | None
) -> None:
    monkeypatch.setattr(asking, "ORDER_CHECK_S", 0.05)
    async with an_order_front(tmp_path, chain=lambda chain: Away(chain, name, error)) as front:
        order = await front.a_sale()
        key = front.world.stranger if name == "code" else None
        refusal = await front.fault(order, key)
        assert refusal[:2] == (503, "ServiceUnavailable")
        assert "the chain does not answer" in refusal[2]
        assert len(front.live) == 0


@asynccontextmanager
async def a_remembering_front(folder: Path) -> AsyncIterator[tuple[OrderFront, Remembering]]:
    chains: list[Remembering] = []

    def chain_of(chain: Any) -> Remembering:
        chains.append(Remembering(chain))
        return chains[-1]

    async with an_order_front(folder, chain=chain_of) as front:
        yield front, chains[-1]


async def test_an_order_is_taken_by_a_recent_block_and_refused_by_the_latest(tmp_path: Path) -> None:
    async with a_remembering_front(tmp_path) as (front, chain):
        world = front.world
        await front.submitted(await front.a_sale())
        await world.approve(world.user, world.weth, world.at.delta, 0)
        looked = chain.latest
        await front.submitted(await front.a_sale())
        assert chain.latest == looked, "a node that is far away is asked once"
        poor = await front.a_sale(owner=world.taker.address, beneficiary=world.taker.address)
        assert (await front.fault(poor, world.taker))[0] == 400
        assert chain.latest > looked
        await world.give(world.taker, world.weth, ONE, world.at.delta)
        await front.submitted(poor, world.taker)


async def test_a_signature_on_chain_since_a_recent_block_is_seen(tmp_path: Path) -> None:
    """Its log may have been read before the order was there: the order would wait for it for ever."""
    async with a_remembering_front(tmp_path) as (front, chain):
        world = front.world
        wallet = await a_wallet_that_sells(world)
        order = await front.a_sale(owner=wallet, beneficiary=wallet)
        await chain.recent_block(0)
        call = execute(world.at.delta, set_pre_signature(world.delta_hash(order), is_signed=True))
        await world.send(world.user, wallet, call)
        assert (await front.submitted(order, signature=b""))["status"] == "PENDING"


class Silenced:
    """A chain whose answers of one contract are empty, as where none is."""

    def __init__(self, chain: Any, contract: bytes) -> None:
        self._chain = chain
        self.contract = contract

    def __getattr__(self, name: str) -> Any:
        return getattr(self._chain, name)

    async def call_many(self, calls: list[EthCall], at: Any = None) -> list[Any]:
        answers = await self._chain.call_many(calls, at)
        return [
            b"" if call.to == self.contract else answer for call, answer in zip(calls, answers, strict=True)
        ]


async def test_contracts_that_are_not_there(tmp_path: Path) -> None:
    silenced: list[Silenced] = []

    def chain_of(chain: Any) -> Silenced:
        silenced.append(Silenced(chain, b""))
        return silenced[-1]

    async with an_order_front(tmp_path, chain=chain_of) as front:
        for contract, words in (
            (front.world.at.delta, "the Delta contract does not answer"),
            (front.world.weth, "the source token does not"),
        ):
            silenced[0].contract = contract
            status, error_type, details = await front.fault(await front.a_sale())
            assert (status, error_type) == (503, "ServiceUnavailable")
            assert words in details
        silenced[0].contract = b""
        await front.submitted(await front.a_sale())
