"""`cambist devnet`: runs chains with contracts and funded accounts, each on its own port, until a signal.

    31337    http://127.0.0.1:8545 and ws://127.0.0.1:8545
    31338    the next port

Each chain is an anvil at the same address if the embedded EVM is not installed, or on request. SIGTERM and
SIGINT end the chains.
"""

import platform
import signal
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from socket import socket as Socket  # noqa: N812 - `socket` is the module's name
from typing import Protocol

import trio
from msgspec import Struct

from ....config.chains import ChainSettings
from ....config.errors import ConfigError
from ....crypto.custody.mnemonic import DEV_MNEMONIC
from ....crypto.hexadecimal import parse_hex
from ....crypto.secp256k1 import SigningKey
from ....feeds.transport.streams import listen
from ...chain.artifacts import known_errors
from ...chain.deploy.address_book import FILE_NAME, DeployedChain, read_book, write_entries
from ...chain.port import DevChain
from ..embedded.embedded import EmbeddedChain
from ..embedded.evm import IS_INSTALLED
from ..embedded.kept import KeptChain
from .anvil import GET_ANVIL, AnvilChain, anvil_command, chain_to_install, find_anvil, running_anvil
from .furnish import furnish
from .node import DevNode

EMBEDDED, ANVIL = "embedded", "anvil"


class DevnetOptions(Struct, frozen=True, kw_only=True):
    """Options of a devnet, as `cambist devnet` or the demo starts it.

    Attributes:
        chains: chain id -> settings, which give the chain's name and the names of the EIP-712 domains.
        host: address on which the chains listen.
        port: TCP port of the first chain; later chains use the next ports; 0 lets the system choose each.
        keys: keys of the funded accounts.
        mnemonic: the keys' mnemonic, from which an anvil derives the same keys.
        block_time_s: seconds between blocks; 0 mines a block for each transaction.
        anvil: whether to run anvil even if the embedded EVM is installed.
        state_dir: folder in which contracts.json is written.
        is_kept: whether the chains are in files of the folder, from which the next start goes on.
        port_option: option of the command that sets `port`, for errors.
    """

    chains: Mapping[int, ChainSettings]
    host: str
    port: int
    keys: tuple[SigningKey, ...]
    mnemonic: str
    block_time_s: float
    anvil: bool
    state_dir: Path
    is_kept: bool = False
    port_option: str = "--port"

    def file(self, name: str) -> Path | None:
        """Path of a chain's file in the folder; None if the chains are not kept."""
        return self.state_dir / name if self.is_kept else None


class RunningChain(Struct, frozen=True):
    """A running chain of a devnet, with contracts and funded accounts.

    Attributes:
        engine: implementation of the chain: EMBEDDED (an EVM in this process) or ANVIL.
        url: URL of JSON-RPC over HTTP; the WebSocket has the same host and port.
        entry: addresses of the contracts and tokens.
    """

    chain_id: int
    engine: str
    url: str
    entry: DeployedChain

    @property
    def ws_url(self) -> str:
        """Return the URL of JSON-RPC over WebSocket."""
        return self.url.replace("http", "ws", 1)

    def at(self, name: str) -> bytes:
        """Return the 20-byte address of a contract or token, e.g. `rfq`, `router`, `executor`, `WETH`."""
        token = self.entry.tokens.get(name)
        return parse_hex(token.address if token else getattr(self.entry, name), name)

    def decimals(self, symbol: str) -> int:
        """Return the decimals of a token."""
        return self.entry.tokens[symbol].decimals


class _Opened(Struct):
    """Chain of a devnet whose socket already listens, with functions to serve and to stop the chain.

    Attributes:
        engine: implementation of the chain: EMBEDDED (an EVM in this process) or ANVIL.
        url: URL of JSON-RPC over HTTP.
        serve: answers clients until cancelled or stopped by `drain`.
        drain: makes `serve` answer the open requests and return.
    """

    chain: DevChain
    engine: str
    url: str
    serve: Callable[[], Awaitable[None]]
    drain: Callable[[], None]


