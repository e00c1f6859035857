"""The WebSocket driver against raw frames on memory streams; time is the test's."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from itertools import pairwise
from random import Random
from typing import TypeAlias

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from trio.testing import MockClock, wait_all_tasks_blocked

from cambist.config.errors import WebSocketClosed
from cambist.config.timeouts import (
    WEBSOCKET_CLOSE_S,
    WEBSOCKET_PING_EVERY_S,
    WEBSOCKET_PONG_S,
    WEBSOCKET_STAND_IN_S,
)
from cambist.feeds.transport.websocket import WebSocket
from support.server.raw_websocket import (
    BINARY,
    CLOSE,
    CONTINUATION,
    PING,
    PONG,
    TEXT,
    RawPeer,
    close_data,
    frame,
    our_client,
    our_server,
)

Side: TypeAlias = Callable[..., AbstractAsyncContextManager[tuple[WebSocket, RawPeer]]]
both_sides = pytest.mark.parametrize("side", [our_server, our_client])


# --- Messages ---------------------------------------------------------------------------------------


@both_sides
@pytest.mark.parametrize("message", ["", "bid", "Ω" * 90, "a" * 70_000, b"", b"\x00\xff", bytes(70_000)])
async def test_messages_go_both_ways(autojump_clock: MockClock, side: Side, message: str | bytes) -> None:
    opcode, data = (TEXT, message.encode()) if isinstance(message, str) else (BINARY, message)
    async with side() as (socket, peer):
        await peer.send(opcode, data)
        assert await socket.receive() == message
        await socket.send(message)
        assert await peer.receive() == (opcode, data)
        assert socket.send_nowait(message)
        assert await peer.receive() == (opcode, data)
        assert socket.statistics().messages_sent == 2
        assert socket.statistics().messages_received == 1


@both_sides
async def test_control_frames_may_stand_between_fragments(autojump_clock: MockClock, side: Side) -> None:
    omega = "Ω".encode()
    async with side() as (socket, peer):
        await peer.send(TEXT, b"a" + omega[:1], fin=False)
        await peer.send(PING, b"are you there")
        await peer.send(CONTINUATION, omega[1:], fin=False)
        await peer.send(CONTINUATION, b"", fin=False)
        await peer.send(CONTINUATION, b"z")
        assert await socket.receive() == "aΩz"
        assert await peer.receive() == (PONG, b"are you there")


@given(st.lists(st.text(max_size=200), min_size=1, max_size=8), st.randoms(use_true_random=False))
def test_messages_do_not_depend_on_how_the_bytes_are_split(texts: list[str], random: Random) -> None:
    wire = b""
    for text in texts:
        data = text.encode()
        cut = random.randint(0, len(data))
        wire += frame(TEXT, data[:cut], masked=True, fin=False) + frame(CONTINUATION, data[cut:], masked=True)
    cuts = sorted(random.sample(range(len(wire)), min(6, len(wire))))

    async def receive() -> None:
        async with our_server(trailing=wire[: cuts[0]]) as (socket, peer):
            for start, stop in pairwise([*cuts, len(wire)]):
                await peer.stream.send_all(wire[start:stop])
                await wait_all_tasks_blocked()
            assert [await socket.receive() for _ in texts] == texts

    trio.run(receive, clock=MockClock(autojump_threshold=0))


@both_sides
@pytest.mark.parametrize(
    ("code", "frames"),
    [
        (1007, [(TEXT, b"\xff", True, 0)]),
        (1007, [(TEXT, b"a\xce", False, 0), (CONTINUATION, b"a", True, 0)]),
        (1009, [(BINARY, bytes(1_001), True, 0)]),
        (1009, [(TEXT, bytes(600), False, 0), (CONTINUATION, bytes(600), False, 0)]),
        (1002, [(CONTINUATION, b"", True, 0)]),
        (1002, [(TEXT, b"", False, 0), (TEXT, b"", True, 0)]),
        (1002, [(3, b"", True, 0)]),
        (1002, [(TEXT, b"", True, 4)]),
        (1002, [(PING, b"", False, 0)]),
        (1002, [(PING, bytes(126), True, 0)]),
        (1002, [(CLOSE, b"\x03", True, 0)]),
        (1002, [(CLOSE, close_data(1005), True, 0)]),
        (1007, [(CLOSE, close_data(1000) + b"\xff", True, 0)]),
    ],
)
async def test_a_fault_closes_with_its_code_after_the_messages_before_it(
    autojump_clock: MockClock, side: Side, code: int, frames: list[tuple[int, bytes, bool, int]]
) -> None:
    async with side(message_bytes_max=1_000) as (socket, peer):
        wire = peer.frame(TEXT, b"good")
        for opcode, data, fin, rsv in frames:
            wire += peer.frame(opcode, data, fin=fin, rsv=rsv)
        await peer.stream.send_all(wire + peer.frame(TEXT, b"too late"))
        assert await socket.receive() == "good"
        with pytest.raises(WebSocketClosed) as caught:
            await socket.receive()
        assert (caught.value.code, socket.close_code) == (code, code)
        assert caught.value.reason
        opcode, data = await peer.receive()
        assert (opcode, int.from_bytes(data[:2], "big")) == (CLOSE, code)


@both_sides
async def test_the_wrong_masking_is_a_protocol_error(autojump_clock: MockClock, side: Side) -> None:
    async with side() as (socket, peer):
        peer.masks = not peer.masks
        await peer.send(TEXT, b"a")
        with pytest.raises(WebSocketClosed, match=r"1002 .*incorrect masking"):
            await socket.receive()


async def test_ten_thousand_messages_in_one_read_leave_room_for_others(autojump_clock: MockClock) -> None:
    turns = 0

    async def other() -> None:
        nonlocal turns
        while True:
            await trio.lowlevel.checkpoint()
            turns += 1

    async with our_server() as (socket, peer):
        await peer.stream.send_all(
            peer.frame(TEXT, b"a") * 8_000 + peer.frame(PONG) * 8_000 + peer.frame(TEXT)
        )
        async with trio.open_nursery() as nursery:
            nursery.start_soon(other)
            most = 0
            for _ in range(8_001):
                before = turns
                await socket.receive()
                most = max(most, turns - before)
            nursery.cancel_scope.cancel()
    assert turns >= 8_000 / 32 + 8_000 * 6 / 4_096
    assert socket.statistics().messages_received == 8_001


async def test_a_cancelled_receive_loses_nothing(autojump_clock: MockClock) -> None:
    async with our_server() as (socket, peer):
        for number in range(30):
            with trio.move_on_after(0.5):
                await socket.receive()
                pytest.fail("nothing was sent")
            await peer.send(TEXT, b"%d" % number)
            assert await socket.receive() == str(number)


async def test_two_tasks_cannot_receive_at_once(autojump_clock: MockClock) -> None:
    async with our_server() as (socket, _), trio.open_nursery() as nursery:
        nursery.start_soon(socket.receive)
        await wait_all_tasks_blocked()
        with pytest.raises(trio.BusyResourceError, match="another task is receiving"):
            await socket.receive()
        nursery.cancel_scope.cancel()


# --- Life without a receiving application -----------------------------------------------------------


@both_sides
async def test_pings_are_answered_while_the_application_does_something_else(
    autojump_clock: MockClock, side: Side
) -> None:
    async with side() as (socket, peer):
        await peer.send(PING, b"one")
        assert await peer.receive() == (PONG, b"one")
        await peer.send(TEXT, b"first")
        assert await socket.receive() == "first"
        await peer.send(TEXT, b"second")
        assert await socket.receive() == "second"
        start = trio.current_time()
        await peer.send(PING, b"two")
        assert await peer.receive() == (PONG, b"two")
        assert trio.current_time() - start <= WEBSOCKET_STAND_IN_S
        await peer.send(TEXT, b"third")
        assert await socket.receive() == "third"


async def test_a_peer_that_leaves_is_noticed_by_an_application_that_only_sends(
    autojump_clock: MockClock,
) -> None:
    async with our_server() as (socket, peer):
        await peer.send(CLOSE, close_data(1001, "restart"))
        assert await peer.receive() == (CLOSE, close_data(1001, "restart"))
        assert not socket.send_nowait("event")
        assert (socket.close_code, socket.close_reason) == (1001, "restart")


@both_sides
async def test_nothing_is_read_beyond_the_inbox_and_nothing_is_lost(
    autojump_clock: MockClock, side: Side
) -> None:
    async with side() as (socket, peer):
        message = peer.frame(TEXT, b"a" * 1_000)
        async with trio.open_nursery() as nursery:

            async def flood() -> None:
                for _ in range(1_000):
                    await peer.stream.send_all(message)
                    await wait_all_tasks_blocked()

            nursery.start_soon(flood)
            await trio.sleep(4 * (WEBSOCKET_PING_EVERY_S + WEBSOCKET_PONG_S))
            read = socket.statistics().bytes_received
            assert 65_536 <= read < 65_536 + len(message)
            assert socket.close_code is None, "our own lag is not the other side's silence"
            for _ in range(1_000):
                assert await socket.receive() == "a" * 1_000


@both_sides
async def test_a_large_message_arrives_although_the_keeper_began_to_read_it(
    autojump_clock: MockClock, side: Side
) -> None:
    async with side(message_bytes_max=10 << 20) as (socket, peer):
        wire = peer.frame(TEXT, b"a" * (3 << 20))
        await peer.stream.send_all(wire[:1_000_000])
        await wait_all_tasks_blocked()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(socket.receive)
            await wait_all_tasks_blocked()
            await peer.stream.send_all(wire[1_000_000:])
        assert socket.statistics().messages_received == 1


# --- Pings ------------------------------------------------------------------------------------------


@both_sides
@pytest.mark.parametrize("receives", [False, True])
async def test_a_live_peer_is_pinged_and_stays(autojump_clock: MockClock, side: Side, receives: bool) -> None:
    async with side() as (socket, peer), trio.open_nursery() as nursery:
        if receives:
            nursery.start_soon(socket.receive)
        start = trio.current_time()
        for number in range(1, 6):
            opcode, data = await peer.receive()
            assert opcode == PING
            await peer.send(PONG, data)
            assert trio.current_time() - start == pytest.approx(number * WEBSOCKET_PING_EVERY_S)
            await wait_all_tasks_blocked()
            assert socket.statistics().round_trip_s == 0
        nursery.cancel_scope.cancel()


@both_sides
@pytest.mark.parametrize("receives", [False, True])
async def test_a_dead_peer_ends_the_socket(autojump_clock: MockClock, side: Side, receives: bool) -> None:
    start = trio.current_time()
    async with side() as (socket, peer):
        await peer.send(PONG, b"of no ping")
        if not receives:
            await trio.sleep(1_000)
        with pytest.raises(WebSocketClosed, match=rf"1011 no pong within {WEBSOCKET_PONG_S:g} s"):
            await socket.receive()
    if receives:
        waited = WEBSOCKET_PING_EVERY_S + WEBSOCKET_PONG_S + WEBSOCKET_CLOSE_S
        assert trio.current_time() - start == pytest.approx(waited)


# --- Sending ------------------------------------------------------------------------------------------


async def test_a_sender_waits_for_room(autojump_clock: MockClock) -> None:
    async with our_server(send_bytes_max=1_000, lockstep=True) as (socket, peer):
        sent = 0

        async def produce() -> None:
            nonlocal sent
            for _ in range(50):
                await socket.send(b"a" * 300)
                sent += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(produce)
            await wait_all_tasks_blocked()
            assert sent == 3
            for _ in range(50):
                assert await peer.receive() == (BINARY, b"a" * 300)
        assert sent == 50


async def test_one_message_may_be_larger_than_the_mark(autojump_clock: MockClock) -> None:
    async with our_server(send_bytes_max=1_000, lockstep=True) as (socket, peer):
        await wait_all_tasks_blocked()
        assert socket.send_nowait(b"a" * 5_000)
        assert await peer.receive() == (BINARY, b"a" * 5_000)


async def test_a_cancelled_send_leaves_no_half_frame(autojump_clock: MockClock) -> None:
    async with our_server(send_bytes_max=1_000, lockstep=True) as (socket, peer):
        await socket.send("one" * 100)
        await socket.send("two" * 200)
        with trio.move_on_after(1) as late:
            await socket.send("three" * 100)
        assert late.cancelled_caught
        assert await peer.receive() == (TEXT, b"one" * 100)
        assert await peer.receive() == (TEXT, b"two" * 200)
        await socket.send("four")
        assert await peer.receive() == (TEXT, b"four")


async def test_a_slow_consumer_is_told_and_closed(autojump_clock: MockClock) -> None:
    async with our_server(send_bytes_max=10_000, lockstep=True) as (socket, peer):
        sent = 0
        while socket.send_nowait(b"%05d" % sent * 100):
            sent += 1
            await wait_all_tasks_blocked()
        assert 15 < sent < 25
        assert not socket.send_nowait(b"")
        with pytest.raises(WebSocketClosed, match="1013 slow consumer"):
            await socket.send("more")
        assert await peer.receive() == (BINARY, b"00000" * 100), "what was being written is whole"
        assert await peer.receive() == (CLOSE, close_data(1013, "slow consumer"))
        await peer.send(CLOSE, close_data(1013))
        with pytest.raises(WebSocketClosed, match="1013 slow consumer"):
            await socket.receive()
        assert socket.statistics().send_bytes == 0
        assert await peer.at_end()


async def test_a_consumer_that_takes_nothing_at_all_is_cut_off(autojump_clock: MockClock) -> None:
    start = trio.current_time()
    async with our_server(send_bytes_max=1_000, lockstep=True) as (socket, _):
        while socket.send_nowait(bytes(400)):
            await wait_all_tasks_blocked()
        with pytest.raises(WebSocketClosed, match="1013 slow consumer"):
            await socket.receive()
    assert trio.current_time() - start == pytest.approx(WEBSOCKET_CLOSE_S)


async def test_a_waiting_sender_hears_of_the_end(autojump_clock: MockClock) -> None:
    async with our_server(send_bytes_max=100, lockstep=True) as (socket, peer):
        await socket.send(bytes(90))
        async with trio.open_nursery() as nursery:

            async def send() -> None:
                with pytest.raises(WebSocketClosed, match="1006"):
                    await socket.send(bytes(90))

            nursery.start_soon(send)
            await wait_all_tasks_blocked()
            await peer.stream.aclose()


async def test_pings_of_a_side_that_does_not_read_are_not_kept(autojump_clock: MockClock) -> None:
    async with our_server(lockstep=True) as (socket, peer):
        for _ in range(30):
            await peer.stream.send_all(peer.frame(PING, b"a" * 100) * 100)
        await wait_all_tasks_blocked()
        assert socket.statistics().send_bytes < 1_200 * 102
        assert await peer.receive() == (PONG, b"a" * 100)


# --- Closing ------------------------------------------------------------------------------------------


@both_sides
async def test_the_other_side_closes(autojump_clock: MockClock, side: Side) -> None:
    async with side() as (socket, peer):
        await peer.stream.send_all(peer.frame(TEXT, b"last") + peer.frame(CLOSE, close_data(1000, "done")))
        assert [message async for message in socket] == ["last"]
        with pytest.raises(WebSocketClosed) as caught:
            await socket.receive()
        assert (caught.value.code, caught.value.reason) == (1000, "done")
        assert await peer.receive() == (CLOSE, close_data(1000, "done"))


@both_sides
async def test_a_close_frame_may_be_empty(autojump_clock: MockClock, side: Side) -> None:
    async with side() as (socket, peer):
        await peer.send(CLOSE)
        with pytest.raises(WebSocketClosed, match="1005"):
            await socket.receive()
        assert await peer.receive() == (CLOSE, b"")


@both_sides
async def test_we_close(autojump_clock: MockClock, side: Side) -> None:
    start = trio.current_time()
    async with side() as (socket, peer), trio.open_nursery() as nursery:
        nursery.start_soon(socket.aclose, 1001, "é" * 200)
        assert await peer.receive() == (CLOSE, close_data(1001, "é" * 61))
        await peer.send(TEXT, b"on its way")
        await peer.send(CLOSE, close_data(1001))
        if side is our_client:
            await peer.stream.aclose()
        else:
            assert await peer.at_end()
    assert trio.current_time() == start
    assert (socket.close_code, socket.close_reason) == (1001, "é" * 61)
    with pytest.raises(WebSocketClosed):
        await socket.receive()
    await socket.aclose()


@both_sides
async def test_leaving_the_context_closes_and_waits_no_longer_than_five_seconds(
    autojump_clock: MockClock, side: Side
) -> None:
    start = trio.current_time()
    async with side() as (_, peer):
        pass
    assert trio.current_time() - start == pytest.approx(WEBSOCKET_CLOSE_S)
    assert await peer.receive() == (CLOSE, close_data(1000))
    assert await peer.at_end()


@both_sides
async def test_an_end_without_a_close_frame_is_told(autojump_clock: MockClock, side: Side) -> None:
    async with side() as (socket, peer):
        await peer.stream.send_all(peer.frame(TEXT, b"last") + peer.frame(TEXT, b"half")[:-1])
        await peer.stream.aclose()
        assert await socket.receive() == "last"
        with pytest.raises(WebSocketClosed, match="1006 the connection ended without a close frame"):
            await anext(socket)


@both_sides
async def test_a_cancelled_socket_is_cut_off(autojump_clock: MockClock, side: Side) -> None:
    start = trio.current_time()
    with trio.CancelScope() as scope:
        async with side() as (socket, peer):
            scope.cancel()
            await socket.receive()
    assert await peer.at_end()  # pyright: ignore[reportPossiblyUnboundVariable]
    assert trio.current_time() == start
    assert socket.close_code == 1006  # pyright: ignore[reportPossiblyUnboundVariable]


async def test_a_cancelled_close_cuts_off(autojump_clock: MockClock) -> None:
    start = trio.current_time()
    async with our_server() as (socket, peer):
        with trio.move_on_after(1):
            await socket.aclose()
        await wait_all_tasks_blocked()
        assert await peer.receive() == (CLOSE, close_data(1000))
        assert await peer.at_end()
    assert trio.current_time() - start == pytest.approx(1)


async def test_an_error_of_the_application_is_raised_as_it_is_and_closes_with_1011(
    autojump_clock: MockClock,
) -> None:
    with pytest.raises(ZeroDivisionError):
        async with our_server() as (_, peer):
            _ = 1 // 0
    assert await peer.receive() == (CLOSE, close_data(1011))  # pyright: ignore[reportPossiblyUnboundVariable]


@pytest.mark.parametrize("code", [0, 999, 1005, 1006, 2000, 5000])
async def test_a_code_that_is_never_sent_is_our_bug(autojump_clock: MockClock, code: int) -> None:
    async with our_server() as (socket, _):
        with pytest.raises(ValueError, match=f"not a close code that can be sent: {code}"):
            await socket.aclose(code)
        assert socket.close_code is None
