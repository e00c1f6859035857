"""A model in plain Python of Delta orders that wait: their states, from their terms and the chain's state.

    allowed = statuses(known, facts, now_s)     which statuses an order may have once nothing moves
    due = is_fillable(known, facts, market)     it must not lie there like that: somebody would fill it

The amounts are reckoned here anew, slice by slice, from the specification; nothing is asked of the engine.

Source: spec 1.11, 1.16.28 to 1.16.42; choices.md#delta-orders.

Transactions of the owners of waiting orders, and the chain's record of them.

at_chain = OnChain(market)
await at_chain.allow(owner, 0)                     first in the next block, made now unless blocks are held
settled = await at_chain.settlements()             order hash -> what was settled of it
facts = await at_chain.facts(known, settled)       what the model goes by
"""

from collections.abc import Sequence
from fractions import Fraction

import trio
from msgspec import Struct, field

from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.abi import selector
from cambist.codecs.contracts.contract_events import OrderSettled, decode_event
from cambist.codecs.eip712_orders.delta import KIND_BUY, DeltaOrder, TwapBuyOrder, TwapOrder
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.config.errors import Reverted
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import EthCall, Log, LogFilter
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.world import MOST, NATIVE, ONE, USDC, a_world, person
from support.contracts.settling import Market, a_market
from support.delta.waiting_venue import CONFIRMATIONS, SimulatedClock
from support.venue.venue_role import CHAIN_ID

ModelledOrder = DeltaOrder | TwapOrder | TwapBuyOrder

INTERVAL_S = 60
"""Seconds between two slices of every TWAP."""
GRACE_S = 2
"""Seconds after which the venue has noticed a passed deadline."""
DUE_SLACK_S = 15
"""Seconds in which a due slice is auctioned, won, mined and read."""
PART_MIN = 10
"""Books that fill such a part of what is left fill an order that takes parts."""


class Known(Struct):
    """An order, as its owner knows it.

    Attributes:
        is_limit: of type LIMIT.
        is_partial: it may be filled in parts.
        cancelled: its cancellation was answered.
        maybe_cancelled: a cancellation was sent whose answer was lost.
        ended: the status that it was last seen to have ended with.
        filled_at_s: times of its settlements, those that were taken back too: a timer may still go by these.
    """

    number: int
    order: ModelledOrder
    order_hash: bytes
    order_id: str
    key: SigningKey
    is_limit: bool
    is_partial: bool
    cancelled: bool = False
    maybe_cancelled: bool = False
    ended: str = ""
    filled_at_s: set[int] = field(default_factory=set)

    @property
    def is_scheduled(self) -> bool:
        """Whether the order is a TWAP."""
        return not isinstance(self.order, DeltaOrder)

    @property
    def is_native(self) -> bool:
        """Whether the source amount is deposited native tokens."""
        return self.order.src_token == NATIVE

    def __str__(self) -> str:
        kind = type(self.order).__name__ + (" buys" if self.buys else " sells")
        return f"#{self.number} {kind}{' limit' if self.is_limit else ''}{' in parts' * self.is_partial}"

    @property
    def buys(self) -> bool:
        """Whether the destination amount is fixed."""
        order = self.order
        return isinstance(order, TwapBuyOrder) or (isinstance(order, DeltaOrder) and order.kind == KIND_BUY)

    @property
    def whole(self) -> int:
        """Value of `filled` at which the order is completed."""
        order = self.order
        if isinstance(order, DeltaOrder):
            return order.dest_amount if self.buys else order.src_amount
        return order.num_slices


class Facts(Struct, frozen=True):
    """State of an order on the chain, at one block.

    Attributes:
        filled: of the fixed side, or slices.
        last_fill_s: time of the last settlement; 0 before.
        is_given_up: its nonce is used, and not by a settlement of it.
        has: balance of its owner, or what is deposited for it.
        allowed: that the Delta contract may take.
    """

    filled: int
    last_fill_s: int
    is_given_up: bool
    has: int
    allowed: int


class MarketNow(Struct, frozen=True):
    """Offers of the agent and the makers.

    Attributes:
        agent: raw units of USDC that the agent trades one WETH for; None where it bids nothing.
        book: the same of the makers; depth: raw units of WETH that they take.
    """

    agent: int | None
    book: int | None
    depth: int


