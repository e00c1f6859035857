"""Swaps that makers have signed and that are not filled yet, and what their callers have shown. Pure.

    begun        before makers are asked, the swap takes a place of its caller, and of a user who has signed
    signed       the swap keeps each quote that a maker has signed or may have signed, used or not
    ended        no more quotes are requested; the swap leaves its places at once if no maker has signed
    over         the last quote has expired, or the chain shows a quote as at least nine tenths filled

A firm quote holds back a maker's stock until it expires, whether the swap is filled or not. Each caller has
therefore only a few such swaps at a time. A swap of a user that the caller builds anew, from the same token
to the same one, leaves its places to the new one: a page builds a swap again at each new price. How much of
a maker's stock all of them may reserve is counted apart (`routing.firm.stock`). A filled swap gives back what
it reserved, and shows that its user and its caller's network belong together: for a day, swaps of the two
count as signed by the user.

A maker that has not answered when a swap is given up counts as having signed.

Choice: A swap counts towards its user's places only if the user has signed it, or filled one before that the
    same network asked for. A request that merely names a user costs that user nothing.
Choice: A swap of a caller with a key counts towards the key alone: its holder answers for its users.
"""

from collections import OrderedDict, deque
from collections.abc import Hashable, Iterable
from itertools import islice

from msgspec import Struct, field

from ....config import limits
from ....config.errors import InsufficientBalance, RateLimited
from ...host.admission.budgets import FUNDS_OF_USER, SWAPS_OF_KEY, SWAPS_OF_NETWORK, SWAPS_OF_USER
from ...host.admission.ledger import Charge, Hold, Ledger
from ..routing.firm.firm_parts import HeldQuote
from ..routing.firm.stock import StockShares

_PAST_MAX = 64  # swaps without a place of which one request reads whether they are filled
_LOOKS = 4  # most expired swaps dropped from `_line` when a swap begins


class Asker(Struct, frozen=True):
    """The caller of a request that builds a swap.

    Attributes:
        name: name of the caller's API key, or the network of the caller's address.
        has_key: whether the caller has an API key.
        places: most unfilled swaps (`UnfilledSwap`) that the caller may have at a time.
    """

    name: str
    has_key: bool
    places: int


class ShownUser(Struct, frozen=True):
    """A user who has shown that a swap is its own.

    Attributes:
        user: 20 bytes.
        src_token: token that the user gives, 20 bytes.
        src_amount: raw units that the swap gives.
        balance: raw units that the user has.
    """

    user: bytes
    src_token: bytes
    src_amount: int
    balance: int


class UnfilledSwap(Struct, eq=False):
    """A swap for which makers are asked to sign, or have signed, and which is not filled yet.

    Attributes:
        asker: the caller whose request builds the swap.
        user: user that the swap names, 20 bytes.
        tokens: token that the user gives and token that it gets, 20 bytes each.
        accounts: accounts whose places the swap takes.
        hold: charges for these places.
        quotes: quotes that makers have signed or may have signed for the swap.
        is_ended: whether the venue requests no further quotes for the swap.
    """

    asker: Asker
    user: bytes
    tokens: tuple[bytes, bytes]
    accounts: tuple[Hashable, ...]
    hold: Hold
    quotes: list[HeldQuote] = field(default_factory=list)
    is_ended: bool = False

    @property
    def over_s(self) -> int:
        """Latest expiry of the swap's quotes, Unix seconds; 0 without a quote."""
        return max((quote.expiry_s for quote in self.quotes), default=0)


