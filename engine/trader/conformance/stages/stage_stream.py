"""Stage of the WebSocket: first message, updates, unexpected messages, close, reconnect, bad handshakes."""

import base64
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager

import trio

from .....config.errors import MakerError, WebSocketClosed
from .....config.limits import MAKER_JSON_BYTES_MAX
from .....config.timeouts import WEBSOCKET_CLOSE_S
from .....feeds.transport.websocket import HandshakeRefused, WebSocket, connect_websocket
from ..checks.auth import Plain, sign, socket_tamperings
from ..checks.hostile import RawAnswer
from ..checks.resources import entries_of
from ..checks.stream import (
    Heard,
    PriceSample,
    content_of,
    has_moved,
    judge_agreement,
    judge_first,
    judge_following,
    judge_update,
    price_states,
)
from ..exchange import HttpExchange
from ..options import BaseUrl, CheckOptions
from ..probe import Probe
from ..rules import Result, Said, fault, judged, passed
from ..session import Session

_SEND_BYTES_MAX = 1 << 20
_SAMPLES = 4
_MESSAGES_MAX = 10_000  # most messages watched; a maker may send more
_SETTLE_S = 0.2  # time for a maker to process messages sent to it
_CHATTER = ("hello", '{"prices":{}}', b"\x00\xff", "[" * 10_000)
_PING = b"cambist"


def socket_place(options: CheckOptions) -> BaseUrl:
    """Return the URL of the maker's WebSocket: the URL in the options, or `/ws` below the base URL."""
    if options.socket is not None:
        return options.socket
    base = options.base
    scheme = "wss" if base.is_tls else "ws"
    return BaseUrl(scheme, base.host, base.port, f"{base.path}/ws", base.host_header)


class Door:
    """Opener of WebSocket connections to the maker, with signed handshakes."""

    def __init__(self, session: Session) -> None:
        options = session.options
        self.place = socket_place(options)
        self.path = self.place.path or "/"
        self.probe = Probe(
            self.place,
            timeout_s=options.timeout_s,
            now_ms=session.probe.now_ms,
            authorities=options.authorities,
        )
        self._credentials = options.credentials

    def headers(self) -> dict[str, str]:
        """Return the authentication headers of a WebSocket handshake; empty without credentials.

        The signature covers a GET of the path, without query or body.
        """
        if self._credentials is None:
            return {}
        return sign(self._credentials, Plain("GET", self.path), self.probe.now_ms())

    @asynccontextmanager
    async def opened(self, headers: Mapping[str, str] | None = None) -> AsyncGenerator[WebSocket]:
        """Context manager that opens a WebSocket to the maker and closes it at its exit.

        A failed handshake raises as in `connect_websocket`.

        Args:
            headers: headers of the handshake; signed headers unless given.
        """
        try:
            async with connect_websocket(
                self.place.host,
                self.place.port,
                self.path,
                tls=self.probe.tls,
                headers=self.headers() if headers is None else headers,
                message_bytes_max=MAKER_JSON_BYTES_MAX,
                send_bytes_max=_SEND_BYTES_MAX,
            ) as socket:
                self.probe.requests += 1
                yield socket
        except HandshakeRefused:
            self.probe.requests += 1
            raise


async def check_stream(session: Session) -> None:
    """Check the maker's WebSocket (handshakes, messages, close, bad frames); add results to the session.

    Without the option --ws-url, a first handshake that is refused with a status other than 401 and 403 skips
    the checks: the maker has no WebSocket.
    """
    door = Door(session)
    try:
        await _check(session, door)
    finally:
        session.probe.requests += door.probe.requests


async def _check(session: Session, door: Door) -> None:
    before = await session.take_snapshot()
    try:
        async with door.opened() as socket:
            session.add([passed("stream.handshake", door.place.url)])
            await _listen(session, socket, before)
            await _chatter(session, socket)
            await _close(session, door, socket)
    except MakerError as error:
        if session.options.socket is None and _is_absent(error):
            session.skip(f"no WebSocket at {door.place.url}: give --ws-url if there is one", "stream")
        else:
            got = Said(error.detail)
            session.add([fault("stream.handshake", door.place.url, "101", got)])
            session.lack("no handshake succeeded", "stream")
        return
    except WebSocketClosed as closed:
        got = Said(closed.detail)
        session.add([fault("stream.first-complete", door.place.url, "a first message", got)])
        return
    await _come_back(session, door)
    await _ping(session, door)
    await _tamper(session, door)
    await _break(session, door)


