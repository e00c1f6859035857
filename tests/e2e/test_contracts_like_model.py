"""Whatever happens in whatever order, the contracts and a plain Python model agree after each step.

Fills, parts, cancels, settlements, slices, orders against each other, given-up nonces, funds that move away,
time jumps and re-organisations come at random. An outcome is judged at the time of the block that the step
was mined in.
"""

import time
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from copy import deepcopy
from typing import Any

import hypothesis
import pytest
from hypothesis import strategies as st
from msgspec import Struct, field

from cambist.codecs.bridges.bridge_terms import SELECTORS, AcrossTerms, BridgeFee, BridgeKind, pack_terms
from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.delta_calldata import CrossedOrder, Execution, SettlementStep, agent_id
from cambist.codecs.contracts.router_calldata import owed
from cambist.codecs.eip712_orders.delta import KIND_BUY, SAME_CHAIN, DeltaBridge, DeltaOrder, TwapOrder
from cambist.codecs.eip712_orders.partner_and_fee import (
    PartnerAndFee,
    pack_partner_and_fee,
    unpack_partner_and_fee,
)
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.config.errors import Reverted
from cambist.config.limits import UINT256_MAX
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import DevChain, EthCall
from cambist.engine.chain.proceeds import Cut, of_purchase, of_sale
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from support.chain.anvil import Anvil, opened
from support.chain.mirrored_chain import MirroredChain
from support.chain.world import HOUR_S, NOBODY, ONE, USDC, World, a_world
from support.contracts.fuzz_parts import entering
from support.contracts.settling import filled, is_nonce_used
from support.examples import examples

CLOSED = 1


class Refusal(Exception):
    """A call changes nothing; the text is what the contract says, without a custom error's arguments."""


class State(Struct):
    """State of the contracts.

    Attributes:
        balances: (token, owner) -> raw units.
        remaining: order hash -> as Rfq keeps it.
        filled: order hash -> units of the fixed side; slices: order hash -> (done, time of the last).
        netted: order hash -> (surplus of its parts so far, share that was paid of it).
        nonces: those used up; order_of_nonce: nonce -> hash of the order that began with it.
        owed: (account, token) -> raw units in the vault.
    """

    balances: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    remaining: dict[bytes, int] = field(default_factory=dict)
    filled: dict[bytes, int] = field(default_factory=dict)
    slices: dict[bytes, tuple[int, int]] = field(default_factory=dict)
    nonces: set[int] = field(default_factory=set)
    order_of_nonce: dict[int, bytes] = field(default_factory=dict)
    owed: dict[tuple[bytes, bytes], int] = field(default_factory=dict)
    netted: dict[bytes, tuple[int, int]] = field(default_factory=dict)

    def settled_of(self, order_hash: bytes) -> int:
        """Of an order, in units of the fixed side; of a schedule, slices."""
        return self.filled.get(order_hash, 0) or self.slices.get(order_hash, (0, 0))[0]

    def of(self, token: bytes, owner: bytes) -> int:
        return self.balances.get((token, owner), 0)

    def move(self, token: bytes, giver: bytes, receiver: bytes, amount: int, word: str) -> None:
        if self.of(token, giver) < amount:
            raise Refusal(word)
        self.balances[token, giver] = self.of(token, giver) - amount
        self.balances[token, receiver] = self.of(token, receiver) + amount


class Trade(Struct, frozen=True):
    """Trade of a part: the agent receives `src_given` and delivers `delivered`; `promised` may differ."""

    src_given: int
    delivered: int
    promised: int


class Crossed(Struct, frozen=True):
    """An order that is settled against others: see codecs.delta_calldata.CrossedOrder."""

    order: DeltaOrder
    order_hash: bytes
    amount: int
    src_given: int
    paid: int
    promised: int


class Part(Struct):
    """A settlement of an order: bounds in raw units; `taken` is the amount that the owner gives at first."""

    order: DeltaOrder | TwapOrder
    order_hash: bytes
    src: int
    dest: int
    expected: int
    is_purchase: bool
    is_closed: bool
    is_whole: bool = True
    taken: int = 0


