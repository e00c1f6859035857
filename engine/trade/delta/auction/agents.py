"""The agents (solvers) of one chain: requests for bids, limits on these, cool-downs after faults, notices.

Source: ARCHITECTURE.md, "Auction"; docs/guides/agents.md.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from math import inf

import structlog
import trio
from msgspec.structs import replace

from .....codecs.messages.agent_messages import Notice, NoticeEntry, NotifyRequest
from .....config.errors import InvalidInput
from .....config.sections.venue import DeltaSettings
from ..bids.agent_client import AgentClient, AgentClientStatistics, AgentFailure
from ..bids.agent_pace import AgentPace, AgentQuestion
from ..bids.agent_rest import AgentFault, AgentReport, AgentRest
from ..bids.bids import Answer
from ..orders.document import DeltaDocument
from .due_orders import AgentNames, AgentRoom

_log = structlog.get_logger("cambist.venue")


class AuctioneerWakeup:
    """Event on which the auctioneer waits, set when an order becomes due or an agent gains capacity."""

    def __init__(self) -> None:
        self._woken = trio.Event()

    def wake(self) -> None:
        """Wake the auctioneer, i.e. the task that waits in `wait` to open auction rounds."""
        self._woken.set()

    async def wait(self) -> None:
        """Return once `wake` is called; at once if it was called since the last `reset`."""
        await self._woken.wait()

    def reset(self) -> None:
        """Forget all calls of `wake` so far, so that `wait` waits for the next call."""
        self._woken = trio.Event()


class Agents:
    """Sends requests for bids and notices to one chain's agents; tracks each agent's capacity and cool-down.

    Args:
        clients: HTTP clients by agent name.
        settings: lengths of cool-downs (rests) and rounds.
        wakeup: event that `Agents` sets when an agent may be asked about more orders than before.
        wall_ms: returns the time, Unix milliseconds.
    """

    def __init__(
        self,
        clients: Mapping[str, AgentClient],
        *,
        chain_id: int,
        settings: DeltaSettings,
        wakeup: AuctioneerWakeup,
        wall_ms: Callable[[], int],
    ) -> None:
        self._clients = clients
        self._chain_id = chain_id
        self._wall_ms = wall_ms
        self._wakeup = wakeup
        rest_ms, rest_ms_max = round(settings.rest_s * 1_000), round(settings.rest_s_max * 1_000)
        self._rests = {name: AgentRest(rest_ms, rest_ms_max) for name in clients}
        self._paces = {name: AgentPace(settings.round_s) for name in clients}
        self._held: dict[int, list[tuple[str, Sequence[NoticeEntry]]]] = {}  # by auction id

    def statistics(self) -> dict[str, AgentClientStatistics]:
        """Return the counters of the agents' HTTP clients, by agent name."""
        return {name: client.statistics() for name, client in self._clients.items()}

    def reports(self) -> dict[str, AgentReport]:
        """Return each agent's report of answers, settlements, faults and cool-down, by agent name."""
        now_ms = self._wall_ms()
        return {
            name: replace(rest.report(now_ms), orders_max=self._paces[name].orders_max)
            for name, rest in self._rests.items()
        }

    def start(self, nursery: trio.Nursery) -> None:
        """Start the tasks that send notices to the agents; the tasks run until the nursery is cancelled."""
        for client in self._clients.values():
            nursery.start_soon(client.run)

    # --- Availability -----------------------------------------------------------------------------------

    def admitted(self, document: DeltaDocument) -> AgentNames:
        """Return the names of the chain's agents that may bid for an order, according to its document."""
        return tuple([name for name in self._clients if document.admits(name)])

    def orders_max(self) -> int:
        """Largest number of orders that any agent may be asked about at a time; 0 without agents."""
        return max((pace.orders_max for pace in self._paces.values()), default=0)

    def standing(self, now: float) -> dict[str, AgentRoom]:
        """Return each agent's capacity for further orders now, by agent name.

        An agent in a cool-down is missing in the result, unless its cool-down is for lateness.

        Args:
            now: time on trio's clock, seconds.
        """
        now_ms = self._wall_ms()
        return {
            name: AgentRoom(self._paces[name].room(now), rest.is_slow(now_ms), self._paces[name].is_failing)
            for name, rest in self._rests.items()
            if rest.is_slow(now_ms) or not rest.is_resting(now_ms)
        }

    def wakes_at(self, now: float) -> float:
        """Return the earliest time at which an agent's pause or cool-down ends, seconds of trio's clock.

        The result is inf if no agent is paused or in a cool-down.
        """
        return min(self._wake(now), default=inf)

    def _wake(self, now: float) -> Iterator[float]:
        now_ms = self._wall_ms()
        for name, rest in self._rests.items():
            if self._paces[name].asks_again_at > now:
                yield self._paces[name].asks_again_at
            if rest.is_resting(now_ms):
                yield now + (rest.rests_until_ms(now_ms) - now_ms) / 1_000

    # --- Asking -----------------------------------------------------------------------------------------

    def reserve(self, orders: Iterable[AgentNames], now: float) -> dict[str, AgentQuestion]:
        """Reserve the agents' capacity for the orders of an auction round, before the agents are asked.

        Args:
            orders: for each order, the names of the agents to ask.
            now: time on trio's clock, seconds.

        Returns:
            Records of the requests to send, by agent name; the caller passes each to `ask` or `release`.
        """
        counts = Counter(name for names in orders for name in names)
        return {name: self._paces[name].asked(count, now) for name, count in counts.items()}

    def release(self, questions: Mapping[str, AgentQuestion]) -> None:
        """Free the capacity that `reserve` has reserved for requests which are not sent."""
        for name, question in questions.items():
            self._paces[name].dropped(question)

    async def ask(
        self,
        name: str,
        body: bytes,
        hashes: Sequence[bytes],
        question: AgentQuestion,
        *,
        deadline_s: float,
        read: Callable[[bytes], Answer],
    ) -> Answer | None:
        """Send a request for bids on orders of an auction round to an agent, and decode the agent's answer.

        Args:
            body: an encoded SolveRequest.
            hashes: hashes of the orders in the request.
            question: record of the request that `reserve` returned for the agent.
            deadline_s: time limit, seconds from now.
            read: decodes the body of an answer; raises InvalidInput.

        Returns:
            The decoded answer; None if the agent declines to bid.

        Raises:
            AgentFailure: the agent gave no readable answer in time, or was not asked.
        """
        pace = self._paces[name]
        # A cancelled call leaves the question open: the end of the round releases it (`RoundAsking.answers`).
        try:
            raw = await self._clients[name].solve(body, deadline_s=deadline_s)
            answer = None if raw is None else read(raw)
        except AgentFailure as failed:
            failure = failed
        except InvalidInput as error:
            failure = AgentFailure(AgentFault.MALFORMED, error.detail)
        else:
            # Hashes that are not of this request, which an agent may name by mistake, do not count.
            not_reached = 0 if answer is None else len(answer.not_reached.intersection(hashes))
            pace.answered(question, trio.current_time(), not_reached)
            self._wakeup.wake()
            return answer
        pace.failed(question, trio.current_time(), is_late=failure.fault is AgentFault.LATE)
        self._wakeup.wake()
        raise failure

    # --- Outcomes ---------------------------------------------------------------------------------------

    def tell(self, agent: str, auction_id: int, entry: NoticeEntry, fault: AgentFault | None) -> None:
        """Notify an agent of the outcome of its bid's settlement, and record a success or the agent's fault.

        Args:
            entry: notice of the outcome; an entry whose `notice` is SETTLED counts as a success.
            fault: the agent's fault in the settlement; None without a fault.
        """
        self.notify(agent, auction_id, (entry,))
        if entry.notice is Notice.SETTLED and agent in self._rests:
            self._rests[agent].delivered(self._wall_ms())
        elif fault is not None:
            self.failed(agent, auction_id, fault, entry.order_hash)

    def hold(self, auction_id: int) -> None:
        """Hold all notices about an auction round until `conclude`, which sends the round's result first."""
        self._held[auction_id] = []

    def conclude(self, auction_id: int, results: Mapping[str, Sequence[NoticeEntry]]) -> None:
        """Queue the notices of an auction round's result, then the notices that were held since `hold`.

        Args:
            results: notices of the result, by agent name.
        """
        held = self._held.pop(auction_id, ())
        for agent, entries in (*results.items(), *held):
            self.notify(agent, auction_id, entries)

    def notify(self, agent: str, auction_id: int, entries: Sequence[NoticeEntry]) -> None:
        """Queue a notice to an agent; no effect if no agent of the chain has this name."""
        client = self._clients.get(agent)
        if auction_id in self._held:
            self._held[auction_id].append((agent, entries))
        elif client is not None:
            client.notify(NotifyRequest(auction_id, self._chain_id, tuple(entries)))

    def awake(self) -> frozenset[str]:
        """Names of the agents that do not rest."""
        now_ms = self._wall_ms()
        return frozenset(name for name, rest in self._rests.items() if not rest.is_resting(now_ms))

    def answered(self, agent: str) -> None:
        """Record that an agent answered a request without a fault, which ends a cool-down for lateness."""
        self._rests[agent].answered()

    def simulated(self, agent: str, auction_id: int, owner: bytes, *, is_good: bool) -> None:
        """Record whether an agent's bid on an order passed its simulation; no effect for an own bid's.

        Too many failures on orders of several owners are the fault WASTE. The caller records a failure only
        if another agent's bid on the order passed (`bid_merit.judged`), since a failure counts against the
        agent.

        Args:
            owner: owner of the order, 20 bytes.
            is_good: whether the bid passed its simulation.
        """
        rest = self._rests.get(agent)
        if rest is not None and rest.simulated(owner, is_good=is_good):
            self.failed(agent, auction_id, AgentFault.WASTE)

    def failed(self, agent: str, auction_id: int, fault: AgentFault, order_hash: str = "") -> None:
        """Record an agent's fault, and notify the agent if the fault starts a cool-down.

        Args:
            order_hash: hash of the order, as text, if the fault is IN_DOUBT (the failed settlement may be an
                owner's fault).
        """
        rest, now_ms = self._rests.get(agent), self._wall_ms()
        # A doubt may be wrong, and an order that no agent bids on is lost in any case.
        may_rest = fault is not AgentFault.IN_DOUBT or bool(self.awake() - {agent})
        until_ms = 0 if rest is None else rest.failed(fault, now_ms, order_hash, may_rest=may_rest)
        if until_ms:
            _log.warning("an agent rests", agent=agent, chain_id=self._chain_id, fault=fault.value)
            banned = NoticeEntry(Notice.BANNED, detail=fault.value, until_ms=until_ms)
            self.notify(agent, auction_id, (banned,))
