"""A `cambist devnet` as a process, and one in this process."""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any

from cambist.config.chains import ChainSettings
from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.custody.mnemonic import DEV_MNEMONIC, account_keys
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.dev.devnet.furnish import furnish
from cambist.engine.dev.devnet.node import DevNode
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.patience import PATIENCE_S, STORY_S
from support.programs import DEVELOPMENT_CHAIN, program
from support.server.asked_front import listening

NOW_S = 1_800_000_000
KEYS = account_keys(DEV_MNEMONIC, 10)


class Devnet:
    """A running process.

    Attributes:
        told: what it printed with --json.
    """

    def __init__(self, process: "subprocess.Popen[str]", told: dict[str, Any]) -> None:
        self.process = process
        self.told = told

    def url(self, place: int = 0) -> str:
        url: str = self.told["chains"][place]["http"]
        return url

    def end(self, how: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(how)
        return self.process.wait(PATIENCE_S)


def cambist(*arguments: str, folder: Path) -> list[str]:
    """A command with its state in a folder."""
    return ["env", f"CAMBIST__STATE_DIR={folder}", sys.executable, "-m", "cambist", *arguments]


@contextmanager
def devnet_process(folder: Path, *options: str, environ: dict[str, str] | None = None) -> Iterator[Devnet]:
    """Running until the context is left; ports are of the system's choice."""
    with telling_process("devnet", "--port", "0", *options, folder=folder, environ=environ) as devnet:
        yield devnet


@contextmanager
def telling_process(*command: str, folder: Path, environ: dict[str, str] | None = None) -> Iterator[Devnet]:
    """A command that prints one line with --json and stays, until the context is left."""
    if command[0] in {"devnet", "up"}:
        program(*DEVELOPMENT_CHAIN)
    with TemporaryFile() as log:  # a pipe that nobody reads would stop the command once it is full
        process = subprocess.Popen(
            cambist(*command, "--json", folder=folder),
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
            env=os.environ | (environ or {}),
            start_new_session=True,
        )
        give_up = threading.Timer(STORY_S, process.kill)
        give_up.start()
        assert process.stdout
        try:
            line = process.stdout.readline()
            give_up.cancel()
            assert line, os.pread(log.fileno(), 1 << 16, 0).decode()
            yield Devnet(process, json.loads(line))
        finally:
            give_up.cancel()
            with suppress(ProcessLookupError):  # its anvils outlive it if a test kills it
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(PATIENCE_S)
            process.stdout.close()


class Served:
    """An embedded chain as a node on loopback.

    Attributes:
        chain: what is behind it; its clock stands still at NOW_S.
        rpc: the same through the port's client.
    """

    def __init__(self, chain: EmbeddedChain, rpc: AnvilChain, port: int) -> None:
        self.chain = chain
        self.rpc = rpc
        self.port = port
        self.url = f"http://127.0.0.1:{port}"


@asynccontextmanager
async def served_chain(*, is_furnished: bool = False) -> AsyncIterator[Served]:
    """A node in this process, and a client of it."""
    funded = {key.address: 10_000 * 10**18 for key in KEYS}
    chain = EmbeddedChain(31_337, lambda: NOW_S, funded, known_errors())
    if is_furnished:
        await furnish(chain, KEYS, ChainSettings(name="devnet"))
    async with DevNode.opened(chain, KEYS, are_public=True) as node, listening(node.server.serve) as port:
        settings = NodeSettings(urls=(f"http://127.0.0.1:{port}",), ws_urls=(f"ws://127.0.0.1:{port}",))
        async with AnvilChain.open(31_337, settings, known_errors()) as rpc:
            yield Served(chain, rpc, port)
