"""Requests of the desk to makers, makers that stand in for others, and quotes that the desk takes."""

import pytest
import trio
from trio.testing import MockClock

from cambist.codecs.messages.vocabulary import Side
from cambist.config import limits
from cambist.config.errors import NoRoute
from cambist.engine.host.admission.budgets import PPM
from cambist.engine.trade.routing.firm.firm_parts import PATIENCES, HeldQuote
from cambist.engine.trade.routing.firm.legs import over_asked
from cambist.engine.trade.routing.firm.stock import part_of
from cambist.engine.trade.routing.search.plan import Taxes
from cambist.feeds.firm.firm_check import FirmFault
from support.makers.firm_books import DAI, USDC, WETH, Levels, a_live_book
from support.makers.timed_makers import (
    DIGEST_OF,
    HANGING,
    ONE,
    SETTINGS,
    USER,
    Maker,
    Shown,
    Timed,
    makers_of,
    wall_ms,
)

SOFT_S, PATIENCE_S = SETTINGS.soft_s, SETTINGS.soft_s / PATIENCES
REFUSING = Maker(0.05, FirmFault.REFUSED)
DEEP: Levels = (("2600", "100"),)


def weth_usdc(price: str = "2500", depth: str = "100") -> Shown:
    return WETH, USDC, ((price, depth),), DEEP


def usdc_dai(price: str = "1", depth: str = "900000") -> Shown:
    return USDC, DAI, ((price, depth),), (("1.2", "900000"),)


def weth_dai(price: str = "2500", depth: str = "100") -> Shown:
    return WETH, DAI, ((price, depth),), DEEP


def shows(*books: Shown, after_s: float = 0.0, fault: FirmFault | None = None, worse_bps: int = 0) -> Maker:
    return Maker(after_s, fault, books, worse_bps)


# --- The user's limit ---------------------------------------------------------------------------------


@pytest.mark.parametrize("side", list(Side))
async def test_a_limit_that_is_just_kept_is_kept_and_one_beyond_is_not(
    autojump_clock: MockClock, side: Side
) -> None:
    """The books do not keep it, so nobody else is asked, and nobody is blamed."""
    sells, stage = side is Side.SELL, Timed(alpha=Maker(0.0), beta=Maker(0.0))
    fixed, other = (ONE, 2_500 * 10**6) if sells else (2_500 * 10**6, ONE)
    route = await (stage.sell(limit=other) if sells else stage.buy(USDC, fixed, limit=other))
    assert (route.src_amount, route.dest_amount) == (ONE, 2_500 * 10**6)
    with pytest.raises(NoRoute, match=r": the books do not keep the limit$"):
        await (stage.sell(limit=other + 1) if sells else stage.buy(USDC, fixed, limit=other - 1))
    assert "beta" not in stage.asked()
    assert stage.reasons() == {}


@pytest.mark.parametrize(("worse_bps", "reasons"), [(20, {}), (100, {"alpha": {"drifted": 1}})])
async def test_a_quote_below_the_plan_and_the_limit_gives_way_to_another_makers(
    autojump_clock: MockClock, worse_bps: int, reasons: dict[str, dict[str, int]]
) -> None:
    """It is the maker's fault only if it is below the maker's own book by more than the tolerance."""
    stage = Timed(alpha=Maker(0.0, worse_bps=worse_bps), beta=Maker(0.0))
    assert makers_of(await stage.sell(limit=2_496 * 10**6)) == ["beta"]
    assert stage.reasons() == reasons


async def test_who_shows_less_than_a_quote_that_broke_the_limit_is_not_asked(
    autojump_clock: MockClock,
) -> None:
    stage = Timed(alpha=Maker(0.0, worse_bps=20), beta=shows(weth_usdc("2494")))
    with pytest.raises(NoRoute, match="nobody else quotes"):
        await stage.sell(limit=2_495 * 10**6 + 1)
    assert list(stage.asked()) == ["alpha"]


async def test_where_a_stand_in_does_not_keep_the_limit_another_path_is_asked(
    autojump_clock: MockClock,
) -> None:
    stage = Timed(
        alpha=shows(weth_usdc(), fault=FirmFault.REFUSED),
        beta=shows(weth_usdc("2480")),
        gamma=shows(usdc_dai()),
        delta=shows(weth_dai("2490")),
    )
    assert makers_of(await stage.sell(DAI, limit=2_485 * ONE)) == ["delta"]
    assert list(stage.asked()) == ["alpha", "beta", "gamma", "delta"]


async def test_a_quote_below_the_plan_within_the_limit_is_taken(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=Maker(0.0, worse_bps=20), beta=Maker(0.0))
    assert makers_of(await stage.sell(limit=2_495 * 10**6)) == ["alpha"]


