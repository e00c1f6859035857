"""EIP-1271: encode the call that asks a contract whether a signature is valid, and judge its answer.

The caller makes the call itself.

Source: EIP-1271.
"""

from .keccak import keccak256

MAGIC_VALUE4 = bytes.fromhex("1626ba7e")
SELECTOR4 = keccak256(b"isValidSignature(bytes32,bytes)")[
    :4
]  # equal to the magic value, as the EIP defines it

_MAGIC_WORD = MAGIC_VALUE4.ljust(32, b"\0")
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
