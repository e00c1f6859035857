"""Programs that a machine may lack: one table, and one question of the tests that need one.

    @pytest.mark.needs("strace")     # the test is skipped where there is no strace
    program("nginx")                 # path of nginx; the test is skipped here and now where there is none

The last lines of a run name each missing program, how many tests it cost and the command that brings it. No
test is skipped for another reason (tests/guards/test_skips.py).

REQUIRE_PROGRAMS=1 lets tests fail in place of being skipped; CI sets it. WITHOUT="nginx curl" hides programs
from the tests and from the processes that they start, WITHOUT=all hides all of them. `--needing` selects the
files that need a hidden program. `--leave-out` leaves out the tests that would be skipped.
"""

import atexit
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator
from pathlib import Path
from typing import NoReturn

import msgspec
import pytest
from bench.peers.postgres import postgres_programs
from bench.peers.process import PEERS_PYTHON, ROOT

ORACLES = ROOT / "tests" / "oracles"
_OF_OPERATORS = "/usr/sbin:/usr/bin:/usr/local/bin"
"""Folders of programs that need not be on the path of a user."""
_REASON = "needs "
_DEBIAN = "apt-get install "
HIDING = "TEST_HIDING"
"""Environment variable of the folder that hides programs, for workers, which hide nothing again."""


class Program(msgspec.Struct, frozen=True):
    """A program, or something else that some machines lack.

    Attributes:
        find: returns its path, or None where it is missing.
        brought_by: command that brings it.
        commands: its commands, which WITHOUT takes from the path of processes.
    """

    find: Callable[[], Path | None]
    brought_by: str
    commands: tuple[str, ...] = ()


def _of_debian(package: str, *commands: str) -> Program:
    """A program of Debian's package, under the first of these names that the machine knows."""

    def find() -> Path | None:
        found = (shutil.which(name) or shutil.which(name, path=_OF_OPERATORS) for name in commands)
        return next((Path(path) for path in found if path), None)

    return Program(find, f"{_DEBIAN}{package}", commands)


def _of_make(path: Path, target: str) -> Program:
    """Files that a target of the Makefile makes."""
    return Program(lambda: path if path.exists() else None, f"make {target}")


def _docker() -> Path | None:
    command = shutil.which("docker")
    if command is None or subprocess.run([command, "version"], capture_output=True, check=False).returncode:
        return None
    return Path(command)


def _anvil() -> Path | None:
    from cambist.engine.dev.devnet.anvil import find_anvil

    return find_anvil(os.environ, [ORACLES])


def _pyrevm() -> Path | None:
    from cambist.engine.dev.embedded.evm import IS_INSTALLED

    return Path(sys.executable) if IS_INSTALLED else None


PROGRAMS = {
    "anvil": Program(_anvil, "make setup-node", ("anvil",)),
    "caddy": _of_debian("caddy", "caddy"),
    "chromium": _of_debian(
        "chromium-headless-shell",  # half the work of a whole browser
        "chromium-headless-shell",
        "chromium",
        "chromium-browser",
        "google-chrome",
    ),
    "curl": _of_debian("curl", "curl"),
    "docker": Program(_docker, "a Docker engine: apt-get install docker.io docker-compose", ("docker",)),
    "mount": Program(lambda: Path("/") if os.geteuid() == 0 else None, "sudo make test"),
    "nginx": _of_debian("nginx-light", "nginx"),
    "npm-packages": _of_make(ORACLES / "node_modules" / ".ready", "setup-node"),
    "openssl": _of_debian("openssl", "openssl"),
    "peers": _of_make(PEERS_PYTHON.with_name("openapi-spec-validator"), "setup-peers"),
    "postgresql": Program(postgres_programs, "apt-get install postgresql", ("pg_config",)),
    "prometheus": _of_debian("prometheus", "prometheus"),
    "promtool": _of_debian("prometheus", "promtool"),
    "ptrace": Program(lambda: Path("/"), "sysctl kernel.yama.ptrace_scope=0"),  # strace finds out
    "pyrevm": Program(_pyrevm, "make test VENV=.venv-3.12 PYTHON=python3.12"),
    "strace": _of_debian("strace", "strace"),
    "systemd-analyze": _of_debian("systemd", "systemd-analyze"),
}
"""By the name that tests use."""

DEVELOPMENT_CHAIN = ("pyrevm", "anvil")
"""Programs of which `cambist devnet`, `up` and `demo` need one."""

FIXTURES = {
    "anvil": "anvil",
    "anvil_of_stories": "anvil",
    "browser": "chromium",
    "eth_account": "peers",
    "javascript": "npm-packages",
    "oracle": "peers",
    "other_anvil": "anvil",
    "postgres_server": "postgresql",
    "stories": "npm-packages",
}
"""Fixture -> the program that it starts."""


