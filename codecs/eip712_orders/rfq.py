"""The RFQ order: what a market maker signs for a firm quote, and a maker for an OTC order.

Source: document 2, Order; document 3, Firm order; interop.md section 1.
"""

import msgspec

from ...config import limits
from ...crypto.addresses import to_checksum
from ...crypto.eip712 import domain_separator
from .typed_struct import TypedStruct


class RfqOrder(msgspec.Struct, frozen=True, gc=False):
    """Values of a signed RFQ order.

    Attributes:
        nonce_and_meta: uint256; see nonce_and_meta.py.
        expiry: Unix seconds; 0 is never, on chain and for OTC.
        maker_asset, taker_asset, maker, taker: 20 bytes each; taker zero lets anyone fill.
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
    """The signing domain of a chain's RFQ contract; `name` is the deployment's (interop.md section 1)."""
    return {
        "name": name,
        "version": limits.RFQ_DOMAIN_VERSION,
        "chainId": chain_id,
        "verifyingContract": to_checksum(contract),
    }


def rfq_domain_separator(name: str, chain_id: int, contract: bytes) -> bytes:
    """The 32-byte separator of `rfq_domain`."""
    return domain_separator(rfq_domain(name, chain_id, contract))
