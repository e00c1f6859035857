"""Consequences of makers' behaviour: bounds, rests, probes and the log."""

import pytest
import structlog
import trio
from trio.testing import MockClock

from cambist.config.errors import NoRoute
from cambist.config.limits import MAKER_UNSERVING_S
from cambist.config.timeouts import FIRM_PROBE_LOOK_S
from cambist.engine.host.admission.budgets import Stake
from cambist.engine.trade.routing.firm.firm_parts import HeldQuote
from cambist.engine.trade.routing.firm.stock import Claimant
from cambist.feeds.firm.firm_check import FirmFault
from cambist.feeds.firm.maker_health import FaultTold, HealthReport
from support.makers.firm_books import USDC, WETH
from support.makers.timed_makers import HANGING, ONE, USER, Maker, Timed, makers_of, wall_ms

REFUSING = Maker(0.0, FirmFault.REFUSED)
REST_MS = 5_000


def told(stage: Timed, name: str) -> HealthReport:
    return stage.health[name].report(wall_ms())


async def test_a_refusal_bounds_what_is_asked_for_and_rests_nothing(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=REFUSING, beta=Maker(0.0))
    for _ in range(3):
        assert makers_of(await stage.sell()) == ["beta"]
    assert stage.rests == []
    assert stage.bounds == [
        ("alpha", WETH, USDC, ONE // 2, REST_MS),
        ("alpha", WETH, USDC, ONE // 4, 2 * REST_MS),
        ("alpha", WETH, USDC, ONE // 8, 4 * REST_MS),
    ]
    assert told(stage, "alpha").maker.score == 100
    assert [fault.detail for fault in told(stage, "alpha").last_faults] == ["refused"] * 3


@pytest.mark.parametrize("buys", [False, True])
async def test_a_bound_is_in_units_of_the_base_token_either_way(
    autojump_clock: MockClock, *, buys: bool
) -> None:
    """A purchase with WETH, or of WETH with USDC: the base token is WETH."""
    stage = Timed(alpha=REFUSING)
    with pytest.raises(NoRoute):
        await stage.buy(USDC, 2_500 * 10**6) if buys else await stage.sell_usdc(2_600 * 10**6)
    src, dest = (WETH, USDC) if buys else (USDC, WETH)
    assert stage.bounds == [("alpha", src, dest, ONE // 2, REST_MS)]


async def test_what_is_signed_widens_the_bound(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=REFUSING, beta=Maker(0.0))
    await stage.sell()
    stage.clients["alpha"].maker = Maker(0.0)
    assert makers_of(await stage.sell(amount=ONE // 4)) == ["alpha"]
    assert stage.bounds[1:] == [("alpha", WETH, USDC, ONE, REST_MS)]


async def test_a_quote_is_held_against_the_book_that_the_route_uses(autojump_clock: MockClock) -> None:
    """Of a maker's books of both directions the other one is first here, better and too small."""
    other = (USDC, WETH, (("0.0003", "100"),), (("0.000384", "3000"),))
    stage = Timed(alpha=Maker(0.0, None, (other, (WETH, USDC, (("2500", "100"),), (("2600", "100"),)))))
    assert makers_of(await stage.sell()) == ["alpha"]
    assert told(stage, "alpha").maker.reasons == {}


async def test_a_stand_in_is_asked_by_the_book_that_the_route_uses(autojump_clock: MockClock) -> None:
    """Without a plan of its own: the other book of `beta` is the better one, for less than is signed."""
    other = (USDC, WETH, (("0.0003", "100"),), (("0.000384", "3000"),))
    stage = Timed(
        alpha=REFUSING, beta=Maker(0.0, None, (other, (WETH, USDC, (("2400", "100"),), (("2600", "100"),))))
    )
    assert makers_of(await stage.sell()) == ["beta"]
    assert told(stage, "beta").maker.reasons == {}


async def test_a_good_answer_to_a_probe_ends_a_rest(autojump_clock: MockClock) -> None:
    """The first probe is a quarter of the rest after its beginning, for a tenth of what failed."""
    stage = Timed(alpha=HANGING, beta=Maker(0.0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.desk.scores.run)
        for _ in range(3):
            assert makers_of(await stage.sell()) == ["beta"]
        assert stage.rests == [("alpha", REST_MS)]
        began = trio.current_time()
        stage.clients["alpha"].maker = Maker(0.0)
        assert told(stage, "alpha").pairs[0].health.block_until_ms
        await trio.sleep(REST_MS / 1_000 / 4 + 0.6)
        assert not told(stage, "alpha").pairs[0].health.block_until_ms
        await trio.sleep(REST_MS / 1_000 / 2)  # no further probe
        nursery.cancel_scope.cancel()
    assert stage.rests[1:] == [("alpha", 0), ("all of alpha", 0)]
    *_, probed_at = stage.clients["alpha"].asked_at
    assert 1.25 <= probed_at - began <= 1.75
    assert stage.clients["alpha"].amounts == [ONE, ONE, ONE, ONE // 10]
    assert stage.desk.statistics().probes == 1


@pytest.mark.parametrize(("after_ms", "probes"), [(REST_MS // 4, 1), (REST_MS, 0)])
async def test_a_probe_is_due_at_its_very_millisecond_and_not_at_the_end_of_the_rest(
    autojump_clock: MockClock, after_ms: int, probes: int
) -> None:
    stage = Timed(alpha=HANGING, beta=Maker(0.0))
    for _ in range(3):
        await stage.sell()
    began_ms = told(stage, "alpha").pairs[0].health.block_until_ms - REST_MS
    await trio.sleep((began_ms + after_ms - wall_ms()) / 1_000 - FIRM_PROBE_LOOK_S)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.desk.scores.run)
        await trio.sleep(1.5 * FIRM_PROBE_LOOK_S)
        nursery.cancel_scope.cancel()
    assert stage.desk.statistics().probes == probes


async def test_three_probes_that_fail_leave_a_rest_as_it_is(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING, beta=Maker(0.0))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.desk.scores.run)
        for _ in range(3):
            await stage.sell()
        await trio.sleep(2 * REST_MS / 1_000)
        nursery.cancel_scope.cancel()
    assert stage.rests == [("alpha", REST_MS)]
    assert stage.desk.statistics().probes == 3
    assert told(stage, "alpha").maker.quotes == 3


async def test_what_an_operator_releases_is_asked_again(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING, beta=Maker(0.0))
    for _ in range(3):
        await stage.sell()
    stage.desk.scores.release("alpha")
    assert stage.freed == ["alpha"]
    assert told(stage, "alpha").pairs == ()


async def test_a_release_ends_the_probes_of_that_maker_alone(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING, beta=HANGING, gamma=Maker(0.3))
    for _ in range(3):
        await stage.sell()
    stage.desk.scores.release("alpha")
    await run_probes(stage)
    assert {name: len(client.asked_at) for name, client in stage.clients.items()} == {
        "alpha": 3,
        "beta": 3 + 3,
        "gamma": 3,
    }


async def test_a_maker_that_the_operator_excludes_is_not_probed(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING, beta=Maker(0.0))
    for _ in range(3):
        await stage.sell()
    stage.excluded.add("alpha")
    await run_probes(stage)
    assert stage.desk.statistics().probes == 0


async def test_a_probe_asks_for_a_unit_at_least(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING)
    for _ in range(3):
        with pytest.raises(NoRoute):
            await stage.sell_usdc(9)
    stage.clients["alpha"].maker = Maker(0.0)
    await run_probes(stage)
    assert stage.clients["alpha"].amounts == [9, 9, 9, 1]
    assert stage.expired == ["alpha"]


async def run_probes(stage: Timed) -> None:
    """Let a whole rest pass."""
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.desk.scores.run)
        await trio.sleep(REST_MS / 1_000)
        nursery.cancel_scope.cancel()


@pytest.mark.parametrize("keys", [True, False])
async def test_a_maker_that_does_not_serve_most_callers_that_have_shown_a_stake_rests(
    autojump_clock: MockClock, *, keys: bool
) -> None:
    """Four are served and four refused; then six of ten that it has answered are not served."""
    stage = Timed(alpha=Maker(0.0), beta=Maker(0.0))
    outcomes = [None] * 4 + [FirmFault.REFUSED] * 4 + [FirmFault.BLACKLISTED] * 6
    for number, fault in enumerate(outcomes):
        assert stage.rests == []
        stage.clients["alpha"].maker = Maker(0.0, fault)
        claimant = None if keys else Claimant(f"network {number}", USER, (Stake.NOTHING,))
        plan, wanted = stage.plan(amount=ONE // 100)
        await stage.desk.fill(
            plan, wanted, user=USER, limit=0, claimant=claimant, account=f"key {number}" if keys else ""
        )
    assert stage.rests == ([("all of alpha", 1_000 * MAKER_UNSERVING_S)] if keys else [])


@pytest.mark.parametrize("buys", [False, True])
async def test_a_maker_is_told_what_its_book_shows_and_what_it_signed(
    autojump_clock: MockClock, *, buys: bool
) -> None:
    stage = Timed(alpha=Maker(0.0, worse_bps=100))
    await (stage.buy(USDC, 2_500 * 10**6) if buys else stage.sell())
    (fault,) = told(stage, "alpha").last_faults
    shown, signed = (ONE, ONE * 101 // 100) if buys else (2_500 * 10**6, 2_475 * 10**6)
    text = f"drifted: its book {'takes' if buys else 'gives'} {shown}, it signed {signed}, in its own favour"
    assert fault == FaultTold(wall_ms(), FirmFault.DRIFTED, WETH, USDC, text)


async def test_each_fault_is_a_line_in_the_log_and_a_flood_of_them_is_not(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING, beta=Maker(0.0, FirmFault.INVALID), gamma=Maker(0.0))
    with structlog.testing.capture_logs() as logs:
        for _ in range(20):
            await stage.sell()
    told = [(line["maker"], line["detail"].rpartition(": ")[2]) for line in logs]
    assert told == [("alpha", "no answer in time"), ("beta", "invalid")]
    assert f"0x{WETH.hex()} for 0x{USDC.hex()}: late" in logs[0]["detail"]


async def test_every_quote_that_may_be_held_back_is_told(autojump_clock: MockClock) -> None:
    """Of the maker that signed and of those that may still sign; not of the one that refused."""
    stage = Timed(alpha=HANGING, beta=Maker(0.3), gamma=Maker(0.01), delta=REFUSING)
    held: list[HeldQuote] = []
    plan, wanted = stage.plan()
    await stage.desk.fill(plan, wanted, user=USER, limit=0, held=held)
    expiry_s = wall_ms() // 1_000
    assert sorted((quote.expiry_s - expiry_s, quote.amount) for quote in held) == [
        (120, 0),
        (120, 0),
        (300, 2_498 * 10**6),
    ]
    assert sum(bool(quote.digest32) for quote in held) == 1
