"""docs/guides/upgrade.md with two installed releases: the upgrade, and the way back, on both stores.

The old release is this checkout. The newer releases are made from it: 0.2.1 has another version alone, 0.3.0
a migration too. Chains, makers and agents are those of `cambist up`, from which the venue is left out.
"""

import os
import re
import shutil
import subprocess
import sys
import venv
import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx
import pytest
from bench.peers.ports import held_port, port_of
from bench.peers.postgres import postgres_programs
from msgspec import Struct, field

from cambist.client import BlockingVenue
from cambist.config.version import __version__
from support.chain.devnet import Devnet, telling_process
from support.http_get import first_answer
from support.patience import PATIENCE_S, found_in_time
from support.tracked_files import tracked_files

pytestmark = [pytest.mark.process, pytest.mark.seldom]
ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "guides" / "upgrade.md").read_text(encoding="utf-8")
CHAIN = 31_337
MIGRATION = "CREATE TABLE note_of_a_newer_release (id BIGINT PRIMARY KEY);\n"
T = TypeVar("T")
LOW, HIGH = 1_000, 9_000
"""Limit prices of WETH in USDC: an order that agents fill at once, and one that rests."""


class Releases(Struct, frozen=True):
    """Folders of installations; each has bin/cambist."""

    old: Path
    patch: Path
    new: Path


def installed(folder: Path) -> Path:
    """Build this checkout, and install it; returns the installation's folder."""
    source = folder / "source"
    for path in tracked_files():
        target = source / path.relative_to(ROOT)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(path, target, follow_symlinks=False)
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(folder)]
    subprocess.run(build, cwd=source, check=True, capture_output=True, timeout=PATIENCE_S)
    home = folder / "cambist"
    venv.create(home, symlinks=True)
    with zipfile.ZipFile(next(folder.glob("*.whl"))) as wheel:
        wheel.extractall(site_of(home))
    libraries = Path(httpx.__file__).parents[1]
    # cambist there is found by a further .pth alone
    (site_of(home) / "libraries.pth").write_text(f"{libraries}\n")
    is_version(home, __version__)  # which leaves the compiled modules for the other versions too
    return home


def another(old: Path, folder: Path, version: str, migration: str = "") -> Path:
    """Install another version, which differs in its number and may have a further migration; its folder."""
    home = shutil.copytree(old, folder / "cambist", symlinks=True)
    package = site_of(home) / "cambist"
    (package / "config" / "version.py").write_text(f'"""The version."""\n\n__version__ = "{version}"\n')
    for dialect in ("sqlite", "postgres") if migration else ():
        (package / "engine" / "store" / "migrations" / dialect / "0999_newer.sql").write_text(migration)
    is_version(home, version)
    return home


def site_of(home: Path) -> Path:
    (site,) = home.glob("lib/python*/site-packages")
    return site


def is_version(home: Path, version: str) -> None:
    """Make the command of an installation, which has to say this version."""
    program = home / "bin" / "cambist"
    program.write_text(f"#!{home}/bin/python\nfrom cambist.engine.cli import main\nmain()\n")
    program.chmod(0o755)
    said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True).stdout
    assert said == f"cambist, version {version}\n"


@pytest.fixture(scope="module")
def releases(tmp_path_factory: pytest.TempPathFactory) -> Releases:
    old = installed(tmp_path_factory.mktemp("old"))
    return Releases(
        old=old,
        patch=another(old, tmp_path_factory.mktemp("patch"), "0.2.1"),
        new=another(old, tmp_path_factory.mktemp("new"), "0.3.0", MIGRATION),
    )


