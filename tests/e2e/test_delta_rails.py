"""Refusals independent of the signer, permissions, and the bounds that the owner sets."""

from typing import Any

import pytest

from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.contracts.contract_events import topic
from cambist.codecs.contracts.delta_calldata import deposit_native_and_pre_sign, withdraw_native
from cambist.codecs.contracts.owner_calldata import (
    ACCEPT_OWNER,
    IS_PAUSED,
    OWNER,
    PAUSE,
    PAUSER,
    cap_of,
    given_of,
    propose_owner,
    set_caller,
    set_cap,
    set_collector,
    set_paused,
    set_pauser,
    set_protocol,
    set_relayer,
)
from cambist.codecs.eip712_orders.delta import DeltaBridge
from support.chain.world import HOUR_S, MOST, NATIVE, ONE, USDC, World
from support.contracts.settling import Market

FAIR = 2_500 * USDC


async def test_only_relayers_settle(world: World, market: Market) -> None:
    steps = market.agent_steps(FAIR)
    for order in (await world.a_delta_order(), await market.a_twap(), await market.a_twap_purchase()):
        for key in (world.stranger, world.user, world.owner):
            assert await market.refused_settlement(order, *steps, key=key) == "NotRelayer()"


async def test_a_relayer_chooses_time_agent_promise_and_part_within_the_limits(
    world: World, market: Market
) -> None:
    """A late part, by an agent at the owner's limit, though another agent delivers more for the rest."""
    order = await world.a_delta_order()
    half, limit = ONE // 2, 1_200 * USDC
    late_s = order.deadline - 1
    short = market.agent_steps(limit - 1, half)
    assert (await market.refused_settlement(order, *short, amount=half)).startswith("BelowMinimum(")
    poor = market.agent_steps(limit, half)
    first = await market.settle(order, *poor, amount=half, promised=limit, agent="poor", at_s=late_s)
    assert (first.event.received, first.event.is_closed) == (limit, False)
    fair = market.agent_steps(1_250 * USDC, half)
    rest = await market.settle(order, *fair, amount=half, agent="fair", at_s=order.deadline)
    assert (rest.event.received, rest.event.is_closed) == (1_250 * USDC, True)


async def test_the_owner_names_and_dismisses_relayers(world: World, market: Market) -> None:
    order = await world.a_delta_order()
    dismissed = set_relayer(world.relayer.address, allowed=False)
    assert await world.refused(world.relayer, world.at.delta, dismissed) == "NotOwner()"
    await world.send(world.owner, world.at.delta, dismissed)
    assert await market.refused_settlement(order, *market.agent_steps(FAIR)) == "NotRelayer()"


async def test_an_order_ends_with_the_second_of_its_deadline(world: World, market: Market) -> None:
    deadline_s = await world.now_s() + 100
    orders = [await world.a_delta_order(deadline=deadline_s) for _ in range(2)]
    steps = market.agent_steps(FAIR)
    await market.settle(orders[0], *steps, at_s=deadline_s)
    assert await market.refused_at(deadline_s + 1, orders[1], *steps) == "OrderExpired()"


async def test_kinds_that_are_none(world: World, market: Market) -> None:
    for kind in (2, 255):
        order = await world.a_delta_order(kind=kind)
        refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
        assert refused == f"InvalidKind(kind {kind})"


async def test_a_token_for_itself(world: World, market: Market) -> None:
    for src, dest in ((world.weth, world.weth), (NATIVE, world.weth), (world.weth, NATIVE), (NATIVE, NATIVE)):
        order = await world.a_delta_order(src_token=src, dest_token=dest, dest_amount=1)
        assert await market.refused_settlement(order) == "SameToken()"
    purchase = await market.a_purchase(dest_token=world.weth)
    assert await market.refused_settlement(purchase) == "SameToken()"
    twap = await market.a_twap(dest_token=NATIVE)
    assert await market.refused_settlement(twap) == "SameToken()"


