"""The maker of `faulty_maker`, on a real socket: HTTP/1.1, its WebSocket, and the faults of a server."""

import json
import re
import ssl
from collections import deque
from functools import partial

import trio

from cambist.codecs.http1 import (
    Closed,
    Event,
    Http1Limits,
    Request,
    RequestFault,
    ServerConnection,
    Upgrade,
    encode_response,
)
from cambist.feeds.transport.websocket import WebSocket, serve_websocket
from support.conformance.faulty_maker import Maker, Refused
from support.patience import PATIENCE_S

_LIMITS = Http1Limits(body_bytes_max=1 << 18)
TICK_S = 0.02


class Server:
    """Serves one maker until cancelled."""

    def __init__(self, maker: Maker, tls: ssl.SSLContext | None = None) -> None:
        self.maker = maker
        self._tls = tls
        self.port = 0
        self._dead = trio.Event()
        self._alone = trio.Lock()
        self._ticked = trio.Condition()

    async def run(self, task_status: trio.TaskStatus[int] = trio.TASK_STATUS_IGNORED) -> None:
        """Listen; tells the port."""
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        self.port = listener.socket.getsockname()[1]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._tick)
            nursery.start_soon(self._die, nursery.cancel_scope)
            task_status.started(self.port)
            served: trio.abc.Listener[trio.abc.Stream] = listener
            if self._tls is not None:
                served = trio.SSLListener(listener, self._tls, https_compatible=True)
            await trio.serve_listeners(self._connection, [served], handler_nursery=nursery)

    async def _die(self, scope: trio.CancelScope) -> None:
        await self._dead.wait()
        scope.cancel()

    async def _tick(self) -> None:
        while True:
            await trio.sleep(TICK_S)
            if "still" in self.maker.flags:
                continue
            async with self._ticked:
                self.maker.tick += 1
                self._ticked.notify_all()

    async def _connection(self, stream: trio.abc.Stream) -> None:
        self.maker.connections += 1
        try:
            if "one-at-a-time" in self.maker.flags:
                async with self._alone:
                    await self._serve(stream)
            else:
                await self._serve(stream)
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _serve(self, stream: trio.abc.Stream) -> None:
        http, flags = ServerConnection(_LIMITS), self.maker.flags
        events: deque[Event | None] = deque()
        while True:
            events.append(http.next_event())
            if "shuffles" in flags and isinstance(events[0], Request):
                events.appendleft(http.next_event())
            event = events.popleft()
            if event is None and events:
                event = events.popleft()
            self.maker.heard += isinstance(event, Request | Upgrade | RequestFault)
            if isinstance(event, Request):
                if not (await self._answer(stream, event) and event.keep_alive):
                    return None
            elif isinstance(event, Upgrade):
                return await self._upgrade(stream, event)
            elif isinstance(event, RequestFault):
                return await self._fault(stream, event)
            elif isinstance(event, Closed) or await self._read(stream, http, flags):
                return None

    async def _read(self, stream: trio.abc.Stream, http: ServerConnection, flags: set[str]) -> bool:
        """Whether nothing more is to be served."""
        due = http.take_continue()
        if due:
            await stream.send_all(due)
        data = bytes(await stream.receive_some(65_536))
        if not data:
            http.receive_eof()
        if "one-read" in flags and b"\r\n\r\n" not in data:
            return True
        if "headers-by-case" in flags:
            data = data.replace(b"\r\nx-auth-", b"\r\nx-lost-")
        if "any-host" in flags:
            data = re.sub(rb"\r\nHost: [^\r]*", b"", data).replace(b"\r\n", b"\r\nHost: here\r\n", 1)
        if "forgives-lengths" in flags:
            data = re.sub(rb"(Content-Length: \d+\r\n)Content-Length: \d+\r\n", rb"\1", data)
            data = re.sub(rb"Content-Length: \d+\r\n(Transfer-Encoding)", rb"\1", data)
        http.receive_data(data)
        return False

    async def _answer(self, stream: trio.abc.Stream, request: Request) -> bool:
        """Whether the connection can go on."""
        maker = self.maker
        target, name = request.target.decode(), request.path.decode().rpartition("/")[2]
        if f"hang-{name}" in maker.flags:
            await trio.sleep_forever()
        await trio.sleep(maker.slow_s)
        headers = {key.decode(): value.decode("latin-1") for key, value in request.headers}
        method = request.method.decode()
        status, body = maker.answer(method, target, headers, request.body)
        raw = encode_response(
            status,
            body,
            content_type=maker.content_type if status < 400 else maker.error_content_type,
            keep_alive=request.keep_alive,
            head=method == "HEAD",
        )
        sent = maker.wire(raw)
        await stream.send_all(sent)
        return sent == raw

    async def _fault(self, stream: trio.abc.Stream, fault: RequestFault) -> None:
        if "dies" in self.maker.flags:
            self._dead.set()
            return
        if "sulks" in self.maker.flags:
            await trio.sleep_forever()
        status, body = self.maker.refusal(fault.error.status, fault.error.detail)
        if "nods" in self.maker.flags:
            status, body = 200, b"{}"
        await stream.send_all(encode_response(status, body, keep_alive=False))
        with trio.move_on_after(PATIENCE_S):
            if isinstance(stream, trio.abc.HalfCloseableStream):
                await stream.send_eof()
            while await stream.receive_some(1 << 20):
                pass

    # --- the socket -------------------------------------------------------------------------------

    async def _upgrade(self, stream: trio.abc.Stream, upgrade: Upgrade) -> None:
        request, maker = upgrade.request, self.maker
        headers = {key.decode(): value.decode("latin-1") for key, value in request.headers}
        path = request.path.decode()
        try:
            maker.admit_socket(path, headers)
        except Refused as refused:
            status, body = maker.refusal(refused.status, refused.text)
            await stream.send_all(encode_response(status, body, keep_alive=False))
            return
        if "deaf-socket" in maker.flags:
            await self._deaf(stream, upgrade)
            return
        async with serve_websocket(
            stream, upgrade, message_bytes_max=1 << 20, send_bytes_max=1 << 20
        ) as socket:
            await self._feed(socket)
            if "dies-on-frames" in maker.flags and socket.close_code in (1002, 1007, 1009):
                self._dead.set()

    async def _feed(self, socket: WebSocket) -> None:
        maker = self.maker
        if "silent-socket" in maker.flags:
            await trio.sleep_forever()
        maker.counter += 1
        socket.send_nowait(_text(maker.first_message()))
        async with trio.open_nursery() as nursery:
            nursery.start_soon(partial(self._listen, socket, nursery.cancel_scope))
            while socket.close_code is None:
                async with self._ticked:
                    await self._ticked.wait()
                if "leaves" in maker.flags and maker.tick % 4 == 0:
                    break
                if "mute-socket" not in maker.flags:
                    socket.send_nowait(_text(maker.next_update()))
            nursery.cancel_scope.cancel()

    async def _listen(self, socket: WebSocket, scope: trio.CancelScope) -> None:
        try:
            async for _ in socket:
                if "dies-on-chatter" in self.maker.flags:
                    self._dead.set()
        except Exception:  # noqa: BLE001  a closed socket ends the feed
            pass
        scope.cancel()

    async def _deaf(self, stream: trio.abc.Stream, upgrade: Upgrade) -> None:
        """A socket that sends and never reads: no pong, no close."""
        from websockets.datastructures import Headers
        from websockets.frames import Frame, Opcode
        from websockets.http11 import Request as Handshake
        from websockets.server import ServerProtocol

        headers = Headers([(name.decode(), value.decode()) for name, value in upgrade.request.headers])
        core = ServerProtocol()
        answer = core.accept(Handshake(upgrade.request.target.decode(), headers))
        await stream.send_all(answer.serialize())
        frame = Frame(Opcode.TEXT, _text(self.maker.first_message()).encode())
        await stream.send_all(frame.serialize(mask=False))
        await trio.sleep_forever()


def _text(message: object) -> str:
    return message if isinstance(message, str) else json.dumps(message)