def _is_absent(error: MakerError) -> bool:
    """Whether a refused handshake shows that the maker has no WebSocket: its status is not 401 or 403."""
    return isinstance(error, HandshakeRefused) and error.status not in (401, 403)


async def _receive(session: Session, socket: WebSocket) -> Heard:
    message = await socket.receive()
    raw = message.encode() if isinstance(message, str) else message
    return Heard(session.probe.now_ms(), raw)


async def _first(session: Session, socket: WebSocket) -> Heard | None:
    """First message of a WebSocket; None if no message arrives within the time-out of answers."""
    with trio.move_on_after(session.options.timeout_s):
        return await _receive(session, socket)
    return None


async def _listen(session: Session, socket: WebSocket, before: Mapping[str, HttpExchange]) -> None:
    """Judge the first WebSocket message, then compare the updates of `watch_s` seconds with GET /prices.

    Args:
        before: answers of the four GET endpoints from before the handshake.
    """
    first = await _first(session, socket)
    if first is None:
        got = Said(f"nothing within {session.options.timeout_s:g} s")
        session.add([fault("stream.first-complete", "first message", "all four keys at once", got)])
        return
    # Once more, as entries may have changed between the first answers and the message.
    after = await session.take_snapshot()
    session.add(judge_first(first, [before, after]))
    heard = [first]
    samples: list[PriceSample] = []
    left = ""
    started, priced = trio.current_time(), trio.Event()
    # The loop ends when `_sample` has its answers and cancels the scope, or when the maker closes.
    async with trio.open_nursery() as nursery:
        nursery.start_soon(_sample, session, samples, priced, nursery.cancel_scope)
        while len(heard) < _MESSAGES_MAX:
            try:
                heard.append(await _receive(session, socket))
            except WebSocketClosed as closed:
                left = closed.detail
                break
            if price_states(heard[-1:]):
                priced.set()
        nursery.cancel_scope.cancel()
    expected = "an open socket: a close stops all trading"
    session.add([judged("stream.stays", not left, "while listening", expected, Said(left))])
    content = content_of(first)
    for number, update in enumerate(heard[1:], 2):
        session.add(judge_update(number, update, content))
    states = price_states(heard)
    listened_s = trio.current_time() - started
    session.add(judge_following(has_moved(samples), len(price_states(heard[1:])), listened_s))
    session.add(judge_agreement(states, samples, session.options.drift_bps))
    session.saw(*(state.grids for state in states))


async def _sample(
    session: Session, samples: list[PriceSample], priced: trio.Event, watch: trio.CancelScope
) -> None:
    """Fetch GET /prices _SAMPLES times over `watch_s` seconds, then cancel the scope `watch`.

    If prices differ between these answers, the function waits up to `watch_s` seconds for `priced` before it
    cancels the scope.

    Args:
        priced: event that is set when a WebSocket message after the first one contains prices.
    """
    for _ in range(_SAMPLES):
        exchange = await session.prices()
        grids = entries_of("prices", exchange)
        if grids is not None:
            done_ms = exchange.sent_ms + int(exchange.latency_ms) + 1
            samples.append(PriceSample(exchange.sent_ms, done_ms, grids))
        await trio.sleep(session.options.watch_s / _SAMPLES)
    if has_moved(samples):
        with trio.move_on_after(session.options.watch_s):
            await priced.wait()
    watch.cancel()


async def _chatter(session: Session, socket: WebSocket) -> None:
    """Send messages over the one-way WebSocket, and judge whether the maker still serves HTTP.

    The maker may ignore the messages or close the WebSocket.
    """
    if not session.wants("stream.one-way"):
        return
    for message in _CHATTER:
        if not socket.send_nowait(message):
            break
    await trio.sleep(_SETTLE_S)
    exchange = await session.probe.get("tokens")
    where = f"{exchange.where} (after messages over the socket)"
    session.add([judged("stream.one-way", exchange.succeeded, where, "200, as ever", exchange.said)])


