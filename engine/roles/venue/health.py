"""HTTP endpoints for the health of the process, the readiness of the venue, and its metrics.

    GET /healthz   200 while requests are answered at all
    GET /readyz    503 while the venue starts or ends, a write to the store fails or no chain can be served,
                   and after a move of the system's clock; else 200; with reasons
    GET /metrics   metrics for Prometheus; for clients on this machine, unless the settings open them to all

Source: ARCHITECTURE.md, "Telemetry".
Choice: The venue is ready while some chain has an answering node, a known gas price and a live book, and the
    store takes writes: a load balancer must not take good chains away with a bad one.
"""

from collections.abc import Awaitable, Callable

from msgspec import Struct

from ....codecs.messages.wire import encode
from ...host.server.routing import HttpCall, Reply
from ...trade.api.routes import Endpoint
from ..telemetry.exposition import metrics_reply
from ..telemetry.metrics import CONTENT_TYPE, Metrics


class Healthy(Struct, frozen=True):
    """Response body of GET /healthz."""

    status: str


class Readiness(Struct, frozen=True):
    """Response body of GET /readyz.

    Attributes:
        ready: whether the venue can serve at least one chain, and neither the store, the clock, a start nor a
            shutdown stands in the way.
        reasons: one text for each fault of the store, the clock or a chain, and one if the venue is still
            starting up or is shutting down. A chain's faults are listed even if `ready` is True.
    """

    ready: bool
    reasons: tuple[str, ...]


class HealthEndpoints:
    """Handlers of the HTTP endpoints GET /healthz, /readyz and /metrics.

    Args:
        readiness: tells whether the venue is ready now, with the reasons against it, once it knows whether
            the store takes a write.
        metrics: metrics of the process.
        open_to_all: whether clients on other machines may read /metrics.
    """

    def __init__(
        self, *, readiness: Callable[[], Awaitable[Readiness]], metrics: Metrics, open_to_all: bool
    ) -> None:
        self._readiness = readiness
        self._metrics = metrics
        self._open_to_all = open_to_all

    def healthy(self, _: HttpCall) -> Reply:
        """Answer GET /healthz with 200, which shows that the process answers requests."""
        return Reply(200, encode(Healthy("ok")))

    async def ready(self, _: HttpCall) -> Reply:
        """Answer GET /readyz: 200 if the venue can serve a chain, else 503; the body lists the reasons."""
        readiness = await self._readiness()
        return Reply(200 if readiness.ready else 503, encode(readiness))

    async def metrics(self, call: HttpCall) -> Reply:
        """Answer GET /metrics with the process's metrics, in the text format of Prometheus.

        Raises:
            PathNotFound: only clients on this machine may read the metrics, and this client is on another.
        """
        await self._readiness()  # the metrics tell what a write to the store has just shown
        return await metrics_reply(self._metrics, call, open_to_all=self._open_to_all)


def health_endpoints(health: HealthEndpoints) -> tuple[Endpoint, ...]:
    """Return the HTTP endpoints GET /healthz, /readyz and /metrics, as rows of the route table."""
    return (
        Endpoint(
            method="GET",
            path="/healthz",
            plain=health.healthy,
            cost=0,
            group="Operation",
            summary="Whether the process answers",
            answer=Healthy,
        ),
        Endpoint(
            method="GET",
            path="/readyz",
            coroutine=health.ready,
            cost=0,
            group="Operation",
            summary="Whether the venue can quote: 503 with reasons if it cannot",
            answer=Readiness,
        ),
        Endpoint(
            method="GET",
            path="/metrics",
            coroutine=health.metrics,
            cost=0,
            group="Operation",
            summary="Prometheus metrics, for this machine alone unless the settings say otherwise",
            content_type=CONTENT_TYPE,
        ),
    )
