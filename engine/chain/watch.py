"""The owners whose funds are followed, and the filters that find what moves them. Pure.

    follow(token, owner)    counted: who follows twice stops twice
    filters()               two questions for each WATCH_OWNERS_PER_FILTER_MAX owners, not one for each owner
    touched(logs)           the followed (token, owner) that logs are about
    fresh()                 what is to be told: touched, or followed since the last time

Guarantee: a pair is told once after it was followed, when the step that runs then, or else the next one, has
ended; from there on after every block with a log about it. So whoever follows first, and reads the balance
when told, at the block that was read by then or a later one, misses nothing, whenever `follow` was called.

What counts is what an event says: Transfer from and to, Approval of an owner, and the two by which wrapped
native tokens come and go without a Transfer. A token that moves balances without events is found only by
looking again.

Source: chain.md, "Indexer"; EIP-20; the events of WETH9.
"""

from collections import Counter
from collections.abc import Iterable

from ...codecs.abi import address_word
from ...codecs.contract_events import APPROVAL, TRANSFER, topic
from ...config.limits import WATCH_OWNERS_PER_FILTER_MAX
from .port import Log, LogFilter

WRAPPED = topic("Deposit(address,uint256)")
UNWRAPPED = topic("Withdrawal(address,uint256)")

Pair = tuple[bytes, bytes]
"""(token, owner)."""


class Watch:
    """What is followed on one chain.

    Args:
        owners_max: owners of one filter; its tokens are named only if they are no more than that.
    """

    def __init__(self, owners_max: int = WATCH_OWNERS_PER_FILTER_MAX) -> None:
        self._owners_max = owners_max
        self._pairs: Counter[Pair] = Counter()
        self._tokens: dict[bytes, set[bytes]] = {}
        self._fresh: set[Pair] = set()
        self._filters: tuple[LogFilter, ...] | None = ()

    def __len__(self) -> int:
        """How many pairs are followed."""
        return len(self._pairs)

    def follow(self, token: bytes, owner: bytes) -> None:
        """Follow an owner's balance and allowances of a token, once more."""
        pair = (token, owner)
        self._pairs[pair] += 1
        if self._pairs[pair] == 1:
            self._tokens.setdefault(owner, set()).add(token)
            self._fresh.add(pair)
            self._filters = None

    def unfollow(self, token: bytes, owner: bytes) -> None:
        """Take back one `follow`. KeyError where there was none."""
        pair = (token, owner)
        if not self._pairs[pair]:
            raise KeyError(pair)
        self._pairs[pair] -= 1
        if self._pairs[pair]:
            return
        del self._pairs[pair]
        self._fresh.discard(pair)
        self._tokens[owner].discard(token)
        if not self._tokens[owner]:
            del self._tokens[owner]
        self._filters = None

    def fresh(self) -> frozenset[Pair]:
        """What is to be told. Whoever takes it tells it."""
        fresh = frozenset(self._fresh)
        self._fresh.clear()
        return fresh

    def refresh(self, pairs: Iterable[Pair] | None = None) -> None:
        """Followed pairs that are to be told; all of them where nobody knows what was missed."""
        self._fresh.update(self._pairs if pairs is None else pairs)

    def filters(self) -> tuple[LogFilter, ...]:
        """The questions that find every log about what is followed, and some that are not."""
        if self._filters is None:
            owners = sorted(self._tokens)
            self._filters = tuple(
                wanted
                for first in range(0, len(owners), self._owners_max)
                for wanted in self._of_owners(owners[first : first + self._owners_max])
            )
        return self._filters

    def touched(self, logs: Iterable[Log]) -> frozenset[Pair]:
        """What the logs are about, of what is followed."""
        return frozenset(pair for log in logs for pair in _pairs_of(log) if pair in self._pairs)

    def _of_owners(self, owners: list[bytes]) -> tuple[LogFilter, LogFilter]:
        tokens = set().union(*(self._tokens[owner] for owner in owners))
        addresses = tuple(sorted(tokens)) if len(tokens) <= self._owners_max else ()
        words = tuple(map(address_word, owners))
        return (
            LogFilter(addresses, ((TRANSFER, APPROVAL, WRAPPED, UNWRAPPED), words)),
            LogFilter(addresses, ((TRANSFER,), (), words)),
        )


def _pairs_of(log: Log) -> list[Pair]:
    """Whom a log may be about. A token's ERC-721 twin, with another number of topics, does no harm."""
    parties = log.topics[1:3] if log.topics and log.topics[0] == TRANSFER else log.topics[1:2]
    return [(log.address, word[12:]) for word in parties]
