"""What Prometheus is told of a venue: its makers' books and firm quotes, its quotes, its streams."""

from collections.abc import Callable, Iterator, Mapping

from ..api.event_streams import EventStreams
from ..events.hub import EventHub
from ..events.webhooks import Webhooks
from ..served.served_chain import ServedChain
from ..telemetry.feed_metrics import FeedCollector, FeedReading
from ..telemetry.metrics import MetricRow, Metrics
from .quote import Quotes
from .streams import QuoteStreams

STREAMS = (
    MetricRow("streams", "gauge", "Streams that are open"),
    MetricRow("opened", "counter", "Streams opened"),
    MetricRow("refused", "counter", "Streams refused for being too many"),
    MetricRow("quotes", "counter", "Quotes sent"),
    MetricRow("errors", "counter", "Errors sent"),
    MetricRow("beats", "counter", "Comments sent while a quote could not be priced"),
)
EVENTS = (
    MetricRow("streams", "gauge", "Streams that are open"),
    MetricRow("opened", "counter", "Streams opened"),
    MetricRow("refused", "counter", "Streams refused for being too many"),
    MetricRow("events", "counter", "Events sent"),
    MetricRow("beats", "counter", "Beats sent where nothing happened"),
    MetricRow("slow", "counter", "WebSockets closed because the other side did not read"),
)
HUB = (
    MetricRow("events", "counter", "Events read from the log"),
    MetricRow("pages", "counter", "Pages of older events, read for streams that began behind"),
)


def tell_venue(
    metrics: Metrics,
    places: Mapping[int, ServedChain],
    quotes: Quotes,
    streams: QuoteStreams,
    wall_ms: Callable[[], int],
) -> None:
    """Have all of it told.

    Args:
        places: by chain id.
        wall_ms: wall clock, Unix milliseconds.
    """

    def feeds() -> Iterator[FeedReading]:
        for chain_id, place in places.items():
            for maker, feed in place.feeds.items():
                yield maker, chain_id, feed.statistics()

    def firm_quotes() -> Iterator[tuple[tuple[str, ...], int]]:
        for chain_id, place in places.items():
            for name, maker in place.desk.makers.items():
                for outcome, number in maker.health.outcomes.items():
                    yield (name, str(chain_id), outcome), number

    def swaps() -> Iterator[tuple[tuple[str, ...], int]]:
        for chain_id, place in places.items():
            desk = place.desk.statistics()
            yield (str(chain_id), "filled"), desk.filled
            yield (str(chain_id), "unfilled"), desk.unfilled

    metrics.add(FeedCollector(feeds, wall_ms))
    metrics.counts("firm_quotes", "Firm quotes asked for", ("maker", "chain", "outcome"), firm_quotes)
    metrics.counts("firm_swaps", "Swaps that firm quotes were asked for", ("chain", "outcome"), swaps)
    metrics.counts("quotes", "Quotes of GET /v2/quote", ("mode", "outcome"), quotes.outcomes.items)
    metrics.statistics("quote_streams", STREAMS, streams.statistics)


def tell_readiness(
    metrics: Metrics,
    places: Mapping[int, ServedChain],
    is_ready: Callable[[], bool],
    clock_off_s: Callable[[], float],
) -> None:
    """Add metrics of the venue's readiness, and of its chains and clock.

    Args:
        places: by chain id.
        clock_off_s: seconds by which the system's clock was moved since the start.
    """

    def away() -> Iterator[tuple[tuple[str, ...], float]]:
        for chain_id, place in places.items():
            yield (str(chain_id),), float(bool(place.pulse.fault))

    def heads() -> Iterator[tuple[tuple[str, ...], float]]:
        for chain_id, place in places.items():
            yield (str(chain_id),), place.pulse.head_number

    metrics.gauges("ready", "1 while /readyz answers 200", (), lambda: [((), float(is_ready()))])
    metrics.gauges(
        "clock_off_seconds", "By how much the system's clock was moved", (), lambda: [((), clock_off_s())]
    )
    metrics.gauges("chain_away", "1 while no node of the chain answers", ("chain",), away)
    metrics.gauges("chain_head", "Height of the latest block that a node showed", ("chain",), heads)


def tell_events(metrics: Metrics, hub: EventHub, events: EventStreams, webhooks: Webhooks) -> None:
    """Have told what is streamed of orders, and what webhooks take."""

    def deliveries() -> Iterator[tuple[tuple[str, ...], int]]:
        for name, told in webhooks.statistics().items():
            yield (name, "taken"), told.taken
            yield (name, "failed"), told.failed
            yield (name, "dead"), told.dead

    def failures() -> Iterator[tuple[tuple[str, ...], float]]:
        for name, told in webhooks.statistics().items():
            yield (name,), told.failures

    metrics.counts("webhook_deliveries", "Deliveries tried", ("webhook", "outcome"), deliveries)
    metrics.gauges("webhook_failures", "Tries in a row that failed", ("webhook",), failures)
    metrics.statistics("order_events", EVENTS, events.statistics)
    metrics.statistics("event_log", HUB, hub.statistics)
