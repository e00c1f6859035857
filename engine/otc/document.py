"""What is kept of an OTC order for good, beside its row: what was signed and what came with it. Pure.

Source: spec 2.3; ARCHITECTURE.md, "Databases" (the signed document is a row of its own).
"""

import msgspec
from msgspec import Struct

from ...codecs.eip712_orders.rfq import RfqOrder
from ..store.rows import OtcOrderRow, amount_of


class OtcDocument(Struct, frozen=True, array_like=True):
    """One order's.

    Attributes:
        nonce_and_meta: 32 bytes.
        expiry: as signed, Unix seconds; 0 is never.
        signature: as the RFQ contract takes it, and as it is shown.
        permit: for the maker's asset, as it was posted; None where there was none at all.
        filled_before: amount32: what was filled before the chain was followed; it is in no row of otc_fill.
    """

    nonce_and_meta: bytes
    expiry: int
    signature: bytes
    permit: bytes | None
    filled_before: bytes


_decoder = msgspec.msgpack.Decoder(OtcDocument)
encode_document = msgspec.msgpack.Encoder().encode
decode_document = _decoder.decode


def order_of(row: OtcOrderRow, document: OtcDocument) -> RfqOrder:
    """What was signed."""
    return RfqOrder(
        nonce_and_meta=amount_of(document.nonce_and_meta),
        expiry=document.expiry,
        maker_asset=row.maker_asset,
        taker_asset=row.taker_asset,
        maker=row.maker,
        taker=row.taker,
        maker_amount=amount_of(row.maker_amount),
        taker_amount=amount_of(row.taker_amount),
    )
