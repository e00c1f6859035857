"""The contract that makes an agent's calls: where it is, and how the agent is told. Pure.

An agent's id on chain is the keccak-256 of its name at the venue; venues that share a Delta contract name
agents differently.

Source: contracts/AgentCaller.sol; contracts/Delta.sol, `agentCaller`.
Choice: An agent's own calls run through an `AgentCaller` of that agent alone.
"""

from functools import lru_cache

from ....codecs.contracts.delta_calldata import agent_id
from ....codecs.transactions import create2_address
from ....crypto.addresses import to_checksum
from ...chain.artifacts import artifact

AGENT_CALLERS_MAX = 1_024
"""Addresses that are kept: of the agents of all chains that a venue may have."""


@lru_cache(maxsize=AGENT_CALLERS_MAX)
def caller_of(delta: bytes, name: str) -> bytes:
    """The 20-byte address of the caller of an agent, which its first settlement creates."""
    return create2_address(delta, agent_id(name), artifact("AgentCaller").init_code())


def with_caller(body: bytes, caller: bytes) -> bytes:
    """An encoded SolveRequest, with the caller of the agent that is asked.

    The orders of a round are encoded once for all agents: what differs is put in front of them.
    """
    return b'{"caller":"%b",%b' % (to_checksum(caller).encode(), body[1:])
