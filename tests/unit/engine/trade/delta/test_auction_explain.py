"""Records of rounds, and the reasons that an owner reads for an unfilled order."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec import UNSET
from msgspec.structs import replace

from cambist.codecs.iso_time import iso_ms
from cambist.codecs.messages.agent_messages import Notice
from cambist.codecs.messages.auction_messages import AuctionBid, OrderRound
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, Side
from cambist.config.limits import VENUE_AUCTION_BIDS_MAX, VENUE_AUCTION_DETAIL_CHARS_MAX
from cambist.crypto.addresses import to_checksum
from cambist.engine.store.rows import BridgeEnd, BridgeEndState, amount32
from cambist.engine.trade.delta import explain
from cambist.engine.trade.delta.auction import auction_record
from cambist.engine.trade.delta.auction.auction import decide, notices
from cambist.engine.trade.delta.auction.auction_record import Rejections, RoundTimes, round_of, round_rows
from cambist.engine.trade.delta.bids.agent_rest import AgentReport
from cambist.engine.trade.delta.bids.bids import Rejection, RoundOrder
from cambist.engine.trade.delta.bids.simulation import Proven
from cambist.engine.trade.delta.bridge_desk import TransferWait
from cambist.engine.trade.delta.explain import OrderFacts, explained
from cambist.engine.trade.delta.orders.funds import Fund, MissingFund
from cambist.engine.trade.delta.orders.live_orders import LiveOrder
from cambist.engine.trade.delta.orders.transfers import OrderTransfer
from cambist.engine.trade.delta.resting.resting_price import RestingFacts
from cambist.engine.trade.orders.order_units import order_id
from support.delta.bidding import ONE, USDC_ONE, a_proven, a_round_order, a_twap, hash_of
from support.store.stores import NOW_MS, a_transfer, an_end
from support.store.stores import a_delta_order as a_row

SALE, PURCHASE = a_round_order(1), a_round_order(2, buys=True)
FAIR = 2_500 * USDC_ONE
TIMES = RoundTimes(77, 1, NOW_MS, NOW_MS + 1_000)
WELL = AgentReport(9, 3, {}, 0, 0)
WRONG = (Notice.REVERTED, Notice.SIMULATION_MISMATCH, Notice.MALFORMED, Notice.LATE)


def a_round(
    *found: Proven | Rejection, asked: RoundOrder = SALE, others: tuple[RoundOrder, ...] = ()
) -> OrderRound:
    bids = [one for one in found if isinstance(one, Proven)]
    rejections = [one for one in found if isinstance(one, Rejection)]
    verdict = decide((asked, *others), bids, 0, {}).verdicts[asked.order_hash]
    (row,) = round_rows(TIMES, [verdict], Rejections(rejections))
    return round_of(row)


def refused(
    notice: Notice, promised: int | None = FAIR, detail: str = "why", agent: str = "beta"
) -> Rejection:
    return Rejection(agent, 5, notice, detail, {SALE.order_hash: promised})


def live(asked: RoundOrder = SALE, **changed: Any) -> LiveOrder:
    found = LiveOrder(a_row(), asked.order, asked.document, asked.terms)
    for name, value in changed.items():
        setattr(found, name, value)
    return found


def codes(**facts: Any) -> dict[str, str]:
    """Code -> text, in order."""
    row = a_row(**facts.pop("row", {}))
    known: dict[str, Any] = {
        "live": live(),
        "rounds": (),
        "last_round_ms": 0,
        "agents": {"alpha": WELL},
        "now_ms": NOW_MS,
    }
    told = explained(OrderFacts(row, **(known | facts)))
    assert told.order_id == str(order_id(row.order_hash))
    assert told.status == row.status
    for reason in told.reasons:
        rest = reason.text
        for amount in () if reason.amounts is UNSET else reason.amounts:
            _, found, rest = rest.partition(amount.amount)
            assert found, reason
    return {reason.code: reason.text for reason in told.reasons}


def amounts(**facts: Any) -> list[tuple[str, str]]:
    """(amount, token) of the only reason, in the order of its text."""
    told = explained(OrderFacts(a_row(), live(), (), 0, {"alpha": WELL}, NOW_MS, **facts))
    (reason,) = told.reasons
    assert reason.amounts is not UNSET
    return [(one.amount, one.token) for one in reason.amounts]


# --- Records ------------------------------------------------------------------------------------------


def test_a_record_names_every_bid_the_winner_first_and_what_was_refused_last() -> None:
    kept = a_round(
        refused(Notice.BELOW_LIMIT, 5),
        a_proven("gamma", (SALE, FAIR - 1), arrival=2),
        a_proven("alpha", (SALE, FAIR), better=[3], arrival=1, gas=12),
        Rejection("delta", 1_000, Notice.LATE, "no answer"),
    )
    assert (kept.auction_id, kept.opened_at, kept.closed_at) == (
        77,
        "2023-11-14T22:13:20.000Z",
        "2023-11-14T22:13:21.000Z",
    )
    order = kept.order
    assert (order.winner, order.runners_up) == ("alpha", ("gamma",))
    assert (order.order_hash, order.order_id) == (f"0x{hash_of(1).hex()}", str(order_id(hash_of(1))))
    assert (order.src_amount, order.dest_amount) == (str(ONE), str(2_400 * USDC_ONE))
    assert [(bid.agent, bid.notice, bid.promised_amount) for bid in order.bids] == [
        ("alpha", Notice.WON, str(FAIR)),
        ("gamma", Notice.LOST, str(FAIR - 1)),
        ("beta", Notice.BELOW_LIMIT, "5"),
        ("delta", Notice.LATE, None),
    ]
    assert order.bids[0] == AuctionBid(
        agent="alpha",
        notice=Notice.WON,
        promised_amount=str(FAIR),
        simulated_amount=str(FAIR + 3),
        net_amount=str(FAIR),
        gas=12,
        arrival_ms=10,
        crossed_with=(),
        detail="",
        surplus_amount=str(100 * USDC_ONE),
    )


def test_a_crossing_names_the_other_orders() -> None:
    kept = a_round(a_proven("alpha", (SALE, FAIR), (PURCHASE, ONE)), others=(PURCHASE,))
    assert kept.order.winner == "alpha"
    assert kept.order.bids[0].crossed_with == (f"0x{hash_of(2).hex()}",)


def test_an_agent_that_gave_no_answer_stands_with_the_orders_that_admit_it() -> None:
    shunned = a_round_order(6, exclude_agents=("delta",))
    late = Rejection("delta", 1_000, Notice.LATE, "no answer")
    assert [bid.agent for bid in a_round(late, others=(shunned,)).order.bids] == ["delta"]
    assert a_round(late, asked=shunned, others=(SALE,)).order.bids == ()


def test_a_refused_bid_stands_with_its_own_orders_alone() -> None:
    found = refused(Notice.MALFORMED)
    assert [bid.agent for bid in a_round(found, others=(PURCHASE,)).order.bids] == ["beta"]
    assert a_round(found, asked=PURCHASE, others=(SALE,)).order.bids == ()


def test_a_record_is_bounded_whatever_is_bid(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []

    def a_told_bid(**members: Any) -> AuctionBid:
        made.append(members["agent"])
        return AuctionBid(**members)

    monkeypatch.setattr(auction_record, "AuctionBid", a_told_bid)
    bids = [a_proven(f"agent-{number}", (SALE, FAIR + number)) for number in range(200)]
    order = a_round(*bids, refused(Notice.MALFORMED)).order
    assert len(made) == VENUE_AUCTION_BIDS_MAX, "no more are made than are kept"
    assert len(order.bids) == VENUE_AUCTION_BIDS_MAX
    assert order.bids[0].agent == order.winner == "agent-199"
    assert order.bids_left_out == 201 - VENUE_AUCTION_BIDS_MAX
    (first, *_) = a_round(*[refused(Notice.MALFORMED, agent=f"agent-{at}") for at in range(70)]).order.bids
    assert first.agent == "agent-0"


def test_what_is_wrong_with_a_bid_is_cut_wherever_it_is_told() -> None:
    long = refused(Notice.MALFORMED, detail="x" * 5_000)
    (bid,) = a_round(long).order.bids
    ((_, notice),) = notices(decide((SALE,), (), 0, {}), [long])
    for told in (bid, notice):
        assert told.detail == "x" * VENUE_AUCTION_DETAIL_CHARS_MAX


# --- Reasons ------------------------------------------------------------------------------------------


def test_a_filled_order_needs_no_reason() -> None:
    assert codes(row={"status": OrderStatus.COMPLETED}) == {}


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (OrderStatus.AWAITING_SIGNATURE, "awaitingSignature"),
        (OrderStatus.SUSPENDED, "suspended"),
        (OrderStatus.CANCELLING, "cancelling"),
        (OrderStatus.CANCELLED, "cancelled"),
        (OrderStatus.FAILED, "failed"),
        (OrderStatus.BRIDGING, "bridging"),
        (OrderStatus.REFUNDING, "refunding"),
        (OrderStatus.REFUNDED, "refunded"),
    ],
)
def test_a_state_that_says_it_all(status: OrderStatus, code: str) -> None:
    assert list(codes(row={"status": status}, rounds=(a_round(),))) == [code]


@pytest.mark.parametrize(
    ("kind", "late_ms", "code"),
    [
        (OnChainOrderType.ORDER, 0, "expired"),
        (OnChainOrderType.ORDER, -1, "gaveWay"),
        (OnChainOrderType.TWAP_ORDER, -1, "expired"),
    ],
    ids=["at its deadline", "before", "a TWAP whose slices did not fit any more"],
)
def test_an_order_that_expired_before_its_deadline_gave_its_place_to_another(
    kind: OnChainOrderType, late_ms: int, code: str
) -> None:
    until_s = NOW_MS // 1_000 + 600
    row = {
        "status": OrderStatus.EXPIRED,
        "kind": kind,
        "expires_s": until_s,
        "updated_ms": until_s * 1_000 + late_ms,
    }
    assert list(codes(row=row)) == [code]


def test_a_settlement_under_way_is_the_only_reason() -> None:
    assert list(codes(live=live(settling="key"), rounds=(a_round(),))) == ["settling"]


def test_before_its_first_round() -> None:
    assert list(codes()) == ["notAuctioned"]


def test_a_round_in_which_nobody_bid_is_told_with_its_time() -> None:
    told = codes(last_round_ms=NOW_MS + 5_000)
    assert told == {
        "noBids": "in the last round, closed at 2023-11-14T22:13:25.000Z, no agent bid for the order"
    }
    kept = a_round()
    assert codes(rounds=(kept,)) == {
        "noBids": f"in the last round, closed at {kept.closed_at}, no agent bid for the order"
    }
    later = codes(rounds=(kept,), last_round_ms=NOW_MS + 5_000)
    assert later == told, "the rounds since were like that one"
    same = codes(last_round_ms=NOW_MS + 1_000, rounds=(a_round(refused(Notice.REVERTED)),))
    assert list(same) == ["reverted"]


def test_a_chain_without_agents_and_an_order_that_admits_none() -> None:
    assert codes(agents={}) == {"noAgents": "the chain has no agent"}
    chosen = live(a_round_order(1, include_agents=("beta",)))
    assert codes(live=chosen) == {"noAgents": "the chain has no agent that the order admits"}


def test_agents_that_all_rest() -> None:
    resting = {
        "alpha": AgentReport(0, 0, {"reverted": 1}, 1, NOW_MS + 5_000),
        "beta": AgentReport(0, 0, {"reverted": 1}, 1, NOW_MS + 2_000),
    }
    assert codes(agents=resting) == {
        "agentsRest": "all agents rest, the first until 2023-11-14T22:13:22.000Z"
    }
    assert list(codes(agents=resting | {"gamma": WELL})) == ["notAuctioned"]
    late = AgentReport(0, 0, {"late": 5}, 0, NOW_MS + 5_000, is_slow=True)
    assert codes(agents=resting | {"gamma": late}) == {
        "agentsLate": "gamma answered late or not at all, and is asked about one order at a time "
        "until it answers"
    }


def test_a_slice_that_is_not_due() -> None:
    slices = a_round_order(1, a_twap())
    waiting = live(slices, filled=1, last_fill_s=NOW_MS // 1_000 - 20)
    assert codes(live=waiting) == {
        "sliceNotDue": "1 of 3 slices are settled, the next slice is due at 2023-11-14T22:14:00.000Z"
    }
    assert list(codes(live=waiting, now_ms=NOW_MS + 3_600_000)) == ["sliceNotDue"], "by the chain's clock"
    assert list(codes(live=waiting, chain_s=NOW_MS // 1_000 + 39)) == ["sliceNotDue"]
    assert list(codes(live=waiting, chain_s=NOW_MS // 1_000 + 40)) == ["notAuctioned"]


def test_settlements_that_failed_are_counted_beside_the_last_round() -> None:
    told = codes(row={"failures": 2}, rounds=(a_round(a_proven("alpha", (SALE, FAIR))),))
    assert told == {"settlementsFailed": "2 settlements of the order failed; the venue auctions it again"}


def test_the_best_promise_stands_beside_the_limit() -> None:
    kept = a_round(
        refused(Notice.BELOW_LIMIT, 5), refused(Notice.BELOW_LIMIT, 9), refused(Notice.BELOW_LIMIT, 7)
    )
    assert codes(rounds=(kept,)) == {
        "belowLimit": "no bid meets the limit, at least 2400000000; the best promised 9"
    }
    above = Rejection("beta", 5, Notice.BELOW_LIMIT, "why", {PURCHASE.order_hash: 12 * ONE // 10})
    told = codes(rounds=(a_round(above, asked=PURCHASE),))["belowLimit"]
    assert told == f"no bid meets the limit, at most {11 * ONE // 10}; the best promised {12 * ONE // 10}"


def test_what_bids_gave_in_the_simulation_counts_in_place_of_their_promises() -> None:
    limit, words = 2_400_000_000, "bids[0]: simulated: BelowMinimum(1, 2)"
    gave = Rejection("beta", 5, Notice.BELOW_LIMIT, words, {SALE.order_hash: limit}, {SALE.order_hash: 8})
    told = codes(rounds=(a_round(refused(Notice.BELOW_LIMIT, 7), gave),))["belowLimit"]
    assert told == f"no bid meets the limit, at least {limit}; the best gave 8 in the simulation"
    told = codes(rounds=(a_round(refused(Notice.BELOW_LIMIT, 9), gave),))["belowLimit"]
    assert told == f"no bid meets the limit, at least {limit}; the best promised 9"
    kept = Rejection("beta", 5, Notice.BELOW_LIMIT, words, {SALE.order_hash: limit})
    told = codes(rounds=(a_round(kept),))["belowLimit"]
    assert told == f"no bid meets the limit, at least {limit}; beta: {words}"


@pytest.mark.parametrize(
    ("notice", "text"),
    [
        (Notice.REVERTED, "1 answer would revert in a settlement; beta: why"),
        (Notice.SIMULATION_MISMATCH, "1 answer promised more than the simulation gave; beta: why"),
        (Notice.MALFORMED, "1 answer had invalid bids; beta: why"),
        (Notice.LATE, "beta answered too late or not at all; beta: why"),
    ],
)
def test_what_was_wrong_with_bids(notice: Notice, text: str) -> None:
    assert codes(rounds=(a_round(refused(notice)),)) == {notice.value: text}


def test_several_reasons_come_the_weightiest_first() -> None:
    kept = a_round(
        refused(Notice.LATE), refused(Notice.MALFORMED), refused(Notice.BELOW_LIMIT), refused(Notice.LATE)
    )
    told = codes(row={"failures": 1}, rounds=(kept,))
    assert list(told) == ["settlementsFailed", "belowLimit", "malformed", "late"]
    assert told["late"].startswith("beta answered too late")


def test_an_order_without_its_funds_is_explained_by_what_lacks() -> None:
    lacks = (MissingFund(Fund.BALANCE, 7, 5), MissingFund(Fund.ALLOWANCE, 9, 0))
    for status, first in (("SUSPENDED", "suspended"), ("AWAITING_SIGNATURE", "awaitingSignature")):
        row: dict[str, Any] = {"status": OrderStatus(status)}
        told = codes(row=row, live=live(row=a_row(**row)), lacks=lacks)
        assert list(told) == [first, "balanceLacks", "allowanceLacks"]
        assert told["balanceLacks"].startswith("the owner has 5 of ")
    assert list(codes(row={"status": OrderStatus.SUSPENDED}, live=None)) == ["suspended"]
    assert "balanceLacks" not in codes(lacks=lacks), "it is open: it was read before that was so"


def test_an_order_that_another_process_runs_is_explained_by_its_rounds() -> None:
    assert list(codes(live=None, agents={"alpha": WELL}, rounds=(a_round(refused(Notice.LATE)),))) == ["late"]


def test_what_is_told_is_plain_json() -> None:
    told = explained(OrderFacts(a_row(), None, (a_round(refused(Notice.LATE)),), 0, {}, NOW_MS))
    shown = msgspec.json.decode(msgspec.json.encode(told))
    assert list(shown) == ["orderId", "orderHash", "status", "reasons", "lastRounds"]
    assert shown["lastRounds"][0]["order"]["bids"][0]["notice"] == "late"


def test_an_order_that_rests_says_what_the_books_give_for_it() -> None:
    sale = codes(resting=RestingFacts(Side.SELL, 5, 70, 60))
    assert list(sale) == ["resting"]
    assert "it sells 5 for at least 70, and makers' books give 60 after gas and fee now" in sale["resting"]
    purchase = codes(resting=RestingFacts(Side.BUY, 5, 70, 80))["resting"]
    assert "it buys 5 for at most 70, and makers' books want 80 after gas and fee now" in purchase
    assert "do not fill it now" in codes(resting=RestingFacts(Side.SELL, 5, 70, None))["resting"]


def test_the_amounts_of_a_reason_have_their_tokens() -> None:
    order = live().order
    src, dest = to_checksum(order.src_token), to_checksum(order.dest_token)
    sale = amounts(resting=RestingFacts(Side.SELL, 5, 70, 60))
    assert sale == [("5", src), ("70", dest), ("60", dest)]
    purchase = amounts(resting=RestingFacts(Side.BUY, 5, 70, None))
    assert purchase == [("5", dest), ("70", src)]


def test_a_transfer_that_waits_says_for_what() -> None:
    sent = a_transfer(a_row(), amount=amount32(70), output=amount32(60))
    under_way = OrderTransfer(sent)
    failed = replace(under_way, end=an_end(sent, is_delivered=False))
    bridging = {"row": {"status": OrderStatus.BRIDGING}}
    told = codes(
        **bridging, waits=(TransferWait(under_way, is_late=False, hint="it waits for its attestation"),)
    )
    assert list(told) == ["bridging", "transferUnderWay"]
    words = "60 are going to chain 10 by across since "
    assert told["transferUnderWay"].startswith(words)
    assert told["transferUnderWay"].endswith("; it waits for its attestation")
    late = codes(**bridging, waits=(TransferWait(under_way, is_late=True, hint=""),))["transferLate"]
    assert late.startswith("60 are late to chain 10 by across")
    refunding = {"row": {"status": OrderStatus.REFUNDING}}
    due = codes(**refunding, waits=(TransferWait(failed, is_late=False, hint=""),))
    assert due["refundDue"].startswith("a refund of 70 is due: across did not deliver by ")
    assert "refundLate" in codes(**refunding, waits=(TransferWait(failed, is_late=True, hint=""),))
    waits = (TransferWait(under_way, is_late=False, hint=""),)
    assert "transferUnderWay" in codes(waits=waits)
    assert list(codes(live=live(settling="key"), waits=waits)) == ["settling", "transferUnderWay"]


@pytest.mark.parametrize("is_late", [False, True])
def test_the_amount_of_a_transfer_is_of_the_chain_where_it_waits(is_late: bool) -> None:
    sent = a_transfer(a_row(), amount=amount32(70), output=amount32(60))
    arrived = an_end(sent, is_delivered=False, state=BridgeEndState.ARRIVED, amount=amount32(59))
    failed = an_end(sent, is_delivered=False)
    there, here = to_checksum(sent.output_token), to_checksum(live().order.dest_token)

    def told(end: BridgeEnd | None, of: LiveOrder | None) -> list[object]:
        waits = (TransferWait(OrderTransfer(sent, end), is_late, ""),)
        (*_, reason) = explained(OrderFacts(a_row(), of, (), 0, {"alpha": WELL}, NOW_MS, waits=waits)).reasons
        for amount in () if reason.amounts is UNSET else reason.amounts:
            assert re.findall(r"\d+", reason.text)[0] == amount.amount, "a client finds it by its place"
        return [] if reason.amounts is UNSET else [msgspec.to_builtins(one) for one in reason.amounts]

    assert told(None, None) == [{"amount": "60", "token": there, "chainId": 10}]
    assert told(arrived, None) == [{"amount": "59", "token": there, "chainId": 10}]
    assert told(failed, live()) == [{"amount": "70", "token": here}]
    assert told(failed, None) == []


@pytest.mark.parametrize(("kind", "code"), [("EXTERNAL_ORDER", "handlerRests"), ("ORDER", "bridgeOnlyRests")])
def test_an_order_of_no_agent_names_its_own_rest_and_no_agent(kind: str, code: str) -> None:
    row = replace(a_row(), kind=OnChainOrderType[kind])
    facts = OrderFacts(row, live(), (), 0, {}, NOW_MS, is_own=True, own_rests_until_ms=NOW_MS + 1_000)
    (reason,) = explained(facts).reasons
    assert reason.code == code
    assert reason.text.endswith(f"until {iso_ms(NOW_MS + 1_000)}")
    (reason,) = explained(replace(facts, own_rests_until_ms=0)).reasons
    assert reason.code == "notAuctioned"


def test_every_code_is_on_the_page_and_no_other() -> None:
    page = (Path(__file__).parents[5] / "docs" / "guides" / "api.md").read_text(encoding="utf-8")
    table = page.split("| Code | |\n", 1)[1].split("\n\n", 1)[0]
    told = [code for line in table.splitlines()[1:] for code in re.findall(r"`(\w+)`", line.split("|")[1])]
    source = Path(explain.__file__).read_text(encoding="utf-8")
    named = set(re.findall(r'[(\[]\(?"([a-z]+(?:[A-Z][a-z]+)*)", f?["_]', source))
    lacks = {f"{fund.value}Lacks" for fund in Fund}
    assert sorted(told) == sorted(named | lacks | {notice.value for notice in WRONG})
