"""A small model of a chain with a mempool, as a relayer sees one, for simulations: nonces and fees, no EVM.

A transaction whose data begins with `R` is reverted, one that begins with `I` is refused by the node as
invalid. Only `mine` makes blocks. Attributes and methods name each fault that a test may cause.
"""

import hashlib
from collections.abc import Callable

import trio
from msgspec import Struct

from cambist.codecs.transactions import ReceivedTransaction, decode_transaction
from cambist.config.errors import ChainError, NodeUnavailable, RefusalKind, Reverted, TransactionRefused
from cambist.engine.chain.port import At, EthCall, GasFees, Header, Receipt

CHAIN_ID = 31_337
GWEI = 10**9
REFUSAL_DATA = b"nope and why"
"""Data that a reverted call returns."""


class _Block(Struct):
    header: Header
    mined: list[tuple[bytes, ReceivedTransaction | None]]  # None: somebody else's
    base_fee_wei: int


class ChainModel:
    """See the module.

    Args:
        sender: the only account there is.
        step: called before anything that is asked takes effect, and after: where a crash may happen.

    Attributes:
        asked: number of requests.
        is_away: the node does not answer.
        is_hostile: nothing with data is taken, be it known or not.
        is_blind: it has no receipts.
        shows_gone: receipts of blocks that are gone too.
        is_mute: no call is answered.
        says_yes: no call is reverted, whatever is mined.
        gas_used: units that each transaction uses.
        held: what is asked, if it is this, waits for the event.
        handed_in: every raw transaction that ever came.
    """

    chain_id = CHAIN_ID

    def __init__(self, sender: bytes, balance_wei: int, step: Callable[[str], None]) -> None:
        self._sender = sender
        self._step = step
        self._made = 0
        self.asked = 0
        self.balance_wei = balance_wei
        self.base_fee_wei = GWEI
        self.is_away = self.is_hostile = self.is_mute = self.is_blind = self.shows_gone = False
        self.says_yes, self.gas_used = False, 21_000
        self._gone: list[_Block] = []
        self.held: tuple[str, trio.Event] | None = None
        self.handed_in: list[ReceivedTransaction] = []
        self._displaced: dict[int, tuple[bytes, ReceivedTransaction]] = {}
        self.pool: dict[int, tuple[bytes, ReceivedTransaction]] = {}
        self.blocks: list[_Block] = []
        self._add([])

    # --- Requests of the relayer ---------------------------------------------------------------------------

    async def block(self, at: At = None) -> Header | None:
        self._asked("block")
        if at is None:
            return self.blocks[-1].header
        if isinstance(at, int):
            return self.blocks[at].header if at < len(self.blocks) else None
        return next((block.header for block in self.blocks if block.header.hash == at), None)

    async def nonce(self, address: bytes, at: At = None) -> int:
        self._asked("nonce")
        assert address == self._sender
        height = next(n for n, block in enumerate(self.blocks) if block.header.hash == at)
        return sum(len(block.mined) for block in self.blocks[: height + 1])

    async def balance(self, address: bytes, at: At = None) -> int:
        self._asked("balance")
        assert (address, at) == (self._sender, None)
        return self.balance_wei

    async def fees(self) -> GasFees:
        self._asked("fees")
        await self._hold("fees")
        return GasFees(self.base_fee_wei, GWEI // 10)

    async def receipt(self, tx_hash: bytes) -> Receipt | None:
        self._asked("receipt")
        shown = [*self.blocks, *(self._gone if self.shows_gone else [])]
        for block in () if self.is_blind else shown:
            for index, (mined_hash, tx) in enumerate(block.mined):
                if tx is not None and mined_hash == tx_hash:
                    succeeded = not tx.transaction.data.startswith(b"R")
                    return Receipt(
                        tx_hash, succeeded, block.header.number, block.header.hash, index, self.gas_used,
                        block.base_fee_wei, None, (),
                    )  # fmt: skip
        return None

    async def call(self, call: EthCall, at: At = None) -> bytes:
        self._asked("call")
        if self.is_mute:
            raise ChainError("the model has no such state")
        if call.data.startswith(b"R") and not self.says_yes:
            raise Reverted("the model says no", REFUSAL_DATA)
        return b""

    async def send_raw(self, raw: bytes) -> bytes:
        self._asked("send")
        received = decode_transaction(raw)
        self.handed_in.append(received)
        self._take(received)
        await self._hold("send")
        self._step("sent")
        return received.tx_hash

    async def wait_head(self, known: bytes) -> None:
        """Never return: the relayer looks every second without a new head."""
        self._asked("head")
        await trio.sleep_forever()

    def _asked(self, what: str) -> None:
        self.asked += 1
        self._step(what)
        if self.is_away:
            raise NodeUnavailable("the model is away")

    async def _hold(self, what: str) -> None:
        if self.held is not None and self.held[0] == what:
            await self.held[1].wait()

    def _take(self, received: ReceivedTransaction) -> None:
        """Add a transaction to the mempool, replace its rival, or refuse it, as a node does."""
        tx = received.transaction
        there = self.pool.get(tx.nonce)
        if self.is_hostile and tx.data:
            raise TransactionRefused(RefusalKind.INVALID, "the model takes none of these now")
        if there is not None and there[0] == received.tx_hash:
            return
        if tx.nonce < self.next_nonce:
            raise TransactionRefused(RefusalKind.NONCE_TOO_LOW)
        if tx.data.startswith(b"I"):
            raise TransactionRefused(RefusalKind.INVALID, "the model does not like it")
        if tx.fee_max_wei < self.base_fee_wei // 4:
            raise TransactionRefused(RefusalKind.FEE_TOO_LOW)
        if tx.gas * tx.fee_max_wei + tx.value_wei > self.balance_wei:
            raise TransactionRefused(RefusalKind.FUNDS)
        if there is not None:
            old = there[1].transaction
            if tx.fee_max_wei * 10 < old.fee_max_wei * 11 or tx.tip_wei * 10 < old.tip_wei * 11:
                raise TransactionRefused(RefusalKind.UNDERPRICED)
        self.pool[tx.nonce] = (received.tx_hash, received)

    # --- Events on the chain -------------------------------------------------------------------------------

    @property
    def next_nonce(self) -> int:
        return sum(len(block.mined) for block in self.blocks)

    @property
    def mined(self) -> list[ReceivedTransaction | None]:
        """Mined transactions, in order of nonces."""
        return [tx for block in self.blocks for _, tx in block.mined]

    def mine(self, count_max: int = 100) -> None:
        """Make a block of the transactions that can be mined, at most `count_max`."""
        taken: list[tuple[bytes, ReceivedTransaction | None]] = []
        nonce = self.next_nonce
        while len(taken) < count_max and nonce in self.pool:
            tx_hash, tx = self.pool[nonce]
            if tx.transaction.fee_max_wei < self.base_fee_wei:
                break
            taken.append((tx_hash, tx))
            del self.pool[nonce]
            nonce += 1
        self._add(taken)

    def foreign(self) -> None:
        """Mine a transaction that another holder of the same key sent."""
        nonce = self.next_nonce
        if nonce in self.pool:
            self._displaced[nonce] = self.pool.pop(nonce)
        self._add([(hashlib.sha256(b"foreign %d" % self._made).digest(), None)])

    def drop(self, which: int) -> None:
        """The mempool forgets one of its transactions."""
        if self.pool:
            del self.pool[sorted(self.pool)[which % len(self.pool)]]

    def reorganise(self, depth: int, *, keep: bool) -> None:
        """Replace the last blocks by as many empty ones; what was in them waits again, or is forgotten."""
        depth = min(depth, len(self.blocks) - 1)
        gone = [entry for block in self.blocks[len(self.blocks) - depth :] for entry in block.mined]
        self._gone += self.blocks[len(self.blocks) - depth :]
        del self.blocks[len(self.blocks) - depth :]
        for nonce, (tx_hash, tx) in enumerate(gone, self.next_nonce):
            if not keep:
                continue
            if tx is not None:
                self.pool[nonce] = (tx_hash, tx)
            elif nonce in self._displaced:
                self.pool[nonce] = self._displaced[nonce]
        for _ in range(depth):
            self._add([])

    def _add(self, mined: list[tuple[bytes, ReceivedTransaction | None]]) -> None:
        self._made += 1
        number = len(self.blocks)
        block_hash = hashlib.sha256(b"block %d" % self._made).digest()
        parent = self.blocks[-1].header.hash if self.blocks else bytes(32)
        header = Header(number, block_hash, parent, number, self.base_fee_wei)
        self.blocks.append(_Block(header, mined, self.base_fee_wei))
