"""EIP-1271: encode the call that asks a contract whether a signature is valid, and judge its answer.

The caller makes the call itself. The owner of a wallet that is not deployed wraps its signature with the call
that deploys the wallet (ERC-6492), and may go on to do so after the deployment.

Source: EIP-1271; ERC-6492.
"""

from typing import NamedTuple

from .keccak import keccak256

MAGIC_VALUE4 = bytes.fromhex("1626ba7e")
SELECTOR4 = keccak256(b"isValidSignature(bytes32,bytes)")[
    :4
]  # equal to the magic value, as the EIP defines it

_MAGIC_WORD = MAGIC_VALUE4.ljust(32, b"\0")
_WRAPPED_END = bytes.fromhex("6492" * 16)
_HEAD_BYTES = 96  # factory, and two offsets
_OFFSET_WORD = (64).to_bytes(32, "big")


def is_valid_signature_calldata(digest32: bytes, signature: bytes) -> bytes:
    """Encode the call `isValidSignature(digest32, signature)`; the signature may have any length."""
    padding = bytes(-len(signature) % 32)
    return b"".join(
        (SELECTOR4, digest32, _OFFSET_WORD, len(signature).to_bytes(32, "big"), signature, padding)
    )


def is_magic_answer(returned: bytes) -> bool:
    """Whether the return data of `isValidSignature` accepts the signature.

    The contract accepts with a first word of the 4-byte magic value and 28 zero bytes. Empty return data, as
    from an address without code, is a refusal. A reverted call is a refusal too: the caller has to handle a
    revert itself.
    """
    return returned[:32] == _MAGIC_WORD


class WrappedSignature(NamedTuple):
    """Content of an ERC-6492 signature: the call that deploys the wallet, and the signature for the wallet.

    Attributes:
        factory: contract that deploys the wallet, 20 bytes.
    """

    factory: bytes
    factory_call: bytes
    signature: bytes


def unwrapped(signature: bytes) -> WrappedSignature | None:
    """Take an ERC-6492 signature apart; None for a signature that is not wrapped so, or wraps nothing."""
    if not signature.endswith(_WRAPPED_END):
        return None
    body = signature[: -len(_WRAPPED_END)]
    try:
        call, inner = (_bytes_at(body, int.from_bytes(body[at : at + 32], "big")) for at in (32, 64))
    except IndexError:
        return None
    return None if any(body[:12]) or not inner else WrappedSignature(body[12:32], call, inner)


def _bytes_at(body: bytes, offset: int) -> bytes:
    """Return the member of type `bytes` at an offset of ABI-encoded data; raise IndexError without one."""
    start = offset + 32
    length = int.from_bytes(body[offset:start], "big")
    if offset < _HEAD_BYTES or start > len(body) or length > len(body) - start:
        raise IndexError
    return body[start : start + length]
