"""Read blocks and their logs from a node for the indexer, with every check that is possible.

    read_blocks    block after block: headers whose parents fit, logs by block hash
    read_ranges    history: logs by heights, for as many blocks at once as the node answers
    read_touched   followed accounts whose funds may move in blocks, also in blocks that another indexer read

Checks: each block has the requested number, and its parent is the block before; each log is of the requested
block and passes the filter; the contracts' logs equal those of their transactions' receipts; a range's logs
are the same when asked for twice, and the logs of its first block equal those of that block by its hash. A
failed check raises NodeContradiction without a result: the caller tries again later. The JSON-RPC client
finds logs that a node withholds, from the bloom filter of the block's header.

History is read twice, since one of a node's machines may lack a part and leave a hole that no later check
finds. The first block of a range is also read by its hash: a node with pruned logs answers the range with
no logs, and refuses the block.

Source: ARCHITECTURE.md, "Indexer".
"""

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import chain as chain_of
from itertools import pairwise
from typing import TypeVar

from msgspec import Struct

from ....config.errors import BlockGone, LogsRefused, NodeContradiction, NodeFault
from ....config.limits import (
    CHAIN_BATCH_CALLS_MAX,
    INDEX_QUESTIONS_MAX,
    INDEX_STEP_ROWS_MAX,
)
from ..port import Chain, Header, Log, LogFilter, Receipt
from ..together import all_of, both
from .ring import NOTHING_READ, Mark
from .watch import Watch, WatchedAccount

A = TypeVar("A")


class Reading(Struct, frozen=True):
    """Blocks and logs that the indexer read from a node in one step.

    Attributes:
        marks: height and hash of each block read, lowest first; of each range that was read by one request,
            height and hash of the last block alone.
        logs: the contracts' logs, in the order of the chain.
        times: height -> timestamp in Unix seconds, for each block with these logs.
        touched: the followed (token, owner) whose funds may have moved; None for a range of blocks read by
            one request, for which moves of funds are not read.
    """

    marks: tuple[Mark, ...] = ()
    logs: tuple[Log, ...] = ()
    times: dict[int, int] = {}
    touched: frozenset[WatchedAccount] | None = frozenset()


async def header_at(chain: Chain, number: int) -> Header:
    """Read the header of the block at height `number`, which the node is expected to have.

    Raises:
        NodeContradiction: the node has no such block, or shows a block of another height.
    """
    (header,) = await headers_at(chain, (number,))
    return header


async def headers_at(
    chain: Chain, numbers: Sequence[int], at_once: int = INDEX_QUESTIONS_MAX
) -> list[Header]:
    """Read the headers of the blocks at several heights, which the node is expected to have, in order.

    Args:
        at_once: most batches at the same time.

    Raises:
        NodeContradiction: the node has no block at one of the heights, or shows a block of another height.
    """
    try:
        read = await all_of(chain.headers, _batches(numbers), at_once)
    except BlockGone as gone:
        raise NodeContradiction(NodeFault.NO_BLOCK, f"the node shows {gone.detail}") from None
    headers = list(chain_of.from_iterable(read))
    for header, number in zip(headers, numbers, strict=True):
        if header.number != number:
            raise NodeContradiction(NodeFault.WRONG_BLOCK, f"asked for block {number}, got {header.number}")
    return headers


def _batches(things: Sequence[A], most: int = CHAIN_BATCH_CALLS_MAX) -> list[Sequence[A]]:
    """Divide into parts of at most so many, which fit into a request each."""
    return [things[at : at + most] for at in range(0, len(things), most)]


async def mark_at(chain: Chain, number: int) -> Mark:
    """Read height and hash of block `number`; for NOTHING_READ (-1) the hash is 32 zero bytes."""
    if number == NOTHING_READ:
        return Mark(NOTHING_READ, bytes(32))
    return Mark(number, (await header_at(chain, number)).hash)


