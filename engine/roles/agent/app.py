"""Runs an agent as one process: opens chains, makers' price feeds and bidding strategies, and serves HTTP.

    opened_agent    nodes · connections to makers · strategies    for as long as the context lasts
    AgentApp.run    server · feeds · gas                          until it is drained or cancelled

The agent is a single process, since it keeps makers' signed quotes in memory.
"""

import socket
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import msgspec
import structlog
import trio

from ....config.errors import ConfigError
from ....config.secret import Secret, read_secret
from ....config.sections.agent import AgentSettings
from ....config.settings import Settings
from ....feeds.transport.streams import client_tls
from ...chain.deploy.address_book import FILE_NAME, read_book
from ...chain.port import Chain
from ...host.admission.ledger import Ledger
from ...host.process.clock import WallClock
from ...host.process.credentials import check_addresses, request_verifier
from ...host.server import AccessLog, Router, Server
from ...host.server.gate import Gate, encode_maker_error
from ...trade.routing.makers import MakersOpening, nodes_of, open_chains, open_makers
from ...trade.routing.served import ConfiguredChain, served_chains
from ..telemetry.exposition import metrics_group
from ..telemetry.feed_metrics import FeedReading, feed_families
from ..telemetry.loop_lag import LoopLag
from ..telemetry.metrics import Metrics
from .agent_metrics import agent_families, agent_readiness
from .kept_routes import KeptRoutes
from .market import AgentChain
from .solver import Solver
from .strategy import SolverStrategy, StrategyContext, load_strategy
from .surface import AgentSurface

_log = structlog.get_logger("cambist.agent")


