"""The maker's last requests for firm quotes, for the operator: signed ones, and refused ones with the reason.

The hot path appends four references to a ring, of objects that it has made anyway; JSON values are made when
the operator asks. Texts of refused requests come from outside and are cut to the length that a right one has.

    signed          "" as reason
    blacklisted     an answer without an order: `blacklisted`
    refused         a `RefusalReason`, or FirmRefused's own reason (`config.request_errors`)
"""

from collections import deque
from collections.abc import Iterable, Iterator
from enum import StrEnum
from heapq import nlargest
from itertools import islice
from typing import Any, Protocol, TypeAlias

from msgspec import Struct

from .....codecs.messages.maker_messages import FirmRequest
from .....config.errors import FirmRefused, InvalidInput, ServiceUnavailable, TradingStopped
from .....config.limits import AMOUNT_DIGITS_MAX, MAKER_RECENT_QUOTES_MAX
from .board import PairState
from .ledger import MakerHolding, Promise

_ADDRESS_CHARS = 42
_MEMBERS = 4  # of a request, in the ring one after the other


class RefusalReason(StrEnum):
    """Reasons against a firm quote that are not those of `FirmRefused`."""

    BLACKLISTED = "blacklisted"
    MALFORMED = "malformed"
    STOPPED = "stopped"
    WITHHELD = "withheld"
    FAULT = "fault"


class QuotedDirection(Protocol):
    """A pair in one trade direction, as `quotes.PairDirection`."""

    @property
    def state(self) -> PairState:
        """The pair."""
        ...

    @property
    def holding(self) -> MakerHolding:
        """The maker's funds in the token that it gives."""
        ...

    @property
    def takes(self) -> bytes:
        """Address of the token that the maker takes, 20 bytes."""
        ...

    @property
    def gives_base(self) -> bool:
        """Whether the maker gives the base token."""
        ...


class RefusedQuote(Struct, frozen=True, gc=False):
    """A request without a quote; texts as the request writes them, empty where it names none.

    Attributes:
        pair_id: pair of the request; empty if the maker quotes none.
        user: the user's address.
        gives, takes: addresses of the tokens that the maker would give and take.
        given, taken: raw units that the maker would give and take; empty for the one that follows from
            prices.
        reason: RefusalReason, or FirmRefused's reason.
    """

    pair_id: str
    user: str
    gives: str
    takes: str
    given: str
    taken: str
    reason: str


RecentRing: TypeAlias = "deque[Promise | RefusedQuote | int | float]"
"""Ring of the last requests on one chain, the latest last, each with four members in a row.

The members are the signed quote's promise or the RefusedQuote; the time, Unix milliseconds; `perf_counter()`
at the begin and at the end of the answer.
"""


def recent_ring() -> RecentRing:
    """Create an empty ring of MAKER_RECENT_QUOTES_MAX requests."""
    return deque(maxlen=_MEMBERS * MAKER_RECENT_QUOTES_MAX)


def refusal_reason(error: Exception) -> str:
    """Return the reason that a refusal by an error counts under."""
    match error:
        case FirmRefused():
            return error.reason
        case InvalidInput():
            return RefusalReason.MALFORMED
        case TradingStopped():
            return RefusalReason.STOPPED
        case ServiceUnavailable():
            return RefusalReason.WITHHELD
        case _:
            return RefusalReason.FAULT


def refused_quote(request: FirmRequest | None, pair_id: str, reason: str) -> RefusedQuote:
    """Describe a request without a quote.

    Args:
        request: None if the body was unreadable.
        pair_id: pair of the request; empty if the maker quotes none.
    """
    if request is None:
        return RefusedQuote("", "", "", "", "", "", reason)
    return RefusedQuote(
        pair_id=pair_id,
        user=request.user_address[:_ADDRESS_CHARS],
        gives=request.maker_asset[:_ADDRESS_CHARS],
        takes=request.taker_asset[:_ADDRESS_CHARS],
        given=(request.maker_amount or "")[:AMOUNT_DIGITS_MAX],
        taken=(request.taker_amount or "")[:AMOUNT_DIGITS_MAX],
        reason=reason,
    )


def shown_quotes(
    chains: Iterable[tuple[int, RecentRing, Iterable[QuotedDirection]]],
) -> list[dict[str, Any]]:
    """Return the last MAKER_RECENT_QUOTES_MAX requests of all chains as JSON values, the latest first.

    Args:
        chains: of each chain its id, its ring, and the pairs in each direction that the maker quotes.
    """
    entries = (entry for chain_id, ring, markets in chains for entry in _entries(chain_id, ring, markets))
    return [shown for _, shown in nlargest(MAKER_RECENT_QUOTES_MAX, entries, key=lambda entry: entry[0])]


def _entries(
    chain_id: int, ring: RecentRing, markets: Iterable[QuotedDirection]
) -> Iterator[tuple[tuple[int, int], dict[str, Any]]]:
    """Yield each request of a chain with its sort key: the time, and its place in the ring."""
    # By identity: a pair has an exposure of its own, and a direction gives the token of one holding.
    directions = {(id(market.state.exposure), id(market.holding)): market for market in markets}
    names = "pair", "user", "srcToken", "destToken", "srcAmount", "destAmount"
    columns: list[Any] = [islice(ring, at, None, _MEMBERS) for at in range(_MEMBERS)]
    for place, (quote, at_ms, began_s, ended_s) in enumerate(zip(*columns, strict=True)):
        if isinstance(quote, Promise):
            values, reason = _signed(quote, directions[id(quote.exposure), id(quote.holding)]), ""
        else:
            values = quote.pair_id, quote.user, quote.takes, quote.gives, quote.taken, quote.given
            reason = quote.reason
        yield (
            (at_ms, place),
            {
                "at": at_ms,
                "chainId": chain_id,
                **dict(zip(names, values, strict=True)),
                "tookUs": round((ended_s - began_s) * 1_000_000),
                "signed": not reason,
                "reason": reason,
            },
        )


def _signed(promise: Promise, market: QuotedDirection) -> tuple[str, ...]:
    """Return pair, user, tokens and amounts of a signed quote: taken and given token, their raw units."""
    # The value of a quote is the amount of the quote token, and `base_sold` that of the base token.
    taken = promise.notional if market.gives_base else -promise.base_sold
    addresses = [f"0x{address.hex()}" for address in (promise.user, market.takes, market.holding.token)]
    return market.state.pair_id, *addresses, str(taken), str(promise.amount)
