"""Random lives of orders that wait, with the whole venue, the real contracts and the real SQL in one process.

Makers' books and the agent's prices come and go, owners submit, cancel, give up nonces, move their funds and
bring them back, others settle parts, time passes and jumps, blocks are held and replaced, and the venue dies
between any two things that it does. Whatever happens: every step is one of the life cycle's table, and nobody
gives more or gets less than was signed. Whenever nothing moves, statuses, fills, who rests, who is suspended
and who is auctioned are what a plain model says; and once the trouble ends everything that still can is
filled, and nothing is left in memory.
"""

import itertools
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
import trio
import trio.testing
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from support.chain.world import MOST, ONE
from support.delta.waiting_chain import OWNERS
from support.delta.waiting_orders import a_life_of_orders
from support.delta.waiting_venue import CONFIRMATIONS
from support.examples import IS_LONG, examples

pytestmark = pytest.mark.needs("pyrevm")

EXAMPLES = 200 if IS_LONG else examples(4)
PHASES = tuple(Phase) if IS_LONG else (Phase.explicit, Phase.reuse, Phase.generate)
"""A life takes seconds: to make a failing one short takes minutes."""

WHICH, OWNER = st.integers(0, 30), st.integers(0, len(OWNERS) - 1)
LIMITS = st.sampled_from([2_200, 2_400, 2_600])
KINDS = st.sampled_from(
    [
        *("limit sale", "limit sale", "limit purchase", "limit native sale"),
        *("market sale", "market purchase", "twap sale", "twap purchase"),
    ]
)
SIZES = st.sampled_from([5, 10, 20, 60])
LIVES_S = st.sampled_from([30, 600, 600, 3_000])
SUBMIT = st.tuples(st.just("submit"), OWNER, KINDS, SIZES, LIMITS, LIVES_S, st.booleans())
BOOK = st.tuples(
    st.just("book"), st.sampled_from([2_700, 2_500, 2_300, 2_100, None]), st.sampled_from([5_000, 40])
)
AGENT = st.tuples(
    st.just("agent"), st.sampled_from([2_700, 2_700, 2_500, 2_300, None]), st.sampled_from([0, 70])
)
FUNDS = st.one_of(
    st.tuples(st.just("allow"), OWNER, st.sampled_from([MOST, 4 * ONE, 2 * ONE, ONE, 0])),
    st.tuples(st.just("move"), OWNER, st.sampled_from([4 * ONE, ONE, 0])),
    st.tuples(st.just("give back"), OWNER, st.sampled_from([10 * ONE, ONE])),
    st.tuples(st.sampled_from(["deposit", "withdraw"]), WHICH),
)
OWNERS_DO = st.one_of(
    st.tuples(st.just("cancel"), WHICH),
    st.tuples(st.just("foreign"), WHICH, st.sampled_from([1, 50, 100])),
    st.tuples(st.just("foreign"), WHICH, st.sampled_from([1, 50, 100])),
    st.tuples(st.just("give up"), WHICH),
)
TIME = st.one_of(
    st.tuples(st.just("pass"), st.sampled_from([0.1, 0.6, 1, 5])),
    st.tuples(st.just("jump"), st.sampled_from([61, 61, 5, 200])),
)
CRASH = st.tuples(st.just("crash"), st.integers(0, 80))
REORGANISE = st.tuples(st.just("reorganise"), st.integers(1, CONFIRMATIONS - 1))
NODE_AWAY = st.tuples(st.just("node away"), st.sampled_from([0.5, 3, 15]))
TROUBLES = st.one_of(st.tuples(st.sampled_from(["go on", "go on", "hold"])), CRASH, REORGANISE, NODE_AWAY)
REST = st.just(("rest",))
# Steps that combine rare events: a change happens while a settlement is under way, or once it
# was taken back, or an owner comes short of something while nobody fills the order.
UNDER_WAY = st.tuples(
    st.just(("hold",)),
    SUBMIT,
    st.just(("book", 2_700, 5_000)),
    st.tuples(st.just("agent"), st.just(2_700), st.sampled_from([0, 70])),
    st.tuples(st.just("pass"), st.sampled_from([0.7, 2, 4])),
    st.one_of(FUNDS, OWNERS_DO, TROUBLES, st.just(("jump", 200))),
    st.sampled_from([("go on",), ("go on",), ("pass", 1)]),
)
TAKEN_BACK = st.tuples(
    st.tuples(st.just("agent"), st.just(2_700), st.sampled_from([0, 70])),
    SUBMIT,
    st.tuples(st.just("pass"), st.sampled_from([1, 2, 4])),
    REORGANISE,
    st.one_of(FUNDS, OWNERS_DO, TROUBLES, TIME),
    REST,
)
SHORT = st.tuples(st.tuples(st.just("agent"), st.none(), st.just(0)), SUBMIT, FUNDS, REST)
ONE_STEP = st.one_of(SUBMIT, SUBMIT, SUBMIT, BOOK, AGENT, FUNDS, FUNDS, OWNERS_DO, TIME, TIME, TROUBLES, REST)
STEPS = st.one_of(st.tuples(ONE_STEP), st.tuples(ONE_STEP), st.tuples(ONE_STEP), UNDER_WAY, TAKEN_BACK, SHORT)


async def simulate(steps: list[tuple[Any, ...]], folder: Path) -> None:
    async with a_life_of_orders(folder) as life:
        for step in itertools.chain.from_iterable(steps):
            await life.do(step)
            await life.check()
        await life.rest()
        await life.end_well()


@settings(max_examples=EXAMPLES, phases=PHASES)
@given(st.lists(STEPS, min_size=15, max_size=40))
def test_whatever_happens_orders_end_as_the_model_says(steps: list[tuple[Any, ...]]) -> None:
    with TemporaryDirectory() as folder:
        trio.run(simulate, steps, Path(folder), clock=trio.testing.MockClock(autojump_threshold=0))
