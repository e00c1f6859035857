"""Embedded chain: blocks, transactions, calls and development commands of an Ethereum node, in this process.

Every method except `wait_head` locks the chain while it runs, so that no task reads an unfinished block.
Tasks that do not use the chain can run between the steps of a block and of a gas estimate. Cancellation does
not interrupt a block that has begun.

    automine on     each transaction sent is mined at once, together with all other executable ones
    automine off    transactions wait for `mine`

The caller passes the wall clock in. A block's time is the clock's, but never before its parent's; blocks made
in the same second have the same time.

A transaction with a gap before its nonce waits, as on a node; a fee below the next block's base fee is
refused, as on anvil. A call at the latest block reads that block's number and time.

Source: ARCHITECTURE.md, "Embedded chain", "Chain port".
"""

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager

import trio
from msgspec import Struct, structs

from ....codecs.transactions import AccessList, Authorization, ReceivedTransaction, decode_transaction
from ....config import limits
from ....config.errors import (
    ChainError,
    InvalidInput,
    RefusalKind,
    Reverted,
    TransactionRefused,
)
from ...chain.delegation import is_delegation
from ...chain.port import At, EthCall, GasFees, Header, Log, LogFilter, Receipt, Upcoming
from ...chain.reverts import NO_ERRORS, CustomErrors, revert_reason
from ...chain.together import each_header
from . import blocks
from .blocks import Block
from .evm import EvmMessage, ExecutionResult
from .journal import Account
from .ledger import BlockLedger, check_funds, check_nonce
from .waiting import Arrivals, Waiting

TIP_WEI = 10**9
"""Tip that the chain suggests, wei per unit of gas, as on anvil; transactions with any tip are accepted."""

_GAS_LOW = 20_999  # too little for any transaction
_GAS_LEFT_AT_WRITE = 2_300  # EIP-2200
_TRANSACTIONS_STEP = 4  # transactions executed before other tasks may run
_LOGS_STEP = 1_000  # logs searched before other tasks may run


class _Snapshot(Struct, frozen=True):
    head: Header
    steps: int
    waiting: Waiting
    clock_ahead_s: int
    time_s: int | None
    base_fee_wei: int | None


