"""Cache of one maker's tokens, pairs and prices on one chain; keeps its live books in the pair index. Pure.

    /tokens  ->  token id -> address, decimals     of tokens that the operator lists with the same decimals
    /pairs   ->  pair id  -> base, quote           of pairs of such tokens
    /prices  ->  pair id  -> grid, time confirmed  of such pairs

A book is in the index exactly while the three answers have its tokens, its pair and its grid, the grid has a
level and was confirmed within `stale_ms`, and no cool-down (a rest) and no other reason withholds the book.
The answers may come in any order.

The `apply_` methods are generators that yield after every entry, for their driver to let other tasks run. The
cache is whole between two steps; an abandoned generator changes no further entry. Only one of these
generators may run at a time.

A refused pair or grid takes the pair's former book out of use. A socket message that arrives after a poll was
sent is newer than the poll's answer: an update prevails over the answer's entries of the same ids, a first
message over the whole answer. A grid without a pair is forgotten after `stale_ms`.

Source: spec 3.8, 3.11, 3.6; ARCHITECTURE.md, "Feeds".
Choice: A token without the type ERC20, or not listed with the same decimals, is left out with its pairs.
Choice: A maker has one book between two tokens, whichever is the base. Of several pair ids the first by name
    with a usable book is shown, since a renamed pair keeps its old id for a while.
Choice: A pair absent from a full /prices answer or first message is disabled; from an update, unchanged.
Choice: `liquidityUSD` of a known pair changes by polls alone; over the socket it counts in the first message
    and for new pairs. A value below zero counts as none.
"""

from bisect import bisect_left, insort
from collections import Counter, OrderedDict
from collections.abc import Iterator, Mapping
from decimal import Decimal
from typing import TypeVar

from msgspec import UNSET, Struct
from msgspec.structs import replace

from ..codecs.messages.maker_messages import (
    BlacklistBody,
    Decoded,
    Pair,
    PairsBody,
    PriceGrid,
    PricesBody,
    StreamMessage,
    Token,
    TokensBody,
)
from ..config.error_text import shown
from ..config.errors import InvalidInput
from ..config.limits import MAKER_ENTRIES_MAX, MAKER_REFUSALS_SHOWN_MAX, NAME_CHARS_MAX
from ..crypto.addresses import parse_address
from .blacklist import MakerBlacklist
from .books.book import Book, build_book, cut_ladder
from .books.pair_index import LiveBook, PairIndex, ends_of
from .standing import REFUSED_STANDINGS, CacheStatistics, PairReport, PairStanding

E = TypeVar("E")

EXCLUDED = "excluded"
"""Reason for keeping all books of a maker out of routing: the operator excludes the maker."""
_REST = "rest"
_NO_TOKENS = (b"", b"")


class _KnownToken(Struct, frozen=True):
    """Entry of a maker's token in the cache: address, decimals, and whether the token is usable.

    Attributes:
        heard_ms: time of the WebSocket message that reported the token, Unix milliseconds; 0 if a poll did.
        fault: reason why the token is unusable; empty for a usable token.
    """

    heard_ms: int
    address: bytes = b""
    decimals: int = 0
    standing: PairStanding = PairStanding.LIVE
    fault: str = ""


class _BuiltBook(Struct, frozen=True):
    """A book, with the price grid and the decimals of the two tokens from which the book was built."""

    grid: PriceGrid
    decimals: tuple[int, int]
    book: Book


class _PairEntry:
    """State of one pair id of the maker: reported pair and price grid, and whether the book is usable.

    Attributes:
        pair_fault, grid_fault: reason why the pair or grid is refused; the pair or grid is then None.
        heard_ms, priced_ms: Unix ms of the socket's last report of the pair, and of the grid; 0 after a poll.
        ends: addresses of the pair's two tokens, the lower first; two empty ones while unknown.
        usable_at: token addresses under which the entry is listed as usable; two empty ones if it is not.
        standing: LIVE if the book is usable apart from its age.
    """

    __slots__ = (
        "base",
        "built",
        "confirmed_ms",
        "ends",
        "grid",
        "grid_fault",
        "heard_ms",
        "is_stale",
        "pair",
        "pair_fault",
        "priced_ms",
        "quote",
        "reason",
        "standing",
        "usable_at",
    )

    def __init__(self) -> None:
        self.pair: Pair | None = None
        self.pair_fault = ""
        self.heard_ms = 0
        self.priced_ms = 0
        self.grid: PriceGrid | None = None
        self.grid_fault = ""
        self.confirmed_ms = 0
        self.is_stale = False
        self.base = self.quote = b""
        self.ends: tuple[bytes, bytes] = _NO_TOKENS
        self.usable_at: tuple[bytes, bytes] = _NO_TOKENS
        self.built: _BuiltBook | None = None
        self.standing = PairStanding.UNPAIRED
        self.reason = ""

    @property
    def is_usable(self) -> bool:
        return self.standing is PairStanding.LIVE and not self.is_stale


