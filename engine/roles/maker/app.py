"""The market maker's role as one process: builds its parts from the settings, and runs them.

    run    server(s) · price sources · withdrawal of stale prices · readers of node and takers · kill switch

Shut-down: listeners close, answers in flight go out, then all other tasks are cancelled.

The random part of nonceAndMeta comes from the operating system, read in blocks.
"""

import os
import socket
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from decimal import Decimal
from functools import partial
from pathlib import Path
from random import Random, SystemRandom
from typing import Any

import httpx
import structlog
import trio
from msgspec.structs import replace

from ....codecs.http1 import Http1Limits
from ....config import limits
from ....config.errors import ConfigError
from ....config.limits import MAKER_JSON_BYTES_MAX
from ....config.secret import read_secret
from ....config.sections.server import TlsSettings
from ....config.settings import Settings
from ....config.timeouts import CLOCK_LOOK_S, CLOCK_STEP_S_MAX, HTTP_REQUEST_S
from ....crypto.addresses import parse_address
from ....feeds.ticks import tick
from ....feeds.transport.httpx_transport import DialTransport
from ....feeds.transport.streams import client_tls
from ...chain.nodes.json_rpc import RpcNode
from ...console.serving import console_pages
from ...host.process.clock import WallClock
from ...host.process.credentials import check_addresses, policed_key, request_verifier
from ...host.process.processes import ProcessNumber
from ...host.safety.halts import Halts
from ...host.safety.kill_switch import KillSwitch
from ...host.server import AccessLog, Router, Server
from ...host.server.assets import asset_group
from ...host.server.gate import Gate, encode_maker_error
from ...host.server.spread import Spread
from ..telemetry.exposition import metrics_group
from ..telemetry.loop_lag import LoopLag
from ..telemetry.metrics import Metrics
from .admin import admin_surface, published
from .feed import Feed
from .maker_metrics import MakerReading, maker_families
from .prices.source import SourceContext, SourcePair, load_source
from .quoting.funds import FundsSettings, MakerFunds
from .quoting.ledger import EXPIRY_GRACE_S
from .quoting.memory import QUOTES, QuoteMemory
from .quoting.recent import shown_quotes
from .quoting.takers import follow_takers
from .role import ChainRole, build_chain
from .stream import STOPPED
from .surface import ChainSurface

_BYTES = limits.FIRM_RANDOM_BITS // 8
_NUMBERS_PER_READ = 1_024


def random96_source(read: Callable[[int], bytes] = os.urandom) -> Callable[[], bytes]:
    """Create a function that returns 12 unpredictable bytes at each call, never the same twice.

    Args:
        read: returns the given number of unpredictable bytes.
    """
    waiting: list[bytes] = []
    take = waiting.pop

    def random96() -> bytes:
        if not waiting:
            block = read(_BYTES * _NUMBERS_PER_READ)
            waiting.extend(block[at : at + _BYTES] for at in range(0, len(block), _BYTES))
        return take()

    return random96


ALONE = ProcessNumber(0, 1)
_CONNECTIONS_MAX = 4
_ANSWER_LIMITS = Http1Limits(body_bytes_max=MAKER_JSON_BYTES_MAX)

_log = structlog.get_logger("cambist.maker")


def halt_file(settings: Settings, folder: Path) -> Path:
    """Return the path of the kill switch's file; `folder` is the base of a relative path."""
    named = settings.maker.halt_file if settings.maker else ""
    return folder / Path(named or f"{settings.state_dir}/halt").expanduser()


def known_scopes(settings: Settings) -> dict[int, frozenset[str]]:
    """Map each chain id to the pair ids that the kill switch may name."""
    chains = settings.maker.chains if settings.maker else {}
    return {chain_id: frozenset(chain.pairs) for chain_id, chain in chains.items()}


