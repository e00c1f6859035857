"""The settlers of each kind of order: fixed when Delta is made, and nothing without it."""

import pytest

from cambist.codecs.contracts import calldata, delta_calldata, owner_calldata
from cambist.codecs.contracts.abi import address_word, bytes_tail, encode, selector
from cambist.config.errors import Reverted
from cambist.engine.chain.artifacts import artifact
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import EthCall
from support.chain.world import DELTA_NAME, DELTA_VERSION, ONE, USDC, World
from support.contracts.settling import Market

FAIR = 2_500 * USDC
SETTLERS = ("swap_settler", "twap_settler", "productive_settler", "external_settler")

PUBLIC = {
    "setPreSignature(bytes32,bool)": "eb8fb268",
    "depositNativeAndPreSign(bytes32)": "a1e77937",
    "withdrawNative(uint256)": "84276d81",
    "cancelAndWithdraw(Order,bool)": "0cde75a4",
}
"""Signatures that public clients call (interop.md 2)."""


def test_public_clients_find_what_they_call() -> None:
    found = {one.hex() for one in artifact("Delta").selectors().values()}
    assert set(PUBLIC.values()) <= found
    for called in (delta_calldata.CANCEL_TWAP_AND_WITHDRAW, delta_calldata.CANCEL_TWAP_BUY_AND_WITHDRAW):
        assert called.hex() in found
    assert delta_calldata.CANCEL_AND_WITHDRAW.hex() == PUBLIC["cancelAndWithdraw(Order,bool)"]


@pytest.mark.parametrize("settler", SETTLERS)
async def test_a_settler_does_nothing_alone(world: World, market: Market, settler: str) -> None:
    """A settler has no relayer and no owner to name one, and cannot spend allowances to Delta."""
    at = getattr(world.at, settler)
    order, twap = await world.a_delta_order(), await market.a_twap()
    productive, handled = await market.a_productive_order(), await market.an_external_order()
    await world.approve(world.user, world.weth, at)
    calls = {
        "swap_settler": [
            market.settlement(order, *market.agent_steps(FAIR)),
            delta_calldata.settle_crossed([market.crossing(order, 0), market.crossing(order, 0)]),
        ],
        "twap_settler": [market.settlement(twap, *market.agent_steps(FAIR))],
        "productive_settler": [market.settlement(productive, *market.agent_steps(FAIR))],
        "external_settler": [market.settlement(handled)],
    }[settler]
    for data in calls:
        for key in (world.relayer, world.owner, world.stranger):
            assert await world.refused(key, at, data) == "NotRelayer()"
    for change in (
        owner_calldata.set_relayer(world.stranger.address, allowed=True),
        owner_calldata.set_paused(paused=False),
        owner_calldata.ACCEPT_OWNER,
    ):
        assert await world.refused(world.owner, at, change) == ""
    assert await world.ask(at, owner_calldata.IS_PAUSED) == 1


async def test_delta_takes_settlers_of_its_own_terms_alone(world: World) -> None:
    """Delta refuses a settler with another name (other signatures) or another executor (other fills)."""

    def places(executor: bytes) -> bytes:
        at = (executor, world.at.fee_vault, world.weth, world.permit2, world.at.bridges)
        return b"".join(map(address_word, at))

    names = bytes_tail(DELTA_NAME.encode()), bytes_tail(DELTA_VERSION.encode())
    good = [address_word(getattr(world.at, name)) for name in SETTLERS]
    by = [address_word(world.protocol), address_word(world.owner.address)]
    renamed = bytes_tail(b"Another"), names[1]
    executor = await create(
        world.chain, world.owner, "RfqExecutor", address_word(world.at.rfq) + by[1], b"\x07" * 32
    )
    for arguments in (encode(*renamed, places(world.at.executor)), encode(*names, places(executor))):
        other = await create(world.chain, world.owner, "SwapSettler", arguments)
        for at in range(len(good)):
            settlers = [*good[:at], address_word(other), *good[at + 1 :]]
            data = encode(*names, places(world.at.executor), *by, *settlers)
            with pytest.raises(Reverted, match=f"InvalidSettler\\(settler 0x{other.hex()}\\)"):
                await world.chain.call(EthCall(b"", artifact("Delta").init_code(data), world.owner.address))


