"""Keep the fee of a bridge's lane current: ask the bridge's API at intervals, for ever.

    asking --all answers usable--> known --every_s--> asking
       \\--anything else--> the last fee holds until stale_s --a doubling, jittered pause--> asking

Source: ARCHITECTURE.md, "Feeds".
"""

from collections.abc import Callable
from random import Random
from ssl import SSLContext

import httpx
import structlog
import trio
from msgspec import Struct

from ...codecs.http1 import Http1Limits
from ...config import limits
from ...config.errors import BridgeError, InvalidInput
from ..backoff import pause_s
from ..transport.httpx_transport import DialTransport
from .fee_answers import FeeAnswer, FeeLane, LaneFee, asking_fee

_JITTER = 0.1  # of every pause, either way
_ANSWER_LIMITS = Http1Limits(body_bytes_max=limits.BRIDGE_ANSWER_BYTES_MAX)

_log = structlog.get_logger("cambist.feeds")


class LaneFeeStatistics(Struct, frozen=True):
    """Counters of the requests for a lane's fee, at one moment.

    Attributes:
        answers: number of times that the API's answers gave a fee.
        failures: number of times since the start that a request failed, or that the answers gave no fee.
        in_a_row: number of failures since the last fee.
        said: text of the last failure; empty before the first.
        answered_ms: time at which the last fee was requested, Unix milliseconds; 0 before the first fee.
    """

    answers: int
    failures: int
    in_a_row: int
    said: str
    answered_ms: int


class LaneFees:
    """Fee of one lane of a bridge, kept current while `run` runs.

    Args:
        lane: ends of the lane, and the settings of its bridge.
        http: client of the bridge's API, from `bridge_client`; open while the feed runs.
        wall_ms: clock in Unix milliseconds.
        random: source of the jitter.
    """

    def __init__(
        self, lane: FeeLane, *, http: httpx.AsyncClient, wall_ms: Callable[[], int], random: Random
    ) -> None:
        self.lane = lane
        self._http = http
        self._wall_ms = wall_ms
        self._random = random
        self._log = _log.bind(bridge=lane.bridge, chain=lane.chains[0], destination=lane.chains[1])
        self._stale_ms = round(lane.settings.stale_s * 1_000)
        self._fee: LaneFee | None = None
        self._answers = self._failures = self._in_a_row = self._answered_ms = 0
        self._said = ""

    def at(self, now_ms: int) -> LaneFee | None:
        """Return the lane's newest fee; None before the first answer, and once the fee is stale."""
        return self._fee if now_ms < self._answered_ms + self._stale_ms else None

    @property
    def fault(self) -> str:
        """Text of the last failure if the API gave no fee since then; empty if the last answer was usable."""
        return self._said if self._in_a_row else ""

    def statistics(self) -> LaneFeeStatistics:
        """Return the counters of answers and failures since the start, and the last failure."""
        return LaneFeeStatistics(self._answers, self._failures, self._in_a_row, self._said, self._answered_ms)

    async def run(self) -> None:
        """Ask for the lane's fee at intervals until cancelled."""
        while True:
            try:
                await self._ask()
            except (BridgeError, InvalidInput) as error:
                self._fail(error.detail)
            except Exception as error:  # noqa: BLE001  whatever the error, the feed goes on
                self._log.exception("bridge's fee failed")
                self._fail(type(error).__name__)
            every_s = self.lane.settings.every_s * self._random.uniform(1 - _JITTER, 1 + _JITTER)
            await trio.sleep(pause_s(self._in_a_row, self._random) if self._in_a_row else every_s)

    async def _ask(self) -> None:
        """Ask once for the lane's fee; raise BridgeError or InvalidInput on failure."""
        asked_ms = self._wall_ms()
        asking = asking_fee(self.lane)
        target = next(asking)
        while True:
            try:
                target = asking.send(await self._get(target))
            except StopIteration as end:
                self._fee = end.value
                break
        if self._in_a_row:
            self._log.info("bridge's fee is known again", failures=self._in_a_row)
        self._answers += 1
        self._in_a_row = 0
        self._answered_ms = asked_ms

    async def _get(self, target: str) -> FeeAnswer:
        settings = self.lane.settings
        try:
            answer = await self._http.get(f"{settings.url.rstrip('/')}{target}", timeout=settings.request_s)
        except httpx.HTTPError as error:
            raise BridgeError(f"{type(error).__name__}: {error}") from None
        return FeeAnswer(answer.status_code, answer.content)

    def _fail(self, reason: str) -> None:
        self._failures += 1
        self._in_a_row += 1
        self._said = reason
        if self._in_a_row == 1:
            self._log.warning("bridge's fee is not known", reason=reason)


def bridge_client(tls: SSLContext) -> httpx.AsyncClient:
    """Make the HTTP client of a bridge's API; the caller opens and closes it.

    Args:
        tls: context for https.
    """
    transport = DialTransport(tls=tls, connections_max=limits.BRIDGE_CONNECTIONS_MAX, limits=_ANSWER_LIMITS)
    return httpx.AsyncClient(transport=transport)
