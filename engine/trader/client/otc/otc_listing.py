"""A venue's lists of OTC orders, page by page, and their rows. Only `otc_pages` does I/O.

If the venue sends `asOf`, all pages belong to one snapshot of the listing. Without `asOf`, each order is
reported once, and a new order may be missing.

Source: spec 2.8 and 2.9; interop.md 1.
"""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime

from msgspec import Struct

from .....codecs.messages.otc_messages import StoredOrder
from .....codecs.messages.vocabulary import OtcOrderBy, OtcType
from .....config.error_text import one_line
from .....config.limits import LISTING_LIMIT_DEFAULT, UINT256_MAX
from .....crypto.addresses import ZERO_ADDRESS, to_checksum
from ..client import VenueClient
from ..listing import TokenOf, listed_amount, pages_once
from .otc_safety import check_listed
from .otc_terms import party

OTC_HEADERS = (
    "created",
    "hash",
    "state",
    "sells",
    "for",
    "left",
    "fillable now",
    "expires",
    "maker",
    "taker",
)
_YEAR_9999_S = 253_402_300_799


class OtcWanted(Struct, frozen=True, kw_only=True):
    """Filters and range of a venue's listing of OTC orders.

    Attributes:
        role: `maker` or `taker`: the account's role in the orders.
        account: 20 bytes; empty if not known yet.
        hides_small: whether the venue leaves out orders with next to nothing left to fill.
        count_max: maximum number of orders.
        offset: number of orders that are skipped at the beginning.
    """

    chain_id: int
    role: str
    account: bytes
    type: OtcType | None = None
    order_by: OtcOrderBy = OtcOrderBy.CREATED_AT
    hides_small: bool = False
    count_max: int = UINT256_MAX
    offset: int = 0

    def query(self, limit: int, offset: int, as_of: str) -> dict[str, str | int]:
        """The query parameters that request one page of the listing.

        Args:
            as_of: snapshot of the listing that the previous page named; empty for the first page.
        """
        return {
            "limit": limit,
            "offset": offset,
            "orderBy": self.order_by.value,
            "type": "" if self.type is None else self.type.value,
            "hideSmallBalances": "true" if self.hides_small else "",
            "asOf": as_of,
        }


def otc_pages(venue: VenueClient, wanted: OtcWanted) -> AsyncIterator[list[StoredOrder]]:
    """Yield an account's OTC orders at a venue, page by page, each order once.

    Raises:
        VenueError: the venue refuses, does not answer, or lists an order outside the filters.
    """
    offset, as_of, account = wanted.offset, "", to_checksum(wanted.account)

    async def ask(left: int) -> tuple[Sequence[StoredOrder], bool]:
        nonlocal offset, as_of
        query = wanted.query(min(LISTING_LIMIT_DEFAULT, left), offset, as_of)
        page = await venue.otc_orders(wanted.chain_id, wanted.role, account, query)
        for stored in page.orders:
            check_listed(stored, wanted.chain_id, wanted.role, wanted.account)
        as_of = page.as_of
        offset += len(page.orders)
        return page.orders, page.has_more

    return pages_once(ask, lambda stored: stored.order_hash, wanted.count_max)


def otc_row(stored: StoredOrder, token_of: TokenOf) -> tuple[str, ...]:
    """An OTC order's table cells, one for each column of OTC_HEADERS."""
    gives = token_of(stored.chain_id, stored.maker_asset)
    wants = token_of(stored.chain_id, stored.taker_asset)
    return (
        time_text(stored.created_at),
        stored.order_hash,
        stored.state.value,
        listed_amount(stored.maker_amount, gives, stored.maker_asset),
        listed_amount(stored.taker_amount, wants, stored.taker_asset),
        listed_amount(stored.fillable_balance, gives),
        listed_amount(stored.swappable_balance, gives),
        time_text(stored.expiry) if stored.expiry else "never",
        one_line(stored.maker),
        taker_text(party(stored.taker)),
    )


def taker_text(taker: bytes) -> str:
    """Text for an order's taker: the address of the account that may fill the order, or "anyone"."""
    return "anyone" if taker == ZERO_ADDRESS else to_checksum(taker)


def time_text(time_s: int) -> str:
    """Unix seconds as a UTC date and time to the minute."""
    return datetime.fromtimestamp(min(time_s, _YEAR_9999_S), UTC).strftime("%Y-%m-%d %H:%M")
