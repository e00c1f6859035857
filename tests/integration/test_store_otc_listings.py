"""Listings of OTC orders, on every engine of the store."""

from typing import Any

from msgspec.structs import replace

from cambist.codecs.messages.vocabulary import OtcState, OtcType
from cambist.engine.store.queries import OtcFilter, live_otc, otc_page
from cambist.engine.store.rows import OtcOrderRow, amount32
from cambist.engine.store.store import Store
from cambist.engine.store.tables import OTC_ORDER
from support.store.stores import (
    ALICE,
    BOB,
    CAROL,
    NOW_MS,
    USDC,
    WETH,
    an_otc_order,
    kept,
    moved,
    page_of,
    structs_of,
)

_O = OtcState


async def test_otc_listings_filter_by_maker_taker_receiver_type_and_chain(store: Store) -> None:
    by_alice = await kept(store, an_otc_order(1))
    by_carol = await kept(store, an_otc_order(2, maker=CAROL))
    for_meta = await kept(store, an_otc_order(3, taker=CAROL, taker_from_meta=BOB))
    public = await kept(store, an_otc_order(4, taker=bytes(20), type=OtcType.LIMIT))
    elsewhere = await kept(store, an_otc_order(5, chain_id=10))
    both = await kept(store, an_otc_order(6, maker=CAROL, taker_from_meta=BOB))
    for wanted, expected in (
        (OtcFilter(10, maker=ALICE), [elsewhere]),
        (OtcFilter(1, maker=ALICE), [public, for_meta, by_alice]),
        (OtcFilter(1, maker=CAROL), [both, by_carol]),
        (OtcFilter(1, taker=BOB), [both, for_meta, by_carol, by_alice]),
        (OtcFilter(1, taker=bytes(20), type=OtcType.LIMIT), [public]),
        (OtcFilter(1, maker=ALICE, type=OtcType.LIMIT), [public]),
        (OtcFilter(1, maker=ALICE, type=OtcType.P2P), [for_meta, by_alice]),
        (OtcFilter(1, taker=BOB, type=OtcType.LIMIT), []),
        (OtcFilter(1, maker=BOB), []),
        (OtcFilter(56, maker=ALICE), []),
    ):
        assert await page_of(store, wanted) == (expected, len(expected)), wanted
        assert await page_of(store, wanted, limit=2, offset=1) == (expected[1:3], len(expected))


async def test_small_balances_are_hidden_by_token(store: Store) -> None:
    small = await kept(store, an_otc_order(1, swappable=amount32(9)))
    enough = await kept(store, an_otc_order(2, swappable=amount32(10)))
    large = await kept(store, an_otc_order(3, swappable=amount32(2**200), taker_from_meta=BOB))
    other = await kept(store, an_otc_order(4, maker_asset=USDC, swappable=amount32(1)))
    none = await kept(store, an_otc_order(5, maker_asset=USDC, swappable=amount32(0)))
    short = await kept(store, an_otc_order(6, status=_O.SUSPENDED, swappable=amount32(0)))
    public = await kept(store, an_otc_order(7, maker=CAROL, taker=bytes(20), type=OtcType.LIMIT))
    accounts: list[dict[str, Any]] = [{"maker": ALICE}, {"taker": BOB}]
    for account in accounts:
        fillable = OtcFilter(1, **account, swappable_min=())
        assert await page_of(store, fillable) == ([other, large, enough, small], 4)
        hidden = OtcFilter(1, **account, swappable_min=((WETH, amount32(10)),))
        assert await page_of(store, hidden) == ([other, large, enough], 3)
        both = OtcFilter(1, **account, swappable_min=((WETH, amount32(10)), (USDC, amount32(2))))
        assert await page_of(store, both) == ([large, enough], 2)
        least = OtcFilter(1, **account, swappable_min=((USDC, amount32(0)),))
        assert (await page_of(store, least))[1] == 4
        shown = await page_of(store, OtcFilter(1, **account))
        assert shown == ([short, none, other, large, enough, small], 6)
    of_carol = OtcFilter(1, maker=CAROL, swappable_min=(), type=OtcType.LIMIT)
    assert await page_of(store, of_carol) == ([public], 1)
    assert await page_of(store, replace(of_carol, type=OtcType.P2P)) == ([], 0)


async def test_otc_listings_are_sorted_as_asked_and_never_sorts_last(store: Store) -> None:
    never = await kept(store, an_otc_order(1))
    soon = await kept(store, an_otc_order(2, expires_s=10))
    late = await kept(store, an_otc_order(3, expires_s=20))
    same = await kept(store, an_otc_order(4, expires_s=20))
    twin = await kept(store, an_otc_order(5, expires_s=20, created_ms=NOW_MS + 4, updated_ms=NOW_MS + 4))
    changed = await moved(store, soon, status=_O.SUSPENDED)
    twins = sorted([same, twin], key=lambda order: order.order_hash, reverse=True)
    by_hash = sorted([late, same, twin], key=lambda order: order.order_hash, reverse=True)
    listed: dict[str, list[OtcOrderRow]] = {
        "created_ms": [*twins, late, changed, never],
        "updated_ms": [changed, *twins, late, never],
        "expires_s": [*by_hash, changed, never],
    }
    for order_by, expected in listed.items():
        wanted = OtcFilter(1, maker=ALICE, order_by=order_by)  # type: ignore[arg-type]
        assert (await page_of(store, wanted))[0] == expected, order_by
        places, _ = await store.read(*otc_page(wanted, 3, 1, is_backwards=True))
        assert [row[0] for row in places] == [order.order_hash for order in expected[::-1][1:4]]


async def test_live_orders_of_a_maker(store: Store) -> None:
    weth = await kept(store, an_otc_order(1))
    short = await kept(store, an_otc_order(2, status=_O.SUSPENDED))
    draft = await kept(store, an_otc_order(3, status=_O.DRAFT))
    usdc = await kept(store, an_otc_order(4, maker_asset=USDC))
    ended = await kept(store, an_otc_order(5))
    await moved(store, ended, status=_O.CANCELLED)
    await kept(store, an_otc_order(6, maker=CAROL))
    await kept(store, an_otc_order(7, chain_id=10))
    of_weth = await structs_of(store, OTC_ORDER, live_otc(1, ALICE, WETH))
    assert {order.order_hash for order in of_weth} == {one.order_hash for one in (weth, short, draft)}
    of_all = await structs_of(store, OTC_ORDER, live_otc(1, ALICE))
    assert {order.order_hash for order in of_all} == {one.order_hash for one in (weth, short, draft, usdc)}
    assert await structs_of(store, OTC_ORDER, live_otc(1, BOB)) == []
