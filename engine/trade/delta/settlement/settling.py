"""Runs settlements: sends each `settle` effect of an auction through the relayer and handles its outcome.

    effect `settle`, INTENDED -> funds, read once more, are missing: no transaction is sent
                              -> relayer: stored, signed, mined once
                                     -> mined: the indexer completes the order, or a part is left to settle
                                     -> failed: `life.failed`, then a runner-up; without the owner's funds
                                        `life.starved`

A `settle` effect is a row of the store: the intended settlement of an order by the bid that won its auction.
Each order whose settlement has not ended has a task. After a crash the stored effect is handled again, and
the relayer's intent with the same key gives its outcome; only the runners-up (next best bids) of the last
round are lost, since they are in memory alone. Crossed orders share one transaction, and the key of the first
order's effect.

Source: ARCHITECTURE.md, "Settlement", "Transitions".
Choice: A settlement unmined `settlement_s` after its round is given up: firm quotes have expired.
Choice: A settlement mined before its slice's time, by a node's fast clock, is no failure and has no
    runner-up: the next round waits longer.
"""

from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from enum import Enum

import msgspec
import structlog
import trio
from msgspec import Struct

from .....codecs.contracts.abi import SELECTOR_BYTES, address_word
from .....codecs.contracts.contract_events import APPROVAL, TRANSFER
from .....codecs.eip712_orders.delta import SAME_CHAIN, ProductiveOrder
from .....codecs.messages.agent_messages import Notice, NoticeEntry
from .....codecs.messages.vocabulary import OrderStatus, Side
from .....codecs.rounding import mul_div_down
from .....codecs.trading_token import NATIVE_TOKEN
from .....config import limits
from .....config.errors import ChainError, OrderNotFound, Reverted, StoreUnavailable
from .....config.timeouts import (
    SETTLEMENT_S,
    SETTLING_LOOK_S,
    SETTLING_PAUSE_S,
    SETTLING_PAUSE_S_MAX,
    SETTLING_STUCK_S,
)
from .....crypto.hexadecimal import to_hex
from ....chain.port import Chain, EthCall, Header, LogFilter
from ....chain.relay.relayer import IntentOutcome, Relayer
from ....chain.together import all_of, both
from ....store.queries import among, by
from ....store.rows import DeltaFill, DeltaOrderRow, Effect, EffectState, IntentState, amount_of
from ....store.store import Store
from ....store.tables import DELTA_FILL, EFFECT
from ....store.units import row_of
from ...orders.order_units import effect_key
from ..bids.agent_rest import AgentFault
from ..bids.simulation import Proven
from ..orders.life import ENDED, OPEN, SETTLE, SETTLED_WHOLE, DeltaStep, failed, part_settled, starved
from ..orders.live_orders import LiveOrder, LiveOrders
from ..orders.terms import next_part
from ..orders.transfers import bridge_of
from ..orders.vault import OF_VAULT
from . import failures
from .failures import SettlementFailure, failure_of, fault_in, is_of_bridge
from .funds_watch import AreLacking
from .owner_costs import OwnerCosts

_log = structlog.get_logger("cambist.venue")

_SLACK_GAS = 50_000  # beside a third of the simulated gas: a call passes on at most 63/64 of its gas
_MINED = (IntentState.MINED, IntentState.FINAL)
FUNDS_GONE = "the owner's funds are not there"
"""Beginning of the reason that agents receive for a settlement that failed for lack of the owner's funds."""
OTHERS_FUNDS_GONE = "the funds of an order that is crossed with it are not there"
"""Reason that agents receive if the funds of another order in the same settlement were missing."""
OWNERS_CODE = "code of an owner's ran in it"
"""Beginning of the reason that agents receive if an owner's contract may have made a settlement fail."""
BRIDGES_CODE = "the order's bridge failed"
"""Beginning of the reason that agents receive if the order's bridge may have failed."""
OWNER_RESTS = "the owner rests after failed settlements"
"""Reason that agents receive for a settlement that was not sent, since its owners rest or have no room."""
OTHER_SETTLED = "another agent has since settled an order of the owner for which its settlement failed"
"""Reason that an agent receives once a failed settlement counts against it."""
OWNER_ACTED = "an owner acted in its block"
"""Beginning of the agents' reason if an owner's act in the settlement's block may be the cause."""
_NO_RUNNER_UP = frozenset(
    {SettlementFailure.ORDER_DONE, SettlementFailure.TOO_EARLY, SettlementFailure.OWNER_RESTS}
)
"""Failures that the next best bid on the order cannot avoid, and that do not count against the order."""
_SEEN = (None, *SETTLED_WHOLE)
"""Statuses that show an order's mined settlement to be indexed; None: the order has left the memory."""


