"""HTTP client of one agent on one chain: POST {url}/solve and POST {url}/notify, signed.

    solve     204                      --> None: no bid
              200                      --> the body, which `bids` reads
              any other status         --> REFUSED
              deadline                 --> LATE; no fault if no connection was free until then
              no whole HTTP answer     --> UNAVAILABLE: no connection, or it broke
              an invalid answer        --> MALFORMED: no HTTP, or too long
    notify    into a bounded queue, which `run` empties in order; successive notices about one round share a
              request; the answer is not read

A slow agent delays no other: a notice never waits for another agent, and `solve` never for a notice. A full
queue drops the oldest notice. A notice is sent once; a notice that the agent does not accept is lost. Both
losses are counted.

A request that a reused connection lost before any byte of its answer is sent once more. The repetition is
harmless: the auction id names the round, and the client reads only one answer.

Source: codecs/messages/agent_messages.py; spec 3.10; ARCHITECTURE.md, "Auction".
"""

from collections import deque
from collections.abc import Callable
from contextlib import AsyncExitStack
from ssl import SSLContext
from types import TracebackType
from typing import Self

import trio
from msgspec import Struct

from .....codecs.http1 import Http1Limits
from .....codecs.messages.agent_messages import NotifyRequest
from .....codecs.messages.wire import encode
from .....config.errors import MakerError
from .....config.limits import (
    AGENT_ANSWER_BYTES_MAX,
    AGENT_NOTICES_WAITING_MAX,
    AGENT_ORDERS_MAX,
    VENUE_ROUNDS_OPEN_MAX,
)
from .....config.timeouts import AGENT_NOTIFY_S
from .....crypto.hmac_auth import RequestSigner
from .....feeds.transport.http_client import HttpFailure, RequestStage
from .....feeds.transport.signed_client import SignedClient
from .....feeds.transport.streams import Dial, dial
from .agent_rest import AgentFault

_LIMITS = Http1Limits(body_bytes_max=AGENT_ANSWER_BYTES_MAX)
_OK, _NO_BIDS = 200, 204


class AgentFailure(MakerError):
    """Error: an agent gave no readable answer to a request for bids.

    The error's text names no host, key or header.

    Attributes:
        fault: kind of the agent's fault; None if the agent was not asked because no connection was free.
    """

    def __init__(self, fault: AgentFault | None, detail: str = "") -> None:
        said = "not asked" if fault is None else fault.value
        super().__init__(f"{said}: {detail}" if detail else said)
        self.fault = fault


class AgentClientStatistics(Struct, frozen=True):
    """Counters of the requests and notices to an agent since the start of its client.

    Attributes:
        asked: rounds for which the agent was to be asked.
        failed: rounds for which no readable answer came in time, whether the agent was asked or not.
        unasked: rounds among `failed` for which the agent was not asked, as no connection was free.
        waiting: notices not yet sent.
        notified: notices that the agent accepted.
        lost: notices sent without success.
        dropped: notices that a full queue dropped.
    """

    asked: int
    failed: int
    unasked: int
    waiting: int
    notified: int
    lost: int
    dropped: int


