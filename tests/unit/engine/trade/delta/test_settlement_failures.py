"""Effects of a failed settlement on its order and on the bidding agent: by causes, never by words."""

import pytest

from cambist.codecs.bridges.bridge_terms import SELECTORS, BridgeKind
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.contract_events import APPROVAL, TRANSFER
from cambist.codecs.eip712_orders.delta import DeltaBridge
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import Log
from cambist.engine.store.rows import IntentCause
from cambist.engine.trade.delta.bids.agent_rest import AgentFault
from cambist.engine.trade.delta.orders.terms import SettledOrder
from cambist.engine.trade.delta.settlement.failures import (
    BY_CAUSE,
    BY_ERROR,
    SettlementFailure,
    failure_of,
    fault_in,
    is_by_code,
    is_of_bridge,
    is_owners_act,
)
from support.delta.bidding import a_delta_order, a_productive_order

OWNER, AGENT, DELTA = (address_word(bytes([one]) * 20) for one in (1, 2, 3))
_C, _F = IntentCause, SettlementFailure
_REFUSES, _LACKS = selector("InvalidSignature()"), selector("PullFailed(address)")

ERRORS = [
    ("NonceUsed(uint256)", _F.ORDER_DONE),
    ("TooEarly(uint256)", _F.TOO_EARLY),
    ("PullFailed(address)", _F.FUNDS),
    ("InsufficientDeposit(uint256)", _F.FUNDS),
    ("RedemptionFailed(address)", _F.FUNDS),
    ("TooManyShares(uint256,uint256)", _F.FUNDS),
    ("InvalidSignature()", _F.NOT_THE_AGENTS),
    ("OrderExpired()", _F.NOT_THE_AGENTS),
    ("Overfilled(uint256)", _F.NOT_THE_AGENTS),
    ("NotRelayer()", _F.NOT_THE_AGENTS),
    ("Paused()", _F.NOT_THE_AGENTS),
    ("CapExceeded(address,uint256,uint256)", _F.NOT_THE_AGENTS),
    ("NativeTransferFailed(address)", _F.DOUBTFUL),
]
CAUSES = [
    (_C.DEADLINE, _F.NOT_THE_AGENTS),
    (_C.GIVEN_UP, _F.NOT_THE_AGENTS),
    (_C.OUT_OF_GAS, _F.DOUBTFUL),
    (_C.UNEXPLAINED, _F.DOUBTFUL),
    (_C.REFUSED, _F.AGENTS),
    (_C.FORBIDDEN, _F.AGENTS),
    (_C.REVERTED, _F.AGENTS),
    (_C.UNKNOWN, _F.DOUBTFUL),
]


@pytest.mark.parametrize(("signature", "failure"), ERRORS, ids=[name for name, _ in ERRORS])
def test_an_error_of_the_contract_is_known_by_its_selector(
    signature: str, failure: SettlementFailure
) -> None:
    assert failure_of(_C.REVERTED, selector(signature)) is failure


@pytest.mark.parametrize(("signature", "failure"), ERRORS, ids=[name for name, _ in ERRORS])
def test_an_error_that_only_the_agents_calls_bring_about_is_doubtful(
    signature: str, failure: SettlementFailure
) -> None:
    error4 = selector(signature)
    assert failure_of(_C.REVERTED, error4, {error4}) is failure
    assert failure_of(_C.REVERTED, error4, set()) is _F.DOUBTFUL
    assert failure_of(_C.REVERTED, error4, {b"else"}) is _F.DOUBTFUL


@pytest.mark.parametrize(("cause", "failure"), CAUSES)
def test_a_cause_without_a_known_error(cause: IntentCause, failure: SettlementFailure) -> None:
    assert failure_of(cause, None) is failure
    assert failure_of(cause, b"none") is failure
    assert failure_of(cause, None, set()) is failure


def test_an_owners_error_explains_what_another_transaction_of_the_block_made_fail() -> None:
    capped, lacks = selector("CapExceeded(address,uint256,uint256)"), selector("PullFailed(address)")
    done, bare = selector("NonceUsed(uint256)"), selector("BelowMinimum(uint256,uint256)")
    for owners, failure in (
        ({capped}, _F.NOT_THE_AGENTS),
        ({lacks, bare}, _F.FUNDS),
        ({bare, done}, _F.ORDER_DONE),
        ({bare}, _F.DOUBTFUL),
        (set[bytes](), _F.DOUBTFUL),
    ):
        assert failure_of(_C.UNEXPLAINED, None, owners) is failure
        assert failure_of(_C.UNKNOWN, None, owners) is failure
        assert failure_of(_C.REVERTED, selector("TooEarly(uint256)"), owners) is failure
    assert failure_of(_C.OUT_OF_GAS, None, {capped}) is _F.DOUBTFUL
    assert failure_of(_C.REVERTED, b"none", {capped}) is _F.AGENTS


