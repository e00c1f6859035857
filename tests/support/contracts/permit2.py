"""Permits of Permit2, signed, in the forms that orders carry.

Source: Permit2's SignatureTransfer and AllowanceTransfer; interop.md section 2 (`permit` by byte length).
"""

from typing import Any

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.crypto.addresses import to_checksum
from cambist.crypto.eip712 import Types, domain_separator, signing_digest
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_compact64

ALLOWED = b"\x01"
"""The owner has given the contract an allowance at Permit2 by a call."""

_DETAILS = (("token", "address"), ("amount", "uint160"), ("expiration", "uint48"), ("nonce", "uint48"))
_TYPES = Types(
    {
        "PermitDetails": _DETAILS,
        "PermitSingle": (
            ("details", "PermitDetails"), ("spender", "address"), ("sigDeadline", "uint256"),
        ),
        "TokenPermissions": (("token", "address"), ("amount", "uint256")),
        "PermitTransferFrom": (
            ("permitted", "TokenPermissions"), ("spender", "address"), ("nonce", "uint256"),
            ("deadline", "uint256"),
        ),
    }
)  # fmt: skip
_PERMIT = selector("permit(address,((address,uint160,uint48,uint48),address,uint256),bytes)")


def permit2_domain(chain_id: int, permit2: bytes) -> bytes:
    """The separator of Permit2's domain, which has no version."""
    return domain_separator(
        {"name": "Permit2", "chainId": chain_id, "verifyingContract": to_checksum(permit2)}
    )


def transfer_permit(
    domain: bytes,
    owner: SigningKey,
    spender: bytes,
    token: bytes,
    amount: int,
    *,
    nonce: int,
    deadline: int,
) -> bytes:
    """96 bytes: one transfer of `amount` at most, until the deadline of the order that carries it."""
    message = {
        "permitted": {"token": to_checksum(token), "amount": amount},
        "spender": to_checksum(spender), "nonce": nonce, "deadline": deadline,
    }  # fmt: skip
    return uint_word(nonce) + _signed(domain, "PermitTransferFrom", message, owner)


def allowance_permit(
    domain: bytes,
    owner: SigningKey,
    spender: bytes,
    token: bytes,
    amount: int,
    *,
    expiration: int,
    nonce: int,
    deadline: int,
) -> bytes:
    """192 bytes: an allowance at Permit2."""
    message = {
        "details": {
            "token": to_checksum(token), "amount": amount, "expiration": expiration, "nonce": nonce
        },
        "spender": to_checksum(spender), "sigDeadline": deadline,
    }  # fmt: skip
    words = b"".join(map(uint_word, (amount, expiration, nonce, deadline)))
    return words + _signed(domain, "PermitSingle", message, owner)


def shown_allowance(permit: bytes, owner: bytes, spender: bytes, token: bytes) -> bytes:
    """Calldata with which anyone may show Permit2 a permit of 192 bytes."""
    amount, expiration, nonce, deadline = (permit[at : at + 32] for at in range(0, 128, 32))
    single = address_word(token) + amount + expiration + nonce + address_word(spender) + deadline
    return _PERMIT + encode(address_word(owner), single, bytes_tail(permit[128:]))


def allow(token: bytes, spender: bytes, amount: int, expiration: int) -> bytes:
    """Calldata of an owner's own allowance at Permit2."""
    words = address_word(token) + address_word(spender) + uint_word(amount) + uint_word(expiration)
    return selector("approve(address,address,uint160,uint48)") + words


def _signed(domain: bytes, kind: str, message: dict[str, Any], key: SigningKey) -> bytes:
    return to_compact64(*key.sign(signing_digest(domain, _TYPES.hash_struct(kind, message, "permit"))))
