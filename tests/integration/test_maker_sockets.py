"""The market maker over real sockets: five endpoints, the WebSocket, authentication, kill switch, drain."""

import gzip
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import trio
import trio.testing

from cambist.codecs.messages.maker_messages import FirmOrder, PriceGrid, decode_firm_response
from cambist.config.errors import WebSocketClosed
from cambist.config.limits import MAKER_JSON_BYTES_MAX
from cambist.crypto.hmac_auth import SIGNATURE_HEADER, TIMESTAMP_HEADER
from cambist.engine.host.process.clock import WallClock
from cambist.feeds.transport.websocket import HandshakeRefused, WebSocket, connect_websocket
from support.makers.maker_role import (
    CHAIN_ID,
    GRID,
    PREFIX,
    USER,
    Venue,
    firm_request,
    running_maker,
    settings_of,
    write_prices,
)
from support.patience import PATIENCE, PATIENCE_S, until

OTHER = PriceGrid(bids=(("2400", "1"),), asks=(("2401", "1"),))
ADMIN = '\n[maker.admin]\nport = 0\ndomains = ["operator"]\n'


@asynccontextmanager
async def consumer(venue: Venue, **headers: str) -> AsyncIterator[WebSocket]:
    target = f"{PREFIX}/ws"
    signed = venue.signing.headers(venue.wall_ms(), "GET", target) | headers
    async with connect_websocket(
        "127.0.0.1",
        venue.port,
        target,
        tls=None,
        headers=signed,
        message_bytes_max=MAKER_JSON_BYTES_MAX,
        send_bytes_max=1 << 16,
    ) as socket:
        yield socket


async def received(socket: WebSocket) -> Any:
    with trio.fail_after(PATIENCE_S):
        return msgspec.json.decode(await socket.receive())


async def closed_after(step: Callable[..., Awaitable[object]], *arguments: object) -> WebSocketClosed:
    """Repeat a step until the socket is closed."""
    with trio.fail_after(PATIENCE_S):
        while True:
            try:
                await step(*arguments)
            except WebSocketClosed as closed:
                return closed


# --- Endpoints ----------------------------------------------------------------------------------------


async def test_the_five_endpoints(tmp_path: Path) -> None:
    async with running_maker(tmp_path, settings_of(blacklist=(USER,))) as (_, venue):
        assert (await venue.get("/tokens")).keys() == {"tokens"}
        assert (await venue.get("/pairs")).keys() == {"pairs"}
        assert (await venue.get("/prices"))["prices"]["WETH/USDC"]["bids"][0] == ["2500", "1"]
        assert await venue.get("/blacklist") == {"blacklist": [USER]}
        firm = await venue.ask("POST", "/firm", firm_request(userAddress="0x" + "cc" * 20))
        assert firm.status == 200
        assert isinstance(decode_firm_response(firm.body).order, FirmOrder)
        blacklisted = await venue.ask("POST", "/firm", firm_request())
        assert blacklisted.status == 200
        assert "order" not in msgspec.json.decode(blacklisted.body)


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/nothing", 404),
        ("POST", "/prices", 405),
        ("GET", "/firm", 405),
        ("DELETE", "/tokens", 405),
        ("POST", "/firm", 400),
    ],
)
async def test_every_error_is_json_with_an_error_text(
    tmp_path: Path, method: str, path: str, status: int
) -> None:
    async with running_maker(tmp_path) as (_, venue):
        response = await venue.ask(method, path, b"{}" if method == "POST" else b"")
        assert response.status == status
        body = msgspec.json.decode(response.body)
        assert body.keys() == {"error"}
        assert body["error"]


async def test_each_chain_has_its_own_prefix_or_host(tmp_path: Path) -> None:
    async with running_maker(tmp_path, settings_of(prefix="/eth/maker")) as (_, venue):
        assert (await venue.ask("GET", "/prices")).status == 404
        target = "/eth/maker/prices/"
        response = await venue.client.request(
            b"GET", target.encode(), venue.headers("GET", target), deadline_s=PATIENCE_S
        )
        assert response.status == 200
    for host, status in (("maker.example", 404), ("127.0.0.1", 200)):
        async with running_maker(tmp_path, settings_of(prefix="", host=host)) as (_, venue):
            response = await venue.client.request(
                b"GET", b"/prices", venue.headers("GET", "/prices"), deadline_s=PATIENCE_S
            )
            assert response.status == status


