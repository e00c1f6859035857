"""`cambist contracts`: where the contracts are, and putting them on a chain."""

import os
from pathlib import Path

import click
import msgspec
import trio
from msgspec.structs import replace

from ...codecs.abi import decode_uint, selector
from ...codecs.amounts import parse_units
from ...config import limits
from ...config.chains import DEVNET_CHAINS, Chain
from ...config.errors import ChainError, ConfigError, InvalidInput
from ...config.nodes import NodeSettings, revealed
from ...config.settings import Settings, read_settings
from ...config.store import REFERENCES
from ...crypto.addresses import checked_address, to_checksum
from ...crypto.keys import signing_key
from ...crypto.secp256k1 import SigningKey
from ..chain.address_book import chain_entry, write_entries
from ..chain.artifacts import known_errors
from ..chain.deploy import Contracts, Plan, create, deploy, factory_address
from ..chain.port import Call
from ..chain.rollout import Rollout, look, policed, predicted
from ..chain.rpc import RpcChain
from ..interrupts import until_interrupted
from .sources import PASSWORD_HELP, agree, read_key

PERMIT2 = "0x000000000022D473030F116dDEE9F6B43aC78BA3"
"""Where Uniswap's contract is on the chains that have it."""

_DECIMALS = selector("decimals()")


class _Address(click.ParamType[bytes]):
    """20 bytes, checksum included where it is mixed-case."""

    name = "address"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> bytes:
        if isinstance(value, bytes):
            return value
        try:
            return checked_address(value, param.name or "" if param else "")
        except InvalidInput as error:
            self.fail(error.detail, param, ctx)


_CONFIG = click.option(
    "--config",
    "path",
    type=click.Path(dir_okay=False, path_type=Path),
    envvar="CAMBIST_CONFIG",
    help="The settings file (TOML); the defaults alone if absent.",
)
_CHAIN = click.option("--chain", "chain_id", type=click.IntRange(1), required=True, help="The chain id.")
_PERMIT2 = click.option(
    "--permit2", type=_Address(), default=PERMIT2, show_default=True, help="The Permit2 of the chain."
)
_PROTOCOL = click.option(
    "--protocol", type=_Address(), help="Gets the protocol's share; the owner if absent."
)


@click.group()
def contracts() -> None:
    """Predict the contracts' addresses, and deploy them.

    The contracts are not audited.
    """


@contracts.command("addresses")
@_CONFIG
@_CHAIN
@click.option("--owner", type=_Address(), required=True, help="Who would deploy and own them.")
@_PROTOCOL
@_PERMIT2
def addresses_command(
    path: Path | None, chain_id: int, owner: bytes, protocol: bytes | None, permit2: bytes
) -> None:
    """Print where the contracts of an owner are, or would be. Asks no node."""
    settings = read_settings(path, os.environ, reveal=False)
    chain = _chain_settings(settings, chain_id)
    plan = _plan(chain, chain_id, owner, protocol, permit2)
    for creation in predicted(plan):
        click.echo(f"{creation.name:<14}{to_checksum(creation.address)}")


@contracts.command("deploy")
@_CONFIG
@_CHAIN
@click.option(
    "--key", "key_name", required=True, help="The owner's key: NAME of [keys], env:NAME or file:PATH."
)
@click.option("--password", help=PASSWORD_HELP)
@click.option("--node", "node_url", help="JSON-RPC URL, in place of the settings' nodes.")
@click.option("--open", "is_open", is_flag=True, help="Let trading begin; it is paused otherwise.")
@click.option(
    "--cap",
    "caps",
    metavar="TOKEN=AMOUNT",
    multiple=True,
    help="Most whole tokens that a swap of the Router, or all settlements of an hour, may give, or `max`. A "
    "token without a cap cannot be given.",
)
@click.option("--relayer", "relayers", type=_Address(), multiple=True, help="May settle Delta orders.")
@click.option("--pauser", type=_Address(), help="May stop all trading, and nothing else.")
@_PROTOCOL
@_PERMIT2
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--unaudited-on-a-real-chain", "is_reckless", is_flag=True, help="Needed where it is no devnet."
)
def deploy_command(
    path: Path | None,
    chain_id: int,
    key_name: str,
    password: str | None,
    node_url: str | None,
    caps: tuple[str, ...],
    relayers: tuple[bytes, ...],
    pauser: bytes | None,
    protocol: bytes | None,
    permit2: bytes,
    *,
    is_open: bool,
    yes: bool,
    is_reckless: bool,
) -> None:
    """Put the contracts on a chain, set them up, check them, and write their addresses down.

    Shows what is there and what will be done, and asks. Done again it does only what is left. A devnet gets a
    WETH and a Permit2 of its own.
    """
    if chain_id not in DEVNET_CHAINS and not is_reckless:
        raise click.UsageError(
            f"chain {chain_id} is no devnet, and the contracts are not audited: --unaudited-on-a-real-chain"
        )
    is_named = not key_name.startswith(REFERENCES)
    settings = read_settings(path, os.environ, reveal=is_named)
    key = _key(settings, key_name) if is_named else read_key(key_name, password)
    chain = _chain_settings(settings, chain_id)
    job = _Job(
        key=key,
        plan=_plan(chain, chain_id, key.address, protocol, permit2),
        caps=_caps(caps, settings, chain_id),
        is_sure=yes,
    )
    job = replace(job, plan=replace(job.plan, relayers=relayers, pauser=pauser or b"", is_open=is_open))
    folder = path.parent if path else Path()
    node = NodeSettings(urls=(node_url,)) if node_url else chain.node
    node = revealed(node, f"chains.{chain_id}.node", os.environ, folder)
    at, plan = trio.run(until_interrupted, _deploy, job, chain_id, node)
    told = {"wrappedNative": to_checksum(plan.weth), "permit2": to_checksum(plan.permit2)}
    entry = chain_entry(chain.name, at, **told)
    file = write_entries(Path(settings.state_dir).expanduser(), {chain_id: entry})
    click.echo(f"the code on the chain is the artifacts'; addresses are in {file}")


