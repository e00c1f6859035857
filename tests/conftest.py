"""Fixtures and profiles of all tests."""

import gc
import json
import os
import signal
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest
import structlog

import support.stretched_bounds  # noqa: F401  before the modules that copy the bounds
from support.programs import has_program, hidden, lack, missing_lines, needing, needs_of, program, skip_within

# isort: split

from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.dev.embedded.evm import Evm
from cambist.engine.store.sqlite import sqlite
from cambist.engine.store.store import Store
from support.browser import Browser, artefacts
from support.chain.anvil import OTHER_CHAIN_ID, Anvil, opened
from support.examples import IS_LONG, USUAL
from support.oracles import Oracle, Stories, eth_account_oracle, javascript_oracle, running_stories
from support.order_of_tests import arrange, is_drawn, left_to_others, note_scope
from support.step_delays import delay_steps
from support.store.stores import ENGINES, Engine, engine_for
from support.store.warm_store import migrate_from_copy

if TYPE_CHECKING:
    from support.store.postgres import PostgresServer


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Number of workers: one for each core, and two more for tests that wait for processes and nodes."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return cores + 2 * ("not process" not in config.option.markexpr)


if seed := os.environ.get("STEP_DELAYS"):
    delay_steps(int(seed))

# A shell has those in its background ignore interrupts; the processes of these tests are to hear them.
signal.signal(signal.SIGINT, signal.default_int_handler)

