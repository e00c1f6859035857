"""Stage of hostile requests; it comes late in the run, since a maker may not survive them."""

import re

from ..checks.hostile import (
    PIPELINED,
    Aim,
    Hostile,
    halves,
    hostile_cases,
    judge_half,
    judge_hostile,
    judge_pipelined,
    judge_split,
    judge_survival,
)
from ..probe import ProbeConnection
from ..rules import Said
from ..session import Session

_has_status = re.compile(rb"HTTP/1\.[01] [1-5][0-9]{2}.*\r\n").match


async def check_hostile(session: Session) -> None:
    """Send each hostile request on a new connection, then an ordinary request, and judge both answers."""
    good = await session.find_good()
    probe = session.probe
    aim = Aim(session.prefix, probe.place.host_header, probe.signed, good.raw if good else b"{}")
    await _check_order(session, aim)
    for half in halves(aim):
        if session.wants(half.check) and not await _hold(session, half):
            return
    for case in hostile_cases(aim, session.options.seed):
        if not session.wants(case.check, "hostile.survives"):
            continue
        bound_s = session.options.timeout_s
        answer = await probe.raw(case.payload, _is_answered, bound_s)
        session.add(judge_hostile(case, answer, bound_s))
        if not await _survived(session, case):
            return


def _is_answered(data: bytes) -> bool:
    return _has_status(data) is not None


async def _survived(session: Session, case: Hostile) -> bool:
    """Send an ordinary request after a hostile one, and judge the answer.

    Returns:
        Whether the maker answered with success; if False, the checks that are left become gaps.
    """
    async with ProbeConnection(session.probe) as line:
        exchange = await line.send("GET", f"{session.prefix}/tokens")
    session.add(judge_survival(f"after {case.what}", alive=exchange.succeeded, said=exchange.said))
    if not exchange.succeeded:
        session.lack(f"the maker did not survive: {case.what}", "hostile", "life")
    return exchange.succeeded


async def _hold(session: Session, half: Hostile) -> bool:
    """Leave a request unfinished, and judge the answer to an ordinary request on another connection.

    Returns:
        Whether the maker still answers after the unfinished request.
    """
    try:
        async with session.probe.holding(half.payload), ProbeConnection(session.probe) as line:
            exchange = await line.send("GET", f"{session.prefix}/tokens")
    except OSError as error:
        session.add(judge_half(half, alive=False, said=Said(f"no connection: {error}")))
    else:
        session.add(judge_half(half, alive=exchange.succeeded, said=exchange.said))
    return await _survived(session, half)


async def _check_order(session: Session, aim: Aim) -> None:
    """Judge the answers to pipelined requests and to a request sent byte by byte, all correctly signed."""
    probe, bound_s = session.probe, session.options.timeout_s
    if session.wants("hostile.pipelined"):
        payload, count = b"".join(aim.get(name) for name in PIPELINED), len(PIPELINED)
        answer = await probe.raw(payload, _has_all, bound_s * count, requests=count)
        session.add(judge_pipelined(answer))
    if session.wants("hostile.split-request"):
        session.add(judge_split(await probe.raw(aim.get("tokens"), _is_answered, bound_s, piece_bytes=1)))


def _has_all(data: bytes) -> bool:
    return all(b'"%b"' % name.encode() in data for name in PIPELINED)
