"""A relayer of an Across bridge between development chains, which also pays out as the pools' owner.

    FundsDeposited on the origin  ->  fillRelay on the destination, with the relayer's own tokens
    fill deadline over            ->  the deposit goes to the account that filled it, else to the depositor;
                                      before that, two blocks later than the deadline on the destination

A chain of use always has such blocks. A development chain that mines on demand would show none, and whoever
waits for proof that nobody filled the deposit would wait for ever.

The relayer's state is that of the chains: after a restart, or a re-organisation of either chain, the relayer
goes on from the pools' logs and fill states. The relayer ignores deposits to unknown chains.
"""

from collections.abc import Mapping
from math import inf

import msgspec
import structlog
import trio
from msgspec import Struct

from ....codecs.bridges import across
from ....codecs.contracts.abi import address_word, decode_uint, uint_word
from ....codecs.contracts.calldata import balance_of
from ....config.errors import ChainError
from ....config.limits import DEV_BRIDGE_DEPOSITS_MAX
from ....config.timeouts import DEV_BRIDGE_AGAIN_S, DEV_BRIDGE_LOOK_S
from ....crypto.secp256k1 import SigningKey
from ...chain.port import Chain, EthCall, LogFilter
from ...chain.transact import DEV_GAS, transact
from .followed_logs import FollowedLogs, another_head
from .lanes import RelayedToken, RelayerTerms, RelayLane, lane_of
from .relay_plan import DepositSight, RelayAct, RelayerOrders, next_step

_log = structlog.get_logger("cambist.devnet")
_BLOCKS_PAST = 2  # the second confirms the first
_FOLLOWED = (across.FUNDS_DEPOSITED.topic, across.EXECUTED_REFUND_ROOT.topic)


class RelayEnd(Struct, frozen=True):
    """A chain of the bridge, and its pool's address of 20 bytes."""

    chain: Chain
    pool: bytes


class _Deposit(Struct, frozen=True):
    """A deposit that is not paid out, its relay's hash, and the time of its first sight (trio's clock)."""

    made: across.FundsDeposited
    relay: across.RelayData
    hash32: bytes
    seen_s: float


