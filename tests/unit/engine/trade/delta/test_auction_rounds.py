"""The rounds of a chain's auctions: their number, their agents, their records and notices."""

from collections.abc import Callable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
import trio

from cambist.codecs.messages.agent_messages import (
    AuctionOrder,
    Notice,
    NoticeEntry,
    SolveRequest,
    decode_solve_request,
)
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import NodeUnavailable, StoreUnavailable
from cambist.config.limits import (
    AGENT_BIDS_MAX,
    AGENT_BIDS_PER_ORDER_MAX,
    AGENT_ORDERS_AT_FIRST,
    AGENT_ORDERS_MAX,
    AGENT_PARTS_MAX,
    STORE_UNIT_BYTES_MAX,
    VENUE_AUCTION_BIDS_MAX,
    VENUE_ROUNDS_OPEN_MAX,
)
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.port import EthCall
from cambist.engine.store.process.frames import prepared
from cambist.engine.store.queries import among, last_rounds
from cambist.engine.store.tables import AUCTION_ROUND, EFFECT
from cambist.engine.store.units import Unit, UnitOutcome, row_of
from cambist.engine.trade.delta.auction import round_asking, simulating
from cambist.engine.trade.delta.auction.auction_record import round_of
from cambist.engine.trade.delta.auction.auctioneer import AuctionIds
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from cambist.engine.trade.delta.bids.agent_client import AgentFailure
from cambist.engine.trade.delta.bids.agent_rest import SLOW, AgentFault
from cambist.engine.trade.delta.bids.bids import RoundOrder, shown
from cambist.engine.trade.delta.settlement.settling import Settlement, TellAgent
from cambist.engine.trade.orders.order_units import step
from cambist.engine.trade.orders.step import OrderStep
from cambist.feeds import slices
from support.delta.auctioning import (
    FAIR,
    PlayedAgent,
    PlayedAuction,
    a_bid,
    an_auction,
    an_auctioneer,
    on_all,
    on_each,
)
from support.delta.bidding import DEADLINE_S, a_delta_order, a_round_order
from support.patience import until, until_told
from support.store.store_work import now_ms
from support.store.stores import NOW_MS

SALE, OTHER = a_round_order(1), a_round_order(2)


class Faulty(PlayedAgent):
    """An agent that gives no answer for a while.

    Attributes:
        faults: of its next answers, None where it is not asked; after the last one it answers.
    """

    def __init__(
        self, bids: Callable[[SolveRequest], list[dict[str, Any]] | None], *faults: AgentFault | None
    ) -> None:
        super().__init__(bids)
        self.faults = list(faults)

    async def solve(self, request: bytes, *, deadline_s: float) -> bytes | None:
        answer = await super().solve(request, deadline_s=deadline_s)
        if self.faults:
            raise AgentFailure(self.faults.pop(0))
        return answer

    def sizes(self) -> list[int]:
        """Number of orders in each question."""
        return [len(decode_solve_request(body).orders) for body in self.asked]


async def kept_rounds(
    auction: PlayedAuction, asked: RoundOrder
) -> list[tuple[str | None, list[Notice], str]]:
    """(winner, notice of each bid, reason of the first bid) of an order's rounds."""
    (rows,) = await auction.store.read(last_rounds(asked.order_hash, 9))
    orders = [round_of(row_of(AUCTION_ROUND, values)).order for values in rows]
    return [
        (one.winner, [bid.notice for bid in one.bids], one.bids[0].detail if one.bids else "")
        for one in orders
    ]


async def no_round_open(auction: PlayedAuction, rounds: int = 1) -> None:
    def is_over() -> bool:
        told = auction.auctioneer.statistics()
        return (told.rounds, told.open_rounds, told.ready) == (rounds, 0, 0)

    await until(is_over)


# --- Number and agents of rounds ------------------------------------------------------------------------


