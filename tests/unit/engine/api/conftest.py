"""A quiet venue, and the validators of its documents."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from support.oracles import ORACLES, Oracle, openapi_oracle, require_oracle
from support.venue.quiet_venue import QuietVenue, a_quiet_venue


@pytest.fixture(scope="module")
def oracle() -> Iterator[Oracle]:
    require_oracle(ORACLES / "node_modules" / "@asyncapi" / "specs")
    with openapi_oracle() as oracle:
        yield oracle


@pytest.fixture
async def venue(tmp_path: Path) -> AsyncIterator[QuietVenue]:
    async with a_quiet_venue(tmp_path) as venue:
        yield venue
