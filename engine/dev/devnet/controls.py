"""Methods of development nodes alone: mining, time, balances, snapshots, re-organisations.

Source: the methods of anvil and hardhat (evm_*, anvil_*, hardhat_*).
"""

from ....config.errors import ChainError
from ....crypto.hexadecimal import to_hex
from ..embedded.embedded import EmbeddedChain
from . import parameters as given
from .facade import Method, Methods
from .faults import INVALID_PARAMS, RpcFault

_ALIASES = {
    "hardhat_mine": "anvil_mine",
    "hardhat_setBalance": "anvil_setBalance",
    "hardhat_dropTransaction": "anvil_dropTransaction",
    "hardhat_setNextBlockBaseFeePerGas": "anvil_setNextBlockBaseFeePerGas",
    "anvil_setNextBlockTimestamp": "evm_setNextBlockTimestamp",
    "anvil_increaseTime": "evm_increaseTime",
    "anvil_snapshot": "evm_snapshot",
    "anvil_revert": "evm_revert",
    "anvil_setAutomine": "evm_setAutomine",
}


class Controls:
    """JSON-RPC methods that control a development chain."""

    def __init__(self, chain: EmbeddedChain) -> None:
        self._chain = chain

    def methods(self) -> Methods:
        """Return the methods, by JSON-RPC name."""
        named = {
            "evm_mine": Method(given.OfEvmMine, self.evm_mine),
            "evm_increaseTime": Method(given.OfSeconds, self.pass_time),
            "evm_setNextBlockTimestamp": Method(given.OfSeconds, self.set_time),
            "evm_snapshot": Method(given.Nothing, self.snapshot),
            "evm_revert": Method(given.OfFilterId, self.restore),
            "evm_setAutomine": Method(given.OfSwitch, self.set_automine),
            "anvil_mine": Method(given.OfMine, self.mine),
            "anvil_setBalance": Method(given.OfBalance, self.set_balance),
            "anvil_setNextBlockBaseFeePerGas": Method(given.OfWei, self.set_base_fee),
            "anvil_reorg": Method(given.OfReorg, self.reorganise),
            "anvil_dropTransaction": Method(given.OnlyHash, self.drop),
        }
        return named | {alias: named[name] for alias, name in _ALIASES.items()}

    async def evm_mine(self, asked: given.OfEvmMine) -> str:
        """Mine a block, or the requested number, the first at the requested time."""
        options = asked.read()
        if options.timestamp is not None:
            await self._chain.set_time(options.timestamp)
        await self._chain.mine(options.blocks)
        return "0x0"

    async def mine(self, asked: given.OfMine) -> None:
        """Mine blocks, `interval` seconds apart."""
        if not asked.interval:
            await self._chain.mine(asked.blocks)
            return
        for number in range(asked.blocks):
            if number:
                await self._chain.pass_time(asked.interval)
            await self._chain.mine()

    async def pass_time(self, asked: given.OfSeconds) -> int:
        """Move the times of later blocks forward; returns their total lead over the clock, in seconds."""
        return await self._chain.pass_time(asked.seconds)

    async def set_time(self, asked: given.OfSeconds) -> None:
        """Set the next block's time."""
        await self._chain.set_time(asked.seconds)

    async def snapshot(self, _: given.Nothing) -> str:
        """Take a snapshot; returns its number."""
        return hex(await self._chain.snapshot())

    async def restore(self, asked: given.OfFilterId) -> bool:
        """Restore a snapshot, which uses it up; False if it is unknown or cannot be restored."""
        try:
            await self._chain.restore(asked.id)
        except ChainError:
            return False
        return True

    async def set_automine(self, asked: given.OfSwitch) -> bool:
        """Switch automining, by which each transaction is mined at once."""
        await self._chain.set_automine(on=asked.on)
        return True

    async def set_balance(self, asked: given.OfBalance) -> None:
        """Set an account's balance of native tokens, in wei."""
        await self._chain.set_balance(bytes(asked.address), asked.wei)

    async def set_base_fee(self, asked: given.OfWei) -> None:
        """Set the next block's base fee."""
        await self._chain.set_base_fee(asked.wei)

    async def reorganise(self, asked: given.OfReorg) -> None:
        """Replace the last blocks by others; see `DevChain.reorganise`."""
        again = [(bytes(raw), int(at)) for raw, at in asked.transactions]
        if any(at >= asked.depth for _, at in again):
            raise RpcFault(
                INVALID_PARAMS, f"invalid argument 1: transactions: expected blocks below {asked.depth}"
            )
        await self._chain.reorganise(asked.depth, again)

    async def drop(self, asked: given.OnlyHash) -> str | None:
        """Remove a waiting transaction; returns its hash, or None if no transaction of that hash waits."""
        tx_hash = bytes(asked.hash)
        waits = await self._chain.knows(tx_hash) and await self._chain.receipt(tx_hash) is None
        await self._chain.drop(tx_hash)
        return to_hex(tx_hash) if waits else None
