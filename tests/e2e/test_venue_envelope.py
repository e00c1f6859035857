"""Options of POST /transactions, and its envelope's effect on the chain."""

import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts.abi import selector
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.artifacts import abi_of
from support.chain.world import ONE, USDC, World
from support.oracles import Oracle
from support.venue.venue_role import CHAIN_ID
from support.venue.venue_stories import RECEIVER, Story, a_venue_story

pytestmark = pytest.mark.one_chain  # makers and venue look at it all the while

BOOKS: dict[str, dict[str, Any]] = {
    "alpha": {"WETH/USDC": {"bids": [["2500", "5"]], "asks": [["2501", "50"]]}},
    "beta": {"WETH/USDC": {"bids": [["2499", "5"]], "asks": [["2502", "50"]]}},
}
GWEI = 10**9


@pytest.fixture
async def story(world: World, tmp_path: Path) -> AsyncIterator[Story]:
    async with a_venue_story(world, tmp_path, BOOKS) as story:
        yield story


async def test_the_envelope_is_the_documented_one(story: Story) -> None:
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    built = await story.build(route)
    world = story.world
    assert built.keys() == {"from", "to", "value", "data", "gasPrice", "gas", "chainId"}
    assert built["from"] == to_checksum(world.user.address)
    assert built["to"] == route["contractAddress"] == to_checksum(world.at.router)
    assert built["chainId"] == CHAIN_ID
    assert int(built["gas"]) < 600_000
    assert (await story.send(built, route))["user", "USDC"] == int(route["destAmount"])


async def test_the_price_of_gas_is_the_chains_or_the_callers(story: Story) -> None:
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    given = await story.build(route, {"gasPrice": 7 * GWEI})
    assert given["gasPrice"] == str(7 * GWEI)
    receipt = await story.submit(given)
    assert (receipt.succeeded, receipt.gas_price_wei) == (True, 7 * GWEI)
    by_tip = await story.build(route, {"eip1559": "true"})
    assert "gasPrice" not in by_tip
    receipt = await story.submit(by_tip)
    assert receipt.succeeded
    tip = int(by_tip["maxPriorityFeePerGas"])
    assert tip < receipt.gas_price_wei <= int(by_tip["maxFeePerGas"])
    both = await story.build(route, {"eip1559": "true", "gasPrice": 9 * GWEI})
    assert both["maxFeePerGas"] == str(9 * GWEI)
    assert (await story.submit(both)).succeeded


