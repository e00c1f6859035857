"""Agents that rest, the length of their rests, and their return."""

import pytest

from cambist.config.limits import AGENT_REVERTS_MAX, AGENT_REVERTS_OWNERS
from cambist.engine.trade.delta.bids.agent_rest import AgentFault, AgentRest

NOW = 1_700_000_000_000
STRIKES = (AgentFault.REVERTED, AgentFault.SETTLED_BELOW, AgentFault.SIMULATION_MISMATCH)
SOFT = (AgentFault.MALFORMED, AgentFault.LATE, AgentFault.REFUSED, AgentFault.UNAVAILABLE)


def an_agent() -> AgentRest:
    return AgentRest(1_000, 10_000, 3)


@pytest.mark.parametrize("fault", STRIKES)
def test_whoever_does_not_deliver_or_lies_rests_at_once(fault: AgentFault) -> None:
    agent = an_agent()
    assert agent.failed(fault, NOW) == NOW + 1_000
    assert agent.is_resting(NOW + 999)
    assert not agent.is_resting(NOW + 1_000)
    report = agent.report(NOW)
    assert (report.faults, report.strikes, report.rests_until_ms) == ({fault.value: 1}, 1, NOW + 1_000)
    assert agent.report(NOW + 1_000).rests_until_ms == 0


def test_rests_double_up_to_the_longest() -> None:
    agent, now, lengths = an_agent(), NOW, []
    for _ in range(6):
        until = agent.failed(AgentFault.REVERTED, now)
        lengths.append(until - now)
        now = until
    assert lengths == [1_000, 2_000, 4_000, 8_000, 10_000, 10_000]


def test_who_is_late_rests_for_a_while_is_not_struck_and_is_well_with_an_answer() -> None:
    agent, now, lengths = AgentRest(1_000, 60_000, 3, 5_000), NOW, []
    for _ in range(2):
        assert agent.failed(AgentFault.LATE, now) == 0
    for _ in range(5):
        until = agent.failed(AgentFault.UNAVAILABLE, now)  # after a rest the first failure is enough
        assert agent.is_slow(now)
        assert agent.failed(AgentFault.LATE, now) == 0, "it is asked where nobody else can be"
        lengths.append(until - now)
        now = until
    assert lengths == [1_000, 2_000, 4_000, 5_000, 5_000]
    agent.failed(AgentFault.LATE, now)
    agent.answered()
    assert not agent.is_resting(now)
    assert (agent.report(now).strikes, agent.report(now).is_slow) == (0, False)
    assert agent.failed(AgentFault.LATE, now) == 0


def test_a_strike_counts_while_an_agent_rests_for_lateness() -> None:
    agent = an_agent()
    for _ in range(3):
        agent.failed(AgentFault.LATE, NOW)
    assert agent.failed(AgentFault.REVERTED, NOW) == NOW + 1_000
    assert not agent.is_slow(NOW)
    agent.answered()
    assert agent.is_resting(NOW), "no answer ends that rest"


def waste(agent: AgentRest, bids: int, owners: int) -> int:
    """Number of failed bids with which the agent is at fault; 0 if it never is."""
    return next((at + 1 for at in range(bids) if agent.simulated(bytes([at % owners]), is_good=False)), 0)


def test_who_bids_what_fails_where_others_do_not_wastes_everybodys_time() -> None:
    assert waste(an_agent(), 100, 5) == AGENT_REVERTS_MAX + 1
    assert waste(an_agent(), 100, AGENT_REVERTS_OWNERS - 1) == 0, "those owners may make them fail"
    mixed = an_agent()
    for at in range(100):
        assert not mixed.simulated(bytes([at]), is_good=at % 3 == 0)
    delivering = an_agent()
    for at in range(100):
        assert not delivering.simulated(bytes([at]), is_good=False)
        if at % AGENT_REVERTS_MAX == 0:
            delivering.delivered(NOW)


def test_no_count_of_strikes_breaks_the_reckoning() -> None:
    agent, now = an_agent(), NOW
    for _ in range(200):
        now = agent.failed(AgentFault.REVERTED, now)
    assert agent.report(now).strikes == 32


@pytest.mark.parametrize("fault", SOFT)
def test_a_few_bad_answers_in_a_row_are_tolerated(fault: AgentFault) -> None:
    agent = an_agent()
    assert [agent.failed(fault, NOW) for _ in range(3)] == [0, 0, NOW + 1_000]
    agent = an_agent()
    for _ in range(10):
        assert agent.failed(fault, NOW) == agent.failed(fault, NOW) == 0
        agent.answered()
    assert agent.report(NOW).answers == 10


def test_what_an_owners_contract_may_have_done_is_a_strike_only_of_one_that_never_delivers() -> None:
    agent = an_agent()
    assert {agent.failed(AgentFault.IN_DOUBT, NOW, order) for order in "aaaaaabbbb"} == {0}
    agent.answered()
    assert agent.failed(AgentFault.IN_DOUBT, NOW, "c") == NOW + 1_000
    agent = an_agent()
    for _ in range(10):
        assert {agent.failed(AgentFault.IN_DOUBT, NOW, order) for order in "ab"} == {0}
        agent.delivered(NOW)
    assert agent.report(NOW).faults == {"inDoubt": 20}


def test_a_fault_while_it_rests_lengthens_nothing() -> None:
    agent = an_agent()
    until = agent.failed(AgentFault.REVERTED, NOW)
    assert agent.failed(AgentFault.REVERTED, NOW + 500) == 0
    assert agent.report(NOW + 500).rests_until_ms == until
    assert agent.report(NOW + 500).faults == {"reverted": 2}
    assert agent.failed(AgentFault.REVERTED, until) == until + 2_000


def test_a_delivery_takes_a_strike_back() -> None:
    agent = an_agent()
    now = agent.failed(AgentFault.REVERTED, agent.failed(AgentFault.REVERTED, NOW))
    agent.delivered(now)
    assert agent.report(now).strikes == 1
    assert agent.failed(AgentFault.REVERTED, now) == now + 2_000
    for _ in range(3):
        agent.delivered(now + 2_000)
    assert agent.report(now + 2_000).strikes == 0
    assert agent.report(now + 2_000).delivered == 4


def test_time_takes_strikes_back() -> None:
    agent = an_agent()
    now = agent.failed(AgentFault.REVERTED, agent.failed(AgentFault.REVERTED, NOW))
    assert agent.report(now + 9_999).strikes == 2
    assert agent.report(now + 10_000).strikes == 1
    assert agent.report(now + 20_000).strikes == 0
    assert agent.failed(AgentFault.REVERTED, now + 20_000) == now + 21_000
