"""Runs the roles of a layout in this process: makers, agents and the venue, each from its settings file.

A role has a subfolder with its name: its settings file, contracts.json, and its state. `cambist serve`,
`maker serve` or `agent serve` opens the same file in a process of its own.
"""

import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from pathlib import Path
from socket import socket as Socket  # noqa: N812 - `socket` is the module's name
from typing import Any

import trio
from msgspec import Struct

from ....config.settings import Settings, parse_settings
from ....crypto.secp256k1 import SigningKey
from ...chain.deploy.address_book import write_entries
from ...host.process.clock import WallClock
from ...roles.agent.app import AgentApp, opened_agent
from ...roles.maker.app import MakerApp
from ...roles.venue.app import VenueApp, opened_venue
from ...trade.served.served_chain import NO_BOOK
from .layout import VENUE, Layout, agent_text, maker_text, venue_text

SETTINGS_FILE = "settings.toml"
_READY_S = 60.0
_LOOK_S = 0.02


class RunningRoles(Struct, frozen=True):
    """Roles that run in this process; a role that runs elsewhere is absent.

    Attributes:
        venue: the venue; None if it runs elsewhere.
        makers, agents: the applications by name.
    """

    venue: VenueApp | None
    makers: Mapping[str, MakerApp]
    agents: Mapping[str, AgentApp]

    async def ready(self, books: int) -> None:
        """Wait until venue and makers are ready, and the venue has all books of the makers.

        Args:
            books: number of the books of all makers.

        Raises:
            trio.TooSlowError: an application is not ready, or the venue lacks a book, after a minute.
        """
        with trio.fail_after(_READY_S):
            while self._waits(books):  # noqa: ASYNC110  books of others have no event
                await trio.sleep(_LOOK_S)

    def _waits(self, books: int) -> bool:
        if any(maker.not_ready() for maker in self.makers.values()):
            return True
        if not self.venue:
            return False
        known = sum(1 for place in self.venue.chains.values() for _ in place.index.books())
        # A chain whose makers all run elsewhere has no book yet: `books` counts those that are waited for.
        return known < books or any(not reason.endswith(NO_BOOK) for reason in self.venue.not_ready())


def new_secrets(layout: Layout, keys: Mapping[str, SigningKey]) -> dict[str, str]:
    """Make the environment variables that the roles' settings files name: shared secrets, and private keys.

    Args:
        keys: keys of the makers by name, and of the venue's relayer as `relayer`.
    """
    found = {shared.name: secrets.token_hex(16) for shared in layout.secrets()}
    found |= {f"{name.upper()}_KEY": key.secret32().hex() for name, key in keys.items()}
    return found | {"ROUTE_SEAL": secrets.token_hex(16)}


def write_roles(layout: Layout, folder: Path) -> None:
    """Write the settings file and contracts.json of each role into a subfolder with the role's name."""
    texts = {VENUE: venue_text(layout)}
    texts |= {name: maker_text(layout, name) for name in layout.makers}
    texts |= {name: agent_text(layout, name) for name in layout.agents}
    entries = {chain.chain_id: chain.entry for chain in (layout.near, layout.far)}
    for name, text in texts.items():
        home = folder / name
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_entries(home, entries)
        (home / SETTINGS_FILE).write_text(text, encoding="utf-8")


@asynccontextmanager
async def running_roles(
    layout: Layout,
    folder: Path,
    environ: Mapping[str, str],
    clock: WallClock,
    listeners: Mapping[str, Socket],
    *,
    store_in_process: bool = False,
) -> AsyncIterator[RunningRoles]:
    """Context manager: open the roles from the files that `write_roles` wrote, and serve until the exit.

    At the exit each application answers its open requests and stops: the venue first, then the agents, then
    the makers, so that no application asks one that has stopped.

    Args:
        environ: environment variables that the files name.
        listeners: name of each role that runs in this process -> its listening socket.
        store_in_process: whether the venue's store has no process of its own.

    Raises:
        ConfigError: a role refuses its settings.
    """
    opening = _Opening(folder, environ, clock, store_in_process)
    # The stack leaves in reverse order, so that the roles that are started last are drained first.
    async with AsyncExitStack() as owned:
        makers = {name: opening.maker(name) for name in layout.makers.keys() & listeners.keys()}
        for maker in makers.values():
            owned.enter_context(maker.remembering())
        nursery = await owned.enter_async_context(_drained(makers))
        for name, maker in makers.items():
            await nursery.start(maker.run, listeners[name])
        agents: dict[str, AgentApp] = {}  # filled below: the exit drains the agents that have started
        nursery = await owned.enter_async_context(_drained(agents))
        for name in layout.agents.keys() & listeners.keys():
            agents[name] = await nursery.start(_run_opened, opening.agent(name), listeners[name])
        venues: dict[str, VenueApp] = {}
        nursery = await owned.enter_async_context(_drained(venues))
        if VENUE in listeners:
            venues[VENUE] = await nursery.start(_run_opened, opening.venue(), listeners[VENUE])
        yield RunningRoles(venues.get(VENUE), makers, agents)


@asynccontextmanager
async def _drained(apps: Mapping[str, MakerApp | AgentApp | VenueApp]) -> AsyncIterator[trio.Nursery]:
    """Context manager: a nursery for the tasks of applications.

    The exit drains the applications that `apps` holds by then, and waits until the tasks have ended.
    """
    async with trio.open_nursery() as nursery:
        yield nursery
        for app in apps.values():
            app.drain()


async def _run_opened(
    opened: AbstractAsyncContextManager[Any], listener: Socket, *, task_status: trio.TaskStatus[Any]
) -> None:
    async with opened as app, trio.open_nursery() as nursery:
        await nursery.start(app.run, listener)
        task_status.started(app)


class _Opening(Struct, frozen=True):
    folder: Path
    environ: Mapping[str, str]
    clock: WallClock
    store_in_process: bool

    def maker(self, name: str) -> MakerApp:
        return MakerApp(
            self._settings(name), environ=self.environ, folder=self.folder / name, clock=self.clock
        )

    def agent(self, name: str) -> AbstractAsyncContextManager[AgentApp]:
        return opened_agent(
            self._settings(name), environ=self.environ, folder=self.folder / name, clock=self.clock
        )

    def venue(self) -> AbstractAsyncContextManager[VenueApp]:
        return opened_venue(
            self._settings(VENUE),
            environ=self.environ,
            folder=self.folder / VENUE,
            clock=self.clock,
            store_in_process=self.store_in_process,
        )

    def _settings(self, name: str) -> Settings:
        home = self.folder / name
        return parse_settings((home / SETTINGS_FILE).read_text(encoding="utf-8"), self.environ, home)
