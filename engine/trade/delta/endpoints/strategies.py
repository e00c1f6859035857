"""The endpoint GET /v2/delta/prices/strategies/{chainId}, which lists a chain's yield strategies.

Source: spec 1.22.3; interop.md 3.
"""

from collections.abc import Mapping

from .....codecs.messages.delta_messages import Strategies
from .....codecs.messages.wire import encode
from ....host.server.routing import HttpCall, Reply
from ...api.chain_parameter import chain_in_path
from ...api.routes import Endpoint
from ...served.served_chain import ServedChains, delta_chain_at
from ..building.yield_watch import YieldWatch


class StrategyList:
    """HTTP endpoint GET /v2/delta/prices/strategies/{chainId}.

    Args:
        watches: watches of the strategies by chain id, of every served chain.
    """

    def __init__(self, chains: ServedChains, watches: Mapping[int, YieldWatch]) -> None:
        self._chains = chains
        self._watches = watches

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the endpoint, as a row of the route table."""
        return (
            Endpoint(
                method="GET",
                path="/v2/delta/prices/strategies/{chainId}",
                plain=self._strategies,
                group="Quotes",
                summary="The yield strategies of a chain, by underlying token",
                detail="A ProductiveOrder sells from a strategy's vault. `apr` is in percent.",
                answer=Strategies,
            ),
        )

    def _strategies(self, call: HttpCall) -> Reply:
        served = delta_chain_at(self._chains, chain_in_path(call.parameters[0]), "chainId")
        return Reply(200, encode(self._watches[served.chain_id].listed()))
