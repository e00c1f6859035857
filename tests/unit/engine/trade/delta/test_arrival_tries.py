"""Tries of a swap after a bridge: transactions that revert are few, and further and further apart."""

from types import SimpleNamespace
from typing import Any

import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.bridges.arrivals import ArrivalTerms
from cambist.config.limits import ARRIVAL_REVERTS_MAX, ARRIVAL_TRIES_MAX
from cambist.engine.chain.relay.relayer import IntentOutcome
from cambist.engine.store.rows import IntentState
from cambist.engine.trade.delta.arriving.arrival_swaps import ArrivalSwaps

ACCOUNT = b"\xa1" * 20
TERMS = ArrivalTerms(b"\xa2" * 20, b"\xa3" * 20, b"\xa4" * 20, 1, 1_800_003_600, bytes(32))


class Tried:
    """Swaps whose calls all end in the same way; times of the calls in `at`, seconds."""

    def __init__(self, state: IntentState, tx_hash: bytes | None) -> None:
        self.at: list[float] = []
        self._end = state, "the beneficiary does not take it", tx_hash
        head = SimpleNamespace(time_s=TERMS.until - 3_600)
        chain = SimpleNamespace(block=self._answer(head))
        served = SimpleNamespace(chain=chain, arrivals=b"", tokens=SimpleNamespace())
        place: Any = SimpleNamespace(served=served, relayer=self, gas_max=0)
        self.swaps = ArrivalSwaps(place)
        self.swaps._amount = self._answer(1)  # type: ignore[method-assign]
        self.swaps._swap = self._swap  # type: ignore[assignment, method-assign]
        self._keys: set[str] = set()

    @staticmethod
    def _answer(value: Any) -> Any:
        async def answer(*_: Any) -> Any:
            await trio.lowlevel.checkpoint()
            return value

        return answer

    async def outcome(self, key: str) -> IntentOutcome | None:
        await trio.lowlevel.checkpoint()
        return IntentOutcome(key, *self._end) if key in self._keys else None

    async def _swap(self, key: str, *_: Any) -> None:
        await trio.lowlevel.checkpoint()
        self._keys.add(key)
        self.at.append(trio.current_time())

    async def wanted(self, seconds: float) -> None:
        self.swaps.want({ACCOUNT: TERMS})
        with trio.move_on_after(seconds):
            await self.swaps.run()


async def test_calls_that_revert_are_few_and_further_and_further_apart(autojump_clock: MockClock) -> None:
    tried = Tried(IntentState.REVERTED, b"\x01" * 32)
    await tried.wanted(3_600)
    assert len(tried.at) == ARRIVAL_REVERTS_MAX
    first, second = (later - at for at, later in zip(tried.at, tried.at[1:], strict=False))
    assert second > first
    assert "failed too often" in tried.swaps.hint(ACCOUNT)


@pytest.mark.parametrize("state", [IntentState.CANCELLED, IntentState.FAILED])
async def test_calls_that_were_never_mined_are_tried_more_often(
    autojump_clock: MockClock, state: IntentState
) -> None:
    tried = Tried(state, None)
    await tried.wanted(3_600)
    assert len(tried.at) == ARRIVAL_TRIES_MAX