async def _close(session: Session, door: Door, socket: WebSocket) -> None:
    """Close the WebSocket, and judge the maker's close frame if the check `stream.closes` is selected."""
    with trio.CancelScope() as leaving:
        if not session.wants("stream.closes"):
            leaving.cancel()
        started = trio.current_time()
        await socket.aclose()
        took_s = trio.current_time() - started
        held, got = took_s < WEBSOCKET_CLOSE_S, Said(f"{took_s:.1f} s")
        session.add([judged("stream.closes", held, door.place.url, "a close frame in answer", got)])


async def _come_back(session: Session, door: Door) -> None:
    """Open a second WebSocket, judge its first message, and drop the connection without a close frame."""
    if not session.wants("stream.reconnect"):
        return
    where = f"{door.place.url}, second connection"
    expected = "a complete first message"
    first: Heard | None = None
    try:
        with trio.CancelScope() as leaving:
            async with door.opened() as socket:
                first = await _first(session, socket)
                leaving.cancel()
                await trio.lowlevel.checkpoint()
    except (MakerError, WebSocketClosed) as error:
        session.add([fault("stream.reconnect", where, expected, Said(error.detail))])
        return
    if first is None:
        session.add([fault("stream.reconnect", where, expected, Said("nothing"))])
        return
    lacking = [
        result for result in judge_first(first, []) if result.check == "stream.first-complete" and result.got
    ]
    got = Said(lacking[0].got) if lacking else Said("")
    session.add([judged("stream.reconnect", not lacking, where, expected, got)])


def _handshake(door: Door) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    lines = [
        f"GET {door.path} HTTP/1.1",
        f"Host: {door.place.host_header}",
        "Upgrade: websocket",
        "Connection: Upgrade",
        f"Sec-WebSocket-Key: {key}",
        "Sec-WebSocket-Version: 13",
        *(f"{name}: {value}" for name, value in door.headers().items()),
    ]
    return "\r\n".join([*lines, "", ""]).encode()


async def _ping(session: Session, door: Door) -> None:
    """Send a WebSocket ping right after the handshake, and judge whether a pong echoes its content."""
    if not session.wants("stream.ping"):
        return
    mask = bytes(4)
    frame = bytes([0x89, 0x80 | len(_PING)]) + mask + _PING
    pong = bytes([0x8A, len(_PING)]) + _PING
    answer: RawAnswer = await door.probe.raw(
        _handshake(door) + frame, lambda data: pong in data, session.options.timeout_s
    )
    got = Said("no pong")
    session.add([judged("stream.ping", pong in answer.data, door.place.url, "a pong with its content", got)])


async def _break(session: Session, door: Door) -> None:
    """Send malformed WebSocket frames, and judge whether the maker still serves HTTP."""
    if not session.wants("stream.after"):
        return
    for frames in (bytes([0x81, 0x05]) + b"plain", b"\xff" * 64, bytes([0x81, 0xFF]) + b"\x7f" + b"\xff" * 7):
        await door.probe.raw(_handshake(door) + frames, lambda data: b"\x88" in data[-200:], 0.5)
    exchange = await session.probe.get("tokens")
    where = f"{exchange.where} (after broken frames)"
    session.add([judged("stream.after", exchange.succeeded, where, "200, as ever", exchange.said)])


async def _tamper(session: Session, door: Door) -> None:
    credentials = session.options.credentials
    if credentials is None:
        reason = "no credentials are given: --domain, --access-key, --secret"
        session.skip(reason, "stream.unsigned", "stream.wrong-signature")
        return
    for case in socket_tamperings(credentials, door.path, door.probe.now_ms()):
        if session.wants(case.check):
            session.add([await _refused(door, case.check, case.what, case.headers)])


async def _refused(door: Door, check: str, what: str, headers: Mapping[str, str]) -> Result:
    where = f"{door.place.url} ({what})"
    try:
        async with door.opened(headers):
            return fault(check, where, "4xx", Said("101"))
    except HandshakeRefused as refusal:
        return judged(check, 400 <= refusal.status <= 499, where, "4xx", Said(refusal.detail))
    except (MakerError, WebSocketClosed) as error:
        return fault(check, where, "4xx", Said(error.detail))
