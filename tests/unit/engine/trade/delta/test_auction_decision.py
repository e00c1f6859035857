"""Winners of a round: examples by hand, order by order and crossing by crossing."""

from cambist.codecs.messages.agent_messages import Notice, NoticeEntry
from cambist.engine.trade.delta.auction.auction import Decision, decide, notices
from cambist.engine.trade.delta.bids.bids import Rejection, RoundOrder
from cambist.engine.trade.delta.bids.simulation import Proven
from support.delta.bidding import ONE, USDC_ONE, a_proven, a_round_order, hash_of

SALE, OTHER, THIRD = a_round_order(1), a_round_order(3), a_round_order(7)
PURCHASE = a_round_order(2, buys=True)
FAIR = 2_500 * USDC_ONE
GWEI = 10**9


def usdc_of_wei(wei: int) -> int:
    """Worth of wei at 2,500 USDC a WETH, raw units."""
    return wei * 2_500 // 10**12


def decided(*bids: Proven, orders: tuple[RoundOrder, ...] = (SALE, PURCHASE, OTHER, THIRD)) -> Decision:
    return decide(orders, bids, 0, {})


def winner(decision: Decision, asked: RoundOrder) -> str | None:
    found = decision.verdicts[asked.order_hash].winner
    return None if found is None else found.candidate.agent


def test_a_round_without_a_bid_has_no_winner() -> None:
    decision = decided()
    assert decision.winners == ()
    assert winner(decision, SALE) is None
    assert decision.verdicts[SALE.order_hash].best_amount is None


def test_the_most_received_wins_a_sale_and_the_least_spent_a_purchase() -> None:
    decision = decided(
        a_proven("alpha", (SALE, FAIR)),
        a_proven("beta", (SALE, FAIR + 1), arrival=1),
        a_proven("gamma", (PURCHASE, ONE), arrival=2),
        a_proven("delta", (PURCHASE, ONE - 1), arrival=3),
    )
    assert (winner(decision, SALE), winner(decision, PURCHASE)) == ("beta", "delta")
    assert decision.verdicts[SALE.order_hash].best_amount == FAIR + 1
    assert decision.verdicts[PURCHASE.order_hash].best_amount == ONE - 1


def test_what_is_promised_counts_and_not_what_is_simulated_beyond_it() -> None:
    decision = decided(
        a_proven("modest", (SALE, FAIR), better=[2]),
        a_proven("bound", (SALE, FAIR + 1), arrival=1),
        a_proven("dear", (PURCHASE, ONE), better=[2], arrival=2),
        a_proven("cheap", (PURCHASE, ONE - 1), arrival=3),
    )
    assert (winner(decision, SALE), winner(decision, PURCHASE)) == ("bound", "cheap")
    assert decision.verdicts[SALE.order_hash].best_amount == FAIR + 1


def test_gas_counts_in_the_token_that_pays_and_not_where_it_has_no_price() -> None:
    lean = a_proven("lean", (SALE, FAIR), gas=200_000)
    fat = a_proven("fat", (SALE, FAIR + 1), gas=300_000, arrival=1)
    priced = decide([SALE], [lean, fat], 20 * GWEI, {SALE.order_hash: usdc_of_wei})
    assert winner(priced, SALE) == "lean"
    (first, second) = priced.verdicts[SALE.order_hash].bids
    assert (first.net, second.net) == (FAIR - 10 * USDC_ONE, FAIR + 1 - 15 * USDC_ONE)
    assert winner(decide([SALE], [lean, fat], 20 * GWEI, {}), SALE) == "fat"


def test_gas_adds_to_what_a_purchase_costs() -> None:
    lean = a_proven("lean", (PURCHASE, ONE + 10), gas=100)
    fat = a_proven("fat", (PURCHASE, ONE), gas=200, arrival=1)
    decision = decide([PURCHASE], [fat, lean], 1, {PURCHASE.order_hash: lambda wei: wei})
    assert winner(decision, PURCHASE) == "lean"
    assert [bid.net for bid in decision.verdicts[PURCHASE.order_hash].bids] == [ONE + 110, ONE + 200]


def test_ties_go_to_the_answer_then_the_name_then_the_place() -> None:
    late = a_proven("alpha", (SALE, FAIR), arrival=5)
    assert winner(decided(a_proven("beta", (SALE, FAIR), arrival=4), late), SALE) == "beta"
    assert winner(decided(a_proven("beta", (SALE, FAIR), better=[1], arrival=5), late), SALE) == "alpha"
    second = a_proven("alpha", (SALE, FAIR), arrival=5, place=1)
    won = decided(second, late).verdicts[SALE.order_hash].winner
    assert won is late


def test_two_runners_up_follow_in_their_order_with_other_calldata() -> None:
    bids = [a_proven(f"agent-{number}", (SALE, FAIR - number), arrival=number) for number in range(5)]
    again = a_proven("agent-1", (SALE, FAIR - 1), arrival=1, place=1, calldata=bids[1].candidate.calldata)
    verdict = decided(*bids, again).verdicts[SALE.order_hash]
    assert [one.candidate.agent for one in (verdict.winner, *verdict.runners_up) if one] == [
        "agent-0",
        "agent-1",
        "agent-2",
    ]
    own = a_proven("agent-0", (SALE, FAIR - 1), place=1)
    assert decided(bids[0], own).verdicts[SALE.order_hash].runners_up == (own,)


# --- Crossings ----------------------------------------------------------------------------------------