@pytest.mark.parametrize(
    "bridge",
    [
        DeltaBridge(b"\1\2\3\4", 0, bytes(20), 0, b""),
        DeltaBridge(bytes(4), 1, bytes(20), 0, b""),
        DeltaBridge(bytes(4), 0, b"\1" * 20, 0, b""),
        DeltaBridge(bytes(4), 0, bytes(20), -1, b""),
        DeltaBridge(bytes(4), 0, bytes(20), 0, b"\0"),
    ],
    ids=["selector", "chain", "token", "scaling", "data"],
)
async def test_a_bridge_is_whole_or_none(world: World, market: Market, bridge: DeltaBridge) -> None:
    for order in (
        await world.a_delta_order(bridge=bridge),
        await market.a_twap(bridge=bridge),
        await market.a_twap_purchase(bridge=bridge),
    ):
        refused = await market.refused_settlement(order, *market.agent_steps(FAIR))
        unknown = "UnknownBridge(protocolSelector 0x00000000)"
        assert refused == (unknown if bridge.destination_chain_id else "InvalidBridge()")


async def test_nothing_is_settled_while_it_is_paused(world: World, market: Market) -> None:
    """Deposits and nonces stay their owners' to take back."""
    order = await world.a_delta_order()
    steps = market.agent_steps(FAIR)
    assert await world.refused(world.relayer, world.at.delta, set_paused(paused=True)) == "NotOwner()"
    await world.send(world.owner, world.at.delta, set_paused(paused=True))
    for paused in (order, await market.a_twap(), await market.a_twap_purchase()):
        assert await market.refused_settlement(paused, *steps) == "Paused()"
    order_hash = world.delta_hash(order)
    await world.send(world.user, world.at.delta, deposit_native_and_pre_sign(order_hash), value_wei=1)
    await world.send(world.user, world.at.delta, withdraw_native(1))
    await world.send(world.owner, world.at.delta, set_paused(paused=False))
    assert (await market.settle(order, *steps)).event.is_closed


