"""Track the accounts whose funds a venue follows, and filter the logs that may move these funds. Pure.

    follow(token, owner)    two calls need two calls of `unfollow`; for a deposit, `token` is its contract
    report(token, owner)    has a followed pair reported again, for a further order of this pair
    filter()                one filter for any number of owners: all moves of funds of their tokens
    touched(logs)           the followed (token, owner) pairs that logs name
    begin_step()            begins a step, which reports the pairs that were followed before
    fresh()                 pairs to report: touched, or followed before the step

Guarantee: after `follow` or `report`, a pair is reported once, at the end of the first step that begins
later, succeeds and has no history left to read. Afterwards the pair is reported after every block with a log
that names the pair. If a caller follows a pair first, and at each report reads the balance at the indexer's
latest block or at a later block, the caller misses no change. No block that the caller reads is older than
the chain's head at the time of `follow` or `report`.

These events touch a pair: Transfer from or to the owner, Approval by the owner, the two events by which
wrapped native tokens come and go without a Transfer, and the two events of native deposits. The balance of a
token that moves funds without events has to be read again from time to time.

Log filters do not name owners: owners in a filter cost two requests per few hundred owners, and an empty
answer makes the JSON-RPC client read all logs of the block.

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
"""(token, owner), 20 bytes each; for a deposit of native tokens: (contract that holds it, owner)."""


class Watch:
    """Accounts of one chain whose balances and allowances are followed, as pairs (token, owner).

    Args:
        tokens_max: most tokens that the log filter names; with more followed tokens, the filter matches the
            events of every contract.
    """

    def __init__(self, tokens_max: int = WATCH_TOKENS_PER_FILTER_MAX) -> None:
        self._tokens_max = tokens_max
        self._pairs: Counter[WatchedAccount] = Counter()
        self._owners: Counter[bytes] = Counter()  # token -> number of its followed owners
        self._fresh: set[WatchedAccount] = set()
        self._followed: set[WatchedAccount] = set()  # to report, since the present step began

    def __len__(self) -> int:
        """Return the number of followed (token, owner) pairs."""
        return len(self._pairs)

    def follow(self, token: bytes, owner: bytes) -> None:
        """Follow an owner's balance and allowances of a token; `fresh` reports the pair after the next
        `begin_step`.

        Each call needs one call of `unfollow`.
        """
        pair = (token, owner)
        self._pairs[pair] += 1
        if self._pairs[pair] == 1:
            self._owners[token] += 1
        self._followed.add(pair)

    def report(self, token: bytes, owner: bytes) -> None:
        """Have `fresh` report a followed pair after the next `begin_step`, as after `follow`."""
        if (token, owner) in self._pairs:
            self._followed.add((token, owner))

    def unfollow(self, token: bytes, owner: bytes) -> None:
        """Undo one `follow` of an owner's token; raises KeyError if the pair is not followed."""
        pair = (token, owner)
        if not self._pairs[pair]:
            raise KeyError(pair)
        self._pairs[pair] -= 1
        if self._pairs[pair]:
            return
        del self._pairs[pair]
        self._fresh.discard(pair)
        self._followed.discard(pair)
        self._owners[token] -= 1
        if not self._owners[token]:
            del self._owners[token]

    def begin_step(self) -> None:
        """Let `fresh` report the pairs passed to `follow` or `report` since the last call.

        A step of the indexer calls the method before the step reads the chain's head.
        """
        self._fresh |= self._followed
        self._followed.clear()

    def fresh(self) -> frozenset[WatchedAccount]:
        """Remove and return the (token, owner) pairs followed before the step or marked by `refresh`."""
        fresh = frozenset(self._fresh)
        self._fresh.clear()
        return fresh

    @property
    def is_told(self) -> bool:
        """Whether no (token, owner) pair waits to be reported."""
        return not self._fresh and not self._followed

    def refresh(self, pairs: AbstractSet[WatchedAccount] | None = None) -> None:
        """Mark followed (token, owner) pairs as changed by blocks of the present step, for the next `fresh`;
        None marks all of them.
        """
        self._fresh.update(self._pairs if pairs is None else self._pairs.keys() & pairs)

    def filter(self) -> LogFilter | None:
        """Build a filter that passes all logs that may name a followed pair; None without followed pairs."""
        if not self._pairs:
            return None
        tokens = tuple(sorted(self._owners)) if len(self._owners) <= self._tokens_max else ()
        return LogFilter(tokens, (_KINDS,))

    def touched(self, logs: Iterable[Log]) -> frozenset[WatchedAccount]:
        """Return the followed (token, owner) pairs whose funds the logs may have moved."""
        return frozenset(pair for log in logs for pair in _pairs_of(log) if pair in self._pairs)


def _pairs_of(log: Log) -> list[WatchedAccount]:
    """Extract the (token, owner) pairs of a log: both parties of a Transfer, else the first party.

    Further topics, such as the token id of an ERC-721 event, are ignored.
    """
    kind = log.topics[0] if log.topics else b""
    parties = log.topics[1:3] if kind == TRANSFER else log.topics[1:2]
    return [(log.address, word[12:]) for word in parties]
