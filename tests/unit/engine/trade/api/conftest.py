"""A quiet venue, and the validators of its documents."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.oracles import Oracle, openapi_oracle
from support.programs import program
from support.venue.quiet_venue import QuietVenue, a_quiet_venue


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    program("npm-packages")
    with openapi_oracle() as oracle:
        yield oracle


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[QuietVenue]:
    async with a_quiet_venue(tmp_path) as venue:
        yield venue