async def test_rounds_of_two_chains_in_the_same_millisecond_are_two(tmp_path: Path) -> None:
    ann, bob = PlayedAgent(on_each), PlayedAgent(on_each)
    async with an_auction(tmp_path) as auction, trio.open_nursery() as nursery:
        ids = AuctionIds()
        here, there = (
            an_auctioneer(
                auction.store,
                auction.orders,
                {"agent": agent},
                chain_id=chain,
                ids=ids,
                wall_ms=lambda: NOW_MS,
            )
            for chain, agent in ((1, ann), (2, bob))
        )
        await auction.submitted(SALE, OTHER)  # where nobody can be asked
        here.queue.offer(auction.live(SALE))
        there.queue.offer(auction.live(OTHER))
        await nursery.start(here.auctioneer.run)
        await nursery.start(there.auctioneer.run)
        await until(lambda: sum(one.auctioneer.statistics().won for one in (here, there)) == 2)
        nursery.cancel_scope.cancel()
    found = [decode_solve_request(body).auction_id for body in (*ann.asked, *bob.asked)]
    assert sorted(found) == [NOW_MS, NOW_MS + 1]


async def test_ids_of_rounds_rise_though_the_clock_does_not() -> None:
    ids = AuctionIds()
    assert [ids.next(at) for at in (5, 5, 3, 9)] == [5, 6, 7, 9]


async def test_no_more_rounds_are_open_than_an_agent_is_asked_about_at_once(tmp_path: Path) -> None:
    ann = PlayedAgent(on_each)
    ann.may_answer = trio.Event()
    async with an_auction(tmp_path, ann=ann) as auction:
        for number in range(VENUE_ROUNDS_OPEN_MAX):
            await auction.submitted(a_round_order(number))
            await until(lambda number=number: len(ann.asked) == number + 1)  # type: ignore[misc]
        late = a_round_order(VENUE_ROUNDS_OPEN_MAX)
        await auction.submitted(late)
        for _ in range(50):
            await trio.sleep(0.001)  # as long as fifty rounds take to open
        told = auction.auctioneer.statistics()
        assert (told.open_rounds, told.ready, len(ann.asked)) == (
            VENUE_ROUNDS_OPEN_MAX,
            1,
            VENUE_ROUNDS_OPEN_MAX,
        )
        ann.may_answer.set()
        await no_round_open(auction, VENUE_ROUNDS_OPEN_MAX + 1)
        assert auction.auctioneer.statistics().won == VENUE_ROUNDS_OPEN_MAX + 1


@pytest.mark.parametrize("fault", [None, AgentFault.LATE])
async def test_an_agent_is_not_blamed_for_a_question_that_was_never_sent(
    tmp_path: Path, fault: AgentFault | None
) -> None:
    ann = Faulty(on_each, fault)
    async with an_auction(tmp_path, ann=ann) as auction:
        await auction.submitted(SALE)
        await until(lambda: auction.auctioneer.statistics().won == 1)
        await no_round_open(auction, 2)
        faults = auction.auctioneer.reports()["ann"].faults
        assert auction.auctioneer.statistics().void == 0
        notices = [notices for _, notices, _ in await kept_rounds(auction, SALE)]
    late = [] if fault is None else [Notice.LATE]
    assert faults == ({} if fault is None else {"late": 1})
    assert notices == [[Notice.WON], late], "the last round first"
    assert [entry.notice for entry in ann.told if entry.notice is not Notice.WON] == late


async def test_an_order_that_is_offered_as_its_round_opens_is_in_that_one_alone(tmp_path: Path) -> None:
    ann = PlayedAgent(lambda _: None)

    class OffersAgain(trio.abc.Instrument):
        def task_spawned(self, task: trio.lowlevel.Task) -> None:
            if "_run_round" in task.name:
                auction.queue.offer(auction.live(SALE))

    async with an_auction(tmp_path, ann=ann) as auction:
        offers = OffersAgain()
        trio.lowlevel.add_instrument(offers)
        try:
            await auction.submitted(SALE)
            await until(lambda: auction.auctioneer.statistics().waiting > 0)
        finally:
            trio.lowlevel.remove_instrument(offers)
        told = auction.auctioneer.statistics()
        assert (told.rounds, told.ready, len(ann.asked)) == (1, 0, 1)


