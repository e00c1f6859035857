"""One agent on one chain, as the venue asks it: POST {url}/solve and POST {url}/notify, signed.

    solve     204                      --> None: no bid
              200                      --> the body, which `bids` reads
              any other status         --> REFUSED
              deadline                 --> LATE; where no connection was free until then, nobody's fault
              no whole HTTP answer     --> UNAVAILABLE: no connection, or it broke
              what is no answer        --> MALFORMED: no HTTP, or too long
    notify    into a bounded queue, which `run` empties in order; what waits in a row about one round goes
              in one request; the answer is not read

A slow agent delays nobody: a notice never waits for another agent, and `solve` never for a notice. A full
queue drops the oldest notice. A notice is sent once; one that is not taken is lost. Both are counted.

A request that a reused connection lost before any byte of its answer is sent once more: its auction id names
the round, and one answer alone is read.

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

from ....codecs.http1 import Http1Limits
from ....codecs.messages.agent_messages import NotifyRequest
from ....codecs.messages.wire import encode
from ....config.errors import MakerError
from ....config.limits import (
    AGENT_ANSWER_BYTES_MAX,
    AGENT_NOTICES_WAITING_MAX,
    AGENT_ORDERS_MAX,
    VENUE_ROUNDS_OPEN_MAX,
)
from ....config.timeouts import AGENT_NOTIFY_S
from ....crypto.hmac_auth import RequestSigner
from ....feeds.net.http_client import HttpFailure, RequestStage
from ....feeds.net.signed_client import SignedClient
from ....feeds.net.streams import Dial, dial
from .agent_rest import AgentFault

_LIMITS = Http1Limits(body_bytes_max=AGENT_ANSWER_BYTES_MAX)
_OK, _NO_BIDS = 200, 204


class AgentFailure(MakerError):
    """An agent gave no answer that can be read. Its text names no host, key or header.

    Attributes:
        fault: what it did wrong; None where it was not asked at all, for want of a connection.
    """

    def __init__(self, fault: AgentFault | None, detail: str = "") -> None:
        said = "not asked" if fault is None else fault.value
        super().__init__(f"{said}: {detail}" if detail else said)
        self.fault = fault


class AgentClientStatistics(Struct, frozen=True):
    """One moment of a client.

    Attributes:
        asked, failed: rounds; unasked: of the failed, those for which no connection was free.
        waiting: notices that are not sent yet.
        notified: that were taken; lost: that were not; dropped: for which there was no room.
    """

    asked: int
    failed: int
    unasked: int
    waiting: int
    notified: int
    lost: int
    dropped: int


class AgentClient:
    """One agent. Use it as an async context manager, and `run` as a task within.

    Args:
        agent: its name.
        url: base of its two endpoints, http or https, prefix included.
        signer: None where requests are not signed.
        wall_ms: Unix milliseconds, for the signature.
        solves_max: rounds that it may be asked about at a time.
        tls: for https; the system's authorities unless given.
        dial: what connects.
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
        self._asked = self._failed = self._unasked = self._notified = self._lost = self._dropped = 0

    async def __aenter__(self) -> Self:
        await self._open.enter_async_context(self._solving)
        await self._open.enter_async_context(self._notifying)
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool | None:
        return await self._open.__aexit__(kind, error, trace)

    def statistics(self) -> AgentClientStatistics:
        """Counters and present sizes."""
        return AgentClientStatistics(
            self._asked,
            self._failed,
            self._unasked,
            len(self._waiting),
            self._notified,
            self._lost,
            self._dropped,
        )

    async def solve(self, request: bytes, *, deadline_s: float) -> bytes | None:
        """Ask for bids.

        Args:
            request: a SolveRequest, encoded.
            deadline_s: seconds from now, for everything.

        Returns:
            The body; None where it does not bid.

        Raises:
            AgentFailure: see the module.
        """
        self._asked += 1
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
        """Have the agent told, soon."""
        self._dropped += len(self._waiting) == AGENT_NOTICES_WAITING_MAX
        self._waiting.append(request)
        self._is_wanted.set()

    async def run(self) -> None:
        """Send the notices, until cancelled."""
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
        """What is sent next, and of how many that waited: those in a row that are about one round."""
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
