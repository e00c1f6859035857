"""Settlements of one chain without an auction: orders of a real store, a relayer and a chain that are played.

    async with a_stage(tmp_path, mock_clock) as stage:
        await stage.submit(SALE)
        stage.relayer.ends[KEY] = reverted("PullFailed(address)")
        await stage.begin(SALE, a_settlement(SALE))
        await stage.until(lambda: stage.live(SALE).settling is None)

The tasks' clock moves by `until` and `passed` alone, once nothing else is left to do. The clock of the wall
stands still at NOW_S and 999 milliseconds.
"""

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import trio
from msgspec.structs import replace
from trio.testing import MockClock, wait_all_tasks_blocked

from cambist.codecs.contracts.abi import selector
from cambist.codecs.messages.agent_messages import Notice, NoticeEntry
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.config.errors import Reverted
from cambist.config.settings import parse_settings
from cambist.engine.chain.port import EthCall, Header, Log, LogFilter, Receipt
from cambist.engine.chain.relay.relayer import IntentOutcome
from cambist.engine.host.admission.ledger import Ledger
from cambist.engine.store.leases import Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.queries import by
from cambist.engine.store.rows import DeltaFill, IntentCause, IntentState, amount32
from cambist.engine.store.store import Store
from cambist.engine.store.tables import DELTA_FILL, EFFECT
from cambist.engine.store.units import Done, Unit, put
from cambist.engine.trade.delta.bids.agent_rest import AgentFault
from cambist.engine.trade.delta.bids.bids import RoundOrder
from cambist.engine.trade.delta.orders.life import won
from cambist.engine.trade.delta.orders.live_orders import LiveOrder, LiveOrders
from cambist.engine.trade.delta.settlement.owner_costs import OwnerCosts
from cambist.engine.trade.delta.settlement.settling import Settlement, Settling, settlement_payload
from cambist.engine.trade.orders.order_units import step
from cambist.engine.trade.orders.step import OrderStep
from support.store.store_work import now_ms
from support.store.stores import NOW_MS, a_delta_order

NOW_S = NOW_MS // 1_000
WALL_MS = 1_000 * NOW_S + 999
DELTA, RELAYER = b"\xde" * 20, b"\x4e" * 20
OWN, BEFORE, HEIGHT = b"\x02" * 32, b"\x01" * 32, 7
"""Hash of the block of every mined settlement, hash of the block before, and its height."""
TX = b"\x77" * 32
GAS_MAX, FAILURES_MAX = 1_000_000, 3
STEP_S = 0.25
"""Time that passes at once."""
_STEPS_MAX, _QUIET_READS = 400, 8


def mined(*, gas_used: int = 100_000, state: IntentState = IntentState.MINED) -> IntentOutcome:
    """Outcome of a settlement that succeeded."""
    return IntentOutcome("", state, "", TX, _receipt(gas_used, succeeded=True))


def reverted(
    error: str = "BelowMinimum(uint256,uint256)",
    *,
    gas_used: int = 100_000,
    cause: IntentCause = IntentCause.REVERTED,
) -> IntentOutcome:
    """Outcome of a settlement that was mined and reverted; an empty error is none."""
    error4 = selector(error) if error else None
    receipt = _receipt(gas_used, succeeded=False)
    return IntentOutcome("", IntentState.REVERTED, "no", TX, receipt, cause, error4)


def unmined(cause: IntentCause = IntentCause.DEADLINE) -> IntentOutcome:
    """Outcome of a settlement that was never mined."""
    return IntentOutcome("", IntentState.CANCELLED, "late", None, None, cause)


def _receipt(gas_used: int, *, succeeded: bool) -> Receipt:
    return Receipt(TX, succeeded, HEIGHT, OWN, 0, gas_used, 1, None, ())


class StageRelayer:
    """Relayer whose intents end as a test says.

    Attributes:
        ends: outcome of each key; a key without one is not mined yet.
        sent: (key, call, deadline) of each submission, repeated ones too.
        waits: (key, whether for the end) of each wait.
        errors: raised by the next submissions, one by each.
    """

    address = RELAYER

    def __init__(self) -> None:
        self.ends: dict[str, IntentOutcome] = {}
        self.sent: list[tuple[str, EthCall, int]] = []
        self.waits: list[tuple[str, bool]] = []
        self.errors: list[Exception] = []

    def keys(self) -> list[str]:
        """Keys of the submissions, each once."""
        return [*dict.fromkeys(key for key, _, _ in self.sent)]

    async def outcome(self, key: str) -> IntentOutcome | None:
        """As `Relayer.outcome`."""
        await trio.lowlevel.checkpoint()
        return IntentOutcome(key, IntentState.WAITING, "", None) if key in self.keys() else None

    async def relay(self, key: str, call: EthCall, deadline_s: int) -> None:
        """As `Relayer.relay`."""
        await trio.lowlevel.checkpoint()
        self.sent.append((key, call, deadline_s))
        if self.errors:
            raise self.errors.pop(0)

    async def wait(self, key: str, *, final: bool = True) -> IntentOutcome:
        """As `Relayer.wait`."""
        self.waits.append((key, final))
        while key not in self.ends:  # noqa: ASYNC110  a test sets it
            await trio.sleep(STEP_S)
        await trio.lowlevel.checkpoint()
        return replace(self.ends[key], effect_key=key)


