"""Any number of makers hang, and one is there: the swap is filled in time. On a clock of the test's own."""

from itertools import combinations

import pytest
import trio
from trio.testing import MockClock

from cambist.config.errors import NoRoute
from cambist.engine.trade.routing.firm.firm_parts import PATIENCES
from cambist.feeds.firm.firm_check import FirmFault
from support.makers.firm_books import DAI, USDC, WETH, Levels
from support.makers.timed_makers import HANGING, ONE, SETTINGS, Maker, Shown, Timed, makers_of

PATIENCE_S = SETTINGS.soft_s / PATIENCES
QUICK_S = 0.1
LAST_S = 2 * PATIENCE_S + QUICK_S
"""Time by which every maker has been asked and has answered, seconds."""
DEPTH: Levels = (("2600", "100"),)


def among_hanging(hanging: int, good_at: int, *books: Shown) -> dict[str, Maker]:
    """`hanging` makers that hang, and a good maker after the first `good_at` of them.

    Args:
        books: the first maker's books, the others' are a little worse; without them, those of `Maker`.
    """
    names = [f"m{number}" for number in range(hanging + 1)]
    after_s = [QUICK_S if at == good_at else HANGING.after_s for at in range(hanging + 1)]
    return {
        name: Maker(after, None, tuple(_worse(shown, at) for shown in books))
        for at, (name, after) in enumerate(zip(names, after_s, strict=True))
    }


def _worse(shown: Shown, by: int) -> Shown:
    base, quote, bids, asks = shown
    worse = tuple((f"{float(price) * (1 - by / 10_000):.6f}", amount) for price, amount in bids)
    return base, quote, worse, asks


@pytest.mark.parametrize(
    ("hanging", "good_at"), [(hanging, at) for hanging in range(1, 7) for at in range(hanging + 1)]
)
async def test_one_hop_is_filled_by_the_one_that_answers(
    autojump_clock: MockClock, hanging: int, good_at: int
) -> None:
    stage = Timed(**among_hanging(hanging, good_at))
    assert makers_of(await stage.sell()) == [f"m{good_at}"]
    asked_at = 0.0 if good_at == 0 else PATIENCE_S if good_at <= 2 else 2 * PATIENCE_S
    assert trio.current_time() == pytest.approx(asked_at + QUICK_S)
    assert len(stage.asked()) == (1 if not asked_at else min(3, hanging + 1) if good_at <= 2 else hanging + 1)


WETH_USDC: Shown = (WETH, USDC, (("2500", "100"),), DEPTH)
USDC_DAI: Shown = (USDC, DAI, (("1", "900000"),), (("1.1", "900000"),))


@pytest.mark.parametrize("hanging", range(1, 7))
@pytest.mark.parametrize("is_bought", [False, True])
async def test_two_hops_are_filled_by_the_one_that_answers(
    autojump_clock: MockClock, hanging: int, *, is_bought: bool
) -> None:
    """Every maker quotes both pairs. In a purchase, the first hop is asked anew for the second hop's need."""
    stage = Timed(**among_hanging(hanging, hanging, WETH_USDC, USDC_DAI))
    route = await (stage.buy(DAI, 1_000 * ONE) if is_bought else stage.sell(DAI))
    assert makers_of(route) == [f"m{hanging}"] * 2
    assert trio.current_time() <= LAST_S + is_bought * QUICK_S + 1e-6


@pytest.mark.parametrize("hanging", range(1, 7))
@pytest.mark.parametrize("good_at", [0, 1])
async def test_a_split_is_filled_by_the_one_that_answers(
    autojump_clock: MockClock, hanging: int, good_at: int
) -> None:
    """Every maker has the best price for one WETH, and a worse price for the whole sale."""
    shown: Shown = (WETH, USDC, (("2500", "1"), ("2400", "100")), DEPTH)
    good_at = hanging if good_at else 0
    stage = Timed(**among_hanging(hanging, good_at, shown))
    plan, _ = stage.plan(amount=(hanging + 1) * ONE)
    assert len(plan.makers()) == hanging + 1
    route = await stage.sell(amount=(hanging + 1) * ONE)
    assert set(makers_of(route)) == {f"m{good_at}"}
    assert route.src_amount == (hanging + 1) * ONE
    assert trio.current_time() <= 2 * PATIENCE_S + 2 * QUICK_S


