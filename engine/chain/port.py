"""A chain as the rest of the engine sees it: what may be asked of one, and in what shape.

    Chain       what every chain can do: the embedded one, and any node behind JSON-RPC
    DevChain    what only a chain of our own can do: time, mining, balances, re-organisation

Addresses are 20 bytes, hashes 32, amounts raw units (wei where the name says so), times Unix seconds. A
block is named by its hash, which names its whole past, by its height, which a re-organisation may give to
another, or by None, the latest one.

Source: ARCHITECTURE.md, "Chain port"; the Ethereum execution API; EIP-1898 (a block by its hash).
"""

from collections.abc import Sequence
from typing import Protocol

from msgspec import Struct

from ...crypto.addresses import ZERO_ADDRESS

At = bytes | int | None
"""Which block: its hash, its height, or None for the latest."""


class EthCall(Struct, frozen=True):
    """A message to a contract. An empty `to` creates one.

    Attributes:
        to: the contract.
        data: calldata.
        sender: who seems to send it; no signature is asked for.
        value_wei: native tokens that come with it.
        gas_max: gas that it may use; 0 leaves it to the chain.
    """

    to: bytes
    data: bytes
    sender: bytes = ZERO_ADDRESS
    value_wei: int = 0
    gas_max: int = 0


class Log(Struct, frozen=True, gc=False):
    """An event of a mined transaction, and where it stands. `log_index` counts within the block."""

    address: bytes
    topics: tuple[bytes, ...]
    data: bytes
    block_number: int
    block_hash: bytes
    tx_hash: bytes
    tx_index: int
    log_index: int


class Receipt(Struct, frozen=True):
    """What became of a mined transaction.

    Attributes:
        succeeded: it was not reverted.
        gas_price_wei: what was paid for a unit of gas.
        contract: address of the contract that it created, if it did.
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
    """A block without its transactions."""

    number: int
    hash: bytes
    parent_hash: bytes
    time_s: int
    base_fee_wei: int


class Upcoming(Struct, frozen=True, gc=False):
    """The latest block of a chain and the time of its next one.

    Attributes:
        head: the latest block.
        made_s: time that the next block would have if it was made now, not before the head's; None where a
            node does not say, or would not execute a call at that time.
    """

    head: Header
    made_s: int | None

    @property
    def time_s(self) -> int:
        """The latest time at which a call is executed now, Unix seconds: the next block's, or the head's."""
        return self.head.time_s if self.made_s is None else self.made_s


class GasFees(Struct, frozen=True, gc=False):
    """What a unit of gas costs now.

    Attributes:
        base_fee_wei: of the next block.
        tip_wei: what the chain suggests to pay the block's maker on top.
    """

    base_fee_wei: int
    tip_wei: int


class LogFilter(Struct, frozen=True):
    """Which logs are wanted.

    Attributes:
        addresses: of the contracts; empty for any.
        topics: for each position the values that will do; an empty tuple for any.
    """

    addresses: tuple[bytes, ...] = ()
    topics: tuple[tuple[bytes, ...], ...] = ()

    def matches(self, log: Log) -> bool:
        """Whether a log is wanted, as a node decides it."""
        if self.addresses and log.address not in self.addresses:
            return False
        if len(log.topics) < len(self.topics):
            return False
        return all(
            not wanted or topic in wanted for wanted, topic in zip(self.topics, log.topics, strict=False)
        )


class Chain(Protocol):
    """One chain.

    Every method raises NodeUnavailable when nobody answers in time, and ChainError when the answer makes no
    sense. BlockGone is raised where `at` is a hash that the chain does not have (any more).
    """

    @property
    def chain_id(self) -> int:
        """Its EIP-155 id."""
        ...

    async def call(self, call: EthCall, at: At = None) -> bytes:
        """What a contract returns.

        Raises:
            Reverted: it refused; the reason is decoded.
        """
        ...

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        """`call` for each, all at one block; a call that reverts has its Reverted in its place.

        Args:
            time_s: time that the calls read in place of the block's, `Upcoming.made_s`; None for the block's.
                A node that refuses such calls executes them at the block's own time.
        """
        ...

    async def estimate_gas(self, call: EthCall) -> int:
        """Gas that a transaction needs at the latest block.

        Raises:
            Reverted: it would be refused.
        """
        ...

    async def send_raw(self, raw: bytes) -> bytes:
        """Hand in a signed transaction; returns its hash. One that is known already is as good as sent.

        Raises:
            TransactionRefused: it was not taken; says why.
        """
        ...

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        """Of a mined transaction; None while it waits, when nobody knows it, or once it is rolled back."""
        ...

    async def knows(self, tx_hash: bytes) -> bool:
        """Whether a transaction waits or is mined."""
        ...

    async def nonce(self, address: bytes, at: At = None) -> int:
        """How many transactions of an account are mined: the nonce of its next one."""
        ...

    async def balance(self, address: bytes, at: At = None) -> int:
        """Native tokens of an account, in wei."""
        ...

    async def code(self, address: bytes, at: At = None) -> bytes:
        """The contract at an address; empty where there is none."""
        ...

    async def fees(self) -> GasFees:
        """What a unit of gas costs now."""
        ...

    async def block(self, at: At = None) -> Header | None:
        """A block's header; None where the chain has no such block."""
        ...

    async def upcoming(self) -> Upcoming:
        """The latest block, and the time that the next one would have now."""
        ...

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        """Logs of the blocks of a range of heights, in order.

        Raises:
            LogsRefused: the node will not answer so wide a range.
        """
        ...

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        """Logs of one block, in order."""
        ...

    async def wait_head(self, known: bytes) -> None:
        """Return once the latest block may be another than the one of that hash. It may be early, and waits
        for ever where nothing happens: the caller bounds it."""
        ...


class DevChain(Chain, Protocol):
    """A chain of our own: embedded, or an anvil."""

    async def mine(self, blocks: int = 1) -> None:
        """Make blocks; the first takes in what waits."""
        ...

    async def set_automine(self, *, on: bool) -> None:
        """Whether each transaction gets a block at once (the default), or waits for `mine`."""
        ...

    async def set_time(self, time_s: int) -> None:
        """The time of the next block; not before that of the latest. Blocks after it go on from there."""
        ...

    async def set_balance(self, address: bytes, wei: int) -> None:
        """Give an account its native tokens."""
        ...

    async def set_base_fee(self, wei: int) -> None:
        """The base fee of the next block."""
        ...

    async def snapshot(self) -> int:
        """Remember the state; see `restore`."""
        ...

    async def restore(self, snapshot: int) -> None:
        """Go back to a snapshot, which is used up by that."""
        ...

    async def reorganise(self, depth: int, again: Sequence[tuple[bytes, int]] = ()) -> None:
        """Replace the last `depth` blocks by as many others, with other hashes.

        Args:
            again: (raw transaction, which of the new blocks it stands in, from 0); what is not named here is
                dropped: it neither waits nor is mined any more.
        """
        ...

    async def drop(self, tx_hash: bytes) -> None:
        """Forget a transaction that waits."""
        ...
