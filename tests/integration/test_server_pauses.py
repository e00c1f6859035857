"""A client that was over its rate pauses: its next request is read a little later, others' at once."""

import pytest
import trio
import trio.testing

from cambist.engine.host.server.pauses import Pauses
from support.patience import PATIENCE_S, until
from support.server.server_harness import GET, LAST_GET, Served, post, serving, statuses

PAUSE_S = "cambist.engine.host.server.pauses.SERVER_PAUSE_S"
OVER = b"GET /over HTTP/1.1\r\nHost: a\r\n\r\n"
LAST_OVER = OVER.replace(b"Host: a", b"Host: a\r\nConnection: close")
LONG_S = 100 * PATIENCE_S

both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])


async def answered(stream: trio.SocketStream, count: int) -> list[int]:
    """The statuses of so many answers."""
    received = b""
    with trio.fail_after(PATIENCE_S):
        while len(found := statuses(received)) < count:
            received += await stream.receive_some(65_536)
    return found


async def is_unread(served: Served, stream: trio.SocketStream) -> bool:
    """Whether a connection gets no answer while another address is served."""
    received: list[bytes] = []

    async def read() -> None:
        received.append(await stream.receive_some(1))

    with trio.CancelScope() as scope:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(read)
            async with await served.connect_from("127.0.0.2") as other:
                for _ in range(20):
                    await other.send_all(GET + post(b"/slow", b"x"))
                    assert await answered(other, 2) == [200, 200]
            scope.cancel()
    return not received


@both
async def test_a_client_that_was_over_its_rate_is_read_later(
    reactor: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PAUSE_S, LONG_S)
    async with (
        serving(reactor=reactor) as served,
        await served.connect() as stream,
        await served.connect_from("127.0.0.3") as ahead,
    ):
        await stream.send_all(OVER)
        assert await answered(stream, 1) == [429]
        await stream.send_all(GET)
        assert await is_unread(served, stream)
        await ahead.send_all(GET + OVER + GET)  # in one read
        assert await answered(ahead, 2) == [200, 429]
        assert await is_unread(served, ahead)
        served.server.drain()
        assert await answered(stream, 1) == [200], "a shutdown answers what has come"
        assert await answered(ahead, 1) == [200]


@both
async def test_a_pause_ends(reactor: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(PAUSE_S, 0.01)
    async with serving(reactor=reactor) as served, await served.connect() as stream:
        for _ in range(3):
            await stream.send_all(OVER + GET + post(b"/slow", b"x"))
            assert await answered(stream, 3) == [429, 200, 200]


@both
async def test_a_new_connection_of_an_address_that_pauses_is_read_later(
    reactor: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PAUSE_S, LONG_S)
    async with serving(reactor=reactor) as served, await served.connect() as earlier:
        await until(lambda: served.server.statistics().connections == 1)
        with trio.fail_after(PATIENCE_S):
            assert statuses(await served.converse(LAST_OVER)) == [429], "the last answer ends at once"
        async with await served.connect() as stream:
            await stream.send_all(GET)
            assert await is_unread(served, stream)
            await earlier.send_all(GET)
            assert await answered(earlier, 1) == [200], "it was refused nothing"
            served.server.drain()
            assert await answered(stream, 1) == [200]


@both
async def test_a_proxys_connections_carry_many_clients_and_do_not_pause(
    reactor: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(PAUSE_S, LONG_S)
    async with serving(reactor=reactor, proxies=["127.0.0.1"]) as served:
        async with await served.connect() as stream:
            await stream.send_all(OVER + GET + OVER)
            assert await answered(stream, 3) == [429, 200, 429]
        assert statuses(await served.converse(LAST_GET)) == [200]


@both
async def test_a_refusal_that_others_have_caused_begins_no_pause(
    reactor: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last share of a maker's stock may have gone to another caller."""
    monkeypatch.setattr(PAUSE_S, LONG_S)
    refused = OVER.replace(b"/over", b"/limited")
    async with serving(reactor=reactor) as served, await served.connect() as stream:
        await stream.send_all(refused + GET + refused)
        assert await answered(stream, 3) == [429, 200, 429]
        assert statuses(await served.converse(LAST_GET)) == [200]


async def test_addresses_are_forgotten_when_their_pauses_are_over(
    monkeypatch: pytest.MonkeyPatch, autojump_clock: trio.testing.MockClock
) -> None:
    monkeypatch.setattr(PAUSE_S, 4)
    pauses = Pauses(frozenset({"192.0.2.1"}))
    start = trio.current_time()
    assert pauses.begin("192.0.2.1") == 0
    assert pauses.begin("192.0.2.7") == start + 4
    await trio.sleep(2)
    assert pauses.begin("2001:db8::1") == start + 6
    assert pauses.begin("192.0.2.7") == start + 6
    assert pauses.until("2001:db8::2") == start + 6, "one client has a /64"
    assert pauses.until("192.0.2.8") == 0
    await trio.sleep(3)
    assert len(pauses) == 2
    assert pauses.until("192.0.2.7") == start + 6
    await pauses.over(pauses.until("192.0.2.7"))
    assert trio.current_time() == start + 6
    assert pauses.until("192.0.2.7") == 0
    pauses.begin("192.0.2.9")
    assert len(pauses) == 1
    pauses.end()
    await pauses.over(start + 1_000)
    assert trio.current_time() == start + 6
