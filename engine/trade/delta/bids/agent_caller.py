"""Address of the contract that runs an agent's calls, and the request for bids that contains it. Pure.

An agent's id on chain is the keccak-256 of its name at the venue; venues that share a Delta contract name
agents differently.

Source: contracts/AgentCaller.sol; contracts/Delta.sol, `agentCaller`.
Choice: An agent's own calls run through an `AgentCaller` of that agent alone.
"""

from functools import lru_cache

from .....codecs.contracts.delta_calldata import agent_id
from .....codecs.transactions import create2_address
from .....crypto.addresses import to_checksum
from ....chain.artifacts import artifact

AGENT_CALLERS_MAX = 1_024
"""Most addresses of agents' caller contracts in a cache, enough for all chains of a venue."""


@lru_cache(maxsize=AGENT_CALLERS_MAX)
def caller_of(delta: bytes, name: str) -> bytes:
    """Compute the address of an agent's caller contract, which the agent's first settlement deploys.

    Args:
        delta: the Delta contract, 20 bytes, which deploys the caller contract.
        name: name of the agent.

    Returns:
        20 bytes.
    """
    return create2_address(delta, agent_id(name), artifact("AgentCaller").init_code())


def with_caller(body: bytes, caller: bytes) -> bytes:
    """Return a request for bids (SolveRequest) with the address of the agent's caller contract added.

    The orders of a round are encoded once for all agents; only this first member differs.

    Args:
        body: the request as JSON, without the address.
    """
    return b'{"caller":"%b",%b' % (to_checksum(caller).encode(), body[1:])
