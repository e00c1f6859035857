"""A chain as `cambist devnet` furnishes it, made once in each test process.

Contracts, tokens and what accounts have are those of `furnish`; a snapshot leads back to them. Who takes the
chain has it alone; whoever wants one meanwhile, or after too many blocks, gets one that is furnished anew.
"""

import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager

from msgspec import Struct

from cambist.config.chains import ChainSettings
from cambist.config.errors import ChainError
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.address_book import DeployedChain
from cambist.engine.dev.devnet.furnish import furnish
from cambist.engine.dev.embedded.embedded import EmbeddedChain


class _Made(Struct):
    """A furnished chain that nobody has, and the snapshot that leads back to it."""

    chain: EmbeddedChain
    entry: DeployedChain
    snapshot: int


_free: list[_Made] = []


@asynccontextmanager
async def warm_chain(
    chain_id: int,
    keys: Sequence[SigningKey],
    more: Callable[[EmbeddedChain, DeployedChain], Awaitable[None]],
) -> AsyncIterator[tuple[EmbeddedChain, DeployedChain]]:
    """A furnished chain whose latest block is of now.

    Args:
        chain_id, keys: as of a devnet; the same in all calls of a process.
        more: what is done to a chain once it is furnished, the same in all calls as well.
    """
    made = await _restored() or await _new(chain_id, keys, more)
    await made.chain.set_automine(on=True)
    await made.chain.mine()  # its time is now, however long ago it was made
    yield made.chain, made.entry
    _free.append(made)  # a story that failed does not come here, and the next one gets a new chain


async def _restored() -> _Made | None:
    """The one that is free, as it was made; None where there is none, or none that leads back."""
    while _free:
        made = _free.pop()
        try:
            await made.chain.restore(made.snapshot)
        except ChainError:
            continue
        made.snapshot = await made.chain.snapshot()
        return made
    return None


async def _new(
    chain_id: int,
    keys: Sequence[SigningKey],
    more: Callable[[EmbeddedChain, DeployedChain], Awaitable[None]],
) -> _Made:
    chain = EmbeddedChain(chain_id, lambda: int(time.time()), {}, known_errors())
    entry = await furnish(chain, keys, ChainSettings(name="devnet"))
    await more(chain, entry)
    return _Made(chain, entry, await chain.snapshot())
