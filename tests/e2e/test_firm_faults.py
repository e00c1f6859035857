"""Failing makers: the user pays only the price of the fallback, and the maker loses score."""

import random

import pytest
import trio

from cambist.codecs.contracts import calldata
from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import NodeUnavailable, NoRoute, Reverted, ServiceUnavailable
from cambist.config.sections.venue import FirmSettings
from cambist.engine.chain.port import At, Chain, EthCall, Header
from cambist.engine.trade.routing.firm import firm_proof
from cambist.engine.trade.routing.firm.firm_route import FirmRoute
from support.chain.evm_programs import assembled, deploys
from support.chain.world import MOST, ONE, USDC, World
from support.contracts.rfq_stories import a_wallet
from support.makers.firm_makers import HASTY, PATIENT, STRANGER, Stage, a_stage, execute, makers_of
from support.patience import PATIENCE_S, until

BETTER = (("2505", "50"),)
WORSE = (("2500", "50"),)
ASKS = (("2600", "50"),)
POOR = (("2300", "50"),)
PAR, ABOVE = (("1", "90000"),), (("1.1", "90000"),)
FAULTS = [
    ("refuses", "refused", PATIENT),
    ("forbids", "refused", PATIENT),
    ("cuts", "unavailable", PATIENT),
    ("floods", "unavailable", PATIENT),
    ("babbles", "unavailable", PATIENT),
    ("shrugs", "invalid", PATIENT),
    ("names another taker", "invalid", PATIENT),
    ("signs wrongly", "invalid", PATIENT),
    ("hangs", "late", HASTY),
    ("drips", "late", HASTY),
]


