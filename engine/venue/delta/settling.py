"""Settlements under way: from the effect that an auction left to what the chain made of it.

    effect `settle`, INTENDED -> relayer: kept, signed, mined once -> mined: the indexer completes the order
                                                                   -> not: `life.failed`, the runner-up next

A task for each order whose settlement has not ended. Nothing is remembered but the runners-up of the last
round: after a crash the effect is taken up again, the relayer knows it by its key, and what it made of it
decides. Orders that are crossed with each other share one transaction, by the key of the first.

Source: design, "Settlement"; storage.md, "Transactions".
Choice: a settlement that is not mined `settlement_s` after its round is given up: firm quotes have expired.
"""

from collections.abc import Callable, Sequence

import msgspec
import structlog
import trio
from msgspec import Struct

from ....codecs.agent_messages import Notice, NoticeEntry
from ....codecs.vocabulary import OrderStatus
from ....config.errors import ChainError, OrderNotFound, StoreUnavailable
from ....config.timeouts import SETTLING_PAUSE_S, SETTLING_PAUSE_S_MAX
from ....crypto.hexadecimal import to_hex
from ...chain.port import Call
from ...chain.relayer import Outcome, Relayer
from ...store.orders import effect_key
from ...store.queries import by
from ...store.rows import DeltaOrder, Effect, IntentState
from ...store.store import Store
from ...store.tables import EFFECT
from ...store.units import row_of
from .life import ENDED, SETTLE, Step, failed, part_settled
from .live_orders import LiveOrder, LiveOrders

_log = structlog.get_logger("cambist.venue")

_MINED = (IntentState.MINED, IntentState.FINAL)


class Settlement(Struct, frozen=True):
    """What is settled, as the effect's payload keeps it.

    Attributes:
        key: of the relay intent; empty stands for the effect's own.
        data: calldata of the Delta contract.
        gas: most units that it may use.
        deadline_s: Unix seconds; it is given up unless it is mined by then.
        agent: whose bid it is.
        amount: digits: what the user is to get (SELL) or spend (BUY), by the simulation.
        is_last: it closes the order.
    """

    key: str
    data: bytes
    gas: int
    deadline_s: int
    agent: str
    auction_id: int
    amount: str
    is_last: bool


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Settlement).decode

Tell = Callable[[str, int, NoticeEntry], None]
"""(agent, auction id, what it is told)."""


def settlement_payload(settlement: Settlement, row: DeltaOrder) -> bytes:
    """The payload of the effect that the next step of `row` wants."""
    key = settlement.key or effect_key(row.order_hash, row.version + 1, SETTLE)
    return _encode(msgspec.structs.replace(settlement, key=key))


class SettlingStatistics(Struct, frozen=True):
    """Settlements of one chain: under way now, and what came of the others."""

    under_way: int
    settled: int
    failed: int


