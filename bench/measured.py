"""What the load generator tells of one measurement; read in the environment of the bench."""

import msgspec

PERCENTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One measurement of one server.

    Attributes:
        rate: answers a second within the measured time.
        answers: all of them, the warm-up's too.
        used: requests that were taken.
        latency_ms: at PERCENTILES.
        server_core, load_core, foreign_core: cores used; None where the platform does not tell.
        waited_core: for how much of the time server or load were kept off their cores by something else.
        failures: what was wrong; empty for a measurement that counts.
    """

    rate: float
    answers: int
    used: int
    latency_ms: list[float]
    server_core: float | None
    load_core: float | None
    foreign_core: float | None
    waited_core: float | None
    failures: list[str]

    def at(self, share: float) -> float:
        """Milliseconds at one of PERCENTILES."""
        return self.latency_ms[PERCENTILES.index(share)]


class Wrk(msgspec.Struct, frozen=True, kw_only=True):
    """What wrk tells, as the second witness of throughput.

    Attributes:
        rate: answers a second.
        p50_ms, p99_ms: of its closed loop.
        distinct: requests it had; beyond that many they came again.
        failures: answers that were no success, and connections or reads that failed.
    """

    rate: float
    p50_ms: float
    p99_ms: float
    distinct: int
    failures: int
