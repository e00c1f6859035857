"""The code on a chain is held against the artifacts: immutables may differ, and nothing else."""

import pytest

from cambist.engine.chain.deploy.verification import is_code_of
from support.chain.world import World


@pytest.fixture
async def codes(world: World) -> dict[str, bytes]:
    at = world.at
    places = {"Rfq": at.rfq, "Delta": at.delta, "Router": at.router, "RfqExecutor": at.executor}
    places |= {"FeeVault": at.fee_vault, "DevWeth": world.weth, "DevToken": world.usdc}
    return {name: await world.chain.code(address) for name, address in places.items()}


async def test_what_was_created_is_what_was_compiled(codes: dict[str, bytes]) -> None:
    assert {name for name, code in codes.items() if is_code_of(name, code)} == set(codes)


async def test_any_other_code_is_told_apart(codes: dict[str, bytes]) -> None:
    code = codes["Router"]
    for at in (0, len(code) // 3, len(code) - 1):
        assert not is_code_of("Router", code[:at] + bytes([code[at] ^ 1]) + code[at + 1 :])
    assert not is_code_of("Router", code + b"\0")
    assert not is_code_of("Router", code[1:])
    assert not is_code_of("Router", b"")
    assert not is_code_of("Delta", code)
