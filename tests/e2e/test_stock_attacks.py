"""Strangers without a stake have makers reserve stock, from many networks at once; honest users trade on."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.eip712_orders.swap_consent import SWAP_CONSENT, SwapConsent, consent_separator
from cambist.codecs.messages.wire import encode
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from cambist.crypto.signatures import to_65
from cambist.engine.chain.deploy.create2_factory import FACTORY
from cambist.engine.host.admission.budgets import PPM
from support.chain.world import NATIVE, ONE, World
from support.contracts.wrapped_signatures import a_counterfactual_wallet, wrapped_signature
from support.patience import FIRM
from support.venue.venue_role import CHAIN_ID
from support.venue.venue_stories import Route, Story, a_venue_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

BOOKS: dict[str, dict[str, Any]] = {
    "alpha": {"WETH/USDC": {"bids": [["2500", "400"]], "asks": [["2510", "400"]]}}
}
NETWORKS = 8
"""That the attackers have."""
FROM = "203.0.113.9"
"""Address of the honest users."""


async def asked(
    story: Story, route: Route, address: str, user: bytes, query: str = "", **body: Any
) -> tuple[int, Any]:
    """POST /transactions without a key from an address, for a user; status and JSON of any answer."""
    sent = encode(story.body(route, userAddress=to_checksum(user), **body))
    target = f"/transactions/{CHAIN_ID}" + (f"?{query}" if query else "")
    answer = await story.web.ask("POST", target, sent, {"x-forwarded-for": address})
    return answer.status, json.loads(answer.body)


def attackers(times: int) -> Iterator[str]:
    """Addresses of the attackers in turn: each of their networks has many."""
    for number in range(times):
        yield f"198.51.{number % NETWORKS}.{number // NETWORKS % 256}"


async def attack(story: Story, src: str, user: bytes, times: int = 8 * NETWORKS, amount: int = ONE) -> int:
    """Have makers sign sales for a user that knows nothing of it; raw units that they reserve."""
    route, taken = await story.prices("SELL", src, "USDC", amount), 0
    for address in attackers(times):
        status, told = await asked(story, route, address, user, "ignoreGasEstimate=true")
        assert status in (200, 429), told
        taken += amount * (status == 200)
    return taken


def reserved(story: Story) -> int:
    """Part of alpha's stock that is reserved, parts per million."""
    place = story.web.app.chains[CHAIN_ID]
    return place.desk.stock.reserved("alpha", story.world.usdc, story.clock.now_ms())[0]


def consent(story: Story, amount: int, user: bytes | None = None, src: bytes | None = None) -> dict[str, Any]:
    """The member `consent` to a sale, of WETH by default, signed by the key of the story's user."""
    world = story.world
    deadline = story.clock.now_ms() // 1_000 + 60
    values = SwapConsent(user or world.user.address, src or world.weth, world.usdc, amount, deadline)
    separator = consent_separator(CHAIN_ID, world.at.router)
    signature = to_65(*world.user.sign(SWAP_CONSENT.compiled.digest_for(separator)(values)))
    return {"srcAmount": str(amount), "deadline": deadline, "signature": f"0x{signature.hex()}"}


async def test_rich_strangers_named_by_nobodies_reserve_a_share(world: World, tmp_path: Path) -> None:
    """Native tokens, so that only a balance shows: a quarter of the stock, and size bounds for nobody.

    Honest users sell meanwhile: with nothing shown, with an allowance, with their signature, with a key.
    """
    async with a_venue_story(world, tmp_path, BOOKS, firm=FIRM) as story:
        await world.chain.set_balance(world.stranger.address, 10_000 * ONE)
        taken = await attack(story, "ETH", world.stranger.address, amount=5 * ONE)
        assert reserved(story) == PPM * taken // (400 * ONE) <= PPM // 4
        user = world.user.address
        much = await story.prices("SELL", "WETH", "USDC", 60 * ONE)
        assert (await asked(story, much, FROM, user))[0] == 429
        for src in ("ETH", "WETH"):
            route = await story.prices("SELL", src, "USDC", ONE)
            status, built = await asked(story, route, FROM, user)
            assert status == 200, built
            assert (await story.send(built, route))["alpha", "WETH"] == ONE
        status, built = await asked(story, much, FROM, user, consent=consent(story, 60 * ONE))
        assert status == 200, built
        assert (await story.send(built, much))["alpha", "WETH"] == 60 * ONE
        with story.web.with_key():
            status, told = await story.ask_transaction(await story.prices("SELL", "WETH", "USDC", 30 * ONE))
        assert status == 200, told
        score = await story.score("alpha")
        assert (score["score"], score["reasons"], score["blockUntil"]) == (100, {}, None)
        bounds = story.web.app.chains[CHAIN_ID].desk.makers["alpha"].health.bounds
        assert bounds.told(story.clock.now_ms()) == {}


