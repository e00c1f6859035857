"""An agent whose makers hang, refuse, or do not serve somebody: what it still bids, and by when."""

from pathlib import Path

from support.agent_role import running_agent
from support.patience import LATE_ROUND_S
from support.venue_role import GRIDS, STRANGER, USER

ONE, USDC = 10**18, 10**6
EARLY = 'strategies = ["firm_quotes"]\nreserve_s = 3.0\n'
APART = {
    "alpha": {"WETH/DAI": {"bids": [["2500", "9"]], "asks": [["2510", "9"]]}},
    "beta": {"WETH/USDC": {"bids": [["2500", "9"]], "asks": [["2510", "9"]]}},
}


async def test_a_maker_that_hangs_costs_its_own_orders_alone(tmp_path: Path) -> None:
    """Waited for longer than the round lasts, and the answer is there before it closes all the same."""
    async with running_agent(tmp_path, grids=APART, more=EARLY) as agent:
        agent.fronts["alpha"].habit = "hangs"
        stuck = await agent.sells(ONE, "WETH", "DAI", least=2_400 * ONE)
        other = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        closes_at_ms = agent.clock.now_ms() + 3_000 + round(1_000 * LATE_ROUND_S)
        (bid,) = await agent.solve(stuck, other, closes_at_ms=closes_at_ms)
        assert agent.clock.now_ms() < closes_at_ms
        assert bid.parts[0].order_hash == other.shown.order_hash
        assert agent.fronts["alpha"].asked == 1
        (settled,) = await agent.settle(bid)
        assert settled.received >= int(bid.parts[0].promised_amount)


async def test_another_signs_in_the_place_of_a_maker_that_refuses(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        agent.fronts["alpha"].habit = "refuses"
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        (bid,) = await agent.solve(sale)
        assert agent.fronts["alpha"].asked == 1
        (settled,) = await agent.settle(bid)
        assert settled.received == 2_499_500_000  # of beta, whose book is worse


async def test_whoever_a_maker_has_blacklisted_is_not_sent_to_it_again(tmp_path: Path) -> None:
    async with running_agent(tmp_path, grids=GRIDS) as agent:
        alpha = agent.fronts["alpha"]
        alpha.habit = "blacklists"
        for _ in range(2):
            sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC, owner=USER)
            (bid,) = await agent.solve(sale)
            (settled,) = await agent.settle(bid)
            assert settled.received == 2_499_500_000
        assert alpha.asked == 1
        alpha.habit = ""
        others = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC, owner=STRANGER)
        (bid,) = await agent.solve(others)
        (settled,) = await agent.settle(bid)
        assert settled.received == 2_500_000_000


async def test_opposite_sales_are_left_alone_where_nobody_signs_for_the_rest(tmp_path: Path) -> None:
    async with running_agent(tmp_path, more='strategies = ["crossing"]\n') as agent:
        sale = await agent.sells(2 * ONE, "WETH", "USDC", least=4_900 * USDC)
        other = await agent.sells(2_500 * USDC, "USDC", "WETH", least=99 * ONE // 100, owner=STRANGER)
        (bid,) = await agent.solve(sale, other)
        assert len(bid.parts) == 2
        for front in agent.fronts.values():
            front.habit = "refuses"
        assert await agent.solve(sale, other) == ()
