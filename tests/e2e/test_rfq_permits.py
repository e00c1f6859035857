"""A fill without allowances: either side signs a permit of its token, which the fill shows."""

from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.secp256k1 import SigningKey
from support.chain.world import HOUR_S, MOST, ONE, USDC, World
from support.contracts.permits import dai_permit, eip2612_permit, shown, token_domain
from support.contracts.rfq_stories import (
    TRANSFER_FAILED,
    UNFILLED,
    filled,
    funded,
    refusal,
    remaining,
    rfq_events,
    the_returned,
)

FAILED = "Permit failed"


class Signing:
    """Permits for the Rfq, by the hour."""

    def __init__(self, world: World, deadline: int) -> None:
        self._world = world
        self._deadline = deadline

    @classmethod
    async def of(cls, world: World) -> "Signing":
        return cls(world, await world.now_s() + HOUR_S)

    def eip2612(self, owner: SigningKey, token: bytes, value: int = MOST, nonce: int = 0) -> bytes:
        spender = self._world.at.rfq
        return eip2612_permit(
            self._domain(token), owner, spender, value, nonce=nonce, deadline=self._deadline
        )

    def dai(self, owner: SigningKey, token: bytes, nonce: int = 0) -> bytes:
        spender = self._world.at.rfq
        return dai_permit(self._domain(token), owner, spender, nonce=nonce, expiry=self._deadline)

    def _domain(self, token: bytes) -> bytes:
        name = "USDC" if token == self._world.usdc else "DAI"
        return token_domain(name, self._world.chain.chain_id, token)


async def an_order(world: World) -> RfqOrder:
    """The maker has USDC and the taker DAI, and the Rfq may take neither."""
    await world.mint(world.usdc, world.maker, 10_000 * USDC)
    await world.mint(world.dai, world.taker, 10_000 * ONE)
    return world.an_rfq_order(taker_asset=world.dai, taker_amount=2_500 * ONE)


async def nonces(world: World) -> list[int]:
    question = selector("nonces(address)")
    return [
        await world.ask(token, question + address_word(owner.address))
        for token, owner in ((world.usdc, world.maker), (world.dai, world.taker))
    ]


@pytest.mark.parametrize("makers", ["eip2612", "dai"])
@pytest.mark.parametrize("takers", ["eip2612", "dai"])
async def test_permits_of_both_sides_stand_for_allowances(world: World, takers: str, makers: str) -> None:
    order = await an_order(world)
    signing = await Signing.of(world)
    info = world.info(
        order,
        permit_taker_asset=getattr(signing, takers)(world.taker, world.dai),
        permit_maker_asset=getattr(signing, makers)(world.maker, world.usdc),
    )
    data = calldata.partial_fill_order_with_target_permit(info, world.user.address)
    assert await the_returned(world, world.taker, data) == order.maker_amount
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [filled(world, order, target=world.user.address)]
    assert await world.balance(world.usdc, world.user) == 2_500 * USDC
    assert await world.balance(world.dai, world.maker) == 2_500 * ONE
    assert await nonces(world) == [1, 1]


async def test_one_sides_permit_is_enough_where_the_other_allows(world: World) -> None:
    order = await an_order(world)
    await world.approve(world.taker, world.dai, world.at.rfq)
    permit = (await Signing.of(world)).eip2612(world.maker, world.usdc, order.maker_amount)
    info = world.info(order, permit_maker_asset=permit)
    data = calldata.partial_fill_order_with_target_permit(info, world.taker.address)
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]
    assert await nonces(world) == [1, 0]


async def test_permits_for_no_more_than_the_allowances_leave_both(world: World) -> None:
    order = await an_order(world)
    signing = await Signing.of(world)
    info = world.info(
        order,
        permit_taker_asset=signing.eip2612(world.taker, world.dai, order.taker_amount),
        permit_maker_asset=signing.eip2612(world.maker, world.usdc, order.maker_amount),
    )
    await world.approve(world.taker, world.dai, world.at.rfq, MOST)
    await world.approve(world.maker, world.usdc, world.at.rfq, MOST)
    before = await world.chain.snapshot()
    for data in (
        calldata.partial_fill_order_with_target_permit(info, world.taker.address),
        calldata.batch_fill_order_with_target([info], world.taker.address),
        calldata.try_batch_fill_taker_amount([info], order.taker_amount, world.taker.address),
        calldata.try_batch_fill_maker_amount([info], order.maker_amount, world.taker.address),
    ):
        assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]
        for token, owner in ((world.dai, world.taker), (world.usdc, world.maker)):
            assert await world.ask(token, calldata.allowance(owner.address, world.at.rfq)) == MOST
        assert await nonces(world) == [0, 0]
        await world.chain.restore(before)
        before = await world.chain.snapshot()


