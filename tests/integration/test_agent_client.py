"""The venue's client of agents, over sockets, against agents of every kind."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from functools import partial
from typing import Any

import msgspec
import pytest
import trio
import trio.testing
from bench.peers.ports import held_port, port_of

from cambist.codecs.http1 import Request, encode_response
from cambist.codecs.messages.agent_messages import Notice, NoticeEntry, NotifyRequest
from cambist.config.limits import AGENT_ANSWER_BYTES_MAX, AGENT_NOTICES_WAITING_MAX
from cambist.crypto.hmac_auth import HmacKey, RequestSigner, request_payload
from cambist.engine.trade.delta.bids.agent_client import AgentClient, AgentFailure
from cambist.engine.trade.delta.bids.agent_rest import AgentFault
from support.patience import PATIENCE, PATIENCE_S, until
from support.server.scripted_server import Caller, Script, scripted_server

NOW_MS = 1_700_000_000_000
SECRET = b"the agent's secret"
SIGNER = RequestSigner("venue", "key-1", SECRET)
ASKED = b'{"auctionId":7}'


@asynccontextmanager
async def a_client(
    port: int, *, signer: RequestSigner | None = SIGNER, prefix: str = "/agent/1"
) -> AsyncGenerator[AgentClient]:
    """A client whose notices are on their way."""
    client = AgentClient("alpha", f"http://127.0.0.1:{port}{prefix}", signer=signer, wall_ms=lambda: NOW_MS)
    async with client, trio.open_nursery() as nursery:
        nursery.start_soon(client.run)
        with trio.fail_after(PATIENCE_S):
            yield client
        nursery.cancel_scope.cancel()


def answering(status: int, body: bytes, seen: list[Request] | None = None) -> Script:
    async def script(caller: Caller) -> None:
        try:
            while True:
                request = await caller.answer(encode_response(status, body))
                if seen is not None:
                    seen.append(request)
        except (EOFError, trio.BrokenResourceError):
            pass

    return script


async def hanging(caller: Caller) -> None:
    await caller.request()
    await trio.sleep_forever()


async def failure(client: AgentClient, deadline_s: float = PATIENCE_S) -> AgentFailure:
    with pytest.raises(AgentFailure) as caught:
        await client.solve(ASKED, deadline_s=deadline_s)
    return caught.value


def a_notice(auction_id: int) -> NotifyRequest:
    return NotifyRequest(auction_id, 1, (NoticeEntry(Notice.WON, "0x12"),))


async def until_told(client: AgentClient, **expected: int) -> None:
    """Wait until the client's statistics say so."""
    await until(lambda: all(getattr(client.statistics(), key) == value for key, value in expected.items()))


async def test_a_question_is_signed_and_answered() -> None:
    seen: list[Request] = []
    async with scripted_server(answering(200, b'{"bids":[]}', seen)) as port, a_client(port) as client:
        assert await client.solve(ASKED, deadline_s=PATIENCE_S) == b'{"bids":[]}'
    (request,) = seen
    assert (request.method, request.path, request.body) == (b"POST", b"/agent/1/solve", ASKED)
    fields = {name.lower(): value for name, value in request.headers}
    expected = HmacKey(SECRET).hex_digest(request_payload(NOW_MS, "POST", "/agent/1/solve", ASKED))
    assert fields[b"x-auth-signature"].decode() == expected
    assert fields[b"x-auth-domain"] == b"venue"
    assert SECRET not in bytes(str(fields), "utf8")


async def test_without_credentials_nothing_is_signed() -> None:
    seen: list[Request] = []
    async with (
        scripted_server(answering(200, b"{}", seen)) as port,
        a_client(port, signer=None, prefix="") as client,
    ):
        await client.solve(ASKED, deadline_s=PATIENCE_S)
    assert seen[0].path == b"/solve"
    assert not [name for name, _ in seen[0].headers if name.lower().startswith(b"x-auth")]


async def test_204_is_no_bid() -> None:
    async with scripted_server(answering(204, b"")) as port, a_client(port) as client:
        assert await client.solve(ASKED, deadline_s=PATIENCE_S) is None
        assert await client.solve(ASKED, deadline_s=PATIENCE_S) is None
        assert client.statistics().failed == 0


@pytest.mark.parametrize("status", [201, 302, 401, 500])
async def test_another_status_is_a_refusal(status: int) -> None:
    async with scripted_server(answering(status, b"why")) as port, a_client(port) as client:
        told = await failure(client)
        assert (told.fault, told.detail) == (AgentFault.REFUSED, f"refused: status {status}")
        assert client.statistics().failed == 1


