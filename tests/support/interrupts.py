"""A command as a process that a test interrupts."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

import trio

from support.patience import PATIENCE_S


async def interrupted(
    command: Sequence[str],
    environ: Mapping[str, str],
    folder: Path,
    once_said: bytes,
    *,
    again_s: float = PATIENCE_S,
) -> tuple[int | None, str]:
    """Run it, and interrupt it once it has said something on standard error.

    Returns:
        its status and all that it said.

    Args:
        again_s: how long it may take before it is interrupted once more.
    """
    said = b""
    process = await trio.lowlevel.open_process(
        command,
        stdin=subprocess.PIPE,
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        env=os.environ | environ,
        cwd=folder,
    )
    assert process.stderr
    try:
        with trio.fail_after(PATIENCE_S):
            while once_said not in said and (piece := await process.stderr.receive_some()):
                said += piece
            while process.returncode is None:
                process.send_signal(signal.SIGINT)
                with trio.move_on_after(again_s):
                    await process.wait()
            async for piece in process.stderr:
                said += piece
            return process.returncode, said.decode()
    finally:
        if process.returncode is None:
            process.kill()
