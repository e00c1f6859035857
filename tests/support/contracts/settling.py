"""Delta settlements in sentences, on a market that is stocked.

    market = await a_market(world)
    settled = await market.settle(order, market.fill_step(quote))
    assert await market.refused_settlement(order, market.agent_step(...)) == "BelowMinimum(...)"

A refused settlement is asserted to have changed nothing: no balance, nonce, fill or deposit of anyone's.
"""

import secrets
from collections.abc import Sequence
from typing import Any, TypeVar

import msgspec
import pytest

from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.abi import address_word, encode, selector, uint_word, words_tail
from cambist.codecs.contracts.contract_events import (
    ContractEvent,
    FeeAccrued,
    OrderSettled,
    Transfer,
    decode_event,
)
from cambist.codecs.contracts.delta_calldata import (
    EXECUTOR,
    CrossedOrder,
    Execution,
    SettlementStep,
    agent_id,
)
from cambist.codecs.contracts.delta_results import (
    Crossed,
    OrderState,
    decode_crossed,
    decode_order_state,
    decode_settled,
)
from cambist.codecs.contracts.delta_results import Settled as Outcome
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    SAME_CHAIN,
    AnyDeltaOrder,
    DeltaOrder,
    ExternalOrder,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
)
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.config.errors import Reverted
from cambist.config.limits import UINT256_MAX
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import EthCall, Receipt
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from support.chain.world import HOUR_S, NATIVE, NOBODY, ONE, USDC, World

DELIVER = selector("deliver(address,address,uint256)")
REFUSE = selector("refuse()")
WASTE = selector("waste()")
OWED = selector("owed(address,address)")
CLAIM = selector("claim(address[],address)")
AGENT = "agent"
STEP_GAS = 200_000
SETTLEMENT_GAS = 3_000_000
Event = TypeVar("Event", bound=ContractEvent)


class Settled(msgspec.Struct, frozen=True):
    """A settlement that went through."""

    receipt: Receipt
    event: OrderSettled
    fees: tuple[FeeAccrued, ...]


class CrossSettled(msgspec.Struct, frozen=True):
    """Orders that were settled against each other."""

    receipt: Receipt
    events: tuple[OrderSettled, ...]
    fees: tuple[FeeAccrued, ...]
    outcome: Crossed


