"""A partner and an owner of one party against the fee vault: odd partners, tokens and receivers.

The vault pays every other partner what it owes, to the unit, whatever the two settle and claim.
"""

import pytest

from cambist.codecs.contracts.abi import address_word, selector, uint_word
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.engine.chain.port import EthCall
from support.chain.world import ONE, World
from support.contracts.settling import Market, claim

TOTAL_OWED = selector("totalOwed(address)")
SET_TRANSFER_FEE = selector("setTransferFee(uint256)")
PARTNERS = ["vault", "Delta", "Router", "owner", "protocol"]
OUTPUT = 1_000_000


async def a_settlement(world: World, market: Market, odd: bytes, partner: bytes, expected: int) -> None:
    """The user sells a WETH for an odd token, with the highest fee; surplus beyond `expected` is shared."""
    terms = PartnerAndFee(partner, 200, True, False)
    order = await world.a_delta_order(
        dest_token=odd,
        dest_amount=1,
        expected_amount=expected,
        partner_and_fee=pack_partner_and_fee(terms),
    )
    await world.mint(odd, market.agent, OUTPUT)
    await market.settle(order, market.to_agent(ONE), market.from_agent(OUTPUT, odd))


async def is_covered(world: World, odd: bytes) -> bool:
    """Whether the vault has all that it owes of a token."""
    word = await world.chain.call(EthCall(world.at.fee_vault, TOTAL_OWED + address_word(odd)))
    return int.from_bytes(word) <= await world.balance(odd, world.at.fee_vault)


@pytest.mark.parametrize("name", PARTNERS)
async def test_an_owner_and_its_partner_take_nothing_of_anothers_fees(
    world: World, market: Market, name: str
) -> None:
    """Their token takes a fee from each transfer while they settle; no surplus, or all of it, is expected."""
    partner = {
        "vault": world.at.fee_vault,
        "Delta": world.at.delta,
        "Router": world.at.router,
        "owner": world.user.address,
        "protocol": world.protocol,
    }[name]
    odd, vault = await world.new_token(), world.at.fee_vault
    await a_settlement(world, market, odd, world.partner.address, OUTPUT)
    honest = await market.owed(world.partner.address, odd)
    assert honest == OUTPUT // 50
    for fee_bps in (0, 100, 5_000):
        await world.send(world.owner, odd, SET_TRANSFER_FEE + uint_word(fee_bps))
        for expected in (1, OUTPUT // 2, 10 * OUTPUT):
            before = await world.balance(odd, vault)
            await a_settlement(world, market, odd, partner, expected)
            assert await is_covered(world, odd)
            if expected == 10 * OUTPUT:
                most = OUTPUT // 50
                assert await world.balance(odd, vault) - before <= most, "a fee, and no surplus"
        if name == "owner":
            await world.send(world.user, vault, claim([odd], vault))
            assert await is_covered(world, odd)
    await world.send(world.owner, odd, SET_TRANSFER_FEE + uint_word(0))
    assert await market.owed(world.partner.address, odd) == honest
    await world.send(world.partner, vault, claim([odd], world.partner.address))
    assert await world.balance(odd, world.partner) == honest
    assert await is_covered(world, odd)
