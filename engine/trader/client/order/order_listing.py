"""A venue's list of Delta orders, page by page, and the rows of its table. Only `pages` does I/O.

Pages count from the newest order: a listing reports each order once, and may miss orders that arrive while
it is read.

Source: spec 1.19; interop.md 3.
"""

from collections.abc import AsyncIterator, Sequence
from decimal import Decimal
from itertools import count

from msgspec import UNSET, Struct, UnsetType

from .....codecs.messages.delta_messages import OrderRecord
from .....codecs.messages.resource_messages import TokenEntry
from .....codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from .....config.error_text import one_line
from ..client import VenueClient
from ..listing import TokenOf, listed_amount, pages_once

_PAGE_ORDERS = 50  # a page must fit into JSON_BYTES_MAX
_TIME_CHARS = 16  # of ISO 8601, up to the minute
_PERCENT_PLACES = Decimal("0.01")
_TWAPS = frozenset((OnChainOrderType.TWAP_ORDER, OnChainOrderType.TWAP_BUY_ORDER))
HEADERS = ("created", "id", "status", "kind", "chain", "sells", "for", "filled", "expires")


class OrdersWanted(Struct, frozen=True, kw_only=True):
    """Filters of a venue's listing of Delta orders; an empty member matches any order.

    Attributes:
        owner: address of the orders' owner.
    """

    owner: str = ""
    chain_ids: tuple[int, ...] = ()
    statuses: tuple[OrderStatus, ...] = ()

    def query(self) -> dict[str, str]:
        """The filters as query parameters of GET /v2/delta/orders."""
        return {
            "userAddress": self.owner,
            "chainId": ",".join(map(str, self.chain_ids)),
            "status": ",".join(self.statuses),
            "limit": str(_PAGE_ORDERS),
        }


def pages(venue: VenueClient, wanted: OrdersWanted) -> AsyncIterator[list[OrderRecord]]:
    """Yield a venue's Delta orders, page by page, the newest first, each order once.

    Raises:
        VenueError: the venue refuses or does not answer.
    """
    query, numbers = wanted.query(), count(1)

    async def ask(_: int) -> tuple[Sequence[OrderRecord], bool]:
        page = await venue.orders(query, next(numbers))
        return page.data, page.has_more

    return pages_once(ask, lambda record: record.id)


def order_row(record: OrderRecord, token_of: TokenOf) -> tuple[str, ...]:
    """An order's table cells, one for each column of HEADERS."""
    src = token_of(record.input.chain_id, record.input.token)
    dest = token_of(record.output.chain_id, record.output.token)
    sells = record.side is Side.SELL
    given = record.input.amount if sells else record.input.max_amount
    got = record.output.min_amount if sells else record.output.amount
    filled = sum((each.filled_percent for each in record.transactions), Decimal(0))
    return (
        _time(record.created_at),
        record.id,
        record.status.value,
        _kind(record),
        _chains(record.input.chain_id, record.output.chain_id),
        ("" if sells else "at most ") + _amount(given, src, record.input.token),
        ("at least " if sells else "") + _amount(got, dest, record.output.token),
        f"{filled.quantize(_PERCENT_PLACES).normalize():f} %",
        _time(record.expires_at),
    )


def _kind(record: OrderRecord) -> str:
    if record.on_chain_order_type in _TWAPS:
        name = "twap"
    else:
        name = "limit" if record.type is OrderType.LIMIT else "swap"
    parts = " in parts" if record.on_chain_order_type is OnChainOrderType.FILLABLE_ORDER else ""
    return f"{name}{parts}"


def _chains(origin: int, destination: int) -> str:
    return f"{origin}" if destination == origin else f"{origin} to {destination}"


def _amount(text: str | UnsetType, token: TokenEntry | None, address: str) -> str:
    return one_line(address) if text is UNSET else listed_amount(text, token, address)


def _time(text: str) -> str:
    return one_line(text[:_TIME_CHARS].replace("T", " "))
