"""Signed RFQ orders as POST /transactions takes them in place of a route.

order = an_order(maker_amount=5_000 * 10**6, taker_amount=2 * ONE)
body = {"orders": [sent(order)], ...}
"""

import itertools
from typing import Any

from msgspec.structs import replace

from cambist.codecs.eip712_orders.rfq import RFQ_ORDER, RfqOrder, rfq_domain_separator
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.secp256k1 import SigningKey
from cambist.crypto.signatures import to_65
from support.chain.world import NOBODY, ONE, RFQ_NAME, person
from support.venue.market_place import CHAIN_ID, RFQ, USDC, WETH

MAKER, OTHER = person(20), person(21)
KEYS = {key.address: key for key in (MAKER, OTHER)}

_nonces = itertools.count(1)


def an_order(**changed: Any) -> RfqOrder:
    """The maker of a shop sells 2,500 USDC for one WETH, to anyone, for ever."""
    order = RfqOrder(next(_nonces) << 160, 0, USDC, WETH, MAKER.address, NOBODY, 2_500 * 10**6, ONE)
    return replace(order, **changed)


def hash_of(order: RfqOrder, rfq: bytes = RFQ, name: str = RFQ_NAME) -> bytes:
    """Hash of an RFQ order, which its maker signs."""
    digest: bytes = RFQ_ORDER.compiled.digest_for(rfq_domain_separator(name, CHAIN_ID, rfq))(order)
    return digest


def sent(
    order: RfqOrder, key: SigningKey | None = None, rfq: bytes = RFQ, name: str = RFQ_NAME, **more: Any
) -> dict[str, Any]:
    """An item of `orders`, signed by its maker or with another key; None leaves a member out."""
    signature = to_65(*(key or KEYS.get(order.maker, MAKER)).sign(hash_of(order, rfq, name)))
    item = {
        "nonceAndMeta": str(order.nonce_and_meta),
        "expiry": order.expiry,
        "makerAsset": to_checksum(order.maker_asset),
        "takerAsset": to_checksum(order.taker_asset),
        "maker": to_checksum(order.maker),
        "taker": to_checksum(order.taker),
        "makerAmount": str(order.maker_amount),
        "takerAmount": str(order.taker_amount),
        "signature": to_hex(signature),
        **more,
    }
    return {name: value for name, value in item.items() if value is not None}
