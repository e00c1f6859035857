"""Ends of orders across chains that differ: cancelled, filled in parts, attested wrongly, told by events."""

from pathlib import Path

from cambist.codecs.contracts import cctp
from support.bridge.bridged_stories import CCTP, FAIR, BridgedStory, a_bridged_story
from support.bridge.two_chains import TwoChains
from support.delta.delta_stories import Record
from support.patience import until_told


async def is_refused(story: BridgedStory, record: Record) -> bool:
    """Whether the venue says that the destination would refuse an order's message."""
    return "would refuse" in (await story.reasons(record)).get("transferUnderWay", "")


async def test_an_attestation_that_the_destination_refuses_is_asked_for_again(
    two: TwoChains, tmp_path: Path
) -> None:
    """Circle changes its attesters' keys; a message attested by an old one is attested anew on demand."""
    async with a_bridged_story(two, tmp_path) as story:
        two.attester.order(signs_wrongly=True)
        before = await story.balances()
        record = await story.bridging(CCTP)
        message, _ = await two.attested(two.first, bytes.fromhex(record["transactions"][0]["originTx"][2:]))
        await until_told(lambda: is_refused(story, record))
        two.attester.order(signs_wrongly=False)
        nonce = cctp.parse_message(message).nonce
        assert (await two.post(f"/v2/reattest/0x{nonce.hex()}"))[0] == 200
        await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == story.sold(by=CCTP) | {("user", "far USDC"): FAIR}
