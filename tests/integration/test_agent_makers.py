"""An agent's remaining bids, and their time, when makers hang, refuse, or do not serve a user."""

from pathlib import Path

import msgspec

from cambist.codecs.messages.agent_messages import Notice, NoticeEntry, NotifyRequest, decode_solve_response
from support.makers.agent_role import running_agent
from support.patience import LATE_ROUND_S, until
from support.venue.venue_role import CHAIN_ID, GRIDS, STRANGER, USER, write_grids

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
        sale = await agent.sells(2 * ONE, "WETH", "USDC", least=4_900 * USDC)
        assert await agent.solve(sale, other) == ()


async def test_an_order_that_there_was_no_time_for_is_told(tmp_path: Path) -> None:
    async with running_agent(tmp_path, grids=APART, more=EARLY) as agent:
        agent.fronts["alpha"].habit = "hangs"
        stuck = await agent.sells(ONE, "WETH", "DAI", least=2_400 * ONE)
        other = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        dear = await agent.sells(ONE, "WETH", "USDC", least=9_000 * USDC)
        request = agent.request(stuck, other, dear, round_ms=3_000 + round(1_000 * LATE_ROUND_S))
        response = await agent.ask("POST", "/solve", msgspec.json.encode(request))
        answer = decode_solve_response(response.body)
        assert [bid.parts[0].order_hash for bid in answer.bids] == [other.shown.order_hash]
        assert answer.not_reached == (stuck.shown.order_hash,)


# --- Routes that are kept -------------------------------------------------------------------------------


def a_notice(notice: Notice, order_hash: str) -> NotifyRequest:
    return NotifyRequest(1, CHAIN_ID, (NoticeEntry(notice, order_hash),))


async def test_makers_sign_once_for_an_order_that_is_in_several_rounds(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        first = await agent.solve(sale)
        await agent.notify(a_notice(Notice.LOST, sale.shown.order_hash))
        assert await agent.solve(sale) == first
        assert agent.fronts["alpha"].asked == 1
        await agent.notify(a_notice(Notice.REVERTED, sale.shown.order_hash))
        again = await agent.solve(sale)
        assert (again != first, agent.fronts["alpha"].asked) == (True, 2)
        (settled,) = await agent.settle(again[0])
        assert settled.received == 2_500_000_000


async def test_makers_sign_anew_once_their_books_are_better(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        sale = await agent.sells(ONE, "WETH", "USDC", least=2_400 * USDC)
        (before,) = await agent.solve(sale)
        pathfinder = agent.app.chains[CHAIN_ID].makers.pathfinder
        ends = agent.devnet.at("WETH"), agent.devnet.at("USDC")
        shown = pathfinder.best_rate(*ends)
        better = {"WETH/USDC": {"bids": [["2600", "5"]], "asks": [["2601", "5"]]}}
        write_grids(tmp_path / "maker-alpha", "alpha", better)
        await until(lambda: pathfinder.best_rate(*ends) != shown)
        (after,) = await agent.solve(sale)
        assert int(after.parts[0].promised_amount) > int(before.parts[0].promised_amount)
        assert agent.fronts["alpha"].asked == 2