class StageChain:
    """Chain that answers calls at the two blocks of a settlement.

    Attributes:
        refuses: signature of the error with which a call at a block is refused; empty if it is not.
        asked: (call, block) of each call.
        logs, nonces: what `logs_of` finds; (account, block) -> nonce, by default 0.
        error: raised by each request while it is set.
        has_block: whether the chain has the settlement's block.
        round_trips: number of times that the node was waited for.
    """

    def __init__(self) -> None:
        self.refuses: Callable[[EthCall, bytes], str] = lambda call, at: ""
        self.asked: list[tuple[EthCall, bytes]] = []
        self.logs: list[Log] = []
        self.nonces: dict[tuple[bytes, bytes], int] = {}
        self.error: Exception | None = None
        self.has_block = True
        self.round_trips = 0
        self._together: trio.Event | None = None

    async def block(self, at: bytes) -> Header | None:
        """As `Chain.block`."""
        await self._answers()
        assert at == OWN
        return Header(HEIGHT, OWN, BEFORE, 0, 0) if self.has_block else None

    async def call(self, call: EthCall, block_hash: bytes) -> bytes:
        """As `Chain.call`."""
        await self._answers()
        self.asked.append((call, block_hash))
        if error := self.refuses(call, block_hash):
            raise Reverted(error, selector(error))
        return b""

    async def logs_of(self, wanted: LogFilter, block_hash: bytes) -> list[Log]:
        """As `Chain.logs_of`."""
        await self._answers()
        assert block_hash == OWN
        return [log for log in self.logs if wanted.matches(log)]

    async def nonce(self, address: bytes, at: bytes) -> int:
        """As `Chain.nonce`."""
        await self._answers()
        assert at in (BEFORE, OWN)
        return self.nonces.get((address, at), 0)

    async def _answers(self) -> None:
        await self.round_trip()
        if self.error is not None:
            raise self.error

    async def round_trip(self) -> None:
        """Wait for an answer: questions that are asked before it comes go together."""
        if self._together is not None:
            await self._together.wait()
            return
        self._together = together = trio.Event()
        self.round_trips += 1
        await wait_all_tasks_blocked()
        self._together = None
        together.set()


