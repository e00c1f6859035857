"""Answers of an endpoint that writes to the store: 200 once the write is durable, else a clear 503."""

from collections.abc import Awaitable, Callable

import pytest
import trio

from cambist.codecs.http1 import Http1Limits, Response
from cambist.config.errors import StoreError, StoreUnavailable
from cambist.engine.host.server import HttpCall, Reply, RouteGroup, Router
from cambist.engine.store.queries import DeltaFilter
from cambist.engine.store.store import Store
from cambist.engine.store.units import Done
from cambist.feeds.transport.http_client import HttpClient
from support.patience import PATIENCE_S
from support.server.server_harness import encode_error, serving
from support.store.stores import Engine, a_delta_order, page_of, submission

CLIENTS = 12


def a_router(submit: Callable[[HttpCall], Awaitable[Reply]]) -> Router:
    surface = RouteGroup(encode_error)
    surface.coroutine("POST", "/orders", submit)
    router = Router(encode_error)
    router.mount(surface)
    return router


def submit_to(store: Store, together: int = 1) -> Callable[[HttpCall], Awaitable[Reply]]:
    """A route that writes once so many requests are there."""
    waiting, all_there = 0, trio.Event()

    async def submit(call: HttpCall) -> Reply:
        nonlocal waiting
        waiting += 1
        if waiting == together:
            all_there.set()
        await all_there.wait()
        assert await store.write(submission(a_delta_order(int(call.request.body)))) == Done()
        return Reply(200, b"{}")

    return submit


async def post_all(port: int, count: int) -> list[Response]:
    """Submit so many orders at the same time."""
    answers: list[Response] = []

    async def post(client: HttpClient, number: int) -> None:
        body = b"%d" % number
        answers.append(await client.request(b"POST", b"/orders", [], body, deadline_s=PATIENCE_S))

    async with (
        HttpClient("127.0.0.1", port, connections_max=CLIENTS, limits=Http1Limits()) as client,
        trio.open_nursery() as nursery,
    ):
        for number in range(count):
            nursery.start_soon(post, client, number)
    return answers


def header(answer: Response, name: bytes) -> bytes | None:
    return dict(answer.headers).get(name)


@pytest.mark.turns
async def test_a_full_queue_is_503_with_retry_after_and_what_is_answered_200_is_kept(engine: Engine) -> None:
    async with engine.open(queue_max=4) as store:
        async with serving(a_router(submit_to(store, CLIENTS)), reactor=True) as served:
            answers = await post_all(served.port, CLIENTS)
        kept = [answer for answer in answers if answer.status == 200]
        refused = [answer for answer in answers if answer.status == 503]
        assert (len(kept), len(refused)) == (4, CLIENTS - 4)
        assert all(header(answer, b"retry-after") == b"1" for answer in refused)
        assert all(b"Service unavailable" in answer.body for answer in refused)
        assert (await page_of(store, DeltaFilter()))[1] == len(kept)


async def test_a_store_that_is_closed_is_503(engine: Engine) -> None:
    async with engine.open() as store, serving(a_router(submit_to(store)), reactor=True) as served:
        store.close()
        (answer,) = await post_all(served.port, 1)
        assert (answer.status, header(answer, b"retry-after")) == (503, b"1")


@pytest.mark.parametrize(
    ("error", "status", "retry_after"),
    [
        (StoreUnavailable("the disk is full", retry_after_s=5), 503, b"5"),
        (StoreError("page 7 is damaged"), 500, None),
    ],
    ids=["disk full", "damaged"],
)
async def test_what_may_pass_says_when_to_try_again_and_damage_does_not(
    error: StoreError, status: int, retry_after: bytes | None
) -> None:
    async def submit(_: HttpCall) -> Reply:
        raise error

    async with serving(a_router(submit), reactor=True) as served:
        (answer,) = await post_all(served.port, 1)
        assert (answer.status, header(answer, b"retry-after")) == (status, retry_after)
        assert b"disk" not in answer.body
        assert b"damaged" not in answer.body
