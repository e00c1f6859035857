"""Attacks on owners through the running venue: a crossing's rest, tokens that round, a leaked relayer key.

Bids that break their promise: test_order_promises.py. Agents' desks: test_order_desks.py. A purchase whose
owner has less than the signed maximum: test_order_buy.py.
"""

from pathlib import Path

import pytest

from cambist.codecs.contracts.abi import selector, uint_word
from cambist.codecs.contracts.calldata import approve, transfer, transfer_from
from cambist.codecs.contracts.contract_events import FeeAccrued, OrderSettled
from cambist.codecs.contracts.delta_calldata import EXECUTOR, show_cancellation
from cambist.codecs.contracts.owner_calldata import given_of, set_cap, set_relayer
from cambist.codecs.eip712_orders.delta import DeltaOrder
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.messages.agent_messages import AuctionOrder, BidPart, BidStep, SolverBid, SolveRequest
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.port import Receipt
from support.chain.world import HOUR_S, ONE, USDC, World
from support.contracts.settling import SETTLEMENT_GAS, events
from support.delta.delta_stories import DeltaStory, a_delta_story
from support.patience import GATHER_S, until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

FAIR = 2_500 * USDC
TENTH = ONE // 10


async def test_what_a_crossing_leaves_over_pays_its_fee_and_is_recorded(world: World, tmp_path: Path) -> None:
    """The other order pays one unit; the rest of its source also goes to the same order."""

    def crosses(request: SolveRequest) -> list[SolverBid]:
        if len(request.orders) < 2:
            return []
        sale, counter = sorted(request.orders, key=lambda order: order.src_token != to_hex(world.weth))
        parts = BidPart(sale.order_hash, "1", paid="1"), BidPart(counter.order_hash, str(ONE), paid=str(ONE))
        return [SolverBid(parts)]

    async with a_delta_story(world, tmp_path, "ann", delta=f"gather_s = {GATHER_S}") as story:
        story.agents["ann"].also = crosses
        terms = PartnerAndFee(world.partner.address, 200, partner_takes_surplus=False, cap_surplus=True)
        fee = pack_partner_and_fee(terms)
        before = await story.balances()
        order = await world.a_delta_order(dest_amount=1, expected_amount=0, partner_and_fee=fee)
        record = await story.submitted(order)
        await story.submitted(await story.market.a_counter_order(), world.taker)
        record = await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        net = FAIR * 98 // 100
        assert (moved["user", "USDC"], moved["vault", "USDC"]) == (net, FAIR - net)
        assert record["output"]["executedAmount"] == record["transactions"][0]["receivedAmount"] == str(net)
        receipt = await story.receipt(record)
        received = {event.order_hash: event.received for event in events(receipt, OrderSettled)}
        assert received[story.hash_of(record)] == net
        (accrued,) = events(receipt, FeeAccrued)
        assert (accrued.receiver, accrued.amount) == (world.partner.address, FAIR - net)
        assert await story.market.owed(world.partner.address, world.usdc) == FAIR - net


async def test_firm_quotes_of_a_token_that_rounds_are_filled_at_every_size(
    world: World, tmp_path: Path
) -> None:
    """Of each transfer two units are lost: from the maker to Delta, and from Delta to the user."""

    def fills(request: SolveRequest) -> list[SolverBid]:
        return [bid_on(order) for order in request.orders]

    def bid_on(order: AuctionOrder) -> SolverBid:
        order_hash, given, promised = order.order_hash, int(order.src_amount), int(order.dest_amount)
        step = world.fill_step(world.a_firm_quote(maker_amount=promised + 4, taker_amount=given))
        steps = (BidStep(to_hex(step.target), to_hex(step.data), step.gas),)
        return SolverBid((BidPart(order_hash, str(promised), steps, receiver=to_checksum(EXECUTOR)),))

    async with a_delta_story(world, tmp_path, "ann") as story:
        await world.send(world.stranger, world.usdc, selector("setRounding(uint256)") + uint_word(2))
        await world.give(world.maker, world.usdc, 10 * FAIR, world.at.rfq)
        story.agents["ann"].also = fills
        for amount in (7, 999, USDC + 1, 333_333_333, FAIR - 1, FAIR, FAIR + 1):
            sold = ONE * amount // FAIR
            order = await world.a_delta_order(src_amount=sold, dest_amount=amount, expected_amount=0)
            record, moved = await story.completed(order)
            assert (moved["user", "USDC"], moved["user", "WETH"]) == (amount, -sold)
            assert record["output"]["executedAmount"] == str(amount)


