"""Shares of makers' stock: who may reserve how much by unfilled firm quotes, and what refusals teach then.

Each maker's book holds 100 WETH, so a WETH is a hundredth of its stock.
"""

import contextlib

import pytest
import trio
import trio.lowlevel
from trio.testing import MockClock

from cambist.config.errors import NoRoute, RateLimited, ServiceUnavailable
from cambist.engine.host.admission.budgets import PPM, STOCK, STOCK_RESERVED, Stake
from cambist.engine.host.admission.ledger import Charge, Lack, Ledger
from cambist.engine.trade.routing.firm.firm_parts import HeldQuote
from cambist.engine.trade.routing.firm.stock import (
    Claimant,
    QuoteCauser,
    StockClaim,
    StockShares,
    causer_of,
    part_of,
)
from cambist.feeds.firm.firm_check import FirmFault
from support.makers.firm_books import DAI, USDC, WETH
from support.makers.timed_makers import HANGING, ONE, USER, Maker, Timed, makers_of, wall_ms

REST_MS = 5_000
OTHER_USER = b"\xb7" * 20
NOTHING = (Stake.NOTHING,)
ALLOWED = (Stake.ALLOWANCE, Stake.NOTHING)
SIGNED = (Stake.CONSENT, Stake.NOTHING)


def of(network: int, stakes: tuple[Stake, ...] = NOTHING, user: bytes = USER) -> Claimant:
    return Claimant(f"network 198.51.{network}", user, stakes)


async def sell(
    stage: Timed, claimant: Claimant | None, amount: int = ONE, held: list[HeldQuote] | None = None
) -> list[str]:
    """Have a sale of WETH signed for a claimant; the makers that signed."""
    plan, wanted = stage.plan(amount=amount)
    return makers_of(await stage.desk.fill(plan, wanted, user=USER, limit=0, held=held, claimant=claimant))


async def reserve(stage: Timed, stakes: tuple[Stake, ...], user: bytes = USER) -> int:
    """Let attackers of 200 networks have makers sign as much as they get; raw units of WETH."""
    got = 0
    for network in range(200):
        for _ in range(32):
            try:
                await sell(stage, of(network, stakes, user))
            except RateLimited:
                break
            got += ONE
    return got


@pytest.mark.parametrize(
    ("stakes", "percent"), [(NOTHING, 25), (ALLOWED, 50), ((Stake.CONSENT,), 25), (SIGNED, 50)]
)
async def test_all_callers_of_a_stake_together_have_its_share(
    autojump_clock: MockClock, stakes: tuple[Stake, ...], percent: int
) -> None:
    """One user who has signed has a quarter, whatever the networks; then the share of who shows less."""
    stage = Timed(alpha=Maker(0.0))
    assert await reserve(stage, stakes) == percent * ONE


async def test_an_eighth_is_for_keys_alone(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=Maker(0.0))
    got = sum([await reserve(stage, (Stake.CONSENT, *ALLOWED), bytes([number]) * 20) for number in range(9)])
    assert 85 * ONE <= got <= 100 * ONE * 7 // 8
    for _ in range(10):
        assert await sell(stage, None) == ["alpha"]


async def test_one_network_has_a_part_of_the_share_and_others_have_theirs(
    autojump_clock: MockClock,
) -> None:
    """An eighth and a sixty-fourth: 13 of 100 WETH. Another network that wants as much gets one."""
    stage = Timed(alpha=Maker(0.0))
    for _ in range(13):
        assert await sell(stage, of(1)) == ["alpha"]
    with pytest.raises(RateLimited, match=r"at most 12\.5 % \(stock for nothing, of a network with much\)"):
        await sell(stage, of(1))
    assert await sell(stage, of(2)) == ["alpha"]
    with pytest.raises(RateLimited, match="of everybody with much"):
        await sell(stage, of(2))
    assert await sell(stage, of(1, ALLOWED)) == ["alpha"]
    assert await sell(stage, None) == ["alpha"]
    assert len(stage.clients["alpha"].amounts) == 16


