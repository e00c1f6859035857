"""The stored order, as a post and every read answer it. Pure.

    row + document -> StoredOrder

Source: spec 2.4.
Choice: Addresses of a record have checksums; the signature is as posted, with v of 27 or 28.
"""

from functools import lru_cache

from ...codecs.messages.otc_messages import StoredOrder
from ...crypto.addresses import to_checksum
from ...crypto.hexadecimal import to_hex
from ..store.rows import OtcOrderRow, amount_of
from .document import OtcDocument

_address_text = lru_cache(maxsize=4_096)(to_checksum)  # a listing is of one account, and of few tokens


def stored_order(row: OtcOrderRow, document: OtcDocument) -> StoredOrder:
    """What everybody may know of an order."""
    return StoredOrder(
        nonce_and_meta=str(amount_of(document.nonce_and_meta)),
        expiry=document.expiry,
        maker_asset=_address_text(row.maker_asset),
        taker_asset=_address_text(row.taker_asset),
        maker_amount=str(amount_of(row.maker_amount)),
        taker_amount=str(amount_of(row.taker_amount)),
        maker=_address_text(row.maker),
        taker=_address_text(row.taker),
        signature=to_hex(document.signature),
        permit_maker_asset=None if document.permit is None else to_hex(document.permit),
        order_hash=to_hex(row.order_hash),
        chain_id=row.chain_id,
        state=row.status,
        type=row.type,
        taker_from_meta=_address_text(row.taker_from_meta),
        maker_balance=str(amount_of(row.maker_balance)),
        fillable_balance=str(amount_of(row.remaining)),
        reserved_balance=str(amount_of(row.reserved)),
        swappable_balance=str(amount_of(row.swappable)),
        transaction_hash=None if row.transaction_hash is None else to_hex(row.transaction_hash),
        created_at=row.created_ms // 1_000,
        updated_at=row.updated_ms // 1_000,
    )
