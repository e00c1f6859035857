"""Auctions of one chain's Delta orders: rounds of due orders, and the settlements of winning bids.

    due orders (`auction_queue`), after gather_s -> a round: all agents asked at once -> closed
    due orders that no agent trades              -> a round without agents, closed at once
        -> bids simulated at one block -> winners decided
        -> for each winning bid one unit: records, effects `settle` and steps to ACTIVE of the bid's orders
        -> records of the other orders
        -> only then: agents are notified, orders without a winner wait for another round

An order is in one round at a time, until the round has found a settlement for it or none. If a winning bid
settles only a part, the unfilled amount is due as soon as the part's fill is mined and indexed. Rounds may
overlap: none opens while VENUE_ROUNDS_OPEN_MAX are open, and at most three open at once. Bids of an open
round are in this process's memory alone: after a crash the order is auctioned again. Bids are processed in
short steps, so that many bids do not delay other tasks.

A round lengthens an order's pause once an agent has considered the order. An order without an agent to ask
waits for an agent (`agent_pace`, `due_orders`). If no agent answers, the order is due again at once, and the
agents pause; if the chain's nodes or the store do not answer, all rounds pause.

If an order is cancelled during its round, the bid that won the order loses, and the other orders of that bid
have no winner; the round goes on for the others. `auctionId` is the clock's milliseconds, or one more than
the last id of any chain if that is later: ids rise over restarts too. Of successive rounds without a bid for
an order, for the same reason, only the first is stored, since orders wait for weeks.

Source: ARCHITECTURE.md, "Auction"; choices.md#delta-orders.
"""

import math
from collections.abc import Callable, Container, Generator, Iterable, Mapping, Sequence
from enum import Enum
from functools import partial

import structlog
import trio
from msgspec import Struct

from .....codecs.messages.agent_messages import Notice, NoticeEntry
from .....config.errors import ChainError, OrderNotFound, RequestError, StoreError
from .....config.limits import VENUE_ROUNDS_OPEN_MAX
from .....config.sections.venue import DeltaSettings
from .....config.timeouts import AGENT_PROBE_S_FIRST, AUCTION_VOID_S, RECENT_BLOCK_S
from .....feeds.durations import Durations
from .....feeds.slices import Slices
from ....chain.port import Upcoming
from ....host.admission.ledger import Hold
from ....store.rows import DeltaOrderRow
from ....store.store import Store
from ....store.tables import AUCTION_ROUND
from ....store.units import Change, Unit, put
from ...orders.order_units import effect_key
from ..bids.agent_client import AgentClientStatistics
from ..bids.agent_pace import AgentQuestion
from ..bids.agent_rest import AgentFault, AgentReport
from ..bids.bid_merit import best_of, judged, lost
from ..bids.bids import Answer, Candidate, Rejection, RoundOrder, read_answer, sorted_out
from ..bids.simulation import Proven
from ..orders.life import OPEN, SETTLE, DeltaStep, won
from ..orders.live_orders import LiveOrder, LiveOrders
from ..orders.terms import SettledOrder, is_scheduled
from ..settlement.claims import Claims
from ..settlement.settling import (
    Settlement,
    Settling,
    settlement_of,
    settlement_payload,
)
from .agents import Agents, AuctioneerWakeup
from .auction import AuctionVerdict, Decision, deciding, left_out, let_go, notices, with_runners_up
from .auction_queue import AuctionQueue, DueRound
from .auction_record import Rejections, RoundTimes, round_rows
from .gas_cover import NOT_CARRIED, GasCover
from .own_bids import OwnBids
from .round_asking import Round, RoundAsking
from .simulating import AuctionAt, covering_cost, gas_cost, simulated

_log = structlog.get_logger("cambist.venue")

_RECORDS_A_WRITE = 16  # records of at most 64 bids each: far below the size limit of one write
_FAULTS = {
    Notice.MALFORMED: AgentFault.MALFORMED,
    Notice.SIMULATION_MISMATCH: AgentFault.SIMULATION_MISMATCH,
}


_Silence = frozenset[tuple[str, Notice]]
"""Failures of agents in a round without a bid for an order, as (agent name, kind of failure) pairs.

The set is empty if all agents that were asked about the order declined to bid.
"""


_Paid = dict[int, Hold]
"""Charges of the gas of winning bids, by the identity of the bid."""


