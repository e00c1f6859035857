"""Orders that sell from a vault, over HTTP: they earn while they wait, and a vault harms its owners alone."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import (
    address_word,
    bytes_tail,
    encode,
    selector,
    tuples_tail,
    uint_word,
)
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.deploy.deploy import create
from support.chain.world import ONE, USDC, World
from support.contracts.permits import eip2612_permit, token_domain
from support.contracts.vaults import Mode, Vault
from support.delta.resting_stories import VaultStory, a_built_story, a_vault_story, prices
from support.patience import until

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

FAIR = 2_500 * USDC
Act = Callable[[Vault], Awaitable[None]]


async def test_shares_are_sold_with_the_yield_that_they_earned_since_the_order(
    world: World, tmp_path: Path
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story, ann = vaults.story, vaults.story.agents["ann"]
        record = await story.submitted(await vaults.an_order())
        assert (record["status"], record["onChainOrderType"]) == ("PENDING", "ProductiveOrder")
        assert record["input"]["amount"] == str(ONE)
        await story.heard_of("ann", record)
        await vaults.vault.earns(ONE)  # 5 WETH for 4 shares
        before = await story.balances()
        ann.gives = lambda order: 3_000 * USDC if order.src_amount == str(ONE + ONE // 4) else None
        record = await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == {
            ("user", "SHARE"): -ONE,
            ("user", "USDC"): 3_000 * USDC,
            ("agent", "WETH"): ONE + ONE // 4,
            ("agent", "USDC"): -3_000 * USDC,
        }
        assert record["input"]["executedAmount"] == str(ONE + ONE // 4)
        (settled,) = record["transactions"]
        assert settled["filledPercent"] == 100
        assert (settled["spentAmount"], settled["receivedAmount"]) == (str(ONE + ONE // 4), str(3_000 * USDC))
        proof = await story.proof(record)
        assert (proof.fault, proof.spent, proof.received) == ("", ONE + ONE // 4, 3_000 * USDC)


async def test_an_amount_takes_fewer_shares_for_the_yield_since_the_order(
    world: World, tmp_path: Path
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        record = await story.submitted(await vaults.an_order(use_shares=False))
        await story.heard_of("ann", record)
        await vaults.vault.earns(ONE)
        before = await story.balances()
        story.agents["ann"].gives = lambda order: FAIR if order.src_amount == str(ONE) else None
        record = await story.becomes(record, "COMPLETED")
        assert await story.moved_since(before) == {
            ("user", "SHARE"): -4 * ONE // 5,
            ("user", "USDC"): FAIR,
            ("agent", "WETH"): ONE,
            ("agent", "USDC"): -FAIR,
        }
        assert record["input"]["amount"] == str(ONE)
        assert record["input"].get("executedAmount") is None
        assert (await story.proof(record)).fault == ""


@pytest.mark.one_of(2)
@pytest.mark.parametrize(
    ("mode", "by"),
    [
        (Mode.PAUSED, 0),
        (Mode.CAPPED, ONE - 1),
        (Mode.SHORT, 1),
        (Mode.WASTE, 0),
        (Mode.BOMB, 1_000_000),
    ],
    ids=lambda value: value.name if isinstance(value, Mode) else "",
)
@pytest.mark.parametrize("use_shares", [True, False], ids=["shares", "amount"])
async def test_a_vault_that_does_not_give_suspends_its_orders_and_no_agent_is_asked(
    world: World, tmp_path: Path, mode: Mode, by: int, use_shares: bool
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story, ann = vaults.story, vaults.story.agents["ann"]
        record = await story.submitted(await vaults.an_order(use_shares=use_shares))
        await story.heard_of("ann", record)
        shares = await vaults.vault.shares()
        await vaults.vault.acts(mode, by)
        await story.becomes(record, "SUSPENDED")
        told = await story.reasons(record)
        assert list(told) == ["suspended", "vaultLacks"]
        assert told["vaultLacks"].endswith(f"does not give {ONE} of srcToken in a trial settlement")
        asked = len(ann.requests)
        ann.gives = lambda _: FAIR
        await world.chain.mine(2)
        assert len(ann.requests) == asked, "a suspended order is not auctioned"
        assert await vaults.vault.shares() == shares
        await vaults.vault.acts(Mode.HONEST)
        await story.becomes(record, "COMPLETED")
        assert not ann.told("reverted")


async def test_a_vault_that_lost_suspends_an_amount_above_the_signed_shares(
    world: World, tmp_path: Path
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        order = await vaults.an_order(use_shares=False, shares=11 * ONE // 10)
        record = await story.submitted(order, type="LIMIT")
        await vaults.vault.loses(2 * ONE)  # 2 WETH for 4 shares
        await story.becomes(record, "SUSPENDED")
        told = await story.says(record, "boundLacks")
        assert told.endswith(f"takes {2 * ONE} shares, and the order gives at most {11 * ONE // 10}")
        await vaults.vault.earns(2 * ONE)
        await story.becomes(record, "ACTIVE")


async def test_shares_of_a_vault_that_lost_are_sold_for_what_is_left_of_them(
    world: World, tmp_path: Path
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        record = await story.submitted(await vaults.an_order(dest_amount=1_000 * USDC, expected_amount=0))
        await story.heard_of("ann", record)
        await vaults.vault.loses(2 * ONE)
        before = await story.balances()
        story.agents["ann"].gives = lambda order: 1_200 * USDC if order.src_amount == str(ONE // 2) else None
        await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert (moved["user", "SHARE"], moved["agent", "WETH"]) == (-ONE, ONE // 2)


async def test_a_vault_with_a_fee_is_asked_for_what_it_gives_after_the_fee(
    world: World, tmp_path: Path
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        await vaults.vault.acts(Mode.FEE, 100)
        story.agents["ann"].gives = lambda order: FAIR if order.src_amount == str(ONE * 99 // 100) else None
        await story.completed(await vaults.an_order())
        shares = await vaults.vault.shares()
        assert shares == 2 * ONE
        story.agents["ann"].gives = lambda order: FAIR if order.src_amount == str(ONE) else None
        status, told = await story.submit(await vaults.an_order(use_shares=False, shares=ONE))
        assert (status, told["errorType"]) == (400, "InsufficientBalance")
        assert "which the vault takes for srcAmount" in told["details"]
        await story.completed(await vaults.an_order(use_shares=False, shares=11 * ONE // 10))
        assert 0 < shares - await vaults.vault.shares() < 11 * ONE // 10


async def test_shares_that_a_greedy_vault_does_not_take_stay_the_owners(world: World, tmp_path: Path) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        await vaults.vault.acts(Mode.GREEDY, ONE // 2)
        story.agents["ann"].gives = lambda _: FAIR
        await story.completed(await vaults.an_order(use_shares=False, shares=2 * ONE))
        assert await vaults.vault.shares() == 2 * ONE


async def _sends_shares_away(vaults: VaultStory) -> None:
    data = calldata.transfer(vaults.story.world.stranger.address, 3 * ONE - 5)
    await vaults.story.world.send(vaults.story.world.user, vaults.vault.address, data)


async def _gets_shares_back(vaults: VaultStory) -> None:
    data = calldata.transfer(vaults.story.world.user.address, ONE)
    await vaults.story.world.send(vaults.story.world.stranger, vaults.vault.address, data)


async def _revokes(vaults: VaultStory) -> None:
    await vaults.story.disallow(vaults.story.world.user, "SHARE")


async def _allows(vaults: VaultStory) -> None:
    world = vaults.story.world
    await world.approve(world.user, vaults.vault.address, world.at.delta)


@pytest.mark.parametrize(
    ("goes", "comes", "lack"),
    [
        (_sends_shares_away, _gets_shares_back, "balanceLacks"),
        (_revokes, _allows, "allowanceLacks"),
    ],
)
async def test_shares_and_their_allowance_suspend_as_tokens_do(
    world: World, tmp_path: Path, goes: Any, comes: Any, lack: str
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        record = await story.submitted(await vaults.an_order())
        await goes(vaults)
        await story.becomes(record, "SUSPENDED")
        assert (await story.says(record, lack)).endswith(str(ONE))
        assert list(await story.reasons(record)) == ["suspended", lack], "the vault is not blamed"
        await comes(vaults)
        await story.becomes(record, "PENDING")
        story.agents["ann"].gives = lambda _: FAIR
        await story.becomes(record, "COMPLETED")


async def _pauses_first(vaults: VaultStory) -> None:
    data = selector("setMode(uint8,uint256)") + uint_word(Mode.PAUSED) + uint_word(0)
    await vaults.story.first_in_block(vaults.story.world.stranger, vaults.vault.address, data)


async def _loses_first(vaults: VaultStory) -> None:
    data = selector("lose(uint256)") + uint_word(ONE)
    await vaults.story.first_in_block(vaults.story.world.stranger, vaults.vault.address, data)


@pytest.mark.parametrize("acts", [_pauses_first, _loses_first])
async def test_a_vault_that_turns_before_the_settlement_is_no_fault_of_the_agents(
    world: World, tmp_path: Path, acts: Callable[[VaultStory], Awaitable[None]]
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story, ann = vaults.story, vaults.story.agents["ann"]
        ann.gives = lambda order: FAIR if order.src_amount == str(ONE) else None
        before = await story.balances()
        await story.hold()
        record = await story.submitted(await vaults.an_order(dest_amount=1_000 * USDC))
        await story.under_way(record)
        await acts(vaults)
        await story.mine()
        await story.heard("ann", record, "won", "settling", "reverted")
        assert not [key for key in await story.moved_since(before) if key[0] in ("user", "agent")]
        (report,) = await story.web.get(f"/v2/delta/agents/scores/{world.chain.chain_id}")
        assert (report["faults"], report["strikes"]) == ({}, 0)
        await vaults.vault.acts(Mode.HONEST)
        ann.gives = lambda _: 1_500 * USDC
        await story.becomes(record, "COMPLETED")


async def test_a_vault_that_makes_the_agents_calls_fail_is_a_doubt_and_no_strike(
    world: World, tmp_path: Path
) -> None:
    """In the mined settlement alone, the transfer of shares has the bought token block the agent."""
    async with a_vault_story(world, tmp_path) as vaults:
        story, ann = vaults.story, vaults.story.agents["ann"]
        ann.gives = lambda _: FAIR
        await story.hold()
        record = await story.submitted(await vaults.an_order())
        await story.under_way(record)
        agent = bytes(12) + vaults.market.agent
        blocks = selector("setBlocked(address,bool)") + agent + uint_word(1)
        hook = selector("setHook(address,bytes)") + encode(address_word(world.usdc), bytes_tail(blocks))
        await story.first_in_block(world.stranger, vaults.vault.address, hook)
        await story.mine()
        await story.heard("ann", record, "settling", "reverted")
        (told,) = ann.told("reverted")
        assert told.detail.partition(":")[0] == "code of an owner's ran in it"
        (report,) = await story.web.get(f"/v2/delta/agents/scores/{world.chain.chain_id}")
        assert (report["faults"], report["strikes"]) == ({}, 0)
        assert await vaults.vault.shares() == 3 * ONE


async def test_the_shares_of_a_swap_come_by_permit(world: World, tmp_path: Path) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        await world.approve(world.user, vaults.vault.address, world.at.delta, 0)
        order = await vaults.an_order()
        status, told = await story.submit(order)
        assert (status, told["errorType"]) == (400, "InsufficientAllowance")
        assert f"at least {ONE} of the vault's shares for the Delta contract" in told["details"]
        domain = token_domain("Fickle vault", world.chain.chain_id, vaults.vault.address)
        permit = eip2612_permit(domain, world.user, world.at.delta, ONE, nonce=0, deadline=order.deadline)
        story.agents["ann"].gives = lambda _: FAIR
        await story.completed(await vaults.an_order(permit=permit, deadline=order.deadline))
        assert await vaults.vault.shares() == 2 * ONE


async def test_committed_shares_are_told_as_balances_of_the_vault(world: World, tmp_path: Path) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        bound = 11 * ONE // 10
        for order in (await vaults.an_order(), await vaults.an_order(use_shares=False, shares=bound)):
            await story.submitted(order, type="LIMIT")
        user, share = world.user.address, vaults.vault.address
        path = f"{world.chain.chain_id}/0x{user.hex()}/0x{share.hex()}"
        told = await story.web.get(f"/v2/delta/orders/fillablebalance/{path}")
        assert told == {f"0x{share.hex()}": str(ONE + bound)}
        told = await story.web.get(f"/v2/delta/orders/availablebalance/{path}")
        assert told == {f"0x{share.hex()}": str(3 * ONE - ONE - bound)}


async def test_what_a_new_order_lacks_is_refused(world: World, tmp_path: Path) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        strategies = "a vault of GET /v2/delta/prices/strategies/{chainId}"
        refusals: list[tuple[dict[str, Any], str, str]] = [
            ({"strategy": world.dai}, "InvalidProductiveOrderParams", strategies),
            ({"src_token": world.dai}, "InvalidProductiveOrderParams", "expected the vault's asset"),
            ({"shares": 0}, "InvalidProductiveOrderParams", "shares of the vault"),
            ({"shares": 2**128}, "InvalidProductiveOrderParams", "shares of the vault"),
            ({"shares": 3 * ONE + 1}, "InsufficientBalance", f"at least {3 * ONE + 1} of the vault's shares"),
            ({"use_shares": False, "shares": ONE - 1}, "InsufficientBalance", "order.shares"),
            ({"src_amount": 0}, "InvalidInput", "order.srcAmount"),
        ]
        for changed, error_type, says in refusals:
            status, told = await story.submit(await vaults.an_order(**changed))
            assert (status, told["errorType"]) == (400, error_type), told
            assert says in told["details"]
        status, told = await story.submit(await vaults.an_order(), partiallyFillable=True)
        assert (status, told["errorType"]) == (400, "InvalidInput")


async def test_a_second_order_on_the_same_shares_is_read_and_filled_as_the_first(
    world: World, tmp_path: Path
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story, ann = vaults.story, vaults.story.agents["ann"]
        first = await story.submitted(await vaults.an_order())
        await story.heard_of("ann", first)
        second = await story.submitted(await vaults.an_order())
        await story.heard_of("ann", second)
        ann.gives = lambda _: FAIR
        await story.becomes(first, "COMPLETED")
        await story.becomes(second, "COMPLETED")
        assert await vaults.vault.shares() == ONE


async def test_an_order_from_a_vault_outlives_a_restart_with_its_yield(world: World, tmp_path: Path) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        record = await vaults.story.submitted(await vaults.an_order())
        await vaults.story.heard_of("ann", record)
    await vaults.vault.earns(ONE)
    async with a_vault_story(world, tmp_path, before=vaults) as after:
        story = after.story
        story.agents["ann"].gives = lambda order: FAIR if order.src_amount == str(ONE + ONE // 4) else None
        await story.becomes(record, "COMPLETED")
        assert await after.vault.shares() == 2 * ONE


async def test_a_settlement_from_a_vault_that_is_taken_back_is_mined_again_once(
    world: World, tmp_path: Path
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        story.agents["ann"].gives = lambda _: FAIR
        before = await story.balances()
        record = await story.becomes(await story.submitted(await vaults.an_order()), "COMPLETED")
        await world.chain.set_automine(on=False)
        await world.chain.reorganise(1)
        now = await story.undone(record)
        assert (now["transactions"], now["input"]["executedAmount"]) == ([], None)
        await story.mine()
        await story.becomes(record, "COMPLETED")
        await story.is_final(record)
        moved = await story.moved_since(before)
        assert (moved["user", "SHARE"], moved["user", "USDC"]) == (-ONE, FAIR)


async def _hook_of_mints(world: World, count: int) -> bytes:
    """Calldata by which each transfer of the vault's shares makes so many first writes elsewhere."""
    multicall = await create(world.chain, world.owner, "DevMulticall")
    calls = [
        encode(
            address_word(world.dai),
            uint_word(0),
            bytes_tail(selector("mint(address,uint256)") + bytes(31) + bytes([number + 1]) + uint_word(1)),
        )
        for number in range(count)
    ]
    data = selector("aggregate3((address,bool,bytes)[])") + encode(tuples_tail(calls))
    return selector("setHook(address,bytes)") + encode(address_word(multicall), bytes_tail(data))


