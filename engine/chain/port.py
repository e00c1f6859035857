"""The chain port: the questions that the engine asks a chain, and the shapes of the answers.

    Chain       questions to every chain: the embedded EVM, and any node behind JSON-RPC
    DevChain    more for a chain of our own: time, mining, balances, re-organisation

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
"""A block: its hash, its height, or None for the latest."""


class EthCall(Struct, frozen=True):
    """A message call to a contract, without a signature. An empty `to` creates a contract.

    Attributes:
        to: the contract.
        data: calldata.
        sender: the account that the call claims to come from; no signature is needed.
        value_wei: native tokens sent with the call.
        gas_max: gas limit; 0 leaves it to the chain.
    """

    to: bytes
    data: bytes
    sender: bytes = ZERO_ADDRESS
    value_wei: int = 0
    gas_max: int = 0


class Log(Struct, frozen=True, gc=False):
    """An event of a mined transaction, and its position. `log_index` counts within the block."""

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
    """Header of a block, without its transactions."""

    number: int
    hash: bytes
    parent_hash: bytes
    time_s: int
    base_fee_wei: int


class Upcoming(Struct, frozen=True, gc=False):
    """The latest block of a chain, and the time that its next block would have now.

    Attributes:
        head: the latest block.
        made_s: time of the next block if it was made now, not before the head's; None where a node does not
            report it, or would not execute a call at that time.
    """

    head: Header
    made_s: int | None

    @property
    def time_s(self) -> int:
        """The latest time at which a call is executed now, Unix seconds: the next block's, or the head's."""
        return self.head.time_s if self.made_s is None else self.made_s


class GasFees(Struct, frozen=True, gc=False):
    """Current price of a unit of gas.

    Attributes:
        base_fee_wei: base fee of the next block.
        tip_wei: tip to the block's maker that the chain suggests.
    """

    base_fee_wei: int
    tip_wei: int


class LogFilter(Struct, frozen=True):
    """A filter of logs by contract and topics.

    Attributes:
        addresses: the contracts; empty for any.
        topics: the accepted values for each position; an empty tuple for any.
    """

    addresses: tuple[bytes, ...] = ()
    topics: tuple[tuple[bytes, ...], ...] = ()

    def matches(self, log: Log) -> bool:
        """Whether a log passes the filter, by a node's rules."""
        if self.addresses and log.address not in self.addresses:
            return False
        if len(log.topics) < len(self.topics):
            return False
        return all(
            not wanted or topic in wanted for wanted, topic in zip(self.topics, log.topics, strict=False)
        )


class Chain(Protocol):
    """Port to one chain: calls, transactions, blocks and logs.

    Every method raises NodeUnavailable when no node answers in time, and ChainError when the answer makes no
    sense. BlockGone is raised where `at` is a hash that the chain does not have (any more).
    """

    @property
    def chain_id(self) -> int:
        """The chain's EIP-155 id."""
        ...

    async def call(self, call: EthCall, at: At = None) -> bytes:
        """Execute a call and return the data that the contract returns.

        Raises:
            Reverted: the contract refused; the reason is decoded.
        """
        ...

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        """Execute calls, all at one block; a call that reverts gives Reverted as its result.

        Args:
            time_s: time that the calls read in place of the block's: `Upcoming.made_s`; None for the block's.
                A node that refuses such calls executes them at the block's own time.
        """
        ...

    async def estimate_gas(self, call: EthCall) -> int:
        """Estimate the gas that a transaction needs at the latest block.

        Raises:
            Reverted: the contract would refuse the transaction.
        """
        ...

    async def send_raw(self, raw: bytes) -> bytes:
        """Send a signed transaction and return its hash; a transaction known to the chain counts as sent.

        Raises:
            TransactionRefused: the chain did not take the transaction; the error says why.
        """
        ...

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        """Read the receipt of a mined transaction; None for a waiting, unknown or rolled-back transaction."""
        ...

    async def knows(self, tx_hash: bytes) -> bool:
        """Whether a transaction is waiting or mined."""
        ...

    async def nonce(self, address: bytes, at: At = None) -> int:
        """Read the number of an account's mined transactions: the nonce of its next one."""
        ...

    async def balance(self, address: bytes, at: At = None) -> int:
        """Read the native tokens of an account, in wei."""
        ...

    async def code(self, address: bytes, at: At = None) -> bytes:
        """Read the code of the contract at an address; empty for an address without a contract."""
        ...

    async def fees(self) -> GasFees:
        """Read the current price of a unit of gas."""
        ...

    async def block(self, at: At = None) -> Header | None:
        """Read a block's header; None if the chain has no such block."""
        ...

    async def upcoming(self) -> Upcoming:
        """Read the latest block, and the time of the next block if it was made now."""
        ...

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        """Read the logs of the blocks of a range of heights, in order.

        Raises:
            LogsRefused: the range is too wide for the node.
        """
        ...

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        """Read the logs of one block, in order."""
        ...

    async def wait_head(self, known: bytes) -> None:
        """Wait until the latest block may be another than that with hash `known`. The call may return early,
        and waits forever on a chain without new blocks: the caller sets a time limit.
        """
        ...


class DevChain(Chain, Protocol):
    """Port: a development chain that accepts commands: the embedded EVM, or an anvil."""

    async def mine(self, blocks: int = 1) -> None:
        """Make blocks; the first of them includes the waiting transactions."""
        ...

    async def set_automine(self, *, on: bool) -> None:
        """Choose whether each transaction gets a block at once (the default), or waits for `mine`."""
        ...

    async def set_time(self, time_s: int) -> None:
        """Set the next block's time, not before the latest block's; later blocks count on from it."""
        ...

    async def set_balance(self, address: bytes, wei: int) -> None:
        """Set an account's balance of native tokens."""
        ...

    async def set_base_fee(self, wei: int) -> None:
        """Set the base fee of the next block."""
        ...

    async def snapshot(self) -> int:
        """Remember the state; returns the number that `restore` takes."""
        ...

    async def restore(self, snapshot: int) -> None:
        """Return to a snapshot, which can be restored only once."""
        ...

    async def reorganise(self, depth: int, again: Sequence[tuple[bytes, int]] = ()) -> None:
        """Replace the last `depth` blocks by as many others, with other hashes.

        Args:
            again: (raw transaction, index of the new block that includes it, from 0); the replaced blocks'
                other transactions are dropped: neither waiting nor mined.
        """
        ...

    async def drop(self, tx_hash: bytes) -> None:
        """Forget a waiting transaction."""
        ...
