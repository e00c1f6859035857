"""The rows of what operators watch, and of quotes that are streamed."""

from ...codecs.messages.market_messages import QuoteQuery
from ..api.event_streams import CONTENT_TYPE as EVENTS
from ..api.routes import Endpoint
from ..telemetry.metrics import CONTENT_TYPE as METRICS
from .health import HealthEndpoints, Healthy, Readiness
from .streams import QuoteStreams

_STREAM_COST = 5  # it is priced again and again


def stream_endpoints(streams: QuoteStreams) -> tuple[Endpoint, ...]:
    """The rows of quotes that are streamed."""
    return (
        Endpoint(
            method="GET",
            path="/v2/quote/stream",
            coroutine=streams.open,
            cost=_STREAM_COST,
            group="Quotes",
            summary="The quote, and again whenever the books change it",
            detail="Server-sent events: `quote` with the answer of GET /v2/quote, every 15 seconds where "
            "nothing changes, and `error` with an error body while it cannot be priced.",
            query=QuoteQuery,
            content_type=EVENTS,
        ),
    )


def health_endpoints(health: HealthEndpoints) -> tuple[Endpoint, ...]:
    """The rows of what operators watch."""
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
            plain=health.ready,
            cost=0,
            group="Operation",
            summary="Whether it can quote: 503 with reasons where it cannot",
            answer=Readiness,
        ),
        Endpoint(
            method="GET",
            path="/metrics",
            coroutine=health.metrics,
            cost=0,
            group="Operation",
            summary="Prometheus metrics, for this machine alone unless the settings say otherwise",
            content_type=METRICS,
        ),
    )
