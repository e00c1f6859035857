"""The life of a relayer on a modelled chain, with its real driver and a real store.

async with a_life(folder) as life:
    key = await life.submit("E")
    await life.do(("blocks", 3, 100))
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio

from cambist.codecs.transactions import ReceivedTransaction
from cambist.config.settings import parse_settings
from cambist.crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.relay.fee_policy import FeePolicy
from cambist.engine.chain.relay.relay_plan import GIVEN_UP, RelayPolicy, price_of
from cambist.engine.chain.relay.relayer import IntentOutcome, Relayer
from cambist.engine.store.leases import SHARDS, Leases
from cambist.engine.store.process.opening import open_store
from cambist.engine.store.queries import Query
from cambist.engine.store.rows import ChainTx, IntentCause, IntentState
from cambist.engine.store.store import Store
from cambist.engine.store.tables import CHAIN_TX
from cambist.engine.store.units import row_of
from support.chain.chain_model import CHAIN_ID, GWEI, ChainModel
from support.patience import STORY_S

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
        await self.relayer.submit(name, EthCall(target, data, gas_max=100_000), deadline_s)
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
