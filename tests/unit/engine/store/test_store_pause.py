"""Pauses of the engine before it starts a store process again."""

import pytest

from cambist.config.timeouts import STORE_PAUSE_S, STORE_PAUSE_S_MAX
from cambist.engine.store.process.process_link import pause_s


@pytest.mark.parametrize(
    ("failures", "longest_s"),
    [
        (1, STORE_PAUSE_S),
        (2, 2 * STORE_PAUSE_S),
        (3, 4 * STORE_PAUSE_S),
        (10, STORE_PAUSE_S_MAX),
        (1_000_000, STORE_PAUSE_S_MAX),
    ],
)
def test_it_doubles_up_to_a_bound_and_is_never_the_same(failures: int, longest_s: float) -> None:
    assert pause_s(failures, 0) == longest_s / 2
    assert pause_s(failures, 1) == longest_s
