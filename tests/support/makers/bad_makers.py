"""Market makers in a process of their own, well behaved until they are told to misbehave, each in its way.

    python -m support.makers.bad_makers WETH USDC NAME:PORT ...

writes its ports to stdout once it listens; a line of stdin, `chaos` or `calm`, says how they behave then.

Each quotes 500 pairs, or WETH/USDC a little better than anybody honest. No one of them ever signs.
"""

import sys
from functools import cache, partial
from itertools import combinations
from random import Random
from typing import Any

import trio

from cambist.codecs.http1 import Request, Upgrade, encode_response
from cambist.feeds.transport.streams import listen
from support.makers.memory_maker import MemoryMaker
from support.server.raw_websocket import TEXT, frame

TOKENS = 33
PAIRS = 500
LEVELS = 20
HUGE_BYTES = 100 << 20
PIECE = b" " * 65_536
SNAPSHOT_EVERY_S = 0.5
TURNS = 4  # until prices are those of the first snapshot again
FLAP_EVERY_S = 0.3
DRIP_EVERY_S = 0.05
ILL_OF_TEN = 6  # requests, and connections of sockets

SOCKETS = ("flapping", "cutting", "half-open", "garbage", "huge", "snapshots-pushed", "dripping")
POLLED = tuple(
    f"{name}-polled" for name in ("flapping", "cutting", "garbage", "huge", "snapshots", "dripping")
)
MORTAL = "mortal"
NAMES = (*SOCKETS, *POLLED)


def token_address(at: int) -> str:
    """Address of a token beside WETH and USDC, which no other maker trades."""
    return f"0x{at + 0x1000:040x}"


@cache
def contents(weth: str, usdc: str, turn: int, *, wide: bool) -> dict[str, Any]:
    """Contents of all resources of a maker, shared by its callers and never changed; `turn` moves prices."""
    known = {"WETH": (weth, 18, 2_500.0), "USDC": (usdc, 6, 1.0)}
    if wide:
        known |= {f"T{at}": (token_address(at), 18, 1.0 + at) for at in range(TOKENS - 2)}
    off = 0.995 if wide else 1.001  # of the honest price
    move = 1 - turn * 0.000_01
    prices = {}
    for base, quote in list(combinations(known, 2))[:PAIRS]:
        price = known[base][2] / known[quote][2] * move
        bids, asks = price * off, price * 1.005
        prices[f"{base}/{quote}"] = {
            "bids": [[f"{bids * (1 - level / 10_000):.12f}", f"{level + 1}.5"] for level in range(LEVELS)],
            "asks": [[f"{asks * (1 + level / 10_000):.12f}", f"{level + 1}.5"] for level in range(LEVELS)],
        }
    return {
        "tokens": {
            name: {"address": address, "decimals": decimals, "type": "ERC20"}
            for name, (address, decimals, _) in known.items()
        },
        "pairs": {
            name: {"base": name.split("/")[0], "quote": name.split("/")[1], "liquidityUSD": 1_000}
            for name in prices
        },
        "prices": prices,
        "blacklist": [],
    }


