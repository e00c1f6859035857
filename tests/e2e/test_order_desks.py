"""Through the whole venue: an agent sells from a desk of its own, and no other agent's bid reaches it."""

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.delta_calldata import SettlementStep
from cambist.codecs.eip712_orders.delta import DeltaOrder
from cambist.codecs.messages.agent_messages import BidPart, BidStep, SolverBid, SolveRequest
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.agent_desks import FAIR, STOCK, a_desk
from support.contracts.settling import STEP_GAS
from support.delta.delta_stories import a_delta_story
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

Bids = Callable[[SolveRequest], list[SolverBid]]


def bids(order: DeltaOrder, world: World, promised: int, steps: Iterable[SettlementStep]) -> Bids:
    """A bid on `order` from any agent; the request's caller receives the source."""

    def bid(request: SolveRequest) -> list[SolverBid]:
        told = tuple(BidStep(to_hex(step.target), to_hex(step.data), step.gas) for step in steps)
        named = to_hex(world.delta_hash(order))
        parts = [one for one in request.orders if one.order_hash == named]
        return [SolverBid((BidPart(named, str(promised), told, receiver=request.caller),)) for _ in parts]

    return bid


async def test_an_agent_trades_from_its_desk_and_another_cannot(world: World, tmp_path: Path) -> None:
    """Bob copies steps that Ann's key signed, to pay users or himself: no such bid is settled."""
    desk = await a_desk(world)
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        order = await world.a_delta_order()
        dust = await world.a_delta_order(src_amount=10**12, dest_amount=1, expected_amount=0)
        mallory = world.stranger.address
        stolen = desk.steps(desk.terms(dust, taken=0, given=STOCK - 1, receiver=mallory))
        bob.also = bids(dust, world, 1, stolen)
        record = await story.submitted(dust)
        await story.heard("bob", record, "reverted")
        assert "NotOurCaller()" in bob.told("reverted")[0].detail
        assert await desk.stock() == {world.usdc: STOCK}
        public = desk.steps(desk.terms(order))
        ann.also, bob.also = bids(order, world, FAIR - 1, public), bids(order, world, FAIR, public)
        _, moved = await story.completed(order)
        assert moved["user", "USDC"] == FAIR
        assert await desk.stock() == {world.usdc: STOCK - FAIR, world.weth: ONE}
        scores = await story.web.get("/v2/delta/agents/scores/31337")
        callers = {one["agent"]: one["caller"] for one in scores}
        assert callers == {name: to_checksum(caller_of(world.at.delta, name)) for name in ("ann", "bob")}
        assert {one.caller for one in ann.requests} == {callers["ann"]}


async def test_what_an_agent_leaves_allowed_takes_nothing_of_the_next_settlements(
    world: World, tmp_path: Path
) -> None:
    """Bob's steps leave allowances to Mallory, who can take no tokens of later settlements."""
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        order = await world.a_delta_order()
        mallory = world.stranger
        words = address_word(world.usdc) + address_word(world.at.delta) + uint_word(FAIR)
        deliver = SettlementStep(bob.contract, STEP_GAS, selector("deliver(address,address,uint256)") + words)
        leave = [
            SettlementStep(token, STEP_GAS, calldata.approve(mallory.address, MOST))
            for token in (world.weth, world.usdc)
        ]
        give = SettlementStep(world.weth, STEP_GAS, calldata.transfer(bob.contract, ONE))
        bob.also = bids(order, world, FAIR, [*leave, give, deliver])
        await story.completed(order)
        await until(lambda: bool(bob.told("settled")))
        ann.gives = lambda _: FAIR
        for _ in range(2):
            _, moved = await story.completed(await world.a_delta_order())
            assert moved["user", "USDC"] == FAIR
        for holder in (world.at.executor, world.at.delta, caller_of(world.at.delta, "ann")):
            for token in (world.weth, world.usdc):
                assert await world.ask(token, calldata.allowance(holder, mallory.address)) == 0
        left = calldata.allowance(caller_of(world.at.delta, "bob"), mallory.address)
        assert await world.ask(world.usdc, left) == MOST
        assert await world.balance(world.usdc, caller_of(world.at.delta, "bob")) < USDC
