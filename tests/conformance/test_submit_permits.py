"""Permits of submitted orders: each form that lets the contract settle, and ways in which one does not."""

from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import uint_word
from cambist.codecs.eip712_orders.delta import DeltaOrder
from cambist.config.errors import ChainError
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.trader.client.allowing import Allowing, MissingAllowance
from cambist.engine.trader.client.trader import Trader
from support.chain.world import HOUR_S, MOST, NATIVE, ONE, USDC, World
from support.contracts import permit2
from support.contracts.permits import dai_permit, eip2612_permit, shown, token_domain
from support.contracts.settling import Market, a_market
from support.delta.order_front import OrderFront, an_order_front

pytestmark = pytest.mark.needs("pyrevm")

SRC = 1_000 * USDC
INVALID = 400, "InvalidInput"
REFUSED = 400, "InsufficientAllowance"


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OrderFront]:
    """The user has 10,000 USDC, of which nobody may take anything."""
    async with an_order_front(tmp_path) as front:
        await front.world.mint(front.world.usdc, front.world.user, 10 * SRC)
        yield front


async def a_sale(front: OrderFront, **changed: Any) -> DeltaOrder:
    """1,000 USDC for 990 DAI."""
    world = front.world
    ends = {"src_token": world.usdc, "dest_token": world.dai, "src_amount": SRC, "dest_amount": 990 * ONE}
    order: DeltaOrder = await front.a_sale(**ends | {"expected_amount": 0} | changed)
    return order


async def of_odd(front: OrderFront) -> tuple[DeltaOrder, bytes]:
    """A sale of the odd token, and the permit for it as the client signs it."""
    world = front.world
    await world.mint(front.odd, world.user, SRC)
    order = await a_sale(front, src_token=front.odd)
    trader = Trader(
        chain=world.chain, key=world.user, wall_s=lambda: 0, tell=lambda _: None, allowing=Allowing.PERMIT
    )
    missing = MissingAllowance(front.odd, world.at.delta, SRC, 0)
    return order, await trader.permit(missing, order.deadline)


def domain2(world: World) -> bytes:
    return permit2.permit2_domain(world.chain.chain_id, world.permit2)


async def allowed_at_permit2(world: World, order: DeltaOrder, **how: Any) -> bytes:
    await world.approve(world.user, world.usdc, world.permit2)
    amount, until = how.get("amount", SRC), how.get("expiration", order.deadline)
    await world.send(world.user, world.permit2, permit2.allow(world.usdc, world.at.delta, amount, until))
    return permit2.ALLOWED


async def transfer(world: World, order: DeltaOrder, **how: Any) -> bytes:
    await world.approve(world.user, world.usdc, world.permit2)
    signed: dict[str, Any] = {"nonce": 1 << 200 | 7, "deadline": order.deadline} | how
    key, spender = signed.pop("key", world.user), signed.pop("spender", world.at.delta)
    amount = signed.pop("amount", SRC)
    return permit2.transfer_permit(domain2(world), key, spender, order.src_token, amount, **signed)


async def allowance(world: World, order: DeltaOrder, **how: Any) -> bytes:
    await world.approve(world.user, world.usdc, world.permit2)
    signed: dict[str, Any] = {"expiration": order.deadline, "nonce": 0, "deadline": order.deadline} | how
    key, spender = signed.pop("key", world.user), signed.pop("spender", world.at.delta)
    amount = signed.pop("amount", SRC)
    return permit2.allowance_permit(domain2(world), key, spender, order.src_token, amount, **signed)


async def eip2612(world: World, order: DeltaOrder, **how: Any) -> bytes:
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    signed: dict[str, Any] = {"nonce": 0, "deadline": order.deadline} | how
    key, spender = signed.pop("key", world.user), signed.pop("spender", world.at.delta)
    return eip2612_permit(domain, key, spender, signed.pop("amount", SRC), **signed)


