"""Ledger of the maker's promises: live firm quotes whose funds stay reserved until no fill is possible. Pure.

    promised --the chain reports a fill (in part)--> smaller --it reports "never seen" (reorganised)--> whole
    promised --expiry + grace--> released; a quote without a fill counts as unused --window--> forgotten

A promise holds its maker amount back from the token's funds and its notional from the pair's bound. The
grace is for chains whose clock is behind ours: a quote can be filled until a block is later than its expiry.
A filled promise is remembered until its release too: if a re-organisation undoes the fill, the ledger
reserves the amount again.

Several processes divide funds without exchanging their promises. Each of N processes may promise up to its
share, floor(funds / N). After funds fall, by a fill or a withdrawal, promises of a larger share are still
live. A process therefore assumes that each other process has promised the largest share of the last
`lifetime_s` seconds, the longest life of a promise:

    mine = min(floor(funds / N), funds - (N - 1) x largest share of that time)

Source: spec 3.1.20 to 3.1.24; interop.md 1 (`remaining`), 4 (funds strictly above makerAmount).
Guarantees: `check` refuses a quote unless all live promises of its token stay below the funds; memory is
bounded by `live_max` and UNUSED_REMEMBERED_MAX; no call does more than its `count_max` of releases.

Venues share the maker: the callers of one venue can reserve what another venue's users would have. Each of N
venues that have asked within VENUE_KEPT_S therefore finds a part of 1 / (2 N) of the funds of a token, of a
pair's bound and of the live quotes, whatever the others have reserved; the rest goes to whoever asks first.

A quote counts as unused from its signature until it fills or its window passes. A maker remembers
UNUSED_REMEMBERED_MAX unused quotes and forgets the oldest first.

Choice: A quote that the maker cancels on chain counts as filled: the contract does not distinguish them.
Guarantees: all processes together never promise more than the funds, as long as all of them read the chain
    more often than funds go up and down again.
"""

from collections import deque
from collections.abc import Collection, Mapping
from itertools import islice
from typing import TypeAlias

from msgspec import Struct

from .....codecs.rounding import div_down
from .....config.errors import FirmRefused


class Share:
    """Computes the part of the maker's funds in one token that this process may promise in firm quotes, so
    that all processes of the maker together do not promise more than the funds.

    Args:
        count: number of the maker's processes.
        lifetime_s: longest time, in seconds, for which a quote keeps funds reserved.
    """

    __slots__ = ("_count", "_largest", "_lifetime_s")

    def __init__(self, count: int, lifetime_s: int) -> None:
        self._count = count
        self._lifetime_s = lifetime_s
        self._largest: deque[tuple[int, int]] = deque()  # (until, share): shares fall from left to right

    def of(self, funds: int, now_s: int) -> int:
        """Compute the raw units of the token that this process may promise now.

        The method assumes the worst case: each other process has promised the largest equal share of the
        funds that it could have computed within the last `lifetime_s` seconds.

        Args:
            funds: the maker's funds in the token, raw units.
            now_s: wall clock, Unix seconds.
        """
        share = funds // self._count
        largest = self._largest
        while largest and largest[-1][1] <= share:
            largest.pop()
        largest.append((now_s + self._lifetime_s, share))
        while largest[0][0] < now_s:
            largest.popleft()
        return max(0, min(share, funds - (self._count - 1) * largest[0][1]))


EXPIRY_GRACE_S = 15
RELEASED_AT_ONCE = 64
UNUSED_REMEMBERED_MAX = 1_000_000
VENUE_KEPT_S = 3_600

VenueDomain: TypeAlias = bytes | None
"""Authentication domain that has signed a request for a quote; None for an unsigned request."""


