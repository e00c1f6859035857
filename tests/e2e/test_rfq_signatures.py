"""Only what the maker signed is filled, in each form of a signature and on this contract alone."""

import msgspec
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import bytes_tail, encode
from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.crypto.secp256k1 import CURVE_ORDER
from cambist.crypto.signatures import to_65, to_compact64
from cambist.engine.chain.deploy.deploy import create
from support.chain.evm_programs import assembled
from support.chain.put_code import put_code
from support.chain.world import ONE, RFQ_NAME, USDC, World
from support.contracts.rfq_stories import (
    ALREADY_FILLED,
    UNFILLED,
    filled,
    funded,
    refusal,
    remaining,
    rfq_events,
)

INVALID = "Invalid Signature"


def upper_half(signature65: bytes) -> bytes:
    """The other signature of the same digest and key."""
    s = CURVE_ORDER - int.from_bytes(signature65[32:64], "big")
    return signature65[:32] + s.to_bytes(32, "big") + bytes([55 - signature65[64]])


@pytest.mark.parametrize("form", ["65 bytes", "64 bytes", "v of 0 or 1"])
async def test_each_form_of_a_signature_is_taken(world: World, form: str) -> None:
    await funded(world)
    seen: set[int] = set()
    while len(seen) < 2:  # both recovery ids
        order = world.an_rfq_order(maker_amount=USDC, taker_amount=ONE // 100)
        rs64, recovery_id = world.maker.sign(world.rfq_hash(order))
        if recovery_id in seen:
            continue
        seen.add(recovery_id)
        signature = {
            "65 bytes": to_65(rs64, recovery_id),
            "64 bytes": to_compact64(rs64, recovery_id),
            "v of 0 or 1": rs64 + bytes([recovery_id]),
        }[form]
        receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, signature))
        assert rfq_events(world, receipt) == [filled(world, order)]


async def test_a_keys_own_signature_counts_where_its_account_has_code(world: World) -> None:
    """As an EIP-7702 account has; its code accepts nothing."""
    await funded(world)
    await put_code(world.chain, world.maker.address, assembled("0 0 REVERT"))
    order = world.an_rfq_order()
    stranger = calldata.fill_order(order, world.signed(order, world.stranger))
    assert await refusal(world, world.taker, stranger, order) == INVALID
    receipt = await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert rfq_events(world, receipt) == [filled(world, order)]


