"""Load test without load: what a venue with 20 makers, and all of `cambist up`, use while nobody trades.

    venue   `cambist serve` with 20 makers that are polled once a second each; its store process beside it
    up      `cambist up`: two chains, makers, agents, bridges and a venue in one process

CPU time, wakes (voluntary context switches) and bytes written come from Linux's /proc.
`python -m bench.load_idle [seconds]` prints the table.
"""

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median

import msgspec
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.load_children import LoadError, python_of

MAKERS = 20
SECONDS, WARM_S = 20.0, 10.0
START_S, END_S = 120.0, 20.0
_TICKS = os.sysconf("SC_CLK_TCK")
_MAKERS = re.compile(r"\[venue\.makers\..*?(?=\n\[venue\.agents)", re.DOTALL)
_MAKER = """
[venue.makers.m{number:02}]
credentials = {{ domain = "venue", access_key = "key-1", secret = "env:ALPHA_FOR_VENUE" }}
[venue.makers.m{number:02}.chains.31337]
url = "{url}"
"""


class Idle(msgspec.Struct, frozen=True, kw_only=True):
    """CPU, wakes and written bytes of one command's processes while nobody trades.

    Attributes:
        core: part of a core.
        wakes: voluntary context switches a second.
        written: bytes a second that were handed to the disk.
    """

    what: str
    core: float
    wakes: float
    written: float


def idle(seconds: float = SECONDS) -> list[Idle]:
    """Start `up`, and a venue beside it, and measure both.

    Raises:
        LoadError: a command does not start, or the system has no /proc.
    """
    if not Path("/proc/self/io").exists():
        raise LoadError("what a process uses is read from Linux's /proc")
    with tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder:
        home = Path(folder)
        with _running(home, "up", "--port", "0", "--devnet-port", "0") as (pid, _):
            up = _measured("up", [pid], seconds)
        roles = home / "roles"
        options = ("--port", "0", "--devnet-port", "0", "--without", "venue", "--write", str(roles))
        with _running(home, "up", *options):
            secrets = dict(
                line.split("=", 1) for line in (roles / "secrets.env").read_text().splitlines() if line
            )
            settings = roles / "venue" / "settings.toml"
            settings.write_text(with_makers(settings.read_text(), MAKERS))
            with _running(roles / "venue", "serve", "--config", "settings.toml", environ=secrets) as (pid, _):
                venue = _measured("venue", [pid], seconds)
    return [venue, up]


def with_makers(settings: str, count: int) -> str:
    """Replace the makers of a venue's settings by `count` makers at the address of the first."""
    url = re.search(r'\[venue\.makers\.alpha\.chains\.31337\]\nurl = "([^"]+)"', settings)
    if url is None:
        raise LoadError("the settings of `up` have no maker `alpha`")
    makers = "".join(_MAKER.format(number=number, url=url[1]) for number in range(count))
    return _MAKERS.sub(lambda _: makers, settings)


@contextmanager
def _running(
    folder: Path, *arguments: str, environ: dict[str, str] | None = None
) -> Iterator[tuple[int, str]]:
    """Context manager: a cambist command that runs, as its process id and its first line of output."""
    command = [python_of(".venv"), "-m", "cambist", *arguments]
    if arguments[0] == "up":
        command.append("--json")
    errors = (folder / f"{arguments[0]}.log").open("wb")
    with errors:
        process = subprocess.Popen(
            command,
            cwd=folder,
            stdout=subprocess.PIPE if arguments[0] == "up" else errors,
            stderr=errors,
            env=os.environ | {"CAMBIST__STATE_DIR": str(folder)} | (environ or {}),
            start_new_session=True,
            text=True,
        )
        try:
            line = process.stdout.readline() if process.stdout else ""
            if process.stdout and not line:
                raise LoadError(f"cambist {arguments[0]}: {Path(errors.name).read_text()[-2_000:]}")
            yield process.pid, line
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(END_S)
            except subprocess.TimeoutExpired:
                process.kill()


def _measured(what: str, pids: Sequence[int], seconds: float) -> Idle:
    time.sleep(WARM_S)
    began, before = time.perf_counter(), _used(pids)
    time.sleep(seconds)
    took, after = time.perf_counter() - began, _used(pids)
    core, wakes, written = ((there - here) / took for here, there in zip(before, after, strict=True))
    return Idle(what=what, core=core, wakes=wakes, written=written)


def _used(pids: Sequence[int]) -> tuple[float, float, float]:
    """Read (CPU seconds, voluntary context switches, bytes written) of processes and their children."""
    cpu = wakes = written = 0.0
    for pid in [each for parent in pids for each in (parent, *_children(parent))]:
        folder = Path(f"/proc/{pid}")
        fields = (folder / "stat").read_text().rpartition(")")[2].split()
        cpu += (int(fields[11]) + int(fields[12])) / _TICKS
        for task in folder.glob("task/*/status"):
            found = re.search(r"^voluntary_ctxt_switches:\s+(\d+)", task.read_text(), re.MULTILINE)
            wakes += int(found[1]) if found else 0
        found = re.search(r"^write_bytes: (\d+)", (folder / "io").read_text(), re.MULTILINE)
        written += int(found[1]) if found else 0
    return cpu, wakes, written


def _children(pid: int) -> list[int]:
    lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
    return [int(child) for text in lists for child in text.split()]


def run(rounds: int) -> list[Idle]:
    """Measure both commands `rounds` times.

    Raises:
        LoadError: a command does not start.
    """
    return [row for _ in range(rounds) for row in idle()]


def metrics(found: Sequence[Idle]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round."""
    venues = [one for one in found if one.what == "venue"]
    return {
        "idle_wakes": Rounds(tuple(one.wakes / MAKERS for one in venues)),
        "idle_written": Rounds(tuple(one.written / 1_024 for one in venues)),
    }


def table(found: Sequence[Idle]) -> Table:
    """Make a table of the medians over all rounds."""
    shown = Table("", "% of a core", "wakes a second", "bytes a second to the disk", box=None)
    for what in dict.fromkeys(one.what for one in found):
        mine = [one for one in found if one.what == what]
        shown.add_row(
            what,
            f"{100 * median(one.core for one in mine):.2f}",
            f"{median(one.wakes for one in mine):.0f}",
            f"{median(one.written for one in mine):,.0f}",
        )
    return shown


def main() -> None:
    """Run the load test, and print its table."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else SECONDS
    Console().print(table(idle(seconds)))


if __name__ == "__main__":
    main()
