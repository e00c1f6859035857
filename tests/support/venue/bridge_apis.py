"""Fee APIs of Across and CCTP on a real socket, and a quiet venue whose bridges ask them.

Across refuses as github.com/across-protocol/frontend, api/suggested-fees.ts does: always an amount above
`maxDeposit`, and one below `minDeposit` unless `skipAmountLimit=true`.

async with bridge_apis() as apis, a_bridged_venue(tmp_path, apis) as venue:
    apis.fixed = 2 * USD
    told = await venue.get("/v2/quote", **A_BRIDGED_SALE)
"""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import msgspec
import trio

from cambist.codecs.amounts import format_units
from cambist.codecs.http1 import encode_response
from cambist.crypto.addresses import to_checksum
from cambist.engine.host.process.clock import WallClock
from support.patience import until
from support.server.scripted_server import Caller, scripted_server
from support.venue.quiet_venue import (
    A_SALE,
    CHAIN_ID,
    DAI,
    DELTA_ONLY,
    MARKET_ONLY,
    USDC,
    QuietVenue,
    a_quiet_venue,
)

USD = 10**6
POOL, OTHER_POOL, MESSENGER, TRANSMITTER = (
    to_checksum(bytes([byte]) * 20) for byte in (0x61, 0x62, 0x63, 0x64)
)
DOMAINS = {CHAIN_ID: 40, DELTA_ONLY: 41, MARKET_ONLY: 42}
THERE = DELTA_ONLY
"""The chain that A_BRIDGED_SALE goes to."""
A_BRIDGED_SALE: dict[str, Any] = A_SALE | {"destChainId": THERE, "mode": "DELTA"}
"""Query of a sale of one WETH for USDC on another chain."""
A_BRIDGED_PURCHASE: dict[str, Any] = A_BRIDGED_SALE | {"side": "BUY", "amount": str(1_000 * USD)}
"""Query of a purchase of 1,000 USDC on another chain for WETH."""
_SETTINGS = """
[bridges.across]
kind = "across"
display_name = "Across"
url = "http://127.0.0.1:{port}/api"
margin_bps = {margin_bps}
every_s = 0.05
stale_s = {stale_s}
[[bridges.across.tokens]]
chains = {{ {here} = "{usdc}", {market} = "{usdc}", {there} = "{usdc}" }}
[[bridges.across.tokens]]
chains = {{ {here} = "{usdc}", {there} = "{dai}" }}
[bridges.circle]
kind = "cctp"
url = "http://127.0.0.1:{port}/iris/"
margin_bps = {margin_bps}
every_s = 0.05
stale_s = {stale_s}
[[bridges.circle.tokens]]
chains = {{ {here} = "{usdc}", {there} = "{usdc}" }}
[bridges.circle-fast]
kind = "cctp"
tier = "fast"
url = "http://127.0.0.1:{port}/iris"
margin_bps = {margin_bps}
every_s = 0.05
stale_s = {stale_s}
[[bridges.circle-fast.tokens]]
chains = {{ {here} = "{usdc}", {there} = "{usdc}" }}
"""


