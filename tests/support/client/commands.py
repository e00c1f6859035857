"""A command of `cambist` in a thread of this process, which starts sooner than a process of its own."""

import sys
from collections.abc import Mapping, Sequence

import click
import structlog
import trio
from click.testing import CliRunner, Result

from cambist.engine.cli import cli
from support.patience import PATIENCE_S


async def invoked(
    arguments: Sequence[str],
    environ: Mapping[str, str],
    *,
    command: click.Command = cli,
    within_s: float = PATIENCE_S,
) -> Result:
    """Exit status and output of a command, which reads nothing from its standard input.

    The command's output is the whole process's while it runs: what other applications of this process log
    meanwhile goes to the standard error of the process.
    """
    structlog.configure(logger_factory=structlog.PrintLoggerFactory(sys.stderr))  # not the command's
    with trio.fail_after(within_s):
        return await trio.to_thread.run_sync(
            lambda: CliRunner().invoke(command, list(arguments), env=dict(environ), input="")
        )
