"""Admission of signed requests at makers and agents, and the body of a refusal.

Requests are verified over their raw bytes before their bodies are decoded.

Source: spec 3.10.
"""

from ....codecs.http1 import Request
from ....codecs.messages.resource_messages import maker_error_body
from ....codecs.messages.wire import encode
from ....config.errors import CambistError
from ....config.sections.maker import AuthMode
from ....crypto.hmac_auth import (
    ACCESS_KEY_HEADER,
    DOMAIN_HEADER,
    SIGNATURE_HEADER,
    TIMESTAMP_HEADER,
    RequestVerifier,
)

_DOMAIN, _ACCESS_KEY, _TIMESTAMP, _SIGNATURE = (
    name.lower().encode() for name in (DOMAIN_HEADER, ACCESS_KEY_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
)


def encode_maker_error(error: CambistError, request_id: str) -> bytes:  # noqa: ARG001  it is in the headers
    """Encode an error as the JSON body `{"error": ...}` that makers and agents answer."""
    return encode(maker_error_body(error))


class Gate:
    """Admits requests to a maker or agent by their HMAC signature.

    Args:
        verifier: checks the signatures.
        mode: `required`, `optional` (an unsigned request is admitted too) or `off` (every request is
            admitted).
    """

    def __init__(self, verifier: RequestVerifier, mode: AuthMode) -> None:
        self._verify = verifier.verify
        self._mode = mode

    def admit(self, request: Request, target: bytes, now_ms: int) -> bytes | None:
        """Verify the signature of a request; return the authentication domain that has signed it.

        Args:
            target: the signed target: path and query, or the path alone for a WebSocket handshake.
            now_ms: wall clock, Unix milliseconds.

        Returns:
            The domain; None if the mode is `off`, or if it is `optional` and the request is unsigned.

        Raises:
            AuthError: the signature is missing or wrong.
        """
        if self._mode == "off":
            return None
        fields = request.fields
        domain, access_key = fields.get(_DOMAIN), fields.get(_ACCESS_KEY)
        timestamp, signature = fields.get(_TIMESTAMP), fields.get(_SIGNATURE)
        if self._mode == "optional" and domain is access_key is timestamp is signature is None:
            return None
        return self._verify(
            domain, access_key, timestamp, signature, request.method, target, request.body, now_ms
        )