class Stage:
    """Settlements under way, and what becomes of them.

    Attributes:
        told: (agent, auction id, notice, fault) of each notice.
        lacking: orders whose owners lack funds; heights: (order, height) of each question about that.
        codes: owner -> hashes of its code, by which its orders call a contract.
        unspent: orders whose subsidy came back.
        read_to: height to which the chain is indexed.
    """

    def __init__(self, store: Store, orders: LiveOrders, clock: MockClock) -> None:
        self.store, self.orders, self._clock = store, orders, clock
        self.relayer, self.chain = StageRelayer(), StageChain()
        self.told: list[tuple[str, int, NoticeEntry, AgentFault | None]] = []
        self.lacking: set[bytes] = set()
        self.heights: list[tuple[bytes, int]] = []
        self.codes: dict[bytes, frozenset[bytes]] = {}
        self.unspent: list[bytes] = []
        self.read_to = HEIGHT
        self.costs = OwnerCosts(
            Ledger(), 1, self._codes_of, rest_ms=5_000, rest_ms_max=900_000, wall_ms=lambda: WALL_MS
        )
        self.settling = Settling(
            cast("Any", self.relayer),
            cast("Any", self.chain),
            store,
            orders,
            delta=DELTA,
            gas_max=GAS_MAX,
            failures_max=FAILURES_MAX,
            tell=lambda *notice: self.told.append(notice),
            are_lacking=self._are_lacking,
            calls_contract=self._calls_contract,
            owner_costs=self.costs,
            unspent=self.unspent.append,
            read_to=lambda: self.read_to,
            wall_ms=lambda: WALL_MS,
        )

    async def quiet(self) -> None:
        """Let every task run up to its next sleep: their reads and writes come before these reads."""
        for _ in range(_QUIET_READS):
            await self.store.read(by(EFFECT, "none"))
            await wait_all_tasks_blocked()

    async def passed(self, seconds: float) -> None:
        """Let time pass."""
        for _ in range(round(seconds / STEP_S)):
            await self.quiet()
            self._clock.jump(STEP_S)
        await self.quiet()

    async def until(self, condition: Callable[[], object]) -> None:
        """Let time pass until a condition holds."""
        await self.quiet()
        for _ in range(_STEPS_MAX):
            if condition():
                return
            await self.passed(STEP_S)
        assert condition()

    async def submit(self, *asked: RoundOrder, status: OrderStatus = OrderStatus.ACTIVE) -> None:
        """Take orders in."""
        for one in asked:
            row = a_delta_order(1, order_hash=one.order_hash, shard=one.order_hash[0], owner=one.terms.owner)
            row = replace(row, nonce=one.order_hash)
            await self.orders.add(row, one.document, one.order, one.terms, "key k")
            if status is not row.status:
                await self.becomes(one, status)

    async def begin(self, asked: RoundOrder, settlement: Settlement, *runners_up: Settlement) -> None:
        """Have an order settled, as an auction does."""
        self.settling.line_up(asked.order_hash, runners_up)
        payload = settlement_payload(settlement, self.live(asked).row)
        await self.orders.step(asked.order_hash, lambda row: won(row, payload, (), NOW_MS))

    async def becomes(self, asked: RoundOrder, status: OrderStatus, **changed: Any) -> None:
        """Change an order's status, and maybe more of its row."""
        await self.orders.step(
            asked.order_hash, lambda row: OrderStep(step(row, NOW_MS, status=status, **changed))
        )

    async def fill(self, asked: RoundOrder, *, spent: int, received: int, tx_hash: bytes = TX) -> None:
        """Have the indexer find an order's fill by a transaction."""
        amounts = amount32(spent), amount32(received), NOW_MS, amount32(spent)
        place = 1, OWN, tx_hash, asked.order_hash[0], HEIGHT
        row = DeltaFill(*place, asked.order_hash, None, *amounts, is_closed=False)
        assert await self.store.write(Unit((put(DELTA_FILL, row),))) == Done()

    def live(self, asked: RoundOrder) -> LiveOrder:
        """An order as it is in memory."""
        found = self.orders.get(asked.order_hash)
        assert found is not None
        return found

    def notices(self, agent: str = "ann") -> list[Notice]:
        """Notices that an agent got."""
        return [entry.notice for name, _, entry, _ in self.told if name == agent]

    def faults(self, agent: str = "ann") -> list[AgentFault]:
        """Faults that were found of an agent."""
        return [fault for name, _, _, fault in self.told if name == agent and fault is not None]

    async def _are_lacking(self, live: LiveOrder, height: int) -> bool:
        await self.chain.round_trip()
        self.heights.append((live.order_hash, height))
        return live.order_hash in self.lacking

    async def _codes_of(self, live: LiveOrder) -> frozenset[bytes]:
        await self.chain.round_trip()
        return self.codes.get(live.terms.owner, frozenset())

    async def _calls_contract(self, live: LiveOrder) -> bool:
        return bool(await self._codes_of(live))


@asynccontextmanager
async def a_stage(folder: Path, clock: MockClock) -> AsyncIterator[Stage]:
    """A running stage, whose orders' settlements begin with their effects."""
    settings = parse_settings('state_dir = "."', {}, folder)
    async with open_store(settings, {}, folder, now_ms, in_process=True) as store:
        leases = Leases(store, "one", life_s=60, now_ms=now_ms)
        stage = Stage(store, LiveOrders(store, leases), clock)
        async with trio.open_nursery() as nursery:
            await nursery.start(leases.run)
            stage.settling.start(nursery)
            stage.orders.watch(stage.settling.carry_on)
            yield stage
            nursery.cancel_scope.cancel()


def a_settlement(asked: RoundOrder, key: str = "", **changed: Any) -> Settlement:
    """A settlement of a whole order by ann's bid, with a minute left."""
    members: dict[str, Any] = {
        "data": b"settle",
        "gas": 300_000,
        "deadline_s": NOW_S + 60,
        "agent": "ann",
        "auction_id": 5,
        "amount": "10000",
        "part_amount": str(asked.part.amount),
        "promised": "9000",
        "simulated_gas": 200_000,
        "owners_data": b"bare",
    }
    return Settlement(key=key, **members | changed)


def crossed(*orders: RoundOrder, key: str = "key", **changed: Any) -> list[Settlement]:
    """The settlements of orders that one transaction settles."""
    hashes = [asked.order_hash for asked in orders]
    return [
        a_settlement(
            asked, key, others=tuple(other for other in hashes if other != asked.order_hash), **changed
        )
        for asked in orders
    ]


async def ended(stage: Stage, asked: RoundOrder, settlement: Settlement, *runners_up: Settlement) -> None:
    """Have an order settled, until nothing is under way."""
    await stage.begin(asked, settlement, *runners_up)
    await stage.until(lambda: stage.settling.statistics().under_way == 0)
