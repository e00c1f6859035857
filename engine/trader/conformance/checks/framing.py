"""Judges how a maker frames its answers: what clients may take and do not all take.

    seen                                          what a client must do to take it
    lines end in LF alone                         read them so
    a field folded over lines                     join the lines
    white space ahead of a colon                  drop it
    Content-Length twice, or beside chunked       choose one, and end the connection
    no length at all                              read until the connection ends: a lost end looks whole
    HTTP/1.0, or Connection: close                dial again for each request

The venue takes all of these; others refuse the answer, or quote a few round trips later.

Source: RFC 9112 2.2, 2.3, 5.1, 5.2, 6.3, 9.3.
"""

import re
from collections.abc import Iterator

from .....codecs.http1.fields import answer_end
from .....codecs.http1.framing import persists
from ..rules import Result, Said, judged

_HEAD_BYTES_MAX = 1 << 16
_spaced_colon = re.compile(rb"[^\s:]+[ \t]+:").match
_is_interim = re.compile(rb"HTTP/1\.\d 1\d\d[ \r\n]").match
_LENGTHS = (b"content-length", b"transfer-encoding")


def head_of(data: bytes) -> bytes:
    """Return an answer's head with its closing empty line, or nothing if that line has not come.

    Interim answers (1xx), as 103 Early Hints, are passed over.

    Raises:
        HeadersTooLarge: the head is too large to be one.
    """
    while _is_interim(head := data[: answer_end(data, 0, _HEAD_BYTES_MAX)]):
        data = data[len(head) :]
    return head


def judge_framing(where: str, head: bytes) -> Iterator[Result]:
    """Judge an answer's head, whose body need not have come.

    Args:
        where: name of the answer in findings, such as `GET /tokens`.
        head: status line and fields, with the closing empty line.
    """
    status_line, *lines = head.split(b"\n")[:-2]
    fields = [line for line in lines if not line.startswith((b" ", b"\t"))]
    pairs = [
        (name.strip().lower(), value.strip()) for name, _, value in (one.partition(b":") for one in fields)
    ]
    lengths = [(name, one.strip()) for name, value in pairs if name in _LENGTHS for one in value.split(b",")]
    options = b",".join(value for name, value in pairs if name == b"connection").lower()
    version = status_line[:8]
    bare = [line for line in (status_line, *lines) if not line.endswith(b"\r")]
    folds = [line for line in lines if line.startswith((b" ", b"\t"))]
    spaced = [line for line in fields if _spaced_colon(line)]
    yield judged("framing.version", version == b"HTTP/1.1", where, "HTTP/1.1", version.decode("latin-1"))
    yield judged("framing.line-ends", not bare, where, "lines that end in CRLF", _shown(bare))
    yield judged("framing.folds", not folds, where, "each field on one line", _shown(folds))
    yield judged("framing.colons", not spaced, where, "a colon right after each name", _shown(spaced))
    said = _shown([b"%b: %b" % one for one in lengths]) if lengths else Said("neither")
    yield judged("framing.length", len(lengths) == 1, where, "one Content-Length, or chunked alone", said)
    stays = bool(lengths) and persists(options, int(version != b"HTTP/1.0"))
    got: str = Said("HTTP/1.0" if lengths else "no length")
    if lengths and options:
        got = f"connection: {options.decode('latin-1')}"
    yield judged("framing.persists", stays, where, "a connection that stays open", got)


def _shown(lines: list[bytes]) -> str:
    return "; ".join(line.strip().decode("latin-1") for line in lines[:3])
