"""States of OTC orders and calls of the RFQ contract (spec 2.5 and 2.11), over HTTP."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import selector
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.port import Receipt
from support.chain.world import HOUR_S, NOBODY, ONE, USDC
from support.contracts.permits import eip2612_permit, token_domain
from support.contracts.rfq_stories import a_wallet
from support.otc.otc_front import P2P, OtcFront, an_otc_front


@pytest.fixture
async def front(tmp_path: Path) -> AsyncIterator[OtcFront]:
    async with an_otc_front(tmp_path) as front:
        yield front


async def cancelled(front: OtcFront, *hashes: str) -> Receipt:
    """By the maker."""
    keys = [bytes.fromhex(order_hash[2:]) for order_hash in hashes]
    data = calldata.cancel_order(keys[0]) if len(keys) == 1 else calldata.cancel_orders(keys)
    return await front.world.send(front.world.maker, front.world.at.rfq, data)


async def given_away(front: OtcFront, amount: int) -> None:
    """The maker sends USDC to somebody."""
    world = front.world
    await world.send(world.maker, world.usdc, calldata.transfer(world.stranger.address, amount))


async def test_a_whole_fill(front: OtcFront) -> None:
    order = front.an_order()
    stored = await front.posted(order)
    receipt = await front.fill(order)
    found = await front.until(stored, state="FULFILLED")
    assert found["transactionHash"] == to_hex(receipt.tx_hash)
    assert [found[name] for name in ("fillableBalance", "makerBalance", "swappableBalance")] == ["0"] * 3
    assert await front.world.balance(front.world.usdc, front.world.taker) == 2_500 * USDC


async def test_a_post_costs_no_gas_and_a_fill_that_of_its_taker(front: OtcFront) -> None:
    world = front.world

    async def purses() -> list[tuple[int, int]]:
        keys = (world.maker, world.taker)
        return [
            (await world.chain.balance(key.address), await world.chain.nonce(key.address)) for key in keys
        ]

    order = front.an_order()
    maker, (balance, nonce) = await purses()
    await front.posted(order)
    assert await purses() == [maker, (balance, nonce)]
    receipt = await front.fill(order)
    gas_wei = receipt.gas_used * receipt.gas_price_wei
    assert gas_wei > 0
    assert await purses() == [maker, (balance - gas_wei, nonce + 1)]


async def test_an_open_order_is_filled_by_anyone(front: OtcFront) -> None:
    world = front.world
    order = front.an_order(taker=NOBODY)
    stored = await front.posted(order)
    await world.give(world.stranger, world.weth, ONE, world.at.rfq)
    await world.send(world.stranger, world.at.rfq, calldata.fill_order(order, world.signed(order)))
    assert (await front.until(stored, state="FULFILLED"))["type"] == "LIMIT"


async def test_a_part_leaves_the_order_live_for_the_rest(front: OtcFront) -> None:
    order = front.an_order()
    stored = await front.posted(order)
    receipt = await front.fill(order, ONE // 4)
    found = await front.until(stored, fillableBalance=str(1_875 * USDC))
    assert (found["state"], found["transactionHash"]) == ("PENDING", to_hex(receipt.tx_hash))
    found = await front.until(stored, swappableBalance=str(1_875 * USDC))
    assert found["reservedBalance"] == found["makerBalance"] == str(1_875 * USDC)
    await front.fill(order, 3 * ONE // 4)
    assert (await front.until(stored, state="FULFILLED"))["fillableBalance"] == "0"


async def test_an_order_that_was_filled_in_part_before_it_is_posted(front: OtcFront) -> None:
    order = front.an_order()
    receipt = await front.fill(order, ONE // 2)
    await front.until(await front.posted(front.an_order(maker_amount=USDC)), state="PENDING")
    stored = await front.posted(order)
    found = await front.until(stored, fillableBalance=str(1_250 * USDC))
    assert found["state"] == "PENDING"
    assert found["transactionHash"] in (None, to_hex(receipt.tx_hash)), "where the block is followed"
    await front.fill(order, ONE // 2)
    await front.until(stored, state="FULFILLED", fillableBalance="0")


@pytest.mark.parametrize("count", [1, 3])
async def test_a_cancellation_by_the_maker(front: OtcFront, count: int) -> None:
    stored = [await front.posted(front.an_order(maker_amount=USDC)) for _ in range(count)]
    receipt = await cancelled(front, *(order["orderHash"] for order in stored))
    for order in stored:
        found = await front.until(order, state="CANCELLED")
        assert found["transactionHash"] == to_hex(receipt.tx_hash)
        assert found["fillableBalance"] == str(USDC)
        assert found["swappableBalance"] == found["reservedBalance"] == "0"


async def test_a_cancellation_by_somebody_else_is_none(front: OtcFront) -> None:
    world = front.world
    order, other = front.an_order(maker_amount=USDC), front.an_order(maker_amount=USDC)
    stored, mark = await front.posted(order), await front.posted(other)
    data = calldata.cancel_order(world.rfq_hash(order))
    await world.send(world.stranger, world.at.rfq, data)
    await cancelled(front, mark["orderHash"])
    await front.until(mark, state="CANCELLED")
    assert (await front.order(stored))["state"] == "PENDING"
    await front.fill(order)
    await front.until(stored, state="FULFILLED")


async def test_a_suspended_order_is_cancelled_too(front: OtcFront) -> None:
    stored = await front.posted(front.an_order(maker_amount=20_000 * USDC))
    assert stored["state"] == "SUSPENDED"
    await cancelled(front, stored["orderHash"])
    await front.until(stored, state="CANCELLED")


@pytest.mark.parametrize("what", ["balance", "allowance"])
async def test_funds_that_fall_below_the_order_and_come_back(front: OtcFront, what: str) -> None:
    world = front.world
    stored = await front.posted(front.an_order())
    if what == "balance":
        await given_away(front, 8_000 * USDC)
    else:
        await world.approve(world.maker, world.usdc, world.at.rfq, 2_000 * USDC)
    found = await front.until(stored, state="SUSPENDED", reservedBalance="0", swappableBalance="0")
    assert found["makerBalance"] == str(2_000 * USDC)
    assert (found["fillableBalance"], found["transactionHash"]) == (str(2_500 * USDC), None)
    if what == "balance":
        await world.mint(world.usdc, world.maker, 500 * USDC)
    else:
        await world.approve(world.maker, world.usdc, world.at.rfq, 2_500 * USDC)
    await front.until(stored, state="PENDING", swappableBalance=str(2_500 * USDC))


async def test_funds_that_one_order_frees_go_to_the_next(front: OtcFront) -> None:
    first = await front.posted(front.an_order(maker_amount=8_000 * USDC))
    second = await front.posted(front.an_order(maker_amount=5_000 * USDC))
    assert (second["state"], second["swappableBalance"]) == ("PENDING", str(2_000 * USDC))
    await cancelled(front, first["orderHash"])
    await front.until(second, swappableBalance=str(5_000 * USDC))


async def test_a_permit_that_is_used_up_suspends_its_order(front: OtcFront) -> None:
    world = front.world
    await world.approve(world.maker, world.usdc, world.at.rfq, 0)
    domain = token_domain("USDC", world.chain.chain_id, world.usdc)
    until = await world.now_s() + HOUR_S
    permit = eip2612_permit(domain, world.maker, world.at.rfq, 2_500 * USDC, nonce=0, deadline=until)
    stored = await front.posted(front.an_order(), permitMakerAsset=to_hex(permit))
    assert stored["state"] == "PENDING"
    other = eip2612_permit(domain, world.maker, world.stranger.address, 1, nonce=0, deadline=until)
    await world.send(world.stranger, world.usdc, PERMIT + other)
    await given_away(front, USDC)
    await front.until(stored, state="SUSPENDED", makerBalance="0")


PERMIT = selector("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)")


async def test_a_draft_is_pending_once_the_contract_accepts(front: OtcFront) -> None:
    """The wallet has another key from then on, whose signature the order had."""
    world = front.world
    wallet = await a_wallet(world, world.user)
    order = front.an_order(maker=wallet)
    stored = await front.posted(order, world.partner)
    assert stored["state"] == "DRAFT"
    hand_over = selector("setKey(address)") + world.partner.address.rjust(32, b"\0")
    await world.send(world.user, wallet, hand_over)
    found = await front.until(stored, state="PENDING", swappableBalance=str(2_500 * USDC))
    assert found["reservedBalance"] == str(2_500 * USDC)


@pytest.mark.parametrize("state", ["PENDING", "SUSPENDED", "DRAFT"])
async def test_expiry_passes(front: OtcFront, state: str) -> None:
    now_s = front.now_ms() // 1_000
    changed: dict[str, Any] = {"expiry": now_s + HOUR_S}
    if state == "SUSPENDED":
        changed["maker_amount"] = 20_000 * USDC
    if state == "DRAFT":
        changed["maker"] = await a_wallet(front.world, front.world.user)
    signature = b"" if state == "DRAFT" else None
    stored = await front.posted(front.an_order(**changed), signature=signature)
    assert stored["state"] == state
    await front.pass_time(HOUR_S + 10)
    found = await front.until(stored, state="EXPIRED")
    assert found["transactionHash"] is None
    assert (found["swappableBalance"], found["reservedBalance"]) == ("0", "0")


async def test_states_are_what_a_listing_shows(front: OtcFront) -> None:
    filled = front.an_order(maker_amount=USDC)
    stored = [await front.posted(filled), await front.posted(front.an_order(maker_amount=2 * USDC))]
    await front.fill(filled)
    await front.until(stored[0], state="FULFILLED")
    path = f"{P2P}/maker/{stored[0]['maker']}"
    page = await front.get(path, orderBy="updatedAt")
    assert page["orders"][0]["state"] == "FULFILLED"
    hidden = await front.get(path, hideSmallBalances="true")
    assert [order["orderHash"] for order in hidden["orders"]] == [stored[1]["orderHash"]]
