"""Whatever happens in whatever order, the contracts and a plain Python model agree after each step.

Fills, parts, cancels, settlements, slices, orders against each other, given-up nonces, funds that move away,
time jumps and re-organisations come at random. An outcome is judged at the time of the block that the step
was mined in.
"""

import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from msgspec import Struct

from cambist.codecs.bridges.bridge_terms import SELECTORS, AcrossTerms, BridgeFee, BridgeKind, pack_terms
from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.delta_calldata import CrossedOrder, Execution, SettlementStep, agent_id
from cambist.codecs.contracts.router_calldata import owed
from cambist.codecs.eip712_orders.delta import KIND_BUY, SAME_CHAIN, DeltaBridge, DeltaOrder, TwapOrder
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.config.errors import Reverted
from cambist.config.limits import UINT256_MAX
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import DevChain, EthCall
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from support.chain.anvil import Anvil, opened
from support.chain.mirrored_chain import MirroredChain
from support.chain.world import HOUR_S, NOBODY, ONE, USDC, World, a_world
from support.contracts.contract_model import Crossed, Model, State, Trade
from support.contracts.fuzz_parts import entering
from support.contracts.settling import filled, is_nonce_used
from support.examples import examples

pytestmark = pytest.mark.needs("pyrevm")

HALF_S = HOUR_S // 2
STEP_GAS = 200_000
SMALL = 1_000  # amounts of the orders on which rounding matters

Shares = st.sampled_from([0, 1, 250, 333, 500, 777, 1_000, 1_001])  # thousandths of an amount


LEAVING = DeltaBridge(
    SELECTORS[BridgeKind.ACROSS],
    10,
    b"\xfa" * 20,
    0,
    pack_terms(AcrossTerms(BridgeFee(333_333, 70_001), HOUR_S, NOBODY, 0)),
)
"""The bridge of the last two orders: a third of what enters it is its fee."""


class Fill(Struct, frozen=True):
    order: int
    thousandths: int | None
    by_stranger: bool


class Cancel(Struct, frozen=True):
    order: int
    by_stranger: bool


class Settle(Struct, frozen=True):
    order: int
    thousandths: int
    given: int  # thousandths of the part's source
    delivered: int  # thousandths of the part's destination
    promised: int | None = None  # thousandths of the part's limit; no promise that binds


class Slice(Struct, frozen=True):
    delivered: int
    promised: int | None = None


class Cross(Struct, frozen=True):
    """Parts of an order of the user's and of one of the stranger's: each is paid of what the other gives."""

    order: int
    counter: int
    thousandths: int
    counter_thousandths: int
    given: int  # thousandths of a purchase's source
    paid: int  # thousandths of what the other gives
    counter_paid: int
    again: int | None = None  # thousandths of a further part of the user's order, which is paid its minimum
    promised: int | None = None  # to the user


class Invalidate(Struct, frozen=True):
    order: int


class MoveAway(Struct, frozen=True):
    user: bool
    thousandths: int


class Jump(Struct, frozen=True):
    seconds: int


class Reorganise(Struct, frozen=True):
    depth: int


