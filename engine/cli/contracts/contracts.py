"""`cambist contracts`: prints the contracts' addresses, and deploys the contracts on a chain."""

import os
from pathlib import Path

import click
import msgspec
import trio
from msgspec.structs import replace

from ....config.chains import DEVNET_CHAINS, ChainSettings
from ....config.errors import ChainError, ConfigError
from ....config.sections.nodes import NodeSettings, revealed
from ....config.sections.store import REFERENCES
from ....config.settings import read_settings
from ....crypto.addresses import ZERO_ADDRESS, checked_address, to_checksum
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import known_errors
from ...chain.deploy.address_book import chain_entry, write_entries
from ...chain.deploy.contract_acts import OwnedContracts
from ...chain.deploy.contract_roles import handover_of, powers_of
from ...chain.deploy.deploy import DeployedContracts, DeploymentPlan, create, deploy, factory_address
from ...chain.deploy.rollout import Rollout, look, policed, predicted
from ...chain.nodes.rpc import RpcChain
from ...chain.transact import transact
from ...host.process.credentials import check_secrecy
from ...host.process.interrupts import until_interrupted
from .. import CommandGroup
from ..parameters import ADDRESS
from ..sources import PASSWORD_HELP, agree, read_key
from .contract_acts import COMMANDS
from .contract_options import CHAIN, CONFIG, chain_settings, named_key, parse_caps, raw_cap

PERMIT2 = "0x000000000022D473030F116dDEE9F6B43aC78BA3"
"""Address of Uniswap's Permit2 contract, the same on all chains that have it."""

_NONE = to_checksum(ZERO_ADDRESS)
_PERMIT2 = click.option(
    "--permit2", type=ADDRESS, default=PERMIT2, show_default=True, help="The Permit2 of the chain."
)
_SPOKE_POOL = click.option(
    "--spoke-pool", type=ADDRESS, default=_NONE, help="Across's SpokePool of the chain; none if absent."
)
_TOKEN_MESSENGER = click.option(
    "--token-messenger", type=ADDRESS, default=_NONE, help="CCTP's TokenMessengerV2; none if absent."
)
_PROTOCOL = click.option(
    "--protocol", type=ADDRESS, help="Receiver of the protocol's share; the owner if absent."
)


@click.group(cls=CommandGroup)
def contracts() -> None:
    """Predict the contracts' addresses, deploy them, and act in an incident.

    The contracts are not audited.
    """


@contracts.command("addresses")
@CONFIG
@CHAIN
@click.option("--owner", type=ADDRESS, required=True, help="Account that would deploy and own the contracts.")
@_PROTOCOL
@_PERMIT2
@_SPOKE_POOL
@_TOKEN_MESSENGER
def addresses_command(
    path: Path | None, chain_id: int, owner: bytes, protocol: bytes | None, **places: bytes
) -> None:
    """Print the addresses of an owner's contracts, deployed or still to be deployed; needs no node."""
    settings = read_settings(path, os.environ, reveal=False)
    chain = chain_settings(settings, chain_id)
    plan = _plan(chain, chain_id, owner, protocol, **places)
    for creation in predicted(plan):
        click.echo(f"{creation.name:<20}{to_checksum(creation.address)}")


@contracts.command("deploy")
@CONFIG
@CHAIN
@click.option(
    "--key", "key_name", required=True, help="The owner's key: NAME of [keys], env:NAME or file:PATH."
)
@click.option("--password", help=PASSWORD_HELP)
@click.option("--node", "node_url", help="JSON-RPC URL, in place of the settings' nodes.")
@click.option("--open", "is_open", is_flag=True, help="Open trading; otherwise trading is paused.")
@click.option(
    "--cap",
    "caps",
    metavar="TOKEN=AMOUNT",
    multiple=True,
    help="Cap in whole tokens of a Router swap, and of all settlements of an hour, or `max`. A "
    "token without a cap cannot be given.",
)
@click.option(
    "--relayer",
    "relayers",
    type=ADDRESS,
    multiple=True,
    help="Account that may settle Delta orders; repeatable.",
)
@click.option("--pauser", type=ADDRESS, help="Account that may stop all trading, and nothing else.")
@click.option(
    "--owner",
    "new_owner",
    type=ADDRESS,
    help="Proposed owner after the deployment, such as a multisig; the deployer keeps no role.",
)
@_PROTOCOL
@_PERMIT2
@_SPOKE_POOL
@_TOKEN_MESSENGER
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option(
    "--unaudited-on-a-real-chain", "is_reckless", is_flag=True, help="Required on a chain that is no devnet."
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
    new_owner: bytes | None,
    protocol: bytes | None,
    *,
    is_open: bool,
    yes: bool,
    is_reckless: bool,
    **places: bytes,
) -> None:
    """Deploy the contracts, set them up, check them, and store their addresses.

    The command shows the present contracts and its plan, and asks. A repeated run does only the remaining
    steps. A devnet gets a WETH and a Permit2 of its own.
    """
    if chain_id not in DEVNET_CHAINS and not is_reckless:
        raise click.UsageError(
            f"chain {chain_id} is no devnet, and the contracts are not audited: --unaudited-on-a-real-chain"
        )
    # References in the settings are read only for a key of [keys]: any other key needs none of them.
    is_named = not key_name.startswith(REFERENCES)
    settings = read_settings(path, os.environ, reveal=is_named)
    key = named_key(settings, key_name) if is_named else read_key(key_name, password)
    own = [  # options that give the deployer a role: the handover to --owner revokes it again
        option
        for option, accounts in (
            ("--relayer", relayers),
            ("--pauser", (pauser,)),
            ("--protocol", (protocol,)),
        )
        if key.address in accounts
    ]
    if new_owner not in (None, key.address) and own:
        its = to_checksum(key.address)
        raise click.UsageError(f"{', '.join(own)}: {its} deploys, and keeps no role after --owner accepts")
    chain = chain_settings(settings, chain_id)
    check_secrecy("--key", key.address, (chain_id,))
    plan = _plan(chain, chain_id, key.address, protocol, **places)
    plan = replace(plan, relayers=relayers, pauser=pauser or b"", is_open=is_open)
    job = _Job(key, plan, parse_caps(caps, settings, chain_id), new_owner or b"", yes)
    folder = path.parent if path else Path()
    node = NodeSettings(urls=(node_url,)) if node_url else chain.node
    node = revealed(node, f"chains.{chain_id}.node", os.environ, folder)
    # The addresses are stored afterwards: `_deploy` raises unless all contracts stand as planned. A repeated
    # run does only what is left, and comes here again.
    at, plan = trio.run(until_interrupted, _deploy, job, chain_id, node)
    addresses = {"wrappedNative": to_checksum(plan.weth), "permit2": to_checksum(plan.permit2)}
    bridges = {"spokePool": plan.spoke_pool, "tokenMessenger": plan.token_messenger}
    addresses |= {name: to_checksum(address) for name, address in bridges.items() if address != ZERO_ADDRESS}
    entry = chain_entry(chain.name, at, **addresses)
    file = write_entries(Path(settings.state_dir).expanduser(), {chain_id: entry})
    click.echo(f"the code on the chain is the artifacts'; addresses are in {file}")