# No deadline and no judgement of speed: a busy machine is not a failing test.
_PATIENT: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
    "print_blob": True,
}
# The same examples for the same code: a run judges a change, not its luck. `long` is the one that searches.
hypothesis.settings.register_profile("default", max_examples=USUAL, derandomize=True, **_PATIENT)
hypothesis.settings.register_profile("brief", max_examples=5, derandomize=True, **_PATIENT)
hypothesis.settings.register_profile("long", max_examples=1_000, **_PATIENT)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True)
def loggers_of_one_test(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A command that is run in this process sets up its logs for itself, not for the tests after it."""
    configure = structlog.configure

    def without_cache(**settings: Any) -> None:
        configure(**{**settings, "cache_logger_on_first_use": False})

    monkeypatch.setattr(structlog, "configure", without_cache)
    yield
    structlog.reset_defaults()


@pytest.fixture(autouse=True)
def warm_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store of this process is opened quickly; a test of migrations overrides this."""
    monkeypatch.setattr(sqlite, "migrate", migrate_from_copy)


@pytest.fixture(autouse=True)
def embedded_chain(monkeypatch: pytest.MonkeyPatch) -> None:
    """An embedded chain that a test makes, however deep inside, is a program that the test needs."""
    if not has_program("pyrevm"):
        monkeypatch.setattr(Evm, "__init__", lambda *_: lack("pyrevm"))


def pytest_configure(config: pytest.Config) -> None:
    """Workers begin with different folders: in a fresh checkout the asserts of a file are rewritten once."""
    worker, workers = (os.environ.get(f"PYTEST_XDIST_WORKER{name}", "") for name in ("", "_COUNT"))
    if worker:
        parts = [part for arg in config.args for part in _parts(arg)]
        first = len(parts) * int(worker.removeprefix("gw")) // int(workers)
        config.args = parts[first:] + parts[:first]
    else:
        note_scope(config)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--needing", action="store_true", help="only files that need a program of WITHOUT")
    parser.addoption("--leave-out", action="store_true", help="leave out tests that lack a program")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    for name in ("TEST_ORDER", "WITHOUT"):
        if os.environ.get(name):
            terminalreporter.write_line(f"{name}={os.environ[name]}")
    if is_drawn():
        terminalreporter.write_line("a draw of tests and parameters; TEST_WHOLE=1 takes all")
    skipped = terminalreporter.stats.get("skipped", [])
    if lines := missing_lines(report.longrepr[2] for report in skipped):
        terminalreporter.section("missing on this machine")
        terminalreporter.write_line("\n".join(lines))


def _parts(arg: str) -> list[str]:
    """The folders and test files of a folder; anything else is one part."""
    if not Path(arg).is_dir():
        return [arg]
    return [str(path) for path in sorted(Path(arg).iterdir()) if path.is_dir() or path.match("test_*.py")]


@pytest.hookimpl(wrapper=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Iterator[None]:
    for item in items:
        needed = getattr(item, "fixturenames", ())
        if "postgres_server" in needed:
            item.add_marker(pytest.mark.process)
        if "browser" in needed:
            item.add_marker(pytest.mark.browser)
    yield  # -k and -m choose by the marks
    left_out = set() if IS_LONG else {item for item in items if item.get_closest_marker("long")}
    left_out |= {*left_to_others(items)}
    config.hook.pytest_deselected(items=[*left_out])
    items[:] = [item for item in items if item not in left_out]
    if config.option.needing:
        wanted = needing(items, hidden())
        config.hook.pytest_deselected(items=[item for item in items if item.path not in wanted])
        items[:] = [item for item in items if item.path in wanted]
    if config.option.leave_out:
        lacking = [item for item in items if not all(map(has_program, needs_of(item)))]
        config.hook.pytest_deselected(items=lacking)
        items[:] = [item for item in items if item not in lacking]
    arrange(items)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Iterator[None]:
    """A test that lacks a program is skipped with its reason, even where a task in nurseries finds it out."""
    try:
        return (yield)
    except (BaseExceptionGroup, pytest.skip.Exception) as raised:
        if skip := skip_within(raised):
            raise skip from None
        raise


def pytest_runtest_setup(item: pytest.Item) -> None:
    for name in needs_of(item):
        program(name)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """The garbage collector leaves out the collected tests, which are kept: now, and while they run."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


@pytest.fixture(scope="session")
def vectors() -> dict[str, Any]:
    """Known answers, with their origins (tests/vectors/vectors.json)."""
    text = (Path(__file__).parent / "vectors" / "vectors.json").read_text(encoding="utf-8")
    answers: dict[str, Any] = json.loads(text)
    return answers


@pytest.fixture(scope="session")
def eth_account() -> Iterator[Oracle]:
    with eth_account_oracle() as oracle:
        yield oracle


@pytest.fixture(scope="session")
def javascript() -> Iterator[Oracle]:
    with javascript_oracle() as oracle:
        yield oracle


@pytest.fixture(scope="session")
def stories() -> Iterator[Stories]:
    """Runner of scripts with ethers and viem, both loaded once."""
    with running_stories() as running:
        yield running


@pytest.fixture
def browser(tmp_path: Path, stories: Stories) -> Browser:
    """A browser; a test that uses it has the marker `browser`."""
    return Browser(stories, str(program("chromium")), artefacts(tmp_path / "artefacts"))


@pytest.fixture(scope="session")
def anvil() -> Iterator[Anvil]:
    """An anvil of chain 31337. Most tests want `anvil_chain`, which leaves it as it was."""
    with Anvil() as process:
        yield process


@pytest.fixture
async def anvil_chain(anvil: Anvil) -> AsyncIterator[AnvilChain]:
    """A chain with nothing but its genesis block, mining at once."""
    async with opened(anvil) as chain:
        yield chain


@pytest.fixture(scope="session")
def other_anvil() -> Iterator[Anvil]:
    """An anvil of chain 31338."""
    with Anvil(OTHER_CHAIN_ID) as process:
        yield process


@pytest.fixture
async def other_anvil_chain(other_anvil: Anvil) -> AsyncIterator[AnvilChain]:
    """As `anvil_chain`, of chain 31338."""
    async with opened(other_anvil) as chain:
        yield chain


@pytest.fixture(scope="session")
def postgres_server() -> Iterator["PostgresServer"]:
    from support.store.postgres import running_postgres

    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: "PostgresServer") -> Iterator[str]:
    """A database of the test's own, with the tables."""
    url = postgres_server.migrated_database()
    yield url
    postgres_server.drop(url)


@pytest.fixture(
    params=[pytest.param(name, marks=[pytest.mark.process] * (name != "sqlite-inline")) for name in ENGINES]
)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """A database of the test's own, of each kind in turn."""
    return engine_for(request.param, request, tmp_path)


@pytest.fixture
async def store(engine: Engine) -> AsyncIterator[Store]:
    """A store on it, running."""
    async with engine.open() as store:
        yield store
