"""Classifies failed settlements by the relayer's cause and the contract's error. Pure.

    ORDER_DONE      the order is filled or cancelled already: no bid can settle it
    OWNER_RESTS     the settlement was not sent, since an owner rests
    TOO_EARLY       the block is before the slice is due: no bid can settle the slice in this block
    FUNDS           an owner's tokens were missing
    NOT_THE_AGENTS  the cause is out of the agents' control
    DOUBTFUL        an owner may be the cause, by a contract that checks signatures or receives native tokens,
                    or by a transaction of the settlement's block that a later transaction undid; the cause
                    may also be the order's bridge, which worked in the simulation, or the agent's calls,
                    which may waste gas or fake an owner's error
    AGENTS          the calls of the bid failed

Source: ARCHITECTURE.md, "Settlement"; contracts/Delta.sol, `settle`.
"""

from collections.abc import Collection, Mapping
from enum import StrEnum

from .....codecs.contracts.abi import SELECTOR_BYTES, address_word, selector
from .....codecs.contracts.contract_events import TRANSFER
from .....codecs.eip712_orders.delta import ProductiveOrder
from ....chain.port import Log
from ....store.rows import IntentCause
from ..bids.agent_rest import AgentFault
from ..orders.terms import SettledOrder
from ..orders.transfers import bridge_of
from ..orders.vault import OF_VAULT


class SettlementFailure(StrEnum):
    """Kind of a failed settlement, by its cause.

    Members are sorted by the bidding agent's responsibility, from none (ORDER_DONE) to certain (AGENTS).
    """

    ORDER_DONE = "orderDone"
    OWNER_RESTS = "ownerRests"
    TOO_EARLY = "tooEarly"
    FUNDS = "funds"
    NOT_THE_AGENTS = "notTheAgents"
    DOUBTFUL = "doubtful"
    AGENTS = "agents"


_C, _F = IntentCause, SettlementFailure

BY_ERROR: Mapping[bytes, SettlementFailure] = {
    selector("NonceUsed(uint256)"): _F.ORDER_DONE,
    selector("TooEarly(uint256)"): _F.TOO_EARLY,
    selector("PullFailed(address)"): _F.FUNDS,
    selector("InsufficientDeposit(uint256)"): _F.FUNDS,
    **dict.fromkeys(sorted(OF_VAULT), _F.FUNDS),
    selector("InvalidSignature()"): _F.NOT_THE_AGENTS,
    selector("OrderExpired()"): _F.NOT_THE_AGENTS,
    selector("Overfilled(uint256)"): _F.NOT_THE_AGENTS,
    selector("NotRelayer()"): _F.NOT_THE_AGENTS,
    selector("Paused()"): _F.NOT_THE_AGENTS,
    selector("CapExceeded(address,uint256,uint256)"): _F.NOT_THE_AGENTS,
    selector("NativeTransferFailed(address)"): _F.DOUBTFUL,
}
"""Kinds of failed settlements by the selector of the Delta contract's error.

Errors of an agent's calls have no entry: the contract wraps them in another error.
"""

BY_OWNERS_ACT = frozenset({_F.ORDER_DONE, _F.FUNDS, _F.DOUBTFUL})
"""Kinds of failures that an owner can bring about by a transaction in the settlement's block."""
_BY_CODE = frozenset({selector("InvalidSignature()"), selector("NativeTransferFailed(address)")})

OF_TIME = frozenset({selector("TooEarly(uint256)"), selector("CapExceeded(address,uint256,uint256)")})
"""Selectors of contract errors that depend on the block's time.

An error of this kind, in a call at the block before a failed settlement, does not explain the settlement's
failure.
"""

BY_CAUSE: Mapping[IntentCause, SettlementFailure] = {
    _C.DEADLINE: _F.NOT_THE_AGENTS,
    _C.GIVEN_UP: _F.NOT_THE_AGENTS,
    _C.OUT_OF_GAS: _F.DOUBTFUL,
    _C.UNEXPLAINED: _F.DOUBTFUL,
    _C.REFUSED: _F.AGENTS,
    _C.FORBIDDEN: _F.AGENTS,
    _C.REVERTED: _F.AGENTS,
    _C.UNKNOWN: _F.DOUBTFUL,
}
"""Kinds of failed settlements by the relayer's cause, for failures without a known contract error."""

_OF_THE_BID = frozenset(
    map(
        selector,
        (
            "StepFailed(uint256,bytes)", "BelowMinimum(uint256,uint256)", "AboveMaximum(uint256,uint256)",
            "PromiseBroken(bytes32,uint256,uint256)", "TransferFailed(address)", "BelowBridgeFee(uint256)",
            "InvalidAgent()", "TooMuchGas(uint256)", "NotTheUsers(uint256)", "MixedPair()", "NoOrders()",
            "Reentered()", "Panic(uint256)",
        ),
    )
)  # fmt: skip