class Companion(Protocol):
    """A task that runs beside the chains of a devnet, such as the bridges between the chains."""

    async def run(
        self, chains: Sequence[tuple[DevChain, DeployedChain]], *, task_status: trio.TaskStatus[None]
    ) -> None:
        """Run until cancelled, and report to `task_status` once the chains may be used."""
        ...


async def serve_devnet(
    wanted: DevnetOptions,
    environ: Mapping[str, str],
    started: Callable[[Sequence[RunningChain], Path], None],
    companion: Companion | None = None,
) -> None:
    """Run the chains of a devnet until SIGTERM or SIGINT.

    The first signal lets the chains answer their open requests and stop; a second signal stops the chains at
    once.

    Args:
        environ: environment variables, whose PATH is searched for anvil.
        started: function that is called once all chains are ready, with the chains and the path of
            contracts.json.
        companion: task that runs beside the chains, and is ready before `started` is called; None for no
            task.

    Raises:
        ConfigError: an address cannot be listened on, neither the embedded EVM nor anvil is installed, or
            contracts.json cannot be written.
    """
    async with AsyncExitStack() as owned:
        opened: list[_Opened] = []
        running: list[RunningChain] = []
        for chain_id in wanted.chains:
            node, there = await _open_furnished(owned, wanted, environ, chain_id)
            opened.append(node)
            running.append(there)
        path = write_entries(wanted.state_dir, {chain.chain_id: chain.entry for chain in running})
        async with trio.open_nursery() as nursery:
            if companion:
                pairs = [(node.chain, there.entry) for node, there in zip(opened, running, strict=True)]
                await nursery.start(companion.run, pairs)
            with trio.open_signal_receiver(signal.SIGTERM, signal.SIGINT) as signals:
                # `serving` ends once all chains have answered their open requests. The tasks of `nursery`
                # (companion, regular blocks, signals) never end by themselves, and are cancelled afterwards.
                async with trio.open_nursery() as serving:
                    for node in opened:
                        serving.start_soon(node.serve)
                        if wanted.block_time_s:
                            nursery.start_soon(mine_regularly, node.chain, wanted.block_time_s)
                    nursery.start_soon(_drain_on_signal, signals, opened, nursery.cancel_scope)
                    started(running, path)
                nursery.cancel_scope.cancel()


@asynccontextmanager
async def running_chain(
    wanted: DevnetOptions, environ: Mapping[str, str], chain_id: int
) -> AsyncIterator[tuple[DevChain, RunningChain]]:
    """Context manager: run one of the devnet's chains, with contracts and funded accounts.

    Raises:
        ConfigError: the address cannot be listened on, neither the embedded EVM nor anvil is installed, or
            anvil does not start.
    """
    async with AsyncExitStack() as owned:
        opened, running = await _open_furnished(owned, wanted, environ, chain_id)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(opened.serve)
            if wanted.block_time_s:
                nursery.start_soon(mine_regularly, opened.chain, wanted.block_time_s)
            yield opened.chain, running
            nursery.cancel_scope.cancel()


async def _open_furnished(
    owned: AsyncExitStack, wanted: DevnetOptions, environ: Mapping[str, str], chain_id: int
) -> tuple[_Opened, RunningChain]:
    """Open a chain; deploy its contracts and fund its accounts, unless a kept chain has them already."""
    port = wanted.port and wanted.port + list(wanted.chains).index(chain_id)
    opened = await _open(owned, wanted, environ, chain_id, port)
    book = read_book(wanted.state_dir / FILE_NAME) if wanted.is_kept else None
    entry = book.chains.get(str(chain_id)) if book else None
    head = await opened.chain.block()
    await opened.chain.set_automine(on=True)
    if entry is None or head is None or not head.number:
        entry = await furnish(opened.chain, wanted.keys, wanted.chains[chain_id])
        if wanted.is_kept:
            write_entries(wanted.state_dir, {chain_id: entry})
    return opened, RunningChain(chain_id, opened.engine, opened.url, entry)