async def test_a_permit_that_a_stranger_showed_first_still_serves(world: World) -> None:
    order = await an_order(world)
    signing = await Signing.of(world)
    takers = signing.eip2612(world.taker, world.dai, order.taker_amount)
    makers = signing.dai(world.maker, world.usdc)
    await world.send(world.stranger, world.dai, shown(takers))
    await world.send(world.stranger, world.usdc, shown(makers))
    assert await nonces(world) == [1, 1]
    info = world.info(order, permit_taker_asset=takers, permit_maker_asset=makers)
    before = await world.chain.snapshot()
    for data in (
        calldata.partial_fill_order_with_target_permit(info, world.taker.address),
        calldata.batch_fill_order_with_target([info], world.taker.address),
        calldata.try_batch_fill_taker_amount([info], order.taker_amount, world.taker.address),
        calldata.try_batch_fill_maker_amount([info], order.maker_amount, world.taker.address),
    ):
        assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]
        await world.chain.restore(before)
        before = await world.chain.snapshot()


async def test_a_permit_of_a_part_that_a_stranger_showed_first_serves_for_the_part(world: World) -> None:
    order, signing = await an_order(world), await Signing.of(world)
    part = 1_000 * ONE
    takers = signing.eip2612(world.taker, world.dai, part)
    makers = signing.eip2612(world.maker, world.usdc, 1_000 * USDC)
    await world.send(world.stranger, world.dai, shown(takers))
    await world.send(world.stranger, world.usdc, shown(makers))
    whole = world.info(order, permit_taker_asset=takers, permit_maker_asset=makers)
    info = msgspec.structs.replace(whole, taker_fill_amount=part)
    for data in (
        calldata.partial_fill_order_with_target_permit(info, world.taker.address),
        calldata.batch_fill_order_with_target([info], world.taker.address),
        calldata.try_batch_fill_taker_amount([whole], part, world.taker.address),
        calldata.try_batch_fill_maker_amount([whole], 1_000 * USDC, world.taker.address),
    ):
        before = await world.chain.snapshot()
        receipt = await world.send(world.taker, world.at.rfq, data)
        assert rfq_events(world, receipt) == [filled(world, order, 1_000 * USDC, part)]
        await world.chain.restore(before)


async def test_a_stranger_who_fills_a_little_first_does_not_spoil_the_makers_permit(world: World) -> None:
    order = await an_order(world)
    await world.approve(world.taker, world.dai, world.at.rfq)
    await world.mint(world.dai, world.stranger, ONE)
    await world.approve(world.stranger, world.dai, world.at.rfq)
    makers = (await Signing.of(world)).eip2612(world.maker, world.usdc, order.maker_amount)
    info = world.info(order, permit_maker_asset=makers)
    little = world.info(order, permit_maker_asset=makers, taker_fill_amount=ONE)
    data = calldata.partial_fill_order_with_target_permit(little, world.stranger.address)
    await world.send(world.stranger, world.at.rfq, data)
    rest = world.info(order, permit_maker_asset=makers, taker_fill_amount=order.taker_amount - ONE)
    data = calldata.partial_fill_order_with_target_permit(rest, world.taker.address)
    receipt = await world.send(world.taker, world.at.rfq, data)
    assert rfq_events(world, receipt) == [filled(world, order, 2_499 * USDC, 2_499 * ONE)]
    data = calldata.partial_fill_order_with_target_permit(info, world.taker.address)
    assert await refusal(world, world.taker, data, order) == "Order already filled or expired"


