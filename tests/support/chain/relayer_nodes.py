"""A relayer on a real chain and a real store, here or as a program that is killed.

    support.chain.relayer_nodes:main STORE_URL NODE_URL WHERE COUNT

The program has `COUNT` effects mined and ends; it prints `ready`, `mined KEY HASH`, and `died WHERE` where it
kills itself with SIGKILL: at the first transaction, `signed` before it is handed in, `sent` after it, or
`never`.
"""

import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio

from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.custody.transaction_policy import PolicedRelayKey, TransactionPolicy
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.port import Chain, EthCall
from cambist.engine.chain.relay.fee_policy import FeePolicy
from cambist.engine.chain.relay.relay_state import RelayPolicy
from cambist.engine.chain.relay.relayer import Relayer
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.store.leases import Leases
from cambist.engine.store.store import Store
from support.chain.anvil import CHAIN_ID, KEYS
from support.patience import PATIENCE
from support.store.store_work import now_ms, store_at

GWEI = 10**9
CAP_WEI = 400 * GWEI
KEY = SigningKey(bytes.fromhex(KEYS[0]))
TARGETS = 1_000
GAS_MAX = 60_000_000  # more than a block has
POLICY = RelayPolicy(FeePolicy(CAP_WEI, 0, 5 * GWEI, 1_250), 3, 1_500, 16, 0)


def target(number: int) -> bytes:
    """An account that only the effect of that number pays: its balance counts how often it was mined."""
    return b"\xee" * 16 + number.to_bytes(4, "big")


def effect(number: int) -> tuple[str, EthCall]:
    """(key, call): one wei to an account of its own."""
    return f"effect {number}", EthCall(target(number), b"", value_wei=1, gas_max=50_000)


def relay_key() -> PolicedRelayKey:
    """The first funded account, which may send to all targets and to itself."""
    places = {(CHAIN_ID, KEY.address), *((CHAIN_ID, target(number)) for number in range(TARGETS))}
    return PolicedRelayKey(KEY, TransactionPolicy(frozenset(places), CAP_WEI, GAS_MAX, 1))


@asynccontextmanager
async def relaying(
    chain: Chain, store: Store, *, policy: RelayPolicy = POLICY, holder: str = "one", life_s: float = 5
) -> AsyncIterator[Relayer]:
    """A relayer, running, with the leases that it needs."""
    leases = Leases(store, holder, life_s=life_s, now_ms=now_ms)
    async with trio.open_nursery() as nursery:
        await nursery.start(leases.run)
        relayer = Relayer(chain, store, relay_key(), leases, policy, now_ms)
        running = trio.CancelScope()

        async def run() -> None:
            with running:
                await relayer.run()

        nursery.start_soon(run)
        try:
            yield relayer
        finally:
            running.cancel()
            nursery.cancel_scope.cancel()


class _Dying(AnvilChain):
    """A chain at whose door this process dies."""

    where = "never"

    async def send_raw(self, raw: bytes) -> bytes:
        if self.where == "signed":
            _die(self.where)
        tx_hash = await super().send_raw(raw)
        if self.where == "sent":
            _die(self.where)
        return tx_hash


def _die(where: str) -> None:
    os.write(1, f"died {where}\n".encode())
    os.kill(os.getpid(), signal.SIGKILL)


async def _main(store_url: str, node_url: str, where: str, count: int) -> None:
    _Dying.where = where
    async with (
        store_at(store_url) as store,
        _Dying.open(CHAIN_ID, NodeSettings(urls=(node_url,))) as chain,
        relaying(chain, store, holder=str(os.getpid()), life_s=PATIENCE) as relayer,
    ):
        os.write(1, b"ready\n")
        keys = [effect(number) for number in range(count)]
        for key, call in keys:
            await relayer.relay(key, call)
        for key, _ in keys:
            outcome = await relayer.wait(key, final=False)
            os.write(1, f"mined {key} {outcome.tx_hash.hex() if outcome.tx_hash else ''}\n".encode())


def main() -> None:
    """The program (`support.warm_processes`)."""
    trio.run(_main, sys.argv[1], sys.argv[2], sys.argv[3], int(sys.argv[4]))
