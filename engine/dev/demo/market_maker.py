"""Demo steps of one market maker: prices, a firm quote filled on the chain, kill switch, conformance check.

The maker serves HTTP on 127.0.0.1.
"""

import secrets
import socket
import time
from pathlib import Path

import msgspec
import trio
from rich.console import Console
from rich.table import Table

from ....codecs.amounts import format_units
from ....codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from ....codecs.http1 import Http1Limits, Response
from ....codecs.messages.maker_messages import FirmOrder, decode_firm_response, decode_prices
from ....config.settings import parse_settings
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import parse_hex, to_hex
from ....crypto.hmac_auth import RequestSigner
from ....crypto.signatures import signer
from ....feeds.transport.http_client import HttpClient
from ....feeds.transport.streams import listen
from ...host.process.clock import WallClock
from ...roles.maker.app import MakerApp
from ...trader.conformance.checks.auth import Credentials
from ...trader.conformance.options import BaseUrl, CheckOptions
from ...trader.conformance.rules import CheckStatus, Selection
from ...trader.conformance.run import RunReport, run_checks
from .settlement import CHAIN_ID, WAIT_S, DemoChain, show_fill

_STRANGER = "0x" + "dead" * 10
_SETTINGS = """
state_dir = "."
[server]
port = 0
[chains.{chain_id}]
name = "devnet"
rfq = true
rfq_contract = "{rfq}"
[keys.maker]
source = "env:DEMO_MAKER_KEY"
policy.contracts = ["{chain_id}:{rfq}"]
[auth.domains.venue]
keys = [{{ access_key = "key-1", secret = "env:DEMO_SECRET" }}]
[maker.chains.{chain_id}]
key = "maker"
node_url = "{url}"
node_every_ms = 100
node_head_max_s = 0
takers = ["{executor}"]
blacklist = ["{stranger}"]
price_source = "random_walk"
price_options.seed = 7
price_options.interval_ms = 500
price_options.pairs."WETH/USDC" = {{ start = "2500", spread_bps = 4 }}
tokens.WETH = {{ address = "{weth}", decimals = 18 }}
tokens.USDC = {{ address = "{usdc}", decimals = 6 }}
pairs."WETH/USDC" = {{ base = "WETH", quote = "USDC", liquidity_usd = 5000000 }}
"""


async def run_market_maker(console: Console, stage: DemoChain, folder: Path) -> None:
    """Run the demo's steps of one market maker (2 to 6) and print each on `console`; raise if a step fails.

    Args:
        stage: the demo's chain and the keys of its accounts.
        folder: folder for the maker's state files.
    """
    secret = secrets.token_hex(16)
    environ = {"DEMO_MAKER_KEY": stage.maker.secret32().hex(), "DEMO_SECRET": secret}
    settings = parse_settings(_settings(stage), environ, folder)
    app = MakerApp(settings, environ=environ, folder=folder, clock=WallClock())
    listener = listen("127.0.0.1", 0)
    with app.remembering():
        await _show_app(console, app, listener, stage, secret)


def _settings(stage: DemoChain) -> str:
    addresses = {name: to_hex(stage.at(name)) for name in ("rfq", "executor")}
    tokens = {name.lower(): to_hex(stage.at(name)) for name in ("WETH", "USDC")}
    return _SETTINGS.format(
        chain_id=CHAIN_ID, url=stage.running.url, stranger=_STRANGER, **addresses, **tokens
    )


async def _show_app(
    console: Console, app: MakerApp, listener: socket.socket, stage: DemoChain, secret: str
) -> None:
    port: int = listener.getsockname()[1]
    async with trio.open_nursery() as nursery:
        await nursery.start(app.run, listener)
        async with HttpClient("127.0.0.1", port, connections_max=4, limits=Http1Limits()) as client:
            venue = _Venue(client, RequestSigner("venue", "key-1", secret.encode()))
            console.rule(f"2. A market maker on http://127.0.0.1:{port}/{CHAIN_ID}")
            await _show_prices(console, venue)
            console.rule("3. A firm quote, signed on request")
            order, signature = await _show_quote(console, venue, stage)
            console.rule("4. The quote is filled on the chain")
            await show_fill(console, stage, order, signature)
            console.rule("5. The kill switch")
            await _show_kill_switch(console, venue, app)
        console.rule("6. cambist maker check: does it keep every rule of the interface?")
        await _show_check(console, port, stage, Credentials("venue", "key-1", secret.encode()))
        app.drain()