async def test_orders_are_encoded_once_for_agents_that_are_asked_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[RoundOrder] = []

    def shown_once(one: RoundOrder) -> AuctionOrder:
        seen.append(one)
        return shown(one)

    monkeypatch.setattr(round_asking, "shown", shown_once)
    agents = {name: PlayedAgent(lambda _: None) for name in ("ann", "bob", "eve")}
    shunned = a_round_order(2, exclude_agents=("eve",))
    async with an_auction(tmp_path, **agents) as auction:
        await auction.submitted(SALE, shunned)
        await no_round_open(auction)
    (ann,), (bob,), (eve,) = (agent.asked for agent in agents.values())
    callers = [decode_solve_request(body).caller for body in (ann, bob, eve)]
    assert callers == [to_checksum(caller_of(b"\x0d" * 20, name)) for name in agents]
    assert ann.partition(b",")[2] == bob.partition(b",")[2]
    assert len(decode_solve_request(ann).orders) == 2
    assert [one.order_hash for one in decode_solve_request(eve).orders] == ["0x" + SALE.order_hash.hex()]
    assert len(seen) == 2


# --- Agents that do not answer --------------------------------------------------------------------------


@pytest.mark.parametrize("fault", [*sorted(SLOW), AgentFault.REFUSED, AgentFault.MALFORMED])
async def test_no_round_counts_in_which_nobody_has_answered(tmp_path: Path, fault: AgentFault) -> None:
    ann = Faulty(lambda _: None, fault, fault)
    async with an_auction(tmp_path, ann=ann) as auction:
        await auction.submitted(SALE)
        await until(lambda: auction.auctioneer.statistics().waiting == 1)
        pause_ms = auction.queue.due_ms(auction.live(SALE)) - now_ms()
    assert len(ann.asked) == 3
    assert pause_ms <= 1_000, "as after the first round in vain"


async def test_a_backlog_is_worked_off_once_the_only_agent_answers_again(tmp_path: Path) -> None:
    """The only agent never rests, however often it is late."""
    orders = [a_round_order(number) for number in range(100)]
    ann = Faulty(on_each, *[AgentFault.LATE] * 6)
    async with an_auction(tmp_path, ann=ann) as auction:
        await auction.submitted(*orders)
        await until(lambda: auction.auctioneer.statistics().won == len(orders))
        assert auction.auctioneer.reports()["ann"].faults == {"late": 6}
    sizes = ann.sizes()
    assert sizes[1:7] == [1] * 6, "while it does not answer it is asked about one order at a time"
    assert sizes[0] == sizes[7] * 2 == AGENT_ORDERS_AT_FIRST


async def test_who_is_late_while_others_answer_rests_and_is_asked_where_nobody_else_can_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("cambist.engine.trade.delta.bids.agent_pace.AGENT_PROBE_S_FIRST", 0)
    ann, bob = PlayedAgent(on_each), Faulty(on_each, *[AgentFault.LATE] * 6)
    hers = a_round_order(99, include_agents=("bob",))
    async with an_auction(tmp_path, ann=ann, bob=bob) as auction:
        for number in range(5):
            asked = len(bob.asked)
            await auction.submitted(a_round_order(number))
            await until(lambda number=number: auction.auctioneer.statistics().won == number + 1)  # type: ignore[misc]
            assert len(bob.asked) == asked + 1
        assert auction.auctioneer.reports()["bob"].rests_until_ms > now_ms()
        await auction.submitted(a_round_order(5))
        await until(lambda: auction.auctioneer.statistics().won == 6)
        assert len(bob.asked) == 5
        await auction.submitted(hers)
        await until(lambda: auction.auctioneer.statistics().won == 7)
        await until(lambda: auction.auctioneer.reports()["bob"].rests_until_ms == 0)  # it answers again
    assert [entry.until_ms is not None for entry in bob.told if entry.notice is Notice.BANNED] == [True]


async def test_orders_that_an_agent_did_not_reach_are_asked_for_again_at_once(tmp_path: Path) -> None:
    class Busy(PlayedAgent):
        async def solve(self, request: bytes, *, deadline_s: float) -> bytes | None:
            self.asked.append(request)
            hashes = [order.order_hash for order in decode_solve_request(request).orders]
            bids = [a_bid(one) for one in hashes[:4]]
            return msgspec.json.encode({"bids": bids, "notReached": hashes[4:]})

    ann = Busy(on_each)
    async with an_auction(tmp_path, ann=ann) as auction:
        await auction.submitted(*[a_round_order(number) for number in range(12)])
        await until(lambda: auction.auctioneer.statistics().won == 12)
        assert auction.auctioneer.statistics().waiting == 0
        assert auction.auctioneer.reports()["ann"].faults == {}