class AuctionIds:
    """Source of ids of auction rounds, unique and increasing over all chains of a venue."""

    def __init__(self) -> None:
        self._last = 0

    def next(self, now_ms: int) -> int:
        """Return the id of a round that opens now, greater than all earlier ids.

        The id is the time in Unix milliseconds, or the last id plus 1 if that is greater.

        Args:
            now_ms: the time, Unix milliseconds.
        """
        self._last = max(self._last + 1, now_ms)
        return self._last


class AuctioneerStatistics(Struct, frozen=True):
    """Counters and present sizes of one chain's auctions.

    Attributes:
        waiting: orders that are not due for a round yet, including TWAP slices before their time on chain.
        ready: orders that are due for a round.
        open_rounds: rounds open now.
        rounds: rounds so far.
        won: orders for which rounds found a settlement.
        void: rounds that an error ended without a result, mostly as the chain or the store did not answer.
        durations: times from a round's opening to the choice of its settlements.
        agents: counters of the agents' clients, by name.
    """

    waiting: int
    ready: int
    open_rounds: int
    rounds: int
    won: int
    void: int
    durations: Durations
    agents: Mapping[str, AgentClientStatistics]


class _End(Enum):
    """Result of the attempt to store the settlement of a winning bid.

    Attributes:
        KEPT: the settlement is stored.
        NOT_OPEN: nothing is stored, since an order of the bid is not open any more.
        NO_FUNDS: nothing is stored, since other settlements need the funds of an order's owner.
        UNKNOWN: an error of the store leaves open whether the settlement is stored.
    """

    KEPT = "kept"
    NOT_OPEN = "an order of it was not open any more"
    NO_FUNDS = "other settlements need an owner's funds"
    UNKNOWN = "unknown"


BARRED = "the agent's calls have failed too often in blocks in which owners acted"
"""Reason that a bid lost, on an order whose owner has settled with no other agent."""


