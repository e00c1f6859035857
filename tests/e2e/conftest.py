"""A world on each kind of chain in turn: the same stories hold on the embedded one and on a real node.

It is made once on each; every story begins at the snapshot taken then. A story that rolls back the block of
the snapshot leaves the next one to make a world of its own. E2E_CHAINS names the kinds: `embedded`, `anvil`,
and `both`, on which each step is made on the two at once and everything that comes of it is compared.
"""

import os
import time
from collections.abc import AsyncIterator, Iterator

import msgspec
import pytest

from cambist.engine.chain.anvil import AnvilChain
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.embedded import EmbeddedChain
from cambist.engine.chain.evm import IS_INSTALLED
from cambist.engine.chain.port import DevChain
from cambist.engine.routing import firm_desk
from support.anvil import CHAIN_ID, Anvil, opened
from support.mirrored_chain import MirroredChain
from support.settling import Market, a_market
from support.world import World, a_world

CHAINS = [
    kind if kind == "embedded" else pytest.param(kind, marks=pytest.mark.anvil)
    for kind in os.environ.get("E2E_CHAINS", "embedded anvil" if IS_INSTALLED else "anvil").split()
]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Stories marked `one_chain` are not for `both`, where each step is made on the two in turn."""
    apart = [item for item in items if "[both" in item.name and item.get_closest_marker("one_chain")]
    config.hook.pytest_deselected(items=apart)
    items[:] = [item for item in items if item not in apart]


class Made(msgspec.Struct):
    """A world, the snapshot that leads back to it, and the hash of the latest block then."""

    world: World
    snapshot: int
    head: bytes


@pytest.fixture
def no_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A maker is late by the clock: that a stall of ours is no fault of its is a story of unit tests."""
    monkeypatch.setattr(firm_desk, "FIRM_BEAT_S", 3_600.0)


@pytest.fixture(scope="session")
def made() -> dict[str, Made]:
    """By the kind of chain."""
    return {}


@pytest.fixture(scope="session")
def embedded_of_stories() -> EmbeddedChain:
    return _embedded()


@pytest.fixture(scope="session")
def anvil_of_stories() -> Iterator[Anvil]:
    """One that no other test resets."""
    with Anvil() as process:
        yield process


@pytest.fixture(params=CHAINS)
async def world(request: pytest.FixtureRequest, made: dict[str, Made]) -> AsyncIterator[World]:
    """Everything deployed, nothing minted, mining at once."""
    if request.param == "embedded":
        yield await _as_made(made, request.param, request.getfixturevalue("embedded_of_stories"))
    elif request.param == "anvil":
        anvil = request.getfixturevalue("anvil_of_stories")
        async with AnvilChain.open(anvil.chain_id, anvil.settings, known_errors()) as chain:
            yield await _as_made(made, request.param, chain)
    else:
        async with opened(request.getfixturevalue("anvil")) as chain:
            yield await a_world(MirroredChain(_embedded(), chain))


def _embedded() -> EmbeddedChain:
    return EmbeddedChain(CHAIN_ID, lambda: int(time.time()), {}, known_errors())


async def _as_made(made: dict[str, Made], kind: str, chain: DevChain) -> World:
    await chain.set_automine(on=True)
    first = made.get(kind)
    if first is not None and await chain.block(first.head) is not None:
        await chain.restore(first.snapshot)
        world = msgspec.structs.replace(first.world, chain=chain)
    else:
        if isinstance(chain, AnvilChain):
            await chain.reset()
        world = await a_world(chain)
    last = await chain.block()
    assert last is not None
    if last.time_s < (now_s := int(time.time())):
        await chain.set_time(now_s)  # an anvil's clock goes on from the snapshot's block
    await chain.mine()  # its time is now, however long ago the world was made
    head = await chain.block()
    assert head is not None
    made[kind] = Made(world, await chain.snapshot(), head.hash)
    return world


@pytest.fixture
async def market(world: World) -> Market:
    """Everybody has what they trade, and has allowed what they must."""
    return await a_market(world)
