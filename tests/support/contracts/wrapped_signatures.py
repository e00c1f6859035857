"""Signatures as wallets of ERC-6492 write them."""

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode
from cambist.codecs.transactions import create2_address
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.deploy import create2_factory

FACTORY, DEPLOYS = b"\xfa" * 20, b"\x12\x34\x56\x78" + b"\x01" * 33


def wrapped_signature(inner: bytes, factory: bytes = FACTORY, call: bytes = DEPLOYS) -> bytes:
    """A signature with the call that deploys its wallet.

    Source: ERC-6492, "Signer side"; viem's serializeErc6492Signature gives the same bytes.
    """
    return encode(address_word(factory), bytes_tail(call), bytes_tail(inner)) + bytes.fromhex("6492" * 16)


def a_counterfactual_wallet(key: SigningKey) -> tuple[bytes, bytes]:
    """(Address of a wallet that is not deployed yet, the call to the factory that deploys it)."""
    init_code = artifact("DevWallet").init_code(address_word(key.address))
    return create2_address(create2_factory.FACTORY, bytes(32), init_code), bytes(32) + init_code
