"""A maker that keeps failing is left alone for a while: the maker reads the reason and the end of the ban,
and comes back.
"""

from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest

from cambist.codecs.http1 import encode_response
from cambist.codecs.messages.resource_messages import MakerFaults
from cambist.codecs.messages.wire import encode
from cambist.config import limits
from cambist.crypto.addresses import to_checksum
from support.chain.world import ONE, USDC, World
from support.patience import FIRM, until
from support.server.scripted_server import Caller, scripted_server
from support.venue.venue_role import API_KEY
from support.venue.venue_stories import Story, a_venue_story

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOKS: dict[str, dict[str, Any]] = {
    "alpha": {
        "WETH/USDC": {"bids": [["2505", "50"]], "asks": [["2506", "50"]]},
        "WETH/DAI": {"bids": [["2505", "50"]], "asks": [["2506", "50"]]},
        "DAI/USDC": {"bids": [["0.99", "90000"]], "asks": [["1.02", "90000"]]},
    },
    "beta": {
        "WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2511", "50"]]},
        "WETH/DAI": {"bids": [["2500", "50"]], "asks": [["2511", "50"]]},
        "DAI/USDC": {"bids": [["0.985", "90000"]], "asks": [["1.025", "90000"]]},
    },
}
RESTS = f"{FIRM}\nrest_s = 20\nrest_s_max = 25"


async def a_failure(story: Story, src: str = "WETH", dest: str = "USDC") -> None:
    """A swap that alpha was to fill."""
    route = await story.prices("SELL", src, dest, ONE)
    moved = await story.swap(route)
    assert moved["beta", src] == ONE


def pairs_of(story: Story, maker: str) -> int:
    """Number of a maker's routed pairs."""
    index = story.web.app.chains[story.world.chain.chain_id].index
    return sum(live.maker == maker for live in index.books())


async def back(story: Story, seconds: float) -> None:
    """Time passes, and all of alpha's pairs are routed again."""
    await story.pass_time(seconds)
    await until(lambda: pairs_of(story, "alpha") == len(BOOKS["alpha"]))


async def test_a_pair_that_fails_again_and_again_rests_until_a_probe_is_answered(
    world: World, tmp_path: Path
) -> None:
    """No single fault rests it, and none rests another pair; a quarter of the rest is enough."""
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS) as story:
        front = story.fronts["alpha"]
        front.habit, began_ms, score = "babbles", 0, {}
        for number in range(1, 4):
            assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
            began_ms = story.clock.now_ms()
            await a_failure(story)
            score = await story.score("alpha")
            assert (score["score"], score["quotes"], score["reasons"]) == (0, number, {"invalid": number})
            assert score["blockUntil"] is None, "the other pairs go on"
        (pair,) = score["pairs"]
        assert set(pair["tokens"]) == {to_checksum(world.weth), to_checksum(world.usdc)}
        assert (pair["score"], pair["reasons"]) == (0, {"invalid": 3})
        assert began_ms + 20_000 <= pair["blockUntil"] <= story.clock.now_ms() + 20_000
        (*_, first), asked = score["lastFaults"], front.asked
        assert first["detail"].startswith("invalid: ")
        assert (first["srcToken"], first["destToken"]) == (to_checksum(world.weth), to_checksum(world.usdc))
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"beta"}
        assert await story.quoted_by("SELL", "WETH", "DAI", ONE) == {"alpha"}
        front.habit = ""
        await back(story, 6)
        assert front.asked == asked + 1
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
        (pair,) = (await story.score("alpha"))["pairs"]
        assert pair["blockUntil"] is None
        moved = await story.swap(await story.prices("SELL", "WETH", "USDC", ONE))
        assert moved["alpha", "WETH"] == ONE
        score = await story.score("alpha")
        assert (score["score"], score["quotes"], score["reasons"]) == (25, 4, {"invalid": 3})


async def test_a_rest_ends_by_itself_where_no_probe_is_answered(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS) as story:
        story.fronts["alpha"].habit = "babbles"
        for _ in range(3):
            await a_failure(story)
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"beta"}
        await back(story, 20)
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
        await a_failure(story)
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"beta"}, "one fault is enough now"


