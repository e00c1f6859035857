"""Only its owner may use a contract's owner functions; a closed deployment is inert until opened."""

import msgspec

from cambist.codecs.contracts import owner_calldata
from cambist.codecs.contracts.abi import address_word, decode_address, selector, uint_word
from cambist.codecs.contracts.contract_events import topic
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.deploy.create2_factory import FACTORY
from cambist.engine.chain.deploy.deploy import DeploymentPlan, deploy
from cambist.engine.chain.port import EthCall
from support.chain.world import MOST, NOBODY, ONE, USDC, World
from support.contracts.swapping import a_venue, told

OWNED = {"delta": "Delta", "router": "Router", "executor": "RfqExecutor", "fee_vault": "FeeVault"}
PROPOSED_OWNER = selector("proposedOwner()")
SETTERS = {
    # function: (calldata, what asks for its effect)
    "setPaused(bool)": (owner_calldata.set_paused(paused=True), owner_calldata.IS_PAUSED),
    "setCap(address,uint256)": (
        owner_calldata.set_cap(b"\x11" * 20, 1),
        owner_calldata.cap_of(b"\x11" * 20),
    ),
    "setPauser(address)": (
        owner_calldata.set_pauser(uint_word(1)[12:]),
        owner_calldata.PAUSER,
    ),
    "setProtocol(address)": (
        owner_calldata.set_protocol(uint_word(1)[12:]),
        owner_calldata.PROTOCOL,
    ),
    "setRelayer(address,bool)": (
        owner_calldata.set_relayer(b"\x11" * 20, allowed=True),
        owner_calldata.is_relayer(b"\x11" * 20),
    ),
    "setCaller(address,bool)": (
        owner_calldata.set_caller(b"\x11" * 20, allowed=True),
        owner_calldata.is_caller(b"\x11" * 20),
    ),
    "setCollector(address,bool)": (
        owner_calldata.set_collector(b"\x11" * 20, allowed=True),
        owner_calldata.is_collector(b"\x11" * 20),
    ),
}


async def _owner_of(world: World, contract: bytes) -> bytes:
    return decode_address(await world.chain.call(EthCall(contract, owner_calldata.OWNER)))


async def test_every_setting_is_the_owners_alone(world: World) -> None:
    tried = set()
    for field, name in OWNED.items():
        contract = getattr(world.at, field)
        for signature in artifact(name).selectors():
            if not signature.startswith("set") or signature.startswith(("settle", "setPreSignature")):
                continue
            change, question = SETTERS[signature]
            for key in (world.stranger, world.relayer, world.partner):
                assert await world.refused(key, contract, change) == "NotOwner()"
            before = int.from_bytes(world.protocol, "big") if question == owner_calldata.PROTOCOL else 0
            assert await world.ask(contract, question) == before
            receipt = await world.send(world.owner, contract, change)
            assert await world.ask(contract, question) == 1
            assert len(receipt.logs) == 1
            tried.add(signature)
    assert tried == set(SETTERS)


def test_nobody_owns_the_rfq() -> None:
    functions = artifact("Rfq").selectors()
    assert not [name for name in functions if "wner" in name or name.startswith("set")]


async def test_ownership_is_handed_over_in_two_steps(world: World) -> None:
    for field in OWNED:
        contract = getattr(world.at, field)
        assert await _owner_of(world, contract) == world.owner.address
        propose = owner_calldata.propose_owner(world.partner.address)
        accept = owner_calldata.ACCEPT_OWNER
        assert await world.refused(world.stranger, contract, propose) == "NotOwner()"
        assert await world.refused(world.partner, contract, accept) == "NotOwner()"  # not proposed yet
        receipt = await world.send(world.owner, contract, propose)
        (log,) = receipt.logs
        assert log.topics[1] == address_word(world.partner.address)
        assert await _owner_of(world, contract) == world.owner.address
        for key in (world.stranger, world.owner):
            assert await world.refused(key, contract, accept) == "NotOwner()"
        await world.send(world.partner, contract, accept)
        assert await _owner_of(world, contract) == world.partner.address
        assert await world.ask(contract, PROPOSED_OWNER) == 0
        assert await world.refused(world.owner, contract, propose) == "NotOwner()"
        assert await world.refused(world.partner, contract, accept) == "NotOwner()"  # once only
        await world.send(world.partner, contract, owner_calldata.propose_owner(world.owner.address))


