"""The HTTP client against scripted servers on real sockets."""

import ssl
import struct
from collections.abc import Sequence
from itertools import pairwise

import hypothesis
import pytest
import trio
import trio.testing
from bench.peers.ports import held_port, port_of
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.http1 import Http1Limits, Response
from cambist.config.errors import MakerError
from cambist.config.timeouts import HTTP_POOL_IDLE_S, HTTP_POOL_LOOK_S
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.streams import client_tls, server_tls
from support.examples import examples
from support.server.scripted_server import OK, Caller, Script, keep_answering, scripted_server
from support.server.server_harness import make_certificate

LIMITS = Http1Limits(body_bytes_max=1_000, answer_head_bytes_max=1_000)
LONG_S = 30.0


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    return make_certificate(tmp_path_factory.mktemp("tls"))


def client_of(port: int, *, connections_max: int = 4, tls: ssl.SSLContext | None = None) -> HttpClient:
    host = "localhost" if tls else "127.0.0.1"
    return HttpClient(host, port, connections_max=connections_max, limits=LIMITS, tls=tls)


async def post(
    client: HttpClient, body: bytes = b"{}", deadline_s: float = LONG_S, *, may_repeat: bool = False
) -> Response:
    return await client.request(
        b"POST", b"/firm?a=1", [(b"x-a", b"b")], body, deadline_s=deadline_s, may_repeat=may_repeat
    )


async def failure_of(client: HttpClient, deadline_s: float = LONG_S, *, may_repeat: bool = False) -> str:
    with pytest.raises(MakerError) as caught:
        await post(client, deadline_s=deadline_s, may_repeat=may_repeat)
    return caught.value.detail


async def test_a_request_arrives_whole_and_its_answer_comes_back() -> None:
    async def script(caller: Caller) -> None:
        request = await caller.answer(b"HTTP/1.1 201 Made\r\nx-c: d\r\ncontent-length: 4\r\n\r\nbody")
        assert (request.method, request.target, request.body) == (b"POST", b"/firm?a=1", b"{}")
        host, *others = request.headers
        assert host[1] == b"127.0.0.1:%d" % port
        assert others == [(b"x-a", b"b"), (b"content-length", b"2")]

    async with scripted_server(script) as port, client_of(port) as client:
        answer = await post(client)
    assert (answer.status, answer.body) == (201, b"body")
    assert (b"x-c", b"d") in answer.headers