class Model:
    """The contracts, at work on a state.

    Args:
        delta, vault, agent: addresses of Delta, of the fee vault and of the agent that trades for Delta.
        pool: address of the bridge, to which the purchase of a bridged order goes.
    """

    def __init__(self, delta: bytes, vault: bytes, agent: bytes, protocol: bytes, pool: bytes) -> None:
        self.state = State()
        self._delta = delta
        self._vault = vault
        self._agent = agent
        self._protocol = protocol
        self._pool = pool

    def attempt(self, rule: Any, *arguments: Any) -> str | None:
        """Apply a rule; returns the refusal, after which the state is as before."""
        before = deepcopy(self.state)
        try:
            rule(*arguments)
        except Refusal as refusal:
            self.state = before
            return str(refusal)
        return None

    # --- Rfq ------------------------------------------------------------------------------------------

    def fill(
        self, order: RfqOrder, order_hash: bytes, taker: bytes, now_s: int, taker_fill: int | None
    ) -> None:
        """Fill a part of an order, or all of it: None."""
        state = self.state
        if order.expiry and now_s > order.expiry:
            raise Refusal("Order expired")
        if any(order.taker) and order.taker != taker:
            raise Refusal("Access denied")
        kept = state.remaining.get(order_hash, 0)
        if kept == CLOSED or (kept and taker_fill is None):
            raise Refusal("Order already filled or expired")
        left = kept - 1 if kept else order.maker_amount
        taker_fill = order.taker_amount if taker_fill is None else taker_fill
        if not 0 < taker_fill <= order.taker_amount:
            raise Refusal("Invalid Taker amount")
        maker_fill = taker_fill * order.maker_amount // order.taker_amount
        if maker_fill == 0:
            raise Refusal("Maker token fill amount cannot be 0")
        if maker_fill > left:
            raise Refusal("Invalid amount")
        state.remaining[order_hash] = left - maker_fill + 1
        state.move(order.taker_asset, taker, order.maker, taker_fill, "TRANSFER_FROM_FAILED")
        state.move(order.maker_asset, order.maker, taker, maker_fill, "TRANSFER_FROM_FAILED")

    def cancel(self, order: RfqOrder, order_hash: bytes, sender: bytes) -> None:
        """Close an order of the sender's; another's stays as it is."""
        if sender == order.maker:
            self.state.remaining[order_hash] = CLOSED

    # --- Delta ----------------------------------------------------------------------------------------

    def settle(self, order: DeltaOrder, order_hash: bytes, amount: int, trade: Trade, now_s: int) -> None:
        """Settle a part of a swap or limit order."""
        self._settle_part(self._counted(order, order_hash, amount), trade, now_s)

    def cross(self, crossings: Sequence[Crossed], now_s: int) -> None:
        """Settle parts of orders against each other, without a trade."""
        state, parts = self.state, []
        for one in crossings:
            if one.order.bridge != SAME_CHAIN:
                raise Refusal("BridgeNotEnabled")
            part = self._counted(one.order, one.order_hash, one.amount)
            self._begin(part, one.src_given, now_s)
            parts.append(part)
        there: dict[bytes, int] = {}
        for one, part in zip(crossings, parts, strict=True):
            src = one.order.src_token
            state.move(src, one.order.owner, self._delta, part.taken, "PullFailed")
            there[src] = there.get(src, 0) + (one.src_given if part.is_purchase else part.src)
        for one in crossings:
            if there.get(one.order.dest_token, 0) < one.paid:
                raise Refusal("Overdrawn")
            there[one.order.dest_token] -= one.paid
        paid = [one.paid + there.pop(one.order.dest_token, 0) for one in crossings]
        back = [there.pop(one.order.src_token, 0) for one in crossings]
        for one, part, received, unspent in zip(crossings, parts, paid, back, strict=True):
            order = one.order
            given = (one.src_given if part.is_purchase else part.src) - unspent
            state.move(order.dest_token, self._delta, order.owner, received, "TransferFailed")
            state.move(order.src_token, self._delta, order.owner, part.taken - given, "TransferFailed")
            self._share(part, given, received, one.promised)

    def settle_slice(self, order: TwapOrder, order_hash: bytes, trade: Trade, now_s: int) -> None:
        """Settle the next slice of a scheduled sale."""
        done, last_s = self.state.slices.get(order_hash, (0, 0))
        self._check_nonce(order.nonce, order_hash)
        if done and now_s < last_s + order.interval:
            raise Refusal("TooEarly")
        self.state.slices[order_hash] = (done + 1, now_s)
        each = order.total_src_amount // order.num_slices
        src, dest = each, order.dest_amount_per_slice
        is_last = done + 1 == order.num_slices
        self._take_nonce(order.nonce, order_hash, is_closed=is_last)
        if is_last:
            src = order.total_src_amount - each * done
            dest = -(-order.dest_amount_per_slice * src // each)
        self._settle_part(Part(order, order_hash, src, dest, 0, False, is_last), trade, now_s)

    def invalidate(self, nonce: int) -> None:
        """Give up a nonce of the owner's."""
        self.state.nonces.add(nonce)

    def _counted(self, order: DeltaOrder, order_hash: bytes, amount: int) -> Part:
        is_purchase = order.kind == KIND_BUY
        whole = order.dest_amount if is_purchase else order.src_amount
        before = self.state.filled.get(order_hash, 0)
        self._check_nonce(order.nonce, order_hash)
        if amount == 0:
            raise Refusal("InvalidAmount")
        if amount > whole - before:
            raise Refusal("Overfilled")
        self.state.filled[order_hash] = before + amount
        self._take_nonce(order.nonce, order_hash, is_closed=before + amount == whole)
        if is_purchase:
            src, dest = order.src_amount * amount // whole, amount
            expected = order.expected_amount * amount // whole
        else:
            src, dest = amount, -(-order.dest_amount * amount // whole)
            expected = entering(order, -(-order.expected_amount * amount // whole))
        dest = entering(order, dest)
        is_whole, is_closed = amount == whole, before + amount == whole
        return Part(order, order_hash, src, dest, expected, is_purchase, is_closed, is_whole)

    def _begin(self, part: Part, src_given: int, now_s: int) -> None:
        if now_s > part.order.deadline:
            raise Refusal("OrderExpired")
        part.taken = part.src
        if part.is_purchase:
            terms = unpack_partner_and_fee(part.order.partner_and_fee)
            cut = of_purchase(src_given, part.expected, part.src, terms)
            if cut is None:
                raise Refusal("AboveMaximum")
            part.taken = src_given + cut.total
            if terms.partner_takes_surplus and part.taken + 1 == min(part.expected, part.src):
                part.taken += 1

    def _settle_part(self, part: Part, trade: Trade, now_s: int) -> None:
        state, order = self.state, part.order
        self._begin(part, trade.src_given, now_s)
        given = trade.src_given if part.is_purchase else part.src
        if state.of(order.src_token, order.owner) < part.taken:
            raise Refusal("PullFailed")
        state.move(order.src_token, order.owner, self._agent, given, "PullFailed")
        state.move(order.dest_token, self._agent, order.owner, trade.delivered, "StepFailed")
        net = trade.delivered - self._share(part, given, trade.delivered, trade.promised)
        if order.bridge != SAME_CHAIN:
            state.move(order.dest_token, order.owner, self._pool, net, "TransferFailed")

    def _share(self, part: Part, given: int, delivered: int, promised: int) -> int:
        """Send a settlement's fee and surplus share to the vault; refuse a settlement that breaks the order's
        bound or the agent's promise. Returns what is taken of the destination.
        """
        state, order = self.state, part.order
        terms = unpack_partner_and_fee(order.partner_and_fee)
        if part.is_purchase:
            if delivered < part.dest:
                raise Refusal("BelowMinimum")
            cut, token = of_purchase(given, part.expected, part.src, terms), order.src_token
            if cut is None:
                raise Refusal("AboveMaximum")
            cut = self._netted(part, cut, min(part.expected, part.src) - given - cut.fee)
        else:
            cut, token = of_sale(delivered, part.expected, part.dest, terms), order.dest_token
            cut = self._netted(part, cut, delivered - cut.fee - max(part.expected, part.dest))
            if delivered - cut.total < part.dest:
                raise Refusal("BelowMinimum")
        state.move(token, order.owner, self._vault, cut.total, "PullFailed")
        if given + cut.total > promised if part.is_purchase else delivered - cut.total < promised:
            raise Refusal("PromiseBroken")
        self._credit(cut, token, terms.partner if any(terms.partner) else self._protocol)
        return 0 if part.is_purchase else cut.total

    def _netted(self, part: Part, cut: Cut, surplus: int) -> Cut:
        """The share of a part is bounded by that of all parts so far."""
        terms = unpack_partner_and_fee(part.order.partner_and_fee)
        if part.is_whole or not part.expected or not terms.partner_takes_surplus:
            return cut
        before, shared = self.state.netted.get(part.order_hash, (0, 0))
        share = min(cut.share, max(max(before + surplus, 0) // 2 - shared, 0))
        self.state.netted[part.order_hash] = before + surplus, shared + share
        return Cut(cut.fee, share)

    def _check_nonce(self, nonce: int, order_hash: bytes) -> None:
        state = self.state
        if nonce in state.nonces or state.order_of_nonce.get(nonce, order_hash) != order_hash:
            raise Refusal("NonceUsed")

    def _take_nonce(self, nonce: int, order_hash: bytes, *, is_closed: bool) -> None:
        state = self.state
        if is_closed:
            state.nonces.add(nonce)
        else:
            state.order_of_nonce[nonce] = order_hash

    def _credit(self, cut: Cut, token: bytes, partner: bytes) -> None:
        for account, amount in ((partner, cut.fee), (partner, cut.share), (self._protocol, cut.share)):
            if amount:
                self.state.owed[account, token] = self.state.owed.get((account, token), 0) + amount


pytestmark = [pytest.mark.needs("pyrevm"), pytest.mark.seldom]

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
