"""The contract that makes an agent's calls: where it is, and how the agent is told. Pure.

Source: contracts/AgentCaller.sol; contracts/Delta.sol, `agentCaller`.
Choice: an agent's id on the chain is the keccak-256 of the name that the venue has for it. Venues that share
    a Delta contract give their agents different names.
"""

from functools import lru_cache

from ....codecs.delta_calldata import agent_id
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