async def test_eight_networks_that_take_what_they_get_leave_the_ninth_its_part(
    autojump_clock: MockClock,
) -> None:
    stage = Timed(alpha=Maker(0.0))
    for network in range(8):
        for _ in range(32):
            with contextlib.suppress(RateLimited):
                await sell(stage, of(network))
    assert await sell(stage, of(9)) == ["alpha"]


async def test_another_maker_takes_the_place_of_one_without_a_share_left(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=Maker(0.0), beta=Maker(0.0))
    began = trio.current_time()
    assert await sell(stage, of(1), 12 * ONE) == ["alpha"]
    assert await sell(stage, of(1), 12 * ONE) == ["beta"]
    assert trio.current_time() == began
    assert stage.clients["alpha"].amounts == [12 * ONE]
    assert stage.desk.statistics().asked == 2


async def test_shares_of_filled_swaps_come_back_before_another_maker_is_asked(
    autojump_clock: MockClock,
) -> None:
    """The chain is asked where a share lacks: not before, and for each swap anew."""
    stage = Timed(alpha=Maker(0.0), beta=Maker(0.0))
    held: list[HeldQuote] = []
    looks: list[float] = []

    async def freed() -> bool:
        looks.append(trio.current_time())
        await trio.sleep(0.05)
        for claim in [quote.claim for quote in held if quote.claim]:
            stage.desk.stock.drop(claim)
        return bool(held)

    plan, wanted = stage.plan(amount=12 * ONE)
    for number in range(3):
        ours: list[HeldQuote] = []
        route = await stage.desk.fill(
            plan, wanted, user=USER, limit=0, held=ours, claimant=of(1), freed=freed
        )
        assert makers_of(route) == ["alpha"]
        assert len(looks) == number
        held = ours
    held = []
    route = await stage.desk.fill(plan, wanted, user=USER, limit=0, claimant=of(1), freed=freed)
    assert makers_of(route) == ["beta"]


@pytest.mark.parametrize("is_silent", [False, True])
async def test_a_chain_that_does_not_answer_frees_no_share_and_blames_no_maker(
    autojump_clock: MockClock, *, is_silent: bool
) -> None:
    stage = Timed(alpha=Maker(0.0), beta=Maker(0.0))
    assert await sell(stage, of(1), 12 * ONE) == ["alpha"]

    async def freed() -> bool:
        if is_silent:
            await trio.sleep_forever()
        raise ServiceUnavailable("the chain does not answer")

    plan, wanted = stage.plan(amount=12 * ONE)
    route = await stage.desk.fill(plan, wanted, user=USER, limit=0, claimant=of(1), freed=freed)
    assert makers_of(route) == ["beta"]
    assert stage.clients["alpha"].amounts == [12 * ONE]
    assert stage.health["alpha"].outcomes == {"clean": 1}


async def test_a_request_of_more_than_a_network_may_have_is_not_sent(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=Maker(0.0))
    with pytest.raises(RateLimited):
        await sell(stage, of(1), 13 * ONE)
    assert stage.clients["alpha"].amounts == []
    assert stage.health["alpha"].outcomes == {}
    assert await sell(stage, of(1, SIGNED), 25 * ONE) == ["alpha"]


async def test_a_quote_weighs_until_it_expires_and_on_its_network_for_ten_minutes(
    autojump_clock: MockClock,
) -> None:
    stage = Timed(alpha=Maker(0.0))
    for network in range(25):
        await sell(stage, of(network))
    with pytest.raises(RateLimited, match="of everybody") as told:
        await sell(stage, of(100))
    assert told.value.retry_after_s == 301
    await trio.sleep(302)
    assert await sell(stage, of(100), 12 * ONE) == ["alpha"]
    await trio.sleep(302)
    with pytest.raises(RateLimited, match="of a network with much"):
        await sell(stage, of(100), 12 * ONE)
    await trio.sleep(300)
    assert await sell(stage, of(100), 12 * ONE) == ["alpha"]