async def test_of_two_parts_the_one_with_the_greater_loss_gives_way(autojump_clock: MockClock) -> None:
    stage = Timed(
        alpha=shows(weth_usdc(), worse_bps=10),
        beta=shows(usdc_dai(), worse_bps=40),
        gamma=shows(weth_usdc("2499")),
        delta=shows(usdc_dai("0.9999")),
    )
    assert makers_of(await stage.sell(DAI, limit=2_495 * ONE)) == ["alpha", "delta"]
    assert "gamma" not in stage.asked()


async def test_a_quote_that_is_worse_than_the_book_and_unfunded_is_told_as_unfunded(
    autojump_clock: MockClock,
) -> None:
    stage = Timed(alpha=Maker(0.0, worse_bps=100), beta=Maker(0.0, worse_bps=100))
    stage.chain.poor.add(stage.clients["alpha"].account)
    assert makers_of(await stage.sell()) == ["beta"]
    assert stage.reasons() == {"alpha": {"unfunded": 1}, "beta": {"drifted": 1}}


@pytest.mark.parametrize("limit", [0, 4_990 * 10**6])
async def test_an_order_that_a_maker_has_signed_twice_counts_once(
    autojump_clock: MockClock, limit: int
) -> None:
    """It takes the place of a slow maker beside its own share, which only a cheaper one then can."""
    stage = Timed(
        alpha=Maker(HANGING.after_s, None, ((WETH, USDC, (("2500", "1"), ("2300", "100")), DEEP),)),
        beta=Maker(0.0, None, ((WETH, USDC, (("2499", "1"), ("2300", "100")), DEEP),), repeats=True),
        gamma=shows(weth_usdc("2400")),
    )
    if limit:
        with pytest.raises(NoRoute):
            await stage.sell(amount=2 * ONE, limit=limit)
    else:
        assert makers_of(await stage.sell(amount=2 * ONE)) == ["beta", "gamma"]
    assert stage.reasons()["beta"] == {"invalid": 1}


@pytest.mark.parametrize("limit", [0, 2_490 * ONE])
async def test_all_quotes_of_a_maker_are_of_the_account_of_the_first(
    autojump_clock: MockClock, limit: int
) -> None:
    stage = Timed(
        alpha=Maker(0.0, None, (weth_usdc(), usdc_dai()), other_account_for=DAI),
        beta=shows(usdc_dai("0.99")),
    )
    if limit:
        with pytest.raises(NoRoute):
            await stage.sell(DAI, limit=limit)
    else:
        assert makers_of(await stage.sell(DAI)) == ["alpha", "beta"]
    assert stage.reasons() == {"alpha": {"invalid": 1}}


# --- Amounts ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("further", "limit", "amount"),
    [
        (usdc_dai(), 0, 2_525 * 10**6),
        (usdc_dai(), 2_500 * ONE, 2_500 * 10**6),
        (usdc_dai(depth="2525"), 0, 2_525 * 10**6),
        (usdc_dai(depth="2524"), 0, 2_500 * 10**6),
        ((USDC, DAI, (("1", "2500"), ("0.9", "900000")), DEEP), 0, 2_500 * 10**6),
    ],
    ids=["more", "no room in the limit", "just deep enough", "not deep enough", "dearer"],
)
async def test_a_later_hop_of_a_sale_is_asked_for_a_percent_more_where_that_costs_nothing(
    autojump_clock: MockClock, further: Shown, limit: int, amount: int
) -> None:
    stage = Timed(alpha=shows(weth_usdc()), beta=shows(further))
    await stage.sell(DAI, limit=limit)
    assert stage.clients["alpha"].amounts == [ONE]
    assert stage.clients["beta"].amounts == [amount]


async def test_an_earlier_hop_of_a_purchase_is_asked_for_a_basis_point_more(
    autojump_clock: MockClock,
) -> None:
    stage = Timed(alpha=shows(weth_usdc()), beta=shows(usdc_dai()))
    await stage.buy(DAI, 2_500 * ONE)
    assert stage.clients["alpha"].amounts == [over_asked(2_500 * 10**6, 1)]
    assert stage.clients["beta"].amounts == [2_500 * ONE]


