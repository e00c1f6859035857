"""Seal a Market route with its `hmac`, and check that a returned route is unchanged and recent.

    seal = 16 hex digits of the time of issue (ms)
        || 64 hex digits of HMAC-SHA256(key, time digits || canonical || carried digits)
        || hex digits of the carried bytes

The seal covers the canonical bytes of a JSON object (`codecs.canonical_json` makes them) and the carried
bytes. The seal contains the carried bytes because clients send back only the members that they know, and
`hmac` is such a member. The object ends at the last brace of the message, so that no byte moves between the
object and the carried digits.
Several venue processes share the key; a previous key may stay valid while routes sealed with it are in use.

Source: spec 1.8.21 and 1.8.22, 1.25.50, 1.25.52.
Choice: A Market route's `hmac` covers the canonical route (key order free, types and digits exact) and
    carries the route's time and price terms: clients need only the documented members. A route of over 30 s
    is `Stale priceRoute`, a changed one `Invalid priceRoute`.
"""

from collections.abc import Sequence
from hmac import compare_digest

from ..config import limits
from ..config.errors import InvalidPriceRoute, StalePriceRoute
from .hmac_auth import HmacKey

_TIME_DIGITS = 16
_SEAL_CHARS = _TIME_DIGITS + 64
_HEX_DIGITS = frozenset("0123456789abcdef")


class RouteSeal:
    """Seal of Market routes: makes a route's `hmac`, and checks the `hmac` of a returned route.

    Args:
        keys: secret bytes; the first key seals, every key is tried in a check.
    """

    def __init__(self, keys: Sequence[bytes]) -> None:
        if not keys:
            raise ValueError("a route seal needs a key")
        self._keys = tuple(HmacKey(key) for key in keys)

    def seal(self, canonical: bytes, now_ms: int, carried: bytes = b"") -> str:
        """Make the `hmac` of a route.

        Args:
            canonical: canonical JSON of the route's sealed members.
            now_ms: time of the seal, Unix milliseconds.
            carried: further bytes, which the seal contains and protects; anyone can read them.
        """
        time, tail = f"{now_ms:016x}", carried.hex()
        return time + self._keys[0].hex_digest(time.encode() + canonical + tail.encode()) + tail

    def check(self, canonical: bytes, seal: object, now_ms: int) -> int:
        """Check the seal of a returned route: its authenticity first, then its age.

        Args:
            canonical: canonical JSON of the route's sealed members, as returned.
            seal: the route's `hmac`.
            now_ms: wall clock, Unix milliseconds.

        Returns:
            Time at which the seal was made, Unix milliseconds.

        Raises:
            InvalidPriceRoute: the seal is malformed, or was made with another key or for another route.
            StalePriceRoute: the seal was made more than ROUTE_FRESH_MS ago.
        """
        if not isinstance(seal, str) or len(seal) < _SEAL_CHARS or not _HEX_DIGITS.issuperset(seal):
            raise InvalidPriceRoute(field="hmac", expected="the value issued with the route")
        time, digest, tail = seal[:_TIME_DIGITS], seal[_TIME_DIGITS:_SEAL_CHARS], seal[_SEAL_CHARS:]
        message = time.encode() + canonical + tail.encode()
        if not any(compare_digest(key.hex_digest(message), digest) for key in self._keys):
            raise InvalidPriceRoute("the route differs from the route of its hmac")
        # No lower bound: the HMAC proves the time, and the process that sealed may have a faster clock.
        issued_ms = int(time, 16)
        age_ms = now_ms - issued_ms
        if age_ms > limits.ROUTE_FRESH_MS:
            raise StalePriceRoute(f"issued {age_ms} ms ago, at most {limits.ROUTE_FRESH_MS} ms are allowed")
        return issued_ms

    @staticmethod
    def carried(seal: str) -> bytes:
        """Extract the `carried` bytes of a seal; call it only for seals that `check` has passed."""
        return bytes.fromhex(seal[_SEAL_CHARS:])