class MakerCache:
    """The books of one maker on one chain, as the maker's HTTP answers and WebSocket messages report them.

    Args:
        maker: name of the maker.
        index: the chain's live books; only this cache adds and removes this maker's books there.
        decimals: address of each token that the operator lists -> its decimals.
        stale_ms: milliseconds after which a book without a new confirmation is not used.
    """

    def __init__(
        self,
        maker: str,
        index: PairIndex,
        decimals: Mapping[bytes, int],
        *,
        stale_ms: int,
        blacklist: MakerBlacklist,
    ) -> None:
        self.maker = maker
        self.blacklist = blacklist
        self._index = index
        self._decimals = decimals
        self._stale_ms = stale_ms
        self._tokens: dict[str, _KnownToken] = {}
        self._entries: dict[str, _PairEntry] = {}
        self._ages: OrderedDict[str, None] = OrderedDict()  # pair ids with a grid, the oldest first
        self._usable: dict[tuple[bytes, bytes], list[str]] = {}  # pair ids, the first by name counts
        self._shown: dict[tuple[bytes, bytes], LiveBook] = {}
        self._withheld: set[str] = set()
        self._rests: dict[tuple[bytes, bytes], int] = {}
        self._bounds: dict[tuple[bytes, bytes], tuple[int, int]] = {}  # (src, dest) -> (base units, until)
        self._rests_until_ms = 0
        self._refused: Counter[str] = Counter()
        self._untold: dict[str, str] = {}  # pair id -> reason of a refusal since the last `take_refusals`
        self._updated_ms = 0
        self._first_ms = 0  # time of the last complete message of the socket

    # --- Reports ------------------------------------------------------------------------------------

    def apply_tokens(self, decoded: Decoded[TokensBody], asked_ms: int, now_ms: int) -> Iterator[None]:
        """Apply the answer to a /tokens poll, which lists all tokens of the maker. Yield after each entry.

        The answer is ignored if the socket's first message came after `asked_ms`, the time of the request.
        """
        self._updated_ms = now_ms
        tokens = _with_faults("tokens", decoded.body.tokens, decoded.refused)
        if asked_ms >= self._first_ms:
            yield from self._take_tokens(tokens, is_complete=True, heard_ms=0, asked_ms=asked_ms)

    def apply_pairs(self, decoded: Decoded[PairsBody], asked_ms: int, now_ms: int) -> Iterator[None]:
        """Apply the answer to a /pairs poll, which lists all pairs of the maker. Yield after each entry.

        The answer is ignored if the socket's first message came after `asked_ms`, the time of the request.
        """
        self._updated_ms = now_ms
        pairs = _with_faults("pairs", decoded.body.pairs, decoded.refused)
        if asked_ms >= self._first_ms:
            yield from self._take_pairs(pairs, is_complete=True, heard_ms=0, asked_ms=asked_ms)

    def apply_prices(self, decoded: Decoded[PricesBody], asked_ms: int, now_ms: int) -> Iterator[None]:
        """Apply the answer to a /prices poll, which disables the pairs that it lacks. Yield after each entry.

        The answer is ignored if the socket's first message came after `asked_ms`, the time of the request.
        """
        self._updated_ms = now_ms
        prices = _with_faults("prices", decoded.body.prices, decoded.refused)
        if asked_ms >= self._first_ms:
            yield from self._take_prices(prices, now_ms, is_complete=True, heard_ms=0, asked_ms=asked_ms)

    def apply_blacklist(self, decoded: Decoded[BlacklistBody], asked_ms: int, now_ms: int) -> Iterator[None]:
        """Apply the answer to a /blacklist poll, which replaces the last whole list. Yield after each entry.

        The answer is ignored if the socket's first message came after `asked_ms`, the time of the request.
        """
        self._updated_ms = now_ms
        if asked_ms >= self._first_ms:
            yield from self._take_addresses(decoded.body.blacklist, decoded.refused, now_ms, is_complete=True)

    def apply_message(
        self, decoded: Decoded[StreamMessage], now_ms: int, *, is_first: bool = False
    ) -> Iterator[None]:
        """Apply a WebSocket message; yield after each entry. If `is_first`, the message replaces all data."""
        self._updated_ms = now_ms
        if is_first:
            self._first_ms = now_ms
        body, refused = decoded.body, decoded.refused
        if body.tokens is not UNSET:
            tokens = _with_faults("tokens", body.tokens, refused)
            yield from self._take_tokens(tokens, is_complete=is_first, heard_ms=now_ms, asked_ms=now_ms)
        if body.pairs is not UNSET:
            pairs = _with_faults("pairs", body.pairs, refused)
            yield from self._take_pairs(pairs, is_complete=is_first, heard_ms=now_ms, asked_ms=now_ms)
        if body.prices is not UNSET:
            prices = _with_faults("prices", body.prices, refused)
            yield from self._take_prices(
                prices, now_ms, is_complete=is_first, heard_ms=now_ms, asked_ms=now_ms
            )
        if body.blacklist is not UNSET:
            yield from self._take_addresses(body.blacklist, refused, now_ms, is_complete=is_first)

    # --- Withholding, rests and bounds ----------------------------------------------------------------

    def withhold(self, reason: str) -> None:
        """Keep all of the maker's books out of routing for `reason`, until `release` ends the last reason."""
        self._withheld.add(reason)
        for ends in tuple(self._shown):
            self._show(ends)

    def release(self, reason: str) -> None:
        """Remove a reason of `withhold`; after the last reason, the maker's books may be routed again."""
        was_withheld = reason in self._withheld
        self._withheld.discard(reason)
        if was_withheld and not self._withheld:
            for ends in self._usable:
                self._show(ends)

    def is_withheld(self, reason: str) -> bool:
        """Whether `withhold` keeps the maker's books out of routing for this reason."""
        return reason in self._withheld

    def rest_pair(self, base: bytes, quote: bytes, until_ms: int) -> None:
        """Keep the book of two tokens (any order) out of routing until its cool-down ends at `until_ms`."""
        ends = ends_of(base, quote)
        self._rests[ends] = until_ms
        self._show(ends)

    def rest_maker(self, until_ms: int) -> None:
        """Keep all books of the maker out of routing until the maker's cool-down ends at `until_ms`."""
        self._rests_until_ms = until_ms
        self.withhold(_REST)

    def bound(self, src: bytes, dest: bytes, amount: int, until_ms: int) -> None:
        """Limit the book side that gives `dest` for `src` to `amount` raw base units, until `until_ms`."""
        self._bounds[src, dest] = amount, until_ms
        self._show(ends_of(src, dest))

    def free(self, now_ms: int) -> None:
        """End all cool-downs and size bounds of the maker's books."""
        self._rests_until_ms = now_ms
        self._rests = dict.fromkeys(self._rests, now_ms)
        self._bounds = {sides: (amount, now_ms) for sides, (amount, _) in self._bounds.items()}
        self.expire(now_ms)

    def expire(self, now_ms: int) -> None:
        """Remove stale books from the index; end cool-downs, size bounds and blacklistings that are over.

        The driver calls this method regularly.
        """
        while self._ages:
            pair_id = next(iter(self._ages))
            entry = self._entries[pair_id]
            if entry.confirmed_ms + self._stale_ms >= now_ms:
                break
            del self._ages[pair_id]
            entry.is_stale = True
            if entry.standing is PairStanding.LIVE:
                self._rank(pair_id, entry)
            elif entry.pair is None:
                self._rejudge(pair_id, entry)
        for ends in [ends for ends, until_ms in self._rests.items() if until_ms <= now_ms]:
            del self._rests[ends]
            self._show(ends)
        for sides in [sides for sides, (_, until_ms) in self._bounds.items() if until_ms <= now_ms]:
            del self._bounds[sides]
            self._show(ends_of(*sides))
        if self._rests_until_ms <= now_ms:
            self.release(_REST)
        self.blacklist.expire(now_ms)

    def due_ms(self) -> int | None:
        """Unix milliseconds of the next change by `expire`, of a stale book or the end of a rest or bound.

        The result is None without such a change. Blacklistings end by themselves.
        """
        due = [*self._rests.values(), *(until_ms for _, until_ms in self._bounds.values())]
        if _REST in self._withheld:
            due.append(self._rests_until_ms)
        if self._ages:
            due.append(self._entries[next(iter(self._ages))].confirmed_ms + self._stale_ms)
        return min(due, default=None)

    # --- Reading ------------------------------------------------------------------------------------

    def live(self, pair_id: str) -> tuple[bytes, bytes, PriceGrid] | None:
        """(base address, quote address, price grid) of a pair that is routed now; None for any other pair."""
        entry = self._entries.get(pair_id)
        if entry is None or entry.built is None or self.standing(pair_id)[0] is not PairStanding.LIVE:
            return None
        return entry.base, entry.quote, entry.built.grid

    def standing(self, pair_id: str) -> tuple[PairStanding, str]:
        """Return whether a pair is routed or why not, as kind and text. KeyError for an unknown pair id."""
        entry = self._entries[pair_id]
        if entry.standing is not PairStanding.LIVE:
            return entry.standing, entry.reason
        if entry.is_stale:
            return PairStanding.STALE, f"not confirmed for {self._stale_ms} ms"
        if self._withheld:
            return PairStanding.WITHHELD, ", ".join(sorted(self._withheld))
        if entry.ends in self._rests:
            return PairStanding.RESTING, f"rests until {self._rests[entry.ends]} Unix ms"
        if self._winner(entry.ends) is not entry:
            return PairStanding.DOUBLED, "another pair between the same two tokens is used"
        return PairStanding.LIVE, ""

    def report(self) -> Iterator[PairReport]:
        """Report each pair that the maker has named, sorted by pair id."""
        for pair_id, entry in sorted(self._entries.items()):
            standing, why = self.standing(pair_id)
            yield PairReport(
                pair_id=pair_id,
                standing=standing,
                reason=why,
                base=entry.base,
                quote=entry.quote,
                confirmed_ms=entry.confirmed_ms,
                grid=entry.grid,
            )

    def refused_pairs(self) -> dict[str, str]:
        """Return why pairs are refused: pair id -> text, the first MAKER_REFUSALS_SHOWN_MAX by id."""
        refused = sorted(
            (pair_id, entry.reason)
            for pair_id, entry in self._entries.items()
            if entry.standing in REFUSED_STANDINGS
        )
        return dict(refused[:MAKER_REFUSALS_SHOWN_MAX])

    def take_refusals(self) -> dict[str, str]:
        """Return the pairs that were refused for a new reason since the last call: pair id -> reason.

        Pairs whose refusal has passed are left out. While no token is known, all pairs have to wait.
        """
        if not self._tokens:
            return {}
        taken, self._untold = self._untold, {}
        return {
            pair_id: reason
            for pair_id, reason in taken.items()
            if (entry := self._entries.get(pair_id)) is not None
            and (entry.reason, entry.standing in REFUSED_STANDINGS) == (reason, True)
        }

    def hidden(self, *tokens: bytes) -> frozenset[PairStanding]:
        """Return the temporary reasons why books with one of `tokens` are not routed.

        These reasons are RESTING (a cool-down), STALE and WITHHELD.
        """
        found = set()
        if self._withheld:
            if any(base in tokens or quote in tokens for base, quote in self._usable):
                found.add(PairStanding.RESTING if self._withheld == {_REST} else PairStanding.WITHHELD)
        elif any(ends in self._usable and (ends[0] in tokens or ends[1] in tokens) for ends in self._rests):
            found.add(PairStanding.RESTING)
        stale = (
            entry
            for entry in self._entries.values()
            if entry.is_stale and entry.standing is PairStanding.LIVE
        )
        is_stale = any(entry.base in tokens or entry.quote in tokens for entry in stale)
        return frozenset(found | {PairStanding.STALE} if is_stale else found)

    def statistics(self) -> CacheStatistics:
        """Count pairs by standing, and list the reasons why pairs are not routed."""
        standings = {pair_id: self.standing(pair_id) for pair_id in self._entries}
        return CacheStatistics(
            pairs=Counter(standing for standing, _ in standings.values()),
            reasons={pair_id: reason for pair_id, (standing, reason) in standings.items() if reason},
            withheld=tuple(sorted(self._withheld)),
            refused=dict(self._refused),
            blacklisted=len(self.blacklist),
            updated_ms=self._updated_ms,
        )

    # --- Tokens -------------------------------------------------------------------------------------

    def _take_tokens(
        self, tokens: Mapping[str, Token | str], *, is_complete: bool, heard_ms: int, asked_ms: int
    ) -> Iterator[None]:
        if is_complete:
            gone = [name for name, token in self._tokens.items() if name not in tokens]
            for token_id in gone:
                if self._tokens[token_id].heard_ms <= asked_ms:
                    del self._tokens[token_id]
        for token_id, token in tokens.items():
            before = self._tokens.get(token_id)
            if before is None and not self._has_room("tokens", token_id, len(self._tokens)):
                continue
            if before is None or before.heard_ms <= asked_ms:
                self._tokens[token_id] = self._known_token(token_id, token, heard_ms)
            yield
        for pair_id, entry in tuple(self._entries.items()):
            pair = entry.pair
            if pair is not None and (is_complete or pair.base in tokens or pair.quote in tokens):
                self._rejudge(pair_id, entry)
                yield

    def _known_token(self, token_id: str, token: Token | str, heard_ms: int) -> _KnownToken:
        if isinstance(token, str):
            self._refused["tokens"] += 1
            return _KnownToken(heard_ms, standing=PairStanding.REFUSED_TOKEN, fault=token)
        field = f"tokens.{token_id}"
        try:
            address = parse_address(token.address, f"{field}.address")
        except InvalidInput as fault:
            self._refused["tokens"] += 1
            return _KnownToken(heard_ms, standing=PairStanding.REFUSED_TOKEN, fault=fault.detail)
        listed = self._decimals.get(address)
        if listed is None:
            unlisted = f"{field}: {token.address} is not listed"
            return _KnownToken(heard_ms, standing=PairStanding.UNLISTED_TOKEN, fault=unlisted)
        if listed != token.decimals:
            self._refused["tokens"] += 1
            other = InvalidInput(field=f"{field}.decimals", expected=str(listed), got=token.decimals)
            return _KnownToken(heard_ms, standing=PairStanding.REFUSED_TOKEN, fault=other.detail)
        return _KnownToken(heard_ms, address, listed)

    # --- Pairs --------------------------------------------------------------------------------------

    def _take_pairs(
        self, pairs: Mapping[str, Pair | str], *, is_complete: bool, heard_ms: int, asked_ms: int
    ) -> Iterator[None]:
        if is_complete:
            # Absent pairs go first: an entry that this deletes makes room (`_has_room`) for a new pair.
            for pair_id, entry in tuple(self._entries.items()):
                if pair_id in pairs or entry.heard_ms > asked_ms:
                    continue
                # An entry without a pair may be gone: `expire` runs between two entries, and deletes such.
                if entry.pair is not None or entry.pair_fault:
                    entry.pair, entry.pair_fault = None, ""
                    self._rejudge(pair_id, entry)
                    yield
        for pair_id, pair in pairs.items():
            known = self._entry("pairs", pair_id)
            if known is None or known.heard_ms > asked_ms:
                continue
            known.heard_ms = heard_ms  # 0 for a poll: the next poll's answer may replace this entry
            if isinstance(pair, str):
                self._refused["pairs"] += 1
                known.pair, known.pair_fault = None, pair
            elif is_complete or known.pair is None:
                known.pair, known.pair_fault = pair, ""
            else:
                known.pair = replace(pair, liquidity_usd=known.pair.liquidity_usd)
            self._rejudge(pair_id, known)
            yield

    # --- Prices -------------------------------------------------------------------------------------

    def _take_prices(
        self,
        grids: Mapping[str, PriceGrid | str],
        now_ms: int,
        *,
        is_complete: bool,
        heard_ms: int,
        asked_ms: int,
    ) -> Iterator[None]:
        if is_complete:
            # As in `_take_pairs`, absent pairs go first and make room.
            for pair_id, entry in tuple(self._entries.items()):
                if pair_id in grids or entry.priced_ms > asked_ms:
                    continue
                # `expire` may have deleted the entry between two steps: it then has no grid and no fault.
                if entry.grid is not None or entry.grid_fault:
                    self._take_grid(pair_id, entry, None)
                    yield
        for pair_id, grid in grids.items():
            known = self._entry("prices", pair_id)
            if known is None or known.priced_ms > asked_ms:
                continue
            known.priced_ms = heard_ms
            if isinstance(grid, str):
                self._refused["prices"] += 1
                self._take_grid(pair_id, known, None, grid)
            else:
                known.confirmed_ms = now_ms
                self._ages[pair_id] = None
                self._ages.move_to_end(pair_id)
                # An unchanged grid only renews the age: its book is neither built nor shown anew. A stale
                # entry goes through `_take_grid` all the same, which brings its book back into the index.
                if known.is_stale or grid != known.grid:
                    self._take_grid(pair_id, known, grid)
            yield

    def _take_grid(self, pair_id: str, entry: _PairEntry, grid: PriceGrid | None, fault: str = "") -> None:
        entry.grid, entry.grid_fault = grid, fault
        entry.is_stale = False
        if grid is None:
            entry.built = None
            self._ages.pop(pair_id, None)
        self._rejudge(pair_id, entry)

    # --- Blacklist ----------------------------------------------------------------------------------

    def _take_addresses(
        self, texts: tuple[str, ...], refused: Mapping[str, str], now_ms: int, *, is_complete: bool
    ) -> Iterator[None]:
        self._refused["blacklist"] += sum(name.startswith("blacklist.") for name in refused)
        addresses: set[bytes] = set()
        for text in texts:
            try:
                address = parse_address(text, "blacklist")
            except InvalidInput:
                self._refused["blacklist"] += 1
            else:
                self._refused["blacklist"] += address in addresses
                addresses.add(address)
                if not is_complete:
                    self.blacklist.add((address,), now_ms)
            yield
        if is_complete:
            self.blacklist.replace(addresses, now_ms)

    # --- Consequences -------------------------------------------------------------------------------

    def _entry(self, body: str, pair_id: str) -> _PairEntry | None:
        """Entry of a pair id, created for a new id; None if the cache has no room for another pair."""
        entry = self._entries.get(pair_id)
        if entry is None and self._has_room(body, pair_id, len(self._entries)):
            entry = self._entries[pair_id] = _PairEntry()
        return entry

    def _has_room(self, body: str, name: str, count: int) -> bool:
        has_room = count < MAKER_ENTRIES_MAX and len(name) <= NAME_CHARS_MAX
        self._refused[body] += not has_room
        return has_room

    def _rejudge(self, pair_id: str, entry: _PairEntry) -> None:
        """Recompute whether a pair is usable, after the maker's pair, prices or tokens have changed.

        Delete an entry of which nothing is left: no pair, no prices, no fault.
        """
        entry.base = entry.quote = b""
        before = entry.reason
        entry.standing, entry.reason = self._judge(pair_id, entry)
        is_news = entry.reason != before and entry.standing in REFUSED_STANDINGS
        if is_news and len(self._untold) < MAKER_ENTRIES_MAX:
            self._untold[pair_id] = entry.reason
        entry.ends = ends_of(entry.base, entry.quote)
        self._rank(pair_id, entry)
        if entry.pair is None and entry.is_stale:
            entry.grid = entry.built = None
        if entry.pair is None and entry.grid is None and not (entry.pair_fault or entry.grid_fault):
            self._ages.pop(pair_id, None)
            del self._entries[pair_id]

    def _rank(self, pair_id: str, entry: _PairEntry) -> None:
        """Update the list of usable pair ids between two tokens; the first id's book goes into the index."""
        before, ends = entry.usable_at, entry.ends if entry.is_usable else _NO_TOKENS
        entry.usable_at = ends
        if before != ends:
            if before != _NO_TOKENS:
                usable = self._usable[before]
                del usable[bisect_left(usable, pair_id)]
                if not usable:
                    del self._usable[before]
                self._show(before)
            if ends != _NO_TOKENS:
                insort(self._usable.setdefault(ends, []), pair_id)
        if ends != _NO_TOKENS:
            self._show(ends)

    def _judge(self, pair_id: str, entry: _PairEntry) -> tuple[PairStanding, str]:
        pair, grid = entry.pair, entry.grid
        if pair is None:
            if entry.pair_fault:
                return PairStanding.REFUSED_PAIR, entry.pair_fault
            return PairStanding.UNPAIRED, "not among the pairs"
        base, quote = self._tokens.get(pair.base), self._tokens.get(pair.quote)
        if base is None or quote is None:
            unknown = shown(pair.base if base is None else pair.quote)
            return PairStanding.UNKNOWN_TOKEN, f"pairs.{pair_id}: there is no token {unknown}"
        for token in (base, quote):
            if token.fault:
                return token.standing, token.fault
        if base.address == quote.address:
            return PairStanding.REFUSED_PAIR, f"pairs.{pair_id}: base and quote are the same token"
        entry.base, entry.quote = base.address, quote.address
        if entry.grid_fault:
            return PairStanding.REFUSED_GRID, entry.grid_fault
        if grid is None:
            return PairStanding.UNPRICED, "not among the prices"
        if grid.bids is UNSET and grid.asks is UNSET:
            return PairStanding.DISABLED, "disabled by {}"
        return self._build(pair_id, entry, grid, (base.decimals, quote.decimals))

    def _build(
        self, pair_id: str, entry: _PairEntry, grid: PriceGrid, decimals: tuple[int, int]
    ) -> tuple[PairStanding, str]:
        built = entry.built if entry.built is not None and entry.built.decimals == decimals else None
        if built is None or built.grid is not grid:
            entry.built = None
            previous = None if built is None else (built.grid, built.book)
            try:
                book = build_book(grid, *decimals, field=f"prices.{pair_id}", previous=previous)
            except InvalidInput as fault:
                self._refused["prices"] += 1
                return PairStanding.REFUSED_GRID, fault.detail
            built = entry.built = _BuiltBook(grid, decimals, book)
        if not (built.book.bids.prices or built.book.asks.prices):
            return PairStanding.EMPTY, "no level on either side"
        return PairStanding.LIVE, ""

    def _winner(self, ends: tuple[bytes, bytes]) -> _PairEntry | None:
        """Pair whose book the index may hold: the first usable pair id between two tokens, or None."""
        usable = self._usable.get(ends)
        return self._entries[usable[0]] if usable else None

    def _show(self, ends: tuple[bytes, bytes]) -> None:
        """Add, replace or remove the maker's book between two tokens in the index, as needed now."""
        hidden = bool(self._withheld) or ends in self._rests
        entry = None if hidden else self._winner(ends)
        book = None if entry is None or entry.built is None else self._bounded(entry, entry.built.book)
        if book is None or not (book.bids.prices or book.asks.prices):
            entry = None
        before = self._shown.get(ends)
        if before is not None and (entry is None or entry.base != before.base):
            del self._shown[ends]
            self._index.drop(self.maker, before.base, before.quote)
        if entry is None or book is None or entry.pair is None:
            return
        live = LiveBook(self.maker, entry.base, entry.quote, book, max(entry.pair.liquidity_usd, Decimal()))
        self._shown[ends] = live
        self._index.put(live)

    def _bounded(self, entry: _PairEntry, book: Book) -> Book:
        """Cut the sides of a book to the largest amounts for which the maker may be asked."""
        if not self._bounds:
            return book
        bids = self._bounds.get((entry.base, entry.quote))
        asks = self._bounds.get((entry.quote, entry.base))
        if bids is not None:
            book = replace(book, bids=cut_ladder(book.bids, bids[0]))
        if asks is not None:
            book = replace(book, asks=cut_ladder(book.asks, asks[0]))
        return book


def _with_faults(key: str, entries: Mapping[str, E], refused: Mapping[str, str]) -> Mapping[str, E | str]:
    """Merge the valid and the refused entries of an answer's member `key`: name -> entry, or text of a fault.

    Args:
        refused: path of each refused entry in the whole answer, such as `tokens.WETH` -> text of the fault.
    """
    if not refused:
        return entries
    prefix = f"{key}."
    faults = {name.removeprefix(prefix): why for name, why in refused.items() if name.startswith(prefix)}
    return {**entries, **faults}
