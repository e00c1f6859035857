"""Record of the benchmarks in bench/record.json: the figures of the last runs with --record.

`make bench-report` keeps a run's parts, operations and whole paths, each with the machine that measured them.
The page of figures is made from the record alone, so that its figures are those of one known run.
"""

import os
import platform
from collections.abc import Mapping, Sequence
from pathlib import Path
from statistics import median

import msgspec
from msgspec import Struct

from bench.compare import LoadVerdict, Rounds
from bench.load_report import Line, TextTable

RECORD = Path(__file__).with_name("record.json")


class Machine(Struct, frozen=True):
    """A machine that ran benchmarks."""

    processor: str
    cores: int
    python: str


class RecordedOperations(Struct, frozen=True):
    """Seconds of one operation, by the name of the bench: the least of all laps."""

    machine: Machine
    seconds: dict[str, float]


class RecordedLoads(Struct, frozen=True):
    """Metrics of the load tests, each with a value for each round, the latency plot's lines, and the tables
    by title.
    """

    machine: Machine
    rounds: dict[str, Rounds]
    latency: tuple[Line, ...]
    tables: dict[str, TextTable]


class RecordedOthers(Struct, frozen=True):
    """Tables of the load tests without a budget, by title."""

    machine: Machine
    tables: dict[str, TextTable]


class BenchRecord(Struct, frozen=True, omit_defaults=True):
    """The kept parts of runs; None for a part that no kept run has."""

    operations: RecordedOperations | None = None
    loads: RecordedLoads | None = None
    others: RecordedOthers | None = None


def read_record(path: Path = RECORD) -> BenchRecord:
    """Read the record; an empty one if there is no file."""
    return msgspec.json.decode(path.read_bytes(), type=BenchRecord) if path.exists() else BenchRecord()


def keep_operations(seconds: Mapping[str, Mapping[int, float]], path: Path = RECORD) -> None:
    """Keep the times of a run's operations in place of those in the record.

    Args:
        seconds: bench name -> lap -> least seconds of one operation.
    """
    least = {name: float(f"{min(laps.values()):.4g}") for name, laps in sorted(seconds.items())}
    _write(msgspec.structs.replace(read_record(path), operations=RecordedOperations(_machine(), least)), path)


def keep_loads(
    verdicts: Sequence[LoadVerdict],
    latency: Sequence[Line],
    tables: Mapping[str, TextTable],
    path: Path = RECORD,
) -> None:
    """Keep the metrics and tables of a run's load tests in place of those in the record."""
    rounds = {
        verdict.budget.metric: Rounds(tuple(map(_rounded, verdict.rounds.values)), verdict.rounds.noisy)
        for verdict in verdicts
    }
    lines = tuple(Line(line.title, [_rounded(each) for each in line.latency_ms]) for line in latency)
    loads = RecordedLoads(_machine(), rounds, lines, {**tables})
    _write(msgspec.structs.replace(read_record(path), loads=loads), path)


def keep_others(tables: Mapping[str, TextTable], path: Path = RECORD) -> None:
    """Keep the tables of a run's load tests without a budget in place of those in the record."""
    _write(msgspec.structs.replace(read_record(path), others=RecordedOthers(_machine(), {**tables})), path)


def middle(rounds: Rounds) -> float:
    """Median of a metric over its rounds."""
    return median(rounds.values)


def _rounded(value: float) -> float:
    return float(f"{value:.3g}")


def _machine() -> Machine:
    processor = platform.machine()
    about = Path("/proc/cpuinfo")
    if about.exists():
        names = [
            line for line in about.read_text(encoding="utf-8").splitlines() if line.startswith("model name")
        ]
        processor = names[0].partition(":")[2].strip() if names else processor
    return Machine(processor, os.cpu_count() or 1, platform.python_version())


def _write(record: BenchRecord, path: Path) -> None:
    path.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n")
