"""Ledger of the embedded chain: its blocks, and the state of accounts and storage after each block.

The ledger reads no clock and starts no task. A caller makes a block in three steps, between which other tasks
may run:

    begin -> execute for each transaction -> seal          (or abandon, which restores the state)

Each block keeps the writes that undo it. `roll_back` removes blocks from the latest down, and returns the
writes that would restore them; `state_at` undoes blocks for a time, to show the state of an older block.
`change` writes to the state without a transaction: the change belongs to the latest block, and is rolled back
with it.

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
"""Writes that undo (or redo) a block, in a list for each of its transactions and direct changes."""


class Draft(Struct):
    """Block under construction, which `BlockLedger.begin` creates and `BlockLedger.seal` completes.

    Attributes:
        rules: values of the block that contracts can read, such as its time.
        gas_used: gas of all transactions executed so far.
        done: (transaction, result, price in wei per unit of gas) of each executed transaction.
        undo: writes that undo each executed transaction, the latest last.
    """

    rules: BlockRules
    gas_used: int
    done: list[tuple[ReceivedTransaction, ExecutionResult, int]]
    undo: _Undo


class RolledBack(Struct, frozen=True):
    """Block that a roll-back removed from the chain, with the writes that restore its state.

    Attributes:
        redo: state writes of each transaction, and of each change by `BlockLedger.change`, in order.
    """

    block: Block
    redo: _Undo


class BlockLedger:
    """Blocks of an embedded chain, and an EVM with the state after the latest block.

    Args:
        chain_id: EIP-155 id of the chain.
        time_s: time of block 0, Unix seconds.
        funded: address of 20 bytes -> initial balance in wei.
    """

    def __init__(self, chain_id: int, time_s: int, funded: Mapping[bytes, int]) -> None:
        self.evm = Evm(chain_id)
        deployer = Account(1, 0, self.evm.learn_code(FACTORY_CODE))
        accounts = ((address, None, Account(0, wei)) for address, wei in funded.items())
        self.evm.apply([(FACTORY, None, deployer), *accounts])
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
        """Block of the hash or height `at`; the latest block if `at` is None.

        The result is None if the ledger does not keep such a block.
        """
        if at is None:
            return self.head
        height = self._heights.get(at) if isinstance(at, bytes) else at
        return None if height is None else self._blocks.get(height)

    def find(self, at: At) -> Block:
        """Return the block with a hash or height; the latest block if `at` is None.

        Raises:
            BlockGone: no kept block has this hash.
            ChainError: no kept block has this height.
        """
        found = self.block(at)
        if found is None:
            if isinstance(at, bytes):
                raise BlockGone(f"no block 0x{at.hex()}")
            raise ChainError(f"no block of height {at}")
        return found

    def receipt(self, tx_hash: bytes) -> Receipt | None:
        """Receipt of the transaction with this hash; None if no kept block contains the transaction."""
        return self._receipts.get(tx_hash)

    def logs(self, first: int, last: int) -> Iterator[Log]:
        """Yield the logs of the kept blocks with heights from `first` to `last`, both included, in order."""
        head = self.head.header.number
        oldest = max(0, head - limits.EMBEDDED_KEPT_BLOCKS + 1)
        for height in range(max(first, oldest), min(last, head) + 1):
            yield from self._blocks[height].logs

    def rules(self, block: Block) -> BlockRules:
        """Return the values of a block that contracts can read: number, time, base fee, PREVRANDAO."""
        header = block.header
        return BlockRules(header.number, header.time_s, header.base_fee_wei, block.prev_randao)

    @contextmanager
    def state_at(self, block: Block) -> Iterator[None]:
        """Context manager: set `evm` to the state after a block, and restore the latest state at the exit.

        Raises:
            ChainError: the ledger no longer keeps the writes that undo the blocks above `block`.
        """
        height = block.header.number
        if height == self.head.header.number:
            yield
            return
        self._check_reach(height)
        above = range(self.head.header.number, height, -1)
        writes = [write for number in above for step in reversed(self._undo[number]) for write in step]
        with self.evm.applied(writes):
            yield

    # --- A block ----------------------------------------------------------------------------------

    def begin(self, time_s: int, base_fee_wei: int) -> Draft:
        """Begin a block on top of the latest block; return its draft, without transactions.

        Args:
            time_s: time of the new block, Unix seconds, not before the latest block's time.
            base_fee_wei: base fee of the new block, wei per unit of gas.

        Raises:
            ChainError: `time_s` is before the latest block's time.
        """
        head = self.head.header
        if time_s < head.time_s:
            raise ChainError(f"a block of {time_s} s after one of {head.time_s} s")
        randao = blocks.prev_randao(head.hash, self.timeline)
        return Draft(BlockRules(head.number + 1, time_s, base_fee_wei, randao), 0, [], [])

    def execute(self, draft: Draft, received: ReceivedTransaction) -> None:
        """Execute a transaction on the current state, and add the transaction with its result to the draft.

        Raises:
            TransactionRefused: the block cannot include the transaction (nonce, fee, gas or funds); the state
                is unchanged.
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
            EvmMessage(
                sender=received.sender,
                to=tx.to,
                data=tx.data,
                value_wei=tx.value_wei,
                gas=tx.gas,
                gas_price_wei=price_wei,
                access_list=tx.access_list,
                authorizations=tx.authorizations,
            ),
        )
        draft.done.append((received, outcome, price_wei))
        draft.undo.append(undo)
        draft.gas_used += outcome.gas_used

    def abandon(self, draft: Draft) -> None:
        """Undo the state changes of all transactions of a draft that is not to become a block."""
        for step in reversed(draft.undo):
            self.evm.apply(step)

    def seal(self, draft: Draft) -> Block:
        """Complete a draft to a block, make the block the latest of the chain, and return the block."""
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
        """Set an account's nonce, balance and code hash without a transaction.

        A roll-back to an earlier block undoes the change together with the latest block.
        """
        self._undo[self.head.header.number].append(self.evm.apply([(address, None, account)]))

    def steps(self) -> int:
        """Return the number of transactions in the latest block plus calls of `change` since that block."""
        return len(self._undo[self.head.header.number])

    def roll_back(self, height: int, steps: int | None = None) -> list[RolledBack]:
        """Remove all blocks above a height, and restore the state after the block at this height.

        Args:
            steps: number of state changes of the block at `height` to keep, as counted by `steps`; later
                changes are undone. None keeps all.

        Returns:
            The removed blocks, the highest first, as `bring_back` takes them.

        Raises:
            ChainError: no block has the height, or its undo writes are no longer kept; the state is
                unchanged.
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
        """Restore blocks that `roll_back` has removed, and the state after the highest of them."""
        for rolled_back in reversed(taken):
            self._add(rolled_back.block, [self.evm.apply(writes) for writes in rolled_back.redo])

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
        if any(number not in self._undo for number in (height, min(height + 1, head))):
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
    """Raise TransactionRefused if a transaction's nonce is below the next nonce of its sender."""
    if nonce < next_nonce:
        raise TransactionRefused(RefusalKind.NONCE_TOO_LOW, f"next is {next_nonce}, not {nonce}")


def check_funds(received: ReceivedTransaction, sender: Account) -> None:
    """Raise TransactionRefused if the sender's balance is below the transaction's maximum cost.

    The maximum cost is the gas limit times the maximum fee, plus the value, in wei.
    """
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
                tx_hash=received.tx_hash,
                succeeded=outcome.succeeded,
                block_number=header.number,
                block_hash=header.hash,
                tx_index=tx_index,
                gas_used=outcome.gas_used,
                gas_price_wei=price_wei,
                contract=outcome.contract,
                logs=logs,
            )
        )
    return tuple(receipts)