async def test_rounds_pause_while_the_chain_is_away_and_none_counts(tmp_path: Path) -> None:
    ann = PlayedAgent(on_each)
    async with an_auction(tmp_path, ann=ann) as auction:
        chain: Any = auction.auctioneer._served.chain
        block, failures = chain.block, 3

        async def away() -> Any:
            nonlocal failures
            failures -= 1
            if failures >= 0:
                raise NodeUnavailable("nobody answers")
            return await block()

        chain.block = away
        await auction.submitted(SALE)
        await until(lambda: auction.auctioneer.statistics().won == 1)
        assert auction.auctioneer.statistics().void == len(ann.asked) - 1 == 3


async def test_a_new_order_is_not_behind_a_thousand_that_fail(tmp_path: Path) -> None:
    def on_new(request: SolveRequest) -> list[dict[str, Any]] | None:
        return [
            a_bid(one.order_hash) for one in request.orders if one.order_hash == "0x" + SALE.order_hash.hex()
        ]

    ann = PlayedAgent(on_new)
    async with an_auction(tmp_path, ann=ann) as auction:
        old = [a_round_order(number) for number in range(2, 1_002)]
        await auction.submitted(*old)
        await until(lambda: auction.auctioneer.statistics().waiting == len(old))
        asked = len(ann.asked)
        for one in old:
            auction.queue.offer(auction.live(one), is_due=True)
        await auction.submitted(SALE)
        await until(lambda: auction.auctioneer.statistics().won == 1)
    sizes = [len(decode_solve_request(body).orders) for body in ann.asked[asked:]]
    at = next(at for at, body in enumerate(ann.asked[asked:]) if SALE.order_hash.hex().encode() in body)
    assert sum(sizes[:at]) <= AGENT_ORDERS_MAX, "they were under way already"


# --- Bounds on an agent's cost --------------------------------------------------------------------------

ENDLESS = "ee" * 40
"""Calldata of a settlement whose simulation never ends."""


def endless(request: SolveRequest) -> list[dict[str, Any]]:
    """Bids that are better than others', and whose simulation never ends."""
    bids = on_each(request)
    step = {"target": "0x" + "77" * 20, "data": f"0x{ENDLESS}", "gas": 1}
    for bid in bids:
        bid["parts"][0] |= {"promisedAmount": str(2 * FAIR), "steps": [step]}
    return bids


def simulations(auction: PlayedAuction) -> list[int]:
    """Calls of each question to the chain from now on; those of `endless` are not answered."""
    chain: Any = auction.auctioneer._served.chain
    call_many, sizes = chain.call_many, list[int]()

    async def counted(calls: list[EthCall], *at: Any) -> list[bytes]:
        sizes.append(len(calls))
        if any(bytes.fromhex(ENDLESS) in call.data for call in calls):
            await trio.sleep_forever()
        found: list[bytes] = await call_many(calls, *at)
        return found

    chain.call_many = counted
    return sizes


async def test_the_best_bids_alone_of_an_agent_on_an_order_are_simulated(tmp_path: Path) -> None:
    ann = PlayedAgent(lambda request: on_each(request) * AGENT_BIDS_MAX)
    async with an_auction(tmp_path, ann=ann) as auction:
        sizes = simulations(auction)
        await auction.submitted(SALE)
        await no_round_open(auction)
        assert auction.auctioneer.statistics().won == 1
    assert sizes == [AGENT_BIDS_PER_ORDER_MAX]
    assert [entry.notice for entry in ann.told] == [Notice.WON, *[Notice.LOST] * (AGENT_BIDS_MAX - 1)]


async def test_an_agent_whose_bids_take_for_ever_costs_others_nothing_but_its_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulating, "AGENT_SIMULATION_S", 0.05)
    hers = a_round_order(3, include_agents=("eve",))
    async with an_auction(tmp_path, ann=PlayedAgent(on_each), eve=PlayedAgent(endless)) as auction:
        sizes = simulations(auction)
        await auction.submitted(SALE, OTHER, hers)
        await until(lambda: auction.auctioneer.statistics().won == 2)
        assert sorted(sizes[:2]) == [2, 3]

        async def is_kept() -> bool:
            return bool(await kept_rounds(auction, hers))

        await until_told(is_kept)
        _, notices, detail = (await kept_rounds(auction, hers))[-1]
    assert notices == [Notice.REVERTED]
    assert detail.endswith("not simulated: 0.05 s are over")