class Auctioneer:
    """Runs the auction rounds of one chain's due orders. `run` is its task.

    Args:
        at: chain, sending account and gas limit of settlements.
        agents: agents of the chain.
        wakeup: event that wakes `run`; the agents and the queue set it too.
        own_bids: makes the venue's own bids on orders that no agent trades.
        gas: decides which bids the relayer pays for.
        is_barred: returns whether an agent may not settle for an owner now.
        there_wei: returns what an order's delivery on another chain costs, in wei of this chain.
        queue: orders that wait for a round.
        settling: receives the next best bids of each won order, for the case that its settlement fails.
        claims: reservations of order owners' funds for settlements under way.
        unsettled: called with an order that is open after its round: an agent has considered the order and
            the round found no settlement, or the round's settlement has ended already.
        ids: source of round ids, shared by all chains.
        settings: pauses and time limits.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        at: AuctionAt,
        agents: Agents,
        own_bids: OwnBids,
        wakeup: AuctioneerWakeup,
        queue: AuctionQueue,
        orders: LiveOrders,
        store: Store,
        *,
        gas: GasCover,
        is_barred: Callable[[str, bytes], bool],
        there_wei: Callable[[RoundOrder], int],
        settling: Settling,
        claims: Claims,
        unsettled: Callable[[LiveOrder], None],
        ids: AuctionIds,
        settings: DeltaSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self._at = at
        self._served = at.served
        self._queue = queue
        self._orders = orders
        self._store = store
        self._gas = gas
        self._is_barred = is_barred
        self._there_wei = there_wei
        self._settling = settling
        self._claims = claims
        self._unsettled = unsettled
        self._ids = ids
        self._settings = settings
        self._wall_ms = wall_ms
        self._closed_ms: dict[bytes, int] = {}
        self._silent: dict[bytes, _Silence] = {}  # order hash -> reason why its last round had no bid
        self._wakeup = wakeup
        self._open = self._rounds = self._won = self._void = 0
        self._void_in_row = 0
        self._durations = Durations()
        self._opens_at = -math.inf  # earliest time of the next round, in trio's time
        self._slices = Slices()
        self._agents = agents
        self._own_bids = own_bids
        self._asking = RoundAsking(
            agents, at.served, round_s=settings.round_s, slices=self._slices, wall_ms=wall_ms
        )

    def statistics(self) -> AuctioneerStatistics:
        """Return counters of rounds since the start, and the present numbers of orders and open rounds."""
        return AuctioneerStatistics(
            waiting=self._queue.waiting,
            ready=self._queue.due,
            open_rounds=self._open,
            rounds=self._rounds,
            won=self._won,
            void=self._void,
            durations=self._durations,
            agents=self._agents.statistics(),
        )

    def withdraw(self, order_hash: bytes) -> None:
        """Remove an order from the auctions; a round that has the order already goes on with it."""
        self._queue.withdraw(order_hash)
        self._closed_ms.pop(order_hash, None)
        self._silent.pop(order_hash, None)

    def leave(self, held: Container[int]) -> None:
        """Remove the orders of shards that this engine no longer holds, with the funds reserved for them.

        Args:
            held: shards that the engine holds; an order's shard is the first byte of its hash.
        """
        self._queue.leave(held)
        for order_hash in {*self._closed_ms, *self._silent}:
            if order_hash[0] not in held:
                self.withdraw(order_hash)
        self._claims.leave(held)

    def reports(self) -> dict[str, AgentReport]:
        """Return each agent's report of answers, settlements, faults and cool-down, by agent name."""
        return self._agents.reports()

    def is_own(self, order: SettledOrder) -> bool:
        """Whether the venue bids on an order itself, so that no agent is asked."""
        return self._own_bids.trader_of(order) is not None

    def is_carried(self, live: LiveOrder) -> bool:
        """Whether an order's bridge, if any, carries the order at the fee that its owner signed."""
        return self._queue.is_carried(live)

    def own_rests_until_ms(self, order: SettledOrder) -> int:
        """Return the end of the rest of an order that no agent trades, Unix milliseconds; 0 without one."""
        return self._own_bids.rests_until_ms(order)

    def owner_rests_until_ms(self, owner: bytes) -> int:
        """Return the end of an owner's rest after failed settlements, Unix milliseconds; 0 without a rest."""
        return self._queue.owner_rests_until_ms(owner)

    def last_round_ms(self, order_hash: bytes) -> int:
        """Return when the last auction round with an order closed, Unix milliseconds; 0 if unknown."""
        return self._closed_ms.get(order_hash, 0)

    @property
    def chain_s(self) -> int:
        """Chain time against which the due times of TWAP slices are compared, Unix seconds; 0 if unknown."""
        return self._queue.slices.time_s

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Open auction rounds for due orders and run them, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            self._agents.start(nursery)
            await nursery.start(self._queue.slices.run)
            task_status.started()
            while True:
                wakes_at = self._open_rounds()
                with trio.move_on_at(wakes_at):
                    await self._wakeup.wait()
                # Reset before the pause: a `wake` in the pause is kept, and only repeats the look.
                self._wakeup.reset()
                await trio.sleep(self._settings.gather_s)

    def _open_rounds(self) -> float:
        """Open auction rounds for due orders, as far as agents have capacity.

        Returns:
            Time of the next call if no event wakes the auctioneer before, seconds of trio's clock; inf if the
            next call has to wait for an event.
        """
        now = trio.current_time()
        if not self._queue.due or self._open >= VENUE_ROUNDS_OPEN_MAX:
            return math.inf
        if now < self._opens_at:
            return self._opens_at
        standing = self._agents.standing(now)
        for due in self._queue.take(standing, now):
            questions = self._agents.reserve([due.agents[key] for key in due.orders], now)
            self._open += 1
            self._nursery.start_soon(self._run_round, due, questions)
        return self._queue.next_at(standing, now)

    # --- A round ----------------------------------------------------------------------------------------

    async def _run_round(self, due: DueRound, questions: dict[str, AgentQuestion]) -> None:
        self._rounds += 1
        opened_ms, opened_at = self._wall_ms(), trio.current_time()
        auction_id = self._ids.next(opened_ms)
        this = Round(
            auction_id=auction_id,
            opened_ms=opened_ms,
            orders=due.orders,
            agents=due.agents,
            questions=questions,
            unsettled=set(due.orders),
            considered=set(),
        )
        is_void = True
        try:
            await self._round(this)
            is_void = False
        except (ChainError, RequestError, StoreError) as error:
            _log.warning("a round is void", chain_id=self._served.chain_id, detail=str(error))
        except Exception as error:  # noqa: BLE001  a bug in one round ends no other
            _log.error("a round failed", chain_id=self._served.chain_id, detail=repr(error), exc_info=True)
        finally:
            self._open -= 1
            self._durations.add(trio.current_time() - opened_at)
            # These two act only after an error: otherwise `RoundAsking` has removed all questions, and
            # `_round` has sent the held notices. No await in this block: a cancelled task would not pass it.
            self._agents.release(questions)
            self._agents.conclude(auction_id, {})
            self._note_void(is_void=is_void)
            # A void round lengthens no pause: chain, store or venue failed, not the order.
            for order_hash in due.orders:
                if is_void:
                    self._silent.pop(order_hash, None)  # the record may be missing: the next round stores one
                if order_hash in this.unsettled:
                    self._over(order_hash, is_counted=order_hash in this.considered and not is_void)
            self._wakeup.wake()

    def _note_void(self, *, is_void: bool) -> None:
        """Record whether an error ended a round without a result (a void round).

        After a void round the auctioneer pauses before it opens a round, twice as long after each further
        void round in a row, since the chain or the store probably does not answer.
        """
        self._void += is_void
        self._void_in_row = self._void_in_row + 1 if is_void else 0
        if is_void:
            pause_s = AGENT_PROBE_S_FIRST * 2.0 ** min(self._void_in_row - 1, 30)
            self._opens_at = trio.current_time() + min(pause_s, AUCTION_VOID_S)

    def _over(self, order_hash: bytes, *, is_counted: bool) -> None:
        """Queue an order for another auction round after a round that found no settlement for the order.

        An order that is not open any more is withdrawn instead.

        Args:
            is_counted: whether an agent has considered the order in the round; if so, the order's pause
                before the next round grows, else the order is due at once.
        """
        live = self._queue.unsettled(order_hash)
        if live is None:
            self.withdraw(order_hash)
        elif is_counted:
            self._queue.count_round(order_hash)
            self._unsettled(live)
        else:
            self._queue.put_back(order_hash)

    async def _round(self, this: Round) -> None:
        answers, rejections = await self._asking.answers(this)
        closed_ms = self._wall_ms()
        candidates = await self._candidates(this, answers, rejections)
        found = await simulated(candidates, self._at, partial(self._upcoming, this), self._slices)
        rejections += found.rejections
        for bid in found.proven:
            self._own_bids.simulated(bid)
        this.considered.difference_update(found.unknown)
        # An order without agents whose simulation takes too long is paused.
        this.considered.update(key for key, order in this.orders.items() if self.is_own(order.order))
        decision, paid = await self._decision(this, found.proven, rejections)
        self._closed_ms |= dict.fromkeys(this.orders, closed_ms)
        self._agents.hold(this.auction_id)  # a settlement may begin before all others are stored
        stands = await self._conclude(this, closed_ms, decision, paid, rejections)
        self._remember(this.auction_id, answers, rejections)
        for agent, owner, is_good in judged(found):
            self._agents.simulated(agent, this.auction_id, owner, is_good=is_good)
        by_agent = await self._slices.work(_by_agent(notices(stands, rejections)))
        self._agents.conclude(this.auction_id, by_agent)

    async def _candidates(
        self, this: Round, answers: Sequence[Answer], rejections: list[Rejection]
    ) -> list[Candidate]:
        """Decode the bids in the agents' answers and select the bids to simulate, each agent's best first.

        The other bids are appended to `rejections`. The candidates for orders without agents are the
        venue's own bids.
        """
        candidates: list[Candidate] = []
        for answer in answers:
            bids, unread = await self._slices.work(sorted_out(read_answer(answer, this.orders)))
            best, surplus = await self._slices.work(sorted_out(best_of(bids)))
            candidates += best
            rejections += [*unread, *surplus]
        for order in this.orders.values():
            candidates += self._own_bids.bids(order)
        return candidates

    async def _decision(
        self, this: Round, bids: Sequence[Proven], rejections: list[Rejection]
    ) -> tuple[Decision, _Paid]:
        """Decide a round's winners from bids that passed their simulation, at the present gas price.

        Bids whose gas nobody pays lose, with their runners-up. Crossings whose gas their orders do not carry
        are rejected before, since they would win over single bids that carry theirs.

        Returns:
            The decision, and the charges of the winners' gas.
        """
        gas_price_wei = self._served.gas.gas_price_wei
        costs = {key: cost for key, order in this.orders.items() if (cost := gas_cost(order, self._served))}
        covering = {
            key: cost for key, order in this.orders.items() if (cost := covering_cost(order, self._served))
        }
        there = {key: wei for key, order in this.orders.items() if (wei := self._there_wei(order))}
        carried = partial(self._gas.is_carried, gas_price_wei=gas_price_wei, costs=covering, there_wei=there)
        uncarried = [bid for bid in bids if bid.candidate.is_crossing and not carried(bid)]
        rejections += [lost(bid.candidate, NOT_CARRIED) for bid in uncarried]
        barred = [bid for bid in bids if self._may_not_settle(bid)]
        rejections += [lost(bid.candidate, BARRED) for bid in barred]
        left_out_ids = set(map(id, (*uncarried, *barred)))
        orders, bids = tuple(this.orders.values()), [bid for bid in bids if id(bid) not in left_out_ids]
        decision: Decision = await self._slices.work(deciding(orders, bids, gas_price_wei, costs))
        paid: _Paid = {}
        for winner in decision.winners:
            hold = self._gas.take(winner, gas_price_wei, covering, self._wall_ms(), there)
            if hold is None:
                decision = let_go(decision, winner, NOT_CARRIED)
            else:
                paid[id(winner)] = hold
        return with_runners_up(decision, carried), paid

    def _may_not_settle(self, bid: Proven) -> bool:
        """Whether an agent is barred from an owner of its bid, for whom another agent may settle.

        The venue's own bids are never barred: no agent may bid on their orders.
        """
        agent, owners = bid.candidate.agent, [part.asked.terms.owner for part in bid.candidate.parts]
        barred = [owner for owner in owners if self._is_barred(agent, owner)]
        others = self._agents.awake() - {agent} if barred else ()
        return any(not self._is_barred(other, owner) for owner in barred for other in others)

    async def _upcoming(self, this: Round) -> Upcoming:
        """Read the block at which a round's bids are simulated.

        If the round has TWAP slices, the result also has the next block's time, from which the simulation
        learns whether the slices are due.
        """
        if not any(is_scheduled(order.order) for order in this.orders.values()):
            # Not before an order's last fill that this engine's indexer has read, by this same chain. Bids
            # on an order whose fill another engine has just read fail here, and the next round has it.
            return Upcoming(await self._served.chain.recent_block(RECENT_BLOCK_S), None)
        return await self._queue.slices.look()

    def _remember(self, auction_id: int, answers: Sequence[Answer], rejections: Sequence[Rejection]) -> None:
        """Record the faults in each agent's answer to a round, or that the answer was without a fault.

        Faults are malformed bids and bids whose simulation breaks their promise. A bid that reverts in its
        simulation is no fault: the order may be the cause.
        """
        agents = {answer.agent for answer in answers}
        faults = {
            (rejection.agent, fault)
            for rejection in rejections
            if rejection.agent in agents and (fault := _FAULTS.get(rejection.notice)) is not None
        }
        for agent, fault in sorted(faults):
            self._agents.failed(agent, auction_id, fault)
        faulty = {agent for agent, _ in faults}
        for agent in agents - faulty:
            self._agents.answered(agent)

    # --- Results ----------------------------------------------------------------------------------------

    async def _conclude(
        self,
        this: Round,
        closed_ms: int,
        decision: Decision,
        paid: _Paid,
        rejections: Sequence[Rejection],
    ) -> Decision:
        """Store a round's decision: each settlement, its orders and their records in one unit.

        Args:
            paid: what the winners' gas is charged to; given back for settlements that are not stored.

        Returns:
            The decision as stored. A bid whose settlement was given up has lost in it. The orders of a
            settlement are missing if an error of the store leaves open whether the settlement is stored.
        """
        times = RoundTimes(this.auction_id, self._served.chain_id, this.opened_ms, closed_ms)
        refused = Rejections(rejections)
        with_winner = [verdict for verdict in decision.verdicts.values() if verdict.winner is not None]
        records = await self._records(times, with_winner, refused)
        stands = decision

        async def settle(winner: Proven) -> None:
            nonlocal stands
            hashes = [part.asked.order_hash for part in winner.candidate.parts]
            # The records are in the sequence of the bid's parts: `_intend_settlement` uses the index of a
            # record as the index of its part.
            end = await self._intend_settlement(this, winner, decision, {key: records[key] for key in hashes})
            if end in (_End.NOT_OPEN, _End.NO_FUNDS):
                self._gas.give_back(paid[id(winner)])
            if end is _End.KEPT:
                self._gas.stored(hashes[0], paid[id(winner)])
                self._won += len(hashes)
                this.unsettled.difference_update(hashes)  # else `_over` takes them out of their next round
                for live in self._queue.settled(hashes):
                    self._unsettled(live)
            elif end is _End.UNKNOWN:
                stands = left_out(stands, winner)
            else:
                stands = let_go(stands, winner, end.value)

        async with trio.open_nursery() as nursery:  # the store batches concurrent writes
            for winner in decision.winners:
                nursery.start_soon(settle, winner)
        # From `stands`, after all settlements: an order whose winner was given up has its record here.
        others = [verdict for verdict in stands.verdicts.values() if verdict.winner is None]
        kept = [verdict for verdict in others if self._is_kept(verdict, refused)]
        for at in range(0, len(kept), _RECORDS_A_WRITE):
            some = await self._records(times, kept[at : at + _RECORDS_A_WRITE], refused)
            await self._store.write(Unit(tuple(some.values())))
        return stands

    async def _records(
        self, times: RoundTimes, verdicts: Iterable[AuctionVerdict], refused: Rejections
    ) -> dict[bytes, Change]:
        """Return the changes to the store that write a round's record of each order, by order hash."""

        def made() -> Generator[None, None, dict[bytes, Change]]:
            records: dict[bytes, Change] = {}
            for row in round_rows(times, verdicts, refused):
                records[row.order_hash] = put(AUCTION_ROUND, row)
                yield
            return records

        return await self._slices.work(made())

    def _is_kept(self, verdict: AuctionVerdict, refused: Rejections) -> bool:
        """Whether to store a round's record of an order for which the round found no settlement.

        False if no agent bid for the order, and the agents that answered late or unreadably are the same as
        in the order's previous round.
        """
        key = verdict.asked.order_hash
        if verdict.bids or key in refused:
            self._silent.pop(key, None)
            return True
        silence = frozenset((rejection.agent, rejection.notice) for rejection in refused.about(verdict.asked))
        was = self._silent.get(key)
        self._silent[key] = silence
        return was != silence

    async def _intend_settlement(
        self, this: Round, winner: Proven, decision: Decision, records: Mapping[bytes, Change]
    ) -> _End:
        """Store the intent to settle a winning bid, for all orders of the bid in one unit.

        The intent is not stored if an owner's account lacks the funds, or if one of the bid's orders is no
        longer open.
        """
        hashes = tuple(records)
        shared = ""

        def decided(row: DeltaOrderRow) -> DeltaStep | None:
            nonlocal shared
            live = self._orders.get(row.order_hash)
            if row.status not in OPEN or live is None or live.settling is not None:
                raise _NotOpen
            # One key for all parts, so that the relayer sends one transaction: that of the first order's
            # effect. `step_all` calls this in the sequence of `hashes`, on each try anew, so that the first
            # is first.
            if row.order_hash == hashes[0]:
                shared = effect_key(row.order_hash, row.version + 1, SETTLE)
            at = hashes.index(row.order_hash)
            settlement = self._settlement(this, winner, at, shared)
            return won(row, settlement_payload(settlement, row), (records[row.order_hash],), self._wall_ms())

        # Before the write: another bid of this round, or of a round that overlaps, must not settle another
        # order of the owner with the same funds.
        if not self._claims.claim([live for key in hashes if (live := self._orders.get(key)) is not None]):
            return _End.NO_FUNDS
        # Before the write: even if its outcome is unknown, the settlement may begin and need these bids. A
        # bid that crosses orders is never a runner-up: part 0, and the key of the order's own effect.
        for order_hash in hashes:
            runners_up = decision.verdicts[order_hash].runners_up
            self._settling.line_up(
                order_hash, [self._settlement(this, runner_up, 0, "") for runner_up in runners_up]
            )
        try:
            await self._orders.step_all(hashes, decided)
        except (_NotOpen, OrderNotFound):
            return _End.NOT_OPEN
        except StoreError as error:
            _log.warning("a settlement was not stored", chain_id=self._served.chain_id, detail=error.detail)
            return _End.UNKNOWN
        finally:
            # A stored settlement keeps its claim: `step_all` has applied the step in memory, whereupon
            # `DeltaEngine.tend` has marked the claim as under way, and `release` leaves such a claim.
            self._claims.release(hashes)
        return _End.KEPT

    def _settlement(self, this: Round, bid: Proven, at: int, key: str) -> Settlement:
        deadline_s = self._wall_ms() // 1_000 + math.ceil(self._settings.settlement_s)
        return settlement_of(bid, at, key, this.auction_id, deadline_s, self._at.gas_max)


class _NotOpen(Exception):
    """Error: an order of a winning bid was cancelled, has ended, or got another settlement meanwhile."""


def _by_agent(
    entries: Iterable[tuple[str, NoticeEntry]],
) -> Generator[None, None, dict[str, list[NoticeEntry]]]:
    by_agent: dict[str, list[NoticeEntry]] = {}
    for agent, entry in entries:
        by_agent.setdefault(agent, []).append(entry)
        yield
    return by_agent
