"""ethers and viem sign what the venue builds for orders from vaults and orders of handlers."""

from pathlib import Path

import pytest

from cambist.crypto.addresses import to_checksum
from support.chain.world import USDC, World
from support.contracts.handlers import DELIVER, a_handler, acts
from support.delta.resting_stories import a_built_story, prices
from support.oracles import Oracle

pytestmark = pytest.mark.one_chain  # the venue looks at it all the while

FAIR = 2_500 * USDC


@pytest.mark.parametrize("library", ["ethers", "viem"])
@pytest.mark.parametrize("kind", ["ProductiveOrder", "ExternalOrder"])
async def test_a_library_signs_the_kind_and_the_venue_settles_it(
    world: World, tmp_path: Path, javascript: Oracle, kind: str, library: str
) -> None:
    async with a_built_story(world, tmp_path, {"WETH/USDC": prices("2500", "2510")}) as built:
        handler = await a_handler(world, FAIR)
        asked = {
            "ProductiveOrder": {"strategy": to_checksum(built.vault.address)},
            "ExternalOrder": {"handler": to_checksum(handler), "data": f"0x{acts(DELIVER, FAIR).hex()}"},
        }[kind]
        status, told = await built.build(orderType=kind, slippage=100, **asked)
        assert status == 200, told
        signed = javascript.ask(**told["toSign"], primaryType=kind, key=f"0x{world.user.secret32().hex()}")
        assert signed["inferredPrimaryType"] == kind
        assert signed[f"{library}Digest"] == told["orderHash"]
        record = await built.placed(told, signed[f"{library}Signature"], onChainOrderType=kind)
        record = await built.story.becomes(record, "COMPLETED")
        assert record["onChainOrderType"] == kind