async def by_leaked_key(story: DeltaStory, order: DeltaOrder) -> Receipt:
    """A thief with a relayer's key settles an order for no more than its owner signed for."""
    world, market = story.world, story.market
    steps = market.agent_steps(order.dest_amount, given=order.src_amount)
    data = market.settlement(order, *steps, promised=0)
    return await world.forced(world.partner, world.at.delta, data, gas=SETTLEMENT_GAS)


async def test_a_leaked_relayer_key_gives_no_more_than_the_cap_and_the_venue_waits(
    world: World, tmp_path: Path
) -> None:
    """Beyond the cap the venue's settlement is no fault of its agent, and is made in the next hour."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: FAIR // 10
        await world.send(world.owner, world.at.delta, set_relayer(world.partner.address, allowed=True))
        await world.send(world.owner, world.at.delta, set_cap(world.weth, 4 * TENTH))
        await story.pass_time(HOUR_S - await world.now_s() % HOUR_S)
        deadline_s = await world.now_s() + 3 * HOUR_S
        terms = {
            "src_amount": TENTH,
            "dest_amount": FAIR // 10 - 1,
            "expected_amount": 0,
            "deadline": deadline_s,
        }
        before = await story.balances()
        stolen = [await by_leaked_key(story, await world.a_delta_order(**terms)) for _ in range(10)]
        assert [receipt.succeeded for receipt in stolen] == [True] * 4 + [False] * 6
        assert (await story.moved_since(before))["user", "WETH"] == -4 * TENTH
        assert await world.ask(world.at.delta, given_of(world.weth)) == 4 * TENTH
        record = await story.submitted(await world.a_delta_order(**terms))
        await until(lambda: bool(ann.notices))
        assert "CapExceeded" in await story.says(record, "reverted")
        assert not ann.told("won") + ann.told("banned")
        assert (await story.record(record["id"]))["status"] == "PENDING"
        await story.pass_time(HOUR_S)
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(FAIR // 10)
        (score,) = await story.web.get("/v2/delta/agents/scores/31337")
        assert (score["faults"], score["strikes"], score["restsUntil"]) == ({}, 0, None)


async def test_a_settlement_that_a_leaked_key_robs_of_the_cap_is_no_fault_and_is_made_again(
    world: World, tmp_path: Path
) -> None:
    """The thief's settlement is before the venue's in one block: the cap leaves less than that gives."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: FAIR
        await world.send(world.owner, world.at.delta, set_relayer(world.partner.address, allowed=True))
        await world.send(world.owner, world.at.delta, set_cap(world.weth, ONE))
        await story.pass_time(HOUR_S - await world.now_s() % HOUR_S)
        stolen = await world.a_delta_order(src_amount=TENTH, dest_amount=1, expected_amount=0)
        await story.hold()
        record = await story.submitted(await world.a_delta_order(deadline=await world.now_s() + 3 * HOUR_S))
        await story.under_way(record)
        data = story.market.settlement(stolen, *story.market.agent_steps(1, given=TENTH), promised=0)
        await story.first_in_block(world.partner, world.at.delta, data)
        await story.mine()
        await until(lambda: bool(ann.told("reverted")))
        await story.pass_time(HOUR_S)
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(FAIR)
        (score,) = await story.web.get("/v2/delta/agents/scores/31337")
        assert (score["faults"], score["strikes"], score["restsUntil"]) == ({}, 0, None)