async def _open(
    owned: AsyncExitStack, wanted: DevnetOptions, environ: Mapping[str, str], chain_id: int, port: int
) -> _Opened:
    if wanted.anvil or not IS_INSTALLED:
        return await _open_anvil(owned, wanted, _anvil(environ), chain_id, port)
    return await _open_embedded(owned, wanted, chain_id, port)


async def _open_embedded(owned: AsyncExitStack, wanted: DevnetOptions, chain_id: int, port: int) -> _Opened:
    listener = listening(wanted.host, port, wanted.port_option)
    owned.callback(listener.close)
    path = wanted.file(f"chain-{chain_id}.jsonl")
    if path is None:
        chain = EmbeddedChain(chain_id, _now_s, {}, known_errors())
    else:
        chain = kept = await KeptChain.opened(path, chain_id, _now_s, known_errors())
        owned.callback(kept.close)
    are_public = wanted.mnemonic == DEV_MNEMONIC
    node = await owned.enter_async_context(DevNode.opened(chain, wanted.keys, are_public=are_public))
    url = url_of(wanted.host, listener.getsockname()[1])
    return _Opened(chain, EMBEDDED, url, partial(node.server.serve, listener), node.server.drain)


async def _open_anvil(
    owned: AsyncExitStack, wanted: DevnetOptions, program: Path, chain_id: int, port: int
) -> _Opened:
    with listening(
        wanted.host, port, wanted.port_option
    ) as probe:  # gives a ConfigError if the port is taken
        port = port or probe.getsockname()[1]
    options = ["--mnemonic", wanted.mnemonic, "--accounts", str(len(wanted.keys))]
    if wanted.host != "127.0.0.1":
        options += ["--host", wanted.host]
    state = wanted.file(f"anvil-{chain_id}.json")
    command = anvil_command(program, chain_id, port=port, state=state, options=options)
    node = await owned.enter_async_context(running_anvil(command))
    chain = await owned.enter_async_context(AnvilChain.open(chain_id, node, known_errors()))
    ended = trio.Event()
    return _Opened(chain, ANVIL, url_of(wanted.host, port), ended.wait, ended.set)


def _anvil(environ: Mapping[str, str]) -> Path:
    program = find_anvil(environ, [Path.cwd()])
    if program is None:
        here = sys.version_info[:2], platform.system(), platform.machine()
        advice = GET_ANVIL if IS_INSTALLED else chain_to_install(*here)
        raise ConfigError("anvil", f"neither on PATH nor in node_modules: {advice}")
    return program


def listening(host: str, port: int, option: str = "--port") -> Socket:
    """Listen on a TCP port; 0 lets the system choose.

    Args:
        option: option of the command that sets the port.

    Raises:
        ConfigError: the address cannot be listened on.
    """
    try:
        return listen(host, port)
    except OSError as error:
        detail = f"cannot listen on {host} port {port}: {error.strerror or error}"
        raise ConfigError(option, detail) from None


def url_of(host: str, port: int) -> str:
    """Build the URL of a service on a host, whose name or address is given."""
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _now_s() -> int:
    return int(time.time())


async def mine_regularly(chain: DevChain, block_time_s: float) -> None:
    """Mine a block at regular intervals, in place of a block for each transaction, until cancelled."""
    await chain.set_automine(on=False)
    while True:
        await trio.sleep(block_time_s)
        await chain.mine()


async def _drain_on_signal(
    signals: AsyncIterator[int], opened: Sequence[_Opened], everything: trio.CancelScope
) -> None:
    """Let all chains answer their open requests and stop on the first signal; cancel all tasks on the second.

    Args:
        everything: cancel scope around all tasks of the devnet.
    """
    async for _ in signals:
        for node in opened:
            node.drain()
        break
    async for _ in signals:
        everything.cancel()