class Settlement(Struct, frozen=True):
    """A settlement of an order, as the payload of the order's `settle` effect stores it.

    Attributes:
        key: key under which the relayer sends the transaction; if empty, the key of the effect that stores
            the settlement is used.
        data: calldata for the Delta contract.
        gas: gas limit of the transaction, units.
        deadline_s: Unix seconds; the settlement is given up unless mined by then.
        agent: name of the bidding agent.
        amount: raw units that the user receives (SELL) or spends (BUY) in the simulation, as decimal digits.
        simulated_gas: units of gas that the simulation used.
        owners_data: calldata of the same settlement without the agent's calls; empty in payloads that were
            stored by an earlier version.
        is_purchase: whether the order is a purchase (BUY), so that `amount` and `promised` are costs.
        promised: greatest cost (BUY) or least output (SELL) that the bid promises, raw units, as decimal
            digits.
        part_amount: settled raw units of the source token (SELL) or the destination token (BUY), as decimal
            digits.
        others: hashes of the orders that are crossed with this order, i.e. settled against it.
    """

    key: str
    data: bytes
    gas: int
    deadline_s: int
    agent: str
    auction_id: int
    amount: str
    part_amount: str = "0"
    others: tuple[bytes, ...] = ()
    is_purchase: bool = False
    promised: str = "0"
    simulated_gas: int = 0
    owners_data: bytes = b""

    def amount_in(self, fill: DeltaFill) -> int:
        """Return the raw units that the user received (SELL) or spent (BUY) in a fill."""
        return amount_of(fill.spent if self.is_purchase else fill.received)

    def is_kept(self, amount: int) -> bool:
        """Whether an amount is at most AGENT_DRIFT_BPS basis points worse for the user than simulated."""
        simulated = int(self.amount)
        drift = mul_div_down(simulated, limits.AGENT_DRIFT_BPS, limits.BPS_ONE)
        return amount <= simulated + drift if self.is_purchase else amount >= simulated - drift

    @property
    def gas_kept(self) -> int:
        """Units of gas above which a mined settlement is its agent's fault: simulated gas plus a margin."""
        drift = mul_div_down(self.simulated_gas, limits.AGENT_GAS_DRIFT_BPS, limits.BPS_ONE)
        return self.simulated_gas + drift + limits.AGENT_GAS_DRIFT


_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(Settlement).decode

TellAgent = Callable[[str, int, NoticeEntry, AgentFault | None], None]
"""Function that notifies an agent: (agent, auction id, notice of a settlement, the agent's fault or None)."""