async def dai(world: World, order: DeltaOrder, **how: Any) -> bytes:
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    signed: dict[str, Any] = {"nonce": 0, "expiry": order.deadline} | how
    key, spender = signed.pop("key", world.user), signed.pop("spender", world.at.delta)
    return dai_permit(domain, key, spender, **signed)


Maker = Callable[..., Awaitable[bytes]]
FORMS: dict[str, Maker] = {
    "allowed at Permit2": allowed_at_permit2,
    "Permit2 transfer": transfer,
    "Permit2 allowance": allowance,
    "EIP-2612": eip2612,
    "DAI": dai,
}


async def with_permit(front: OrderFront, make: Maker, order: DeltaOrder, **how: Any) -> DeltaOrder:
    permit = await make(front.world, order, **how)
    return msgspec.structs.replace(order, permit=permit)


@pytest.mark.parametrize("form", FORMS)
async def test_each_form_is_taken_and_settles(front: OrderFront, form: str) -> None:
    """The contract settles each accepted order with the stored signature."""
    order = await with_permit(front, FORMS[form], await a_sale(front))
    without = await a_sale(front)
    assert (await front.fault(without))[:2] == REFUSED
    assert (await front.submitted(order))["status"] == "PENDING"
    live = front.live.get(front.world.delta_hash(order))
    assert live is not None
    market: Market = await a_market(front.world)
    world = front.world
    steps = market.to_agent(SRC, world.usdc), market.from_agent(1_000 * ONE, world.dai)
    await market.settle(order, *steps, signature=live.document.signature)


@pytest.mark.parametrize(
    ("form", "how", "reason"),
    [
        ("EIP-2612", {"nonce": 1}, "the permit is refused: "),
        ("EIP-2612", {"deadline": 5}, "the permit is refused: "),
        ("EIP-2612", {"amount": SRC - 1}, f"by the permit, got {SRC - 1}"),
        ("DAI", {"nonce": 1}, "the permit is refused: "),
        ("DAI", {"expiry": 5}, "the permit is refused: "),
        ("Permit2 transfer", {"amount": SRC - 1}, "the permit is refused: InvalidSigner()"),
        ("Permit2 transfer", {"deadline": 5}, "the permit is refused: InvalidSigner()"),
        ("Permit2 transfer", {"spender": b"\x0b" * 20}, "the permit is refused: InvalidSigner()"),
        ("Permit2 allowance", {"nonce": 1}, "the permit is refused: InvalidNonce()"),
        ("Permit2 allowance", {"deadline": 5}, "the permit is refused: SignatureExpired(deadline 5)"),
        ("Permit2 allowance", {"expiration": 5}, "the allowance at Permit2 has expired at 5"),
        ("Permit2 allowance", {"amount": SRC - 1}, f"by the permit, got {SRC - 1}"),
        ("Permit2 allowance", {"spender": b"\x0b" * 20}, "the permit is refused: InvalidSigner()"),
        ("allowed at Permit2", {"amount": SRC - 1}, f"at Permit2, got {SRC - 1}"),
        ("allowed at Permit2", {"expiration": 5}, "the allowance at Permit2 has expired at 5"),
    ],
)
async def test_a_permit_that_does_not_do(
    front: OrderFront, form: str, how: dict[str, Any], reason: str
) -> None:
    order = await with_permit(front, FORMS[form], await a_sale(front), **how)
    refusal = await front.fault(order)
    assert refusal[:2] == REFUSED
    assert reason in refusal[2], refusal


@pytest.mark.parametrize("form", ["EIP-2612", "DAI", "Permit2 transfer", "Permit2 allowance"])
async def test_a_permit_that_somebody_else_signed(front: OrderFront, form: str) -> None:
    ours = await with_permit(front, FORMS[form], await a_sale(front))
    theirs = await with_permit(front, FORMS[form], await a_sale(front), key=front.world.stranger)
    words = ours.permit[:32] if len(theirs.permit) in (224, 256) else theirs.permit[:32]
    forged = msgspec.structs.replace(theirs, permit=words + theirs.permit[32:])
    refusal = await front.fault(forged)
    assert refusal[:2] == REFUSED
    assert "the permit is refused: " in refusal[2]


