"""Examples of the API's documents: requests and answers of a venue, as `make examples` has recorded them.

Lists in recorded answers are cut to their first entries. Parameters that name chains, tokens and accounts
have examples of the serving venue instead, so that a reader can send them (`Reference`).
"""

from functools import cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import UNSET, Struct, UnsetType

_FILE = Path(__file__).parent / "examples.json"


class OperationExample(Struct, frozen=True, omit_defaults=True):
    """An accepted request of an operation and its answer.

    Attributes:
        answer: JSON value of the answer; text if the answer is not JSON.
        body: JSON value of the request's body.
    """

    answer: Any
    body: Any | UnsetType = UNSET


class Examples(Struct, frozen=True):
    """Recorded examples of the whole API.

    Attributes:
        parameters: name of a path's placeholder -> value.
        operations: operation id -> example.
        messages: operation id of a stream -> name of a message -> JSON value of the message.
    """

    parameters: dict[str, Any]
    operations: dict[str, OperationExample]
    messages: dict[str, dict[str, Any]]


@cache
def recorded_examples() -> Examples:
    """Read the recorded examples; callers must not change them."""
    return msgspec.json.decode(_FILE.read_bytes(), type=Examples)
