"""Opens a role of a settings file as `serve` does, without a trace on the disk; offline unless `online`.

A venue gets a store in a temporary folder. Offline, the node of each chain never answers. Each part of a role
reads its own settings, and refuses them with the same sentence as under `serve`.
"""

import shutil
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from msgspec.structs import replace

from ....config.errors import ConfigError, NodeUnavailable
from ....config.sections.store import StoreSettings
from ....config.sections.venue import VenueMaker
from ....config.settings import Settings
from ...chain.deploy.address_book import FILE_NAME, read_book
from ...host.process.clock import WallClock
from ...roles.agent.app import opened_agent
from ...roles.maker.app import MakerApp
from ...roles.venue.app import opened_venue
from ...store.process.place import place_of
from ...trade.routing.makers import nodes_of
from ...trade.routing.served import served_chains
from ...trade.served.served_chain import ServedChain
from .role_online import RoleFact, agent_answers, chain_answers, fund_answers, maker_answers

_CONTRACTS = {
    "router": "router",
    "executor": "executor",
    "rfq_contract": "rfq",
    "delta_contract": "delta",
    "fee_vault": "fee_vault",
    "arrivals": "arrivals",
}
"""Name of a contract in the settings -> attribute of a served chain."""


class SilentChain:
    """Chain whose node never answers."""

    def __init__(self, chain_id: int) -> None:
        self.chain_id = chain_id

    def __getattr__(self, name: str) -> Any:
        async def refuse(*_: object, **__: object) -> Any:
            raise NodeUnavailable("not asked: --online asks nodes")

        return refuse


async def open_role(
    role: str, settings: Settings, environ: Mapping[str, str], folder: Path, *, online: bool = False
) -> list[RoleFact]:
    """Open a role as `serve` does, and close it again.

    Args:
        role: `venue`, `maker` or `agent`.
        folder: base of relative paths in the settings.
        online: whether nodes, contracts and makers are asked too.

    Returns:
        Facts about the chains, pairs, makers and funds with which the role would serve; with `online`, also
            about the answers.

    Raises:
        ConfigError: `serve` would refuse the settings.
    """
    opening = {"venue": _venue, "maker": _maker, "agent": _agent}[role]
    return await opening(settings, environ, folder, online=online)


async def _venue(
    settings: Settings, environ: Mapping[str, str], folder: Path, *, online: bool
) -> list[RoleFact]:
    if settings.venue is None:
        raise ConfigError("venue", "is not set")
    # For the refusal of `store.url` alone: the venue below is opened with a temporary store in its place.
    place_of(settings, environ, folder)
    chains = _silent(settings, settings.venue.makers, environ, folder, "venue.makers")
    with _apart(settings, folder) as apart:
        opened = opened_venue(
            apart,
            environ=environ,
            folder=folder,
            clock=WallClock(),
            chains={} if online else chains,
            store_in_process=True,
        )
        async with opened as app:
            facts = [*_chains(app.chains.values(), settings.venue.makers), *_sections(settings)]
            for served in app.chains.values() if online else ():
                contracts = {name: getattr(served, at) for name, at in _CONTRACTS.items()}
                field = f"chains.{served.chain_id}"
                facts += await chain_answers(served.chain, field, contracts)
                facts += await maker_answers(served.feeds, "venue.makers", served.chain_id)
            if online:
                facts += await agent_answers(settings.venue.agents)
            return facts


async def _agent(
    settings: Settings, environ: Mapping[str, str], folder: Path, *, online: bool
) -> list[RoleFact]:
    if settings.agent is None:
        raise ConfigError("agent", "is not set")
    agent = settings.agent
    chains = _silent(settings, agent.makers, environ, folder, "agent.makers")
    opened = opened_agent(
        settings, environ=environ, folder=folder, clock=WallClock(), chains={} if online else chains
    )
    async with opened as app:
        facts = [
            RoleFact(f"chain {chain_id}", _makers(agent.makers, chain_id)) for chain_id in sorted(app.chains)
        ]
        facts.append(RoleFact("strategies", ", ".join(agent.strategies)))
        for chain_id, served in app.chains.items() if online else ():
            contracts = {name: served.served.addresses[name] for name in ("executor", "delta_contract")}
            facts += await chain_answers(served.chain, f"chains.{chain_id}", contracts)
            facts += await maker_answers(served.makers.feeds, "agent.makers", chain_id)
        return facts


async def _maker(
    settings: Settings, environ: Mapping[str, str], folder: Path, *, online: bool
) -> list[RoleFact]:
    app = MakerApp(settings, environ=environ, folder=folder, clock=WallClock())
    facts = []
    for chain_id, role in sorted(app.chains.items()):
        chain = role.settings
        funds = "read from a node" if chain.node_url else "of the settings"
        text = f"quotes {', '.join(chain.pairs)} by `{chain.price_source}`; funds {funds}"
        facts.append(RoleFact(f"chain {chain_id}", text))
        if online and chain.node_url:
            facts += await fund_answers(role, environ, folder)
    return facts


def _silent(
    settings: Settings,
    makers: Mapping[str, VenueMaker],
    environ: Mapping[str, str],
    folder: Path,
    field: str,
) -> dict[int, Any]:
    """Make a chain that never answers for each chain with a node; check the nodes' settings."""
    book = read_book(folder / Path(settings.state_dir).expanduser() / FILE_NAME)
    served = served_chains(settings, makers, book, (), field)
    nodes_of(served, environ, folder, {})
    return {chain_id: SilentChain(chain_id) for chain_id in served}


@contextmanager
def _apart(settings: Settings, folder: Path) -> Iterator[Settings]:
    """Context manager: the settings with a temporary state directory, which has the contracts' addresses."""
    with TemporaryDirectory(prefix="cambist-check-") as name:
        book = folder / Path(settings.state_dir).expanduser() / FILE_NAME
        if book.exists():
            shutil.copy(book, name)
        yield replace(settings, state_dir=name, store=StoreSettings())


def _chains(chains: Iterable[ServedChain], makers: Mapping[str, VenueMaker]) -> Iterator[RoleFact]:
    for served in chains:
        kinds = [
            name
            for name, is_served in (
                ("Market", served.settings.market),
                ("Delta", not served.no_delta),
                ("OTC", served.settings.rfq),
            )
            if is_served
        ]
        tokens = ", ".join(token.symbol for token in served.tokens.by_address.values())
        text = f"{', '.join(kinds)}; tokens {tokens}; {_makers(makers, served.chain_id)}"
        yield RoleFact(f"chain {served.chain_id}", text)
        if not served.tokens.wrapped_native and any(
            served.chain_id in maker.chains for maker in makers.values()
        ):
            text = "is not set: no price values gas, and Delta orders are not priced"
            yield RoleFact(f"chains.{served.chain_id}.wrapped_native", text, is_fault=True)
        if served.settings.delta and served.no_delta:
            yield RoleFact(f"chain {served.chain_id}", served.no_delta)


def _makers(makers: Mapping[str, VenueMaker], chain_id: int) -> str:
    names = [name for name, maker in makers.items() if chain_id in maker.chains]
    return f"makers {', '.join(names)}" if names else "no makers"


def _sections(settings: Settings) -> Iterator[RoleFact]:
    venue = settings.venue
    if venue:
        yield RoleFact("agents", ", ".join(venue.agents) or "none")
        yield RoleFact("bridges", ", ".join(settings.bridges) or "none")
        yield RoleFact("webhooks", ", ".join(venue.webhooks) or "none")
