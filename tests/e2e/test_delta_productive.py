"""Sales of what rests in a vault: it earns meanwhile, and a vault harms nobody but its order's owner."""

from collections.abc import Awaitable, Callable
from typing import Any

import msgspec
import pytest

from cambist.codecs.contracts import calldata, owner_calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector, uint_word
from cambist.codecs.contracts.calldata import approve
from cambist.codecs.contracts.delta_calldata import SettlementStep
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.proceeds import of_sale
from support.chain.world import MOST, NATIVE, ONE, USDC, World
from support.contracts import permit2
from support.contracts.permits import eip2612_permit, token_domain
from support.contracts.settling import STEP_GAS, Market
from support.contracts.vaults import Mode, Vault, a_vault

FAIR = 2_500 * USDC
SET_HOOK = selector("setHook(address,bytes)")


@pytest.fixture
async def vault(world: World, market: Market) -> Vault:
    return await a_vault(world)


async def test_an_amount_is_sold_and_the_vault_takes_the_shares_that_it_is_worth(
    world: World, market: Market, vault: Vault
) -> None:
    order = await market.a_productive_order(strategy=vault.address)
    await vault.earns(ONE)  # 5 WETH for 4 shares
    settled = await market.settle(order, *market.agent_steps(FAIR))
    assert (settled.event.spent, settled.event.received) == (ONE, FAIR)
    assert settled.event.is_closed
    assert await vault.shares() == 3 * ONE - 4 * ONE // 5
    assert await vault.shares(world.at.delta) == await world.balance(world.weth, world.at.delta) == 0
    assert await world.balance(world.usdc, world.user) == FAIR