def hidden() -> frozenset[str]:
    """Names of the programs that WITHOUT hides."""
    names = os.environ.get("WITHOUT", "")
    if names == "all":
        return frozenset(PROGRAMS)
    if unknown := sorted(set(names.split()) - PROGRAMS.keys()):
        raise pytest.UsageError(f"WITHOUT: expected all, or names of {', '.join(PROGRAMS)}; got {unknown[0]}")
    return frozenset(names.split())


def has_program(name: str) -> bool:
    """Whether the machine has a program, and WITHOUT does not hide it."""
    return name not in hidden() and PROGRAMS[name].find() is not None


def program(name: str, *instead: str) -> Path:
    """Path of a program, or of the first of several that serve; skips or fails the test where none is."""
    paths = (PROGRAMS[each].find() for each in (name, *instead) if each not in hidden())
    return next(filter(None, paths), None) or lack(name)


def lack(name: str) -> NoReturn:
    """Skip the test for lack of a program, or fail it where every program has to be there."""
    if os.environ.get("REQUIRE_PROGRAMS") == "1":
        pytest.fail(f"{name} is missing: {PROGRAMS[name].brought_by}")
    pytest.skip(f"{_REASON}{name}")


def skip_within(raised: BaseException) -> BaseException | None:
    """Skip that is all of a group of errors; None for a group with another error, which is a failure.

    pytest-trio skips anew without the reason; the group with the reason is then the context of its skip.
    """
    group = raised if isinstance(raised, BaseExceptionGroup) else raised.__context__
    if not isinstance(group, BaseExceptionGroup):
        return None
    found: BaseException | None
    found, others = group.split(pytest.skip.Exception)
    while isinstance(found, BaseExceptionGroup):
        found = found.exceptions[0]
    return None if others else found


def hide() -> Path | None:
    """Take the hidden programs from this process and from those that it starts.

    Returns:
        the folder that became the path of processes; None if nothing is hidden, or is hidden already.
    """
    names = hidden()
    if "pyrevm" in names:
        sys.modules["pyrevm"] = None  # type: ignore[assignment]  # find_spec finds nothing then
    if not names or HIDING in os.environ:
        return None
    folder = Path(tempfile.mkdtemp(prefix="cambist-path-"))
    os.environ[HIDING] = str(folder)
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    commands = {command for name in names for command in PROGRAMS[name].commands}
    (folder / "bin").mkdir()
    for place in os.environ["PATH"].split(os.pathsep):
        for path in Path(place).iterdir() if Path(place).is_dir() else ():
            if path.name not in commands and not (folder / "bin" / path.name).is_symlink():
                (folder / "bin" / path.name).symlink_to(path)
    os.environ["PATH"] = str(folder / "bin")
    if "pyrevm" in names:
        (folder / "sitecustomize.py").write_text("import sys\nsys.modules['pyrevm'] = None\n")
        paths = [str(folder), *filter(None, [os.environ.get("PYTHONPATH")])]
        os.environ["PYTHONPATH"] = os.pathsep.join(paths)
    return folder


hide()  # before a module looks for pyrevm


def needs_of(item: pytest.Item) -> Iterator[str]:
    """Programs that a test is known to need before it runs."""
    for mark in item.iter_markers("needs"):
        yield from mark.args
    yield from (FIXTURES[name] for name in getattr(item, "fixturenames", ()) if name in FIXTURES)


def needing(items: Iterable[pytest.Item], names: Collection[str]) -> set[Path]:
    """Files that name one of these programs, or have a test that is known to need one before it runs."""
    named = re.compile(rf"\b(?:{'|'.join(map(re.escape, names))})\b")
    found = {path for path in {item.path for item in items} if named.search(path.read_text(encoding="utf-8"))}
    return found | {item.path for item in items if not set(names).isdisjoint(needs_of(item))}


def missing_lines(reasons: Iterable[str]) -> list[str]:
    """A line for each missing program: how many tests it cost, and what brings it.

    Args:
        reasons: of all skipped tests, as pytest reports them.
    """
    counts = Counter(reason.removeprefix("Skipped: ").removeprefix(_REASON) for reason in reasons)
    return [
        f"{name:16} {count:5} {'test ' if count == 1 else 'tests'}   "
        + (PROGRAMS[name].brought_by if name in PROGRAMS else "is no program of tests/support/programs.py")
        for name, count in sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    ]


def packages() -> list[str]:
    """Debian's packages of the programs that this machine lacks."""
    missing = (each.brought_by for each in PROGRAMS.values() if each.find() is None)
    return sorted({words.removeprefix(_DEBIAN) for words in missing if words.startswith(_DEBIAN)})


if __name__ == "__main__":  # what CI installs, and what `make test-programs` hides in turn
    print(*(packages() if sys.argv[1] == "packages" else PROGRAMS))  # noqa: T201
