"""Build the calls that owners, pausers and receivers of fees make on deployed contracts. Pure.

    wish (pause, revoke, cap, ...) + roles as the chain has them -> Act, ...

An act is a call of one contract, with the call as text for people and the role that may make the call.
`engine.cli.contracts.contract_acts` sends acts, or prints them for a multisig.

Source: contracts/lib/{Guardrails,Owned,ProtocolFees}.sol, contracts/{Delta,RfqExecutor,FeeVault}.sol.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct

from ....codecs.contracts import owner_calldata as owner
from ....codecs.contracts.abi import decode_address, decode_uint
from ....codecs.contracts.contract_events import CREDITED, topic
from ....codecs.contracts.router_calldata import claim, owed
from ....config.errors import InvalidInput
from ....crypto.addresses import to_checksum
from ..port import EthCall, Log

OWNER, PAUSER, PROPOSED, ACCOUNT = "owner", "pauser", "proposed owner", "account"
"""Roles that may make a call on a contract; ACCOUNT is any account to which the FeeVault owes fees."""

RELAYER_CHANGED = topic("RelayerChanged(address,bool)")
CALLER_CHANGED = topic("CallerChanged(address,bool)")
COLLECTOR_CHANGED = topic("CollectorChanged(address,bool)")
CAP_CHANGED = topic("CapChanged(address,uint256)")


class OwnedContracts(Struct, frozen=True):
    """Addresses of a chain's contracts that have an owner, 20 bytes each."""

    delta: bytes
    router: bytes
    executor: bytes
    fee_vault: bytes

    def named(self) -> dict[str, bytes]:
        """Mapping name -> address, 20 bytes, of all contracts that have an owner."""
        names = "Delta", "Router", "RfqExecutor", "FeeVault"
        return dict(zip(names, (self.delta, self.router, self.executor, self.fee_vault), strict=True))

    def railed(self) -> dict[str, bytes]:
        """Mapping name -> address, 20 bytes, of the contracts that can be paused and have caps per token."""
        return {"Delta": self.delta, "Router": self.router}


class Act(Struct, frozen=True):
    """A call of one contract that is not sent yet, with the role (owner, pauser, ...) that may make the call.

    Attributes:
        contract: name of the contract.
        to: address of the contract, 20 bytes.
        words: the function and its arguments as text, such as `setCap(0x..., 5)`.
        data: calldata.
        by: the role that may make the call: OWNER, PAUSER (the owner may too), PROPOSED (proposed next owner)
            or ACCOUNT (any account with fees in the FeeVault).
    """

    contract: str
    to: bytes
    words: str
    data: bytes
    by: str = OWNER


class Powers(Struct, frozen=True):
    """Accounts (20 bytes) that hold the roles of one contract, and whether the contract is paused.

    Attributes:
        owner: account that may change the contract's settings.
        proposed: proposed next owner; 20 zero bytes for none.
        pauser: account that may pause the contract, and nothing else; 20 zero bytes for none.
        protocol: account that receives the protocol's fees and the protocol's share of surplus.
        pauser, protocol, is_paused: None for a contract that cannot be paused.
    """

    owner: bytes
    proposed: bytes
    pauser: bytes | None
    protocol: bytes | None
    is_paused: bool | None


class Bound(Struct, frozen=True):
    """Cap on the amount of a token that a contract may move, and the amount moved so far, in raw units.

    Attributes:
        cap: most raw units, per hour for Delta and per call for the Router.
        given: amount that Delta moved for settlements in the current hour; 0 for the Router, which counts no
            amounts.
    """

    cap: int
    given: int


class Roles(Struct, frozen=True):
    """Accounts that hold a role on a chain's contracts, and the caps on amounts of tokens.

    Attributes:
        powers: contract name -> owner, pauser and the other single holders of its roles.
        relayers: accounts that may settle orders on Delta.
        callers: accounts that may fill quotes through the executor.
        collectors: accounts that may credit fees in the vault.
        bounds: contract name -> token -> cap and amount moved so far; tokens with a cap of zero are left out.
    """

    powers: Mapping[str, Powers]
    relayers: Sequence[bytes]
    callers: Sequence[bytes]
    collectors: Sequence[bytes]
    bounds: Mapping[str, Mapping[bytes, Bound]]


