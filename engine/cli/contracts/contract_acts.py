"""`cambist contracts pause | unpause | roles | revoke | handover | claim | cap`: owner calls, mostly for
incidents.

Each command but `roles` prints its calls and simulates each of them. With a key and without `--dry-run`, the
command then sends the calls. Without a key, the simulated sender is an account that may make the call, such
as a multisig.
"""

import os
from collections.abc import Awaitable, Callable, Sequence
from functools import wraps
from pathlib import Path
from typing import Any

import click
import trio
from msgspec import Struct

from ....codecs.messages.wire import encode
from ....config import limits
from ....config.errors import ChainError, ConfigError
from ....config.sections.nodes import NodeSettings, revealed
from ....config.sections.store import REFERENCES
from ....config.settings import Settings, read_settings
from ....crypto.addresses import checked_address, to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.artifacts import known_errors
from ...chain.deploy import contract_acts as acts
from ...chain.deploy.address_book import FILE_NAME, read_book
from ...chain.deploy.contract_acts import Act, OwnedContracts, Powers, Roles
from ...chain.deploy.contract_roles import handover_of, held_by, owed_to, powers_of, roles_of
from ...chain.nodes.rpc import RpcChain
from ...chain.port import EthCall
from ...chain.transact import transact
from ...host.process.interrupts import until_interrupted
from ...trader.client.trader import policed
from ..parameters import ADDRESS
from ..sources import PASSWORD_HELP, agree, read_key
from .contract_options import CHAIN, CONFIG, chain_settings, named_key, parse_caps, raw_cap

_CONTRACT = click.option(
    "--contract", type=click.Choice(["Delta", "Router"]), help="Contract to act on; both if absent."
)
_SINCE = click.option(
    "--since",
    type=click.IntRange(0),
    default=0,
    help="The block of the deployment, or an earlier block: its logs and later logs show the roles.",
)


class ActOptions(Struct, frozen=True, kw_only=True):
    """Options that the commands pause, unpause, roles, revoke, handover, claim and cap of `cambist contracts`
    have in common.

    Attributes:
        settings: settings from the configuration file.
        at: addresses of the chain's contracts, from the address book in the state directory.
        key: key that signs the calls; with None the calls are printed for a multisig instead of sent.
        is_sure: whether to proceed without asking for consent.
    """

    settings: Settings
    chain_id: int
    at: OwnedContracts
    key: SigningKey | None
    is_dry: bool
    is_sure: bool
    is_json: bool


def _options(command: Callable[..., Awaitable[None]]) -> Callable[..., None]:
    """Decorator that adds the options of `ActOptions` to a command, which receives the open chain and these
    options first."""

    @CONFIG
    @CHAIN
    @click.option("--node", "node_url", help="JSON-RPC URL, in place of the settings' nodes.")
    @click.option(
        "--key", "key_name", help="NAME of [keys], env:NAME or file:PATH; the calls are printed if absent."
    )
    @click.option("--password", help=PASSWORD_HELP)
    @click.option(
        "--dry-run", "is_dry", is_flag=True, help="Simulate the calls, print them, and send nothing."
    )
    @click.option("--yes", "is_sure", is_flag=True, help="Do not ask.")
    @click.option("--json", "is_json", is_flag=True, help="Print one JSON object on standard output.")
    @wraps(command)
    def with_place(
        path: Path | None,
        chain_id: int,
        node_url: str | None,
        key_name: str | None,
        password: str | None,
        **others: Any,
    ) -> None:
        # References in the settings are read only for a key of [keys]: any other key needs none of them.
        is_named = key_name is not None and not key_name.startswith(REFERENCES)
        settings = read_settings(path, os.environ, reveal=is_named)
        key = None
        if key_name is not None:
            key = named_key(settings, key_name) if is_named else read_key(key_name, password)
        folder = path.parent if path else Path()
        node = NodeSettings(urls=(node_url,)) if node_url else chain_settings(settings, chain_id).node
        flags = {name: others.pop(name) for name in ("is_dry", "is_sure", "is_json")}
        node = revealed(node, f"chains.{chain_id}.node", os.environ, folder)
        at = _standing(settings, chain_id)
        place = ActOptions(settings=settings, chain_id=chain_id, at=at, key=key, **flags)

        async def within() -> None:
            async with RpcChain.open(chain_id, node, known_errors()) as chain:
                await command(chain, place, **others)

        trio.run(until_interrupted, within)

    return with_place


def _standing(settings: Settings, chain_id: int) -> OwnedContracts:
    path = Path(settings.state_dir).expanduser() / FILE_NAME
    entry = read_book(path).chains.get(str(chain_id))
    addresses = () if entry is None else (entry.delta, entry.router, entry.executor, entry.fee_vault)
    if not addresses or None in addresses:
        raise ConfigError(
            str(path), f"has no contracts of chain {chain_id}: `cambist contracts deploy` writes them"
        )
    return OwnedContracts(*(checked_address(text, str(path)) for text in addresses))


