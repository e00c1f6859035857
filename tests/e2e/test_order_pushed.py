"""An order's life as it is pushed, from its submission to its settlement, and again from a token."""

from pathlib import Path

import pytest

from cambist.crypto.addresses import to_checksum
from cambist.engine.store.follower import START
from cambist.feeds.transport.websocket import connect_websocket
from support.chain.world import ONE, USDC, World
from support.delta.delta_stories import a_delta_story
from support.events.event_streams import PATH, SocketFollowing, following

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


async def test_a_sale_is_followed_without_asking(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path, "ann") as story:
        story.agents["ann"].gives = lambda _: 2_500 * USDC
        owner = to_checksum(world.user.address)
        async with following(story.web.port, f"userAddress={owner}") as events:
            begun = await events.begun()
            record = await story.submitted(await world.a_delta_order())
            messages = await events.until_status("COMPLETED")
            assert (await story.record(record["id"]))["status"] == "COMPLETED"
        assert [message.status for message in messages][:2] == ["PENDING", "ACTIVE"]
        assert [message.version for message in messages] == list(range(1, len(messages) + 1))
        assert {(message.id, message.order_hash, message.owner) for message in messages} == {
            (record["id"], record["orderHash"], owner)
        }
        assert messages[0].at == record["createdAt"]
        assert messages[0].partner == record["partner"]
        last = messages[-1]
        assert (last.spent_amount, last.received_amount) == (str(ONE), str(2_500 * USDC))
        for after, expected in ((START, messages), (begun, messages), (messages[0].token, messages[1:])):
            async with following(story.web.port, f"orderId={record['id']}&after={after}") as again:
                await again.begun()
                assert await again.take(len(expected)) == expected


async def test_a_cancellation_through_a_websocket(world: World, tmp_path: Path) -> None:
    async with a_delta_story(world, tmp_path) as story:
        other = await story.submitted(await world.a_delta_order(nonce=1))
        record = await story.submitted(await world.a_delta_order(nonce=2))
        socket_of = connect_websocket(
            "127.0.0.1",
            story.web.port,
            f"{PATH}?orderHash={record['orderHash']}&after={START}",
            tls=None,
            headers={},
            message_bytes_max=65_536,
            send_bytes_max=65_536,
        )
        async with socket_of as socket:
            events = SocketFollowing(socket)
            await events.begun()
            status, answer = await story.cancel(other)
            assert status == 200, answer
            status, answer = await story.cancel(record)
            assert status == 200, answer
            messages = await events.take(3)
        assert [message.status for message in messages] == ["PENDING", "CANCELLING", "CANCELLED"]
        assert {message.order_hash for message in messages} == {record["orderHash"]}
