"""HTTP endpoints of the operator: the counters of all parts of the venue, and the stop switch of makers.

    GET  /operator/status                  counters, as at the moment of the request; wei as decimal text
    POST /operator/makers/{makerName}          {"act": "exclude" | "release", "chainId": 1 or null}

Both need an operator's API key (`operator = true`). An act writes the file of `cambist makers`, so that it
survives a restart, and other processes of the same state directory follow it.

Choice: An operator's API key serves as the token of the administrator: a second kind of secret would protect
    no more.
"""

from collections.abc import Callable, Mapping
from typing import Any, Literal

from msgspec import Struct

from ....codecs.messages.vocabulary import ChainId
from ....codecs.messages.wire import decoder, encode
from ....config import limits
from ....config.errors import InvalidInput, ServiceUnavailable
from ....config.sections.venue import VenueMaker
from ...host.safety.maker_rules import MakerRules
from ...host.server.routing import HttpCall, Reply
from ..api.routes import Endpoint
from ..served.served_chain import ServedChain


class MakerAct(Struct, frozen=True, rename="camel", kw_only=True):
    """Body of POST /operator/makers/{makerName}.

    Attributes:
        act: `exclude` leaves the maker out of routes at once; `release` admits it again and clears its
            faults.
        chain_id: the chain to act on; null or absent for all chains.
    """

    act: Literal["exclude", "release"]
    chain_id: ChainId | None = None


class ExcludedMakers(Struct, frozen=True):
    """Answer of POST /operator/makers/{makerName}: a line for each exclusion in force."""

    excluded: tuple[str, ...]


_decode_act = decoder(MakerAct, bytes_max=limits.JSON_BYTES_MAX)


def chain_status(served: ServedChain) -> dict[str, Any]:
    """Return the counters of a chain's nodes, gas prices, firm quotes, makers and their reserved stock."""
    return {
        "away": served.pulse.fault,
        "head": served.pulse.head_number,
        "gas": served.gas.statistics(),
        "firm": served.desk.statistics(),
        "stock": served.desk.stock.greatest(served.desk.wall_ms()),
        "firmDurations": {name: maker.durations for name, maker in served.desk.makers.items()},
        "makers": {maker: feed.statistics() for maker, feed in served.feeds.items()},
    }


def _exact(value: Any) -> Any:
    """Return a JSON value in which amounts of wei (`*_wei`), which exceed JSON's safe integers, are texts."""
    if isinstance(value, list | tuple):
        return [_exact(inner) for inner in value]
    if not isinstance(value, dict):
        return value
    return {
        key: str(inner) if key.endswith("_wei") and isinstance(inner, int) else _exact(inner)
        for key, inner in value.items()
    }


class Operation:
    """HTTP endpoints of the operator.

    Args:
        status: returns the counters of all parts of the venue, as JSON values.
        makers: configured makers by name.
        change_rules: applies a change to the file of makers' rules, and returns the rules in force.
        check_operator: refuses, by an error, a request without an operator's API key.
    """

    def __init__(
        self,
        status: Callable[[], dict[str, Any]],
        makers: Mapping[str, VenueMaker],
        change_rules: Callable[[Callable[[MakerRules], MakerRules]], MakerRules],
        check_operator: Callable[[HttpCall], None],
    ) -> None:
        self._status = status
        self._makers = makers
        self._change_rules = change_rules
        self._check = check_operator

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints of the operator, as rows of the route table."""
        return (
            Endpoint(
                method="GET",
                path="/operator/status",
                coroutine=self._show,
                needs_key=True,
                group="Operation",
                summary="Counters of all parts of the venue; for operators",
                answer=dict[str, Any],
            ),
            Endpoint(
                method="POST",
                path="/operator/makers/{makerName}",
                coroutine=self._act,
                needs_key=True,
                group="Operation",
                summary="Leave a maker out of routes, or admit it again; for operators",
                body=MakerAct,
                answer=ExcludedMakers,
            ),
        )

    async def _show(self, call: HttpCall) -> Reply:
        self._check(call)
        return Reply(200, encode(_exact(self._status())))

    async def _act(self, call: HttpCall) -> Reply:
        self._check(call)
        (name,) = call.parameters
        act = _decode_act(call.request.body)
        if name not in self._makers:
            raise InvalidInput(field="makerName", expected="a maker of GET /makers/scores", got=name)
        if act.chain_id is not None and act.chain_id not in self._makers[name].chains:
            raise InvalidInput(field="chainId", expected=f"a chain of {name}", got=act.chain_id)

        def changed(rules: MakerRules) -> MakerRules:
            if act.act == "exclude":
                return rules.excluding(name, act.chain_id)
            return rules.releasing(name, act.chain_id, call.now_ms)

        try:
            rules = self._change_rules(changed)
        except ValueError as error:
            raise InvalidInput(str(error), field="chainId") from None
        except OSError as error:
            raise ServiceUnavailable(f"the file of makers cannot be written: {error.strerror}") from None
        return Reply(200, encode(ExcludedMakers(tuple(rules.lines()))))