async def test_settlements_of_an_hour_give_no_more_than_the_cap(world: World, market: Market) -> None:
    """In however many calls; native tokens count as wrapped ones; a token without a cap cannot be given."""
    await world.send(world.owner, world.at.delta, set_cap(world.weth, ONE // 2))
    order = await world.a_delta_order(deadline=await world.now_s() + 3 * HOUR_S)
    half = market.agent_steps(FAIR // 2, given=ONE // 2)
    exceeded = f"CapExceeded(token 0x{world.weth.hex()}, amount {ONE // 2 + 1}, left {ONE // 2})"
    assert await market.refused_settlement(order, *half, amount=ONE // 2 + 1) == exceeded
    native = await world.a_delta_order(src_token=NATIVE)
    assert await market.refused_settlement(native, *half, amount=ONE // 2 + 1) == exceeded
    assert await world.ask(world.at.delta, given_of(world.weth)) == 0
    hour_s = (await world.now_s() // HOUR_S + 1) * HOUR_S
    small = market.agent_steps(FAIR // 10, given=ONE // 10)
    for number in range(5):
        await market.settle(order, *small, amount=ONE // 10, at_s=hour_s + number)
    assert await world.ask(world.at.delta, given_of(world.weth)) == ONE // 2
    more = f"CapExceeded(token 0x{world.weth.hex()}, amount {ONE // 10}, left 0)"
    assert await market.refused_at(hour_s + HOUR_S - 1, order, *small, amount=ONE // 10) == more
    before = await world.chain.snapshot()
    await world.chain.set_time(hour_s + HOUR_S)
    await world.chain.mine()
    assert await world.ask(world.at.delta, given_of(world.weth)) == 0
    await world.chain.restore(before)
    await market.settle(order, *small, amount=ONE // 10, at_s=hour_s + HOUR_S)
    assert await world.ask(world.at.delta, given_of(world.weth)) == ONE // 10
    await world.send(world.owner, world.at.delta, set_cap(world.weth, ONE // 10 + 1))
    more = f"CapExceeded(token 0x{world.weth.hex()}, amount {ONE // 10}, left 1)"
    assert await market.refused_settlement(order, *small, amount=ONE // 10) == more, (
        "a new cap counts what was given"
    )
    await world.send(world.owner, world.at.delta, set_cap(world.weth, 0))
    smallest = await world.a_delta_order(src_amount=1)
    refused = await market.refused_settlement(smallest, *half)
    assert refused == f"CapExceeded(token 0x{world.weth.hex()}, amount 1, left 0)"


async def test_a_token_without_a_bound_is_not_counted(world: World, market: Market) -> None:
    """And a cap fits into what is kept of it."""
    await market.settle(await world.a_delta_order(), *market.agent_steps(FAIR))
    assert await world.ask(world.at.delta, given_of(world.weth)) == 0
    largest = 2**112 - 2
    for cap in (largest + 1, largest + 2, MOST - 1):
        refused = await world.refused(world.owner, world.at.delta, set_cap(world.weth, cap))
        assert refused == f"InvalidCap(cap {cap})"
    for cap in (largest, MOST, 0):
        await world.send(world.owner, world.at.delta, set_cap(world.weth, cap))
        assert await world.ask(world.at.delta, cap_of(world.weth)) == cap


async def test_a_pauser_stops_and_does_nothing_else(world: World, market: Market) -> None:
    pauser, order = world.stranger, await world.a_delta_order()
    for contract in (world.at.delta, world.at.router):
        assert await world.refused(pauser, contract, PAUSE) == "NotPauser()"
        await world.send(world.owner, contract, set_pauser(pauser.address))
        for data in (set_paused(paused=False), set_cap(world.weth, MOST), set_pauser(world.user.address)):
            assert await world.refused(pauser, contract, data) == "NotOwner()"
        for _ in range(2):  # again by who does not know that it is paused
            await world.send(pauser, contract, PAUSE)
            assert await world.ask(contract, IS_PAUSED) == 1
        assert await world.ask(contract, PAUSER) == int.from_bytes(pauser.address)
    assert await market.refused_settlement(order, *market.agent_steps(FAIR)) == "Paused()"
    await world.send(world.owner, world.at.delta, set_paused(paused=False))
    await world.send(world.owner, world.at.delta, set_pauser(bytes(20)))
    assert await world.refused(pauser, world.at.delta, PAUSE) == "NotPauser()"
    assert (await market.settle(order, *market.agent_steps(FAIR))).event.is_closed
    await world.send(world.owner, world.at.delta, PAUSE)
    assert await world.ask(world.at.delta, IS_PAUSED) == 1


async def test_what_a_purchase_gives_is_what_the_cap_counts(world: World, market: Market) -> None:
    """Its fee included; not what it might have cost."""
    await world.send(world.owner, world.at.delta, set_cap(world.weth, ONE))
    order = await market.a_purchase(partner_and_fee=100)
    steps = market.agent_steps(FAIR)
    refused = await market.refused_settlement(order, *steps, src_given=ONE)
    assert refused == f"CapExceeded(token 0x{world.weth.hex()}, amount {ONE * 101 // 100}, left {ONE})"
    given = 99 * ONE // 100
    settled = await market.settle(order, *market.agent_steps(FAIR, given=given), src_given=given)
    assert settled.event.spent == given * 101 // 100 < ONE < order.src_amount


OWNERS_CALLS: tuple[tuple[str, bytes], ...] = (
    ("delta", set_paused(paused=True)),
    ("delta", set_cap(bytes(20), 1)),
    ("delta", set_pauser(bytes(20))),
    ("delta", set_relayer(bytes(20), allowed=True)),
    ("executor", set_caller(b"\1" * 20, allowed=True)),
    ("fee_vault", set_collector(b"\1" * 20, allowed=True)),
)


async def test_what_is_the_owners_is_nobody_elses(world: World) -> None:
    for name, data in OWNERS_CALLS:
        contract = getattr(world.at, name)
        for key in (world.stranger, world.relayer):
            assert await world.refused(key, contract, data) == "NotOwner()"
            assert await world.refused(key, contract, propose_owner(key.address)) == "NotOwner()"


async def test_what_the_owner_changes_is_told(world: World) -> None:
    someone = b"\1" * 20
    word, yes, no = address_word(someone), uint_word(1), uint_word(0)
    told = (
        ("delta", set_paused(paused=True), "PauseChanged(bool)", (), yes),
        ("delta", set_paused(paused=False), "PauseChanged(bool)", (), no),
        ("delta", PAUSE, "PauseChanged(bool)", (), yes),
        ("delta", PAUSE, "PauseChanged(bool)", (), yes),
        ("delta", set_cap(someone, 7), "CapChanged(address,uint256)", (word,), uint_word(7)),
        ("delta", set_cap(someone, MOST), "CapChanged(address,uint256)", (word,), uint_word(MOST)),
        ("delta", set_pauser(someone), "PauserChanged(address)", (word,), b""),
        ("delta", set_relayer(someone, allowed=True), "RelayerChanged(address,bool)", (word,), yes),
        ("delta", set_relayer(someone, allowed=False), "RelayerChanged(address,bool)", (word,), no),
        ("delta", set_protocol(someone), "ProtocolChanged(address)", (word,), b""),
        ("router", set_protocol(someone), "ProtocolChanged(address)", (word,), b""),
        ("executor", set_caller(someone, allowed=True), "CallerChanged(address,bool)", (word,), yes),
        ("executor", set_caller(someone, allowed=False), "CallerChanged(address,bool)", (word,), no),
        ("fee_vault", set_collector(someone, allowed=True), "CollectorChanged(address,bool)", (word,), yes),
        ("fee_vault", set_collector(someone, allowed=False), "CollectorChanged(address,bool)", (word,), no),
    )
    for name, data, event, indexed, rest in told:
        contract = getattr(world.at, name)
        (log,) = (await world.send(world.owner, contract, data)).logs
        assert (log.address, log.topics, log.data) == (contract, (topic(event), *indexed), rest)


async def test_without_its_place_at_the_vault_no_fee_is_settled(world: World, market: Market) -> None:
    await world.send(world.owner, world.at.fee_vault, set_collector(world.at.delta, allowed=False))
    with_fee = await world.a_delta_order(partner_and_fee=100)
    assert await market.refused_settlement(with_fee, *market.agent_steps(FAIR)) == "NotCollector()"
    without = await world.a_delta_order()
    assert (await market.settle(without, *market.agent_steps(FAIR))).event.is_closed


@pytest.mark.parametrize("name", ["delta", "executor", "fee_vault", "router"])
async def test_the_owner_hands_over_in_two_steps(world: World, name: str) -> None:
    contract: bytes = getattr(world.at, name)
    assert await world.refused(world.stranger, contract, ACCEPT_OWNER) == "NotOwner()"
    proposed = await world.send(world.owner, contract, propose_owner(world.stranger.address))
    stranger = address_word(world.stranger.address)
    assert proposed.logs[0].topics == (topic("OwnerProposed(address)"), stranger)
    assert await world.ask(contract, OWNER) == int.from_bytes(world.owner.address, "big")
    assert await world.refused(world.owner, contract, ACCEPT_OWNER) == "NotOwner()"
    accepted = await world.send(world.stranger, contract, ACCEPT_OWNER)
    assert accepted.logs[0].topics == (topic("OwnerChanged(address)"), stranger)
    assert await world.ask(contract, OWNER) == int.from_bytes(world.stranger.address, "big")
    assert await world.refused(world.owner, contract, propose_owner(bytes(20))) == "NotOwner()"


async def test_a_caller_that_is_dismissed_has_nothing_filled(world: World, market: Market) -> None:
    await world.send(world.owner, world.at.executor, set_caller(world.at.delta, allowed=False))
    order = await world.a_delta_order()
    fill = market.fill_step(world.a_firm_quote())
    assert await market.refused_settlement(order, fill) == "NotCaller()"
    assert (await market.settle(order, *market.agent_steps(FAIR))).event.is_closed


async def test_amounts_beyond_all_bounds_are_refused(world: World, market: Market) -> None:
    """The products of the amounts overflow, and Delta pulls no tokens."""
    wide: tuple[dict[str, Any], ...] = (
        {"src_amount": MOST, "dest_amount": MOST},
        {"dest_amount": MOST, "expected_amount": MOST},
    )
    for changed in wide:
        order = await world.a_delta_order(**changed)
        refused = await market.refused_settlement(order, *market.agent_steps(FAIR), amount=2)
        assert refused == "Panic(17): overflow"
    order = await world.a_delta_order(dest_amount=MOST)
    refused = await market.refused_settlement(order, *market.agent_steps(FAIR, given=1), amount=1)
    assert refused.startswith("BelowMinimum(received 2500000000, minimum 1157920")
