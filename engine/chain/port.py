"""Interface between the engine and an EVM chain (`Chain`), with the types of arguments and results.

    Chain       calls, transactions, blocks and logs: for the embedded EVM, and for nodes behind JSON-RPC
    DevChain    more methods for a development chain: time, mining, balances, re-organisation

Addresses are 20 bytes, hashes 32, amounts raw units (wei where the name says so), times Unix seconds. A
block is named by its hash, which fixes its whole past; by its height, which a re-organisation may give to
another block; or by None, the latest block.

Source: ARCHITECTURE.md, "Chain port"; the Ethereum execution API; EIP-1898 (a block by its hash).
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ...crypto.addresses import ZERO_ADDRESS

At = bytes | int | None
"""Name of a block: its hash (32 bytes), its height, or None for the latest block."""


class EthCall(Struct, frozen=True):
    """A message call to a contract, without a signature. An empty `to` creates a contract.

    Attributes:
        to: address of the contract, 20 bytes; empty for a creation.
        data: calldata; for a creation the contract's creation code with its arguments.
        sender: the account that the call claims to come from, 20 bytes; no signature is needed.
        value_wei: native tokens sent with the call.
        gas_max: gas limit of the call; 0 for the chain's default.
    """

    to: bytes
    data: bytes
    sender: bytes = ZERO_ADDRESS
    value_wei: int = 0
    gas_max: int = 0


class Log(Struct, frozen=True, gc=False):
    """A log that a contract emitted in a mined transaction; `log_index` is its position in the block."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    block_number: int
    block_hash: bytes
    tx_hash: bytes
    tx_index: int
    log_index: int


class Receipt(Struct, frozen=True):
    """The outcome of a mined transaction.

    Attributes:
        succeeded: whether the transaction did not revert.
        gas_price_wei: price paid per unit of gas.
        contract: address of the contract that the transaction created; None if it created none.
    """

    tx_hash: bytes
    succeeded: bool
    block_number: int
    block_hash: bytes
    tx_index: int
    gas_used: int
    gas_price_wei: int
    contract: bytes | None
    logs: tuple[Log, ...]


class Header(Struct, frozen=True, gc=False):
    """Header of a block: height, hashes, timestamp (Unix seconds), base fee in wei per unit of gas."""

    number: int
    hash: bytes
    parent_hash: bytes
    time_s: int
    base_fee_wei: int


class Upcoming(Struct, frozen=True, gc=False):
    """The latest block of a chain, and the timestamp that a next block made now would have.

    Attributes:
        head: header of the latest block.
        made_s: timestamp that a next block made now would have, Unix seconds, not before the head's; None if
            the node does not report that time, or would not execute a call at that time.
    """

    head: Header
    made_s: int | None

    @property
    def time_s(self) -> int:
        """Timestamp of the next block in Unix seconds; that of the latest block if `made_s` is None."""
        return self.head.time_s if self.made_s is None else self.made_s


class GasFees(Struct, frozen=True, gc=False):
    """Current price of a unit of gas.

    Attributes:
        base_fee_wei: base fee of the next block.
        tip_wei: tip to the block's maker (priority fee) that the chain suggests.
    """

    base_fee_wei: int
    tip_wei: int


class LogFilter(Struct, frozen=True):
    """A filter of logs by contract and topics, as `eth_getLogs` takes it.

    Attributes:
        addresses: contracts whose logs pass, 20 bytes each; empty for all contracts.
        topics: accepted values, 32 bytes each, of each topic by position; an empty inner tuple accepts any
            value. A log with fewer topics than the filter has positions does not pass.
    """

    addresses: tuple[bytes, ...] = ()
    topics: tuple[tuple[bytes, ...], ...] = ()

    def matches(self, log: Log) -> bool:
        """Whether a log passes the filter, by the rules of `eth_getLogs`."""
        if self.addresses and log.address not in self.addresses:
            return False
        if len(log.topics) < len(self.topics):
            return False
        return all(
            not wanted or topic in wanted for wanted, topic in zip(self.topics, log.topics, strict=False)
        )


