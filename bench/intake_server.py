"""Server that takes Delta orders in, for the load tests: a venue, or a minimal server to compare with.

    python -m bench.intake_server --fd 5 --what venue --chain known --folder FOLDER

    venue    a venue with its store process, and no agents; `--chain` chooses the chain that it reads:
        embedded   the EVM in this process
        known      the EVM's first answer to each kind of call, as all owners are alike: almost no CPU
    floor    the same server and store, minimal work: recover an address, write an order's rows, answer `{}`

The server writes the contracts' addresses to `ground.json` of the folder before it listens. No auction opens:
the first rounds wait for longer than a measurement takes. SIGTERM ends the server.
"""

import os
import signal
import socket
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import msgspec
import trio

from bench.delta_ground import deployed, environ, now_s, settings_text
from bench.delta_work import CHAIN_ID, NOWHERE, Ground, Orders
from bench.peers.served import freeze, inherited, options
from bench.store_work import order as order_row
from cambist.config.errors import CambistError
from cambist.config.sections.server import ServerSettings
from cambist.config.settings import Settings, parse_settings
from cambist.crypto.signatures import signer
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import At, EthCall, Header
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.server import HttpCall, Reply, RouteGroup, Router, Server
from cambist.engine.roles.venue.app import opened_venue
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.store import Store
from cambist.engine.trade.orders.order_units import DELTA

GROUND = "ground.json"
VENUE, FLOOR = "venue", "floor"
EMBEDDED, KNOWN = "embedded", "known"
_NO_ROUNDS = "[venue.delta]\ngather_s = 3600.0\n"
_DOCUMENT_BYTES = 700  # of a sale without permit, as it is kept


class KnownChain(EmbeddedChain):
    """Embedded chain that can repeat its first answer to a call of the same contract and function.

    Attributes:
        remembers: whether calls are answered from memory.
    """

    def __init__(self) -> None:
        super().__init__(CHAIN_ID, now_s, {}, known_errors())
        self.remembers = False
        self._head: Header | None = None
        self._known: dict[bytes, bytes | Exception] = {}

    async def block(self, at: At = None) -> Header | None:
        """Return the header of a block; from memory, the first header if `remembers`."""
        if not self.remembers or at is not None:
            return await super().block(at)
        if self._head is None:
            self._head = await super().block()
        return self._head

    async def recent_block(self, age_s: float) -> Header:
        """Return the header of the latest block, as `block`, after a checkpoint, as a node's client does."""
        await trio.lowlevel.checkpoint()
        header = await self.block()
        return await super().recent_block(age_s) if header is None else header

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        """Call contracts; if `remembers`, return the first answer to a call of the same function."""
        if not self.remembers:
            return await super().call_many(calls, at, time_s)
        kinds = [call.to + call.data[:4] for call in calls]
        try:
            return [self._known[kind] for kind in kinds]
        except KeyError:
            answers = await super().call_many(calls, at, time_s)
            self._known |= dict(zip(kinds, answers, strict=True))
            return answers


class Floor:
    """Minimal server of order intake, to compare the venue with: verifies a signature and stores an order.

    Args:
        count: number of orders, whose rows are made beforehand.
    """

    def __init__(self, store: Store, count: int) -> None:
        self._store = store
        orders = Orders(NOWHERE)
        self._prepared = []
        for number in range(count):
            signed = orders.signed(number)
            row = msgspec.structs.replace(order_row(), owner=signed.order.owner)
            self._prepared.append((signed, DELTA.submitted(row, os.urandom(_DOCUMENT_BYTES))))

    async def submit(self, call: HttpCall) -> Reply:
        """Verify an order's signature, store the order, and answer `{}`."""
        signed, unit = self._prepared[int(call.request.fields[b"x-number"])]
        if signer(signed.order_hash, signed.signature64) != signed.order.owner:
            return Reply(400, b"{}")
        await self._store.write(unit)
        return Reply(200, b"{}")


def _refused(error: CambistError, request_id: str) -> bytes:
    return f"{request_id}: {error}".encode()


def _leave(folder: Path, ground: Ground) -> None:
    (folder / GROUND).write_bytes(msgspec.json.encode(ground))


async def serve_venue(listener: socket.socket, folder: Path, chain_kind: str, *, is_bounded: bool) -> None:
    chain = KnownChain()
    world = await deployed(chain)
    chain.remembers = chain_kind == KNOWN
    _leave(folder, world.ground)
    found = environ()
    settings = parse_settings(settings_text(world, is_bounded=is_bounded) + _NO_ROUNDS, found, folder)
    async with (
        opened_venue(
            settings, environ=found, folder=folder, clock=WallClock(), chains={chain.chain_id: chain}
        ) as app,
        trio.open_nursery() as nursery,
    ):
        freeze()
        nursery.start_soon(app.run, listener)
        await terminated()
        nursery.cancel_scope.cancel()


async def serve_floor(listener: socket.socket, folder: Path, count: int) -> None:
    _leave(folder, NOWHERE)
    settings = Settings(state_dir=str(folder))
    async with (
        open_store(settings, os.environ, folder, WallClock().now_ms) as store,
        trio.open_nursery() as nursery,
    ):
        router, surface = Router(_refused), RouteGroup(_refused)
        surface.coroutine("POST", "/v2/delta/orders", Floor(store, count).submit)
        surface.plain("GET", "/healthz", lambda _: Reply(200, b"{}"))
        router.mount(surface)
        server = Server(router, ServerSettings(), wall_ms=WallClock().now_ms)
        freeze()
        nursery.start_soon(server.serve, listener)
        await terminated()
        nursery.cancel_scope.cancel()


async def terminated() -> None:
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async for _ in signals:
            return


if __name__ == "__main__":
    parser = options(__doc__)
    parser.add_argument("--what", choices=(VENUE, FLOOR), default=VENUE)
    parser.add_argument("--chain", choices=(EMBEDDED, KNOWN), default=KNOWN)
    parser.add_argument("--folder", type=Path, required=True)
    parser.add_argument("--count", type=int, default=0, help="orders that the floor prepares")
    parser.add_argument("--bounded", action="store_true", help="wrong signatures are, as by default")
    chosen = parser.parse_args()
    if chosen.what == VENUE:
        listener = inherited(chosen.fd)
        trio.run(partial(serve_venue, listener, chosen.folder, chosen.chain, is_bounded=chosen.bounded))
    else:
        trio.run(serve_floor, inherited(chosen.fd), chosen.folder, chosen.count)
