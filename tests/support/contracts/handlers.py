"""Handlers of external orders: one that acts as an order's data says, and the example, with its vault."""

from typing import Any

from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, uint_word
from cambist.codecs.contracts.calldata import order_infos_tail
from cambist.codecs.contracts.delta_calldata import agent_caller
from cambist.engine.chain.deploy.deploy import create
from support.chain.world import World

DELIVER, REFUSE, WASTE, BOMB, CALL = range(5)
"""Modes of contracts/dev/DevHandler.sol, in its sequence."""


def acts(mode: int, delivered: int = 0, back: int = 0, target: bytes = bytes(20), data: bytes = b"") -> bytes:
    """Member `data` of an order, as DevHandler reads it."""
    words = (uint_word(mode), uint_word(delivered), uint_word(back), address_word(target))
    return uint_word(32) + encode(*words, bytes_tail(data))


class Deposits:
    """A vault of USDC and the handler that deposits into it."""

    def __init__(self, world: World, vault: bytes, handler: bytes) -> None:
        self.world = world
        self.vault = vault
        self.handler = handler

    def fills(self, *quotes: Any) -> bytes:
        """Member `data` that sells the source to these makers: IRfq.OrderInfo[]."""
        return encode(order_infos_tail([self.world.info(quote) for quote in quotes]))


async def a_vault_handler(world: World) -> Deposits:
    """A DevVault of USDC, and the VaultHandler that deposits into it."""
    names = bytes_tail(b"USDC vault"), bytes_tail(b"yvUSDC")
    vault = await create(world.chain, world.owner, "DevVault", encode(address_word(world.usdc), *names))
    caller = uint_word(await world.ask(world.at.delta, agent_caller(bytes(32))))
    handler = await create(world.chain, world.owner, "VaultHandler", caller + address_word(world.at.rfq))
    return Deposits(world, vault, handler)


async def a_handler(world: World, usdc: int) -> bytes:
    """A DevHandler with a stock of USDC, raw units; its address, 20 bytes."""
    address = await create(world.chain, world.owner, "DevHandler")
    await world.mint(world.usdc, address, usdc)
    return address
