"""Assigns entries of Across's refund logs on the origin to the failed transfers that they pay. Pure.

    ExecutedRelayerRefundRoot   refundAddresses[i], refundAmounts[i] of l2TokenAddress
    Transfer                    pool -> refundAddresses[i], in the same transaction: the entry was paid

A log does not name deposits, and one entry sums all of an account's refunds. The entries of one account and
token are therefore treated as one sum of money: each unit counts once, for the oldest transfer that still
waits for its refund.

Source: Across `ExecutedRelayerRefundRoot`.
Choice: Refunds count for the oldest failed transfer of an owner and token first, in part if need be: which
    entry pays which deposit does not matter to the owner.
"""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from .....codecs.bridges.across import ExecutedRelayerRefundRoot, decode_across_log
from .....codecs.contracts.contract_events import Transfer, decode_event
from .....config.errors import InvalidInput
from ....chain.port import Log
from ....store.rows import DeltaRefund, amount32, amount_of
from ..orders.transfers import OrderTransfer

EntryKey = tuple[bytes, bytes, int, int]
"""Entry of a log of refunds: (block hash, transaction hash, log index, number of the entry)."""


class RefundEntry(Struct, frozen=True):
    """An amount that a pool has paid to an account by one entry of a refund log.

    Attributes:
        entry: index of the account and of the amount in the log's lists.
        token, account: 20 bytes each.
        amount: raw units of the token.
    """

    log: Log
    entry: int
    token: bytes
    account: bytes
    amount: int

    @property
    def key(self) -> EntryKey:
        """The entry's place on the chain."""
        return self.log.block_hash, self.log.tx_hash, self.log.log_index, self.entry


class OwedTransfer(Struct, frozen=True):
    """A failed transfer whose owner waits for the refund.

    Attributes:
        token: the bridge's token on the origin, 20 bytes.
    """

    transfer: OrderTransfer
    owner: bytes
    token: bytes


def entries_in(logs: Sequence[Log], pool: bytes) -> list[RefundEntry]:
    """Read the entries of a receipt's refund logs that were paid, in their sequence.

    An entry whose token transfer is missing was deferred, and is not paid.

    Args:
        logs: all logs of a transaction.
        pool: Across's contract on the origin.
    """
    paid = _payments(logs, pool)
    found = []
    for log in logs:
        if log.address != pool:
            continue
        try:
            event = decode_across_log(log.topics, log.data)
        except InvalidInput:
            continue
        if not isinstance(event, ExecutedRelayerRefundRoot):
            continue
        token = event.l2_token_address
        for entry, (account, amount) in enumerate(
            zip(event.refund_addresses, event.refund_amounts, strict=False)
        ):
            # Each token transfer proves one entry: of two equal entries with one transfer, one was deferred.
            payment = token, account, amount
            if amount and paid[payment]:
                paid[payment] -= 1
                found.append(RefundEntry(log, entry, token, account, amount))
    return found


def used_up(refunds: Iterable[DeltaRefund]) -> dict[EntryKey, int]:
    """Map each entry to the number of its raw units that stored refunds have used already."""
    used: dict[EntryKey, int] = {}
    for refund in refunds:
        key = refund.block_hash, refund.tx_hash, refund.log_index, refund.entry
        used[key] = max(used.get(key, 0), amount_of(refund.taken) + amount_of(refund.amount))
    return used


def allocated(
    entries: Iterable[RefundEntry],
    owed: Sequence[OwedTransfer],
    used: Mapping[EntryKey, int],
    times: Mapping[int, int],
) -> list[DeltaRefund]:
    """Allocate paid entries to the transfers that are owed to the same accounts, oldest transfer first.

    An entry cannot pay a transfer of a later block.

    Args:
        entries: paid entries, in the sequence of the chain.
        owed: failed transfers, in any sequence.
        used: raw units of entries that count for stored refunds already (`used_up`).
        times: height -> timestamp of the block, Unix seconds.
    """
    left = {due: due.transfer.owed for due in sorted(owed, key=_age)}
    found: list[DeltaRefund] = []
    for entry in entries:
        # After the units that stored refunds use: an entry is read in each round until its block is final.
        taken = used.get(entry.key, 0)
        for due, debt in left.items():
            is_payee = (entry.account, entry.token) == (due.owner, due.token)
            amount = min(debt, entry.amount - taken)
            if not is_payee or amount <= 0 or entry.log.block_number < due.transfer.sent.block_number:
                continue
            found.append(_refund(entry, due, taken, amount, times[entry.log.block_number]))
            left[due] -= amount
            taken += amount
    return found


def _age(due: OwedTransfer) -> tuple[int, int]:
    return due.transfer.sent.block_number, due.transfer.sent.log_index


def _payments(logs: Iterable[Log], pool: bytes) -> Counter[tuple[bytes, bytes, int]]:
    """Count the pool's token transfers of a receipt, by (token, receiver, amount)."""
    paid: Counter[tuple[bytes, bytes, int]] = Counter()
    for log in logs:
        try:
            event = decode_event(log.topics, log.data)
        except InvalidInput:
            continue
        if isinstance(event, Transfer) and event.owner == pool:
            paid[log.address, event.receiver, event.amount] += 1
    return paid


def _refund(entry: RefundEntry, due: OwedTransfer, taken: int, amount: int, time_s: int) -> DeltaRefund:
    sent, log = due.transfer.sent, entry.log
    return DeltaRefund(
        chain_id=sent.chain_id,
        block_hash=log.block_hash,
        tx_hash=log.tx_hash,
        log_index=log.log_index,
        entry=entry.entry,
        taken=amount32(taken),
        version=1,
        block_number=log.block_number,
        order_hash=sent.order_hash,
        transfer_block=sent.block_hash,
        transfer_tx=sent.tx_hash,
        transfer_log=sent.log_index,
        token=entry.token,
        amount=amount32(amount),
        at_ms=time_s * 1_000,
        is_final=False,
    )
