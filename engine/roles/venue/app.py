"""The venue as one process: builds chains, feeds and a listener from the settings, and runs them.

    opened_venue    opens store · nodes · connections to makers and agents;   they close with the context
    VenueApp.run    runs order engines · server · feeds · gas prices ·        until it is drained or cancelled
                    writes of issued routes · streams · tapes · retention

The venue listens once the order engines accept orders and have begun to load unfinished ones. Shut-down: the
listener closes, answers in flight go out, then feeds, watches, auctions, relayers and indexers end, issued
routes that are not stored yet are written, and the store closes last. Transactions under way are followed
again at the next start.

A venue is one process: its books, buckets and health scores are its own.

Source: ARCHITECTURE.md, "Time and chance" (order of a shutdown), "Keys".
"""

import secrets
import socket
from collections.abc import AsyncIterator, Iterable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import msgspec
import structlog
import trio
from msgspec import Struct
from prometheus_client.core import Metric

from ....config.errors import ConfigError, StoreError
from ....config.sections.venue import VenueSettings
from ....config.settings import Settings
from ....config.timeouts import CLOCK_STEP_S_MAX, ISSUED_ROUTES_END_S, SERIES_STEP_S
from ....crypto.route_seal import RouteSeal
from ....feeds.durations import BOUNDS_S, Durations
from ....feeds.ticks import tick
from ....feeds.transport.streams import client_tls
from ...chain.deploy.address_book import FILE_NAME, AddressBook, read_book
from ...chain.port import Chain
from ...chain.pulse import Pulse
from ...host.admission.admission import Admission
from ...host.admission.keys import HASH_SECRET_BYTES
from ...host.admission.ledger import Ledger
from ...host.process.clock import WallClock
from ...host.process.credentials import check_addresses
from ...host.server import AccessLog, Router, Server
from ...host.server.assets import Asset, asset_group
from ...host.server.routing import HttpCall
from ...store.process.open_store import open_store
from ...store.retention import Retention
from ...store.store import COMMIT_BOUNDS_S, Store
from ...trade.api.routes import Endpoint, encode_trading_error, mount_endpoints
from ...trade.delta.building.yield_watch import YieldWatch
from ...trade.delta.endpoints.auctions import Auctions
from ...trade.delta.endpoints.build_orders import DeltaOrders
from ...trade.delta.endpoints.order_events import order_event_endpoints
from ...trade.delta.endpoints.order_reads import OrderReads
from ...trade.delta.endpoints.order_submit import OrderSubmission
from ...trade.delta.endpoints.round_list import RoundList
from ...trade.delta.endpoints.strategies import StrategyList
from ...trade.delta.engine import DeltaEngine
from ...trade.delta.open_delta import DeltaOpening, open_delta
from ...trade.events.event_streams import EventStreams
from ...trade.events.hub import EventHub
from ...trade.events.open_webhooks import open_webhooks
from ...trade.events.webhook_endpoints import WebhookDesk
from ...trade.events.webhooks import Webhooks
from ...trade.makers.maker_books import MakerBookShelf
from ...trade.makers.maker_scores import MakerScoreBoard, MakerSecrets
from ...trade.makers.maker_watch import MakerWatch, rules_file
from ...trade.makers.operation import Operation, chain_status
from ...trade.makers.signed_callers import SignedCallers
from ...trade.market.endpoints import MarketEndpoints
from ...trade.market.market_desk import MarketDesk
from ...trade.market.unfilled import Asker
from ...trade.orders.order_engines import OrderEngines, open_footing
from ...trade.otc.endpoints import OtcEndpoints, otc_event_endpoints
from ...trade.otc.engine import OtcEngine, open_otc
from ...trade.otc.purge import OtcPurge
from ...trade.quote.endpoints import Quotes
from ...trade.quote.issued import IssuedRoutes
from ...trade.quote.price_depth import PriceDepth
from ...trade.quote.price_history import PriceHistory
from ...trade.quote.quote_streams import QuoteStreams, StreamedChain, stream_endpoints
from ...trade.routing.makers import MakersOpening, nodes_of, open_chains, open_makers
from ...trade.routing.served import ConfiguredChain, served_chains
from ...trade.served.bridge_endpoints import BridgeEndpoints
from ...trade.served.bridge_lanes import BridgeLanes
from ...trade.served.open_bridges import open_bridges
from ...trade.served.resources import Resources
from ...trade.served.served_chain import ServedChain
from ...trade.tape.endpoints import TapeEndpoints
from ...trade.tape.tape_follower import Tapes, open_tapes
from ...trade.tape.trade_streams import TradeStreams
from ..telemetry.loop_lag import LoopLag
from ..telemetry.metrics import (
    Metrics,
    admission_families,
    store_families,
)
from ..telemetry.order_metrics import delta_families, engine_families, otc_families
from .health import HealthEndpoints, Readiness, health_endpoints
from .reference import Reference, venue_pages
from .status_series import StatusReading, StatusSeries
from .venue_metrics import (
    bridge_families,
    event_families,
    readiness_families,
    trade_families,
    venue_families,
)

