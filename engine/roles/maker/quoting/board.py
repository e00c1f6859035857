"""The published tokens, pairs and price grids of one chain, kept in encoded form. No I/O.

A grid is checked and its book built before either is shown; a bad grid disables only its own pair, until a
good grid comes: neither the old price nor the bad one may be signed. The shown grids are kept encoded, per
pair, so that the body of /prices and the first WebSocket message are one join.

    absent side of a source's grid   shown as `[]`: strict consumers skip a pair that lacks a side
    disabled, retired, halted, stale, withheld     shown as `{}`

Source: spec 3.8, 3.6.2; interop.md 4.
Choice: A price too old to be signed is not shown either.
Choice: A price source may write decimals as its language prints them; they are shown in plain digits.
"""

import re
from collections.abc import Iterable, Mapping

from .....codecs.amounts import plain_decimal
from .....codecs.messages.maker_messages import Level, Pair, PriceGrid, Token
from .....codecs.messages.wire import encode
from .....config.errors import InvalidInput
from .....feeds.books.book import Book, build_book
from .ledger import Exposure

_EMPTY = b"{}"
_NO_GRID = PriceGrid()
_UNUSUAL = re.compile(rb'[eE+-]|"\.|\."|\.[0-9]{37}')
"""What no encoded grid has but one whose decimals are not in plain digits; the keys have no such letter."""


def message_tail(message: str) -> bytes:
    """Encode the end of a JSON body: its `message`, if any, and the closing brace."""
    return b',"message":%b}' % encode(message) if message else b"}"


class PairState:
    """A pair with its current order book and its published price grid (bids and asks).

    Attributes:
        grid: the price source's last valid grid; empty while the pair is disabled.
        book: order book made of `grid`; None while the pair is disabled.
        exposure: totals of the pair's quotes and fills.
        updated_ms: Unix milliseconds at which the source last yielded or confirmed the price.
        halted: whether the operator has stopped the pair.
        retired: whether the settings withdraw the pair for good.
        key, fragment: the pair id and the published grid as JSON, for response bodies.
        published_ms: time of the last WebSocket message with this price, Unix milliseconds.
    """

    __slots__ = (
        "base_decimals",
        "book",
        "exposure",
        "fragment",
        "grid",
        "halted",
        "key",
        "pair_id",
        "published_ms",
        "quote_decimals",
        "retired",
        "updated_ms",
    )

    def __init__(
        self,
        pair_id: str,
        base_decimals: int,
        quote_decimals: int,
        exposure: Exposure,
        *,
        retired: bool = False,
    ) -> None:
        self.pair_id = pair_id
        self.key = encode(pair_id) + b":"
        self.base_decimals = base_decimals
        self.quote_decimals = quote_decimals
        self.exposure = exposure
        self.retired = retired
        self.halted = False
        self.grid = _NO_GRID
        self.book: Book | None = None
        self.fragment = _EMPTY
        self.updated_ms = 0
        self.published_ms = 0


