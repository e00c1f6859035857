"""JSON-RPC methods of development nodes alone: mining, time, balances, snapshots, re-organisations.

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
    "hardhat_getAutomine": "anvil_getAutomine",
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
    """JSON-RPC methods that control a development chain: mining, time, balances, re-organisations.

    Numbers of requests have types of their own, and the chain keeps what it is given in blocks and in a file:
    it gets plain numbers.
    """

    def __init__(self, chain: EmbeddedChain) -> None:
        self._chain = chain

    def methods(self) -> Methods:
        """Return the JSON-RPC methods that control the chain, by name, e.g. `evm_mine`, and their aliases."""
        named = {
            "evm_mine": Method(given.OfEvmMine, self.evm_mine),
            "evm_increaseTime": Method(given.OfSeconds, self.pass_time),
            "evm_setNextBlockTimestamp": Method(given.OfSeconds, self.set_time),
            "evm_snapshot": Method(given.Nothing, self.snapshot),
            "evm_revert": Method(given.OfFilterId, self.restore),
            "evm_setAutomine": Method(given.OfSwitch, self.set_automine),
            "anvil_getAutomine": Method(given.Nothing, self.automine),
            "anvil_mine": Method(given.OfMine, self.mine),
            "anvil_setBalance": Method(given.OfBalance, self.set_balance),
            "anvil_setNextBlockBaseFeePerGas": Method(given.OfWei, self.set_base_fee),
            "anvil_reorg": Method(given.OfReorg, self.reorganise),
            "anvil_dropTransaction": Method(given.OnlyHash, self.drop),
        }
        return named | {alias: named[name] for alias, name in _ALIASES.items()}

    async def evm_mine(self, params: given.OfEvmMine) -> str:
        """Answer `evm_mine`: mine a number of blocks, the first with the request's time, if one is given."""
        options = params.read()
        if options.timestamp is not None:
            await self._chain.set_time(int(options.timestamp))
        await self._chain.mine(int(options.blocks))
        return "0x0"

    async def mine(self, params: given.OfMine) -> None:
        """Answer `anvil_mine`: mine a number of blocks, whose times are `interval` seconds apart."""
        if not params.interval:
            await self._chain.mine(int(params.blocks))
            return
        for number in range(params.blocks):
            if number:
                await self._chain.pass_time(int(params.interval))
            await self._chain.mine()

    async def pass_time(self, params: given.OfSeconds) -> int:
        """Answer `evm_increaseTime`: add seconds to the times of all later blocks.

        The answer is the number of seconds by which block times are then ahead of the wall clock.
        """
        return await self._chain.pass_time(int(params.seconds))

    async def set_time(self, params: given.OfSeconds) -> None:
        """Answer `evm_setNextBlockTimestamp`: set the time of the next block, Unix seconds."""
        await self._chain.set_time(int(params.seconds))

    async def snapshot(self, _: given.Nothing) -> str:
        """Answer `evm_snapshot`: save the chain's state; return the number of the snapshot, hexadecimal."""
        return hex(await self._chain.snapshot())

    async def restore(self, params: given.OfFilterId) -> bool:
        """Answer `evm_revert`: return the chain to a saved state, and delete the snapshot.

        The answer is False if the snapshot is unknown or cannot be restored.
        """
        try:
            await self._chain.restore(int(params.id))
        except ChainError:
            return False
        return True

    async def automine(self, _: given.Nothing) -> bool:
        """Answer `anvil_getAutomine`: whether each sent transaction is mined at once."""
        return await self._chain.is_automine()

    async def set_automine(self, params: given.OfSwitch) -> bool:
        """Answer `evm_setAutomine`: set whether each sent transaction is mined at once; return True."""
        await self._chain.set_automine(on=params.on)
        return True

    async def set_balance(self, params: given.OfBalance) -> None:
        """Answer `anvil_setBalance`: set an account's balance of native tokens, in wei."""
        await self._chain.set_balance(bytes(params.address), int(params.wei))

    async def set_base_fee(self, params: given.OfWei) -> None:
        """Answer `anvil_setNextBlockBaseFeePerGas`: set the next block's base fee, in wei per unit of gas."""
        await self._chain.set_base_fee(int(params.wei))

    async def reorganise(self, params: given.OfReorg) -> None:
        """Answer `anvil_reorg`: replace the last `depth` blocks by others; see `DevChain.reorganise`."""
        again = [(bytes(raw), int(at)) for raw, at in params.transactions]
        if any(at >= params.depth for _, at in again):
            raise RpcFault(
                INVALID_PARAMS, f"invalid argument 1: transactions: expected blocks below {params.depth}"
            )
        await self._chain.reorganise(int(params.depth), again)

    async def drop(self, params: given.OnlyHash) -> str | None:
        """Answer `anvil_dropTransaction`: remove a waiting transaction; return its hash.

        The answer is None if no transaction with this hash waits.
        """
        tx_hash = bytes(params.hash)
        waits = await self._chain.knows(tx_hash) and await self._chain.receipt(tx_hash) is None
        await self._chain.drop(tx_hash)
        return to_hex(tx_hash) if waits else None