class MakerApp:
    """A market maker as one process.

    Args:
        settings: all settings; the part `[maker]` is required.
        environ: environment variables that `env:NAME` in URLs of the settings refers to.
        folder: base of relative paths in the settings.
        clock: the wall clock.
        place: index of this process, and number of the maker's processes. The processes divide the maker's
            funds and bounds equally.
        access_log: log of the server's requests; None for no log.
        spread: numbers of connections of the maker's processes; None for one process.
        random: random generator for the jitter before restarts of price sources.

    Attributes:
        chains, surfaces, feeds, prefixes: four mappings by chain id: the chain's objects (`ChainRole`), HTTP
            handlers, price feed, and prefix of the URL path.
        scheme: http or https.
        switch: the kill switch.
        drained: whether `run` has returned after `drain`, with every request in flight answered.

    Raises:
        ConfigError: a setting is invalid; the error names the setting.
    """

    def __init__(
        self,
        settings: Settings,
        *,
        environ: Mapping[str, str],
        folder: Path,
        clock: WallClock,
        place: ProcessNumber = ALONE,
        access_log: AccessLog | None = None,
        spread: Spread | None = None,
        random: Random | None = None,
    ) -> None:
        maker = settings.maker
        if maker is None or not maker.chains:
            raise ConfigError("maker.chains", "names no chain")
        if settings.server.health:
            raise ConfigError("server.health", "a maker tells of its health at [maker.admin]")
        check_addresses(settings)
        settings = self._settings = _with_folder(settings, folder)
        self._maker = maker
        self._environ = environ
        self._folder = folder
        self._clock = clock
        self._wall_ms = wall_ms = clock.now_ms
        self._place = place
        self._random = random or SystemRandom()
        self._clock_is_off = False
        self._lag = LoopLag()
        self.drained = False
        self._verifier = request_verifier(settings)
        keys = {name: policed_key(name, key) for name, key in settings.keys.items()}
        random96 = random96_source()
        self.chains = {
            chain_id: build_chain(settings, self._maker, chain_id, keys, random96, place.count)
            for chain_id in self._maker.chains
        }
        self.scheme = "https" if settings.server.tls else "http"
        self.prefixes: dict[int, str] = {}
        self.surfaces: dict[int, ChainSurface] = {}
        self.feeds: dict[int, Feed] = {}
        self.server = Server(
            self._router(), settings.server, wall_ms=wall_ms, access_log=access_log, spread=spread
        )
        for role in self.chains.values():
            self._add_feed(role)
        # After the feeds: if a halts file exists, this calls `_obey`, which publishes through them, at once.
        self.switch = KillSwitch(halt_file(settings, folder), self._obey)
        self.admin = self._admin_server()
        self._urls = self._revealed_urls()  # read now: a secret that is missing is a fault of the start

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Context manager around `run`: restore the live quotes of the process's last run at the start, and
        save the live quotes at the end if `run` has returned because of `drain`.

        The context manager is not a part of `run`, whose nursery would wrap a ConfigError in an exception
        group.

        Raises:
            ConfigError: the state directory cannot be used, or another process uses the directory.
        """
        with ExitStack() as locks:
            memories = [self._memory(role) for role in self.chains.values()]
            for memory in memories:
                locks.enter_context(memory.locked())
            self._begin(memories)
            yield
            if self.drained:
                for memory in memories:
                    memory.end()

    async def run(
        self,
        listener: socket.socket | trio.abc.Listener[trio.abc.Stream],
        admin_listener: socket.socket | None = None,
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Serve the maker's endpoints until `drain` is called and requests in flight are answered, or the
        task is cancelled.

        Args:
            listener: listening socket of the maker's endpoints; closed at the end.
            admin_listener: socket of the admin listener, if one is configured.
        """
        transport = DialTransport(tls=client_tls(), connections_max=_CONNECTIONS_MAX, limits=_ANSWER_LIMITS)
        http = httpx.AsyncClient(transport=transport, timeout=HTTP_REQUEST_S)
        async with http as client, trio.open_nursery() as nursery:
            for chain_id, role in self.chains.items():
                feed = self.feeds[chain_id]
                nursery.start_soon(feed.follow_source)
                nursery.start_soon(feed.keep_fresh)
                self._start_readers(nursery, transport, client, role)
            nursery.start_soon(self.switch.watch)
            nursery.start_soon(self.switch.heed_signals)
            nursery.start_soon(self._watch_clock)
            nursery.start_soon(self._lag.run)
            # Each server returns once it is drained: neither cuts off the requests of the other.
            async with trio.open_nursery() as servers:
                if self.admin and admin_listener:
                    await servers.start(self.admin.serve, admin_listener)
                await self.server.serve(listener, task_status=task_status)
            self.drained = True  # not reached if cancelled: `remembering` takes the end for orderly by this
            nursery.cancel_scope.cancel()

    def drain(self) -> None:
        """Stop accepting connections, answer the requests in flight, then let `run` return."""
        self.server.drain()
        if self.admin:
            self.admin.drain()

    def not_ready(self) -> list[str]:
        """Return the reasons why firm quotes would be refused now; empty if there are none."""
        reasons = []
        now_ms = self._wall_ms()
        for chain_id, role in self.chains.items():
            if role.desk.halted:
                reasons.append(f"chain {chain_id}: {STOPPED}")
            if role.desk.withheld:
                reasons.append(f"chain {chain_id}: {role.desk.withheld}")
            if not role.desk.takers:
                reasons.append(f"chain {chain_id}: no contract takers are known")
            if all(
                pair.book is None or role.board.is_stale(pair, now_ms) for pair in role.board.pairs.values()
            ):
                reasons.append(f"chain {chain_id}: no pair has a fresh price")
        return reasons

    def status(self) -> dict[str, Any]:
        """Return the content of the admin listener's GET /status: last quotes, and each chain's counters.

        Of a token, `funds` are the raw units that this process may promise, `reserved` those that live quotes
        can still take, `free` the rest.
        """
        return {
            "server": self.server.statistics(),
            "quotes": shown_quotes(
                (chain_id, role.desk.recent, role.desk.markets.values())
                for chain_id, role in self.chains.items()
            ),
            "chains": {
                str(chain_id): {
                    "signed": role.desk.signed,
                    "refused": role.desk.refused,
                    "refusals": role.desk.refusals,
                    "blacklisted": role.desk.blacklisted,
                    "policyRefusal": role.desk.policy_refusal,
                    "liveQuotes": len(role.desk.ledger),
                    "consumers": len(role.broadcast),
                    "messages": role.broadcast.messages,
                    "priceUpdates": self.feeds[chain_id].updates,
                    "pricesRefused": self.feeds[chain_id].refused,
                    "sourceRestarts": self.feeds[chain_id].restarts,
                    **published(role, self._wall_ms()),
                    "funds": {
                        f"0x{holding.token.hex()}": {
                            "funds": str(holding.funds),
                            "reserved": str(holding.reserved),
                            "free": str(max(holding.funds - holding.reserved, 0)),
                        }
                        for holding in role.holdings
                    },
                }
                for chain_id, role in self.chains.items()
            },
        }

    # --- Putting together ---------------------------------------------------------------------------

    def _router(self) -> Router:
        router = Router(encode_maker_error)
        for chain_id, role in self.chains.items():
            chain = role.settings
            if chain.auth == "required" and not self._settings.auth.domains:
                raise ConfigError(f"{role.field}.auth", "requires signatures, but [auth.domains] is empty")
            surface = ChainSurface(
                gate=Gate(self._verifier, chain.auth),
                board=role.board,
                desk=role.desk,
                blacklist=role.blacklist,
                broadcast=role.broadcast,
                message=chain.message,
                cors_origins=self._settings.server.cors_origins,
            )
            self.surfaces[chain_id] = surface
            prefix = self.prefixes[chain_id] = f"/{chain_id}" if chain.prefix is None else chain.prefix
            try:
                router.mount(surface.surface, prefix=prefix, host=chain.host or None)
            except ValueError as error:
                raise ConfigError(f"{role.field}.prefix", str(error)) from None
        return router

    def _add_feed(self, role: ChainRole) -> None:
        chain = role.settings
        context, field = self._source_context(role), f"{role.field}.price_options"
        make_source = partial(load_source, chain.price_source, chain.price_options, context, field)
        make_source()  # so that its faults show at the start
        self.feeds[role.chain_id] = Feed(
            desk=role.desk,
            broadcast=role.broadcast,
            make_source=make_source,
            refresh_ms=chain.refresh_ms,
            wall_ms=self._wall_ms,
            random=self._random,
        )

    def _source_context(self, role: ChainRole) -> SourceContext:
        states, tokens = role.board.pairs, role.settings.tokens
        log = _log.bind(chain=role.chain_id)

        def base_sold(pair_id: str) -> Decimal:
            state = states[pair_id]
            return Decimal(state.exposure.base_sold).scaleb(-state.base_decimals)

        return SourceContext(
            chain_id=role.chain_id,
            pairs={
                pair_id: SourcePair(
                    pair.base,
                    pair.quote,
                    states[pair_id].base_decimals,
                    states[pair_id].quote_decimals,
                    parse_address(tokens[pair.base].address, "address"),
                    parse_address(tokens[pair.quote].address, "address"),
                )
                for pair_id, pair in role.settings.pairs.items()
            },
            now_ms=self._wall_ms,
            folder=self._folder,
            secret=lambda reference, field: read_secret(reference, self._environ, field, self._folder),
            exposure=base_sold,
            report=lambda text: log.warning("remark of the price source", detail=text),
            field=f"{role.field}.price_options",
        )

    def _admin_server(self) -> Server | None:
        admin = self._maker.admin
        if admin is None:
            return None
        unknown = sorted(set(admin.domains) - set(self._settings.auth.domains))
        if unknown or not admin.domains:
            raise ConfigError(
                "maker.admin.domains", f"names of [auth.domains], got {', '.join(unknown) or 'none'}"
            )
        router = Router(encode_maker_error)
        router.mount(
            admin_surface(
                Gate(request_verifier(self._settings, replay_window=True), "required"),
                admin.domains,
                self.switch,
                known_scopes(self._settings),
                self.status,
                self.not_ready,
            )
        )
        router.mount(asset_group(console_pages("maker"), encode_maker_error))
        router.mount(metrics_group(self._metrics(), open_to_all=admin.metrics_open))
        return Server(router, self._settings.server, wall_ms=self._wall_ms)

    def _metrics(self) -> Metrics:
        metrics = Metrics()
        metrics.add_process(self.server, self._lag)
        metrics.add(maker_families, self._reading)
        return metrics

    def _reading(self) -> MakerReading:
        return MakerReading(tuple(self.not_ready()), self.chains, self.feeds, self._wall_ms())

    def _start_readers(
        self, nursery: trio.Nursery, transport: DialTransport, client: httpx.AsyncClient, role: ChainRole
    ) -> None:
        chain = role.settings
        node_url, takers_url = self._urls[role.chain_id]
        if node_url:
            funds = MakerFunds(
                RpcNode(transport, node_url, f"{role.field}.node_url"),
                role.desk,
                role.holdings,
                FundsSettings(
                    maker=role.signer.maker,
                    contract=role.signer.contract,
                    caps=role.caps,
                    processes=self._place.count,
                    # As long as the ledger reserves a quote: other processes' shares count for this time.
                    promise_s=chain.expiry_s + EXPIRY_GRACE_S,
                    every_s=chain.node_every_ms / 1_000,
                    stale_s=chain.node_stale_s,
                    head_max_s=chain.node_head_max_s,
                ),
                self._wall_ms,
            )
            nursery.start_soon(funds.follow)
        if takers_url:
            nursery.start_soon(
                follow_takers,
                client,
                takers_url,
                role.desk,
                role.fixed_takers,
                chain.takers_every_s,
            )

    def _revealed_urls(self) -> dict[int, tuple[str, str]]:
        """Map each chain id to (URL of the node, URL of the list of takers); empty text for a URL that is not
        set.

        URLs given as `env:NAME` or `file:PATH` are read from there.
        """
        return {
            role.chain_id: (
                self._url(role.settings.node_url, f"{role.field}.node_url"),
                self._url(role.settings.takers_url, f"{role.field}.takers_url"),
            )
            for role in self.chains.values()
        }

    def _url(self, text: str, field: str) -> str:
        if text.startswith(("env:", "file:")):
            text = read_secret(text, self._environ, field, self._folder).reveal()
        if text and not text.startswith(("http://", "https://")):
            raise ConfigError(
                field, "expected a URL of http or https, or env:NAME or file:PATH that holds one"
            )
        return text

    def _memory(self, role: ChainRole) -> QuoteMemory:
        folder = self._folder / Path(self._settings.state_dir).expanduser()
        index, count = self._place.index, self._place.count
        name = f"{QUOTES}{role.chain_id}-"
        left = [path for path in folder.glob(f"{name}*.json") if path.stem.removeprefix(name).isdigit()]
        numbered = {int(path.stem.removeprefix(name)): path for path in left}
        orphaned = [path for number, path in numbered.items() if number >= count and number % count == index]
        return QuoteMemory(
            folder / f"{name}{index}.json",
            orphaned,
            role.desk.ledger,
            {holding.token: holding for holding in role.holdings},
            {pair_id: state.exposure for pair_id, state in role.board.pairs.items()},
            role.settings.expiry_s,
        )

    def _begin(self, memories: Iterable[QuoteMemory]) -> None:
        """Restore the live quotes of the process's last run and reserve their funds.

        If the last run ended without saving its quotes, forbid signing until these quotes have expired.

        Args:
            memories: for each chain, in the order of `chains`, the file with the last run's quotes.
        """
        now_s = self._wall_ms() // 1_000
        for memory, role in zip(memories, self.chains.values(), strict=True):
            until_s = memory.begin(now_s)
            if until_s:
                role.desk.hold(until_s)
                _log.warning(
                    "the last run did not end cleanly", chain=role.chain_id, signs_again_in_s=until_s - now_s
                )

    async def _watch_clock(self) -> None:
        """Stop signing quotes while the system's clock differs too much from the process's own clock.

        With a difference above CLOCK_STEP_S_MAX seconds, quotes would get wrong expiries. The check repeats
        until cancelled.
        """
        while True:
            await tick(CLOCK_LOOK_S)
            off_s = abs(self._clock.behind_ms()) / 1_000
            reason = "the system's clock was moved; restart this process" if off_s > CLOCK_STEP_S_MAX else ""
            if reason and not self._clock_is_off:
                _log.error("the system's clock was moved", by_s=off_s)
            self._clock_is_off = bool(reason)
            for role in self.chains.values():
                role.desk.withhold("clock", reason)

    # --- The kill switch ----------------------------------------------------------------------------

    def _obey(self, halts: Halts) -> None:
        """Apply a changed state of the kill switch: stop or resume each chain and pair at once."""
        halts = halts.within(known_scopes(self._settings))
        _log.warning("trading changed", halted=halts.text().splitlines(), reason=halts.reason)
        now_ms = self._wall_ms()
        for chain_id, role in self.chains.items():
            role.desk.obey(halts)
            if role.desk.halted:
                role.broadcast.close_all(STOPPED)
            role.board.refresh(now_ms)
            self.feeds[chain_id].publish()


def _with_folder(settings: Settings, folder: Path) -> Settings:
    """Copy the settings, with the relative paths of the TLS certificate's files joined to `folder`."""
    tls = settings.server.tls
    if tls is None:
        return settings
    found = TlsSettings(
        certificate=str(folder / Path(tls.certificate).expanduser()),
        key=str(folder / Path(tls.key).expanduser()),
    )
    return replace(settings, server=replace(settings.server, tls=found))
