"""A market maker on a loopback socket in this process, and a venue that asks it."""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import trio

from cambist.codecs.http1 import Http1Limits, Response
from cambist.config.settings import Settings
from cambist.crypto.hmac_auth import RequestSigner
from cambist.engine.maker.app import MakerApp
from cambist.engine.process.clock import WallClock
from cambist.feeds.net.http_client import HttpClient
from cambist.feeds.net.streams import listen
from support.makers.maker_role import CHAIN_ID, ENVIRON, GRID, SECRET, settings_of
from support.patience import PATIENCE_S, until

PREFIX = f"/{CHAIN_ID}"


def write_prices(folder: Path, **pairs: Any) -> None:
    """The static source's file, replaced in one step; the pair's grid unless others are given."""
    prices = pairs or {"WETH/USDC": GRID}
    beside = folder / "prices.json.new"
    beside.write_bytes(msgspec.json.encode({"prices": prices}))
    beside.replace(folder / "prices.json")


class Venue:
    """Asks as the service does."""

    def __init__(self, client: HttpClient, port: int, admin_port: int, wall_ms: Callable[[], int]) -> None:
        self.client = client
        self.port = port
        self.admin_port = admin_port
        self.wall_ms = wall_ms
        self.signing = RequestSigner("venue", "key-1", SECRET.encode())
        self.operator = RequestSigner("operator", "key-2", ENVIRON["OPERATOR_SECRET"].encode())

    def headers(self, method: str, target: str, body: bytes = b"") -> list[tuple[bytes, bytes]]:
        signed = self.signing.headers(self.wall_ms(), method, target, body)
        return [(name.encode(), value.encode()) for name, value in signed.items()]

    async def ask(self, method: str, path: str, body: bytes = b"", *, signed: bool = True) -> Response:
        target = PREFIX + path
        headers = self.headers(method, target, body) if signed else []
        return await self.client.request(
            method.encode(), target.encode(), headers, body, deadline_s=PATIENCE_S
        )

    async def administer(
        self, method: str, path: str, body: bytes = b"", signing: RequestSigner | None = None
    ) -> Response:
        signed = signing.headers(self.wall_ms(), method, path, body) if signing else {}
        return await self.administer_with(method, path, body, signed)

    async def administer_with(self, method: str, path: str, body: bytes, signed: dict[str, str]) -> Response:
        headers = [(name.encode(), value.encode()) for name, value in signed.items()]
        async with HttpClient(
            "127.0.0.1", self.admin_port, connections_max=1, limits=Http1Limits()
        ) as client:
            return await client.request(method.encode(), path.encode(), headers, body, deadline_s=PATIENCE_S)

    async def get(self, path: str) -> Any:
        response = await self.ask("GET", path)
        assert response.status == 200, response.body
        return msgspec.json.decode(response.body)


@asynccontextmanager
async def running_maker(
    folder: Path, settings: Settings | None = None, *, connections: int = 8, **app: Any
) -> AsyncIterator[tuple[MakerApp, Venue]]:
    """The maker and a venue; it quotes before they are handed out, and is drained in the end."""
    settings = msgspec.structs.replace(settings or settings_of(), state_dir=str(folder))
    if not (folder / "prices.json").exists():
        write_prices(folder)
    clock = app.pop("clock", None) or WallClock()
    maker = MakerApp(settings, environ=ENVIRON, folder=folder, clock=clock, **app)
    listener = listen("127.0.0.1", 0)
    port = listener.getsockname()[1]
    admin = listen("127.0.0.1", 0) if maker.admin else None
    admin_port = admin.getsockname()[1] if admin else 0
    with maker.remembering():
        async with trio.open_nursery() as nursery:
            await nursery.start(maker.run, listener, admin)
            async with HttpClient(
                "127.0.0.1", port, connections_max=connections, limits=Http1Limits()
            ) as client:
                venue = Venue(client, port, admin_port, clock.now_ms)
                await until(lambda: maker.feeds[CHAIN_ID].updates + maker.feeds[CHAIN_ID].refused > 0)
                yield maker, venue
            maker.drain()