async def test_a_signature_has_no_second_form_in_the_upper_half(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    signature = world.signed(order)
    malleable = upper_half(signature)
    assert upper_half(malleable) == signature
    for data in (
        calldata.fill_order(order, malleable),
        calldata.partial_fill_order(order, malleable, ONE),
        calldata.fill_order(order, malleable[:64] + bytes([malleable[64] - 27])),
    ):
        assert await refusal(world, world.taker, data, order) == INVALID
    await world.send(world.taker, world.at.rfq, calldata.fill_order(order, signature))
    again = calldata.fill_order(order, malleable)
    assert await refusal(world, world.taker, again, order) == ALREADY_FILLED


async def test_a_signature_of_another_length_or_v_is_none(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    good = world.signed(order)
    broken = [
        b"",
        good[:63],
        good[:64],
        good + b"\0",
        bytes(65),
        bytes(64),
        good[:63] + bytes([good[63] ^ 1]) + good[64:],
    ]
    broken += [good[:64] + bytes([v]) for v in (2, 26, 29, 54, 255, 55 - good[64])]
    broken += [b"\xff" * 64 + b"\x1b", bytes(32) + good[32:], good[:32] + bytes(32) + good[64:]]
    if good[64] == 27:
        broken.remove(good[:64])  # 64 bytes are the compact form
    for signature in broken:
        data = calldata.fill_order(order, signature)
        assert await refusal(world, world.taker, data, order) == INVALID, signature.hex()


async def test_another_key_signs_nothing_for_the_maker(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    signature = world.signed(order, world.stranger)
    info = world.info(order, world.stranger)
    target = world.taker.address
    for data in (
        calldata.fill_order(order, signature),
        calldata.fill_order_with_target(order, signature, target),
        calldata.partial_fill_order(order, signature, ONE),
        calldata.partial_fill_order_with_target(order, signature, ONE, target),
        calldata.partial_fill_order_with_target_permit(info, target),
        calldata.batch_fill_order_with_target([info], target),
    ):
        assert await refusal(world, world.taker, data, order) == INVALID
    for data in (
        calldata.try_batch_fill_taker_amount([info], ONE, target),
        calldata.try_batch_fill_maker_amount([info], 1, target),
    ):
        assert await refusal(world, world.taker, data, order) == UNFILLED


@pytest.mark.parametrize("nobody", [0, 1, 2])
async def test_nobody_signs_for_an_address_without_a_key(world: World, nobody: int) -> None:
    await funded(world)
    order = world.an_rfq_order(maker=nobody.to_bytes(20, "big"))
    for signature in (bytes(65), b"\1" * 64 + b"\x1b", b"\xff" * 65, b""):
        data = calldata.fill_order(order, signature)
        assert await refusal(world, world.taker, data, order) == INVALID


async def test_every_member_of_the_order_is_signed(world: World) -> None:
    await funded(world)
    await world.give(world.partner, world.usdc, 10_000 * USDC, world.at.rfq)
    order = world.an_rfq_order()
    signature = world.signed(order)
    await world.send(world.taker, world.at.rfq, calldata.partial_fill_order(order, signature, ONE // 2))
    for changed in (
        {"nonce_and_meta": order.nonce_and_meta + 1},
        {"expiry": await world.now_s() + 100},
        {"maker_asset": world.dai},
        {"taker_asset": world.dai},
        {"maker": world.partner.address},
        {"taker": world.taker.address},
        {"maker_amount": order.maker_amount + 1},
        {"taker_amount": order.taker_amount - 1},
    ):
        other = msgspec.structs.replace(order, **changed)
        data = calldata.fill_order(other, signature)
        assert await refusal(world, world.taker, data, order, other) == INVALID, changed


async def test_a_signature_for_another_domain_is_none(world: World) -> None:
    await funded(world)
    order = world.an_rfq_order()
    chain_id, contract = world.chain.chain_id, world.at.rfq
    for domain in (
        (RFQ_NAME, chain_id + 1, contract),
        (RFQ_NAME, 1, contract),
        (RFQ_NAME, chain_id, world.at.router),
        ("Cambist RFQ", chain_id, contract),
    ):
        digest = RFQ_ORDER.compiled.digest_for(rfq_domain_separator(*domain))(order)
        data = calldata.fill_order(order, to_65(*world.maker.sign(digest)))
        assert await refusal(world, world.taker, data, order) == INVALID, domain


async def test_an_order_for_one_contract_is_none_for_its_twin(world: World) -> None:
    await funded(world)
    twin = await create(
        world.chain, world.owner, "Rfq", encode(bytes_tail(RFQ_NAME.encode())), salt32=b"\1" * 32
    )
    assert twin != world.at.rfq
    await world.approve(world.maker, world.usdc, twin)
    await world.approve(world.taker, world.weth, twin)
    order = world.an_rfq_order()
    data = calldata.fill_order(order, world.signed(order))
    await world.send(world.taker, world.at.rfq, data)
    assert await remaining(world, order) == 1
    balances = await world.balances(world.maker, world.taker)
    assert await world.refused(world.taker, twin, data) == INVALID
    assert await world.balances(world.maker, world.taker) == balances


async def test_the_signature_is_asked_for_once(world: World) -> None:
    """After the first fill the order's hash alone identifies it, until the maker cancels it."""
    await funded(world)
    order = world.an_rfq_order()
    first = calldata.partial_fill_order(order, world.signed(order), ONE // 2)
    await world.send(world.taker, world.at.rfq, first)
    receipt = await world.send(world.taker, world.at.rfq, calldata.partial_fill_order(order, b"", ONE // 2))
    assert rfq_events(world, receipt) == [filled(world, order, 1_250 * USDC, ONE // 2)]
