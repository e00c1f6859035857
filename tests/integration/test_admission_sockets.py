"""Rate limits, keys, health and metrics as a client on a socket sees them."""

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families

from cambist.codecs.http1 import Response
from cambist.config.sections.venue import RateTier
from cambist.engine.host.admission.admission import Admission
from cambist.engine.host.server import RouteGroup, Router
from cambist.engine.roles.telemetry.metrics import Metrics, admission_families
from cambist.engine.roles.venue.health import HealthEndpoints, Readiness
from cambist.engine.trade.api.routes import encode_trading_error
from support.server.server_harness import answers, field, hello, serving, slow_echo
from support.venue.admitting import ALICE_KEY, an_admission

PROXY = "127.0.0.1"


def a_venue(
    admission: Admission, *, reasons: tuple[str, ...] = (), metrics_open: bool = False
) -> tuple[Router, Metrics]:
    """Plain and coroutine routes behind admission; the health endpoints are outside it."""
    metrics = Metrics()
    metrics.add(admission_families, admission.statistics)

    async def readiness() -> Readiness:
        return Readiness(not reasons, reasons)

    health = HealthEndpoints(readiness=readiness, metrics=metrics, open_to_all=metrics_open)
    surface = RouteGroup(encode_trading_error)
    surface.plain("GET", "/quote", admission.plain(hello, 1))
    surface.coroutine("GET", "/slow", admission.coroutine(slow_echo, 2))
    surface.plain("GET", "/healthz", health.healthy)
    surface.coroutine("GET", "/readyz", health.ready)
    surface.coroutine("GET", "/metrics", health.metrics)
    router = Router(encode_trading_error)
    router.mount(surface)
    return router, metrics


def get(path: bytes, *headers: bytes, last: bool = False) -> bytes:
    lines = (
        b"GET %b HTTP/1.1" % path,
        b"Host: localhost",
        *headers,
        *((b"Connection: close",) if last else ()),
    )
    return b"\r\n".join((*lines, b"", b""))


async def asked(router: Router, *requests: bytes, reactor: bool = True) -> list[Response]:
    """The answers to requests on one connection; the last closes it."""
    async with serving(router, reactor=reactor) as served:
        return answers(await served.converse(*requests))


@pytest.mark.parametrize("reactor", [True, False], ids=["reactor", "tasks"])
async def test_an_address_has_its_burst_and_is_then_told_when_to_come_back(reactor: bool) -> None:
    router, _ = a_venue(an_admission(public=RateTier(per_s=0.5, burst=3)))
    found = await asked(
        router, get(b"/quote"), get(b"/slow"), get(b"/quote"), get(b"/healthz", last=True), reactor=reactor
    )
    assert [answer.status for answer in found] == [200, 200, 429, 200]
    assert [field(answer, b"ratelimit-remaining") for answer in found] == [b"2", b"0", b"0", None]
    refused = found[2]
    assert field(refused, b"retry-after") == b"2"
    assert field(refused, b"ratelimit-limit") == b"3"
    assert field(refused, b"ratelimit-reset") == b"6"
    body = msgspec.json.decode(refused.body)
    assert body["errorType"] == "RateLimited"
    assert body["details"] == body["error"] == body["description"] == "rate limit exceeded: retry in 2 s"
    assert body["requestId"] == field(refused, b"x-request-id").decode()  # type: ignore[union-attr]


async def test_an_unknown_key_counts_as_none_and_is_told() -> None:
    router, _ = a_venue(an_admission(public=RateTier(per_s=1, burst=2)))
    found = await asked(
        router,
        get(b"/quote", b"X-API-KEY: guess"),
        get(b"/quote"),
        get(b"/quote", b"X-API-KEY: guess", last=True),
    )
    assert [answer.status for answer in found] == [200, 200, 429]
    assert [field(answer, b"x-api-key-status") for answer in found] == [b"unknown", None, b"unknown"]
    assert field(found[0], b"ratelimit-remaining") == b"1"