@pytest.mark.parametrize(
    ("src", "dest", "side", "amount", "part"),
    [
        (WETH, USDC, Side.SELL, ONE, part_of(1, 13)),
        (WETH, USDC, Side.BUY, 2_500 * 10**6, part_of(1, 13)),
        (USDC, WETH, Side.SELL, 2_600 * 10**6, part_of(1, 25)),
        (USDC, WETH, Side.BUY, ONE, part_of(1, 25)),
    ],
)
async def test_the_part_of_a_makers_stock_is_of_all_levels_of_its_book(
    autojump_clock: MockClock, src: bytes, dest: bytes, side: Side, amount: int, part: int
) -> None:
    bids, asks = (("2500", "1"), ("2499.5", "2"), ("2490", "10")), (("2600", "5"), ("2610", "20"))
    stage = Timed(alpha=shows((WETH, USDC, bids, asks)))
    plan, wanted = stage.plan(dest, amount, side=side, src=src)
    await stage.desk.fill(plan, wanted, user=USER, limit=0 if side is Side.SELL else limits.UINT256_MAX)
    assert stage.desk.stock.reserved("alpha", dest, wall_ms())[0] == part


async def test_a_maker_whose_book_has_gone_is_asked_for_all_of_its_stock(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING)
    plan, wanted = stage.plan()
    stage.index.drop("alpha", WETH, USDC)
    with pytest.raises(NoRoute):
        await stage.desk.fill(plan, wanted, user=USER, limit=0)
    assert stage.desk.stock.reserved("alpha", USDC, wall_ms())[0] == PPM
    assert stage.bounds == []


@pytest.mark.parametrize(("taxes", "said"), [(Taxes(), 0), (Taxes(src=100), ONE), (Taxes(src_dex=100), ONE)])
async def test_a_sale_of_a_token_with_a_tax_says_how_much_it_sells(
    autojump_clock: MockClock, taxes: Taxes, said: int
) -> None:
    stage = Timed(alpha=Maker(0.0))
    route = await stage.sell(taxes=taxes)
    assert (route.hops[0].taker_amount > 0) == (said > 0)


# --- In a maker's place -------------------------------------------------------------------------------


async def test_who_may_not_take_part_takes_nobodys_place(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=REFUSING, beta=Maker(0.0), gamma=Maker(0.0))
    assert makers_of(await stage.sell(without=frozenset({"beta"}))) == ["gamma"]
    assert list(stage.asked()) == ["alpha", "gamma"]
    assert stage.desk.statistics().stand_ins == 1
    hanging = Timed(alpha=HANGING, beta=Maker(0.0), gamma=Maker(0.0))
    assert makers_of(await hanging.sell(without=frozenset({"beta"}))) == ["gamma"]
    assert list(hanging.asked()) == ["alpha", "gamma"]


async def test_who_may_not_take_part_is_on_no_other_path(autojump_clock: MockClock) -> None:
    around = shows(weth_usdc("2450"), usdc_dai())
    stage = Timed(alpha=shows(weth_dai(), fault=FirmFault.REFUSED), beta=around)
    with pytest.raises(NoRoute, match=r": nobody else quotes; alpha: refused$"):
        await stage.sell(DAI, without=frozenset({"beta"}))
    assert list(stage.asked()) == ["alpha"]
    assert makers_of(await stage.sell(DAI)) == ["beta"] * 2
    assert stage.desk.statistics().stand_ins == 2


async def test_another_path_beyond_the_limit_is_not_asked(autojump_clock: MockClock) -> None:
    around = shows(weth_usdc("2450"), usdc_dai())
    stage = Timed(alpha=shows(weth_dai(), fault=FirmFault.REFUSED), beta=around)
    with pytest.raises(NoRoute, match="nobody else quotes"):
        await stage.sell(DAI, limit=2_450 * ONE + 1)
    assert list(stage.asked()) == ["alpha"]
    assert makers_of(await stage.sell(DAI, limit=2_450 * ONE)) == ["beta"] * 2


@pytest.mark.parametrize(("slow", "asked_at"), [(1, PATIENCE_S), (2, 2 * PATIENCE_S)])
async def test_another_path_is_asked_beside_one_slow_maker_at_once_and_beside_two_with_everybody(
    autojump_clock: MockClock, slow: int, asked_at: float
) -> None:
    """Its hops answer one after the other, and each is asked once."""
    hanging = {
        f"slow{number}": shows(weth_dai(f"{2_500 - number}"), after_s=HANGING.after_s)
        for number in range(slow)
    }
    stage = Timed(
        **hanging, one=shows(weth_usdc("2450"), after_s=0.02), other=shows(usdc_dai(), after_s=0.04)
    )
    assert makers_of(await stage.sell(DAI)) == ["one", "other"]
    assert stage.asked()["one"] == stage.asked()["other"] == [pytest.approx(asked_at)]
    assert stage.desk.statistics().stand_ins == slow + 1


