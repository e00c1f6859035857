"""Acts of owners, pausers and receivers of fees on contracts that stand, as calls. Pure.

    wish (pause, revoke, cap, ...) + roles as the chain tells them -> Act, ...

An act is a call of one contract, and says in words what it is and who may make it. `engine.cli.contract_acts`
sends acts, or prints them for a multisig.

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
"""Who may make an act."""

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
        """Name -> address."""
        names = "Delta", "Router", "RfqExecutor", "FeeVault"
        return dict(zip(names, (self.delta, self.router, self.executor, self.fee_vault), strict=True))

    def railed(self) -> dict[str, bytes]:
        """Those that can be paused, and have caps."""
        return {"Delta": self.delta, "Router": self.router}


class Act(Struct, frozen=True):
    """One call.

    Attributes:
        contract: its name.
        words: the function, with its arguments.
        by: the role that may make it: OWNER, PAUSER (or the owner), PROPOSED or ACCOUNT.
    """

    contract: str
    to: bytes
    words: str
    data: bytes
    by: str = OWNER


class Powers(Struct, frozen=True):
    """Who holds what of one contract.

    Attributes:
        pauser, protocol, is_paused: None where a contract has none.
    """

    owner: bytes
    proposed: bytes
    pauser: bytes | None
    protocol: bytes | None
    is_paused: bool | None


class Bound(Struct, frozen=True):
    """The cap of a token, and what is given of it in this hour (Delta alone counts), in raw units."""

    cap: int
    given: int


class Roles(Struct, frozen=True):
    """Who holds what.

    Attributes:
        powers: contract -> its owner and the like.
        relayers, callers, collectors: of Delta, the executor and the vault.
        bounds: contract -> token -> its cap, of those that are not zero.
    """

    powers: Mapping[str, Powers]
    relayers: Sequence[bytes]
    callers: Sequence[bytes]
    collectors: Sequence[bytes]
    bounds: Mapping[str, Mapping[bytes, Bound]]


# --- What the chain is asked ----------------------------------------------------------------------------

_RAILED = (owner.PAUSER, owner.PROTOCOL, owner.IS_PAUSED)


def powers_calls(at: OwnedContracts) -> list[EthCall]:
    """What `read_powers` takes the answers of."""
    calls = []
    for name, contract in at.named().items():
        questions = (owner.OWNER, owner.PROPOSED_OWNER, *(_RAILED if name in at.railed() else ()))
        calls += [EthCall(contract, question) for question in questions]
    return calls


def read_powers(at: OwnedContracts, answers: Iterable[bytes]) -> dict[str, Powers]:
    """Contract -> who holds what.

    Raises:
        InvalidInput: an answer is not what our contracts give.
    """
    told = iter(answers)
    found = {}
    for name in at.named():
        holder, proposed = decode_address(next(told)), decode_address(next(told))
        if name in at.railed():
            pauser, protocol = decode_address(next(told)), decode_address(next(told))
            found[name] = Powers(holder, proposed, pauser, protocol, bool(decode_uint(next(told))))
        else:
            found[name] = Powers(holder, proposed, None, None, None)
    return found


def role_topics() -> tuple[bytes, ...]:
    """First topics of the logs that name all accounts and tokens which ever had a role or a cap."""
    return RELAYER_CHANGED, CALLER_CHANGED, COLLECTOR_CHANGED, CAP_CHANGED


def named_in(logs: Iterable[Log], first_topic: bytes, contract: bytes) -> list[bytes]:
    """Accounts or tokens that logs of one kind name, each once, oldest first."""
    named = (log.topics[1][12:] for log in logs if log.address == contract and log.topics[0] == first_topic)
    return list(dict.fromkeys(named))


def credited_tokens(logs: Iterable[Log], vault: bytes, account: bytes) -> list[bytes]:
    """Tokens of which fees were ever kept for an account."""
    found = (
        log.topics[2][12:]
        for log in logs
        if log.address == vault and log.topics[0] == CREDITED and log.topics[1][12:] == account
    )
    return list(dict.fromkeys(found))


def owed_call(at: OwnedContracts, account: bytes, token: bytes) -> EthCall:
    """What the vault keeps of a token for an account."""
    return EthCall(at.fee_vault, owed(account, token))


# --- The acts -------------------------------------------------------------------------------------------


def pause_acts(contracts: Mapping[str, bytes]) -> list[Act]:
    """Stop every settlement and swap."""
    return [Act(name, to, "pause()", owner.PAUSE, PAUSER) for name, to in contracts.items()]


def unpause_acts(contracts: Mapping[str, bytes]) -> list[Act]:
    """Let them go on."""
    data = owner.set_paused(paused=False)
    return [Act(name, to, "setPaused(false)", data) for name, to in contracts.items()]


def cap_acts(at: OwnedContracts, caps: Mapping[bytes, int]) -> list[Act]:
    """Token -> most raw units, on Delta for an hour and on the Router for a call."""
    return [
        Act(name, to, f"setCap({to_checksum(token)}, {cap})", owner.set_cap(token, cap))
        for name, to in at.railed().items()
        for token, cap in caps.items()
    ]


def revoke_acts(at: OwnedContracts, roles: Roles, account: bytes) -> list[Act]:
    """Take all that an account may, but for what owners may.

    Raises:
        InvalidInput: it owns a contract: ownership is handed over.
    """
    owned = [name for name, powers in roles.powers.items() if powers.owner == account]
    if owned:
        expected = "an account that owns no contract; `cambist contracts handover` names another owner"
        raise InvalidInput(field="ACCOUNT", expected=expected, got=f"the owner of {', '.join(owned)}")
    return list(_revoked(at, roles, account))


def _revoked(at: OwnedContracts, roles: Roles, account: bytes) -> Iterator[Act]:
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


def handover_acts(at: OwnedContracts, powers: Mapping[str, Powers], new: bytes) -> list[Act]:
    """Propose an owner for every contract that has another and no such proposal."""
    return [
        Act(name, to, f"proposeOwner({to_checksum(new)})", owner.propose_owner(new))
        for name, to in at.named().items()
        if powers[name].owner != new and powers[name].proposed != new
    ]


def acceptance_acts(at: OwnedContracts, powers: Mapping[str, Powers], new: bytes) -> list[Act]:
    """Accept what is proposed to an account."""
    return [
        Act(name, to, "acceptOwner()", owner.ACCEPT_OWNER, PROPOSED)
        for name, to in at.named().items()
        if powers[name].proposed == new
    ]


def claim_acts(at: OwnedContracts, tokens: Sequence[bytes], receiver: bytes) -> list[Act]:
    """Have the vault send fees of the caller's."""
    words = f"claim([{', '.join(map(to_checksum, tokens))}], {to_checksum(receiver)})"
    return [Act("FeeVault", at.fee_vault, words, claim(tokens, receiver), ACCOUNT)] if tokens else []


def holders(act: Act, powers: Mapping[str, Powers]) -> tuple[bytes, ...]:
    """The accounts that may make an act; none where that is whoever is owed something."""
    held = powers[act.contract]
    match act.by:
        case "owner":
            return (held.owner,)
        case "pauser":
            return tuple(account for account in (held.owner, held.pauser) if account)
        case "proposed owner":
            return (held.proposed,)
        case _:
            return ()
