"""An anvil: the development node of Foundry, as a chain of our own and as a process.

It stands behind the same port as the embedded chain: tests hold one against the other, and the demo and
`cambist devnet` use it where the embedded chain has no wheel.

Source: ARCHITECTURE.md, "Embedded chain"; Foundry's `anvil` reference (anvil_*, evm_*).
"""

import os
import shutil
import subprocess
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path

import trio

from ....config.errors import ChainError, ConfigError
from ....config.sections.nodes import NodeSettings
from ....config.timeouts import ANVIL_END_S, ANVIL_START_S
from ....crypto.hexadecimal import to_hex
from ...chain.deploy.create2_factory import FACTORY, FACTORY_CODE
from ...chain.nodes import rpc_values as values
from ...chain.nodes.failover import Talk
from ...chain.nodes.rpc import RpcChain

HARDFORK = "cancun"  # what the embedded chain has
STATES_MAX = 10_000
"""Blocks whose states an anvil keeps, all in memory. By itself it writes those before the last 500 to files
below the home directory, without the contracts' code: after a reorganisation no contract answers any more."""
_LISTENING = b"Listening on "
_LINE_BYTES_MAX = 64 << 10


class AnvilChain(RpcChain):
    """`DevChain` over an anvil's own methods."""

    async def mine(self, blocks: int = 1) -> None:
        """As `DevChain`."""
        if blocks > 0:
            await self._do("anvil_mine", hex(blocks))

    async def set_automine(self, *, on: bool) -> None:
        """As `DevChain`."""
        await self._do("evm_setAutomine", on)

    async def set_time(self, time_s: int) -> None:
        """As `DevChain`."""
        await self._do("evm_setNextBlockTimestamp", time_s)

    async def set_balance(self, address: bytes, wei: int) -> None:
        """As `DevChain`."""
        await self._do("anvil_setBalance", to_hex(address), hex(wei))

    async def set_base_fee(self, wei: int) -> None:
        """As `DevChain`."""
        await self._do("anvil_setNextBlockBaseFeePerGas", hex(wei))

    async def snapshot(self) -> int:
        """As `DevChain`."""
        return values.read_quantity(await self._do("evm_snapshot"))

    async def restore(self, snapshot: int) -> None:
        """As `DevChain`.

        Raises:
            ChainError: there is no such snapshot, or it is used up.
        """
        if await self._do("evm_revert", hex(snapshot)) != b"true":
            raise ChainError(f"there is no snapshot {snapshot}")
        self._height = 0

    async def reorganise(self, depth: int, again: Sequence[tuple[bytes, int]] = ()) -> None:
        """As `DevChain`."""
        await self._do("anvil_reorg", depth, [[to_hex(raw), block] for raw, block in again])

    async def drop(self, tx_hash: bytes) -> None:
        """As `DevChain`."""
        await self._do("anvil_dropTransaction", to_hex(tx_hash))

    async def reset(self) -> None:
        """Back to the genesis block, at the time of the wall, mining at once; nothing waits."""
        await self._do("anvil_reset")
        await self._do("anvil_setCode", to_hex(FACTORY), to_hex(FACTORY_CODE))  # a reset forgets it
        await self.set_automine(on=True)
        self._height = 0

    async def _do(self, method: str, *parameters: object) -> bytes:
        async def converse(talk: Talk) -> bytes:
            return await talk.result(method, *parameters)

        return await self._nodes.ask(converse)


def find_anvil(environ: Mapping[str, str], folders: Sequence[Path] = ()) -> Path | None:
    """The program: on the path, or where npm puts it.

    Args:
        environ: whose PATH is looked through.
        folders: each with a `node_modules` in it.
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
    """The command that starts one.

    Args:
        port: 0 lets the system choose; `listening_port` reads it.
        state: a file that it starts from, if it is there, and is written to in the end.
        options: more, of anvil's own.
    """
    command = [str(program), "--hardfork", HARDFORK, "--host", "127.0.0.1", "--port", str(port)]
    command += ["--chain-id", str(chain_id), "--prune-history", str(STATES_MAX)]
    if state is not None:
        command += ["--state", str(state), "--preserve-historical-states"]
    return [*command, *options]


def listening_port(line: bytes) -> int | None:
    """The port, from the line of its output that tells it; None from any other."""
    address, _, port = line.strip().removeprefix(_LISTENING).rpartition(b":")
    return int(port) if line.startswith(_LISTENING) and address and port.isdigit() else None


@asynccontextmanager
async def running_anvil(command: Sequence[str]) -> AsyncGenerator[NodeSettings]:
    """The node that is an anvil, which runs until the context is left; see `anvil_command`.

    Raises:
        ConfigError: it does not start.
    """
    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        run = partial(
            trio.run_process,
            list(command),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            deliver_cancel=_end,
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
    """Its port; what it says from then on is read and dropped."""
    output = process.stdout
    said = b""
    with trio.move_on_after(ANVIL_START_S):
        while output is not None and len(said) < _LINE_BYTES_MAX:
            data = await output.receive_some()
            if not data:
                break
            said += data
            ports = [listening_port(line) for line in said.splitlines(keepends=True) if line.endswith(b"\n")]
            port = next((port for port in ports if port is not None), None)
            if port is not None:
                nursery.start_soon(_drain, output)
                return port
    raise ConfigError("anvil", f"does not start: {said[-200:].decode(errors='replace').strip() or 'silent'}")


async def _drain(output: trio.abc.ReceiveStream) -> None:
    async for _ in output:
        pass


async def _end(process: trio.Process) -> None:
    """Ask it to end, which writes its state; kill it where it does not."""
    process.terminate()
    with trio.move_on_after(ANVIL_END_S):
        await process.wait()
        return
    process.kill()