def settlement_of(
    bid: Proven, at: int, key: str, auction_id: int, deadline_s: int, gas_max: int
) -> Settlement:
    """Make the settlement of one order from a bid that passed the simulation.

    Args:
        at: index of the order's part among the parts of the bid.
        key: key under which the relayer sends the transaction; empty to use the `settle` effect's key.
        deadline_s: latest time of the settlement, Unix seconds; an earlier deadline of an order of the bid
            takes precedence.
        gas_max: most units of gas of a settlement.
    """
    # The gas of all parts, not of this part: crossed orders relay one call under one key, and the relayer
    # refuses the same key with another gas limit.
    gas = sum(outcome.gas for outcome in bid.outcomes)
    parts = bid.candidate.parts
    return Settlement(
        key=key,
        data=bid.candidate.calldata,
        gas=min(gas + gas // 3 + _SLACK_GAS, gas_max),
        deadline_s=min(deadline_s, *(part.asked.terms.deadline for part in parts)),
        agent=bid.candidate.agent,
        auction_id=auction_id,
        amount=str(bid.amount(at)),
        part_amount=str(parts[at].part.amount),
        others=tuple([part.asked.order_hash for part in parts if part is not parts[at]]),
        is_purchase=parts[at].asked.terms.side is Side.BUY,
        promised=str(parts[at].promised),
        simulated_gas=gas,
        owners_data=bid.candidate.owners_calldata,
    )


def settlement_in(effect: Effect) -> Settlement:
    """Decode the settlement in the payload of a `settle` effect."""
    return _decode(effect.payload)


def settlement_payload(settlement: Settlement, row: DeltaOrderRow) -> bytes:
    """Encode a settlement as the payload of the `settle` effect stored with the order's next version."""
    key = settlement.key or effect_key(row.order_hash, row.version + 1, SETTLE)
    return _encode(msgspec.structs.replace(settlement, key=key))


class _Lacked(Enum):
    """Lack that made a settlement revert, by calls of it at the block before.

    Attributes:
        NOTHING: the call fails in any case, or no owner's code runs.
        GAS: the call succeeds with a simulation's gas, and fails with the gas as sent: code wasted it.
        THE_BLOCK_BEFORE: the call succeeds with either: something in the block itself is the cause.
    """

    NOTHING = "nothing"
    GAS = "gas"
    THE_BLOCK_BEFORE = "the block before"


class _Cause(Struct, frozen=True):
    """Why a settlement failed, as the chain shows it.

    Attributes:
        is_starved: whether the owner of the order that the task settles lacks funds now.
        is_by_code: whether code of an owner's is the likely cause.
        has_code: whether code of an owner's ran in it.
        header: header of its block; None if it was not mined, or no node answers.
    """

    failure: SettlementFailure
    is_starved: bool = False
    is_by_code: bool = False
    has_code: bool = False
    header: Header | None = None


class SettlingStatistics(Struct, frozen=True):
    """Numbers of settlements on one chain: under way now, and settled or failed since the process started."""

    under_way: int
    settled: int
    failed: int


class Settling:
    """Runs the settlements of one chain, each in a task of the nursery that `start` sets.

    Args:
        delta: the Delta contract, 20 bytes.
        gas_max: gas limit of a simulation, units.
        failures_max: number of counted failures (`life.failed`) that makes an order FAILED.
        tell: notifies an agent of the outcome of its bid's settlement.
        are_lacking: returns whether the owner's funds for an order are missing.
        calls_contract: returns whether a settlement of an order calls a contract of its owner or receiver.
        owner_costs: charges failed settlements to the owners that caused them.
        unspent: gives back the subsidy of an order's settlement that was not mined.
        read_to: returns the height of the last indexed block; -1 before the first one.
    """

    def __init__(
        self,
        relayer: Relayer,
        chain: Chain,
        store: Store,
        orders: LiveOrders,
        *,
        delta: bytes,
        gas_max: int,
        failures_max: int,
        tell: TellAgent,
        are_lacking: AreLacking,
        calls_contract: Callable[[LiveOrder], Awaitable[bool]],
        owner_costs: OwnerCosts,
        unspent: Callable[[bytes], None],
        read_to: Callable[[], int],
        wall_ms: Callable[[], int],
    ) -> None:
        self._relayer = relayer
        self._chain = chain
        self._store = store
        self._orders = orders
        self._delta = delta
        self._gas_max = gas_max
        self._failures_max = failures_max
        self._tell = tell
        self._are_lacking = are_lacking
        self._calls_contract = calls_contract
        self._owner_costs = owner_costs
        self._unspent = unspent
        self._read_to = read_to
        self._wall_ms = wall_ms
        self._nursery: trio.Nursery | None = None
        self._under_way: set[str] = set()
        self._runners_up: dict[bytes, list[Settlement]] = {}
        self._settled = self._failed = 0

    def statistics(self) -> SettlingStatistics:
        """Return the number of settlements under way, and counters since the process started."""
        return SettlingStatistics(len(self._under_way), self._settled, self._failed)

    def start(self, nursery: trio.Nursery) -> None:
        """Set the nursery in which the tasks of settlements run from now on."""
        self._nursery = nursery

    def line_up(self, order_hash: bytes, runners_up: Sequence[Settlement]) -> None:
        """Keep the next best bids on an order, to be settled one after the other if its settlement fails."""
        self._runners_up[order_hash] = list(runners_up)

    def leave(self, held: Container[int]) -> None:
        """Forget the next best bids on orders that another engine runs now.

        Args:
            held: shards of orders that this engine still runs.
        """
        for order_hash in [key for key in self._runners_up if key[0] not in held]:
            del self._runners_up[order_hash]

    def carry_on(self, live: LiveOrder) -> None:
        """Start the task of an order's unfinished settlement, if any, unless that task runs already."""
        if live.row.status in ENDED:
            self._runners_up.pop(live.order_hash, None)
        if live.row.status in SETTLED_WHOLE or live.row.is_final:
            return
        key = live.settling
        if key is None or key in self._under_way or self._nursery is None:
            return
        # Added here and not in the task, which begins later: another change of the order may call this method
        # before the task runs, and must not start a second task.
        self._under_way.add(key)
        self._nursery.start_soon(self._settle_with_retries, live.order_hash, key)

    async def _settle_with_retries(self, order_hash: bytes, key: str) -> None:
        """Run an order's settlement to its outcome, with retries after errors; a missing order ends the task.

        While chain or store is unavailable, only the first failure is logged. If a re-organisation undoes the
        settlement while this method handles the outcome, the settlement runs again.
        """
        pause_s = SETTLING_PAUSE_S
        is_told = False
        try:
            # After a failed settlement, the order's step may have replaced this key by the key of the next
            # best bid's settlement, for which `carry_on` has started another task.
            while (live := self._orders.get(order_hash)) is not None and live.settling == key:
                try:
                    await self._settle(order_hash, key)
                except (ChainError, StoreUnavailable) as error:
                    if not is_told:
                        _log.warning("a settlement waits", order=to_hex(order_hash), detail=str(error))
                    is_told = True
                    await trio.sleep(pause_s)
                    pause_s = min(2 * pause_s, SETTLING_PAUSE_S_MAX)
                except OrderNotFound:
                    return
                except Exception as error:  # noqa: BLE001  a bug in one settlement ends no other
                    _log.error(
                        "a settlement is stuck", order=to_hex(order_hash), detail=repr(error), exc_info=True
                    )
                    await trio.sleep(SETTLING_STUCK_S)
                else:
                    if self._status(order_hash) in _SEEN:
                        return
                    await trio.sleep(pause_s)  # the outcome is undone, or memory does not show it
        finally:
            # Also if the task is cancelled: the effect is a row, and the shard's next holder handles it.
            self._under_way.discard(key)

    async def _settle(self, order_hash: bytes, key: str) -> None:
        # Read from the store: the indexer's step, or this task before a retry, may have ended the effect
        # already.
        effect = await self._effect(key)
        if effect is None or effect.state is not EffectState.INTENDED:
            return
        settlement = _decode(effect.payload)
        orders = self._orders_of(order_hash, settlement)
        is_sent = await self._relayer.outcome(settlement.key) is not None
        lacking, codes = frozenset[bytes](), dict[bytes, frozenset[bytes]]()
        if not is_sent:  # else it cannot be held back any more
            lacking, codes = await both(
                lambda: self._lacking(orders), lambda: self._owner_costs.codes_of_new(orders)
            )
            if lacking and await self._relayer.outcome(settlement.key) is not None:
                lacking = frozenset()  # another order's task has submitted the settlement meanwhile
        if lacking:
            why = OTHERS_FUNDS_GONE if order_hash not in lacking else "it was not sent"
            outcome = IntentOutcome(settlement.key, IntentState.CANCELLED, why, None)
            cause = _Cause(SettlementFailure.FUNDS, is_starved=order_hash in lacking)
            await self._failed_for(order_hash, effect, outcome, cause)
            return
        if not self._owner_costs.begin(settlement.key, orders, settlement.gas, codes, is_sent=is_sent):
            outcome = IntentOutcome(settlement.key, IntentState.CANCELLED, OWNER_RESTS, None)
            await self._failed_for(order_hash, effect, outcome, _Cause(SettlementFailure.OWNER_RESTS))
            return
        # From here on the settlement may be mined at any time, so that the order keeps it until its outcome
        # is known. A repeated submission of the same key and call, after a crash or by the task of a crossed
        # order, changes nothing.
        call = EthCall(self._delta, settlement.data, gas_max=settlement.gas)
        await self._relayer.relay(settlement.key, call, settlement.deadline_s)
        self._notify(settlement, order_hash, Notice.SETTLING)
        outcome = await self._outcome(order_hash, settlement)
        if outcome.state in _MINED:
            # Before the step, which may end this task: the charge of the owners would never end.
            self._tell_doubted(settlement, order_hash)
            # The indexer has stored the fill, and the end of an order that is settled whole. A part's effect
            # ends here, so that the rest can be auctioned.
            if self._status(order_hash) not in _SEEN:
                if (filled := self._orders.get(order_hash)) is not None:
                    self._orders.begin_anew(filled)  # before the step, which queues the order with its pause
                await self._orders.step(order_hash, lambda row: self._more_to_come(row, effect))
            self._settled += 1
            await self._tell_settled(settlement, order_hash, outcome)
            return
        await self._failed_for(
            order_hash, effect, outcome, await self._cause(order_hash, settlement, outcome)
        )

    async def _cause(self, order_hash: bytes, settlement: Settlement, outcome: IntentOutcome) -> _Cause:
        """Find why a settlement failed that was sent.

        Questions that do not depend on each other go together: the node may be far away.

        Raises:
            ChainError: no node answers.
        """
        live = self._orders.get(order_hash)
        height, header, has_code = 0, None, False
        if outcome.receipt is not None:
            height = outcome.receipt.block_number
            header, has_code = await both(
                lambda: self._block_of(outcome),
                lambda: self._any_calls_contract(self._orders_of(order_hash, settlement)),
            )
        owners, lacked = await both(
            lambda: self._owners_errors(settlement, outcome, header),
            lambda: self._lacked_gas(settlement, header if has_code else None),
        )
        failure = failure_of(outcome.cause, outcome.error4, owners, None if live is None else live.order)
        if failure is not SettlementFailure.AGENTS:
            lacked = _Lacked.NOTHING
        elif lacked is not _Lacked.NOTHING:
            failure = SettlementFailure.DOUBTFUL
        # The contract knows of a fill or a cancellation that the indexer may not have read yet: the wait lets
        # the step of `_failed_for` see the order's present state.
        if failure is SettlementFailure.ORDER_DONE:
            await self._until_read(order_hash, height)
        # ORDER_DONE of crossed orders, while this order is open, is due to another of them: this order keeps
        # its runners-up. Else they go before `_failed_for`, which would settle the next of them.
        is_others = bool(settlement.others) and self._status(order_hash) in OPEN
        if failure in _NO_RUNNER_UP and not is_others:
            self._runners_up.pop(order_hash, None)
        return _Cause(
            failure,
            # Not before block `height`: a node that lags would still show the funds that were missing.
            is_starved=live is not None and await self._are_lacking(live, height),
            is_by_code=lacked is _Lacked.GAS or failures.is_by_code(outcome.cause, outcome.error4, owners),
            has_code=has_code,
            header=header,
        )

    async def _block_of(self, outcome: IntentOutcome) -> Header | None:
        """Header of the block of a failed settlement; None if it was not mined, or no node answers."""
        if outcome.receipt is None:
            return None
        try:
            return await self._chain.block(outcome.receipt.block_hash)
        except ChainError as error:
            _log.warning("a failed settlement stays unexplained", key=outcome.effect_key, detail=str(error))
            return None

    async def _owners_errors(
        self, settlement: Settlement, outcome: IntentOutcome, header: Header | None
    ) -> frozenset[bytes] | None:
        """Call a reverted settlement again without the agent's calls; return the selectors of the errors.

        The calls are at the settlement's block and at the block before. The result is None if the settlement
        cannot be repeated that way or no node answers.

        The relayer learns the contract's error by a call, which an agent's contract can distinguish from a
        transaction: the agent could make the call fail as if the owner's tokens were missing. A settlement
        that succeeds at the block before may fail in its own block because of another transaction there.

        Args:
            header: of the settlement's block, if known.
        """
        is_comparable = outcome.error4 is not None or outcome.cause in failures.UNEXPLAINED
        if header is None or not is_comparable or not settlement.owners_data:
            return None
        call = EthCall(self._delta, settlement.owners_data, self._relayer.address, gas_max=settlement.gas)
        try:
            before, own = await both(
                lambda: self._error_of(call, header.parent_hash), lambda: self._error_of(call, header.hash)
            )
        except ChainError as error:
            _log.warning("a failed settlement stays unexplained", key=settlement.key, detail=str(error))
            return None
        return (before - failures.OF_TIME) | own

    async def _error_of(self, call: EthCall, block_hash: bytes) -> frozenset[bytes]:
        """Return the selector of the error of a call at a block as a set; an empty set if there is no error.

        The selector is b"" for an error without data.
        """
        try:
            await self._chain.call(call, block_hash)
        except Reverted as error:
            return frozenset({error.data[:SELECTOR_BYTES]})
        return frozenset()

    async def _lacking(self, orders: Sequence[LiveOrder], height: int = 0) -> frozenset[bytes]:
        """Return the hashes of orders whose owners lack funds at a block of this height, or a later one."""
        found = await all_of(lambda live: self._are_lacking(live, height), orders, len(orders))
        return frozenset(live.order_hash for live, lacks in zip(orders, found, strict=True) if lacks)

    async def _failed_for(
        self,
        order_hash: bytes,
        effect: Effect,
        outcome: IntentOutcome,
        cause: _Cause,
    ) -> None:
        settlement, failure, is_starved = _decode(effect.payload), cause.failure, cause.is_starved
        is_others = bool(settlement.others) and failure is SettlementFailure.FUNDS
        is_counted = not (is_others or failure in _NO_RUNNER_UP)
        is_doubtful = failure is SettlementFailure.DOUBTFUL and not is_starved
        gas_used = 0 if outcome.receipt is None else outcome.receipt.gas_used
        orders = self._orders_of(order_hash, settlement)
        may_be_act = cause.is_by_code or failure in failures.BY_OWNERS_ACT
        actors = await self._actors(orders, outcome, cause.header) if may_be_act else frozenset()
        doubt = self._doubt(orders, outcome, cause, actors) if is_doubtful else ""
        payers = await self._payers(order_hash, orders, outcome, cause, actors)
        # Before the step below, which queues the order anew: it waits for the end of its owner's rest.
        is_first = self._owner_costs.failed(
            settlement.key, settlement.agent, gas_used, payers, is_doubted=bool(doubt)
        )
        is_act = is_first and bool(payers) and not any(payers.values())
        if failure is SettlementFailure.DOUBTFUL and is_act and 2 * gas_used > settlement.simulated_gas:
            # Beyond the owner's part, which comes first: the agent's calls used the gas.
            self._owner_costs.wasted(settlement.agent, gas_used)
        if outcome.receipt is None:
            self._unspent(order_hash)
        live = self._orders.get(order_hash)
        if live is not None and live.terms.owner in payers:
            self._runners_up.pop(order_hash, None)  # the next best bid would meet the same owner
        await self._next(order_hash, effect, is_starved=is_starved, is_counted=is_counted)
        self._failed += 1
        fault, begins = None, f"{FUNDS_GONE}: "
        if not is_starved:
            fault = fault_in(failure, may_be_owners=bool(doubt))
            begins = f"{doubt}: " if doubt else ""
        outcome = msgspec.structs.replace(outcome, reason=f"{begins}{outcome.reason}")
        self._notify(settlement, order_hash, Notice.REVERTED, outcome, fault=fault)

    def _tell_doubted(self, settlement: Settlement, order_hash: bytes) -> None:
        """Record that a settlement succeeded: a fault of the agent before that failed for the same owner."""
        for agent in self._owner_costs.settled(settlement.key, settlement.agent).values():
            entry = NoticeEntry(Notice.REVERTED, to_hex(order_hash), OTHER_SETTLED)
            self._tell(agent, settlement.auction_id, entry, AgentFault.IN_DOUBT)

    async def _until_read(self, order_hash: bytes, height: int) -> None:
        """Wait, at most SETTLEMENT_S seconds, until block `height` is indexed or the order is not open."""
        with trio.move_on_after(SETTLEMENT_S):
            while (  # noqa: ASYNC110  the indexer sets no event for a height
                self._read_to() < height and self._status(order_hash) in OPEN
            ):
                await trio.sleep(SETTLING_LOOK_S)

    async def _lacked_gas(self, settlement: Settlement, header: Header | None) -> _Lacked:
        """Find what a reverted settlement that calls an owner's contract lacked.

        If it succeeds with a simulation's gas, the owner may have caused the failure: a contract can detect
        by the gas limit that the call is no simulation, and use up the gas of the agent's calls.

        Args:
            header: of the settlement's block; None if unknown, or if no owner's code runs.
        """
        if header is None:
            return _Lacked.NOTHING
        call = EthCall(self._delta, settlement.data, self._relayer.address, gas_max=self._gas_max)
        as_sent = EthCall(self._delta, settlement.data, self._relayer.address, gas_max=settlement.gas)
        try:
            fails, fails_as_sent = await both(
                lambda: self._error_of(call, header.parent_hash),
                lambda: self._error_of(as_sent, header.parent_hash),
            )
        except ChainError as error:
            _log.warning("a failed settlement stays unexplained", key=settlement.key, detail=str(error))
            return _Lacked.NOTHING
        if fails:
            return _Lacked.NOTHING
        return _Lacked.GAS if fails_as_sent else _Lacked.THE_BLOCK_BEFORE

    async def _any_calls_contract(self, orders: Sequence[LiveOrder]) -> bool:
        """Whether a settlement calls an owner's contract, which can act otherwise than in the simulation."""
        return any(await all_of(self._calls_contract, orders, len(orders)))

    def _orders_of(self, order_hash: bytes, settlement: Settlement) -> list[LiveOrder]:
        """Return the live orders of a settlement: the order of this hash, then the orders crossed with it."""
        found = [self._orders.get(key) for key in (order_hash, *settlement.others)]
        return [live for live in found if live is not None]

    def _doubt(
        self,
        orders: Sequence[LiveOrder],
        outcome: IntentOutcome,
        cause: _Cause,
        actors: frozenset[bytes],
    ) -> str:
        """Return why an owner or a bridge, not the agent, may have made a settlement fail; else empty."""
        if is_of_bridge(outcome.error4) and any(bridge_of(live.order) != SAME_CHAIN for live in orders):
            return BRIDGES_CODE
        if cause.has_code:
            return OWNERS_CODE
        return OWNER_ACTED if actors else ""

    async def _payers(
        self,
        order_hash: bytes,
        orders: Sequence[LiveOrder],
        outcome: IntentOutcome,
        cause: _Cause,
        actors: frozenset[bytes],
    ) -> Mapping[bytes, frozenset[bytes]]:
        """Return the owners that pay for a failed settlement, with the hashes of their code that caused it.

        Raises:
            ChainError: no node answers.
        """
        if outcome.receipt is None or outcome.error4 in OF_VAULT:
            return {}  # nothing was paid for, or a vault of the operator's choice is the cause
        # An act that the block shows comes first: the code of a crossed order's owner is then innocent.
        if actors:
            return dict.fromkeys(actors, frozenset())
        if cause.is_by_code:
            return await self._owner_costs.codes(orders)
        if cause.failure is not SettlementFailure.FUNDS:
            return {}
        others = [live for live in orders if live.order_hash != order_hash]
        lacking = await self._lacking(others, outcome.receipt.block_number)
        if cause.is_starved:
            lacking |= {order_hash}
        return {live.terms.owner: frozenset() for live in orders if live.order_hash in lacking}

    async def _actors(
        self, orders: Sequence[LiveOrder], outcome: IntentOutcome, header: Header | None
    ) -> frozenset[bytes]:
        """Return the owners of the orders that acted in the block of a failed settlement.

        An owner acts by a transaction, or by a change of the owner's tokens or allowance. Balances after the
        block are not compared, since a later transaction can undo the change that made the settlement fail.

        Args:
            header: of that block, if known.
        """
        if header is None:
            return frozenset()
        owners = {live.terms.owner for live in orders}
        # A receiver of native tokens acts for the owner that names it, and may have code in this block alone.
        receivers = {
            live.terms.beneficiary: live.terms.owner
            for live in orders
            if live.terms.dest_token == NATIVE_TOKEN
        }
        tokens = tuple({live.terms.held_token for live in orders})
        topics = ((TRANSFER, APPROVAL), tuple(map(address_word, owners)))
        asked = [
            (account, at)
            for account in sorted(owners | receivers.keys())
            for at in (header.parent_hash, header.hash)
        ]
        try:
            logs, found = await both(
                lambda: self._chain.logs_of(LogFilter(tokens, topics), header.hash),
                lambda: all_of(lambda each: self._chain.nonce(*each), asked, len(asked)),
            )
        except ChainError as error:
            _log.warning("a failed settlement stays unexplained", key=outcome.effect_key, detail=str(error))
            return frozenset()
        acts = {log.topics[1] for log in logs if failures.is_owners_act(log, self._delta)}
        actors = {owner for owner in owners if address_word(owner) in acts}
        nonces = dict(zip(asked, found, strict=True))
        for account in owners | receivers.keys():
            if nonces[account, header.parent_hash] != nonces[account, header.hash]:
                actors.add(account if account in owners else receivers[account])
        return frozenset(actors)

    async def _outcome(self, order_hash: bytes, settlement: Settlement) -> IntentOutcome:
        """Await the outcome of a settlement on the chain.

        The wait for a mined settlement goes on until its log is indexed, since before that the order's
        unfilled amount is unknown and the block may be undone. The wait for a failed settlement of a
        CANCELLING order goes on until the failure is final.
        """
        version = None
        while True:
            outcome = await self._relayer.wait(settlement.key, final=False)
            if outcome.state not in _MINED:
                if self._status(order_hash) is OrderStatus.CANCELLING:
                    outcome = await self._relayer.wait(settlement.key)
                return outcome
            live = self._orders.get(order_hash)
            if self._status(order_hash) in _SEEN or live is None:
                return outcome
            if live.row.version != version:
                version = live.row.version
                if await self._fill(order_hash, outcome) is not None:
                    return outcome
            await trio.sleep(SETTLING_LOOK_S)

    async def _fill(self, order_hash: bytes, outcome: IntentOutcome) -> DeltaFill | None:
        """Read an order's fill by a mined settlement from the store; None until the fill's log is indexed."""
        (rows,) = await self._store.read(among(DELTA_FILL, "order_hash", [order_hash]))
        fills: list[DeltaFill] = [row_of(DELTA_FILL, values) for values in rows]
        return next((fill for fill in fills if fill.tx_hash == outcome.tx_hash), None)

    def _more_to_come(self, row: DeltaOrderRow, effect: Effect) -> DeltaStep | None:
        """Make the step of an order that a settlement filled in part; None if the order is settled."""
        is_closed = row.status in SETTLED_WHOLE
        return None if is_closed else part_settled(row, effect, self._wall_ms())

    async def _next(self, order_hash: bytes, effect: Effect, *, is_starved: bool, is_counted: bool) -> None:
        """Write an order's status after a failed settlement, and settle the order's next best bid, if any.

        A bid past its deadline or larger than the unfilled amount is skipped.

        Args:
            is_starved: whether the owner's funds are missing; if so, no bid is settled.
            is_counted: whether the failure counts against the order.
        """
        live = self._orders.get(order_hash)
        now_s = self._wall_ms() // 1_000
        left = None if live is None else next_part(live.order, live.filled)
        most = 0 if left is None else left.amount
        waiting = [
            settlement
            for settlement in self._runners_up.get(order_hash, ())
            if settlement.deadline_s > now_s and int(settlement.part_amount) <= most
        ]
        runner_up = waiting[0] if waiting else None

        def decide(row: DeltaOrderRow) -> DeltaStep | None:
            if is_starved and row.status in OPEN:
                return starved(row, effect, self._wall_ms())
            payload = None if runner_up is None else settlement_payload(runner_up, row)
            now_ms = self._wall_ms()
            return failed(row, effect, payload, self._failures_max, now_ms, is_counted=is_counted)

        if live is not None:
            self._orders.settlement_failed(live)  # before the step, which queues the order with its pause
        await self._orders.step(order_hash, decide)
        # After the step: if the step is not written, `_settle_with_retries` needs the same bid once more.
        if order_hash in self._runners_up:
            self._runners_up[order_hash] = [] if is_starved else waiting[1:]

    def _status(self, order_hash: bytes) -> OrderStatus | None:
        """Return the status of an order; None if the order is no longer in memory."""
        live = self._orders.get(order_hash)
        return None if live is None else live.row.status

    async def _effect(self, key: str) -> Effect | None:
        (rows,) = await self._store.read(by(EFFECT, key))
        return row_of(EFFECT, rows[0]) if rows else None

    async def _tell_settled(self, settlement: Settlement, order_hash: bytes, outcome: IntentOutcome) -> None:
        """Notify the agent of a mined settlement, with a fault if its outcome is worse than simulated.

        The fault is recorded if the user got less (or spent more), or the gas was more, than the simulation
        showed and the tolerance allows.
        """
        fill = await self._fill(order_hash, outcome)
        if fill is None:  # its block was undone, or is long final
            self._notify(settlement, order_hash, Notice.SETTLED, outcome)
            return
        live, receipt = self._orders.get(order_hash), outcome.receipt
        is_vaults = live is not None and isinstance(live.order, ProductiveOrder)  # a vault may waste gas
        amount = settlement.amount_in(fill)
        why = ""
        if not settlement.is_kept(amount):
            why = f"simulated {settlement.amount}, settled {amount}"
        elif receipt is not None and not is_vaults and receipt.gas_used > settlement.gas_kept:
            why = f"gas: simulated {settlement.simulated_gas}, used {receipt.gas_used}"
        outcome = msgspec.structs.replace(outcome, reason=why)
        notice, fault = (Notice.SETTLED_BELOW, AgentFault.SETTLED_BELOW) if why else (Notice.SETTLED, None)
        self._notify(settlement, order_hash, notice, outcome, str(amount), fault)

    def _notify(
        self,
        settlement: Settlement,
        order_hash: bytes,
        notice: Notice,
        outcome: IntentOutcome | None = None,
        settled_amount: str | None = None,
        fault: AgentFault | None = None,
    ) -> None:
        tx_hash = None if outcome is None or outcome.tx_hash is None else to_hex(outcome.tx_hash)
        entry = NoticeEntry(
            notice,
            to_hex(order_hash),
            "" if outcome is None else outcome.reason,
            simulated_amount=settlement.amount,
            settled_amount=settled_amount,
            tx_hash=tx_hash,
        )
        self._tell(settlement.agent, settlement.auction_id, entry, fault)
