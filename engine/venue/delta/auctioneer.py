"""The auctions of one chain: which orders are due, the rounds, and what follows from them.

    an order is offered -> due at once, or after a pause that doubles with each round without a winner
    what is due, after gather_s -> a round: all agents at once -> closed -> simulated at one block -> decided
        -> one unit an order: the record, and for a winner ACTIVE with the effect `settle`
        -> only then: agents are told, runners-up lined up, what has no winner is offered again

An order is in one round at a time; rounds may overlap. What was bid is in this process alone until the round
is closed. A crash reopens the auction: nothing of an open round is kept.

Source: design, "Auction"; choices.md 26.
Choice: a round ends early once every agent has answered. One in which an order was cancelled goes on for the
    others, and that order's winner is let go.
Choice: `auctionId` is the clock's milliseconds or the last one and one: it rises over restarts too.
Choice: of rounds in a row in which nobody bid for an order the first is kept: orders may wait for weeks.
"""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager

import structlog
import trio
from msgspec import Struct

from ....codecs.agent_messages import Notice, NoticeEntry, NotifyRequest, SolveRequest
from ....codecs.vocabulary import Side
from ....codecs.wire import encode
from ....config import limits
from ....config.errors import ChainError, OrderNotFound, PricingError, RequestError, StoreError
from ....config.timeouts import SIMULATION_S
from ....config.venue import DeltaSettings
from ....crypto.addresses import to_checksum
from ...chain.relay_plan import GIVEN_UP, TOO_LATE
from ...scheduler import Scheduler
from ...store.orders import effect_key
from ...store.rows import DeltaOrder
from ...store.store import Store
from ...store.tables import AUCTION_ROUND
from ...store.units import Change, Unit, put
from ..place import Place
from .agent_client import AgentClient, AgentFailure
from .agent_rest import AgentFault, AgentReport, AgentRest
from .auction import Decision, GasCost, Verdict, decide, notices
from .auction_record import RoundTimes, round_rows
from .bids import Answer, Candidate, Rejection, RoundOrder, asked_of, read_answer, shown
from .life import OPEN, SETTLE, Step, won
from .live_orders import LiveOrder, LiveOrders
from .price import gas_in_token
from .settling import Settlement, Settling, settlement_payload
from .simulation import Proven, not_proven, proven, simulation_of

_log = structlog.get_logger("cambist.venue")

_SLACK_GAS = 50_000  # beside a third: of what a call is given, a 64th stays behind
_NOT_THE_AGENTS = (
    "PullFailed", "InsufficientDeposit", "InvalidSignature", "NonceUsed", "OrderExpired", "Overfilled",
    "TooEarly", "NotRelayer", TOO_LATE, GIVEN_UP,
)  # fmt: skip
"""Why a settlement fails, in the contract's words and the relayer's, that no agent can help."""
_FAULTS = {
    Notice.MALFORMED: AgentFault.MALFORMED,
    Notice.SIMULATION_MISMATCH: AgentFault.SIMULATION_MISMATCH,
}


class AuctionAt(Struct, frozen=True):
    """Where it is settled.

    Attributes:
        relayer: whose account settles, 20 bytes.
        gas_max: units of one settlement.
    """

    place: Place
    relayer: bytes
    gas_max: int


class AuctioneerStatistics(Struct, frozen=True):
    """One chain's auctions.

    Attributes:
        waiting: orders that will be due.
        ready: orders that are due.
        open_rounds: now.
        rounds, won, void: rounds so far; orders that they found a settlement for; rounds that came to
            nothing, mostly because the chain or the store was away.
        agents: name -> questions so far.
    """

    waiting: int
    ready: int
    open_rounds: int
    rounds: int
    won: int
    void: int
    agents: Mapping[str, int]


class _Round(Struct, frozen=True):
    """A round while it is open."""

    auction_id: int
    opened_ms: int
    orders: Mapping[bytes, RoundOrder]


