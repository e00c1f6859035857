"""Swaps of the Router in sentences, on a venue whose makers are stocked.

venue = await a_venue(world)
swapped = await venue.sell(venue.swap(venue.hop(venue.quote())))
assert swapped.event.received == 2_500 * USDC
assert await venue.refused_sale(venue.swap(...)) == "INSUFFICIENT_OUTPUT"

A refused swap is asserted to have changed nothing: no balance, no allowance used, no fee of anyone's.
"""

from typing import Any

import msgspec

from cambist.codecs.contracts import calldata, router_calldata
from cambist.codecs.contracts.abi import decode_uint
from cambist.codecs.contracts.calldata import OrderInfo
from cambist.codecs.contracts.contract_events import Swapped, decode_event
from cambist.codecs.contracts.router_calldata import Hop, RouterSwap
from cambist.codecs.eip712_orders.rfq import RfqOrder
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import EthCall, Receipt
from support.chain.world import HOUR_S, NOBODY, ONE, USDC, World, person

UNFILLED = "Couldn't swap the requested fill amount"


class Done(msgspec.Struct, frozen=True):
    """A swap that went through."""

    receipt: Receipt
    event: Swapped


class Venue(msgspec.Struct, frozen=True):
    """A world in which a maker has USDC and the user has WETH, and each allowed what it must.

    Attributes:
        rival: the second maker.
        deadline: of the swaps.
    """

    world: World
    rival: SigningKey
    deadline: int

    # --- Orders ---------------------------------------------------------------------------------------

    def quote(self, **changed: Any) -> RfqOrder:
        """The maker's firm quote for the user: 2,500 USDC for one WETH."""
        return self.world.a_firm_quote(**changed)

    def second_quote(self, **changed: Any) -> RfqOrder:
        """The maker's firm quote for the user: 2,490 DAI for 2,500 USDC."""
        world = self.world
        return self.quote(
            **{
                "maker_asset": world.dai,
                "taker_asset": world.usdc,
                "maker_amount": 2_490 * ONE,
                "taker_amount": 2_500 * USDC,
            }
            | changed
        )

    def info(self, order: RfqOrder) -> OrderInfo:
        """An order signed by its maker, to be filled whole."""
        return self.world.info(order, self.rival if order.maker == self.rival.address else None)

    def hop(self, *orders: RfqOrder | OrderInfo, taker_amount: int = 0, maker_amount: int = 0) -> Hop:
        """Orders of one pair, in turn."""
        infos = (order if isinstance(order, OrderInfo) else self.info(order) for order in orders)
        return Hop(taker_amount=taker_amount, maker_amount=maker_amount, orders=tuple(infos))

    # --- Swaps ----------------------------------------------------------------------------------------

    def swap(self, *hops: Hop, **changed: Any) -> RouterSwap:
        """A sale by the user, with changes: one WETH for 2,400 USDC at least."""
        swap = RouterSwap(
            src_token=self.world.weth,
            dest_token=self.world.usdc,
            src_amount=ONE,
            dest_amount=2_400 * USDC,
            expected_amount=0,
            receiver=NOBODY,
            deadline=self.deadline,
            partner_and_fee=0,
            permit=b"",
            hops=hops,
        )
        return msgspec.structs.replace(swap, **changed)

    def purchase(self, *hops: Hop, **changed: Any) -> RouterSwap:
        """A purchase by the user, with changes: 2,500 USDC for 1.1 WETH at most."""
        return self.swap(*hops, **{"src_amount": 11 * ONE // 10, "dest_amount": 2_500 * USDC} | changed)

    async def sell(self, swap: RouterSwap, key: SigningKey | None = None, *, value_wei: int = 0) -> Done:
        """Sell an exact source amount through the Router, as the user unless another key is given."""
        returned, done = await self._sent(router_calldata.swap_exact_in(swap), key, value_wei)
        assert returned == done.event.received
        return done

    async def buy(self, swap: RouterSwap, key: SigningKey | None = None, *, value_wei: int = 0) -> Done:
        """Buy an exact destination amount through the Router, as the user unless another key is given."""
        returned, done = await self._sent(router_calldata.swap_exact_out(swap), key, value_wei)
        assert returned == done.event.spent
        return done

    async def refused_sale(
        self, swap: RouterSwap, key: SigningKey | None = None, *, value_wei: int = 0
    ) -> str:
        """Revert reason of a swap that must be refused without moving any token."""
        return await self._refused(router_calldata.swap_exact_in(swap), key, value_wei)

    async def refused_purchase(
        self, swap: RouterSwap, key: SigningKey | None = None, *, value_wei: int = 0
    ) -> str:
        """Revert reason of a swap that must be refused without moving any token."""
        return await self._refused(router_calldata.swap_exact_out(swap), key, value_wei)

    async def _sent(self, data: bytes, key: SigningKey | None, value_wei: int) -> tuple[int, Done]:
        """Number that a simulation of the swap returns, and the outcome of the mined swap."""
        sender, router = key or self.world.user, self.world.at.router
        returned = await self.world.chain.call(EthCall(router, data, sender.address, value_wei))
        receipt = await self.world.send(sender, router, data, value_wei=value_wei)
        events = [decode_event(log.topics, log.data) for log in receipt.logs]
        (event,) = [event for event in events if isinstance(event, Swapped)]
        await self._nothing_stays()
        return decode_uint(returned), Done(receipt, event)

    async def _refused(self, data: bytes, key: SigningKey | None, value_wei: int) -> str:
        before = await self.state()
        reason = await self.world.refused(
            key or self.world.user, self.world.at.router, data, value_wei=value_wei
        )
        assert await self.state() == before
        return reason

    async def _nothing_stays(self) -> None:
        """A swap leaves nothing of the three tokens, nor native ones, with the Router or the executor."""
        world = self.world
        left = await world.balances(world.at.router, world.at.executor)
        assert set(left.values()) == {0}
        assert await world.chain.balance(world.at.router) == 0

    # --- State ----------------------------------------------------------------------------------------

    async def state(self) -> dict[str, bytes | int]:
        """Balances of all accounts and contracts, and the user's WETH allowance for the Router."""
        world, at = self.world, self.world.at
        people = (world.user, world.maker, self.rival, world.taker, world.stranger)
        holders = {*(key.address for key in people), at.router, at.executor, at.fee_vault}
        calls = {
            f"balance {token.hex()} {holder.hex()}": EthCall(token, calldata.balance_of(holder))
            for token in (world.weth, world.usdc, world.dai)
            for holder in holders
        }
        calls["allowance"] = EthCall(world.weth, calldata.allowance(world.user.address, at.router))
        answers = await world.chain.call_many(list(calls.values()))
        state: dict[str, bytes | int] = {}
        for name, answer in zip(calls, answers, strict=True):
            assert isinstance(answer, bytes), answer
            state[name] = answer
        state["native of the Router"] = await world.chain.balance(at.router)
        return state

    async def owed(self, account: bytes, token: bytes) -> int:
        """Fees that the vault owes an account, raw units of a token."""
        return await self.world.ask(self.world.at.fee_vault, router_calldata.owed(account, token))

    async def claim(self, token: bytes, key: SigningKey | None = None) -> int:
        """The partner, or another, has its fees sent to itself; returns how much that was."""
        owner = key or self.world.partner
        before = await self.world.balance(token, owner)
        await self.world.send(owner, self.world.at.fee_vault, router_calldata.claim([token], owner.address))
        return await self.world.balance(token, owner) - before


def step_failed(words: str = UNFILLED, step: int = 0) -> str:
    """As the executor says it: the reason within is that of a `require`."""
    return f"StepFailed(step {step}, reason {words})"


def told(name: str, **members: int | bytes) -> str:
    """A custom error as it is told, with its members: numbers, or addresses."""
    values = {key: f"0x{got.hex()}" if isinstance(got, bytes) else str(got) for key, got in members.items()}
    return f"{name}({', '.join(f'{key} {value}' for key, value in values.items())})"


async def a_venue(world: World) -> Venue:
    """The maker has 100,000 USDC, the user ten WETH; the rival has nothing yet."""
    await world.give(world.maker, world.usdc, 100_000 * USDC, world.at.rfq)
    await world.give(world.user, world.weth, 10 * ONE, world.at.router)
    return Venue(world, person(7), await world.now_s() + HOUR_S)


async def a_wide_venue(world: World) -> Venue:
    """The rival has 100,000 USDC too, and both makers as many DAI."""
    venue = await a_venue(world)
    await world.chain.set_balance(venue.rival.address, ONE)
    await world.give(venue.rival, world.usdc, 100_000 * USDC, world.at.rfq)
    for maker in (world.maker, venue.rival):
        await world.give(maker, world.dai, 100_000 * ONE, world.at.rfq)
    return venue
