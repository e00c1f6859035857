"""Read the roles and caps of a chain's contracts from their logs and getters.

Logs name the accounts that ever had a role and the tokens that ever had a cap; getters give the present
values.

Source: contracts/lib/{Guardrails,Owned}.sol, contracts/{Delta,RfqExecutor,FeeVault}.sol.
"""

from collections.abc import Callable, Mapping, Sequence

from ....codecs.contracts import owner_calldata as owner
from ....codecs.contracts.abi import decode_uint
from ....codecs.contracts.contract_events import CREDITED
from ....config.errors import ChainError, InvalidInput, LogsRefused
from ..port import Chain, EthCall, Log, LogFilter
from .contract_acts import (
    CALLER_CHANGED,
    CAP_CHANGED,
    COLLECTOR_CHANGED,
    RELAYER_CHANGED,
    Act,
    Bound,
    OwnedContracts,
    Powers,
    Roles,
    credited_tokens,
    handover_acts,
    named_in,
    owed_call,
    powers_calls,
    read_powers,
    role_topics,
)

_RANGE_BLOCKS = 10_000
"""Number of blocks of one log query at first; each refusal by a node halves the number."""


async def powers_of(chain: Chain, at: OwnedContracts) -> dict[str, Powers]:
    """Read each contract's owner, pauser and other single roles from the chain: contract name -> roles.

    Raises:
        ChainError: the chain does not answer, or other contracts are at the addresses.
    """
    answers = await _answers(chain, powers_calls(at))
    try:
        return read_powers(at, answers)
    except InvalidInput:
        raise ChainError("the contracts are not those of the address book") from None


async def roles_of(chain: Chain, at: OwnedContracts, since: int) -> Roles:
    """Read the accounts that hold roles on a chain's contracts, and the caps, from contracts and their logs.

    Args:
        since: first block whose logs are read: the deployment's block, or an earlier one.

    Raises:
        ChainError: the chain does not answer or refuses the log query, or other contracts are at the
            addresses.
    """
    # The logs name candidates, since a contract does not list the holders of a role; `confirmed` asks the
    # contract which of them hold the role now.
    powers = await powers_of(chain, at)
    logs = await _logs(chain, LogFilter(tuple(at.named().values()), (role_topics(),)), since)

    async def confirmed(contract: bytes, first: bytes, question: Callable[[bytes], bytes]) -> list[bytes]:
        named = named_in(logs, first, contract)
        answers = await _answers(chain, [EthCall(contract, question(account)) for account in named])
        return [account for account, answer in zip(named, answers, strict=True) if decode_uint(answer)]

    bounds: dict[str, Mapping[bytes, Bound]] = {}
    for name, contract in at.railed().items():
        tokens = named_in(logs, CAP_CHANGED, contract)
        calls = [EthCall(contract, ask(token)) for token in tokens for ask in (owner.cap_of, owner.given_of)]
        amounts = [decode_uint(answer) for answer in await _answers(chain, calls)]
        found = {token: Bound(*amounts[2 * at : 2 * at + 2]) for at, token in enumerate(tokens)}
        bounds[name] = {token: bound for token, bound in found.items() if bound.cap}
    return Roles(
        powers,
        await confirmed(at.delta, RELAYER_CHANGED, owner.is_relayer),
        await confirmed(at.executor, CALLER_CHANGED, owner.is_caller),
        await confirmed(at.fee_vault, COLLECTOR_CHANGED, owner.is_collector),
        bounds,
    )


async def held_by(chain: Chain, at: OwnedContracts, account: bytes) -> Roles:
    """Read from a chain's contracts whether one account is a relayer, caller or fee collector.

    The result also has each contract's owner, pauser and other single roles, but no caps. No logs are read.
    """
    powers = await powers_of(chain, at)
    calls = [
        EthCall(at.delta, owner.is_relayer(account)),
        EthCall(at.executor, owner.is_caller(account)),
        EthCall(at.fee_vault, owner.is_collector(account)),
    ]
    of = [[account] if decode_uint(answer) else [] for answer in await _answers(chain, calls)]
    return Roles(powers, of[0], of[1], of[2], {})


async def handover_of(chain: Chain, at: OwnedContracts, new: bytes) -> list[Act]:
    """Build the calls by which the present owners propose `new` as owner and give up their other roles.

    The result leaves out calls that would change nothing on the chain.
    """
    powers = await powers_of(chain, at)
    owners = dict.fromkeys(held.owner for held in powers.values() if held.owner != new)
    held = {account: await held_by(chain, at, account) for account in owners}
    return handover_acts(at, powers, held, new)


async def owed_to(
    chain: Chain, at: OwnedContracts, account: bytes, tokens: Sequence[bytes], since: int
) -> dict[bytes, int]:
    """Read the fees that the FeeVault keeps for an account: token -> raw units, without zero amounts.

    Args:
        tokens: tokens whose fees are read; if empty, all tokens in which the FeeVault has credited fees to
            the account, as found in the logs of these credits.
        since: height of the first block whose logs are searched for credits, if `tokens` is empty.
    """
    if not tokens:
        word = account.rjust(32, b"\0")
        logs = await _logs(chain, LogFilter((at.fee_vault,), ((CREDITED,), (word,))), since)
        tokens = credited_tokens(logs, at.fee_vault, account)
    answers = await _answers(chain, [owed_call(at, account, token) for token in tokens])
    amounts = {token: decode_uint(answer) for token, answer in zip(tokens, answers, strict=True)}
    return {token: amount for token, amount in amounts.items() if amount}


async def _answers(chain: Chain, calls: Sequence[EthCall]) -> list[bytes]:
    answers = await chain.call_many(calls) if calls else []
    results = [answer for answer in answers if isinstance(answer, bytes)]
    if len(results) < len(calls):
        raise ChainError("the contracts are not those of the address book")
    return results


async def _logs(chain: Chain, wanted: LogFilter, since: int) -> list[Log]:
    """Read the chain's logs that pass a filter, from block `since` to the latest, oldest first."""
    head = await chain.block()
    if head is None:
        raise ChainError("the chain has no block")
    found: list[Log] = []
    first, size = since, _RANGE_BLOCKS
    while first <= head.number:
        last = min(first + size - 1, head.number)
        try:
            found += await chain.logs(wanted, first, last)
        except LogsRefused:
            if size == 1:
                raise
            size = max(size // 2, 1)
        else:
            first = last + 1
    return found
