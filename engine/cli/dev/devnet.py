"""`cambist devnet`: local chains for wallets, scripts and the other commands."""

import ipaddress
import os
from collections.abc import Sequence
from pathlib import Path

import click
import msgspec
import trio

from ....config import limits
from ....config.chains import DEVNET_CHAINS, ChainSettings
from ....config.secret import read_secret
from ....config.settings import read_settings
from ....crypto.addresses import to_checksum
from ....crypto.custody.mnemonic import DEV_MNEMONIC, account_keys
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.deploy.address_book import DeployedChain
from ...dev.bridge.devnet_bridge import DevnetBridge
from ...dev.devnet.furnish import ROLES
from ...dev.devnet.serve import ANVIL, DevnetOptions, RunningChain, listening, serve_devnet, url_of
from ...host.process.logs import configure_logs
from ..sources import config_option


class _Account(msgspec.Struct, rename="camel", omit_defaults=True):
    """An account with funds on the devnet, as the output shows it; `key`, the private key, is shown only if
    it is publicly known."""

    address: str
    role: str
    key: str | None = None


class _Chain(msgspec.Struct, rename="camel"):
    chain_id: int
    engine: str
    http: str
    ws: str
    contracts: DeployedChain


class _Started(msgspec.Struct, rename="camel", omit_defaults=True):
    """The line of JSON that `cambist devnet --json` prints once the chains are ready.

    Attributes:
        bridge: URL of the bridges' service; None without bridges.
    """

    chains: list[_Chain]
    accounts: list[_Account]
    contracts_file: str
    bridge: str | None = None


@click.command(short_help="Run local chains behind JSON-RPC, with all contracts deployed.")
@click.option(
    "--chain",
    "chain_ids",
    type=click.Choice([str(chain_id) for chain_id in DEVNET_CHAINS]),
    multiple=True,
    help="Only this chain; repeatable.",
)
@click.option("--host", default="127.0.0.1", show_default=True, help="The address to listen on.")
@click.option(
    "--port",
    type=click.IntRange(0, 65_535 - len(DEVNET_CHAINS)),
    default=8_545,
    show_default=True,
    help="Port of the first chain; the second chain has the next port. 0 lets the system choose.",
)
@click.option("--mnemonic", help="Other accounts: env:NAME or file:PATH of a mnemonic, which is not shown.")
@click.option(
    "--block-time",
    type=click.FloatRange(0.01, 3_600),
    help="Seconds between two blocks, instead of a block for each transaction.",
)
@click.option("--anvil", is_flag=True, help="Run anvils in place of the embedded EVM.")
@click.option("--bridge", "has_bridge", is_flag=True, help="Run bridges between the two chains.")
@config_option("The settings file (TOML): state_dir, and names of signing domains.")
@click.option("--json", "as_json", is_flag=True, help="Print addresses and accounts as one line of JSON.")
def devnet(
    chain_ids: tuple[str, ...],
    host: str,
    port: int,
    mnemonic: str | None,
    block_time: float | None,
    path: Path | None,
    *,
    anvil: bool,
    has_bridge: bool,
    as_json: bool,
) -> None:
    """Run chains 31337 and 31338 until SIGTERM or SIGINT, for ethers, viem, cast and wallets.

    Contracts, tokens and accounts with funds exist from the start, at the same addresses every time;
    contracts.json of the state directory lists them. A chain ends with its process. With --bridge, a relayer
    and an attester carry tokens between the chains, and serve their fees and attestations.
    """
    if has_bridge and chain_ids and len(set(chain_ids)) < len(DEVNET_CHAINS):
        raise click.UsageError("--bridge needs both chains: leave --chain out")
    settings = read_settings(path, os.environ, reveal=False)
    words = read_secret(mnemonic, os.environ, "--mnemonic").reveal() if mnemonic else DEV_MNEMONIC
    keys = account_keys(words, limits.DEVNET_ACCOUNTS, mnemonic or "mnemonic")
    configure_logs("warning")
    wanted = DevnetOptions(
        chains={
            chain_id: settings.chains.get(chain_id, ChainSettings(name=f"Devnet {chain_id}"))
            for chain_id in map(int, chain_ids or DEVNET_CHAINS)
        },
        host=host,
        port=port,
        keys=tuple(keys),
        mnemonic=words,
        block_time_s=block_time or 0,
        anvil=anvil,
        state_dir=Path(settings.state_dir).expanduser(),
    )
    if not _is_loopback(host):
        click.echo(f"warning: {host} is not loopback: whoever reaches it controls these chains", err=True)

    # Before the chains start: a port that is taken is then an error at once. Port 0 stays 0.
    listener = listening(host, port and port + len(DEVNET_CHAINS)) if has_bridge else None
    bridge = DevnetBridge(listener, keys[0]) if listener else None
    url = url_of(host, listener.getsockname()[1]) if listener else None

    def show(running: Sequence[RunningChain], file: Path) -> None:
        started = _started(running, keys, file, url, is_public=mnemonic is None)
        if as_json:
            click.echo(msgspec.json.encode(started))
        else:
            _show(started)

    trio.run(serve_devnet, wanted, os.environ, show, bridge)


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _started(
    running: Sequence[RunningChain],
    keys: Sequence[SigningKey],
    file: Path,
    bridge: str | None,
    *,
    is_public: bool,
) -> _Started:
    chains = [_Chain(chain.chain_id, chain.engine, chain.url, chain.ws_url, chain.entry) for chain in running]
    roles = (*ROLES, *("" for _ in keys))
    accounts = [
        _Account(to_checksum(key.address), role, to_hex(key.secret32()) if is_public else None)
        for key, role in zip(keys, roles, strict=False)
    ]
    return _Started(chains, accounts, str(file), bridge)


def _show(started: _Started) -> None:
    from rich.console import Console

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    if any(chain.engine == ANVIL for chain in started.chains):
        console.print("The chains are anvils; everything else is as on the embedded EVM.\n")
    console.print("accounts: 10,000 ETH, 100 WETH, 100 WBTC, 1,000,000 USDC, DAI and USDT each", style="bold")
    for account in started.accounts:
        console.print(f"{account.address}  {account.key or 'key not shown'}  {account.role}")
    if any(account.key for account in started.accounts):
        console.print("Everybody knows these keys: for play money only.")
    console.print("\naddresses, the same on each chain", style="bold")
    for name, address in _addresses(started.chains[0].contracts):
        console.print(f"{name:<12} {address}")
    console.print(f"{'file':<12} {started.contracts_file}\n")
    for chain in started.chains:
        console.print(f"chain {chain.chain_id}  {chain.http}  {chain.ws}", style="bold")
    if started.bridge:
        console.print(f"bridges      {started.bridge}", style="bold")


def _addresses(entry: DeployedChain) -> list[tuple[str, str]]:
    named = {
        "Rfq": entry.rfq,
        "Delta": entry.delta,
        "Router": entry.router,
        "RfqExecutor": entry.executor,
        "FeeVault": entry.fee_vault,
        "Permit2": entry.permit2,
        "Multicall": entry.multicall,
        "USDC vault": entry.vault,
        "Bridges": entry.bridges,
        "SpokePool": entry.spoke_pool,
        "Messenger": entry.token_messenger,
        "Transmitter": entry.message_transmitter,
        **{symbol: token.address for symbol, token in entry.tokens.items()},
    }
    return [(name, address) for name, address in named.items() if address]