_SEAL_KEY_CHARS_MIN = 16
_STARTS = "the venue starts"
_QUOTE_ROUTE = "GET /v2/quote"
_ORDER_ROUTES = ("POST /v2/delta/orders", "POST /ft/p2p/{chainId}")

_log = structlog.get_logger("cambist.venue")


class VenueParts(Struct, frozen=True):
    """The opened parts of a venue, from which `VenueApp` is built.

    Attributes:
        venue: section `[venue]` of the settings.
        chains: served chains by chain id.
        seal: authenticates Market routes, so that a client cannot alter them.
        delta: runs the Delta orders.
        otc: runs the OTC orders.
        engines: runs the background tasks of `delta` and `otc`.
        webhooks: delivers events of orders to the URLs in the settings.
        maker_rules: path of the operator's file that excludes makers from routing and clears makers' faults.
        bridges: lanes between the chains, with the feeds of their fees.
        ledger: ledger of what callers cost the venue.
        tapes: latest trades of the chains.
    """

    venue: VenueSettings
    chains: Mapping[int, ServedChain]
    store: Store
    seal: RouteSeal
    delta: DeltaEngine
    otc: OtcEngine
    engines: OrderEngines
    webhooks: Webhooks
    maker_rules: Path
    bridges: BridgeLanes
    ledger: Ledger
    tapes: Tapes


