"""Public trades of a venue: a Market swap, a Delta order, and no fill of an OTC order."""

from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.client import TradeKind, Venue
from cambist.codecs.contracts import calldata
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import a_delta_story
from support.events.event_streams import EventStream
from support.patience import until_found
from support.venue.venue_role import CHAIN_ID, RunningVenue
from support.venue.venue_stories import a_venue_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

BOOK: dict[str, Any] = {"WETH/USDC": {"bids": [["2500", "50"]], "asks": [["2502", "50"]]}}
PAR: dict[str, Any] = {"DAI/USDC": {"bids": [["0.999", "90000"]], "asks": [["1", "90000"]]}}
STREAM = b"/v2/delta/trades/stream?chainId=%d" % CHAIN_ID


async def listed(web: RunningVenue, count: int) -> list[dict[str, Any]]:
    """The trades, once they are so many."""

    async def ask() -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = await web.get("/v2/delta/trades", chainId=CHAIN_ID)
        return found

    return await until_found(ask, lambda trades: len(trades) == count)


async def fill_an_otc_order(world: World) -> None:
    """The taker fills an order of the maker's, at the RFQ contract itself."""
    order = world.an_rfq_order()
    await world.give(world.maker, world.usdc, 2_500 * USDC, world.at.rfq)
    await world.give(world.taker, world.weth, ONE, world.at.rfq)
    await world.send(world.taker, world.at.rfq, calldata.fill_order(order, world.signed(order)))


async def test_market_swaps_are_told_and_fills_of_otc_orders_are_not(world: World, tmp_path: Path) -> None:
    async with a_venue_story(world, tmp_path, {"alpha": BOOK, "beta": PAR}) as story:
        web = story.web
        async with await trio.open_tcp_stream("127.0.0.1", web.port) as stream:
            events = EventStream(stream)
            await events.open(STREAM)
            assert (await events.event())[0] == "open"
            route = await story.prices("SELL", "WETH", "USDC", 2 * ONE)
            await story.swap(route, slippage=100)
            kind, sent = await events.event()
            token = events.last_id
        await fill_an_otc_order(world)
        bought = await story.prices("BUY", "WETH", "DAI", 1_000 * ONE)
        await story.swap(bought, slippage=100)
        second, first = await listed(web, 2)
        assert (kind, sent) == ("trade", first)
        head = await world.chain.block()
        assert head is not None
        assert first | {"at": "", "blockNumber": 0, "transactionHash": ""} == {
            "kind": "MARKET",
            "chainId": CHAIN_ID,
            "at": "",
            "blockNumber": 0,
            "transactionHash": "",
            "srcToken": to_checksum(world.weth),
            "destToken": to_checksum(world.usdc),
            "srcAmount": str(2 * ONE),
            "destAmount": str(5_000 * USDC),
            "srcUSD": "5002.00",
            "destUSD": "5000.00",
            "agent": None,
            "makers": ["alpha"],
            "surplusBps": None,
            "fillMs": None,
        }
        assert (second["srcToken"], second["destToken"]) == (to_checksum(world.weth), to_checksum(world.dai))
        assert int(second["destAmount"]) == 1_000 * ONE
        assert second["makers"] == ["alpha", "beta"]
        assert second["blockNumber"] == head.number
        async with await trio.open_tcp_stream("127.0.0.1", web.port) as stream:
            again = EventStream(stream)
            await again.open(STREAM, b"Last-Event-ID: " + token.encode())
            assert [await again.event() for _ in range(2)] == [
                ("open", {"event": "open", "token": token}),
                ("trade", second),
            ]
        async with Venue.open(web.url, CHAIN_ID) as program:
            (latest,) = await program.trades(limit=1, kind=TradeKind.MARKET)
            assert latest.transaction_hash == second["transactionHash"]
            assert await program.trades(kind=TradeKind.DELTA) == []
            assert (await program.statistics()).fills == 2
        statistics = await web.get("/stats", chainId=CHAIN_ID)
        assert (statistics["fills"], statistics["agents"]) == (2, [])
        assert [one["maker"] for one in statistics["makers"]] == ["alpha", "beta"]
        assert [one["fills"] for one in statistics["makers"]] == [2, 1]
        assert float(statistics["volumeUSD"]) == float(first["srcUSD"]) + float(second["srcUSD"])


async def test_delta_orders_are_told_with_agent_and_surplus(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann", "bob") as story:
        story.agents["ann"].gives = lambda _: 2_490 * USDC
        story.agents["bob"].gives = lambda _: 2_525 * USDC
        record, _ = await story.completed(await world.a_delta_order())
        await fill_an_otc_order(world)
        story.agents["bob"].gives = lambda _: 2_400 * USDC
        other, _ = await story.completed(await world.a_delta_order(nonce=7))
        second, first = await listed(story.web, 2)
        expected = int(record["order"]["expectedAmount"])
        for trade, of, agent, got in ((first, record, "bob", 2_525), (second, other, "ann", 2_490)):
            assert (trade["kind"], trade["agent"], trade["makers"]) == ("DELTA", agent, [])
            assert (trade["srcAmount"], trade["destAmount"]) == (str(ONE), str(got * USDC))
            assert trade["transactionHash"] == of["transactions"][0]["originTx"]
            tenths = (got * USDC - expected) * 100_000 // expected
            assert float(trade["surplusBps"]) == tenths / 10
            assert 0 <= trade["fillMs"] < 600_000
            assert not {"owner", "orderHash", "id"} & trade.keys()
            assert to_hex(world.user.address)[2:].lower() not in str(trade).lower()
        statistics = await story.web.get("/stats", chainId=CHAIN_ID)
        assert (statistics["fills"], statistics["makers"]) == (2, [])
        assert sorted((one["agent"], one["fills"]) for one in statistics["agents"]) == [
            ("ann", 1),
            ("bob", 1),
        ]


async def test_a_trade_that_the_chain_takes_back_is_no_trade_until_it_is_mined_again(
    world: World, tmp_path: Path
) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        record, _ = await story.completed(await world.a_delta_order())
        (before,) = await listed(story.web, 1)
        await world.chain.set_automine(on=False)
        await world.chain.reorganise(1)
        await story.undone(record)
        await listed(story.web, 0)
        assert (await story.web.get("/stats", chainId=CHAIN_ID))["fills"] == 0
        await story.mine()
        await story.becomes(record, "COMPLETED")
        (after,) = await listed(story.web, 1)
        assert after["transactionHash"] == before["transactionHash"]
        assert after["agent"] == "ann"
