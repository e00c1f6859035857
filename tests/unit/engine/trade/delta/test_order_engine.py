"""The engine of Delta orders, with an error in one order."""

from collections.abc import Container
from pathlib import Path
from typing import Any, cast

import pytest
import trio

from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import StoreUnavailable, TransitionError
from cambist.config.settings import parse_settings
from cambist.engine.store.leases import Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.trade.delta.bridge_desk import BridgeDesk
from cambist.engine.trade.delta.engine import DeltaChain, DeltaEngine
from cambist.engine.trade.delta.open_bridge_desk import bounds_of
from cambist.engine.trade.delta.orders.live_orders import LiveOrders
from cambist.engine.trade.orders.followed_chain import FollowedChains
from cambist.engine.trade.orders.order_engines import Footing, OrderEngines
from cambist.engine.trade.orders.order_units import step
from cambist.engine.trade.orders.scheduler import Scheduler
from cambist.engine.trade.orders.step import OrderStep
from support.delta.bidding import a_round_order
from support.patience import until
from support.store.store_work import now_ms
from support.store.stores import NOW_MS, a_delta_order


class Idle:
    """A task of a chain's orders that has no work."""

    async def run(self, *, task_status: trio.TaskStatus[None]) -> None:
        task_status.started()
        await trio.sleep_forever()

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


class IdlePrices(Idle):
    """A watch of prices without resting orders."""

    async def leave(self, held: Container[int]) -> None:
        await trio.lowlevel.checkpoint()


@pytest.mark.parametrize("error", [TransitionError("a bug"), StoreUnavailable("gone")])
async def test_what_goes_wrong_with_one_order_is_not_the_end_of_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: Exception
) -> None:
    settings = parse_settings('state_dir = "."', {}, tmp_path)
    async with open_store(settings, {}, tmp_path, now_ms, in_process=True) as store:
        leases = Leases(store, "one", life_s=60, now_ms=now_ms)
        orders = LiveOrders(store, leases)
        idle = cast("Any", Idle())
        parts: dict[str, Any] = dict.fromkeys(DeltaChain.__struct_fields__, idle)
        parts |= {"prices": IdlePrices(), "head_time_s": lambda: 0}
        chains = {1: DeltaChain(**parts)}
        scheduler = Scheduler(now_ms)
        bridges = BridgeDesk(store, orders, {}, attester=None, bounds=bounds_of({}), wall_ms=now_ms)
        engine = DeltaEngine(store, scheduler, orders=orders, chains=chains, bridges=bridges, wall_ms=now_ms)
        footing = Footing(store, leases, scheduler, FollowedChains({}, store, now_ms), now_ms)
        engines = OrderEngines(footing, [engine])
        taken = orders.step
        tries: list[bytes] = []

        async def faulty(order_hash: bytes, decide: Any) -> Any:
            if order_hash == row.order_hash:
                tries.append(order_hash)
                await trio.lowlevel.checkpoint()
                await trio.lowlevel.checkpoint()
                if len(tries) > 100:
                    orders.leave(())  # for want of another end
                raise error
            return await taken(order_hash, decide)

        async def cancelled(order_hash: bytes) -> None:
            await taken(order_hash, lambda row: OrderStep(step(row, NOW_MS, status=OrderStatus.CANCELLING)))

        def status_of(order_hash: bytes) -> OrderStatus:
            live = orders.get(order_hash)
            assert live is not None
            return live.row.status

        async with trio.open_nursery() as nursery:
            await nursery.start(engines.run)
            rows = [a_delta_order(number) for number in (1, 2)]
            row, other = rows
            for number, one in enumerate(rows, 1):
                asked = a_round_order(number)
                await orders.add(one, asked.document, asked.order, asked.terms)
            monkeypatch.setattr(orders, "step", faulty)
            await cancelled(row.order_hash)
            await until(lambda: tries)
            await cancelled(other.order_hash)
            await until(lambda: status_of(other.order_hash) is OrderStatus.CANCELLED)
            if isinstance(error, StoreUnavailable):
                nursery.cancel_scope.cancel()
                await trio.lowlevel.checkpoint()
            assert len(tries) == 1, "it waits for its next change"
            monkeypatch.setattr(orders, "step", taken)
            await taken(row.order_hash, lambda row: OrderStep(step(row, NOW_MS)))
            await until(lambda: status_of(row.order_hash) is OrderStatus.CANCELLED)
            nursery.cancel_scope.cancel()
        assert len(tries) < 3, "it ends when it is told to"