class Place(Struct):
    """A machine with an installation that a link names, and the venue's settings file.

    Attributes:
        up: the chains, the makers and agents of `cambist up`.
        link: the link to the installation in use.
        environ: secrets of the settings, and the store's URL.
    """

    up: Devnet
    link: Path
    environ: dict[str, str] = field(default_factory=dict)

    @property
    def settings(self) -> Path:
        return Path(self.up.told["settings"]["venue"])

    def use(self, release: Path) -> None:
        """Point the link to an installation, as the page does."""
        subprocess.run(["ln", "-sfn", release, self.link], check=True)

    def run(self, command: str) -> subprocess.CompletedProcess[str]:
        """Run a command of the shell with the venue's secrets."""
        return subprocess.run(
            command,
            shell=True,
            env=self.environ,
            capture_output=True,
            text=True,
            timeout=PATIENCE_S,
            check=False,
        )

    @contextmanager
    def engine(self, **environ: str) -> Iterator[str]:
        """A venue's engine of the installation in use, until SIGTERM ends it; its URL."""
        port = environ.get("CAMBIST__SERVER__PORT")
        url = f"http://127.0.0.1:{port}" if port else self.up.told["venue"]
        process = subprocess.Popen(
            [self.link / "bin" / "cambist", "serve", "--config", self.settings],
            env=self.environ | environ,
            stderr=subprocess.DEVNULL,
        )
        try:
            first_answer(f"{url}/chains")
            yield url
            process.terminate()
            assert process.wait(PATIENCE_S) == 0
        finally:
            process.kill()
            process.wait()

    @contextmanager
    def agents(self) -> Iterator[None]:
        """The agents that `up` leaves out: orders are settled while they run."""
        words = [f"{self.link}/bin/cambist", "agent", "serve", "--config"]
        processes = [
            subprocess.Popen(
                [*words, self.up.told["settings"][role]], env=self.environ, stderr=subprocess.DEVNULL
            )
            for role in ("rapid", "plain")
        ]
        try:
            yield
        finally:
            for process in processes:
                process.kill()
                process.wait()

    def trader(self, url: str) -> Any:
        return BlockingVenue.open(url, CHAIN, rpc=self.up.told["chains"][str(CHAIN)])

    def order(self, url: str, price: int) -> str:
        """Id of a new order that sells one WETH at a price."""
        with self.trader(url) as venue:
            placed: str = venue.order(
                "WETH", "USDC", 1, price=price, key=self.up.told["accounts"][0]["key"]
            ).id
            return placed

    def settle(self, url: str, order: str) -> None:
        """Return once the chain shows that an order is settled."""
        with self.trader(url) as venue:
            assert venue.follow(order).is_settled

    def sold(self) -> int:
        """Raw WETH of the trader."""
        call = {"to": self.up.told["tokens"]["WETH"], "data": "0x70a08231" + self.account.rjust(64, "0")}
        body = {"jsonrpc": "2.0", "id": 1, "method": "eth_call", "params": [call, "latest"]}
        answer = httpx.post(self.up.told["chains"][str(CHAIN)], json=body, timeout=PATIENCE_S)
        return int(answer.json()["result"], 16)

    @property
    def account(self) -> str:
        """Address of the trader, without 0x."""
        text: str = self.up.told["accounts"][0]["address"]
        return text.removeprefix("0x").lower()


def status(url: str, order: str) -> str:
    """Status of an order in the venue's words; "404" if it has none."""
    answer = first_answer(f"{url}/v2/delta/orders/{order}")
    text: str = answer.json()["status"] if answer.status_code == 200 else str(answer.status_code)
    return text


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    left_out = [word for role in ("venue", "rapid", "plain") for word in ("--without", role)]
    words = "up", "--port", "0", "--devnet-port", "0", "--write", str(tmp_path / "roles"), *left_out
    with telling_process(*words, folder=tmp_path) as up:
        secrets = Path(up.told["secrets"]).read_text(encoding="utf-8").splitlines()
        yield Place(up, tmp_path / "cambist", os.environ | dict(line.split("=", 1) for line in secrets))


class Sqlite:
    """Backup and restore of the page's row for SQLite."""

    def __init__(self, place: Place, folder: Path) -> None:
        self.place, self.copy = place, folder / "backup.sqlite3"
        self.files = [place.settings.parent / f"cambist.sqlite3{end}" for end in ("", "-wal", "-shm")]

    def back_up(self) -> None:
        done = self.place.run(
            f"{self.place.link}/bin/cambist db backup {self.copy} --config {self.place.settings}"
        )
        assert done.returncode == 0, done.stderr

    def restore(self) -> None:
        for file in self.files:
            file.unlink(missing_ok=True)
        shutil.copy(self.copy, self.files[0])


