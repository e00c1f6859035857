"""Bids against the real settlement: a bid's simulation and its transaction have the same result."""

from collections.abc import Sequence
from typing import Any

import msgspec

from cambist.codecs.contracts.contract_events import OrderSettled
from cambist.codecs.contracts.delta_calldata import SettlementStep
from cambist.codecs.eip712_orders.delta import ORDER_TYPES, DeltaOrder, TwapBuyOrder, TwapOrder
from cambist.codecs.messages.agent_messages import Notice
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.trade.delta.auction.auction import decide
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from cambist.engine.trade.delta.bids.bids import Candidate, Rejection, RoundOrder, answer_of, read_answer
from cambist.engine.trade.delta.bids.simulation import Proven, proven, simulation_of
from cambist.engine.trade.delta.orders.document import DeltaDocument, order_json
from cambist.engine.trade.delta.orders.terms import SettledOrder, next_part, terms_of
from support.chain.world import ONE, USDC, World
from support.contracts.settling import SETTLEMENT_GAS, Market, events

FAIR = 2_500 * USDC
GAS_MAX = 3_000_000
_TYPES: dict[type, str] = {order_type.cls: order_type.name for order_type in ORDER_TYPES}


def asked(world: World, order: SettledOrder, *, filled: int = 0, key: Any = None) -> RoundOrder:
    """The order as a round has it, signed by its owner."""
    kind = _TYPES[type(order)]
    document = DeltaDocument(kind, order_json(kind, order), world.delta_signed(order, key))
    part = next_part(order, filled)
    assert part is not None
    return RoundOrder(world.delta_hash(order), order, document, terms_of(order), part)


def part(
    market: Market, one: RoundOrder, promised: int, *steps: SettlementStep, agent: str = "alpha", **more: Any
) -> dict[str, Any]:
    """A bid's part as JSON; the agent's caller receives the order's source."""
    at = market.world.at
    told = [
        {"target": to_checksum(step.target), "data": to_hex(step.data), "gas": step.gas} for step in steps
    ]
    named = {"orderHash": to_hex(one.order_hash), "promisedAmount": str(promised)}
    return named | {"steps": told, "receiver": to_checksum(caller_of(at.delta, agent))} | more


def bid(
    orders: Sequence[RoundOrder], *parts: dict[str, Any], agent: str = "alpha", arrival: int = 0
) -> Candidate:
    raw = msgspec.json.encode({"bids": [{"parts": parts}]})
    (candidate,) = read_answer(answer_of(agent, arrival, 1, raw), {one.order_hash: one for one in orders})
    assert isinstance(candidate, Candidate)
    return candidate


async def simulated(world: World, *candidates: Candidate) -> list[Proven | Rejection]:
    """All at one block, as a round does it."""
    head = await world.chain.block()
    assert head is not None
    calls = [simulation_of(one, world.at.delta, world.relayer.address, GAS_MAX) for one in candidates]
    answers = await world.chain.call_many(calls, head.hash)
    return [proven(one, answer) for one, answer in zip(candidates, answers, strict=True)]


async def settled(world: World, found: Proven | Rejection) -> list[OrderSettled]:
    """Send what was simulated; its events tell what the simulation told."""
    assert isinstance(found, Proven), found
    data = found.candidate.calldata
    receipt = await world.send(world.relayer, world.at.delta, data, gas=SETTLEMENT_GAS)
    told = events(receipt, OrderSettled)
    assert [(event.spent, event.received) for event in told] == [
        (outcome.spent, outcome.received) for outcome in found.outcomes
    ]
    assert [event.order_hash for event in told] == [one.asked.order_hash for one in found.candidate.parts]
    gas = sum(outcome.gas for outcome in found.outcomes)
    assert abs(gas - receipt.gas_used) <= receipt.gas_used // 4, (gas, receipt.gas_used)
    return told


async def test_a_sale_is_settled_as_simulated(world: World, market: Market) -> None:
    one = asked(world, await world.a_delta_order())
    (found,) = await simulated(world, bid([one], part(market, one, FAIR, *market.agent_steps(FAIR))))
    (event,) = await settled(world, found)
    assert (event.spent, event.received) == (ONE, FAIR)