class UnfilledSwaps:
    """A chain's unfilled swaps, and the pairs of network and user that have filled one.

    Args:
        user_places: most unfilled swaps that a user may have at a time.
    """

    def __init__(self, ledger: Ledger, chain_id: int, stock: StockShares, user_places: int) -> None:
        self._ledger = ledger
        self._chain_id = chain_id
        self._stock = stock
        self._user_places = user_places
        self._swaps: dict[Hashable, list[UnfilledSwap]] = {}  # by account
        self._line: deque[UnfilledSwap] = deque()  # in their order of beginning
        self._past: deque[UnfilledSwap] = deque(maxlen=limits.VENUE_PAST_SWAPS_MAX)
        self._settled: OrderedDict[tuple[str, bytes], int] = OrderedDict()  # -> until when, Unix seconds

    def __len__(self) -> int:
        """Number of callers and users with at least one unfilled swap."""
        return len(self._swaps)

    def of(self, asker: Asker, user: bytes, now_s: int) -> tuple[UnfilledSwap, ...]:
        """Return the unfilled swaps that take places of a caller or of a user who has signed."""
        found: dict[int, UnfilledSwap] = {}
        for account in (self._account(asker.name), self._account(user)):
            for swap in tuple(self._swaps.get(account, ())):
                if swap.is_ended and swap.over_s < now_s:
                    self._retire(swap)
                else:
                    found[id(swap)] = swap
        return tuple(found.values())

    def past(self, asker: Asker, now_s: int) -> tuple[UnfilledSwap, ...]:
        """Return a caller's latest swaps without a place whose quotes still weigh on its network."""
        since_s = now_s - limits.VENUE_STOCK_REFILL_S
        found = (swap for swap in reversed(self._past) if swap.asker == asker and swap.over_s >= since_s)
        return tuple(islice(found, _PAST_MAX))

    def has_settled(self, asker: Asker, user: bytes, now_s: int) -> bool:
        """Whether this user has filled a swap of this caller's network within the last day."""
        return self._settled.get((asker.name, user), 0) > now_s

    def begin(
        self, asker: Asker, user: bytes, tokens: tuple[bytes, bytes], shown: ShownUser | None, now_s: int
    ) -> UnfilledSwap:
        """Take the places of a new swap, and free those of the swaps that the new one replaces.

        Args:
            tokens: token that the user gives and token that it gets, 20 bytes each.
            shown: the user, if the swap is shown to be its own; None takes no place of a user.

        Raises:
            RateLimited: a caller or user has no place; the error has the seconds after which to retry.
            InsufficientBalance: the user's unfilled swaps together need more than the user has.
        """
        self._forget(now_s)
        for swap in self.of(asker, user, now_s):
            # A swap whose quotes are still requested keeps its places: it may yet be the one that is sent.
            if swap.is_ended and (swap.asker, swap.user, swap.tokens) == (asker, user, tokens):
                self._retire(swap)
        others = self.of(asker, user, now_s)
        kind = SWAPS_OF_KEY if asker.has_key else SWAPS_OF_NETWORK
        charges = [Charge(kind, self._account(asker.name), 1, asker.places)]
        funds = *self._account(user), b"" if shown is None else shown.src_token
        if shown is not None:
            charges.append(Charge(SWAPS_OF_USER, self._account(user), 1, self._user_places))
            charges.append(Charge(FUNDS_OF_USER, funds, shown.src_amount, shown.balance))
        hold = self._ledger.take(charges, 1_000 * now_s)
        if not isinstance(hold, Hold):
            if hold.charge.budget is FUNDS_OF_USER and shown is not None:
                raise InsufficientBalance(
                    "swaps that are signed and not filled count too",
                    field="userAddress",
                    expected=f"at least {self._ledger.held(FUNDS_OF_USER, funds) + shown.src_amount}",
                    got=shown.balance,
                )
            way = "" if asker.has_key else ", or send an API key"
            error = RateLimited(
                f"{hold.charge.bound} swaps are signed and not filled: fill one, wait for the end of one{way}"
            )
            error.retry_after_s = max(min((swap.over_s for swap in others), default=0) - now_s + 1, 1)
            raise error
        accounts = tuple(charge.account for charge in charges if charge.budget is not FUNDS_OF_USER)
        swap = UnfilledSwap(asker, user, tokens, accounts, hold)
        for account in accounts:
            self._swaps.setdefault(account, []).append(swap)
        self._line.append(swap)
        return swap

    def end(self, swap: UnfilledSwap) -> None:
        """Record that the venue requests no further quotes for a swap.

        A swap that has no quotes leaves its places.
        """
        swap.is_ended = True
        if not swap.quotes:
            self.free(swap)

    def free(self, swap: UnfilledSwap) -> None:
        """Take a swap out of its places, because the swap is filled or can no longer be filled."""
        self._ledger.free(swap.hold)
        for account in swap.accounts:
            swaps = self._swaps.get(account, [])
            if swap in swaps:
                swaps.remove(swap)
            if not swaps:
                self._swaps.pop(account, None)

    def _retire(self, swap: UnfilledSwap) -> None:
        """Take an expired or replaced swap out of its places; the chain may still show that it was filled."""
        if not swap.hold.is_free and any(quote.digest32 for quote in swap.quotes):
            self._past.append(swap)
        self.free(swap)

    def free_filled(self, swaps: Iterable[UnfilledSwap], filled: set[bytes], now_s: int) -> bool:
        """Take each of `swaps` that has a filled quote out of its places, and give the filled stock back.

        Args:
            filled: EIP-712 hashes of filled quotes, 32 bytes each.

        Returns:
            Whether a swap was filled.
        """
        done = [swap for swap in swaps if any(quote.digest32 in filled for quote in swap.quotes)]
        for swap in done:
            self.free(swap)
            # Quotes that are not filled still reserve stock, whichever of the swap's the others are.
            for quote in swap.quotes:
                if quote.claim is not None and quote.digest32 in filled:
                    self._stock.drop(quote.claim)
            if not swap.asker.has_key:
                self._remember(swap.asker.name, swap.user, now_s)
        return bool(done)

    def _account(self, name: Hashable) -> tuple[Hashable, ...]:
        return (self._chain_id, name)

    def _remember(self, network: str, user: bytes, now_s: int) -> None:
        self._settled[network, user] = now_s + limits.VENUE_SETTLED_CONSENT_S
        self._settled.move_to_end((network, user))
        if len(self._settled) > limits.VENUE_SETTLED_CONSENTS_MAX:
            self._settled.popitem(last=False)

    def _forget(self, now_s: int) -> None:
        """Take expired swaps out of their places, from the oldest on, at most _LOOKS.

        The method ends at the first swap that still has a valid quote or may get further quotes.
        """
        for _ in range(min(_LOOKS, len(self._line))):
            if not (self._line[0].is_ended and self._line[0].over_s < now_s):
                return
            self._retire(self._line.popleft())
