"""The contracts are put on a chain: at addresses known beforehand, once, on from where a run broke off."""

import msgspec
import pytest

from cambist.codecs.contracts import owner_calldata
from cambist.codecs.transactions import contract_address, create2_address
from cambist.config.errors import ChainError, RefusalKind, TransactionRefused
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.deploy.contract_acts import OwnedContracts
from cambist.engine.chain.deploy.contract_roles import handover_of, roles_of
from cambist.engine.chain.deploy.create2_factory import FACTORY
from cambist.engine.chain.deploy.deploy import (
    SETTLERS,
    DeployedContracts,
    DeploymentPlan,
    contracts_of,
    create,
    creations,
    deploy,
    provisions,
)
from cambist.engine.chain.transact import transact
from support.chain.evm_programs import assembled
from support.chain.put_code import put_code
from support.chain.world import DELTA_NAME, DELTA_VERSION, MOST, NOBODY, ONE, RFQ_NAME, World, person

SALT32 = b"\x05" * 32
FIRST_GAS = 6_000_000  # enough for the first contracts, not for all
CREATED = ("Rfq", "FeeVault", "RfqExecutor", "Bridges", *SETTLERS, "Delta", "Router", "Arrivals")


def _plan(world: World, **changed: object) -> DeploymentPlan:
    plan = DeploymentPlan(
        owner=world.owner.address,
        weth=world.weth,
        permit2=world.permit2,
        protocol=world.protocol,
        rfq_name=RFQ_NAME,
        delta_name=DELTA_NAME,
        delta_version=DELTA_VERSION,
        relayers=(world.relayer.address,),
        caps={world.weth: ONE},
        is_open=True,
        spoke_pool=world.spoke_pool,
        token_messenger=world.token_messenger,
        salt32=SALT32,
    )
    return msgspec.structs.replace(plan, **changed)


def _predicted(plan: DeploymentPlan) -> DeployedContracts:
    def address_of(number: int, init_code: bytes) -> bytes:
        return create2_address(FACTORY, plan.salt32, init_code)

    return contracts_of(creations(plan, address_of))


def _all(at: DeployedContracts) -> tuple[bytes, ...]:
    return msgspec.structs.astuple(at)


async def _is_set_up(world: World, plan: DeploymentPlan, at: DeployedContracts) -> bool:
    answers = [await world.ask(item.contract, item.question) == item.wanted for item in provisions(plan, at)]
    return len(answers) > 5 and all(answers)


async def test_addresses_follow_from_the_plan_alone(world: World) -> None:
    """The addresses match the same prediction on both chains."""
    assert world.at == _predicted(_plan(world, salt32=bytes(32)))
    plan = _plan(world)
    at = await deploy(world.chain, world.owner, plan)
    assert at == _predicted(plan)
    assert not set(_all(at)) & set(_all(world.at))  # another salt, other addresses
    assert await _is_set_up(world, plan, at)
    for contract in _all(at):
        assert await world.chain.code(contract)
    renamed = _predicted(_plan(world, rfq_name="Another RFQ"))
    assert not set(_all(renamed)) & {at.rfq, at.executor, at.delta, at.router}
    assert renamed.fee_vault == at.fee_vault  # the vault's address is independent of the RFQ


async def test_a_second_run_sends_nothing(world: World) -> None:
    plan = _plan(world)
    at = await deploy(world.chain, world.owner, plan)
    nonce = await world.chain.nonce(world.owner.address)
    said: list[str] = []
    assert await deploy(world.chain, world.owner, plan, said.append) == at
    assert await world.chain.nonce(world.owner.address) == nonce
    assert said == [
        *(f"{name} is at {to_checksum(address)}" for name, address in zip(CREATED, _all(at), strict=True)),
        "callers, relayers, pauser, caps and pause are as planned",
    ]


async def test_a_changed_plan_changes_settings_only(world: World) -> None:
    at = await deploy(world.chain, world.owner, _plan(world))
    nonce = await world.chain.nonce(world.owner.address)
    plan = _plan(world, is_open=False, caps={world.weth: 2 * ONE})
    assert await deploy(world.chain, world.owner, plan) == at
    assert await world.chain.nonce(world.owner.address) == nonce + 4  # a cap and a pause, on two contracts
    assert await _is_set_up(world, plan, at)
    assert await world.ask(at.router, owner_calldata.IS_PAUSED) == 1


async def test_a_run_without_enough_gas_money_goes_on_once_there_is(world: World) -> None:
    owner = person(40)
    plan = _plan(world, owner=owner.address)
    at = _predicted(plan)
    fees = await world.chain.fees()
    await world.chain.set_balance(owner.address, FIRST_GAS * (2 * fees.base_fee_wei + fees.tip_wei))
    with pytest.raises(TransactionRefused) as refusal:
        await deploy(world.chain, owner, plan)
    assert refusal.value.kind is RefusalKind.FUNDS
    made = [bool(await world.chain.code(address)) for address in _all(at)]
    assert made == sorted(made, reverse=True)
    assert made[0]
    assert not made[-1]
    await world.chain.set_balance(owner.address, 100 * ONE)
    assert await deploy(world.chain, owner, plan) == at
    assert await _is_set_up(world, plan, at)
    assert await world.chain.nonce(owner.address) == len(CREATED) + len([*provisions(plan, at)])


