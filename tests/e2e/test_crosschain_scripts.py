"""Orders across chains of scripts with ethers and viem: quoted, signed and followed over HTTP alone."""

from functools import partial
from pathlib import Path
from typing import Any

import pytest
import trio

from cambist.codecs.bridges.bridge_terms import BridgeKind
from cambist.crypto.addresses import to_checksum
from support.bridge.bridged_stories import (
    FILL_WITHIN_S,
    BridgedStory,
    a_bridged_story,
)
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE
from support.delta.delta_process import gated_node
from support.delta.delta_stories import CONFIRMATIONS
from support.oracles import Stories
from support.patience import until, until_told

pytestmark = [pytest.mark.oracle, pytest.mark.seldom]
LIBRARIES = pytest.mark.parametrize("library", ["ethers", "viem"])


async def is_bridging(story: BridgedStory) -> bool:
    query = {"userAddress": to_checksum(story.world.user.address), "status": "BRIDGING"}
    return bool((await story.web.get("/v2/delta/orders", **query))["data"])


async def script(stories: Stories, library: str, story: BridgedStory, bridge: str, width: int) -> Any:
    """Report of a script that sells one WETH for USDC on the second chain."""
    world = story.world
    async with gated_node(world.chain) as (_, port):
        places = f"http://127.0.0.1:{port}", f"0x{world.user.secret32().hex()}", story.web.url
        trade = "cross", to_checksum(world.weth), to_checksum(story.far.usdc), str(ONE), "SELL", str(width)
        there = str(story.two.second), "6", bridge
        told = partial(stories.told, f"{library}_order", *places, *trade, *there)
        return await trio.to_thread.run_sync(told)


@LIBRARIES
@pytest.mark.parametrize("kind", BridgeKind)
async def test_a_script_sells_to_another_chain(
    stories: Stories, two: TwoChains, tmp_path: Path, library: str, kind: BridgeKind
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True)
        two.attester.order(is_silent=True)
        before = await story.balances()
        told: dict[str, Any] = {}

        async def follow() -> None:
            told.update(await script(stories, library, story, kind.value, 64))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await until_told(partial(is_bridging, story))
            seen = story.web.app.server.statistics().requests
            await until(lambda: story.web.app.server.statistics().requests >= seen + 2)  # the script's
            two.relayer.order(is_silent=False)
            two.attester.order(is_silent=False)
        record, order = told["record"], told["order"]
        assert told["hash"] == told["orderHash"] == record["orderHash"]
        assert told["seen"][-2:] == ["BRIDGING", "COMPLETED"]
        assert record["order"] == order
        assert order["bridge"] == told["bridge"]["contractParams"] | {"destinationChainId": two.second}
        ends = {"srcChainId": two.first, "destChainId": two.second}
        (route,) = [one for one in told["routes"]["routes"] if ends.items() <= one.items()]
        assert record["output"]["token"] in route["tokens"]
        moved = await story.moved_since(before)
        arrived = moved["user", "far USDC"]
        assert (record["output"]["chainId"], record["output"]["executedAmount"]) == (two.second, str(arrived))
        assert arrived >= int(record["output"]["minAmount"]) == int(order["destAmount"])
        assert told["spent"] == str(ONE)
        (transaction,) = record["transactions"]
        assert transaction["receivedAmount"] == str(arrived)
        assert len(transaction["destinationTx"]) == 66


@LIBRARIES
async def test_a_script_follows_its_order_to_its_refund(
    stories: Stories, two: TwoChains, tmp_path: Path, library: str
) -> None:
    async with a_bridged_story(two, tmp_path) as story:
        two.relayer.order(is_silent=True, pays_out=True)
        before = await story.balances()
        told: dict[str, Any] = {}

        async def follow() -> None:
            told.update(await script(stories, library, story, "across", 65))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(follow)
            await until_told(partial(is_bridging, story))
            await story.pass_time(FILL_WITHIN_S + 60)
            await story.far.chain.mine(CONFIRMATIONS)
        assert told["seen"][-1] == told["record"]["status"] == "REFUNDED"
        (refund,) = told["record"]["refunds"]
        moved = await story.moved_since(before)
        assert refund["amount"] == str(moved["user", "USDC"])
        assert ("user", "far USDC") not in moved
