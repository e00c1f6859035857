"""Stage of the answers' framing, which is read from raw bytes: a client's parser hides what it forgives."""

from .....config.errors import HeadersTooLarge
from ..checks.framing import head_of, judge_framing
from ..checks.hostile import Aim
from ..session import Session

_RESOURCES = ("tokens", "prices")


async def check_framing(session: Session) -> None:
    """Read two resources on connections of their own, and judge the heads of the answers."""
    aim = Aim(session.prefix, session.probe.place.host_header, session.probe.signed, b"{}")
    for name in _RESOURCES:
        answer = await session.probe.raw(aim.get(name), _has_head, session.options.timeout_s)
        try:
            head = head_of(answer.data)
        except HeadersTooLarge as error:
            session.lack(f"GET /{name}: {error}", "framing")
            continue
        if head:
            session.add(judge_framing(f"GET /{name}", head))
        else:
            session.lack(f"GET /{name}: {answer.said}", "framing")


def _has_head(data: bytes) -> bool:
    try:
        return bool(head_of(data))
    except HeadersTooLarge:
        return True
