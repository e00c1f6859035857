"""Derive keys from a mnemonic: BIP-39 seed, BIP-32 key tree, BIP-44 account paths.

The accounts of wallets and development nodes are m/44'/60'/0'/0/0, .../1 and so on.

The checksum of a mnemonic is not verified: its words are counted, not looked up.

Source: BIP-32 (private derivation), BIP-39 (from mnemonic to seed), BIP-44 (coin 60).
"""

import hashlib
import hmac
import unicodedata
from collections.abc import Sequence
from functools import cache

from ...config.errors import ConfigError
from ..secp256k1 import CURVE_ORDER, SigningKey, public_key

DEV_MNEMONIC = "test test test test test test test test test test test junk"
"""The public mnemonic of every development node: funds sent to its accounts on a real chain are lost."""

_WORD_COUNTS = (12, 15, 18, 21, 24)
_ROUNDS = 2_048
_HARDENED = 1 << 31
_ACCOUNTS = (_HARDENED + 44, _HARDENED + 60, _HARDENED, 0)


def account_keys(mnemonic: str, count: int, field: str = "mnemonic") -> list[SigningKey]:
    """Derive the keys of a mnemonic's first accounts.

    Args:
        mnemonic: 12, 15, 18, 21 or 24 words with white space between them.
        count: number of keys.
        field: named in the error, which repeats no word.

    Raises:
        ConfigError: the number of words is another, or a word has characters that are no letters.
    """
    words = unicodedata.normalize("NFKD", mnemonic).split()
    if len(words) not in _WORD_COUNTS:
        raise ConfigError(field, f"expected {', '.join(map(str, _WORD_COUNTS))} words, got {len(words)}")
    if not all(word.isalpha() for word in words):
        raise ConfigError(field, "expected words of letters alone")
    seed = hashlib.pbkdf2_hmac("sha512", " ".join(words).encode(), b"mnemonic", _ROUNDS)
    parent = derive(seed, _ACCOUNTS)
    return [SigningKey(_child(*parent, number)[0]) for number in range(count)]


@cache
def dev_accounts() -> frozenset[bytes]:
    """Addresses of the first 20 accounts of DEV_MNEMONIC: development nodes use these accounts."""
    return frozenset(key.address for key in account_keys(DEV_MNEMONIC, 20))


def derive(seed: bytes, path: Sequence[int]) -> tuple[bytes, bytes]:
    """Derive a BIP-32 key from a seed along a path.

    Args:
        path: child number of each level; a number from 2^31 on is a hardened child.

    Returns:
        (private key, chain code), 32 bytes each.
    """
    node = _master(seed)
    for number in path:
        node = _child(*node, number)
    return node


def _master(seed: bytes) -> tuple[bytes, bytes]:
    digest = hmac.digest(b"Bitcoin seed", seed, "sha512")
    return digest[:32], digest[32:]


def _child(secret32: bytes, chain_code32: bytes, number: int) -> tuple[bytes, bytes]:
    """Derive child `number` of a BIP-32 key: (private key, chain code); ValueError if it has no valid key."""
    parent = b"\0" + secret32 if number >= _HARDENED else public_key(secret32, compressed=True)
    digest = hmac.digest(chain_code32, parent + number.to_bytes(4, "big"), "sha512")
    tweak = int.from_bytes(digest[:32], "big")
    secret = (tweak + int.from_bytes(secret32, "big")) % CURVE_ORDER
    if tweak >= CURVE_ORDER or not secret:
        raise ValueError("this number has no key")
    return secret.to_bytes(32, "big"), digest[32:]