# --- Questions to the chain -----------------------------------------------------------------------------

_RAILED = (owner.PAUSER, owner.PROTOCOL, owner.IS_PAUSED)


def powers_calls(at: OwnedContracts) -> list[EthCall]:
    """Build the calls that read each contract's owner, proposed owner, pauser, fee receiver and paused flag.

    `read_powers` takes the results in the order of these calls.
    """
    calls = []
    for name, contract in at.named().items():
        questions = (owner.OWNER, owner.PROPOSED_OWNER, *(_RAILED if name in at.railed() else ()))
        calls += [EthCall(contract, question) for question in questions]
    return calls


def read_powers(at: OwnedContracts, answers: Iterable[bytes]) -> dict[str, Powers]:
    """Decode the results of `powers_calls`: contract name -> owner, pauser and other single roles.

    Raises:
        InvalidInput: a result has another form than cambist's contracts return.
    """
    results = iter(answers)
    found = {}
    for name in at.named():
        holder, proposed = decode_address(next(results)), decode_address(next(results))
        if name in at.railed():
            pauser, protocol = decode_address(next(results)), decode_address(next(results))
            found[name] = Powers(holder, proposed, pauser, protocol, bool(decode_uint(next(results))))
        else:
            found[name] = Powers(holder, proposed, None, None, None)
    return found


def role_topics() -> tuple[bytes, ...]:
    """First topics (hashes of event signatures) of logs that record changes of roles and of token caps.

    The roles are relayer, caller and fee collector.
    """
    return RELAYER_CHANGED, CALLER_CHANGED, COLLECTOR_CHANGED, CAP_CHANGED


def named_in(logs: Iterable[Log], first_topic: bytes, contract: bytes) -> list[bytes]:
    """Extract the accounts or tokens that logs of a contract name, each once, oldest first.

    Args:
        first_topic: first topic, 32 bytes, of the logs to evaluate; other logs are skipped.
        contract: address of the contract, 20 bytes.
    """
    named = (log.topics[1][12:] for log in logs if log.address == contract and log.topics[0] == first_topic)
    return list(dict.fromkeys(named))


def credited_tokens(logs: Iterable[Log], vault: bytes, account: bytes) -> list[bytes]:
    """Extract the tokens in which the FeeVault ever credited fees to an account, from its logs."""
    found = (
        log.topics[2][12:]
        for log in logs
        if log.address == vault and log.topics[0] == CREDITED and log.topics[1][12:] == account
    )
    return list(dict.fromkeys(found))


def owed_call(at: OwnedContracts, account: bytes, token: bytes) -> EthCall:
    """Build the call that reads the amount of a token that the FeeVault keeps for an account."""
    return EthCall(at.fee_vault, owed(account, token))


# --- The acts -------------------------------------------------------------------------------------------


def pause_acts(contracts: Mapping[str, bytes]) -> list[Act]:
    """Build the calls that pause contracts, which stops all their settlements and swaps."""
    return [Act(name, to, "pause()", owner.PAUSE, PAUSER) for name, to in contracts.items()]


def unpause_acts(contracts: Mapping[str, bytes]) -> list[Act]:
    """Build the calls that end the pause of contracts, so that settlements and swaps resume."""
    data = owner.set_paused(paused=False)
    return [Act(name, to, "setPaused(false)", data) for name, to in contracts.items()]


def cap_acts(at: OwnedContracts, caps: Mapping[bytes, int]) -> list[Act]:
    """Build the calls that set caps: per hour on Delta, per call on the Router.

    Args:
        caps: token -> most raw units.
    """
    return [
        Act(name, to, f"setCap({to_checksum(token)}, {cap})", owner.set_cap(token, cap))
        for name, to in at.railed().items()
        for token, cap in caps.items()
    ]