class Settling:
    """The settlements of one chain. `start` gives it the nursery that its tasks run in.

    Args:
        delta: the contract, 20 bytes.
        failures_max: settlements that may fail before an order does.
        tell: agents hear of what became of their bids.
        is_followed: whether what is mined from now on will be read, at once or later.
    """

    def __init__(
        self,
        relayer: Relayer,
        store: Store,
        orders: LiveOrders,
        *,
        delta: bytes,
        failures_max: int,
        tell: Tell,
        is_followed: Callable[[], bool],
        wall_ms: Callable[[], int],
    ) -> None:
        self._relayer = relayer
        self._store = store
        self._orders = orders
        self._delta = delta
        self._failures_max = failures_max
        self._tell = tell
        self._is_followed = is_followed
        self._wall_ms = wall_ms
        self._nursery: trio.Nursery | None = None
        self._under_way: set[str] = set()
        self._runners_up: dict[bytes, list[Settlement]] = {}
        self._settled = self._failed = 0

    def statistics(self) -> SettlingStatistics:
        """Counters and present sizes."""
        return SettlingStatistics(len(self._under_way), self._settled, self._failed)

    def start(self, nursery: trio.Nursery) -> None:
        """Settlements run in this nursery from now on."""
        self._nursery = nursery

    def line_up(self, order_hash: bytes, runners_up: Sequence[Settlement]) -> None:
        """Who is next if the settlement of an order fails."""
        self._runners_up[order_hash] = list(runners_up)

    def tend(self, live: LiveOrder) -> None:
        """See that the settlement of an order is under way, if it has one."""
        if live.row.status in ENDED:
            self._runners_up.pop(live.order_hash, None)
            return
        key = live.settling
        if key is None or key in self._under_way or self._nursery is None:
            return
        self._under_way.add(key)
        self._nursery.start_soon(self._run, live.order_hash, key)

    async def _run(self, order_hash: bytes, key: str) -> None:
        """Settle, whatever is away meanwhile."""
        pause_s = SETTLING_PAUSE_S
        try:
            while self._orders.get(order_hash) is not None:
                try:
                    await self._settle(order_hash, key)
                except (ChainError, StoreUnavailable) as error:
                    _log.warning("a settlement waits", order=to_hex(order_hash), detail=str(error))
                    await trio.sleep(pause_s)
                    pause_s = min(2 * pause_s, SETTLING_PAUSE_S_MAX)
                except OrderNotFound:
                    return
                except Exception as error:  # noqa: BLE001  one settlement's bug is not the others' end
                    _log.error(
                        "a settlement is stuck", order=to_hex(order_hash), detail=repr(error), exc_info=True
                    )
                    await trio.sleep(SETTLING_PAUSE_S_MAX)
                else:
                    return
        finally:
            self._under_way.discard(key)

    async def _settle(self, order_hash: bytes, key: str) -> None:
        effect = await self._effect(key)
        if effect is None or effect.state != "INTENDED":
            return
        if not self._is_followed():
            raise ChainError("the chain is not followed yet")
        settlement = _decode(effect.payload)
        call = Call(self._delta, settlement.data, gas_max=settlement.gas)
        await self._relayer.submit(settlement.key, call, settlement.deadline_s)
        self._told(settlement, order_hash, Notice.SETTLING)
        outcome = await self._relayer.wait(settlement.key, final=False)
        if outcome.state not in _MINED and self._is_cancelling(order_hash):
            outcome = await self._relayer.wait(settlement.key)
        if outcome.state in _MINED:
            self._settled += 1
            self._told(settlement, order_hash, Notice.SETTLED, outcome)
            if not settlement.is_last:
                await self._orders.step(order_hash, lambda row: part_settled(row, effect, self._wall_ms()))
            return
        self._failed += 1
        self._told(settlement, order_hash, Notice.REVERTED, outcome)
        await self._next(order_hash, effect)

    async def _next(self, order_hash: bytes, effect: Effect) -> None:
        """The settlement came to nothing: what follows."""
        waiting = self._runners_up.get(order_hash, [])
        runner_up = waiting.pop(0) if waiting else None

        def decide(row: DeltaOrder) -> Step | None:
            payload = None if runner_up is None else settlement_payload(runner_up, row)
            return failed(row, effect, payload, self._failures_max, self._wall_ms())

        await self._orders.step(order_hash, decide)

    def _is_cancelling(self, order_hash: bytes) -> bool:
        live = self._orders.get(order_hash)
        return live is not None and live.row.status is OrderStatus.CANCELLING

    async def _effect(self, key: str) -> Effect | None:
        (rows,) = await self._store.read(by(EFFECT, key))
        return row_of(EFFECT, rows[0]) if rows else None

    def _told(
        self, settlement: Settlement, order_hash: bytes, notice: Notice, outcome: Outcome | None = None
    ) -> None:
        tx_hash = None if outcome is None or outcome.tx_hash is None else to_hex(outcome.tx_hash)
        entry = NoticeEntry(
            notice,
            to_hex(order_hash),
            "" if outcome is None else outcome.reason,
            simulated_amount=settlement.amount,
            tx_hash=tx_hash,
        )
        self._tell(settlement.agent, settlement.auction_id, entry)
