"""The owners whose funds are followed, and the filter that finds what moves them. Pure.

    follow(token, owner)    counted: who follows twice stops twice; of a deposit its contract and order hash
    filter()                one question, however many owners: what moves any funds of their tokens
    touched(logs)           the followed (token, owner) that logs are about
    fresh()                 what is to be told: touched, or followed since the last time

Guarantee: a pair is told once after it was followed, when the step that runs then, or else the next one, has
ended; from there on after every block with a log about it. So whoever follows first, and reads the balance
when told, at the block that was read by then or a later one, misses nothing, whenever `follow` was called.

What counts is what an event says: Transfer from and to, Approval of an owner, the two by which wrapped
native tokens come and go without a Transfer, and the two of what is deposited for an order. A token that
moves balances without events is found only by looking again.

Log filters do not name owners: that takes two questions for a few hundred owners, and an empty answer has all
logs of the block read.

Source: ARCHITECTURE.md, "Indexer"; EIP-20; the events of WETH9.
"""

from collections import Counter
from collections.abc import Iterable
from collections.abc import Set as AbstractSet

from ....codecs.contracts.contract_events import APPROVAL, NATIVE_DEPOSITED, NATIVE_WITHDRAWN, TRANSFER, topic
from ....config.limits import WATCH_TOKENS_PER_FILTER_MAX
from ..port import Log, LogFilter

WRAPPED = topic("Deposit(address,uint256)")
UNWRAPPED = topic("Withdrawal(address,uint256)")
_KINDS = (TRANSFER, APPROVAL, WRAPPED, UNWRAPPED, NATIVE_DEPOSITED, NATIVE_WITHDRAWN)

WatchedAccount = tuple[bytes, bytes]
"""(token, owner); of a deposit of native tokens, the contract that has it in place of the token."""


class Watch:
    """What is followed on one chain.

    Args:
        tokens_max: if more are followed, the filter names none.
    """

    def __init__(self, tokens_max: int = WATCH_TOKENS_PER_FILTER_MAX) -> None:
        self._tokens_max = tokens_max
        self._pairs: Counter[WatchedAccount] = Counter()
        self._owners: Counter[bytes] = Counter()  # of each token
        self._fresh: set[WatchedAccount] = set()

    def __len__(self) -> int:
        """How many pairs are followed."""
        return len(self._pairs)

    def follow(self, token: bytes, owner: bytes) -> bool:
        """Follow an owner's balance and allowances of a token, once more. Returns whether nobody did before:
        then it will be told."""
        pair = (token, owner)
        self._pairs[pair] += 1
        if self._pairs[pair] > 1:
            return False
        self._owners[token] += 1
        self._fresh.add(pair)
        return True

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
        self._owners[token] -= 1
        if not self._owners[token]:
            del self._owners[token]

    def fresh(self) -> frozenset[WatchedAccount]:
        """What is to be told. Whoever takes it tells it."""
        fresh = frozenset(self._fresh)
        self._fresh.clear()
        return fresh

    def refresh(self, pairs: AbstractSet[WatchedAccount] | None = None) -> None:
        """Pairs that are to be told if they are followed; all of them where nobody knows what was missed."""
        self._fresh.update(self._pairs if pairs is None else self._pairs.keys() & pairs)

    def filter(self) -> LogFilter | None:
        """The question that finds every log about what is followed, and others; None where nothing is."""
        if not self._pairs:
            return None
        tokens = tuple(sorted(self._owners)) if len(self._owners) <= self._tokens_max else ()
        return LogFilter(tokens, (_KINDS,))

    def touched(self, logs: Iterable[Log]) -> frozenset[WatchedAccount]:
        """What the logs are about, of what is followed."""
        return frozenset(pair for log in logs for pair in _pairs_of(log) if pair in self._pairs)


def _pairs_of(log: Log) -> list[WatchedAccount]:
    """Whom a log may be about. A token's ERC-721 twin, with another number of topics, does no harm."""
    kind = log.topics[0] if log.topics else b""
    parties = log.topics[1:3] if kind == TRANSFER else log.topics[1:2]
    return [(log.address, word[12:]) for word in parties]
