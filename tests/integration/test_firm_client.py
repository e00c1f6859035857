"""The firm client against our own maker over sockets, and against servers that do not behave."""

import ssl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from bench.peers.ports import held_port, port_of

from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.codecs.http1 import encode_response
from cambist.codecs.messages.vocabulary import Side
from cambist.config.limits import MAKER_FIRM_ANSWER_BYTES_MAX
from cambist.crypto.addresses import parse_address
from cambist.crypto.hmac_auth import RequestSigner
from cambist.engine.host.process.clock import WallClock
from cambist.feeds.firm.firm_check import FirmAsked, FirmFailure, FirmFault, check_firm
from cambist.feeds.firm.firm_client import FirmClient
from cambist.feeds.transport.streams import client_tls
from support.makers.maker_role import (
    CHAIN_ID,
    CONTRACT,
    MAKER,
    PREFIX,
    SECRET,
    TAKER,
    USDC,
    USER,
    WETH,
    running_maker,
    settings_of,
)
from support.patience import PATIENCE, PATIENCE_S
from support.server.scripted_server import Caller, Script, scripted_server
from support.server.server_harness import make_certificate

CLOCK = WallClock()
SIGNER = RequestSigner("venue", "key-1", SECRET.encode())
DIGEST_OF = RFQ_ORDER.compiled.digest_for(
    rfq_domain_separator("AUGUSTUS RFQ", CHAIN_ID, parse_address(CONTRACT))
)
ONE = 10**18


def asked(amount: int = ONE, side: Side = Side.SELL, *, taker: str = TAKER, user: str = USER) -> FirmAsked:
    return FirmAsked(
        parse_address(WETH), parse_address(USDC), side, amount, parse_address(user), parse_address(taker)
    )


@asynccontextmanager
async def a_client(
    port: int,
    *,
    signer: RequestSigner | None = SIGNER,
    connections_max: int = 2,
    prefix: str = PREFIX,
    tls: ssl.SSLContext | None = None,
) -> AsyncGenerator[FirmClient]:
    scheme = "https" if tls else "http"
    async with FirmClient(
        "alpha",
        f"{scheme}://127.0.0.1:{port}{prefix}",
        signer=signer,
        connections_max=connections_max,
        wall_ms=CLOCK.now_ms,
        tls=tls,
    ) as client:
        yield client


async def failure(
    client: FirmClient, question: FirmAsked | None = None, deadline_s: float = PATIENCE_S
) -> FirmFailure:
    with pytest.raises(FirmFailure) as caught:
        await client.ask(question or asked(), deadline_s=deadline_s)
    return caught.value