async def test_an_answer_that_is_too_long_is_told_as_that() -> None:
    async def long(caller: Caller) -> None:
        with suppress(trio.BrokenResourceError):
            await caller.answer(encode_response(200, bytes(AGENT_ANSWER_BYTES_MAX + 1)))

    async with scripted_server(long) as port, a_client(port) as client:
        told = await failure(client)
    assert told.fault is AgentFault.MALFORMED
    assert told.detail == (
        "malformed: connection: answer refused, BodyTooLarge: "
        f"expected at most {AGENT_ANSWER_BYTES_MAX} bytes, got '{AGENT_ANSWER_BYTES_MAX + 1}'"
    )


async def test_an_answer_that_does_not_come_in_time_is_late() -> None:
    async with scripted_server(hanging, answering(204, b"")) as port, a_client(port) as client:
        told = await failure(client, deadline_s=PATIENCE)
        assert told.fault is AgentFault.LATE
        assert str(port) not in told.detail
        assert await client.solve(ASKED, deadline_s=PATIENCE_S) is None


async def test_a_question_that_never_had_a_connection_is_not_the_agents_fault() -> None:
    async with scripted_server(hanging) as port:
        client = AgentClient(
            "alpha", f"http://127.0.0.1:{port}", signer=None, wall_ms=lambda: NOW_MS, solves_max=1
        )
        async with client, trio.open_nursery() as nursery:
            nursery.start_soon(partial(client.solve, ASKED, deadline_s=PATIENCE_S))
            await trio.testing.wait_all_tasks_blocked()
            told = await failure(client, deadline_s=0.05)
            assert (told.fault, told.detail) == (None, "not asked: no connection was free")
            assert (client.statistics().failed, client.statistics().unasked) == (1, 1)
            nursery.cancel_scope.cancel()


async def test_rounds_that_overlap_do_not_wait_for_each_other() -> None:
    async with (
        scripted_server(hanging, answering(204, b"")) as port,
        a_client(port) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(partial(client.solve, ASKED, deadline_s=PATIENCE_S))
        await trio.testing.wait_all_tasks_blocked()
        assert await client.solve(ASKED, deadline_s=PATIENCE_S) is None
        nursery.cancel_scope.cancel()


async def test_what_is_no_http_is_malformed() -> None:
    async def script(caller: Caller) -> None:
        with suppress(trio.BrokenResourceError):
            await caller.answer(b"nonsense\r\n\r\n")

    async with scripted_server(script) as port, a_client(port) as client:
        assert (await failure(client)).fault is AgentFault.MALFORMED


async def test_an_agent_that_is_not_there_is_unavailable() -> None:
    with held_port() as unused:
        async with a_client(port_of(unused)) as client:
            assert (await failure(client)).fault is AgentFault.UNAVAILABLE


async def test_notices_arrive_in_their_order_signed() -> None:
    seen: list[Request] = []
    async with scripted_server(answering(200, b"thanks", seen)) as port, a_client(port) as client:
        for auction_id in range(5):
            client.notify(a_notice(auction_id))
        await until_told(client, notified=5)
        client.notify(a_notice(5))
        await until_told(client, notified=6, waiting=0)
    bodies: list[Any] = [msgspec.json.decode(request.body) for request in seen]
    assert [body["auctionId"] for body in bodies] == [0, 1, 2, 3, 4, 5]
    assert bodies[0]["notices"][0]["notice"] == "won"
    assert {request.path for request in seen} == {b"/agent/1/notify"}
    assert all(b"x-auth-signature" in request.fields for request in seen)


async def test_a_notice_that_is_not_taken_is_lost_and_the_next_one_sent() -> None:
    async def refusing_once(caller: Caller) -> None:
        await caller.answer(encode_response(500, b""))
        await answering(200, b"")(caller)

    async with scripted_server(refusing_once) as port, a_client(port) as client:
        client.notify(a_notice(1))
        client.notify(a_notice(2))
        await until_told(client, lost=1, notified=1)


async def test_an_agent_that_takes_no_notices_delays_no_question_and_no_memory_grows() -> None:
    """The first connection hangs with a notice; questions have others, and the queue drops its oldest."""
    async with scripted_server(hanging, answering(204, b"")) as port, a_client(port) as client:
        client.notify(a_notice(0))
        await until_told(client, waiting=0)
        await trio.testing.wait_all_tasks_blocked()
        for auction_id in range(1, AGENT_NOTICES_WAITING_MAX + 4):
            client.notify(a_notice(auction_id))
        told = client.statistics()
        assert (told.waiting, told.dropped, told.notified) == (AGENT_NOTICES_WAITING_MAX, 3, 0)
        assert await client.solve(ASKED, deadline_s=PATIENCE_S) is None
