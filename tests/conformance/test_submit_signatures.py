"""Signatures that POST /v2/delta/orders accepts: a key's, a contract's, or a call instead."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts.delta_calldata import set_pre_signature
from cambist.codecs.eip712_orders.delta import (
    ORDER_TYPES,
    delta_domain,
    delta_domain_separator,
)
from cambist.config import limits
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.secp256k1 import CURVE_ORDER
from cambist.crypto.signatures import to_65, to_compact64
from cambist.engine.trade.delta.orders.terms import SettledOrder
from support.chain.world import DELTA_NAME, DELTA_TYPES, DELTA_VERSION, ONE, person
from support.contracts.rfq_stories import a_wallet_that_sells, execute
from support.contracts.settling import Market
from support.contracts.wrapped_signatures import FACTORY, wrapped_signature
from support.delta.order_front import OrderFront, an_order_front, told, wire_of
from support.oracles import Oracle

pytestmark = pytest.mark.needs("pyrevm")

INVALID = 400, "InvalidSignature"
NOT_DEPLOYED = "the owner has no contract; a wallet that is not deployed yet cannot sign"


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OrderFront]:
    async with an_order_front(tmp_path) as front:
        yield front


def kept_signature(front: OrderFront, order: SettledOrder) -> bytes:
    live = front.live.get(front.world.delta_hash(order))
    assert live is not None
    return live.document.signature


# --- Keys -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["64 bytes", "65 bytes", "65 bytes, v of 0 or 1"])
async def test_a_key_signs_in_each_form_and_64_bytes_are_kept(front: OrderFront, form: str) -> None:
    order = await front.a_sale()
    rs64, recovery_id = front.world.user.sign(front.world.delta_hash(order))
    compact = to_compact64(rs64, recovery_id)
    sent = {
        "64 bytes": compact,
        "65 bytes": to_65(rs64, recovery_id),
        "65 bytes, v of 0 or 1": rs64 + bytes([recovery_id]),
    }[form]
    assert (await front.submitted(order, signature=sent))["status"] == "PENDING"
    assert kept_signature(front, order) == compact


async def test_other_forms_of_a_good_signature(front: OrderFront) -> None:
    order = await front.a_sale()
    rs64, recovery_id = front.world.user.sign(front.world.delta_hash(order))
    r, s = rs64[:32], int.from_bytes(rs64[32:], "big")
    high = r + (CURVE_ORDER - s).to_bytes(32, "big")
    whole = to_65(rs64, recovery_id)
    for signature, reason in (
        (high + bytes([28 - recovery_id]), "s is in the upper half of the order"),
        (whole[:63], "a key's has 64 or 65 bytes, this one has 63"),
        (whole + b"\0", "a key's has 64 or 65 bytes, this one has 66"),
        (whole[:64] + b"\x1d", "v: expected 27, 28, 0 or 1, got 29"),
        (bytes(64), "r is zero or not below the curve order"),
        (b"", "it is empty"),
    ):
        refusal = await front.fault(order, signature=signature)
        assert refusal == (*INVALID, f"Invalid signature: {reason}; {NOT_DEPLOYED}")


@pytest.mark.parametrize("text", ["", "0x0", "0xzz", "signed", "00" * 64])
async def test_what_is_no_signature(front: OrderFront, text: str) -> None:
    order = await front.a_sale()
    body = front.world.delta_body(order) | {"signature": text}
    refusal = told(await front.post("/v2/delta/orders", body))
    assert refusal[:2] == INVALID
    assert refusal[2].startswith("Invalid signature: signature: expected 0x")


async def test_somebody_elses_signature(front: OrderFront) -> None:
    order = await front.a_sale()
    refusal = await front.fault(order, front.world.stranger)
    assert refusal[:2] == INVALID
    assert "signed this, not the owner" in refusal[2]
    assert NOT_DEPLOYED in refusal[2]


async def test_a_signature_for_another_chain_contract_or_deployment(front: OrderFront) -> None:
    order = await front.a_sale()
    here, delta = front.world.chain.chain_id, front.world.at.delta
    for domain in (
        (DELTA_NAME, DELTA_VERSION, here + 1, delta),
        (DELTA_NAME, DELTA_VERSION, here, front.world.at.rfq),
        ("Cambist Delta", DELTA_VERSION, here, delta),
        (DELTA_NAME, "1", here, delta),
        ("Cambist Delta", "1", here, delta),
    ):
        digest = DELTA_TYPES[type(order)].compiled.digest_for(delta_domain_separator(*domain))(order)
        signature = to_compact64(*front.world.user.sign(digest))
        *kind, said = await front.fault(order, signature=signature)
        assert tuple(kind) == INVALID
        if domain[:2] == ("Cambist Delta", "1"):
            assert f"expected Portikus version 2.0.0, chain {here}" in said
            assert f"signed for the domain Cambist Delta version 1, chain {here}, contract" in said
        else:
            assert "signed this, not the owner" in said


@pytest.mark.parametrize("member", ["srcAmount", "destAmount", "expectedAmount", "deadline", "nonce"])
async def test_an_order_that_was_changed_after_it_was_signed(front: OrderFront, member: str) -> None:
    order = await front.a_sale()
    wire = wire_of(order)
    changed = wire | {member: str(int(wire[member]) + 1)}
    refusal = told(await front.post("/v2/delta/orders", front.world.delta_body(order) | {"order": changed}))
    assert refusal[:2] == INVALID


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["sale", "twap", "twap purchase"])
@pytest.mark.parametrize("library", ["ethers", "viem", "ethers, compact"])
async def test_orders_signed_by_others(
    front: OrderFront, javascript: Oracle, kind: str, library: str
) -> None:
    market = Market(front.world, b"")
    makers = {"sale": front.a_sale, "twap": market.a_twap, "twap purchase": market.a_twap_purchase}
    order = await makers[kind]()
    order_type = next(one for one in ORDER_TYPES if one.cls is type(order))
    signed = javascript.ask(
        domain=delta_domain(DELTA_NAME, DELTA_VERSION, front.world.chain.chain_id, front.world.at.delta),
        types=order_type.wire_types,
        primaryType=order_type.name,
        value=wire_of(order),
        key=to_hex(front.world.user.secret32()),
    )
    member = {"ethers": "ethersSignature", "viem": "viemSignature"}.get(library, "compactSignature")
    record = await front.submitted(order, signature=parse_hex(signed[member], "signature"))
    assert record["orderHash"] == signed["viemDigest"]


# --- Contracts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["64 bytes", "65 bytes"])
async def test_a_contract_accepts_a_signature(front: OrderFront, form: str) -> None:
    """The venue stores the signature as sent; its meaning is up to the contract."""
    wallet = await a_wallet_that_sells(front.world)
    order = await front.a_sale(owner=wallet, beneficiary=wallet)
    rs64, recovery_id = front.world.user.sign(front.world.delta_hash(order))
    sent = to_65(rs64, recovery_id) if form == "65 bytes" else to_compact64(rs64, recovery_id)
    record = await front.submitted(order, signature=sent)
    assert record["status"] == "PENDING"
    assert kept_signature(front, order) == sent


async def test_a_deployed_wallet_whose_owner_still_wraps_its_signature(front: OrderFront) -> None:
    """Contracts know nothing of ERC-6492: the inner signature is asked for, stored and settled with."""
    wallet = await a_wallet_that_sells(front.world)
    order = await front.a_sale(owner=wallet, beneficiary=wallet)
    inner = to_65(*front.world.user.sign(front.world.delta_hash(order)))
    record = await front.submitted(order, signature=wrapped_signature(inner))
    assert record["status"] == "PENDING"
    assert kept_signature(front, order) == inner


async def test_a_contract_does_not_accept_a_signature(front: OrderFront) -> None:
    wallet = await a_wallet_that_sells(front.world)
    order = await front.a_sale(owner=wallet, beneficiary=wallet)
    for signature in (front.world.delta_signed(order, front.world.stranger), b"\x01", bytes(4_096)):
        refusal = await front.fault(order, signature=signature)
        assert refusal[:2] == INVALID
        assert refusal[2].endswith(", and the owner's contract does not accept it")


async def test_a_contract_that_knows_no_signatures(front: OrderFront) -> None:
    """The owner is a token without a signature check, which cannot have signed."""
    order = await front.a_sale(owner=front.world.dai)
    assert (await front.fault(order))[2].endswith(", and the owner's contract does not accept it")


async def test_a_contract_signs_by_a_call(front: OrderFront) -> None:
    wallet = await a_wallet_that_sells(front.world)
    world = front.world
    waiting = await front.a_sale(owner=wallet, beneficiary=wallet)
    assert (await front.submitted(waiting, signature=b""))["status"] == "AWAITING_SIGNATURE"
    signed = await front.a_sale(owner=wallet, beneficiary=wallet)
    call = execute(world.at.delta, set_pre_signature(world.delta_hash(signed), is_signed=True))
    await world.send(world.user, wallet, call)
    assert (await front.submitted(signed, signature=b""))["status"] == "PENDING"
    assert kept_signature(front, signed) == b""


async def test_orders_that_anybody_submits_for_a_contract_leave_room_for_its_own(
    front: OrderFront, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(limits, "VENUE_UNSIGNED_ORDERS_PER_OWNER_MAX", 2)
    monkeypatch.setattr(limits, "VENUE_LIVE_ORDERS_PER_OWNER_MAX", 1)
    wallet, world = await a_wallet_that_sells(front.world), front.world
    orders = [await front.a_sale(owner=wallet, beneficiary=wallet) for _ in range(5)]
    for order in orders[:2]:
        assert (await front.submitted(order, signature=b""))["status"] == "AWAITING_SIGNATURE"
    assert (await front.fault(orders[2], signature=b""))[:2] == (400, "TooManyOpenOrders")
    for order in orders[3:]:
        call = execute(world.at.delta, set_pre_signature(world.delta_hash(order), is_signed=True))
        await world.send(world.user, wallet, call)
    assert (await front.submitted(orders[3], signature=b""))["status"] == "PENDING"
    assert (await front.fault(orders[4], signature=b""))[:2] == (400, "TooManyOpenOrders")


async def test_an_account_that_has_signed_by_a_call_already(front: OrderFront) -> None:
    """Of a key's account an empty signature is not waited for."""
    order = await front.a_sale()
    world = front.world
    assert (await front.fault(order, signature=b""))[:2] == INVALID
    await world.send(world.user, world.at.delta, set_pre_signature(world.delta_hash(order), is_signed=True))
    assert (await front.submitted(order, signature=b""))["status"] == "PENDING"


