"""Opposite sales settled with each other by the real contract: both get what was promised, to the unit."""

from pathlib import Path
from typing import Any

from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.messages.agent_messages import SolverBid
from cambist.engine.chain.proceeds import of_sale
from support.makers.agent_role import RunningAgent, SignedOrder, running_agent
from support.venue.venue_role import KEYS, STRANGER

ONE, USDC = 10**18, 10**6
ALONE = 'strategies = ["crossing"]\n'
FEE = PartnerAndFee(KEYS[6].address, fee_bps=50, partner_takes_surplus=True, cap_surplus=True)
THIN: dict[str, dict[str, Any]] = {
    "alpha": {"WETH/USDC": {"bids": [["2490", "5"]], "asks": [["2510", "5"]]}},
}


async def crossed(agent: RunningAgent, *orders: SignedOrder) -> SolverBid:
    """The one bid of a round of two."""
    (bid,) = await agent.solve(*orders)
    assert {part.order_hash for part in bid.parts} == {order.shown.order_hash for order in orders}
    return bid


async def settled_as_promised(agent: RunningAgent, bid: SolverBid) -> None:
    """Each user receives what was promised of its part, and the contracts keep nothing."""
    events = await agent.settle(bid)
    assert [event.received for event in events] == [int(part.promised_amount) for part in bid.parts]
    for token in ("WETH", "USDC"):
        for contract in ("delta", "executor"):
            assert await agent.devnet.balance(agent.devnet.at(contract), token) == 0


async def test_whole_for_whole(tmp_path: Path) -> None:
    async with running_agent(tmp_path, grids=THIN, more=ALONE) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_495 * USDC)
        other = await agent.sells(2_500 * USDC, "USDC", "WETH", least=999 * ONE // 1_000, owner=STRANGER)
        bid = await crossed(agent, sale, other)
        assert not any(part.steps for part in bid.parts)
        before = await agent.devnet.balance(STRANGER, "WETH")
        await settled_as_promised(agent, bid)
        assert await agent.devnet.balance(STRANGER, "WETH") - before == ONE


async def test_native_tokens_and_wrapped_ones_are_one(tmp_path: Path) -> None:
    async with running_agent(tmp_path, grids=THIN, more=ALONE) as agent:
        sale = await agent.sells(ONE, "ETH", "USDC", least=2_495 * USDC)
        other = await agent.sells(2_500 * USDC, "USDC", "WETH", least=999 * ONE // 1_000, owner=STRANGER)
        await settled_as_promised(agent, await crossed(agent, sale, other))


async def test_the_rest_of_the_long_sale_goes_to_makers(tmp_path: Path) -> None:
    """Alone each would pay the spread of 10 either side; the crossed part saves both the spread."""
    async with running_agent(tmp_path, grids=THIN, more=ALONE) as agent:
        sale = await agent.sells(2 * ONE, "WETH", "USDC", least=4_900 * USDC)
        other = await agent.sells(2_500 * USDC, "USDC", "WETH", least=99 * ONE // 100, owner=STRANGER)
        bid = await crossed(agent, sale, other)
        long, short = bid.parts
        assert (len(long.steps), len(short.steps)) == (1, 0)
        assert int(long.promised_amount) > 2 * 2_490 * USDC
        assert int(short.promised_amount) > 2_500 * ONE // 2_510
        await settled_as_promised(agent, bid)


async def test_fees_and_shares_of_surplus_are_taken_of_what_is_paid(tmp_path: Path) -> None:
    async with running_agent(tmp_path, grids=THIN, more=ALONE) as agent:
        packed = pack_partner_and_fee(FEE)
        least, expected = 2_400 * USDC, 2_450 * USDC
        sale = await agent.sells(
            2 * ONE, "WETH", "USDC", least=2 * least, expected=2 * expected, partner_and_fee=packed
        )
        other = await agent.sells(2_500 * USDC, "USDC", "WETH", least=98 * ONE // 100, owner=STRANGER)
        bid = await crossed(agent, sale, other)
        paid = int(bid.parts[0].paid)
        cut = of_sale(paid, 2 * expected, 2 * least, FEE)
        assert cut.fee
        assert cut.share
        assert int(bid.parts[0].promised_amount) == paid - cut.total
        await settled_as_promised(agent, bid)


async def test_the_rest_may_take_two_hops_for_either_side(tmp_path: Path) -> None:
    grids = {
        "alpha": {
            "WETH/USDC": {"bids": [["2490", "9"]], "asks": [["2510", "9"]]},
            "WBTC/USDC": {"bids": [["59900", "2"]], "asks": [["60100", "2"]]},
        }
    }
    async with running_agent(tmp_path, grids=grids, more=ALONE) as agent:
        sale = await agent.sells(ONE, "WETH", "WBTC", least=4 * 10**6)
        other = await agent.sells(10**7, "WBTC", "WETH", least=2 * ONE, owner=STRANGER)
        bid = await crossed(agent, sale, other)
        assert len(bid.parts[0].steps) == 2
        assert bid.parts[0].order_hash == other.shown.order_hash
        events = await agent.settle(bid)
        assert [event.received for event in events] == [int(part.promised_amount) for part in bid.parts]


async def test_both_strategies_bid_for_the_same_orders(tmp_path: Path) -> None:
    async with running_agent(tmp_path, grids=THIN) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_480 * USDC)
        other = await agent.sells(2_500 * USDC, "USDC", "WETH", least=99 * ONE // 100, owner=STRANGER)
        bids = await agent.solve(sale, other)
        assert [len(bid.parts) for bid in bids] == [2, 1, 1]