class EmbeddedChain:
    """Development chain on an EVM in this process; implements the interface `DevChain`.

    Args:
        chain_id: EIP-155 id of the chain.
        now_s: function that returns the wall clock, Unix seconds.
        funded: address of 20 bytes -> initial balance in wei.
        errors: custom errors of the contracts, by which revert reasons are decoded to names.

    Attributes:
        arrivals: record of the executable transactions that have come into the pool.

    Raises:
        ChainError: pyrevm is not installed, or is another version than `Evm` supports.
    """

    def __init__(
        self,
        chain_id: int,
        now_s: Callable[[], int],
        funded: Mapping[bytes, int],
        errors: CustomErrors = NO_ERRORS,
    ) -> None:
        self._chain_id = chain_id
        self._now_s = now_s
        self._errors = errors
        self._ledger = BlockLedger(chain_id, now_s(), funded)
        self._waiting = Waiting()
        self._automine = True
        self._clock_ahead_s = 0
        self._time_s: int | None = None
        self._base_fee_wei: int | None = None
        self._snapshots: dict[int, _Snapshot] = {}
        self._snapshots_made = 0
        self._lock = trio.Lock()
        self._moved = trio.Event()
        self._arrived = trio.Event()
        self.arrivals = Arrivals()

    @property
    def chain_id(self) -> int:
        """EIP-155 id of the chain; see `Chain.chain_id`."""
        return self._chain_id

    # --- Reads ------------------------------------------------------------------------------------

    async def call(self, call: EthCall, at: At = None) -> bytes:
        """Execute a call on the state after a block, and return its output; see `Chain.call`."""
        async with self._state(at) as block:
            return self._returned(self._called(call, block))

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        """Execute calls on the state after one block; return each output or revert; see `Chain.call_many`."""
        answers: list[bytes | Exception] = []
        async with self._state(at) as found:
            block = found if time_s is None else blocks.at_time(found, time_s)
            for call in calls:
                try:
                    answers.append(self._returned(self._called(call, block)))
                except Reverted as reverted:
                    answers.append(reverted)
                await trio.lowlevel.checkpoint()
        return answers

    async def estimate_gas(self, call: EthCall, authorizations: tuple[Authorization, ...] = ()) -> int:
        """Return the least gas limit with which a call succeeds, found by trial; see `Chain.estimate_gas`.

        A call may pass on only 63/64 of its gas (EIP-150), so that the limit can exceed the gas used.

        Args:
            authorizations: delegations that are in force in the trial, and have their own gas (EIP-7702).
        """
        async with self._state(None) as block:
            wanted = structs.replace(_message(call), authorizations=authorizations)
            outcome = self._tried(wanted, block, wanted.gas)
            self._returned(outcome)
            # Often the gas spent is the least limit. Most other calls need the gas that EIP-2200 wants left
            # at a storage write. Bisection finds the limit of all remaining calls.
            low, high = _GAS_LOW, min(call.gas_max or limits.EMBEDDED_BLOCK_GAS, limits.EMBEDDED_BLOCK_GAS)
            spent = outcome.gas_spent
            guesses = [spent + _GAS_LEFT_AT_WRITE, spent - 1, spent]
            while high - low > 1:
                await trio.lowlevel.checkpoint()
                guess = guesses.pop() if guesses else (low + high) // 2
                if low < guess < high:
                    if self._goes_through(wanted, block, guess):
                        high = guess
                    else:
                        low = guess
            return high

    async def access_list(
        self, call: EthCall, at: At = None, listed: AccessList = ()
    ) -> tuple[AccessList, int]:
        """Return the access list of a call, and the gas that the call uses with this list (EIP-2930).

        The list lacks what a contract accessed in a call that reverted within the successful call: the EVM's
        journal has forgotten it.

        Args:
            call: the call, executed on the state after the block `at`, as `call` executes it.
            listed: entries that the list has in any case.

        Raises:
            Reverted: the call fails.
        """
        async with self._state(at) as block:
            rules = self._ledger.rules(block)
            message = structs.replace(_message(call), access_list=listed)
            outcome, accessed = self._ledger.evm.accessed(rules, message)
            self._returned(outcome)
            await trio.lowlevel.checkpoint()
            with_list = self._ledger.evm.call(rules, structs.replace(message, access_list=accessed))
            self._returned(with_list)
        return accessed, with_list.gas_used

    async def nonce(self, address: bytes, at: At = None) -> int:
        """Return an account's nonce in the state after a block; see `Chain.nonce`."""
        return (await self._account(address, at)).nonce

    async def pending_nonce(self, address: bytes) -> int:
        """Return the nonce for an account's next transaction: the first that no waiting transaction uses."""
        async with self._lock:
            return self._waiting.nonce_after(address, self._nonce_of(address))

    async def balance(self, address: bytes, at: At = None) -> int:
        """Return an account's balance in wei, in the state after a block; see `Chain.balance`."""
        return (await self._account(address, at)).balance_wei

    async def code(self, address: bytes, at: At = None) -> bytes:
        """Return the code of the contract at an address, in the state after a block; see `Chain.code`."""
        return self._ledger.evm.code_of((await self._account(address, at)).code_hash)

    async def slot(self, address: bytes, slot: int, at: At = None) -> int:
        """Return the value of a contract's storage slot, in the state after a block."""
        async with self._state(at):
            return self._ledger.evm.slot(address, slot)

    async def fees(self) -> GasFees:
        """Return the next block's base fee and the suggested tip, wei per unit of gas; see `Chain.fees`."""
        async with self._lock:
            return GasFees(self._next_base_fee_wei(), TIP_WEI)

    async def block(self, at: At = None) -> Header | None:
        """Header of a block; None if the chain has no such block; see `Chain.block`."""
        found = await self.full_block(at)
        return None if found is None else found.header

    async def headers(self, numbers: Sequence[int]) -> list[Header]:
        """Headers of the blocks at several heights; see `Chain.headers`."""
        return await each_header(self.block, numbers)

    async def recent_block(self, age_s: float) -> Header:  # noqa: ARG002  the latest is at hand
        """Return the header of the latest block; see `Chain.recent_block`."""
        return (await self.head()).header

    async def upcoming(self) -> Upcoming:
        """Return the latest header, and the time of the next block if mined now; see `Chain.upcoming`."""
        async with self._lock:
            return Upcoming(self._ledger.head.header, self._next_time_s())

    async def pending(self) -> Block:
        """Return the next block as a preview: number, time and base fee, a hash of zeros, no transactions."""
        async with self._lock:
            head = self._ledger.head.header
            header = Header(
                head.number + 1, bytes(32), head.hash, self._next_time_s(), self._next_base_fee_wei()
            )
            return Block(header, blocks.prev_randao(head.hash, self._ledger.timeline), 0)

    async def head(self) -> Block:
        """Return the latest block, with its transactions."""
        async with self._lock:
            return self._ledger.head

    async def full_block(self, at: At = None) -> Block | None:
        """Return a block with its transactions; None if the chain has no such block."""
        async with self._lock:
            return self._ledger.block(at)

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        """Return the logs that match a filter in the blocks from height `first` to `last`; see `Chain.logs`.

        The range of blocks may have any width.
        """
        found: list[Log] = []
        async with self._lock:
            for looked_at, log in enumerate(self._ledger.logs(first, last), 1):
                if wanted.matches(log):
                    found.append(log)
                if looked_at % _LOGS_STEP == 0:
                    await trio.lowlevel.checkpoint()
        return found

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        """Return the logs of one block that match a filter; see `Chain.logs_of`."""
        async with self._lock:
            return [log for log in self._ledger.find(block_hash).logs if wanted.matches(log)]

    async def logs_of_each(self, wanted: LogFilter, block_hashes: Sequence[bytes]) -> list[list[Log]]:
        """Return the logs of several blocks that match a filter; see `Chain.logs_of_each`."""
        return [await self.logs_of(wanted, block_hash) for block_hash in block_hashes]

    async def wait_head(self, known: bytes) -> None:
        """Wait until the hash of the latest block differs from `known`; see `Chain.wait_head`."""
        await trio.lowlevel.checkpoint()
        while self._ledger.head.header.hash == known:
            await self._moved.wait()

    async def wait_arrival(self, heard: int) -> None:
        """Wait until more than `heard` executable transactions have come into the pool."""
        while self.arrivals.count <= heard:
            await self._arrived.wait()

    # --- Transactions -----------------------------------------------------------------------------

    async def send_raw(self, raw: bytes) -> bytes:
        """Accept a signed transaction, and return its hash; see `Chain.send_raw`.

        With automine on, the transaction is mined at once, unless a lower nonce of its sender is missing.
        """
        received = _decoded(raw)
        async with self._lock:
            if self._waiting.get(received.tx_hash) or self._ledger.receipt(received.tx_hash):
                return received.tx_hash
            self._check(received)
            is_replacing = self._waiting.is_replaced_by(received)
            self._waiting.add(received)
            arrived = self._waiting.executable_from(received, self._nonce_of(received.sender))
            if self._automine and received.transaction.nonce == self._nonce_of(received.sender):
                refused = await self._mine_block()
                if received.tx_hash in refused:
                    raise refused[received.tx_hash]
            # The transactions behind a replaced one have arrived before.
            self.arrivals.add(arrived[:1] if is_replacing else arrived)
            self._arrived.set()
            self._arrived = trio.Event()
        return received.tx_hash

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        """Receipt of a mined transaction; None if the transaction is not mined; see `Chain.receipt`."""
        async with self._lock:
            return self._ledger.receipt(tx_hash)

    async def receipts(self, tx_hashes: Sequence[bytes]) -> list[Receipt | None]:
        """Return the receipts of several transactions; see `Chain.receipts`."""
        return [await self.receipt(tx_hash) for tx_hash in tx_hashes]

    async def knows(self, tx_hash: bytes) -> bool:
        """Whether the transaction with this hash is waiting or mined; see `Chain.knows`."""
        return await self.transaction(tx_hash) is not None

    async def transaction(self, tx_hash: bytes) -> ReceivedTransaction | None:
        """Waiting or mined transaction with this hash; None if the chain has no such transaction."""
        async with self._lock:
            receipt = self._ledger.receipt(tx_hash)
            if receipt is None:
                return self._waiting.get(tx_hash)
            return self._ledger.find(receipt.block_hash).transactions[receipt.tx_index]

    async def waiting(self) -> list[tuple[ReceivedTransaction, bool]]:
        """Waiting transactions, and whether each is executable: no lower nonce of its sender is unused."""
        async with self._lock:
            return [
                (
                    received,
                    received.transaction.nonce < self._waiting.nonce_after(sender, self._nonce_of(sender)),
                )
                for sender, line in self._waiting.lines().items()
                for received in line
            ]

    async def drop(self, tx_hash: bytes) -> None:
        """Remove a waiting transaction from the pool; see `DevChain.drop`."""
        async with self._lock:
            self._waiting.remove(tx_hash)

    # --- The chain itself -------------------------------------------------------------------------

    async def mine(self, blocks: int = 1) -> None:
        """Mine a number of blocks; the first includes the waiting transactions; see `DevChain.mine`."""
        if blocks > limits.EMBEDDED_MINE_BLOCKS_MAX:
            raise ChainError(f"{blocks} blocks at once; at most {limits.EMBEDDED_MINE_BLOCKS_MAX}")
        async with self._lock:
            for _ in range(blocks):
                await self._mine_block()
                await trio.lowlevel.checkpoint()

    async def is_automine(self) -> bool:
        """Whether each sent transaction is mined at once."""
        async with self._lock:
            return self._automine

    async def set_automine(self, *, on: bool) -> None:
        """Set whether each sent transaction is mined at once; see `DevChain.set_automine`."""
        async with self._lock:
            self._automine = on

    async def set_time(self, time_s: int) -> None:
        """Set the time of the next block, Unix seconds; see `DevChain.set_time`."""
        async with self._lock:
            if time_s < self._ledger.head.header.time_s:
                raise ChainError(
                    f"{time_s} s is before the latest block's {self._ledger.head.header.time_s} s"
                )
            self._time_s = time_s

    async def pass_time(self, seconds: int) -> int:
        """Add seconds to the times of all later blocks.

        Returns:
            The number of seconds by which block times are then ahead of the wall clock.
        """
        async with self._lock:
            self._clock_ahead_s += seconds
            if self._time_s is not None:
                self._time_s += seconds
            return self._clock_ahead_s

    async def set_balance(self, address: bytes, wei: int) -> None:
        """Set an account's balance in wei; see `DevChain.set_balance`."""
        async with self._lock:
            held = self._ledger.evm.account(address)
            self._ledger.change(address, Account(held.nonce, wei, held.code_hash))

    async def set_base_fee(self, wei: int) -> None:
        """Set the base fee of the next block, wei per unit of gas; see `DevChain.set_base_fee`."""
        async with self._lock:
            self._base_fee_wei = wei

    async def snapshot(self) -> int:
        """Save the chain's state, and return the number of the snapshot; see `DevChain.snapshot`."""
        async with self._lock:
            if len(self._snapshots) >= limits.EMBEDDED_SNAPSHOTS_MAX:
                raise ChainError(f"more than {limits.EMBEDDED_SNAPSHOTS_MAX} snapshots")
            self._snapshots_made += 1
            self._snapshots[self._snapshots_made] = _Snapshot(
                self._ledger.head.header,
                self._ledger.steps(),
                self._waiting.copy(),
                self._clock_ahead_s,
                self._time_s,
                self._base_fee_wei,
            )
            return self._snapshots_made

    async def restore(self, snapshot: int) -> None:
        """Return the chain to a snapshot's state, and delete the snapshot; see `DevChain.restore`.

        All later snapshots are deleted too.

        Raises:
            ChainError: no snapshot has this number, or the snapshot's block is no longer on the chain, or is
                too old to return to.
        """
        async with self._lock:
            kept = self._snapshots.get(snapshot)
            if kept is None:
                raise ChainError(f"no snapshot {snapshot}")
            if self._ledger.block(kept.head.hash) is None:
                raise ChainError(f"the block of snapshot {snapshot} is not on the chain any more")
            self._ledger.roll_back(kept.head.number, kept.steps)
            for number in [later for later in self._snapshots if later >= snapshot]:
                del self._snapshots[number]
            self._waiting = kept.waiting
            self._clock_ahead_s, self._time_s = kept.clock_ahead_s, kept.time_s
            self._base_fee_wei = kept.base_fee_wei
            self._wake_waiters()

    async def reorganise(self, depth: int, again: Sequence[tuple[bytes, int]] = ()) -> None:
        """Replace the last `depth` blocks by as many others; see `DevChain.reorganise`.

        The new blocks have the old blocks' times; changes that `set_balance` made in the old blocks are
        undone too.

        Args:
            again: transactions of the new blocks: (signed transaction, index of the new block that includes
                the transaction); index 0 is the lowest new block.

        Raises:
            TransactionRefused: a new block cannot include its transactions; the chain is unchanged.
            ChainError: `depth` exceeds the number of blocks that exist or can be undone, or `again` has an
                index of `depth` or above.
        """
        planned: list[list[ReceivedTransaction]] = [[] for _ in range(depth)]
        for raw, at in again:
            if not 0 <= at < depth:
                raise ChainError(f"block {at} of {depth} new ones")
            planned[at].append(_decoded(raw))
        async with self._lock:
            with trio.CancelScope(shield=True):
                await self._replace(depth, planned)
            self._wake_waiters()

    # --- Within the lock --------------------------------------------------------------------------

    async def _replace(self, depth: int, planned: list[list[ReceivedTransaction]]) -> None:
        ledger = self._ledger
        below = ledger.head.header.number - depth
        taken = ledger.roll_back(below)
        try:
            for rolled_back, transactions in zip(reversed(taken), planned, strict=True):
                draft = ledger.begin(rolled_back.block.header.time_s, blocks.base_fee_after(ledger.head))
                try:
                    for received in transactions:
                        self._check_form(received)
                        ledger.execute(draft, received)
                        await trio.lowlevel.checkpoint()
                except BaseException:
                    ledger.abandon(draft)
                    raise
                ledger.seal(draft)
                self._forget_mined(transactions)
        except BaseException:
            ledger.roll_back(below)
            ledger.bring_back(taken)
            raise

    async def _mine_block(self) -> dict[bytes, TransactionRefused]:
        """Mine a block of all executable transactions; mined and refused transactions leave the pool.

        Returns:
            Hash of each transaction that cannot be executed -> error.
        """
        refused: dict[bytes, TransactionRefused] = {}
        ledger, base_fee_wei = self._ledger, self._next_base_fee_wei()
        draft = ledger.begin(self._next_time_s(), base_fee_wei)
        try:
            while True:
                gas_left = limits.EMBEDDED_BLOCK_GAS - draft.gas_used
                received = self._waiting.next(self._nonce_of, base_fee_wei, gas_left)
                if received is None:
                    break
                # Before the execution: a refused transaction that stayed would be found again without end.
                self._waiting.remove(received.tx_hash)
                try:
                    ledger.execute(draft, received)
                except TransactionRefused as error:
                    refused[received.tx_hash] = error
                if len(draft.done) % _TRANSACTIONS_STEP == 0:
                    await trio.lowlevel.cancel_shielded_checkpoint()
        except BaseException:
            ledger.abandon(draft)
            raise
        block = ledger.seal(draft)
        # `set_time` and `set_base_fee` hold for one block; the times of later blocks go on from the set time.
        if self._time_s is not None:
            self._clock_ahead_s, self._time_s = self._time_s - self._now_s(), None
        self._base_fee_wei = None
        self._forget_mined(block.transactions)
        self._wake_waiters()
        return refused

    def _forget_mined(self, transactions: Sequence[ReceivedTransaction]) -> None:
        for received in transactions:
            self._waiting.forget_used(received.sender, self._nonce_of(received.sender))

    def _wake_waiters(self) -> None:
        self._moved.set()
        self._moved = trio.Event()

    def _next_time_s(self) -> int:
        if self._time_s is not None:
            return self._time_s
        return max(self._now_s() + self._clock_ahead_s, self._ledger.head.header.time_s)

    def _next_base_fee_wei(self) -> int:
        if self._base_fee_wei is not None:
            return self._base_fee_wei
        return blocks.base_fee_after(self._ledger.head)

    def _nonce_of(self, address: bytes) -> int:
        return self._ledger.evm.account(address).nonce

    def _check_form(self, received: ReceivedTransaction) -> None:
        """Raise TransactionRefused if no block can ever include the transaction.

        The check covers the chain id, the fees, the size of code to create, and the gas limit.
        """
        tx = received.transaction
        if tx.chain_id != self._chain_id:
            raise TransactionRefused(RefusalKind.INVALID, f"for chain {tx.chain_id}, not {self._chain_id}")
        if tx.tip_wei > tx.fee_max_wei:
            raise TransactionRefused(RefusalKind.INVALID, "a tip above the most that is paid")
        if not tx.to and len(tx.data) > blocks.INIT_CODE_BYTES_MAX:
            raise TransactionRefused(RefusalKind.INVALID, f"init code of {len(tx.data)} bytes")
        needed = blocks.intrinsic_gas(tx)
        if not needed <= tx.gas <= limits.EMBEDDED_BLOCK_GAS:
            raise TransactionRefused(
                RefusalKind.GAS, f"{tx.gas}, not {needed} to {limits.EMBEDDED_BLOCK_GAS}"
            )

    def _check(self, received: ReceivedTransaction) -> None:
        """Raise TransactionRefused if a node would not accept the transaction into its pool.

        The check covers form, nonce, maximum fee, sender and funds.
        """
        self._check_form(received)
        sender = self._ledger.evm.account(received.sender)
        check_nonce(received.transaction.nonce, sender.nonce)
        base_fee_wei = self._next_base_fee_wei()
        if received.transaction.fee_max_wei < base_fee_wei:
            raise TransactionRefused(RefusalKind.FEE_TOO_LOW, f"base fee {base_fee_wei} wei")
        code = self._ledger.evm.code_of(sender.code_hash)
        if code and not is_delegation(code):
            raise TransactionRefused(RefusalKind.INVALID, "the sender is a contract")
        check_funds(received, sender)

    @asynccontextmanager
    async def _state(self, at: At) -> AsyncIterator[Block]:
        async with self._lock:
            block = self._ledger.find(at)
            with self._ledger.state_at(block):
                yield block

    async def _account(self, address: bytes, at: At) -> Account:
        async with self._state(at):
            return self._ledger.evm.account(address)

    def _called(self, call: EthCall, block: Block) -> ExecutionResult:
        return self._ledger.evm.call(self._ledger.rules(block), _message(call))

    def _tried(self, message: EvmMessage, block: Block, gas: int) -> ExecutionResult:
        return self._ledger.evm.call(self._ledger.rules(block), structs.replace(message, gas=gas))

    def _goes_through(self, message: EvmMessage, block: Block, gas: int) -> bool:
        try:
            return self._tried(message, block, gas).succeeded
        except TransactionRefused:
            return False

    def _returned(self, outcome: ExecutionResult) -> bytes:
        if outcome.succeeded:
            return outcome.output
        reason = outcome.halt or revert_reason(outcome.output, self._errors)
        raise Reverted("out of gas" if reason.startswith("OutOfGas") else reason, outcome.output)


def _message(call: EthCall) -> EvmMessage:
    gas = call.gas_max or limits.EMBEDDED_BLOCK_GAS
    return EvmMessage(call.sender, call.to, call.data, call.value_wei, min(gas, limits.EMBEDDED_BLOCK_GAS))


def _decoded(raw: bytes) -> ReceivedTransaction:
    try:
        return decode_transaction(raw)
    except InvalidInput as error:
        raise TransactionRefused(RefusalKind.INVALID, error.detail) from None
