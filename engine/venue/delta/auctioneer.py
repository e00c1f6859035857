"""The auctions of one chain: which orders are due, the rounds, and what follows from them.

    an order is offered -> due at once, or after a pause that doubles with each round without a winner
    what is due, after gather_s -> a round: all agents at once -> closed -> simulated at one block -> decided
        -> one unit an order: the record, and for a winner ACTIVE with the effect `settle`
        -> only then: agents are told, runners-up lined up, what has no winner is offered again

An order is in one round at a time, until that has a settlement for it or none; what a bid for a part leaves
is due at once when that part was settled and read. Rounds may overlap, up to VENUE_ROUNDS_OPEN_MAX of them.
What was bid is in this process alone until the round is closed. A crash reopens the auction: nothing of an
open round is kept. However much an agent bids, it is worked off in slices of time.

Source: design, "Auction"; choices.md 26.
Choice: a round ends early once every agent has answered. One in which an order was cancelled goes on for the
    others; the settlement that won that order is let go, and its bid has lost.
Choice: `auctionId` is the clock's milliseconds or the last one of any chain and one: it rises over restarts
    too.
Choice: of rounds in a row in which nobody bid for an order the first is kept: orders may wait for weeks.
"""

import math
from collections.abc import Callable, Container, Generator, Iterable, Iterator, Mapping, Sequence
from enum import Enum

import structlog
import trio
from msgspec import Struct

from ....codecs.agent_messages import AuctionOrder, Notice, NoticeEntry, NotifyRequest, SolveRequest
from ....codecs.wire import encode
from ....config import limits
from ....config.errors import ChainError, OrderNotFound, RequestError, StoreError
from ....config.venue import DeltaSettings
from ....crypto.addresses import to_checksum
from ....feeds.slices import Slices
from ...scheduler import Scheduler
from ...store.orders import effect_key
from ...store.rows import DeltaOrder
from ...store.store import Store
from ...store.tables import AUCTION_ROUND
from ...store.units import Change, Unit, put
from .agent_caller import caller_of, with_caller
from .agent_client import AgentClient, AgentClientStatistics, AgentFailure
from .agent_rest import AgentFault, AgentReport, AgentRest
from .auction import Decision, Verdict, deciding, left_out, let_go, notices
from .auction_record import Rejections, RoundTimes, round_rows
from .bids import Answer, Candidate, Rejection, RoundOrder, asked_of, read_answer, shown, sorted_out
from .claims import Claims
from .life import OPEN, SETTLE, DeltaStep, won
from .live_orders import LiveOrder, LiveOrders
from .settling import (
    Settlement,
    Settling,
    agents_fault,
    settlement_of,
    settlement_payload,
)
from .simulating import AuctionAt, gas_cost, reached, simulated
from .simulation import Proven
from .terms import slice_due

_log = structlog.get_logger("cambist.venue")

_RECORDS_A_WRITE = 16  # of at most 64 bids: together far below what one write may hold
_FAULTS = {
    Notice.MALFORMED: AgentFault.MALFORMED,
    Notice.SIMULATION_MISMATCH: AgentFault.SIMULATION_MISMATCH,
}


class AuctionIds:
    """The ids of a venue's rounds, those of all its chains: none is given twice."""

    def __init__(self) -> None:
        self._last = 0

    def next(self, now_ms: int) -> int:
        """The id of a round that opens now. They rise."""
        self._last = max(self._last + 1, now_ms)
        return self._last


class AuctioneerStatistics(Struct, frozen=True):
    """One chain's auctions.

    Attributes:
        waiting: orders that will be due.
        ready: orders that are due.
        open_rounds: now.
        rounds, won, void: rounds so far; orders that they found a settlement for; rounds that came to
            nothing, mostly because the chain or the store was away.
        agents: name -> what it was asked and told.
    """

    waiting: int
    ready: int
    open_rounds: int
    rounds: int
    won: int
    void: int
    agents: Mapping[str, AgentClientStatistics]


