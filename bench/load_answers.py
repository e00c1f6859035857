"""Fast parsing of HTTP answers of any server, for load generators."""

_HEAD_END = b"\r\n\r\n"
_LENGTH = b"content-length:"


class AnswerFault(Exception):
    """Error: the received bytes are no HTTP answer with a Content-Length."""


def take_answer(data: bytes, start: int) -> tuple[int, bytes, int] | None:
    """Parse the HTTP answer that begins at `start`; None while its bytes are incomplete.

    Returns:
        (status, body, offset of the next answer).

    Raises:
        AnswerFault: the bytes are no HTTP answer with a Content-Length.
    """
    head_end = data.find(_HEAD_END, start)
    if head_end < 0:
        return None
    head = data[start:head_end].lower()
    at = head.find(_LENGTH)
    if at < 0 or not head.startswith(b"http/1.1 "):
        raise AnswerFault(f"not an answer with a length: {head[:200]!r}")
    line_end = head.find(b"\r\n", at)
    length = int(head[at + len(_LENGTH) : line_end if line_end > 0 else len(head)])
    body_start = head_end + len(_HEAD_END)
    end = body_start + length
    return (int(head[9:12]), data[body_start:end], end) if end <= len(data) else None