@pytest.mark.parametrize("form", ["EIP-2612", "DAI"])
async def test_a_permit_of_somebody_else_or_for_somebody_else(front: OrderFront, form: str) -> None:
    for how, role in (
        ({"key": front.world.stranger}, "owner"),
        ({"spender": front.world.at.router}, "spender"),
    ):
        order = await with_permit(front, FORMS[form], await a_sale(front), **how)
        refusal = await front.fault(order)
        assert refusal[:2] == INVALID
        assert f"order.permit: expected the {role} 0x" in refusal[2]


@pytest.mark.parametrize("form", ["allowed at Permit2", "Permit2 transfer", "Permit2 allowance"])
async def test_permit2_needs_an_approval_of_its_own(front: OrderFront, form: str) -> None:
    world = front.world
    order = await with_permit(front, FORMS[form], await a_sale(front))
    await world.approve(world.user, world.usdc, world.permit2, SRC - 1)
    refusal = await front.fault(order)
    assert refusal[:2] == REFUSED
    assert "of srcToken for Permit2 0x" in refusal[2]


@pytest.mark.parametrize("form", ["EIP-2612", "DAI", "Permit2 allowance"])
async def test_a_permit_that_was_shown_already_counts_by_its_allowance(front: OrderFront, form: str) -> None:
    world = front.world
    order = await with_permit(front, FORMS[form], await a_sale(front))
    if form == "Permit2 allowance":
        data = permit2.shown_allowance(order.permit, order.owner, world.at.delta, world.usdc)
        await world.send(world.stranger, world.permit2, data)
    else:
        await world.send(world.stranger, world.usdc, shown(order.permit))
    await front.submitted(order)


async def test_a_permit_takes_no_larger_approval_away(front: OrderFront) -> None:
    """As in the contract, which shows no permit that grants no more than the allowance."""
    world = front.world
    await world.approve(world.user, world.usdc, world.at.delta, MOST)
    await front.submitted(await with_permit(front, eip2612, await a_sale(front), amount=SRC - 1))


@pytest.mark.parametrize("form", FORMS)
async def test_the_balance_is_looked_at_with_a_permit_too(front: OrderFront, form: str) -> None:
    world = front.world
    order = await with_permit(front, FORMS[form], await a_sale(front))
    has = await world.balance(world.usdc, world.user)
    await world.send(world.user, world.usdc, calldata.transfer(world.stranger.address, has - SRC + 1))
    refusal = await front.fault(order)
    assert refusal[:2] == (400, "InsufficientBalance"), refusal


async def test_a_token_that_takes_no_permits(front: OrderFront) -> None:
    world = front.world
    await world.approve(world.user, world.weth, world.at.delta, 0)
    order = await front.a_sale()
    domain = token_domain("WETH", world.chain.chain_id, world.weth)
    permit = eip2612_permit(domain, world.user, world.at.delta, ONE, nonce=0, deadline=order.deadline)
    refusal = await front.fault(msgspec.structs.replace(order, permit=permit))
    assert refusal[:2] == REFUSED
    assert "the permit is refused: the token takes none" in refusal[2]


@pytest.mark.parametrize(
    "kind",
    ["DevTokenPermitsAll", "DevTokenSalted", "DevTokenUnversioned", "DevTokenRenamed", "DevTokenOwnNonces"],
)
async def test_a_permit_that_is_not_eip2612_to_the_letter(tmp_path: Path, kind: str) -> None:
    """As the client signs it; a bit of its signature is another in the second."""
    async with an_order_front(tmp_path, odd=kind) as front:
        order, permit = await of_odd(front)
        forged = permit[:-1] + bytes([permit[-1] ^ 1])
        refusal = await front.fault(msgspec.structs.replace(order, permit=forged))
        assert refusal[:2] == REFUSED
        await front.submitted(msgspec.structs.replace(order, permit=permit))