async def test_a_new_contract_tells_its_first_owner_and_receiver_of_fees(world: World) -> None:
    at, owner, protocol = world.at, world.stranger.address, world.partner.address
    changed = topic("OwnerChanged(address)"), address_word(owner)
    named = topic("ProtocolChanged(address)"), address_word(protocol)
    router = (at.executor, at.fee_vault, world.weth, world.permit2, protocol, owner)
    for name, arguments, told_then in (
        ("FeeVault", (owner,), [changed]),
        ("RfqExecutor", (at.rfq, owner), [changed]),
        ("Router", router, [changed, named]),
    ):
        code = artifact(name).init_code(b"".join(map(address_word, arguments)))
        receipt = await world.send(world.owner, FACTORY, bytes(32) + code)
        assert [log.topics for log in receipt.logs] == told_then, name


async def test_a_proposal_can_be_taken_back(world: World) -> None:
    vault = world.at.fee_vault
    await world.send(world.owner, vault, owner_calldata.propose_owner(world.stranger.address))
    await world.send(world.owner, vault, owner_calldata.propose_owner(NOBODY))
    assert await world.refused(world.stranger, vault, owner_calldata.ACCEPT_OWNER) == "NotOwner()"
    assert await _owner_of(world, vault) == world.owner.address


async def test_a_closed_deployment_is_paused_and_without_caps(world: World) -> None:
    plan = DeploymentPlan(
        owner=world.owner.address,
        weth=world.weth,
        permit2=world.permit2,
        protocol=world.protocol,
        rfq_name="AUGUSTUS RFQ",
        delta_name="Portikus",
        delta_version="2.0.0",
        salt32=b"\x02" * 32,
    )
    closed = await deploy(world.chain, world.owner, plan)
    world = msgspec.structs.replace(world, at=closed)
    for contract in (closed.delta, closed.router):
        assert await world.ask(contract, owner_calldata.IS_PAUSED) == 1
        for token in (world.weth, world.usdc, NOBODY):
            assert await world.ask(contract, owner_calldata.cap_of(token)) == 0
    venue = await a_venue(world)
    swap = venue.swap(venue.hop(venue.quote()))
    assert await venue.refused_sale(swap) == "Paused()"
    await world.send(world.owner, closed.router, owner_calldata.set_paused(paused=False))
    assert await venue.refused_sale(swap) == told("CapExceeded", token=world.weth, amount=ONE, left=0)
    await world.send(world.owner, closed.router, owner_calldata.set_cap(world.weth, ONE))
    assert (await venue.sell(swap)).event.received == 2_500 * USDC


async def test_a_pause_stops_swaps_and_lets_them_go_on(world: World) -> None:
    venue = await a_venue(world)
    sale = venue.swap(venue.hop(venue.quote()))
    purchase = venue.purchase(venue.hop(venue.quote(), maker_amount=2_500 * USDC))
    await world.send(world.owner, world.at.router, owner_calldata.set_paused(paused=True))
    assert await venue.refused_sale(sale) == "Paused()"
    assert await venue.refused_purchase(purchase) == "Paused()"
    await world.send(world.owner, world.at.router, owner_calldata.set_paused(paused=False))
    await venue.sell(sale)
    await venue.buy(purchase)


async def test_a_cap_bounds_what_one_swap_gives(world: World) -> None:
    venue = await a_venue(world)
    await world.send(world.owner, world.at.router, owner_calldata.set_cap(world.weth, ONE))
    large = venue.quote(maker_amount=5_000 * USDC, taker_amount=2 * ONE)
    beyond = venue.swap(venue.hop(large), src_amount=ONE + 1)
    exceeded = told("CapExceeded", token=world.weth, amount=ONE + 1, left=ONE)
    assert await venue.refused_sale(beyond) == exceeded
    buying = venue.purchase(venue.hop(large, maker_amount=1), src_amount=ONE + 1, dest_amount=1)
    assert await venue.refused_purchase(buying) == exceeded  # the most that it may spend
    await venue.sell(venue.swap(venue.hop(large)))
    await world.send(world.owner, world.at.router, owner_calldata.set_cap(world.weth, 0))
    assert await venue.refused_sale(venue.swap(venue.hop(large))) == (
        told("CapExceeded", token=world.weth, amount=ONE, left=0)
    )
    assert await world.ask(world.at.router, owner_calldata.cap_of(world.usdc)) == MOST