async def test_delta_tells_of_its_places(world: World) -> None:
    at = world.at
    places = {
        "executor()": at.executor, "feeVault()": at.fee_vault, "weth()": world.weth,
        "permit2()": world.permit2, "bridges()": at.bridges,
        "swapSettler()": at.swap_settler, "twapSettler()": at.twap_settler,
        "productiveSettler()": at.productive_settler, "externalSettler()": at.external_settler,
    }  # fmt: skip
    told = {name: await world.ask(at.delta, selector(name)) for name in places}
    assert told == {name: int.from_bytes(place) for name, place in places.items()}


async def test_fees_without_a_partner_go_to_whoever_the_owner_names(world: World, market: Market) -> None:
    order = await world.a_delta_order(partner_and_fee=100, dest_amount=1)
    half = market.agent_steps(FAIR // 2, given=ONE // 2)
    await market.settle(order, *half, amount=ONE // 2)
    fee = FAIR // 200
    assert await market.owed(world.protocol, world.usdc) == fee
    named = world.stranger.address
    assert (
        await world.refused(world.relayer, world.at.delta, owner_calldata.set_protocol(named)) == "NotOwner()"
    )
    await world.send(world.owner, world.at.delta, owner_calldata.set_protocol(named))
    await market.settle(order, *half, amount=ONE // 2)
    assert await market.owed(world.protocol, world.usdc) == await market.owed(named, world.usdc) == fee


async def test_an_agents_caller_is_created_by_delta(world: World, market: Market) -> None:
    agent = delta_calldata.agent_id("a new one")
    at = await world.ask(world.at.delta, delta_calldata.agent_caller(agent))
    answer = await world.chain.call(EthCall(world.at.delta, delta_calldata.create_agent_caller(agent)))
    assert int.from_bytes(answer, "big") == at
    address = at.to_bytes(20, "big")
    await world.send(world.stranger, world.at.delta, delta_calldata.create_agent_caller(agent))
    assert await world.ask(address, selector("delta()")) == int.from_bytes(world.at.delta, "big")


async def test_one_approval_of_delta_is_enough_for_every_kind_of_order(world: World, market: Market) -> None:
    """The approval is of Delta, for the exact amount that all orders give: no settler needs its own."""
    owner, tenth = world.user, ONE // 10
    sale = await world.a_delta_order()
    purchase = await market.a_purchase()
    twap = await market.a_twap(num_slices=1, dest_amount_per_slice=2_400 * USDC)
    twap_purchase = await market.a_twap_purchase(num_slices=1)
    crossed = await world.a_delta_order(src_amount=tenth, dest_amount=240 * USDC, expected_amount=0)
    counter = await market.a_counter_order(
        src_amount=250 * USDC, dest_amount=9 * ONE // 100, expected_amount=0
    )
    await world.approve(owner, world.weth, world.at.delta, 4 * ONE + tenth)
    nonce = await world.chain.nonce(owner.address)
    held = await world.balance(world.weth, owner)

    await market.settle(sale, *market.agent_steps(FAIR))
    await market.settle(purchase, *market.agent_steps(FAIR), src_given=ONE)
    await market.settle(twap, *market.agent_steps(FAIR))
    await market.settle(twap_purchase, *market.agent_steps(FAIR), src_given=ONE)
    await market.cross(market.crossing(crossed, 250 * USDC), market.crossing(counter, tenth))

    assert await world.balance(world.weth, owner) == held - 4 * ONE - tenth
    assert await world.chain.nonce(owner.address) == nonce
    for spender in (world.at.delta, *(getattr(world.at, name) for name in SETTLERS)):
        assert await world.ask(world.weth, calldata.allowance(owner.address, spender)) == 0