async def test_a_key_has_a_limit_of_its_own_and_a_wrong_one_none() -> None:
    router, _ = a_venue(an_admission(public=RateTier(per_s=1, burst=2), unknown_api_keys="refuse"))
    key = b"X-Api-Key: %b" % ALICE_KEY.encode()
    found = await asked(
        router,
        get(b"/quote", b"X-API-KEY: guess"),
        get(b"/quote"),
        get(b"/quote"),
        *[get(b"/quote", key)] * 5,
        get(b"/quote", key, last=True),
    )
    assert [answer.status for answer in found] == [401, 200, 429, 200, 200, 200, 200, 200, 429]
    assert [field(answer, b"ratelimit-limit") for answer in found] == [b"2"] * 3 + [b"5"] * 6
    unknown = msgspec.json.decode(found[0].body)
    assert unknown["errorType"] == "Unauthorized"
    assert unknown["details"] == "X-API-KEY: unknown key"
    assert all(b"guess" not in answer.body for answer in found)


async def test_behind_a_trusted_proxy_each_address_counts_alone() -> None:
    router, _ = a_venue(an_admission(trusted_proxies=(PROXY,), public=RateTier(per_s=1, burst=1)))
    one, other = b"X-Forwarded-For: 9.9.9.9, 192.0.2.1", b"X-Forwarded-For: 192.0.2.2"
    found = await asked(
        router, get(b"/quote", one), get(b"/quote", one), get(b"/quote", other), get(b"/quote", last=True)
    )
    assert [answer.status for answer in found] == [200, 429, 200, 200]


async def test_nobody_else_is_believed() -> None:
    router, _ = a_venue(an_admission(public=RateTier(per_s=1, burst=1)))
    found = await asked(
        router,
        get(b"/quote", b"X-Forwarded-For: 192.0.2.1"),
        get(b"/quote", b"X-Forwarded-For: 192.0.2.2", last=True),
    )
    assert [answer.status for answer in found] == [200, 429]


@pytest.mark.parametrize(
    ("reasons", "status"), [((), 200), (("chain 1: no maker has a live book",), 503)], ids=["ready", "not"]
)
async def test_ready_says_why_not_and_healthy_is_not_ready(reasons: tuple[str, ...], status: int) -> None:
    router, _ = a_venue(an_admission(), reasons=reasons)
    healthy, ready = await asked(router, get(b"/healthz"), get(b"/readyz", last=True))
    assert healthy.status == 200
    assert ready.status == status
    assert msgspec.json.decode(ready.body) == {"ready": not reasons, "reasons": list(reasons)}


async def test_metrics_are_read_on_this_machine_alone() -> None:
    router, _ = a_venue(an_admission(trusted_proxies=(PROXY,)))
    rebound = b"GET /metrics HTTP/1.1\r\nHost: page.example:8081\r\n\r\n"
    here, elsewhere, forwarded = await asked(
        router,
        get(b"/metrics"),
        rebound,
        get(b"/metrics", b"X-Forwarded-For: 127.0.0.1", last=True),
    )
    assert (here.status, elsewhere.status, forwarded.status) == (200, 404, 404)
    assert (field(here, b"content-type") or b"").startswith(b"text/plain")
    families = {family.name for family in text_string_to_metric_families(here.body.decode())}
    assert {"cambist_admitted", "cambist_rate_limited", "process_cpu_seconds"} <= families


async def test_metrics_are_open_where_the_settings_say_so() -> None:
    router, _ = a_venue(an_admission(), metrics_open=True)
    (found,) = await asked(router, get(b"/metrics", b"Via: 1.1 proxy", last=True))
    assert found.status == 200


async def test_what_was_refused_shows_in_the_metrics() -> None:
    router, _ = a_venue(an_admission(public=RateTier(per_s=1, burst=1)))
    *_, metrics = await asked(router, get(b"/quote"), get(b"/quote"), get(b"/metrics", last=True))
    assert b'cambist_rate_limited_total{tier="public"} 1.0\n' in metrics.body
