"""The contract's arithmetic is that of proceeds.py, whatever the terms; on the embedded chain."""

import time

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.delta_calldata import SettlementStep
from cambist.codecs.eip712_orders.partner_and_fee import PartnerAndFee, pack_partner_and_fee
from cambist.config.errors import Reverted
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.proceeds import of_purchase, of_sale
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.world import NOBODY, USDC, a_world, person
from support.contracts.settling import STEP_GAS, Market, a_market

pytestmark = pytest.mark.needs("pyrevm")

PARTNER = person(5).address
HAS = 100_000 * USDC
"""USDC units that the agent can deliver."""

amounts = st.integers(0, HAS // 4) | st.integers(0, 1_000)
all_terms = st.builds(
    PartnerAndFee, st.sampled_from([PARTNER, NOBODY]), st.integers(0, 200), st.booleans(), st.booleans()
)


@pytest.fixture(scope="module")
def lasting_market() -> Market:
    """Market shared by all examples; the caller returns to a snapshot."""

    async def made() -> Market:
        chain = EmbeddedChain(31_337, lambda: int(time.time()), {}, known_errors())
        return await a_market(await a_world(chain))

    return trio.run(made)


@given(received=amounts, expected=amounts, minimum=amounts, terms=all_terms)
def test_of_a_sale(
    lasting_market: Market, received: int, expected: int, minimum: int, terms: PartnerAndFee
) -> None:
    market, world = lasting_market, lasting_market.world

    async def story() -> None:
        snapshot = await world.chain.snapshot()
        order = await world.a_delta_order(
            src_amount=1,
            dest_amount=minimum,
            expected_amount=expected,
            partner_and_fee=pack_partner_and_fee(terms),
        )
        cut = of_sale(received, expected, minimum, terms)
        net = received - cut.total
        steps = market.agent_steps(received, given=1)
        if net < minimum:
            with pytest.raises(Reverted, match=rf"BelowMinimum\(received {net}, minimum {minimum}\)"):
                await market.settle(order, *steps)
        else:
            settled = await market.settle(order, *steps)
            assert settled.event.received == net
            assert sum(fee.amount for fee in settled.fees) == cut.total
            assert await world.balance(world.usdc, world.user) == net
        await world.chain.restore(snapshot)

    trio.run(story)


@given(spent=amounts, spare=st.integers(0, 1_000), expected=amounts, maximum=amounts, terms=all_terms)
def test_of_a_purchase(
    lasting_market: Market, spent: int, spare: int, expected: int, maximum: int, terms: PartnerAndFee
) -> None:
    market, world = lasting_market, lasting_market.world

    async def story() -> None:
        snapshot = await world.chain.snapshot()
        order = await market.a_purchase(
            src_amount=maximum,
            dest_amount=1,
            expected_amount=expected,
            partner_and_fee=pack_partner_and_fee(terms),
        )
        src_given = spent + spare
        most, cut = (of_purchase(amount, expected, maximum, terms) for amount in (src_given, spent))
        before = await world.balance(world.weth, world.user)
        back = SettlementStep(world.weth, STEP_GAS, calldata.transfer(world.at.delta, spare))
        steps = (*market.agent_steps(1, given=spent), back)
        if most is None or cut is None:
            told = src_given + src_given * terms.fee_bps // 10_000
            with pytest.raises(Reverted, match=rf"AboveMaximum\(spent {told}, maximum {maximum}\)"):
                await market.settle(order, *steps, src_given=src_given)
        else:
            settled = await market.settle(order, *steps, src_given=src_given)
            assert settled.event.spent == spent + cut.total <= maximum
            assert sum(fee.amount for fee in settled.fees) == cut.total
            assert before - await world.balance(world.weth, world.user) == spent + cut.total
        await world.chain.restore(snapshot)

    trio.run(story)
