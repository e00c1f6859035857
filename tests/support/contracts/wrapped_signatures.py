"""Signatures as wallets of ERC-6492 write them."""

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode

FACTORY, DEPLOYS = b"\xfa" * 20, b"\x12\x34\x56\x78" + b"\x01" * 33


def wrapped_signature(inner: bytes, factory: bytes = FACTORY, call: bytes = DEPLOYS) -> bytes:
    """A signature with the call that deploys its wallet.

    Source: ERC-6492, "Signer side"; viem's serializeErc6492Signature gives the same bytes.
    """
    return encode(address_word(factory), bytes_tail(call), bytes_tail(inner)) + bytes.fromhex("6492" * 16)