def test_a_crossing_wins_where_every_order_is_at_least_as_well_off() -> None:
    alone = a_proven("alpha", (SALE, FAIR))
    crossing = a_proven("beta", (SALE, FAIR), (PURCHASE, ONE), arrival=1)
    decision = decided(alone, crossing)
    assert decision.winners == (crossing,)
    verdict = decision.verdicts[SALE.order_hash]
    assert verdict.winner is crossing
    assert verdict.runners_up == (alone,)
    assert [bid.notice for bid in verdict.bids] == [Notice.WON, Notice.LOST]


def test_a_crossing_loses_where_one_order_has_a_better_bid_alone() -> None:
    alone = a_proven("alpha", (SALE, FAIR))
    crossing = a_proven("beta", (SALE, FAIR - 1), (PURCHASE, ONE // 2), arrival=1)
    decision = decided(alone, crossing)
    assert decision.winners == (alone,)
    assert winner(decision, PURCHASE) is None, "half of a crossing is no bid"
    (lost,) = decision.verdicts[PURCHASE.order_hash].bids
    assert (lost.notice, lost.detail) == (Notice.LOST, f"0x{hash_of(1).hex()} has a better bid alone")


def test_a_crossing_that_gains_nobody_leaves_the_orders_apart() -> None:
    sale, purchase = a_proven("alpha", (SALE, FAIR)), a_proven("gamma", (PURCHASE, ONE), arrival=2)
    crossing = a_proven("beta", (SALE, FAIR), (PURCHASE, ONE), arrival=1)
    decision = decided(sale, purchase, crossing)
    assert set(decision.winners) == {sale, purchase}
    assert decision.verdicts[SALE.order_hash].bids[1].detail == "no order of it gains"


def test_each_order_of_a_crossing_bears_its_share_of_the_gas() -> None:
    alone = a_proven("alpha", (SALE, FAIR), gas=100)
    crossing = a_proven("beta", (SALE, FAIR + 20), (OTHER, FAIR), gas=121, arrival=1)
    costs = {SALE.order_hash: lambda wei: wei}
    assert winner(decide([SALE, OTHER], [alone, crossing], 1, costs), SALE) == "alpha"
    cheaper = a_proven("beta", (SALE, FAIR + 20), (OTHER, FAIR), gas=120, arrival=1)
    assert winner(decide([SALE, OTHER], [alone, cheaper], 1, costs), SALE) == "beta"


def test_of_crossings_that_share_an_order_the_one_that_gains_more_wins() -> None:
    small = a_proven("alpha", (SALE, FAIR), (OTHER, FAIR))
    large = a_proven("beta", (OTHER, FAIR + 1), (THIRD, FAIR), arrival=1)
    decision = decided(small, large)
    assert decision.winners == (large,)
    assert winner(decision, SALE) is None
    (lost,) = decision.verdicts[SALE.order_hash].bids
    assert lost.detail == "a crossing that gains more settles an order of it"
    rest = a_proven("gamma", (SALE, FAIR - 5), arrival=2)
    assert winner(decided(small, large, rest), SALE) == "gamma"


def test_a_gain_is_measured_against_what_the_order_would_have_alone() -> None:
    """Here two crossed orders are worth more than a greater part of a third order."""
    alone = [a_proven("solo", (one, FAIR)) for one in (SALE, OTHER, THIRD)]
    first = a_proven("alpha", (SALE, FAIR + FAIR // 100), (OTHER, FAIR + FAIR // 100), arrival=1)
    second = a_proven("beta", (OTHER, FAIR + FAIR // 60), (THIRD, FAIR), arrival=2)
    decision = decided(*alone, first, second)
    assert winner(decision, SALE) == winner(decision, OTHER) == "alpha"
    assert winner(decision, THIRD) == "solo"


# --- Notices to agents --------------------------------------------------------------------------------


def test_agents_are_told_of_their_own_bids_with_the_best_amount() -> None:
    decision = decided(a_proven("alpha", (SALE, FAIR)), a_proven("beta", (SALE, FAIR + 5), arrival=1))
    rejections = [
        Rejection("gamma", 1_000, Notice.LATE, "no answer"),
        Rejection(
            "delta",
            5,
            Notice.SIMULATION_MISMATCH,
            "bids[0]: worse",
            {SALE.order_hash: FAIR + 9},
            {SALE.order_hash: 7},
        ),
    ]
    told: dict[str, list[NoticeEntry]] = {}
    for agent, entry in notices(decision, rejections):
        told.setdefault(agent, []).append(entry)
    assert {
        agent: [(one.notice, one.simulated_amount, one.best_amount) for one in entries]
        for agent, entries in told.items()
    } == {
        "alpha": [(Notice.LOST, str(FAIR), str(FAIR + 5))],
        "beta": [(Notice.WON, str(FAIR + 5), str(FAIR + 5))],
        "gamma": [(Notice.LATE, None, None)],
        "delta": [(Notice.SIMULATION_MISMATCH, "7", str(FAIR + 5))],
    }
    assert told["gamma"][0].order_hash == ""
    assert told["alpha"][0].order_hash == "0x" + SALE.order_hash.hex()
    assert told["delta"][0].net_amount is None


def test_a_bid_that_loses_by_its_gas_shows_both_net_amounts_and_its_gas() -> None:
    dear = a_proven("dear", (SALE, FAIR), gas=112)
    cheap = a_proven("cheap", (SALE, FAIR), gas=100, arrival=1)
    decision = decide([SALE], [dear, cheap], 1, {SALE.order_hash: lambda wei: wei})
    told = dict(notices(decision, ()))
    assert {
        agent: (one.notice, one.best_amount, one.net_amount, one.best_net_amount, one.gas)
        for agent, one in told.items()
    } == {
        "cheap": (Notice.WON, str(FAIR), str(FAIR - 100), str(FAIR - 100), 100),
        "dear": (Notice.LOST, str(FAIR), str(FAIR - 112), str(FAIR - 100), 112),
    }
