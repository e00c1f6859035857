"""Anvil, the development node of Foundry: its process, and an implementation of `DevChain` by its JSON-RPC.

Tests compare anvil with the embedded chain; the demo and `cambist devnet` use anvil on platforms for which
the embedded EVM has no wheel.

Source: ARCHITECTURE.md, "Embedded chain"; Foundry's `anvil` reference (anvil_*, evm_*).
"""

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import trio

from ....config.errors import ChainError, ConfigError
from ....config.sections.nodes import NodeSettings
from ....config.timeouts import ANVIL_END_S, ANVIL_START_S
from ....crypto.hexadecimal import to_hex
from ...chain.deploy.create2_factory import FACTORY, FACTORY_CODE
from ...chain.nodes import rpc_values as values
from ...chain.nodes.failover import Talk
from ...chain.nodes.rpc import RpcChain

HARDFORK = "prague"  # as on the embedded chain
STATES_MAX = 10_000
"""Number of blocks whose states anvil keeps in memory.

By default anvil writes states before the last 500 blocks to files below the home directory, without the
contracts' code: after a re-organisation no contract answers any more.
"""
_LISTENING = b"Listening on "
_LINE_BYTES_MAX = 64 << 10


class _PoolTransaction(msgspec.Struct):
    hash: str


_Accounts = dict[str, dict[str, _PoolTransaction]]
"""Sender -> nonce -> waiting transaction."""


class AnvilChain(RpcChain):
    """Development chain of an anvil node; implements the interface `DevChain` by anvil's JSON-RPC methods."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._kept: dict[int, frozenset[str]] = {}  # snapshot -> hashes of the transactions that waited then

    async def mine(self, blocks: int = 1) -> None:
        """Mine a number of blocks; the first includes the waiting transactions; see `DevChain.mine`."""
        if blocks > 0:
            await self._do("anvil_mine", hex(blocks))

    async def set_automine(self, *, on: bool) -> None:
        """Set whether each sent transaction is mined at once; see `DevChain.set_automine`."""
        await self._do("evm_setAutomine", on)

    async def set_time(self, time_s: int) -> None:
        """Set the time of the next block, Unix seconds; see `DevChain.set_time`."""
        await self._do("evm_setNextBlockTimestamp", time_s)

    async def set_balance(self, address: bytes, wei: int) -> None:
        """Set an account's balance in wei; see `DevChain.set_balance`."""
        await self._do("anvil_setBalance", to_hex(address), hex(wei))

    async def set_base_fee(self, wei: int) -> None:
        """Set the base fee of the next block, wei per unit of gas; see `DevChain.set_base_fee`."""
        await self._do("anvil_setNextBlockBaseFeePerGas", hex(wei))

    async def snapshot(self) -> int:
        """Save the chain's state, and return the number of the snapshot; see `DevChain.snapshot`."""
        waiting = await self._waiting()
        snapshot = values.read_quantity(await self._do("evm_snapshot"))
        self._kept[snapshot] = waiting
        return snapshot

    async def restore(self, snapshot: int) -> None:
        """Return the chain to a snapshot's state, and delete the snapshot; see `DevChain.restore`.

        Raises:
            ChainError: no snapshot has this number.
        """
        if await self._do("evm_revert", hex(snapshot)) != b"true":
            raise ChainError(f"unknown snapshot {snapshot}")
        self._height = 0
        # Anvil takes mined transactions out of its pool a moment later: they would wait again.
        for tx_hash in await self._waiting() - self._kept.pop(snapshot, frozenset()):
            await self._do("anvil_dropTransaction", tx_hash)

    async def reorganise(self, depth: int, again: Sequence[tuple[bytes, int]] = ()) -> None:
        """Replace the last `depth` blocks by as many others; see `DevChain.reorganise`.

        Args:
            again: transactions of the new blocks: (signed transaction, index of the new block that includes
                the transaction); index 0 is the lowest new block.
        """
        await self._do("anvil_reorg", depth, [[to_hex(raw), block] for raw, block in again])

    async def drop(self, tx_hash: bytes) -> None:
        """Remove a waiting transaction from the pool; see `DevChain.drop`."""
        await self._do("anvil_dropTransaction", to_hex(tx_hash))

    async def reset(self) -> None:
        """Reset the chain: genesis block, automine on, no waiting transactions.

        The chain's clock goes on from the genesis block, whose time is the start of the anvil process.
        """
        await self._do("anvil_reset")
        await self._do("anvil_setCode", to_hex(FACTORY), to_hex(FACTORY_CODE))  # a reset removes the factory
        await self.set_automine(on=True)
        self._height = 0

    async def _waiting(self) -> frozenset[str]:
        """Read the hashes of the transactions that wait in the pool, as hexadecimal text."""
        pool = msgspec.json.decode(await self._do("txpool_content"), type=dict[str, _Accounts])
        return frozenset(
            tx.hash for accounts in pool.values() for txs in accounts.values() for tx in txs.values()
        )

    async def _do(self, method: str, *parameters: object) -> bytes:
        async def converse(talk: Talk) -> bytes:
            return await talk.result(method, *parameters)

        return await self._nodes.ask(converse)


