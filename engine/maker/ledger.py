"""What the maker has promised: live firm quotes, reserved until they expire or fill. Pure; time is passed in.

    promised --expiry + grace--> unused --window--> forgotten
    promised --filled (in part)--> smaller, and no longer unused --closed or expired--> released

A promise holds its maker amount back from the token's funds and its notional from the pair's bound. The
grace is for chains whose clock is behind ours: a quote can be filled until a block is later than its expiry.
A user whose quotes stay unused too often is told by the caller to the blacklist.

Guarantees: the sum of live promises of a token is below its funds, where funds do not shrink by themselves;
memory is bounded by `live_max` and by what a window of unused quotes holds.

Choice: a quote of a user counts as unused from its signature on, until it fills or its window has passed.
Source: document 3, "What the service does"; interop.md 4 (funds strictly above makerAmount).
"""

from collections import deque
from collections.abc import Iterable
from itertools import islice

from msgspec import Struct

from ...config.errors import FirmRefused

EXPIRY_GRACE_S = 15


class Holding:
    """One token of the maker.

    Attributes:
        token: 20 bytes.
        funds: raw units that may be promised: the lesser of balance and allowance; 0 until known.
        reserved: raw units in live promises.
        quote_max: raw units that one quote may give; None sets no bound.
    """

    __slots__ = ("funds", "quote_max", "reserved", "token")

    def __init__(self, token: bytes, funds: int = 0, quote_max: int | None = None) -> None:
        self.token = token
        self.funds = funds
        self.reserved = 0
        self.quote_max = quote_max


class Exposure:
    """What one pair's promises amount to.

    Attributes:
        notional: of the live ones, in raw units of the quote token.
        base_sold: net, in raw units of the base token: live ones and fills, less what was bought.
        one_max, open_max: bounds of one quote's notional and of `notional`; None sets none.
    """

    __slots__ = ("base_sold", "notional", "one_max", "open_max")

    def __init__(self, one_max: int | None = None, open_max: int | None = None) -> None:
        self.notional = 0
        self.base_sold = 0
        self.one_max = one_max
        self.open_max = open_max


class _Promise(Struct, gc=False):
    release_s: int
    user: bytes
    holding: Holding
    amount: int
    exposure: Exposure
    notional: int
    base_sold: int
    order_hash: bytes
    used: bool = False


class Ledger:
    """The live promises of one chain.

    Args:
        live_max: how many promises may be live.
        unused_max: unused quotes of one user within the window; 0 sets no bound.
        unused_window_s: how long an unused quote is remembered after its expiry.
    """

    __slots__ = ("_live", "_live_max", "_queue", "_unused", "_unused_by_user", "_unused_max", "_window_s")

    def __init__(self, *, live_max: int, unused_max: int, unused_window_s: int) -> None:
        self._live_max = live_max
        self._unused_max = unused_max
        self._window_s = unused_window_s
        self._queue: deque[_Promise] = deque()  # by release time, since every quote lives equally long
        self._live: dict[bytes, _Promise] = {}
        self._unused: deque[tuple[int, bytes]] = deque()
        self._unused_by_user: dict[bytes, int] = {}

    def __len__(self) -> int:
        """How many promises are live."""
        return len(self._live)

    def admits(self, user: bytes, now_s: int) -> bool:
        """Whether `user` has fewer unused quotes than one may have, now that what expired is released."""
        queue, unused = self._queue, self._unused
        if (queue and queue[0].release_s < now_s) or (unused and unused[0][0] < now_s):
            self.release_expired(now_s)
        return not self._unused_max or self._unused_by_user.get(user, 0) < self._unused_max

    def check(self, holding: Holding, amount: int, exposure: Exposure, notional: int) -> None:
        """Pass if one more promise of `amount` and `notional` can be kept.

        Raises:
            FirmRefused: it cannot; the message says which bound was hit, not where the bound is.
        """
        if holding.quote_max is not None and amount > holding.quote_max:
            raise FirmRefused(message="Notional limit", detail="makerAmount is above what one quote may give")
        if exposure.one_max is not None and notional > exposure.one_max:
            raise FirmRefused(message="Notional limit", detail="one quote of this pair may not be so large")
        if exposure.open_max is not None and exposure.notional + notional > exposure.open_max:
            raise FirmRefused(message="Notional limit", detail="too much of this pair is open; retry later")
        if amount >= holding.funds - holding.reserved:
            raise FirmRefused(message="Not enough funds", detail="ask for less, or retry later")
        if len(self._live) >= self._live_max:
            raise FirmRefused(message="Too many open quotes", detail="retry later")

    def promise(
        self,
        order_hash: bytes,
        user: bytes,
        holding: Holding,
        amount: int,
        exposure: Exposure,
        notional: int,
        base_sold: int,
        expiry_s: int,
    ) -> None:
        """Hold a checked promise until it is settled or `EXPIRY_GRACE_S` past its expiry.

        Args:
            base_sold: raw units of the pair's base token that the maker gives; what it gets is negative.
        """
        promise = _Promise(
            expiry_s + EXPIRY_GRACE_S, user, holding, amount, exposure, notional, base_sold, order_hash
        )
        holding.reserved += amount
        exposure.notional += notional
        exposure.base_sold += base_sold
        self._queue.append(promise)
        self._live[order_hash] = promise
        if self._unused_max:
            counts = self._unused_by_user
            counts[user] = counts.get(user, 0) + 1

    def release_expired(self, now_s: int) -> None:
        """Let go of what cannot be filled any more, and forget what was unused long ago."""
        queue, unused = self._queue, self._unused
        while queue and queue[0].release_s < now_s:
            promise = queue.popleft()
            if self._live.pop(promise.order_hash, None) is not None:
                promise.holding.reserved -= promise.amount
                promise.exposure.notional -= promise.notional
                promise.exposure.base_sold -= promise.base_sold
            if self._unused_max and not promise.used:
                unused.append((promise.release_s + self._window_s, promise.user))
        while unused and unused[0][0] < now_s:
            self._use(unused.popleft()[1])

    def settle(self, order_hash: bytes, remaining: int) -> None:
        """What the chain says of one promise.

        Args:
            order_hash: of the signed order; one that is not live is ignored.
            remaining: as the contract's `remaining`: 0 never seen, 1 filled or cancelled, else what is left
                of the maker amount plus 1.
        """
        promise = self._live.get(order_hash)
        if promise is None or remaining == 0:
            return
        if not promise.used:
            promise.used = True
            if self._unused_max:
                self._use(promise.user)
        left = min(remaining - 1, promise.amount)
        notional_left = promise.notional * left // promise.amount if left else 0
        base_left = promise.base_sold * left // promise.amount if left else 0
        promise.holding.reserved -= promise.amount - left
        promise.exposure.notional -= promise.notional - notional_left
        promise.amount, promise.notional, promise.base_sold = left, notional_left, base_left
        if not left:
            del self._live[order_hash]

    def oldest(self, count: int) -> list[bytes]:
        """Order hashes of the first `count` live promises."""
        return list(islice(self._live, count))

    def rotate(self, order_hashes: Iterable[bytes]) -> None:
        """Move these to the end, so that `oldest` gives others next."""
        for order_hash in order_hashes:
            promise = self._live.pop(order_hash, None)
            if promise is not None:
                self._live[order_hash] = promise

    def _use(self, user: bytes) -> None:
        left = self._unused_by_user.get(user, 0) - 1
        if left > 0:
            self._unused_by_user[user] = left
        else:
            self._unused_by_user.pop(user, None)