class MakerHolding:
    """The maker's funds in one token, and the part reserved by live quotes.

    Attributes:
        token: 20 bytes.
        funds: raw units that this process may promise in quotes, at most the balance and the allowance; 0
            until both are known.
        reserved: raw units that live firm quotes can still take.
        by_venue: the part of `reserved` that each venue has caused.
        quote_max: most raw units that the maker gives in one quote; None sets no bound.
    """

    __slots__ = ("by_venue", "funds", "quote_max", "reserved", "token")

    def __init__(self, token: bytes, funds: int = 0, quote_max: int | None = None) -> None:
        self.token = token
        self.funds = funds
        self.reserved = 0
        self.by_venue: dict[VenueDomain, int] = {}
        self.quote_max = quote_max

    def reserve(self, venue: VenueDomain, amount: int) -> None:
        """Reserve raw units for a venue's quote; release them if `amount` is negative."""
        self.reserved += amount
        self.by_venue[venue] = self.by_venue.get(venue, 0) + amount


class Exposure:
    """Totals of the live quotes and fills of one pair.

    Attributes:
        notional: value of the unfilled parts of all live quotes, raw units of the pair's quote token.
        by_venue: the part of `notional` that each venue has caused.
        base_sold: base token that the maker sells in fills and live quotes, less base token that it buys in
            them, raw units.
        one_max, open_max: largest value of one quote, and of all live quotes together (`notional`), raw units
            of the quote token; None for no bound.
    """

    __slots__ = ("base_sold", "by_venue", "notional", "one_max", "open_max")

    def __init__(self, one_max: int | None = None, open_max: int | None = None) -> None:
        self.notional = 0
        self.by_venue: dict[VenueDomain, int] = {}
        self.base_sold = 0
        self.one_max = one_max
        self.open_max = open_max

    def expose(self, venue: VenueDomain, notional: int) -> None:
        """Add the value of a venue's quote; take it off if `notional` is negative."""
        self.notional += notional
        self.by_venue[venue] = self.by_venue.get(venue, 0) + notional


class Promise(Struct, gc=False):
    """A live firm quote, for which funds are reserved.

    Attributes:
        release_s: Unix seconds after which the quote cannot be filled.
        user: account that asked for the quote, 20 bytes.
        amount: amount that the maker gives in the signed quote, raw units.
        notional: value of the signed quote, raw units of the pair's quote token.
        base_sold: base token that the maker sells in the signed quote (negative: buys), raw units.
        venue: venue that has asked for the quote.
        left: part of `amount` that can still be filled, raw units.
        used: whether the quote was filled, also in part, or cancelled on chain.
        live: whether funds are still reserved for the quote.
    """

    release_s: int
    user: bytes
    holding: MakerHolding
    exposure: Exposure
    order_hash: bytes
    amount: int
    notional: int
    base_sold: int
    left: int
    venue: VenueDomain
    used: bool = False
    live: bool = True


