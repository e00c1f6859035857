"""Reads the share prices of a chain's yield strategies at intervals, and lists the strategies with their APR.

    every STRATEGY_LOOK_S: latest block -> asset and share price of each vault, at that block -> SharePrices

A vault that does not answer is left out of the list until it answers; its history stays.

Source: interop.md 3, strategies.
Choice: Keys of the list of strategies are lower-case addresses of the underlying tokens; `address` beside
    them has its checksum. A strategy whose vault was not read yet is missing.
"""

from collections.abc import Iterable
from typing import NoReturn

import structlog
import trio

from .....codecs.contracts.vault_calldata import convert_to_assets, vault_amount, vault_asset
from .....codecs.messages.delta_messages import Strategies, Strategy, StrategyToken
from .....config.chains import StrategySettings
from .....config.errors import ChainError
from .....config.limits import VAULT_GAS_MAX
from .....config.timeouts import STRATEGY_LOOK_S
from .....crypto.addresses import to_checksum
from .....crypto.hexadecimal import to_hex
from ....chain.port import Chain, EthCall
from ...served.asking import latest_block
from ..orders.vault_checks import asset_call, vaults_of
from .share_prices import SharePrice, SharePrices

_log = structlog.get_logger("cambist.venue")
_SHARES = 10**18  # shares that a share price is for, whatever the decimals of the shares


class YieldWatch:
    """Watch of the yield strategies of one chain. `run` is its task.

    Args:
        strategies: the chain's strategies in the settings.
    """

    def __init__(self, chain: Chain, strategies: Iterable[StrategySettings]) -> None:
        self._chain = chain
        self._vaults = vaults_of(strategies)
        self._prices = {vault: SharePrices(strategy.fee_bps) for vault, strategy in self._vaults.items()}
        self._assets: dict[bytes, bytes] = {}

    async def run(self) -> NoReturn:
        """Read the share prices at intervals until cancelled; a failed read waits for the next interval."""
        is_told = False
        while self._vaults:
            try:
                await self.look()
                is_told = False
            except ChainError as error:
                if not is_told:
                    _log.warning("vaults are not read", chain_id=self._chain.chain_id, detail=str(error))
                is_told = True
            await trio.sleep(STRATEGY_LOOK_S)
        await trio.sleep_forever()

    async def look(self) -> None:
        """Read asset and share price of each vault at the latest block.

        Raises:
            ChainError: no node answers.
        """
        header, vaults = await latest_block(self._chain), list(self._vaults)
        data = convert_to_assets(_SHARES)
        calls = [asset_call(vault) for vault in vaults]
        calls += [EthCall(vault, data, gas_max=VAULT_GAS_MAX) for vault in vaults]
        answers = await self._chain.call_many(calls, header.hash)
        for at, vault in enumerate(vaults):
            asset, assets = vault_asset(answers[at]), vault_amount(answers[len(vaults) + at])
            if asset is None or assets is None:
                self._assets.pop(vault, None)
            else:
                self._assets[vault] = asset
                self._prices[vault].add(SharePrice(header.time_s, assets))

    def listed(self) -> Strategies:
        """List the chain's strategies whose vaults answer, by underlying token."""
        found: dict[bytes, list[Strategy]] = {}
        for vault, settings in self._vaults.items():
            asset = self._assets.get(vault)
            if asset is not None:
                apr = self._prices[vault].apr()
                found.setdefault(asset, []).append(Strategy(to_checksum(vault), settings.name, apr))
        return {
            to_hex(asset): StrategyToken(to_checksum(asset), tuple(some)) for asset, some in found.items()
        }
