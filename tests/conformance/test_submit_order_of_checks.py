"""POST /v2/delta/orders says what is at fault first: each fault alone, and with the next one beside it."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.delta_calldata import invalidate_nonces
from cambist.config.limits import VENUE_METADATA_BYTES_MAX, VENUE_SIGNATURE_BYTES_MAX
from cambist.engine.trade.delta.orders.terms import SettledOrder
from support.chain.world import ONE
from support.delta.order_front import ORDERS, OrderFront, an_order_front, told, wire_of

pytestmark = pytest.mark.needs("pyrevm")

NONCE = 77


class Case(msgspec.Struct):
    """Submission of one order of nonce 77 with all its faults."""

    order: dict[str, Any] = {}
    body: dict[str, Any] = {}
    wire: dict[str, Any] = {}
    is_strangers: bool = False
    before: list[Callable[[OrderFront], Awaitable[None]]] = []


class Fault(msgspec.Struct, frozen=True):
    """Fault of a submission, and the beginning of its refusal."""

    name: str
    make: Callable[[Case], None]
    refusal: tuple[int, str, str]


def changes(what: str, **values: Any) -> Callable[[Case], None]:
    def make(case: Case) -> None:
        getattr(case, what).update(values)

    return make


def happens(before: Callable[[OrderFront], Awaitable[None]]) -> Callable[[Case], None]:
    return lambda case: case.before.append(before)


def strangers(case: Case) -> None:
    case.is_strangers = True


async def another_order_of_the_nonce(front: OrderFront) -> None:
    await front.submitted(await front.a_sale(nonce=NONCE, dest_amount=1))


async def nonce_given_up(front: OrderFront) -> None:
    await front.world.send(front.world.user, front.world.at.delta, invalidate_nonces([NONCE]))


async def approval_taken_back(front: OrderFront) -> None:
    await front.world.approve(front.world.user, front.world.weth, front.world.at.delta, ONE - 1)


async def tokens_gone(front: OrderFront) -> None:
    left = 10 * ONE - (ONE - 1)
    world = front.world
    await world.send(world.user, world.weth, calldata.transfer(world.stranger.address, left))


INVALID = 400, "InvalidInput"
FAULTS = (
    Fault("a body's member", changes("body", type="NEVER"), (*INVALID, "Invalid input: type: expected")),
    Fault("the chain", changes("body", chainId=100), (422, "UnsupportedChain", "Unsupported chain: chainId")),
    Fault("a struct's member", changes("wire", note="mine"), (*INVALID, "Invalid input: order: expected")),
    Fault(
        "a token",
        changes("order", dest_token=b"\x55" * 20),
        (400, "TokenNotSupported", "Token not supported: order.destToken"),
    ),
    Fault(
        "a bridge",
        changes("wire", bridge={"destinationChainId": 10}),
        (*INVALID, "Invalid input: order: bridge.protocolSelector: expected"),
    ),
    Fault("an amount", changes("order", src_amount=0), (*INVALID, "Invalid input: order.srcAmount")),
    Fault("the fee", changes("order", partner_and_fee=201), (*INVALID, "Invalid input: order.partnerAndFee")),
    Fault(
        "metadata",
        changes("order", metadata=bytes(VENUE_METADATA_BYTES_MAX + 1)),
        (*INVALID, "Invalid input: order.metadata"),
    ),
    Fault(
        "a contradiction",
        changes("body", onChainOrderType="TWAPOrder"),
        (*INVALID, "Invalid input: onChainOrderType"),
    ),
    Fault(
        "agents",
        changes("body", includeAgents=["one"], excludeAgents=["one"]),
        (*INVALID, "Invalid input: excludeAgents"),
    ),
    Fault("the permit", changes("order", permit=bytes(224)), (*INVALID, "Invalid input: order.permit")),
    Fault("the partner", changes("body", partner=None), (*INVALID, "Invalid input: partner: missing")),
    Fault("the deadline", changes("order", deadline=1), (400, "OrderExpired", "Order expired: order.dead")),
    Fault(
        "the signature's form",
        changes("body", signature="0x" + "00" * (VENUE_SIGNATURE_BYTES_MAX + 1)),
        (400, "InvalidSignature", "Invalid signature: signature: expected at most 4096 bytes"),
    ),
    Fault("the signature", strangers, (400, "InvalidSignature", "Invalid signature: 0x")),
    Fault("the nonce", happens(nonce_given_up), (400, "NonceUsed", "Nonce already used: order.nonce")),
    Fault(
        "the allowance",
        happens(approval_taken_back),
        (400, "InsufficientAllowance", "InsufficientAllowance: order.owner: expected at least"),
    ),
    Fault(
        "the balance",
        happens(tokens_gone),
        (400, "InsufficientBalance", "InsufficientBalance: order.owner: expected at least"),
    ),
    Fault(
        "a kept order's nonce",
        lambda case: case.before.insert(0, another_order_of_the_nonce),
        (400, "NonceUsed", "Nonce already used: order.nonce: expected a nonce of no live or filled order"),
    ),
)
PAIRS = [(FAULTS[at], FAULTS[at + 1]) for at in range(len(FAULTS) - 1)]


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OrderFront]:
    """Venue that requires a partner."""
    async with an_order_front(tmp_path, strict_partner=True) as front:
        yield front


async def refused(front: OrderFront, *faults: Fault) -> tuple[int, str, str]:
    case = Case({}, {}, {}, is_strangers=False, before=[])
    for fault in faults:
        fault.make(case)
    for before in case.before:
        await before(front)
    order: SettledOrder = await front.a_sale(nonce=NONCE, **case.order)
    wire = wire_of(order)
    for name, value in case.wire.items():
        wire[name] = wire[name] | value if isinstance(value, dict) else value
    key = front.world.stranger if case.is_strangers else None
    body = front.world.delta_body(order, key) | {"order": wire} | case.body
    body = {name: value for name, value in body.items() if value is not None}
    return told(await front.post(ORDERS, body))


def begins(refusal: tuple[int, str, str], expected: tuple[int, str, str]) -> bool:
    return refusal[:2] == expected[:2] and refusal[2].startswith(expected[2])


async def test_without_a_fault_it_is_taken(front: OrderFront) -> None:
    assert (await front.submitted(await front.a_sale(nonce=NONCE)))["status"] == "PENDING"


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
async def test_each_fault_alone(front: OrderFront, fault: Fault) -> None:
    refusal = await refused(front, fault)
    assert begins(refusal, fault.refusal), refusal


@pytest.mark.parametrize(
    ("first", "next_one"), PAIRS, ids=[f"{first.name}, not {after.name}" for first, after in PAIRS]
)
async def test_what_comes_first_is_said(front: OrderFront, first: Fault, next_one: Fault) -> None:
    refusal = await refused(front, next_one, first)
    assert begins(refusal, first.refusal), refusal


async def test_an_order_that_is_kept_is_answered_before_anything_is_held_against_it(
    front: OrderFront,
) -> None:
    order = await front.a_sale(nonce=NONCE)
    record = await front.submitted(order)
    for before in (approval_taken_back, tokens_gone, nonce_given_up):
        await before(front)
    again: dict[str, Any] = {
        "partner": None,
        "type": "LIMIT",
        "partiallyFillable": True,
        "excludeAgents": ["one"],
    }
    assert await front.submitted(order, front.world.stranger, **again) == record
    assert (await front.listed())["total"] == 1
