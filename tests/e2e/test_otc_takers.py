"""OTC orders whose taker is a contract of the venue: stored only where the contracts can fill them.

The RFQ contract takes a fill of a named taker from that account alone ("Access denied"). The Router has the
executor fill, which fills an order for itself only for the user in the lower 160 bits of `nonceAndMeta`.
"""

from pathlib import Path

import pytest

from cambist.codecs.eip712_orders.nonce_and_meta import pack_firm, pack_otc
from cambist.crypto.addresses import to_checksum
from cambist.crypto.hexadecimal import parse_hex, to_hex
from support.chain.world import ONE, USDC, World
from support.otc.otc_front import CHAIN_ID
from support.otc.otc_stories import an_otc_story

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while


@pytest.mark.parametrize("role", ["router", "rfq", "delta", "fee_vault", "arrivals"])
async def test_an_order_for_a_contract_that_fills_none_is_refused(
    world: World, tmp_path: Path, role: str
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        taker = getattr(story.web.app.chains[CHAIN_ID], role)
        assert taker, "the venue knows the contract"
        for meta in (pack_otc(world.maker.address, 1), pack_firm(world.user.address, 2), 0):
            order = story.an_order(taker=taker, nonce_and_meta=meta)
            status, kind, details = await story.fault(order)
            assert (status, kind) == (400, "InvalidInput")
            assert "taker: expected an account that fills at the RFQ contract itself" in details
            assert f"got '{to_checksum(taker)}'" in details


async def test_an_order_for_the_executor_names_the_user_that_it_is_for(world: World, tmp_path: Path) -> None:
    async with an_otc_story(world, tmp_path) as story:
        for meta in (pack_otc(world.maker.address, 1), 0, 5 << 160):
            order = story.an_order(taker=world.at.executor, nonce_and_meta=meta)
            status, kind, details = await story.fault(order)
            assert (status, kind) == (400, "InvalidInput")
            assert "taker: expected a user in the lower 160 bits of nonceAndMeta" in details
            assert to_checksum(world.at.executor) in details


async def test_an_order_for_the_executor_is_filled_by_its_user_through_the_router(
    world: World, tmp_path: Path
) -> None:
    async with an_otc_story(world, tmp_path) as story:
        await world.give(world.user, world.weth, ONE, world.at.router)
        meta = pack_firm(world.user.address, 7)
        order = story.an_order(taker=world.at.executor, nonce_and_meta=meta)
        stored = await story.posted(order)
        assert (stored["type"], stored["takerFromMeta"]) == ("P2P", to_checksum(world.user.address))
        item = {name: stored[name] for name in story.body(order) if name != "permitMakerAsset"}
        asked = {
            "orders": [item],
            "srcToken": to_hex(world.weth),
            "destToken": to_hex(world.usdc),
            "srcAmount": str(ONE),
            "userAddress": to_checksum(world.user.address),
            "slippage": 100,
        }
        status, built = await story.post(f"/transactions/{CHAIN_ID}", asked)
        assert status == 200, built
        await world.send(world.user, parse_hex(built["to"], "to"), parse_hex(built["data"], "data"))
        assert (await story.seen(stored))["state"] == "FULFILLED"
        assert await world.balance(world.usdc, world.user.address) > 2_400 * USDC
