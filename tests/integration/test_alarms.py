"""Every alarm of operations.md is silent in a venue that is well, and fires once its cause is there.

The table of the page is read: an alarm without a cause here fails, and so does a cause without an alarm.
"""

import os
import re
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import ExitStack, asynccontextmanager
from fcntl import LOCK_EX, flock
from functools import partial
from pathlib import Path
from unittest.mock import patch
from urllib.parse import urlsplit

import pytest
import trio
from msgspec import Struct
from msgspec.structs import replace

from cambist.config.errors import NodeUnavailable
from cambist.config.settings import Settings
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.host.admission.admission import Admission
from cambist.engine.store.process.place import FILE_NAME
from cambist.engine.trade.events import deliveries, webhooks
from cambist.feeds.maker_cache import MakerCache
from support.bridge.bridged_stories import ACROSS, BridgedStory, a_bridged_story
from support.bridge.two_chains import bridged, embedded_chains
from support.chain.world import USDC, a_world, person
from support.delta.delta_stories import DeltaStory, a_delta_story
from support.events.webhook_socket import SECRET, a_webhook_socket
from support.patience import until, until_told
from support.promtool import Scrape, holding, scrape
from support.server.port_gate import PortGate, port_gate
from support.store.store_work import full_disk, store_processes
from support.venue.venue_role import CHAIN_ID, GRIDS, RunningVenue, running_venue

pytestmark = [pytest.mark.needs("promtool"), pytest.mark.seldom]
PAGE = Path(__file__).parents[2] / "docs" / "guides" / "operations.md"
ROW = re.compile(r"^\| `(\w+)` \| `([^`]+)` \| (\d+)([smh]) \|", re.MULTILINE)
ALARMS = {
    name: expression
    for name, expression, _, _ in ROW.findall(
        PAGE.read_text(encoding="utf-8").partition("## Alarms")[2].partition("\n## ")[0]
    )
}
GWEI = 10**9
CONNECTIONS_MAX = 8
LATE_S = 400
"""Age of a transfer that is late by the settings' defaults."""
_WEBHOOK = """
[partners.acme]
address = "{partner}"
fee_bps = 0
[venue.webhooks.acme]
url = "{url}"
private_addresses = true
secret = "file:hook-secret"
partner = "acme"
give_up_s = 0.1
"""


class Trading(Struct, frozen=True):
    """A venue behind whose gate its only node is.

    Attributes:
        owned: resources that a cause needs while the venue runs.
    """

    venue: RunningVenue
    gate: PortGate
    folder: Path
    owned: ExitStack


def indexer_state(venue: RunningVenue) -> str:
    state: str = venue.app.status()["orderEngines"]["indexers"][str(CHAIN_ID)]["state"]
    return state


# --- Causes: of a venue with one maker, a node and a store process -----------------------------------------


async def node_is_gone(trading: Trading) -> None:
    trading.gate.shut()


async def node_hangs(trading: Trading) -> None:
    trading.gate.hang()


async def disk_is_full(trading: Trading) -> None:
    trading.owned.enter_context(full_disk())


async def store_process_is_dead(trading: Trading) -> None:
    """And no other can open the file."""
    (pid,) = store_processes()
    lock = trading.owned.enter_context((trading.folder / f"{FILE_NAME}.lock").open("ab"))
    os.kill(pid, signal.SIGKILL)
    flock(lock, LOCK_EX)


async def maker_is_gone(trading: Trading) -> None:
    trading.venue.makers["alpha"].drain()


async def logs_cannot_be_had(trading: Trading) -> None:
    """The node shows every block, and no log."""
    chain = trading.venue.devnet.chain
    away = NodeUnavailable("no logs")
    for name in ("logs", "logs_of"):
        trading.owned.enter_context(patch.object(type(chain), name, side_effect=away))
    await chain.mine(3)
    await until(lambda: indexer_state(trading.venue) == "failing")


async def feed_has_a_bug(trading: Trading) -> None:
    failing = patch.object(MakerCache, "expire", side_effect=RuntimeError("a bug"))
    trading.owned.enter_context(failing)


async def endpoint_has_a_bug(trading: Trading) -> None:
    with patch.object(Admission, "client", side_effect=RuntimeError("a bug")):
        assert (await trading.venue.ask("GET", f"/tokens/{CHAIN_ID}")).status == 500


async def crowd_comes(trading: Trading) -> None:
    streams = [await trio.open_tcp_stream("127.0.0.1", trading.venue.port) for _ in range(CONNECTIONS_MAX)]
    for stream in streams:
        await stream.aclose()


async def loop_is_kept_busy(_: Trading) -> None:
    for _turn in range(5):
        time.sleep(0.3)  # noqa: ASYNC251 - the cause
        await trio.sleep(0.01)


# --- Causes: of a venue that settles Delta orders ----------------------------------------------------------


async def relayer_is_drained(story: DeltaStory) -> None:
    await story.world.chain.set_balance(story.world.relayer.address, 0)
    await story.submitted(await story.world.a_delta_order())


async def gas_is_beyond_the_cap(story: DeltaStory) -> None:
    await story.hold()
    record = await story.submitted(await story.world.a_delta_order())
    await story.under_way(record)
    await story.world.chain.set_base_fee(600 * GWEI)
    await story.world.chain.mine()


async def receiver_refuses(story: DeltaStory) -> None:
    paid = int.from_bytes(person(51).address, "big") << 96
    await story.submitted(await story.world.a_delta_order(partner_and_fee=paid), partner="acme")


# --- Causes: of a venue whose orders go to another chain ---------------------------------------------------