class BridgeApis:
    """Answers of the two APIs, as a test sets them.

    Attributes:
        fixed, ppm: fee of Across: raw units, and parts per million of the amount.
        limits: limits of a deposit, raw units by name.
        pool: Across's contract in its answers.
        seconds: expected time of a fill; None leaves it out.
        tiers: finality -> fee of CCTP as JSON writes it.
        down: names of the APIs, `across` and `cctp`, that answer 503.
        bodies: name of an API -> bytes that it answers in place of its own.
        asked: paths and queries of all requests.
    """

    def __init__(self, port: int) -> None:
        self.port = port
        self.fixed, self.ppm = 2 * USD, 100
        self.limits = {"minDeposit": USD, "maxDeposit": 10**12, "maxDepositInstant": 10**11}
        self.pool = POOL
        self.seconds: int | None = 5
        self.tiers = {1_000: "1.3", 2_000: "0"}
        self.down: set[str] = set()
        self.bodies: dict[str, bytes] = {}
        self.asked: list[str] = []

    async def serve(self, caller: Caller) -> None:
        while True:
            try:
                request = await caller.request()
            except (EOFError, trio.BrokenResourceError):
                return
            path, query = request.path.decode(), parse_qs((request.query or b"").decode())
            self.asked.append(request.target.decode())
            name = "across" if path == "/api/suggested-fees" else "cctp"
            if name in self.down:
                answer = encode_response(503, b'{"message":"away"}')
            else:
                status, body = self._across(query) if name == "across" else (200, self._cctp(path))
                answer = encode_response(status, self.bodies.get(name, body))
            try:
                await caller.stream.send_all(answer)
            except trio.BrokenResourceError:
                return

    def _across(self, query: Mapping[str, list[str]]) -> tuple[int, bytes]:
        amount = int(query["amount"][0])
        if amount > (most := self.limits["maxDeposit"]):
            decimals = 18 if query["inputToken"][0].lower() == DAI.lower() else 6
            text = (
                f"Amount exceeds max. deposit limit: {format_units(most, decimals)} {query['inputToken'][0]}"
            )
            return 400, across_refusal("AMOUNT_TOO_HIGH", text)
        if amount < self.limits["minDeposit"] and query.get("skipAmountLimit") != ["true"]:
            return 400, across_refusal("AMOUNT_TOO_LOW", "Sent amount is too low relative to fees")
        total = self.fixed + -(-amount * self.ppm // 1_000_000)
        told: dict[str, Any] = {
            "totalRelayFee": {"pct": str(total * 10**18 // amount), "total": str(total)},
            "relayerCapitalFee": {"pct": "0", "total": "0"},
            "timestamp": "1764132345",
            "isAmountTooLow": amount < self.limits["minDeposit"],
            "spokePoolAddress": self.pool,
            "exclusiveRelayer": "0x" + "11" * 20,
            "exclusivityDeadline": 6,
            "limits": {name: str(amount) for name, amount in self.limits.items()},
        }
        if self.seconds is not None:
            told["estimatedFillTimeSec"] = self.seconds
        return 200, msgspec.json.encode(told)

    def _cctp(self, path: str) -> bytes:
        assert path.startswith("/iris/v2/burn/USDC/fees/")
        rows = [f'{{"finalityThreshold":{at},"minimumFee":{fee}}}' for at, fee in self.tiers.items()]
        return f"[{','.join(rows)}]".encode()


def across_refusal(code: str, text: str) -> bytes:
    return msgspec.json.encode({"type": "AcrossApiError", "code": code, "status": 400, "message": text})


@asynccontextmanager
async def bridge_apis() -> AsyncIterator[BridgeApis]:
    """Both APIs, on one port of this machine."""
    apis = BridgeApis(0)
    async with scripted_server(apis.serve) as port:
        apis.port = port
        yield apis


def bridge_environ() -> dict[str, str]:
    """The contracts of the bridges on the chains of a quiet venue, as environment variables."""
    environ = {}
    for chain_id, domain in DOMAINS.items():
        prefix = f"CAMBIST__CHAINS__{chain_id}__"
        environ[f"{prefix}SPOKE_POOL"] = f'"{POOL}"'
        environ[f"{prefix}TOKEN_MESSENGER"] = f'"{MESSENGER}"'
        environ[f"{prefix}MESSAGE_TRANSMITTER"] = f'"{TRANSMITTER}"'
        environ[f"{prefix}CCTP_DOMAIN"] = str(domain)
    return environ


def bridge_settings(port: int, *, margin_bps: int = 0, stale_s: float = 60.0) -> str:
    """TOML of the three bridges: `across`, `circle` and `circle-fast`."""
    return _SETTINGS.format(
        port=port,
        margin_bps=margin_bps,
        stale_s=stale_s,
        here=CHAIN_ID,
        market=MARKET_ONLY,
        there=THERE,
        usdc=USDC,
        dai=DAI,
    )


@asynccontextmanager
async def a_bridged_venue(
    folder: Path,
    apis: BridgeApis,
    *,
    environ: Mapping[str, str] | None = None,
    margin_bps: int = 0,
    stale_s: float = 60.0,
    clock: WallClock | None = None,
    is_ready: bool = True,
    **more: Any,
) -> AsyncIterator[QuietVenue]:
    """A quiet venue with bridges, once it knows the fee of each lane.

    Args:
        environ: settings that it overrides.
        is_ready: whether to wait for the fees.
    """
    async with a_quiet_venue(
        folder,
        more=bridge_settings(apis.port, margin_bps=margin_bps, stale_s=stale_s),
        environ=bridge_environ() | dict(environ or {}),
        clock=clock,
        **more,
    ) as venue:
        if is_ready:
            await until(lambda: all(lane.fees.at(venue.clock.now_ms()) for lane in venue.app.bridges))
        yield venue


async def refreshed(venue: QuietVenue) -> None:
    """Wait until each lane has been asked again, from now on."""
    before = {id(lane): _rounds(lane) for lane in venue.app.bridges}
    await until(lambda: all(_rounds(lane) >= before[id(lane)] + 2 for lane in venue.app.bridges))


def _rounds(lane: Any) -> int:
    counted = lane.fees.statistics()
    return int(counted.answers + counted.failures)
