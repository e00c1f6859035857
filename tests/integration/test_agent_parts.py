"""Orders that may be filled in parts, which makers do not fill whole within their limit."""

from pathlib import Path

import pytest

from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from support.makers.agent_role import RunningAgent, SignedOrder, running_agent
from support.venue.venue_role import KEYS

ONE, USDC = 10**18, 10**6
SIZE = 40 * ONE
SHARED = PartnerAndFee(KEYS[6].address, fee_bps=0, partner_takes_surplus=True, cap_surplus=False)

# For 2,499.2 the books sell 30.357 WETH: 5 at 2,500, 5 at 2,499.5, 20 at 2,499, and of 20 at 2,495 the rest.
# For 2,501.8 they give as many: 5 at 2,501, 5 at 2,501.5, 20 at 2,502, and of 20 at 2,506 the rest.
FILLED = 30_357 * ONE // 1_000
STEP = SIZE * 8 // 10 // 256


async def sale(agent: RunningAgent, *, part_min: int = SIZE // 10, price: int = 24_992) -> SignedOrder:
    least = SIZE * price // 10**13
    return await agent.sells(
        SIZE,
        "WETH",
        "USDC",
        least=least,
        expected=least,
        part_min=part_min,
        partner_and_fee=pack_partner_and_fee(SHARED),
    )


async def test_a_sale_is_filled_by_the_largest_part_that_keeps_its_limit(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        signed = await sale(agent)
        (bid,) = await agent.solve(signed)
        amount = int(bid.parts[0].amount)
        assert FILLED - STEP <= amount <= FILLED + ONE // 1_000
        (settled,) = await agent.settle(bid)
        assert (settled.spent, settled.is_closed) == (amount, False)
        least = -(-signed.order.dest_amount * amount // SIZE)
        assert settled.received >= int(bid.parts[0].promised_amount) >= least


async def test_a_purchase_is_filled_by_the_largest_part_that_keeps_its_limit(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        most = SIZE * 25_018 // 10**13
        signed = await agent.buys(SIZE, "WETH", "USDC", most=most, expected=most, part_min=SIZE // 10)
        (bid,) = await agent.solve(signed)
        amount = int(bid.parts[0].amount)
        assert FILLED - STEP <= amount <= FILLED + ONE // 1_000
        (settled,) = await agent.settle(bid)
        assert (settled.received, settled.is_closed) == (amount, False)
        assert settled.spent <= int(bid.parts[0].promised_amount) <= most * amount // SIZE


async def test_what_the_books_fill_is_filled_whole(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        (bid,) = await agent.solve(await sale(agent, price=24_960))
        assert bid.parts[0].amount == str(SIZE)
        (settled,) = await agent.settle(bid)
        assert settled.is_closed


async def test_one_that_is_not_to_be_split_is_left_alone(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        assert await agent.solve(await sale(agent, part_min=0)) == ()


async def test_no_part_is_smaller_than_the_smallest_one_or_leaves_less(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        assert await agent.solve(await sale(agent, price=25_001)) == ()
        (bid,) = await agent.solve(await sale(agent, part_min=SIZE * 3 // 10))
        assert int(bid.parts[0].amount) == SIZE * 7 // 10
        (bid,) = await agent.solve(await sale(agent, part_min=SIZE // 100))
        assert int(bid.parts[0].amount) > FILLED - SIZE // 256


async def test_half_of_it_is_asked_for_where_makers_sign_for_less_than_their_books(tmp_path: Path) -> None:
    async with running_agent(tmp_path) as agent:
        for front in agent.fronts.values():
            front.habit, front.worse_bps = "drifts", 1
        (bid,) = await agent.solve(await sale(agent))
        assert FILLED - STEP <= 2 * int(bid.parts[0].amount) <= FILLED + ONE // 1_000
        (settled,) = await agent.settle(bid)
        assert settled.received >= int(bid.parts[0].promised_amount)


@pytest.mark.parametrize("margin_bps", [0, 1])
async def test_what_is_promised_of_a_part_is_what_it_brings(tmp_path: Path, margin_bps: int) -> None:
    async with running_agent(tmp_path, more=f"margin_bps = {margin_bps}\n") as agent:
        signed = await sale(agent)
        (bid,) = await agent.solve(signed)
        (settled,) = await agent.settle(bid)
        promised = int(bid.parts[0].promised_amount)
        assert promised <= settled.received
        if not margin_bps:
            assert promised == settled.received