# --- The commands ---------------------------------------------------------------------------------------


@click.command()
@_options
@_CONTRACT
async def pause(chain: RpcChain, place: ActOptions, contract: str | None) -> None:
    """Stop every settlement and every swap: the pauser or the owner may call this."""
    await _carry_out(chain, place, acts.pause_acts(_railed(place, contract)))


@click.command()
@_options
@_CONTRACT
async def unpause(chain: RpcChain, place: ActOptions, contract: str | None) -> None:
    """Resume settlements and swaps after a pause: only the owner may call this."""
    await _carry_out(chain, place, acts.unpause_acts(_railed(place, contract)))


@click.command()
@_options
@_SINCE
async def roles(chain: RpcChain, place: ActOptions, since: int) -> None:
    """Print the holders of all contract roles (owner, pauser, relayer, caller, collector), and the tokens'
    caps."""
    found = await roles_of(chain, place.at, since)
    if place.is_json:
        click.echo(encode(_roles_json(found)).decode())
        return
    for name, powers in found.powers.items():
        for role, holder in _holders(powers):
            click.echo(f"{name:<12}{role:<16}{to_checksum(holder)}")
        if powers.is_paused is not None:
            click.echo(f"{name:<12}{'paused' if powers.is_paused else 'open'}")
        for token, bound in found.bounds.get(name, {}).items():
            most = "no bound" if bound.cap == limits.UINT256_MAX else f"{bound.cap} raw units"
            given = f", {bound.given} given in this hour" if name == "Delta" else ""
            click.echo(f"{name:<12}{'cap':<16}{to_checksum(token)}  {most}{given}")
    for name, role, accounts in _accounts(found):
        for account in accounts:
            click.echo(f"{name:<12}{role:<16}{to_checksum(account)}")


@click.command()
@click.argument("account", type=ADDRESS)
@_options
async def revoke(chain: RpcChain, place: ActOptions, account: bytes) -> None:
    """Revoke every role of ACCOUNT: relayer, caller, collector, pauser, receiver of the protocol's fees.

    Only the owner may call this. The owner then receives the protocol's fees in place of ACCOUNT.
    """
    found = await held_by(chain, place.at, account)
    await _carry_out(chain, place, acts.revoke_acts(place.at, found, account))


@click.command()
@click.argument("new_owner", type=ADDRESS)
@_options
@click.option("--accept", "is_accepted", is_flag=True, help="The second step: NEW_OWNER accepts.")
async def handover(chain: RpcChain, place: ActOptions, new_owner: bytes, *, is_accepted: bool) -> None:
    """Propose NEW_OWNER for every contract. The owner stays until NEW_OWNER accepts, and keeps no role then.

    The owner's own roles as relayer, caller, collector and pauser are revoked first, and NEW_OWNER receives
    the protocol's fees in place of the owner.

    \b
    cambist contracts handover 0x5AFE... --chain 1 --key env:OWNER_KEY
    cambist contracts handover 0x5AFE... --chain 1 --accept --dry-run
    (the second one prints the calls for that multisig)
    """
    if is_accepted:
        made = acts.acceptance_acts(place.at, await powers_of(chain, place.at), new_owner)
    else:
        made = await handover_of(chain, place.at, new_owner)
    await _carry_out(chain, place, made)


@click.command()
@_options
@_SINCE
@click.option("--account", type=ADDRESS, help="Account whose fees are claimed; the key's account if absent.")
@click.option(
    "--token",
    "tokens",
    type=ADDRESS,
    multiple=True,
    help="Token to claim; repeatable; all tokens if absent.",
)
@click.option("--receiver", type=ADDRESS, help="Receiver of the fees; the account if absent.")
async def claim(
    chain: RpcChain,
    place: ActOptions,
    since: int,
    account: bytes | None,
    tokens: tuple[bytes, ...],
    receiver: bytes | None,
) -> None:
    """Claim fees that the fee vault holds: a partner's, or the protocol's."""
    whose = account or (place.key.address if place.key else None)
    if whose is None:
        raise click.UsageError("--account or --key: one of them has to name the account of the fees")
    unpaid = await owed_to(chain, place.at, whose, tokens, since)
    if not place.is_json:
        for token, amount in unpaid.items():
            click.echo(f"owed        {to_checksum(token)}  {amount} raw units")
    await _carry_out(chain, place, acts.claim_acts(place.at, list(unpaid), receiver or whose), whose)