Pieces = Sequence[tuple[int, int]]
"""(source, destination) of each settlement that is left of an order, the next one first."""


def left_of(order: ModelledOrder, filled: int) -> Pieces:
    """The pieces that are left: one piece, or a piece for each slice."""
    match order:
        case DeltaOrder(kind=kind) if kind == KIND_BUY:
            left = order.dest_amount - filled
            return [(order.src_amount * left // order.dest_amount, left)] if left > 0 else []
        case DeltaOrder():
            left = order.src_amount - filled
            return [(left, -(-order.dest_amount * left // order.src_amount))] if left > 0 else []
        case TwapOrder():
            size = order.total_src_amount // order.num_slices
            last = order.total_src_amount - size * (order.num_slices - 1)
            each = [(size, order.dest_amount_per_slice)] * (order.num_slices - 1)
            return [*each, (last, -(-order.dest_amount_per_slice * last // size))][filled:]
        case TwapBuyOrder():
            size = order.total_dest_amount // order.num_slices
            last = order.total_dest_amount - size * (order.num_slices - 1)
            sizes = [*[size] * (order.num_slices - 1), last][filled:]
            return [(order.max_src_amount * one // order.total_dest_amount, one) for one in sizes]


def is_lacking(known: Known, facts: Facts) -> bool:
    """Whether the owner lacks the funds that the order needs."""
    pieces = left_of(known.order, facts.filled)
    if not pieces:
        return False
    if known.is_native:
        return facts.has < pieces[0][0]
    return facts.has < pieces[0][0] or facts.allowed < sum(src for src, _ in pieces)


def fits_until_s(known: Known, facts: Facts) -> int:
    """Latest time of the next settlement at which all later settlements still fit, Unix seconds."""
    order = known.order
    if isinstance(order, DeltaOrder):
        return order.deadline
    until_s = order.deadline - order.interval * max(order.num_slices - facts.filled - 1, 0)
    is_late = facts.last_fill_s and facts.last_fill_s + order.interval > until_s
    return 0 if is_late else min(until_s, order.deadline)


def statuses(known: Known, facts: Facts, now_s: int) -> set[str]:
    """States that the order may have once nothing moves."""
    if facts.filled == known.whole:
        return {"COMPLETED"}
    if known.ended == "EXPIRED":
        return {"EXPIRED"}
    if known.cancelled or (known.ended == "CANCELLED" and facts.is_given_up):
        return {"CANCELLED"}
    found: set[str] = set()
    if facts.is_given_up:
        found.add("CANCELLED")
    if known.maybe_cancelled:
        found.add("CANCELLED")
    until_s = fits_until_s(known, facts)
    if now_s > until_s:
        found.add("EXPIRED")
    if facts.is_given_up or now_s > until_s + GRACE_S + 2:
        return found
    if is_lacking(known, facts):
        return found | {"SUSPENDED"}
    return found | ({"ACTIVE"} if known.is_limit or known.is_scheduled else {"ACTIVE", "PENDING"})


def meets(known: Known, piece: tuple[int, int], price: int | None) -> bool:
    """Whether a trader at a price fills a piece within its limit."""
    if price is None:
        return False
    src, dest = piece
    return Fraction(src * price, ONE) >= dest


def is_crossed(known: Known, facts: Facts, market: MarketNow) -> bool:
    """Whether the makers' books fill an order, or enough of it."""
    pieces = left_of(known.order, facts.filled)
    if not pieces or market.book is None or not meets(known, pieces[0], market.book):
        return False
    src, dest = pieces[0]
    taken = dest * ONE // market.book if known.buys else src
    if known.is_partial:
        taken = -(-taken // PART_MIN)
    return taken <= market.depth


def due_s(known: Known, facts: Facts) -> int:
    """Earliest time of the order's next settlement, Unix seconds."""
    order = known.order
    return 0 if isinstance(order, DeltaOrder) or not facts.last_fill_s else facts.last_fill_s + order.interval


def is_asked_for(known: Known, facts: Facts, market: MarketNow, now_s: int) -> bool:
    """Whether agents are asked about an open order whose funds are there."""
    if known.is_scheduled:
        return now_s >= due_s(known, facts)
    return not known.is_limit or is_crossed(known, facts, market)


def is_fillable(known: Known, facts: Facts, market: MarketNow, now_s: int) -> bool:
    """Whether the agent or the makers would have filled an open order by now."""
    pieces = left_of(known.order, facts.filled)
    if not pieces or not meets(known, pieces[0], market.agent):
        return False
    slack_s = DUE_SLACK_S if known.is_scheduled and facts.last_fill_s else 0
    return is_asked_for(known, facts, market, now_s - slack_s)


OWNERS = tuple(person(60 + number) for number in range(3))
FOREIGNER = person(70)
STOCK = 10 * ONE
"""WETH that each owner has at first."""

_TIP_WEI = 50 * 10**9
_SET_RELAYER = selector("setRelayer(address,bool)")


class Settlement(Struct, frozen=True):
    """A settlement on the chain."""

    tx_hash: bytes
    time_s: int
    spent: int
    received: int
    filled: int
    is_closed: bool


class OnChain:
    """See the module.

    Attributes:
        has_blocks: one is made every second, and for each transaction.
        began: height from which on orders live.
    """

    def __init__(self, market: Market, chain: EmbeddedChain) -> None:
        self.market = market
        self.world = market.world
        self.chain = chain
        self.has_blocks = True
        self.began = 0

    async def make_blocks(self) -> None:
        """Make a block each second, unless blocks are held."""
        while True:
            await trio.sleep(1)
            if self.has_blocks:
                await self.chain.mine()

    async def reorganise(self, depth: int) -> None:
        """Replace the last blocks by blocks without transactions."""
        head = await self.chain.head()
        if head.header.number - depth > self.began:
            await self.chain.reorganise(depth)

    # --- Actions of owners ------------------------------------------------------------------------------

    async def allow(self, owner: SigningKey, amount: int) -> None:
        """Set an owner's WETH allowance to Delta."""
        await self.send(owner, self.world.weth, calldata.approve(self.world.at.delta, amount))

    async def move(self, owner: SigningKey, keeps: int) -> None:
        """Move an owner's WETH to a stranger, except the amount that the owner keeps."""
        has = await self.world.balance(self.world.weth, owner)
        if has > keeps:
            data = calldata.transfer(self.world.stranger.address, has - keeps)
            await self.send(owner, self.world.weth, data)

    async def give_back(self, owner: SigningKey, amount: int) -> None:
        """Move a stranger's WETH to an owner."""
        await self.send(self.world.stranger, self.world.weth, calldata.transfer(owner.address, amount))

    async def withdraw(self, known: Known) -> None:
        """Withdraw the whole deposit of an order's owner."""
        (has,) = await self._numbers(delta_calldata.deposits(known.key.address))
        if has:
            await self.send(known.key, self.world.at.delta, delta_calldata.withdraw_native(has))

    async def give_up(self, known: Known) -> None:
        """Use up an order's nonce."""
        data = delta_calldata.invalidate_nonces([known.order.nonce])
        await self.send(known.key, self.world.at.delta, data)

    async def send(self, key: SigningKey, to: bytes, data: bytes, value_wei: int = 0) -> None:
        """An owner's transaction: first in the next block, which is made now unless blocks are held."""
        fees = await self.chain.fees()
        transaction = Transaction(
            CHAIN_ID,
            await self.chain.pending_nonce(key.address),
            _TIP_WEI,
            2 * fees.base_fee_wei + _TIP_WEI,
            2_000_000,
            to,
            value_wei,
            data,
        )
        await self.chain.send_raw(sign_transaction(transaction, key).raw)
        if self.has_blocks:
            await self.chain.mine()

    async def deposit(self, key: SigningKey, order_hash: bytes, order: ModelledOrder) -> None:
        """Deposit the amount that an order still needs, unless the deposit suffices."""
        (has,) = await self._numbers(delta_calldata.deposits(key.address))
        pieces = left_of(order, await self.market.filled(order))
        if pieces and has < pieces[0][0]:
            data = delta_calldata.deposit_native_and_pre_sign(order_hash)
            await self.send(key, self.world.at.delta, data, pieces[0][0] - has)

    async def settle_elsewhere(self, known: Known, share: int) -> None:
        """Another relayer settles a part of an order, without this venue."""
        order, market = known.order, self.market
        assert isinstance(order, DeltaOrder)
        filled = await self.market.filled(order)
        amount = (known.whole - filled) * share // 100
        if amount <= 0:
            return
        if known.buys:
            given = order.src_amount * amount // order.dest_amount
            received = amount
        else:
            given, received = amount, -(-order.dest_amount * amount // order.src_amount)
        data = market.settlement(
            order,
            *market.agent_steps(received, given),
            amount=amount,
            signature=self.world.delta_signed(order, known.key),
            src_given=given if known.buys else 0,
        )
        try:
            await self.chain.call(EthCall(self.world.at.delta, data, FOREIGNER.address))
        except Reverted:
            return
        await self.send(FOREIGNER, self.world.at.delta, data)

    async def _numbers(self, *questions: bytes, to: bytes = b"", at: bytes | None = None) -> list[int]:
        calls = [EthCall(to or self.world.at.delta, question) for question in questions]
        answers = await self.chain.call_many(calls, at)
        return [int.from_bytes(answer[:32], "big") for answer in answers if isinstance(answer, bytes)]

    # --- State of the chain -----------------------------------------------------------------------------

    async def settlements(self) -> dict[bytes, list[Settlement]]:
        """Settlements on the chain, order by order, oldest first."""
        head = (await self.chain.head()).header
        wanted = LogFilter((self.world.at.delta,))
        found: dict[bytes, list[Settlement]] = {}
        times: dict[int, int] = {}
        for log in await self.chain.logs(wanted, self.began, head.number):
            event = decode_event(log.topics, log.data)
            if isinstance(event, OrderSettled):
                time_s = times.get(log.block_number) or await self._time_of(log)
                times[log.block_number] = time_s
                found.setdefault(event.order_hash, []).append(
                    Settlement(
                        log.tx_hash, time_s, event.spent, event.received, event.filled, event.is_closed
                    )
                )
        return found

    async def _time_of(self, log: Log) -> int:
        block = await self.chain.block(log.block_hash)
        assert block is not None
        return block.time_s

    async def facts(
        self, orders: Sequence[Known], settled: dict[bytes, list[Settlement]]
    ) -> dict[bytes, Facts]:
        """Facts of each order on the chain; assert that the contract's state agrees with its logs."""
        at, weth = self.world.at.delta, self.world.weth
        found: dict[bytes, Facts] = {}
        for known in orders:
            owner = known.key.address
            is_used, filled = (
                await self.market.is_nonce_used(known.order),
                await self.market.filled(known.order),
            )
            (deposited,) = await self._numbers(delta_calldata.deposits(owner))
            has, allowed = await self._numbers(
                calldata.balance_of(owner), calldata.allowance(owner, at), to=weth
            )
            mine = settled.get(known.order_hash, [])
            assert filled == (mine[-1].filled if mine else 0), f"{known}: the chain disagrees with its logs"
            found[known.order_hash] = Facts(
                filled,
                mine[-1].time_s if mine else 0,
                is_used and filled < known.whole,
                deposited if known.is_native else has,
                allowed,
            )
        return found


async def a_market_of_owners(clock: SimulatedClock) -> OnChain:
    """A new world; owners have their WETH, all of which Delta may take. No block is made but by hand."""
    chain = EmbeddedChain(CHAIN_ID, clock.now_s, {}, known_errors())
    world = await a_world(chain)
    market = await a_market(world)
    await world.mint(world.usdc, market.agent, 10**9 * USDC)
    for key in (*OWNERS, world.stranger, FOREIGNER):
        await chain.set_balance(key.address, 10_000 * ONE)
        await world.mint(world.weth, key, (1 if key in OWNERS else 100) * STOCK)
    for key in OWNERS:
        await world.approve(key, world.weth, world.at.delta, MOST)
    words = FOREIGNER.address.rjust(32, b"\0") + (1).to_bytes(32, "big")
    await world.send(world.owner, world.at.delta, _SET_RELAYER + words)
    await chain.set_automine(on=False)
    await chain.mine(CONFIRMATIONS)
    at_chain = OnChain(market, chain)
    at_chain.began = (await chain.head()).header.number
    return at_chain