class _Round(Struct, frozen=True):
    """A round while it is open.

    Attributes:
        unsettled: hashes of the orders for which it has no settlement.
    """

    auction_id: int
    opened_ms: int
    orders: Mapping[bytes, RoundOrder]
    unsettled: set[bytes]


class _End(Enum):
    """What became of a settlement that won: kept, let go, or nobody can say."""

    KEPT = "kept"
    LET_GO = "let go"
    UNKNOWN = "unknown"


class Auctioneer:
    """See the module. `run` is its task.

    Args:
        agents: by name.
        scheduler: of the engine.
        ids: of the engine.
        settings: how long things take.
        wall_ms: Unix milliseconds.

    Attributes:
        settling: takes what was won; set by whoever opens both.
        claims: that settlements have on accounts; set by whoever follows these.
        unsettled: told of an open order that no round found a settlement for; unless set, it is offered anew.
    """

    settling: Settling
    claims: Claims

    def __init__(
        self,
        at: AuctionAt,
        agents: Mapping[str, AgentClient],
        orders: LiveOrders,
        store: Store,
        scheduler: Scheduler,
        *,
        ids: AuctionIds,
        settings: DeltaSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self._at = at
        self._place = at.place
        self._orders = orders
        self._store = store
        self._scheduler = scheduler
        self._ids = ids
        self._settings = settings
        self._wall_ms = wall_ms
        self._tries: dict[bytes, int] = {}
        self._waiting: dict[bytes, int] = {}  # with the time of their last fill
        self._ready: dict[bytes, None] = {}
        self._in_round: set[bytes] = set()
        self._closed_ms: dict[bytes, int] = {}
        self._silent: set[bytes] = set()  # orders for which nobody bid in their last round
        self._asleep = trio.lowlevel.ParkingLot()
        self._open = self._rounds = self._won = self._void = 0
        self._turns = trio.Semaphore(limits.VENUE_ROUNDS_OPEN_MAX)
        self._slices = Slices()
        self.agents = agents
        self.unsettled: Callable[[LiveOrder], None] = self.offer
        rest_ms, rest_ms_max = round(settings.rest_s * 1_000), round(settings.rest_s_max * 1_000)
        self._rests = {name: AgentRest(rest_ms, rest_ms_max) for name in agents}

    def statistics(self) -> AuctioneerStatistics:
        """Counters and present sizes."""
        return AuctioneerStatistics(
            len(self._waiting),
            len(self._ready),
            self._open,
            self._rounds,
            self._won,
            self._void,
            {name: client.statistics() for name, client in self.agents.items()},
        )

    # --- What is due ------------------------------------------------------------------------------------

    def offer(self, live: LiveOrder, *, is_due: bool = False) -> None:
        """Auction an order when it is due, unless it waits for that already.

        Args:
            is_due: now, whatever `due_ms` says.
        """
        order_hash = live.order_hash
        if order_hash in self._ready or order_hash in self._in_round:
            return
        if order_hash in self._waiting:
            if not is_due and self._waiting[order_hash] == live.last_fill_s:
                return
            self._scheduler.cancel(_due(order_hash))
        at_ms = self.due_ms(live)
        if is_due or at_ms <= self._wall_ms():
            self._make_ready(order_hash)
            return
        self._waiting[order_hash] = live.last_fill_s
        self._scheduler.at(at_ms, _due(order_hash), lambda: self._make_ready(order_hash))

    def is_joinable(self, order_hash: bytes) -> bool:
        """Whether who is offered now shares a round with an order that is offered now, or was already."""
        is_full = len(self._ready) >= limits.AGENT_ORDERS_MAX
        return order_hash not in self._in_round and not (order_hash in self._ready and is_full)

    def begin_anew(self, order_hash: bytes) -> None:
        """Rounds that found nothing for an order count no more: its market has moved away since."""
        self._tries.pop(order_hash, None)

    def withdraw(self, order_hash: bytes) -> None:
        """Auction an order no more. The round that it is in goes on without it."""
        self._tries.pop(order_hash, None)
        self._closed_ms.pop(order_hash, None)
        self._silent.discard(order_hash)
        self._ready.pop(order_hash, None)
        if self._waiting.pop(order_hash, None) is not None:
            self._scheduler.cancel(_due(order_hash))

    def leave(self, held: Container[int]) -> None:
        """Forget the orders of shards that this engine does not hold any more."""
        known = {*self._tries, *self._waiting, *self._ready, *self._closed_ms, *self._silent}
        for order_hash in known:
            if order_hash[0] not in held:
                self.withdraw(order_hash)
        self.claims.leave(held)

    def tell(self, agent: str, auction_id: int, entry: NoticeEntry) -> None:
        """Let an agent know, and remember how it delivers."""
        self._tell(agent, auction_id, (entry,))
        if entry.notice is Notice.SETTLED and agent in self._rests:
            self._rests[agent].delivered(self._wall_ms())
        elif (fault := agents_fault(entry)) is not None:
            self._failed(agent, auction_id, fault, entry.order_hash)

    def reports(self) -> dict[str, AgentReport]:
        """How the agents do, by name."""
        now_ms = self._wall_ms()
        return {name: rest.report(now_ms) for name, rest in self._rests.items()}

    def last_round_ms(self, order_hash: bytes) -> int:
        """When the last round with an order closed, Unix milliseconds; 0 where that is not known."""
        return self._closed_ms.get(order_hash, 0)

    def _failed(self, agent: str, auction_id: int, fault: AgentFault, order_hash: str = "") -> None:
        """An agent did wrong; where it has to rest for that, it is told."""
        rest = self._rests.get(agent)
        until_ms = 0 if rest is None else rest.failed(fault, self._wall_ms(), order_hash)
        if until_ms:
            _log.warning("an agent rests", agent=agent, chain_id=self._place.chain_id, fault=fault.value)
            self._tell(
                agent, auction_id, (NoticeEntry(Notice.BANNED, detail=fault.value, until_ms=until_ms),)
            )

    def _tell(self, agent: str, auction_id: int, entries: Sequence[NoticeEntry]) -> None:
        client = self.agents.get(agent)
        if client is not None:
            client.notify(NotifyRequest(auction_id, self._place.chain_id, tuple(entries)))

    def due_ms(self, live: LiveOrder) -> int:
        """When its next round may open: at first at once, a slice of a TWAP after its interval."""
        tries = self._tries.get(live.order_hash, 0) + live.in_vain
        again_s = min(self._settings.again_s * 2.0 ** min(tries - 1, 30), self._settings.again_s_max)
        at_ms = self._wall_ms() + (round(again_s * 1_000) if tries else 0)
        return max(at_ms, slice_due(live.order, live.last_fill_s) * 1_000)

    def _make_ready(self, order_hash: bytes) -> None:
        self._waiting.pop(order_hash, None)
        if not self._ready:
            self._asleep.unpark()
        self._ready[order_hash] = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Open rounds for what is due, until cancelled."""
        async with trio.open_nursery() as nursery:
            self._nursery = nursery
            for client in self.agents.values():
                nursery.start_soon(client.run)
            task_status.started()
            while True:
                if not self._ready:
                    await self._asleep.park()
                await trio.sleep(self._settings.gather_s)
                await self._turns.acquire()
                asked = self._gathered()
                if asked:
                    self._in_round |= asked.keys()
                    nursery.start_soon(self._run_round, asked)
                else:
                    self._turns.release()

    def _gathered(self) -> dict[bytes, RoundOrder]:
        """What is due and still waits for a round."""
        asked: dict[bytes, RoundOrder] = {}
        while self._ready and len(asked) < limits.AGENT_ORDERS_MAX:
            order_hash = next(iter(self._ready))
            del self._ready[order_hash]
            live = self._orders.get(order_hash)
            if live is None or live.row.status not in OPEN or live.settling is not None:
                continue
            found = asked_of(live)
            if found is not None:
                asked[order_hash] = found
        return asked

    # --- A round ----------------------------------------------------------------------------------------

    async def _run_round(self, asked: Mapping[bytes, RoundOrder]) -> None:
        self._open += 1
        self._rounds += 1
        opened_ms = self._wall_ms()
        this = _Round(self._ids.next(opened_ms), opened_ms, asked, set(asked))
        try:
            await self._round(this)
        except (ChainError, RequestError, StoreError) as error:
            self._void += 1
            _log.warning("a round came to nothing", chain_id=self._place.chain_id, detail=str(error))
        except Exception as error:  # noqa: BLE001  one round's bug is not the others' end
            self._void += 1
            _log.error("a round failed", chain_id=self._place.chain_id, detail=repr(error), exc_info=True)
        finally:
            self._open -= 1
            self._turns.release()
            for order_hash in asked:
                if order_hash in this.unsettled:
                    self._over(order_hash)

    def _over(self, order_hash: bytes) -> None:
        """A round has found no settlement for an order."""
        live = self._orders.get(order_hash)
        due_s = 0 if live is None else slice_due(live.order, live.last_fill_s)
        if due_s:
            self._nursery.start_soon(self._slice_again, order_hash, due_s)
        else:
            self._again(order_hash)

    async def _slice_again(self, order_hash: bytes, due_s: int) -> None:
        """Offer a slice anew; one that came before its time by the chain, then, and no round counts."""
        is_early = await reached(self._place.chain, due_s, self._settings.again_s_max)
        self._again(order_hash, tries=0 if is_early else 1)

    def _again(self, order_hash: bytes, tries: int = 1) -> None:
        """Offer an order anew that no round found a settlement for."""
        self._in_round.discard(order_hash)
        live = self._orders.get(order_hash)
        if live is not None and live.row.status in OPEN and live.settling is None:
            self._tries[order_hash] = self._tries.get(order_hash, 0) + tries
            self.unsettled(live)
        else:
            self.withdraw(order_hash)

    async def _round(self, this: _Round) -> None:
        answers, rejections = await self._collect(this)
        closed_ms = self._wall_ms()
        candidates: list[Candidate] = []
        for answer in answers:
            read = read_answer(answer, this.orders)
            await self._slices.work(sorted_out(read, candidates, rejections))
        bids, refused_by_chain = await simulated(candidates, self._at, self._slices)
        rejections += refused_by_chain
        gas_price_wei = self._place.gas.gas_price_wei
        costs = {key: cost for key, one in this.orders.items() if (cost := gas_cost(one, self._place))}
        steps = deciding(tuple(this.orders.values()), bids, gas_price_wei, costs)
        decided: list[Decision] = []
        await self._slices.work(_ending_in(steps, decided))
        (decision,) = decided
        self._closed_ms |= dict.fromkeys(this.orders, closed_ms)
        stands = await self._conclude(this, closed_ms, decision, rejections)
        self._remember(this.auction_id, answers, rejections)
        told: dict[str, list[NoticeEntry]] = {}
        await self._slices.work(_by_agent(notices(stands, rejections), told))
        for agent, entries in told.items():
            self._tell(agent, this.auction_id, entries)

    async def _collect(self, this: _Round) -> tuple[list[Answer], list[Rejection]]:
        """Ask all agents at once; whoever is heard before the round closes has answered."""
        answers: list[Answer] = []
        rejections: list[Rejection] = []
        round_s = self._settings.round_s
        closes_at = trio.current_time() + round_s

        async def ask(name: str, client: AgentClient, body: bytes) -> None:
            try:
                raw = await client.solve(body, deadline_s=closes_at - trio.current_time())
            except AgentFailure as failure:
                if failure.fault is None:
                    _log.warning("an agent was not asked", agent=name, detail=failure.detail)
                    return
                arrived_ms = self._wall_ms() - this.opened_ms
                notice = Notice.MALFORMED if failure.fault is AgentFault.REFUSED else Notice.LATE
                rejections.append(Rejection(name, arrived_ms, notice, failure.detail))
                self._failed(name, this.auction_id, failure.fault)
                return
            if raw is None:
                self._rests[name].answered()
            else:
                answers.append(Answer(name, len(answers), self._wall_ms() - this.opened_ms, raw))

        questions = await self._questions(this)
        async with trio.open_nursery() as nursery:
            for name, body in questions.items():
                nursery.start_soon(ask, name, self.agents[name], body)
        return answers, rejections

    async def _questions(self, this: _Round) -> dict[str, bytes]:
        """What each agent is asked that does not rest; those who are shown the same orders share their bytes.

        Raises:
            ServiceUnavailable: what gas costs is not known.
        """
        now_ms = self._wall_ms()
        as_shown: dict[bytes, AuctionOrder] = {}
        await self._slices.work(_all_shown(this.orders.values(), as_shown))
        bodies: dict[tuple[bytes, ...], bytes] = {}
        questions: dict[str, bytes] = {}
        for name, rest in self._rests.items():
            hashes = tuple([key for key, one in this.orders.items() if one.document.admits(name)])
            if rest.is_resting(now_ms) or not hashes:
                continue
            if hashes not in bodies:
                bodies[hashes] = self._request(this, [as_shown[key] for key in hashes])
            questions[name] = with_caller(bodies[hashes], caller_of(self._place.delta, name))
        return questions

    def _request(self, this: _Round, orders: Sequence[AuctionOrder]) -> bytes:
        place = self._place
        return encode(
            SolveRequest(
                this.auction_id,
                place.chain_id,
                this.opened_ms + round(self._settings.round_s * 1_000),
                to_checksum(place.delta),
                to_checksum(place.executor),
                to_checksum(place.rfq),
                to_checksum(place.tokens.wrapped_native),
                str(place.gas.gas_price_wei),
                tuple(orders),
                self._wall_ms(),
            )
        )

    def _remember(self, auction_id: int, answers: Sequence[Answer], rejections: Sequence[Rejection]) -> None:
        """How the agents that answered did. What a simulation refuses may be the user's cause: no fault."""
        agents = {answer.agent for answer in answers}
        faults = {
            (rejection.agent, fault)
            for rejection in rejections
            if rejection.agent in agents and (fault := _FAULTS.get(rejection.notice)) is not None
        }
        for agent, fault in sorted(faults):
            self._failed(agent, auction_id, fault)
        faulty = {agent for agent, _ in faults}
        for agent in agents - faulty:
            self._rests[agent].answered()

    # --- What follows from it ---------------------------------------------------------------------------

    async def _conclude(
        self, this: _Round, closed_ms: int, decision: Decision, rejections: Sequence[Rejection]
    ) -> Decision:
        """Write what was decided, each settlement in a unit with its orders and their records.

        Returns:
            What stands of it: without the settlements that were let go, and without the orders of those of
            which nobody can say whether they were kept.
        """
        times = RoundTimes(this.auction_id, self._place.chain_id, this.opened_ms, closed_ms)
        refused = Rejections(rejections)
        won = [verdict for verdict in decision.verdicts.values() if verdict.winner is not None]
        records = await self._records(times, won, refused)
        stands = decision

        async def settle(winner: Proven) -> None:
            nonlocal stands
            hashes = [part.asked.order_hash for part in winner.candidate.parts]
            end = await self._settle(this, winner, decision, {key: records[key] for key in hashes})
            if end is _End.KEPT:
                self._won += len(hashes)
                this.unsettled.difference_update(hashes)  # what is left of them may be in the next round
                self._in_round.difference_update(hashes)
            else:
                stands = (let_go if end is _End.LET_GO else left_out)(stands, winner)

        async with trio.open_nursery() as nursery:  # the store writes them together
            for winner in decision.winners:
                nursery.start_soon(settle, winner)
        others = [verdict for verdict in stands.verdicts.values() if verdict.winner is None]
        kept = [verdict for verdict in others if self._is_kept(verdict, refused)]
        for at in range(0, len(kept), _RECORDS_A_WRITE):
            some = await self._records(times, kept[at : at + _RECORDS_A_WRITE], refused)
            await self._store.write(Unit(tuple(some.values())))
        return stands

    async def _records(
        self, times: RoundTimes, verdicts: Iterable[Verdict], refused: Rejections
    ) -> dict[bytes, Change]:
        """What is written of a round, by the hash of the order."""
        records: dict[bytes, Change] = {}

        def made() -> Iterator[None]:
            for row in round_rows(times, verdicts, refused):
                records[row.order_hash] = put(AUCTION_ROUND, row)
                yield

        await self._slices.work(made())
        return records

    def _is_kept(self, verdict: Verdict, refused: Rejections) -> bool:
        """Whether a round without a settlement is kept."""
        key = verdict.asked.order_hash
        if verdict.bids or key in refused:
            self._silent.discard(key)
            return True
        is_first = key not in self._silent
        self._silent.add(key)
        return is_first

    async def _settle(
        self, this: _Round, winner: Proven, decision: Decision, records: Mapping[bytes, Change]
    ) -> _End:
        """Intend the settlement that won, unless an order of it is not open any more."""
        hashes = tuple(records)
        shared = ""

        def decided(row: DeltaOrder) -> DeltaStep | None:
            nonlocal shared
            live = self._orders.get(row.order_hash)
            if row.status not in OPEN or live is None or live.settling is not None:
                raise _NotOpen
            if row.order_hash == hashes[0]:
                shared = effect_key(row.order_hash, row.version + 1, SETTLE)
            at = hashes.index(row.order_hash)
            settlement = self._settlement(this, winner, at, shared)
            return won(row, settlement_payload(settlement, row), (records[row.order_hash],), self._wall_ms())

        if not self.claims.claim([live for key in hashes if (live := self._orders.get(key)) is not None]):
            return _End.LET_GO
        for order_hash in hashes:
            runners_up = decision.verdicts[order_hash].runners_up
            self.settling.line_up(order_hash, [self._settlement(this, one, 0, "") for one in runners_up])
        try:
            await self._orders.step_all(hashes, decided)
        except (_NotOpen, OrderNotFound):
            return _End.LET_GO
        except StoreError as error:
            _log.warning("a settlement was not kept", chain_id=self._place.chain_id, detail=error.detail)
            return _End.UNKNOWN
        finally:
            self.claims.release(hashes)
        return _End.KEPT

    def _settlement(self, this: _Round, bid: Proven, at: int, key: str) -> Settlement:
        deadline_s = self._wall_ms() // 1_000 + math.ceil(self._settings.settlement_s)
        return settlement_of(bid, at, key, this.auction_id, deadline_s, self._at.gas_max)


class _NotOpen(Exception):
    """An order of a settlement was cancelled, or ended, or has another, since the round began."""


def _ending_in(
    steps: Generator[None, None, Decision], decided: list[Decision]
) -> Generator[None, None, None]:
    decided.append((yield from steps))


def _all_shown(orders: Iterable[RoundOrder], as_shown: dict[bytes, AuctionOrder]) -> Iterator[None]:
    for one in orders:
        as_shown[one.order_hash] = shown(one)
        yield


def _by_agent(
    entries: Iterable[tuple[str, NoticeEntry]], told: dict[str, list[NoticeEntry]]
) -> Iterator[None]:
    for agent, entry in entries:
        told.setdefault(agent, []).append(entry)
        yield


def _due(order_hash: bytes) -> tuple[str, bytes]:
    return "auction", order_hash