@pytest.mark.parametrize("form", ["eip2612", "dai"])
async def test_an_expired_permit_is_refused(world: World, form: str) -> None:
    order = await an_order(world)
    signing = await Signing.of(world)
    takers = getattr(signing, form)(world.taker, world.dai)
    makers = getattr(signing, form)(world.maker, world.usdc)
    await world.pass_time(HOUR_S + 1)
    for allowing, token, permits in (
        (world.maker, world.usdc, {"permit_taker_asset": takers}),
        (world.taker, world.dai, {"permit_maker_asset": makers}),
    ):
        await world.approve(allowing, token, world.at.rfq)
        info = world.info(order, **permits)
        for data in (
            calldata.partial_fill_order_with_target_permit(info, world.user.address),
            calldata.batch_fill_order_with_target([info], world.user.address),
        ):
            assert await refusal(world, world.taker, data, order) == FAILED
        data = calldata.try_batch_fill_taker_amount([info], ONE, world.user.address)
        assert await refusal(world, world.taker, data, order) == UNFILLED
        await world.approve(allowing, token, world.at.rfq, 0)
    assert await nonces(world) == [0, 0]


async def test_a_permit_that_the_owner_did_not_sign_so_is_refused(world: World) -> None:
    order = await an_order(world)
    await world.approve(world.maker, world.usdc, world.at.rfq)
    signing = await Signing.of(world)
    good = signing.eip2612(world.taker, world.dai)
    larger = good[:64] + (MOST - 1).to_bytes(32, "big") + good[96:]
    strangers = address_word(world.taker.address) + signing.eip2612(world.stranger, world.dai)[32:]
    for permit in (
        larger,
        strangers,
        signing.eip2612(world.taker, world.dai, nonce=1),
        bytes(224),
        bytes(256),
    ):
        info = world.info(order, permit_taker_asset=permit)
        data = calldata.partial_fill_order_with_target_permit(info, world.taker.address)
        assert await refusal(world, world.taker, data, order) == FAILED


async def test_a_permit_for_less_or_of_another_owner_gives_no_more_than_it_says(world: World) -> None:
    order = await an_order(world)
    await world.approve(world.maker, world.usdc, world.at.rfq)
    await world.mint(world.dai, world.stranger, 10_000 * ONE)
    signing = await Signing.of(world)
    for permit in (
        signing.eip2612(world.taker, world.dai, order.taker_amount - 1),
        signing.eip2612(world.stranger, world.dai),  # a permit of another owner
    ):
        info = world.info(order, permit_taker_asset=permit)
        data = calldata.partial_fill_order_with_target_permit(info, world.taker.address)
        assert await refusal(world, world.taker, data, order) == TRANSFER_FAILED


async def test_a_failed_permit_does_not_matter_where_the_allowance_is_there(world: World) -> None:
    order = await an_order(world)
    await world.approve(world.maker, world.usdc, world.at.rfq, order.maker_amount)
    await world.approve(world.taker, world.dai, world.at.rfq, order.taker_amount)
    info = world.info(order, permit_taker_asset=bytes(224), permit_maker_asset=bytes(256))
    for data in (
        calldata.partial_fill_order_with_target_permit(info, world.taker.address),
        calldata.batch_fill_order_with_target([info], world.taker.address),
        calldata.try_batch_fill_taker_amount([info], order.taker_amount, world.taker.address),
        calldata.try_batch_fill_maker_amount([info], order.maker_amount, world.taker.address),
    ):
        before = await world.chain.snapshot()
        assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]
        await world.chain.restore(before)


@pytest.mark.parametrize("side", ["maker", "taker"])
async def test_a_failed_permit_is_refused_where_the_allowance_is_a_unit_short(
    world: World, side: str
) -> None:
    """Of the token whose permit it is: the two sides' amounts are numbers of other sizes."""
    order = await an_order(world)
    shorts = {"maker": 0, "taker": 0} | {side: 1}
    await world.approve(world.maker, world.usdc, world.at.rfq, order.maker_amount - shorts["maker"])
    await world.approve(world.taker, world.dai, world.at.rfq, order.taker_amount - shorts["taker"])
    info = world.info(order, permit_taker_asset=bytes(224), permit_maker_asset=bytes(256))
    data = calldata.partial_fill_order_with_target_permit(info, world.taker.address)
    assert await refusal(world, world.taker, data, order) == FAILED