async def test_a_slow_maker_takes_nobodys_place_on_another_path(autojump_clock: MockClock) -> None:
    slow = shows(weth_dai(), weth_usdc("2460"), after_s=HANGING.after_s)
    stage = Timed(alpha=slow, beta=shows(weth_usdc("2450"), usdc_dai(), fault=FirmFault.REFUSED))
    with pytest.raises(NoRoute, match="time is up"):
        await stage.sell(DAI)
    assert stage.asked() == {"alpha": [0.0], "beta": [pytest.approx(PATIENCE_S)] * 2}


async def test_beside_slow_makers_only_who_shows_more_than_what_broke_the_limit_is_asked(
    autojump_clock: MockClock,
) -> None:
    """The first signs 2,495 late, while two others hang that were asked beside it."""
    prices = {"beta": "2499", "gamma": "2498", "delta": "2496", "epsilon": "2494"}
    others = {name: shows(weth_usdc(price), after_s=HANGING.after_s) for name, price in prices.items()}
    others |= {name: shows(weth_usdc(prices[name])) for name in ("delta", "epsilon")}
    stage = Timed(alpha=shows(weth_usdc(), after_s=PATIENCE_S + 0.01, worse_bps=20), **others)
    assert makers_of(await stage.sell(limit=2_495 * 10**6 + 1)) == ["delta"]
    assert trio.current_time() == pytest.approx(PATIENCE_S + 0.01)
    assert list(stage.asked()) == ["alpha", "beta", "gamma", "delta"]


async def test_a_plan_of_which_two_parts_fail_at_once_is_given_up_once(autojump_clock: MockClock) -> None:
    stage = Timed(
        alpha=shows(weth_usdc(), usdc_dai(), after_s=0.05, fault=FirmFault.REFUSED),
        beta=shows(weth_dai("2400")),
        gamma=shows(usdc_dai("0.9")),
    )
    assert makers_of(await stage.sell(DAI)) == ["beta"]
    assert list(stage.asked()) == ["alpha", "beta"]


async def test_at_the_soft_bound_itself_nobody_is_asked_any_more(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=Maker(SOFT_S, FirmFault.REFUSED), beta=Maker(0.0))
    stage.index.drop("beta", WETH, USDC)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_show_just_before, stage, SOFT_S)
        with pytest.raises(NoRoute, match="time is up; alpha: refused"):
            await stage.sell()
    assert trio.current_time() == SOFT_S
    assert list(stage.asked()) == ["alpha"]


async def _show_just_before(stage: Timed, at_s: float) -> None:
    await trio.sleep_until(at_s - 0.001)
    stage.index.put(a_live_book("beta"))


async def test_who_had_a_third_of_the_time_to_the_tick_is_late(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING, beta=Maker(0.0))
    assert makers_of(await stage.sell()) == ["beta"]
    assert trio.current_time() == PATIENCE_S
    assert stage.reasons() == {"alpha": {"late": 1}}


# --- Hops that do not fit together --------------------------------------------------------------------


def dear(number: int, *, after_s: float = 0.0) -> Maker:
    """A maker that sells DAI for `number` percent more than it shows, which is little more than others."""
    return shows(usdc_dai(f"{1 - number / 100_000}"), after_s=after_s, worse_bps=100 * number)


async def test_a_first_hop_is_asked_anew_twice_at_most(autojump_clock: MockClock) -> None:
    """Each maker of the second hop signs for more than it shows, and all but the last have no funds."""
    makers = {"alpha": shows(weth_usdc()), "one": dear(1), "two": dear(2), "three": dear(3)}
    stage = Timed(**makers)
    stage.chain.poor.add(stage.clients["one"].account)
    route = await stage.buy(DAI, 1_000 * ONE)
    assert makers_of(route) == ["alpha", "two"]
    assert route.dest_amount == 1_000 * ONE
    assert len(stage.clients["alpha"].amounts) == 3
    again = Timed(**makers)
    again.chain.poor |= {again.clients[name].account for name in ("one", "two")}
    with pytest.raises(NoRoute, match="the hops do not fit together"):
        await again.buy(DAI, 1_000 * ONE)
    assert len(again.clients["alpha"].amounts) == 3


async def test_a_hop_that_turns_out_short_after_the_soft_bound_is_not_asked_anew(
    autojump_clock: MockClock,
) -> None:
    stage = Timed(alpha=shows(weth_usdc()), beta=dear(1, after_s=SOFT_S + 0.01))
    with pytest.raises(NoRoute, match=r": the hops do not fit together$"):
        await stage.buy(DAI, 1_000 * ONE)
    assert len(stage.clients["alpha"].amounts) == 1