async def test_a_refusal_shrinks_what_is_routed_and_rests_nothing(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS) as story:
        front = story.fronts["alpha"]
        front.habit = "refuses"
        await a_failure(story)
        score = await story.score("alpha")
        assert (score["score"], score["quotes"], score["reasons"]) == (100, 0, {"refused": 1})
        (bound,) = score["bounds"]
        assert (bound["srcToken"], bound["destToken"]) == (to_checksum(world.weth), to_checksum(world.usdc))
        assert bound["amount"] == str(ONE // 2)
        assert score["lastFaults"][0]["detail"] == "refused: status 503: 'not today'"
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha", "beta"}
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE // 2) == {"alpha"}
        assert await story.quoted_by("SELL", "WETH", "DAI", ONE) == {"alpha"}
        assert await story.quoted_by("SELL", "USDC", "WETH", 2_500 * USDC) == {"alpha"}, "the other direction"
        front.habit = ""
        moved = await story.swap(await story.prices("SELL", "WETH", "USDC", ONE // 2))
        assert moved["alpha", "WETH"] == ONE // 2
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}, "it signs again"


async def test_a_maker_hears_of_a_refusal_at_the_url_of_the_settings(world: World, tmp_path: Path) -> None:
    told: list[MakerFaults] = []

    async def receive(caller: Caller) -> None:
        with suppress(EOFError):
            while True:
                request = await caller.request()
                told.append(msgspec.json.decode(request.body, type=MakerFaults))
                await caller.stream.send_all(encode_response(200, b"{}"))

    async with scripted_server(receive) as port:
        notify = {"CAMBIST__VENUE__MAKERS__ALPHA__NOTIFY_URL": f"http://127.0.0.1:{port}/faults"}
        async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS, environ=notify) as story:
            story.fronts["alpha"].habit = "refuses"
            await a_failure(story)
            await until(lambda: bool(told))
    (faults,) = told
    assert (faults.maker, faults.network) == ("alpha", world.chain.chain_id)
    assert [fault.detail for fault in faults.faults] == ["refused: status 503: 'not today'"]


async def test_faults_all_over_a_maker_rest_all_of_it(world: World, tmp_path: Path) -> None:
    """Two on each of three pairs: none would rest its pair, and all of them show that it is the maker."""
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS) as story:
        front = story.fronts["alpha"]
        ways = ["babbles", "signs wrongly", "cuts", "babbles", "cuts", "signs wrongly"]
        pairs = [("WETH", "USDC"), ("WETH", "DAI"), ("DAI", "USDC")] * 2
        for front.habit, ends in zip(ways, pairs, strict=True):
            assert await story.quoted_by("SELL", *ends, ONE) == {"alpha"}
            await a_failure(story, *ends)
        score = await story.score("alpha")
        assert score["reasons"] == {"invalid": 4, "unavailable": 2}
        assert score["score"] == 0
        assert score["blockUntil"] > story.clock.now_ms()
        assert score["blockReason"] == "too many faults"
        for ends in pairs[:3]:
            assert await story.quoted_by("SELL", *ends, ONE) == {"beta"}
        front.habit = ""
        await back(story, 25)
        assert (await story.score("alpha"))["blockUntil"] is None
        for src, dest in pairs[:3]:
            assert await story.quoted_by("SELL", src, dest, ONE) == {"alpha"}
            moved = await story.swap(await story.prices("SELL", src, dest, ONE))
            assert moved["alpha", src] == ONE


async def test_a_maker_that_blacklists_most_of_its_askers_is_taken_as_not_quoting(
    world: World, tmp_path: Path
) -> None:
    """Each asker is told on at once; then nobody is sent to it any more, and it reads why."""
    keys = [f"APP{number}" for number in range(limits.MAKER_ASKERS_MAX // 2)]
    environ = {f"CAMBIST__VENUE__API_KEYS__{key}__SECRET": f"env:{key}" for key in keys}
    environ |= {key: f"secret-of-{key}" for key in keys}
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS, environ=environ) as story:
        story.fronts["alpha"].habit = "blacklists"
        for number, key in enumerate(keys, 1):
            assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
            await asked_with(story, f"secret-of-{key}", number.to_bytes(20, "big"))
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"beta"}
        score = await story.score("alpha")
        assert (score["score"], score["blockReason"]) == (100, "it blacklists most of its askers")
        assert score["blockUntil"] > story.clock.now_ms()


async def test_a_key_that_names_many_users_whom_a_maker_does_not_serve_rests_nobody(
    world: World, tmp_path: Path
) -> None:
    """A user of an integrator's app, without a name of its own, has the app's key name accounts."""
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS) as story:
        front = story.fronts["alpha"]
        front.habit = "blacklists"
        for number in range(1, limits.MAKER_ASKERS_MAX + 1):
            await asked_with(story, API_KEY, number.to_bytes(20, "big"))
        assert front.asked == limits.MAKER_ASKERS_MAX
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
        assert (await story.score("alpha"))["blockUntil"] is None