async def test_who_fills_its_swaps_gets_the_best_maker_on(world: World, tmp_path: Path) -> None:
    """With an allowance alone. Each sale is a tenth of the best maker's stock, the share an eighth."""
    books: dict[str, dict[str, Any]] = {
        "alpha": {"WETH/USDC": {"bids": [["2500", "40"]], "asks": [["2510", "40"]]}},
        "beta": {"WETH/USDC": {"bids": [["2490", "40"]], "asks": [["2520", "40"]]}},
    }
    async with a_venue_story(world, tmp_path, books, firm=FIRM) as story:
        for _ in range(3):
            route = await story.prices("SELL", "WETH", "USDC", 4 * ONE)
            status, built = await asked(story, route, FROM, world.user.address)
            assert status == 200, built
            assert (await story.send(built, route))["alpha", "WETH"] == 4 * ONE


async def test_a_consent_of_a_wallet_that_is_not_deployed_says_what_to_call(
    world: World, tmp_path: Path
) -> None:
    """Nothing is deployed in simulation: a swap needs the wallet on chain."""
    wallet, deploys = a_counterfactual_wallet(world.user)
    async with a_venue_story(world, tmp_path, BOOKS, firm=FIRM) as story:
        await world.chain.set_balance(wallet, 10 * ONE)
        route = await story.prices("SELL", "ETH", "USDC", ONE)
        shown = consent(story, ONE, wallet, NATIVE)
        inner = parse_hex(shown["signature"], "signature")
        shown["signature"] = to_hex(wrapped_signature(inner, FACTORY, deploys))
        status, told = await asked(story, route, FROM, wallet, consent=shown)
        assert (status, told["errorType"]) == (400, "InvalidSignature")
        assert f"deploy it first, by the call to {to_checksum(FACTORY)}" in told["details"]


async def test_a_named_victim_keeps_its_quota(world: World, tmp_path: Path) -> None:
    """Strangers name a user that allows the Router; what they take is theirs, and it trades on."""
    async with a_venue_story(
        world, tmp_path, BOOKS, firm=f"{FIRM}\nunfilled_max = 8\nunfilled_user_max = 16"
    ) as story:
        user = world.user.address
        assert await attack(story, "WETH", user, times=5 * NETWORKS, amount=ONE // 10) > 2 * ONE
        route = await story.prices("SELL", "WETH", "USDC", ONE)
        status, told = await asked(story, route, FROM, user)
        assert status == 200, told
        status, told = await asked(story, route, FROM, user, consent=consent(story, ONE))
        assert status == 200, told


@pytest.mark.parametrize("way", ["allowance", "native"])
async def test_the_share_returns_once_quotes_expire_and_to_attackers_late(
    world: World, tmp_path: Path, way: str
) -> None:
    src = "WETH" if way == "allowance" else "ETH"
    async with a_venue_story(world, tmp_path, BOOKS, firm=FIRM) as story:
        user = world.user.address
        first = await attack(story, src, user, amount=5 * ONE)
        assert first > 80 * ONE
        await story.pass_time(305)
        assert reserved(story) == 0
        route = await story.prices("SELL", src, "USDC", 2 * ONE)
        status, told = await asked(story, route, FROM, user)
        assert status == 200, told
        assert await attack(story, src, user, amount=5 * ONE) < first * 3 // 4