class Chain(Protocol):
    """Interface to one chain: calls, transactions, blocks and logs.

    Every method raises NodeUnavailable if no node answers in time, and ChainError if a node's answer is
    invalid. Methods other than `block` raise BlockGone if the block to read at is named by a hash that the
    chain does not have (any more).
    """

    @property
    def chain_id(self) -> int:
        """The chain's number by EIP-155, such as 1 for Ethereum."""
        ...

    async def call(self, call: EthCall, at: At = None) -> bytes:
        """Execute a call and return the data that the contract returns.

        Raises:
            Reverted: the call reverts; the error has the decoded reason.
        """
        ...

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        """Execute calls, all at one block; the result of a call that reverts is the error Reverted.

        Args:
            time_s: block timestamp that the calls read, Unix seconds, such as `Upcoming.made_s`; None for
                the timestamp of the block `at`. If a node refuses calls with another timestamp, the calls
                are repeated with the timestamp of the block.
        """
        ...

    async def estimate_gas(self, call: EthCall) -> int:
        """Estimate the gas that a transaction needs at the latest block, in units.

        Raises:
            Reverted: the transaction would revert.
        """
        ...

    async def send_raw(self, raw: bytes) -> bytes:
        """Send a signed transaction and return its hash; a transaction known to the chain counts as sent.

        Raises:
            TransactionRefused: the chain did not accept the transaction; the error has the reason.
        """
        ...

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        """Read a transaction's receipt; None if the transaction is in no block of the chain (any more)."""
        ...

    async def headers(self, numbers: Sequence[int]) -> list[Header]:
        """Read the headers of the blocks at several heights at once, in order.

        Raises:
            BlockGone: the chain has no block at one of the heights.
        """
        ...

    async def receipts(self, tx_hashes: Sequence[bytes]) -> list[Receipt | None]:
        """Read the receipts of several transactions at once, None for a transaction without one.

        A receipt may be of a block that has left the chain: the caller compares its block's hash.
        """
        ...

    async def knows(self, tx_hash: bytes) -> bool:
        """Whether the chain knows a transaction, i.e. it waits to be mined or is mined."""
        ...

    async def nonce(self, address: bytes, at: At = None) -> int:
        """Read the nonce of an account's next transaction, i.e. the number of its mined transactions."""
        ...

    async def balance(self, address: bytes, at: At = None) -> int:
        """Read an account's balance of native tokens, in wei."""
        ...

    async def code(self, address: bytes, at: At = None) -> bytes:
        """Read the code of the contract at an address; empty for an address without a contract."""
        ...

    async def fees(self) -> GasFees:
        """Read the base fee of the next block and the suggested tip, both per unit of gas."""
        ...

    async def block(self, at: At = None) -> Header | None:
        """Read a block's header; None if the chain has no such block."""
        ...

    async def recent_block(self, age_s: float) -> Header:
        """Return the header of a block that was the latest at most `age_s` seconds ago.

        The block is not below that of a receipt that was read here. Without such a block at hand, the latest
        is read.
        """
        ...

    async def upcoming(self) -> Upcoming:
        """Read the latest block, and the timestamp that a next block made now would have."""
        ...

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        """Read the logs that pass a filter in blocks of heights `first` to `last`, in the chain's order.

        Raises:
            LogsRefused: the range is too wide for the node.
        """
        ...

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        """Read the logs of one block that pass a filter, in the block's order."""
        ...

    async def logs_of_each(self, wanted: LogFilter, block_hashes: Sequence[bytes]) -> list[list[Log]]:
        """Read the logs of several blocks at once that pass a filter, for each block in its order.

        Raises:
            BlockGone: the chain does not have one of the blocks (any more).
        """
        ...

    async def wait_head(self, known: bytes) -> None:
        """Wait until the latest block may be another than the block with hash `known`.

        The call may return early, and waits forever on a chain without new blocks: the caller sets a time
        limit.
        """
        ...


class DevChain(Chain, Protocol):
    """Interface to a development chain that accepts commands: the embedded EVM, or an anvil node."""

    async def mine(self, blocks: int = 1) -> None:
        """Make `blocks` new blocks; the first of them includes the waiting transactions."""
        ...

    async def set_automine(self, *, on: bool) -> None:
        """Choose whether each transaction gets a block at once (the default), or waits for `mine`."""
        ...

    async def set_time(self, time_s: int) -> None:
        """Set the next block's timestamp, Unix seconds, not before the latest block's.

        The timestamps of later blocks continue from that time.
        """
        ...

    async def set_balance(self, address: bytes, wei: int) -> None:
        """Set an account's balance of native tokens, in wei."""
        ...

    async def set_base_fee(self, wei: int) -> None:
        """Set the base fee of the next block, in wei per unit of gas."""
        ...

    async def snapshot(self) -> int:
        """Save the chain's state, and return the number by which `restore` finds it."""
        ...

    async def restore(self, snapshot: int) -> None:
        """Return to the state saved by `snapshot`; each snapshot can be restored only once."""
        ...

    async def reorganise(self, depth: int, again: Sequence[tuple[bytes, int]] = ()) -> None:
        """Replace the last `depth` blocks by as many others, with other hashes.

        Args:
            again: (raw transaction, index of the new block that includes it, from 0); the replaced blocks'
                other transactions are dropped: neither waiting nor mined.
        """
        ...

    async def drop(self, tx_hash: bytes) -> None:
        """Remove a transaction that waits to be mined."""
        ...