class Auctioneer:
    """See the module. `run` is its task.

    Args:
        agents: by name.
        scheduler: of the engine.
        settings: how long things take.
        wall_ms: Unix milliseconds.

    Attributes:
        settling: takes what was won; set by whoever opens both.
    """

    settling: Settling

    def __init__(
        self,
        at: AuctionAt,
        agents: Mapping[str, AgentClient],
        orders: LiveOrders,
        store: Store,
        scheduler: Scheduler,
        *,
        settings: DeltaSettings,
        wall_ms: Callable[[], int],
    ) -> None:
        self._at = at
        self._place = at.place
        self._orders = orders
        self._store = store
        self._scheduler = scheduler
        self._settings = settings
        self._wall_ms = wall_ms
        self._tries: dict[bytes, int] = {}
        self._waiting: set[bytes] = set()
        self._ready: dict[bytes, None] = {}
        self._in_round: set[bytes] = set()
        self._closed_ms: dict[bytes, int] = {}
        self._silent: set[bytes] = set()  # orders for which nobody bid in their last round
        self._asleep = trio.lowlevel.ParkingLot()
        self._last_id = 0
        self._open = self._rounds = self._won = self._void = 0
        self._asked = dict.fromkeys(agents, 0)
        self.agents = agents
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
            dict(self._asked),
        )

    # --- What is due ------------------------------------------------------------------------------------

    def offer(self, live: LiveOrder) -> None:
        """Auction an order when it is due, unless it waits for that already."""
        order_hash = live.order_hash
        if order_hash in self._waiting or order_hash in self._ready or order_hash in self._in_round:
            return
        at_ms = self._due_ms(live)
        if at_ms <= self._wall_ms():
            self._make_ready(order_hash)
            return
        self._waiting.add(order_hash)
        self._scheduler.at(at_ms, _due(order_hash), lambda: self._make_ready(order_hash))

    def withdraw(self, order_hash: bytes) -> None:
        """Auction an order no more. The round that it is in goes on without it."""
        self._tries.pop(order_hash, None)
        self._closed_ms.pop(order_hash, None)
        self._silent.discard(order_hash)
        self._ready.pop(order_hash, None)
        if order_hash in self._waiting:
            self._waiting.discard(order_hash)
            self._scheduler.cancel(_due(order_hash))

    def tell(self, agent: str, auction_id: int, entry: NoticeEntry) -> None:
        """Let an agent know, and remember how it delivers."""
        self._tell(agent, auction_id, (entry,))
        if entry.notice is Notice.SETTLED and agent in self._rests:
            self._rests[agent].delivered(self._wall_ms())
        elif entry.notice is Notice.REVERTED and not entry.detail.startswith(_NOT_THE_AGENTS):
            self._failed(agent, auction_id, AgentFault.REVERTED)

    def reports(self) -> dict[str, AgentReport]:
        """How the agents do, by name."""
        now_ms = self._wall_ms()
        return {name: rest.report(now_ms) for name, rest in self._rests.items()}

    def last_round_ms(self, order_hash: bytes) -> int:
        """When the last round with an order closed, Unix milliseconds; 0 where that is not known."""
        return self._closed_ms.get(order_hash, 0)

    def _failed(self, agent: str, auction_id: int, fault: AgentFault) -> None:
        """An agent did wrong; where it has to rest for that, it is told."""
        rest = self._rests.get(agent)
        until_ms = 0 if rest is None else rest.failed(fault, self._wall_ms())
        if until_ms:
            _log.warning("an agent rests", agent=agent, chain_id=self._place.chain_id, fault=fault.value)
            self._tell(
                agent, auction_id, (NoticeEntry(Notice.BANNED, detail=fault.value, until_ms=until_ms),)
            )

    def _tell(self, agent: str, auction_id: int, entries: Sequence[NoticeEntry]) -> None:
        client = self.agents.get(agent)
        if client is not None:
            client.notify(NotifyRequest(auction_id, self._place.chain_id, tuple(entries)))

    def _due_ms(self, live: LiveOrder) -> int:
        """When its next round may open: at first at once, a slice of a TWAP after its interval."""
        tries = self._tries.get(live.order_hash, 0) + live.row.failures
        if not tries and not live.last_fill_s:
            return self._wall_ms()
        again_s = min(self._settings.again_s * 2.0 ** min(tries - 1, 30), self._settings.again_s_max)
        at_ms = self._wall_ms() + (round(again_s * 1_000) if tries else 0)
        interval_s = getattr(live.order, "interval", 0)
        return max(at_ms, (live.last_fill_s + interval_s) * 1_000) if live.last_fill_s else at_ms

    def _make_ready(self, order_hash: bytes) -> None:
        self._waiting.discard(order_hash)
        if not self._ready:
            self._asleep.unpark()
        self._ready[order_hash] = None

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Open rounds for what is due, until cancelled."""
        async with trio.open_nursery() as nursery:
            for client in self.agents.values():
                nursery.start_soon(client.run)
            task_status.started()
            while True:
                if not self._ready:
                    await self._asleep.park()
                await trio.sleep(self._settings.gather_s)
                asked = self._gathered()
                if asked:
                    nursery.start_soon(self._run_round, asked)

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
        self._in_round |= asked.keys()
        self._open += 1
        self._rounds += 1
        try:
            opened_ms = self._wall_ms()
            self._last_id = max(self._last_id + 1, opened_ms)
            await self._round(_Round(self._last_id, opened_ms, asked))
        except (ChainError, RequestError, StoreError) as error:
            self._void += 1
            _log.warning("a round came to nothing", chain_id=self._place.chain_id, detail=str(error))
        except Exception as error:  # noqa: BLE001  one round's bug is not the others' end
            self._void += 1
            _log.error("a round failed", chain_id=self._place.chain_id, detail=repr(error), exc_info=True)
        finally:
            self._open -= 1
            self._in_round -= asked.keys()
            for order_hash in asked:
                self._again(order_hash)

    def _again(self, order_hash: bytes) -> None:
        """Offer an order anew that no round found a settlement for."""
        live = self._orders.get(order_hash)
        if live is not None and live.row.status in OPEN and live.settling is None:
            self._tries[order_hash] = self._tries.get(order_hash, 0) + 1
            self.offer(live)
        else:
            self.withdraw(order_hash)

    async def _round(self, this: _Round) -> None:
        answers, rejections = await self._collect(this)
        closed_ms = self._wall_ms()
        candidates: list[Candidate] = []
        for answer in answers:
            found, refused = read_answer(answer, this.orders)
            candidates += found
            rejections += refused
            await trio.lowlevel.checkpoint()  # a large answer is read for milliseconds
        bids, refused_by_chain = await self._simulate(candidates)
        rejections += refused_by_chain
        gas_price_wei = self._place.gas.gas_price_wei
        costs = {key: cost for key, one in this.orders.items() if (cost := self._gas_cost(one)) is not None}
        decision = decide(tuple(this.orders.values()), bids, gas_price_wei, costs)
        self._closed_ms |= dict.fromkeys(this.orders, closed_ms)
        await self._conclude(this, closed_ms, decision, rejections)
        self._remember(this.auction_id, answers, rejections)
        for agent, entries in notices(decision, rejections).items():
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
                arrived_ms = self._wall_ms() - this.opened_ms
                notice = Notice.MALFORMED if failure.fault is AgentFault.REFUSED else Notice.LATE
                rejections.append(Rejection(name, arrived_ms, notice, failure.detail))
                self._failed(name, this.auction_id, failure.fault)
                return
            if raw is None:
                self._rests[name].answered()
            else:
                answers.append(Answer(name, len(answers), self._wall_ms() - this.opened_ms, raw))

        questions = self._questions(this)
        async with trio.open_nursery() as nursery:
            for name, body in questions.items():
                self._asked[name] += 1
                nursery.start_soon(ask, name, self.agents[name], body)
        return answers, rejections

    def _questions(self, this: _Round) -> dict[str, bytes]:
        """What each agent is asked that does not rest.

        Raises:
            ServiceUnavailable: what gas costs is not known.
        """
        now_ms = self._wall_ms()
        admitted = {
            name: [one for one in this.orders.values() if one.document.admits(name)]
            for name, rest in self._rests.items()
            if not rest.is_resting(now_ms)
        }
        return {name: self._request(this, orders) for name, orders in admitted.items() if orders}

    def _request(self, this: _Round, orders: Sequence[RoundOrder]) -> bytes:
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
                tuple([shown(one) for one in orders]),
                self._wall_ms(),
            )
        )

    async def _simulate(self, candidates: Sequence[Candidate]) -> tuple[list[Proven], list[Rejection]]:
        """What the bids are worth, all at one block; each agent's apart, so that one that bids what takes for
        ever is alone in that.

        Raises:
            ChainError: nobody can say.
        """
        if not candidates:
            return [], []
        with _in_time():
            header = await self._place.chain.block()
        if header is None:
            raise ChainError("the chain has no latest block")
        bids: list[Proven] = []
        rejections: list[Rejection] = []

        async def simulate(some: Sequence[Candidate]) -> None:
            at = self._at
            calls = [simulation_of(one, at.place.delta, at.relayer, at.gas_max) for one in some]
            try:
                with _in_time():
                    found = await at.place.chain.call_many(calls, header.hash)
                judged = [proven(one, answer) for one, answer in zip(some, found, strict=True)]
            except ChainError as error:
                rejections.extend(not_proven(one, str(error)) for one in some)
                return
            bids.extend(one for one in judged if isinstance(one, Proven))
            rejections.extend(one for one in judged if isinstance(one, Rejection))

        async with trio.open_nursery() as nursery:
            for agent in sorted({one.agent for one in candidates}):
                nursery.start_soon(simulate, [one for one in candidates if one.agent == agent])
        return bids, rejections

    def _gas_cost(self, asked: RoundOrder) -> GasCost | None:
        """What gas costs in the token that an order pays in; None where that has no price."""
        terms, place = asked.terms, self._place
        token = place.tokens.by_address.get(terms.dest_token if terms.side is Side.SELL else terms.src_token)
        if token is None:
            return None
        native, usd = place.tokens.wrapped_native, place.usd
        try:
            gas_in_token(token, 10**18, native, usd)
        except PricingError:
            return None
        return lambda wei: gas_in_token(token, wei, native, usd)

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
    ) -> None:
        """Write what was decided, each settlement in a unit with its orders and their records."""
        times = RoundTimes(this.auction_id, self._place.chain_id, this.opened_ms, closed_ms)
        rows = round_rows(times, decision, rejections)
        records: dict[bytes, Change] = {key: put(AUCTION_ROUND, row) for key, row in rows.items()}

        async def settle(winner: Proven) -> None:
            hashes = [part.asked.order_hash for part in winner.candidate.parts]
            if await self._settle(this, winner, decision, {key: records[key] for key in hashes}):
                self._won += len(hashes)
                for key in hashes:
                    del records[key]

        async with trio.open_nursery() as nursery:  # the store writes them together
            for winner in decision.winners:
                nursery.start_soon(settle, winner)
        others = [
            record for key, record in records.items() if self._is_kept(decision.verdicts[key], rejections)
        ]
        if others:
            await self._store.write(Unit(tuple(others)))

    def _is_kept(self, verdict: Verdict, rejections: Sequence[Rejection]) -> bool:
        """Whether a round without a settlement is kept."""
        key = verdict.asked.order_hash
        if verdict.bids or any(key in one.orders for one in rejections):
            self._silent.discard(key)
            return True
        is_first = key not in self._silent
        self._silent.add(key)
        return is_first

    async def _settle(
        self, this: _Round, winner: Proven, decision: Decision, records: Mapping[bytes, Change]
    ) -> bool:
        """Intend the settlement that won. Returns whether it is known to be: not where an order is not open
        any more, or the store is away."""
        hashes = tuple(records)
        shared = ""

        def decided(row: DeltaOrder) -> Step | None:
            nonlocal shared
            live = self._orders.get(row.order_hash)
            if row.status not in OPEN or live is None or live.settling is not None:
                raise _NotOpen
            if row.order_hash == hashes[0]:
                shared = effect_key(row.order_hash, row.version + 1, SETTLE)
            at = hashes.index(row.order_hash)
            settlement = self._settlement(this, winner, at, shared)
            return won(row, settlement_payload(settlement, row), (records[row.order_hash],), self._wall_ms())

        for order_hash in hashes:
            runners_up = decision.verdicts[order_hash].runners_up
            self.settling.line_up(order_hash, [self._settlement(this, one, 0, "") for one in runners_up])
        try:
            await self._orders.step_all(hashes, decided)
        except (_NotOpen, OrderNotFound):
            return False
        except StoreError as error:
            _log.warning("a settlement was not kept", chain_id=self._place.chain_id, detail=error.detail)
            return False
        return True

    def _settlement(self, this: _Round, bid: Proven, at: int, key: str) -> Settlement:
        gas = sum(outcome.gas for outcome in bid.outcomes)
        part = bid.candidate.parts[at].asked
        deadline_s = self._wall_ms() // 1_000 + math.ceil(self._settings.settlement_s)
        return Settlement(
            key,
            bid.candidate.calldata,
            min(gas + gas // 3 + _SLACK_GAS, self._at.gas_max),
            min(deadline_s, part.terms.deadline),
            bid.candidate.agent,
            this.auction_id,
            str(bid.amount(at)),
            part.part.is_last,
        )


class _NotOpen(Exception):
    """An order of a settlement was cancelled, or ended, or has another, since the round began."""


@contextmanager
def _in_time() -> Iterator[None]:
    """ChainError where the chain takes longer than a simulation may."""
    try:
        with trio.fail_after(SIMULATION_S):
            yield
    except trio.TooSlowError:
        raise ChainError(f"bids were not simulated within {SIMULATION_S:g} s") from None


def _due(order_hash: bytes) -> tuple[str, bytes]:
    return "auction", order_hash
