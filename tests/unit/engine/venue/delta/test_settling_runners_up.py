"""Settlements that fail, one after the other: which runner-up is next."""

from pathlib import Path
from typing import Any, cast

import pytest
import trio

from cambist.codecs.delta_calldata import Execution, agent_id, settle
from cambist.engine.chain.port import Call
from cambist.engine.chain.relayer import Outcome
from cambist.engine.store.rows import IntentState
from cambist.engine.venue.delta.live_orders import LiveOrder
from cambist.engine.venue.delta.settling import Settling
from support.auctioning import FAIR, PlayedAgent, an_auction, runs_no_code
from support.bidding import ONE, SIGNATURE, a_delta_order, a_round_order
from support.patience import until
from support.store_work import now_ms

TENTH = ONE // 10
SALE = a_round_order(1, partially_fillable=True)


class FailingRelayer:
    """Nothing that it is handed is mined.

    Attributes:
        handed: calldata, as it came.
        may_fail: the first one has failed once this is set.
    """

    def __init__(self) -> None:
        self.handed: list[bytes] = []
        self.may_fail = trio.Event()

    async def outcome(self, key: str) -> Outcome | None:
        """As `Relayer.outcome`."""
        return None

    async def submit(self, key: str, call: Call, deadline_s: int) -> None:
        """As `Relayer.submit`."""
        self.handed.append(call.data)

    async def wait(self, key: str, *, final: bool = True) -> Outcome:
        """As `Relayer.wait`."""
        await self.may_fail.wait()
        return Outcome(key, IntentState.FAILED, "Overfilled(left 0)", None)


def of(amount: int) -> bytes:
    """The calldata of a bid for a part."""
    return settle(a_delta_order(nonce=1), SIGNATURE, amount, Execution(FAIR, 0, (), (), agent_id("ann")))


@pytest.mark.parametrize(
    ("left", "tried"),
    [
        (ONE, [2 * TENTH, 5 * TENTH, ONE]),
        (5 * TENTH, [2 * TENTH, 5 * TENTH]),
        (4 * TENTH, [2 * TENTH]),
    ],
)
async def test_a_runner_up_for_more_than_is_left_is_none(tmp_path: Path, left: int, tried: list[int]) -> None:
    """A part that had been taken back was mined again meanwhile."""
    promised = {"orderHash": f"0x{SALE.order_hash.hex()}", "promisedAmount": str(FAIR)}
    bids = [{"parts": [promised | {"amount": str(size)}]} for size in (5 * TENTH, 2 * TENTH, ONE)]
    relayer = FailingRelayer()
    async with an_auction(tmp_path, ann=PlayedAgent(lambda _: bids)) as auction, trio.open_nursery() as tasks:
        settling = Settling(
            cast("Any", relayer),
            auction.store,
            auction.orders,
            delta=bytes(20),
            failures_max=10,
            tell=lambda *_: None,
            are_lacking=_nothing_lacks,
            runs_code=runs_no_code,
            is_followed=lambda: True,
            wall_ms=now_ms,
        )
        settling.start(tasks)
        auction.auctioneer.settling = settling
        auction.orders.changed = settling.tend
        await auction.submitted(SALE)
        await until(lambda: bool(relayer.handed))
        live = auction.live(SALE)
        live.filled = ONE - left
        relayer.may_fail.set()
        await until(lambda: live.settling is None)
        assert relayer.handed == [of(amount) for amount in tried]
        assert live.row.failures == len(tried)
        tasks.cancel_scope.cancel()


async def _nothing_lacks(live: LiveOrder, height: int) -> bool:
    await trio.lowlevel.checkpoint()
    return False