class AgentApp:
    """An agent process: its HTTP server, its chains and its bidding strategies.

    The context manager `opened_agent` creates the object.

    Args:
        settings: settings with a section `[agent]`.
        chains: chain id -> chain with open connections to its nodes and makers.
        strategies: bidding strategies by name.
        clock: the wall clock.
        access_log: log of the requests that the server answers; None for no log.

    Attributes:
        name: the agent's name in the settings.
        chains: as the argument.
        solver: finder of the bids for the orders of an auction round.
        scheme: `http` or `https`, of the listener.
        drained: whether `run` has returned because of `drain`, after the last request in flight was answered.
    """

    def __init__(
        self,
        settings: Settings,
        chains: Mapping[int, AgentChain],
        strategies: Mapping[str, SolverStrategy],
        *,
        clock: WallClock,
        access_log: AccessLog | None = None,
    ) -> None:
        agent = _agent_of(settings)
        self.name = agent.name
        self.chains = chains
        self.scheme = "https" if settings.server.tls else "http"
        self.drained = False
        self.solver = Solver(chains, strategies, agent, clock.now_ms)
        gate = Gate(request_verifier(settings), agent.auth)
        router = Router(encode_maker_error)
        surface = AgentSurface(gate, self.solver, self.not_ready, self.status)
        router.mount(surface.surface)
        self.server = Server(router, settings.server, wall_ms=clock.now_ms, access_log=access_log)
        self._lag, self._wall_ms = LoopLag(), clock.now_ms
        metrics = metrics_group(self._metrics(), open_to_all=agent.metrics_open)
        # After the server, whose counters the metrics read. A server takes the least body limit of the
        # router's groups once, at its creation: a group with a limit of its own would have to be mounted
        # before.
        router.mount(metrics)
        health = Router(encode_maker_error)
        health.mount(surface.health)
        health.mount(metrics)
        self._health = Server(health, settings.server.of_health(), wall_ms=clock.now_ms)

    async def run(
        self,
        listener: socket.socket | trio.abc.Listener[trio.abc.Stream],
        health_listener: socket.socket | None = None,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve HTTP requests until `drain` is called or the task is cancelled, then close the listeners.

        Args:
            listener: socket or listener on which all endpoints are served.
            health_listener: further socket on which only /healthz, /readyz and /metrics are served; None for
                none.
        """
        async with trio.open_nursery() as nursery:
            if health_listener is not None:
                await nursery.start(self._health.serve, health_listener)
            nursery.start_soon(self._lag.run)
            for served in self.chains.values():
                served.makers.start(nursery)
            await self.server.serve(listener, task_status=task_status)
            nursery.cancel_scope.cancel()
        self.drained = True

    def drain(self) -> None:
        """Stop accepting connections, answer the requests in flight, then let `run` return."""
        self.server.drain()

    def not_ready(self) -> list[str]:
        """Return a message for each chain with configured makers but without any live order book."""
        return [
            f"chain {chain_id}: no maker has a live book"
            for chain_id, served in self.chains.items()
            if served.makers.feeds and not any(served.makers.index.books())
        ]

    def _metrics(self) -> Metrics:
        metrics = Metrics()
        metrics.add_process(self.server, self._lag)
        metrics.add(agent_families, self.solver.statistics)
        metrics.add(agent_readiness, self.not_ready)
        metrics.add(lambda now_ms: feed_families(self._feeds(), now_ms), self._wall_ms)
        return metrics

    def _feeds(self) -> Iterator[FeedReading]:
        for chain_id, served in self.chains.items():
            for maker, feed in served.makers.feeds.items():
                yield maker, chain_id, feed.statistics()

    def status(self) -> dict[str, Any]:
        """Return the counters of the server, the solver, and each chain's makers, for GET /status."""
        counters: dict[str, Any] = msgspec.to_builtins(
            {
                "server": self.server.statistics(),
                "solver": self.solver.statistics(),
                "chains": {
                    str(chain_id): {
                        "firm": served.makers.desk.statistics(),
                        "makers": {maker: feed.statistics() for maker, feed in served.makers.feeds.items()},
                    }
                    for chain_id, served in self.chains.items()
                },
            }
        )
        return counters


@asynccontextmanager
async def opened_agent(
    settings: Settings,
    *,
    environ: Mapping[str, str],
    folder: Path,
    clock: WallClock,
    access_log: AccessLog | None = None,
    random: Random | None = None,
    chains: Mapping[int, Chain] | None = None,
) -> AsyncIterator[AgentApp]:
    """Context manager that opens an agent: connections to chain nodes and makers, and bidding strategies.

    Args:
        environ: environment variables that `env:` references in the settings name.
        folder: base of relative paths in the settings.
        access_log: log of the requests that the server answers; None for no log.
        random: source of random jitter; None for the system's source.
        chains: chain id -> open chain, used instead of a connection to the configured node.

    Raises:
        ConfigError: a setting is missing or invalid; the error names it.
    """
    agent = _agent_of(settings)
    # The settings first: a wrong one is reported before any connection is opened.
    check_addresses(settings)
    if agent.auth == "required" and not settings.auth.domains:
        raise ConfigError("agent.auth", "requires signatures, but [auth.domains] is empty")
    served = _served(settings, agent, folder, chains or {})
    strategies = _strategies(agent, environ, folder)
    nodes = nodes_of(served, environ, folder, chains or {})
    opening = MakersOpening(
        field="agent.makers",
        makers=agent.makers,
        firm=agent.firm,
        blacklist_s=agent.blacklist_s,
        wall_ms=clock.now_ms,
        random=random or SystemRandom(),
        tls=client_tls(),
        ledger=Ledger(),
    )
    async with AsyncExitStack() as owned:
        found = await open_chains(owned, nodes, chains or {})
        agent_chains = {
            chain_id: AgentChain(
                configured,
                found[chain_id],
                await open_makers(owned, opening, configured, found[chain_id]),
                trio.CapacityLimiter(agent.orders_at_once),
                KeptRoutes(),
            )
            for chain_id, configured in served.items()
        }
        yield AgentApp(settings, agent_chains, strategies, clock=clock, access_log=access_log)


def _agent_of(settings: Settings) -> AgentSettings:
    if settings.agent is None:
        raise ConfigError("agent", "is not set")
    if settings.server.processes != 1:
        raise ConfigError("server.processes", f"an agent is one process, got {settings.server.processes}")
    return settings.agent


def _served(
    settings: Settings, agent: AgentSettings, folder: Path, chains: Mapping[int, Chain]
) -> dict[int, ConfiguredChain]:
    """Return the configured chains on which Delta orders are settled, by chain id."""
    book = read_book(folder / Path(settings.state_dir).expanduser() / FILE_NAME)
    served = served_chains(settings, agent.makers, book, chains.keys(), "agent.makers")
    found = {chain_id: configured for chain_id, configured in served.items() if configured.settings.delta}
    for name, maker in agent.makers.items():
        for chain_id in maker.chains:
            if chain_id not in found:
                raise ConfigError(
                    f"agent.makers.{name}.chains.{chain_id}", f"chains.{chain_id} has no `delta`"
                )
    if not found:
        raise ConfigError("chains", "no chain has `delta` and a node")
    return found


def _strategies(agent: AgentSettings, environ: Mapping[str, str], folder: Path) -> dict[str, SolverStrategy]:
    def secret(reference: str, field: str) -> Secret:
        return read_secret(reference, environ, field, folder)

    def report(name: str, text: str) -> None:
        _log.info("remark of a strategy", strategy=name, detail=text)

    return {
        name: load_strategy(
            name,
            agent.options.get(name, {}),
            StrategyContext(
                folder=folder, secret=secret, report=partial(report, name), field=f"agent.options.{name}"
            ),
        )
        for name in agent.strategies
    }