@click.command()
@click.argument("caps", metavar="TOKEN=AMOUNT...", nargs=-1, required=True)
@_options
async def cap(chain: RpcChain, place: ActOptions, caps: tuple[str, ...]) -> None:
    """Set the cap of a token: the maximum that the Delta contract pays out per hour, and the Router per swap.

    AMOUNT is in whole tokens, or `max` for no cap; TOKEN is an address, or a symbol that the settings list.
    """
    token_amounts = parse_caps(caps, place.settings, place.chain_id)
    raw = {token: await raw_cap(chain, token, amount) for token, amount in token_amounts}
    await _carry_out(chain, place, acts.cap_acts(place.at, raw))


COMMANDS = (pause, unpause, roles, revoke, handover, claim, cap)


# --- Their work -----------------------------------------------------------------------------------------


def _railed(place: ActOptions, contract: str | None) -> dict[str, bytes]:
    """The contracts that --contract names, by name; without the option, all contracts that can be paused."""
    railed = place.at.railed()
    return {contract: railed[contract]} if contract else railed


def _holders(powers: Powers) -> list[tuple[str, bytes]]:
    held = (
        ("owner", powers.owner),
        ("proposed owner", powers.proposed),
        ("pauser", powers.pauser),
        ("protocol", powers.protocol),
    )
    return [(role, holder) for role, holder in held if holder is not None and any(holder)]


def _accounts(found: Roles) -> tuple[tuple[str, str, Sequence[bytes]], ...]:
    return (
        ("Delta", "relayer", found.relayers),
        ("RfqExecutor", "caller", found.callers),
        ("FeeVault", "collector", found.collectors),
    )


def _roles_json(found: Roles) -> dict[str, Any]:
    by_contract: dict[str, Any] = {}
    for name, powers in found.powers.items():
        by_contract[name] = {role: to_checksum(holder) for role, holder in _holders(powers)}
        if powers.is_paused is not None:
            by_contract[name]["paused"] = powers.is_paused
            by_contract[name]["caps"] = {
                to_checksum(token): {"cap": str(bound.cap), "given": str(bound.given)}
                for token, bound in found.bounds[name].items()
            }
    for name, role, accounts in _accounts(found):
        by_contract[name][f"{role}s"] = [to_checksum(account) for account in accounts]
    return by_contract


async def _carry_out(chain: RpcChain, place: ActOptions, made: Sequence[Act], account: bytes = b"") -> None:
    """Show the calls, simulate each, and send them with the key.

    Without a key or with --dry-run, nothing is sent. Without a key, each call is simulated as sent by an
    account that has the call's role.

    Args:
        made: the calls.
        account: account that sends the simulated calls that need no role.

    Raises:
        ChainError: the key may not make a call, or a call would fail, or failed.
    """
    powers = await powers_of(chain, place.at)
    tried = [(act, acts.holders(act, powers) or (account,)) for act in made]
    if not place.is_json:
        for act, _ in tried:
            click.echo(f"{act.contract:<12}{to_checksum(act.to)}  {act.words}")
            click.echo(f"{'':<12}{to_hex(act.data)}")
    if place.key is not None:
        _check_key(place.key, tried)
    # Every call is tried before the first is sent: a call that would fail leaves none of the others done.
    for act, who in tried:
        await chain.call(EthCall(act.to, act.data, place.key.address if place.key else who[0]))
    hashes = await _sent(chain, place, place.key, made) if place.key and not place.is_dry else []
    if place.is_json:
        calls = [
            {
                "contract": act.contract,
                "to": to_checksum(act.to),
                "call": act.words,
                "data": to_hex(act.data),
                "from": [to_checksum(holder) for holder in who],
            }
            for act, who in tried
        ]
        click.echo(encode({"calls": calls, "sent": hashes}).decode())
    elif not made:
        click.echo("nothing is to be done")
    elif not hashes:
        click.echo("nothing was sent: each call was tried, and would succeed")


async def _sent(chain: RpcChain, place: ActOptions, key: SigningKey, made: Sequence[Act]) -> list[str]:
    """Ask for consent and send the calls, each after the previous transaction is mined; return the
    transactions' hashes."""
    if made and not place.is_sure:
        agree("Send these?")
    within = policed(key, place.chain_id, *place.at.named().values())
    hashes = []
    for act in made:
        receipt = await transact(chain, within, act.to, act.data)
        hashes.append(to_hex(receipt.tx_hash))
        if not place.is_json:
            click.echo(f"{act.contract:<12}{act.words} is mined: {hashes[-1]}")
    return hashes


def _check_key(key: SigningKey, tried: Sequence[tuple[Act, tuple[bytes, ...]]]) -> None:
    for act, who in tried:
        if key.address not in who:
            named, its = " or ".join(map(to_checksum, who)), to_checksum(key.address)
            raise ChainError(f"{act.words} of {act.contract} is for its {act.by}, {named}, not {its}")
