"""Pool of the embedded chain's transactions that wait for a block: order of execution, and replacement.

A sender's transactions wait in the order of their nonces. A waiting transaction is replaced by another with
the same nonce only if the other offers at least 10 % more of both fees.

Source: go-ethereum, core/txpool (price bump of 10 %); EIP-1559.
"""

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice

from msgspec import Struct

from ....codecs.transactions import ReceivedTransaction
from ....config import limits
from ....config.errors import RefusalKind, TransactionRefused

_BUMP_PERCENT = 110


class _WaitingTransaction(Struct, frozen=True):
    arrival: int
    received: ReceivedTransaction


class Arrivals:
    """Record of the executable transactions that have come into the pool, for filters and subscriptions.

    A transaction behind a gap arrives once the gap is filled; a replacement arrives anew. Only the last
    EMBEDDED_ARRIVALS_MAX are kept.

    Attributes:
        count: number of all arrivals so far, including those no longer kept.
    """

    def __init__(self) -> None:
        self._kept: deque[ReceivedTransaction] = deque(maxlen=limits.EMBEDDED_ARRIVALS_MAX)
        self.count = 0

    def add(self, arrived: Sequence[ReceivedTransaction]) -> None:
        """Record transactions, in order."""
        self._kept.extend(arrived)
        self.count += len(arrived)

    def since(self, heard: int) -> list[ReceivedTransaction] | None:
        """Transactions after the first `heard` arrivals, in order; None if some are no longer kept."""
        unheard = self.count - heard
        if unheard > len(self._kept):
            return None
        return list(islice(self._kept, len(self._kept) - unheard, None))


class Waiting:
    """Pool of transactions that wait for a block, by sender and nonce."""

    def __init__(self) -> None:
        self._lines: dict[bytes, dict[int, _WaitingTransaction]] = {}
        self._known: dict[bytes, ReceivedTransaction] = {}
        self._arrivals = 0

    def __len__(self) -> int:
        return len(self._known)

    def get(self, tx_hash: bytes) -> ReceivedTransaction | None:
        """Waiting transaction with this hash; None if no such transaction waits."""
        return self._known.get(tx_hash)

    def lines(self) -> dict[bytes, list[ReceivedTransaction]]:
        """Waiting transactions by sender; a sender's transactions in the order of their nonces."""
        return {
            sender: [line[nonce].received for nonce in sorted(line)] for sender, line in self._lines.items()
        }

    def nonce_after(self, sender: bytes, nonce: int) -> int:
        """Return the lowest nonce, from `nonce` up, for which no transaction of the sender waits."""
        line = self._lines.get(sender, {})
        while nonce in line:
            nonce += 1
        return nonce

    def copy(self) -> "Waiting":
        """Return a copy of the pool; later changes of either pool leave the other unchanged."""
        other = Waiting()
        other._lines = {sender: dict(line) for sender, line in self._lines.items()}
        other._known = dict(self._known)
        other._arrivals = self._arrivals
        return other

    def add(self, received: ReceivedTransaction) -> None:
        """Add a transaction to the pool, in place of a waiting transaction with the same sender and nonce.

        Raises:
            TransactionRefused: the fees are too low to replace the waiting transaction, or the pool is full.
        """
        tx = received.transaction
        held = self._lines.get(received.sender, {}).get(tx.nonce)
        if held is not None:
            was = held.received.transaction
            if (
                100 * tx.fee_max_wei < _BUMP_PERCENT * was.fee_max_wei
                or 100 * tx.tip_wei < _BUMP_PERCENT * was.tip_wei
            ):
                raise TransactionRefused(RefusalKind.UNDERPRICED)
            self.remove(held.received.tx_hash)
        elif len(self._known) >= limits.EMBEDDED_WAITING_MAX:
            raise TransactionRefused(RefusalKind.INVALID, "too many transactions wait")
        self._lines.setdefault(received.sender, {})[tx.nonce] = _WaitingTransaction(self._arrivals, received)
        self._known[received.tx_hash] = received
        self._arrivals += 1

    def executable_from(self, received: ReceivedTransaction, nonce: int) -> list[ReceivedTransaction]:
        """Return a waiting transaction and those executable after it, in order; none if it is behind a gap.

        Args:
            nonce: next nonce of the sender.
        """
        line, first = self._lines.get(received.sender, {}), received.transaction.nonce
        if self.nonce_after(received.sender, nonce) <= first:
            return []
        return [line[at].received for at in range(first, self.nonce_after(received.sender, first))]

    def is_replaced_by(self, received: ReceivedTransaction) -> bool:
        """Whether a transaction of the same sender and nonce waits, in whose place `received` would come."""
        return received.transaction.nonce in self._lines.get(received.sender, {})

    def remove(self, tx_hash: bytes) -> None:
        """Remove the transaction with this hash from the pool; no effect if no such transaction waits."""
        received = self._known.pop(tx_hash, None)
        if received is not None:
            line = self._lines[received.sender]
            del line[received.transaction.nonce]
            if not line:
                del self._lines[received.sender]

    def next(
        self, nonce_of: Callable[[bytes], int], base_fee_wei: int, gas_left: int
    ) -> ReceivedTransaction | None:
        """Executable transaction with the highest tip; of several with the same tip, the first to arrive.

        The result is None if no waiting transaction is executable in the present block.

        Args:
            nonce_of: function from a sender's address to the sender's next nonce.
            base_fee_wei: base fee of the block, wei per unit of gas; transactions with a lower maximum fee
                are not executable.
            gas_left: gas left in the block; transactions with a higher gas limit are not executable.
        """
        found: _WaitingTransaction | None = None
        most = (-1, 0)
        for sender, line in self._lines.items():
            entry = line.get(nonce_of(sender))
            if entry is None:
                continue
            tx = entry.received.transaction
            worth = min(tx.tip_wei, tx.fee_max_wei - base_fee_wei), -entry.arrival
            if tx.gas <= gas_left and worth[0] >= 0 and worth > most:
                found, most = entry, worth
        return None if found is None else found.received

    def forget_used(self, sender: bytes, nonce: int) -> None:
        """Remove a sender's waiting transactions with nonces below `nonce`, which no block can include."""
        line = self._lines.get(sender, {})
        for entry in [line[used] for used in line if used < nonce]:
            self.remove(entry.received.tx_hash)
