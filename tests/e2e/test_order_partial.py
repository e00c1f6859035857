"""Orders that may be filled in parts: amounts and terms of each part, to the last unit; and orders that are
filled whole.
"""

from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.messages.agent_messages import AuctionOrder
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.index.indexer import Advance
from cambist.engine.store.rows import DeltaFill
from cambist.engine.trade.delta.settlement.projection import DeltaProjection
from support.chain.world import ONE, USDC, World
from support.contracts.delta_agents import Offer
from support.contracts.settling import DELIVER
from support.delta.delta_stories import DeltaStory, Record, a_delta_story
from support.delta.resting_stories import a_resting_story, prices
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

TENTH = ONE // 10


def fixed(order: AuctionOrder) -> int:
    """Remaining fixed amount of an order: source of a sale, destination of a purchase."""
    return int(order.src_amount if order.side == "SELL" else order.dest_amount)


def of(amount: int, offer: int) -> Offer:
    """An offer for that much of an order, and for nothing else."""
    return lambda order: offer if fixed(order) == amount else None


def at_most(amount: int) -> Offer:
    """Offer for at most `amount` of the order's fixed side."""
    return lambda order: min(fixed(order), amount)


def percents(record: Record) -> list[Any]:
    """Of each settlement."""
    return [fill["filledPercent"] for fill in record["transactions"]]


def fills(record: Record) -> list[tuple[int, int]]:
    """(spent, received) of each settlement."""
    return [(int(fill["spentAmount"]), int(fill["receivedAmount"])) for fill in record["transactions"]]


async def winners(story: DeltaStory, record: Record) -> list[tuple[str, str | None]]:
    """(who, for which part) of the rounds that a settlement came of, the first one first."""
    rounds = [one["order"] for one in reversed((await story.explain(record))["lastRounds"])]
    return [(one["winner"], one["bids"][0]["partAmount"]) for one in rounds if one["winner"] is not None]


