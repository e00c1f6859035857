"""Both bridges by the wall clock and over sockets, between two embedded chains and between two anvils."""

from collections.abc import AsyncIterator

import pytest

from cambist.codecs.bridges import cctp
from cambist.engine.chain.port import DevChain
from support.bridge.two_chains import RECIPIENT, bridged, embedded_chains
from support.chain.anvil import CHAIN_ID, OTHER_CHAIN_ID, opened
from support.chain.world import USDC
from support.patience import until_told

HOUR_S = 3_600


@pytest.fixture(params=["embedded", pytest.param("anvil", marks=pytest.mark.anvil)])
async def chains(request: pytest.FixtureRequest) -> AsyncIterator[dict[int, DevChain]]:
    if request.param == "embedded":
        yield embedded_chains()
        return
    first, second = (request.getfixturevalue(name) for name in ("anvil", "other_anvil"))
    async with opened(first) as chain, opened(second) as other:
        yield {CHAIN_ID: chain, OTHER_CHAIN_ID: other}


async def test_a_fill_a_refund_and_a_burn(chains: dict[int, DevChain]) -> None:
    async with (await bridged(chains)).served_on_a_port() as two:
        two.relayer.order(fill_after_s=0)
        two.attester.order(fast_after_s=0)
        filled = await two.deposit(two.first, 1_000 * USDC)
        await until_told(lambda: two.fills(filled))
        two.relayer.order(is_silent=True)
        left = await two.deposit(two.second, 500 * USDC)
        for world in two.worlds.values():
            await world.pass_time(2 * HOUR_S)
        await until_told(lambda: two.payouts(two.second))
        await until_told(lambda: two.payouts(two.first))
        (refund,) = await two.payouts(two.second)
        assert refund.refund_addresses == (two.user.address,)
        assert (await two.fills(left), len(await two.fills(filled))) == ([], 1)
        terms = {"max_fee": 100_000, "min_finality": cctp.FINALITY_CONFIRMED}
        tx_hash = await two.burn(two.first, 1_000 * USDC, **terms)
        await two.receive(two.second, *(await two.attested(two.first, tx_hash)))
        has = await two.balance(two.second, "USDC", RECIPIENT)
        assert has == filled.output_amount + 1_000 * USDC - 100_000