class _Job(msgspec.Struct, frozen=True):
    """A deployment of the contracts as the command line requests it.

    Attributes:
        plan: plan of the deployment, still without the values that must be read from the chain.
        caps: pairs of (token's address, cap in whole tokens or `max`).
        new_owner: account that is proposed as the new owner at the end; empty for none.
        is_sure: whether to proceed without asking for consent.
    """

    key: SigningKey
    plan: DeploymentPlan
    caps: list[tuple[bytes, str]]
    new_owner: bytes
    is_sure: bool


async def _deploy(job: _Job, chain_id: int, node: NodeSettings) -> tuple[DeployedContracts, DeploymentPlan]:
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
                raise ChainError("the contracts differ from the plan; run the command again")
        await _propose(chain, job, found.contracts, plan)
        return found.contracts, plan


async def _propose(chain: RpcChain, job: _Job, at: DeployedContracts, plan: DeploymentPlan) -> None:
    """Propose the new owner of the contracts, if the command line names an account for that.

    If the key's account still owns the contracts, the function prints that, and the account that must accept.
    """
    standing = OwnedContracts(at.delta, at.router, at.executor, at.fee_vault)
    if job.new_owner:
        key = policed(job.key, chain.chain_id, plan)
        for act in await handover_of(chain, standing, job.new_owner):
            await transact(chain, key, act.to, act.data)
    powers = await powers_of(chain, standing)
    if any(held.owner == job.key.address for held in powers.values()):
        proposed = next((held.proposed for held in powers.values() if any(held.proposed)), b"")
        until = f" until {to_checksum(proposed)} accepts it" if proposed else ""
        click.echo(f"{to_checksum(job.key.address)} owns the contracts{until}: `cambist contracts handover`")


async def _completed(chain: RpcChain, job: _Job) -> DeploymentPlan:
    """Return the deployment plan with its caps in raw units, by the tokens' decimals on chain; on a devnet,
    deploy WETH and Permit2 first.
    """
    plan = job.plan
    key = policed(job.key, chain.chain_id, plan)
    for address, name in ((plan.weth, "DevWeth"), (plan.permit2, "DevPermit2")):
        if address == factory_address(name):
            await create(chain, key, name)
    return replace(plan, caps={token: await raw_cap(chain, token, cap) for token, cap in job.caps})


def _show(found: Rollout, plan: DeploymentPlan, chain_id: int) -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(markup=False, emoji=False, highlight=False, soft_wrap=True)
    table = Table(f"on chain {chain_id}", "address", "")
    table.add_row("WETH", to_checksum(plan.weth), "is there")
    table.add_row("Permit2", to_checksum(plan.permit2), "is there")
    for name, address in (("SpokePool", plan.spoke_pool), ("TokenMessenger", plan.token_messenger)):
        if address != ZERO_ADDRESS:
            table.add_row(name, to_checksum(address), "is there")
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


def _plan(
    chain: ChainSettings,
    chain_id: int,
    owner: bytes,
    protocol: bytes | None,
    *,
    permit2: bytes,
    spoke_pool: bytes,
    token_messenger: bytes,
) -> DeploymentPlan:
    """Build the deployment plan from settings and options alone; on a devnet, cambist's own WETH is used if
    the settings name none.
    """
    if chain.wrapped_native:
        weth = checked_address(chain.wrapped_native, f"chains.{chain_id}.wrapped_native")
    elif chain_id in DEVNET_CHAINS:
        weth = factory_address("DevWeth")
    else:
        raise ConfigError(f"chains.{chain_id}.wrapped_native", "is not set")
    # The default of --permit2: a devnet has no contract at that address.
    if chain_id in DEVNET_CHAINS and to_checksum(permit2) == PERMIT2:
        permit2 = factory_address("DevPermit2")
    return DeploymentPlan(
        owner=owner,
        weth=weth,
        permit2=permit2,
        protocol=protocol or owner,
        rfq_name=chain.rfq_domain_name,
        delta_name=chain.delta_domain_name,
        delta_version=chain.delta_domain_version,
        spoke_pool=spoke_pool,
        token_messenger=token_messenger,
    )


for _command in COMMANDS:
    contracts.add_command(_command)
