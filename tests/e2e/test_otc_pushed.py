"""OTC orders as they are pushed: to whom each change is told, once, and again from a token."""

from pathlib import Path

import pytest

from cambist.codecs.messages.event_messages import OrderEventMessage
from cambist.crypto.addresses import to_checksum
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.store.follower import START
from cambist.feeds.transport.websocket import connect_websocket
from support.chain.world import MOST, NOBODY, ONE, USDC, World
from support.events.event_streams import OTC_PATH, Following, SocketFollowing
from support.otc.otc_stories import OtcStory, Stored, all_of, an_otc_story, running_otc, text_of

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

FULL, HALF = 2_500 * USDC, 1_250 * USDC


def said(message: OrderEventMessage) -> tuple[int, str, str | None, str | None, str | None]:
    """(version, status, fillable, swappable, transaction) of an event."""
    told = [
        None if not isinstance(value, str) else value
        for value in (message.fillable_balance, message.swappable_balance, message.transaction_hash)
    ]
    return message.version, message.status, told[0], told[1], told[2]


def change(
    version: int, status: str, fillable: int, swappable: int, tx_hash: str | None
) -> tuple[int, str, str, str, str | None]:
    """Expected members of an event."""
    return version, status, str(fillable), str(swappable), tx_hash


async def agrees(story: OtcStory, stored: Stored, message: OrderEventMessage) -> None:
    """The order is as its last event says."""
    now = await story.order(stored)
    names = "state", "fillableBalance", "swappableBalance", "transactionHash"
    assert tuple(now[name] for name in names) == said(message)[1:]


def of(key: SigningKey) -> str:
    """As it is asked for."""
    return to_checksum(key.address)