Action = Fill | Cancel | Settle | Slice | Cross | Invalidate | MoveAway | Jump | Reorganise
Delivered = st.sampled_from([990, 1_000, 1_003, 1_050, 1_200])
Parts = st.sampled_from([0, 250, 333, 500, 1_000, 1_001])
Given = st.sampled_from([0, 970, 990, 1_000, 1_001])
Paid = st.sampled_from([0, 960, 980, 999, 1_000, 1_001])
Promised = st.sampled_from([970, 1_000, 1_010, 1_050])
EqualParts = st.sampled_from([250, 500, 1_000])
ACTIONS: st.SearchStrategy[Action] = st.one_of(
    st.builds(Fill, st.integers(0, 3), st.one_of(st.none(), Shares), st.booleans()),
    st.builds(Fill, st.integers(0, 3), Parts, st.just(False)),
    st.builds(Cancel, st.integers(0, 3), st.booleans()),
    st.builds(Settle, st.integers(0, 5), Parts, st.sampled_from([900, 990, 1_000, 1_001]), Delivered),
    st.builds(Settle, st.integers(0, 5), Parts, st.just(970), st.just(1_200)),
    st.builds(Settle, st.integers(4, 5), Parts, st.just(970), Delivered),
    st.builds(Settle, st.sampled_from([0, 2]), Parts, st.just(980), Delivered),
    st.builds(Settle, st.integers(0, 5), Parts, st.just(970), st.just(1_050), Promised),
    st.builds(Slice, Delivered),
    st.builds(Slice, Delivered, Promised),
    st.builds(Slice, st.just(1_050)),
    st.builds(Slice, st.just(1_050)),
    st.builds(
        Cross, st.integers(0, 5), st.integers(0, 1), Parts, Parts, Given, Paid, Paid, st.none() | Parts
    ),
    EqualParts.flatmap(
        lambda part: st.builds(
            Cross, st.just(0), st.integers(0, 1), *[st.just(part)] * 2, st.just(970), *[st.just(1_000)] * 2
        )
    ),
    EqualParts.flatmap(
        lambda part: st.builds(
            Cross,
            st.just(0),
            st.just(0),
            *[st.just(part)] * 2,
            st.just(0),
            *[st.sampled_from([970, 1_000])] * 2,
            promised=st.none() | Promised,
        )
    ),
    st.builds(
        Cross, st.just(2), st.integers(0, 1), *[st.sampled_from([250, 500])] * 2, st.just(980), Paid, Paid
    ),
    st.builds(Invalidate, st.integers(0, 6)),
    st.builds(MoveAway, st.booleans(), st.sampled_from([10, 500, 1_000])),
    st.builds(Jump, st.sampled_from([HALF_S, HOUR_S, 3 * HOUR_S])),
    st.builds(Jump, st.just(HOUR_S)),
    st.builds(Reorganise, st.integers(1, 5)),
)


