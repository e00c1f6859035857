"""Random use and misuse of the contracts, and the properties that hold after each step.

    fuzz = await a_fuzz(world, market, seed)
    for _ in range(500):
        await fuzz.step()

An account that has allowed the contracts every token loses only the amounts that its own orders, quotes and
calls give, on their terms. Delta and the Router lose nothing, the vault only claims, an agent's desk only its
agent's trades. Delta's native balance equals the deposits. An order that was given up is never settled.

Odd tokens are among the traded tokens. A token returns nothing; another rounds by a unit. A third takes a
fee on transfers: Rfq and the Router refuse it. The last calls back in each transfer, as ERC-777 tokens call
holders, by a contract that has every token and is a relayer: a contract at work refuses that call.
"""

import random
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, tuples_tail, uint_word
from cambist.codecs.contracts.contract_events import (
    Claimed,
    NonceInvalidated,
    OrderFilled,
    OrderSettled,
    Transfer,
    decode_event,
)
from cambist.codecs.contracts.delta_calldata import CrossedOrder, SettlementStep, agent_id
from cambist.codecs.contracts.router_calldata import Hop, RouterSwap, swap_exact_in, swap_exact_out
from cambist.codecs.eip712_orders.delta import (
    KIND_BUY,
    KIND_SELL,
    SAME_CHAIN,
    AnyDeltaOrder,
    ProductiveOrder,
    TwapBuyOrder,
    TwapOrder,
)
from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import EthCall, Receipt
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from cambist.engine.trade.delta.orders.terms import SettledOrder
from cambist.engine.trade.orders.order_units import order_id
from support.chain.world import MOST, NATIVE, NOBODY, ONE, World
from support.contracts import fuzz_parts as parts
from support.contracts.agent_desks import Desk
from support.contracts.settling import STEP_GAS, Market, claim

AGENTS = ("ann", "bob")
GAS = 8_000_000
FEE_BPS, ROUNDING = 100, 2
"""Fee of the taxed token, basis points; shortfall that Rfq and the Router accept, raw units."""
NONCES = 500
"""Size of the range of nonces: small, so that orders collide; its lower end rises by one with each order."""
RECENT = 100
"""Orders that may come again: older ones are mostly settled, and a long run would try little else."""
AGGREGATE = selector("aggregate3((address,bool,bytes)[])")
DELIVER = selector("deliver(address,address,uint256)")
SET_HOOK = selector("setHook(address,bytes)")
REENTERED = selector("Reentered()")


@dataclass
class Known:
    """An order, and how much of its fixed side is settled, or how many slices."""

    order: Any
    key: SigningKey
    filled: int = 0


