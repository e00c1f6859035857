"""Settlements that fail, one after the other: the choice of the next runner-up."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import pytest
import trio
from trio.testing import wait_all_tasks_blocked

from cambist.codecs.contracts.abi import selector
from cambist.codecs.contracts.delta_calldata import Execution, agent_id, settle
from cambist.engine.chain.port import EthCall, Receipt
from cambist.engine.chain.relay.relayer import IntentOutcome
from cambist.engine.store.rows import IntentCause, IntentState
from cambist.engine.store.store import Store
from cambist.engine.trade.delta.orders.live_orders import LiveOrder, LiveOrders
from cambist.engine.trade.delta.settlement.settling import Settling, TellAgent
from support.delta.auctioning import (
    FAIR,
    PlayedAgent,
    RefusingChain,
    an_auction,
    calls_no_contract,
    no_costs,
    on_each,
)
from support.delta.bidding import ONE, SIGNATURE, a_delta_order, a_round_order
from support.patience import until
from support.store.store_work import now_ms

TENTH = ONE // 10
SALE = a_round_order(1, partially_fillable=True)


class FailingRelayer:
    """A relayer whose transactions are all reverted.

    Args:
        error: signature of the contract's error.
        receipt: of the block in which it was reverted.

    Attributes:
        handed: calldata, as it came.
        may_fail: the first one has failed once this is set.
    """

    address = bytes(20)

    def __init__(self, error: str = "Overfilled(uint256)", receipt: Receipt | None = None) -> None:
        self.error, self._error4, self._receipt = error, selector(error), receipt
        self.handed: list[bytes] = []
        self.may_fail = trio.Event()

    async def outcome(self, key: str) -> IntentOutcome | None:
        """As `Relayer.outcome`."""
        return None

    async def relay(self, key: str, call: EthCall, deadline_s: int) -> None:
        """As `Relayer.relay`."""
        self.handed.append(call.data)

    async def wait(self, key: str, *, final: bool = True) -> IntentOutcome:
        """As `Relayer.wait`."""
        await self.may_fail.wait()
        state = IntentState.FAILED if self._receipt is None else IntentState.REVERTED
        cause = IntentCause.REVERTED
        return IntentOutcome(key, state, "no", None, self._receipt, cause, self._error4)


def of(amount: int) -> bytes:
    """Calldata of a bid for a part."""
    return settle(a_delta_order(nonce=1), SIGNATURE, amount, Execution(FAIR, 0, (), (), agent_id("ann")))


@asynccontextmanager
async def handed_in(
    folder: Path, agent: PlayedAgent, relayer: FailingRelayer, read_to: Callable[[], int]
) -> AsyncIterator[LiveOrder]:
    """SALE, once the relayer has its first settlement."""
    settles = partial(settling_of, relayer, read_to)
    async with an_auction(folder, settles, ann=agent) as auction, trio.open_nursery() as tasks:
        auction.settling.start(tasks)
        auction.orders.watch(auction.settling.carry_on)
        await auction.submitted(SALE)
        await until(lambda: bool(relayer.handed))
        yield auction.live(SALE)
        tasks.cancel_scope.cancel()


def settling_of(
    relayer: FailingRelayer, read_to: Callable[[], int], store: Store, orders: LiveOrders, _: TellAgent
) -> Settling:
    """The settling of an auction's winners."""
    return Settling(
        cast("Any", relayer),
        cast("Any", RefusingChain(relayer.error)),
        store,
        orders,
        delta=bytes(20),
        gas_max=1_000_000,
        failures_max=10,
        tell=lambda *_: None,
        are_lacking=_nothing_lacks,
        calls_contract=calls_no_contract,
        owner_costs=no_costs(),
        unspent=lambda _: None,
        read_to=read_to,
        wall_ms=now_ms,
    )


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
    async with handed_in(tmp_path, PlayedAgent(lambda _: bids), relayer, lambda: 1) as live:
        live.filled = ONE - left
        relayer.may_fail.set()
        await until(lambda: live.settling is None)
        assert relayer.handed == [of(amount) for amount in tried]
        assert live.row.failures == len(tried)


async def test_an_order_that_is_done_has_no_runner_up_and_no_round_before_the_chain_is_read(
    tmp_path: Path,
) -> None:
    """The order's earlier settlement is on the chain, and not read yet."""
    ann, read_to = PlayedAgent(lambda request: 3 * on_each(request)), 6
    receipt = Receipt(bytes(32), False, 7, bytes(32), 0, 1, 1, None, ())
    relayer = FailingRelayer("NonceUsed(uint256)", receipt)
    relayer.may_fail.set()
    async with handed_in(tmp_path, ann, relayer, lambda: read_to) as live:
        await wait_all_tasks_blocked(0.01)
        assert live.settling is not None
        read_to = 7
        await until(lambda: live.settling is None)
        assert (len(relayer.handed), len(ann.asked), live.row.failures) == (1, 1, 0)


async def test_a_slice_that_came_too_early_has_no_runner_up_and_no_failure_counts(tmp_path: Path) -> None:
    """The node that told the time of the next block was ahead of the chain."""
    ann = PlayedAgent(lambda request: 3 * on_each(request))
    relayer = FailingRelayer("TooEarly(uint256)")
    relayer.may_fail.set()
    async with handed_in(tmp_path, ann, relayer, lambda: 7) as live:
        await until(lambda: live.settling is None)
        assert (len(relayer.handed), len(ann.asked), live.row.failures, live.in_vain) == (1, 1, 0, 1)


async def _nothing_lacks(live: LiveOrder, height: int) -> bool:
    await trio.lowlevel.checkpoint()
    return False
