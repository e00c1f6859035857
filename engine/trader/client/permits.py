"""EIP-2612 permits in place of approvals: the calls to the token, and the signature. Pure.

A token's domain separator is verified: it must follow from the token's name, a version, this chain and the
token's address. No other domain is signed, since a wallet could not show it.

Source: EIP-2612; EIP-712; interop.md 1 (224 bytes: the words of the token's own call).
Choice: Permit versions tried are the token's `version()`, then "1" and "2".
"""

from collections.abc import Sequence

from msgspec import Struct

from ....codecs.contracts.abi import WORD_BYTES, address_word, decode_bytes, decode_uint, selector, uint_word
from ....config.errors import ChainError, InvalidInput
from ....crypto.addresses import to_checksum
from ....crypto.eip712 import Types, domain_separator, signing_digest
from ....crypto.secp256k1 import SigningKey
from ...chain.port import EthCall

_NONCES = selector("nonces(address)")
_DOMAIN_SEPARATOR = selector("DOMAIN_SEPARATOR()")
_NAME = selector("name()")
_VERSION = selector("version()")
_COMMON_VERSIONS = ("1", "2")
_TEXT_BYTES_MAX = 128
_TYPES = Types(
    {
        "Permit": (
            ("owner", "address"),
            ("spender", "address"),
            ("value", "uint256"),
            ("nonce", "uint256"),
            ("deadline", "uint256"),
        )
    }
)


class PermitBasis(Struct, frozen=True):
    """The token's data that a permit's signature needs.

    Attributes:
        separator: EIP-712 domain separator of the token, 32 bytes.
        nonce: nonce of the owner's next permit.
    """

    separator: bytes
    nonce: int


def permit_questions(token: bytes, owner: bytes) -> list[EthCall]:
    """The calls to a token that ask for its signing domain and the owner's nonce; `permit_basis` reads the
    answers."""
    return [
        EthCall(token, _NONCES + address_word(owner)),
        EthCall(token, _DOMAIN_SEPARATOR),
        EthCall(token, _NAME),
        EthCall(token, _VERSION),
    ]


def permit_basis(answers: Sequence[bytes | Exception], chain_id: int, token: bytes) -> PermitBasis:
    """The token's data that a permit needs, from its answers to the calls of `permit_questions`.

    Raises:
        ChainError: the token has no EIP-2612 permits, or its signing domain is not recognised.
    """
    nonce, separator, name, version = answers
    if isinstance(nonce, Exception) or isinstance(separator, Exception) or isinstance(name, Exception):
        raise ChainError(
            f"{to_checksum(token)} takes no EIP-2612 permits: use an approval in place of --permit"
        )
    own_version = None if isinstance(version, Exception) else _text(version)
    versions = ((own_version,) if own_version is not None else ()) + _COMMON_VERSIONS
    named = _text(name)
    # Tokens exist without `version()` or with another version in their domain: the separator decides.
    if len(separator) == WORD_BYTES and len(nonce) == WORD_BYTES and named is not None:
        for candidate in versions:
            domain = {
                "name": named,
                "version": candidate,
                "chainId": chain_id,
                "verifyingContract": to_checksum(token),
            }
            if domain_separator(domain) == separator:
                return PermitBasis(separator, decode_uint(nonce))
    raise ChainError(
        f"the permit domain of {to_checksum(token)} does not follow from its name, chain and address: "
        "use an approval in place of --permit"
    )


def sign_permit(basis: PermitBasis, key: SigningKey, spender: bytes, value: int, deadline: int) -> bytes:
    """Sign a permit, 224 bytes, which lets `spender` take the key's tokens until the deadline.

    Args:
        spender: 20 bytes.
        value: maximum that the spender may take, raw units.
        deadline: Unix seconds.
    """
    message = {
        "owner": to_checksum(key.address),
        "spender": to_checksum(spender),
        "value": value,
        "nonce": basis.nonce,
        "deadline": deadline,
    }
    digest32 = signing_digest(basis.separator, _TYPES.hash_struct("Permit", message, "permit"))
    rs64, recovery_id = key.sign(digest32)
    words = (address_word(key.address), address_word(spender), uint_word(value), uint_word(deadline))
    return b"".join((*words, uint_word(27 + recovery_id), rs64))


def _text(returned: bytes) -> str | None:
    """The string in a token's answer; None if it is invalid or too long."""
    try:
        raw = decode_bytes(returned)
        return raw.decode() if len(raw) <= _TEXT_BYTES_MAX else None
    except (InvalidInput, UnicodeDecodeError):
        return None
