"""The bridges between the chains of a devnet: a funded relayer, an attester, and their service on a port."""

from collections.abc import Sequence
from socket import socket as Socket  # noqa: N812 - `socket` is the module's name

import trio

from ....crypto.hexadecimal import parse_hex
from ....crypto.secp256k1 import SigningKey
from ...chain.deploy.address_book import DeployedChain
from ...chain.port import DevChain
from ..devnet.bridge_places import bridge_keys, devnet_domain, fund_relayer
from ..devnet.furnish import BALANCE_WEI
from .attester import AttestEnd, DevAttester
from .bridge_service import BridgeService
from .lanes import LaneEnd, RelayedToken
from .relayer import DevRelayer, RelayEnd

_STOCK = {"USDC": 1_000_000, "DAI": 1_000_000, "USDT": 1_000_000, "WBTC": 100, "WETH": 100}
"""Whole tokens of the relayer on each chain."""
_GAS_MICRO = {"WBTC": 1, "WETH": 10}
_GAS_MICRO_USUAL = 20_000


class DevnetBridge:
    """Bridges between the chains of a devnet. `run` is their task.

    Args:
        listener: listening socket of the service.
        owner: key of the devnet's first account.
    """

    def __init__(self, listener: Socket, owner: SigningKey) -> None:
        self._listener = listener
        self._keys = bridge_keys(owner)

    async def run(
        self,
        chains: Sequence[tuple[DevChain, DeployedChain]],
        *,
        task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Fund the relayer, then serve until cancelled."""
        relay_ends, attest_ends = {}, {}
        for chain, entry in chains:
            pool = parse_hex(entry.spoke_pool, "spokePool")
            # Native tokens first: the transactions of `fund_relayer` cost gas, and one of them wraps ETH.
            for key in self._keys:
                await chain.set_balance(key.address, BALANCE_WEI)
            stock = [
                (parse_hex(token.address, symbol), _STOCK[symbol] * 10**token.decimals)
                for symbol, token in entry.tokens.items()
            ]
            await fund_relayer(
                chain, self._keys.relayer, pool, parse_hex(entry.wrapped_native, "wrappedNative"), stock
            )
            relay_ends[chain.chain_id] = RelayEnd(chain, pool)
            transmitter = parse_hex(entry.message_transmitter, "messageTransmitter")
            attest_ends[devnet_domain(chain.chain_id)] = AttestEnd(chain, transmitter)
        relayer = DevRelayer(relay_ends, _tokens(chains), self._keys.relayer, self._keys.pool_owner)
        attester = DevAttester(attest_ends, self._keys.attester)
        service = BridgeService(relayer, attester)
        async with trio.open_nursery() as nursery:
            await nursery.start(relayer.run)
            await nursery.start(attester.run)
            await nursery.start(service.server.serve, self._listener)
            task_status.started()


def _tokens(chains: Sequence[tuple[DevChain, DeployedChain]]) -> tuple[RelayedToken, ...]:
    """List the tokens that all chains have, by their symbols."""
    symbols = set.intersection(*(set(entry.tokens) for _, entry in chains))
    return tuple(
        RelayedToken(
            symbol,
            {
                chain.chain_id: LaneEnd(
                    parse_hex(entry.tokens[symbol].address, symbol), entry.tokens[symbol].decimals
                )
                for chain, entry in chains
            },
            _GAS_MICRO.get(symbol, _GAS_MICRO_USUAL),
        )
        for symbol in sorted(symbols)
    )