GET_ANVIL = "install anvil (npm install --global @foundry-rs/anvil) so that it is on PATH"
"""Advice to a user without the program."""


def chain_to_install(python: tuple[int, int], system: str, machine: str) -> str:
    """Return the sentence that tells a user what to install for development chains on a platform.

    The extra `devnet` of pyproject.toml installs pyrevm under the same condition.

    Args:
        python: major and minor version, e.g. (3, 13).
        system: name of the system as `platform.system()` returns it, e.g. Linux.
        machine: name of the processor as `platform.machine()` returns it, e.g. x86_64.
    """
    if python < (3, 13) and (system == "Darwin" or (system, machine) == ("Linux", "x86_64")):
        return f'run pip install "cambist[devnet]" for the embedded EVM, or {GET_ANVIL}'
    version = ".".join(map(str, python))
    return f"{GET_ANVIL}; the embedded EVM has no wheel for Python {version} on {system} {machine}"


def find_anvil(environ: Mapping[str, str], folders: Sequence[Path] = ()) -> Path | None:
    """Path of the program anvil, on PATH or in a `node_modules` folder of npm; None if not installed.

    Args:
        environ: environment variables, whose PATH is searched.
        folders: folders that may contain `node_modules`.
    """
    found = shutil.which("anvil", path=environ.get("PATH", os.defpath))
    if found:
        return Path(found)
    packages = (folder / "node_modules" / "@foundry-rs" for folder in folders)
    programs = (path for package in packages for path in sorted(package.glob("anvil-*/bin/anvil*")))
    return next((path for path in programs if os.access(path, os.X_OK)), None)


def anvil_command(
    program: Path, chain_id: int, *, port: int = 0, state: Path | None = None, options: Sequence[str] = ()
) -> list[str]:
    """Build the command line that starts an anvil.

    Args:
        port: TCP port; 0 lets the system choose a port, which `listening_port` reads from the output.
        state: file of the chain's state, which anvil loads at the start if it exists, and writes at the end;
            None for an anvil that keeps no state.
        options: further options of anvil.
    """
    command = [str(program), "--hardfork", HARDFORK, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--chain-id", str(chain_id), "--prune-history", str(STATES_MAX)]
    if state is not None:
        command += ["--state", str(state), "--preserve-historical-states"]
    return [*command, *options]


def listening_port(line: bytes) -> int | None:
    """TCP port in anvil's output line `Listening on ...`; None for any other line."""
    address, _, port = line.strip().removeprefix(_LISTENING).rpartition(b":")
    return int(port) if line.startswith(_LISTENING) and address and port.isdigit() else None


@asynccontextmanager
async def running_anvil(command: Sequence[str]) -> AsyncGenerator[NodeSettings]:
    """Context manager: run an anvil and yield its HTTP and WebSocket URLs.

    Args:
        command: command line from `anvil_command`.

    Raises:
        ConfigError: anvil does not start.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        run = partial(
            trio.run_process,
            list(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            check=False,
            deliver_cancel=_end,  # the cancellation below ends anvil in order, so that it writes its state
        )
        try:
            try:
                process = await nursery.start(run)
            except OSError as error:
                raise ConfigError("anvil", f"cannot be started: {error.strerror}") from None
            place = f"127.0.0.1:{await _started(process, nursery)}"
            yield NodeSettings(urls=(f"http://{place}",), ws_urls=(f"ws://{place}",))
        except Exception as error:  # noqa: BLE001 - raised below, not within an exception group
            failure = error
        finally:
            nursery.cancel_scope.cancel()
    if failure is not None:
        raise failure


async def _started(process: trio.Process, nursery: trio.Nursery) -> int:
    """Wait until anvil prints its TCP port; return the port.

    A task of the nursery discards anvil's later output.
    """
    output = process.stdout
    said = b""
    with trio.move_on_after(ANVIL_START_S):
        while output is not None and len(said) < _LINE_BYTES_MAX:
            data = await output.receive_some()
            if not data:
                await process.wait()
                break
            said += data
            ports = [listening_port(line) for line in said.splitlines(keepends=True) if line.endswith(b"\n")]
            port = next((port for port in ports if port is not None), None)
            if port is not None:
                nursery.start_soon(_drain, output)
                return port
    shown = said[-200:].decode(errors="replace").strip() or "silent"
    if process.poll() is None:
        raise ConfigError("anvil", f"does not listen within {ANVIL_START_S:g} s: {shown}")
    raise ConfigError("anvil", f"ended with status {process.returncode}: {shown}")


async def _drain(output: trio.abc.ReceiveStream) -> None:
    async for _ in output:
        pass


async def _end(process: trio.Process) -> None:
    """Terminate anvil, which then writes its state; kill the process if it still runs after ANVIL_END_S s."""
    process.terminate()
    with trio.move_on_after(ANVIL_END_S):
        await process.wait()
        return
    process.kill()