async def test_two_agents_fill_a_sale_sixty_to_forty(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.settles, ann.gives = at_most(6 * TENTH), of(6 * TENTH, 1_530 * USDC)
        bob.settles, bob.gives = at_most(4 * TENTH), of(4 * TENTH, 980 * USDC)
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order(), partiallyFillable=True)
        record = await story.becomes(record, "COMPLETED")
        assert record["onChainOrderType"] == "FillableOrder"
        assert await story.moved_since(before) == {
            ("user", "WETH"): -ONE,
            ("user", "USDC"): 2_510 * USDC,
            ("agent", "WETH"): ONE,
            ("agent", "USDC"): -2_510 * USDC,
        }
        assert percents(record) == [60, 40]
        assert fills(record) == [(6 * TENTH, 1_530 * USDC), (4 * TENTH, 980 * USDC)]
        assert record["output"]["executedAmount"] == str(2_510 * USDC)
        assert await winners(story, record) == [("ann", str(6 * TENTH)), ("bob", None)]
        shown = [request.orders[0] for request in ann.requests]
        assert [(one.src_amount, one.dest_amount, one.part_min) for one in shown] == [
            (str(ONE), str(2_400 * USDC), str(TENTH)),
            (str(4 * TENTH), str(960 * USDC), str(4 * TENTH // 10)),
        ]
        assert {one.whole and one.whole.src_amount for one in shown} == {str(ONE)}
        await story.heard("bob", record, "lost", "won", "settling", "settled")
        lost = bob.told("lost")[0]
        assert (lost.part_amount, lost.simulated_amount) == (str(4 * TENTH), str(980 * USDC))
        assert (lost.best_part_amount, lost.best_amount) == (str(6 * TENTH), str(1_530 * USDC))


async def test_nobody_is_asked_for_the_rest_before_it_is_known(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The chain is read late: for as long as a second round would take to be there."""
    read = DeltaProjection.changes
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]

        async def read_late(self: DeltaProjection, advance: Advance) -> Any:
            if any(isinstance(row, DeltaFill) for _, row in advance.rows):
                with trio.move_on_after(1):
                    await until(lambda: len(ann.requests) > 1)
            return await read(self, advance)

        monkeypatch.setattr(DeltaProjection, "changes", read_late)
        ann.settles, ann.gives = at_most(6 * TENTH), lambda order: int(order.dest_amount)
        record = await story.submitted(await world.a_delta_order(), partiallyFillable=True)
        await story.becomes(record, "COMPLETED")
        assert [request.orders[0].src_amount for request in ann.requests] == [str(ONE), str(4 * TENTH)]


async def test_two_agents_fill_a_purchase_with_a_fee_sixty_to_forty(world: World, tmp_path: Path) -> None:
    """Each part shares its pro-rata surplus; an agent that computes like the contract promises it exactly."""
    terms = PartnerAndFee(world.partner.address, 50, partner_takes_surplus=True, cap_surplus=True)
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.settles, ann.takes = at_most(1_500 * USDC), of(1_500 * USDC, 58 * ONE // 100)
        bob.settles, bob.takes = at_most(1_000 * USDC), of(1_000 * USDC, 39 * ONE // 100)
        order = await world.a_delta_order(
            kind=1,
            src_amount=11 * TENTH,
            dest_amount=2_500 * USDC,
            expected_amount=ONE + 1,
            partner_and_fee=pack_partner_and_fee(terms),
        )
        before = await story.balances()
        record = await story.submitted(order, partiallyFillable=True)
        record = await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "USDC"] == 2_500 * USDC
        assert percents(record) == [60, 40]
        assert [received for _, received in fills(record)] == [1_500 * USDC, 1_000 * USDC]
        assert -moved["user", "WETH"] == sum(spent for spent, _ in fills(record)) < ONE
        assert record["input"]["executedAmount"] == str(-moved["user", "WETH"])
        assert not ann.told("simulationMismatch")
        assert not bob.told("simulationMismatch")


async def test_a_sale_is_filled_to_the_last_unit_each_part_for_its_part_of_the_limit(
    world: World, tmp_path: Path
) -> None:
    """7 wei for 10 units: parts of 3, 3 and 1 are worth 4.3, 4.3 and 1.4; a bid of one unit less settles no
    part.
    """
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.settles = bob.settles = at_most(3)
        ann.gives = lambda order: int(order.dest_amount) - 1
        order = await world.a_delta_order(src_amount=7, dest_amount=10, expected_amount=10)
        record = await story.submitted(order, partiallyFillable=True)
        await story.heard("ann", record, "belowLimit")
        assert "expected at least 5, got 4" in ann.told("belowLimit")[0].detail
        assert (await story.record(record["id"]))["transactions"] == []
        bob.gives = lambda order: int(order.dest_amount)
        record = await story.becomes(record, "COMPLETED")
        assert fills(record) == [(3, 5), (3, 5), (1, 2)]
        assert percents(record) == [42.857142, 42.857143, 14.285715]
        assert await world.balance(world.usdc, world.user) == 12


async def test_an_order_that_is_not_to_be_split_is_not(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.settles, ann.gives = at_most(6 * TENTH), of(6 * TENTH, 1_600 * USDC)
        record = await story.submitted(await world.a_delta_order())
        await story.heard("ann", record, "malformed")
        assert f"parts[0].amount: expected all that is asked for, {ONE}" in ann.told("malformed")[0].detail
        shown = ann.requests[0].orders[0]
        assert (shown.part_min, shown.whole) == ("", None)
        bob.gives = lambda _: 2_400 * USDC
        record = await story.becomes(record, "COMPLETED")
        assert fills(record) == [(ONE, 2_400 * USDC)]


@pytest.mark.parametrize("amount", [TENTH - 1, 9 * TENTH + 1, ONE - 1, 0, ONE + 1])
async def test_a_part_is_a_tenth_at_least_and_leaves_as_much(
    world: World, tmp_path: Path, amount: int
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.settles = lambda _: amount
        ann.gives = lambda _: 3_000 * USDC
        record = await story.submitted(await world.a_delta_order(), partiallyFillable=True)
        await story.heard("ann", record, "malformed")
        detail = ann.told("malformed")[0].detail
        assert f"parts[0].amount: expected {ONE}, or from {TENTH} to {9 * TENTH}, got" in detail
        assert (await story.record(record["id"]))["transactions"] == []


async def test_the_smallest_and_the_largest_part_are_filled(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", delta="rest_s = 0.1\nrest_s_max = 0.1") as story:
        ann = story.agents["ann"]
        sizes = {ONE: 9 * TENTH, TENTH: TENTH // 10, 9 * TENTH // 10: 9 * TENTH // 10}
        ann.settles = lambda order: sizes[fixed(order)]
        ann.gives = lambda order: int(order.dest_amount)
        record = await story.submitted(await world.a_delta_order(), partiallyFillable=True)
        record = await story.becomes(record, "COMPLETED")
        assert percents(record) == [90, 1, 9]
        assert [spent for spent, _ in fills(record)] == list(sizes.values())


async def test_the_bid_with_more_surplus_wins_and_of_as_much_the_larger_part(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob", "cid") as story:
        ann, bob, cid = story.agents["ann"], story.agents["bob"], story.agents["cid"]
        ann.gives = lambda order: int(order.dest_amount) + 5
        bob.settles = at_most(TENTH)
        bob.gives = lambda order: int(order.dest_amount) + 200 * USDC
        cid.settles = at_most(5 * TENTH)
        cid.gives = of(5 * TENTH, 1_400 * USDC)
        record = await story.submitted(await world.a_delta_order(), partiallyFillable=True)
        record = await story.with_fills(record, 1)
        first = (await story.explain(record))["lastRounds"][-1]["order"]
        assert [bid["agent"] for bid in first["bids"]] == ["cid", "bob", "ann"]
        assert [int(bid["surplusAmount"]) > 190 * USDC for bid in first["bids"]] == [True, True, False]
        assert first["runnersUp"] == ["bob", "ann"]
        assert first["partMin"] == str(TENTH)
        assert fills(record)[0] == (5 * TENTH, 1_400 * USDC)
        bob.gives = lambda _: None
        await story.becomes(record, "COMPLETED")


async def test_a_runner_up_for_all_settles_where_a_part_was_not_delivered(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.settles, ann.gives = at_most(5 * TENTH), of(5 * TENTH, 1_500 * USDC)
        bob.gives = lambda order: int(order.dest_amount) + 50 * USDC
        stock = ann.contract = await create(world.chain, world.owner, "DevAgent", salt32=b"\x01" * 32)
        await world.mint(world.usdc, stock, 100_000 * USDC)
        await story.hold()
        record = await story.submitted(await world.a_delta_order(), partiallyFillable=True)
        await story.under_way(record)
        words = address_word(world.usdc) + address_word(world.stranger.address)
        await story.first_in_block(world.stranger, stock, DELIVER + words + uint_word(100_000 * USDC))
        await story.mine()
        record = await story.becomes(record, "COMPLETED")
        assert fills(record) == [(ONE, 2_450 * USDC)]
        await story.heard("ann", record, "won", "settling", "reverted")
        await story.heard("bob", record, "lost", "settling", "settled")


async def test_what_is_left_can_be_cancelled(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.settles, ann.gives = at_most(6 * TENTH), of(6 * TENTH, 1_530 * USDC)
        record = await story.submitted(await world.a_delta_order(), partiallyFillable=True)
        record = await story.with_fills(record, 1)
        assert (record["status"], percents(record)) == ("ACTIVE", [60])
        assert (await story.cancel(record))[0] == 200
        record = await story.becomes(record, "CANCELLED")
        assert (fills(record), percents(record)) == ([(6 * TENTH, 1_530 * USDC)], [60])


async def test_what_is_left_is_filled_after_a_restart(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        ann = story.agents["ann"]
        ann.settles, ann.gives = at_most(6 * TENTH), of(6 * TENTH, 1_530 * USDC)
        record = await story.submitted(await world.a_delta_order(), partiallyFillable=True)
        await story.with_fills(record, 1)
        market = story.market
    async with a_delta_story(world, tmp_path, "ann", market=market) as story:
        story.agents["ann"].gives = of(4 * TENTH, 1_000 * USDC)
        record = await story.becomes(record, "COMPLETED")
        assert fills(record) == [(6 * TENTH, 1_530 * USDC), (4 * TENTH, 1_000 * USDC)]


async def test_a_part_that_the_chain_takes_back_is_settled_once_in_the_end(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        ann, bob = story.agents["ann"], story.agents["bob"]
        ann.settles, ann.gives = at_most(6 * TENTH), of(6 * TENTH, 1_530 * USDC)
        before = await story.balances()
        record = await story.submitted(await world.a_delta_order(), partiallyFillable=True)
        await story.with_fills(record, 1)
        await world.chain.set_automine(on=False)
        await world.chain.reorganise(1)
        live = story.web.app.delta.orders.get(story.hash_of(record))
        assert live is not None
        await until(lambda: live.filled == 0)
        bob.gives = lambda order: int(order.dest_amount) + USDC
        await story.mine()
        record = await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "WETH"] == -ONE == -sum(spent for spent, _ in fills(record))
        assert sum(percents(record)) == 100


PRICES = {"WETH/USDC": {"bids": [["2620", "0.5"], ["2500", "50"]], "asks": [["2630", "50"]]}}


async def test_makers_fill_what_they_can_of_a_limit_order_and_the_rest_rests(
    world: World, tmp_path: Path
) -> None:
    """Half is bid for at 2,620, the rest at 2,500: the built-in agent fills as much as 2,600 is kept for."""
    async with a_resting_story(world, tmp_path, PRICES) as story:
        order = await world.a_delta_order(dest_amount=2_600 * USDC, expected_amount=2_600 * USDC)
        before = await story.story.balances()
        await story.story.hold()
        record = await story.submitted(order, partiallyFillable=True)
        await story.story.under_way(record)
        await story.quotes({"WETH/USDC": prices("2500", "2630")})
        await story.quoted("WETH", "USDC", "2500")
        await story.story.mine()
        record = await story.story.with_fills(record, 1)
        (spent, received) = fills(record)[0]
        assert 55 * ONE // 100 < spent <= 60 * ONE // 100
        assert received * ONE >= 2_600 * USDC * spent
        assert f"it sells {ONE - spent} for at least" in await story.rests(record)
        assert len((await story.story.record(record["id"]))["transactions"]) == 1
        await story.quotes({"WETH/USDC": prices("2610", "2620")})
        record = await story.becomes(record, "COMPLETED")
        assert sum(percents(record)) == 100
        moved = await story.story.moved_since(before)
        assert moved["user", "WETH"] == -ONE
        assert moved["user", "USDC"] >= 2_600 * USDC
