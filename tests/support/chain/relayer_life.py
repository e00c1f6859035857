"""A small model of a chain with a mempool, as a relayer sees one, for simulations: nonces and fees, no EVM.

A transaction whose data begins with `R` is reverted, one that begins with `I` is refused by the node as
invalid. Only `mine` makes blocks. Attributes and methods name each fault that a test may cause.

The life of a relayer on a modelled chain, with its real driver and a real store.

async with a_life(folder) as life:
    key = await life.submit("E")
    await life.do(("blocks", 3, 100))
"""

import hashlib
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from msgspec import Struct

from cambist.codecs.transactions import ReceivedTransaction, decode_transaction
from cambist.config.errors import (
    BlockGone,
    ChainError,
    NodeUnavailable,
    RefusalKind,
    Reverted,
    TransactionRefused,
)
from cambist.config.settings import parse_settings
from cambist.crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import At, EthCall, GasFees, Header, Receipt
from cambist.engine.chain.relay.fee_policy import FeePolicy
from cambist.engine.chain.relay.relay_state import GIVEN_UP, RelayPolicy, price_of
from cambist.engine.chain.relay.relayer import IntentOutcome, Relayer
from cambist.engine.chain.together import each_header
from cambist.engine.store.leases import SHARDS, Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import ChainTx, IntentCause, IntentState
from cambist.engine.store.store import Store
from cambist.engine.store.tables import CHAIN_TX
from cambist.engine.store.units import row_of
from support.patience import STORY_S

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
        hashes = [block.header.hash for block in self.blocks]
        if at not in hashes:
            raise BlockGone("the model has no such block any more")
        return sum(len(block.mined) for block in self.blocks[: hashes.index(at) + 1])

    async def balance(self, address: bytes, at: At = None) -> int:
        self._asked("balance")
        assert (address, at) == (self._sender, None)
        return self.balance_wei

    async def fees(self) -> GasFees:
        self._asked("fees")
        await self._hold("fees")
        return GasFees(self.base_fee_wei, GWEI // 10)

    async def recent_block(self, age_s: float) -> Header:
        header = await self.block()
        assert header is not None
        return header

    async def headers(self, numbers: Sequence[int]) -> list[Header]:
        return await each_header(self.block, numbers)

    async def receipts(self, tx_hashes: Sequence[bytes]) -> list[Receipt | None]:
        return [await self.receipt(tx_hash) for tx_hash in tx_hashes]

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


KEY = SigningKey(b"\x07" * 32)
TARGET, FORBIDDEN = b"\x0c" * 20, b"\x0e" * 20
CAP_WEI = 40 * GWEI
CONFIRMATIONS = 3
POLICY = RelayPolicy(FeePolicy(CAP_WEI, 0, 5 * GWEI, 1_250), CONFIRMATIONS, 12_000, 4, GWEI)
RICH_WEI = 10**18
END_S = 3_000
START_MS = 1_700_000_000_000


class _Crash(BaseException):
    """The process is gone."""


class Life:
    """A simulation: the chain, the relayer, and the effects that were submitted."""

    def __init__(self, store: Store, leases: Leases) -> None:
        self.store = store
        self._leases = leases
        self._dies_in = -1
        self.was_hostile = False
        self.chain = ChainModel(KEY.address, RICH_WEI, self._step)
        self.relayer = self._new_relayer()
        self.wanted: dict[str, tuple[bytes, int | None]] = {}

    @staticmethod
    def now_ms() -> int:
        return START_MS + round(trio.current_time() * 1_000)

    def _step(self, what: str) -> None:
        """The relayer does something: perhaps the last thing."""
        if self._dies_in >= 0:
            self._dies_in -= 1
            if self._dies_in < 0:
                raise _Crash(what)

    def _new_relayer(self) -> Relayer:
        allowed = frozenset({(CHAIN_ID, TARGET), (CHAIN_ID, KEY.address)})
        key = PolicedRelayKey(KEY, TransactionPolicy(allowed, CAP_WEI, 1_000_000))
        chain: Any = self.chain
        return Relayer(chain, self.store, key, self._leases, POLICY, self.now_ms)

    async def run(self) -> None:
        """Run relayers, one after the other; each finds another base fee than the one before."""
        while True:
            try:
                await self.relayer.run()
            except* _Crash:
                self.chain.base_fee_wei += 1
                self.relayer = self._new_relayer()

    async def kept(self) -> list[ChainTx]:
        """Every transaction that was ever signed, in order."""
        columns = ", ".join(CHAIN_TX.columns)
        (rows,) = await self.store.read(
            Query(f"SELECT {columns} FROM chain_tx ORDER BY nonce, created_ms", ())
        )
        return [row_of(CHAIN_TX, row) for row in rows]

    async def lose_shard(self) -> None:
        """Let another engine lease the shards until `give_back`."""
        await self.store.lease("another", SHARDS, self.now_ms() + 60_000, 3_600_000)

    async def give_back(self) -> None:
        """Release the shards that the other engine leases."""
        await self.store.release("another")

    async def submit(self, kind: str, within_s: int | None = None) -> str:
        """Submit an intent; return its key. Kind `R` is reverted, `I` refused by the node, `F` by the key."""
        number = len(self.wanted)
        name, data = f"{number:03} {kind}", f"{kind} {number}".encode()
        deadline_s = None if within_s is None else self.now_ms() // 1_000 + within_s
        self.wanted[name] = data, deadline_s
        target = FORBIDDEN if kind == "F" else TARGET
        await self.relayer.relay(name, EthCall(target, data, gas_max=100_000), deadline_s)
        return name

    async def ended(self, key: str, *, final: bool = True) -> IntentOutcome:
        """Outcome of a submitted intent; fails if it has none within STORY_S."""
        with trio.fail_after(STORY_S):
            return await self.relayer.wait(key, final=final)

    async def do(self, step: tuple[Any, ...]) -> None:
        """Take one step of a simulation."""
        match step:
            case ("submit", kinds, within_s):
                for kind in kinds:
                    await self.submit(kind, within_s)
            case ("blocks", count, at_most):
                for _ in range(count):
                    await trio.sleep(1)
                    self.chain.mine(at_most)
            case ("crash", after):
                self._dies_in = after
            case ("lose", seconds):
                await self.lose_shard()
                await trio.sleep(seconds)
                await self.give_back()
            case _:
                await self._trouble(step)

    async def _trouble(self, step: tuple[Any, ...]) -> None:
        """Have the chain trouble the relayer."""
        match step:
            case ("drop", which):
                self.chain.drop(which)
            case ("fee", gwei):
                self.chain.base_fee_wei = gwei * GWEI
            case ("reorganise", depth, keep):
                self.chain.reorganise(depth, keep=keep)
            case ("undo", depth, keep):
                await self.do(("blocks", 1, 100))
                await trio.sleep(1.2)
                self.chain.reorganise(depth, keep=keep)
            case ("foreign", seconds, is_undone):
                self.chain.foreign()
                await trio.sleep(seconds)
                if is_undone:
                    self.chain.reorganise(1, keep=True)
            case ("away", seconds):
                self.chain.is_away = True
                await trio.sleep(seconds)
                self.chain.is_away = False
            case ("poor", wei, seconds):
                self.chain.balance_wei = wei
                await trio.sleep(seconds)
                self.chain.balance_wei = RICH_WEI
            case ("hostile", seconds):
                self.chain.is_hostile = self.was_hostile = True
                await trio.sleep(seconds)
                self.chain.is_hostile = False

    async def end_well(self) -> dict[str, IntentOutcome]:
        """The trouble ends; everything comes to its end."""
        self.chain.base_fee_wei = GWEI
        self._dies_in = -1
        ended: dict[str, IntentOutcome | None] = {}
        for _ in range(END_S):
            await trio.sleep(1)
            self.chain.mine()
            ended = {name: await self.relayer.outcome(name) for name in self.wanted}
            if all(outcome is not None and outcome.is_final for outcome in ended.values()):
                return {name: outcome for name, outcome in ended.items() if outcome is not None}
        raise AssertionError(f"not ended: {ended}, {self.relayer.statistics()}")


def check_always(life: Life) -> None:
    """Assert the properties that hold at every moment."""
    data = [tx.transaction.data for tx in life.chain.mined if tx is not None and tx.transaction.data]
    assert len(data) == len(set(data)), "mined twice"
    for received in life.chain.handed_in:
        tx = received.transaction
        assert tx.fee_max_wei <= CAP_WEI
        assert received.sender == KEY.address
        if tx.data:
            assert (tx.to, tx.value_wei, tx.gas) == (TARGET, 0, 100_000)
        else:
            assert (tx.to, tx.value_wei, tx.gas) == (KEY.address, 0, 21_000)


async def check_at_rest(life: Life, ended: dict[str, IntentOutcome]) -> None:
    """Assert the properties that hold once every effect has ended."""
    kept = {tx.tx_hash: tx for tx in await life.kept()}
    assert {tx.tx_hash for tx in life.chain.handed_in} <= kept.keys(), "handed in what was not kept"
    for tx in kept.values():
        if tx.replaces is not None and tx.effect_key == kept[tx.replaces].effect_key:
            before, after = price_of(kept[tx.replaces]), price_of(tx)
            assert after.fee_max_wei * 10 >= before.fee_max_wei * 11
            assert after.tip_wei * 10 >= before.tip_wei * 11
    mined: dict[bytes, ReceivedTransaction] = {
        tx.transaction.data: tx for tx in life.chain.mined if tx is not None
    }
    for name, (data, deadline_s) in life.wanted.items():
        outcome = ended[name]
        is_mined = data in mined
        if data.startswith((b"I", b"F")):
            assert outcome.state == IntentState.FAILED or deadline_s is not None
            assert outcome.state in (IntentState.FAILED, IntentState.CANCELLED)
            assert not is_mined
        elif is_mined:
            assert outcome.state == (IntentState.FAILED if data.startswith(b"R") else IntentState.FINAL)
            assert outcome.tx_hash == mined[data].tx_hash
            assert outcome.reason == ("the model says no" if data.startswith(b"R") else "")
            assert outcome.cause == (IntentCause.REVERTED if data.startswith(b"R") else None)
        elif outcome.state is IntentState.FAILED:
            assert life.was_hostile, "lost"
            if outcome.cause is IntentCause.GIVEN_UP:
                assert outcome.reason == GIVEN_UP.words
            else:
                assert outcome.cause is IntentCause.REFUSED
                assert "takes none of these now" in outcome.reason
        else:
            assert outcome.state == IntentState.CANCELLED
            assert deadline_s is not None, "lost"
    assert not life.chain.pool, "something waits that nobody wants"
    standing = life.relayer.statistics()
    assert (standing.pending, standing.waiting, standing.starved) == (0, 0, False)


@asynccontextmanager
async def a_life(folder: Path) -> AsyncIterator[Life]:
    """A life with a store in a folder, running."""
    settings = parse_settings('[store]\nurl = "sqlite:relayer.sqlite3"', {}, folder)
    async with open_store(settings, {}, folder, Life.now_ms, in_process=True) as store:
        leases = Leases(store, "the simulation", life_s=10, now_ms=Life.now_ms)
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            life = Life(store, leases)
            nursery.start_soon(life.run)
            yield life
            nursery.cancel_scope.cancel()