class _Job(msgspec.Struct, frozen=True, kw_only=True):
    """What was asked for.

    Attributes:
        plan: without what the chain has to be asked for.
        caps: (token, whole tokens or `max`).
        is_sure: nobody is asked.
    """

    key: SigningKey
    plan: Plan
    caps: list[tuple[bytes, str]]
    is_sure: bool


async def _deploy(job: _Job, chain_id: int, node: NodeSettings) -> tuple[Contracts, Plan]:
    async with RpcChain.open(chain_id, node, known_errors()) as chain:
        plan = await _completed(chain, job)
        found = await look(chain, plan)
        _show(found, plan, chain_id)
        if not found.is_done:
            if not job.is_sure:
                agree("Go on?", err=False)
            await deploy(chain, policed(job.key, chain_id, plan), plan, click.echo)
            found = await look(chain, plan)
            if not found.is_done:
                raise ChainError("not everything is as planned; run it again")
        return found.contracts, plan


async def _completed(chain: RpcChain, job: _Job) -> Plan:
    """The plan with what the chain knows; on a devnet, WETH and Permit2 are put there first."""
    plan = job.plan
    key = policed(job.key, chain.chain_id, plan)
    for address, name in ((plan.weth, "DevWeth"), (plan.permit2, "DevPermit2")):
        if address == factory_address(name):
            await create(chain, key, name)
    return replace(plan, caps={token: await _raw_cap(chain, token, cap) for token, cap in job.caps})


async def _raw_cap(chain: RpcChain, token: bytes, cap: str) -> int:
    if cap == "max":
        return limits.UINT256_MAX
    field = f"--cap {to_checksum(token)}"
    try:
        decimals = decode_uint(await chain.call(Call(token, _DECIMALS)))
        if decimals > limits.TOKEN_DECIMALS_MAX:
            raise ConfigError(field, f"the token has {decimals} decimals")
        raw = parse_units(cap, decimals, field)
    except InvalidInput as error:
        raise ConfigError(field, error.detail) from None
    if raw > limits.CONTRACT_CAP_MAX:
        raise ConfigError(field, f"is at most {limits.CONTRACT_CAP_MAX} raw units, or `max`, got {raw}")
    return raw


def _show(found: Rollout, plan: Plan, chain_id: int) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    table = Table(f"on chain {chain_id}", "address", "")
    table.add_row("WETH", to_checksum(plan.weth), "is there")
    table.add_row("Permit2", to_checksum(plan.permit2), "is there")
    for creation, is_there in found.made:
        table.add_row(
            creation.name, to_checksum(creation.address), "is there" if is_there else "to be created"
        )
    console.print(table)
    console.print(f"owner       {to_checksum(plan.owner)}")
    console.print(f"protocol    {to_checksum(plan.protocol)}")
    for relayer in plan.relayers:
        console.print(f"relayer     {to_checksum(relayer)}")
    if plan.pauser:
        console.print(f"pauser      {to_checksum(plan.pauser)}")
    for token, cap in plan.caps.items():
        console.print(f"cap         {to_checksum(token)}  {cap} raw units")
    console.print(f"trading     {'open' if plan.is_open else 'paused'}")
    console.print(f"to be set   {len(found.changes)} of callers, relayers, pauser, caps and pause\n")


def _key(settings: Settings, name: str) -> SigningKey:
    named = settings.keys.get(name)
    if named is None:
        raise ConfigError("--key", f"there is no key {name!r} in [keys]; otherwise env:NAME or file:PATH")
    return signing_key(named.source, named.password)


def _chain_settings(settings: Settings, chain_id: int) -> Chain:
    chain = settings.chains.get(chain_id)
    if chain is None and chain_id not in DEVNET_CHAINS:
        raise ConfigError(f"chains.{chain_id}", "is not set")
    return chain or Chain(name=f"Devnet {chain_id}")


def _plan(chain: Chain, chain_id: int, owner: bytes, protocol: bytes | None, permit2: bytes) -> Plan:
    """What follows from settings and options alone; on a devnet without WETH, with ours."""
    if chain.wrapped_native:
        weth = checked_address(chain.wrapped_native, f"chains.{chain_id}.wrapped_native")
    elif chain_id in DEVNET_CHAINS:
        weth = factory_address("DevWeth")
    else:
        raise ConfigError(f"chains.{chain_id}.wrapped_native", "is not set")
    if chain_id in DEVNET_CHAINS and to_checksum(permit2) == PERMIT2:
        permit2 = factory_address("DevPermit2")
    return Plan(
        owner=owner,
        weth=weth,
        permit2=permit2,
        protocol=protocol or owner,
        rfq_name=chain.rfq_domain_name,
        delta_name=chain.delta_domain_name,
        delta_version=chain.delta_domain_version,
    )


def _caps(asked: tuple[str, ...], settings: Settings, chain_id: int) -> list[tuple[bytes, str]]:
    """(token, amount) of each `--cap`; tokens by address, or by the symbol that the settings list."""
    listed = {token.symbol: token.address for token in settings.tokens if token.chain_id == chain_id}
    caps = []
    for text in asked:
        token, _, amount = text.partition("=")
        try:
            caps.append((checked_address(listed.get(token, token), "--cap"), amount))
        except InvalidInput as error:
            raise click.UsageError(error.detail) from None
        if not amount:
            raise click.UsageError(f"--cap: expected TOKEN=AMOUNT, got {text}")
    return caps