@dataclass
class Fuzz:
    """A run of the fuzz.

    Attributes:
        entries: (contract, selector) of each function that may change something.
        did: steps by kind, and how many of them went through.
        entered: those of `entries` that a step has called.
        taxed, calling: the token that takes a fee, and the one that calls back.
        intruder: the contract by which it calls; `tried` is the contract that is called, None for none, and
            `within` the agent of the settlement that it tries.
        vaults: (vault, its asset) of each vault in which the owners have shares.
        handler: a handler with a stock of each token.
        others: sales from vaults and orders of handlers, by hash; `twaps` has the schedules.
        held: balances of all accounts since the last transaction; empty if they have to be read anew.
    """

    world: World
    market: Market
    rng: random.Random
    tokens: tuple[bytes, ...]
    desk: Desk
    many: bytes
    taxed: bytes
    calling: bytes
    intruder: bytes
    vaults: tuple[tuple[bytes, bytes], ...]
    handler: bytes
    owners: tuple[SigningKey, ...]
    entries: tuple[tuple[bytes, bytes], ...]
    known: dict[bytes, Known] = field(default_factory=dict)
    closed: set[tuple[bytes, int]] = field(default_factory=set)
    begun: dict[tuple[bytes, int], bytes] = field(default_factory=dict)
    did: Counter[str] = field(default_factory=Counter)
    entered: set[tuple[bytes, bytes]] = field(default_factory=set)
    twaps: dict[bytes, Known] = field(default_factory=dict)
    others: dict[bytes, Known] = field(default_factory=dict)
    giving_up: tuple[bytes, int] | None = None
    tried: bytes | None = None
    within: str = ""
    held: dict[tuple[bytes, bytes], int] = field(default_factory=dict)

    async def step(self) -> None:
        """Take a random step, and check the contracts' promises."""
        kind = self.rng.choices([*_STEPS], [weight for _, weight in _STEPS.values()])[0]
        sender, to, data, agent, value_wei = await _STEPS[kind][0](self)
        self.entered.add((to, data[:4]))
        before = self.held or await self._balances()
        receipt = await self.world.forced(sender, to, data, value_wei=value_wei, gas=GAS)
        self.did[kind] += 1
        self.did[f"{kind} done"] += receipt.succeeded
        self.held = await self._balances()
        self._check(receipt, before, self.held, sender, agent)
        self._check_odd_tokens(receipt, to)
        parts.check_bridged(self, receipt, before, self.held)
        if self.did.total() % 40 < 2:
            await self._check_allowances()

    # --- Steps ------------------------------------------------------------------------------------------

    async def _settle(self) -> tuple[SigningKey, bytes, bytes, str, int]:
        agent = self.rng.choice(AGENTS)
        known = await self.an_order()
        order = known.order
        whole = order.dest_amount if order.kind == KIND_BUY else order.src_amount
        amount = self.rng.choice((whole, whole, whole - known.filled, whole // 3, self.rng.randint(0, whole)))
        await self._funded(order)
        part = order.src_amount * amount // max(whole, 1)
        given = self._near(part * 97 // 100) if order.kind == KIND_BUY else part
        wanted = order.dest_amount * amount // max(whole, 1)
        execution = self.execution(order, agent, given, wanted)
        if self.rng.random() < 0.2:
            execution = await self._with_mischief(execution)
        data = delta_calldata.settle(order, self.signature(known), amount, execution)
        return self.world.relayer, self.world.at.delta, data, agent, 0

    async def _cross(self) -> tuple[SigningKey, bytes, bytes, str, int]:
        agent, rng = self.rng.choice(AGENTS), self.rng
        first = await self.an_order()
        opposite = {
            "src_token": first.order.dest_token,
            "dest_token": first.order.src_token,
            "src_amount": 2 * _with_fee(first.order.dest_amount),
            "dest_amount": max(1, first.order.src_amount // rng.randint(1, 4)),
            "kind": rng.choice((KIND_SELL, KIND_SELL, KIND_BUY)),
        }
        others = [await self.an_order(**opposite) for _ in range(rng.randint(1, 3))]
        crossings = []
        for one in (first, *others):
            order = one.order
            whole = order.dest_amount if order.kind == KIND_BUY else order.src_amount
            paid = self._near(_with_fee(order.dest_amount))
            given = order.src_amount * 97 // 100 if order.kind == KIND_BUY else order.src_amount
            execution = self.execution(order, agent, given, paid)
            if rng.random() < 0.8:
                execution = msgspec.structs.replace(execution, steps=())
            traded = rng.choice((0, 0, 0, self._near(given)))
            crossings.append(CrossedOrder(order, self.signature(one), whole, execution, paid, traded))
        return self.world.relayer, self.world.at.delta, delta_calldata.settle_crossed(crossings), agent, 0

    async def _swap(self) -> tuple[SigningKey, bytes, bytes, str, int]:
        user = self.rng.choice(self.owners)
        data, value_wei = await self._swap_of(user.address)
        return user, self.world.at.router, data, "", value_wei

    async def _swap_of(self, user: bytes) -> tuple[bytes, int]:
        rng = self.rng
        src, dest = rng.sample(self.tokens, 2)
        quote = self.quote(user, src, dest)
        amount = self._near(quote.taker_amount)
        buys = rng.random() < 0.4
        bought = self._near(quote.maker_amount)
        hop = Hop(
            taker_amount=0 if buys else rng.choice((0, amount)),
            maker_amount=bought if buys else 0,
            orders=(self.world.info(quote),),
        )
        is_native = src == self.world.weth and rng.random() < 0.3
        swap = RouterSwap(
            NATIVE if is_native else src,
            dest,
            amount,
            bought if buys else rng.choice((0, quote.maker_amount // 2)),
            rng.choice((0, amount, quote.maker_amount)),
            rng.choice((bytes(20), self.world.partner.address)),
            await self.world.now_s() + 100,
            self._terms(),
            b"",
            (hop,),
        )
        data = swap_exact_out(swap) if buys else swap_exact_in(swap)
        return data, amount if is_native else 0

    async def _fill(self) -> tuple[SigningKey, bytes, bytes, str, int]:
        taker = self.rng.choice(self.owners)
        return taker, self.world.at.rfq, self._fill_of(taker.address), "", 0

    def _fill_of(self, taker: bytes) -> bytes:
        rng = self.rng
        src, dest = rng.sample(self.tokens, 2)
        quote = msgspec.structs.replace(
            self.quote(taker, src, dest),
            taker=rng.choice((NOBODY, taker, self.world.at.executor)),
        )
        part, signature = self._near(quote.taker_amount), self.world.signed(quote)
        info = self.world.info(quote)
        return rng.choice(
            (
                calldata.fill_order(quote, signature),
                calldata.fill_order_with_target(quote, signature, taker),
                calldata.partial_fill_order(quote, signature, part),
                calldata.partial_fill_order_with_target(quote, signature, part, taker),
                calldata.partial_fill_order_with_target_permit(info, taker),
                calldata.batch_fill_order_with_target([info], taker),
                calldata.try_batch_fill_taker_amount([info], part, taker),
                calldata.try_batch_fill_maker_amount([info], self._near(quote.maker_amount), taker),
            )
        )

    async def _slice(self) -> tuple[SigningKey, bytes, bytes, str, int]:
        """A slice of a new or known schedule; its interval is 0, so each slice is due."""
        agent, rng = self.rng.choice(AGENTS), self.rng
        if not self.twaps or rng.random() < 0.4:
            key = rng.choice(self.owners)
            src, dest = rng.sample(self.tokens, 2)
            changed = {
                "owner": key.address,
                "beneficiary": bytes(20),
                "src_token": rng.choice((NATIVE, src)) if src == self.world.weth else src,
                "dest_token": dest,
                "interval": 0,
                "bridge": parts.a_bridge(self),
                "num_slices": rng.choice((1, 2, 3, 7)),
                "nonce": self._nonce(),
                "partner_and_fee": self._terms(),
            }
            if rng.random() < 0.5:
                amounts = {"total_src_amount": rng.choice((7, 1_000, 3 * ONE)), "dest_amount_per_slice": 9}
                twap: TwapOrder | TwapBuyOrder = await self.market.a_twap(**changed | amounts)
            else:
                amounts = {"total_dest_amount": rng.choice((7, 1_000, ONE)), "max_src_amount": 3 * ONE}
                twap = await self.market.a_twap_purchase(**changed | amounts)
            self.twaps[self.world.delta_hash(twap)] = Known(twap, key)
        known = rng.choice(list(self.twaps.values())[-RECENT:])
        twap = known.order
        await self._funded(twap)
        if isinstance(twap, TwapOrder):
            given, wanted = twap.total_src_amount // twap.num_slices, twap.dest_amount_per_slice
        else:
            given = twap.max_src_amount // twap.num_slices // 2
            wanted = twap.total_dest_amount // twap.num_slices
        signature = self.world.delta_signed(twap, known.key)
        data = self.market.calldata_of(twap, self.execution(twap, agent, given, wanted + 7), signature)
        return self.world.relayer, self.world.at.delta, data, agent, 0

    async def _act(self) -> tuple[SigningKey, bytes, bytes, str, int]:
        """A call of an owner, or of another account that shows an owner's signature."""
        rng, at = self.rng, self.world.at
        known = rng.choice((await self.an_order(), *list(self.twaps.values())[-RECENT:]))
        order, owner = known.order, known.key
        order_hash = self.world.delta_hash(order)
        ids = [str(order_id(order_hash))]
        signed = rng.choice((owner, owner, self.world.partner))
        shown = delta_calldata.show_cancellation(
            owner.address, ids, self.world.cancellation(ids, signed), [order]
        )
        sender, data, value_wei = rng.choice(
            (
                (owner, delta_calldata.deposit_native_and_pre_sign(order_hash), rng.choice((0, 1, ONE))),
                (owner, delta_calldata.withdraw_native(rng.choice((0, 1, ONE))), 0),
                (owner, delta_calldata.withdraw_to(rng.choice((1, ONE)), self.world.maker.address), 0),
                (rng.choice((owner, self.world.partner)), delta_calldata.cancel_and_withdraw(order), 0),
                (owner, delta_calldata.invalidate_nonces([order.nonce]), 0),
                (self.world.partner, shown, 0),
            )
        )
        self.giving_up = (owner.address, order.nonce) if signed == owner or sender == owner else None
        return sender, at.delta, data, "", value_wei

    async def _funded(self, order: SettledOrder) -> None:
        """In most cases, deposit native tokens for an order that gives them."""
        if order.src_token == NATIVE and self.rng.random() < 0.8:
            owner = next(key for key in self.owners if key.address == order.owner)
            await self.market.deposit(order, self.rng.choice((1, ONE, 4 * ONE)), owner)
            self.held = {}

    async def _misuse(self) -> tuple[SigningKey, bytes, bytes, str, int]:
        mallory = self.world.partner
        target, data = await parts.mischief(self, mallory.address)
        return mallory, target, data, "", 0

    async def _knock(self) -> tuple[SigningKey, bytes, bytes, str, int]:
        """A maker cancels or claims; or a stranger calls a function, first those that no step has called."""
        rng, world = self.rng, self.world
        if rng.random() < 0.3:
            order_hash = world.rfq_hash(self.quote(world.user.address, *rng.sample(self.tokens, 2)))
            to, data = rng.choice(
                (
                    (world.at.rfq, calldata.cancel_order(order_hash)),
                    (world.at.rfq, calldata.cancel_orders([order_hash])),
                    (world.at.fee_vault, claim(self.tokens, world.maker.address)),
                )
            )
            return world.maker, to, data, "", 0
        unseen = [entry for entry in self.entries if entry not in self.entered]
        to, function = rng.choice(unseen or self.entries)
        mallory = world.partner
        accounts = mallory.address, rng.choice(self.owners).address, rng.choice(self.tokens)
        words = (uint_word(0), uint_word(1), *map(address_word, accounts))
        return mallory, to, function + b"".join(rng.choices(words, k=8)), "", 0

    async def _rig(self) -> tuple[SigningKey, bytes, bytes, str, int]:
        """From now on the token that calls back enters a contract that may be at work, with a call that is
        possible by itself.
        """
        at, intruder = self.world.at, self.intruder
        _, to, data, agent, _ = await self.rng.choice((self._settle, self._cross, self._slice))()
        self.tried, tried, self.within = self.rng.choice(
            (
                (to, data, agent),
                (at.delta, delta_calldata.withdraw_native(0), ""),
                (at.router, (await self._swap_of(intruder))[0], ""),
                (at.rfq, self._fill_of(intruder), ""),
            )
        )
        hook = encode(address_word(intruder), bytes_tail(address_word(self.tried) + tried))
        return self.world.partner, self.calling, SET_HOOK + hook, "", 0

    # --- Parts of steps ---------------------------------------------------------------------------------

    def execution(
        self, order: AnyDeltaOrder, agent: str, given: int, wanted: int
    ) -> delta_calldata.Execution:
        """Fair, or short, or with mischief among its steps, or delivered to the wrong place."""
        wanted = parts.entering(order, wanted)
        rng, at, market = self.rng, self.world.at, self.market
        src, dest = (self.world.weth if one == NATIVE else one for one in (order.src_token, order.dest_token))
        caller = caller_of(at.delta, agent)
        places = (at.delta, at.executor, caller, market.agent, at.fee_vault, at.router, order.owner)
        to = rng.choices(places, (20, 1, 1, 1, 1, 1, 1))[0]
        words = address_word(dest) + address_word(to) + uint_word(self._near(_with_fee(wanted)))
        steps = [SettlementStep(market.agent, 400_000, DELIVER + words)]
        receiver = rng.choices((market.agent, caller, at.executor, *places), (10, 5, 5, *[1] * len(places)))[
            0
        ]
        if rng.random() < 0.3:
            quote = self.quote(order.owner, src, dest, taker_amount=given, maker_amount=_with_fee(wanted))
            receiver = at.executor
            infos = [self.world.info(quote)]
            step = delta_calldata.rfq_step(at.rfq, infos, 0, 0, rng.choice((bytes(20), at.executor, caller)))
            steps.insert(rng.randint(0, 1), step)
        if rng.random() < 0.05:
            steps.append(self.stolen(order, at.delta))
        if rng.random() < 0.2:
            approve = calldata.approve(self.world.partner.address, MOST)
            steps.append(SettlementStep(rng.choice(self.tokens), STEP_GAS, approve))
        is_purchase = isinstance(order, TwapBuyOrder) or getattr(order, "kind", KIND_SELL) == KIND_BUY
        promised = rng.choice((MOST, given)) if is_purchase else rng.choice((0, wanted))
        leftovers = tuple(rng.sample(self.tokens, rng.randint(0, 2)))
        named = agent_id(agent)
        return delta_calldata.Execution(promised, given, tuple(steps), leftovers, named, receiver)

    async def _with_mischief(self, execution: delta_calldata.Execution) -> delta_calldata.Execution:
        """The same with calls of a contract that goes on when they fail."""
        calls = []
        for _ in range(self.rng.randint(1, 4)):
            target, data = await parts.mischief(self, self.world.partner.address)
            calls.append(encode(address_word(target), uint_word(1), bytes_tail(data)))
        step = SettlementStep(self.many, 3_000_000, AGGREGATE + encode(tuples_tail(calls)))
        return msgspec.structs.replace(execution, steps=(step, *execution.steps))

    def stolen(self, order: AnyDeltaOrder, to: bytes) -> SettlementStep:
        """A trade of Ann's desk, on terms that her key has signed for the order, and others have seen."""
        nonce = self.rng.getrandbits(64)
        return self.desk.steps(self.desk.terms(order, taken=0, given=1, receiver=to, nonce=nonce))[1]

    def _near(self, amount: int) -> int:
        """The amount itself in most cases, else a little more or less, or 0."""
        return max(0, self.rng.choice((amount, amount, amount, amount + 1, amount - 1, amount // 2, 0)))

    def _terms(self) -> int:
        rng = self.rng
        partner = rng.choice((bytes(20), self.world.maker.address))
        bps = rng.choice((0, 0, 1, 30, 200, 201))
        return pack_partner_and_fee(
            PartnerAndFee(partner, min(bps, 200), rng.random() < 0.5, rng.random() < 0.5)
        )

    def quote(self, user: bytes, src: bytes, dest: bytes, **amounts: int) -> RfqOrder:
        rng = self.rng
        terms: dict[str, Any] = {
            "nonce_and_meta": pack_firm(user, rng.getrandbits(96)),
            "maker_asset": dest,
            "taker_asset": src,
            "taker_amount": rng.choice((1, 7, 1_000, ONE, 3 * ONE + 1)),
            "maker_amount": rng.choice((1, 5, 999, ONE, 2 * ONE)),
        }
        terms |= amounts
        return self.world.a_firm_quote(**terms)

    async def an_order(self, **changed: Any) -> Known:
        """A new order or a known order."""
        rng = self.rng
        if self.known and not changed and rng.random() < 0.4:
            return rng.choice(list(self.known.values())[-RECENT:])
        key = rng.choice(self.owners)
        src, dest = rng.sample(self.tokens, 2)
        terms: dict[str, Any] = {
            "owner": key.address,
            "beneficiary": rng.choice((key.address, bytes(20), rng.choice(self.owners).address)),
            "src_token": rng.choice((src, src, NATIVE)) if src == self.world.weth else src,
            "dest_token": rng.choice((dest, dest, NATIVE)) if dest == self.world.weth else dest,
            "src_amount": rng.choice((1, 9, 1_000, ONE, 3 * ONE)),
            "dest_amount": rng.choice((1, 8, 999, ONE, 2 * ONE)),
            "expected_amount": rng.choice((0, 10, 1_001, ONE, 3 * ONE)),
            "kind": rng.choice((KIND_SELL, KIND_BUY)),
            "nonce": self._nonce(),
            "partner_and_fee": self._terms(),
            "bridge": SAME_CHAIN if changed else parts.a_bridge(self),
        }
        order = await self.world.a_delta_order(**terms | changed)
        known = Known(order, key)
        self.known[self.world.delta_hash(order)] = known
        return known

    def again(self, kind: type) -> Known | None:
        """A known order of a kind in some cases; None for a new one."""
        some = [known for known in self.others.values() if isinstance(known.order, kind)]
        return self.rng.choice(some[-RECENT:]) if some and self.rng.random() < 0.4 else None

    def learn(self, order: AnyDeltaOrder, key: SigningKey) -> Known:
        """Keep a new order of another kind."""
        known = self.others[self.world.delta_hash(order)] = Known(order, key)
        return known

    def terms(self, key: SigningKey, src: bytes, dest: bytes) -> dict[str, Any]:
        """Random members of an order of another kind."""
        return parts.terms_of(self, key, src, dest, self._nonce(), self._terms())

    def _all_known(self) -> tuple[dict[bytes, Known], ...]:
        return self.known, self.twaps, self.others

    def _nonce(self) -> int:
        return sum(map(len, self._all_known())) + self.rng.randrange(NONCES)

    def signature(self, known: Known) -> bytes:
        return self.world.delta_signed(known.order, known.key)

    # --- Checks -----------------------------------------------------------------------------------------

    async def _balances(self) -> dict[tuple[bytes, bytes], int]:
        """(holder, token) -> raw units."""
        tokens = (*self.tokens, *(vault for vault, _ in self.vaults))
        pairs = [(holder, token) for holder in self._holders() for token in tokens]
        calls = [EthCall(token, calldata.balance_of(holder)) for holder, token in pairs]
        chain, delta = self.world.chain, self.world.at.delta
        answers = await chain.call_many(calls)
        found = dict(zip(pairs, map(_number, answers), strict=True))
        people = [key.address for key in (*self.owners, self.world.maker, self.world.partner)]
        kept = await chain.call_many([EthCall(delta, delta_calldata.deposits(person)) for person in people])
        deposits = dict(zip(people, map(_number, kept), strict=True))
        assert await chain.balance(delta) == sum(deposits.values())
        for person in people:
            found[person, NATIVE] = deposits[person] + await chain.balance(person)
        return found

    def _holders(self) -> Sequence[bytes]:
        at = self.world.at
        contracts = (at.delta, at.router, at.executor, at.fee_vault, self.desk.address, at.bridges)
        people = (key.address for key in (*self.owners, self.world.maker))
        return (*people, *contracts, self.world.spoke_pool)

    def _check(
        self,
        receipt: Receipt,
        before: dict[tuple[bytes, bytes], int],
        after: dict[tuple[bytes, bytes], int],
        sender: SigningKey,
        agent: str,
    ) -> None:
        allowed: Counter[tuple[bytes, bytes]] = Counter()
        people = {key.address for key in self.owners}
        receiver = NOBODY
        for log in receipt.logs:
            event = decode_event(log.topics, log.data)
            if isinstance(event, Transfer):
                if event.receiver == NOBODY and receiver in people:
                    allowed[receiver, log.address] += event.amount
                receiver = event.receiver
            elif isinstance(event, OrderSettled):
                order, amount = self._check_terms(event)
                allowed[event.owner, event.src_token] += event.spent
                if isinstance(order, ProductiveOrder):
                    allowed[event.owner, order.strategy] += parts.shares_given(order, amount)
            elif isinstance(event, NonceInvalidated):
                place = event.owner, event.nonce
                may = event.owner not in people or event.owner == sender.address or place == self.giving_up
                assert may, "given up by somebody else"
                self.closed.add(place)
            elif isinstance(event, OrderFilled):
                allowed[event.maker, event.maker_asset] += event.maker_amount
            elif isinstance(event, Claimed):
                allowed[self.world.at.fee_vault, event.token] += event.amount
        self.giving_up = None
        for (holder, token), had in before.items():
            lost = had - after[holder, token]
            free = holder in (sender.address, self.world.at.executor) or (
                holder == self.desk.address and "ann" in (agent, self.within)
            )
            assert free or lost <= allowed[holder, token], (holder.hex(), token.hex(), lost, agent)

    def _check_odd_tokens(self, receipt: Receipt, entered: bytes) -> None:
        """A contract at work is closed, and an RFQ order is filled without a fee or not at all."""
        for log in receipt.logs:
            if log.address == self.intruder:
                kind = "turned away" if log.data == REENTERED else "entered beside"
                assert kind == "turned away" or entered != self.tried, log.data
                self.did[kind] += 1
            event = decode_event(log.topics, log.data)
            if isinstance(event, OrderFilled):
                moved = {event.maker_asset: event.maker_amount, event.taker_asset: event.taker_amount}
                assert moved.get(self.taxed, 0) * FEE_BPS // 10_000 <= ROUNDING

    def _check_terms(self, event: OrderSettled) -> tuple[AnyDeltaOrder, int]:
        known = next(some[event.order_hash] for some in self._all_known() if event.order_hash in some)
        order, amount = known.order, event.filled - known.filled
        known.filled = event.filled
        assert amount > 0
        parts.check_terms(order, amount, event)
        place = order.owner, order.nonce
        assert place not in self.closed, "the nonce was used up"
        assert self.begun.setdefault(place, event.order_hash) == event.order_hash
        if event.is_closed:
            self.closed.add(place)
        return order, amount

    async def _check_allowances(self) -> None:
        """Assert that the contracts give no allowance, except the executor's to the RFQ contract."""
        world, at = self.world, self.world.at
        callers = [caller_of(at.delta, agent) for agent in AGENTS]
        spenders = [world.partner.address, self.market.agent, self.many, at.delta, at.router, *callers]
        spenders += [world.spoke_pool, world.token_messenger]
        calls = [
            EthCall(token, calldata.allowance(holder, spender))
            for token in self.tokens
            for holder in (at.delta, at.router, at.executor, at.fee_vault, at.bridges, self.desk.address)
            for spender in spenders
        ]
        answers = await world.chain.call_many(calls)
        assert set(map(_number, answers)) == {0}


_STEPS: dict[str, tuple[Callable[[Fuzz], Awaitable[tuple[SigningKey, bytes, bytes, str, int]]], int]] = {
    "settle": (Fuzz._settle, 10),
    "cross": (Fuzz._cross, 4),
    "slice": (Fuzz._slice, 3),
    "vault": (parts.from_vault, 3),
    "handle": (parts.by_handler, 2),
    "swap": (Fuzz._swap, 4),
    "fill": (Fuzz._fill, 3),
    "act": (Fuzz._act, 3),
    "misuse": (Fuzz._misuse, 3),
    "knock": (Fuzz._knock, 3),
    "rig": (Fuzz._rig, 2),
}
"""Steps by kind, each with its weight."""


def _with_fee(amount: int) -> int:
    """Least amount that leaves `amount` after the taxed token's fee."""
    return amount * 103 // 100 + 2


def _number(answer: bytes | Exception) -> int:
    assert isinstance(answer, bytes), answer
    return int.from_bytes(answer)