async def test_a_pre_signature_of_somebody_else(front: OrderFront) -> None:
    order = await front.a_sale()
    world = front.world
    await world.send(
        world.stranger, world.at.delta, set_pre_signature(world.delta_hash(order), is_signed=True)
    )
    assert (await front.fault(order, signature=b""))[:2] == INVALID


async def test_a_wallet_that_is_not_deployed_yet(front: OrderFront) -> None:
    """An undeployed wallet's signature (EIP-6492) is refused with the reason
    (choices.md#signatures-and-permits).
    """
    order: Any = await front.a_sale(owner=person(9).address)
    refusal = await front.fault(order, signature=wrapped_signature(bytes(70)))
    deploy = f"deploy it first, by the call to {to_checksum(FACTORY)} that the signature holds, and send"
    told = f"a key's has 64 or 65 bytes, this one has 70; {NOT_DEPLOYED}: {deploy} the same signature"
    assert refusal == (*INVALID, f"Invalid signature: {told}")


async def test_awaited_orders_are_held_against_funds_as_others_are(front: OrderFront) -> None:
    wallet = await a_wallet_that_sells(front.world)
    order = await front.a_sale(owner=wallet, src_amount=3 * ONE)
    assert (await front.fault(order, signature=b""))[:2] == (400, "InsufficientBalance")
    smaller = msgspec.structs.replace(order, src_amount=2 * ONE)
    assert (await front.submitted(smaller, signature=b""))["status"] == "AWAITING_SIGNATURE"
