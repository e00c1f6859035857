"""Signatures of orders: by keys, by contracts, and a call instead of a signature."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts.abi import address_word, selector
from cambist.codecs.contracts.contract_events import NonceInvalidated, OrderPreSigned
from cambist.codecs.contracts.delta_calldata import (
    cancel_and_withdraw,
    invalidate_nonces,
    is_pre_signed,
    set_pre_signature,
)
from cambist.codecs.eip712_orders.delta import ORDER, delta_domain_separator
from cambist.config.errors import Reverted
from cambist.crypto.secp256k1 import CURVE_ORDER
from cambist.crypto.signatures import to_65, to_compact64
from support.chain.world import DELTA_NAME, DELTA_VERSION, ONE, USDC, World
from support.contracts.rfq_stories import a_wallet_that_sells, execute
from support.contracts.settling import Market, events

INVALID = "InvalidSignature()"
FAIR = 2_500 * USDC


@pytest.mark.parametrize("form", ["64 bytes", "65 bytes", "65 bytes, v of 0 or 1"])
async def test_a_key_signs(world: World, market: Market, form: str) -> None:
    order = await world.a_delta_order()
    rs64, recovery_id = world.user.sign(world.delta_hash(order))
    signature = {
        "64 bytes": to_compact64(rs64, recovery_id),
        "65 bytes": to_65(rs64, recovery_id),
        "65 bytes, v of 0 or 1": rs64 + bytes([recovery_id]),
    }[form]
    settled = await market.settle(order, *market.agent_steps(FAIR), signature=signature)
    assert settled.event.is_closed


async def test_other_forms_of_a_good_signature_are_refused(world: World, market: Market) -> None:
    """The same with s in the upper half, which would be a second signature; other lengths; no v."""
    order = await world.a_delta_order()
    rs64, recovery_id = world.user.sign(world.delta_hash(order))
    r, s = rs64[:32], int.from_bytes(rs64[32:], "big")
    high_s = (CURVE_ORDER - s).to_bytes(32, "big")
    whole = to_65(rs64, recovery_id)
    for signature in (
        r + high_s + bytes([28 - recovery_id]),
        r + high_s,
        whole[:63],
        whole + b"\0",
        whole[:64] + b"\x1d",
        whole[:64] + b"\x02",
        bytes(64),
        bytes(65),
        b"\x01",
    ):
        refused = await market.refused_settlement(order, *market.agent_steps(FAIR), signature=signature)
        assert refused == INVALID, signature.hex()


async def test_somebody_elses_signature(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    for key in (world.relayer, world.owner, world.stranger):
        signature = world.delta_signed(order, key)
        refused = await market.refused_settlement(order, *market.agent_steps(FAIR), signature=signature)
        assert refused == INVALID
    ownerless = msgspec.structs.replace(order, owner=bytes(20))
    assert await market.refused_settlement(ownerless, signature=b"") == INVALID
    assert await market.refused_settlement(ownerless, signature=bytes(65)) == INVALID


async def test_a_signature_for_another_chain_contract_or_deployment(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    here, delta = world.chain.chain_id, world.at.delta
    for domain in (
        (DELTA_NAME, DELTA_VERSION, here + 1, delta),
        (DELTA_NAME, DELTA_VERSION, here, world.at.rfq),
        ("Cambist Delta", DELTA_VERSION, here, delta),
        (DELTA_NAME, "1", here, delta),
    ):
        digest = ORDER.compiled.digest_for(delta_domain_separator(*domain))(order)
        signature = to_compact64(*world.user.sign(digest))
        refused = await market.refused_settlement(order, *market.agent_steps(FAIR), signature=signature)
        assert refused == INVALID


@pytest.mark.parametrize("kind", ["order", "twap", "twap purchase"])
async def test_every_member_is_signed(world: World, market: Market, kind: str) -> None:
    makers = {"order": world.a_delta_order, "twap": market.a_twap, "twap purchase": market.a_twap_purchase}
    order: Any = await makers[kind]()
    signature = world.delta_signed(order)
    for member in order.__struct_fields__:
        if member in ("bridge", "owner"):  # a bridge is not enabled whoever signs it; see above
            continue
        value = getattr(order, member)
        changed: Any
        if member == "kind":
            changed = 1
        elif isinstance(value, int):
            changed = value + 1
        elif member in ("permit", "metadata"):
            changed = b"\x01"
        else:
            changed = world.dai
        forged = msgspec.structs.replace(order, **{member: changed})
        data = market.settlement(forged, signature=signature)
        with pytest.raises(Reverted, match=r"InvalidSignature\(\)"):
            await world.send(world.relayer, world.at.delta, data)


async def test_a_contract_accepts_a_signature(world: World, market: Market) -> None:
    wallet = await a_wallet_that_sells(world)
    order = await world.a_delta_order(owner=wallet, beneficiary=wallet)
    by_stranger = world.delta_signed(order, world.stranger)
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR), signature=by_stranger)
    assert refused == INVALID
    assert (await market.settle(order, *market.agent_steps(FAIR))).event.owner == wallet
    assert await world.balance(world.usdc, wallet) == FAIR

    second = await world.a_delta_order(owner=wallet, beneficiary=wallet)
    new_key = selector("setKey(address)") + address_word(world.stranger.address)
    await world.send(world.user, wallet, new_key)
    assert await market.refused_settlement(second, *market.agent_steps(FAIR)) == INVALID
    signature = world.delta_signed(second, world.stranger)
    await market.settle(second, *market.agent_steps(FAIR), signature=signature)


async def test_a_contract_that_knows_no_signatures(world: World, market: Market) -> None:
    for owner in (world.weth, market.agent, world.at.delta):
        order = await world.a_delta_order(owner=owner)
        assert await market.refused_settlement(order, *market.agent_steps(FAIR)) == INVALID


async def test_a_call_signs_and_takes_it_back(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    order_hash, owner = world.delta_hash(order), world.user.address
    delta = world.at.delta
    steps = market.agent_steps(FAIR)
    assert await market.refused_settlement(order, *steps, signature=b"") == INVALID

    await world.send(world.stranger, delta, set_pre_signature(order_hash, is_signed=True))
    assert await market.refused_settlement(order, *steps, signature=b"") == INVALID

    receipt = await world.send(world.user, delta, set_pre_signature(order_hash, is_signed=True))
    assert events(receipt, OrderPreSigned) == [OrderPreSigned(order_hash, owner, is_signed=True)]
    assert await world.ask(delta, is_pre_signed(owner, order_hash)) == 1
    by_stranger = world.delta_signed(order, world.stranger)
    assert await market.refused_settlement(order, *steps, signature=by_stranger) == INVALID
    await market.settle(order, *market.agent_steps(FAIR // 2, given=ONE // 2), signature=b"", amount=ONE // 2)

    receipt = await world.send(world.user, delta, set_pre_signature(order_hash, is_signed=False))
    assert events(receipt, OrderPreSigned) == [OrderPreSigned(order_hash, owner, is_signed=False)]
    assert await world.ask(delta, is_pre_signed(owner, order_hash)) == 0
    rest = market.agent_steps(FAIR // 2, given=ONE // 2)
    refused = await market.refused_settlement(order, *rest, signature=b"", amount=ONE // 2)
    assert refused == INVALID
    await market.settle(order, *rest, amount=ONE // 2)  # a signature is as good as before


async def test_a_contract_signs_and_gives_up_by_a_call(world: World, market: Market) -> None:
    wallet = await a_wallet_that_sells(world)
    order = await world.a_delta_order(owner=wallet, beneficiary=world.stranger.address)
    steps = market.agent_steps(FAIR)
    assert await market.refused_settlement(order, *steps, signature=b"") == INVALID
    call = execute(world.at.delta, set_pre_signature(world.delta_hash(order), is_signed=True))
    await world.send(world.user, wallet, call)
    await market.settle(order, *steps, signature=b"")
    assert await world.balance(world.usdc, world.stranger) == FAIR
    given_up = await world.a_delta_order(owner=wallet)
    for data, nonce in ((invalidate_nonces([7]), 7), (cancel_and_withdraw(given_up), given_up.nonce)):
        receipt = await world.send(world.user, wallet, execute(world.at.delta, data))
        assert events(receipt, NonceInvalidated) == [NonceInvalidated(wallet, nonce)]