class Market(msgspec.Struct, frozen=True):
    """A world in which all traders have their tokens and have given their allowances.

    Attributes:
        agent: a solver's own contract, with a stock of each token.
    """

    world: World
    agent: bytes

    @property
    def caller(self) -> bytes:
        """The contract that makes the calls of the agent's steps, 20 bytes."""
        return caller_of(self.world.at.delta, AGENT)

    def execution(
        self,
        order: AnyDeltaOrder,
        *steps: SettlementStep,
        src_given: int = 0,
        leftovers: Sequence[bytes] = (),
        promised: int | None = None,
        agent: str = AGENT,
        receiver: bytes | None = None,
    ) -> Execution:
        """An execution; by default the source tokens go to the account that takes the first step."""
        if receiver is None:
            is_filled = not steps or steps[0].target == self.world.at.rfq
            receiver = EXECUTOR if is_filled else caller_of(self.world.at.delta, agent)
        promise = _promise(order, promised)
        return Execution(promise, src_given, steps, tuple(leftovers), agent_id(agent), receiver)

    # --- Settlements ----------------------------------------------------------------------------------

    def settlement(
        self,
        order: AnyDeltaOrder,
        *steps: SettlementStep,
        amount: int | None = None,
        signature: bytes | None = None,
        **how: Any,
    ) -> bytes:
        """Calldata for the whole order or its next slice, by default signed by the user."""
        signed = self.world.delta_signed(order) if signature is None else signature
        return self.calldata_of(order, self.execution(order, *steps, **how), signed, amount)

    def calldata_of(
        self, order: AnyDeltaOrder, execution: Execution, signature: bytes, amount: int | None = None
    ) -> bytes:
        """Calldata of a settlement with this execution."""
        if isinstance(order, TwapOrder):
            return delta_calldata.settle_twap(order, signature, execution)
        if isinstance(order, TwapBuyOrder):
            return delta_calldata.settle_twap_buy(order, signature, execution)
        if amount is None:
            amount = _whole(order)
        if isinstance(order, ProductiveOrder):
            return delta_calldata.settle_productive(order, signature, amount, execution)
        if isinstance(order, ExternalOrder):
            return delta_calldata.settle_external(order, signature, amount, execution)
        return delta_calldata.settle(order, signature, amount, execution)

    async def settle(
        self, order: AnyDeltaOrder, *steps: SettlementStep, at_s: int | None = None, **how: Any
    ) -> Settled:
        """Settle by the relayer, in a block of time `at_s`. Reverted, with the reason, if refused."""
        data = self.settlement(order, *steps, **how)
        if at_s is not None:
            await self.world.chain.set_time(at_s)
        receipt = await self.world.send(self.world.relayer, self.world.at.delta, data, gas=SETTLEMENT_GAS)
        assert at_s is None or await self.world.now_s() == at_s
        (settled,) = events(receipt, OrderSettled)
        assert _told_of(settled) == _settled_as(self.world, order)
        assert all(moved.owner != moved.receiver for moved in events(receipt, Transfer))
        return Settled(receipt, settled, tuple(events(receipt, FeeAccrued)))

    async def outcome(self, order: AnyDeltaOrder, *steps: SettlementStep, **how: Any) -> Outcome:
        """Outcome that a settlement by the relayer would return now."""
        data = self.settlement(order, *steps, **how)
        world = self.world
        return decode_settled(await world.chain.call(EthCall(world.at.delta, data, world.relayer.address)))

    async def refused_settlement(
        self, order: AnyDeltaOrder, *steps: SettlementStep, key: SigningKey | None = None, **how: Any
    ) -> str:
        """Reason of a refused settlement: simulated, then mined; no account's state changes."""
        sender = key or self.world.relayer
        before = await self.state(order, sender)
        data = self.settlement(order, *steps, **how)
        reason = await self.world.refused(sender, self.world.at.delta, data)
        assert await self.state(order, sender) == before
        return reason

    async def refused_at(self, at_s: int, order: AnyDeltaOrder, *steps: SettlementStep, **how: Any) -> str:
        """Reason of a settlement refused in a block of time `at_s`; no account's state changes."""
        world = self.world
        before = await self.state(order, world.relayer)
        data = self.settlement(order, *steps, **how)
        await world.chain.set_time(at_s)
        receipt = await world.forced(world.relayer, world.at.delta, data)
        assert not receipt.succeeded
        assert await world.now_s() == at_s
        assert await self.state(order, world.relayer) == before
        with pytest.raises(Reverted) as refusal:
            await world.chain.call(EthCall(world.at.delta, data, world.relayer.address))
        return refusal.value.reason

    # --- Crossings ------------------------------------------------------------------------------------

    def crossing(
        self,
        order: DeltaOrder,
        paid: int,
        *steps: SettlementStep,
        amount: int | None = None,
        signature: bytes | None = None,
        traded: int = 0,
        **how: Any,
    ) -> CrossedOrder:
        """Crossing of a whole order, by default signed by its owner."""
        world = self.world
        if amount is None:
            amount = _whole(order)
        if signature is None:
            (key,) = (key for key in (world.user, world.taker, world.stranger) if key.address == order.owner)
            signature = world.delta_signed(order, key)
        return CrossedOrder(order, signature, amount, self.execution(order, *steps, **how), paid, traded)

    async def cross(self, *crossings: CrossedOrder) -> CrossSettled:
        """Settle by the relayer: simulated, then mined, with equal outcomes; no contract gains a token."""
        world = self.world
        data = delta_calldata.settle_crossed(crossings)
        held = await self.held(crossings)
        outcome = decode_crossed(await world.chain.call(EthCall(world.at.delta, data, world.relayer.address)))
        receipt = await world.send(world.relayer, world.at.delta, data, gas=2 * SETTLEMENT_GAS)
        settled = tuple(events(receipt, OrderSettled))
        assert list(map(_told_of, settled)) == [_settled_as(world, crossing.order) for crossing in crossings]
        assert all(moved.owner != moved.receiver for moved in events(receipt, Transfer))
        assert outcome.spent == tuple(event.spent for event in settled)
        assert outcome.received == tuple(event.received for event in settled)
        for (token, holder), amount in (await self.held(crossings)).items():
            before = held[token, holder]
            assert amount == before or (holder == world.at.executor and amount < before), (token, holder)
        return CrossSettled(receipt, settled, tuple(events(receipt, FeeAccrued)), outcome)

    async def held(self, crossings: Sequence[CrossedOrder]) -> dict[tuple[bytes, bytes], int]:
        """Balances of Delta and the executor in every token; Delta's native balance without the deposits."""
        world, at = self.world, self.world.at
        tokens = {world.weth, world.usdc, world.dai}
        tokens |= {token for one in crossings for token in (one.order.src_token, one.order.dest_token)}
        held = {
            (token, holder): await world.balance(token, holder)
            for token in tokens | {NATIVE}
            for holder in (at.delta, at.executor)
        }
        for owner in {one.order.owner for one in crossings}:
            held[NATIVE, at.delta] -= await world.ask(at.delta, delta_calldata.deposits(owner))
        return held

    async def refused_crossing(self, *crossings: CrossedOrder, key: SigningKey | None = None) -> str:
        """Reason of a refused crossing: simulated, then mined; no account's or order's state changes."""
        sender = key or self.world.relayer
        before = [await self.state(crossing.order, sender) for crossing in crossings]
        data = delta_calldata.settle_crossed(crossings)
        reason = await self.world.refused(sender, self.world.at.delta, data)
        assert [await self.state(crossing.order, sender) for crossing in crossings] == before
        return reason

    async def state(self, order: AnyDeltaOrder, sender: SigningKey) -> dict[str, bytes | int]:
        """State that a settlement of an order may change, without the sender's cost of gas."""
        world, at = self.world, self.world.at
        order_hash = world.delta_hash(order)
        people = (world.user, world.taker, world.maker, world.partner, world.stranger, world.relayer)
        holders = {
            *(person.address for person in people),
            *(order.owner, receiver_of(order), self.agent, world.protocol),
            *(at.delta, at.executor, at.fee_vault, at.rfq),
        }
        tokens = {world.weth, world.usdc, world.dai, order.src_token, order.dest_token} - {NATIVE}
        calls = {
            f"{token.hex()} of {holder.hex()}": EthCall(token, calldata.balance_of(holder))
            for token in tokens
            for holder in holders
        }
        calls |= {
            name: EthCall(at.delta, question)
            for name, question in {
                "state": delta_calldata.order_state(order.owner, order.nonce, order_hash),
                "deposit": delta_calldata.deposits(order.owner),
            }.items()
        }
        state: dict[str, bytes | int] = {}
        for name, answer in zip(calls, await world.chain.call_many(list(calls.values())), strict=True):
            assert isinstance(answer, bytes), answer
            state[name] = answer
        for holder in holders - {sender.address, NOBODY}:  # who pays for gas, and whom it is paid to
            state[f"native of {holder.hex()}"] = await world.chain.balance(holder)
        return state

    # --- Orders ---------------------------------------------------------------------------------------

    async def a_purchase(self, **changed: Any) -> DeltaOrder:
        """The user buys 2,500 USDC for 1.1 WETH at most, 1 expected."""
        wanted = {
            "kind": KIND_BUY,
            "src_amount": 11 * ONE // 10,
            "dest_amount": 2_500 * USDC,
            "expected_amount": ONE,
        }
        return await self.world.a_delta_order(**wanted | changed)

    async def a_counter_order(self, **changed: Any) -> DeltaOrder:
        """The taker sells 2,500 USDC for 0.9 WETH at least, 1 expected."""
        opposite = {
            "owner": self.world.taker.address,
            "beneficiary": self.world.taker.address,
            "src_token": self.world.usdc,
            "dest_token": self.world.weth,
            "src_amount": 2_500 * USDC,
            "dest_amount": 9 * ONE // 10,
            "expected_amount": ONE,
        }
        return await self.world.a_delta_order(**opposite | changed)

    async def _twap(self) -> dict[str, Any]:
        """Fields of an order in three slices, a minute apart, for the user's WETH and USDC."""
        world = self.world
        return {
            "owner": world.user.address,
            "beneficiary": world.user.address,
            "src_token": world.weth,
            "dest_token": world.usdc,
            "nonce": secrets.randbits(64),
            "partner_and_fee": 0,
            "deadline": await world.now_s() + HOUR_S,
            "interval": 60,
            "num_slices": 3,
            "permit": b"",
            "metadata": b"",
            "bridge": SAME_CHAIN,
        }

    async def a_twap(self, **changed: Any) -> TwapOrder:
        """The user sells one WETH and a bit in three slices, a minute apart, for 2,400 USDC a whole one."""
        order = TwapOrder(
            **await self._twap(),
            dest_amount_per_slice=800 * USDC,
            total_src_amount=ONE,
        )
        return msgspec.structs.replace(order, **changed)

    async def a_twap_purchase(self, **changed: Any) -> TwapBuyOrder:
        """The user buys 2,500 USDC in three slices, a minute apart, for 1.1 WETH at most."""
        order = TwapBuyOrder(
            **await self._twap(),
            total_dest_amount=2_500 * USDC,
            max_src_amount=11 * ONE // 10,
        )
        return msgspec.structs.replace(order, **changed)

    async def a_productive_order(self, **changed: Any) -> ProductiveOrder:
        """The user sells one WETH that rests in `strategy`, for 2,400 USDC at least, 2,500 expected."""
        order = await self.world.a_delta_order()
        members = {name: getattr(order, name) for name in DeltaOrder.__struct_fields__ if name != "kind"}
        terms: dict[str, Any] = {"strategy": self.world.dai, "shares": ONE, "use_shares": False}
        return ProductiveOrder(**members | terms | changed)

    async def an_external_order(self, **changed: Any) -> ExternalOrder:
        """The user sells one WETH by way of `handler`, for 2,400 USDC at least, 2,500 expected."""
        order = await self.world.a_delta_order()
        members: dict[str, Any] = {name: getattr(order, name) for name in DeltaOrder.__struct_fields__}
        del members["beneficiary"], members["bridge"]
        members |= {"handler": self.agent, "data": b""}
        return ExternalOrder(**members | changed)

    # --- Steps ----------------------------------------------------------------------------------------

    def fill_step(self, *quotes: RfqOrder, **how: Any) -> SettlementStep:
        """The world's `fill_step`."""
        return self.world.fill_step(*quotes, **how)

    def to_agent(self, amount: int, token: bytes | None = None) -> SettlementStep:
        """Step by which the caller sends the agent tokens, by default WETH."""
        return SettlementStep(token or self.world.weth, STEP_GAS, calldata.transfer(self.agent, amount))

    def from_agent(self, amount: int, token: bytes | None = None, to: bytes | None = None) -> SettlementStep:
        """Step by which the agent delivers tokens to Delta, by default USDC."""
        words = address_word(token or self.world.usdc) + address_word(to or self.world.at.delta)
        return SettlementStep(self.agent, STEP_GAS, DELIVER + words + uint_word(amount))

    def agent_steps(self, received: int, given: int = ONE) -> tuple[SettlementStep, SettlementStep]:
        """Steps that give WETH to the agent and take USDC from it."""
        return self.to_agent(given), self.from_agent(received)

    # --- State ----------------------------------------------------------------------------------------

    async def order_state(self, order: AnyDeltaOrder) -> OrderState:
        """State of an order by the contract."""
        return await order_state(self.world, order)

    async def filled(self, order: AnyDeltaOrder) -> int:
        """Settled amount of an order, raw units of the fixed side; of a TWAP, number of settled slices."""
        return await filled(self.world, order)

    async def is_nonce_used(self, order: AnyDeltaOrder) -> bool:
        """Whether an order's nonce is used up or invalidated."""
        return (await self.order_state(order)).is_used

    async def deposited(self, order: AnyDeltaOrder) -> int:
        """Deposit of the order's owner, in wei."""
        return await self.world.ask(self.world.at.delta, delta_calldata.deposits(order.owner))

    async def deposit(self, order: AnyDeltaOrder, amount: int, key: SigningKey | None = None) -> None:
        """Deposit native tokens for an order, by default from its owner."""
        world = self.world
        data = delta_calldata.deposit_native_and_pre_sign(world.delta_hash(order))
        await world.send(key or world.user, world.at.delta, data, value_wei=amount)

    async def owed(self, account: bytes, token: bytes) -> int:
        """Fees that the vault owes an account, raw units of a token."""
        return await self.world.ask(
            self.world.at.fee_vault, OWED + address_word(account) + address_word(token)
        )