async def test_an_order_that_was_not_simulated_is_in_the_next_round_and_none_counts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(simulating, "AGENT_SIMULATED_AT_ONCE", 2)
    ann = PlayedAgent(on_each)
    async with an_auction(tmp_path, ann=ann) as auction:
        sizes, chain = simulations(auction), cast("Any", auction.auctioneer._served.chain)
        counted, failures = chain.call_many, 1

        async def fails_once(calls: list[EthCall], *at: Any) -> list[bytes]:
            nonlocal failures
            if len(sizes) == 1 and failures:
                failures -= 1
                raise NodeUnavailable("nobody answers")
            found: list[bytes] = await counted(calls, *at)
            return found

        chain.call_many = fails_once
        await auction.submitted(*[a_round_order(number) for number in range(6)])
        await until(lambda: auction.auctioneer.statistics().won == 6)
        assert auction.auctioneer.statistics().waiting == 0
    assert [len(decode_solve_request(body).orders) for body in ann.asked] == [6, 4]
    assert sizes == [2, 2, 2]


# --- Winning bids ---------------------------------------------------------------------------------------


async def test_a_crossing_is_given_up_when_the_first_of_its_orders_expires(tmp_path: Path) -> None:
    soon_s = NOW_MS // 1_000
    soon = a_round_order(2, a_delta_order(nonce=2, deadline=soon_s))
    async with an_auction(tmp_path, ann=PlayedAgent(on_all)) as auction:
        await auction.submitted(SALE, soon)
        await no_round_open(auction)
        (rows,) = await auction.store.read(among(EFFECT, "order_hash", [SALE.order_hash, soon.order_hash]))
    found = [msgspec.msgpack.decode(row_of(EFFECT, values).payload, type=Settlement) for values in rows]
    assert SALE.terms.deadline == DEADLINE_S > soon_s
    assert [one.deadline_s for one in found] == [soon_s, soon_s]


async def test_a_settlement_that_is_let_go_has_not_won(tmp_path: Path) -> None:
    ann = PlayedAgent(on_all)
    ann.may_answer = trio.Event()
    async with an_auction(tmp_path, ann=ann) as auction:
        await auction.submitted(SALE, OTHER)
        await until(lambda: bool(ann.asked))
        cancelling = OrderStatus.CANCELLING
        await auction.orders.step(
            SALE.order_hash, lambda row: OrderStep(step(row, NOW_MS, status=cancelling))
        )
        ann.may_answer.set()
        await no_round_open(auction)
        for one in (SALE, OTHER):
            assert await kept_rounds(auction, one) == [
                (None, [Notice.LOST], "an order of it was not open any more")
            ]
        assert auction.live(OTHER).settling is None
        assert auction.auctioneer.statistics().won == 0
    assert [(entry.notice, entry.best_amount) for entry in ann.told] == [(Notice.LOST, None)] * 2


