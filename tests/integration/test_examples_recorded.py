"""Examples of the API are what a venue on the embedded chain answers today."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.engine.trade.api.examples import recorded_examples
from support.api.recording import record

pytestmark = pytest.mark.needs("pyrevm")


@pytest.mark.process
async def test_a_venue_still_answers_so(tmp_path: Path) -> None:
    """`make examples` writes what it records; its shape is that of the committed file."""
    recorded = await record(tmp_path)
    now, committed = (msgspec.to_builtins(one) for one in (recorded, recorded_examples()))
    for name in now["operations"]:
        assert shape(now["operations"][name]) == shape(committed["operations"].get(name)), name
    assert shape(now) == shape(committed)


def shape(value: Any) -> Any:
    """Members and types of a JSON value; members that are addresses count as one member."""
    if isinstance(value, dict):
        return {"0x" if key.startswith("0x") else key: shape(one) for key, one in value.items()}
    if isinstance(value, list):
        return [shape(one) for one in value[:1]]
    return type(value).__name__
