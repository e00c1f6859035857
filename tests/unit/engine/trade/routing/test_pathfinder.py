"""Routes in stories: which way, by whom, for how much gas (choices.md#quotes-and-routes)."""

from decimal import Decimal

import msgspec
import pytest

from cambist.codecs.messages.vocabulary import Side
from cambist.engine.trade.routing.search import pathfinder
from cambist.engine.trade.routing.search.gas import FILL, HOP, PURCHASE, TRANSACTION
from cambist.engine.trade.routing.search.ladders import MergedLadder
from cambist.engine.trade.routing.search.pathfinder import NoPlanReason, Pathfinder
from cambist.engine.trade.routing.search.plan import MakerShare, RoutePlan, SwapRequest, Taxes
from cambist.feeds.books.pair_index import LiveBook, PairIndex
from support.call_counts import counted
from support.makers.live_books import DAI, ODD, ONE, USDC, WBTC, WETH, a_book, an_index

ALPHA = a_book("alpha", WETH, USDC, bids="2500 10 | 2400 90", asks="2510 10")
BETA = a_book("beta", WETH, USDC, bids="2499 10", asks="2511 10")
USDC_DAI = a_book("alpha", USDC, DAI, bids="0.999 1000000", asks="1.001 1000000")
WETH_DAI = a_book("beta", WETH, DAI, bids="2490 10", asks="2512 10")
SOLD = SwapRequest(WETH, USDC, ONE[WETH], Side.SELL)


def _find(wanted: SwapRequest, *books: LiveBook) -> RoutePlan | None:
    return Pathfinder(an_index(*books), WETH).find(wanted)


def _found(wanted: SwapRequest, *books: LiveBook) -> RoutePlan:
    plan = _find(wanted, *books)
    assert plan is not None
    return plan


def _with(wanted: SwapRequest, **changed: object) -> SwapRequest:
    return msgspec.structs.replace(wanted, **changed)


def _ways(plan: RoutePlan) -> list[tuple[bytes, ...]]:
    return [(path.hops[0].src_token, *(hop.dest_token for hop in path.hops)) for path in plan.paths]


def test_one_maker_fills_a_sale() -> None:
    plan = _found(SOLD, ALPHA, BETA)
    assert (plan.src_amount, plan.dest_amount) == (ONE[WETH], 2_500 * ONE[USDC])
    (path,) = plan.paths
    (hop,) = path.hops
    assert hop.shares == (MakerShare("alpha", ONE[WETH], 2_500 * ONE[USDC]),)
    assert plan.gas == TRANSACTION + FILL
    assert plan.makers() == {"alpha"}