class Board:
    """Published tokens, pairs and prices of one chain.

    Attributes:
        tokens_body, pairs_body: response bodies of GET /tokens and GET /pairs.
        withheld: whether the maker signs no quotes on the chain now, and therefore publishes no prices.
        price_life_ms: milliseconds after which a price that its source has not confirmed is neither published
            nor signed.
        pairs: by id, in the order of the settings.
        dirty: pairs whose price is to be sent to the WebSocket consumers, as it has changed or is due for a
            refresh.
    """

    def __init__(
        self,
        tokens: Mapping[str, Token],
        pairs: Mapping[str, Pair],
        states: Iterable[PairState],
        *,
        price_life_ms: int,
        message: str = "",
    ) -> None:
        self.pairs = {state.pair_id: state for state in states}
        self.dirty: dict[str, PairState] = {}
        self.price_life_ms = price_life_ms
        self.withheld = False
        self._tokens, self._pairs = encode(tokens), encode(pairs)
        self._tail = message_tail(message)
        self.tokens_body = b'{"tokens":%b%b' % (self._tokens, self._tail)
        self.pairs_body = b'{"pairs":%b%b' % (self._pairs, self._tail)
        self._prices_body: bytes | None = None

    def apply(self, pair_id: str, grid: PriceGrid, now_ms: int) -> None:
        """Set a pair's current prices to a price grid from the price source.

        A grid without bids and asks disables the pair.

        Args:
            now_ms: wall clock, Unix milliseconds.

        Raises:
            InvalidInput: the pair is unknown, or the grid is invalid, which disables the pair.
        """
        state = self.pairs.get(pair_id)
        if state is None:
            raise InvalidInput(field="prices", expected="a pair of this chain", got=pair_id)
        if grid is state.grid or grid == state.grid:  # confirmed: its age starts anew
            state.updated_ms = now_ms
            self._show(state, now_ms)
            return
        before = (state.grid, state.book) if state.book is not None else None
        try:
            book = build_book(
                grid, state.base_decimals, state.quote_decimals, field=f"prices.{pair_id}", previous=before
            )
        except InvalidInput:  # the old price must not stay: its source has given it up
            self.disable(pair_id)
            raise
        disabled = not (grid.bids or grid.asks)
        state.grid, state.book = grid, None if disabled else book
        state.updated_ms = now_ms
        self._show(state, now_ms, changed=True)

    def disable(self, pair_id: str) -> None:
        """Stop quoting a pair until a valid price grid arrives; an unknown pair is ignored."""
        state = self.pairs.get(pair_id)
        if state is not None:
            state.grid, state.book = _NO_GRID, None
            self._show(state, state.updated_ms, changed=True)

    def refresh(self, now_ms: int) -> None:
        """Update every pair's published price: a price too old to be signed is no longer published."""
        for state in self.pairs.values():
            self._show(state, now_ms)

    def prices_body(self) -> bytes:
        """Build the response body of GET /prices from the published prices of all pairs."""
        if self._prices_body is None:
            self._prices_body = b'{"prices":{%b}%b' % (self._joined(self.pairs.values()), self._tail)
        return self._prices_body

    def first_message(self, blacklist: bytes) -> bytes:
        """Build a consumer's first WebSocket message: content of /tokens, /pairs, /prices and /blacklist;
        `blacklist` is a JSON array.
        """
        prices = self._joined(self.pairs.values())
        return b'{"tokens":%b,"pairs":%b,"prices":{%b},"blacklist":%b%b' % (
            self._tokens,
            self._pairs,
            prices,
            blacklist,
            self._tail,
        )

    def take_changes(self, now_ms: int) -> bytes | None:
        """Build the WebSocket message with all prices that changed or were marked for sending since the last
        call; None if there are none.
        """
        if not self.dirty:
            return None
        changed, self.dirty = self.dirty, {}
        for state in changed.values():
            state.published_ms = now_ms
        return b'{"prices":{%b}}' % self._joined(changed.values())

    def mark_for_refresh(self, now_ms: int, refresh_ms: int) -> None:
        """Mark prices for another WebSocket message.

        The method marks every price that was last sent at least `refresh_ms` milliseconds ago and that the
        price source has confirmed since.
        """
        for state in self.pairs.values():
            confirmed = state.updated_ms > state.published_ms
            if state.fragment is not _EMPTY and confirmed and now_ms - state.published_ms >= refresh_ms:
                self.dirty[state.pair_id] = state

    def is_stale(self, state: PairState, now_ms: int) -> bool:
        """Whether the pair's price is too old to be signed."""
        return now_ms - state.updated_ms > self.price_life_ms

    def _joined(self, states: Iterable[PairState]) -> bytes:
        return b",".join([state.key + state.fragment for state in states])

    def _show(self, state: PairState, now_ms: int, *, changed: bool = False) -> None:
        quoted = state.book is not None and not (
            state.retired or state.halted or self.withheld or self.is_stale(state, now_ms)
        )
        if not changed and quoted is (state.fragment is not _EMPTY):
            return
        fragment = _published(state.grid) if quoted else _EMPTY
        if fragment == state.fragment:
            return
        state.fragment = fragment
        self._prices_body = None
        self.dirty[state.pair_id] = state


def _published(grid: PriceGrid) -> bytes:
    """Encode a valid grid with both sides, in plain digits."""
    encoded = encode({"bids": grid.bids or (), "asks": grid.asks or ()})
    if not _UNUSUAL.search(encoded):
        return encoded
    return encode({"bids": _plain(grid.bids or (), up=False), "asks": _plain(grid.asks or (), up=True)})


def _plain(levels: Iterable[Level], *, up: bool) -> list[Level]:
    """Rewrite levels in plain digits, with prices rounded as `build_ladder` rounds them."""
    return [(plain_decimal(price, up=up), plain_decimal(amount)) for price, amount in levels]