@pytest.mark.parametrize("fails", [False, True], ids=["", "void"])
async def test_an_agent_hears_that_it_won_before_it_hears_of_the_settlement(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    """The first of two settlements begins while the second is being stored."""
    ann = PlayedAgent(on_each)

    def settles(_store: object, _orders: object, tell: TellAgent) -> Any:
        def line_up(order_hash: bytes, _runners_up: object) -> None:
            auction_id = decode_solve_request(ann.asked[-1]).auction_id
            tell("ann", auction_id, NoticeEntry(Notice.SETTLING, to_hex(order_hash)), None)

        return SimpleNamespace(line_up=line_up)

    async with an_auction(tmp_path, settles, ann=ann) as auction:
        if fails:
            monkeypatch.setattr(auction.auctioneer, "_remember", None)
        await auction.submitted(SALE, OTHER)
        await no_round_open(auction)
        await until(lambda: len(ann.told) == (2 if fails else 4))
    results = [] if fails else [Notice.WON] * 2
    assert [one.notice for one in ann.told] == [*results, *[Notice.SETTLING] * 2]


async def test_an_order_whose_settlement_ends_before_its_round_is_in_another_round(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = PlayedAgent(on_each)
    async with an_auction(tmp_path, ann=ann) as auction:
        step_all = auction.orders.step_all

        async def ends_at_once(hashes: Sequence[bytes], decide: Any) -> None:
            await step_all(hashes, decide)
            live = auction.live(SALE)
            live.settling = None
            auction.queue.offer(live)
            monkeypatch.undo()

        monkeypatch.setattr(auction.orders, "step_all", ends_at_once)
        await auction.submitted(SALE)
        await until(lambda: len(ann.asked) == 2)


async def test_of_a_settlement_that_nobody_knows_of_nothing_is_kept_or_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def away(*_: object, **__: object) -> None:
        raise StoreUnavailable("gone")

    ann = PlayedAgent(lambda request: [a_bid(request.orders[0].order_hash)])
    async with an_auction(tmp_path, ann=ann) as auction:
        monkeypatch.setattr(auction.orders, "step_all", away)
        await auction.submitted(SALE, OTHER)
        await no_round_open(auction)
        assert await kept_rounds(auction, SALE) == []
        assert await kept_rounds(auction, OTHER) == [(None, [], "")]
    assert ann.told == []


async def test_a_round_without_a_bid_has_its_record_though_the_round_before_was_void(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    ann = PlayedAgent(lambda _: None)
    async with an_auction(tmp_path, ann=ann) as auction:

        async def away(unit: Unit) -> UnitOutcome:
            monkeypatch.undo()
            raise StoreUnavailable("gone")

        monkeypatch.setattr(auction.auctioneer, "_store", SimpleNamespace(write=away))
        await auction.submitted(SALE)
        await no_round_open(auction, 2)
        assert await kept_rounds(auction, SALE) == [(None, [], "")]


async def test_whatever_is_refused_the_records_fit_the_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def too_little(request: SolveRequest) -> list[dict[str, Any]]:
        hashes = [order.order_hash for order in request.orders]
        bids = [a_bid(*hashes[at : at + AGENT_PARTS_MAX]) for at in range(0, len(hashes), AGENT_PARTS_MAX)]
        for bid in bids:
            bid["parts"][-1]["promisedAmount"] = "1"
        return bids * (AGENT_BIDS_MAX // len(bids))

    sizes: list[int] = []
    agents = {name: PlayedAgent(too_little) for name in ("ann", "bob")}
    asked = [a_round_order(number) for number in range(128)]
    async with an_auction(tmp_path, **agents) as auction:
        write = auction.store.write

        async def weighed(unit: Unit) -> UnitOutcome:
            sizes.append(len(prepared(unit)))
            return await write(unit)

        monkeypatch.setattr(auction.store, "write", weighed)
        await auction.submitted(*asked)
        await until(lambda: auction.auctioneer.statistics().waiting == len(asked))
        for one in asked:
            ((winner, notices, _),) = await kept_rounds(auction, one)
            assert (winner, len(notices)) == (None, VENUE_AUCTION_BIDS_MAX)
    assert max(sizes) < STORE_UNIT_BYTES_MAX < sum(sizes)


# --- Length of one turn ---------------------------------------------------------------------------------


async def test_a_round_of_many_bids_lets_others_have_their_turns(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Turns(trio.abc.Instrument):
        count = 0

        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            self.count += "_run_round" in task.name or "simulate" in task.name

    monkeypatch.setattr(slices, "SLICE_S", 0.0)
    ann = PlayedAgent(lambda request: [a_bid(request.orders[0].order_hash)] * AGENT_BIDS_MAX)
    async with an_auction(tmp_path, ann=ann) as auction:
        turns = Turns()
        trio.lowlevel.add_instrument(turns)
        try:
            await auction.submitted(SALE)
            await no_round_open(auction)
        finally:
            trio.lowlevel.remove_instrument(turns)
    assert len(ann.told) == AGENT_BIDS_MAX
    assert turns.count >= 3 * AGENT_BIDS_MAX, "one a bid: while it is read, ranked and told"
