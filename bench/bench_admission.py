"""Benchmark of admission: time to find a request's caller, count its rate limit, and add three headers."""

import itertools
from collections.abc import Callable
from typing import Any

from cambist.codecs.http1 import Request
from cambist.config.secret import Secret
from cambist.config.sections.venue import ApiKey, RateTier, VenueSettings
from cambist.engine.host.admission.admission import Admission
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.host.server import HttpCall, Reply
from cambist.engine.host.server.routing import PlainHandler

CALLERS = 2_000
NOW_MS = 1_700_000_000_000
KEY = "a-key-that-was-issued"
FOREVER = RateTier(per_s=1_000_000, burst=1_000_000)


def empty(_: HttpCall) -> Reply:
    return Reply(200, b"{}")


def an_admission() -> Admission:
    settings = VenueSettings(
        rate_tiers={"public": FOREVER, "keyed": FOREVER},
        api_keys={"alice": ApiKey(secret=Secret(KEY, "env:ALICE"))},
        trusted_proxies=("10.0.0.1",),
    )
    return Admission(settings, bytes(32), Ledger())


def calls(client: str, **fields: bytes) -> Callable[[], HttpCall]:
    """Return a function that gives HTTP calls of many callers in an endless cycle.

    Args:
        client: address of the caller; `%` stands for the caller's number.
        fields: headers of the call; `_` in a name stands for `-`, and `%` in a value for the caller's number.
    """
    made = []
    for number in range(CALLERS):
        low = b"%d.%d" % divmod(number, 256)
        headers = {
            name.replace("_", "-").encode(): value.replace(b"%", low) for name, value in fields.items()
        }
        request = Request(b"GET", b"/", b"/", None, 1, [*headers.items()], keep_alive=True, fields=headers)
        made.append(HttpCall(request, client.replace("%", low.decode()), "id", NOW_MS, ()))
    return itertools.cycle(made).__next__


def measure(benchmark: Any, handler: PlainHandler, following: Callable[[], HttpCall]) -> None:
    clock = itertools.count(NOW_MS).__next__

    def once() -> Reply:
        call = following()
        call.now_ms = clock()
        return handler(call)

    reply = benchmark(once)
    assert reply.status == 200
    assert [name for name, _ in reply.headers][:1] in ([], [b"ratelimit-limit"])


def bench_empty_handler(benchmark: Any) -> None:
    """Baseline: measure the same HTTP calls to a handler without admission."""
    measure(benchmark, empty, calls("192.0.%"))


def bench_admitted_by_address(benchmark: Any) -> None:
    """Measure admission of callers without an API key, who are identified by their address."""
    measure(benchmark, an_admission().plain(empty, 1), calls("192.0.%"))
