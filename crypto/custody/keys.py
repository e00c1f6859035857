"""Load a signing key from the environment or a file: a hexadecimal key or an encrypted keystore.

    env:NAME    the variable holds 64 hexadecimal digits (0x allowed) or a whole keystore
    file:PATH   the file holds the same

A keystore needs its password, which is a secret of its own.
"""

from ...config.errors import ConfigError
from ...config.secret import Secret
from ..secp256k1 import SigningKey
from .keystore import decrypt_key


def signing_key(secret: Secret, password: Secret | None = None) -> SigningKey:
    """Make the signing key from the text of a secret.

    Args:
        secret: hexadecimal key or keystore text.
        password: password of the keystore; None for a plain hexadecimal key.

    Raises:
        ConfigError: the secret has neither form, or the password is missing, superfluous or wrong. The error
            repeats no part of the key.
    """
    text = secret.reveal().strip()
    if text.startswith("{"):
        if password is None:
            raise ConfigError(secret.source, "is an encrypted keystore and needs a password")
        try:
            return decrypt_key(text.encode(), password.reveal())
        except ConfigError as error:
            raise ConfigError(secret.source, error.detail) from None
    if password is not None:
        raise ConfigError(secret.source, "is a plain key, but a password is given")
    try:
        return SigningKey(bytes.fromhex(text.removeprefix("0x")))
    except ValueError:  # from either: the text is not hexadecimal, or its number is no private key
        raise ConfigError(
            secret.source, "is neither a private key of 64 hexadecimal digits nor a keystore"
        ) from None
