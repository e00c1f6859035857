"""The market maker's part of the demo: one on loopback, quoted, stopped, and checked by the harness."""

import secrets
import socket
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
import trio
from rich.console import Console
from rich.table import Table

from ...codecs.amounts import format_units
from ...codecs.eip712_orders.rfq import RFQ_ORDER, rfq_domain_separator
from ...codecs.http1 import Http1Limits, Response
from ...codecs.maker_messages import FirmOrder, decode_firm_response, decode_prices
from ...config.settings import Settings, parse_settings
from ...crypto.addresses import to_checksum
from ...crypto.hexadecimal import parse_hex, to_hex
from ...crypto.hmac_auth import RequestSigner
from ...crypto.secp256k1 import SigningKey
from ...crypto.signatures import signer
from ...feeds.net.http_client import HttpClient
from ...feeds.net.streams import listen
from ..conformance.auth import Credentials
from ..conformance.options import CheckOptions, Place
from ..conformance.rules import Selection, Status
from ..conformance.run import RunReport, run_checks
from ..maker.app import MakerApp
from ..telemetry.clock import WallClock

_CHAIN_ID = 31_337
_CONTRACT = "0x5fbdb2315678afecb367f032d93f642f64180aa3"
_TAKER = "0x9fe46736679d2d9a65f0992f2272de9f3c7fa6e0"
_WETH = "0xc02aaa39b223fe8d0a0e5c4f27ead9083c756cc2"
_USDC = "0xa0b86991c6218b36c1d19d4a2e9eb0ce3606eb48"
_STRANGER = "0x" + "dead" * 10
_ANSWER_S = 5.0
_SETTINGS = f"""
state_dir = "."
[server]
port = 0
[chains.{_CHAIN_ID}]
name = "devnet"
rfq = true
rfq_contract = "{_CONTRACT}"
[keys.maker]
source = "env:DEMO_MAKER_KEY"
policy.contracts = ["{_CHAIN_ID}:{_CONTRACT}"]
[auth.domains.venue]
keys = [{{ access_key = "key-1", secret = "env:DEMO_SECRET" }}]
[maker.chains.{_CHAIN_ID}]
key = "maker"
takers = ["{_TAKER}"]
blacklist = ["{_STRANGER}"]
price_source = "random_walk"
price_options.seed = 7
price_options.interval_ms = 500
price_options.pairs."WETH/USDC" = {{ start = "2500", spread_bps = 4 }}
tokens.WETH = {{ address = "{_WETH}", decimals = 18, balance = "1000" }}
tokens.USDC = {{ address = "{_USDC}", decimals = 6, balance = "2500000" }}
pairs."WETH/USDC" = {{ base = "WETH", quote = "USDC", liquidity_usd = 5000000 }}
"""


async def run_market_maker(console: Console) -> None:
    """Show each step on `console`; raises if any of them does not hold."""
    key, secret = SigningKey(secrets.token_bytes(32)), secrets.token_hex(16)
    environ = {"DEMO_MAKER_KEY": key.secret32().hex(), "DEMO_SECRET": secret}
    with tempfile.TemporaryDirectory() as folder:
        settings = parse_settings(_SETTINGS, environ, Path(folder))
        await _show(console, settings, environ, Path(folder), key, secret)


async def _show(
    console: Console,
    settings: Settings,
    environ: Mapping[str, str],
    folder: Path,
    key: SigningKey,
    secret: str,
) -> None:
    app = MakerApp(settings, environ=environ, folder=folder, clock=WallClock())
    listener = listen("127.0.0.1", 0)
    with app.remembering():
        await _show_app(console, app, listener, key, secret)


async def _show_app(
    console: Console, app: MakerApp, listener: socket.socket, key: SigningKey, secret: str
) -> None:
    port: int = listener.getsockname()[1]
    async with trio.open_nursery() as nursery:
        await nursery.start(app.run, listener)
        async with HttpClient("127.0.0.1", port, connections_max=4, limits=Http1Limits()) as client:
            venue = _Venue(client, RequestSigner("venue", "key-1", secret.encode()))
            console.rule(f"1. A market maker on http://127.0.0.1:{port}/{_CHAIN_ID}")
            await _show_prices(console, venue)
            console.rule("2. A firm quote, signed on request")
            await _show_quote(console, venue, key)
            console.rule("3. The kill switch")
            await _show_kill_switch(console, venue, app)
        console.rule("4. cambist maker check: does it keep every rule of the interface?")
        await _show_check(console, port, key, Credentials("venue", "key-1", secret.encode()))
        app.drain()