class VenueApp:
    """A venue as a program: its HTTP server, order engines and background tasks. `opened_venue` creates it.

    Args:
        settings: settings of the process.
        parts: opened parts, which have to stay open while the venue runs.
        clock: the wall clock.
        access_log: log of requests that the server writes; None for no log.

    Attributes:
        chains: served chains by chain id.
        bridges: lanes between the chains.
        issued: digests of the Delta routes that quotes have issued.
        delta: runs the Delta orders.
        otc: runs the OTC orders.
        quotes: endpoints of GET /v2/quote and the Delta prices.
        yields: watches of the share prices of yield strategies, by chain id.
        tapes: latest trades of the chains.
        router: HTTP router with every endpoint.
        reference: endpoints of the API's description.
        scheme: http or https.
        drained: whether `run` has returned after `drain`, with every request in flight answered.
    """

    def __init__(
        self, settings: Settings, parts: VenueParts, *, clock: WallClock, access_log: AccessLog | None = None
    ) -> None:
        venue = parts.venue
        self.chains = parts.chains
        self._firm, self._ledger, self._delta_gas = venue.firm, parts.ledger, venue.delta_gas
        self.scheme = "https" if settings.server.tls else "http"
        self.drained = False
        self._not_ready_reason = ""  # reason not to be ready although chains and store are
        self.delta = parts.delta
        self.otc = parts.otc
        self._engines = parts.engines
        self._webhooks = parts.webhooks
        self._store, self.bridges, self.tapes = parts.store, parts.bridges, parts.tapes
        self._makers = MakerWatch(parts.maker_rules, parts.chains, clock.now_ms)
        self._retention = Retention(parts.store, days=settings.store.retention_days, now_ms=clock.now_ms)
        self._clock, self._wall_ms = clock, clock.now_ms
        self.issued = IssuedRoutes(parts.store, venue.route_life_s)
        self.admission = Admission(venue, secrets.token_bytes(HASH_SECRET_BYTES), parts.ledger)
        partners, user_places = (settings.partners, settings.tiers), venue.firm.unfilled_user_max
        market = MarketDesk(parts.chains, parts.seal, *partners, ledger=parts.ledger, user_places=user_places)
        ids = Random(secrets.token_bytes(16))  # noqa: S311 - ids of prices are unique, and no secret
        self.quotes = Quotes(
            parts.chains,
            settings,
            parts.seal,
            self.bridges,
            self.issued,
            delta_gas=venue.delta_gas,
            random16=partial(ids.randbytes, 16),
            partner_of=self.admission.partner,
        )
        self.yields = _yield_watches(parts.chains)
        self._history = PriceHistory(parts.chains, clock.now_ms)
        self._streams, self._trade_streams = self._quote_streams(venue), self._trades_streamed(venue)
        self._hub = EventHub(parts.store)
        self._events = self._events_streamed(venue)
        # Empty until `_add_metrics`: the endpoints need the object, the metrics need the server.
        self._lag, self._metrics = LoopLag(), Metrics()
        health_rows = self._health_endpoints(venue)
        rows: tuple[Endpoint, ...] = (
            *self.quotes.endpoints(),
            *self._delta_endpoints(settings, venue),
            *self._otc_endpoints(venue),
            *MarketEndpoints(market, self._asker_of, self.admission).endpoints(),
            *Resources(parts.chains, settings).endpoints(),
            *self._history.endpoints(),
            *PriceDepth(parts.chains, clock.now_ms).endpoints(),
            *self._partner_endpoints(venue),
            *stream_endpoints(self._streams),
            *TapeEndpoints(self.tapes.of_chain, self._trade_streams).endpoints(),
            *health_rows,
        )
        self.reference = Reference(rows, parts.chains, is_tls=self.scheme == "https")
        self.router = self._router(settings, self.reference.described, venue_pages(parts.chains))
        # After the router: a server takes the least body limit of the mounted groups once, at its creation.
        self.server = Server(
            self.router,
            settings.server,
            wall_ms=clock.now_ms,
            access_log=access_log,
            proxies=venue.trusted_proxies,
        )
        health_router = self._router(settings, health_rows)
        self._health = Server(health_router, settings.server.of_health(), wall_ms=clock.now_ms)
        self._add_metrics()
        self._series = StatusSeries(self._reading())

    def _router(
        self, settings: Settings, rows: tuple[Endpoint, ...], pages: Mapping[str, Asset] | None = None
    ) -> Router:
        router = Router(encode_trading_error)
        router.mount(asset_group(pages or {}, encode_trading_error))
        mount_endpoints(
            router,
            rows,
            self.admission,
            cors_origins=settings.server.cors_origins,
            body_bytes_max=settings.server.body_bytes_max,
        )
        return router

    def _quote_streams(self, venue: VenueSettings) -> QuoteStreams:
        return QuoteStreams(
            self.quotes.body,
            {
                chain_id: StreamedChain(served.index, served.tokens)
                for chain_id, served in self.chains.items()
            },
            self.bridges,
            causer=self.admission.causer,
            partner_of=self.admission.partner,
            streams_max=venue.quote_streams_max,
            ledger=self._ledger,
            wall_ms=self._wall_ms,
        )

    def _events_streamed(self, venue: VenueSettings) -> EventStreams:
        return EventStreams(
            self._hub,
            causer=self.admission.causer,
            sees=self.admission.sees_orders,
            streams_max=venue.event_streams_max,
            ledger=self._ledger,
        )

    def _trades_streamed(self, venue: VenueSettings) -> TradeStreams:
        return TradeStreams(
            self.tapes.of_chain,
            causer=self.admission.causer,
            streams_max=venue.trade_streams_max,
            ledger=self._ledger,
        )

    def _partner_endpoints(self, venue: VenueSettings) -> tuple[Endpoint, ...]:
        """Return the endpoints of makers, of the operator and of webhooks."""
        desk = WebhookDesk(
            self._webhooks, self._store, key_of=self.admission.required_key, now_ms=self._wall_ms
        )
        secrets_of_makers = MakerSecrets(venue.makers, self.admission.sees_orders)
        check = self.admission.check_operator
        return (
            *MakerScoreBoard(self.chains, secrets_of_makers).endpoints(),
            *MakerBookShelf(self.chains, secrets_of_makers).endpoints(),
            *Operation(self.status, venue.makers, self._makers.change, check).endpoints(),
            *desk.endpoints(),
        )

    def _asker_of(self, call: HttpCall) -> Asker:
        """Return the caller of a request, and how many unfilled swaps the caller may have at a time.

        A swap is unfilled if makers have signed quotes for the swap and no transaction has filled the quotes.
        """
        has_key = bool(self.admission.key(call))
        places = self._firm.unfilled_keyed_max if has_key else self._firm.unfilled_max
        return Asker(self.admission.causer(call).name, has_key=has_key, places=places)

    def _health_endpoints(self, venue: VenueSettings) -> tuple[Endpoint, ...]:
        """Return the endpoints GET /healthz, /readyz and /metrics."""
        health = HealthEndpoints(
            readiness=self._proven_readiness, metrics=self._metrics, open_to_all=venue.metrics_open
        )
        return health_endpoints(health)

    def _otc_endpoints(self, venue: VenueSettings) -> tuple[Endpoint, ...]:
        """Return the endpoints of OTC orders and of the stream of their events."""
        endpoints = OtcEndpoints(
            self.chains,
            self.otc.orders,
            self._store,
            small_usd=venue.otc_small_usd,
            causer_of=self.admission.causer,
            signatures_of=self.admission.signatures,
        )
        purge = OtcPurge(self.otc.orders, self._store, self.admission.check_operator)
        return (*endpoints.endpoints(), *purge.endpoints(), *otc_event_endpoints(self._events))

    def _delta_endpoints(self, settings: Settings, venue: VenueSettings) -> tuple[Endpoint, ...]:
        """Return the endpoints that build and accept Delta orders, and show orders, auctions and bridges."""
        delta, store = self.delta, self._store
        auctions = {chain_id: chain.auctioneer for chain_id, chain in delta.chains.items()}
        agents = SignedCallers({name: agent.credentials for name, agent in venue.agents.items()})
        return (
            *DeltaOrders(
                self.chains,
                settings,
                self.issued,
                random32=lambda: secrets.token_bytes(32),
                partner_of=self.admission.partner,
            ).endpoints(),
            *OrderSubmission(
                self.chains,
                self.bridges,
                settings,
                delta.orders,
                store,
                delta_gas=self._delta_gas,
                partner_of=self.admission.partner,
                key_of=self.admission.key,
                causer_of=self.admission.causer,
                signatures_of=self.admission.signatures,
            ).endpoints(),
            *BridgeEndpoints(self.bridges).endpoints(),
            *StrategyList(self.chains, self.yields).endpoints(),
            *OrderReads(self.chains, store, sees_all=self.admission.sees_orders).endpoints(),
            *order_event_endpoints(self._events),
            *Auctions(
                self.chains,
                store,
                delta.orders.get,
                auctions,
                delta.resting,
                delta.lacks,
                delta.bridges.waits,
            ).endpoints(),
            *RoundList(self.chains, store, agents, self.admission.sees_orders, self._wall_ms).endpoints(),
        )

    async def run(
        self,
        listener: socket.socket | trio.abc.Listener[trio.abc.Stream],
        health_listener: socket.socket | None = None,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Run the venue and serve its API until `drain` is called or the task is cancelled.

        Args:
            listener: socket or listener that the API is served on; closed at the end.
            health_listener: separate socket for the health endpoints and metrics, served already during the
                start and closed at the end; None for no separate socket.
        """
        async with trio.open_nursery() as nursery:
            if health_listener is not None:
                self._not_ready_reason = _STARTS
                await nursery.start(self._health.serve, health_listener)
            for served in self.chains.values():
                nursery.start_soon(served.pulse.run)
                served.start(nursery)
            for lane in self.bridges:
                nursery.start_soon(lane.fees.run)
            for watch in self.yields.values():
                nursery.start_soon(watch.run)
            nursery.start_soon(self.issued.run)
            nursery.start_soon(self.issued.run_sweeps, self._wall_ms)
            nursery.start_soon(self._streams.run)
            nursery.start_soon(self._lag.run)
            nursery.start_soon(self._keep_series)
            nursery.start_soon(self._history.run)
            nursery.start_soon(self._retention.run)
            nursery.start_soon(self.tapes.run)
            nursery.start_soon(self._makers.run)
            # The API opens last: subscriptions need the started hub, orders need started engines, and a new
            # webhook gets only events that follow its task's start. The three may start in any order.
            await nursery.start(self._hub.run)
            await nursery.start(self._engines.run)
            await nursery.start(self._webhooks.run)
            if self._not_ready_reason == _STARTS:  # the reason that `drain` sets during the start stays
                self._not_ready_reason = ""
            await self.server.serve(listener, task_status=task_status)
            nursery.cancel_scope.cancel()
        # `issued.run` has ended, and its cancelled write has put its batch back into the queue: the flush
        # writes these routes too. The caller closes the store only after `run`.
        await self._flush_issued()
        self.drained = True

    def drain(self) -> None:
        """Stop accepting connections and answer the requests in flight; then `run` returns."""
        self._not_ready_reason = "the venue ends"
        self.server.drain()

    def readiness(self) -> Readiness:
        """Return whether the venue can serve at least one chain, and all reasons against readiness.

        A reason is a fault of one chain, a store that does not answer, a start or shutdown of the venue that
        is under way, or a system clock that was moved by more than CLOCK_STEP_S_MAX since the start: the
        venue would misjudge deadlines. Each of the last three reasons alone makes the venue not ready; a
        fault of one chain does not, as long as the venue can serve another chain.

        A chain that has no makers and only receives tokens by a bridge needs no order books, since the venue
        quotes no prices on it; such a chain alone does not make the venue ready.
        """
        reached = {lane.destination_chain for lane in self.bridges}
        prices = {chain: bool(served.feeds) or chain not in reached for chain, served in self.chains.items()}
        by_chain = {
            chain: served.not_ready(needs_books=prices[chain]) for chain, served in self.chains.items()
        }
        away = self._store.away
        reasons = [reason for faults in by_chain.values() for reason in faults]
        if away:
            reasons.append(f"store: {away}")
        if self._not_ready_reason:
            reasons.append(self._not_ready_reason)
        off_s = self._clock_off_s()
        is_off = abs(off_s) > CLOCK_STEP_S_MAX
        if is_off:
            reasons.append(f"clock: the system's was moved by {off_s:+.0f} s; restart this process")
        # True also if no chain has prices: a venue that only receives tokens by bridges has nothing to trade.
        is_idle = all(by_chain[chain] for chain, does_price in prices.items() if does_price)
        return Readiness(not (away or self._not_ready_reason or is_off or is_idle), tuple(reasons))

    async def _proven_readiness(self) -> Readiness:
        """Return `readiness` once a write to the store has just succeeded or failed."""
        await self._store.probe()
        return self.readiness()

    def _clock_off_s(self) -> float:
        """Return by how many seconds the system's clock was moved since the start of the process.

        The venue's own clock does not follow such a move.
        """
        return self._clock.behind_ms() / 1_000

    def not_ready(self) -> list[str]:
        """Return the faults that `readiness` reports as reasons; the list is empty without a fault.

        The faults of one chain are listed even while the venue is ready to serve another.
        """
        return [*self.readiness().reasons]

    def status(self) -> dict[str, Any]:
        """Return the counters of all parts of the venue, by part, as JSON values for the operator."""
        counters: dict[str, Any] = msgspec.to_builtins(
            {
                "readiness": self.readiness(),
                "server": self.server.statistics(),
                "boundsS": BOUNDS_S,
                "loopLag": self._lag.statistics(),
                "series": self._series.shown(),
                "routes": {route: found for route, found in self.server.durations().items() if found.total_s},
                "store": {"boundsS": COMMIT_BOUNDS_S, "store": self._store.statistics()},
                "quotes": {" ".join(key): count for key, count in self.quotes.outcomes.items()},
                "admission": self.admission.statistics(),
                "issuedRoutes": self.issued.statistics(),
                "quoteStreams": self._streams.statistics(),
                "orderEvents": {"log": self._hub.statistics(), "streams": self._events.statistics()},
                "trades": {"tapes": self.tapes.statistics(), "streams": self._trade_streams.statistics()},
                "webhooks": self._webhooks.statistics(),
                "orderEngines": self._engines.statistics(),
                "delta": self.delta.statistics(),
                "otc": self.otc.statistics(),
                "retention": self._retention.statistics(),
                "chains": {str(chain_id): chain_status(served) for chain_id, served in self.chains.items()},
                "bridges": [
                    {"bridge": lane.name, "chains": lane.fees.lane.chains, "fee": lane.fees.statistics()}
                    for lane in self.bridges
                ],
            }
        )
        return counters

    async def _keep_series(self) -> None:
        """Record the counters each SERIES_STEP_S for `status`, until cancelled."""
        while True:
            await tick(SERIES_STEP_S)
            self._series.add(self._wall_ms(), self._reading())

    def _reading(self) -> StatusReading:
        """Read the counters for a step of the series; a call begins the next step of the loop's delays."""
        server, durations = self.server.statistics(), self.server.durations()
        quotes = durations.get(_QUOTE_ROUTE, Durations()).counts
        posted = [durations.get(route, Durations()).counts for route in _ORDER_ROUTES]
        kinds = self.delta.orders.statistics(), self.otc.orders.statistics()
        return StatusReading(
            requests=server.requests,
            errors=server.failures,
            refused=server.refusals,
            orders=sum(kind.accepted for kind in kinds),
            fills=sum(kind.fills for kind in kinds),
            quotes=sum(quotes),
            quote_counts=tuple(quotes),
            order_counts=tuple(map(sum, zip(*posted, strict=True))),
            worst_lag_s=self._lag.take_worst_s(),
        )

    async def _flush_issued(self) -> None:
        """Write the digests of issued Delta routes that are not stored yet; log an error if that fails."""
        try:
            with trio.fail_after(ISSUED_ROUTES_END_S):
                await self.issued.flush()
        except (StoreError, trio.TooSlowError) as error:
            waiting = self.issued.statistics().waiting
            _log.error("issued routes are not in the store", routes=waiting, reason=str(error))

    def _add_metrics(self) -> None:
        metrics = self._metrics
        metrics.add_process(self.server, self._lag)
        metrics.add(store_families, self._store.statistics)
        metrics.add(admission_families, self.admission.statistics)
        metrics.add(self._readiness_families, self.readiness)
        metrics.add(partial(venue_families, self.chains, self.quotes, self._streams), self._wall_ms)
        metrics.add(partial(bridge_families, self.bridges), self._wall_ms)
        metrics.add(partial(event_families, self._hub, self._events), lambda: self._webhooks)
        metrics.add(partial(trade_families, self.tapes), lambda: self._trade_streams)
        metrics.add(delta_families, self.delta.statistics)
        metrics.add(otc_families, self.otc.statistics)
        metrics.add(engine_families, self._engines.statistics)

    def _readiness_families(self, readiness: Readiness) -> Iterable[Metric]:
        return readiness_families(self.chains, is_ready=readiness.ready, clock_off_s=self._clock_off_s())


@asynccontextmanager
async def opened_venue(
    settings: Settings,
    *,
    environ: Mapping[str, str],
    folder: Path,
    clock: WallClock,
    access_log: AccessLog | None = None,
    random: Random | None = None,
    chains: Mapping[int, Chain] | None = None,
    store_in_process: bool = False,
) -> AsyncIterator[VenueApp]:
    """Context manager that opens a venue with all its parts, ready to run, and closes the parts at the exit.

    Args:
        environ: environment variables, to which `env:` references in the settings point.
        folder: base of relative paths in the settings.
        access_log: log of requests that the server writes; None for no log.
        random: source of randomness for jitter; None for the system's source.
        chains: chain id -> open chain, used instead of a connection to the configured node.
        store_in_process: whether the store runs in this process, without a process of its own.

    Raises:
        ConfigError: a setting is wrong; the error names it.
        StoreUnavailable: the store does not answer at the start.
    """
    venue = _venue_of(settings)
    check_addresses(settings)
    served = served_chains(settings, venue.makers, _book(settings, folder), (chains or {}).keys())
    seal = _seal_of(settings)
    nodes = nodes_of(served, environ, folder, chains or {})
    ledger = Ledger()
    opening = MakersOpening(
        field="venue.makers",
        makers=venue.makers,
        firm=venue.firm,
        blacklist_s=venue.blacklist_s,
        wall_ms=clock.now_ms,
        random=random or SystemRandom(),
        tls=client_tls(),
        ledger=ledger,
    )
    # The exit closes in reverse: the store last, which `run` may still write to until it has returned.
    async with AsyncExitStack() as owned:
        store = await owned.enter_async_context(
            open_store(settings, environ, folder, clock.now_ms, in_process=store_in_process)
        )
        found = await open_chains(owned, nodes, chains or {})
        venue_chains = {
            chain_id: await _place(
                owned, opening, configured, found[chain_id], has_relayer=chain_id in settings.relayers
            )
            for chain_id, configured in served.items()
        }
        bridges = await open_bridges(
            owned,
            settings.bridges,
            venue_chains,
            wall_ms=clock.now_ms,
            random=opening.random,
            tls=opening.tls,
        )
        footing = open_footing(settings, store, venue_chains, clock.now_ms)
        delta = await open_delta(
            owned,
            DeltaOpening(settings, venue, footing, bridges, ledger, opening.random, opening.tls),
            venue_chains,
        )
        otc = open_otc(footing, venue_chains, venue.otc_small_usd)
        engines = OrderEngines(footing, (delta, otc))
        webhooks = await open_webhooks(
            owned,
            venue.webhooks,
            store,
            engines.leases,
            tls=opening.tls,
            now_ms=clock.now_ms,
            random=opening.random,
        )
        # After the engines, which say which chains are followed, and before their indexers run.
        tapes = open_tapes(store, venue_chains, footing.chains, venue.makers, clock.now_ms)
        rules = rules_file(settings, folder)
        parts = VenueParts(
            venue=venue,
            chains=venue_chains,
            store=store,
            seal=seal,
            delta=delta,
            otc=otc,
            engines=engines,
            webhooks=webhooks,
            maker_rules=rules,
            bridges=bridges,
            ledger=ledger,
            tapes=tapes,
        )
        yield VenueApp(settings, parts, clock=clock, access_log=access_log)


async def _place(
    owned: AsyncExitStack, opening: MakersOpening, served: ConfiguredChain, chain: Chain, *, has_relayer: bool
) -> ServedChain:
    at, makers = served.addresses, await open_makers(owned, opening, served, chain)
    return ServedChain(
        chain_id=served.chain_id,
        settings=served.settings,
        chain=chain,
        pulse=Pulse(chain, makers.gas.look_now),
        has_relayer=has_relayer,
        router=at["router"],
        executor=at["executor"],
        rfq=at["rfq_contract"],
        delta=at["delta_contract"],
        fee_vault=at["fee_vault"],
        arrivals=at["arrivals"],
        tokens=served.tokens,
        **msgspec.structs.asdict(makers),
    )


def _yield_watches(chains: Mapping[int, ServedChain]) -> dict[int, YieldWatch]:
    return {
        chain_id: YieldWatch(served.chain, served.settings.strategies) for chain_id, served in chains.items()
    }


def _venue_of(settings: Settings) -> VenueSettings:
    if settings.venue is None:
        raise ConfigError("venue", "is not set")
    if settings.server.processes != 1:
        raise ConfigError("server.processes", f"a venue is one process, got {settings.server.processes}")
    return settings.venue


def _book(settings: Settings, folder: Path) -> AddressBook:
    return read_book(folder / Path(settings.state_dir).expanduser() / FILE_NAME)


def _seal_of(settings: Settings) -> RouteSeal:
    if not settings.route_seal_keys:
        raise ConfigError("route_seal_keys", "names no key: Market routes need a key for their seal")
    keys = [key.reveal() for key in settings.route_seal_keys]
    for at, key in enumerate(keys):
        if len(key) < _SEAL_KEY_CHARS_MIN:
            raise ConfigError(
                f"route_seal_keys[{at}]", f"at least {_SEAL_KEY_CHARS_MIN} characters, got {len(key)}"
            )
    return RouteSeal([key.encode() for key in keys])
