"""Random calls to the contracts: an account loses only funds that its own signature or call gave.

`make test-long` makes 50,000 steps, and plants faults into the contracts, which the fuzz has to find within
PLANTED_STEPS: a minute.
"""

import random
import shutil
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from cambist.codecs.contracts import calldata, owner_calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain import artifacts
from cambist.engine.chain.artifacts import abi_of, artifact, known_errors
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from support.chain.evm_programs import TRIES_AND_TELLS, assembled, deploys
from support.chain.world import MOST, ONE, World, a_world
from support.contracts.agent_desks import a_desk
from support.contracts.contract_compiler import SOURCES, compiled_again
from support.contracts.contract_fuzz import FEE_BPS, Fuzz
from support.contracts.settling import Market, a_market
from support.examples import IS_LONG, examples
from support.programs import program

pytestmark = pytest.mark.seldom

STOCK = 10**30


async def a_fuzz(world: World, market: Market, seed: int) -> Fuzz:
    """Owners, makers and agents have plenty of each token, and have allowed what they must."""
    many = await create(world.chain, world.owner, "DevMulticall")
    odd = await world.new_token("DevTokenWithoutReturn", "NONE", 6)
    rounds = await world.new_token("DevToken", "ROUNDS")
    taxed, calling = [await world.new_token("DevToken", name) for name in ("TAXED", "CALLS")]
    tokens = (world.weth, world.usdc, odd, rounds, taxed, calling)
    owners = (world.user, world.taker, world.stranger)
    desk = await a_desk(world)
    for token in tokens:
        for key in (*owners, world.maker):
            if token == world.weth:
                await world.chain.set_balance(key.address, 10**9 * ONE)
                await world.mint(token, key, 10**8 * ONE)
            else:
                await world.mint(token, key, STOCK)
            for spender in (world.at.delta, world.at.router, world.at.rfq):
                await world.approve(key, token, spender)
        if token == world.weth:
            await world.send(world.user, token, calldata.transfer(market.agent, 10**7 * ONE))
        else:
            await world.mint(token, market.agent, STOCK)
            await world.mint(token, desk.address, STOCK)
    await world.send(world.owner, rounds, selector("setRounding(uint256)") + uint_word(1))
    await world.send(world.owner, taxed, selector("setTransferFee(uint256)") + uint_word(FEE_BPS))
    intruder = await _an_intruder(world, tokens)
    entries = tuple(_entries(world))
    vaults = tuple([(await _a_vault(world, token, owners), token) for token in tokens if token != calling])
    handler = await create(world.chain, world.owner, "DevHandler")
    for token in tokens:
        if token == world.weth:
            await world.send(world.user, token, calldata.transfer(handler, 10**6 * ONE))
        else:
            await world.mint(token, handler, STOCK)
    rng = random.Random(seed)
    return Fuzz(
        world, market, rng, tokens, desk, many, taxed, calling, intruder, vaults, handler, owners, entries
    )


async def _a_vault(world: World, asset: bytes, owners: Sequence[SigningKey]) -> bytes:
    """Deploy a vault that anyone can turn against its users; Delta may take the owners' shares."""
    vault = await create(world.chain, world.owner, "DevFickleVault", address_word(asset))
    for key in owners:
        await world.approve(key, asset, vault)
        deposit = selector("deposit(uint256,address)") + uint_word(10**6 * ONE) + address_word(key.address)
        await world.send(key, vault, deposit)
        await world.send(key, asset, calldata.approve(vault, 0))
        await world.approve(key, vault, world.at.delta)
    return vault


async def _an_intruder(world: World, tokens: Sequence[bytes]) -> bytes:
    """Deploy a contract that makes the call in its calldata, has every token, and is a relayer of Delta."""
    found = (await world.send(world.stranger, b"", deploys(assembled(TRIES_AND_TELLS)))).contract
    assert found is not None
    for token in tokens:
        if token == world.weth:
            await world.send(world.user, token, calldata.transfer(found, 10**6 * ONE))
        else:
            await world.mint(token, found, STOCK)
        for spender in (world.at.router, world.at.rfq):
            call = address_word(token) + calldata.approve(spender, MOST)
            await world.send(world.stranger, found, call)
    await world.send(world.owner, world.at.delta, owner_calldata.set_relayer(found, allowed=True))
    return found


