"""Private PostgreSQL server in a temporary folder, on a free loopback port, for tests and benchmarks.

PostgreSQL refuses to run as root, so that root runs it as the user `postgres`.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path

import psycopg

from bench.peers.ports import held_port, port_of
from cambist.engine.store.postgres.postgres import PostgresBackend

_DEBIAN = Path("/usr/lib/postgresql")
_USER = "postgres"
_STANDBY = "standby"
_SETTINGS = {
    "listen_addresses": "127.0.0.1",
    "max_connections": "60",
    "shared_buffers": "64MB",
    "log_min_messages": "log",
}


class PostgresServer:
    """PostgreSQL server in a folder; it can be stopped, killed and started again on the same port.

    Args:
        folder: an empty folder, which the server's user can reach.
        settings: further settings of PostgreSQL by name.
        primary: running server of which this one is a streaming standby, from a copy made now.
    """

    def __init__(
        self,
        folder: Path,
        settings: dict[str, str] | None = None,
        *,
        primary: "PostgresServer | None" = None,
    ) -> None:
        programs = postgres_programs()
        assert programs is not None, "PostgreSQL is not installed"
        self._programs = programs
        self._folder = folder
        self._data = folder / "data"
        self._log = folder / "log"
        self._numbers = count(1)
        self._template: str | None = None
        self._held = held_port()
        self.port = port_of(self._held)
        if os.geteuid() == 0:
            shutil.chown(folder, _USER)
        if primary is None:
            self._run(
                "initdb", "-A", "trust", "-N", "-U", _USER, "-E", "UTF8", "--locale=C", "-D", self._data
            )
        else:
            source = f"{primary.url()}?application_name={_STANDBY}"
            self._run("pg_basebackup", "-c", "fast", "-R", "-D", self._data, "-d", source)
        written = {**_SETTINGS, **(settings or {}), "port": str(self.port)}
        written["unix_socket_directories"] = str(folder)
        with (self._data / "postgresql.conf").open("a", encoding="utf-8") as file:
            file.writelines(f"{name} = '{value}'\n" for name, value in written.items())

    def start(self) -> None:
        """Start the server; return once it accepts connections, after a recovery if one is needed."""
        self._run("pg_ctl", "start", "-w", "-t", "60", "-s", "-D", self._data, "-l", self._log)

    def promote(self) -> None:
        """Make a standby a primary; return once it takes writes."""
        self._run("pg_ctl", "promote", "-w", "-t", "60", "-s", "-D", self._data)

    @contextmanager
    def frozen(self) -> Iterator[None]:
        """Context manager: all processes of the server do nothing within the block, and connections stay."""
        parent = int((self._data / "postmaster.pid").read_text().split("\n", 1)[0])
        children = Path(f"/proc/{parent}/task/{parent}/children").read_text().split()
        pids = [parent, *map(int, children)]
        for pid in pids:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield
        finally:
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGCONT)

    def close(self) -> None:
        """Stop the server for good, without a clean shutdown, and free its port."""
        try:
            if (self._data / "postmaster.pid").exists():
                self.stop("immediate")
        finally:
            self._held.close()

    def stop(self, mode: str = "fast") -> None:
        """Stop the server.

        Args:
            mode: `fast` ends sessions and shuts down cleanly; `immediate` has the effect of a crash.
        """
        self._run("pg_ctl", "stop", "-w", "-t", "60", "-s", "-m", mode, "-D", self._data)

    def url(self, database: str = _USER) -> str:
        """Return the URL of a database of the server."""
        return f"postgresql://{_USER}@127.0.0.1:{self.port}/{database}"

    def empty_database(self) -> str:
        """Create a database without tables; return its URL."""
        return self._made("")

    def migrated_database(self) -> str:
        """Create a database with the tables of cambist's store; return its URL."""
        if self._template is None:
            self._template = self.empty_database()
            PostgresBackend(self._template, lambda: 0).close()
        return self._made(f" TEMPLATE {_name(self._template)}")

    def drop(self, url: str) -> None:
        """Delete the database with a URL, and end all sessions in it."""
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"DROP DATABASE {_name(url)} WITH (FORCE)".encode())

    def _made(self, tail: str) -> str:
        name = f"test_{next(self._numbers)}"
        with psycopg.connect(self.url(), autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}{tail}".encode())
        return self.url(name)

    def _run(self, program: str, *arguments: str | Path) -> None:
        command = [str(self._programs / program), *map(str, arguments)]
        if os.geteuid() == 0:
            command = ["runuser", "-u", _USER, "--", *command]
        # Not a pipe: the server keeps what it inherits open.
        with (self._folder / "programs").open("a+", encoding="utf-8") as output:
            done = subprocess.run(
                command, cwd=self._folder, stdin=subprocess.DEVNULL, stdout=output, stderr=output, check=False
            )
            if done.returncode:
                output.seek(0)
                log = self._log.read_text() if self._log.exists() else ""
                raise RuntimeError(f"{program}: {output.read()}\n{log}")


@contextmanager
def running_postgres(
    settings: dict[str, str] | None = None, *, primary: PostgresServer | None = None
) -> Iterator[PostgresServer]:
    """Context manager that runs a PostgreSQL server in a temporary folder until its block ends.

    `postgres_programs` must find PostgreSQL's programs.

    Args:
        settings: further settings of PostgreSQL by name.
        primary: running server of which this one is a standby.
    """
    with tempfile.TemporaryDirectory(prefix="cambist-postgres-") as folder:
        server = PostgresServer(Path(folder), settings, primary=primary)
        server.start()
        try:
            yield server
        finally:
            server.close()


def postgres_programs() -> Path | None:
    """Return the folder of the newest `initdb` and `pg_ctl` of PostgreSQL; None if not installed."""
    folders = []
    if shutil.which("pg_config"):
        completed = subprocess.run(["pg_config", "--bindir"], capture_output=True, text=True, check=False)
        folders.append(Path(completed.stdout.strip()))
    if _DEBIAN.is_dir():
        versions = [path for path in _DEBIAN.iterdir() if path.name.isdigit()]
        folders += [path / "bin" for path in sorted(versions, key=lambda path: -int(path.name))]
    return next((folder for folder in folders if (folder / "initdb").is_file()), None)


def _name(url: str) -> str:
    return url.rsplit("/", 1)[1]