@pytest.mark.usefixtures("no_excuse")
@pytest.mark.parametrize(("habit", "reason", "settings"), FAULTS, ids=[habit for habit, _, _ in FAULTS])
async def test_the_next_maker_fills_in_place_of_one_that_fails(
    world: World, habit: str, reason: str, settings: FirmSettings
) -> None:
    async with a_stage(world, settings) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote_weth("beta", bids=WORSE, asks=ASKS)
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.usdc)
        stage.makers["alpha"].habit = habit
        route = await stage.sell(world.weth, world.usdc, ONE, limit=2_490 * USDC)
        assert makers_of(route) == [{"beta"}]
        assert await execute(world, route) == (ONE, 2_500 * USDC)
        assert stage.reasons("alpha") == {reason: 1}
        assert stage.reasons("beta") == {}
        assert stage.shows("alpha", world.weth, world.usdc), "no single failure rests a pair"
        for _ in range(2):
            assert {"beta"} in makers_of(await stage.sell(world.weth, world.usdc, ONE, limit=2_490 * USDC))
        is_bounded = reason == "refused"
        assert stage.shows("alpha", world.weth, world.usdc) is is_bounded, "three faults rest it"
        bounds = stage.firm["alpha"].health.bounds.told(stage.now_ms)
        assert [bound.amount for bound in bounds.values()] == ([ONE // 8] if is_bounded else [])
        assert stage.shows("beta", world.weth, world.usdc)
        blacklist = stage.firm["alpha"].cache.blacklist
        assert not blacklist.holds(world.user.address, stage.now_ms)


@pytest.mark.parametrize(("habit", "worse_bps"), [("refuses", 0), ("signs wrongly", 0), ("", 100)])
async def test_of_a_purchase_too_the_next_maker_fills(world: World, habit: str, worse_bps: int) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote_weth("beta", bids=WORSE, asks=ASKS)
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.usdc)
        stage.makers["alpha"].habit = habit
        stage.makers["alpha"].worse_bps = worse_bps
        route = await stage.buy(world.weth, world.usdc, 2_500 * USDC, limit=ONE)
        assert makers_of(route) == [{"beta"}]
        assert await execute(world, route) == (ONE, 2_500 * USDC)
        assert sum(stage.reasons("alpha").values()) == 1


async def test_swaps_go_on_while_makers_flap(world: World) -> None:
    """Two of three do something else each time; the third is there for everybody."""
    source = random.Random(6)
    moods = ["", "", "refuses", "cuts", "babbles", "shrugs", "signs wrongly", "names another taker", "floods"]
    routes: list[FirmRoute] = []
    async with a_stage(world) as stage:
        await stage.everybody_quotes()
        for name in ("alpha", "beta"):
            stage.makers[name].moods = lambda: source.choice(moods)

        async def swap(dest: bytes) -> None:
            routes.append(await stage.sell(world.weth, dest, ONE // 4, limit=1))

        for _ in range(5):
            async with trio.open_nursery() as nursery:
                for _ in range(6):
                    nursery.start_soon(swap, world.usdc)
                    nursery.start_soon(swap, world.dai)
            stage.now_ms += 5_000
            for maker in stage.firm.values():
                maker.cache.expire(stage.now_ms)
        assert len(routes) == stage.desk.statistics().filled == 60
        for maker in stage.firm.values():
            assert maker.client.statistics().busy == maker.client.statistics().waiting == 0
        assert stage.reasons("gamma") == {}
        assert stage.reasons("alpha")
        assert stage.reasons("beta")
        for route in routes[::10]:
            assert await execute(world, route) == (ONE // 4, route.dest_amount)


async def test_a_user_whom_the_maker_blacklists_is_remembered_and_nobody_is_scored(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote_weth("beta", bids=WORSE, asks=ASKS)
        await stage.stock("beta", world.usdc)
        stage.makers["alpha"].habit = "blacklists"
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert makers_of(route) == [{"beta"}]
        blacklist = stage.firm["alpha"].cache.blacklist
        assert blacklist.holds(world.user.address, stage.now_ms)
        assert not blacklist.holds(world.stranger.address, stage.now_ms)
        assert stage.reasons("alpha") == {}
        assert stage.shows("alpha", world.weth, world.usdc)


@pytest.mark.parametrize("lack", ["balance", "allowance"])
async def test_a_maker_without_the_tokens_is_passed_over(world: World, lack: str) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote_weth("beta", bids=WORSE, asks=ASKS)
        await stage.stock("beta", world.usdc)
        alpha = stage.makers["alpha"]
        await world.chain.set_balance(alpha.key.address, ONE)
        if lack == "balance":
            await world.give(alpha.key, world.usdc, 2_505 * USDC - 1, world.at.rfq)
        else:
            await world.mint(world.usdc, alpha.key, 10_000 * USDC)
            await world.approve(alpha.key, world.usdc, world.at.rfq, 2_505 * USDC - 1)
        unchecked = await stage.unchecked("alpha", world.weth, world.usdc, ONE)
        with pytest.raises(Reverted):
            await execute(world, unchecked)
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert makers_of(route) == [{"beta"}]
        assert stage.reasons("alpha") == {"unfunded": 1}
        assert await execute(world, route) == (ONE, 2_500 * USDC)


async def test_exactly_enough_is_enough(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        await world.chain.set_balance(stage.makers["alpha"].key.address, ONE)
        await world.give(stage.makers["alpha"].key, world.usdc, 2_505 * USDC, world.at.rfq)
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert await execute(world, route) == (ONE, 2_505 * USDC)


async def test_what_a_maker_has_is_counted_once_for_all_its_legs(world: World) -> None:
    """DAI in two paths: alpha could pay either of its two shares, not both."""
    async with a_stage(world) as stage:
        await stage.everybody_quotes()
        route = await stage.sell(world.weth, world.dai, 3 * ONE)
        given: dict[str, list[int]] = {}
        for hop in route.hops:
            if hop.dest_token == world.dai:
                for fill in hop.fills:
                    given.setdefault(fill.maker, []).append(fill.order.maker_amount)
        name, amounts = next((name, amounts) for name, amounts in given.items() if len(amounts) > 1)
        has = await world.balance(world.dai, stage.makers[name].key)
        await world.approve(stage.makers[name].key, world.dai, world.at.rfq, sum(amounts) - 1)
        assert has > sum(amounts) - 1 >= max(amounts)
        again = await stage.sell(world.weth, world.dai, 3 * ONE)
        assert stage.reasons(name) == {}, "it could have paid for each"
        assert all(
            fill.maker != name for hop in again.hops if hop.dest_token == world.dai for fill in hop.fills
        )
        assert await execute(world, again) == (3 * ONE, again.dest_amount)


async def test_quotes_of_one_maker_are_of_one_account(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("beta", (world.usdc, world.dai, (("0.999", "90000"),), (("1.001", "90000"),)))
        stage.quote("alpha", (world.weth, world.usdc, BETTER, ASKS), (world.usdc, world.dai, PAR, ABOVE))
        for name in ("alpha", "beta"):
            await stage.stock(name, world.usdc, world.dai)
        stage.makers["alpha"].other_account_for = world.dai
        route = await stage.sell(world.weth, world.dai, ONE)
        assert sorted(map(sorted, makers_of(route))) == [["alpha"], ["beta"]]
        assert stage.reasons("alpha") == {"invalid": 1}
        assert await execute(world, route) == (ONE, route.dest_amount)


async def test_nobody_is_asked_for_more_than_its_book_has(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote("beta", (world.usdc, world.dai, (("1", "2505"),), (("1.1", "2505"),)))
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.dai)
        route = await stage.sell(world.weth, world.dai, ONE)
        assert stage.makers["beta"].asked[0]["takerAmount"] == str(2_505 * USDC)
        assert await execute(world, route) == (ONE, 2_505 * ONE)


async def test_a_refusal_of_more_than_the_book_has_is_no_fault(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.makers["alpha"].habit = "refuses"
        plan, wanted = stage.plan(Side.SELL, world.weth, world.usdc, 40 * ONE)
        stage.quote_weth("alpha", bids=(("2505", "39"),), asks=ASKS)
        with pytest.raises(NoRoute, match="alpha: refused"):
            await stage.desk.fill(plan, wanted, user=world.user.address, limit=0)
        assert stage.reasons("alpha") == {}


async def test_a_contract_that_did_not_sign_is_passed_over(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote_weth("beta", bids=WORSE, asks=ASKS)
        await stage.stock("beta", world.usdc)
        alpha = stage.makers["alpha"]
        await world.chain.set_balance(alpha.key.address, ONE)
        alpha.account = await a_wallet(world, alpha.key)
        alpha.key = STRANGER
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert makers_of(route) == [{"beta"}]
        assert stage.reasons("alpha") == {"invalid": 1}


@pytest.mark.parametrize(("rounds", "reasons"), [(1_000, {}), (100_000, {"invalid": 1})])
async def test_a_contract_that_burns_gas_before_it_says_that_it_signed_is_passed_over(
    world: World, rounds: int, reasons: dict[str, int]
) -> None:
    says_yes = f"{rounds} again: 1 SWAP1 SUB DUP1 @again JUMPI 0x1626ba7e 0xe0 SHL 0 MSTORE 32 0 RETURN"
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote_weth("beta", bids=WORSE, asks=ASKS)
        code = deploys(assembled(says_yes), approves(world.usdc, world.at.rfq))
        receipt = await world.send(world.owner, b"", code)
        assert receipt.contract
        await world.mint(world.usdc, receipt.contract, 10_000 * USDC)
        await stage.stock("beta", world.usdc)
        alpha = stage.makers["alpha"]
        alpha.account = receipt.contract
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert makers_of(route) == [{"beta" if reasons else "alpha"}]
        assert stage.reasons("alpha") == reasons
        assert await execute(world, route) == (ONE, (2_500 if reasons else 2_505) * USDC)


def approves(token: bytes, spender: bytes) -> str:
    """Program of a contract's constructor that approves `spender` for its tokens."""
    data = calldata.approve(spender, MOST).ljust(96, b"\0")
    stores = [f"0x{data[at : at + 32].hex()} {at} MSTORE" for at in range(0, 96, 32)]
    return f"{' '.join(stores)} 0 0 68 0 0 0x{token.hex()} GAS CALL POP"


@pytest.mark.parametrize(("worse_bps", "reasons"), [(100, {"drifted": 1}), (45, {})])
async def test_a_price_beyond_the_users_limit_gives_way_and_only_a_drifted_one_is_scored(
    world: World, worse_bps: int, reasons: dict[str, int]
) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote_weth("beta", bids=WORSE, asks=ASKS)
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.usdc)
        stage.makers["alpha"].worse_bps = worse_bps
        route = await stage.sell(world.weth, world.usdc, ONE, limit=2_499 * USDC)
        assert makers_of(route) == [{"beta"}]
        assert stage.reasons("alpha") == reasons


async def test_a_drifted_price_within_the_users_limit_is_taken_and_scored(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        await stage.stock("alpha", world.usdc)
        stage.makers["alpha"].worse_bps = 100
        route = await stage.sell(world.weth, world.usdc, ONE, limit=2_400 * USDC)
        assert await execute(world, route) == (ONE, 2_505 * USDC * 99 // 100)
        assert stage.reasons("alpha") == {"drifted": 1}


@pytest.mark.parametrize("side", list(Side))
async def test_a_limit_that_nobody_keeps_is_no_route_and_nobodys_fault(world: World, side: Side) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote_weth("beta", bids=WORSE, asks=ASKS)
        await stage.stock("alpha", world.usdc)
        await stage.stock("beta", world.usdc)
        swap, amount, limit = (
            (stage.sell, ONE, 2_505 * USDC + 1) if side is Side.SELL else (stage.buy, 2_505 * USDC, ONE - 1)
        )
        with pytest.raises(NoRoute, match="the books do not keep the limit"):
            await swap(world.weth, world.usdc, amount, limit=limit)
        assert stage.reasons("alpha") == stage.reasons("beta") == {}
        assert stage.makers["beta"].asked == [], "its book promises less than what is too little already"


async def test_why_there_is_no_route_is_told_of_each_maker_without_its_address(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", "beta", bids=BETTER, asks=ASKS)
        stage.quote_weth("gamma", bids=WORSE, asks=ASKS)
        stage.makers["alpha"].habit = "refuses"
        stage.makers["beta"].habit = "signs wrongly"
        stage.makers["gamma"].habit = "blacklists"
        with pytest.raises(NoRoute) as caught:
            await stage.sell(world.weth, world.usdc, ONE)
        detail = caught.value.detail
        assert detail.startswith("No route: nobody else quotes; ")
        assert "alpha: refused: status 503: 'not today'" in detail
        assert "beta: invalid: signature: not the maker's" in detail
        assert "gamma: blacklisted" in detail
        assert "127.0.0.1" not in detail
        assert stage.desk.statistics().unfilled == 1


async def test_where_the_pair_has_nobody_else_another_path_is_taken(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote("beta", (world.weth, world.dai, WORSE, ASKS))
        stage.quote("gamma", (world.dai, world.usdc, (("0.999", "90000"),), (("1.001", "90000"),)))
        for name in ("beta", "gamma"):
            await stage.stock(name, world.usdc, world.dai)
        stage.makers["alpha"].habit = "refuses"
        route = await stage.sell(world.weth, world.usdc, ONE, limit=2_400 * USDC)
        assert makers_of(route) == [{"beta"}, {"gamma"}]
        assert await execute(world, route) == (ONE, route.dest_amount)
        with pytest.raises(NoRoute):
            await stage.sell(world.weth, world.usdc, ONE, limit=2_500 * USDC)


async def test_where_a_stand_in_does_not_keep_the_limit_another_path_is_taken(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote("beta", (world.weth, world.dai, WORSE, ASKS), (world.weth, world.usdc, POOR, ASKS))
        stage.quote("gamma", (world.dai, world.usdc, PAR, ABOVE))
        for name in ("beta", "gamma"):
            await stage.stock(name, world.usdc, world.dai)
        stage.makers["alpha"].habit = "refuses"
        route = await stage.sell(world.weth, world.usdc, ONE, limit=2_490 * USDC)
        assert makers_of(route) == [{"beta"}, {"gamma"}]
        assert await execute(world, route) == (ONE, 2_500 * USDC)
        assert stage.reasons("beta") == {}


async def test_a_good_leg_is_kept_when_another_fails(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote("alpha", (world.weth, world.usdc, BETTER, ASKS))
        stage.quote("beta", (world.usdc, world.dai, (("0.999", "90000"),), (("1.001", "90000"),)))
        stage.quote("gamma", (world.usdc, world.dai, (("0.998", "90000"),), (("1.002", "90000"),)))
        for name in stage.makers:
            await stage.stock(name, world.usdc, world.dai)
        stage.makers["beta"].habit = "refuses"
        route = await stage.sell(world.weth, world.dai, ONE)
        assert makers_of(route) == [{"alpha"}, {"gamma"}]
        assert len(stage.makers["alpha"].asked) == 1
        assert await execute(world, route) == (ONE, route.dest_amount)


async def test_a_slow_maker_slows_nobody_else(world: World) -> None:
    async with a_stage(world) as stage, trio.open_nursery() as nursery:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.quote_weth("beta", bids=WORSE, asks=ASKS)
        await stage.stock("beta", world.usdc)
        alpha = stage.makers["alpha"]
        alpha.habit = "hangs"
        for _ in range(20):
            nursery.start_soon(waited_for, stage, world)
        await until(lambda: len(alpha.asked) == 8)  # its connections: the others wait for a turn
        with trio.fail_after(PATIENCE_S):
            for _ in range(20):
                route = await stage.sell(world.weth, world.usdc, ONE, only=frozenset({"beta"}))
                assert makers_of(route) == [{"beta"}]
        assert stage.desk.statistics().under_way == 20
        nursery.cancel_scope.cancel()


async def waited_for(stage: Stage, world: World) -> None:
    await stage.sell(world.weth, world.usdc, ONE, only=frozenset({"alpha"}))


async def test_a_swap_that_is_cancelled_leaves_nothing_and_blames_nobody(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        await stage.stock("alpha", world.usdc)
        alpha = stage.makers["alpha"]
        alpha.habit = "hangs"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(waited_for, stage, world)
            await until(lambda: len(alpha.asked) == 1)
            nursery.cancel_scope.cancel()
        client = stage.firm["alpha"].client.statistics()
        assert (client.busy, client.idle, client.waiting) == (0, 0, 0)
        assert stage.desk.statistics().under_way == 0
        assert stage.desk.statistics().unfilled == 1
        assert stage.firm["alpha"].health.report(stage.now_ms).maker.quotes == 0
        alpha.habit = ""
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert await execute(world, route) == (ONE, 2_505 * USDC)


async def test_a_connection_that_dies_while_it_is_asked_costs_one_more_question(world: World) -> None:
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        await stage.stock("alpha", world.usdc)
        alpha = stage.makers["alpha"]
        await stage.sell(world.weth, world.usdc, ONE)
        alpha.habit = "dies once"
        route = await stage.sell(world.weth, world.usdc, ONE)
        assert makers_of(route) == [{"alpha"}]
        assert [len(alpha.asked), stage.firm["alpha"].client.statistics().retries] == [3, 1]
        assert stage.reasons("alpha") == {}


class AwayChain:
    """A chain whose node is away, or does not answer."""

    def __init__(self, chain: Chain, *, hangs: bool) -> None:
        self.chain_id = chain.chain_id
        self._hangs = hangs

    async def block(self, at: At = None) -> Header | None:
        if self._hangs:
            await trio.sleep_forever()
        raise NodeUnavailable("no node answers")

    async def recent_block(self, age_s: float) -> Header | None:
        return await self.block()

    async def call_many(self, calls: list[EthCall], at: At = None) -> list[bytes | Exception]:
        raise NodeUnavailable("no node answers")


@pytest.mark.parametrize("hangs", [False, True])
async def test_funds_that_cannot_be_read_are_not_taken_for_granted(
    world: World, monkeypatch: pytest.MonkeyPatch, *, hangs: bool
) -> None:
    monkeypatch.setattr(firm_proof, "FIRM_CHAIN_S", 0.1)
    async with a_stage(world) as stage:
        stage.quote_weth("alpha", bids=BETTER, asks=ASKS)
        stage.desk.chain = AwayChain(world.chain, hangs=hangs)  # type: ignore[assignment]
        with pytest.raises(ServiceUnavailable):
            await stage.sell(world.weth, world.usdc, ONE)
        assert stage.reasons("alpha") == {}
