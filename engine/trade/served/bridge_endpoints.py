"""Endpoints that list the served lanes between chains, and the bridges with their names and icons.

Source: spec 1.22; interop.md 3.
Choice: `tokens` of a bridge route are the tokens of the destination chain that may be `destToken`: those that
    bridges deliver, and with `allowBridgeAndSwap`, for sales, also those into which makers' books there may
    swap a delivered token.
Choice: A bridge route is listed while it can be quoted: its fee is known, and makers on the origin trade the
    token that enters it.
Choice: The icon of a bridge is a `data:` URL of an SVG that ships with the venue: clients need no other host.
"""

from base64 import b64encode
from collections import defaultdict
from functools import partial
from pathlib import Path

from ....codecs.messages.delta_messages import (
    BridgeProtocol,
    BridgeProtocols,
    BridgeRoute,
    BridgeRoutes,
    BridgeRoutesQuery,
    decode_bridge_routes_query,
)
from ....codecs.messages.wire import encode
from ....config.sections.bridges import BridgeSettings
from ...host.server.routing import HttpCall, Reply
from ..api.routes import Endpoint
from .bridge_lanes import BridgeLanes, is_named

_ICONS = Path(__file__).parent / "icons"


class BridgeEndpoints:
    """HTTP endpoints GET /v2/delta/prices/bridge-routes and bridge-protocols.

    Args:
        lanes: lanes that the venue serves.
    """

    def __init__(self, lanes: BridgeLanes) -> None:
        self._lanes = lanes
        served = {lane.name: lane.settings for lane in lanes}
        self._protocols = encode(
            BridgeProtocols(
                tuple(
                    BridgeProtocol(name, settings.display_name or _name_of(settings), _icon(settings.kind))
                    for name, settings in served.items()
                )
            )
        )

    def endpoints(self) -> tuple[Endpoint, ...]:
        """Return the HTTP endpoints of the class as rows of the route table."""
        row = partial(Endpoint, method="GET", group="Quotes")
        return (
            row(
                path="/v2/delta/prices/bridge-routes",
                plain=self._routes,
                summary="The lanes between chains that Delta orders can take now",
                query=BridgeRoutesQuery,
                answer=BridgeRoutes,
            ),
            row(
                path="/v2/delta/prices/bridge-protocols",
                plain=lambda _: Reply(200, self._protocols),
                summary="The bridges that Delta orders can take",
                answer=BridgeProtocols,
            ),
        )

    def _routes(self, call: HttpCall) -> Reply:
        query = decode_bridge_routes_query(call.request.query or b"")
        named, with_swaps = query.bridges, query.allow_bridge_and_swap
        tokens: defaultdict[tuple[int, int], set[str]] = defaultdict(set)
        for lane in self._lanes.quoted(call.now_ms):
            if named is None or is_named(lane.name, named):
                brought = self._lanes.delivered(lane, with_swaps=with_swaps)
                tokens[lane.origin_chain, lane.destination_chain].update(token.text for token in brought)
        routes = [BridgeRoute(*ends, tuple(sorted(found))) for ends, found in sorted(tokens.items())]
        return Reply(200, encode(BridgeRoutes(tuple(routes))))


def _name_of(settings: BridgeSettings) -> str:
    """Name for people of a bridge whose settings give none: the protocol's, and the tier of CCTP."""
    if settings.kind == "across":
        return "Across"
    return f"CCTP, {settings.tier}" if settings.tier else "CCTP"


def _icon(kind: str) -> str:
    drawn = (_ICONS / f"{kind}.svg").read_bytes().strip()
    return f"data:image/svg+xml;base64,{b64encode(drawn).decode()}"