# --- Authentication -----------------------------------------------------------------------------------


async def test_unsigned_stale_and_altered_requests_are_refused_by_header(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (_, venue):
        assert (await venue.ask("GET", "/prices", signed=False)).status == 401
        target, body = f"{PREFIX}/firm", firm_request()
        right = dict(venue.headers("POST", target, body))
        stale = venue.signing.headers(venue.wall_ms() - 31_000, "POST", target, body)
        cases = [
            ({name: value for name, value in right.items() if name != SIGNATURE_HEADER.encode()}, body),
            ({key.encode(): value.encode() for key, value in stale.items()}, body),
            (right, body + b" "),
        ]
        for (headers, sent), named in zip(
            cases, (SIGNATURE_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER), strict=True
        ):
            response = await venue.client.request(
                b"POST", target.encode(), list(headers.items()), sent, deadline_s=PATIENCE_S
            )
            assert response.status == 401
            assert named in msgspec.json.decode(response.body)["error"]


async def test_other_clients_are_told_of_seconds_and_of_compression(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (_, venue), httpx.AsyncClient(timeout=PATIENCE_S) as client:
        target, body = f"{PREFIX}/firm", firm_request()
        url = f"http://127.0.0.1:{venue.port}{target}"
        for unit, per_unit in (("seconds", 1_000), ("microseconds", 0.001)):
            headers = venue.signing.headers(int(venue.wall_ms() / per_unit), "POST", target, body)
            answer = await client.post(url, content=body, headers=headers)
            assert answer.status_code == 401
            said = f"; this looks like {unit}, and milliseconds are expected"
            assert answer.json()["error"].endswith(said)
        coded = gzip.compress(body)
        headers = venue.signing.headers(venue.wall_ms(), "POST", target, coded)
        answer = await client.post(url, content=coded, headers=headers | {"content-encoding": "gzip"})
        assert (answer.status_code, answer.headers["accept-encoding"]) == (415, "identity")
        assert answer.json() == {
            "error": "Unsupported content coding: content-encoding: expected identity, got 'gzip'"
        }


async def test_optional_takes_the_unsigned_but_not_the_wrongly_signed(tmp_path: Path) -> None:
    async with running_maker(tmp_path, settings_of(auth="optional")) as (_, venue):
        assert (await venue.ask("GET", "/prices", signed=False)).status == 200
        assert (await venue.ask("GET", "/prices")).status == 200
        target = f"{PREFIX}/prices"
        wrong = [(name, value[::-1]) for name, value in venue.headers("GET", target)]
        response = await venue.client.request(b"GET", target.encode(), wrong, deadline_s=PATIENCE_S)
        assert response.status == 401


async def test_off_takes_everything(tmp_path: Path) -> None:
    async with running_maker(tmp_path, settings_of(auth="off")) as (_, venue):
        assert (await venue.ask("POST", "/firm", firm_request(), signed=False)).status == 200


# --- WebSocket ----------------------------------------------------------------------------------------


async def test_the_first_message_is_complete_and_later_ones_are_changes(tmp_path: Path) -> None:
    settings = settings_of(refresh_ms=60_000)
    async with running_maker(tmp_path, settings) as (maker, venue), consumer(venue) as socket:
        first = await received(socket)
        assert first == {
            **await venue.get("/tokens"),
            **await venue.get("/pairs"),
            **await venue.get("/prices"),
            **await venue.get("/blacklist"),
        }
        write_prices(tmp_path, **{"WETH/USDC": OTHER})
        assert await received(socket) == {
            "prices": {"WETH/USDC": {"bids": [["2400", "1"]], "asks": [["2401", "1"]]}}
        }
        write_prices(tmp_path, **{"WETH/USDC": {"asks": [["2401", "1"]]}})
        assert await received(socket) == {"prices": {"WETH/USDC": {"bids": [], "asks": [["2401", "1"]]}}}
        write_prices(tmp_path, **{"WETH/USDC": {}})
        assert await received(socket) == {"prices": {"WETH/USDC": {}}}
        assert len(maker.chains[CHAIN_ID].broadcast) == 1
    assert len(maker.chains[CHAIN_ID].broadcast) == 0


async def test_newly_blacklisted_users_are_sent(tmp_path: Path) -> None:
    settings = settings_of(unused_quotes_max=1)
    async with running_maker(tmp_path, settings) as (_, venue), consumer(venue) as socket:
        await received(socket)
        for _ in range(2):
            await venue.ask("POST", "/firm", firm_request(takerAmount="1000000000000000"))
        message = await received(socket)
        while "blacklist" not in message:
            message = await received(socket)
        assert message == {"blacklist": [USER]}
        assert await venue.get("/blacklist") == {"blacklist": [USER]}


async def test_a_price_that_is_confirmed_is_sent_again(tmp_path: Path) -> None:
    async with running_maker(tmp_path, settings_of(refresh_ms=50)) as (_, venue), consumer(venue) as socket:
        first = await received(socket)
        assert await received(socket) == {"prices": first["prices"]}


async def test_a_wrong_handshake_is_refused_in_json(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (_, venue):
        with pytest.raises(HandshakeRefused) as caught:
            async with consumer(venue, **{SIGNATURE_HEADER: "0" * 64}):
                pass
        assert caught.value.status == 401
        assert SIGNATURE_HEADER in msgspec.json.decode(caught.value.body)["error"]


async def test_a_first_message_may_be_larger_than_what_may_wait(tmp_path: Path) -> None:
    many = tuple(f"0x{number:040x}" for number in range(1, 40_001))
    settings = settings_of("[server]\nsocket_bytes_max = 100000\n", blacklist=many, refresh_ms=60_000)
    async with running_maker(tmp_path, settings) as (_, venue), consumer(venue) as socket:
        assert len((await received(socket))["blacklist"]) == 40_000
        write_prices(tmp_path, **{"WETH/USDC": OTHER})
        assert (await received(socket))["prices"]["WETH/USDC"]["bids"] == [["2400", "1"]]


async def test_trading_that_stops_between_handshake_and_first_message_is_not_streamed(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (maker, venue):
        broadcast = maker.chains[CHAIN_ID].broadcast
        serve = broadcast.serve

        async def stop_then_serve(*arguments: Any) -> None:
            maker.switch.stop("all")
            await serve(*arguments)

        broadcast.serve = stop_then_serve  # type: ignore[method-assign, assignment]
        async with consumer(venue) as socket:
            closed = await closed_after(socket.receive)
        assert (closed.code, socket.statistics().messages_received) == (1001, 0)


async def test_a_blacklisting_for_a_time_ends_by_itself(tmp_path: Path) -> None:
    small = {"takerAmount": "1000000000000000"}
    async with running_maker(tmp_path, settings_of(unused_quotes_max=1, blacklist_s=2)) as (maker, venue):
        for _ in range(2):
            await venue.ask("POST", "/firm", firm_request(**small))
        blacklist = maker.chains[CHAIN_ID].blacklist
        assert len(blacklist) == 1
        await until(lambda: len(blacklist) == 0)
        assert await venue.get("/blacklist") == {"blacklist": []}


async def test_what_a_consumer_sends_is_ignored_until_it_is_too_much(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (_, venue), consumer(venue) as socket:
        await received(socket)
        await socket.send('{"prices": {}}')
        assert (await venue.ask("GET", "/prices")).status == 200
        for _ in range(1_000):
            await socket.send("noise")
        assert (await closed_after(socket.receive)).code == 1008


# --- Stop ---------------------------------------------------------------------------------------------


ATTEMPTS = 20


async def stopped_within(venue: Venue, socket: WebSocket, started: float) -> float:
    """Seconds until the socket was closed; prices, quotes and handshakes are refused then."""
    assert (await closed_after(socket.receive)).code == 1001
    elapsed = time.perf_counter() - started
    for method, path, body in (("GET", "/prices", b""), ("POST", "/firm", firm_request())):
        response = await venue.ask(method, path, body)
        assert response.status == 503
        assert "Trading is stopped" in msgspec.json.decode(response.body)["error"]
    with pytest.raises(HandshakeRefused) as refused:
        async with consumer(venue):
            pass
    assert refused.value.status == 503
    assert (await venue.ask("GET", "/tokens")).status == 200
    return elapsed


@pytest.mark.parametrize("way", ["file", "call"])
async def test_the_kill_switch_acts_within_a_tenth_of_a_second(tmp_path: Path, way: str) -> None:
    async with running_maker(tmp_path) as (maker, venue):
        fastest = float("inf")
        for _ in range(ATTEMPTS):  # the machine may be busy with others: the best counts
            async with consumer(venue) as socket:
                await received(socket)
                started = time.perf_counter()
                if way == "file":
                    (tmp_path / "halt").write_text(f"chain {CHAIN_ID}\n")
                else:
                    maker.switch.stop(f"chain {CHAIN_ID}")
                fastest = min(fastest, await stopped_within(venue, socket, started))
            (tmp_path / "halt").unlink()
            await until(lambda: not maker.switch.halts.stops_chain(CHAIN_ID))
            assert (await venue.ask("POST", "/firm", firm_request())).status == 200
            if fastest < 0.1:
                break
        assert fastest < 0.1


async def test_one_pair_can_be_stopped_alone(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (maker, venue), consumer(venue) as socket:
        await received(socket)
        maker.switch.stop(f"pair {CHAIN_ID} WETH/USDC")
        assert await received(socket) == {"prices": {"WETH/USDC": {}}}
        assert (await venue.get("/prices"))["prices"] == {"WETH/USDC": {}}
        assert "WETH/USDC" in (await venue.get("/pairs"))["pairs"]
        assert (await venue.ask("POST", "/firm", firm_request())).status == 400
        maker.switch.resume("all")
        assert (await received(socket))["prices"]["WETH/USDC"] != {}


async def test_a_drain_answers_the_administrator_too(tmp_path: Path) -> None:
    async with (
        running_maker(tmp_path, settings_of(ADMIN)) as (maker, venue),
        await trio.open_tcp_stream("127.0.0.1", venue.admin_port) as stream,
    ):
        await stream.send_all(b"GET /healthz HTTP/1.1\r\n")
        admin = maker.admin
        assert admin
        await until(lambda: admin.statistics().connections == 1)
        maker.drain()
        await until(lambda: maker.server.statistics().connections == 0)
        await trio.testing.wait_all_tasks_blocked()
        await stream.send_all(b"host: maker\r\n\r\n")
        assert (await stream.receive_some(10_000)).startswith(b"HTTP/1.1 200 ")


async def test_an_administrator_stops_resumes_and_sees(tmp_path: Path) -> None:
    settings = settings_of(ADMIN)
    async with running_maker(tmp_path, settings) as (_, venue):
        ask, everything = venue.administer, b'{"scope":"all"}'
        assert (await ask("POST", "/halt", everything)).status == 401
        assert (await ask("POST", "/halt", everything, venue.signing)).status == 401
        assert (await venue.ask("GET", "/prices")).status == 200
        assert (await ask("POST", "/halt", b'{"scope":"some"}', venue.operator)).status == 400
        assert (await ask("POST", "/halt", everything, venue.operator)).status == 200
        assert (await venue.ask("GET", "/prices")).status == 503
        assert (await ask("GET", "/readyz")).status == 503
        status = msgspec.json.decode((await ask("GET", "/status", b"", venue.operator)).body)
        assert status["halted"] == ["all"]
        assert (await ask("POST", "/halt", b'{"scope":"chain 1"}', venue.operator)).status == 400
        resume = venue.operator.headers(venue.wall_ms(), "POST", "/resume", everything)
        assert (await venue.administer_with("POST", "/resume", everything, resume)).status == 200
        assert (await ask("POST", "/halt", everything, venue.operator)).status == 200
        assert (await venue.administer_with("POST", "/resume", everything, resume)).status == 401
        assert (await venue.ask("GET", "/prices")).status == 503
        assert (await ask("POST", "/resume", everything, venue.operator)).status == 200
        assert (await venue.ask("GET", "/prices")).status == 200
        assert (await ask("GET", "/readyz")).status == 200
        assert (await ask("GET", "/healthz")).status == 200


async def test_a_stop_outlives_a_restart(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (maker, _):
        maker.switch.stop("all")
    async with running_maker(tmp_path) as (_, venue):
        assert (await venue.ask("GET", "/prices")).status == 503


# --- Prices -------------------------------------------------------------------------------------------


async def test_a_file_that_cannot_be_quoted_lets_its_prices_grow_old_until_it_is_mended(
    tmp_path: Path,
) -> None:
    async with running_maker(tmp_path, settings_of(price_life_ms=round(2_000 * PATIENCE))) as (maker, venue):
        board = maker.chains[CHAIN_ID].board
        write_prices(tmp_path, **{"WETH/USDC": {"bids": [["2501", "1"]], "asks": [["2500", "1"]]}})
        await until(lambda: board.pairs["WETH/USDC"].fragment == b"{}")
        assert (await venue.get("/prices"))["prices"] == {"WETH/USDC": {}}
        assert (await venue.ask("POST", "/firm", firm_request())).status == 400
        write_prices(tmp_path)
        await until(lambda: board.pairs["WETH/USDC"].fragment != b"{}")
        assert (await venue.ask("POST", "/firm", firm_request())).status == 200


async def test_a_grid_that_cannot_be_read_disables_its_pair(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (maker, venue):
        feed = maker.feeds[CHAIN_ID]
        broken: tuple[Any, ...] = ({"bids": [(2500.0, "1")]}, {"ask": []}, {"bids": [("1", "1")] * 1_001}, 5)
        for value in broken:
            await feed.apply({"WETH/USDC": GRID})
            assert (await venue.ask("POST", "/firm", firm_request())).status == 200
            await feed.apply({"WETH/USDC": value})
            assert (await venue.ask("POST", "/firm", firm_request())).status == 400
            assert (await venue.get("/prices"))["prices"] == {"WETH/USDC": {}}


async def test_a_moved_clock_stops_firm_quotes(tmp_path: Path) -> None:
    moved_ns = 0
    clock = WallClock(lambda: time.time_ns() + moved_ns)
    async with running_maker(tmp_path, clock=clock) as (maker, venue):
        desk = maker.chains[CHAIN_ID].desk
        assert (await venue.ask("POST", "/firm", firm_request())).status == 200
        moved_ns = -3_600 * 10**9
        await until(lambda: "clock" in desk.withheld)
        assert (await venue.ask("POST", "/firm", firm_request())).status == 503
        moved_ns = 0
        await until(lambda: not desk.withheld)


async def test_quotes_are_remembered_and_after_a_crash_the_next_run_waits(
    tmp_path: Path,
) -> None:
    async with running_maker(tmp_path) as (_, venue):
        assert (await venue.ask("POST", "/firm", firm_request())).status == 200
    async with running_maker(tmp_path) as (maker, venue):
        assert len(maker.chains[CHAIN_ID].desk.ledger) == 1
        kept = (tmp_path / f"quotes-{CHAIN_ID}-0.json").read_bytes()
    (tmp_path / f"quotes-{CHAIN_ID}-0.json").write_bytes(kept)  # as a crash leaves it
    async with running_maker(tmp_path) as (maker, venue):
        assert (await venue.ask("POST", "/firm", firm_request())).status == 503
        assert any("ended badly" in reason for reason in maker.not_ready())


async def test_a_request_larger_than_any_firm_quote_needs_is_refused(tmp_path: Path) -> None:
    async with running_maker(tmp_path) as (_, venue):
        response = await venue.ask("POST", "/firm", firm_request(padding="x" * 65_536))
        assert response.status == 413
        assert "Body too large" in msgspec.json.decode(response.body)["error"]