async def test_a_token_that_accepts_any_permit_takes_none(tmp_path: Path) -> None:
    """As wrapped native tokens, whose fallback answers every call."""
    async with an_order_front(tmp_path, odd="DevTokenDeaf") as front:
        with pytest.raises(ChainError, match="the token takes none"):
            await of_odd(front)
        world = front.world
        order = await a_sale(front, src_token=front.odd)
        domain = token_domain("ODD", world.chain.chain_id, front.odd)
        permit = eip2612_permit(domain, world.user, world.at.delta, SRC, nonce=0, deadline=order.deadline)
        refusal = await front.fault(msgspec.structs.replace(order, permit=permit))
        assert refusal[:2] == REFUSED
        assert "the permit is refused: the token takes none" in refusal[2]


# --- Where there may be none, or has to be one ----------------------------------------------------------


@pytest.mark.parametrize("form", FORMS)
async def test_limit_orders_need_an_approval(front: OrderFront, form: str) -> None:
    order = await with_permit(front, FORMS[form], await a_sale(front))
    refusal = await front.fault(order, type="LIMIT")
    assert refusal[:2] == INVALID
    assert "order.permit: expected 0x: limit orders and TWAP need an on-chain approval" in refusal[2]


async def test_twaps_need_an_approval(front: OrderFront) -> None:
    market = Market(front.world, b"")
    for order in (await market.a_twap(permit=b"\x01"), await market.a_twap_purchase(permit=b"\x01")):
        assert "limit orders and TWAP need an on-chain approval" in (await front.fault(order))[2]


async def test_the_native_token_has_no_permit(front: OrderFront) -> None:
    refusal = await front.fault(await front.a_sale(src_token=NATIVE, permit=b"\x01"))
    assert refusal[:2] == INVALID
    assert "the native token is deposited" in refusal[2]


async def test_a_transfer_is_used_up_by_the_first_part(front: OrderFront) -> None:
    order = await with_permit(front, transfer, await a_sale(front))
    refusal = await front.fault(order, partiallyFillable=True)
    assert refusal[:2] == INVALID
    assert "a Permit2 transfer is used up by the first part" in refusal[2]
    await front.submitted(order)


async def test_a_permit_of_permit2_says_only_what_fits(front: OrderFront) -> None:
    order = await with_permit(front, allowance, await a_sale(front))
    for at, name in ((0, "amount"), (1, "expiration"), (2, "nonce")):
        words = [order.permit[word * 32 : word * 32 + 32] for word in range(6)]
        words[at] = uint_word(1 << 160)
        refusal = await front.fault(msgspec.structs.replace(order, permit=b"".join(words)))
        assert f"order.permit: expected {name} of at most" in refusal[2]


async def test_tokens_that_take_permits_only(front: OrderFront) -> None:
    world, user = front.world, front.world.user
    await world.give(user, front.odd, 2 * ONE, world.at.delta)
    order = await front.a_sale(src_token=front.odd)
    status, error_type, details = await front.fault(order)
    assert (status, error_type) == (400, "PermitRequired")
    assert details == "Permit / Permit2 required: order.permit: ODD takes permits only"
    refusal = await front.fault(order, type="LIMIT")
    assert refusal[2].endswith("ODD takes permits only; its limit orders and TWAP are not served")
    domain = token_domain("ODD", world.chain.chain_id, front.odd)
    key: SigningKey = user
    until = await world.now_s() + HOUR_S
    permit = eip2612_permit(domain, key, world.at.delta, ONE, nonce=0, deadline=until)
    await front.submitted(msgspec.structs.replace(order, permit=permit))