def _entries(world: World) -> Iterator[tuple[bytes, bytes]]:
    at = world.at
    places = {
        "Delta": at.delta,
        "Rfq": at.rfq,
        "Router": at.router,
        "RfqExecutor": at.executor,
        "FeeVault": at.fee_vault,
        "Bridges": at.bridges,
        "AgentCaller": caller_of(at.delta, "ann"),
    }
    for name, place in places.items():
        selectors = {
            signature.partition("(")[0]: found for signature, found in artifact(name).selectors().items()
        }
        for entry in abi_of(name):
            if entry["type"] == "function" and entry["stateMutability"] not in ("view", "pure"):
                yield place, selectors[entry["name"]]


STEPS = 1_250
"""50,000 where the run is one that searches."""
PLANTED_STEPS = 4_000
SETTLING, NON_REENTRANT = "lib/Settling.sol", "lib/NonReentrant.sol"
PLANTED = {
    "a sale has no minimum": (
        SETTLING,
        "if (net < part.destAmount) revert BelowMinimum(net, part.destAmount);",
        "if (arrived < part.destAmount) revert BelowMinimum(arrived, part.destAmount);",
    ),
    "a purchase has no minimum": (
        SETTLING,
        "if (received < part.destAmount) revert BelowMinimum(received, part.destAmount);",
        "if (arrived < part.destAmount) revert BelowMinimum(arrived, part.destAmount);",
    ),
    "agents share a caller": (SETTLING, "caller = callerOf(execution.agent)"),
    "a vault takes more shares than were signed": (
        "ProductiveSettler.sol",
        "uint256 most = Math.ceilDiv(order.shares * amount, order.srcAmount);",
        "if (shares > most) revert TooManyShares(shares, most);",
    ),
    "a contract at work is open": (NON_REENTRANT, "if (entered) revert Reentered();"),
}
"""A file, and the text that a fault takes out of it: a check, or the agent by whose caller calls are made."""
SHARED = 'caller = callerOf(keccak256("ann"))'


async def _a_fuzz() -> Fuzz:
    chain = EmbeddedChain(31_337, lambda: int(time.time()), {}, known_errors())
    world = await a_world(chain)
    return await a_fuzz(world, await a_market(world), seed=19)


async def test_nobody_loses_what_was_not_given() -> None:
    fuzz, steps = await _a_fuzz(), examples(STEPS)
    for _ in range(steps):
        await fuzz.step()
    for done in ("settle done", "cross done", "swap done", "fill done", "turned away", "entered beside"):
        assert fuzz.did[done] > steps // 100, fuzz.did
    for done in ("vault done", "handle done", "bridged"):
        assert fuzz.did[done] > steps // 200, fuzz.did
    assert len(fuzz.entries) > 50
    if steps >= STEPS:
        assert set(fuzz.entries) <= fuzz.entered


if IS_LONG:  # the compiler takes a quarter of a minute for each

    @pytest.mark.oracle
    @pytest.mark.parametrize("fault", PLANTED)
    async def test_a_planted_fault_is_found(
        fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program("npm-packages")
        sources = Path(shutil.copytree(SOURCES, tmp_path / "contracts"))
        file, *texts = PLANTED[fault]
        text = (sources / file).read_text(encoding="utf-8")
        for removed in texts:
            assert text.count(removed) == 1, removed
            text = text.replace(removed, SHARED if removed.startswith("caller") else "")
        (sources / file).write_text(text, encoding="utf-8")
        compiled_again(sources, file, sources / "artifacts")
        monkeypatch.setattr(artifacts, "FOLDER", sources / "artifacts")
        artifacts.artifact.cache_clear()
        try:
            fuzz, found = await _a_fuzz(), False
            for _ in range(PLANTED_STEPS):
                try:
                    await fuzz.step()
                except AssertionError:
                    found = True
                    break
            assert found, fuzz.did
        finally:
            artifacts.artifact.cache_clear()