def claim(tokens: Sequence[bytes], receiver: bytes) -> bytes:
    """Calldata of a claim at the vault."""
    return CLAIM + encode(words_tail([address_word(token) for token in tokens]), address_word(receiver))


def events(receipt: Receipt, kind: type[Event]) -> list[Event]:
    """Events of a kind in a receipt, in order."""
    decoded = [decode_event(log.topics, log.data) for log in receipt.logs]
    return [event for event in decoded if isinstance(event, kind)]


async def a_market(world: World) -> Market:
    """The user has WETH, the taker USDC, the maker and an agent all three tokens."""
    agent = await create(world.chain, world.owner, "DevAgent")
    await world.give(world.user, world.weth, 10 * ONE, world.at.delta)
    await world.give(world.taker, world.usdc, 10_000 * USDC, world.at.delta)
    for token, amount in ((world.usdc, 100_000 * USDC), (world.dai, 100_000 * ONE)):
        await world.give(world.maker, token, amount, world.at.rfq)
        await world.mint(token, agent, amount)
    await world.approve(world.maker, world.weth, world.at.rfq)
    return Market(world, agent)


def _promise(order: AnyDeltaOrder, promised: int | None) -> int:
    """The given promise, or a promise that binds no agent."""
    if promised is not None:
        return promised
    return UINT256_MAX if is_purchase(order) else 0


