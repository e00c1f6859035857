"""Result of one measurement of a server, which a load generator prints as JSON and a load test reads."""

import msgspec

PERCENTILES = (0.5, 0.75, 0.9, 0.95, 0.99, 0.995, 0.999, 0.9995, 0.9999, 1.0)


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a load generator's measurement of one server.

    Attributes:
        rate: answers per second within the measured time.
        answers: number of all answers, including the warm-up's.
        used: number of requests taken from the prepared ones.
        latency_ms: latencies at PERCENTILES.
        server_core, load_core, foreign_core: cores used by the server, the load and other processes; None if
            the platform does not report them.
        waited_core: fraction of the time for which server or load were ready to run but had no core.
        failures: faults found; empty for a measurement that counts.
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
        """Return the latency, in milliseconds, at a share of the requests, one of PERCENTILES."""
        return self.latency_ms[PERCENTILES.index(share)]


class Wrk(msgspec.Struct, frozen=True, kw_only=True):
    """Result of a measurement by the load generator wrk, which checks the throughput of another generator.

    Attributes:
        rate: answers per second.
        p50_ms, p99_ms: latencies of its closed loop.
        distinct: number of its distinct requests; a longer run repeats them.
        failures: number of unsuccessful answers and of failed connections and reads.
    """

    rate: float
    p50_ms: float
    p99_ms: float
    distinct: int
    failures: int