@pytest.mark.parametrize("hanging", list(combinations(range(6), 3)))
async def test_three_that_have_half_each_and_any_three_that_hang(
    autojump_clock: MockClock, hanging: tuple[int, ...]
) -> None:
    """No maker can fill the sale alone; a maker that answers is asked again for the rest."""
    makers = {
        f"m{at}": Maker(
            HANGING.after_s if at in hanging else 0.02,
            None,
            (_worse((WETH, USDC, (("2500", "0.6"),), DEPTH), at),),
        )
        for at in range(6)
    }
    stage = Timed(**makers)
    route = await stage.sell()
    assert not {f"m{at}" for at in hanging} & {*makers_of(route)}
    assert route.src_amount == ONE
    assert trio.current_time() < SETTINGS.hard_s


@pytest.mark.parametrize("hanging", range(1, 7))
async def test_where_a_whole_pair_hangs_another_path_is_taken(
    autojump_clock: MockClock, hanging: int
) -> None:
    """The direct pair is theirs; one maker is on the two pairs around it."""
    direct: Shown = (WETH, DAI, (("2500", "100"),), DEPTH)
    makers = among_hanging(hanging, hanging, direct)
    makers[f"m{hanging}"] = Maker(QUICK_S, None, (_worse(WETH_USDC, 20), USDC_DAI))
    stage = Timed(**makers)
    assert makers_of(await stage.sell(DAI)) == [f"m{hanging}"] * 2
    assert trio.current_time() <= LAST_S + 1e-6


async def test_a_slow_maker_is_still_waited_for_while_another_path_is_asked(
    autojump_clock: MockClock,
) -> None:
    direct = Maker(3 * PATIENCE_S, None, ((WETH, DAI, (("2500", "100"),), DEPTH),))
    around = Maker(HANGING.after_s, None, (_worse(WETH_USDC, 20), USDC_DAI))
    stage = Timed(direct=direct, around=around)
    assert makers_of(await stage.sell(DAI)) == ["direct"]
    assert len(stage.asked()["around"]) == 2
    assert trio.current_time() == pytest.approx(3 * PATIENCE_S)


async def test_one_that_is_asked_beside_and_beyond_the_limit_ends_nothing(autojump_clock: MockClock) -> None:
    """Its book does not keep the user's limit; the slow one's does."""
    slow = Maker(PATIENCE_S + 0.2)
    stage = Timed(alpha=slow, beta=Maker(0.0), gamma=Maker(0.0))
    route = await stage.sell(limit=2_500 * 10**6)
    assert makers_of(route) == ["alpha"]
    assert stage.reasons() == {}
    assert [len(times) for times in stage.asked().values()] == [1, 1, 1], "nobody is asked the same twice"


async def test_those_that_answer_in_time_are_asked_alone(autojump_clock: MockClock) -> None:
    """Two hops and a split, each just in time; six more would be there."""
    prompt_s = PATIENCE_S - 0.001
    shown = (WETH_USDC, USDC_DAI)
    makers = {f"m{at}": Maker(prompt_s, None, tuple(_worse(book, at) for book in shown)) for at in range(8)}
    stage = Timed(**makers)
    assert makers_of(await stage.sell(DAI)) == ["m0", "m0"]
    assert stage.desk.statistics().asked == 2
    assert stage.desk.statistics().stand_ins == 0


async def test_refusals_at_once_are_followed_up_one_by_one(autojump_clock: MockClock) -> None:
    refusing = Maker(0.0, FirmFault.REFUSED)
    makers = dict.fromkeys([f"m{at}" for at in range(5)], refusing)
    stage = Timed(**makers, good=Maker(0.01), further=Maker(0.0))
    assert makers_of(await stage.sell()) == ["good"]
    assert trio.current_time() == pytest.approx(0.01)
    assert "further" not in stage.asked()


async def test_where_all_hang_time_is_up_and_all_are_late(autojump_clock: MockClock) -> None:
    stage = Timed(**among_hanging(6, 7))
    with pytest.raises(NoRoute, match="time is up"):
        await stage.sell()
    assert trio.current_time() == pytest.approx(SETTINGS.hard_s)
    assert stage.reasons() == {f"m{at}": {"late": 1} for at in range(7)}
    assert stage.desk.statistics().asked == 7, "each once"


async def test_whoever_is_asked_beside_is_asked_for_all_of_it(autojump_clock: MockClock) -> None:
    """Divided between the two it would be cheaper, and one of them hangs."""
    shown: Shown = (WETH, USDC, (("2400", "0.6"), ("2300", "100")), DEPTH)
    stage = Timed(
        alpha=Maker(HANGING.after_s, None, (WETH_USDC,)),
        beta=Maker(HANGING.after_s, None, (shown,)),
        gamma=Maker(QUICK_S, None, (shown,)),
    )
    assert makers_of(await stage.sell()) == ["gamma"]
    assert trio.current_time() == pytest.approx(PATIENCE_S + QUICK_S)
