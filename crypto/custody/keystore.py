"""Write and read encrypted key files, version 3 of the Web3 Secret Storage format.

Written: scrypt and aes-128-ctr. Read: scrypt or pbkdf2 (hmac-sha256), within bounds on the memory and the
rounds that a file may ask for. The file's MAC is checked before decryption.

Source: Web3 Secret Storage Definition, version 3.
"""

import hashlib
from hmac import compare_digest
from typing import Any

import msgspec

from ...config import limits
from ...config.errors import ConfigError
from ...config.secret import is_unicode
from ..keccak import keccak256
from ..secp256k1 import SigningKey

SCRYPT_N = 1 << 18  # as wallets write it: 256 MiB, about a second
SCRYPT_R = 8
SCRYPT_P = 1
_DERIVED_BYTES = 32


class _CipherParams(msgspec.Struct):
    iv: str


class _Crypto(msgspec.Struct):
    cipher: str
    cipherparams: _CipherParams
    ciphertext: str
    kdf: str
    kdfparams: dict[str, Any]
    mac: str


class _Keystore(msgspec.Struct):
    crypto: _Crypto
    version: int
    id: str = ""
    address: str = ""


class _OldCaseKeystore(msgspec.Struct):
    """Keystore of some early wallets, which write the member `crypto` as `Crypto`."""

    crypto: _Crypto = msgspec.field(name="Crypto")
    version: int
    address: str = ""


def _refuse(reason: str) -> ConfigError:
    return ConfigError("keystore", reason)


def encrypt_key(
    key: SigningKey, password: str, *, salt32: bytes, iv16: bytes, file_id: str, scrypt_n: int = SCRYPT_N
) -> bytes:
    """Encrypt a key to the text of a keystore file.

    Args:
        key: the private key to store.
        password: password of the keystore, not empty.
        salt32, iv16: random bytes, 32 and 16, drawn anew for each file.
        file_id: a new UUID, which the file states as its id.
        scrypt_n: cost parameter N of scrypt (time and memory), a power of two.

    Raises:
        ConfigError: the password is empty or has no UTF-8 form.
    """
    if not password:
        raise _refuse("the password is empty")
    params = {"dklen": _DERIVED_BYTES, "n": scrypt_n, "r": SCRYPT_R, "p": SCRYPT_P, "salt": salt32.hex()}
    derived = _derive("scrypt", params, password)  # 16 bytes for the cipher, then 16 for the MAC
    ciphertext = _aes_ctr(derived, iv16, key.secret32())
    document = _Keystore(
        crypto=_Crypto(
            cipher="aes-128-ctr",
            cipherparams=_CipherParams(iv=iv16.hex()),
            ciphertext=ciphertext.hex(),
            kdf="scrypt",
            kdfparams=params,
            mac=keccak256(derived[16:] + ciphertext).hex(),
        ),
        version=3,
        id=file_id,
        address=key.address.hex(),
    )
    return msgspec.json.format(msgspec.json.encode(document), indent=2) + b"\n"


def decrypt_key(text: bytes, password: str) -> SigningKey:
    """Decrypt the key of a keystore file.

    Raises:
        ConfigError: not a version 3 keystore, more key-derivation work than we allow, or a wrong password.
    """
    crypto, address = _parse(text)
    iv, ciphertext, mac = (
        _hex(name, value)
        for name, value in (
            ("iv", crypto.cipherparams.iv),
            ("ciphertext", crypto.ciphertext),
            ("mac", crypto.mac),
        )
    )
    if crypto.cipher != "aes-128-ctr" or len(iv) != 16 or len(ciphertext) != 32:
        raise _refuse("only aes-128-ctr over a key of 32 bytes is supported")
    derived = _derive(crypto.kdf, crypto.kdfparams, password)
    # Before the decryption: a wrong password would decrypt to other 32 bytes, which are a valid key as well.
    if not compare_digest(keccak256(derived[16:] + ciphertext), mac):
        raise _refuse("wrong password, or the file is damaged")
    try:
        key = SigningKey(_aes_ctr(derived, iv, ciphertext))
    except ValueError as error:
        raise _refuse(str(error)) from None
    # The MAC covers the ciphertext alone: another file's address would otherwise stay unnoticed.
    if address and address.lower().removeprefix("0x") != key.address.hex():
        raise _refuse("its address is not that of its key")
    return key


def _parse(text: bytes) -> tuple[_Crypto, str]:
    try:
        document: _Keystore | _OldCaseKeystore
        try:
            document = msgspec.json.decode(text, type=_Keystore)
        except msgspec.ValidationError:
            document = msgspec.json.decode(text, type=_OldCaseKeystore)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        raise _refuse("not a version 3 keystore file") from None
    if document.version != 3:
        raise _refuse(f"version {document.version} is not supported, only 3")
    return document.crypto, document.address


def _hex(name: str, value: object) -> bytes:
    try:
        return bytes.fromhex(value if isinstance(value, str) else "-")
    except ValueError:
        raise _refuse(f"{name} is not hexadecimal") from None


def _whole(params: dict[str, Any], name: str, most: int) -> int:
    value = params.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= most:
        raise _refuse(f"kdfparams.{name} is not a whole number from 1 to {most}")
    return value


def _derive(kdf: str, params: dict[str, Any], password: str) -> bytes:
    if not is_unicode(password):
        raise _refuse("the password is not UTF-8 text")
    salt, secret = _hex("salt", params.get("salt")), password.encode()
    if params.get("dklen") != _DERIVED_BYTES:
        raise _refuse(f"kdfparams.dklen is not {_DERIVED_BYTES}")
    if kdf == "pbkdf2":
        rounds = _whole(params, "c", limits.KEYSTORE_PBKDF2_ROUNDS_MAX)
        if params.get("prf") != "hmac-sha256":
            raise _refuse("kdfparams.prf is not hmac-sha256")
        return hashlib.pbkdf2_hmac("sha256", secret, salt, rounds, _DERIVED_BYTES)
    if kdf != "scrypt":
        raise _refuse("kdf is neither scrypt nor pbkdf2")
    most = limits.KEYSTORE_KDF_BYTES_MAX
    n, r, p = (_whole(params, name, most) for name in ("n", "r", "p"))
    memory = 128 * r * (n + p)
    if n & n - 1 or n < 2 or memory > most:
        raise _refuse(f"scrypt's n is no power of two, or it asks for more than {most} bytes of memory")
    if p > limits.KEYSTORE_SCRYPT_P_MAX:
        raise _refuse(f"scrypt's p is above {limits.KEYSTORE_SCRYPT_P_MAX}")
    from Crypto.Protocol.KDF import scrypt  # imported here, since few commands read a keystore

    # OpenSSL's scrypt refuses r=1 with the n that early wallets used; pycryptodome's follows the definition
    return bytes(scrypt(secret, salt, _DERIVED_BYTES, N=n, r=r, p=p))


def _aes_ctr(derived: bytes, iv16: bytes, data: bytes) -> bytes:
    """Encrypt or decrypt (the same operation) with AES-128 in counter mode; the counter starts at `iv16`."""
    from Crypto.Cipher import AES

    return AES.new(derived[:16], AES.MODE_CTR, nonce=b"", initial_value=iv16).encrypt(data)
