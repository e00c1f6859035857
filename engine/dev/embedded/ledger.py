"""The ledger of the embedded chain: its blocks and their state, without clock or tasks.

A block is made in three steps, so that the caller can let other tasks run between them:

    begin -> execute for each transaction -> seal          (or abandon, which restores the state)

Each block keeps the writes that undo it. `roll_back` applies them from the head down, and returns the writes
that would restore the blocks; `state_at` shows the state of an older block in the same way. `change` writes
to the state without a transaction: the change belongs to the latest block, and is rolled back with it.

Bounds: the last EMBEDDED_UNDO_BLOCKS blocks can be undone and their state read; the last EMBEDDED_KEPT_BLOCKS
blocks are kept with their receipts and logs.

Source: ARCHITECTURE.md, "Embedded chain"; Yellow Paper, 4.4 and 6.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager

from msgspec import Struct

from ....codecs.transactions import ReceivedTransaction
from ....config import limits
from ....config.errors import BlockGone, ChainError, RefusalKind, TransactionRefused
from ...chain.deploy.create2_factory import FACTORY, FACTORY_CODE
from ...chain.port import At, Header, Log, Receipt
from . import blocks
from .blocks import Block
from .evm import BlockRules, Evm, EvmMessage, ExecutionResult, JournalWrite
from .journal import Account

_Undo = list[list[JournalWrite]]
"""The undo writes of each step, the latest step last."""


class Draft(Struct):
    """A block under construction; created by `BlockLedger.begin`."""

    rules: BlockRules
    gas_used: int
    done: list[tuple[ReceivedTransaction, ExecutionResult, int]]
    undo: _Undo


class RolledBack(Struct, frozen=True):
    """A block rolled back, with the writes that restore its state, in order."""

    block: Block
    redo: _Undo


class BlockLedger:
    """The blocks and the state of a chain.

    Args:
        chain_id: its EIP-155 id.
        time_s: of block 0, Unix seconds.
        funded: address -> initial balance in wei.
    """

    def __init__(self, chain_id: int, time_s: int, funded: Mapping[bytes, int]) -> None:
        self.evm = Evm(chain_id)
        deployer = Account(1, 0, self.evm.learn_code(FACTORY_CODE))
        self.evm.apply(
            [(FACTORY, None, deployer), *((one, None, Account(0, wei)) for one, wei in funded.items())]
        )
        first = blocks.block_hash(
            chain_id.to_bytes(32, "big"), 0, time_s, blocks.BASE_FEE_FIRST_WEI, list(funded), 0
        )
        header = Header(0, first, bytes(32), time_s, blocks.BASE_FEE_FIRST_WEI)
        self.head = Block(header, blocks.prev_randao(first, 0), limits.EMBEDDED_BLOCK_GAS // 2)
        self._blocks: dict[int, Block] = {0: self.head}
        self._heights: dict[bytes, int] = {first: 0}
        self._undo: dict[int, _Undo] = {0: []}
        self._receipts: dict[bytes, Receipt] = {}
        self.timeline = 0

    # --- What is there ----------------------------------------------------------------------------

    def block(self, at: At) -> Block | None:
        """The block, or None if it is unknown."""
        if at is None:
            return self.head
        height = self._heights.get(at) if isinstance(at, bytes) else at
        return None if height is None else self._blocks.get(height)

    def find(self, at: At) -> Block:
        """Return the block; raise if it is unknown.

        Raises:
            BlockGone: no block has this hash.
            ChainError: no block has this height.
        """
        found = self.block(at)
        if found is None:
            if isinstance(at, bytes):
                raise BlockGone(f"no block 0x{at.hex()}")
            raise ChainError(f"no block of height {at}")
        return found

    def receipt(self, tx_hash: bytes) -> Receipt | None:
        """The receipt of a mined transaction, or None."""
        return self._receipts.get(tx_hash)

    def logs(self, first: int, last: int) -> Iterator[Log]:
        """Yield logs of the kept blocks from height `first` to `last`, in order."""
        head = self.head.header.number
        oldest = max(0, head - limits.EMBEDDED_KEPT_BLOCKS + 1)
        for height in range(max(first, oldest), min(last, head) + 1):
            yield from self._blocks[height].logs

    def rules(self, block: Block) -> BlockRules:
        """Return the block's values that a message executed in it can read."""
        header = block.header
        return BlockRules(header.number, header.time_s, header.base_fee_wei, block.prev_randao)

    @contextmanager
    def state_at(self, block: Block) -> Iterator[None]:
        """Context manager: set `evm` to the state after a block, and restore it at the end.

        Raises:
            ChainError: the block is too old.
        """
        height = block.header.number
        if height == self.head.header.number:
            yield
            return
        self._check_reach(height)
        above = range(self.head.header.number, height, -1)
        writes = [write for one in above for step in reversed(self._undo[one]) for write in step]
        with self.evm.applied(writes):
            yield

    # --- A block ----------------------------------------------------------------------------------

    def begin(self, time_s: int, base_fee_wei: int) -> Draft:
        """Begin a block on top of the latest.

        Args:
            time_s: Unix seconds, not before the latest block's time.

        Raises:
            ChainError: `time_s` is before the latest block's time.
        """
        head = self.head.header
        if time_s < head.time_s:
            raise ChainError(f"a block of {time_s} s after one of {head.time_s} s")
        randao = blocks.prev_randao(head.hash, self.timeline)
        return Draft(BlockRules(head.number + 1, time_s, base_fee_wei, randao), 0, [], [])

    def execute(self, draft: Draft, received: ReceivedTransaction) -> None:
        """Execute a transaction in the block.

        Raises:
            TransactionRefused: the block cannot hold it; the state is unchanged.
        """
        tx, base_fee_wei = received.transaction, draft.rules.base_fee_wei
        sender = self.evm.account(received.sender)
        check_nonce(tx.nonce, sender.nonce)
        if tx.nonce > sender.nonce:
            raise TransactionRefused(RefusalKind.NONCE_TOO_HIGH, f"next is {sender.nonce}, not {tx.nonce}")
        if tx.fee_max_wei < base_fee_wei:
            raise TransactionRefused(
                RefusalKind.FEE_TOO_LOW, f"{tx.fee_max_wei} wei, base fee {base_fee_wei}"
            )
        if draft.gas_used + tx.gas > limits.EMBEDDED_BLOCK_GAS:
            raise TransactionRefused(RefusalKind.GAS, "the block is full")
        check_funds(received, sender)
        price_wei = blocks.gas_price(tx, base_fee_wei)
        outcome, undo = self.evm.transact(
            draft.rules,
            EvmMessage(received.sender, tx.to, tx.data, tx.value_wei, tx.gas, price_wei, tx.access_list),
        )
        draft.done.append((received, outcome, price_wei))
        draft.undo.append(undo)
        draft.gas_used += outcome.gas_used

    def abandon(self, draft: Draft) -> None:
        """Undo the writes of the draft's transactions."""
        for step in reversed(draft.undo):
            self.evm.apply(step)

    def seal(self, draft: Draft) -> Block:
        """Add the draft as the latest block."""
        parent, rules = self.head.header, draft.rules
        block_hash = blocks.block_hash(
            parent.hash,
            rules.number,
            rules.time_s,
            rules.base_fee_wei,
            [received.tx_hash for received, _, _ in draft.done],
            self.timeline,
        )
        header = Header(rules.number, block_hash, parent.hash, rules.time_s, rules.base_fee_wei)
        receipts = _receipts(header, draft)
        block = Block(
            header,
            rules.prev_randao,
            draft.gas_used,
            tuple(received for received, _, _ in draft.done),
            receipts,
            tuple(log for receipt in receipts for log in receipt.logs),
        )
        self._add(block, draft.undo)
        return block

    # --- Going back -------------------------------------------------------------------------------

    def change(self, address: bytes, account: Account) -> None:
        """Write an account's state as part of the latest block."""
        self._undo[self.head.header.number].append(self.evm.apply([(address, None, account)]))

    def steps(self) -> int:
        """Return the number of steps of the latest block: its transactions and changes; see `roll_back`."""
        return len(self._undo[self.head.header.number])

    def roll_back(self, height: int, steps: int | None = None) -> list[RolledBack]:
        """Remove all blocks above a height; with `steps`, also undo that block's later steps.

        Returns:
            the removed blocks, the highest first; see `bring_back`.

        Raises:
            ChainError: the height is unknown or too old; the state is unchanged.
        """
        self._check_reach(height)
        taken = [self._roll_back() for _ in range(self.head.header.number - height)]
        if steps is not None:
            undo = self._undo[height]
            while len(undo) > steps:
                self.evm.apply(undo.pop())
        self.timeline += 1
        return taken

    def bring_back(self, taken: Sequence[RolledBack]) -> None:
        """Restore the blocks that `roll_back` removed."""
        for one in reversed(taken):
            self._add(one.block, [self.evm.apply(writes) for writes in one.redo])

    def _roll_back(self) -> RolledBack:
        block, height = self.head, self.head.header.number
        redo = [self.evm.apply(step) for step in reversed(self._undo.pop(height))]
        redo.reverse()
        self._forget(block)
        self.head = self._blocks[height - 1]
        return RolledBack(block, redo)

    def _check_reach(self, height: int) -> None:
        head = self.head.header.number
        if not 0 <= height <= head:
            raise ChainError(f"no block of height {height}")
        if any(one not in self._undo for one in (height, min(height + 1, head))):
            raise ChainError(
                f"block {height} is too old: the last {limits.EMBEDDED_UNDO_BLOCKS} can be undone"
            )

    def _add(self, block: Block, undo: _Undo) -> None:
        height = block.header.number
        self.head = self._blocks[height] = block
        self._heights[block.header.hash] = height
        self._undo[height] = undo
        self._receipts.update((receipt.tx_hash, receipt) for receipt in block.receipts)
        self._undo.pop(height - limits.EMBEDDED_UNDO_BLOCKS, None)
        old = self._blocks.get(height - limits.EMBEDDED_KEPT_BLOCKS)
        if old is not None:
            self._forget(old)

    def _forget(self, block: Block) -> None:
        del self._blocks[block.header.number]
        del self._heights[block.header.hash]
        for receipt in block.receipts:
            del self._receipts[receipt.tx_hash]


