"""Transactions of the owners of waiting orders, and the chain's record of them.

at_chain = OnChain(market)
await at_chain.allow(owner, 0)                     first in the next block, made now unless blocks are held
settled = await at_chain.settlements()             order hash -> what was settled of it
facts = await at_chain.facts(known, settled)       what the model goes by
"""

from collections.abc import Sequence

import trio
from msgspec import Struct

from cambist.codecs.contracts import calldata, delta_calldata
from cambist.codecs.contracts.abi import selector
from cambist.codecs.contracts.contract_events import OrderSettled, decode_event
from cambist.codecs.eip712_orders.delta import DeltaOrder
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.config.errors import Reverted
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import EthCall, Log, LogFilter
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.world import MOST, ONE, USDC, a_world, person
from support.contracts.settling import Market, a_market
from support.delta.waiting_model import Facts, Known, ModelledOrder, left_of
from support.delta.waiting_venue import CONFIRMATIONS, SimulatedClock
from support.venue.venue_role import CHAIN_ID

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