async def test_a_permit_of_another_length_is_ignored(world: World) -> None:
    order = await an_order(world)
    await world.approve(world.maker, world.usdc, world.at.rfq)
    permit = (await Signing.of(world)).eip2612(world.taker, world.dai)
    for other in (permit[:223], permit + b"\0", b"\1", permit[:96], permit[:192]):
        info = world.info(order, permit_taker_asset=other, permit_maker_asset=other)
        data = calldata.partial_fill_order_with_target_permit(info, world.taker.address)
        assert await refusal(world, world.taker, data, order) == TRANSFER_FAILED
    await world.approve(world.taker, world.dai, world.at.rfq)
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, order)]


async def test_what_is_wrong_with_the_order_is_told_before_its_permits(world: World) -> None:
    order = await an_order(world)
    bad: dict[str, Any] = {"permit_taker_asset": bytes(224), "permit_maker_asset": bytes(224)}
    cancelled, expired = world.an_rfq_order(), world.an_rfq_order(expiry=1)
    cancel = calldata.cancel_order(world.rfq_hash(cancelled))
    await world.send(world.maker, world.at.rfq, cancel)
    for info, reason in (
        (world.info(expired, **bad), "Order expired"),
        (world.info(world.an_rfq_order(taker=world.user.address), **bad), "Access denied"),
        (world.info(order, world.stranger, **bad), "Invalid Signature"),
        (world.info(cancelled, **bad), "Order already filled or expired"),
        (world.info(order, **bad, taker_fill_amount=0), "Invalid Taker amount"),
        (world.info(order, **bad, taker_fill_amount=1), "Maker token fill amount cannot be 0"),
        (world.info(order, **bad), FAILED),
    ):
        for data in (
            calldata.partial_fill_order_with_target_permit(info, world.taker.address),
            calldata.batch_fill_order_with_target([info], world.taker.address),
        ):
            assert await refusal(world, world.taker, data, info.order) == reason


async def test_a_batch_shows_each_orders_permits(world: World) -> None:
    order = await an_order(world)
    other = world.an_rfq_order(taker_asset=world.dai, taker_amount=1_000 * ONE, maker_amount=999 * USDC)
    signing = await Signing.of(world)
    infos = [
        world.info(
            each,
            permit_taker_asset=signing.eip2612(world.taker, world.dai, each.taker_amount, nonce=nonce),
            permit_maker_asset=signing.eip2612(world.maker, world.usdc, each.maker_amount, nonce=nonce),
        )
        for nonce, each in enumerate((order, other))
    ]
    expected = [filled(world, order), filled(world, other)]
    before = await world.chain.snapshot()
    for data in (
        calldata.batch_fill_order_with_target(infos, world.taker.address),
        calldata.try_batch_fill_taker_amount(infos, 3_500 * ONE, world.taker.address),
        calldata.try_batch_fill_maker_amount(infos, 3_499 * USDC, world.taker.address),
    ):
        receipt = await world.send(world.taker, world.at.rfq, data)
        assert rfq_events(world, receipt) == expected
        assert await nonces(world) == [2, 2]
        await world.chain.restore(before)
        before = await world.chain.snapshot()


async def test_an_attempt_that_fails_uses_up_no_permit(world: World) -> None:
    """The first order's permits are good and its tokens are not there; the second is filled all the same."""
    await funded(world)
    await world.mint(world.dai, world.taker, ONE)
    poor = world.an_rfq_order(maker_amount=10_001 * USDC, taker_asset=world.dai, taker_amount=ONE)
    good = world.an_rfq_order(maker_amount=USDC, taker_asset=world.dai, taker_amount=ONE)
    permit = (await Signing.of(world)).eip2612(world.taker, world.dai, ONE)
    infos = [world.info(each, permit_taker_asset=permit) for each in (poor, good)]
    data = calldata.try_batch_fill_taker_amount(infos, ONE, world.taker.address)
    assert rfq_events(world, await world.send(world.taker, world.at.rfq, data)) == [filled(world, good)]
    assert await remaining(world, poor) == 0
    assert await nonces(world) == [0, 1]
