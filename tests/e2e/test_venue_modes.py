"""GET /v2/quote as clients read it: a Delta price where there is one, else Market with the reason why."""

from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from cambist.crypto.addresses import to_checksum
from support.chain.world import ONE, USDC, World
from support.venue.venue_role import CHAIN_ID
from support.venue.venue_stories import a_venue_story

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOK: dict[str, Any] = {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2501", "50"]]}}


async def test_delta_is_quoted_where_it_can_be_and_as_documented(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}) as story:
        user = to_checksum(world.user.address)
        spender = to_checksum(world.at.delta)
        weth = {"chainId": CHAIN_ID, "address": to_checksum(world.weth)}
        usdc = {"chainId": CHAIN_ID, "address": to_checksum(world.usdc)}
        for mode in ("ALL", "DELTA", "all"):
            told = await story.quote(
                "SELL", "WETH", "USDC", ONE, mode=mode, userAddress=user, partner="wallet"
            )
            assert told.keys() == {"delta", "deltaAddress"}
            assert told["deltaAddress"] == spender
            block = told["delta"]
            assert block.keys() == {
                "id", "side", "inputToken", "outputToken", "route", "partner", "spender", "alternatives",
            }  # fmt: skip
            UUID(block["id"])
            assert (block["side"], block["inputToken"], block["outputToken"]) == ("SELL", weth, usdc)
            assert (block["spender"], block["alternatives"]) == (spender, [])
            assert block["partner"] == {"name": "wallet", "feePercent": 0.5}
            route = block["route"]
            assert route.keys() == {"origin", "destination", "bridge", "fees"}
            assert route["bridge"] is None
            assert route["origin"] == route["destination"]
            ends = route["origin"]
            assert ends.keys() == {"input", "output"}
            assert ends["input"]["token"] == weth
            assert ends["input"]["amount"] == str(ONE)
            assert ends["output"]["token"] == usdc
            gas = route["fees"]["gas"]
            assert route["fees"].keys() == {"gas", "bridge"}
            assert route["fees"]["bridge"] == []
            assert gas["token"] == usdc
            for entry in (ends["input"], ends["output"], gas):
                assert entry.keys() == {"token", "amount", "amountUSD"}
                assert isinstance(entry["amount"], str)
                assert isinstance(entry["amountUSD"], str)
            left = 2_500 * USDC - int(gas["amount"])
            assert 0 < left < 2_500 * USDC
            assert ends["output"]["amount"] == str(left - left * 50 // 10_000)
        market = await story.quote("SELL", "WETH", "USDC", ONE)
        assert market.keys() == {"market"}
        error_type, details = await _refused(story, destChainId=1)
        assert error_type == "NoRoute"
        assert details.startswith("No route (crosschain)")


async def test_a_delta_purchase_costs_the_gas_on_top(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}) as story:
        told = await story.quote("BUY", "USDC", "WETH", ONE, mode="DELTA")
        ends = told["delta"]["route"]["origin"]
        gas = int(told["delta"]["route"]["fees"]["gas"]["amount"])
        net = 2_501 * USDC + gas
        assert gas > 0
        assert told["delta"]["side"] == "BUY"
        assert told["delta"]["partner"] == {"name": "anon", "feePercent": 0.01}
        assert ends["input"]["amount"] == str(net + net // 10_000)
        assert ends["output"]["amount"] == str(ONE)


async def test_a_trade_that_its_gas_would_eat_falls_back_to_market(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}) as story:
        amount = ONE // 100_000  # two and a half cents
        told = await story.quote("SELL", "WETH", "USDC", amount, mode="ALL")
        assert told.keys() == {"market", "fallbackReason"}
        reason = told["fallbackReason"]
        assert reason.keys() == {"errorType", "details"}
        assert reason["errorType"] == "GasCostExceedsTradeAmount"
        assert await _refused(story, amount=amount) == ("GasCostExceedsTradeAmount", reason["details"])
        moved = await story.swap(told["market"], slippage=0)
        assert moved["user", "USDC"] == 25_000 - 2


async def test_where_delta_is_not_there_all_is_market(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}, delta=False) as story:
        told = await story.quote("SELL", "WETH", "USDC", ONE, mode="ALL")
        assert told.keys() == {"market", "fallbackReason"}
        reason = told["fallbackReason"]
        assert reason["errorType"] == "NoRoute"
        assert reason["details"].startswith(f"No route: Delta is not served on chain {CHAIN_ID}")
        assert await _refused(story) == ("NoRoute", reason["details"])
        moved = await story.swap(told["market"], slippage=0)
        assert moved["user", "USDC"] == 2_499_750_000
        chains = await story.web.get("/chains")
        assert [(chain["chainId"], chain["delta"], chain["market"]) for chain in chains] == [
            (CHAIN_ID, False, True)
        ]


async def test_without_any_price_no_mode_invents_one(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK}) as story:
        for mode in ("ALL", "DELTA", "MARKET"):
            error_type, details = await _refused(story, mode=mode, src="DAI")
            assert error_type == "NoRoute"
            assert details.startswith("No route")


async def _refused(
    story: Any, mode: str = "DELTA", src: str = "WETH", amount: int = ONE, **more: Any
) -> tuple[str, str]:
    """errorType and details of a quote that is answered 400."""
    query = {
        "chainId": CHAIN_ID, "srcToken": story.web.devnet.text(src), "srcDecimals": 18, "amount": amount,
        "destToken": story.web.devnet.text("USDC"), "destDecimals": 6, "mode": mode, **more,
    }  # fmt: skip
    status, told = await story.web.answer("/v2/quote", **query)
    assert status == 400, told
    return told["errorType"], told["details"]
