"""Sales whose bridge delivers a token that makers swap on the destination: to the unit on both chains."""

from pathlib import Path

import pytest

from cambist.crypto.addresses import to_checksum
from support.bridge.bridged_stories import FAIR, a_swapped_story, arriving, dai_for, quoted_dai
from support.bridge.two_chains import TwoChains
from support.chain.world import ONE, Moved

pytestmark = pytest.mark.one_of(2)

ENTERED = FAIR - FAIR // 10_000
"""USDC that enters the bridge, after the venue's fee."""
BRIDGES = pytest.mark.parametrize("bridge", ["across", "cctp", "express"])


def arrived(bridge: str) -> int:
    """Raw units of USDC that a bridge delivers."""
    if bridge == "across":
        return arriving(ENTERED)
    return ENTERED - (-(-ENTERED // 10_000) if bridge == "express" else 0)


def sold(bridge: str) -> Moved:
    """Movements of the settlement and of the delivery, without the receiver's."""
    moved = {
        ("user", "WETH"): -ONE,
        ("agent", "WETH"): ONE,
        ("agent", "USDC"): -FAIR,
        ("vault", "USDC"): FAIR // 10_000,
    }
    if bridge == "across":
        return moved | {("pool", "USDC"): ENTERED, ("filler", "far USDC"): -arrived(bridge)}
    fee = ENTERED - arrived(bridge)
    return moved | ({("circle", "far USDC"): fee} if fee else {})


@BRIDGES
async def test_what_a_bridge_delivers_is_swapped_by_a_maker(
    two: TwoChains, tmp_path: Path, bridge: str
) -> None:
    async with a_swapped_story(two, tmp_path) as (story, maker):
        before = await story.balances()
        route = await quoted_dai(story, bridge)
        record = await story.becomes(await story.ordered(route), "COMPLETED")
        got = dai_for(arrived(bridge))
        assert await story.moved_since(before) == sold(bridge) | {
            ("user", "far DAI"): got,
            ("zoe", "far DAI"): -got,
            ("zoe", "far USDC"): arrived(bridge),
        }
        there = route["destination"]
        assert there["input"]["token"]["address"] == to_checksum(story.far.usdc)
        assert there["output"]["token"]["address"] == to_checksum(story.far.dai)
        assert record["output"] == {
            "chainId": two.second,
            "token": to_checksum(story.far.dai),
            "expectedAmount": None,
            "executedAmount": str(got),
            "minAmount": str(int(there["output"]["amount"]) * 9_900 // 10_000),
        }
        assert record["beneficiary"] == record["owner"]
        assert record["transactions"][0]["receivedAmount"] == str(got)
        assert {body["userAddress"].lower() for body in maker.asked} == {record["owner"].lower()}
        await story.becomes_final(record)
        assert (await story.record(record["id"]))["status"] == "COMPLETED"