async def test_what_is_filled_is_given_back_to_the_network_too(autojump_clock: MockClock) -> None:
    stage, held = Timed(alpha=Maker(0.0)), list[HeldQuote]()
    await sell(stage, of(1), held=held)
    (claim,) = [quote.claim for quote in held]
    assert claim is not None
    assert stage.desk.stock.reserved("alpha", USDC, wall_ms()) == (PPM // 100, wall_ms() // 1_000 + 300)
    stage.desk.stock.drop(claim)
    assert stage.desk.stock.reserved("alpha", USDC, wall_ms()) == (0, 0)
    assert await sell(stage, of(1)) == ["alpha"]


async def test_a_refusal_costs_no_share_and_a_maker_that_hangs_may_have_signed(
    autojump_clock: MockClock,
) -> None:
    stage = Timed(alpha=Maker(0.0, FirmFault.REFUSED), beta=HANGING)
    with pytest.raises(NoRoute):
        await sell(stage, of(1))
    assert stage.desk.stock.reserved("alpha", USDC, wall_ms()) == (0, 0)
    part, until_s = stage.desk.stock.reserved("beta", USDC, wall_ms())
    assert (part, until_s) == (PPM // 100, wall_ms() // 1_000 + 120)


async def test_a_cancelled_swap_keeps_no_share_beyond_what_may_be_signed(autojump_clock: MockClock) -> None:
    stage = Timed(alpha=HANGING)
    with trio.move_on_after(0.01):
        await sell(stage, of(1))
    assert stage.desk.stock.reserved("alpha", USDC, wall_ms())[0] == PPM // 100
    await trio.sleep(122)
    assert stage.desk.stock.reserved("alpha", USDC, wall_ms()) == (0, 0)


async def test_a_request_that_begins_as_the_swap_ends_claims_nothing(autojump_clock: MockClock) -> None:
    """Both hops fail in one pass: a stand-in is found for the first, and none for the second."""
    refusing, first = FirmFault.REFUSED, (WETH, USDC, (("2500", "100"),), (("2600", "100"),))
    stage = Timed(
        alpha=Maker(0.0, refusing, (first,)),
        beta=Maker(0.0, None, ((WETH, USDC, (("2490", "100"),), (("2610", "100"),)),)),
        gamma=Maker(0.0, refusing, ((USDC, DAI, (("0.99", "300000"),), (("1.01", "300000"),)),)),
    )
    plan, wanted = stage.plan(DAI)
    with pytest.raises(NoRoute):
        await stage.desk.fill(plan, wanted, user=USER, limit=0, claimant=None)
    await trio.lowlevel.checkpoint()
    sent = bool(stage.clients["beta"].amounts)
    assert (stage.desk.stock.reserved("beta", USDC, wall_ms())[0] > 0) == sent
    await trio.sleep(600)
    assert stage.desk.stock.reserved("beta", USDC, wall_ms()) == (0, 0)


async def test_a_bound_that_our_callers_may_have_caused_ends_with_their_quotes(
    autojump_clock: MockClock,
) -> None:
    """Its quotes last for 300 s; two refusals just before their end count for nothing after it."""
    stage = Timed(alpha=Maker(0.0))
    await sell(stage, None)
    await trio.sleep(298)
    stage.clients["alpha"].maker = Maker(0.0, FirmFault.REFUSED)
    for _ in range(2):
        with pytest.raises(NoRoute):
            await sell(stage, None)
    assert [until_ms for *_, until_ms in stage.bounds] == [2_000, 2_000]
    await trio.sleep(4)
    with pytest.raises(NoRoute):
        await sell(stage, None)
    assert stage.bounds[-1] == ("alpha", WETH, USDC, ONE // 2, REST_MS)


async def test_a_refusal_that_our_callers_explain_teaches_nothing(autojump_clock: MockClock) -> None:
    """They hold 60 of its 100 WETH, and 50 more are refused."""
    stage = Timed(alpha=Maker(0.0))
    await sell(stage, None, 60 * ONE)
    stage.clients["alpha"].maker = Maker(0.0, FirmFault.REFUSED)
    with pytest.raises(NoRoute):
        await sell(stage, None, 50 * ONE)
    assert stage.bounds == []
    with pytest.raises(NoRoute):
        await sell(stage, None, 40 * ONE)
    assert len(stage.bounds) == 1


def claimed(
    stock: StockShares, part_ppm: int, claimant: Claimant | None = None, token: bytes = USDC, now_ms: int = 0
) -> StockClaim:
    claim = stock.claim(claimant, "alpha", token, part_ppm, now_ms)
    assert isinstance(claim, StockClaim)
    return claim


def test_a_claim_lasts_through_the_last_second_of_its_quote() -> None:
    stock = StockShares(Ledger(), 1)
    for part, expiry_s in ((7, 20), (8, 10), (9, 10)):
        stock.keep(claimed(stock, part), expiry_s)
    assert stock.reserved("alpha", USDC, 10_999) == (7 + 8 + 9, 20)
    assert stock.reserved("alpha", USDC, 11_000) == (7, 20)
    assert stock.reserved("alpha", USDC, 20_999) == (7, 20)
    assert stock.reserved("alpha", USDC, 21_000) == (0, 0)


def test_room_returns_right_after_the_last_second_of_a_quote() -> None:
    stock = StockShares(Ledger(), 1)
    for network, part in ((1, PPM // 4), (2, PPM // 8)):
        stock.keep(claimed(stock, part, of(network, (Stake.CONSENT,), bytes([network]) * 20)), 10)
    third = of(3, (Stake.CONSENT,))
    assert isinstance(stock.claim(third, "alpha", USDC, 1, 10_999), Lack)
    assert isinstance(stock.claim(third, "alpha", USDC, 1, 11_000), StockClaim)


def test_the_greatest_reserved_part_of_each_maker_is_told_by_stake() -> None:
    stock = StockShares(Ledger(), 1)
    assert stock.greatest(0) == {}
    stock.keep(claimed(stock, 3, of(1)), 10)
    stock.keep(claimed(stock, 5, of(1, ALLOWED)), 10)
    stock.keep(claimed(stock, 6, None, DAI), 10)
    stock.keep(claimed(stock, 4, of(1, SIGNED), DAI), 10)
    assert stock.greatest(10_999) == {"alpha": {"all": 10, "nothing": 3, "allowance": 5, "consent": 4}}
    assert stock.greatest(11_000) == {}


def test_a_request_under_way_reserves_a_part_without_an_end_and_never_none() -> None:
    stock = StockShares(Ledger(), 1)
    first = claimed(stock, 0)
    assert stock.reserved("alpha", USDC, 0) == (1, 0)
    claimed(stock, 1)
    assert stock.reserved("alpha", USDC, 0) == (2, 0)
    stock.drop(first)
    assert stock.reserved("alpha", USDC, 0) == (1, 0)


def test_who_has_no_stake_at_all_has_no_room() -> None:
    found = StockShares(Ledger(), 1).claim(of(1, ()), "alpha", USDC, 7, 0)
    assert found == Lack(Charge(STOCK_RESERVED, (1, "alpha", USDC), 7), 0)


def test_the_wait_is_until_the_first_quote_has_expired_and_a_second_at_least() -> None:
    stock, now_s = StockShares(Ledger(), 1), 1_795_000_000
    assert stock.next_end_s(1_000 * now_s) == 1
    for end_s in (20, 10):
        stock.keep(claimed(stock, 1), now_s + end_s)
    waits = [(0, 11), (999, 11), (1_000, 10), (9_999, 2), (10_000, 1), (12_000, 1)]
    assert [stock.next_end_s(1_000 * now_s + after_ms) for after_ms, _ in waits] == [
        wait for _, wait in waits
    ]


def test_outcomes_belong_to_the_key_or_network_and_to_the_trader_of_the_venues_own_fills() -> None:
    assert causer_of(None, "key app", USER) == QuoteCauser("key app", is_shown=True)
    assert causer_of(None, "", USER) == QuoteCauser(USER, is_shown=True)
    assert causer_of(of(1), "", USER) == QuoteCauser("network 198.51.1", is_shown=False)
    assert causer_of(of(1, SIGNED), "", USER) == QuoteCauser("network 198.51.1", is_shown=True)


def test_parts_are_rounded_up_and_an_unknown_whole_is_all() -> None:
    assert part_of(1, 3 * PPM) == 1
    assert part_of(3, 3) == PPM
    assert part_of(5, 0) == PPM


def test_the_shares_leave_an_eighth_for_keys() -> None:
    assert sum(ways[0].together[0].most for ways in STOCK.values()) == PPM * 7 // 8
