"""Metrics of OTC orders; the operator's page has every name."""

from pathlib import Path

from cambist.codecs.messages.vocabulary import OtcState
from cambist.engine.roles.telemetry.metrics import Metrics
from cambist.engine.roles.telemetry.order_metrics import otc_families
from support.otc.otc_engine import MAKER, an_order, otc_venue
from support.store.stores import BOB

PAGE = Path(__file__).parents[5] / "docs" / "guides" / "operations.md"


async def test_orders_funds_and_drafts_are_counted(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        rows = [await venue.submit(an_order(number)) for number in (1, 2)]
        draft = await venue.submit(an_order(3, maker=BOB, status=OtcState.DRAFT))
        await venue.is_told()
        venue.chain.has(MAKER, 0)
        venue.chain.mine()
        for row in rows:
            await venue.becomes(row, OtcState.SUSPENDED)
        metrics = Metrics()
        metrics.add(otc_families, venue.engine.statistics)
        told = b"".join(metrics.render()).decode()
        for line in (
            'cambist_otc_orders{status="SUSPENDED"} 2.0',
            'cambist_otc_orders{status="DRAFT"} 1.0',
            'cambist_otc_funds_accounts{chain="1"} 2.0',
            'cambist_otc_funds_suspended_total{chain="1"} 2.0',
            'cambist_otc_drafts{chain="1"} 1.0',
            'cambist_otc_drafts_signed_total{chain="1"} 0.0',
        ):
            assert line in told
        venue.chain.accepts(draft)
        venue.chain.mine()
        await venue.becomes(draft, OtcState.SUSPENDED)
        told = b"".join(metrics.render()).decode()
        assert 'cambist_otc_drafts_signed_total{chain="1"} 1.0' in told
        page = PAGE.read_text(encoding="utf-8")
        names = {line.split("{")[0].split()[0] for line in told.splitlines() if line.startswith("cambist_")}
        assert not [name for name in names if not name.endswith("_created") and f"`{name}`" not in page]
