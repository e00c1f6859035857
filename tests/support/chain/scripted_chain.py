"""A chain of blocks made by hand, with forks at will: `Chain` as far as an indexer asks it.

chain.grow([tx(b"1", fill), tx(b"2")])      a block with two transactions
chain.cut(3)                                forget what is above block 3; grow on from there
"""

import hashlib
from collections.abc import Sequence

import trio
from msgspec import Struct

from cambist.config.errors import BlockGone, LogsRefused
from cambist.engine.chain.port import At, EthCall, GasFees, Header, Log, LogFilter, Receipt, Upcoming
from cambist.engine.chain.together import each_header
from support.chain.log_emitter import Record


class Sent(Struct, frozen=True):
    """A transaction: its name makes its hash, wherever it is mined."""

    name: bytes
    logs: tuple[tuple[bytes, Record], ...]


def tx(name: bytes, *logs: tuple[bytes, Record]) -> Sent:
    """A transaction with logs, each (contract, record)."""
    return Sent(name, logs)


class Block(Struct, frozen=True):
    header: Header
    logs: tuple[Log, ...]
    tx_hashes: tuple[bytes, ...]


class ScriptedChain:
    """A chain that a test writes block by block; block 0 is always there.

    Attributes:
        range_blocks_max: wider ranges of logs are refused.
        asked: name of the method -> how often.
    """

    chain_id = 31337

    def __init__(self, *, range_blocks_max: int = 1 << 60) -> None:
        self.range_blocks_max = range_blocks_max
        self.asked: dict[str, int] = {}
        self.line: list[Block] = []
        self._made = 0
        self._changed = trio.Event()
        self.grow([])

    @property
    def head(self) -> Header:
        return self.line[-1].header

    def grow(self, *blocks: Sequence[Sent]) -> None:
        """Add blocks, each of its transactions."""
        for transactions in blocks:
            self._made += 1
            number = len(self.line)
            block_hash = hashlib.sha256(b"block %d" % self._made).digest()
            parent = self.line[-1].header.hash if self.line else bytes(32)
            logs: list[Log] = []
            hashes = []
            for at, sent in enumerate(transactions):
                tx_hash = hashlib.sha256(b"tx " + sent.name).digest()
                hashes.append(tx_hash)
                for address, (topics, data) in sent.logs:
                    logs.append(Log(address, topics, data, number, block_hash, tx_hash, at, len(logs)))
            header = Header(number, block_hash, parent, 1_700_000_000 + 12 * number, 7)
            self.line.append(Block(header, tuple(logs), tuple(hashes)))
        changed, self._changed = self._changed, trio.Event()
        changed.set()

    def cut(self, number: int) -> None:
        """Forget the blocks above a height."""
        del self.line[number + 1 :]

    def _count(self, name: str) -> None:
        self.asked[name] = self.asked.get(name, 0) + 1

    # --- Chain ------------------------------------------------------------------------------------

    async def block(self, at: At = None) -> Header | None:
        self._count("block")
        await trio.lowlevel.checkpoint()
        if at is None:
            return self.head
        if isinstance(at, int):
            return self.line[at].header if 0 <= at < len(self.line) else None
        return next((block.header for block in self.line if block.header.hash == at), None)

    async def logs(self, wanted: LogFilter, first: int, last: int) -> list[Log]:
        self._count("logs")
        await trio.lowlevel.checkpoint()
        if last - first >= self.range_blocks_max:
            raise LogsRefused(f"at most {self.range_blocks_max} blocks")
        return [log for block in self.line[first : last + 1] for log in block.logs if wanted.matches(log)]

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        self._count("logs_of")
        await trio.lowlevel.checkpoint()
        for block in self.line:
            if block.header.hash == block_hash:
                return [log for log in block.logs if wanted.matches(log)]
        raise BlockGone("no such block")

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        self._count("receipt")
        await trio.lowlevel.checkpoint()
        for block in self.line:
            if tx_hash in block.tx_hashes:
                logs = tuple(log for log in block.logs if log.tx_hash == tx_hash)
                header = block.header
                at = block.tx_hashes.index(tx_hash)
                return Receipt(tx_hash, True, header.number, header.hash, at, 21_000, 7, None, logs)
        return None

    async def wait_head(self, known: bytes) -> None:
        while self.head.hash == known:
            await self._changed.wait()

    # --- Calls that no indexer makes --------------------------------------------------------------

    async def call(self, call: EthCall, at: At = None) -> bytes:
        raise NotImplementedError

    async def call_many(
        self, calls: Sequence[EthCall], at: At = None, time_s: int | None = None
    ) -> list[bytes | Exception]:
        raise NotImplementedError

    async def recent_block(self, age_s: float) -> Header:
        await trio.lowlevel.checkpoint()
        return self.head

    async def logs_of_each(self, wanted: LogFilter, block_hashes: Sequence[bytes]) -> list[list[Log]]:
        return [await self.logs_of(wanted, block_hash) for block_hash in block_hashes]

    async def headers(self, numbers: Sequence[int]) -> list[Header]:
        return await each_header(self.block, numbers)

    async def receipts(self, tx_hashes: Sequence[bytes]) -> list[Receipt | None]:
        return [await self.receipt(tx_hash) for tx_hash in tx_hashes]

    async def upcoming(self) -> Upcoming:
        raise NotImplementedError

    async def estimate_gas(self, call: EthCall) -> int:
        raise NotImplementedError

    async def send_raw(self, raw: bytes) -> bytes:
        raise NotImplementedError

    async def knows(self, tx_hash: bytes) -> bool:
        raise NotImplementedError

    async def nonce(self, address: bytes, at: At = None) -> int:
        raise NotImplementedError

    async def balance(self, address: bytes, at: At = None) -> int:
        raise NotImplementedError

    async def code(self, address: bytes, at: At = None) -> bytes:
        raise NotImplementedError

    async def fees(self) -> GasFees:
        raise NotImplementedError