async def test_a_key_that_names_many_users_whitewashes_no_maker(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS) as story:
        for number in range(1, 3 * limits.MAKER_QUOTES_A_CALLER):
            await asked_with(story, API_KEY, number.to_bytes(20, "big"))
        assert story.fronts["alpha"].asked == 3 * limits.MAKER_QUOTES_A_CALLER - 1
        assert (await story.score("alpha"))["quotes"] == limits.MAKER_QUOTES_A_CALLER


async def test_strangers_that_name_whom_a_maker_does_not_serve_rest_nobody(
    world: World, tmp_path: Path
) -> None:
    """A rival has its friends name accounts with funds that alpha blacklists; none of them has signed."""
    async with a_venue_story(world, tmp_path, BOOKS, firm=RESTS) as story:
        front = story.fronts["alpha"]
        front.habit = "blacklists"
        for number in range(1, limits.MAKER_ASKERS_MAX + 1):
            named = number.to_bytes(20, "big")
            await world.chain.set_balance(named, 10 * ONE)
            status, told = await from_network(story, number % 16, named, ONE // 100)
            assert status == 200, told
        assert front.asked == limits.MAKER_ASKERS_MAX
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
        assert (await story.score("alpha"))["blockUntil"] is None


async def test_a_friend_whose_requests_cost_nothing_whitewashes_no_maker(
    world: World, tmp_path: Path
) -> None:
    """Alpha signs dust for its friend, which fills nothing, and fails every twentieth swap, of others."""
    async with a_venue_story(
        world, tmp_path, BOOKS, firm=f"{RESTS}\nunfilled_max = 100\nunfilled_user_max = 100"
    ) as story:
        front, friend = story.fronts["alpha"], world.user.address
        await world.chain.set_balance(friend, 10 * ONE)
        for _ in range(4):
            assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
            front.habit = "babbles"
            with story.web.with_key():
                await a_failure(story)
            front.habit = ""
            for _ in range(19):
                if await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"beta"}:
                    return
                status, told = await from_network(story, 200, friend, ONE // 1_000)
                assert status == 200, told
        pytest.fail("four faults of four honest swaps rest no pair")


async def asked_with(story: Story, key: str, user: bytes) -> None:
    """POST /transactions with an API key, for a user that it names."""
    route = await story.prices("SELL", "WETH", "USDC", ONE // 100)
    target = f"/transactions/{story.world.chain.chain_id}?ignoreChecks=true"
    body = encode(story.body(route, userAddress=to_checksum(user)))
    answer = await story.web.ask("POST", target, body, {"x-api-key": key})
    assert answer.status == 200, answer.body


async def from_network(story: Story, network: int, user: bytes, amount: int) -> tuple[int, Any]:
    """POST /transactions without a key, from one of the strangers' networks, for a user that it names."""
    route = await story.prices("SELL", "ETH", "USDC", amount)
    body = encode(story.body(route, userAddress=to_checksum(user)))
    target = f"/transactions/{story.world.chain.chain_id}?ignoreGasEstimate=true"
    answer = await story.web.ask("POST", target, body, {"x-forwarded-for": f"198.51.{network}.7"})
    return answer.status, msgspec.json.decode(answer.body)


@pytest.mark.parametrize("cause", ["the user's bound", "the user's blacklisting", "the user's funds"])
async def test_what_lies_with_the_user_is_not_the_makers_fault(
    world: World, tmp_path: Path, cause: str
) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOKS["alpha"]}, firm=RESTS) as story:
        front = story.fronts["alpha"]
        route = await story.prices("SELL", "WETH", "USDC", ONE)
        slippage = 100
        if cause == "the user's bound":
            front.habit, front.worse_bps, slippage = "drifts", 40, 10
        elif cause == "the user's blacklisting":
            front.habit = "blacklists"
        else:
            await story.allow("WETH", 0)
        status, _ = await story.not_built(route, slippage=slippage)
        assert status == 400
        score = await story.score("alpha")
        assert (score["score"], score["reasons"], score["blockUntil"]) == (100, {}, None)
        assert await story.quoted_by("SELL", "WETH", "USDC", ONE) == {"alpha"}
