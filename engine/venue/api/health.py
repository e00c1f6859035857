"""Whether the process lives, whether it can serve, and its metrics.

    GET /healthz   200 while requests are answered at all
    GET /readyz    200, or 503 with the reasons
    GET /metrics   Prometheus; for this machine alone, unless the settings say otherwise

Source: design, "Sight".
Choice: a request that came through a proxy, by its headers, is not this machine's, whoever the other side is.
Choice: to others /metrics does not exist: 404.
"""

from collections.abc import Callable

import trio
from msgspec import Struct

from ....codecs.wire import encode
from ....config.errors import PathNotFound
from ...admission.admission import is_local
from ...server.routing import Call, Reply
from ...telemetry.metrics import CONTENT_TYPE, Metrics


class Healthy(Struct, frozen=True):
    """GET /healthz, response."""

    status: str


class Readiness(Struct, frozen=True):
    """GET /readyz, response."""

    ready: bool
    reasons: tuple[str, ...]


class Health:
    """The three handlers; `metrics` is a coroutine, the others are plain.

    Args:
        not_ready: reasons why nothing can be served; none when it can.
        metrics: what /metrics tells.
        open_to_all: whether it tells everybody.
    """

    def __init__(self, *, not_ready: Callable[[], list[str]], metrics: Metrics, open_to_all: bool) -> None:
        self._not_ready = not_ready
        self._metrics = metrics
        self._open_to_all = open_to_all

    def healthy(self, _: Call) -> Reply:
        """GET /healthz."""
        return Reply(200, encode(Healthy("ok")))

    def ready(self, _: Call) -> Reply:
        """GET /readyz."""
        reasons = tuple(self._not_ready())
        return Reply(503 if reasons else 200, encode(Readiness(not reasons, reasons)))

    async def metrics(self, call: Call) -> Reply:
        """GET /metrics."""
        if not self._open_to_all and not is_local(call):
            raise PathNotFound
        families = []
        for family in self._metrics.render():
            families.append(family)
            await trio.lowlevel.checkpoint()
        return Reply(200, b"".join(families), content_type=CONTENT_TYPE)