UNEXPLAINED = frozenset({_C.UNEXPLAINED, _C.UNKNOWN})
"""Causes that the relayer reports for a reverted transaction whose error is not known."""


def failure_of(
    cause: IntentCause | None,
    error4: bytes | None,
    owners: Collection[bytes] | None = None,
    order: SettledOrder | None = None,
) -> SettlementFailure:
    """Classify a failed settlement by the cause that the relayer reports and the contract's errors.

    Args:
        cause: cause of the failure as the relayer reports it.
        error4: selector of the contract's error; None without one.
        owners: selectors of the errors that the same settlement raises without the agent's calls; None if
            unknown. An error that occurs only with the agent's calls does not excuse the agent. The errors in
            `owners` also explain a failure that another transaction of the block caused, such as the owner's
            cancellation or a settlement that used up a token's hourly cap.
        order: the signed order, if known. With a vault, the vault's own errors count as missing funds, since
            the contract raises them before any call of the agent's; a failure of the agent's calls is
            DOUBTFUL, since the vault may have caused it. With a bridge, an error of the bridge, which the
            contract passes on unchanged, is DOUBTFUL.
    """
    is_of_vault = isinstance(order, ProductiveOrder)
    is_bridged = order is not None and bridge_of(order).destination_chain_id > 0
    if is_of_vault and error4 in OF_VAULT:
        return _F.FUNDS
    found = _failure(cause, error4, owners)
    # Only a failure that blames the agent becomes doubtful: every other kind excuses the agent already.
    is_others = is_of_vault or (is_bridged and is_of_bridge(error4))
    return _F.DOUBTFUL if is_others and found is _F.AGENTS else found


def is_of_bridge(error4: bytes | None) -> bool:
    """Whether an error is a bridge's.

    Errors of the Delta contract itself, and of an agent's calls, have known selectors.
    """
    return len(error4 or b"") == SELECTOR_BYTES and error4 not in BY_ERROR and error4 not in _OF_THE_BID


def is_by_code(cause: IntentCause | None, error4: bytes | None, owners: Collection[bytes] | None) -> bool:
    """Whether code of an owner's is the likely cause of a failed settlement, if it ran such code.

    Args:
        owners: errors of the settlement without the agent's calls, as `failure_of` takes them.

    The code refused, with the agent's calls and without; or the settlement failed when mined and in no call.
    The agent's code may be the cause in the second case too.
    """
    if error4 in _BY_CODE:
        return owners is None or error4 in owners
    return cause in UNEXPLAINED and all(error not in BY_ERROR or error in _BY_CODE for error in owners or ())


def _failure(
    cause: IntentCause | None, error4: bytes | None, owners: Collection[bytes] | None
) -> SettlementFailure:
    by_error = BY_ERROR.get(error4 or b"")
    if by_error is not None and (owners is None or error4 in owners):
        return by_error
    if by_error is not None or cause in UNEXPLAINED:
        found = {BY_ERROR.get(error, _F.DOUBTFUL) for error in owners or ()}
        return next((failure for failure in SettlementFailure if failure in found), _F.DOUBTFUL)
    return _F.AGENTS if cause is None else BY_CAUSE[cause]


def is_owners_act(log: Log, delta: bytes) -> bool:
    """Whether a log shows a change of the amount of tokens that Delta may take from an order's owner.

    True for a transfer of more than 0 and for an approval of Delta, which an agent cannot cause for another
    account. A transfer of 0, which any account can make, and an approval of another spender do not count.

    Args:
        log: a log of Transfer or Approval with the owner as its first indexed member.
        delta: the Delta contract, 20 bytes.
    """
    if log.topics[0] == TRANSFER:
        return any(log.data)
    return log.topics[2] == address_word(delta)


def fault_in(failure: SettlementFailure, *, may_be_owners: bool) -> AgentFault | None:
    """Return the fault that the venue records for the agent whose bid's settlement failed; None for no fault.

    A failure in doubt is no fault yet; see `owner_costs`.

    Args:
        may_be_owners: whether an owner or a bridge may have caused the failure: a contract of an owner ran in
            the settlement, an owner acted in the settlement's block, or the error is the bridge's.
    """
    is_agents = failure is _F.AGENTS or (failure is _F.DOUBTFUL and not may_be_owners)
    return AgentFault.REVERTED if is_agents else None
