"""Random lives of a relayer on a modelled chain, with its real driver and a real store.

Transactions are dropped, fees rise, blocks are replaced, another program uses the key, the node is away or
refuses requests, another engine takes the shard, and the relayer dies between any two steps. In every life no
intent is mined twice, no transaction costs more than the cap, and one effect has one payload; after the
trouble every intent is mined that still can be.
"""

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st

from support.chain.relayer_life import CONFIRMATIONS, a_life, check_always, check_at_rest
from support.examples import examples

pytestmark = pytest.mark.seldom

BLOCKS = st.tuples(st.just("blocks"), st.sampled_from([1, 1, 2, 5]), st.sampled_from([100, 100, 1, 0]))
SUBMIT = st.tuples(
    st.just("submit"),
    st.sampled_from(["E", "E", "EE", "EIE", "RE", "FE"]),
    st.sampled_from([None, None, 5, 60]),
)
TROUBLES = st.one_of(
    st.tuples(st.just("drop"), st.integers(0, 5)),
    st.tuples(st.just("fee"), st.sampled_from([1, 1, 1, 3, 9, 30, 60])),
    st.tuples(st.just("reorganise"), st.integers(1, CONFIRMATIONS - 1), st.booleans()),
    st.tuples(st.just("undo"), st.integers(1, CONFIRMATIONS - 1), st.booleans()),
    st.tuples(st.just("foreign"), st.sampled_from([0, 2, 6]), st.booleans()),
    st.tuples(st.just("away"), st.integers(1, 20)),
    st.tuples(st.just("poor"), st.sampled_from([0, 10**13]), st.integers(1, 20)),
    st.tuples(st.just("crash"), st.integers(0, 12)),
    st.tuples(st.just("hostile"), st.sampled_from([1, 5, 30])),
    st.tuples(st.just("lose"), st.integers(1, 20)),
)
STEPS = st.one_of(BLOCKS, BLOCKS, SUBMIT, SUBMIT, TROUBLES, TROUBLES)


async def simulate(steps: list[tuple[Any, ...]], folder: Path) -> None:
    async with a_life(folder) as life:
        for step in steps:
            await life.do(step)
            await trio.sleep(0.3)
            check_always(life)
        ended = await life.end_well()
        await trio.sleep(3)
        check_always(life)
        await check_at_rest(life, ended)


@settings(max_examples=examples(20))
@given(st.lists(STEPS, min_size=30, max_size=60))
def test_whatever_happens_each_effect_is_mined_once(steps: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as folder:
        trio.run(simulate, steps, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))