def test_a_purchase_is_worked_out_from_the_destination_back() -> None:
    plan = _found(SwapRequest(USDC, DAI, 500 * ONE[DAI], Side.BUY), USDC_DAI)
    assert plan.dest_amount == 500 * ONE[DAI]
    assert plan.src_amount == 500_500_501
    plan = _found(SwapRequest(WETH, DAI, 999 * ONE[DAI], Side.BUY), ALPHA, USDC_DAI)
    assert _ways(plan) == [(WETH, USDC, DAI)]
    assert (plan.src_amount, plan.dest_amount) == (ONE[WETH] * 4 // 10, 999 * ONE[DAI])
    assert plan.gas == TRANSACTION + PURCHASE + HOP + 2 * FILL


def test_makers_share_what_is_too_much_for_one() -> None:
    plan = _found(_with(SOLD, amount=15 * ONE[WETH]), ALPHA, BETA)
    shares = plan.paths[0].hops[0].shares
    assert [(share.maker, share.src_amount // ONE[WETH]) for share in shares] == [("alpha", 10), ("beta", 5)]


def test_the_better_way_is_taken() -> None:
    wanted = SwapRequest(WETH, DAI, ONE[WETH], Side.SELL)
    assert _ways(_found(wanted, ALPHA, USDC_DAI, WETH_DAI)) == [(WETH, USDC, DAI)]
    better = a_book("beta", WETH, DAI, bids="2498 10")
    assert _ways(_found(wanted, ALPHA, USDC_DAI, better)) == [(WETH, DAI)]


def test_gas_turns_the_choice_to_the_shorter_way() -> None:
    """A further hop needs 97,000 units: at 50 gwei 0.00485 WETH, some 12 DAI; it brings 7.5."""
    wanted = SwapRequest(WETH, DAI, ONE[WETH], Side.SELL)
    for gwei, ways in ((0, [(WETH, USDC, DAI)]), (10, [(WETH, USDC, DAI)]), (50, [(WETH, DAI)])):
        plan = _found(_with(wanted, gas_price_wei=gwei * 10**9), ALPHA, USDC_DAI, WETH_DAI)
        assert _ways(plan) == ways


def test_gas_leaves_out_a_maker_who_is_not_worth_a_fill() -> None:
    near = a_book("beta", WETH, USDC, bids="2500.1 0.1", asks="2511 10")
    for gwei, makers in ((0, {"alpha", "beta"}), (10, {"alpha"})):
        plan = _found(_with(SOLD, gas_price_wei=gwei * 10**9), ALPHA, near)
        assert plan.makers() == makers


@pytest.mark.parametrize("dest", [USDC, DAI])
def test_gas_leaves_out_whoever_of_three_earns_less_than_a_fill_on_any_hop(dest: bytes) -> None:
    """gamma earns half a cent, and beta 198 dollars: a fill is 0.17 dollars at a gwei."""
    books = [
        a_book("alpha", WETH, USDC, bids="2500 6 | 2400 10"),
        a_book("beta", WETH, USDC, bids="2499 3", asks="2502 3"),
        a_book("gamma", WETH, USDC, bids="2500.5 0.01"),
    ]
    makers = ({"alpha", "beta", "gamma"}, {"alpha", "beta"}, {"alpha", "beta"}, {"alpha"})
    for gwei, used in zip((0, 1, 1_000, 1_300), makers, strict=True):
        wanted = _with(SOLD, dest_token=dest, amount=8 * ONE[WETH], gas_price_wei=gwei * 10**9)
        first = _found(wanted, *books, USDC_DAI).paths[0].hops[0]
        assert {share.maker for share in first.shares} == used


def test_a_way_with_many_fills_loses_to_one_with_few() -> None:
    """Four makers bring 11.75 DAI more, and their gas costs 13.4 more than that of a second hop."""
    direct = [a_book(f"maker{number}", WETH, DAI, bids="2500 2.5") for number in range(4)]
    over_usdc = ALPHA, a_book("alpha", USDC, DAI, bids="0.99953 1000000", asks="1.0001 1")
    wanted = SwapRequest(WETH, DAI, 10 * ONE[WETH], Side.SELL)
    for gwei, way in ((0, (WETH, DAI)), (50, (WETH, USDC, DAI))):
        plan = _found(_with(wanted, gas_price_wei=gwei * 10**9), *direct, *over_usdc)
        assert _ways(plan) == [way]


def test_a_path_that_falls_behind_on_a_hop_is_filled_no_further(monkeypatch: pytest.MonkeyPatch) -> None:
    """Seven DAI are less than the gas that two fills save, 13.4 DAI, and more than the 5.1 that one saves."""
    books = [
        *(a_book(f"maker{number}", WETH, DAI, bids="2500 2.5") for number in range(4)),
        *(a_book(maker, WETH, USDC, bids="2500 5", asks="2500.1 1") for maker in ("alpha", "beta")),
        a_book("alpha", USDC, DAI, bids="0.99972 1000000", asks="1.0001 1"),
    ]
    wanted = SwapRequest(WETH, DAI, 10 * ONE[WETH], Side.SELL, gas_price_wei=50 * 10**9)
    filled = counted(monkeypatch, MergedLadder, "split_after_gas")
    assert _ways(_found(wanted, *books)) == [(WETH, DAI)]
    assert filled == {"split_after_gas": 2}


@pytest.mark.parametrize("side", Side)
def test_makers_alone_are_not_asked_where_they_can_bring_no_more(
    side: Side, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither where one fills each hop anyway, nor where each has a worse price for the rest."""
    sells = side is Side.SELL
    books = [
        a_book(maker, WETH, USDC, bids="2500 6 | 2000 9", asks="2510 6 | 3000 9")
        for maker in ("alpha", "beta")
    ]
    asked = counted(monkeypatch, MergedLadder, "best_single")
    for amount, count in ((6, 1), (10, 2)):
        ends = (WETH, USDC) if sells else (USDC, WETH)
        plan = _found(SwapRequest(*ends, amount * ONE[WETH], side), *books)
        assert len(plan.makers()) == count
    assert asked == {"best_single": 0}


def test_makers_share_where_one_alone_brings_no_more() -> None:
    books = a_book("alpha", WETH, USDC, bids="2500 1"), a_book("beta", WETH, USDC, bids="2500 10")
    assert _found(_with(SOLD, amount=2 * ONE[WETH]), *books).makers() == {"alpha", "beta"}


def test_one_maker_is_better_where_two_lose_more_to_rounding() -> None:
    """1.95 and 1.9 units are one each; 3.8 are three."""
    books = a_book("alpha", WETH, ODD, bids="3.9 0.5"), a_book("beta", WETH, ODD, bids="3.8 10")
    plan = _found(_with(SOLD, dest_token=ODD), *books)
    assert plan.dest_amount == 3
    assert plan.makers() == {"beta"}


def test_one_maker_is_better_than_another_who_takes_a_unit_that_brings_nothing() -> None:
    """alpha's unit brings nothing, and hardly more as beta's tenth; beta's nine bring 7.2 units."""
    decimals = {WETH: 0, ODD: 0}
    books = [
        a_book(maker, WETH, ODD, bids=bids, decimals=decimals)
        for maker, bids in (("alpha", "0.9 1"), ("beta", "0.8 9 | 0.01 90"), ("gamma", "0.8 100"))
    ]
    plan = _found(SwapRequest(WETH, ODD, 10, Side.SELL), *books)
    assert plan.paths[0].hops[0].shares == (MakerShare("gamma", 10, 8),)


def test_one_maker_is_taken_where_all_bring_too_much_for_the_next_hop() -> None:
    first = a_book("alpha", WETH, USDC, bids="2500 1 | 2000 9"), a_book("beta", WETH, USDC, bids="2001 10")
    second = a_book("alpha", USDC, DAI, bids="1 4500")
    shallow, worse = (
        a_book("gamma", WETH, DAI, bids="1 1"),
        a_book("gamma", WETH, DAI, bids="1900 9", asks="2000 9"),
    )
    wanted = SwapRequest(WETH, DAI, 2 * ONE[WETH], Side.SELL, gas_price_wei=10**10)
    for direct in ((), (shallow,), (worse,)):
        plan = _found(wanted, *first, second, *direct)
        assert plan.dest_amount == 4_500 * ONE[DAI]
        assert plan.makers() == {"alpha"}


def test_gas_without_a_price_is_left_out() -> None:
    near = a_book("beta", USDC, DAI, bids="0.9991 0.1")
    wanted = SwapRequest(USDC, DAI, ONE[USDC], Side.SELL, gas_price_wei=10**12)
    assert _found(wanted, USDC_DAI, near).makers() == {"alpha", "beta"}
    assert Pathfinder(an_index(USDC_DAI, near, ALPHA), b"").find(wanted) == _found(wanted, USDC_DAI, near)
    assert _found(wanted, USDC_DAI, near, ALPHA).makers() == {"alpha"}


@pytest.mark.parametrize("side", Side)
def test_a_large_amount_is_divided_over_two_paths(side: Side) -> None:
    books = ALPHA, USDC_DAI, WETH_DAI
    amount = 15 * ONE[WETH] if side is Side.SELL else 37_000 * ONE[DAI]
    plan = _found(SwapRequest(WETH, DAI, amount, side), *books)
    assert sorted(_ways(plan)) == [(WETH, USDC, DAI), (WETH, DAI)]
    sums = [sum(getattr(path, end) for path in plan.paths) for end in ("src_amount", "dest_amount")]
    assert sums == [plan.src_amount, plan.dest_amount]
    assert amount in sums
    direct = next(path for path in plan.paths if len(path.hops) == 1)
    fixed = direct.src_amount if side is Side.SELL else direct.dest_amount
    assert Decimal(fixed) / amount == pytest.approx(Decimal(1) / 3, rel=Decimal("0.05"))


@pytest.mark.parametrize("side", Side)
def test_a_small_part_is_given_to_a_second_path_that_is_thin(side: Side) -> None:
    """Half of the amount on each path is worse than all of it on one."""
    deep = a_book("beta", WETH, DAI, bids="2490 90 | 1000 90")
    thin = a_book("alpha", WETH, USDC, bids="2500 10 | 100 90")
    amount = 100 * ONE[WETH] if side is Side.SELL else 249_075 * ONE[DAI]
    plan = _found(SwapRequest(WETH, DAI, amount, side), deep, thin, USDC_DAI)
    assert _ways(plan) == [(WETH, DAI), (WETH, USDC, DAI)]


def test_two_paths_pay_for_one_transaction() -> None:
    """A second path brings 0.185 WETH more, and needs a fill: 0.066 WETH, or 0.264 where gas is dearer."""
    wanted = SwapRequest(WETH, DAI, 15 * ONE[WETH], Side.SELL)
    for gwei, paths in ((1_000, 2), (4_000, 1)):
        plan = _found(_with(wanted, gas_price_wei=gwei * 10**9), ALPHA, USDC_DAI, WETH_DAI)
        assert len(plan.paths) == paths
        assert plan.gas == TRANSACTION + HOP + (paths + 1) * FILL


def test_a_second_path_pays_for_each_of_its_fills() -> None:
    """It brings 0.185 WETH more, and needs two fills: 0.17 WETH, or 0.21 where gas is dearer."""
    thin = [a_book(maker, WETH, DAI, bids="2490 2.6", asks="2512 10") for maker in ("beta", "gamma")]
    wanted = SwapRequest(WETH, DAI, 15 * ONE[WETH], Side.SELL)
    for gwei, ways in ((1_300, [(WETH, USDC, DAI), (WETH, DAI)]), (1_600, [(WETH, USDC, DAI)])):
        assert _ways(_found(_with(wanted, gas_price_wei=gwei * 10**9), ALPHA, USDC_DAI, *thin)) == ways


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize("is_direct_better", [False, True])
def test_a_second_path_may_be_worse_than_the_average_of_the_first(side: Side, is_direct_better: bool) -> None:
    """One has ten at 2500 and then 2400; the other has 2440, less than the average of twenty on the first."""
    first, second = "2500 10 | 2400 90", "2440 90"
    if is_direct_better:
        first, second = second, first
    books = (
        a_book("alpha", WETH, USDC, bids=first),
        a_book("alpha", USDC, DAI, bids="1 1000000"),
        a_book("beta", WETH, DAI, bids=second),
    )
    amount = 20 * ONE[WETH] if side is Side.SELL else 49_000 * ONE[DAI]
    plan = _found(SwapRequest(WETH, DAI, amount, side), *books)
    better = (WETH, DAI) if is_direct_better else (WETH, USDC, DAI)
    best = next(path for path, way in zip(plan.paths, _ways(plan), strict=True) if way == better)
    assert len(plan.paths) == 2
    assert Decimal(best.src_amount) / ONE[WETH] == pytest.approx(10, rel=Decimal("0.01"))


def test_two_paths_fill_what_neither_can_alone() -> None:
    books = ALPHA, USDC_DAI, WETH_DAI
    for amount in (109 * ONE[WETH], 110 * ONE[WETH]):
        plan = _found(SwapRequest(WETH, DAI, amount, Side.SELL), *books)
        assert len(plan.paths) == 2
        assert plan.paths[0].src_amount > plan.paths[1].src_amount
    assert _find(SwapRequest(WETH, DAI, 110 * ONE[WETH] + 1, Side.SELL), *books) is None


def test_two_paths_share_no_pair() -> None:
    """Both ways lead over WETH/USDC, which is deep enough once only."""
    ends = [a_book("alpha", USDC, other, bids="1 20000") for other in (DAI, ODD)]
    plan = _find(
        SwapRequest(WETH, DAI, 12 * ONE[WETH], Side.SELL), ALPHA, *ends, a_book("a", ODD, DAI, bids="1 9999")
    )
    assert plan is None


def test_a_forced_route_is_taken_or_nothing() -> None:
    books = ALPHA, USDC_DAI, WETH_DAI
    wanted = SwapRequest(WETH, DAI, ONE[WETH], Side.SELL)
    for route in ((WETH, DAI), (WETH, USDC, DAI)):
        assert _ways(_found(_with(wanted, route=route), *books)) == [route]
    wrong = ((WETH, USDC), (WETH, WBTC, DAI), (WETH, USDC, WETH, DAI), (WETH,), (WETH, ODD, WBTC, USDC, DAI))
    for no_route in wrong:
        assert _find(_with(wanted, route=no_route), *books) is None


def test_a_forced_route_may_have_four_tokens() -> None:
    books = (
        ALPHA,
        a_book("alpha", USDC, WBTC, bids="0.00002 1000000"),
        a_book("alpha", WBTC, DAI, bids="50000 9"),
    )
    route = WETH, USDC, WBTC, DAI
    assert _ways(_found(_with(SOLD, dest_token=DAI, route=route), *books)) == [route]


def test_who_may_take_part() -> None:
    books = ALPHA, BETA
    assert _found(_with(SOLD, only=frozenset({"beta", "nobody"})), *books).makers() == {"beta"}
    assert _found(_with(SOLD, without=frozenset({"alpha"})), *books).makers() == {"beta"}
    assert _find(_with(SOLD, only=frozenset()), *books) is None
    assert _find(_with(SOLD, without=frozenset({"alpha", "beta"})), *books) is None


def test_the_best_route_of_each_maker_alone() -> None:
    finder = Pathfinder(an_index(ALPHA, USDC_DAI, WETH_DAI, a_book("gamma", WBTC, DAI, bids="1 1")), WETH)
    wanted = SwapRequest(WETH, DAI, ONE[WETH], Side.SELL)
    alone = finder.by_maker(wanted)
    assert {maker: _ways(plan) for maker, plan in alone.items()} == {
        "alpha": [(WETH, USDC, DAI)],
        "beta": [(WETH, DAI)],
    }
    assert [*finder.by_maker(_with(wanted, without=frozenset({"alpha"})))] == ["beta"]
    assert finder.by_maker(_with(wanted, only=frozenset({"gamma"}))) == {}


def test_nothing_and_dust_have_no_route() -> None:
    assert _find(_with(SOLD, amount=0), ALPHA) is None
    assert _find(_with(SOLD, amount=1), ALPHA) is None
    assert _find(_with(SOLD, dest_token=WETH), ALPHA) is None
    assert _find(_with(SOLD, amount=101 * ONE[WETH]), ALPHA) is None
    assert _find(SOLD) is None
    assert _found(_with(SOLD, amount=10**9), ALPHA).dest_amount == 2


@pytest.mark.parametrize(
    ("changed", "books", "lack"),
    [
        ({}, (), NoPlanReason.BOOKS),
        ({}, (USDC_DAI,), NoPlanReason.BOOKS),
        ({"amount": 1}, (), NoPlanReason.BOOKS),
        ({"dest_token": WETH, "route": (WETH,)}, (ALPHA,), NoPlanReason.BOOKS),
        ({"dest_token": DAI, "route": (WETH, USDC, DAI)}, (ALPHA,), NoPlanReason.BOOKS),
        ({"dest_token": DAI}, (ALPHA,), NoPlanReason.BOOKS),
        ({"amount": 101 * ONE[WETH]}, (ALPHA,), NoPlanReason.DEPTH),
        ({"dest_token": DAI, "amount": 101 * ONE[WETH]}, (ALPHA, USDC_DAI), NoPlanReason.DEPTH),
        ({"amount": 1}, (ALPHA, BETA), NoPlanReason.AMOUNT),
        ({"taxes": Taxes(dest=10_000), "side": Side.BUY}, (ALPHA,), NoPlanReason.AMOUNT),
        ({}, (a_book("alpha", WETH, USDC, asks="2510 10"),), NoPlanReason.SIDE),
        ({"side": Side.BUY}, (a_book("alpha", WETH, USDC, asks="2510 10"),), NoPlanReason.SIDE),
        (
            {"only": frozenset({"alpha"})},
            [a_book(maker, WETH, USDC, asks="2510 10") for maker in ("alpha", "beta")],
            NoPlanReason.SIDE,
        ),
        ({"without": frozenset({"alpha"})}, (ALPHA,), NoPlanReason.LEFT_OUT),
        ({"only": frozenset({"beta"})}, (ALPHA, USDC_DAI), NoPlanReason.LEFT_OUT),
        ({"route": (WETH, DAI, USDC)}, (ALPHA, BETA), NoPlanReason.LEFT_OUT),
        ({"without": frozenset({"beta"}), "amount": 1_000 * ONE[WETH]}, (ALPHA, BETA), NoPlanReason.DEPTH),
    ],
)
def test_it_says_why_there_is_no_plan(
    changed: dict[str, object], books: tuple[LiveBook, ...], lack: NoPlanReason
) -> None:
    wanted = _with(SOLD, **changed)
    assert _find(wanted, *books) is None
    assert Pathfinder(an_index(*books), WETH).lack(wanted) is lack


def test_taxes_shrink_what_arrives_at_each_end() -> None:
    """10 % of what the user sends, 1 % of what reaches the exchange; then the same on the way out."""
    taxes = Taxes(src=1_000, src_dex=100, dest=1_000, dest_dex=100)
    plan = _found(_with(SOLD, taxes=taxes), ALPHA)
    (path,) = plan.paths
    assert (plan.src_amount, path.src_amount) == (ONE[WETH], ONE[WETH] * 891 // 1_000)
    assert path.dest_amount == 2_227_500_000
    assert plan.dest_amount == 2_227_500_000 * 891 // 1_000
    bought = _found(_with(SOLD, side=Side.BUY, amount=plan.dest_amount, taxes=taxes), ALPHA)
    assert bought.dest_amount == plan.dest_amount
    assert 0 <= plan.src_amount - bought.src_amount < 10**10


def test_taxes_take_nothing_between_hops() -> None:
    """choices.md#quotes-and-routes: whatever is withheld at the ends, makers hand on to each other what their
    books give."""
    taxes = Taxes(src=1_000, src_dex=100, dest=1_000, dest_dex=100)
    wanted = SwapRequest(WETH, DAI, ONE[WETH], Side.SELL, taxes=taxes)
    sold = _found(wanted, ALPHA, USDC_DAI)
    bought = _found(_with(wanted, side=Side.BUY, amount=sold.dest_amount), ALPHA, USDC_DAI)
    for plan in (sold, bought):
        first, second = plan.paths[0].hops
        assert second.src_amount == first.dest_amount
        for hop, book in ((first, ALPHA), (second, USDC_DAI)):
            amount = hop.src_amount if plan is sold else hop.dest_amount
            alone = _found(SwapRequest(hop.src_token, hop.dest_token, amount, plan.side), book)
            assert (hop.src_amount, hop.dest_amount) == (alone.src_amount, alone.dest_amount)
    (path,) = sold.paths
    at_exchanges = ONE[WETH] * 891 // 1_000, 2_227_500_000, ONE[DAI] * 22_252_725 // 10_000
    assert (path.src_amount, path.hops[1].src_amount, path.dest_amount) == at_exchanges
    assert sold.dest_amount == path.dest_amount * 891 // 1_000


def test_a_tax_of_everything_leaves_no_route() -> None:
    for taxes in (Taxes(src=10_000), Taxes(dest_dex=10_000)):
        for side in Side:
            assert _find(_with(SOLD, side=side, taxes=taxes), ALPHA) is None


def test_a_plan_follows_the_books() -> None:
    index = PairIndex()
    finder = Pathfinder(index, WETH)
    amounts = []
    for change in (ALPHA, BETA, a_book("beta", WETH, USDC, bids="2600 1"), a_book("alpha", WETH, USDC)):
        index.put(change)
        plan = finder.find(SOLD)
        assert plan is not None
        amounts.append((plan.dest_amount // ONE[USDC], *plan.makers()))
    assert amounts == [(2_500, "alpha"), (2_500, "alpha"), (2_600, "beta"), (2_600, "beta")]
    index.drop("beta", WETH, USDC)
    assert finder.find(SOLD) is None
    index.put(WETH_DAI)
    index.put(USDC_DAI)
    over_dai = finder.find(SOLD)
    assert over_dai is not None
    assert _ways(over_dai) == [(WETH, DAI, USDC)]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> dict[str, int]:
    """Numbers of calls that make paths and networks."""
    return counted(monkeypatch, pathfinder, "find_paths", "pairs_apart")


def test_paths_are_found_anew_for_other_pairs_alone_and_networks_for_other_books(
    made: dict[str, int],
) -> None:
    index = an_index(ALPHA)
    finder = Pathfinder(index, WETH)
    for change, paths, networks in (
        (BETA, 1, 1),
        (a_book("beta", WETH, USDC, bids="2600 1"), 1, 2),
        (USDC_DAI, 2, 3),
    ):
        index.put(change)
        assert finder.find(SOLD) == finder.find(SOLD)
        assert made == {"find_paths": paths, "pairs_apart": networks}


def test_no_more_paths_and_networks_are_kept_than_a_bound(
    made: dict[str, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pathfinder, "NETWORKS_MAX", 2)
    finder = Pathfinder(an_index(ALPHA, USDC_DAI), WETH)
    for dest, count in ((USDC, 1), (DAI, 2), (USDC, 2), (DAI, 2), (WBTC, 3), (USDC, 4)):
        finder.find(_with(SOLD, dest_token=dest))
        assert made == {"find_paths": count, "pairs_apart": count}


@pytest.mark.parametrize("third", ["2490 90", "2480 5 | 2300 90"])
def test_a_path_or_a_division_that_can_be_no_better_is_not_filled(
    third: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The direct way starts best, and the third is as good as the second or worse: it is not filled."""
    books = [
        a_book("alpha", WETH, DAI, bids="2500 10 | 2400 90"),
        a_book("alpha", WETH, USDC, bids="2490 90"),
        a_book("alpha", WETH, WBTC, bids=third),
        *(a_book("alpha", middle, DAI, bids="1 1000000") for middle in (USDC, WBTC)),
    ]
    for amount, hops in ((ONE[WETH], 1), (20 * ONE[WETH], 2 + 1 + 2)):
        finder = Pathfinder(an_index(*books), WETH)
        with monkeypatch.context() as patch:
            filled = counted(patch, MergedLadder, "best_split")
            assert finder.find(SwapRequest(WETH, DAI, amount, Side.SELL)) is not None
            assert filled == {"best_split": hops}


def test_paths_that_gain_less_together_than_a_fill_costs_are_not_divided(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A gain of 462 DAI, 500 at most by the halves, is worth a fill of 165 DAI and none of 510."""
    wanted = SwapRequest(WETH, DAI, 15 * ONE[WETH], Side.SELL)
    finder = Pathfinder(an_index(ALPHA, USDC_DAI, WETH_DAI), WETH)
    walks = []
    for gwei in (1_000, 3_100):
        with monkeypatch.context() as patch:
            walked = counted(patch, pathfinder, "through")
            assert finder.find(_with(wanted, gas_price_wei=gwei * 10**9)) is not None
            walks.append(walked["through"])
    assert walks[0] > walks[1] == 2 + 2


@pytest.mark.parametrize("side", Side)
@pytest.mark.parametrize(
    ("best", "second"), [("2500 100", "2500 10 | 2000 90"), ("2500 5 | 2499 95", "2499 10 | 2000 90")]
)
def test_paths_that_start_no_better_than_the_best_path_ends_are_not_walked_by_halves(
    side: Side, best: str, second: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    books = [
        a_book("alpha", WETH, DAI, bids=best),
        a_book("alpha", WETH, USDC, bids=second),
        a_book("alpha", WETH, WBTC, bids="2440 10 | 1900 90"),
        *(a_book("alpha", middle, DAI, bids="1 1000000") for middle in (USDC, WBTC)),
    ]
    amount = 20 * (ONE[WETH] if side is Side.SELL else 2_500 * ONE[DAI])
    finder = Pathfinder(an_index(*books), WETH)
    walked = counted(monkeypatch, pathfinder, "through")
    assert finder.find(SwapRequest(WETH, DAI, amount, side)) is not None
    assert walked == {"through": 3}


def test_the_best_rate_is_that_of_the_best_path_and_no_amount_is_better() -> None:
    finder = Pathfinder(an_index(ALPHA, BETA, USDC_DAI, WETH_DAI), WETH)
    assert finder.paths(WETH, DAI) == ((WETH, DAI), (WETH, USDC, DAI))
    rate = finder.best_rate(WETH, DAI)
    assert rate is not None
    assert rate[0] * 1_000 * ONE[WETH] == rate[1] * 2_497_500 * ONE[DAI], "2,500 at 0.999, not 2,490"
    better = a_book("beta", WETH, DAI, bids="2498 10")
    direct = Pathfinder(an_index(ALPHA, USDC_DAI, better), WETH).best_rate(WETH, DAI)
    assert direct is not None
    assert direct[0] * ONE[WETH] == direct[1] * 2_498 * ONE[DAI]
    for amount in (1, 10**9, ONE[WETH], 15 * ONE[WETH]):
        sale = finder.total(SwapRequest(WETH, DAI, amount, Side.SELL))
        assert sale is not None
        assert sale.dest_amount * rate[1] <= amount * rate[0]
        purchase = finder.total(SwapRequest(WETH, DAI, amount, Side.BUY))
        assert purchase is not None
        assert amount * rate[1] <= purchase.src_amount * rate[0]


def test_there_is_no_best_rate_where_there_is_no_liquidity() -> None:
    finder = Pathfinder(an_index(a_book("alpha", WETH, USDC, bids="2500 10")), WETH)
    assert finder.best_rate(USDC, WETH) is None
    assert finder.paths(USDC, WETH) == ((USDC, WETH),), "it may come on this way"
    assert finder.best_rate(WETH, WETH) is None
    assert (finder.paths(WETH, WETH), finder.paths(WETH, ODD)) == ((), ())
