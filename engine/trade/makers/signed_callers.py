"""Recognises makers and agents by the signatures of their requests (spec 3.10).

The venue signs its requests to makers and agents with secrets of the settings. A maker or an agent proves by
the same secret that a request to the venue is its own.
"""

from collections.abc import Iterator, Mapping

from ....config.errors import AuthError
from ....config.sections.venue import MakerCredentials
from ....crypto.hmac_auth import RequestVerifier, decode_secret
from ...host.server.gate import Gate
from ...host.server.routing import HttpCall


class SignedCallers:
    """Callers that may sign their requests, by name.

    Args:
        credentials: each caller's credentials by its name; None for a caller without credentials.
    """

    def __init__(self, credentials: Mapping[str, MakerCredentials | None]) -> None:
        self._gates = dict(_gates(credentials))

    def name(self, call: HttpCall) -> str | None:
        """Return the name of the caller that has signed a request; None for an unsigned request.

        Raises:
            AuthError: the request carries a wrong signature.
        """
        failed = None
        for name, gate in self._gates.items():
            try:
                if gate.admit(call.request, call.request.target, call.now_ms) is not None:
                    return name
            except AuthError as error:
                failed = error
        if failed is not None:
            raise failed
        return None


def _gates(credentials: Mapping[str, MakerCredentials | None]) -> Iterator[tuple[str, Gate]]:
    """Yield (name, gate that verifies the caller's signed requests) for each caller with credentials.

    Each caller has a gate of its own, since two callers may have the same domain and access key.
    """
    for name, known in credentials.items():
        if known is not None:
            secret = decode_secret(known.secret.reveal(), known.secret_encoding)
            yield name, Gate(RequestVerifier({known.domain: [(known.access_key, secret)]}), "optional")
