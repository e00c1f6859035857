"""Whoever does whatever to the contracts: nobody loses what an own signature or call did not give."""

import time

from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.embedded import EmbeddedChain
from support.contract_fuzz import a_fuzz
from support.examples import examples
from support.settling import a_market
from support.world import a_world

STEPS = 1_250
"""50,000 where the run is one that searches."""


async def test_nobody_loses_what_was_not_given() -> None:
    chain = EmbeddedChain(31_337, lambda: int(time.time()), {}, known_errors())
    world = await a_world(chain)
    fuzz = await a_fuzz(world, await a_market(world), seed=19)
    steps = examples(STEPS)
    for _ in range(steps):
        await fuzz.step()
    for kind in ("settle", "cross", "swap", "fill"):
        assert fuzz.did[f"{kind} done"] > steps // 100, fuzz.did
