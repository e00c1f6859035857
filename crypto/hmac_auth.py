"""HMAC request signatures between service and market maker: sign, and verify over the raw bytes.

    payload   = timestamp_ms || METHOD || path and query exactly as sent || body exactly as sent
    signature = lower-case hex of HMAC-SHA256(secret, payload)

A WebSocket handshake signs method GET and the path alone: no query, no body. The path includes any prefix; a
maker behind a proxy that adds a prefix sets `strip_prefix` (choices.md#makers-at-the-venue).

Verification comes before decoding and compares in constant time. A refusal names the header at fault and the
reason, without the secret and without the correct signature. The SHA-256 states after a key's two HMAC
blocks are computed once: copying them for each request takes half the time of `hmac.digest`.

Source: spec 3.10.
Choice: Identical requests in one millisecond are legitimate, so the replay window is off by default; switched
    on, it refuses a repeated signature on POST alone.
Choice: The signed path includes any prefix of the URL; the setting `strip_prefix` removes one before
    verification.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from fractions import Fraction
from hashlib import sha256
from hmac import compare_digest
from typing import NoReturn

from ..config import limits
from ..config.error_text import shown
from ..config.errors import AuthError, ConfigError
from ..config.secret import SecretEncoding

DOMAIN_HEADER = "X-AUTH-DOMAIN"
ACCESS_KEY_HEADER = "X-AUTH-ACCESS-KEY"
TIMESTAMP_HEADER = "X-AUTH-TIMESTAMP"
SIGNATURE_HEADER = "X-AUTH-SIGNATURE"

_BLOCK_BYTES = 64
_INNER_PAD = bytes(byte ^ 0x36 for byte in range(256))
_OUTER_PAD = bytes(byte ^ 0x5C for byte in range(256))
_TIMESTAMP_DIGITS_MAX = 16
_TOLERANCE_MS = limits.AUTH_TOLERANCE_MS
_OTHER_UNITS = {"seconds": Fraction(1_000), "microseconds": Fraction(1, 1_000)}
"""Unit in which a client may send the signed timestamp by mistake -> milliseconds per unit."""
_UNIT_GUESS_MS = 86_400_000  # a timestamp of another unit is recognised within a day of the clock
_HEADER_VALUE = re.compile(r"[!-~](?:[ -~]*[!-~])?\Z")


def decode_secret(secret: str, encoding: SecretEncoding = "utf8") -> bytes:
    """Decode a shared secret to key bytes (interop.md section 4).

    Raises:
        ConfigError: the text does not fit the encoding, or is empty; the error does not repeat the text.
    """
    key = _decoded(secret, encoding)
    if key is None:
        raise ConfigError("secret", f"is not {encoding} text")
    if not key:
        raise ConfigError("secret", "is empty")
    return key


def _decoded(secret: str, encoding: SecretEncoding) -> bytes | None:
    """Decode a secret to key bytes; None if the text does not fit the encoding.

    The function raises no error, since the text of Python's own error may contain the secret.
    """
    try:
        if encoding == "base64":
            return base64.b64decode(secret, validate=True)
        return bytes.fromhex(secret) if encoding == "hex" else secret.encode()
    except ValueError:
        return None


class HmacKey:
    """HMAC-SHA256 with a fixed key. The repr holds no part of the key."""

    __slots__ = ("_inner", "_outer")

    def __init__(self, key: bytes) -> None:
        if not key:
            raise ValueError("an HMAC key is not empty")
        block = (sha256(key).digest() if len(key) > _BLOCK_BYTES else key).ljust(_BLOCK_BYTES, b"\0")
        self._inner = sha256(block.translate(_INNER_PAD))
        self._outer = sha256(block.translate(_OUTER_PAD))

    def hex_digest(self, message: bytes) -> str:
        """Compute the HMAC of a message, as lower-case hex."""
        inner = self._inner.copy()
        inner.update(message)
        outer = self._outer.copy()
        outer.update(inner.digest())
        return outer.hexdigest()

    def __repr__(self) -> str:
        return "HmacKey(hidden)"

    def __reduce__(self) -> NoReturn:
        raise TypeError("an HmacKey is not pickled")


def request_payload(timestamp_ms: int, method: str, target: str, body: bytes) -> bytes:
    """Join the bytes to sign: timestamp, upper-case method, target as sent, body as sent."""
    return b"%d%s%s%s" % (timestamp_ms, method.upper().encode(), target.encode(), body)


class RequestSigner:
    """Signer of outgoing requests with the key of one domain. The repr holds no key."""

    __slots__ = ("_access_key", "_domain", "_key")

    def __init__(self, domain: str, access_key: str, secret: bytes) -> None:
        self._domain = _header_value(DOMAIN_HEADER, domain)
        self._access_key = _header_value(ACCESS_KEY_HEADER, access_key)
        self._key = HmacKey(secret)

    def headers(self, timestamp_ms: int, method: str, target: str, body: bytes = b"") -> dict[str, str]:
        """Make the four authentication headers of a request.

        Args:
            timestamp_ms: milliseconds since the Unix epoch.
            method: HTTP method; GET for a WebSocket handshake.
            target: path with any prefix, and `?query` exactly as it will be sent; the path alone for a
                WebSocket handshake.
            body: exactly as it will be sent.
        """
        return {
            DOMAIN_HEADER: self._domain,
            ACCESS_KEY_HEADER: self._access_key,
            TIMESTAMP_HEADER: str(timestamp_ms),
            SIGNATURE_HEADER: self._key.hex_digest(request_payload(timestamp_ms, method, target, body)),
        }

    def __repr__(self) -> str:
        return f"RequestSigner({self._domain!r})"


class ReplayWindow:
    """Memory of the request signatures that could still be replayed.

    See choices.md#makers-at-the-venue.

    A request is accepted if its timestamp is at most `AUTH_TOLERANCE_MS` behind or ahead of the clock, so a
    signature stays valid for at most twice that time, its lifetime. The window keeps two sets of signatures:
    the current set takes new signatures for one lifetime, and is kept as the previous set for another. A full
    set refuses new signatures rather than forget old ones.
    """

    __slots__ = ("_current", "_entries_max", "_previous", "_turns_at_ms")

    def __init__(self, entries_max: int = limits.REPLAY_ENTRIES_MAX) -> None:
        self._current: set[bytes] = set()
        self._previous: set[bytes] = set()
        self._turns_at_ms = 0
        self._entries_max = entries_max

    def admit(self, signature: bytes, now_ms: int) -> None:
        """Remember a verified signature, or refuse it as a replay.

        Raises:
            AuthError: the signature is a repetition, or the window is full.
        """
        if now_ms >= self._turns_at_ms:
            lifetime_ms = 2 * limits.AUTH_TOLERANCE_MS
            self._previous = self._current if now_ms < self._turns_at_ms + lifetime_ms else set()
            self._current = set()
            self._turns_at_ms = now_ms + lifetime_ms
        if signature in self._current or signature in self._previous:
            raise AuthError(SIGNATURE_HEADER, "this signed request was already received")
        if len(self._current) >= self._entries_max:
            raise AuthError(SIGNATURE_HEADER, "too many signed requests to remember; retry in a minute")
        self._current.add(signature)


class RequestVerifier:
    """Verifier of signed requests of several domains, each with up to two valid keys for rotation.

    Args:
        domains: name of a domain, i.e. of a caller -> (access key, secret bytes) pairs of this domain; both
            pairs may have the same access key.
        strip_prefix: path such as `/1`, which the verifier removes from the front of a target before
            verification, if a `/` follows: `/1` is no prefix of `/137/prices`.
        replay_window: memory of the signatures on POST, which refuses a repeated signature; None admits
            repeated signatures.
    """

    __slots__ = ("_domains", "_replay_window", "_strip_prefix")

    def __init__(
        self,
        domains: Mapping[str, Sequence[tuple[str, bytes]]],
        *,
        strip_prefix: str = "",
        replay_window: ReplayWindow | None = None,
    ) -> None:
        for domain, keys in domains.items():
            if not 1 <= len(keys) <= limits.AUTH_KEYS_PER_DOMAIN_MAX:
                raise ConfigError(
                    f"domain {domain}", f"needs 1 to {limits.AUTH_KEYS_PER_DOMAIN_MAX} keys, has {len(keys)}"
                )
        self._domains = {
            _header_value(DOMAIN_HEADER, domain).encode(): tuple(
                (_header_value(ACCESS_KEY_HEADER, access_key).encode(), HmacKey(secret))
                for access_key, secret in keys
            )
            for domain, keys in domains.items()
        }
        self._strip_prefix = strip_prefix.encode()
        self._replay_window = replay_window

    def verify(
        self,
        domain: bytes | None,
        access_key: bytes | None,
        timestamp: bytes | None,
        signature: bytes | None,
        method: bytes,
        target: bytes,
        body: bytes,
        now_ms: int,
    ) -> bytes:
        """Verify one request. The four header values are raw bytes, None for an absent header.

        Args:
            method: upper case, as received.
            target: path and query as received; for a WebSocket handshake the path alone.
            body: as received, undecoded.
            now_ms: wall clock, milliseconds since the Unix epoch.

        Returns:
            The domain whose key signed the request.

        Raises:
            AuthError: names the header at fault and the reason.
        """
        if domain is None or access_key is None or timestamp is None or signature is None:
            raise _missing(domain, access_key, timestamp, signature)
        keys = self._domains.get(domain)
        if keys is None:
            raise AuthError(DOMAIN_HEADER, f"unknown domain {_text(domain)}")
        if not timestamp.isdigit() or len(timestamp) > _TIMESTAMP_DIGITS_MAX:
            raise AuthError(
                TIMESTAMP_HEADER, f"expected milliseconds since the Unix epoch, got {_text(timestamp)}"
            )
        ahead_ms = int(timestamp) - now_ms
        if not -_TOLERANCE_MS <= ahead_ms <= _TOLERANCE_MS:
            raise _stale(int(timestamp), now_ms)
        if self._strip_prefix:
            rest = target.removeprefix(self._strip_prefix)
            target = rest if rest.startswith(b"/") else target
        # The timestamp's own bytes, not its number: `007` was signed as `007`.
        payload = b"".join((timestamp, method, target, body))
        # All keys are tried, even after a wrong signature: during a rotation two may share one access key.
        known_key = False
        for known_access_key, key in keys:
            if compare_digest(access_key, known_access_key):
                known_key = True
                if compare_digest(signature, key.hex_digest(payload).encode()):
                    # Only a verified signature enters the window: any caller could fill it otherwise.
                    if self._replay_window is not None and method == b"POST":
                        self._replay_window.admit(signature, now_ms)
                    return domain
        if not known_key:
            raise AuthError(ACCESS_KEY_HEADER, f"wrong access key for domain {_text(domain)}")
        raise _mismatch(signature, method, target, body)

    def __repr__(self) -> str:
        return f"RequestVerifier({len(self._domains)} domains)"


def _header_value(name: str, text: str) -> str:
    """Return a configured header value; ConfigError if a header line cannot carry it."""
    if not _HEADER_VALUE.match(text):
        raise ConfigError(name, "expected visible ASCII, and at least one character")
    return text


def _text(raw: bytes) -> str:
    return shown(raw.decode("latin-1"))


def _missing(*values: bytes | None) -> AuthError:
    names = (DOMAIN_HEADER, ACCESS_KEY_HEADER, TIMESTAMP_HEADER, SIGNATURE_HEADER)
    absent = [name for name, value in zip(names, values, strict=True) if value is None]
    return AuthError(", ".join(absent), "header missing")


def _stale(timestamp: int, now_ms: int) -> AuthError:
    ahead_ms = timestamp - now_ms
    where = "ahead of" if ahead_ms > 0 else "behind"
    hint = ""
    for unit, per_ms in _OTHER_UNITS.items():
        if abs(timestamp * per_ms - now_ms) <= _UNIT_GUESS_MS:
            hint = f"; this looks like {unit}, and milliseconds are expected"
    return AuthError(
        TIMESTAMP_HEADER,
        f"{abs(ahead_ms)} ms {where} this server's clock; at most {_TOLERANCE_MS} ms either way{hint}",
    )


def _mismatch(signature: bytes, method: bytes, target: bytes, body: bytes) -> AuthError:
    """Make the error for a wrong signature: names the malformed part, or describes the payload to sign."""
    if len(signature) != 64:
        return AuthError(SIGNATURE_HEADER, f"expected 64 hexadecimal digits, got {len(signature)} characters")
    if not all(digit in b"0123456789abcdef" for digit in signature):
        return AuthError(SIGNATURE_HEADER, "expected lower-case hexadecimal")
    return AuthError(
        SIGNATURE_HEADER,
        f"does not match timestamp + {_text(method)} + {_text(target)} + body of {len(body)} bytes",
    )