class BadMaker(MemoryMaker):
    """A maker that misbehaves while `is_ill` is true."""

    def __init__(self, nursery: trio.Nursery, name: str, weth: str, usdc: str) -> None:
        super().__init__(nursery)
        self.name = name
        self.is_ill = False
        self._turn = 0
        self._contents = partial(contents, weth, usdc, wide=name.startswith("snapshots"))
        self.contents = self._contents(0)
        self._random = Random(name)
        self._is_away = False
        self._all: set[trio.abc.Stream] = set()

    async def run(self) -> None:
        """Move prices, and flap."""
        snaps = self.name.startswith("snapshots")
        while True:
            await trio.sleep(SNAPSHOT_EVERY_S if snaps else FLAP_EVERY_S)
            if not self.is_ill:
                self._is_away = False
                continue
            if self.name.startswith("flapping"):
                self._is_away = not self._is_away
                for stream in tuple(self._all) if self._is_away else ():
                    await trio.aclose_forcefully(stream)
            elif snaps:
                self._turn = (self._turn + 1) % TURNS
                self.contents = self._contents(self._turn)
                self.say(prices=self.contents["prices"])

    async def serve(self, stream: trio.abc.Stream) -> None:
        if self._is_away:
            await trio.aclose_forcefully(stream)
            return
        self._all.add(stream)
        try:
            await super().serve(stream)
        finally:
            self._all.discard(stream)

    def _falls_ill(self) -> bool:
        return self.is_ill and self._random.randrange(10) < ILL_OF_TEN

    async def _answer(self, stream: trio.abc.Stream, request: Request) -> None:
        name = request.path.decode().rpartition("/")[2]
        if name != "firm" and not self._falls_ill():
            self.asked.clear()
            await super()._answer(stream, request)
        elif self.name.startswith("cutting"):
            await stream.send_all(b'HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{"')
            await trio.aclose_forcefully(stream)
        elif self.name.startswith("half-open"):
            await trio.sleep_forever()
        elif self.name.startswith("garbage"):
            await stream.send_all(self._random.randbytes(4_096))
            await trio.aclose_forcefully(stream)
        elif self.name.startswith("huge"):
            await stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: %d\r\n\r\n" % HUGE_BYTES)
            for _ in range(HUGE_BYTES // len(PIECE)):
                await stream.send_all(PIECE)
        elif self.name.startswith("dripping"):
            for byte in b"HTTP/1.1 200 OK\r\nx-slow: " + b"y" * 10_000:
                await stream.send_all(bytes([byte]))
                await trio.sleep(DRIP_EVERY_S)
        elif name == "firm":
            await stream.send_all(encode_response(503, b'{"error":"not today"}'))
        else:
            await super()._answer(stream, request)

    async def _open(self, stream: trio.abc.Stream, upgrade: Upgrade) -> None:
        if not self._falls_ill() or self.name.startswith(("flapping", "snapshots")):
            self.asked.clear()
            await super()._open(stream, upgrade)
            return
        self.first = None
        self._nursery.start_soon(self._spoil, stream)
        await super()._open(stream, upgrade)

    async def _spoil(self, stream: trio.abc.Stream) -> None:
        """Break a socket once its first message is out; what writes there at once gives way."""
        await trio.sleep(0.1)
        try:
            if self.name == "cutting":
                await stream.send_all(frame(TEXT, b'{"prices":{}}', masked=False)[:7])
                await trio.aclose_forcefully(stream)
            elif self.name == "garbage":
                await stream.send_all(self._random.randbytes(4_096))
            elif self.name == "huge":
                await stream.send_all(b"\x81\x7f" + HUGE_BYTES.to_bytes(8, "big"))
                for _ in range(HUGE_BYTES // len(PIECE)):
                    await stream.send_all(PIECE)
            elif self.name == "dripping":
                for byte in frame(TEXT, PIECE, masked=False):
                    await stream.send_all(bytes([byte]))
                    await trio.sleep(DRIP_EVERY_S)
        except (trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            pass


async def main(weth: str, usdc: str, places: list[str]) -> None:
    """Serve until killed, or stdin ends."""
    async with trio.open_nursery() as nursery:
        makers = []
        for name, _, port in (place.partition(":") for place in places):
            maker = BadMaker(nursery, name, weth, usdc)
            listener = trio.SocketListener(trio.socket.from_stdlib_socket(listen("127.0.0.1", int(port))))
            nursery.start_soon(trio.serve_listeners, maker.serve, [listener])
            nursery.start_soon(maker.run)
            makers.append(maker)
        print("listening", flush=True)  # noqa: T201
        async for line in trio.wrap_file(sys.stdin):
            for maker in makers:
                maker.is_ill = line.strip() == "chaos"
        nursery.cancel_scope.cancel()


if __name__ == "__main__":
    trio.run(main, sys.argv[1], sys.argv[2], sys.argv[3:])