@pytest.mark.parametrize(
    ("cause", "error", "owners", "is_code"),
    [
        (_C.REVERTED, _REFUSES, None, True),
        (_C.REVERTED, _REFUSES, {_REFUSES, _LACKS}, True),
        (_C.REVERTED, _REFUSES, {_LACKS}, False),
        (_C.REVERTED, _LACKS, {_LACKS}, False),
        (_C.REVERTED, None, {_REFUSES}, False),
        (_C.UNEXPLAINED, None, None, True),
        (_C.UNKNOWN, None, {_REFUSES, b"none"}, True),
        (_C.UNEXPLAINED, None, {_REFUSES, _LACKS}, False),
    ],
)
def test_code_of_an_owners_is_a_cause_where_it_refused_or_nothing_else_explains_the_failure(
    cause: IntentCause, error: bytes | None, owners: set[bytes] | None, is_code: bool
) -> None:
    assert is_by_code(cause, error, owners) is is_code


def a_bridged_order(destination_chain_id: int) -> SettledOrder:
    across = SELECTORS[BridgeKind.ACROSS]
    return a_delta_order(bridge=DeltaBridge(across, destination_chain_id, bytes(20), 0, bytes(5 * 32)))


OF_BID, OF_BRIDGE, OF_VAULT = "StepFailed(uint256,bytes)", "DepositsArePaused()", "RedemptionFailed(address)"


@pytest.mark.parametrize(
    ("order", "error", "failure"),
    [
        (None, OF_BID, _F.AGENTS),
        (None, OF_BRIDGE, _F.AGENTS),
        (a_delta_order(), OF_BID, _F.AGENTS),
        (a_delta_order(), OF_BRIDGE, _F.AGENTS),
        (a_bridged_order(1), OF_BID, _F.AGENTS),
        (a_bridged_order(1), OF_BRIDGE, _F.DOUBTFUL),
        (a_bridged_order(10), OF_BRIDGE, _F.DOUBTFUL),
        (a_bridged_order(10), "PullFailed(address)", _F.FUNDS),
        (a_productive_order(), OF_BID, _F.DOUBTFUL),
        (a_productive_order(), OF_BRIDGE, _F.DOUBTFUL),
        (a_productive_order(), "NonceUsed(uint256)", _F.ORDER_DONE),
    ],
)
def test_a_vault_or_an_error_of_the_orders_bridge_makes_a_failure_of_the_bid_doubtful(
    order: SettledOrder | None, error: str, failure: SettlementFailure
) -> None:
    error4 = selector(error)
    assert failure_of(_C.REVERTED, error4, {error4}, order) is failure


def test_an_error_of_the_orders_vault_is_missing_funds_whoever_else_meets_it() -> None:
    error4 = selector(OF_VAULT)
    assert failure_of(_C.REVERTED, error4, set(), a_productive_order()) is _F.FUNDS
    for order in (None, a_delta_order(), a_bridged_order(10)):
        assert failure_of(_C.REVERTED, error4, set(), order) is _F.DOUBTFUL


@pytest.mark.parametrize(
    ("error4", "is_of_bridges"),
    [
        (selector(OF_BRIDGE), True),
        (b"none", True),
        (selector(OF_BID), False),
        (selector("PullFailed(address)"), False),
        (None, False),
        (b"", False),
        (b"non", False),
    ],
)
def test_an_error_is_a_bridges_if_it_is_neither_the_contracts_nor_of_a_bid(
    error4: bytes | None, is_of_bridges: bool
) -> None:
    assert is_of_bridge(error4) is is_of_bridges


def test_the_tables_hold_no_more_and_the_contracts_declare_each_error() -> None:
    assert {selector(signature) for signature, _ in ERRORS} == BY_ERROR.keys()
    assert BY_ERROR.keys() <= known_errors().keys()
    assert dict(CAUSES).keys() == BY_CAUSE.keys() == set(IntentCause)


@pytest.mark.parametrize(
    ("failure", "fault", "if_owners"),
    [
        (_F.ORDER_DONE, None, None),
        (_F.TOO_EARLY, None, None),
        (_F.FUNDS, None, None),
        (_F.NOT_THE_AGENTS, None, None),
        (_F.OWNER_RESTS, None, None),
        (_F.DOUBTFUL, AgentFault.REVERTED, None),
        (_F.AGENTS, AgentFault.REVERTED, AgentFault.REVERTED),
    ],
)
def test_only_some_failures_are_the_agents(
    failure: SettlementFailure, fault: AgentFault | None, if_owners: AgentFault | None
) -> None:
    assert fault_in(failure, may_be_owners=False) is fault
    assert fault_in(failure, may_be_owners=True) is if_owners


@pytest.mark.parametrize(
    ("topics", "amount", "is_act"),
    [
        ((TRANSFER, OWNER, AGENT), 1, True),
        ((TRANSFER, OWNER, AGENT), 0, False),
        ((APPROVAL, OWNER, DELTA), 0, True),
        ((APPROVAL, OWNER, DELTA), 1, True),
        ((APPROVAL, OWNER, AGENT), 0, False),
    ],
)
def test_only_acts_that_no_agent_can_make_are_an_owners(
    topics: tuple[bytes, ...], amount: int, is_act: bool
) -> None:
    """Anybody may transfer nothing of another's, and some tokens log an allowance of nothing then."""
    log = Log(bytes(20), topics, uint_word(amount), 1, bytes(32), bytes(32), 0, 0)
    assert is_owners_act(log, DELTA[12:]) is is_act