async def read_blocks(
    chain: Chain, contracts: LogFilter, watch: Watch, after: Mark, last: int, head: Header
) -> Reading:
    """Read, block by block, the headers and logs of the blocks that follow `after`, up to height `last`.

    Args:
        contracts: filter of the contracts' logs.
        watch: followed accounts, whose moves of funds are read too.
        head: the node's latest block, which is not read again.

    Raises:
        ChainError: an answer is missing or wrong; NodeContradiction says how.
    """
    headers = await headers_at(chain, range(after.number + 1, min(last + 1, head.number)))
    if last == head.number:
        headers.append(head)  # read again by its height, it could be a block of another branch
    marks = [after, *(Mark(header.number, header.hash) for header in headers)]
    for before, header in zip(marks, headers, strict=False):
        _check_parent(before, header)
    # The logs are read by these hashes: the node then refuses a block that has left the chain since.
    found = await _logs_of_each(chain, contracts, marks[1:])
    logs = [log for some in found for log in some]
    _check_receipts(contracts, logs, await _receipts_of(chain, logs))
    return Reading(
        tuple(marks[1:]),
        tuple(logs),
        {header.number: header.time_s for header in headers},
        # Last: an account that is followed while the logs are read is among those that are looked for.
        await read_touched(chain, watch, marks[1:]),
    )


async def read_touched(chain: Chain, watch: Watch, blocks: Sequence[Mark]) -> frozenset[WatchedAccount]:
    """Find the followed (token, owner) whose balances or allowances the blocks may have changed.

    Raises:
        ChainError: an answer is missing or wrong; BlockGone: the node lacks a block.
    """
    moves = watch.filter()
    if not moves:
        return frozenset()
    return frozenset().union(*map(watch.touched, await _logs_of_each(chain, moves, blocks)))


