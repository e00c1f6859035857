"""`cambist up`: a venue with makers, agents and chains that stays, for a first look and for development."""

import os
import shlex
import shutil
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import click
import msgspec
import trio

from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ...dev.place.layout import CHAIN_ID, VENUE, Layout
from ...dev.place.roles import SETTINGS_FILE
from ...dev.place.up import ROLES, SECRETS_FILE, TRADERS, UpOptions, UpPlace, serve_up
from ...host.process.logs import configure_logs

_PORT_MAX = 65_000
_SNIPPET = """\
import {{ Wallet }} from "ethers";
const ask = async (path, body) => (await fetch("{venue}" + path, body && {{ method: "POST",
  headers: {{ "content-type": "application/json" }}, body: JSON.stringify(body) }})).json();
const wallet = new Wallet("{key}"), chainId = {chain_id};
const {{ delta }} = await ask("{quote}");
const deadline = Math.floor(Date.now() / 1000) + 600;
const wish = {{ route: delta.route, side: "SELL", owner: wallet.address, deadline }};
const {{ toSign }} = await ask("/v2/delta/orders/build", wish);
const signature = await wallet.signTypedData(toSign.domain, toSign.types, toSign.value);
let order = await ask("/v2/delta/orders", {{ chainId, order: toSign.value, signature }});
while (order.status !== "COMPLETED") order = await ask("/v2/delta/orders/" + order.id);
console.log(order.output.executedAmount, "raw units of USDC for 1 WETH");
"""


class _UpAccount(msgspec.Struct):
    address: str
    key: str


class _Up(msgspec.Struct, rename="camel"):
    """The line of JSON that `cambist up --json` prints once the venue has the makers' books.

    Attributes:
        operator: link to the operator's page of the console, which signs in with `operator_key`.
        operator_key: API key with which an operator signs in to the console.
        chains: chain id -> URL of its JSON-RPC.
        accounts: accounts with funds that may trade.
        tokens: symbol -> address, the same on both chains.
        settings: name of a role -> path of its settings file.
        secrets: path of the file of environment variables that the settings files name.
        curl: commands that ask the venue.
        ethers: module that trades with ethers, to be saved as FILE.mjs.
    """

    venue: str
    console: str
    operator: str
    operator_key: str
    docs: str
    chains: dict[str, str]
    bridges: str
    accounts: list[_UpAccount]
    tokens: dict[str, str]
    roles: dict[str, str]
    settings: dict[str, str]
    secrets: str
    curl: list[str]
    ethers: str