def revoke_acts(at: OwnedContracts, roles: Roles, account: bytes) -> list[Act]:
    """Build the calls that revoke every role of an account that owns no contract.

    Raises:
        InvalidInput: the account owns a contract; ownership is handed over, not revoked.
    """
    owned = [name for name, powers in roles.powers.items() if powers.owner == account]
    if owned:
        expected = "an account that owns no contract; `cambist contracts handover` names another owner"
        raise InvalidInput(field="ACCOUNT", expected=expected, got=f"the owner of {', '.join(owned)}")
    return list(_revoked(at, roles, account))


def _revoked(at: OwnedContracts, roles: Roles, account: bytes, heir: bytes = b"") -> Iterator[Act]:
    """Yield the calls that end an account's roles other than owner.

    Args:
        heir: account that receives the protocol's fees from now on, if `account` receives them at present;
            empty stands for the contract's owner.
    """
    named = to_checksum(account)
    if account in roles.relayers:
        data = owner.set_relayer(account, allowed=False)
        yield Act("Delta", at.delta, f"setRelayer({named}, false)", data)
    if account in roles.callers:
        data = owner.set_caller(account, allowed=False)
        yield Act("RfqExecutor", at.executor, f"setCaller({named}, false)", data)
    if account in roles.collectors:
        data = owner.set_collector(account, allowed=False)
        yield Act("FeeVault", at.fee_vault, f"setCollector({named}, false)", data)
    for name, to in at.railed().items():
        if roles.powers[name].pauser == account:
            nobody = bytes(20)
            yield Act(name, to, f"setPauser({to_checksum(nobody)})", owner.set_pauser(nobody))
        if roles.powers[name].protocol == account:
            receiver = heir or roles.powers[name].owner
            yield Act(name, to, f"setProtocol({to_checksum(receiver)})", owner.set_protocol(receiver))


def handover_acts(
    at: OwnedContracts, powers: Mapping[str, Powers], held: Mapping[bytes, Roles], new: bytes
) -> list[Act]:
    """Build the calls by which the present owners propose `new` as owner and give up their other roles.

    The owners' roles relayer, caller, collector and pauser are revoked. `new` becomes the receiver of the
    protocol's fees if a present owner, or an account proposed as owner before, receives these fees now.

    Args:
        powers: contract name -> its owner, proposed owner and receiver of the protocol's fees.
        held: address of each present owner -> roles of that owner.
        new: address of the new owner, 20 bytes.
    """
    given_up = [act for account, roles in held.items() for act in _revoked(at, roles, account, new)]
    given_up += [
        Act(name, to, f"setProtocol({to_checksum(new)})", owner.set_protocol(new))
        for name, to in at.railed().items()
        if powers[name].protocol == powers[name].proposed != new and powers[name].owner != new
    ]
    return given_up + [
        Act(name, to, f"proposeOwner({to_checksum(new)})", owner.propose_owner(new))
        for name, to in at.named().items()
        if powers[name].owner != new and powers[name].proposed != new
    ]


def acceptance_acts(at: OwnedContracts, powers: Mapping[str, Powers], new: bytes) -> list[Act]:
    """Build the calls by which the account `new` accepts the ownership of contracts proposed to it."""
    return [
        Act(name, to, "acceptOwner()", owner.ACCEPT_OWNER, PROPOSED)
        for name, to in at.named().items()
        if powers[name].proposed == new
    ]


def claim_acts(at: OwnedContracts, tokens: Sequence[bytes], receiver: bytes) -> list[Act]:
    """Build the call that pays the calling account's fees in `tokens` from the FeeVault to a receiver.

    The list is empty if `tokens` is empty.
    """
    words = f"claim([{', '.join(map(to_checksum, tokens))}], {to_checksum(receiver)})"
    return [Act("FeeVault", at.fee_vault, words, claim(tokens, receiver), ACCOUNT)] if tokens else []


def holders(act: Act, powers: Mapping[str, Powers]) -> tuple[bytes, ...]:
    """Accounts that may make the call `act`; empty if every account with fees in the FeeVault may make it."""
    held = powers[act.contract]
    match act.by:
        case "owner":
            return (held.owner,)
        case "pauser":
            return tuple(account for account in (held.owner, held.pauser) if account and any(account))
        case "proposed owner":
            return (held.proposed,)
        case _:
            return ()
