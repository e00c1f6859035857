"""Framing rules for both sides: the length of a body, and whether the connection persists.

Source: RFC 9110 5.3, 7.6.1, 8.6; RFC 9112 6, 7, 9.3.
Choice: A client takes a repeated equal Content-Length, Content-Length beside `Transfer-Encoding: chunked`,
    and `chunked` in HTTP/1.0, as RFC 9112 6.1 and 6.3 allow it to; the last two end the connection.
"""

from ...config.errors import BodyTooLarge, HttpFault, UnknownMethodOrCoding
from .events import Headers

CHUNKED = -1  # in place of the length of a chunked body
UNTIL_CLOSE = -2  # in place of the length of a body that ends with the connection

_ONCE = frozenset((b"content-length", b"host"))
_LENGTH_DIGITS_MAX = 18  # leading zeros included: such a number fits 64 bits in every proxy on the way


def joined(headers: Headers) -> dict[bytes, bytes]:
    """Map each field name to its value; values of a repeated field are joined by commas.

    Raises:
        HttpFault: more than one Host or Content-Length, even equal ones.
    """
    fields = dict(headers)
    if len(fields) == len(headers):
        return fields
    fields.clear()
    for name, value in headers:
        if name in fields and name in _ONCE:
            raise HttpFault(field=name.decode(), expected="one", got="more")
        fields[name] = fields[name] + b"," + value if name in fields else value
    return fields


def body_length(fields: dict[bytes, bytes], http_minor: int, body_bytes_max: int) -> int | None:
    """Length of the body in bytes, or CHUNKED, or None if the header announces no body.

    Raises:
        HttpFault: Content-Length with Transfer-Encoding, a length that is no number, or a transfer coding
            in HTTP/1.0.
        UnknownMethodOrCoding: any transfer coding but a single `chunked`.
        BodyTooLarge: a length over `body_bytes_max`.
    """
    coding = fields.get(b"transfer-encoding")
    length = fields.get(b"content-length")
    if coding is None:
        return None if length is None else _content_length(length, body_bytes_max)
    if length is not None:
        raise HttpFault("both content-length and transfer-encoding")
    if http_minor == 0:
        raise HttpFault("HTTP/1.0 has no transfer-encoding")
    if coding.lower() != b"chunked":
        raise UnknownMethodOrCoding(field="transfer-encoding", expected="chunked", got=coding)
    return CHUNKED


def answer_length(headers: Headers, http_minor: int, body_bytes_max: int) -> tuple[int, bool]:
    """Length of an answer's body, and whether its framing allows another answer on the connection.

    A client takes what a server may not: a repeated equal Content-Length counts once, Transfer-Encoding goes
    before Content-Length and counts in HTTP/1.0 too, and a body without either ends with the connection.

    Returns:
        The length in bytes, CHUNKED or UNTIL_CLOSE; and False for a framing that readers on the way may have
        understood differently.

    Raises:
        HttpFault: different lengths, or one that is no number.
        UnknownMethodOrCoding: any transfer coding but a single `chunked` or `identity`.
        BodyTooLarge: a length over `body_bytes_max`.
    """
    codings = [value for name, value in headers if name == b"transfer-encoding"]
    lengths = {
        one.strip(b" \t") for name, value in headers if name == b"content-length" for one in value.split(b",")
    }
    coding = b",".join(codings).lower()
    if codings and coding != b"identity":
        if coding != b"chunked":
            raise UnknownMethodOrCoding(field="transfer-encoding", expected="chunked", got=coding)
        return CHUNKED, http_minor == 1 and not lengths
    if not lengths:
        return UNTIL_CLOSE, False
    if len(lengths) > 1:
        raise HttpFault(field="content-length", expected="one", got="more")
    return _content_length(lengths.pop(), body_bytes_max), True


def _content_length(value: bytes, body_bytes_max: int) -> int:
    if not value.isdigit():
        raise HttpFault(field="content-length", expected="a number of bytes", got=value)
    if len(value) > _LENGTH_DIGITS_MAX or int(value) > body_bytes_max:
        raise BodyTooLarge(expected=f"at most {body_bytes_max} bytes", got=value.decode())
    return int(value)


def has_option(connection: bytes, option: bytes) -> bool:
    """Whether `option` is an element of the joined Connection values; both in lower case."""
    return option in [element.strip(b" \t") for element in connection.split(b",")]


def persists(connection: bytes, http_minor: int) -> bool:
    """Whether the connection persists after a message, by its Connection header (joined, lower case).

    Source: RFC 9112 9.3.
    """
    if not connection:
        return http_minor == 1
    if has_option(connection, b"close"):
        return False
    return http_minor == 1 or has_option(connection, b"keep-alive")
