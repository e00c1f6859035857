"""A world on each kind of chain in turn: the same stories hold on the embedded one and on a real node.

Each chain's world is built once, and every story begins at its snapshot. A story that rolls back the
snapshot's block makes the next story build a new world. A run that takes a draw tells each story on one kind.
E2E_CHAINS names the kinds: `embedded`, `anvil`, and `both`, which runs each step on the two at once and
compares all results.
"""

import os
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import AsyncExitStack
from typing import Any

import msgspec
import pytest

from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import DevChain
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.trade.routing.firm import firm_desk
from support.bridge.two_chains import TwoChains, bridged
from support.chain.anvil import CHAIN_ID, OTHER_CHAIN_ID, Anvil, opened, set_to_now
from support.chain.mirrored_chain import MirroredChain
from support.chain.world import World, a_world
from support.contracts.settling import Market, a_market
from support.order_of_tests import drawn, is_drawn
from support.programs import has_program

KINDS = os.environ.get("E2E_CHAINS", "embedded anvil").split()


def _params(kinds: Iterable[str]) -> list[Any]:
    return [
        pytest.param(kind, marks=pytest.mark.needs("pyrevm") if kind == "embedded" else pytest.mark.anvil)
        for kind in kinds
    ]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Stories marked `one_chain` are not for `both`, where each step is made on the two in turn.

    Stories marked `embedded_by_default` run on other chains only if E2E_CHAINS names the chains.
    """
    marks = {"[both": "one_chain"}
    if is_free := has_program("pyrevm") and "E2E_CHAINS" not in os.environ:
        marks["[anvil"] = "embedded_by_default"
    apart = [
        item
        for item in items
        if any(start in item.name and item.get_closest_marker(mark) for start, mark in marks.items())
        or (is_free and is_drawn() and _is_left_to_other_chain(item))
    ]
    config.hook.pytest_deselected(items=apart)
    items[:] = [item for item in items if item not in apart]


def _is_left_to_other_chain(item: pytest.Item) -> bool:
    """Whether the order of this run draws another kind of chain for a story."""
    params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
    kind = params.get("world", params.get("two"))
    if kind is None or item.get_closest_marker("embedded_by_default"):
        return False
    story, _, ids = item.name.partition("[")
    others = [each for each in ids.removesuffix("]").split("-") if each != kind]
    return KINDS[drawn(f"{item.path.name} {story} {others}", len(KINDS))] != kind


class Made(msgspec.Struct):
    """A market in a world, the snapshot that leads back to it, and the hash of the latest block then.

    Attributes:
        market: None where nothing is stocked.
    """

    world: World
    market: Market | None
    snapshot: int
    head: bytes


@pytest.fixture
def no_excuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """A maker is late by the clock: that a stall of ours is no fault of its is a story of unit tests."""
    monkeypatch.setattr(firm_desk, "FIRM_BEAT_S", 3_600.0)


@pytest.fixture(scope="session")
def made() -> dict[tuple[str, bool], Made]:
    """By the kind of chain, and whether it is stocked."""
    return {}


@pytest.fixture(scope="session")
def embedded_of_stories() -> EmbeddedChain:
    return _embedded()


@pytest.fixture(scope="session")
def anvil_of_stories() -> Iterator[Anvil]:
    """Anvil process that no other test resets."""
    with Anvil() as process:
        yield process


@pytest.fixture(params=_params(KINDS))
async def world(request: pytest.FixtureRequest, made: dict[tuple[str, bool], Made]) -> AsyncIterator[World]:
    """Deployed contracts on a chain that mines at once; only a `market` has minted tokens."""
    kind, is_stocked = request.param, "market" in request.fixturenames
    if kind == "embedded":
        yield await _as_made(made, (kind, is_stocked), request.getfixturevalue("embedded_of_stories"))
    elif kind == "anvil":
        anvil = request.getfixturevalue("anvil_of_stories")
        async with AnvilChain.open(anvil.chain_id, anvil.settings, known_errors()) as chain:
            yield await _as_made(made, (kind, is_stocked), chain)
    else:
        async with opened(request.getfixturevalue("anvil")) as chain:
            world = await a_world(MirroredChain(_embedded(), chain))
            made[kind, is_stocked] = Made(world, await a_market(world) if is_stocked else None, 0, b"")
            yield world


@pytest.fixture
def market(request: pytest.FixtureRequest, world: World, made: dict[tuple[str, bool], Made]) -> Market:
    """Market whose traders hold the tokens that they trade and have given the necessary allowances."""
    market = made[request.node.callspec.params["world"], True].market
    assert market is not None
    return msgspec.structs.replace(market, world=world)


@pytest.fixture(params=_params(kind for kind in KINDS if kind != "both"))
async def two(request: pytest.FixtureRequest) -> AsyncIterator[TwoChains]:
    """Two chains of a kind that mine at once, with a world on each, bridges, relayer and attester."""
    async with AsyncExitStack() as owned:
        chains: dict[int, DevChain] = {
            chain_id: _embedded(chain_id) for chain_id in (CHAIN_ID, OTHER_CHAIN_ID)
        }
        if request.param == "anvil":
            for chain_id, name in zip(chains, ("anvil", "other_anvil"), strict=True):
                anvil = request.getfixturevalue(name)
                chains[chain_id] = await owned.enter_async_context(opened(anvil))
        yield await owned.enter_async_context((await bridged(chains)).served())


def _embedded(chain_id: int = CHAIN_ID) -> EmbeddedChain:
    return EmbeddedChain(chain_id, lambda: int(time.time()), {}, known_errors())


async def _as_made(made: dict[tuple[str, bool], Made], key: tuple[str, bool], chain: DevChain) -> World:
    """The world of the key, as it was made; or made now, on the bare one if it is stocked."""
    kind, is_stocked = key
    await chain.set_automine(on=True)
    found = await _found(made, key, chain)
    if found is None:
        base = await _found(made, (kind, False), chain)
        if base is None:
            if isinstance(chain, AnvilChain):
                await chain.reset()
            base = await _kept(made, (kind, False), chain, await a_world(chain), None)
        world = msgspec.structs.replace(base.world, chain=chain)
        found = await _kept(made, key, chain, world, await a_market(world)) if is_stocked else base
    await set_to_now(chain)
    await chain.mine()  # its time is now, however long ago the world was made
    return msgspec.structs.replace(found.world, chain=chain)


async def _found(made: dict[tuple[str, bool], Made], key: tuple[str, bool], chain: DevChain) -> Made | None:
    """The world of the key, with the chain back at it; None where the chain has lost its block."""
    known = made.get(key)
    if known is None or await chain.block(known.head) is None:
        return None
    await chain.restore(known.snapshot)
    return await _kept(made, key, chain, known.world, known.market)


async def _kept(
    made: dict[tuple[str, bool], Made],
    key: tuple[str, bool],
    chain: DevChain,
    world: World,
    market: Market | None,
) -> Made:
    """A snapshot leads back once, so that each return takes another."""
    head = await chain.block()
    assert head is not None
    made[key] = Made(world, market, await chain.snapshot(), head.hash)
    return made[key]
