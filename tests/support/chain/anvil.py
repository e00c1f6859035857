"""An anvil for tests: a process with a port of its own, started, stopped and started anew."""

import subprocess
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Self
from weakref import WeakKeyDictionary

import pytest
import trio
from bench.peers.ports import held_port, port_of

from cambist.config.errors import NodeUnavailable
from cambist.config.sections.nodes import NodeSettings
from cambist.config.timeouts import ANVIL_END_S, ANVIL_START_S
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import Chain, DevChain
from cambist.engine.dev.devnet.anvil import AnvilChain, anvil_command, listening_port
from support.programs import program

CHAIN_ID = 31337
OTHER_CHAIN_ID = 31338
KEYS = (
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
)
"""Keys of the first funded accounts, from the mnemonic that every development node shares."""


class Anvil:
    """A process, running from its creation to `end`.

    Args:
        state: kept there over a stop and a start.
        options: more, of anvil's own.

    Attributes:
        port: the same after a restart.
    """

    def __init__(
        self, chain_id: int = CHAIN_ID, *, state: Path | None = None, options: Sequence[str] = ()
    ) -> None:
        self._program = program("anvil")
        self.chain_id = chain_id
        self._held = held_port()
        self.port = port_of(self._held)
        self._state = state
        self._options = options
        self._folder = tempfile.TemporaryDirectory()
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def settings(self) -> NodeSettings:
        """Settings of the node, with its WebSocket, as an operator writes them."""
        return NodeSettings(urls=(self.url,), ws_urls=(f"ws://127.0.0.1:{self.port}",))

    def start(self) -> None:
        """Start the process; return once it listens."""
        output = Path(self._folder.name) / "output"
        command = anvil_command(
            self._program, self.chain_id, port=self.port, state=self._state, options=self._options
        )
        with output.open("wb") as file:
            self._process = subprocess.Popen(command, stdout=file, stderr=subprocess.STDOUT)
        give_up_at = time.monotonic() + ANVIL_START_S
        while time.monotonic() < give_up_at and self._process.poll() is None:
            lines = output.read_bytes().splitlines(keepends=True)
            ports = [listening_port(line) for line in lines if line.endswith(b"\n")]
            port = next((port for port in ports if port is not None), None)
            if port is not None:
                self.port = port
                return
            time.sleep(0.005)
        said = output.read_text(errors="replace")
        self.kill()
        pytest.fail(f"anvil does not start: {said[-500:]}")

    def stop(self) -> None:
        """End the process in good order: anvil writes its state."""
        self._ended(kill=False)

    def kill(self) -> None:
        """End the process as a crash does."""
        self._ended(kill=True)

    def _ended(self, *, kill: bool) -> None:
        process, self._process = self._process, None
        if process is None:
            return
        (process.kill if kill else process.terminate)()
        try:
            process.wait(ANVIL_END_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait(ANVIL_END_S)

    def end(self) -> None:
        self.kill()
        self._held.close()
        self._folder.cleanup()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.end()


_PORTS: WeakKeyDictionary[Chain, int] = WeakKeyDictionary()


@asynccontextmanager
async def opened(anvil: Anvil) -> AsyncIterator[AnvilChain]:
    """A chain with nothing but its genesis block, mining at once, at the present time."""
    async with AnvilChain.open(anvil.chain_id, anvil.settings, known_errors()) as chain:
        _PORTS[chain] = anvil.port
        await chain.reset()
        await set_to_now(chain)
        yield chain


async def set_to_now(chain: DevChain) -> None:
    """Give the next block the present time, from which the chain's clock goes on.

    After a reset or a snapshot, an anvil's clock goes on from the genesis block or the snapshot's block,
    however long ago that was: two chains of a story would be that far apart.
    """
    last = await chain.block()
    assert last is not None
    if last.time_s < (now_s := int(time.time())):
        await chain.set_time(now_s)


def anvil_port(chain: Chain) -> int:
    """Port of the anvil of a chain that `opened` has yielded."""
    return _PORTS[chain]


async def until_up(chain: Chain) -> None:
    """Return once an anvil that was started again answers."""
    with trio.fail_after(ANVIL_START_S):
        while True:
            try:
                await chain.block()
            except NodeUnavailable:
                await trio.sleep(0.01)
            else:
                return
