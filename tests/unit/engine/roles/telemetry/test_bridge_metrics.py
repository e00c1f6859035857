"""Metrics of bridge transfers; the operator's page has every name."""

from pathlib import Path

from cambist.engine.roles.telemetry.metrics import Metrics
from cambist.engine.roles.telemetry.order_metrics import delta_families
from cambist.engine.trade.delta.engine import DeltaStatistics
from support.chain.indexing import sqlite_engine
from support.delta.bridged_world import PART, BridgedWorld, a_bridged_world

PAGE = Path(__file__).parents[5] / "docs" / "guides" / "operations.md"


def told(world: BridgedWorld) -> str:
    by_chain = {str(chain_id): one for chain_id, one in world.desk.statistics().items()}
    metrics = Metrics()
    metrics.add(delta_families, lambda: DeltaStatistics(world.orders.statistics(), {}, by_chain))
    return b"".join(metrics.render()).decode()


async def test_transfers_ends_and_late_ones_are_counted(tmp_path: Path) -> None:
    async with a_bridged_world(sqlite_engine(tmp_path)) as world:
        first, second = await world.placed(), await world.placed()
        sent = world.settles(first)
        world.settles(second)
        world.now_ms += 120_000
        await world.looks()
        text = told(world)
        for line in (
            'cambist_delta_bridge_transfers{chain="10",protocol="across"} 2.0',
            'cambist_delta_bridge_oldest_seconds{chain="10",protocol="across"} 108.0',
            'cambist_delta_bridge_late{chain="10",what="delivery"} 2.0',
            'cambist_delta_bridge_held_up{chain="10",what="delivery"} 0.0',
            'cambist_delta_bridge_refunds_due{chain="31337"} 0.0',
        ):
            assert line in text
        world.fills(sent)
        world.passes(world.destination, 40)
        await world.looks()
        world.now_ms += 10_000_000
        await world.looks()
        world.passes(world.origin, 1)
        await world.looks()
        text = told(world)
        for line in (
            'cambist_delta_bridge_ends_total{chain="10",what="delivered"} 1.0',
            'cambist_delta_bridge_ends_total{chain="10",what="failed"} 1.0',
            'cambist_delta_bridge_refunds_due{chain="31337"} 1.0',
            'cambist_delta_bridge_late{chain="31337",what="refund"} 1.0',
        ):
            assert line in text
        world.refunds(PART)
        await world.looks()
        assert 'cambist_delta_bridge_ends_total{chain="31337",what="refunded"} 1.0' in told(world)
        page = PAGE.read_text(encoding="utf-8")
        names = {line.split("{")[0] for line in text.splitlines() if line.startswith("cambist_delta_bridge_")}
        names.add("cambist_delta_bridge_messages_total")
        assert not [name for name in names if not name.endswith("_created") and f"`{name}`" not in page]