async def test_shares_are_sold_for_what_they_are_worth_by_then(
    world: World, market: Market, vault: Vault
) -> None:
    order = await market.a_productive_order(strategy=vault.address, use_shares=True)
    await vault.earns(ONE)
    steps = market.agent_steps(FAIR, given=ONE + ONE // 4)
    settled = await market.settle(order, *steps)
    assert (settled.event.spent, settled.event.received) == (ONE + ONE // 4, FAIR)
    assert await vault.shares() == 2 * ONE


async def test_the_beneficiary_gets_what_is_bought(world: World, market: Market, vault: Vault) -> None:
    other = world.stranger.address
    order = await market.a_productive_order(strategy=vault.address, beneficiary=other)
    before = await world.balance(world.usdc, other)
    await market.settle(order, *market.agent_steps(FAIR))
    assert await world.balance(world.usdc, other) == before + FAIR
    assert await world.balance(world.usdc, world.user) == 0


async def test_parts_give_their_share_and_the_minimum_is_pro_rata(
    world: World, market: Market, vault: Vault
) -> None:
    for use_shares in (False, True):
        order = await market.a_productive_order(strategy=vault.address, use_shares=use_shares)
        third = ONE // 3
        least = -(-2_400 * USDC * third // ONE)
        refused = await market.refused_settlement(
            order, *market.agent_steps(least - 1, given=third), amount=third
        )
        assert refused == f"BelowMinimum(received {least - 1}, minimum {least})"
        await market.settle(order, *market.agent_steps(least, given=third), amount=third)
        assert await market.filled(order) == third
        left = ONE - third
        refused = await market.refused_settlement(order, *market.agent_steps(FAIR, given=ONE))
        assert refused == f"Overfilled(left {left})"
        await market.settle(order, *market.agent_steps(FAIR, given=left), amount=left)
        assert await market.is_nonce_used(order)


async def test_what_is_not_sold_comes_back_as_it_left_the_vault(
    world: World, market: Market, vault: Vault
) -> None:
    order = await market.a_productive_order(strategy=vault.address, use_shares=True)
    before = await world.balance(world.weth, world.user)
    back = SettlementStep(world.weth, STEP_GAS, calldata.transfer(world.at.delta, 5))
    steps = (market.to_agent(ONE - 5), back, market.from_agent(FAIR))
    settled = await market.settle(order, *steps)
    assert settled.event.spent == ONE - 5
    assert await world.balance(world.weth, world.user) == before + 5


async def test_what_lies_with_the_executor_is_the_owners_if_the_relayer_names_it(
    world: World, market: Market, vault: Vault
) -> None:
    """Before the order is settled: it counts neither as sold nor as left of the sale."""
    await world.mint(world.weth, world.stranger, 5)
    await world.send(world.stranger, world.weth, calldata.transfer(world.at.executor, 5))
    order = await market.a_productive_order(strategy=vault.address)
    before = await world.balance(world.weth, world.user)
    fill = market.fill_step(world.a_firm_quote())
    settled = await market.settle(order, fill, leftovers=(world.weth,))
    assert (settled.event.spent, settled.event.received) == (ONE, FAIR)
    assert await world.balance(world.weth, world.user) == before + 5
    assert await world.balance(world.weth, world.at.executor) == 0


@pytest.mark.parametrize("use_shares", [False, True])
async def test_fees_and_shares_of_surplus_are_those_of_every_sale(
    world: World, market: Market, vault: Vault, use_shares: bool
) -> None:
    terms = PartnerAndFee(world.partner.address, 100, True, False)
    order = await market.a_productive_order(
        strategy=vault.address, use_shares=use_shares, partner_and_fee=pack_partner_and_fee(terms)
    )
    received = FAIR + 90 * USDC
    cut = of_sale(received, order.expected_amount, order.dest_amount, terms)
    assert cut.share > 0
    settled = await market.settle(order, *market.agent_steps(received))
    assert settled.event.received == received - cut.total
    assert await market.owed(world.partner.address, world.usdc) == cut.fee + cut.share
    assert await market.owed(world.protocol, world.usdc) == cut.share


async def test_a_wrong_signature_an_old_order_and_a_bridge_are_refused(
    world: World, market: Market, vault: Vault
) -> None:
    order = await market.a_productive_order(strategy=vault.address)
    steps = market.agent_steps(FAIR)
    other = await market.a_productive_order(strategy=world.dai)
    wrong = world.delta_signed(other)
    assert await market.refused_settlement(order, *steps, signature=wrong) == "InvalidSignature()"
    old = await market.a_productive_order(strategy=vault.address, deadline=1)
    assert await market.refused_settlement(old, *steps) == "OrderExpired()"
    assert await market.refused_settlement(order, *steps, amount=0) == "InvalidAmount()"
    for same in (world.weth, world.usdc):
        own = await market.a_productive_order(strategy=same)
        assert await market.refused_settlement(own, *steps) == "SameToken()"


async def _pauses(vault: Vault) -> None:
    await vault.acts(Mode.PAUSED)


async def _caps(vault: Vault) -> None:
    await vault.acts(Mode.CAPPED, ONE - 1)


async def _wastes(vault: Vault) -> None:
    await vault.acts(Mode.WASTE)


async def _bombs(vault: Vault) -> None:
    await vault.acts(Mode.BOMB, 1_000_000)


async def _keeps(vault: Vault) -> None:
    await vault.acts(Mode.SHORT, 1)


@pytest.mark.parametrize("acts", [_pauses, _caps, _wastes, _bombs, _keeps])
async def test_a_vault_that_does_not_give_what_is_sold_costs_nobody_anything(
    market: Market, vault: Vault, acts: Callable[[Vault], Awaitable[None]]
) -> None:
    order = await market.a_productive_order(strategy=vault.address)
    shares = await vault.shares()
    await acts(vault)
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
    assert refused == f"RedemptionFailed(vault {to_hex(vault.address)})"
    assert await vault.shares() == shares
    await vault.acts(Mode.HONEST)
    await market.settle(order, *market.agent_steps(FAIR))


async def test_a_vault_that_lost_takes_no_more_shares_than_the_order_says(
    market: Market, vault: Vault
) -> None:
    order = await market.a_productive_order(strategy=vault.address, shares=11 * ONE // 10)
    await vault.loses(2 * ONE)  # 2 WETH for 4 shares
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
    assert refused == f"TooManyShares(shares {2 * ONE}, most {11 * ONE // 10})"
    await vault.earns(2 * ONE - ONE // 10)
    await market.settle(order, *market.agent_steps(FAIR))
    assert await vault.shares() == 3 * ONE - (4 * ONE * ONE + 39 * ONE // 10 - 1) // (39 * ONE // 10)


async def test_a_part_takes_no_more_than_its_share_of_the_shares(market: Market, vault: Vault) -> None:
    order = await market.a_productive_order(strategy=vault.address, shares=11 * ONE // 10)
    half, most = ONE // 2, -(-11 * ONE // 20)
    await vault.loses(2 * ONE)  # 2 WETH for 4 shares
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR, given=half), amount=half)
    assert refused == f"TooManyShares(shares {ONE}, most {most})"
    of_shares = await market.a_productive_order(strategy=vault.address, use_shares=True)
    before = await vault.shares()
    await market.settle(of_shares, *market.agent_steps(FAIR, given=half // 2), amount=half)
    assert await vault.shares() == before - half


async def test_a_vault_with_a_fee_gives_all_that_is_sold_for_more_shares(
    market: Market, vault: Vault
) -> None:
    order = await market.a_productive_order(strategy=vault.address, shares=11 * ONE // 10)
    await vault.acts(Mode.FEE, 100)
    await market.settle(order, *market.agent_steps(FAIR))
    assert await vault.shares() == 3 * ONE - -(-ONE * 100 // 99)
    order = await market.a_productive_order(strategy=vault.address, use_shares=True)
    gives = await market.world.ask(vault.address, selector("previewRedeem(uint256)") + uint_word(ONE))
    assert 99 * ONE // 100 < gives < ONE  # the fees of others stay in the vault
    settled = await market.settle(order, *market.agent_steps(FAIR, given=gives))
    assert settled.event.spent == gives


@pytest.mark.parametrize("left", [1, ONE // 2])
@pytest.mark.parametrize("stray", [0, 3])
async def test_shares_that_a_vault_does_not_take_go_back(
    world: World, market: Market, vault: Vault, left: int, stray: int
) -> None:
    """And those that somebody sent to the contract before stay there."""
    await world.send(world.user, vault.address, calldata.transfer(world.at.delta, stray))
    order = await market.a_productive_order(strategy=vault.address, shares=2 * ONE)
    await vault.acts(Mode.GREEDY, left)
    await market.settle(order, *market.agent_steps(FAIR))
    assert await vault.shares() == 2 * ONE - stray
    assert await vault.shares(world.at.delta) == stray


async def test_a_vault_that_comes_back_into_the_settlement_gets_nothing(
    world: World, market: Market, vault: Vault
) -> None:
    """The shares' transfer has Delta settle another order, as a relayer that the vault is."""
    order = await market.a_productive_order(strategy=vault.address)
    other = await world.a_delta_order()
    inner = market.settlement(other, *market.agent_steps(FAIR))
    hook = SET_HOOK + encode(address_word(world.at.delta), bytes_tail(inner))
    await world.send(world.stranger, vault.address, hook)
    await world.send(world.owner, world.at.delta, owner_calldata.set_relayer(vault.address, allowed=True))
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
    assert refused == f"PullFailed(token {to_hex(vault.address)})"
    assert await market.filled(other) == 0
    await world.send(world.stranger, vault.address, SET_HOOK + encode(bytes(32), bytes_tail(b"")))
    await market.settle(order, *market.agent_steps(FAIR))


async def test_the_cap_of_the_hour_counts_what_shares_gave(
    world: World, market: Market, vault: Vault
) -> None:
    order = await market.a_productive_order(strategy=vault.address, use_shares=True)
    await vault.earns(ONE)
    gives = ONE + ONE // 4
    await world.send(world.owner, world.at.delta, owner_calldata.set_cap(world.weth, gives - 1))
    steps = market.agent_steps(FAIR, given=gives)
    refused = await market.refused_settlement(order, *steps)
    assert refused.startswith("CapExceeded(")
    await world.send(world.owner, world.at.delta, owner_calldata.set_cap(world.weth, gives))
    assert (await market.settle(order, *steps)).event.spent == gives


@pytest.mark.parametrize("use_shares", [False, True])
async def test_the_shares_come_by_permit(
    world: World, market: Market, vault: Vault, use_shares: bool
) -> None:
    await world.send(world.user, vault.address, approve(world.at.delta, 0))
    order = await market.a_productive_order(strategy=vault.address, use_shares=use_shares)
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
    assert refused == f"PullFailed(token {to_hex(vault.address)})"
    domain = token_domain("Fickle vault", world.chain.chain_id, vault.address)
    permit = eip2612_permit(domain, world.user, world.at.delta, ONE, nonce=0, deadline=order.deadline)
    await market.settle(msgspec.structs.replace(order, permit=permit), *market.agent_steps(FAIR))
    assert await vault.shares() == 2 * ONE


async def test_shares_come_by_one_transfer_of_permit2(world: World, market: Market, vault: Vault) -> None:
    await world.send(world.user, vault.address, approve(world.permit2, ONE))
    order = await market.a_productive_order(strategy=vault.address, use_shares=True)
    domain = permit2.permit2_domain(world.chain.chain_id, world.permit2)
    permit = permit2.transfer_permit(
        domain, world.user, world.at.delta, vault.address, ONE, nonce=7, deadline=order.deadline
    )
    await market.settle(msgspec.structs.replace(order, permit=permit), *market.agent_steps(FAIR))
    assert await vault.shares() == 2 * ONE


async def test_shares_give_the_agent_what_its_bid_was_simulated_with(
    world: World, market: Market, vault: Vault
) -> None:
    """A vault that gives nothing when mined has no agent deliver for nothing."""
    order = await market.a_productive_order(strategy=vault.address, use_shares=True)
    bid: dict[str, Any] = {"receiver": market.agent, "src_given": ONE}
    assert (await market.outcome(order, market.from_agent(FAIR), **bid)).spent == ONE
    await vault.acts(Mode.SHORT, 1)
    failed = f"RedemptionFailed(vault {to_hex(vault.address)})"
    assert await market.refused_settlement(order, market.from_agent(FAIR), **bid) == failed
    await vault.acts(Mode.SHORT, ONE)
    assert await market.refused_settlement(order, market.from_agent(FAIR), receiver=market.agent) == failed
    await vault.acts(Mode.HONEST)
    await market.settle(order, market.from_agent(FAIR), **bid)
    assert await world.balance(world.weth, market.agent) == ONE


async def test_what_a_vault_earns_after_the_bid_is_the_owners(
    world: World, market: Market, vault: Vault
) -> None:
    """An agent that knows of a harvest, or sets it off, sells no more than it has bid on."""
    order = await market.a_productive_order(strategy=vault.address, use_shares=True)
    await vault.earns(ONE)
    before = await world.balance(world.weth, world.user)
    settled = await market.settle(order, market.from_agent(FAIR), receiver=market.agent, src_given=ONE)
    assert settled.event.spent == ONE
    assert await world.balance(world.weth, market.agent) == ONE
    assert await world.balance(world.weth, world.user) == before + ONE // 4


async def test_a_source_that_is_not_the_vaults_asset_is_refused(
    world: World, market: Market, vault: Vault
) -> None:
    order = await market.a_productive_order(strategy=vault.address, use_shares=True, src_token=world.dai)
    await world.send(world.owner, world.at.delta, owner_calldata.set_cap(world.dai, MOST))
    refused = await market.refused_settlement(order, market.from_agent(FAIR))
    assert refused == f"RedemptionFailed(vault {to_hex(vault.address)})"


async def test_parts_fit_a_bound_that_is_exactly_what_the_whole_takes(market: Market, vault: Vault) -> None:
    await vault.earns(7 * 10**15 + 12_345)
    assets = 4 * ONE + 7 * 10**15 + 12_345
    shares = -(-ONE * 4 * ONE // assets)
    for part in (ONE // 3, 1):
        order = await market.a_productive_order(strategy=vault.address, shares=shares)
        for amount in (part, ONE - part):
            await market.settle(order, *market.agent_steps(FAIR, given=amount), amount=amount)


async def test_a_bound_of_any_number_of_shares_does_not_lock_an_order(market: Market, vault: Vault) -> None:
    order = await market.a_productive_order(strategy=vault.address, shares=2**128 - 1)
    await market.settle(order, *market.agent_steps(FAIR))


async def test_kinds_of_orders_share_no_progress(world: World, market: Market, vault: Vault) -> None:
    order = await market.a_productive_order(strategy=vault.address, use_shares=True)
    await market.settle(order, *market.agent_steps(FAIR, given=ONE // 2), amount=ONE // 2)
    again = {"nonce": order.nonce}
    others = (
        await world.a_delta_order(**again),
        await market.a_productive_order(strategy=vault.address, **again),
    )
    for other in others:
        refused = await market.refused_settlement(other, *market.agent_steps(FAIR))
        assert refused == f"NonceUsed(nonce {order.nonce})"


async def test_native_tokens_of_a_vault_of_wrapped_ones_leave_deposits_alone(
    world: World, market: Market, vault: Vault
) -> None:
    await market.deposit(await world.a_delta_order(), 5 * ONE)
    for use_shares in (False, True):
        order = await market.a_productive_order(
            src_token=NATIVE, strategy=vault.address, use_shares=use_shares
        )
        back = SettlementStep(world.weth, STEP_GAS, calldata.transfer(world.at.delta, 5))
        before = await world.balance(NATIVE, world.user)
        settled = await market.settle(order, market.to_agent(ONE - 5), back, market.from_agent(FAIR))
        assert settled.event.spent == ONE - 5
        assert await world.balance(NATIVE, world.user) == before + 5
        assert await market.deposited(order) == 5 * ONE == await world.balance(NATIVE, world.at.delta)
