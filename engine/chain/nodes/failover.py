"""Failover between the nodes of one chain: each request goes to the first healthy node.

A failed node gets no requests during a cool-down (`rest`), and its chain id is checked again afterwards.

    unchecked --right chain id--> healthy --failure--> cool-down --its time is over--> unchecked
        \\--another chain's id--> cool-down

The cool-down doubles with each failure in a row and is jittered, so that not all clients return to a
recovered node at once. A rate-limited node's cool-down lasts at least as long as its Retry-After says. While
all nodes are in cool-down, each that is not rate-limited gets one request every NODE_PROBE_S, as a probe;
every other request fails at once with each node's last failure.

Errors name a node by its place in the settings; its URL is shown nowhere.

A node that answers with a JSON-RPC error is healthy unless the error is internal (-32603). A refusal of the
call itself, such as a revert, is raised at once; after any other error the next node gets the request. Since
a lagging node lacks new blocks, BlockGone is raised only once no healthy node has given a valid answer.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

import trio
from msgspec import Struct

from ....config import limits
from ....config.errors import (
    BlockGone,
    ChainError,
    InvalidInput,
    LogsRefused,
    NodeUnavailable,
    Reverted,
    TransactionRefused,
)
from ....config.timeouts import NODE_PROBE_S, NODE_REST_S, NODE_REST_S_MAX
from .json_rpc import AnswerTooLarge, RpcCall, RpcNode, RpcOutcome
from .rpc_values import read_quantity
from .rpc_wording import RpcError, is_internal, is_over_rate

T = TypeVar("T")

_REFUSALS = (Reverted, TransactionRefused, LogsRefused, AnswerTooLarge)
_CHAIN_ID: RpcCall = ("eth_chainId", [])


class NodeStatistics(Struct, frozen=True):
    """State and counters of a node at one moment.

    Attributes:
        name: path of the node's URL in the settings, such as `chains.1.node.urls[0]`.
        requests: number of conversations (`Talk`) with a valid answer.
        failures: number of failed conversations.
        rest_s: seconds left of the node's cool-down; 0 for a healthy node.
        batch_max: most calls in a batch to the node.
        said: text of the last failure; empty before the first.
    """

    name: str
    requests: int
    failures: int
    rest_s: float
    batch_max: int
    said: str


class NotDone(ChainError):
    """A node answered a request with a JSON-RPC error, so that another node has to be asked.

    Attributes:
        fault: the node's error.
    """

    def __init__(self, fault: RpcError, method: str) -> None:
        super().__init__(f"{method}: {fault}")
        self.fault = fault


class WrongChain(ChainError):
    """A node has the chain id of another chain than the expected one."""


class _Health:
    """A node with its failures in a row, the end of its cool-down, and counters."""

    def __init__(self, node: RpcNode) -> None:
        self.node = node
        self.is_checked = False
        self.rests_until = 0.0
        self.refuses_until = 0.0
        self.probed_at = 0.0
        self.in_a_row = 0
        self.requests = 0
        self.failures = 0
        self.said = ""


class Talk:
    """Sequence of requests that all go to the same node of a chain."""

    def __init__(self, node: RpcNode) -> None:
        self._node = node

    @property
    def name(self) -> str:
        """Name of the node in errors: the path of its URL in the settings."""
        return self._node.name

    async def outcomes(self, calls: Sequence[RpcCall]) -> list[RpcOutcome]:
        """Send calls to the node, and return for each the JSON of its result or the node's error.

        Raises:
            NodeUnavailable: the node cannot be reached, is late, or refuses a call as over its rate limit.
            ChainError: the answer is no valid JSON-RPC answer to the calls.
        """
        outcomes = await self._node.outcomes(calls)
        for outcome in outcomes:
            if isinstance(outcome, RpcError) and is_over_rate(outcome):
                raise NodeUnavailable(f"{self._node.name}: over its rate: {outcome}")
        return outcomes

    async def result(self, method: str, *parameters: object) -> bytes:
        """Send one call to the node and return the JSON of its result.

        Raises:
            ChainError: the node gives no valid answer; as the subclass NotDone, if it answers with an error.
        """
        (outcome,) = await self.outcomes([(method, list(parameters))])
        return result_of(outcome, method)


def result_of(outcome: RpcOutcome, method: str) -> bytes:
    """Return the JSON of a call's result.

    Raises:
        NotDone: the node answered the call with an error.
    """
    if isinstance(outcome, RpcError):
        raise NotDone(outcome, method)
    return outcome


class Nodes:
    """Nodes of one chain, with failover between them.

    Args:
        chain_id: the chain to which each node has to belong.
        nodes: in order of preference.
        jitter: returns a random number from 0 to 1.
    """

    def __init__(self, chain_id: int, nodes: Sequence[RpcNode], jitter: Callable[[], float]) -> None:
        self._chain_id = chain_id
        self._healths = [_Health(node) for node in nodes]
        self._jitter = jitter

    def statistics(self) -> tuple[NodeStatistics, ...]:
        """Return state and counters of each node, in the order of the nodes."""
        now = trio.current_time()
        return tuple(
            NodeStatistics(
                health.node.name,
                health.requests,
                health.failures,
                max(0.0, health.rests_until - now),
                health.node.batch_max,
                health.said,
            )
            for health in self._healths
        )

    async def check(self) -> None:
        """Check the chain id of every node; an unreachable node is checked before its first use instead.

        Raises:
            WrongChain: a node belongs to another chain.
        """
        for health in self._healths:
            try:
                await self._check(health)
            except WrongChain:
                raise
            except ChainError as error:
                self._rest(health, error)

    async def ask(self, converse: Callable[[Talk], Awaitable[T]]) -> T:
        """Run `converse` with the healthy nodes in turn, and return the first valid answer.

        Args:
            converse: sends requests to one node and returns the answer. If `converse` raises InvalidInput or
                ChainError (no valid answer) or BlockGone (the node lacks the block), the next node is asked.
                If `converse` raises Reverted, TransactionRefused, LogsRefused or AnswerTooLarge, the call
                itself is at fault: the error is raised to the caller, and no other node is asked.

        Raises:
            NodeUnavailable: no node answers, or all nodes are in cool-down and no probe of a node is due.
            BlockGone: a node lacks the block, and no node gives a valid answer.
            ChainError: an answer was invalid; the text has each asked node's name and failure.
        """
        failures: list[ChainError] = []
        gone: BlockGone | None = None
        # The refusals and BlockGone are ChainErrors too: their branches have to precede the general one.
        for health in self._able():
            try:
                answer = await self._converse(health, converse)
            except _REFUSALS:
                self._well(health)
                raise
            except BlockGone as error:
                gone = error  # neither a failure, as a healthy node may lag, nor a proof of health
            except (ChainError, InvalidInput) as error:
                failures.append(self._failed(health, error))
            else:
                self._well(health)
                return answer
        if gone is not None:
            raise gone
        if not failures:
            said = "; ".join(health.said for health in self._healths)
            raise NodeUnavailable(f"every node of chain {self._chain_id} rests: {said}")
        is_away = all(isinstance(error, NodeUnavailable) for error in failures)
        raise (NodeUnavailable if is_away else ChainError)("; ".join(error.detail for error in failures))

    async def ask_others(self, name: str, converse: Callable[[Talk], Awaitable[T]]) -> list[T]:
        """Run `converse` with all healthy nodes except the node `name`, and return the valid answers.

        Args:
            converse: sends requests to one node and returns the answer, as in `ask`.
        """
        now = trio.current_time()
        answers: list[T] = []
        for health in self._healths:
            if health.node.name == name or health.rests_until > now:
                continue
            try:
                answers.append(await self._converse(health, converse))
            except (ChainError, InvalidInput) as error:
                self._failed(health, error)
            else:
                self._well(health)
        return answers

    def _able(self) -> list[_Health]:
        """List the healthy nodes; if none is healthy, the nodes in cool-down whose probe is due.

        A probe is due NODE_PROBE_S after the node's last probe or failure, unless the node is rate-limited.
        """
        now = trio.current_time()
        well = [health for health in self._healths if health.rests_until <= now]
        if well:
            return well
        probed = [
            health
            for health in self._healths
            if health.probed_at + NODE_PROBE_S <= now and health.refuses_until <= now
        ]
        for health in probed:
            health.probed_at = now
        return probed

    async def _converse(self, health: _Health, converse: Callable[[Talk], Awaitable[T]]) -> T:
        if not health.is_checked:
            await self._check(health)
        return await converse(Talk(health.node))

    async def _check(self, health: _Health) -> None:
        """Read and check a node's chain id: before its first use, and after a cool-down.

        After a cool-down, the URL may lead to another node than before.
        """
        (outcome,) = await health.node.outcomes([_CHAIN_ID])
        name = health.node.name
        if isinstance(outcome, RpcError):
            kind = NodeUnavailable if is_over_rate(outcome) else ChainError
            raise kind(f"{name}: eth_chainId: {outcome}")
        try:
            chain_id = read_quantity(outcome)
        except InvalidInput as error:
            raise ChainError(f"{name}: eth_chainId: {error.detail}") from None
        if chain_id != self._chain_id:
            raise WrongChain(f"{name}: is a node of chain {chain_id}, expected {self._chain_id}")
        health.is_checked = True

    def _well(self, health: _Health) -> None:
        health.requests += 1
        health.in_a_row = 0
        health.rests_until = health.refuses_until

    def _failed(self, health: _Health, error: ChainError | InvalidInput) -> ChainError:
        """Record a node's failure, and return the error with the node's name.

        A cool-down begins, unless the failure is a JSON-RPC error other than -32603 (internal error).
        """
        name = f"{health.node.name}: "
        named = error if isinstance(error, ChainError) else ChainError(error.detail)
        if not error.detail.startswith(name):
            named = ChainError(name + error.detail)
        if isinstance(error, NotDone) and not is_internal(error.fault):
            self._note(health, named)
        else:
            self._rest(health, named)
        return named

    def _rest(self, health: _Health, error: ChainError) -> None:
        """Start the cool-down of a node that failed.

        A further failure during the cool-down extends the cool-down only if the node sends a Retry-After
        that ends later.
        """
        self._note(health, error)
        node = health.node
        health.is_checked = False
        now = trio.current_time()
        if health.rests_until <= now:
            health.rests_until = now + rest_s(health.in_a_row, self._jitter())
            health.in_a_row += 1
        health.refuses_until = now + node.rest_s
        health.rests_until = max(health.rests_until, health.refuses_until)
        health.probed_at = now
        node.rest_s = 0.0
        node.batch_max = limits.CHAIN_BATCH_CALLS_MAX

    def _note(self, health: _Health, error: ChainError) -> None:
        health.failures += 1
        health.said = error.detail


def rest_s(failures: int, jitter: float) -> float:
    """Compute the length of a node's cool-down, in seconds; the length doubles with each failure in a row.

    Args:
        failures: failures in a row before this one.
        jitter: 0 to 1; 0 halves the cool-down.
    """
    longest_s: float = min(NODE_REST_S_MAX, NODE_REST_S * 2 ** min(failures, 16))
    return longest_s * (1 + jitter) / 2
