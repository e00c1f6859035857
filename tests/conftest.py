"""Fixtures and profiles of all tests."""

import json
import os
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import hypothesis
import pytest

from cambist.engine.store.store import Store
from support.oracles import Oracle, eth_account_oracle, javascript_oracle
from support.stores import ENGINES, Engine, engine_for

if TYPE_CHECKING:
    from support.postgres import PostgresServer

# No deadline and no judgement of speed: a busy machine is not a failing test.
_PATIENT: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": [hypothesis.HealthCheck.too_slow],
    "print_blob": True,
}
hypothesis.settings.register_profile("default", max_examples=100, **_PATIENT)
hypothesis.settings.register_profile("long", max_examples=1_000, **_PATIENT)
hypothesis.settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


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
def postgres_server() -> Iterator["PostgresServer"]:
    from support.postgres import running_postgres

    with running_postgres() as server:
        yield server


@pytest.fixture
def postgres_url(postgres_server: "PostgresServer") -> Iterator[str]:
    """A database of the test's own, with the tables."""
    url = postgres_server.migrated_database()
    yield url
    postgres_server.drop(url)


@pytest.fixture(params=ENGINES)
def engine(request: pytest.FixtureRequest, tmp_path: Path) -> Engine:
    """A database of the test's own, of each kind in turn."""
    return engine_for(request.param, request, tmp_path)


@pytest.fixture
async def store(engine: Engine) -> AsyncIterator[Store]:
    """A store on it, running."""
    async with engine.open() as store:
        yield store