def is_purchase(order: AnyDeltaOrder) -> bool:
    """Whether an order fixes what it buys."""
    if isinstance(order, DeltaOrder | ExternalOrder):
        return order.kind == KIND_BUY
    return isinstance(order, TwapBuyOrder)


def receiver_of(order: AnyDeltaOrder) -> bytes:
    """Account that gets what an order buys, 20 bytes."""
    return order.owner if isinstance(order, ExternalOrder) else order.beneficiary


def _whole(order: DeltaOrder | ProductiveOrder | ExternalOrder) -> int:
    """Size of an order, raw units of its fixed side."""
    if isinstance(order, ProductiveOrder):
        return order.shares if order.use_shares else order.src_amount
    return order.dest_amount if is_purchase(order) else order.src_amount


def _told_of(event: OrderSettled) -> tuple[object, ...]:
    """Order that an event names, its owner, nonce and tokens."""
    return event.order_hash, event.owner, event.nonce, event.src_token, event.dest_token


def _settled_as(world: World, order: AnyDeltaOrder) -> tuple[object, ...]:
    """Hash, owner, nonce and tokens of an order, to compare with `_told_of`."""
    return world.delta_hash(order), order.owner, order.nonce, order.src_token, order.dest_token


async def order_state(world: World, order: AnyDeltaOrder) -> OrderState:
    """The state of an order, as the contract tells it."""
    order_hash = world.delta_hash(order)
    question = delta_calldata.order_state(order.owner, order.nonce, order_hash)
    answer = await world.chain.call(EthCall(world.at.delta, question))
    is_scheduled = isinstance(order, TwapOrder | TwapBuyOrder)
    return decode_order_state(answer, order_hash, is_scheduled=is_scheduled)


async def filled(world: World, order: AnyDeltaOrder) -> int:
    """Settled amount of an order, in units of the fixed side; of a schedule, slices."""
    state = await order_state(world, order)
    if not state.is_closed:
        return state.done
    return order.num_slices if isinstance(order, TwapOrder | TwapBuyOrder) else _whole(order)


def is_nonce_used(owner: bytes, nonce: int) -> bytes:
    """The question whether a nonce is used up, or given up."""
    return selector("isNonceUsed(address,uint256)") + address_word(owner) + uint_word(nonce)
