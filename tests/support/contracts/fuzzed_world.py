"""The people, tokens and contracts of a fuzz of the contracts: `a_fuzz`."""

import random
from collections.abc import Iterator, Sequence

from cambist.codecs.contracts import calldata, owner_calldata
from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import abi_of, artifact
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.trade.delta.bids.agent_caller import caller_of
from support.chain.evm_programs import TRIES_AND_TELLS, assembled, deploys
from support.chain.world import MOST, ONE, World
from support.contracts.agent_desks import a_desk
from support.contracts.contract_fuzz import FEE_BPS, Fuzz
from support.contracts.settling import Market

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
