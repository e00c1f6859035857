"""What Prometheus is told of a venue: its makers' books and firm quotes, its quotes, its streams."""

from collections.abc import Callable, Iterable, Iterator, Mapping

from prometheus_client.core import GaugeMetricFamily, Metric
from prometheus_client.registry import Collector

from ..events.hub import EventHub
from ..events.webhooks import Webhooks
from ..telemetry.feed_metrics import FeedCollector, Reading
from ..telemetry.metrics import METRICS_PREFIX, Metrics, Row
from .api.event_streams import EventStreams
from .api.quote import Quotes
from .api.streams import QuoteStreams
from .place import Place

STREAMS = (
    Row("streams", "gauge", "Streams that are open"),
    Row("opened", "counter", "Streams opened"),
    Row("refused", "counter", "Streams refused for being too many"),
    Row("quotes", "counter", "Quotes sent"),
    Row("errors", "counter", "Errors sent"),
    Row("beats", "counter", "Comments sent while a quote could not be priced"),
)
EVENTS = (
    Row("streams", "gauge", "Streams that are open"),
    Row("opened", "counter", "Streams opened"),
    Row("refused", "counter", "Streams refused for being too many"),
    Row("events", "counter", "Events sent"),
    Row("beats", "counter", "Beats sent where nothing happened"),
    Row("slow", "counter", "WebSockets closed because the other side did not read"),
)
HUB = (
    Row("events", "counter", "Events read from the log"),
    Row("pages", "counter", "Pages of older events, read for streams that began behind"),
)


def tell_venue(
    metrics: Metrics,
    places: Mapping[int, Place],
    quotes: Quotes,
    streams: QuoteStreams,
    wall_ms: Callable[[], int],
) -> None:
    """Have all of it told.

    Args:
        places: by chain id.
        wall_ms: wall clock, Unix milliseconds.
    """

    def feeds() -> Iterator[Reading]:
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


class _WebhookFailures(Collector):
    def __init__(self, webhooks: Webhooks) -> None:
        self._webhooks = webhooks

    def collect(self) -> Iterable[Metric]:
        family = GaugeMetricFamily(
            f"{METRICS_PREFIX}webhook_failures", "Tries in a row that failed", labels=("webhook",)
        )
        for name, told in self._webhooks.statistics().items():
            family.add_metric((name,), told.failures)
        return (family,)


def tell_events(metrics: Metrics, hub: EventHub, events: EventStreams, webhooks: Webhooks) -> None:
    """Have told what is streamed of orders, and what webhooks take."""

    def deliveries() -> Iterator[tuple[tuple[str, ...], int]]:
        for name, told in webhooks.statistics().items():
            yield (name, "taken"), told.taken
            yield (name, "failed"), told.failed
            yield (name, "dead"), told.dead

    metrics.counts("webhook_deliveries", "Deliveries tried", ("webhook", "outcome"), deliveries)
    metrics.add(_WebhookFailures(webhooks))
    metrics.statistics("order_events", EVENTS, events.statistics)
    metrics.statistics("event_log", HUB, hub.statistics)