@pytest.mark.parametrize(
    ("pieces", "status", "body"),
    [
        ([OK[:1], OK[1:-1], OK[-1:]], 200, b"ok"),
        ([b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n", b"0\r\n\r\n"], 200, b"ok"),
        ([b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: a\r\n\r\n", OK], 200, b"ok"),
        ([b"HTTP/1.1 204 No Content\r\n\r\n"], 204, b""),
        ([b"HTTP/1.1 503 Down\r\ncontent-length: 0\r\n\r\n"], 503, b""),
    ],
)
async def test_an_answer_of_any_shape_and_the_connection_lives_on(
    pieces: Sequence[bytes], status: int, body: bytes
) -> None:
    async def script(caller: Caller) -> None:
        await caller.answer(*pieces)
        await caller.answer(*pieces)

    async def only_once(_: Caller) -> None:
        pytest.fail("connected again")

    async with scripted_server(script, only_once) as port, client_of(port) as client:
        for _ in range(2):
            answer = await post(client)
            assert (answer.status, answer.body) == (status, body)
        assert client.statistics().dialled == 1


async def test_the_connection_used_last_is_used_next() -> None:
    seen: list[int] = []

    def numbered(number: int) -> Script:
        async def script(caller: Caller) -> None:
            await caller.request()
            await both_asked.wait()
            await caller.stream.send_all(OK)
            while not await caller.at_end():
                seen.append(number)
                await caller.stream.send_all(OK)

        return script

    both_asked = trio.Event()
    async with scripted_server(numbered(0), numbered(1)) as port, client_of(port) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(post, client)
            nursery.start_soon(post, client)
            while client.statistics().dialled < 2:
                await trio.lowlevel.checkpoint()
            both_asked.set()
        for _ in range(5):
            await post(client)
        assert len(set(seen)) == 1
        assert client.statistics().dialled == 2
        assert client.statistics().idle == 2


async def test_connections_are_bounded_and_waiting_is_fair() -> None:
    order: list[int] = []
    most = 0

    async def ask(number: int) -> None:
        nonlocal most
        await post(client, b"%d" % number)
        order.append(number)
        most = max(most, client.statistics().busy)

    async with scripted_server(keep_answering) as port, client_of(port, connections_max=1) as client:
        async with trio.open_nursery() as nursery:
            for number in range(20):
                nursery.start_soon(ask, number)
                await trio.testing.wait_all_tasks_blocked(0.0)
            assert client.statistics().waiting <= 19
        assert client.statistics().dialled == 1
        assert client.statistics().waiting == 0
    assert order == sorted(order)
    assert most <= 1


# --- What is tried again, and what is not -----------------------------------------------------------


async def test_a_connection_closed_while_idle_is_noticed_before_use() -> None:
    async def script(caller: Caller) -> None:
        await caller.answer()
        await caller.stream.aclose()

    async with scripted_server(script) as port, client_of(port) as client:
        for number in range(3):
            await post(client)
            await _until_input(client)
            assert client.statistics().dialled == number + 1
        assert client.statistics().retries == 0


async def test_a_connection_with_unasked_bytes_is_not_used() -> None:
    answered = trio.Event()

    async def script(caller: Caller) -> None:
        await caller.answer()
        await answered.wait()
        await caller.stream.send_all(b"HTTP/1.1 408 Request Timeout\r\ncontent-length: 0\r\n\r\n")
        assert await caller.at_end()

    async with scripted_server(script, keep_answering) as port, client_of(port) as client:
        await post(client)
        answered.set()
        await _until_input(client)
        assert (await post(client)).status == 200


async def _until_input(client: HttpClient) -> None:
    """Until the idle connection has something to read."""
    (connection,) = client._idle
    while not connection.has_input():
        await trio.lowlevel.checkpoint()


async def test_a_reused_connection_that_dies_before_a_byte_is_tried_again_once() -> None:
    async def dies(caller: Caller) -> None:
        await caller.answer()
        await caller.request()

    async with scripted_server(dies, keep_answering) as port, client_of(port) as client:
        await post(client)
        assert (await post(client, may_repeat=True)).status == 200
        assert client.statistics().retries == 1
        assert client.statistics().failures == 0


async def test_the_second_try_is_the_last() -> None:
    async def dies(caller: Caller) -> None:
        await caller.answer()
        await caller.request()

    async def dies_at_once(caller: Caller) -> None:
        await caller.request()

    async with scripted_server(dies, dies_at_once) as port, client_of(port) as client:
        await post(client)
        assert "closed by the other side" in await failure_of(client, may_repeat=True)
        assert client.statistics().dialled == 2


async def test_a_new_connection_that_dies_is_not_tried_again() -> None:
    async def dies(caller: Caller) -> None:
        await caller.request()

    async with scripted_server(dies) as port, client_of(port) as client:
        assert "closed by the other side" in await failure_of(client)
        assert client.statistics().dialled == 1


async def test_a_connection_that_is_reset_is_told() -> None:
    async def resets(caller: Caller) -> None:
        await caller.request()
        assert isinstance(caller.stream, trio.SocketStream)
        caller.stream.setsockopt(trio.socket.SOL_SOCKET, trio.socket.SO_LINGER, struct.pack("ii", 1, 0))

    async with scripted_server(resets) as port, client_of(port) as client:
        assert "the connection broke: no answer" in await failure_of(client)


async def test_an_answer_that_began_is_not_asked_for_again() -> None:
    async def dies(caller: Caller) -> None:
        await caller.answer()
        await caller.answer(OK[:-1])

    async with scripted_server(dies) as port, client_of(port) as client:
        await post(client)
        assert "closed by the other side" in await failure_of(client, may_repeat=True)
        assert client.statistics().dialled == 1
        assert client.statistics().retries == 0


@pytest.mark.parametrize(
    ("answer", "text"),
    [
        (b"SSH-2.0-OpenSSH\r\n", "does not begin with a status line"),
        (b"HTTP/1.1 200 OK\r\ncontent-length: 1001\r\n\r\n", "BodyTooLarge: expected at most 1000 bytes"),
        (b"HTTP/1.1 200 OK\r\nx: " + b"a" * 2_000, "HeadersTooLarge"),
        (b"HTTP/1.1 101 Go\r\nupgrade: websocket\r\n\r\n", "an upgrade"),
        (
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 3\r\n\r\nok",
            "content-length: expected one, got 'more'",
        ),
    ],
)
async def test_an_answer_that_we_do_not_take_drops_the_connection(answer: bytes, text: str) -> None:
    async def script(caller: Caller) -> None:
        await caller.answer(answer)
        assert await caller.at_end()

    async with scripted_server(script, keep_answering) as port, client_of(port) as client:
        assert text in await failure_of(client)
        assert (await post(client)).status == 200
        assert client.statistics().dialled == 2


async def test_an_answer_may_end_with_its_connection() -> None:
    async def script(caller: Caller) -> None:
        await caller.answer(b"HTTP/1.0 200 OK\r\nserver: PHP\r\n\r\nuntil the end")

    async with scripted_server(script, keep_answering) as port, client_of(port) as client:
        assert (await post(client)).body == b"until the end"
        assert (await post(client)).status == 200
        assert client.statistics().dialled == 2


@pytest.mark.parametrize(
    "answer", [OK + b"more", OK.replace(b"\r\n", b"\r\nconnection: close\r\n", 1), OK.replace(b"1.1", b"1.0")]
)
async def test_an_answer_may_be_the_last_of_its_connection(answer: bytes) -> None:
    async def script(caller: Caller) -> None:
        await caller.answer(answer)
        assert await caller.at_end()

    async with scripted_server(script) as port, client_of(port) as client:
        assert (await post(client)).body == b"ok"
        assert client.statistics().idle == 0


# --- Time -------------------------------------------------------------------------------------------


async def silent(caller: Caller) -> None:
    await caller.request()
    assert await caller.at_end()


async def test_a_late_answer_is_a_fault_and_its_connection_is_dropped() -> None:
    async with scripted_server(silent, keep_answering) as port, client_of(port) as client:
        assert (await failure_of(client, 1)).endswith("timed out after 1000 ms: no answer")
        assert client.statistics().idle == 0
        assert (await post(client)).status == 200


async def test_a_late_reused_connection_is_not_tried_again() -> None:
    async def script(caller: Caller) -> None:
        await caller.answer()
        await silent(caller)

    async with scripted_server(script) as port, client_of(port) as client:
        await post(client)
        assert "timed out after 50 ms: no answer" in await failure_of(client, 0.05, may_repeat=True)
        assert client.statistics().retries == 0


async def test_each_deadline_counts_for_itself(mock_clock: trio.testing.MockClock) -> None:
    ends: list[float] = []

    async def fail(deadline_s: float) -> None:
        await failure_of(client, deadline_s)
        ends.append(deadline_s)

    async with scripted_server(silent) as port, client_of(port) as client, trio.open_nursery() as nursery:
        for deadline_s in (4, 1, 3, 2):
            nursery.start_soon(fail, deadline_s)
        while len(client._watched) < 4:
            await trio.lowlevel.checkpoint()
        for passed in ([1], [1, 2], [1, 2, 3], [1, 2, 3, 4]):
            mock_clock.jump(1)
            await trio.testing.wait_all_tasks_blocked()
            assert ends == passed


async def test_waiting_for_a_turn_counts_against_the_deadline() -> None:
    async with scripted_server(silent) as port, client_of(port, connections_max=1) as client:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(failure_of, client, 0.3)
            await trio.testing.wait_all_tasks_blocked()
            text = await failure_of(client, 0.05)
            assert text.endswith("timed out after 50 ms: no connection was free")
        assert client.statistics().dialled == 1
        assert client.statistics().busy == 0


async def test_an_answer_that_trickles_is_late_as_a_whole() -> None:
    async def trickle(caller: Caller) -> None:
        await caller.answer(b"HTTP/1.1 200 OK\r\ncontent-length: 500\r\n\r\n")
        try:
            while True:
                await caller.stream.send_all(b"a")
                await trio.lowlevel.checkpoint()
                with trio.move_on_after(0.01):
                    assert await caller.at_end()
                    return
        except trio.BrokenResourceError:
            return

    async with scripted_server(trickle) as port, client_of(port) as client:
        assert "timed out after 1000 ms: the answer is not complete" in await failure_of(client, 1)


async def test_a_cancelled_request_drops_its_connection_and_frees_its_turn() -> None:
    async def hears(caller: Caller) -> None:
        await caller.request()
        nursery.cancel_scope.cancel()
        assert await caller.at_end()

    async with scripted_server(hears, keep_answering) as port, client_of(port, connections_max=1) as client:
        async with trio.open_nursery() as nursery:
            await post(client)
        assert nursery.cancel_scope.cancelled_caught
        assert client.statistics().idle == 0
        assert client.statistics().busy == 0
        assert (await post(client)).status == 200


async def test_leaving_the_client_ends_what_is_under_way() -> None:
    async with scripted_server(silent) as port, trio.open_nursery() as nursery, client_of(port) as client:
        nursery.start_soon(failure_of, client)
        while not client._watched:
            await trio.lowlevel.checkpoint()
    with pytest.raises(trio.ClosedResourceError, match="not open"):
        await post(client)


async def test_who_is_cancelled_with_the_client_is_not_told_that_it_is_closed() -> None:
    async with client_of(1) as client:
        pass
    with trio.CancelScope() as scope:
        scope.cancel()
        await post(client)
    assert scope.cancelled_caught


async def test_leaving_the_client_ends_those_who_wait_and_those_who_dial() -> None:
    async def dial(host: str, port: int, **_: object) -> trio.abc.Stream:
        await closed.wait()
        return trio.testing.memory_stream_pair()[0]

    closed = trio.Event()
    async with trio.open_nursery() as nursery:
        async with HttpClient("maker", 80, connections_max=1, limits=LIMITS, dial=dial) as client:
            nursery.start_soon(failure_of, client)
            nursery.start_soon(failure_of, client)
            await trio.testing.wait_all_tasks_blocked()
        closed.set()
    assert client.statistics().failures == 2


async def test_an_error_within_the_client_is_raised_as_it_is() -> None:
    with pytest.raises(ZeroDivisionError):
        async with client_of(1):
            _ = 1 // 0


# --- Connecting ---------------------------------------------------------------------------------------


async def test_a_refused_connection_is_told() -> None:
    with held_port() as unused:
        port = port_of(unused)
        async with client_of(port) as client:
            assert await failure_of(client) == f"127.0.0.1:{port}: no connection: Connection refused"


async def test_an_unknown_name_is_told() -> None:
    async with HttpClient("nobody.invalid", 80, connections_max=1, limits=LIMITS) as client:
        assert (await failure_of(client)).startswith("nobody.invalid:80: no connection: ")


async def test_over_tls(certificate: tuple[str, str]) -> None:
    server, trusting = server_tls(*certificate), client_tls(certificate[0])
    async with scripted_server(keep_answering, tls=server) as port, client_of(port, tls=trusting) as client:
        for _ in range(3):
            assert (await post(client, b"a" * 100_000)).body == b"ok"
        assert client.statistics().dialled == 1


async def test_tls_late_closed_and_cancelled(certificate: tuple[str, str]) -> None:
    async def closes(caller: Caller) -> None:
        await caller.answer()

    async def hears(caller: Caller) -> None:
        await caller.request()
        nursery.cancel_scope.cancel()
        assert await caller.at_end()

    server, trusting = server_tls(*certificate), client_tls(certificate[0])
    async with (
        scripted_server(silent, closes, hears, tls=server) as port,
        client_of(port, tls=trusting) as client,
    ):
        assert "timed out after 1000 ms: no answer" in await failure_of(client, 1)
        await post(client)
        await _until_input(client)
        async with trio.open_nursery() as nursery:
            await post(client)
        assert nursery.cancel_scope.cancelled_caught
        assert client.statistics().dialled == 3
        assert client.statistics().idle == 0


async def test_an_untrusted_certificate_is_told(certificate: tuple[str, str]) -> None:
    async def never(caller: Caller) -> None:
        with pytest.raises((trio.BrokenResourceError, EOFError)):
            await caller.request()

    async with (
        scripted_server(never, tls=server_tls(*certificate)) as port,
        client_of(port, tls=client_tls()) as client,
    ):
        assert "no connection: self-signed certificate" in await failure_of(client)


async def test_a_server_without_tls_is_told() -> None:
    async def plain(caller: Caller) -> None:
        await caller.stream.send_all(OK)
        await caller.at_end()

    async with scripted_server(plain) as port, client_of(port, tls=client_tls()) as client:
        assert "no connection: " in await failure_of(client)


# --- On memory streams: time is the test's ------------------------------------------------------------


async def test_connections_idle_for_long_are_not_used_again(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with trio.open_nursery() as nursery:

        async def dial(host: str, port: int, **_: object) -> trio.abc.Stream:
            near, far = trio.testing.memory_stream_pair()
            nursery.start_soon(keep_answering, Caller(far))
            return near

        async with HttpClient("maker", 80, connections_max=2, limits=LIMITS, dial=dial) as client:
            for pause_s, dialled in ((HTTP_POOL_IDLE_S - 1, 1), (HTTP_POOL_IDLE_S + 1, 1), (0, 2)):
                await post(client)
                assert client.statistics().dialled == dialled
                await trio.sleep(pause_s)
            assert client.statistics().idle == 1
            await trio.sleep(HTTP_POOL_IDLE_S + HTTP_POOL_LOOK_S)
            assert client.statistics().idle == 0
            assert client.is_unused


async def test_a_dial_that_never_ends_is_late(autojump_clock: trio.testing.MockClock) -> None:
    async def dial(host: str, port: int, **_: object) -> trio.abc.Stream:
        await trio.sleep_forever()
        raise AssertionError

    async with HttpClient("maker", 80, connections_max=2, limits=LIMITS, dial=dial) as client:
        assert await failure_of(client, 0.75) == "maker:80: timed out after 750 ms: not connected"
        assert client.statistics().busy == 0


ANSWERS = [
    OK,
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n",
    b"HTTP/1.1 100 Continue\r\n\r\n" + OK,
]


@given(st.data())
@hypothesis.settings(max_examples=examples(25))
def test_answers_do_not_depend_on_how_they_are_split(data: st.DataObject) -> None:
    answers = data.draw(st.lists(st.sampled_from(ANSWERS), min_size=1, max_size=4))
    split = [
        sorted({0, len(answer), *data.draw(st.sets(st.integers(1, len(answer) - 1), max_size=5))})
        for answer in answers
    ]

    async def ask() -> None:
        async with trio.open_nursery() as nursery:

            async def serve(caller: Caller) -> None:
                for answer, cuts in zip(answers, split, strict=True):
                    await caller.request()
                    for start, stop in pairwise(cuts):
                        await caller.stream.send_all(answer[start:stop])
                        await trio.testing.wait_all_tasks_blocked()

            async def dial(host: str, port: int, **_: object) -> trio.abc.Stream:
                near, far = trio.testing.memory_stream_pair()
                nursery.start_soon(serve, Caller(far))
                return near

            async with HttpClient("maker", 80, connections_max=1, limits=LIMITS, dial=dial) as client:
                for _ in answers:
                    assert (await post(client)).body == b"ok"
                assert client.statistics().dialled == 1

    trio.run(ask)
