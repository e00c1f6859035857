"""The RFQ order: a market maker signs it for a firm quote, a maker for an OTC order.

Source: spec 2.3, 3.5; interop.md section 1.
"""

from collections.abc import Callable

import msgspec

from ...config import limits
from ...crypto.addresses import to_checksum
from ...crypto.eip712 import EIP712_PREFIX, domain_separator
from ...crypto.keccak import typed_digest
from .typed_struct import TypedStruct


class RfqOrder(msgspec.Struct, frozen=True, gc=False):
    """Values of a signed RFQ order.

    Attributes:
        nonce_and_meta: uint256 that packs a nonce with the end user's address (firm quote) or with the
            maker's address (OTC order).
        expiry: Unix seconds; 0 means no expiry for the contract and in an OTC order; a firm quote always has
            an expiry.
        maker_asset, taker_asset, maker, taker: 20 bytes each; a zero taker lets any account fill the order.
        maker_amount, taker_amount: raw units.
    """

    nonce_and_meta: int
    expiry: int
    maker_asset: bytes
    taker_asset: bytes
    maker: bytes
    taker: bytes
    maker_amount: int
    taker_amount: int


RFQ_ORDER = TypedStruct(
    "Order",
    "uint256 nonceAndMeta,uint128 expiry,address makerAsset,address takerAsset,address maker,address taker,"
    "uint256 makerAmount,uint256 takerAmount",
    RfqOrder,
)


def rfq_domain(name: str, chain_id: int, contract: bytes) -> dict[str, object]:
    """Make the EIP-712 domain of a chain's RFQ contract, deployed with this domain name (interop.md 1)."""
    return {
        "name": name,
        "version": limits.RFQ_DOMAIN_VERSION,
        "chainId": chain_id,
        "verifyingContract": to_checksum(contract),
    }


def rfq_domain_separator(name: str, chain_id: int, contract: bytes) -> bytes:
    """Compute the EIP-712 domain separator (32 bytes) of a chain's RFQ contract."""
    return domain_separator(rfq_domain(name, chain_id, contract))


def address_words(maker_asset: bytes, taker_asset: bytes, maker: bytes, taker: bytes) -> bytes:
    """Encode the four addresses of an RFQ order as the four words that are signed: 128 bytes."""
    return b"".join([address.rjust(32, b"\0") for address in (maker_asset, taker_asset, maker, taker)])


def digest_of_words_for(domain_separator32: bytes) -> Callable[[bytes, bytes, bytes, int, int], bytes]:
    """Make a fast digest function for makers, who sign many RFQ orders with the same encoded addresses.

    Returns:
        (nonce_and_meta32, expiry32, addresses128, maker_amount, taker_amount) -> digest32, the EIP-712
        digest. `addresses128` is the result of `address_words`. `RFQ_ORDER.compiled.digest_for` gives the
        same digest for an RfqOrder of the same values.

    Not guaranteed: a check of the words' lengths. An amount above 256 bits raises OverflowError.
    """
    type_hash, join = RFQ_ORDER.compiled.type_hash, b"".join
    digest_of = typed_digest(EIP712_PREFIX + domain_separator32)

    def digest(
        nonce_and_meta32: bytes, expiry32: bytes, addresses128: bytes, maker_amount: int, taker_amount: int
    ) -> bytes:
        return digest_of(
            join(
                (
                    type_hash,
                    nonce_and_meta32,
                    expiry32,
                    addresses128,
                    maker_amount.to_bytes(32, "big"),
                    taker_amount.to_bytes(32, "big"),
                )
            )
        )

    return digest