class Stage(Struct):
    """A world in which everybody has something and allows everything, and the model of it.

    Attributes:
        after: the model's state after each block since then, the present one last.
    """

    world: World
    model: Model
    agent: bytes
    rfq_orders: list[RfqOrder]
    delta_orders: list[DeltaOrder]
    counter_orders: list[DeltaOrder]
    twap: TwapOrder
    after: list[tuple[int, State]]

    @property
    def with_nonces(self) -> list[DeltaOrder | TwapOrder]:
        return [*self.delta_orders, self.twap]

    # --- One step --------------------------------------------------------------------------------------

    async def take(self, action: Action) -> None:
        if isinstance(action, Jump):
            await self.world.pass_time(action.seconds)
            await self.remember()
        elif isinstance(action, Reorganise):
            await self.reorganise(action.depth)
        else:
            key, to, data, rule, *arguments = self.prepared(action)
            try:
                await self.world.chain.call(EthCall(to, data, key.address))
                said = None
            except Reverted as error:
                said = error.reason.partition("(")[0]
            receipt = await self.world.forced(key, to, data)
            now_s = await self.world.now_s()
            refusal = self.model.attempt(rule, *[now_s if one is NOW else one for one in arguments])
            assert (said, receipt.succeeded) == (refusal, refusal is None), action
            hypothesis.event(f"{type(action).__name__}: {refusal or 'done'}")
            await self.remember()
        await self.compare()

    async def remember(self) -> None:
        header = await self.world.chain.block()
        assert header is not None
        self.after.append((header.number, deepcopy(self.model.state)))

    async def reorganise(self, depth: int) -> None:
        """Undo the last `depth` blocks for good; the chain goes on with an empty block."""
        depth = min(depth, len(self.after) - 1)
        if not depth:
            return
        await self.world.chain.reorganise(depth)
        header = await self.world.chain.block()
        assert header is not None
        assert header.number == self.after[-1][0]
        kept = self.after[-1 - depth][1]
        self.after[-depth:] = [(number, deepcopy(kept)) for number, _ in self.after[-depth:]]
        self.model.state = deepcopy(kept)
        await self.world.chain.mine()
        await self.remember()

    async def compare(self) -> None:
        world, state = self.world, self.model.state
        chain, at, maker = world.chain, world.at, world.maker.address
        questions: list[tuple[bytes, bytes, int]] = [
            (token, calldata.balance_of(owner), amount) for (token, owner), amount in state.balances.items()
        ]
        hashes = [world.rfq_hash(order) for order in self.rfq_orders]
        questions += [(at.rfq, calldata.remaining(maker, one), state.remaining.get(one, 0)) for one in hashes]
        for order in [*self.with_nonces, *self.counter_orders]:
            used = is_nonce_used(order.owner, order.nonce)
            questions.append((at.delta, used, int(order.nonce in state.nonces)))
        for (account, token), amount in state.owed.items():
            questions.append((at.fee_vault, owed(account, token), amount))
        answers = await chain.call_many([EthCall(to, data) for to, data, _ in questions])
        got = [int.from_bytes(answer[:32], "big") for answer in answers if isinstance(answer, bytes)]
        assert got == [wanted for _, _, wanted in questions]
        for one in [*self.with_nonces, *self.counter_orders]:
            assert await filled(world, one) == state.settled_of(world.delta_hash(one)), one

    # --- What an action means --------------------------------------------------------------------------

    def prepared(self, action: Action) -> tuple[Any, ...]:
        """(key, contract, calldata, the model's rule, its arguments...)."""
        world, model = self.world, self.model
        if isinstance(action, Fill):
            order = self.rfq_orders[action.order]
            taker = world.stranger if action.by_stranger else world.taker
            whole = action.thousandths is None
            amount = None if whole else order.taker_amount * (action.thousandths or 0) // 1_000
            signature = world.signed(order)
            data = (
                calldata.fill_order(order, signature)
                if amount is None
                else calldata.partial_fill_order(order, signature, amount)
            )
            order_hash = world.rfq_hash(order)
            return taker, world.at.rfq, data, model.fill, order, order_hash, taker.address, NOW, amount
        if isinstance(action, Cancel):
            order = self.rfq_orders[action.order]
            key = world.stranger if action.by_stranger else world.maker
            order_hash = world.rfq_hash(order)
            data = calldata.cancel_order(order_hash)
            return key, world.at.rfq, data, model.cancel, order, order_hash, key.address
        if isinstance(action, Invalidate):
            nonce = self.with_nonces[action.order].nonce
            return (
                world.user,
                world.at.delta,
                delta_calldata.invalidate_nonces([nonce]),
                model.invalidate,
                nonce,
            )
        if isinstance(action, MoveAway):
            key, token = (world.user, world.weth) if action.user else (world.maker, world.usdc)
            amount = self.model.state.of(token, key.address) * action.thousandths // 1_000
            data = calldata.transfer(world.partner.address, amount)
            rule = self.model.state.move
            return key, token, data, self.moved, rule, token, key.address, world.partner.address, amount
        if isinstance(action, Cross):
            return self.prepared_crossing(action)
        assert isinstance(action, Settle | Slice)
        return self.prepared_settlement(action)

    def prepared_crossing(self, action: Cross) -> tuple[Any, ...]:
        world, model = self.world, self.model
        order, counter = self.delta_orders[action.order], self.counter_orders[action.counter]
        amount, given = _part_of(order, action.thousandths, action.given)
        counter_amount, counter_given = _part_of(counter, action.counter_thousandths, action.given)
        parts = [
            (order, amount, given, counter_given * action.paid // 1_000),
            (counter, counter_amount, counter_given, given * action.counter_paid // 1_000),
        ]
        if action.again is not None:
            amount, given = _part_of(order, action.again, action.given)
            parts.append((order, amount, given, _least(order, amount)))
        crossed = [
            Crossed(
                one,
                world.delta_hash(one),
                amount,
                given if one.kind == KIND_BUY else 0,
                paid,
                _promise(one, amount, action.promised if at == 0 else None),
            )
            for at, (one, amount, given, paid) in enumerate(parts)
        ]
        keys = {key.address: key for key in (world.user, world.stranger)}
        data = delta_calldata.settle_crossed(
            [
                CrossedOrder(
                    one.order,
                    world.delta_signed(one.order, keys[one.order.owner]),
                    one.amount,
                    Execution(one.promised, one.src_given, ()),
                    one.paid,
                )
                for one in crossed
            ]
        )
        return world.relayer, world.at.delta, data, model.cross, crossed, NOW

    def prepared_settlement(self, action: Settle | Slice) -> tuple[Any, ...]:
        world, model = self.world, self.model
        if isinstance(action, Slice):
            twap, twap_hash = self.twap, world.delta_hash(self.twap)
            each = twap.total_src_amount // twap.num_slices
            done, _ = model.state.slices.get(twap_hash, (0, 0))
            given = twap.total_src_amount - each * done if done == twap.num_slices - 1 else each
            promised = twap.dest_amount_per_slice * (action.promised or 0) // 1_000
            trade = Trade(given, twap.dest_amount_per_slice * action.delivered // 1_000, promised)
            data = delta_calldata.settle_twap(
                twap, world.delta_signed(twap), self.by_agent(twap, trade, given)
            )
            return world.relayer, world.at.delta, data, model.settle_slice, twap, twap_hash, trade, NOW
        order = self.delta_orders[action.order]
        whole = order.dest_amount if order.kind == KIND_BUY else order.src_amount
        amount = whole * action.thousandths // 1_000
        src = order.src_amount * amount // whole
        given = src * action.given // 1_000 if order.kind == KIND_BUY else src
        delivered = entering(order, order.dest_amount * amount // whole) * action.delivered // 1_000
        trade = Trade(given, delivered, _promise(order, amount, action.promised))
        signature = world.delta_signed(order)
        data = delta_calldata.settle(order, signature, amount, self.by_agent(order, trade, given))
        order_hash = world.delta_hash(order)
        return world.relayer, world.at.delta, data, model.settle, order, order_hash, amount, trade, NOW

    def by_agent(self, order: DeltaOrder | TwapOrder, trade: Trade, given: int) -> Execution:
        """The agent is sent what its caller has, and delivers."""
        deliver = selector("deliver(address,address,uint256)") + b"".join(
            (address_word(order.dest_token), address_word(self.world.at.delta), uint_word(trade.delivered))
        )
        return Execution(
            trade.promised,
            trade.src_given,
            (
                SettlementStep(order.src_token, STEP_GAS, calldata.transfer(self.agent, given)),
                SettlementStep(self.agent, STEP_GAS, deliver),
            ),
            (),
            agent_id("agent"),
            caller_of(self.world.at.delta, "agent"),
        )

    def moved(self, _: Any, token: bytes, giver: bytes, receiver: bytes, amount: int) -> None:
        self.model.state.move(token, giver, receiver, amount, "InsufficientBalance")


def _promise(order: DeltaOrder, amount: int, thousandths: int | None) -> int:
    """Of a part's limit; None binds nobody."""
    if order.kind == KIND_BUY:
        limit = order.src_amount * amount // order.dest_amount
        return UINT256_MAX if thousandths is None else limit * thousandths // 1_000
    return entering(order, order.dest_amount * amount // order.src_amount) * (thousandths or 0) // 1_000


def _part_of(order: DeltaOrder, thousandths: int, given: int) -> tuple[int, int]:
    """(Units of the fixed side, what is given of the source): a purchase gives thousandths of its most."""
    whole = order.dest_amount if order.kind == KIND_BUY else order.src_amount
    amount = whole * thousandths // 1_000
    src = order.src_amount * amount // whole
    return amount, src * given // 1_000 if order.kind == KIND_BUY else src


def _least(order: DeltaOrder, amount: int) -> int:
    """Least amount that a part must receive, with room for a fee of 1 %."""
    if order.kind == KIND_BUY:
        return amount
    return order.dest_amount * amount // order.src_amount * 101 // 100


NOW: Any = object()
"""Stands for the time of the block that the step is mined in."""


async def a_counter_order(world: World, **changed: Any) -> DeltaOrder:
    """The stranger gives USDC for WETH."""
    stranger = world.stranger.address
    opposite = {"owner": stranger, "beneficiary": stranger, "src_token": world.usdc, "dest_token": world.weth}
    deadline = await world.now_s() + 9 * HOUR_S
    return await world.a_delta_order(deadline=deadline, **{"expected_amount": 0} | opposite | changed)


async def leaving_orders(world: World, deadline: int, partner_and_fee: int) -> list[DeltaOrder]:
    """A sale and a purchase that leave by a bridge."""
    shared: dict[str, Any] = {"deadline": deadline, "partner_and_fee": partner_and_fee, "bridge": LEAVING}
    bought: dict[str, Any] = {
        "kind": KIND_BUY,
        "src_amount": 11 * ONE // 10,
        "dest_amount": 2_500 * USDC,
        "expected_amount": ONE,
    }
    return [
        await world.a_delta_order(nonce=6, **shared),
        await world.a_delta_order(nonce=7, **shared | bought),
    ]


async def a_stage(chain: DevChain) -> Stage:
    world = await a_world(chain)
    agent = await create(chain, world.owner, "DevAgent")
    model = Model(world.at.delta, world.at.fee_vault, agent, world.protocol, world.spoke_pool)
    for owner, token, amount, spender in (
        (world.maker, world.usdc, 6_000 * USDC, world.at.rfq),
        (world.taker, world.weth, 3 * ONE, world.at.rfq),
        (world.stranger, world.weth, ONE // 2, world.at.rfq),
        (world.user, world.weth, 7 * ONE, world.at.delta),
        (world.stranger, world.usdc, 6_000 * USDC, world.at.delta),
    ):
        await world.give(owner, token, amount, spender)
        model.state.balances[token, owner.address] = amount
    await world.mint(world.usdc, agent, 20_000 * USDC)
    model.state.balances[world.usdc, agent] = 20_000 * USDC
    now_s = await world.now_s()
    fee = PartnerAndFee(world.partner.address, 30, partner_takes_surplus=True, cap_surplus=True)
    shared = pack_partner_and_fee(fee)
    twap = TwapOrder(
        world.user.address, world.user.address, world.weth, world.usdc, 99, pack_partner_and_fee(
            PartnerAndFee(NOBODY, 10, partner_takes_surplus=False, cap_surplus=True)
        ), now_s + 12 * HOUR_S + HALF_S // 2, HOUR_S, 3, 800 * USDC, ONE + 1, b"", b"", SAME_CHAIN,
    )  # fmt: skip
    stage = Stage(
        world=world,
        model=model,
        agent=agent,
        rfq_orders=[
            world.an_rfq_order(),
            world.an_rfq_order(expiry=now_s + 2 * HOUR_S + HALF_S // 2),
            world.an_rfq_order(taker=world.taker.address, maker_amount=SMALL, taker_amount=7),
            world.an_rfq_order(maker_amount=3, taker_amount=SMALL + 1),
        ],
        delta_orders=[
            await world.a_delta_order(deadline=now_s + 9 * HOUR_S, nonce=1, partner_and_fee=shared),
            await world.a_delta_order(
                deadline=now_s + 9 * HOUR_S, nonce=1, src_amount=SMALL, dest_amount=333, expected_amount=0
            ),
            await world.a_delta_order(
                deadline=now_s + 2 * HOUR_S + HALF_S // 2,
                nonce=2,
                kind=KIND_BUY,
                src_amount=2 * ONE,
                dest_amount=4_800 * USDC,
                expected_amount=2 * ONE - ONE // 50,
                partner_and_fee=shared,
            ),
            await world.a_delta_order(
                deadline=now_s + 9 * HOUR_S, nonce=3, kind=KIND_BUY, src_amount=997, dest_amount=SMALL
            ),
            *await leaving_orders(world, now_s + 9 * HOUR_S, shared),
        ],
        counter_orders=[
            await a_counter_order(world, nonce=4, src_amount=2_500 * USDC, dest_amount=9 * ONE // 10),
            await a_counter_order(
                world,
                nonce=5,
                kind=KIND_BUY,
                src_amount=2_600 * USDC,
                dest_amount=ONE,
                expected_amount=2_550 * USDC,
                partner_and_fee=shared,
            ),
        ],
        twap=twap,
        after=[],
    )
    await stage.remember()
    return stage


@asynccontextmanager
async def an_embedded_stage() -> AsyncIterator[Stage]:
    yield await a_stage(EmbeddedChain(31_337, lambda: int(time.time()), {}, known_errors()))


@hypothesis.settings(max_examples=examples(14))
@hypothesis.given(actions=st.lists(ACTIONS, min_size=15, max_size=40))
async def test_on_the_embedded_chain(actions: list[Action]) -> None:
    async with an_embedded_stage() as stage:
        for action in actions:
            await stage.take(action)


@pytest.mark.anvil
@hypothesis.settings(
    max_examples=examples(4), suppress_health_check=[hypothesis.HealthCheck.function_scoped_fixture]
)
@hypothesis.given(actions=st.lists(ACTIONS, min_size=15, max_size=30))
async def test_on_both_kinds_of_chain_at_once(anvil: Anvil, actions: list[Action]) -> None:
    """Each receipt, answer and refusal of the embedded chain is that of the node, gas and all."""
    async with opened(anvil) as node:
        chain = MirroredChain(EmbeddedChain(31_337, lambda: int(time.time()), {}, known_errors()), node)
        stage = await a_stage(chain)
        for action in actions:
            await stage.take(action)
        assert chain.compared > len(actions) // 3
