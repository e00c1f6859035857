"""Answers to a client over one connection, from both drivers."""

from collections.abc import AsyncIterator

import pytest
import structlog
import trio

from cambist.engine.host.server import HttpCall, Reply, RouteGroup, StreamReply
from support.patience import PATIENCE_S
from support.server.server_harness import (
    GET,
    LAST_GET,
    a_router,
    a_surface,
    answers,
    encode_error,
    field,
    post,
    read_to_end,
    serving,
    statuses,
)

both = pytest.mark.parametrize("reactor", [False, True], ids=["task", "reactor"])


@both
async def test_a_connection_is_kept_alive_and_answers_in_order(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                for number in range(5):
                    await stream.send_all(post(b"/echo", b"%d" % number))
                    (answer,) = answers(bytes(await stream.receive_some(10_000)))
                    assert (answer.status, answer.body, answer.keep_alive) == (200, b"%d" % number, True)


@both
async def test_pipelined_requests_are_answered_in_order_on_every_kind_of_route(reactor: bool) -> None:
    burst = b"".join(post(b"/slow" if number % 7 == 3 else b"/echo", b"%d" % number) for number in range(200))
    async with serving(reactor=reactor) as served:
        data = await served.converse(burst + LAST_GET)
        assert [answer.body for answer in answers(data)] == [b"%d" % n for n in range(200)] + [b'"hello"']


@both
async def test_a_request_may_come_byte_by_byte(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        request = post(b"/echo", b"abc") + LAST_GET
        data = await served.converse(*(request[at : at + 1] for at in range(len(request))))
        assert [answer.body for answer in answers(data)] == [b"abc", b'"hello"']


@both
async def test_a_chunked_body_is_decoded(reactor: bool) -> None:
    head = b"POST /echo HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n"
    async with serving(reactor=reactor) as served:
        data = await served.converse(head, b"3\r\nabc\r\n", b"2\r\nde\r\n0\r\nx: y\r\n\r\n", LAST_GET)
        assert [answer.body for answer in answers(data)] == [b"abcde", b'"hello"']


@both
async def test_a_client_that_waits_for_100_continue_is_told_to_go_on(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                head, body = post(b"/echo", b"abc", b"Expect: 100-continue").split(b"\r\n\r\n")
                await stream.send_all(GET + head + b"\r\n\r\n")
                seen = b""
                while not seen.endswith(b"HTTP/1.1 100 Continue\r\n\r\n"):
                    seen += await stream.receive_some(10_000)
                await stream.send_all(body + LAST_GET)
                seen += await read_to_end(stream)
                assert [answer.body for answer in answers(seen)] == [b'"hello"', b"abc", b'"hello"']


@both
async def test_head_has_the_length_and_no_body(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        data = await served.converse(LAST_GET.replace(b"GET /", b"HEAD /wide"))
        (answer,) = answers(data, b"HEAD")
        assert field(answer, b"content-length") == b"1000002"
        assert data.endswith(b"\r\n\r\n")


@both
async def test_every_answer_has_a_date_and_an_id_of_its_own(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        data = await served.converse(GET, GET.replace(b"/", b"/nowhere", 1), b"garbage\r\n\r\n")
        found = answers(data)
        assert [answer.status for answer in found] == [200, 404, 400]
        assert {field(answer, b"date") for answer in found} == {b"Tue, 14 Nov 2023 22:13:20 GMT"}
        ids = [field(answer, b"x-request-id") for answer in found]
        assert None not in ids
        assert len(set(ids)) == 3


@both
async def test_durations_count_each_answer_at_its_own_route(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        await served.converse(GET, GET, GET.replace(b"/", b"/nowhere", 1), post(b"/echo", b"x"), LAST_GET)
        found = {route: sum(each.counts) for route, each in served.server.durations().items()}
        assert {route: number for route, number in found.items() if number} == {"GET /": 3, "POST /echo": 1}


@both
@pytest.mark.parametrize(
    ("path", "status", "text"),
    [
        (b"/refuse", 400, b"side: expected BUY or SELL"),
        (b"/limited", 429, b"rate limit exceeded"),
        (b"/nowhere", 404, b"Not found"),
        (b"/echo", 405, b"Method not allowed"),
    ],
)
async def test_what_the_caller_did_wrong_is_said(
    reactor: bool, path: bytes, status: int, text: bytes
) -> None:
    async with serving(reactor=reactor) as served:
        first, second = answers(await served.converse(GET.replace(b"/", path, 1), LAST_GET))
        assert first.status == status
        assert text in first.body
        assert second.status == 200
        if status == 429:
            assert field(first, b"retry-after") == b"1"
        if status == 405:
            assert field(first, b"allow") == b"POST, OPTIONS"


@both
async def test_our_own_fault_is_logged_once_and_not_told(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        with structlog.testing.capture_logs() as logs:
            (answer, _) = answers(await served.converse(GET.replace(b"/", b"/broken", 1), LAST_GET))
        assert answer.status == 500
        assert b"secret" not in answer.body
        (entry,) = logs
        assert isinstance(entry["exc_info"], RuntimeError)
        assert entry["request_id"].encode() == field(answer, b"x-request-id")
        assert served.server.statistics().errors == 1


@both
@pytest.mark.parametrize("method", ["plain", "coroutine"])
async def test_a_reply_that_would_break_the_framing_is_our_own_fault(reactor: bool, method: str) -> None:
    surface = RouteGroup(encode_error)
    bad = Reply(200, b"", ((b"x", b"a\r\nset-cookie: b"),))

    async def answer(call: HttpCall) -> Reply:
        return bad

    if method == "plain":
        surface.plain("GET", "/", lambda call: bad)
    else:
        surface.coroutine("GET", "/", answer)
    async with serving(a_router(surface), reactor=reactor) as served:
        with structlog.testing.capture_logs():
            assert statuses(await served.converse(GET, LAST_GET)) == [500, 500]


@pytest.mark.parametrize(
    ("listed", "page"),
    [("https://app.example", b"https://app.example"), ("localhost", b"http://localhost:5173")],
)
@both
async def test_a_surface_with_origins_answers_browsers(reactor: bool, listed: str, page: bytes) -> None:
    router = a_router(a_surface(cors_origins=[listed]))
    origin = b"Origin: %b\r\n\r\n" % page
    async with serving(router, reactor=reactor) as served:
        preflight = b"OPTIONS /slow HTTP/1.1\r\nHost: a\r\nAccess-Control-Request-Method: POST\r\n" + origin
        plain, missing, asked, stream = answers(
            await served.converse(
                GET[:-2] + origin,
                GET.replace(b"/", b"/nowhere", 1)[:-2] + origin,
                preflight,
                LAST_GET.replace(b"/", b"/numbers", 1)[:-2] + origin,
            ),
            b"GET",
            b"GET",
            b"OPTIONS",
        )
        for answer in (plain, missing, asked, stream):
            assert field(answer, b"access-control-allow-origin") == page
            assert field(answer, b"vary") == b"origin"
        assert (asked.status, field(asked, b"access-control-allow-methods")) == (204, b"POST, OPTIONS")


@both
async def test_a_stream_comes_in_chunks_and_the_connection_lives_on(reactor: bool) -> None:
    get = GET.replace(b"/", b"/numbers", 1)
    async with serving(reactor=reactor) as served:
        data = await served.converse(get + get.replace(b"GET", b"HEAD") + GET + LAST_GET)
        stream, head, first, second = answers(data, b"GET", b"HEAD")
        assert stream.body == b"0\n1\n2\n"
        assert field(head, b"transfer-encoding") == b"chunked"
        assert (first.status, second.status) == (200, 200)


@both
async def test_an_old_client_gets_a_stream_that_ends_with_the_connection(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        data = await served.converse(b"GET /numbers HTTP/1.0\r\n\r\n")
        head, _, body = data.partition(b"\r\n\r\n")
        assert b"transfer-encoding" not in head
        assert b"connection: close" in head
        assert body == b"0\n1\n2\n"


@both
async def test_an_old_client_may_keep_the_connection(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        data = await served.converse(
            b"GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n"
        )
        assert [answer.keep_alive for answer in answers(data)] == [True, False]


@both
async def test_a_stream_is_cancelled_when_its_reader_goes_away(reactor: bool) -> None:
    ended = trio.Event()

    async def subscribe(call: HttpCall) -> StreamReply:
        async def pieces() -> AsyncIterator[bytes]:
            try:
                yield b"first\n"
                await trio.sleep_forever()
            finally:
                ended.set()

        return StreamReply(content_type=b"text/plain", pieces=pieces(), endless=True)

    surface = a_surface()
    surface.coroutine("GET", "/events", subscribe)
    async with serving(a_router(surface), reactor=reactor) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                await stream.send_all(GET.replace(b"/", b"/events", 1))
                seen = b""
                while b"first" not in seen:
                    seen += await stream.receive_some(10_000)
            await ended.wait()


@both
async def test_a_stream_that_fails_is_cut_off_without_an_end(reactor: bool) -> None:
    async def fail(call: HttpCall) -> StreamReply:
        async def pieces() -> AsyncIterator[bytes]:
            yield b"first\n"
            raise RuntimeError("no more")

        return StreamReply(content_type=b"text/plain", pieces=pieces())

    surface = a_surface()
    surface.coroutine("GET", "/fail", fail)
    async with serving(a_router(surface), reactor=reactor) as served:
        with structlog.testing.capture_logs() as logs:
            data = await served.converse(GET.replace(b"/", b"/fail", 1))
        assert b"6\r\nfirst\n\r\n" in data
        assert b"0\r\n\r\n" not in data
        assert len(logs) == 1


@both
async def test_a_client_that_has_half_closed_gets_its_answers(reactor: bool) -> None:
    async with serving(reactor=reactor) as served:
        burst = GET + post(b"/slow", b"abc") + GET
        data = await served.converse(burst, half_close=True)
        assert statuses(data) == [200, 200, 200]
        assert await served.converse(GET[:20], half_close=True) == b""


@both
async def test_a_large_answer_arrives_whole(reactor: bool) -> None:
    get = GET.replace(b"/", b"/wide", 1)
    async with serving(reactor=reactor) as served:
        data = await served.converse(get * 5 + LAST_GET)
        assert [len(answer.body) for answer in answers(data)] == [1_000_002] * 5 + [7]
        assert served.server.statistics().promoted == int(reactor)


async def test_the_reactor_keeps_plain_connections_and_promotes_the_others_once() -> None:
    async with serving(reactor=True) as served:
        with trio.fail_after(PATIENCE_S):
            async with await served.connect() as stream:
                for path, promoted in (
                    (b"/echo", 0),
                    (b"/echo", 0),
                    (b"/slow", 1),
                    (b"/echo", 1),
                    (b"/slow", 1),
                ):
                    await stream.send_all(post(path, b"abc"))
                    (answer,) = answers(bytes(await stream.receive_some(10_000)))
                    assert answer.body == b"abc"
                    assert served.server.statistics().promoted == promoted
                assert served.server.statistics().requests == 5