@click.command(short_help="Run a venue with makers, agents and chains that stays.")
@click.option(
    "--port",
    type=click.IntRange(0, _PORT_MAX),
    default=8_080,
    show_default=True,
    help="Port of the venue; makers and agents have the ports from 101 above it. 0 lets the system choose.",
)
@click.option(
    "--devnet-port",
    type=click.IntRange(0, _PORT_MAX),
    default=8_545,
    show_default=True,
    help="Port of the first chain; the second chain and the bridges have the next two. 0 as above.",
)
@click.option(
    "--state",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder that keeps chains, orders and settings over restarts; without it nothing is kept.",
)
@click.option(
    "--write",
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the roles' settings files, so that a role can run in a process of its own.",
)
@click.option(
    "--without",
    type=click.Choice(ROLES),
    multiple=True,
    help="Leave a role out, which then can run in a process of its own; repeatable.",
)
@click.option(
    "--block-time",
    type=click.FloatRange(0.01, 3_600),
    help="Seconds between two blocks, instead of a block for each transaction.",
)
@click.option("--anvil", is_flag=True, help="Run anvils in place of the embedded EVM.")
@click.option("--quiet", is_flag=True, help="Print the venue's URL alone, and log errors alone.")
@click.option(
    "--json", "as_json", is_flag=True, help="Print URLs, accounts and examples as one line of JSON."
)
def up(
    port: int,
    devnet_port: int,
    state: Path | None,
    write: Path | None,
    without: tuple[str, ...],
    block_time: float | None,
    *,
    anvil: bool,
    quiet: bool,
    as_json: bool,
) -> None:
    """Run two chains with bridges, three makers with moving prices, two agents and a venue, until Ctrl-C.

    The venue has a console at its URL, and describes its API at /docs; any web page may use it. The accounts
    are those of every devnet: their keys are public.
    """
    if state and write:
        raise click.UsageError("--state writes the settings files too: leave --write out")
    configure_logs("error" if quiet else "warning")

    def run(folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        wanted = UpOptions(
            folder=folder,
            is_kept=state is not None,
            port=port,
            devnet_port=devnet_port,
            block_time_s=block_time or 0,
            anvil=anvil,
            without=frozenset(without),
        )
        trio.run(serve_up, wanted, os.environ, _shown(folder, quiet=quiet, as_json=as_json))

    if state or write:
        run((state or write or Path()).resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="cambist-up-") as name:
            run(Path(name))


def _shown(folder: Path, *, quiet: bool, as_json: bool) -> Callable[[UpPlace], None]:
    def show(place: UpPlace) -> None:
        printed = _printed(place, folder)
        if as_json:
            click.echo(msgspec.json.encode(printed))
        elif quiet:
            click.echo(printed.venue)
        else:
            _show(printed)

    return show


def _printed(place: UpPlace, folder: Path) -> _Up:
    layout = place.layout
    urls = {name: f"http://127.0.0.1:{port}" for name, port in layout.ports.items()}
    accounts = [_UpAccount(to_checksum(key.address), to_hex(key.secret32())) for key in place.keys[TRADERS]]
    tokens = {symbol: to_checksum(layout.near.at(symbol)) for symbol in layout.tokens}
    venue, owner = urls[VENUE], accounts[0].address
    return _Up(
        venue=venue,
        console=f"{venue}/",
        operator=f"{venue}/#operator/{place.operator_key}",
        operator_key=place.operator_key,
        docs=f"{venue}/docs",
        chains={str(chain.chain_id): chain.url for chain in (layout.near, layout.far)},
        bridges=layout.bridge_url,
        accounts=accounts,
        tokens=tokens,
        roles=urls,
        settings={name: str(folder / name / SETTINGS_FILE) for name in layout.ports},
        secrets=str(folder / SECRETS_FILE),
        curl=[
            f"curl '{venue}{_quote(layout, owner, 'ALL')}'",
            f"curl '{venue}/v2/delta/orders?userAddress={owner}'",
            f"curl '{venue}/tokens/{CHAIN_ID}'",
        ],
        ethers=_SNIPPET.format(
            venue=venue, key=accounts[0].key, chain_id=CHAIN_ID, quote=_quote(layout, owner, "DELTA")
        ),
    )


def _quote(layout: Layout, owner: str, mode: str) -> str:
    """Request target, path and query, of a quote for one WETH in USDC."""
    query = {
        "chainId": CHAIN_ID,
        "mode": mode,
        "side": "SELL",
        "amount": 10**18,
        "srcToken": to_checksum(layout.near.at("WETH")),
        "srcDecimals": 18,
        "destToken": to_checksum(layout.near.at("USDC")),
        "destDecimals": 6,
        "userAddress": owner,
    }
    return "/v2/quote?" + "&".join(f"{name}={value}" for name, value in query.items())


def _command() -> str:
    """Name of the command in a shell of the caller's folder: its file where the path has no `cambist`."""
    installed = Path(sys.executable).with_name("cambist")
    if shutil.which("cambist") is not None or not installed.exists():
        return "cambist"
    return shlex.quote(os.path.relpath(installed) if installed.is_relative_to(Path.cwd()) else str(installed))


def _show(printed: _Up) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    table = Table(box=None, show_header=False, pad_edge=False)
    rows: dict[str, Any] = {
        "console": printed.console,
        "operator": printed.operator,
        "API": printed.docs,
    }
    rows |= {f"chain {chain_id}": url for chain_id, url in printed.chains.items()}
    rows |= {"bridges": printed.bridges}
    rows |= {name: url for name, url in printed.roles.items() if name != VENUE}
    for name, value in rows.items():
        table.add_row(name, value)
    console.print(table)
    console.print("\naccounts, whose keys everybody knows", style="bold")
    for account in printed.accounts:
        console.print(f"{account.address}  {account.key}")
    console.print("\ntokens, the same on both chains", style="bold")
    for symbol, address in printed.tokens.items():
        console.print(f"{symbol:<5} {address}")
    console.print("\nask the venue", style="bold")
    for command in printed.curl:
        console.print(command)
    console.print("\ntrade with ethers: save as trade.mjs, npm install ethers, node trade.mjs", style="bold")
    console.print(printed.ethers)
    node = printed.chains[str(CHAIN_ID)]
    console.print("or with the command", style="bold")
    console.print(f"export TRADER_KEY={printed.accounts[0].key}")
    console.print(
        f"{_command()} order swap WETH USDC 1.5 --venue {printed.venue} --chain {CHAIN_ID} --rpc {node} "
        "--key env:TRADER_KEY --yes"
    )
    console.print("\nCtrl-C ends it.", style="bold")