class QuoteLedger:
    """All live firm quotes of one chain, with the funds reserved for each.

    Args:
        live_max: most live firm quotes.
        unused_max: number of a user's unfilled quotes, live or expired, at which the user gets no further
            quote; 0 sets no bound.
        unused_window_s: seconds for which an expired, unfilled quote still counts towards `unused_max`.
    """

    __slots__ = (
        "_heard_s",
        "_live_by_venue",
        "_live_max",
        "_queue",
        "_turn",
        "_unused",
        "_unused_by_user",
        "_unused_max",
        "_window_s",
    )

    def __init__(self, *, live_max: int, unused_max: int, unused_window_s: int) -> None:
        self._live_max = live_max
        self._unused_max = unused_max
        self._window_s = unused_window_s
        self._heard_s: dict[VenueDomain, int] = {}  # venue -> its last request for a quote, Unix seconds
        self._live_by_venue: dict[VenueDomain, int] = {}
        # By release time, since every quote lives equally long. After a restart with a shorter life, new
        # quotes stand behind old ones that live longer: their funds are released late, never early.
        self._queue: deque[Promise] = deque()
        self._turn = 0  # index in the queue where `take_turns` goes on
        self._unused: deque[tuple[int, bytes]] = deque()
        self._unused_by_user: dict[bytes, int] = {}

    def __len__(self) -> int:
        """Number of live firm quotes."""
        return len(self._queue)

    def admits(self, user: bytes, now_s: int) -> bool:
        """Whether `user` may get a quote, having fewer than `unused_max` unfilled quotes.

        The method also releases some expired quotes.

        Args:
            now_s: Unix seconds, as for `release_expired`.
        """
        queue, unused = self._queue, self._unused
        if (queue and queue[0].release_s < now_s) or (unused and unused[0][0] < now_s):
            self.release_expired(now_s)
        return not self._unused_max or self._unused_by_user.get(user, 0) < self._unused_max

    def check(
        self,
        holding: MakerHolding,
        amount: int,
        exposure: Exposure,
        notional: int,
        venue: VenueDomain = None,
        now_s: int = 0,
    ) -> None:
        """Raise FirmRefused unless the maker's funds and the pair's bounds allow one more firm quote.

        Args:
            venue: venue that asks for it; from now on a part of all bounds is kept for this venue.
            now_s: Unix seconds.
            amount: raw units of the token of `holding` that the maker would give.
            notional: value of the quote, raw units of the pair's quote token.

        Raises:
            FirmRefused: the quote would exceed a bound; the message names the bound, not its value.
        """
        if holding.quote_max is not None and amount > holding.quote_max:
            raise FirmRefused(message="Notional limit", detail="makerAmount is above quote_max of the token")
        if exposure.one_max is not None and notional > exposure.one_max:
            raise FirmRefused(message="Notional limit", detail="the quote is above notional_max of the pair")
        others = self._others(venue, now_s)
        open_max = exposure.open_max
        if others and open_max is not None:
            open_max -= _kept(open_max, exposure.by_venue, others)
        if open_max is not None and exposure.notional + notional > open_max:
            raise FirmRefused(
                message="Notional limit",
                detail="open quotes of the pair are at open_notional_max; retry later",
            )
        free, live_max = holding.funds - holding.reserved, self._live_max
        if others:
            free -= _kept(holding.funds, holding.by_venue, others)
            live_max -= _kept(live_max, self._live_by_venue, others)
        if amount >= free:
            raise FirmRefused(message="Not enough funds", detail="ask for less, or retry later")
        if len(self._queue) >= live_max:
            raise FirmRefused(message="Too many open quotes", detail="retry later")

    def promise(
        self,
        order_hash: bytes,
        user: bytes,
        holding: MakerHolding,
        amount: int,
        exposure: Exposure,
        notional: int,
        base_sold: int,
        expiry_s: int,
        venue: VenueDomain = None,
    ) -> Promise:
        """Reserve the funds for a firm quote that `check` allows, until EXPIRY_GRACE_S after its expiry.

        Args:
            amount: raw units of the token of `holding` that the maker gives.
            notional: value of the quote, raw units of the pair's quote token.
            base_sold: raw units of the pair's base token that the maker sells; negative if the maker buys.
            expiry_s: expiry of the quote, Unix seconds.
        """
        promise = Promise(
            expiry_s + EXPIRY_GRACE_S,
            user,
            holding,
            exposure,
            order_hash,
            amount,
            notional,
            base_sold,
            amount,
            venue,
        )
        holding.reserve(venue, amount)
        exposure.expose(venue, notional)
        self._live_by_venue[venue] = self._live_by_venue.get(venue, 0) + 1
        exposure.base_sold += base_sold
        self._queue.append(promise)
        if self._unused_max:
            counts = self._unused_by_user
            counts[user] = counts.get(user, 0) + 1
        return promise

    def release_expired(self, now_s: int, count_max: int = RELEASED_AT_ONCE) -> bool:
        """Release the funds of quotes that can no longer be filled, and forget old unfilled quotes.

        Args:
            now_s: Unix seconds: the timestamp of the block at which balances were last read, or the wall
                clock if the maker does not use block times.
            count_max: most quotes to release, and most unfilled quotes to forget.

        Returns:
            Whether `count_max` was reached, so that more quotes may wait to be released or forgotten.
        """
        queue, unused = self._queue, self._unused
        left = count_max
        while queue and queue[0].release_s < now_s and left:
            left -= 1
            self._turn = max(0, self._turn - 1)  # the queue moves up: `take_turns` would skip a quote
            promise = queue.popleft()
            promise.live = False  # so that `settle`, after a read that is under way, changes nothing any more
            promise.holding.reserve(promise.venue, -promise.left)
            promise.exposure.expose(promise.venue, -_part(promise.notional, promise))
            self._live_by_venue[promise.venue] -= 1
            promise.exposure.base_sold -= _part(promise.base_sold, promise)
            if self._unused_max and not promise.used:
                unused.append((promise.release_s + self._window_s, promise.user))
        while unused and count_max and (unused[0][0] < now_s or len(unused) > UNUSED_REMEMBERED_MAX):
            count_max -= 1
            self._count(unused.popleft()[1], -1)
        return not (left and count_max)

    def settle(self, promise: Promise, remaining: int) -> None:
        """Adapt the funds reserved for a quote to the part of the quote that is still unfilled on chain.

        Args:
            promise: the quote; nothing happens if its funds are already released.
            remaining: result of the RFQ contract's `remaining` for the quote: 0 if the contract has not seen
                the quote, 1 if filled or cancelled, else the unfilled part of the maker amount plus 1.
        """
        if not promise.live:
            return
        left = min(remaining - 1, promise.amount) if remaining else promise.amount
        if left == promise.left:
            return
        notional_before = _part(promise.notional, promise)
        promise.holding.reserve(promise.venue, left - promise.left)
        promise.left = left
        promise.exposure.expose(promise.venue, _part(promise.notional, promise) - notional_before)
        used = left < promise.amount
        if self._unused_max and used is not promise.used:
            self._count(promise.user, -1 if used else 1)
        promise.used = used

    def promises(self) -> list[Promise]:
        """List all live firm quotes, in the order in which their funds were reserved."""
        return list(self._queue)

    def take_turns(self, count: int) -> list[Promise]:
        """Return at most `count` live firm quotes, so that repeated calls cycle through all live quotes.

        The caller reads the fills of the returned quotes from the chain.
        """
        if self._turn >= len(self._queue):
            self._turn = 0
        taken = list(islice(self._queue, self._turn, self._turn + count))
        self._turn += len(taken)
        return taken

    def _others(self, venue: VenueDomain, now_s: int) -> Collection[VenueDomain]:
        """Note a venue's request; return the other venues that have asked within VENUE_KEPT_S."""
        heard = self._heard_s
        heard[venue] = now_s
        if len(heard) == 1:
            return ()
        return [other for other, at_s in heard.items() if other != venue and at_s > now_s - VENUE_KEPT_S]

    def _count(self, user: bytes, change: int) -> None:
        count = self._unused_by_user.get(user, 0) + change
        if count > 0:
            self._unused_by_user[user] = count
        else:
            self._unused_by_user.pop(user, None)


def _kept(whole: int, by_venue: Mapping[VenueDomain, int], others: Collection[VenueDomain]) -> int:
    """Compute how much of a whole is kept for other venues, at least one, beyond what these have already."""
    each = whole // (2 * (len(others) + 1))
    return sum([max(each - by_venue.get(other, 0), 0) for other in others])


def _part(whole: int, promise: Promise) -> int:
    """Compute the share of `whole` (a figure for the entire quote) that falls on the quote's unfilled part.

    The result is rounded down.
    """
    if promise.left == promise.amount:
        return whole
    return div_down(whole * promise.left, promise.amount)
