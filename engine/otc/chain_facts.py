"""What is known of an OTC order beside its row: what was signed, and what the chain's logs say of it. Pure.

Source: choices.md#otc-orders.
"""

from collections.abc import Sequence

from ...codecs.messages.vocabulary import OtcState
from ...config.errors import InvalidSignature
from ...crypto.signatures import signer
from ..store.rows import OtcCancel, OtcFill, OtcOrderRow, amount_of
from .document import OtcDocument
from .life import OtcFacts

_MAY_OPEN = frozenset({OtcState.FULFILLED, OtcState.CANCELLED})


def facts_of(
    row: OtcOrderRow,
    document: OtcDocument,
    fills: Sequence[OtcFill],
    cancels: Sequence[OtcCancel],
    *,
    settled_below: int = 0,
    ended_at: int | None = None,
    is_short: bool = False,
) -> OtcFacts:
    """What `life.told_by_chain` is asked with; see `OtcFacts`.

    Args:
        settled_below: 0 where nobody asks whether its end is final.
    """
    return OtcFacts(
        fills,
        cancels,
        amount_of(document.filled_before),
        settled_below,
        ended_at,
        row.status in _MAY_OPEN and not is_by_key(row, document),
        is_short,
    )


def is_by_key(row: OtcOrderRow, document: OtcDocument) -> bool:
    """Whether the maker's key made the signature; else the maker is a contract."""
    try:
        return signer(row.order_hash, document.signature) == row.maker
    except InvalidSignature:
        return False
