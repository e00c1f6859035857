"""HTTP routes of the operator's own listener: stop trading, resume it, read the status.

    POST /halt, POST /resume   {"scope": "all" | "chain 137" | "pair 137 WETH/USDC"}, signed
    GET  /status               stopped scopes and counters, signed
    GET  /healthz, /readyz     open; 200 or 503
    GET  /                     open; a page that signs with its user's secret (engine/console)

Requests are signed like requests to makers (spec 3.10), by a domain of `maker.admin.domains`.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Any

import msgspec

from ....codecs.messages.wire import decoder, encode
from ....config import limits
from ....config.errors import AuthError, InvalidInput, ServiceUnavailable
from ....crypto.hmac_auth import DOMAIN_HEADER
from ...host.safety.halts import NOTHING_HALTED
from ...host.safety.kill_switch import KillSwitch
from ...host.server.gate import Gate, encode_maker_error
from ...host.server.routing import HttpCall, Reply, RouteGroup
from .role import ChainRole


class Scope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Request body of /halt and /resume: the part of trading to stop or resume.

    Attributes:
        scope: `all`, a chain as `chain 137`, or a pair as `pair 137 WETH/USDC`.
    """

    scope: str


_decode_scope = decoder(Scope, bytes_max=limits.JSON_BYTES_MAX)


def published(role: ChainRole, now_ms: int) -> dict[str, Any]:
    """Return a chain's tokens and pairs, with the prices of each pair, as JSON values for the operator."""
    tokens = {
        name: {"address": token.address, "decimals": token.decimals}
        for name, token in role.settings.tokens.items()
    }
    pairs = {
        pair_id: {
            "bids": pair.grid.bids or (),
            "asks": pair.grid.asks or (),
            "updatedMs": pair.updated_ms,
            "halted": pair.halted,
            "isStale": pair.book is None or role.board.is_stale(pair, now_ms),
        }
        for pair_id, pair in role.board.pairs.items()
    }
    return {"tokens": tokens, "pairs": pairs}


def admin_surface(
    gate: Gate,
    domains: Collection[str],
    switch: KillSwitch,
    known: Mapping[int, Collection[str]],
    status: Callable[[], dict[str, Any]],
    not_ready: Callable[[], list[str]],
) -> RouteGroup:
    """Build the routes of the operator's listener: /halt, /resume, /status, /healthz and /readyz.

    Args:
        gate: checks the signatures of requests; /healthz and /readyz need no signature.
        domains: names of the signers (domains of request signatures) that may use the signed routes.
        switch: kill switch, which stops and resumes trading.
        known: chain id -> pair ids that a request to stop or resume may name.
        status: returns the JSON content of /status.
        not_ready: returns the reasons why /readyz fails; empty when the maker is ready.
    """
    allowed = {domain.encode() for domain in domains}
    surface = RouteGroup(encode_maker_error, body_bytes_max=limits.MAKER_REQUEST_BYTES_MAX)

    def admit(call: HttpCall) -> None:
        if gate.admit(call.request, call.request.target, call.now_ms) not in allowed:
            raise AuthError(DOMAIN_HEADER, "this domain is not an administrator")

    async def change(call: HttpCall) -> Reply:
        admit(call)
        scope = _decode_scope(call.request.body).scope
        act = switch.stop if call.request.path.startswith(b"/halt") else switch.resume
        try:
            # A misspelt name would stop more than it says (`Halts.within`): the endpoint refuses it.
            if reason := NOTHING_HALTED.with_scope(scope).within(known).reason:
                raise InvalidInput(reason, field="scope")
            act(scope)
        except ValueError as error:
            raise InvalidInput(str(error), field="scope") from None
        except OSError as error:  # this process has stopped all the same, if it was to stop
            raise ServiceUnavailable(f"the halt file cannot be written: {error.strerror}") from None
        return Reply(200, encode({"halted": switch.halts.text().splitlines()}))

    def show(call: HttpCall) -> Reply:
        admit(call)
        return Reply(200, encode({"halted": switch.halts.text().splitlines(), **status()}))

    def healthy(_: HttpCall) -> Reply:
        return Reply(200, b'{"status":"ok"}')

    def ready(_: HttpCall) -> Reply:
        reasons = not_ready()
        return Reply(503 if reasons else 200, encode({"ready": not reasons, "reasons": reasons}))

    surface.coroutine("POST", "/halt", change)
    surface.coroutine("POST", "/resume", change)
    surface.plain("GET", "/status", show)
    surface.plain("GET", "/healthz", healthy)
    surface.plain("GET", "/readyz", ready)
    return surface