async def test_gas_that_a_vault_wastes_in_the_block_is_no_fault_of_the_agents(
    world: World, tmp_path: Path
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story, ann = vaults.story, vaults.story.agents["ann"]
        ann.gives = lambda _: FAIR
        wastes = await _hook_of_mints(world, 3)
        await story.hold()
        record = await story.submitted(await vaults.an_order())
        await story.under_way(record)
        await story.first_in_block(world.stranger, vaults.vault.address, wastes)
        await story.mine()
        record = await story.becomes(record, "COMPLETED")
        await story.heard("ann", record, "settling", "settled")
        (report,) = await story.web.get(f"/v2/delta/agents/scores/{world.chain.chain_id}")
        assert (report["faults"], report["strikes"], report["delivered"]) == ({}, 0, 1)


async def test_a_cancelled_order_leaves_its_shares(world: World, tmp_path: Path) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story = vaults.story
        record = await story.submitted(await vaults.an_order(), type="LIMIT")
        assert (await story.cancel(record))[0] == 200
        await story.becomes(record, "CANCELLED")
        assert await vaults.vault.shares() == 3 * ONE


BOOKS = {"WETH/USDC": prices("2500", "2510")}


@pytest.mark.parametrize("use_shares", [None, False], ids=["shares", "amount"])
async def test_a_built_order_is_signed_submitted_and_filled_from_makers_books(
    world: World, tmp_path: Path, use_shares: bool | None
) -> None:
    async with a_built_story(world, tmp_path, BOOKS) as built:
        story, vault = built.story, built.vault
        await vault.earns(ONE)
        body: dict[str, Any] = {
            "orderType": "ProductiveOrder",
            "strategy": f"0x{vault.address.hex()}",
            "slippage": 100,
        }
        status, told = await built.build(**body | ({} if use_shares is None else {"useShares": use_shares}))
        assert status == 200, told
        order = told["toSign"]["value"]
        assert order["useShares"] is (use_shares is None)
        shares = 4 * ONE // 5
        assert order["shares"] == str(shares if use_shares is None else -(-shares * 101 // 100))
        assert order["srcAmount"] == str(ONE)
        before = await story.balances()
        record = await story.becomes(await built.placed(told), "COMPLETED")
        moved = await story.moved_since(before)
        assert moved["user", "SHARE"] == -shares
        assert moved["user", "USDC"] == int(record["output"]["executedAmount"]) >= 2_470 * USDC
        assert record["order"] == order


async def test_yield_of_the_settlements_own_block_comes_back_as_tokens(world: World, tmp_path: Path) -> None:
    async with a_built_story(world, tmp_path, BOOKS) as built:
        story, vault = built.story, built.vault
        await world.mint(world.weth, world.stranger, ONE)
        strategy = f"0x{vault.address.hex()}"
        status, told = await built.build(orderType="ProductiveOrder", strategy=strategy, slippage=100)
        assert status == 200, told
        before = await story.balances()
        await story.hold()
        record = await built.placed(told)
        await story.under_way(record)
        await story.first_in_block(world.stranger, world.weth, calldata.transfer(vault.address, ONE))
        await story.mine()
        record = await story.becomes(record, "COMPLETED")
        moved = await story.moved_since(before)
        assert (moved["user", "SHARE"], moved["user", "WETH"]) == (-ONE, ONE // 4)
        assert record["transactions"][0]["spentAmount"] == str(ONE)


async def test_a_limit_order_earns_while_it_rests_until_its_yield_reaches_its_price(
    world: World, tmp_path: Path
) -> None:
    async with a_built_story(world, tmp_path, BOOKS) as built:
        story, vault = built.story, built.vault
        status, told = await built.build(
            orderType="ProductiveOrder",
            strategy=f"0x{vault.address.hex()}",
            limitAmount=str(2_600 * USDC),
        )
        assert status == 200, told
        record = await built.placed(told, type="LIMIT")
        assert f"it sells {ONE} for at least {2_600 * USDC}" in await built.resting.rests(record)
        assert built.resting.asked() == 0
        before = await story.balances()
        await vault.earns(4 * ONE // 50)  # 2 %: 2,550 USDC for a share
        await story.says(record, "resting", f"the order waits for its price: it sells {ONE * 51 // 50} ")
        await vault.earns(4 * ONE // 20)  # 7 % in all: 2,675 USDC
        record = await story.becomes(record, "COMPLETED")
        assert (record["type"], record["onChainOrderType"]) == ("LIMIT", "ProductiveOrder")
        moved = await story.moved_since(before)
        assert moved["user", "SHARE"] == -ONE
        assert moved["user", "USDC"] >= 2_600 * USDC


async def test_a_build_names_what_is_wrong_with_its_strategy(world: World, tmp_path: Path) -> None:
    async with a_built_story(world, tmp_path, BOOKS) as built:
        productive = {"orderType": "ProductiveOrder"}
        vault = f"0x{built.vault.address.hex()}"
        refusals: list[tuple[dict[str, Any], str, str]] = [
            (productive, "InvalidProductiveOrderParams", "strategy"),
            (productive | {"strategy": f"0x{world.dai.hex()}"}, "InvalidProductiveOrderParams", "a vault of"),
            (productive | {"strategy": vault, "side": "BUY"}, "InvalidInput", "side"),
            (
                productive | {"strategy": vault, "permit": "0x01", "limitAmount": "1"},
                "InvalidInput",
                "permit",
            ),
        ]
        web = built.story.web
        bought = web.selling("WETH", 1, "USDC", mode="DELTA") | {"side": "BUY", "amount": str(100 * USDC)}
        purchase = (await web.get("/v2/quote", **bought))["delta"]["route"]
        told_to_sell = (
            "route: expected a route quoted with side=SELL, got 'BUY': ProductiveOrder has no other side"
        )
        refusals.append((productive | {"strategy": vault, "route": purchase}, "InvalidInput", told_to_sell))
        for body, error_type, says in refusals:
            status, told = await built.build(**body)
            assert (status, told["errorType"]) == (400, error_type), told
            assert says in told["details"]


async def test_strategies_are_listed_with_the_return_that_their_shares_have_shown(
    world: World, tmp_path: Path
) -> None:
    async with a_vault_story(world, tmp_path) as vaults:
        story, chain_id = vaults.story, world.chain.chain_id
        path = f"/v2/delta/prices/strategies/{chain_id}"
        watch = story.web.app.yields[chain_id]
        await until(watch.listed)
        strategy = {"vault": to_checksum(vaults.vault.address), "name": "Fickle WETH", "apr": None}
        underlying = {"address": to_checksum(world.weth), "strategies": [strategy]}
        assert await story.web.get(path) == {to_hex(world.weth): underlying}
        await vaults.vault.earns(ONE // 25)  # 1 % of 4 WETH
        await world.pass_time(73 * 86_400)
        await world.chain.mine()
        await watch.look()
        told = await story.web.get(path)
        apr = told[to_hex(world.weth)]["strategies"][0]["apr"]
        assert 4.9 < apr["net"] <= 5.0
        assert 5.4 < apr["gross"] <= 5.5556, "the vault keeps a tenth"
        status, refused = await story.web.answer("/v2/delta/prices/strategies/5")
        assert (status, refused["errorType"]) == (422, "UnsupportedChain")
