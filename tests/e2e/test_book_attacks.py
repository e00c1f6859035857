"""Books that strangers fill at no cost: with tokens of their own, empty wallets, contracts' names."""

from pathlib import Path
from typing import Any

import pytest

from cambist.config import limits
from cambist.crypto.secp256k1 import SigningKey
from support.chain.evm_programs import assembled, deploys
from support.chain.world import ONE, World
from support.contracts.rfq_stories import a_wallet_that_sells
from support.delta.delta_stories import a_delta_story
from support.otc.otc_stories import an_otc_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

RICH = "128 2 EXP 0x40 MSTORE 32 0x40 RETURN"
"""Token code that answers 2^128 to every call."""
PLACES, WALLETS = 20, 60
HOSTILE, HONEST = "203.0.113.9", "198.51.100.7"


async def test_a_token_of_their_own_and_empty_wallets_leave_honest_makers_their_places(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, each of these posts was kept for ever, and honest ones got 503 once the book was full."""
    monkeypatch.setattr(limits, "OTC_LIVE_UNLISTED_MAX", PLACES)
    monkeypatch.setattr(limits, "OTC_LIVE_UNLISTED_ENDLESS_MAX", PLACES // 2)
    monkeypatch.setattr(limits, "OTC_LIVE_UNFUNDED_MAX", PLACES)
    monkeypatch.setattr(limits, "OTC_LIVE_MAX", 2 * PLACES + 2)
    async with an_otc_story(world, tmp_path) as story:
        receipt = await world.send(world.owner, b"", deploys(assembled(RICH)))
        assert receipt.contract is not None
        later_s = await world.now_s() + 3_600

        async def posted(address: str, number: int, **changed: Any) -> tuple[int, Any]:
            story.address, key = address, SigningKey(number.to_bytes(32, "big"))
            return await story.submit(story.an_order(maker=key.address, **changed), key)

        fake = {"maker_asset": receipt.contract, "taker": bytes(20)}
        taken = [await posted(HOSTILE, 1 + number, **fake) for number in range(WALLETS)]
        assert sum(status == 200 for status, _ in taken) == PLACES // 2, "none of them expires"
        taken = [await posted(HOSTILE, 1 + number, expiry=later_s, **fake) for number in range(WALLETS)]
        assert sum(status == 200 for status, _ in taken) == PLACES // 2
        taken = [await posted(HOSTILE, 1 + number) for number in range(WALLETS)]
        assert sum(status == 200 for status, _ in taken) == PLACES
        for number in range(3):
            status, told = await posted(HONEST, 1_000 + number)
            assert (status, told["state"]) == (200, "SUSPENDED"), "a maker whose funds come later"
        story.address = HONEST
        first = await story.posted(story.an_order())
        for _ in range(8):
            assert (await story.posted(story.an_order()))["state"] == "PENDING"
        assert len(story.engine.orders) == 2 * PLACES + 2
        await story.becomes(first, "PENDING")


async def test_orders_on_one_balance_and_in_a_contracts_name_leave_others_their_places(
    world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, ten thousand orders on one unit, and as many unsigned ones as anybody liked."""
    monkeypatch.setattr(limits, "VENUE_UNBACKED_ORDERS_MAX", PLACES)
    async with a_delta_story(world, tmp_path, "ann") as story:
        wallet, web = await a_wallet_that_sells(world), story.web

        async def submitted(address: str, owner: bytes, src_amount: int, **more: Any) -> tuple[int, Any]:
            order = await world.a_delta_order(
                owner=owner,
                beneficiary=owner,
                src_amount=src_amount,
                dest_amount=10**12,
                expected_amount=10**12,
            )
            sent = {"x-forwarded-for": address}
            return await web.post("/v2/delta/orders", world.delta_body(order, **more), sent)

        has = await world.balance(world.weth, world.user)
        taken = [await submitted(HOSTILE, world.user.address, has) for _ in range(40)]
        assert sum(status == 200 for status, _ in taken) == limits.VENUE_LIVE_BEYOND_FUNDS_MAX
        assert taken[-1][1]["errorType"] == "TooManyOpenOrders"
        unsigned = [await submitted(HOSTILE, wallet, ONE - n, signature=b"") for n in range(2 * PLACES)]
        assert sum(status == 200 for status, _ in unsigned) == PLACES
        assert unsigned[-1][0] == 503
        status, told = await submitted(HONEST, wallet, ONE // 2, signature=b"")
        assert (status, told["status"]) == (200, "AWAITING_SIGNATURE")
        gone = await story.becomes(unsigned[0][1], "EXPIRED")
        assert list(await story.reasons(gone)) == ["gaveWay"]