class _Venue:
    """Asks the maker as the service does: every request signed."""

    def __init__(self, client: HttpClient, signing: RequestSigner) -> None:
        self._client = client
        self._signing = signing

    async def ask(self, method: str, path: str, body: bytes = b"") -> Response:
        target = f"/{_CHAIN_ID}{path}"
        headers = self._signing.headers(time.time_ns() // 1_000_000, method, target, body)
        return await self._client.request(
            method.encode(),
            target.encode(),
            [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            body,
            deadline_s=_ANSWER_S,
        )


async def _show_prices(console: Console, venue: _Venue) -> None:
    with trio.fail_after(_ANSWER_S):
        while True:
            prices = decode_prices((await venue.ask("GET", "/prices")).body).body.prices["WETH/USDC"]
            if prices.bids and prices.asks:
                break
            await trio.sleep(0.05)
    table = Table("bid", "WETH", "ask", "WETH", box=None)
    for bid, ask in zip(prices.bids[:3], prices.asks[:3], strict=True):
        table.add_row(*bid, *ask)
    console.print(table)


async def _show_quote(console: Console, venue: _Venue, key: SigningKey) -> None:
    user = SigningKey(secrets.token_bytes(32)).address
    body = msgspec.json.encode(
        {
            "makerAsset": _USDC,
            "takerAsset": _WETH,
            "takerAmount": "1500000000000000000",
            "userAddress": to_hex(user),
            "takerAddress": _TAKER,
        }
    )
    started = time.perf_counter_ns()
    response = await venue.ask("POST", "/firm", body)
    taken_us = (time.perf_counter_ns() - started) / 1_000
    order = decode_firm_response(response.body).order
    if not isinstance(order, FirmOrder):
        raise AssertionError(f"no order: {response.body!r}")  # noqa: TRY004  a step that does not hold
    console.print_json(response.body.decode())
    members = msgspec.to_builtins(order)
    signature = parse_hex(members.pop("signature"), "signature")
    contract = parse_hex(_CONTRACT, "contract")
    digest_of = RFQ_ORDER.compiled.digest_for(rfq_domain_separator("Cambist RFQ", _CHAIN_ID, contract))
    recovered = signer(digest_of(RFQ_ORDER.from_wire(members)), signature)
    if recovered != key.address:
        raise AssertionError(f"the quote recovers {to_checksum(recovered)}")
    usdc = format_units(int(order.maker_amount), 6)
    console.print(f"  1.5 WETH for {usdc} USDC, answered in {taken_us:.0f} us", highlight=False)
    console.print(f"  recovered signer {to_checksum(recovered)} [green]the maker[/green]", highlight=False)


async def _show_kill_switch(console: Console, venue: _Venue, app: MakerApp) -> None:
    table = Table("step", "GET /prices", box=None)
    for step, act, expected in (
        ("as usual", None, 200),
        ("halt all", app.switch.stop, 503),
        ("resume all", app.switch.resume, 200),
    ):
        if act:
            act("all")
        response = await venue.ask("GET", "/prices")
        if response.status != expected:
            raise AssertionError(f"{step}: {response.status} {response.body!r}")
        table.add_row(step, f"{response.status} {response.body[:60].decode()}")
    console.print(table)


async def _show_check(console: Console, port: int, key: SigningKey, credentials: Credentials) -> None:
    options = CheckOptions(
        base=Place("http", "127.0.0.1", port, f"/{_CHAIN_ID}", f"127.0.0.1:{port}"),
        credentials=credentials,
        selection=Selection(strict=True),
        chain_id=_CHAIN_ID,
        rfq_contract=parse_hex(_CONTRACT, "contract"),
        taker=_TAKER,
        blacklisted=_STRANGER,
    )
    report: RunReport = await run_checks(options, now_ms=lambda: time.time_ns() // 1_000_000)
    for verdict in report.verdicts:
        if verdict.status is Status.FAILED:
            console.print(verdict, style="red")
    console.print(
        f"  {report.count(Status.PASSED)} checks passed, {report.count(Status.FAILED)} failed, "
        f"{report.count(Status.SKIPPED)} skipped, {report.requests} requests in {report.elapsed_s:.1f} s",
        highlight=False,
    )
    if not report.conforms:
        raise AssertionError(f"the maker {to_checksum(key.address)} does not conform")