async def bridge_does_not_deliver(story: BridgedStory) -> None:
    story.two.relayer.order(is_silent=True)
    await story.bridging(ACROSS)
    await story.pass_time(LATE_S)


OF_TRADING: dict[str, tuple[Callable[[Trading], Awaitable[None]], ...]] = {
    "NotReady": (node_is_gone, disk_is_full, maker_is_gone),
    "ChainAway": (node_is_gone, node_hangs),
    "ChainNotRead": (logs_cannot_be_had,),
    "StoreAway": (disk_is_full, store_process_is_dead),
    "MakerGone": (maker_is_gone,),
    "FeedRestarts": (feed_has_a_bug,),
    "ServerErrors": (endpoint_has_a_bug,),
    "ConnectionsFull": (crowd_comes,),
    "LoopLag": (loop_is_kept_busy,),
}
OF_DELTA: dict[str, Callable[[DeltaStory], Awaitable[None]]] = {
    "RelayerStarved": relayer_is_drained,
    "RelayerStuck": gas_is_beyond_the_cap,
    "WebhookDead": receiver_refuses,
}
OF_BRIDGES: dict[str, Callable[[BridgedStory], Awaitable[None]]] = {"BridgeLate": bridge_does_not_deliver}
ALWAYS_POSSIBLE = frozenset({"LoopLag"})
"""Whether others keep this machine busy is nobody's to say: not held to be silent."""


def test_every_alarm_has_a_cause() -> None:
    assert set(ALARMS) == OF_TRADING.keys() | OF_DELTA.keys() | OF_BRIDGES.keys()


# --- Watching ----------------------------------------------------------------------------------------------


class Watched:
    """A venue's metrics, as a Prometheus that scrapes them sees them."""

    def __init__(self, venue: RunningVenue) -> None:
        self._venue = venue
        self._scrapes: list[Scrape] = []

    async def scrape(self) -> None:
        response = await self._venue.ask("GET", "/metrics")
        assert response.status == 200
        self._scrapes.append(scrape(response.body.decode()))

    async def fires(self, name: str) -> bool:
        """Whether the expression of an alarm holds now."""
        await self.scrape()
        return name in await self._holding({name: ALARMS[name]})

    async def silent(self) -> None:
        """No alarm fires, whichever."""
        await self.scrape()
        await self.scrape()
        assert await self._holding(ALARMS) <= ALWAYS_POSSIBLE

    async def _holding(self, alarms: Mapping[str, str]) -> set[str]:
        return await trio.to_thread.run_sync(holding, alarms, self._scrapes)


@asynccontextmanager
async def trading_venue(folder: Path) -> AsyncGenerator[Trading]:
    """Venue with a maker, a node behind a gate, and a store process."""
    async with port_gate() as gate:

        def changed(settings: Settings) -> Settings:
            chain = settings.chains[CHAIN_ID]
            gate.target = urlsplit(chain.node.urls[0]).port or 0
            node = replace(chain.node, urls=(f"http://127.0.0.1:{gate.port}",), ws_urls=(), poll_s=0.1)
            server = replace(settings.server, connections_max=CONNECTIONS_MAX)
            return replace(settings, chains={CHAIN_ID: replace(chain, node=node)}, server=server)

        grids = {"alpha": GRIDS["alpha"]}
        async with running_venue(folder, grids=grids, changed=changed, store_in_process=False) as venue:
            with ExitStack() as owned:
                yield Trading(venue, gate, folder, owned)


def marks_of(cause: object) -> list[pytest.MarkDecorator]:
    """Programs that a cause needs: logs are withheld in this process, where an anvil is not."""
    return [pytest.mark.needs("pyrevm")] * (cause is logs_cannot_be_had)


@pytest.mark.parametrize(
    ("name", "cause"),
    [
        pytest.param(name, cause, id=f"{name}-{cause.__name__}", marks=marks_of(cause))
        for name, causes in OF_TRADING.items()
        for cause in causes
    ],
)
async def test_a_venue_that_trades(
    tmp_path: Path, name: str, cause: Callable[[Trading], Awaitable[None]]
) -> None:
    async with trading_venue(tmp_path) as trading:
        await until(lambda: indexer_state(trading.venue) == "following")
        watched = Watched(trading.venue)
        await watched.silent()
        await cause(trading)
        await until_told(partial(watched.fires, name))


@pytest.mark.parametrize("name", OF_DELTA)
async def test_a_venue_that_settles(tmp_path: Path, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (deliveries, webhooks):
        monkeypatch.setattr(module, "rest_s", lambda failures: 0.1 if failures else 0.0)
    (tmp_path / "hook-secret").write_text(SECRET)
    chain = EmbeddedChain(CHAIN_ID, lambda: int(time.time()), {}, known_errors())
    with a_webhook_socket() as receiver:
        receiver.status = 503
        more = _WEBHOOK.format(partner=to_checksum(person(51).address), url=receiver.url)
        async with a_delta_story(
            await a_world(chain), tmp_path, "ann", relayer="stuck_s = 1", more=more
        ) as story:
            story.agents["ann"].gives = lambda _: 2_500 * USDC
            watched = Watched(story.web)
            await watched.scrape()
            assert not await watched.fires(name)
            await OF_DELTA[name](story)
            await until_told(partial(watched.fires, name))


@pytest.mark.parametrize("name", OF_BRIDGES)
async def test_a_venue_that_bridges(tmp_path: Path, name: str) -> None:
    async with (await bridged(embedded_chains())).served() as two, a_bridged_story(two, tmp_path) as story:
        watched = Watched(story.web)
        await watched.scrape()
        assert not await watched.fires(name)
        await OF_BRIDGES[name](story)
        await until_told(partial(watched.fires, name))
