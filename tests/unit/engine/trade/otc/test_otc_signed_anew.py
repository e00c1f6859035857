"""A DRAFT that another process signs anew: the process that runs the order gets that signature too."""

from pathlib import Path

import trio

from cambist.codecs.messages.vocabulary import OtcState
from cambist.engine.store.leases import Leases
from cambist.engine.store.rows import OtcOrderRow
from cambist.engine.trade.orders.step import OrderStep
from cambist.engine.trade.otc.life import signed
from cambist.engine.trade.otc.live_orders import OtcOrders
from support.otc.otc_engine import MAKER, OtcVenue, a_document, an_order, otc_venue, simulated_ms

_S = OtcState


def elsewhere(venue: OtcVenue) -> OtcOrders:
    """As a process has them that runs no orders."""
    return OtcOrders(venue.store, Leases(venue.store, "other", life_s=60, now_ms=simulated_ms, count=0))


def accepted(row: OtcOrderRow) -> OrderStep[OtcOrderRow] | None:
    return signed(row, simulated_ms(), is_backed=True)


async def test_another_process_signs_a_draft(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        draft = an_order(status=_S.DRAFT)
        row = await venue.submit(draft, a_document(draft, permit=b"\x07" * 224))
        assert venue.orders.count_of(MAKER, _S.DRAFT) == 1
        await elsewhere(venue).sign(row.order_hash, b"\x52" * 65, None, accepted)
        await venue.becomes(row, _S.PENDING)
        kept = venue.live(row).document
        assert (kept.signature, kept.permit) == (b"\x52" * 65, b"\x07" * 224)
        assert venue.orders.count_of(MAKER, _S.DRAFT) == 0


async def test_what_is_signed_is_not_signed_again(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        venue.chain.has(MAKER, 100)
        venue.chain.mine()
        row = await venue.submit(an_order(status=_S.DRAFT))
        async with trio.open_nursery() as nursery:
            for byte in (b"\x52", b"\x53"):
                nursery.start_soon(elsewhere(venue).sign, row.order_hash, byte * 65, None, accepted)
        after = await venue.becomes(row, _S.PENDING)
        first = venue.live(row).document.signature
        await venue.orders.sign(row.order_hash, b"\x54" * 65, None, accepted)
        assert venue.live(row).document.signature == first
        assert first in (b"\x52" * 65, b"\x53" * 65)
        assert (await venue.row(row)).status is after.status


async def test_drafts_are_counted_until_they_are_forgotten(tmp_path: Path, autojump_clock: object) -> None:
    async with otc_venue(tmp_path) as venue:
        rows = [await venue.submit(an_order(number, status=_S.DRAFT)) for number in (1, 2, 3)]
        await venue.submit(an_order(4))
        assert (venue.orders.count_of(MAKER, _S.DRAFT), venue.orders.count_of(MAKER)) == (3, 4)
        venue.chain.cancels(rows[0])
        venue.chain.mine()
        await venue.becomes(rows[0], _S.CANCELLED)
        assert venue.orders.count_of(MAKER, _S.DRAFT) == 2
        venue.orders.leave(())
        assert (venue.orders.count_of(MAKER, _S.DRAFT), venue.orders.count_of(MAKER)) == (0, 0)
        assert not any(venue.orders._by_owner.values())
