"""The client of a venue: repeated requests, waits, refusals and nonsense."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from bench.peers.ports import held_port, port_of
from msgspec import Raw

from cambist.codecs.http1 import Request
from cambist.codecs.messages.market_messages import TransactionBody, TransactionEnvelope
from cambist.codecs.messages.resource_messages import TokenList
from cambist.codecs.messages.vocabulary import Side
from cambist.config.errors import ConfigError, VenueError
from cambist.config.secret import Secret
from cambist.engine.trader.client import client as client_module
from cambist.engine.trader.client.client import VenueClient, checked_url
from cambist.engine.trader.client.terms import TradedToken, Wish
from support.server.scripted_server import Caller, scripted_server

TOKENS = {"tokens": [{"symbol": "USDC", "address": f"0x{'05' * 20}", "decimals": 6, "network": 1}]}
ENVELOPE = {
    "from": f"0x{'01' * 20}", "to": f"0x{'02' * 20}", "value": "0", "data": "0x", "gasPrice": "1",
    "chainId": 1,
}  # fmt: skip
BODY = TransactionBody(
    price_route=Raw(b'{"b": 1,"a":"\\u00e9"}'), src_token="WETH", dest_token="USDC", user_address="0x1"
)
ERROR = {"errorType": "NoRoute", "details": "No route: nothing", "error": "x", "requestId": "r-1"}


def answer(status: int, body: Any, **headers: str) -> bytes:
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    return f"HTTP/1.1 {status} S\r\ncontent-length: {len(raw)}\r\n{lines}\r\n".encode() + raw


class Served:
    """Venue with a list of answers; None ends the connection without an answer."""

    def __init__(self, *answers: bytes | None) -> None:
        self.left = list(answers)
        self.requests: list[Request] = []

    async def serve(self, caller: Caller) -> None:
        while True:
            try:
                request = await caller.request()
            except EOFError:
                return
            self.requests.append(request)
            said = self.left.pop(0)
            if said is None:
                return
            await caller.stream.send_all(said)


@asynccontextmanager
async def asking(served: Served, *, prefix: str = "", **more: Any) -> AsyncIterator[VenueClient]:
    async with (
        scripted_server(served.serve) as port,
        VenueClient.open(f"http://127.0.0.1:{port}{prefix}", **more) as client,
    ):
        yield client


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "TRADER_PAUSE_S", 0.001)


async def test_answers_are_typed_and_requests_carry_key_and_prefix() -> None:
    served = Served(answer(200, TOKENS), answer(200, ENVELOPE))
    async with asking(served, prefix="/venue/", api_key=Secret("the-key", "env:KEY")) as client:
        tokens = await client.tokens(1)
        assert isinstance(tokens, TokenList)
        assert tokens.tokens[0].symbol == "USDC"
        envelope = await client.transaction(1, BODY)
    assert isinstance(envelope, TransactionEnvelope)
    assert [request.target for request in served.requests] == [
        b"/venue/tokens/1",
        b"/venue/transactions/1?ignoreGasEstimate=true",
    ]
    assert served.requests[0].fields[b"x-api-key"] == b"the-key"
    assert b'"priceRoute":{"b": 1,"a":"\\u00e9"}' in served.requests[1].body


async def test_prices_are_asked_for_as_version_6_2_and_only_with_what_is_given() -> None:
    served = Served(answer(404, ERROR))
    src, dest = TradedToken(b"\x11" * 20, "SRC", 18), TradedToken(b"\x22" * 20, "DEST", 6)
    user = b"\x33" * 20
    wish = Wish(
        chain_id=1, src=src, dest=dest, side=Side.SELL, amount=10**18, slippage_bps=50,
        user=user, receiver=user,
    )  # fmt: skip
    async with asking(served) as client:
        with pytest.raises(VenueError):
            await client.prices(wish)
    assert (served.requests[0].query or b"").decode().split("&") == [
        f"srcToken=0x{'11' * 20}", f"destToken=0x{'22' * 20}", "srcDecimals=18", "destDecimals=6",
        "amount=1000000000000000000", "side=SELL", "network=1", "version=6.2", f"userAddress=0x{'33' * 20}",
    ]  # fmt: skip


async def test_a_refusal_is_one_error_with_all_that_was_said() -> None:
    async with asking(Served(answer(400, ERROR))) as client:
        with pytest.raises(VenueError) as refused:
            await client.tokens(1)
    error = refused.value
    assert (error.status, error.error_type, error.details, error.request_id) == (
        400, "NoRoute", "No route: nothing", "r-1",
    )  # fmt: skip
    assert error.detail == "GET /tokens/1: 400 NoRoute: No route: nothing (request r-1)"


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"errorType": 5}', b"\xff"])
async def test_a_refusal_without_the_documented_body_is_still_told(body: bytes) -> None:
    async with asking(Served(answer(404, body))) as client:
        with pytest.raises(VenueError, match=r"^GET /tokens/1: 404$"):
            await client.tokens(1)


@pytest.mark.parametrize("status", [429, 502, 503, 504])
async def test_a_get_is_asked_again_when_the_refusal_passes(status: int) -> None:
    served = Served(answer(status, {}), answer(status, {}, retry_after="0"), answer(200, TOKENS))
    async with asking(served) as client:
        await client.tokens(1)
    assert len(served.requests) == 3


async def test_it_is_not_asked_for_ever() -> None:
    served = Served(*[answer(503, ERROR)] * 3)
    async with asking(served) as client:
        with pytest.raises(VenueError, match="503 NoRoute"):
            await client.tokens(1)
    assert len(served.requests) == 3


async def test_a_get_is_asked_again_when_the_connection_breaks() -> None:
    served = Served(None, answer(200, TOKENS))
    async with asking(served) as client:
        await client.tokens(1)
    assert len(served.requests) == 2


@pytest.mark.parametrize("status", [429, 503])
async def test_a_transaction_is_asked_for_again_when_nothing_was_done(status: int) -> None:
    served = Served(answer(status, {}), answer(200, ENVELOPE))
    async with asking(served) as client:
        await client.transaction(1, BODY)
    assert len(served.requests) == 2


@pytest.mark.parametrize(
    "first", [None, answer(502, {}), answer(504, {}), answer(500, {}), answer(400, ERROR)]
)
async def test_a_transaction_that_may_have_been_built_is_not_asked_for_again(first: bytes | None) -> None:
    served = Served(first)
    async with asking(served) as client:
        with pytest.raises(VenueError):
            await client.transaction(1, BODY)
    assert len(served.requests) == 1


async def test_a_transaction_is_asked_for_again_when_nobody_was_there() -> None:
    with held_port() as unused:
        port = port_of(unused)
        async with VenueClient.open(f"http://127.0.0.1:{port}") as client:
            with pytest.raises(VenueError, match="POST /transactions/1: no answer"):
                await client.transaction(1, BODY)


@pytest.mark.parametrize("asked", ["11", "3600", "9" * 400])
async def test_a_venue_that_wants_a_long_wait_is_not_waited_for(asked: str) -> None:
    served = Served(answer(429, ERROR, retry_after=asked))
    async with asking(served) as client:
        with pytest.raises(VenueError, match="429"):
            await client.tokens(1)
    assert len(served.requests) == 1


async def test_retry_after_is_waited_for() -> None:
    served = Served(answer(429, ERROR, retry_after="1"), answer(200, TOKENS))
    async with asking(served) as client:
        began = trio.current_time()
        await client.tokens(1)
        assert trio.current_time() - began >= 1


@pytest.mark.parametrize("body", [b"", b"{}", b"[1]", b'{"tokens": 5}', b'{"tokens": [{"symbol": 1}]}'])
async def test_an_answer_that_makes_no_sense_says_what_is_wrong(body: bytes) -> None:
    async with asking(Served(answer(200, body))) as client:
        with pytest.raises(VenueError, match="GET /tokens/1: a malformed answer") as refused:
            await client.tokens(1)
    assert refused.value.status == 200


async def test_an_answer_without_end_is_refused() -> None:
    huge = b"HTTP/1.1 200 S\r\ncontent-length: 99999999999\r\n\r\n"
    async with asking(Served(huge, huge, huge)) as client:
        with pytest.raises(VenueError, match="no answer"):
            await client.tokens(1)


@pytest.mark.parametrize(
    "url",
    ["", "venue.example", "ftp://venue.example", "http://", "http://u:p@v.example", "http://v/?q", "http://v/#f",
     "http://v:99999", "http://[::1"],
)  # fmt: skip
def test_what_is_no_base_url_is_refused(url: str) -> None:
    with pytest.raises(ConfigError, match="--venue: expected"):
        checked_url(url)
