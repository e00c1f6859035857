"""Two chains of our own that are given the same, and have to answer the same.

Hashes of blocks differ; everything else is compared: status, gas, price, logs, return data, reasons of
refusals, balances, nonces, code, times, fees. A block is named by its height; where a hash is given it is one
of the first chain's. Blocks that a re-organisation made have times and base fees of each chain's own.
"""

import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from msgspec.structs import replace

from cambist.config.errors import ChainError, Reverted, TransactionRefused
from cambist.engine.chain.port import (
    At,
    DevChain,
    EthCall,
    GasFees,
    Header,
    Log,
    LogFilter,
    Receipt,
    Upcoming,
)
from cambist.engine.chain.together import each_header
from support.chain.world import mined

T = TypeVar("T")
NOWHERE = bytes(32)


class MirroredChain:
    """A `DevChain` of two. Each block is a second after the one before, or later where the clock is.

    Attributes:
        compared: receipts that were compared.
    """

    def __init__(self, first: DevChain, second: DevChain) -> None:
        self.first = first
        self.second = second
        self.compared = 0
        self._ahead_s = 0
        self._replaced: set[int] = set()

    @property
    def _chains(self) -> tuple[DevChain, DevChain]:
        return self.first, self.second

    @property
    def chain_id(self) -> int:
        assert self.first.chain_id == self.second.chain_id
        return self.first.chain_id

    # --- Questions ------------------------------------------------------------------------------------

    async def call(self, call: EthCall, at: At = None) -> bytes:
        height = await self._height(at)
        return await self._same(lambda chain: chain.call(call, height))

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        height = await self._height(at)
        answers = [await chain.call_many(calls, height, time_s) for chain in self._chains]
        assert [_comparable(one) for one in answers[0]] == [_comparable(one) for one in answers[1]]
        return answers[0]

    async def recent_block(self, age_s: float) -> Header:
        return await self.first.recent_block(age_s)

    async def logs_of_each(self, wanted: LogFilter, block_hashes: Sequence[bytes]) -> list[list[Log]]:
        return [await self.logs_of(wanted, block_hash) for block_hash in block_hashes]

    async def headers(self, numbers: Sequence[int]) -> list[Header]:
        return await each_header(self.block, numbers)

    async def receipts(self, tx_hashes: Sequence[bytes]) -> list[Receipt | None]:
        return [await self.receipt(tx_hash) for tx_hash in tx_hashes]

    async def upcoming(self) -> Upcoming:
        return await self.first.upcoming()

    async def estimate_gas(self, call: EthCall) -> int:
        """Anvil's is a few units above the least; the larger one is taken."""
        found = [await _answer(chain, lambda one: one.estimate_gas(call)) for chain in self._chains]
        if isinstance(found[0], ChainError):
            assert _comparable(found[0]) == _comparable(found[1])
            raise found[0]
        assert not isinstance(found[1], ChainError)
        return max(found[0], found[1])

    async def send_raw(self, raw: bytes) -> bytes:
        await self._next_second()
        tx_hash = await self._same(lambda chain: chain.send_raw(raw))
        receipts = [await mined(chain, tx_hash) for chain in self._chains]
        assert placeless(receipts[0]) == placeless(receipts[1])
        self.compared += 1
        return tx_hash

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        found = [await chain.receipt(tx_hash) for chain in self._chains]
        plain = [one and placeless(one) for one in found]
        assert plain[0] == plain[1]
        return found[0]

    async def knows(self, tx_hash: bytes) -> bool:
        return await self._same(lambda chain: chain.knows(tx_hash))

    async def nonce(self, address: bytes, at: At = None) -> int:
        height = await self._height(at)
        return await self._same(lambda chain: chain.nonce(address, height))

    async def balance(self, address: bytes, at: At = None) -> int:
        height = await self._height(at)
        return await self._same(lambda chain: chain.balance(address, height))

    async def code(self, address: bytes, at: At = None) -> bytes:
        height = await self._height(at)
        return await self._same(lambda chain: chain.code(address, height))

    async def fees(self) -> GasFees:
        return await self._same(lambda chain: chain.fees())

    async def block(self, at: At = None) -> Header | None:
        height = await self._height(at)
        found = [await chain.block(height) for chain in self._chains]
        if found[0] and found[1] and found[0].number not in self._replaced:
            plain = [one and replace(one, hash=NOWHERE, parent_hash=NOWHERE) for one in found]
            assert plain[0] == plain[1]
        assert (found[0] is None) is (found[1] is None)
        return found[0]

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        found = [await chain.logs(wanted, first, last) for chain in self._chains]
        assert [_placeless_log(log) for log in found[0]] == [_placeless_log(log) for log in found[1]]
        return found[0]

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        height = await self._height(block_hash)
        assert height is not None
        return await self.logs(wanted, height, height)

    async def wait_head(self, known: bytes) -> None:
        await self.first.wait_head(known)

    # --- Actions of development chains only -----------------------------------------------------------

    async def mine(self, blocks: int = 1) -> None:
        for _ in range(blocks):
            await self._next_second()
            await self._both(lambda chain: chain.mine())

    async def set_automine(self, *, on: bool) -> None:
        assert on, "each transaction is compared when it is mined"
        await self._both(lambda chain: chain.set_automine(on=on))

    async def set_time(self, time_s: int) -> None:
        self._ahead_s = time_s - int(time.time())

    async def set_balance(self, address: bytes, wei: int) -> None:
        await self._both(lambda chain: chain.set_balance(address, wei))

    async def set_base_fee(self, wei: int) -> None:
        await self._both(lambda chain: chain.set_base_fee(wei))

    async def snapshot(self) -> int:
        return await self.first.snapshot() << 32 | await self.second.snapshot()

    async def restore(self, snapshot: int) -> None:
        await self.first.restore(snapshot >> 32)
        await self.second.restore(snapshot & 0xFFFFFFFF)
        await self._agree_on_the_base_fee()

    async def reorganise(self, depth: int, again: Sequence[tuple[bytes, int]] = ()) -> None:
        head = await self.first.block()
        assert head is not None
        self._replaced.update(range(head.number - depth + 1, head.number + 1))
        await self._both(lambda chain: chain.reorganise(depth, again))
        await self._agree_on_the_base_fee()

    async def drop(self, tx_hash: bytes) -> None:
        await self._both(lambda chain: chain.drop(tx_hash))

    # --- Both -----------------------------------------------------------------------------------------

    async def _next_second(self) -> None:
        heads = [await chain.block() for chain in self._chains]
        after = max(head.time_s for head in heads if head) + 1
        time_s = max(int(time.time()) + self._ahead_s, after)
        await self._both(lambda chain: chain.set_time(time_s))

    async def _agree_on_the_base_fee(self) -> None:
        """Anvil goes on with another after going back."""
        await self.set_base_fee((await self.first.fees()).base_fee_wei)

    async def _both(self, act: Callable[[DevChain], Awaitable[None]]) -> None:
        for chain in self._chains:
            await act(chain)

    async def _same(self, ask: Callable[[DevChain], Awaitable[T]]) -> T:
        found = [await _answer(chain, ask) for chain in self._chains]
        assert _comparable(found[0]) == _comparable(found[1]), found
        if isinstance(found[0], ChainError):
            raise found[0]
        return found[0]

    async def _height(self, at: At) -> int | None:
        if not isinstance(at, bytes):
            return at
        header = await self.first.block(at)
        assert header is not None, "a hash of the first chain"
        return header.number


async def _answer(chain: DevChain, ask: Callable[[DevChain], Awaitable[T]]) -> T | ChainError:
    try:
        return await ask(chain)
    except ChainError as error:
        return error


def placeless(receipt: Receipt) -> Receipt:
    """A receipt without what differs between two chains of the same transactions."""
    logs = tuple(map(_placeless_log, receipt.logs))
    contract = receipt.contract if receipt.succeeded else None
    return replace(receipt, block_hash=NOWHERE, logs=logs, contract=contract)


def _placeless_log(log: Log) -> Log:
    return replace(log, block_hash=NOWHERE)


def _comparable(answer: object) -> object:
    if isinstance(answer, Reverted):
        reason = "out of gas" if answer.reason == "EVM error OutOfGas" else answer.reason  # an anvil's words
        return ("reverted", reason, answer.data)
    if isinstance(answer, TransactionRefused):
        return ("refused", answer.kind)
    return type(answer) if isinstance(answer, Exception) else answer
