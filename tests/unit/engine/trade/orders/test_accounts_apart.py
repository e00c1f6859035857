"""Length of the rest of an unreadable account, and the order in which resting accounts are taken."""

import math

from cambist.config.timeouts import FUNDS_PAUSE_S, FUNDS_RECHECK_S
from cambist.engine.trade.orders.apart import Apart

ONE, TWO = (b"token", b"one", b""), (b"token", b"two", b"")


def test_a_rest_doubles_until_it_is_as_long_as_the_slow_round() -> None:
    apart: Apart[tuple[bytes, bytes, bytes]] = Apart()
    now_s, rests = 0.0, []
    for _ in range(12):
        apart.add(ONE, now_s)
        rests.append(apart.next_s() - now_s)
        assert apart.take(math.nextafter(apart.next_s(), 0)) is None
        now_s = apart.next_s()
        assert apart.take(now_s) == ONE
        assert apart.next_s() == math.inf
        assert ONE in apart
    assert rests[:3] == [FUNDS_PAUSE_S, 2 * FUNDS_PAUSE_S, 4 * FUNDS_PAUSE_S]
    assert rests[-1] == FUNDS_RECHECK_S
    apart.drop(ONE)
    apart.add(ONE, 0)
    assert apart.next_s() == FUNDS_PAUSE_S, "it was read meanwhile"


def test_who_is_dropped_is_not_taken_even_if_it_came_again() -> None:
    apart: Apart[tuple[bytes, bytes, bytes]] = Apart()
    apart.add(ONE, 0)
    apart.add(TWO, 1)
    apart.drop(ONE)
    assert (len(apart), apart.next_s()) == (1, 1 + FUNDS_PAUSE_S)
    apart.add(ONE, 10)
    assert [apart.take(100), apart.take(100), apart.take(100)] == [TWO, ONE, None]
