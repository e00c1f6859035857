"""ASGI application with cambist's handler of POST /firm and no web framework."""

from collections.abc import Awaitable, Callable
from typing import Any

from bench.maker_fixture import answering, build_maker

Receive = Callable[[], Awaitable[dict[str, Any]]]
Send = Callable[[dict[str, Any]], Awaitable[None]]
App = Callable[[dict[str, Any], Receive, Send], Awaitable[None]]


def firm_application() -> App:
    """Build a market maker, and return its handler of POST /firm as an ASGI application."""
    answer = answering(build_maker())

    async def application(scope: dict[str, Any], receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            raise NotImplementedError(scope["type"])
        message = await receive()
        body: bytes = message["body"]
        while message.get("more_body"):
            message = await receive()
            body += message["body"]
        reply = answer(scope["raw_path"], list(scope["headers"]), body)
        headers = [(b"content-type", reply.content_type), (b"content-length", b"%d" % len(reply.body))]
        await send({"type": "http.response.start", "status": reply.status, "headers": headers})
        await send({"type": "http.response.body", "body": reply.body})

    return application
