"""Permits of `DevToken`, signed: the words of the token's own call, as orders carry them.

Source: EIP-2612; DAI's `permit`, whose allowance is all or nothing.
"""

from typing import Any

from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.crypto.addresses import to_checksum
from cambist.crypto.eip712 import Types, domain_separator, signing_digest
from cambist.crypto.secp256k1 import SigningKey

EIP2612 = selector("permit(address,address,uint256,uint256,uint8,bytes32,bytes32)")
DAI = selector("permit(address,address,uint256,uint256,bool,uint8,bytes32,bytes32)")
_EIP2612_TYPES = Types(
    {
        "Permit": (
            ("owner", "address"), ("spender", "address"), ("value", "uint256"), ("nonce", "uint256"),
            ("deadline", "uint256"),
        )
    }
)  # fmt: skip
_DAI_TYPES = Types(
    {
        "Permit": (
            ("holder", "address"), ("spender", "address"), ("nonce", "uint256"), ("expiry", "uint256"),
            ("allowed", "bool"),
        )
    }
)  # fmt: skip


def token_domain(name: str, chain_id: int, token: bytes) -> bytes:
    """The separator of a token's domain."""
    return domain_separator(
        {"name": name, "version": "1", "chainId": chain_id, "verifyingContract": to_checksum(token)}
    )


def eip2612_permit(
    domain: bytes, owner: SigningKey, spender: bytes, value: int, *, nonce: int, deadline: int
) -> bytes:
    """224 bytes: `spender` may take `value`."""
    message = {
        "owner": to_checksum(owner.address), "spender": to_checksum(spender), "value": value,
        "nonce": nonce, "deadline": deadline,
    }  # fmt: skip
    words = address_word(owner.address) + address_word(spender) + uint_word(value) + uint_word(deadline)
    return words + _signed(domain, _EIP2612_TYPES, message, owner)


def dai_permit(
    domain: bytes, holder: SigningKey, spender: bytes, *, nonce: int, expiry: int, allowed: bool = True
) -> bytes:
    """256 bytes: `spender` may take everything, or nothing."""
    message = {
        "holder": to_checksum(holder.address), "spender": to_checksum(spender), "nonce": nonce,
        "expiry": expiry, "allowed": allowed,
    }  # fmt: skip
    words = address_word(holder.address) + address_word(spender) + uint_word(nonce) + uint_word(expiry)
    return words + uint_word(allowed) + _signed(domain, _DAI_TYPES, message, holder)


def shown(permit: bytes) -> bytes:
    """Calldata of the token's own call, which anyone may send."""
    return (EIP2612 if len(permit) == 224 else DAI) + permit


def _signed(domain: bytes, types: Types, message: dict[str, Any], key: SigningKey) -> bytes:
    rs64, recovery_id = key.sign(signing_digest(domain, types.hash_struct("Permit", message, "permit")))
    return uint_word(27 + recovery_id) + rs64
