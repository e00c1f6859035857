"""Checks of a maker by plain HTTP requests: four GET endpoints, errors, authentication, withdrawn pairs."""

from collections.abc import Iterator, Mapping
from itertools import chain

from .....crypto.hmac_auth import TIMESTAMP_HEADER
from ..checks.auth import (
    Credentials,
    Plain,
    Tampering,
    judge_signed,
    judge_tampering,
    sign,
    tamperings,
    unsigned,
)
from ..checks.life import judge_retirements
from ..checks.resources import RESOURCES, judge_contents, judge_resource
from ..exchange import HttpExchange, judge_refusal
from ..rules import Result, judged
from ..session import Session


async def check_endpoints(session: Session) -> None:
    """Fetch /tokens, /pairs, /prices and /blacklist, and judge each answer and each of its entries."""
    snapshot = await session.take_snapshot()
    for name, exchange in snapshot.items():
        session.add(judge_resource(name, exchange))
    session.add(judge_contents(snapshot))
    if session.wants("resources.query") and snapshot["prices"].succeeded:
        exchange = await session.probe.get("prices?cambist=check")
        session.add([judged("resources.query", exchange.succeeded, exchange.where, "200", exchange.said)])


async def check_errors(session: Session) -> None:
    """Judge answers to an unknown path and wrong methods, which must be errors, and to HEAD and OPTIONS."""
    prefix, send = session.prefix, session.probe.send
    unknown = await send("GET", f"{prefix}/cambist-check-unknown")
    session.add(judge_refusal("errors.unknown-path", unknown, "no such path"))
    for method, name in (("POST", "tokens"), ("DELETE", "prices"), ("GET", "firm"), ("PUT", "firm")):
        exchange = await send(method, f"{prefix}/{name}", b"{}" if method in ("POST", "PUT") else b"")
        session.add(judge_refusal("errors.wrong-method", exchange, "wrong method"))
    for method in ("HEAD", "OPTIONS"):
        exchange = await send(method, f"{prefix}/prices")
        session.add(_judge_quiet(f"errors.{method.lower()}", exchange))


def _judge_quiet(check: str, exchange: HttpExchange) -> Iterator[Result]:
    """Judge an answer to HEAD or OPTIONS: any complete answer with a status below 500, or 501, passes."""
    held = not exchange.failure and (exchange.status < 500 or exchange.status == 501)
    yield judged(check, held, exchange.where, "an answer below 500, or 501", exchange.said)


async def check_authentication(session: Session) -> None:
    """Judge the answers to correctly signed requests and to requests with altered authentication headers."""
    credentials = session.options.credentials
    if credentials is None:
        session.skip("no credentials are given: --domain, --access-key, --secret", "auth")
        return
    await _check_signed(session)
    target = session.auth_target()
    for accepted in (True, False):  # no list: each case is signed when it is taken from the iterator
        for case in chain(unsigned(target), tamperings(credentials, target, session.probe.now_ms)):
            if case.accepted is accepted:
                await _try(session, credentials, case)
    session.add(judge_signed("after everything refused", await session.probe.get("prices")))
    if not target.prefix:
        session.skip("the base URL has no path", "auth.prefix-stripped")
    if target.firm is None:
        session.lack("no quote was given to start from", "auth.body-swapped", "auth.body-raw")


async def _check_signed(session: Session) -> None:
    for name in RESOURCES:
        session.add(judge_signed(f"GET /{name}", await session.probe.get(name)))
    asking = await session.find_good()
    if asking is not None:
        session.add(judge_signed("POST /firm", await session.send_firm(asking)))


async def _try(session: Session, credentials: Credentials, case: Tampering) -> None:
    if not session.wants(case.check, "auth.specific", "auth.no-leak"):
        return
    request = case.request
    exchange = await session.probe.send(request.method, request.target, request.body, case.headers)
    right = _right_signature(credentials, request, case.headers)
    session.add(judge_tampering(case, exchange, right))


def _right_signature(credentials: Credentials, request: Plain, headers: Mapping[str, str]) -> str:
    """Return the correct signature of a request at the timestamp of these headers."""
    timestamp = headers.get(TIMESTAMP_HEADER, "0")
    at_ms = int(timestamp) if timestamp.isdigit() else 0
    return list(sign(credentials, request, at_ms).values())[-1]


async def check_life(session: Session) -> None:
    """Fetch the four GET endpoints a last time, and judge the removal of pairs during the run."""
    await session.take_snapshot()
    session.add(judge_retirements(session.sightings))