# --- Our own maker ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("question", "amounts"),
    [
        (asked(), (2_500 * 10**6, ONE)),
        (asked(2_500 * 10**6, Side.BUY), (2_500 * 10**6, ONE)),
        (asked(ONE // 3), (833_333_333, ONE // 3)),
    ],
)
async def test_our_maker_signs_what_is_asked_for(
    tmp_path: Path, question: FirmAsked, amounts: tuple[int, int]
) -> None:
    async with running_maker(tmp_path) as (_, venue), a_client(venue.port) as client:
        for _ in range(3):
            answer = await client.ask(question, deadline_s=PATIENCE_S)
            quote = check_firm(answer, question, DIGEST_OF, CLOCK.now_ms() // 1_000)
            assert quote.is_proven
            assert quote.order.maker == parse_address(MAKER)
            assert (quote.order.maker_amount, quote.order.taker_amount) == amounts
        statistics = client.statistics()
        assert (statistics.requests, statistics.dialled) == (3, 1), "the connection is used again"


async def test_our_makers_refusals_are_told_in_its_words(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (_, venue), a_client(venue.port) as client:
        for question, words in (
            (asked(100 * ONE), "Beyond depth"),
            (asked(taker=USER), "Taker not allowed"),
        ):
            refused = await failure(client, question)
            assert refused.fault is FirmFault.REFUSED
            assert words in refused.detail


async def test_a_user_whom_our_maker_does_not_serve_is_blacklisted(tmp_path: Path) -> None:
    async with (
        running_maker(tmp_path, settings_of(blacklist=(USER,))) as (_, venue),
        a_client(venue.port) as client,
    ):
        assert (await failure(client)).fault is FirmFault.BLACKLISTED
        other = await client.ask(asked(user=MAKER.replace("f", "e")), deadline_s=PATIENCE_S)
        assert int(other.maker_amount) == 2_500 * 10**6


@pytest.mark.parametrize(
    ("signer", "header"),
    [
        (None, "X-AUTH-DOMAIN"),
        (RequestSigner("venue", "key-9", SECRET.encode()), "X-AUTH-ACCESS-KEY"),
        (RequestSigner("venue", "key-1", b"another secret"), "X-AUTH-SIGNATURE"),
    ],
)
async def test_credentials_that_are_not_the_makers_are_refused_without_their_secret(
    tmp_path: Path, signer: RequestSigner | None, header: str
) -> None:
    async with running_maker(tmp_path) as (_, venue), a_client(venue.port, signer=signer) as client:
        refused = await failure(client)
        assert refused.fault is FirmFault.REFUSED
        assert header in refused.detail
        assert "status 401" in refused.detail
        assert "secret" not in refused.detail


# --- Servers that do not behave -----------------------------------------------------------------------


def answering(status: int, body: bytes) -> Script:
    async def script(caller: Caller) -> None:
        try:
            while True:
                await caller.answer(encode_response(status, body))
        except (EOFError, trio.BrokenResourceError):
            pass

    return script


async def hanging(caller: Caller) -> None:
    await caller.request()
    await trio.sleep_forever()


async def closing(caller: Caller) -> None:
    await caller.request()


@pytest.mark.parametrize(
    ("status", "body", "fault", "words"),
    [
        (403, b'{"error":"not you"}', FirmFault.REFUSED, "status 403: 'not you'"),
        (500, b"<html>", FirmFault.REFUSED, "status 500 without an error text"),
        (300, b"{}", FirmFault.REFUSED, "status 300"),
        (302, b'{"error":""}', FirmFault.REFUSED, "status 302"),
        (400, b'{"error":"' + b"x" * 5_000 + b'"}', FirmFault.REFUSED, "(5000 long)"),
        (200, b"{}", FirmFault.BLACKLISTED, "blacklisted"),
        (299, b"{}", FirmFault.BLACKLISTED, "blacklisted"),
        (200, b'{"message":"no"}', FirmFault.BLACKLISTED, "blacklisted"),
        (200, b'{"order":null}', FirmFault.REFUSED, "no order: 'no reason'"),
        (200, b'{"order":null,"message":"no stock"}', FirmFault.REFUSED, "no order: 'no stock'"),
        (200, b'{"error":"no stock"}', FirmFault.REFUSED, "no order: 'no stock'"),
        (200, b'{"order":{}}', FirmFault.INVALID, "nonceAndMeta: missing"),
        (200, b"", FirmFault.REFUSED, "status 200 without an error text"),
        (204, b"", FirmFault.REFUSED, "status 204 without an error text"),
        (200, b"[]", FirmFault.REFUSED, "no order: 'no reason'"),
        (200, b" " * (MAKER_FIRM_ANSWER_BYTES_MAX + 1), FirmFault.UNAVAILABLE, "unavailable"),
    ],
)
async def test_what_an_answer_means(status: int, body: bytes, fault: FirmFault, words: str) -> None:
    async with scripted_server(answering(status, body)) as port, a_client(port) as client:
        told = await failure(client)
        assert told.fault is fault
        assert words in told.detail
        assert "127.0.0.1" not in told.detail
        assert len(told.detail) < 400


async def test_an_answer_that_does_not_come_is_late_and_its_connection_dropped() -> None:
    async with scripted_server(hanging, answering(200, b"{}")) as port, a_client(port) as client:
        assert (await failure(client, deadline_s=PATIENCE)).fault is FirmFault.LATE
        assert client.statistics().idle == client.statistics().busy == 0
        assert (await failure(client)).fault is FirmFault.BLACKLISTED


async def test_a_request_that_found_no_free_connection_is_not_the_makers_fault() -> None:
    heard = trio.Event()

    async def never(caller: Caller) -> None:
        await caller.request()
        heard.set()
        await trio.sleep_forever()

    async with (
        scripted_server(never) as port,
        a_client(port, connections_max=1) as client,
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(failure, client)
        await heard.wait()
        assert (await failure(client, deadline_s=0.02)).fault is FirmFault.OUT_OF_TIME
        nursery.cancel_scope.cancel()


async def test_a_maker_that_is_not_there_is_unavailable() -> None:
    with held_port() as unused:
        port = port_of(unused)
        async with a_client(port) as client:
            told = await failure(client)
    assert told.fault is FirmFault.UNAVAILABLE
    assert str(port) not in told.detail


async def test_a_fresh_connection_that_dies_is_not_asked_again() -> None:
    async with scripted_server(closing) as port, a_client(port) as client:
        assert (await failure(client)).fault is FirmFault.UNAVAILABLE
        assert client.statistics().dialled == 1


async def test_an_error_of_who_uses_a_client_is_passed_on() -> None:
    with pytest.raises(KeyError) as caught:
        async with a_client(9):
            raise KeyError("of the user")
    assert caught.value.args == ("of the user",)


async def test_over_tls_and_at_the_root(tmp_path: Path) -> None:
    certificate, key = make_certificate(tmp_path)
    served = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    served.load_cert_chain(certificate, key)
    targets: list[bytes] = []

    async def script(caller: Caller) -> None:
        request = await caller.answer(encode_response(200, b"{}"))
        targets.append(request.target)
        await caller.at_end()

    async with (
        scripted_server(script, tls=served) as port,
        a_client(port, prefix="/", tls=client_tls(certificate)) as client,
    ):
        assert (await failure(client)).fault is FirmFault.BLACKLISTED
    assert targets == [b"/firm"]
