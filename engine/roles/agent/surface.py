"""HTTP routes of an agent: POST /solve and POST /notify for a venue, status and health for the operator.

    POST /solve    signed: the orders of a round -> {"bids": [...], "notReached": [...]}, or 204
    POST /notify   signed: outcomes of bids -> {}
    GET /status    signed: counters
    GET /healthz   200 whenever the agent answers requests
    GET /readyz    200 while each chain has makers to trade with, else 503 with the reasons

The agent refuses a round of an unserved chain with 422, and a round whose contract addresses differ from the
settings' with 400.

Source: codecs.agent_messages; spec 3.10.
"""

from collections.abc import Callable, Mapping
from typing import Any

from ....codecs.messages.agent_messages import decode_notify_request, decode_solve_request
from ....codecs.messages.wire import encode
from ...host.server.gate import Gate, encode_maker_error
from ...host.server.routing import HttpCall, Reply, RouteGroup
from .solver import Solver

_NOTHING = Reply(204, b"")
_TAKEN = Reply(200, b"{}")
_HEALTHY = Reply(200, b'{"status":"ok"}')


class AgentSurface:
    """HTTP handlers of an agent's endpoints /solve, /notify, /status, /healthz and /readyz.

    Args:
        gate: verifier of the signatures of requests.
        solver: finder of the bids for /solve, which also processes the notices of /notify.
        not_ready: function that lists a message for each chain on which trading is impossible; an empty list
            means that the agent is ready.
        status: function that returns the counters for the operator.

    Attributes:
        surface: all endpoints, as a group to add to the router of an HTTP server.
        health: group of /healthz and /readyz alone, for the router of a separate health server.
    """

    def __init__(
        self,
        gate: Gate,
        solver: Solver,
        not_ready: Callable[[], list[str]],
        status: Callable[[], Mapping[str, Any]],
    ) -> None:
        self._gate = gate
        self._solver = solver
        self._not_ready = not_ready
        self._status = status
        self.surface = surface = RouteGroup(encode_maker_error)
        surface.coroutine("POST", "/solve", self.solve)
        surface.coroutine("POST", "/notify", self.notify)
        surface.plain("GET", "/status", self.status)
        self.health = RouteGroup(encode_maker_error)
        for group in (surface, self.health):
            group.plain("GET", "/healthz", self.healthy)
            group.plain("GET", "/readyz", self.ready)

    async def solve(self, call: HttpCall) -> Reply:
        """Answer POST /solve with bids and unreached orders as JSON, or with 204 if both are empty."""
        self._admit(call)
        answer = await self._solver.solve(decode_solve_request(call.request.body))
        return Reply(200, encode(answer)) if answer.bids or answer.not_reached else _NOTHING

    async def notify(self, call: HttpCall) -> Reply:
        """Answer POST /notify with `{}`, after the solver has processed the notices about bids."""
        self._admit(call)
        self._solver.told(decode_notify_request(call.request.body))
        return _TAKEN

    def status(self, call: HttpCall) -> Reply:
        """Answer GET /status with the agent's counters as JSON."""
        self._admit(call)
        return Reply(200, encode(self._status()))

    def healthy(self, _: HttpCall) -> Reply:
        """Answer GET /healthz with 200."""
        return _HEALTHY

    def ready(self, _: HttpCall) -> Reply:
        """Answer GET /readyz with 200, or with 503 and the chains that have no makers to trade with."""
        reasons = self._not_ready()
        return Reply(503 if reasons else 200, encode({"ready": not reasons, "reasons": reasons}))

    def _admit(self, call: HttpCall) -> None:
        self._gate.admit(call.request, call.request.target, call.now_ms)