async def test_each_change_is_told_once_to_maker_taker_and_whoever_follows_the_order(
    world: World, tmp_path: Path
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        hashed = story.hash_of(order)
        async with (
            story.following(maker=of(world.maker)) as makers,
            story.following(taker=of(world.taker)) as takers,
            story.following(orderHash=hashed, chainId=31_337) as orders,
            story.following(maker=of(world.stranger)) as strangers,
        ):
            streams = [makers, takers, orders]
            begun = [await stream.begun() for stream in streams]
            await strangers.begun()
            stored = await story.posted(order)
            first = text_of(await story.fill(order, ONE // 2))
            await story.becomes(stored, "PENDING", **all_of(HALF))
            await story.is_looked_at(stored)
            await story.allows(HALF - 1)
            await story.becomes(stored, "SUSPENDED")
            await story.is_looked_at(stored)
            await story.allows(MOST)
            await story.becomes(stored, "PENDING")
            await story.is_looked_at(stored)
            last = text_of(await story.fill(order, ONE // 2))
            await story.becomes(stored, "FULFILLED")
            heard = [await stream.take(5) for stream in streams]
            assert [said(message) for message in heard[0]] == [
                change(1, "PENDING", FULL, FULL, None),
                change(2, "PENDING", HALF, HALF, first),
                change(3, "SUSPENDED", HALF, 0, first),
                change(4, "PENDING", HALF, HALF, first),
                change(5, "FULFILLED", 0, 0, last),
            ]
            assert heard[1] == heard[0]
            assert heard[2] == heard[0]
            assert {(m.surface, m.order_hash, m.owner, m.type, m.taker) for m in heard[0]} == {
                ("otc", hashed, of(world.maker), "P2P", of(world.taker))
            }
            await agrees(story, stored, heard[0][-1])
            own = story.an_order(maker=world.stranger.address, taker=NOBODY)
            await story.posted(own, world.stranger)
            assert (await strangers.next()).order_hash == story.hash_of(own)  # the first that it hears
        for after, expected in (
            (START, heard[0]),
            (begun[0], heard[0]),
            (heard[0][1].token, heard[0][2:]),
        ):
            for query in ({"maker": of(world.maker)}, {"taker": of(world.taker)}, {"orderHash": hashed}):
                async with story.following(**query, after=after) as again:
                    await again.begun()
                    assert await again.take(len(expected)) == expected


async def test_what_the_chain_takes_back_is_told_too(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order()
        async with story.following(orderHash=story.hash_of(order)) as events:
            await events.begun()
            stored = await story.posted(order)
            filled = text_of(await story.fill(order))
            await story.becomes(stored, "FULFILLED")
            await world.chain.reorganise(1)
            await story.becomes(stored, "PENDING", **all_of(FULL))
            cancelled = text_of(await story.cancel(order))
            await story.becomes(stored, "CANCELLED")
            heard = await events.take(5)
            assert [said(message) for message in heard] == [
                change(1, "PENDING", FULL, FULL, None),
                change(2, "FULFILLED", 0, 0, filled),
                change(3, "PENDING", FULL, 0, None),
                change(4, "PENDING", FULL, FULL, None),
                change(5, "CANCELLED", FULL, 0, cancelled),
            ]
            await agrees(story, stored, heard[-1])


async def test_shares_that_shift_are_told_of_every_order(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        orders = [story.an_order(maker_amount=4_000 * USDC) for _ in range(3)]
        async with story.following(maker=of(world.maker)) as events:
            await events.begun()
            first, second, third = [await story.later(order) for order in orders]
            posted = await events.take(3)
            assert [message.swappable_balance for message in posted] == [
                str(amount * USDC) for amount in (4_000, 4_000, 2_000)
            ]
            await story.cancel(orders[0])
            await story.becomes(third, "PENDING", swappableBalance=str(4_000 * USDC))
            heard = await events.take(2)
            assert [(m.order_hash, m.status, m.swappable_balance) for m in heard] == [
                (first["orderHash"], "CANCELLED", "0"),
                (third["orderHash"], "PENDING", str(4_000 * USDC)),
            ]
            await story.fill(orders[1], ONE // 2)
            await story.becomes(second, "PENDING", **all_of(2_000 * USDC))
            message = await events.next()
            assert (message.order_hash, message.version) == (second["orderHash"], 2)


async def test_an_expiry_and_a_restart_through_a_websocket(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        order = story.an_order(expiry=await world.now_s() + 60, taker=NOBODY)
        stored = await story.posted(order)
        other = story.an_order()
        await story.later(other)
        await story.pass_time(70)
        await story.becomes(stored, "EXPIRED")
        token = await first_of(story, stored)
    filled = text_of(await story.fill(other))
    async with running_otc(world, tmp_path) as again:
        async with again.following(taker=of(world.taker), after=token) as events:
            await events.begun()
            messages = await events.take(2)
            assert [said(message)[1:] for message in messages] == [
                ("PENDING", str(FULL), str(FULL), None),
                ("FULFILLED", "0", "0", filled),
            ]
        assert await replay(again, f"orderHash={stored['orderHash']}&after={token}", 1) == [
            change(2, "EXPIRED", FULL, 0, None)
        ]


async def first_of(story: OtcStory, stored: Stored) -> str:
    """The token of an order's first event."""
    async with story.following(orderHash=stored["orderHash"], after=START) as events:
        await events.begun()
        message = await events.next()
        assert message.version == 1
        return message.token


async def replay(story: OtcStory, query: str, count: int) -> list[object]:
    """First `count` messages of a WebSocket."""
    async with connect_websocket(
        "127.0.0.1",
        story.web.port,
        f"{OTC_PATH}?{query}",
        tls=None,
        headers={},
        message_bytes_max=65_536,
        send_bytes_max=65_536,
    ) as socket:
        events = SocketFollowing(socket)
        await events.begun()
        return [said(message) for message in await events.take(count)]


async def test_the_receiver_that_an_order_names_hears_of_it(world: World, tmp_path: Path) -> None:
    """`takerFromMeta` is heard of as the taker is: the executor may be the taker, and a user receives."""
    async with an_otc_story(world, tmp_path) as story:
        meta = int.from_bytes(world.user.address, "big") | 7 << 160
        order = story.an_order(nonce_and_meta=meta)
        async with (
            story.following(taker=of(world.user)) as users,
            story.following(maker=of(world.maker)) as makers,
        ):
            await users.begun()
            await makers.begun()
            stored = await story.posted(order)
            assert stored["takerFromMeta"] == of(world.user)
            await story.fill(order)
            await story.becomes(stored, "FULFILLED")
            for stream in (users, makers):
                await _tells(stream, ["PENDING", "FULFILLED"], of(world.user))


async def _tells(stream: Following, statuses: list[str], receiver: str) -> None:
    messages = await stream.take(len(statuses))
    assert [message.status for message in messages] == statuses
    assert {message.taker_from_meta for message in messages} == {receiver}
