"""Metrics of a venue: readiness, makers' books and firm quotes, fees of bridges, quotes, streams."""

from collections.abc import Iterator, Mapping

from prometheus_client.core import Metric

from ...trade.events.event_streams import EventStreams
from ...trade.events.hub import EventHub
from ...trade.events.webhooks import Webhooks
from ...trade.quote.endpoints import Quotes
from ...trade.quote.quote_streams import QuoteStreams
from ...trade.served.bridge_lanes import BridgeLanes
from ...trade.served.served_chain import ServedChain
from ...trade.tape.tape_follower import Tapes
from ...trade.tape.trade_streams import TradeStreams
from ..telemetry.families import MetricRow, counter, durations_of, families_of, gauge
from ..telemetry.feed_metrics import feed_families

STREAMS = (
    MetricRow("streams", "gauge", "Open streams"),
    MetricRow("opened", "counter", "Streams opened"),
    MetricRow("refused", "counter", "Streams refused for being too many"),
    MetricRow("quotes", "counter", "Quotes sent"),
    MetricRow("errors", "counter", "Errors sent"),
    MetricRow("beats", "counter", "Comments sent while a quote could not be priced"),
)
EVENTS = (
    MetricRow("streams", "gauge", "Open streams"),
    MetricRow("opened", "counter", "Streams opened"),
    MetricRow("refused", "counter", "Streams refused for being too many"),
    MetricRow("events", "counter", "Events sent"),
    MetricRow("beats", "counter", "Beats sent without an event"),
    MetricRow("slow", "counter", "WebSockets closed because the client did not read"),
)
TRADE_STREAMS = (
    MetricRow("streams", "gauge", "Open streams"),
    MetricRow("opened", "counter", "Streams opened"),
    MetricRow("refused", "counter", "Streams refused for being too many"),
    MetricRow("trades", "counter", "Trades sent"),
    MetricRow("beats", "counter", "Comments sent without a trade"),
)
HUB = (
    MetricRow("events", "counter", "Events read from the log"),
    MetricRow("pages", "counter", "Pages of older events, read for streams that began behind"),
)


def readiness_families(
    chains: Mapping[int, ServedChain], *, is_ready: bool, clock_off_s: float
) -> Iterator[Metric]:
    """Yield the metrics of the readiness of the venue, its chains and its clock.

    Args:
        chains: served chains by chain id.
        is_ready: whether the venue is ready (GET /readyz).
        clock_off_s: seconds by which the system's clock was moved since the start.
    """
    yield gauge("ready", "1 while /readyz answers 200", [((), float(is_ready))])
    yield gauge(
        "clock_off_seconds", "Shift of the system's clock since the start, seconds", [((), clock_off_s)]
    )
    yield gauge(
        "chain_away", "1 while no node of the chain answers",
        (((str(key),), float(bool(chain.pulse.fault))) for key, chain in chains.items()), "chain",
    )  # fmt: skip
    yield gauge(
        "chain_head", "Height of the latest block that a node showed",
        (((str(key),), chain.pulse.head_number) for key, chain in chains.items()), "chain",
    )  # fmt: skip


def venue_families(
    chains: Mapping[int, ServedChain], quotes: Quotes, streams: QuoteStreams, now_ms: int
) -> Iterator[Metric]:
    """Yield the metrics of makers' books, firm quotes, quotes and quote streams.

    Args:
        chains: served chains by chain id.
        now_ms: wall clock, Unix milliseconds.
    """
    feeds = (
        (maker, chain_id, feed.statistics())
        for chain_id, chain in chains.items()
        for maker, feed in chain.feeds.items()
    )
    yield from feed_families(feeds, now_ms)
    desks = [(str(chain_id), chain.desk) for chain_id, chain in chains.items()]
    yield counter(
        "firm_quotes", "Requested firm quotes",
        (
            ((name, chain, outcome), number)
            for chain, desk in desks
            for name, maker in desk.makers.items()
            for outcome, number in maker.health.outcomes.items()
        ),
        "maker", "chain", "outcome",
    )  # fmt: skip
    yield durations_of(
        "firm_quote_seconds", "Time until a maker answered a request for a firm quote, seconds",
        (
            ((name, chain), maker.durations)
            for chain, desk in desks
            for name, maker in desk.makers.items()
        ),
        "maker", "chain",
    )  # fmt: skip
    swaps = [(chain, desk.statistics()) for chain, desk in desks]
    yield counter(
        "firm_swaps", "Swaps with requested firm quotes",
        (
            ((chain, outcome), number)
            for chain, desk in swaps
            for outcome, number in (("filled", desk.filled), ("unfilled", desk.unfilled))
        ),
        "chain", "outcome",
    )  # fmt: skip
    yield counter("quotes", "Quotes of GET /v2/quote", quotes.outcomes.items(), "mode", "outcome")
    yield from families_of("quote_streams", STREAMS, streams.statistics())


def bridge_families(lanes: BridgeLanes, now_ms: int) -> Iterator[Metric]:
    """Yield the metrics of the fees of bridges' lanes.

    Args:
        now_ms: wall clock, Unix milliseconds.
    """
    labels = "bridge", "chain", "destination", "token"
    found = [
        ((lane.name, str(lane.origin_chain), str(lane.destination_chain), lane.origin.symbol), lane.fees)
        for lane in lanes
    ]
    yield gauge(
        "bridge_fee_known", "1 while quotes can use the lane's fee",
        ((values, float(fees.at(now_ms) is not None)) for values, fees in found), *labels,
    )  # fmt: skip
    counted = [(values, fees.statistics()) for values, fees in found]
    yield counter(
        "bridge_fee_answers", "Fees that a bridge's API gave",
        ((values, counts.answers) for values, counts in counted), *labels,
    )  # fmt: skip
    yield counter(
        "bridge_fee_failures", "Requests for a fee that failed",
        ((values, counts.failures) for values, counts in counted), *labels,
    )  # fmt: skip


def event_families(hub: EventHub, events: EventStreams, webhooks: Webhooks) -> Iterator[Metric]:
    """Yield the metrics of streams of order events, and of deliveries to webhooks."""
    hooks = webhooks.statistics()
    yield counter(
        "webhook_deliveries", "Tried deliveries",
        (
            ((name, outcome), getattr(hook, outcome))
            for name, hook in hooks.items()
            for outcome in ("taken", "failed", "dead")
        ),
        "webhook", "outcome",
    )  # fmt: skip
    yield gauge(
        "webhook_failures", "Failed tries in a row",
        (((name,), hook.failures) for name, hook in hooks.items()), "webhook",
    )  # fmt: skip
    yield from families_of("order_events", EVENTS, events.statistics())
    yield from families_of("event_log", HUB, hub.statistics())


def trade_families(tapes: Tapes, streams: TradeStreams) -> Iterator[Metric]:
    """Yield the metrics of the chains' latest trades, and of their streams."""
    found = tapes.statistics()
    yield gauge(
        "trades", "Trades of the last 24 hours in memory",
        (((chain,), tape.trades) for chain, tape in found.items()), "chain",
    )  # fmt: skip
    yield counter(
        "trades_arrived", "Trades that were mined since the start",
        (((chain,), tape.arrived) for chain, tape in found.items()), "chain",
    )  # fmt: skip
    yield counter(
        "trade_reads", "Reads of the store for trades",
        (
            ((chain, outcome), number)
            for chain, tape in found.items()
            for outcome, number in (("read", tape.reads), ("failed", tape.failed))
        ),
        "chain", "outcome",
    )  # fmt: skip
    yield from families_of("trade_streams", TRADE_STREAMS, streams.statistics())
