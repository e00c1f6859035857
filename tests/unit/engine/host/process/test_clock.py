"""The wall clock does not step with the system's, and says how far apart they are."""

from cambist.engine.host.process.clock import WallClock


def test_a_step_of_the_systems_clock_is_seen_and_not_followed() -> None:
    system_ms, monotonic_ms = 1_795_000_000_000, 5_000
    clock = WallClock(lambda: system_ms * 1_000_000, lambda: monotonic_ms * 1_000_000)
    assert clock.now_ms() == 1_795_000_000_000
    system_ms, monotonic_ms = system_ms + 1_500, monotonic_ms + 1_500
    assert (clock.now_ms(), clock.behind_ms()) == (1_795_000_001_500, 0)
    system_ms -= 3_600_000
    assert (clock.now_ms(), clock.behind_ms()) == (1_795_000_001_500, -3_600_000)
    monotonic_ms += 10
    assert clock.now_ms() == 1_795_000_001_510