async def test_a_run_that_broke_off_between_settings_goes_on(world: World) -> None:
    closed = _plan(world, is_open=False, caps={}, relayers=())
    at = await deploy(world.chain, world.owner, closed)
    nonce = await world.chain.nonce(world.owner.address)
    assert await deploy(world.chain, world.owner, _plan(world)) == at
    assert await world.chain.nonce(world.owner.address) == nonce + 5  # a relayer, two caps, opened twice
    assert await _is_set_up(world, _plan(world), at)


async def test_a_contract_that_a_stranger_created_is_the_same_contract(world: World) -> None:
    plan = _plan(world)
    rfq = creations(plan, lambda number, init_code: create2_address(FACTORY, plan.salt32, init_code))[0]
    await transact(world.chain, world.stranger, FACTORY, plan.salt32 + rfq.init_code)
    nonce = await world.chain.nonce(world.owner.address)
    at = await deploy(world.chain, world.owner, plan)
    assert at == _predicted(plan)
    assert await world.chain.nonce(world.owner.address) == nonce + len(CREATED) - 1 + len(
        [*provisions(plan, at)]
    )


@pytest.mark.one_chain
async def test_without_a_factory_addresses_follow_from_the_nonce(world: World) -> None:
    await put_code(world.chain, FACTORY, b"")
    owner = person(41)
    await world.chain.set_balance(owner.address, 100 * ONE)
    await transact(world.chain, owner, world.stranger.address, b"", value_wei=1)
    plan = _plan(world, owner=owner.address)
    at = await deploy(world.chain, owner, plan)
    assert list(_all(at)) == [contract_address(owner.address, nonce) for nonce in range(1, 1 + len(CREATED))]
    assert await _is_set_up(world, plan, at)
    again = await deploy(world.chain, owner, plan)
    assert not set(_all(again)) & set(_all(at))
    with pytest.raises(ChainError, match=f"no factory at {to_checksum(FACTORY)}"):
        await create(world.chain, world.owner, "DevAgent", salt32=b"\x06" * 32)


@pytest.mark.one_chain
async def test_a_factory_that_creates_nothing_is_found_out(world: World) -> None:
    await put_code(world.chain, FACTORY, assembled("32 0 RETURN"))
    plan = _plan(world)
    rfq = to_checksum(_predicted(plan).rfq)
    with pytest.raises(ChainError, match=f"Rfq is not at {rfq}, where it belongs"):
        await deploy(world.chain, world.owner, plan)


async def test_only_the_owner_deploys(world: World) -> None:
    nonce = await world.chain.nonce(world.stranger.address)
    with pytest.raises(ChainError) as refusal:
        await deploy(world.chain, world.stranger, _plan(world))
    assert to_checksum(world.owner.address) in str(refusal.value)
    assert to_checksum(world.stranger.address) in str(refusal.value)
    assert await world.chain.nonce(world.stranger.address) == nonce


async def test_nothing_is_open_before_it_is_bounded(world: World) -> None:
    plan = _plan(world, caps={world.weth: ONE, world.usdc: MOST})
    asked = [(item.contract, item.change[:4]) for item in provisions(plan, world.at)]
    for railed in (world.at.delta, world.at.router):
        own = [change for contract, change in asked if contract == railed]
        assert own[-1] == owner_calldata.SET_PAUSED
        assert own.count(owner_calldata.SET_CAP) == 2


async def test_a_deployer_keeps_nothing_once_it_has_handed_over(world: World) -> None:
    """By getters and by every account that logs name; the fees' receiver by default is the deployer too."""
    deployer, new = world.owner, world.stranger
    mine = deployer.address
    plan = _plan(world, protocol=mine, pauser=mine, relayers=(mine, world.relayer.address))
    made = await deploy(world.chain, deployer, plan)
    at = OwnedContracts(made.delta, made.router, made.executor, made.fee_vault)
    for contract, data in (
        (at.executor, owner_calldata.set_caller(mine, allowed=True)),
        (at.fee_vault, owner_calldata.set_collector(mine, allowed=True)),
    ):
        await world.send(deployer, contract, data)
    found = await roles_of(world.chain, at, 0)
    assert {(held.owner, held.pauser or mine, held.protocol or mine) for held in found.powers.values()} == {
        (mine, mine, mine)
    }
    assert all(mine in accounts for accounts in (found.relayers, found.callers, found.collectors))

    for act in await handover_of(world.chain, at, new.address):
        await world.send(deployer, act.to, act.data)
    assert await handover_of(world.chain, at, new.address) == []
    for contract in at.named().values():
        await world.send(new, contract, owner_calldata.ACCEPT_OWNER)

    found = await roles_of(world.chain, at, 0)
    for held in found.powers.values():
        assert (held.owner, held.proposed) == (new.address, NOBODY)
        assert held.pauser in (None, NOBODY)
        assert held.protocol in (None, new.address)
    callers = [at.delta, at.router, made.arrivals]
    assert (found.relayers, found.callers) == ([world.relayer.address], callers)
    assert found.collectors == [at.delta, at.router]
    for contract in at.railed().values():
        assert await world.refused(deployer, contract, owner_calldata.PAUSE) == "NotPauser()"