async def test_the_hop_of_a_second_path_is_asked_anew_in_its_own_place(autojump_clock: MockClock) -> None:
    stage = Timed(direct=shows(weth_dai(depth="3")), alpha=shows(weth_usdc("2499.9", "100")), beta=dear(1))
    route = await stage.buy(DAI, 10_000 * ONE)
    assert [(hop.src_token, hop.dest_token) for hop in route.hops] == [
        (WETH, DAI),
        (WETH, USDC),
        (USDC, DAI),
    ]
    assert makers_of(route) == ["direct", "alpha", "beta"]
    assert len(stage.clients["alpha"].amounts) == 2


async def test_a_sale_of_which_a_hop_can_take_nothing_has_no_route(autojump_clock: MockClock) -> None:
    stage = Timed(
        alpha=shows((DAI, WETH, (("0.0004", "900000"),), (("0.0005", "900000"),)), worse_bps=9_999),
        beta=shows(weth_usdc()),
    )
    with pytest.raises(NoRoute, match="the hops do not fit together"):
        await stage.desk.fill(*stage.plan(USDC, 10**13, src=DAI), user=USER, limit=0)
    assert len(stage.clients["beta"].amounts) == 1


# --- Records ------------------------------------------------------------------------------------------


async def test_who_has_not_answered_in_its_time_is_late_where_another_ends_the_swap(
    autojump_clock: MockClock,
) -> None:
    refusing = shows(weth_usdc(), after_s=PATIENCE_S + 0.05, fault=FirmFault.INVALID)
    stage = Timed(alpha=refusing, beta=shows(usdc_dai(), after_s=HANGING.after_s))
    with pytest.raises(NoRoute, match="nobody else quotes; alpha: invalid; beta: late"):
        await stage.sell(DAI)
    assert stage.reasons() == {"alpha": {"invalid": 1}, "beta": {"late": 1}}


@pytest.mark.parametrize("lasts_s", [200, limits.VENUE_UNFILLED_S_MAX, limits.VENUE_UNFILLED_S_MAX + 1])
async def test_a_signed_quote_is_held_until_it_expires_and_for_five_minutes_at_most(
    autojump_clock: MockClock, lasts_s: int
) -> None:
    stage, held = Timed(alpha=Maker(0.0, lasts_s=lasts_s)), list[HeldQuote]()
    plan, wanted = stage.plan()
    route = await stage.desk.fill(plan, wanted, user=USER, limit=0, held=held)
    ((fill,),) = [hop.fills for hop in route.hops]
    (quote,) = held
    until_s = wall_ms() // 1_000 + min(lasts_s, limits.VENUE_UNFILLED_S_MAX)
    assert quote.claim is not None
    account, digest32 = stage.clients["alpha"].account, DIGEST_OF(fill.order)
    assert quote == HeldQuote(until_s, account, digest32, 2_500 * 10**6, quote.claim)
    assert stage.desk.stock.reserved("alpha", USDC, wall_ms()) == (PPM // 100, until_s)


async def test_a_maker_that_does_not_serve_a_user_is_remembered_with_it(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=Maker(0.0, FirmFault.BLACKLISTED), beta=REFUSING, gamma=Maker(0.0))
    await stage.sell()
    assert stage.blacklisted == [("alpha", (USER,))]


async def test_the_time_of_each_answer_counts_among_the_makers_durations(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=REFUSING, beta=Maker(0.1))
    await stage.sell()
    took_s = {name: maker.durations.total_s for name, maker in stage.desk.makers.items()}
    assert took_s == {"alpha": pytest.approx(0.05), "beta": pytest.approx(0.1)}


@pytest.mark.parametrize("is_gone", [False, True])
@pytest.mark.parametrize(
    ("fault", "reasons"), [(FirmFault.REFUSED, {}), (FirmFault.INVALID, {"alpha": {"invalid": 1}})]
)
async def test_a_refusal_of_more_than_the_book_holds_counts_nothing_and_a_fault_does(
    autojump_clock: MockClock, fault: FirmFault, reasons: dict[str, dict[str, int]], *, is_gone: bool
) -> None:
    """The maker's book shrinks, or goes, after the plan."""
    stage = Timed(alpha=Maker(0.0, fault))
    plan, wanted = stage.plan()
    stage.index.drop("alpha", WETH, USDC)
    if not is_gone:
        stage.index.put(a_live_book("alpha", bids=(("2500", "0.1"),)))
    with pytest.raises(NoRoute):
        await stage.desk.fill(plan, wanted, user=USER, limit=0)
    assert stage.reasons() == reasons
    assert stage.bounds == []
