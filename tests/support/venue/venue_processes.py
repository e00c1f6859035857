"""A venue with all that it trades with, each a process of its own: devnet, makers, agent, venue.

    with venue_processes(folder, [("WETH", "USDC")], has_agent=True) as running:
        asked(f"{running.url}/v2/quote?...")

The makers are those of `venue_role`. With an agent the venue takes Delta orders: the agent trades on the same
makers, and account 1 of the devnet, which is its Delta relayer, settles. A venue on PostgreSQL may be several
engines.
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode, urlsplit

import pytest
import trio
from msgspec import Struct

from cambist.config.sections.nodes import NodeSettings
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.address_book import DeployedChain, read_book, write_entries
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.feeds.transport.http_client import HttpClient
from support.chain.devnet import devnet_process
from support.makers.agent_role import AGENT_ENVIRON, agent_text
from support.patience import FIRM, PATIENCE_S, ROUND_S, until_told
from support.venue.venue_role import (
    CHAIN_ID,
    DECIMALS,
    GRIDS,
    MAKER_KEYS,
    Devnet,
    maker_text,
    venue_text,
    write_grids,
)

SERVE = ("serve", "--config", "venue.toml")
"""The command of an engine of the venue."""
AGENT = "reference"
"""Name of the agent at the venue."""

ENVIRON = AGENT_ENVIRON
_DELTA = """
[venue.agents.{agent}]
url = "http://127.0.0.1:{port}"
credentials = {{ domain = "venue", access_key = "key-1", secret = "env:VENUE_SECRET" }}
[venue.delta]
round_s = {round_s}
"""
_FIRM = f"\n[venue.firm]\n{FIRM}\n"
_AGENT_FIRM = f"\n[agent.firm]\n{FIRM}\n"


class Running(Struct, frozen=True):
    """The running processes.

    Attributes:
        urls, pids: of the venue's engines; url: of the first.
        rpc: URL of the node.
        devnet: contracts and tokens of the chain.
        agent_pid: process of the agent, 0 for none.
        maker_pids: processes of the makers, in the order of GRIDS.
    """

    urls: tuple[str, ...]
    pids: tuple[int, ...]
    rpc: str
    devnet: Devnet
    agent_pid: int
    maker_pids: tuple[int, ...]

    @property
    def url(self) -> str:
        """URL of the first engine."""
        return self.urls[0]


class Served(Struct, frozen=True):
    """A process that serves, and its port."""

    pid: int
    port: int

    @property
    def url(self) -> str:
        """URL of the server."""
        return f"http://127.0.0.1:{self.port}"


class _Place(Struct, frozen=True):
    """A devnet in another process: what `Devnet` reads of a running one."""

    url: str
    entry: DeployedChain


@contextmanager
def venue_processes(
    folder: Path,
    pairs: Sequence[tuple[str, str]],
    *,
    has_agent: bool = False,
    has_wallet: bool = False,
    round_s: float = ROUND_S,
    store_url: str = "",
    engines: int = 1,
    clock: Path | None = None,
    grids: Mapping[str, Any] = GRIDS,
) -> Iterator[Running]:
    """Once each engine has every maker's books, and prices every one of `pairs`.

    All end in good order, or the test fails, except engines that the test has killed.

    Args:
        has_wallet: whether the venue names the node to pages, so that its accounts sign there.
        store_url: of the `[store]` section.
        clock: file that moves the system clock of the engines (`moved_clock`).
        grids: prices of the makers, as GRIDS.
    """
    with ExitStack() as owned:
        chain = owned.enter_context(devnet_process(folder))
        entry = read_book(Path(chain.told["contractsFile"])).chains[str(CHAIN_ID)]
        place: Any = _Place(chain.url(), entry)
        nobody: Any = None  # the chain is asked over JSON-RPC alone
        devnet = Devnet(nobody, place)
        trio.run(_allow, chain.url(), place)
        ports, maker_pids = {}, []
        for name, quoted in grids.items():
            home = folder / name
            home.mkdir()
            write_grids(home, name, quoted)
            (home / "maker.toml").write_text(maker_text(devnet, name, quoted))
            maker = owned.enter_context(serving(home, "maker", "serve", "--config", "maker.toml"))
            ports[name] = maker.port
            maker_pids.append(maker.pid)
        text = venue_text(devnet, ports, has_relayer=has_agent) + _FIRM
        if has_wallet:
            head = f"[chains.{CHAIN_ID}]\n"
            text = text.replace(head, f'{head}wallet_url = "{chain.url()}"\n', 1)
        agent = owned.enter_context(_agent(folder / AGENT, devnet, ports)) if has_agent else Served(0, 0)
        if has_agent:
            text += _DELTA.format(agent=AGENT, port=agent.port, round_s=round_s)
        if store_url:
            text += f'\n[store]\nurl = "{store_url}"\n'
        (folder / "venue.toml").write_text(text)
        venues = [owned.enter_context(serving(folder, *SERVE, clock=clock)) for _ in range(engines)]
        urls = tuple([venue.url for venue in venues])
        for url in urls:
            _until_answered(f"{url}/makers/books?network={CHAIN_ID}", _are_all_live)
            for src, dest in pairs:
                _until_answered(f"{url}/prices?{_price(devnet, src, dest)}")
        pids = tuple([venue.pid for venue in venues])
        yield Running(urls, pids, chain.url(), devnet, agent.pid, tuple(maker_pids))


@contextmanager
def _agent(home: Path, devnet: Devnet, ports: dict[str, int]) -> Iterator[Served]:
    home.mkdir()
    write_entries(home, {CHAIN_ID: devnet.entry})
    (home / "agent.toml").write_text(agent_text(devnet, ports, _AGENT_FIRM))
    with serving(home, "agent", "serve", "--config", "agent.toml") as agent:
        _until_answered(f"http://127.0.0.1:{agent.port}/readyz")
        yield agent


@contextmanager
def serving(
    folder: Path, *arguments: str, clock: Path | None = None, secrets: Mapping[str, str] = ENVIRON
) -> Iterator[Served]:
    """Run a command that serves. The command ends in good order, or the test fails unless it killed it."""
    module, moved = ("patient_command", {}) if clock is None else ("moved_clock", {"MOVED_CLOCK": str(clock)})
    paths = str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")
    process = subprocess.Popen(
        [sys.executable, "-m", f"support.{module}", *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {**secrets} | moved | {"PYTHONPATH": os.pathsep.join(filter(None, paths))},
        cwd=folder,
    )
    give_up = threading.Timer(PATIENCE_S, process.kill)
    give_up.start()
    assert process.stderr
    lines: list[str] = []
    try:
        port = 0
        for line in process.stderr:
            lines.append(line)
            if '"serving"' in line:
                port = urlsplit(json.loads(line)["url"]).port or 0
                break
        give_up.cancel()
        assert port, "".join(lines)
        reader = threading.Thread(target=lines.extend, args=(process.stderr,))
        reader.start()
        yield Served(process.pid, port)
        process.send_signal(signal.SIGTERM)
        assert process.wait(PATIENCE_S) in (0, -signal.SIGKILL), "".join(lines)
        reader.join(PATIENCE_S)
    finally:
        give_up.cancel()
        process.kill()
        process.wait(PATIENCE_S)
        process.stderr.close()


async def _allow(url: str, place: Any) -> None:
    """The makers let the RFQ contract take their tokens."""
    async with AnvilChain.open(CHAIN_ID, NodeSettings(urls=(url,)), known_errors()) as chain:
        devnet = Devnet(chain, place)
        for key in MAKER_KEYS.values():
            for token in ("WETH", "USDC", "DAI", "WBTC"):
                await devnet.allow(key, token, "rfq")


def _price(devnet: Devnet, src: str, dest: str) -> str:
    """Parameters of GET /prices for one whole token."""
    return urlencode(
        {
            "srcToken": devnet.text(src),
            "destToken": devnet.text(dest),
            "srcDecimals": DECIMALS[src],
            "destDecimals": DECIMALS[dest],
            "amount": 10 ** DECIMALS[src],
            "network": CHAIN_ID,
            "version": "6.2",
        }
    )


def asked(url: str) -> Any:
    """The JSON of a GET that is answered 200."""
    with urllib.request.urlopen(url, timeout=PATIENCE_S) as answer:
        return json.load(answer)


def _are_all_live(books: Any) -> bool:
    return all(one["standings"].get("live") == len(GRIDS[one["maker"]]) for one in books)


def _until_answered(url: str, is_wanted: Callable[[Any], bool] = lambda _: True) -> None:
    """Ask until the answer is 200, and wanted."""
    said: object = None
    give_up_at = time.monotonic() + PATIENCE_S
    while time.monotonic() < give_up_at:
        try:
            if is_wanted(said := asked(url)):
                return
        except urllib.error.HTTPError as error:
            said = error.read()
            error.close()
        threading.Event().wait(0.05)
    pytest.fail(f"{url}: {said!r}")


async def ready(client: HttpClient) -> None:
    """Return once the server behind a client says that it is ready."""

    async def is_ready() -> bool:
        return (await client.request(b"GET", b"/readyz", deadline_s=PATIENCE_S)).status == 200

    await until_told(is_ready)
