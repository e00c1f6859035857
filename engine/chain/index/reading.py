"""Read blocks and their logs from a node for the indexer, with every check that is possible.

    read_blocks    block after block: headers whose parents fit, logs by block hash
    read_range     history: logs by heights, for as many blocks at once as the node answers
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

from collections.abc import Sequence
from functools import partial
from itertools import pairwise

from msgspec import Struct

from ....config.errors import BlockGone, LogsRefused, NodeContradiction, NodeFault
from ....config.limits import INDEX_QUESTIONS_MAX, INDEX_STEP_ROWS_MAX
from ..port import Chain, Header, Log, LogFilter
from ..together import all_of
from .ring import NOTHING_READ, Mark
from .watch import Watch, WatchedAccount


class Reading(Struct, frozen=True):
    """Blocks and logs that the indexer read from a node in one step.

    Attributes:
        marks: height and hash of each block read, lowest first; for a range of blocks read by one request,
            height and hash of its last block alone.
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
    header = await chain.block(number)
    if header is None:
        raise NodeContradiction(NodeFault.NO_BLOCK, f"the node shows no block {number}")
    if header.number != number:
        raise NodeContradiction(NodeFault.WRONG_BLOCK, f"asked for block {number}, got {header.number}")
    return header


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
    headers = await all_of(
        partial(header_at, chain), range(after.number + 1, min(last + 1, head.number)), INDEX_QUESTIONS_MAX
    )
    if last == head.number:
        headers.append(head)  # read again by its height, it could be a block of another branch
    marks = [after, *(Mark(header.number, header.hash) for header in headers)]
    for before, header in zip(marks, headers, strict=False):
        _check_parent(before, header)
    # The logs are read by these hashes: the node then refuses a block that has left the chain since.
    found = await all_of(partial(_logs_of, chain, contracts), marks[1:], INDEX_QUESTIONS_MAX)
    await _check_receipts(chain, contracts, [log for logs in found for log in logs])
    return Reading(
        tuple(marks[1:]),
        tuple(log for logs in found for log in logs),
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

    async def touched(block: Mark) -> frozenset[WatchedAccount]:
        return watch.touched(await _logs_of(chain, moves, block)) if moves else frozenset()

    return frozenset().union(*await all_of(touched, blocks, INDEX_QUESTIONS_MAX))


async def read_range(chain: Chain, contracts: LogFilter, after: Mark, last: int) -> Reading:
    """Read the logs of the blocks that follow `after`, up to height `last`, by requests for the whole range.

    Args:
        contracts: filter of the contracts' logs.

    Raises:
        LogsRefused: the range is too wide for the node, or holds too much for one step.
        ChainError: an answer is missing or wrong; NodeContradiction says how.
    """
    first = after.number + 1
    # Read before all else and once more after it: an unchanged last block means an unchanged range, which is
    # read by heights.
    end = await header_at(chain, last)
    beginning = await header_at(chain, first)
    _check_parent(after, beginning)
    found = await chain.logs(contracts, first, last)
    # A single block cannot be halved, and is taken whatever its number of logs.
    if len(found) > INDEX_STEP_ROWS_MAX and first < last:
        raise LogsRefused(f"blocks {first} to {last} have {len(found)} logs")
    if found != await chain.logs(contracts, first, last):
        raise NodeContradiction(
            NodeFault.LOGS_DIFFER, f"two answers for the logs of blocks {first} to {last} differ"
        )
    of_first = [log for log in found if log.block_number == first]
    if await _logs_of_old(chain, contracts, Mark(first, beginning.hash)) != of_first:
        raise NodeContradiction(NodeFault.LOGS_DIFFER, f"block {first} has other logs than the range from it")
    # Before the headers are read: a node that names foreign heights would cause any number of requests.
    numbers = sorted({log.block_number for log in found})
    if numbers and not first <= numbers[0] <= numbers[-1] <= last:
        raise NodeContradiction(NodeFault.FOREIGN_LOG, f"a log is not of blocks {first} to {last}")
    headers = await all_of(partial(header_at, chain), numbers, INDEX_QUESTIONS_MAX)
    by_number = {header.number: header for header in headers}
    for log in found:
        _check_log(log, contracts, Mark(log.block_number, by_number[log.block_number].hash))
    _check_order(found)
    await _check_receipts(chain, contracts, found)
    if (await header_at(chain, last)).hash != end.hash:
        raise NodeContradiction(NodeFault.WRONG_BLOCK, f"block {last} was replaced during the read")
    return Reading(
        (Mark(last, end.hash),),
        tuple(found),
        {number: header.time_s for number, header in by_number.items()},
        None,
    )


async def _logs_of_old(chain: Chain, wanted: LogFilter, block: Mark) -> list[Log]:
    try:
        return await _logs_of(chain, wanted, block)
    except BlockGone:
        raise NodeContradiction(
            NodeFault.LOGS_MISSING, f"the node has block {block.number} and not its logs: they may be pruned"
        ) from None


async def _logs_of(chain: Chain, wanted: LogFilter, block: Mark) -> list[Log]:
    logs = await chain.logs_of(wanted, block.hash)
    for log in logs:
        _check_log(log, wanted, block)
    _check_order(logs)
    return logs


async def _check_receipts(chain: Chain, wanted: LogFilter, logs: Sequence[Log]) -> None:
    """Check that the receipts of the logs' transactions have the same logs that pass the filter `wanted`.

    Raises:
        NodeContradiction: a receipt is missing, is of another block, or has other logs.
    """
    by_transaction: dict[bytes, list[Log]] = {}
    for log in logs:
        by_transaction.setdefault(log.tx_hash, []).append(log)

    # The blocks of the logs are known: a receipt of another block is found by its hash.
    receipts = await chain.receipts(list(by_transaction))
    for (tx_hash, there), receipt in zip(by_transaction.items(), receipts, strict=True):
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
