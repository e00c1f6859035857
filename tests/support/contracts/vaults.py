"""Yield vaults of WETH in which the user has shares, and which act as a test says."""

from enum import IntEnum

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.contracts.calldata import approve
from cambist.engine.chain.deploy.deploy import create
from support.chain.world import ONE, World


class Mode(IntEnum):
    """Behaviours of contracts/dev/DevFickleVault.sol, in its sequence."""

    HONEST = 0
    PAUSED = 1
    CAPPED = 2
    FEE = 3
    SHORT = 4
    GREEDY = 5
    WASTE = 6
    BOMB = 7


class Vault:
    """A vault of WETH in which the user has one share a WETH: 3 WETH of the user's, 1 of the stranger's."""

    def __init__(self, world: World, address: bytes) -> None:
        self.world = world
        self.address = address

    async def acts(self, mode: Mode, by: int = 0) -> None:
        """Have the vault act so from now on."""
        data = selector("setMode(uint8,uint256)") + uint_word(mode) + uint_word(by)
        await self.world.send(self.world.stranger, self.address, data)

    async def earns(self, amount: int) -> None:
        """Give the vault WETH, so that its shares are worth more."""
        await self.world.mint(self.world.weth, self.world.stranger, amount)
        await self.world.send(self.world.stranger, self.world.weth, calldata.transfer(self.address, amount))

    async def loses(self, amount: int) -> None:
        """Have the vault lose WETH."""
        await self.world.send(
            self.world.stranger, self.address, selector("lose(uint256)") + uint_word(amount)
        )

    async def shares(self, who: bytes | None = None) -> int:
        """Shares of an account, by default the user's."""
        return await self.world.ask(self.address, calldata.balance_of(who or self.world.user.address))


async def a_vault(world: World) -> Vault:
    """A DevFickleVault of WETH: the user deposits 3 WETH and allows Delta the shares, the stranger 1 WETH."""
    address = await create(world.chain, world.owner, "DevFickleVault", address_word(world.weth))
    for key, amount in ((world.user, 3 * ONE), (world.stranger, ONE)):
        if key is world.stranger:
            await world.mint(world.weth, key, amount)
        await world.send(key, world.weth, approve(address, amount))
        data = selector("deposit(uint256,address)") + uint_word(amount) + address_word(key.address)
        await world.send(key, address, data)
    await world.approve(world.user, address, world.at.delta)
    return Vault(world, address)