class AgentClient:
    """HTTP client that asks one agent for bids, and notifies the agent of the outcomes of these bids.

    The client is an async context manager; `run` must run as a task within it.

    Args:
        agent: name of the agent.
        url: base URL of the agent's two endpoints, http or https.
        signer: signer of requests; None leaves requests unsigned.
        wall_ms: returns the time for the signature, Unix milliseconds.
        solves_max: most requests for bids that may be open at a time, one for each open round.
        tls: TLS context for https; by default one with the system's certificate authorities.
        dial: opens a connection to the agent's host.
    """

    def __init__(
        self,
        agent: str,
        url: str,
        *,
        signer: RequestSigner | None,
        wall_ms: Callable[[], int],
        solves_max: int = VENUE_ROUNDS_OPEN_MAX,
        tls: SSLContext | None = None,
        dial: Dial = dial,
    ) -> None:
        self.agent = agent
        self._solving, self._notifying = (
            SignedClient(
                url,
                signer=signer,
                wall_ms=wall_ms,
                connections_max=connections_max,
                limits=_LIMITS,
                tls=tls,
                dial=dial,
            )
            for connections_max in (solves_max, 1)  # notices have a connection of their own
        )
        self._open = AsyncExitStack()
        self._waiting: deque[NotifyRequest] = deque(maxlen=AGENT_NOTICES_WAITING_MAX)
        self._is_wanted = trio.Event()
        self._requests = self._failed = self._unasked = self._notified = self._lost = self._dropped = 0

    async def __aenter__(self) -> Self:
        await self._open.enter_async_context(self._solving)
        await self._open.enter_async_context(self._notifying)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._open.__aexit__(kind, error, trace)

    def statistics(self) -> AgentClientStatistics:
        """Return the counters of requests and notices to the agent, and the number of queued notices."""
        return AgentClientStatistics(
            asked=self._requests,
            failed=self._failed,
            unasked=self._unasked,
            waiting=len(self._waiting),
            notified=self._notified,
            lost=self._lost,
            dropped=self._dropped,
        )

    async def solve(self, request: bytes, *, deadline_s: float) -> bytes | None:
        """Ask the agent for bids on the orders of an auction round.

        Args:
            request: an encoded SolveRequest.
            deadline_s: time limit of the whole exchange, seconds from now.

        Returns:
            The body of the answer; None if the agent does not bid.

        Raises:
            AgentFailure: the agent gave no readable answer in time, or was not asked, since no connection
                was free.
        """
        self._requests += 1
        try:
            answer = await self._solving.post("/solve", request, deadline_s)
        except HttpFailure as failed:
            failure = _failure_of(failed)
            self._failed += 1
            self._unasked += failure.fault is None
            raise failure from None
        if answer.status == _NO_BIDS:
            return None
        if answer.status != _OK:
            self._failed += 1
            raise AgentFailure(AgentFault.REFUSED, f"status {answer.status}")
        return answer.body

    def notify(self, request: NotifyRequest) -> None:
        """Queue a notice to the agent; if the queue is full, drop its oldest notice."""
        self._dropped += len(self._waiting) == AGENT_NOTICES_WAITING_MAX
        self._waiting.append(request)
        self._is_wanted.set()

    async def run(self) -> None:
        """Send the queued notices to the agent one after the other, until cancelled."""
        while True:
            await self._is_wanted.wait()
            self._is_wanted = trio.Event()
            while self._waiting:
                request, count = self._next()
                try:
                    answer = await self._notifying.post("/notify", encode(request), AGENT_NOTIFY_S)
                except HttpFailure:
                    self._lost += count
                else:
                    is_taken = 200 <= answer.status < 300
                    self._notified += count * is_taken
                    self._lost += count * (not is_taken)

    def _next(self) -> tuple[NotifyRequest, int]:
        """Take the next notice from the queue, merged with following notices about the same round.

        Returns:
            (merged notice, number of notices in it).
        """
        first = self._waiting.popleft()
        notices, count = [*first.notices], 1
        while (
            self._waiting
            and (self._waiting[0].auction_id, self._waiting[0].chain_id) == (first.auction_id, first.chain_id)
            and len(notices) + len(self._waiting[0].notices) <= AGENT_ORDERS_MAX
        ):
            notices += self._waiting.popleft().notices
            count += 1
        return NotifyRequest(first.auction_id, first.chain_id, tuple(notices)), count


def _failure_of(failure: HttpFailure) -> AgentFailure:
    if failure.stage is RequestStage.TURN:
        return AgentFailure(None, failure.stage.value)
    if failure.refused:
        return AgentFailure(AgentFault.MALFORMED, failure.refused)
    fault = AgentFault.LATE if failure.is_late else AgentFault.UNAVAILABLE
    return AgentFailure(fault, failure.stage.value)
