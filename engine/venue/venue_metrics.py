"""What Prometheus is told of a venue: its makers' books and firm quotes, its quotes and its streams."""

from collections.abc import Callable, Iterator, Mapping

from ..telemetry.feed_metrics import FeedCollector, Reading
from ..telemetry.metrics import Metrics, Row
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