@pytest.mark.parametrize("act", ["cancels", "disallows", "leaves"])
async def test_an_owner_that_comes_before_its_settlement_frames_nobody(
    world: World, tmp_path: Path, act: str
) -> None:
    """The owner's transaction is before the settlement in one block: the block before would have taken it."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: FAIR
        order = await world.a_delta_order()
        await story.hold()
        record = await story.submitted(order)
        await story.under_way(record)
        if act == "cancels":
            await story.gives_up_first(world.user, order.nonce)
        elif act == "disallows":
            await story.disallow(world.user, "WETH")
        else:
            has = await world.balance(world.weth, world.user)
            await story.first_in_block(world.user, world.weth, transfer(world.stranger.address, has))
        await story.mine()
        await until(lambda: bool(ann.told("reverted")))
        await story.becomes(record, "CANCELLED" if act == "cancels" else "SUSPENDED")
        (score,) = await story.web.get("/v2/delta/agents/scores/31337")
        assert (score["faults"], score["strikes"], score["restsUntil"]) == ({}, 0, None)


@pytest.mark.parametrize("act", ["disallows", "lends"])
async def test_an_owner_that_goes_and_comes_back_around_its_settlement_frames_nobody(
    world: World, tmp_path: Path, act: str
) -> None:
    """A transaction is before the settlement, and another behind it: both blocks would have taken it."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.gives = lambda _: FAIR
        has = await world.balance(world.weth, world.user)
        await world.send(world.user, world.weth, approve(world.stranger.address, has))
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        await story.under_way(record)
        if act == "disallows":
            await story.disallow(world.user, "WETH")
            await story.last_in_block(world.user, world.weth, approve(world.at.delta, has))
        else:
            takes = transfer_from(world.user.address, world.stranger.address, has)
            await story.first_in_block(world.stranger, world.weth, takes)
            await story.last_in_block(world.stranger, world.weth, transfer(world.user.address, has))
        await story.mine()
        await until(lambda: bool(ann.told("reverted")))
        record = await story.becomes(record, "COMPLETED")
        (score,) = await story.web.get("/v2/delta/agents/scores/31337")
        assert (score["faults"], score["strikes"], score["restsUntil"]) == ({}, 0, None)
        (told,) = ann.told("reverted")
        assert told.detail.startswith("an owner acted in its block")


async def test_an_owner_that_cancels_a_crossing_costs_the_other_order_no_round(
    world: World, tmp_path: Path
) -> None:
    """Ann's crossing fails with the counter order; the sale's next bid of the same round is Bob's."""

    def crosses(request: SolveRequest) -> list[SolverBid]:
        if len(request.orders) < 2:
            return []
        sale, counter = sorted(request.orders, key=lambda order: order.src_token != to_checksum(world.weth))
        parts = (
            BidPart(sale.order_hash, str(FAIR), paid=str(FAIR)),
            BidPart(counter.order_hash, str(ONE), paid=str(ONE)),
        )
        return [SolverBid(parts)]

    async with a_delta_story(world, tmp_path, "ann", "bob", delta=f"gather_s = {GATHER_S}") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.also = crosses
        bob.gives = lambda order: (
            FAIR - USDC
            if order.src_token == to_checksum(world.weth) and len(bob.requests[-1].orders) == 2
            else None
        )
        counter_order = await story.market.a_counter_order()
        await story.hold()
        record = await story.submitted(await world.a_delta_order())
        counter = await story.submitted(counter_order, world.taker)
        await story.under_way(record)
        asked = len(bob.requests)
        await story.gives_up_first(world.taker, counter_order.nonce)
        await story.mine()
        await story.becomes(counter, "CANCELLED")
        record = await story.becomes(record, "COMPLETED")
        assert record["output"]["executedAmount"] == str(FAIR - USDC)
        assert len(bob.requests) == asked
        await until(lambda: len(ann.told("reverted")) == 2)
        scores = await story.web.get("/v2/delta/agents/scores/31337")
        assert [(score["faults"], score["strikes"]) for score in scores] == [({}, 0)] * 2


async def test_a_leaked_relayer_key_settles_nothing_that_its_owner_cancelled(
    world: World, tmp_path: Path
) -> None:
    """Anybody puts the owner's signed cancellation on chain; the venue reads it there."""
    async with a_delta_story(world, tmp_path, "ann") as story:
        await world.send(world.owner, world.at.delta, set_relayer(world.partner.address, allowed=True))
        order, other = await world.a_delta_order(), await world.a_delta_order()
        record = await story.submitted(order)
        ids = [record["id"]]
        shown = show_cancellation(world.user.address, ids, world.cancellation(ids), [order])
        await world.send(world.stranger, world.at.delta, shown)
        await story.becomes(record, "CANCELLED")
        before = await story.balances()
        assert not (await by_leaked_key(story, order)).succeeded
        assert ("user", "WETH") not in await story.moved_since(before)
        assert (await story.record(record["id"]))["status"] == "CANCELLED"
        assert (await by_leaked_key(story, other)).succeeded, "the key settles what is not cancelled"