async def read_ranges(
    chain: Chain, contracts: LogFilter, after: Mark, spans: Sequence[tuple[int, int]]
) -> Reading:
    """Read the logs of the blocks that follow `after` by requests for whole ranges, all ranges at once.

    Args:
        contracts: filter of the contracts' logs.
        spans: heights of the first and the last block of each range; ranges follow each other.

    Returns:
        The blocks of the first ranges, as many as one step may hold, and of one range at least.

    Raises:
        LogsRefused: a range is too wide for the node, or holds too much for one step.
        ChainError: an answer is missing or wrong; NodeContradiction says how.
    """
    at_once = max(1, INDEX_QUESTIONS_MAX // len(spans))
    found = await all_of(lambda span: _read_range(chain, contracts, *span, at_once), spans, len(spans))
    marks, logs, times = [after], list[Log](), dict[int, int]()
    for beginning, reading in found:
        _check_parent(marks[-1], beginning)
        if logs and len(logs) + len(reading.logs) > INDEX_STEP_ROWS_MAX:
            break
        marks += reading.marks
        logs += reading.logs
        times |= reading.times
    return Reading(tuple(marks[1:]), tuple(logs), times, None)


async def _read_range(
    chain: Chain, contracts: LogFilter, first: int, last: int, at_once: int
) -> tuple[Header, Reading]:
    """Read the logs of the blocks from height `first` to `last`; with the header of the first block."""
    # The first and the last block are read before the logs and once more after them: an unchanged last block
    # means an unchanged range, which is read by heights. The first block is compared too: the node may change
    # to another branch between its answers for the two, and then the last block alone is of the new branch.
    beginning, end = await headers_at(chain, (first, last))
    found = await chain.logs(contracts, first, last)
    # A single block cannot be halved, and is taken whatever its number of logs.
    if len(found) > INDEX_STEP_ROWS_MAX and first < last:
        raise LogsRefused(f"blocks {first} to {last} have {len(found)} logs")
    # Before the headers are read: a node that names foreign heights would cause any number of requests.
    numbers = sorted({log.block_number for log in found})
    if numbers and not first <= numbers[0] <= numbers[-1] <= last:
        raise NodeContradiction(NodeFault.FOREIGN_LOG, f"a log is not of blocks {first} to {last}")
    # All at once: each of them only has to come after the logs.
    (again, of_first), ((*headers, first_again, end_again), receipts) = await both(
        lambda: both(
            partial(chain.logs, contracts, first, last),
            partial(_logs_of_old, chain, contracts, Mark(first, beginning.hash)),
        ),
        lambda: both(
            partial(headers_at, chain, (*numbers, first, last), at_once),
            partial(_receipts_of, chain, found, at_once),
        ),
    )
    if found != again:
        raise NodeContradiction(
            NodeFault.LOGS_DIFFER, f"two answers for the logs of blocks {first} to {last} differ"
        )
    if of_first != [log for log in found if log.block_number == first]:
        raise NodeContradiction(NodeFault.LOGS_DIFFER, f"block {first} has other logs than the range from it")
    by_number = {header.number: header for header in headers}
    for log in found:
        _check_log(log, contracts, Mark(log.block_number, by_number[log.block_number].hash))
    _check_order(found)
    _check_receipts(contracts, found, receipts)
    for before, now in ((beginning, first_again), (end, end_again)):
        if now.hash != before.hash:
            raise NodeContradiction(NodeFault.WRONG_BLOCK, f"block {now.number} was replaced during the read")
    times = {number: header.time_s for number, header in by_number.items()}
    return beginning, Reading((Mark(last, end.hash),), tuple(found), times, None)


async def _logs_of_old(chain: Chain, wanted: LogFilter, block: Mark) -> list[Log]:
    try:
        (logs,) = await _logs_of_each(chain, wanted, (block,))
    except BlockGone:
        raise NodeContradiction(
            NodeFault.LOGS_MISSING, f"the node has block {block.number} and not its logs: they may be pruned"
        ) from None
    return logs


async def _logs_of_each(chain: Chain, wanted: LogFilter, blocks: Sequence[Mark]) -> list[list[Log]]:
    """Read the logs of each block by the block's hash."""
    read = await all_of(
        lambda some: chain.logs_of_each(wanted, [block.hash for block in some]),
        _batches(blocks, CHAIN_BATCH_CALLS_MAX // 2),  # two calls for a block
        INDEX_QUESTIONS_MAX,
    )
    found = list(chain_of.from_iterable(read))
    for block, logs in zip(blocks, found, strict=True):
        for log in logs:
            _check_log(log, wanted, block)
        _check_order(logs)
    return found


async def _receipts_of(
    chain: Chain, logs: Sequence[Log], at_once: int = INDEX_QUESTIONS_MAX
) -> dict[bytes, Receipt | None]:
    """Read the receipts of the logs' transactions, by the transactions' hashes."""
    hashes = list(dict.fromkeys(log.tx_hash for log in logs))
    # The blocks of the logs are known: a receipt of another block is found by its hash.
    read = await all_of(chain.receipts, _batches(hashes), at_once)
    return dict(zip(hashes, chain_of.from_iterable(read), strict=True))


def _check_receipts(wanted: LogFilter, logs: Sequence[Log], receipts: Mapping[bytes, Receipt | None]) -> None:
    """Check that the receipts of the logs' transactions have the same logs that pass the filter `wanted`.

    Raises:
        NodeContradiction: a receipt is missing, is of another block, or has other logs.
    """
    by_transaction: dict[bytes, list[Log]] = {}
    for log in logs:
        by_transaction.setdefault(log.tx_hash, []).append(log)
    for tx_hash, there in by_transaction.items():
        receipt = receipts[tx_hash]
        if receipt is None or receipt.block_hash != there[0].block_hash:
            raise NodeContradiction(
                NodeFault.NO_RECEIPT, f"transaction 0x{tx_hash.hex()} has logs and no receipt of that block"
            )
        if [log for log in receipt.logs if wanted.matches(log)] != there:
            raise NodeContradiction(
                NodeFault.LOGS_MISSING, f"transaction 0x{tx_hash.hex()} has other logs in its receipt"
            )


def _check_parent(before: Mark, header: Header) -> None:
    if header.number != before.number + 1 or header.parent_hash != before.hash:
        raise NodeContradiction(
            NodeFault.WRONG_PARENT, f"block {header.number} does not follow the block {before.number} read"
        )


def _check_log(log: Log, wanted: LogFilter, block: Mark) -> None:
    if log.block_hash != block.hash or log.block_number != block.number:
        raise NodeContradiction(NodeFault.FOREIGN_LOG, f"a log is not of block {block.number}")
    if not wanted.matches(log):
        raise NodeContradiction(
            NodeFault.FOREIGN_LOG, f"a log of block {block.number} was not asked for: {log.log_index}"
        )


def _check_order(logs: Sequence[Log]) -> None:
    for before, after in pairwise(logs):
        if (before.block_number, before.log_index) >= (after.block_number, after.log_index):
            raise NodeContradiction(
                NodeFault.FOREIGN_LOG, f"log {after.log_index} of block {after.block_number} is out of order"
            )
