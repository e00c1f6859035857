"""Makers of venue stories: the front between the venue and each of them, and their common clock."""

import time
from typing import Any

import msgspec
import trio
from msgspec.structs import replace

from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from cambist.codecs.http1 import Http1Limits, encode_response
from cambist.crypto.hmac_auth import RequestSigner
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from cambist.engine.host.process.clock import WallClock
from cambist.feeds.transport.http_client import HttpClient
from support.chain.world import RFQ_NAME, World, person
from support.makers.server_styles import Style
from support.patience import PATIENCE_S
from support.server.scripted_server import Caller
from support.venue.venue_role import CHAIN_ID

KEYS = {name: person(40 + number) for number, name in enumerate(("alpha", "beta", "gamma"))}
LIAR = person(51)


class StoryClock(WallClock):
    """Begins at a chain's time; a story can let more pass."""

    def __init__(self, now_s: int) -> None:
        self._passed_ns = 0
        began_ns = time.monotonic_ns()

        def gone_ns() -> int:
            return time.monotonic_ns() - began_ns + self._passed_ns

        super().__init__(lambda: now_s * 10**9 + gone_ns(), gone_ns)

    def passes(self, seconds: float) -> None:
        """Let time pass at once."""
        self._passed_ns += round(seconds * 10**9)


class Front:
    """Between the venue and one maker, who signs with this key.

    Attributes:
        habit: what it does with firm requests; empty hands them on.
        worse_bps: with the habit `drifts`, by how much what the maker signs is worse than it was; below 0 for
            better.
        asked: how many firm requests came; `bodies` are theirs.
        style: how it writes an answer's bytes, as in `server_styles`; None for our server's way.
    """

    def __init__(self, name: str, world: World, port: int, key: SigningKey | None = None) -> None:
        self.habit = ""
        self.worse_bps = 0
        self.asked = 0
        self.style: Style | None = None
        self.bodies: list[bytes] = []
        self._key = key or KEYS[name]
        self._port = port
        separator = rfq_domain_separator(RFQ_NAME, CHAIN_ID, world.at.rfq)
        self._digest_of = RFQ_ORDER.compiled.digest_for(separator)

    async def asked_by_another(self, venue: RequestSigner, now_ms: int, **changed: Any) -> int:
        """Have another venue ask the maker for what was asked last, with `changed` members: the status."""
        body = msgspec.json.encode(msgspec.json.decode(self.bodies[-1]) | changed)
        target = f"/{CHAIN_ID}/firm"
        headers = [
            (name.encode(), value.encode())
            for name, value in venue.headers(now_ms, "POST", target, body).items()
        ]
        async with HttpClient("127.0.0.1", self._port, connections_max=1, limits=Http1Limits()) as maker:
            return (
                await maker.request(b"POST", target.encode(), headers, body, deadline_s=PATIENCE_S)
            ).status

    async def script(self, caller: Caller) -> None:
        """Serve one connection."""
        async with HttpClient("127.0.0.1", self._port, connections_max=1, limits=Http1Limits()) as maker:
            while True:
                try:
                    request = await caller.request()
                    headers = [pair for pair in request.headers if pair[0].startswith(b"x-auth-")]
                    answer = await maker.request(
                        request.method, request.target, headers, request.body, deadline_s=PATIENCE_S
                    )
                    status, body = answer.status, answer.body
                    if request.method == b"POST":
                        self.asked += 1
                        self.bodies.append(request.body)
                        if self.habit == "cuts":
                            await caller.stream.send_all(b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n{")
                            return
                        status, body = await self._by_habit(status, body, b"takerAmount" in request.body)
                    if self.style is None:
                        await caller.stream.send_all(encode_response(status, body))
                        continue
                    written, is_last = self.style(status, body)
                    await caller.stream.send_all(written)
                    if is_last:
                        return
                except (EOFError, trio.BrokenResourceError, trio.ClosedResourceError):
                    return

    async def _by_habit(self, status: int, body: bytes, is_sale: bool) -> tuple[int, bytes]:
        if self.habit == "hangs":
            await trio.sleep_forever()
        if self.habit == "refuses":
            return 503, b'{"error":"not today"}'
        if self.habit == "blacklists":
            return 200, b'{"message":"not you"}'
        if self.habit == "babbles":
            return 200, b"<html>it works</html>"
        if self.habit == "drifts":
            return status, self._signed_again(body, self._key, self.worse_bps, is_sale)
        if self.habit == "signs wrongly":
            return status, self._signed_again(body, LIAR, 0, is_sale)
        assert not self.habit, self.habit
        return status, body

    def _signed_again(self, body: bytes, key: SigningKey, worse_bps: int, is_sale: bool) -> bytes:
        told = msgspec.json.decode(body)["order"]
        del told["signature"]
        order = RFQ_ORDER.from_wire(told)
        if is_sale:
            order = replace(order, maker_amount=order.maker_amount * (10_000 - worse_bps) // 10_000)
        else:
            order = replace(order, taker_amount=order.taker_amount * (10_000 + worse_bps) // 10_000)
        signature = to_65(*key.sign(self._digest_of(order))).hex()
        return msgspec.json.encode({"order": RFQ_ORDER.to_wire(order) | {"signature": f"0x{signature}"}})
