"""GET /metrics: the metrics of a process in the text format of Prometheus, for this machine or for all.

A request with a proxy's headers never counts as local. A client that may not read the metrics gets 404.

Source: Prometheus text exposition format.
"""

from functools import partial

import trio

from ....config.errors import PathNotFound
from ...host.admission.admission import is_local
from ...host.server.gate import encode_maker_error
from ...host.server.routing import HttpCall, Reply, RouteGroup
from .metrics import CONTENT_TYPE, Metrics


async def metrics_reply(metrics: Metrics, call: HttpCall, *, open_to_all: bool) -> Reply:
    """Answer GET /metrics; other tasks run between the families of metrics.

    Args:
        open_to_all: whether clients on other machines may read the metrics.

    Raises:
        PathNotFound: only clients on this machine may read the metrics, and this client is on another.
    """
    if not open_to_all and not is_local(call):
        raise PathNotFound
    families = []
    for family in metrics.render():
        families.append(family)
        await trio.lowlevel.checkpoint()
    return Reply(200, b"".join(families), content_type=CONTENT_TYPE)


def metrics_group(metrics: Metrics, *, open_to_all: bool) -> RouteGroup:
    """Return the route GET /metrics of a maker or an agent, as a group to mount in a router.

    Args:
        open_to_all: whether clients on other machines may read the metrics.
    """
    group = RouteGroup(encode_maker_error)
    group.coroutine("GET", "/metrics", partial(metrics_reply, metrics, open_to_all=open_to_all))
    return group