class _Venue:
    """HTTP client that asks the maker for prices and quotes, and signs each request as a venue does."""

    def __init__(self, client: HttpClient, signing: RequestSigner) -> None:
        self._client = client
        self._signing = signing

    async def ask(self, method: str, path: str, body: bytes = b"") -> Response:
        target = f"/{CHAIN_ID}{path}"
        headers = self._signing.headers(time.time_ns() // 1_000_000, method, target, body)
        return await self._client.request(
            method.encode(),
            target.encode(),
            [(name.lower().encode(), value.encode()) for name, value in headers.items()],
            body,
            deadline_s=WAIT_S,
        )


async def _show_prices(console: Console, venue: _Venue) -> None:
    with trio.fail_after(WAIT_S):
        while True:
            prices = decode_prices((await venue.ask("GET", "/prices")).body).body.prices["WETH/USDC"]
            if prices.bids and prices.asks:
                break
            await trio.sleep(0.05)
    table = Table("bid", "WETH", "ask", "WETH", box=None)
    for bid, ask in zip(prices.bids[:3], prices.asks[:3], strict=True):
        table.add_row(*bid, *ask)
    console.print(table)


async def _show_quote(console: Console, venue: _Venue, stage: DemoChain) -> tuple[RfqOrder, bytes]:
    """Request and print a firm quote, and check its signature; return the RFQ order and the signature.

    Raises:
        AssertionError: the maker answers without an order, or the signature is not the maker's.
    """
    body = msgspec.json.encode(
        {
            "makerAsset": to_hex(stage.at("USDC")),
            "takerAsset": to_hex(stage.at("WETH")),
            "takerAmount": "1500000000000000000",
            "userAddress": to_hex(stage.user.address),
            "takerAddress": to_hex(stage.at("executor")),
        }
    )
    started = time.perf_counter_ns()
    response = await venue.ask("POST", "/firm", body)
    taken_us = (time.perf_counter_ns() - started) / 1_000
    firm = decode_firm_response(response.body).order
    if not isinstance(firm, FirmOrder):
        raise AssertionError(f"no order: {response.body!r}")  # noqa: TRY004  a step that does not hold
    console.print_json(response.body.decode())
    members = msgspec.to_builtins(firm)
    signature = parse_hex(members.pop("signature"), "signature")
    order = RFQ_ORDER.from_wire(members)
    usdc = format_units(order.maker_amount, 6)
    console.print(f"  1.5 WETH for {usdc} USDC, answered in {taken_us:.0f} us", highlight=False)
    digest_of = RFQ_ORDER.compiled.digest_for(rfq_domain_separator("AUGUSTUS RFQ", CHAIN_ID, stage.at("rfq")))
    changed = msgspec.structs.replace(order, maker_amount=order.maker_amount + 1)
    table = Table("order", "recovered signer", box=None)
    for name, shown, expected in (("as signed", order, True), ("one unit more", changed, False)):
        recovered = signer(digest_of(shown), signature)
        if (recovered == stage.maker.address) is not expected:
            raise AssertionError(f"the order {name} recovers {to_checksum(recovered)}")
        verdict = "[green]the maker[/green]" if expected else "[red]not the maker[/red]"
        table.add_row(name, f"{to_checksum(recovered)} {verdict}")
    console.print(table)
    return order, signature


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


async def _show_check(console: Console, port: int, stage: DemoChain, credentials: Credentials) -> None:
    options = CheckOptions(
        base=BaseUrl("http", "127.0.0.1", port, f"/{CHAIN_ID}", f"127.0.0.1:{port}"),
        credentials=credentials,
        selection=Selection(strict=True),
        chain_id=CHAIN_ID,
        rfq_contract=stage.at("rfq"),
        taker=to_hex(stage.at("executor")),
        blacklisted=_STRANGER,
    )
    report: RunReport = await run_checks(options, now_ms=lambda: time.time_ns() // 1_000_000)
    for verdict in report.verdicts:
        if verdict.status is CheckStatus.FAILED:
            console.print(verdict, style="red")
    console.print(
        f"  {report.count(CheckStatus.PASSED)} checks passed, {report.count(CheckStatus.FAILED)} failed, "
        f"{report.count(CheckStatus.SKIPPED)} skipped, "
        f"{report.requests} requests in {report.elapsed_s:.1f} s",
        highlight=False,
    )
    if not report.conforms:
        raise AssertionError(f"the maker {to_checksum(stage.maker.address)} does not conform")