def check_nonce(nonce: int, next_nonce: int) -> None:
    """Raise TransactionRefused if the nonce is already used."""
    if nonce < next_nonce:
        raise TransactionRefused(RefusalKind.NONCE_TOO_LOW, f"next is {next_nonce}, not {nonce}")


def check_funds(received: ReceivedTransaction, sender: Account) -> None:
    """Raise TransactionRefused if the sender's balance is below the transaction's maximum cost."""
    tx = received.transaction
    cost_wei = tx.gas * tx.fee_max_wei + tx.value_wei
    if sender.balance_wei < cost_wei:
        raise TransactionRefused(
            RefusalKind.FUNDS, f"0x{received.sender.hex()} has {sender.balance_wei} of {cost_wei} wei"
        )


def _receipts(header: Header, draft: Draft) -> tuple[Receipt, ...]:
    receipts: list[Receipt] = []
    log_index = 0
    for tx_index, (received, outcome, price_wei) in enumerate(draft.done):
        place = header.number, header.hash, received.tx_hash, tx_index
        logs = tuple(
            Log(address, topics, data, *place, log_index + at)
            for at, (address, topics, data) in enumerate(outcome.logs)
        )
        log_index += len(logs)
        receipts.append(
            Receipt(
                received.tx_hash,
                outcome.succeeded,
                header.number,
                header.hash,
                tx_index,
                outcome.gas_used,
                price_wei,
                outcome.contract,
                logs,
            )
        )
    return tuple(receipts)