@pytest.mark.parametrize("is_anonymous", [False, True])
async def test_without_checks_a_swap_is_built_before_it_is_allowed(
    story: Story, *, is_anonymous: bool
) -> None:
    await story.allow("WETH", 0)
    route = await story.prices("SELL", "WETH", "USDC", ONE // 2)
    status, details = await story.not_built(route)
    assert (status, details.partition(":")[0]) == (400, "InsufficientAllowance")
    story.is_anonymous = is_anonymous
    built = await story.build(route, {"ignoreChecks": "true"})
    assert "gas" not in built
    assert await story.reverted(built) == "TRANSFER_FROM_FAILED"
    await story.allow("WETH", ONE // 2)
    assert (await story.send(built, route))["user", "USDC"] == int(route["destAmount"])


async def test_without_an_estimate_the_checks_are_made_all_the_same(story: Story) -> None:
    route = await story.prices("SELL", "WETH", "USDC", 7 * ONE)
    built = await story.build(route, {"ignoreGasEstimate": "true"})
    assert "gas" not in built
    assert (await story.send(built, route))["user", "USDC"] == int(route["destAmount"])
    await story.allow("WETH", ONE)
    status, told = await story.ask_transaction(route, {"ignoreGasEstimate": "true"})
    assert (status, told["errorType"]) == (400, "InsufficientAllowance")


async def test_what_the_user_does_not_have_is_not_built(story: Story) -> None:
    for src in ("WETH", "ETH"):
        await story.world.chain.set_balance(story.world.user.address, ONE)
        route = await story.prices("SELL", src, "USDC", 3 * ONE)
        if src == "WETH":
            other = story.world.stranger.address
            status, details = await story.not_built(route, userAddress=to_checksum(other))
        else:
            status, details = await story.not_built(route)
        assert (status, details.partition(":")[0]) == (400, "InsufficientBalance")


async def test_a_deadline_that_has_passed_stops_it_on_the_chain(story: Story) -> None:
    world = story.world
    route = await story.prices("SELL", "WETH", "USDC", ONE)
    now_s = story.clock.now_ms() // 1_000
    status, details = await story.not_built(route, deadline=now_s - 1)
    assert status == 400
    assert "deadline: expected a time after " in details
    built = await story.build(route, deadline=now_s + 100)
    await world.pass_time(now_s + 101 - await world.now_s())
    assert await story.reverted(built) == "DEADLINE_PASSED"


async def test_without_a_deadline_a_swap_ends_with_its_firm_quotes(story: Story) -> None:
    world = story.world
    built = await story.build(await story.prices("SELL", "WETH", "USDC", ONE))
    await world.pass_time(152 + story.clock.now_ms() // 1_000 - await world.now_s())
    assert await story.reverted(built) == "DEADLINE_PASSED"


@pytest.mark.oracle
@pytest.mark.parametrize(("side", "amount"), [("SELL", 7 * ONE), ("BUY", 15_000 * USDC)])
async def test_bare_parameters_are_encoded_by_another_library_and_sent(
    story: Story, eth_account: Oracle, side: str, amount: int
) -> None:
    """Two makers, a partner, a receiver, a deadline; encoded by eth-abi from the Router's published ABI."""
    route = await story.prices(side, "WETH", "USDC", amount, partner="wallet")
    told = await story.build(
        route,
        {"onlyParams": "true"},
        receiver=to_checksum(RECEIVER),
        deadline=story.clock.now_ms() // 1_000 + 90,
    )
    assert told.keys() == {"method", "params", "contract"}
    assert told["contract"] == to_checksum(story.world.at.router)
    assert json.loads(json.dumps(told["params"])) == told["params"]
    (function,) = [row for row in abi_of("Router") if row.get("name") == told["method"]]
    types = [_type(one) for one in function["inputs"]]
    values = [_value(one, value) for one, value in zip(function["inputs"], told["params"], strict=True)]
    encoded = bytes.fromhex(eth_account.ask(ask="abi", types=types, values=values)["encoded"])
    data = selector(f"{told['method']}({','.join(types)})") + encoded
    envelope = {
        "from": to_checksum(story.world.user.address),
        "to": told["contract"],
        "value": "0",
        "data": f"0x{data.hex()}",
        "gasPrice": str(3 * GWEI),
        "chainId": CHAIN_ID,
    }
    moved = await story.send(envelope, route, receiver=to_checksum(RECEIVER))
    if side == "SELL":
        assert moved["receiver", "USDC"] == int(route["destAmount"])
    else:
        assert moved["user", "WETH"] == -int(route["srcAmount"])
    assert {who for who, _ in moved} >= {"alpha", "beta"}


def _type(parameter: dict[str, Any]) -> str:
    """A type of an ABI as eth-abi takes it."""
    name: str = parameter["type"]
    if not name.startswith("tuple"):
        return name
    return f"({','.join(map(_type, parameter['components']))}){name.removeprefix('tuple')}"


def _value(parameter: dict[str, Any], value: Any) -> Any:
    """A value of `params` as the oracle takes it."""
    name = parameter["type"]
    if name.endswith("[]"):
        return [_value(parameter | {"type": name[:-2]}, one) for one in value]
    if name == "tuple":
        return [_value(*pair) for pair in zip(parameter["components"], value, strict=True)]
    if name == "bytes":
        return f"hex:{value.removeprefix('0x')}"
    return f"int:{value}" if name.startswith("uint") else value
