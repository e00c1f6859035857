"""The chain's answers about the ends of several orders."""

from typing import Any

import pytest
import trio

from cambist.config.errors import ChainError
from cambist.engine.trader.client.otc import otc_following
from cambist.engine.trader.client.otc.otc_following import disproofs


async def test_no_order_waits_for_anothers_transaction(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    async def disproof(chain: Any, contract: Any, signed: str, stored: float, wall_s: int) -> str:
        await trio.sleep(stored)
        if signed == "untold":
            raise ChainError("the chain does not tell")
        return signed

    monkeypatch.setattr(otc_following, "disproof", disproof)
    told: Any = [("", 60.0), ("other", 50.0), ("untold", 40.0), ("", 0.0)]
    anything: Any = None
    assert await disproofs(anything, anything, told, 0) == ["", "other", "the chain does not tell", ""]
    assert trio.current_time() == 60, "the longest, not all of them together"
    assert await disproofs(anything, anything, [], 0) == []
