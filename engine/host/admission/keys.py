"""Identifies callers by the API key in the X-API-KEY header. Pure.

`KeyRing` stores a hash of each key under a random secret of this process, and hashes a received key before
the look-up, so that the duration of the look-up reveals nothing about the keys.

Source: interop.md 3, "Integrators' keys arrive in X-API-KEY".
"""

from collections.abc import Mapping
from hashlib import blake2b

from msgspec import Struct

from ....config.errors import ConfigError, UnknownApiKey
from ....config.limits import ADMISSION_KEY_BYTES_MAX
from ....config.sections.venue import ApiKey

API_KEY_HEADER = "X-API-KEY"
HASH_SECRET_BYTES = 32


class KeyHolder(Struct, frozen=True):
    """Caller to which an API key belongs.

    Attributes:
        name: name of the key in the settings.
        tier: name of the caller's rate tier.
        partner: partner that applies to the caller's requests that name no partner; empty for none.
        is_operator: whether the caller may read every order.
    """

    name: str
    tier: str
    partner: str
    is_operator: bool


class KeyRing:
    """Table of the venue's API keys, which stores keyed hashes in place of the keys.

    Args:
        keys: settings of the API keys, by name.
        secret32: 32 random bytes of this process, the key of the hashes.

    Raises:
        ConfigError: an API key cannot be sent in a header, or two entries have the same key.
    """

    __slots__ = ("_hash", "_holders")

    def __init__(self, keys: Mapping[str, ApiKey], secret32: bytes) -> None:
        self._hash = blake2b(key=secret32, digest_size=32)
        self._holders: dict[bytes, KeyHolder] = {}
        for name, key in keys.items():
            text, field = key.secret.reveal(), f"venue.api_keys.{name}.secret"
            if not (text.isascii() and text.isprintable() and " " not in text and text):
                raise ConfigError(field, "expected visible ASCII, and at least one character")
            if len(text) > ADMISSION_KEY_BYTES_MAX:
                raise ConfigError(field, f"at most {ADMISSION_KEY_BYTES_MAX} characters, got {len(text)}")
            digest = self._digest(text.encode())
            if digest in self._holders:
                raise ConfigError(field, f"equals the secret of {self._holders[digest].name}")
            self._holders[digest] = KeyHolder(name, key.tier, key.partner, key.operator)

    def find(self, presented: bytes) -> KeyHolder:
        """Return the caller to which an API key belongs.

        Args:
            presented: value of the request's X-API-KEY header.

        Raises:
            UnknownApiKey: the settings have no such key. The error does not repeat the key.
        """
        if len(presented) > ADMISSION_KEY_BYTES_MAX:
            raise UnknownApiKey(
                f"expected at most {ADMISSION_KEY_BYTES_MAX} characters, got {len(presented)}"
            )
        holder = self._holders.get(self._digest(presented))
        if holder is None:
            raise UnknownApiKey("unknown key")
        return holder

    def _digest(self, text: bytes) -> bytes:
        state = self._hash.copy()
        state.update(text)
        return state.digest()

    def __repr__(self) -> str:
        return f"KeyRing({len(self._holders)} keys)"