class DevRelayer:
    """Relayer and payer of an Across bridge between development chains. `run` is its task.

    Args:
        ends: chain id -> the chain and its pool.
        key: the relayer's key; its accounts hold tokens, and have allowed the pools to take them.
        owner: key of the pools' owner.

    Attributes:
        tokens: the tokens that are bridged.
        terms: the fees that the relayer suggests.
        orders: the present instructions to the relayer; `order` changes them.
    """

    def __init__(
        self,
        ends: Mapping[int, RelayEnd],
        tokens: tuple[RelayedToken, ...],
        key: SigningKey,
        owner: SigningKey,
        *,
        orders: RelayerOrders = RelayerOrders(),  # noqa: B008 - frozen
        terms: RelayerTerms = RelayerTerms(),  # noqa: B008 - frozen
    ) -> None:
        self.ends = ends
        self.tokens = tokens
        self.terms = terms
        self.orders = orders
        self._key = key
        self._owner = owner
        self._word = address_word(key.address)
        self._followed: dict[int, FollowedLogs] = {}
        self._open: dict[tuple[int, int], _Deposit] = {}
        self._wake = trio.Event()

    def order(self, **changes: object) -> RelayerOrders:
        """Change members of the instructions to the relayer; the changes hold from now on.

        Raises:
            ValueError, TypeError: a member or a value is unknown.
        """
        self.orders = msgspec.structs.replace(self.orders, **changes)
        self._wake.set()
        return self.orders

    def open_deposits(self) -> list[across.FundsDeposited]:
        """List the deposits that the relayer knows and that are not paid out, the oldest first."""
        return [deposit.made for deposit in self._open.values()]

    async def run(self, *, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED) -> None:
        """Fill and pay out deposits until cancelled, and try failed calls again."""
        self._open = {}
        self._followed = {
            chain_id: FollowedLogs(end.chain, LogFilter((end.pool,), (_FOLLOWED,)))
            for chain_id, end in self.ends.items()
        }
        task_status.started()
        while True:
            self._wake = wake = trio.Event()
            try:
                again_s = await self._step()
            except ChainError as error:
                _log.warning("the relayer waits for a chain", fault=error.detail)
                await trio.sleep(DEV_BRIDGE_AGAIN_S)
                continue
            heads = [(end.chain, self._followed[chain_id].known) for chain_id, end in self.ends.items()]
            await another_head(heads, wake, again_s)

    async def funds(self, chain_id: int, token: bytes) -> int:
        """Raw units of a token that the relayer can pay on a chain; 0 while `orders.is_insolvent` is set.

        Raises:
            ChainError: the chain does not answer.
        """
        if self.orders.is_insolvent:
            return 0
        call = EthCall(token, balance_of(self._key.address))
        return decode_uint(await self.ends[chain_id].chain.call(call))

    def lane(self, origin: tuple[int, bytes], destination: tuple[int, bytes]) -> RelayLane | None:
        """Find the lane between two tokens, each (chain id, 20-byte address); None without such a lane."""
        return lane_of(self.tokens, origin, destination)

    # --- One step ---------------------------------------------------------------------------------

    async def _step(self) -> float:
        """Perform the due act for each open deposit; return the seconds until the next look."""
        again_s = inf
        times_s: dict[int, int] = {}
        for chain_id, end in self.ends.items():
            await self._read(chain_id)
            times_s[chain_id] = (await end.chain.upcoming()).time_s
        for place, deposit in list(self._open.items()):
            sight = await self._sight(deposit, times_s[deposit.made.destination_chain_id])
            step = next_step(deposit.relay, sight, self.orders, self._word)
            again_s = min(again_s, step.again_s, DEV_BRIDGE_LOOK_S)
            try:
                if step.act is RelayAct.FILL:
                    await self._fill(deposit)
                elif step.act is RelayAct.PAY_OUT:
                    await self._pay_out(deposit, is_filled=sight.is_filled)
            except ChainError as error:
                again_s = min(again_s, DEV_BRIDGE_AGAIN_S)
                _log.warning("a deposit waits", deposit=place, fault=error.detail)
        return again_s

    async def _read(self, chain_id: int) -> None:
        """Bring the open deposits of an origin chain up to date."""
        is_gone, logs = await self._followed[chain_id].read()
        before = {place: deposit for place, deposit in self._open.items() if place[0] == chain_id}
        if is_gone:
            for place in before:
                del self._open[place]
        for log in logs:
            event = across.decode_across_log(log.topics, log.data)
            if isinstance(event, across.ExecutedRelayerRefundRoot):
                self._open.pop((chain_id, event.root_bundle_id), None)
            elif isinstance(event, across.FundsDeposited) and event.destination_chain_id in self.ends:
                relay = event.relay(chain_id)
                place = chain_id, event.deposit_id
                known = before.get(place)
                seen_s = known.seen_s if known and known.relay == relay else trio.current_time()
                hash32 = across.relay_hash(relay, event.destination_chain_id)
                self._open[place] = _Deposit(event, relay, hash32, seen_s)
        while len(self._open) > DEV_BRIDGE_DEPOSITS_MAX:
            del self._open[next(iter(self._open))]

    async def _sight(self, deposit: _Deposit, time_s: int) -> DepositSight:
        made = deposit.made
        destination = self.ends[made.destination_chain_id]
        token = made.output_token[12:]
        lane = self.lane(
            (deposit.relay.origin_chain_id, made.input_token[12:]), (made.destination_chain_id, token)
        )
        status = await destination.chain.call(EthCall(destination.pool, across.fill_status(deposit.hash32)))
        is_filled = decode_uint(status) == across.FILL_STATUS_FILLED
        return DepositSight(
            is_filled=is_filled,
            is_worth=lane is not None and lane.arriving(made.input_amount) >= made.output_amount,
            funds=0 if is_filled or lane is None else await self.funds(made.destination_chain_id, token),
            waited_s=trio.current_time() - deposit.seen_s,
            time_s=time_s,
        )

    async def _fill(self, deposit: _Deposit) -> None:
        destination = self.ends[deposit.made.destination_chain_id]
        call = across.fill_relay(deposit.relay, deposit.relay.origin_chain_id, self._word)
        await _sent(destination, self._key, call)

    async def _pay_out(self, deposit: _Deposit, *, is_filled: bool) -> None:
        if not is_filled:
            await self._mine_past(deposit)
        receiver = await self._filler(deposit) if is_filled else deposit.made.depositor[12:]
        origin = self.ends[deposit.relay.origin_chain_id]
        call = across.execute_refund_leaf(
            deposit.made.deposit_id,
            origin.chain.chain_id,
            deposit.made.input_token[12:],
            [(receiver, deposit.made.input_amount)],
        )
        await _sent(origin, self._owner, call)

    async def _mine_past(self, deposit: _Deposit) -> None:
        """Have the destination show blocks that are later than a deposit's fill deadline."""
        chain = self.ends[deposit.made.destination_chain_id].chain
        head = await chain.block()
        if head is None or head.time_s <= deposit.made.fill_deadline:
            for _ in range(_BLOCKS_PAST):
                await transact(chain, self._owner, self._owner.address, b"")

    async def _filler(self, deposit: _Deposit) -> bytes:
        """Return the account, 20 bytes, that is to be repaid according to the fill of a deposit."""
        destination = self.ends[deposit.made.destination_chain_id]
        topics = (
            (across.FILLED_RELAY.topic,),
            (uint_word(deposit.relay.origin_chain_id),),
            (uint_word(deposit.made.deposit_id),),
        )
        head = await destination.chain.upcoming()
        for log in await destination.chain.logs(LogFilter((destination.pool,), topics), 0, head.head.number):
            fill = across.decode_across_log(log.topics, log.data)
            if isinstance(fill, across.FilledRelay) and fill.is_of(deposit.relay):
                return fill.relayer[12:]
        raise ChainError("a filled deposit has no fill among the logs")


async def _sent(end: RelayEnd, key: SigningKey, data: bytes) -> None:
    """Send a call to a pool, unless it would fail at the time of the next block.

    Raises:
        ChainError: the call was not mined, or failed.
    """
    call = EthCall(end.pool, data, key.address)
    (outcome,) = await end.chain.call_many([call], time_s=(await end.chain.upcoming()).made_s)
    if isinstance(outcome, Exception):
        raise outcome
    await transact(end.chain, key, end.pool, data, gas=DEV_GAS)
