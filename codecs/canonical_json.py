"""The canonical form of a JSON document: the input of route seals and route digests.

Two documents have the same canonical form exactly when they differ only in the order of keys, in white
space between tokens and in how their strings are escaped. Numbers keep their text, digit for digit and
letter for letter: `1`, `1.0`, `1e0` and `10e-1` are four different values, and the string `"1"` is a fifth.

The canonical form is not RFC 8785 (JCS), which passes numbers through binary floats and so takes `1.0` for
`1`; a route seal needs exact types and digits.
"""

import json
from typing import Any

import msgspec

from ..config.errors import InvalidInput
from ..config.limits import ROUTE_BYTES_MAX


def canonical(raw: bytes) -> bytes:
    """Bring a JSON document into its canonical form, over which route seals and digests are computed.

    Args:
        raw: UTF-8 JSON of at most ROUTE_BYTES_MAX bytes.

    Returns:
        The same document with keys sorted by code point, without white space, with each character of a
        string escaped in one fixed way, and with every number as it was written. `canonical` returns such a
        document unchanged.

    Raises:
        InvalidInput: not JSON, a key given twice in one object, NaN or Infinity, a lone surrogate, invalid
            UTF-8, nested beyond the interpreter's limit, or longer than ROUTE_BYTES_MAX.
    """
    if len(raw) > ROUTE_BYTES_MAX:
        raise InvalidInput(f"longer than {ROUTE_BYTES_MAX} bytes")
    # The Unicode errors come first, since both are ValueErrors. InvalidInput, which the hooks raise, is none.
    try:
        return _encode(_loads(raw.decode()))
    except UnicodeDecodeError:
        raise InvalidInput("not valid UTF-8") from None
    except UnicodeEncodeError:
        raise InvalidInput("a string holds half of a surrogate pair") from None
    except RecursionError:
        raise InvalidInput("nested too deep") from None
    except ValueError as fault:
        raise InvalidInput(f"JSON is malformed: {fault}") from None


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise InvalidInput("a key stands twice in one object")
    return members


def _not_json(name: str) -> Any:
    raise InvalidInput(f"{name} is not JSON")


_loads = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=msgspec.Raw, parse_float=msgspec.Raw, parse_constant=_not_json
).decode
_encode = msgspec.json.Encoder(order="sorted").encode
