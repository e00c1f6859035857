"""The stored document of an OTC order: signature and signed members that the order's row lacks. Pure.

    row + document          -> RfqOrder, the signed struct
    row + document          -> StoredOrder, the answer to a post and every read
    row + document + logs   -> OtcFacts, the input of the life cycle step

Source: spec 2.3; ARCHITECTURE.md, "Databases" (the signed document is a row of its own);
    choices.md#otc-orders; spec 2.4.
Choice: A `StoredOrder` has addresses with checksums. Its signature is as posted, except that v in a key's
    signature of 65 bytes becomes 27 or 28.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec
from msgspec import Struct

from ....codecs.eip712_orders.rfq import RfqOrder
from ....codecs.messages.otc_messages import StoredOrder
from ....codecs.messages.vocabulary import OtcState
from ....config.errors import InvalidSignature
from ....crypto.addresses import to_checksum
from ....crypto.hexadecimal import to_hex
from ....crypto.signatures import signer
from ...store.rows import OtcCancel, OtcFill, OtcOrderRow, amount_of
from .life import OtcFacts


class OtcDocument(Struct, frozen=True, array_like=True):
    """Members of a posted OTC order that are stored beside its row: signature, permit and others.

    Attributes:
        nonce_and_meta: signed member `nonceAndMeta`, 32 bytes.
        expiry: signed expiry, Unix seconds; 0 for never.
        signature: the maker's signature, in the form that the RFQ contract takes and the API returns.
        permit: signed allowance for the token that the maker sells, as posted; None if the posted body had no
            permit member.
        filled_before: raw units of the maker's asset, as 32 bytes, that were filled before the indexer began
            to follow the chain; table `otc_fill` lacks these fills.
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
    """Rebuild the EIP-712 struct that the maker signed from the order's row and document."""
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


_MAY_OPEN = frozenset({OtcState.FULFILLED, OtcState.CANCELLED})


def facts_of(
    row: OtcOrderRow,
    document: OtcDocument,
    fills: Sequence[OtcFill],
    cancels: Sequence[OtcCancel],
    *,
    final_height: int = 0,
    ended_at: int | None = None,
    is_short: bool = False,
) -> OtcFacts:
    """Collect an order's logs and stored data as input of `life.step_from_logs`; see `OtcFacts`.

    Args:
        final_height: height up to which blocks are final; 0 if finality does not matter.
        ended_at: for an order that ended without a log (by expiry), the last indexed height when the end was
            first noticed; None if unknown.
        is_short: whether the maker's last known funds do not cover the order.
    """
    return OtcFacts(
        fills=fills,
        cancels=cancels,
        filled_before=amount_of(document.filled_before),
        final_height=final_height,
        ended_at=ended_at,
        is_by_contract=row.status in _MAY_OPEN and not is_by_key(row, document),
        is_short=is_short,
    )


def is_by_key(row: OtcOrderRow, document: OtcDocument) -> bool:
    """Whether the maker's key made the order's signature; if not, the maker is a contract."""
    try:
        return signer(row.order_hash, document.signature) == row.maker
    except InvalidSignature:
        return False


_address_text = lru_cache(maxsize=4_096)(to_checksum)  # a listing is of one account, and of few tokens


def stored_order(row: OtcOrderRow, document: OtcDocument) -> StoredOrder:
    """Convert an OTC order's row and document into the JSON struct that the API returns."""
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
