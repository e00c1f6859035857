"""Identifies callers by the API key in the X-API-KEY header. Pure.

The ring keeps a keyed hash of each key under a secret of this process, and hashes a presented key before the
look-up: the time of the look-up reveals nothing about the keys.

Source: interop.md 3, "Integrators' keys arrive in X-API-KEY".
"""

from collections.abc import Mapping
from hashlib import blake2b

from msgspec import Struct

from ...config.errors import ConfigError, UnknownApiKey
from ...config.limits import ADMISSION_KEY_BYTES_MAX
from ...config.sections.venue import ApiKey

API_KEY_HEADER = "X-API-KEY"
HASH_SECRET_BYTES = 32


class KeyHolder(Struct, frozen=True):
    """The caller that an API key belongs to.

    Attributes:
        name: name of the key in the settings.
        tier: name of its rate tier.
        partner: its default partner; empty for none.
        is_operator: whether the caller may read every order.
    """

    name: str
    tier: str
    partner: str
    is_operator: bool


class KeyRing:
    """Look-up of API keys by their keyed hashes.

    Args:
        keys: settings of the keys, by name.
        secret32: random bytes of this process.

    Raises:
        ConfigError: a key that no header can carry, or that two entries share.
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
        """Return the holder of a key.

        Args:
            presented: the header's value.

        Raises:
            UnknownApiKey: no holder has the key. The error does not repeat the key.
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
