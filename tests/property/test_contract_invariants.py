"""Random calls to the contracts: an account loses only funds that its own signature or call gave.

`make test-long` makes 50,000 steps, and plants faults into the contracts, which the fuzz has to find within
PLANTED_STEPS: a minute.
"""

import shutil
import time
from pathlib import Path

import pytest

from cambist.engine.chain import artifacts
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.world import a_world
from support.contracts.contract_compiler import SOURCES, compiled_again
from support.contracts.contract_fuzz import Fuzz
from support.contracts.fuzzed_world import a_fuzz
from support.contracts.settling import a_market
from support.examples import IS_LONG, examples
from support.programs import program

STEPS = 1_250
"""50,000 where the run is one that searches."""
PLANTED_STEPS = 4_000
SETTLING, NON_REENTRANT = "lib/Settling.sol", "lib/NonReentrant.sol"
PLANTED = {
    "a sale has no minimum": (
        SETTLING,
        "if (net < part.destAmount) revert BelowMinimum(net, part.destAmount);",
        "if (arrived < part.destAmount) revert BelowMinimum(arrived, part.destAmount);",
    ),
    "a purchase has no minimum": (
        SETTLING,
        "if (received < part.destAmount) revert BelowMinimum(received, part.destAmount);",
        "if (arrived < part.destAmount) revert BelowMinimum(arrived, part.destAmount);",
    ),
    "agents share a caller": (SETTLING, "caller = callerOf(execution.agent)"),
    "a vault takes more shares than were signed": (
        "ProductiveSettler.sol",
        "uint256 most = Math.ceilDiv(order.shares * amount, order.srcAmount);",
        "if (shares > most) revert TooManyShares(shares, most);",
    ),
    "a contract at work is open": (NON_REENTRANT, "if (entered) revert Reentered();"),
}
"""A file, and the text that a fault takes out of it: a check, or the agent by whose caller calls are made."""
SHARED = 'caller = callerOf(keccak256("ann"))'


async def _a_fuzz() -> Fuzz:
    chain = EmbeddedChain(31_337, lambda: int(time.time()), {}, known_errors())
    world = await a_world(chain)
    return await a_fuzz(world, await a_market(world), seed=19)


async def test_nobody_loses_what_was_not_given() -> None:
    fuzz, steps = await _a_fuzz(), examples(STEPS)
    for _ in range(steps):
        await fuzz.step()
    for done in ("settle done", "cross done", "swap done", "fill done", "turned away", "entered beside"):
        assert fuzz.did[done] > steps // 100, fuzz.did
    for done in ("vault done", "handle done", "bridged"):
        assert fuzz.did[done] > steps // 200, fuzz.did
    assert len(fuzz.entries) > 50
    if steps >= STEPS:
        assert set(fuzz.entries) <= fuzz.entered


if IS_LONG:  # the compiler takes a quarter of a minute for each

    @pytest.mark.oracle
    @pytest.mark.parametrize("fault", PLANTED)
    async def test_a_planted_fault_is_found(
        fault: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        program("npm-packages")
        sources = Path(shutil.copytree(SOURCES, tmp_path / "contracts"))
        file, *texts = PLANTED[fault]
        text = (sources / file).read_text(encoding="utf-8")
        for removed in texts:
            assert text.count(removed) == 1, removed
            text = text.replace(removed, SHARED if removed.startswith("caller") else "")
        (sources / file).write_text(text, encoding="utf-8")
        compiled_again(sources, file, sources / "artifacts")
        monkeypatch.setattr(artifacts, "FOLDER", sources / "artifacts")
        artifacts.artifact.cache_clear()
        try:
            fuzz, found = await _a_fuzz(), False
            for _ in range(PLANTED_STEPS):
                try:
                    await fuzz.step()
                except AssertionError:
                    found = True
                    break
            assert found, fuzz.did
        finally:
            artifacts.artifact.cache_clear()