class Postgres:
    """Backup and restore of the page's row for PostgreSQL."""

    def __init__(self, place: Place, folder: Path, server: Any) -> None:
        self.place, self.dump, self.server = place, folder / "orders.dump", server
        self.databases = [server.empty_database()]
        place.environ["CAMBIST__STORE__URL"] = self.databases[0]
        programs = postgres_programs()
        assert programs
        self.programs = programs

    def back_up(self) -> None:
        self.run("pg_dump", "--format=custom", f"--file={self.dump}", self.databases[-1])

    def restore(self) -> None:
        self.databases.append(self.server.empty_database())
        self.place.environ["CAMBIST__STORE__URL"] = self.databases[-1]
        self.run("pg_restore", "--no-owner", f"--dbname={self.databases[-1]}", str(self.dump))

    def run(self, program: str, *words: str) -> None:
        subprocess.run([self.programs / program, *words], check=True, timeout=PATIENCE_S)


@pytest.fixture(params=["sqlite", "postgres"])
def store(request: pytest.FixtureRequest, place: Place, tmp_path: Path) -> Iterator[Sqlite | Postgres]:
    if request.param == "sqlite":
        yield Sqlite(place, tmp_path)
        return
    server = request.getfixturevalue("postgres_server")
    kept = Postgres(place, tmp_path, server)
    yield kept
    for url in kept.databases:
        server.drop(url)


def as_printed(place: Place, new: Path) -> list[str]:
    """The page's commands with the folders of this test; the installation itself is `installed`'s."""
    (block,) = re.findall(r"^```text\n(python3 -m venv.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    block = block.replace("/opt/cambist-0.3.0", str(new)).replace("/opt/cambist", str(place.link))
    return [
        line
        for line in block.replace("/etc/cambist/venue.toml", str(place.settings)).splitlines()[1:]
        if line
    ]


def test_a_release_with_a_migration_and_the_way_back(
    releases: Releases, place: Place, store: Sqlite | Postgres
) -> None:
    place.use(releases.old)
    with place.engine() as url:
        check_settings, check_store, point = as_printed(place, releases.new)
        with place.agents():
            found_in_time(lambda: place.run(check_settings), lambda done: done.returncode == 0)
        early, resting = place.order(url, LOW), place.order(url, HIGH)
        store.back_up()
        done = place.run(check_store)
        assert (done.returncode, "newer" in done.stdout + done.stderr) == (1, True), done.stdout + done.stderr
    assert place.run(point).returncode == 0
    done = place.run(f"{place.link}/bin/cambist db migrate --config {place.settings}")
    assert done.returncode == 0, done.stderr
    with place.engine() as url:
        assert (status(url, early), status(url, resting)) == ("ACTIVE", "ACTIVE")
        late = place.order(url, LOW)
        with place.agents():
            place.settle(url, early)
            place.settle(url, late)
    funds = place.sold()
    refused = place.run(f"{releases.old}/bin/cambist serve --config {place.settings}")
    assert refused.returncode == 1
    assert "newer than this program" in refused.stderr, refused.stderr

    store.restore()
    place.use(releases.old)
    with place.engine() as url:
        # No agent runs: the chain has the settlement.
        found_in_time(lambda: status(url, early), lambda found: found == "COMPLETED")
        assert (status(url, resting), status(url, late)) == ("ACTIVE", "404")
        with place.agents():
            place.settle(url, place.order(url, LOW))
    assert funds - place.sold() == 10**18


def test_engines_change_to_a_release_without_a_migration_one_by_one_and_back(
    releases: Releases, place: Place, tmp_path: Path, postgres_server: Any
) -> None:
    store = Postgres(place, tmp_path, postgres_server)
    place.use(releases.old)
    state = tmp_path / "second"
    state.mkdir(mode=0o700)
    shutil.copy(place.settings.parent / "contracts.json", state)
    with held_port() as other, ExitStack() as one, ExitStack() as two:
        second = {"CAMBIST__SERVER__PORT": str(port_of(other)), "CAMBIST__STATE_DIR": str(state)}
        url, other_url = one.enter_context(place.engine()), two.enter_context(place.engine(**second))
        early, resting = place.order(url, LOW), place.order(url, HIGH)
        for release in (releases.patch, releases.old):
            done = place.run(f"{release}/bin/cambist db migrate --config {place.settings} --check")
            assert done.returncode == 0, done.stdout + done.stderr
            place.use(release)
            one.close()
            one.enter_context(place.engine())
            two.close()
            two.enter_context(place.engine(**second))
            assert (status(url, resting), status(other_url, resting)) == ("ACTIVE", "ACTIVE")
            with place.agents():
                place.settle(other_url, early)
            early = place.order(other_url, LOW)
    for database in store.databases:
        postgres_server.drop(database)