async def test_a_purchase_is_settled_as_simulated(world: World, market: Market) -> None:
    one = asked(world, await market.a_purchase())
    steps = (market.to_agent(ONE), market.from_agent(FAIR))
    (found,) = await simulated(world, bid([one], part(market, one, ONE, *steps, given=str(ONE))))
    (event,) = await settled(world, found)
    assert (event.spent, event.received) == (ONE, FAIR)


async def test_slices_are_settled_as_simulated(world: World, market: Market) -> None:
    sale: TwapOrder = await market.a_twap()
    one = asked(world, sale)
    given = one.part.src_amount
    (found,) = await simulated(
        world, bid([one], part(market, one, 830 * USDC, *market.agent_steps(830 * USDC, given)))
    )
    await settled(world, found)
    purchase: TwapBuyOrder = await market.a_twap_purchase()
    other = asked(world, purchase)
    steps = (market.to_agent(ONE // 3), market.from_agent(other.part.dest_amount))
    (found,) = await simulated(
        world, bid([other], part(market, other, ONE // 3, *steps, given=str(ONE // 3)))
    )
    await settled(world, found)


async def test_orders_that_are_crossed_are_settled_as_simulated(world: World, market: Market) -> None:
    sale: DeltaOrder = await world.a_delta_order()
    counter: DeltaOrder = await market.a_counter_order()
    one, other = asked(world, sale), asked(world, counter, key=world.taker)
    crossing = bid(
        [one, other], part(market, one, FAIR, paid=str(FAIR)), part(market, other, ONE, paid=str(ONE))
    )
    (found,) = await simulated(world, crossing)
    told = await settled(world, found)
    assert [event.received for event in told] == [FAIR, ONE]


async def test_what_bids_promise_and_do_not_do_is_found_out(world: World, market: Market) -> None:
    one = asked(world, await world.a_delta_order())
    bought = asked(world, await market.a_purchase())
    candidates = [
        bid([one], part(market, one, FAIR + 1, *market.agent_steps(FAIR))),
        bid([one], part(market, one, FAIR, *market.agent_steps(2_400 * USDC - 1))),
        bid([bought], part(market, bought, ONE, *market.agent_steps(FAIR, ONE + 1), given=str(ONE + 1))),
        bid([one], part(market, one, FAIR, *market.agent_steps(1_000_000 * USDC))),
        bid([one], part(market, one, FAIR)),
    ]
    found = await simulated(world, *candidates)
    first, second = to_hex(one.order_hash), to_hex(bought.order_hash)
    assert [(one.notice, one.detail) for one in found if isinstance(one, Rejection)] == [
        (
            Notice.SIMULATION_MISMATCH,
            f"bids[0]: {first}: promised {FAIR + 1}, simulated {FAIR}",
        ),
        (Notice.BELOW_LIMIT, "bids[0]: simulated: BelowMinimum(received 2399999999, minimum 2400000000)"),
        (
            Notice.SIMULATION_MISMATCH,
            f"bids[0]: {second}: promised {ONE}, simulated {ONE + 1}",
        ),
        (Notice.REVERTED, "bids[0]: simulated: StepFailed(step 1, reason TransferFailed())"),
        (Notice.BELOW_LIMIT, "bids[0]: simulated: BelowMinimum(received 0, minimum 2400000000)"),
    ]


async def test_of_two_bids_the_better_one_settles_and_the_runner_up_stands_by(
    world: World, market: Market
) -> None:
    one = asked(world, await world.a_delta_order())
    found = await simulated(
        world,
        bid([one], part(market, one, FAIR, *market.agent_steps(FAIR)), agent="alpha"),
        bid(
            [one],
            part(market, one, FAIR + 3, *market.agent_steps(FAIR + 5), agent="beta"),
            agent="beta",
            arrival=1,
        ),
        bid(
            [one],
            part(market, one, FAIR + 9, *market.agent_steps(FAIR + 5), agent="liar"),
            agent="liar",
            arrival=2,
        ),
    )
    decision = decide([one], [bid for bid in found if isinstance(bid, Proven)], 10**9, {})
    (winner,) = decision.winners
    assert winner.candidate.agent == "beta"
    (runner_up,) = decision.verdicts[one.order_hash].runners_up
    assert runner_up.candidate.agent == "alpha"
    (event,) = await settled(world, winner)
    assert event.received == FAIR + 5
