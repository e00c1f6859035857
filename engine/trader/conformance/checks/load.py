"""Judges answer times and the load stage: latency, deviation from the price grid, failures.

Source: interop.md section 4 for the time-outs of today's consumers.
Choice: A p99 above 500 ms is advice: consumers wait between 500 ms and 4 s.
Choice: Refusals under load are advice, failures are faults: a maker may limit its open quotes.
"""

from collections.abc import Iterator, Sequence
from fractions import Fraction

from msgspec import Struct

from ..rules import Result, Said, gap, judged
from .signatures import judge_nonces

LATENCY_P99_MS = 500
MEDIAN_MS = 500  # of all answers of a run, network time included


class LoadSample(Struct, frozen=True):
    """A firm-quote request of the load stage, and its outcome.

    Attributes:
        trouble: reason of a failure (no answer, 5xx, success without an order); empty without a failure.
        refused: whether the answer is a 4xx.
        nonce_and_meta: nonceAndMeta of the order as an integer; None without an order.
        off_bps: `deviation_bps` of the quoted amount from the displayed price grids; None if unknown.
    """

    latency_ms: float
    trouble: str = ""
    refused: bool = False
    nonce_and_meta: int | None = None
    off_bps: Fraction | None = None


class LoadReport(Struct, frozen=True):
    """Figures of the load stage: counts of quotes, latencies, and price deviation from the grids.

    Latencies and `quotes_per_s` count all requests that did not fail, refusals included. Drift is the price
    deviation.
    """

    quotes: int
    connections: int
    failed: int
    refused: int
    duplicate_nonces: int
    p50_ms: float
    p95_ms: float
    p99_ms: float
    drift_p50_bps: float
    drift_max_bps: float
    quotes_per_s: float


def percentile(ordered: Sequence[float], percent: int) -> float:
    """Return the nearest-rank percentile of numbers in ascending sequence; 0 for an empty sequence."""
    if not ordered:
        return 0.0
    return ordered[max(-(-len(ordered) * percent // 100), 1) - 1]


def speed_said(latencies_ms: Sequence[float], late: int, timeout_s: float) -> Said:
    """Describe as text the median answer time or, if at least half of the answers are late, their number.

    Args:
        latencies_ms: times of the answers received, milliseconds.
        late: number of requests without an answer within `timeout_s`.
    """
    count = len(latencies_ms) + late
    if late * 2 >= count and late:
        return Said(f"answers take more than {timeout_s:g} s ({late} of {count})")
    median_ms = percentile(sorted(latencies_ms), 50)
    took = f"{median_ms / 1000:.1f} s" if median_ms >= 1000 else f"{median_ms:.0f} ms"
    return Said(f"answers take {took} (median of {count})")


def judge_speed(latencies_ms: Sequence[float], late: int, timeout_s: float) -> Result:
    """Judge whether at least half of a run's requests are answered within MEDIAN_MS milliseconds.

    Args:
        latencies_ms: times of the answers received, milliseconds.
        late: number of requests without an answer within `timeout_s`.
    """
    slow = late + sum(latency_ms > MEDIAN_MS for latency_ms in latencies_ms)
    held = slow * 2 <= len(latencies_ms) + late
    got = speed_said(latencies_ms, late, timeout_s)
    return judged("run.speed", held, "the run", f"answers within {MEDIAN_MS} ms", got)


def load_report(samples: Sequence[LoadSample], connections: int, elapsed_s: float) -> LoadReport:
    """Compute the figures of the load stage from its requests: counts, percentiles, drift and rate.

    Args:
        elapsed_s: seconds spent on the requests.
    """
    times = sorted(sample.latency_ms for sample in samples if not sample.trouble)
    drifts = sorted(abs(float(sample.off_bps)) for sample in samples if sample.off_bps is not None)
    random_parts = [sample.nonce_and_meta >> 160 for sample in samples if sample.nonce_and_meta is not None]
    return LoadReport(
        quotes=len(samples),
        connections=connections,
        failed=sum(bool(sample.trouble) for sample in samples),
        refused=sum(sample.refused for sample in samples),
        duplicate_nonces=len(random_parts) - len(set(random_parts)),
        p50_ms=percentile(times, 50),
        p95_ms=percentile(times, 95),
        p99_ms=percentile(times, 99),
        drift_p50_bps=percentile(drifts, 50),
        drift_max_bps=drifts[-1] if drifts else 0.0,
        quotes_per_s=len(times) / elapsed_s if elapsed_s > 0 else 0.0,
    )


def judge_load(samples: Sequence[LoadSample], report: LoadReport, drift_bps: int) -> Iterator[Result]:
    """Judge the load stage: failures, refusals, repeated nonces, deviation from the grids, latency.

    Args:
        drift_bps: the largest allowed deviation of a quote from the price grids, basis points.
    """
    where = f"{report.quotes} quotes over {report.connections} connections"
    if not samples:
        yield gap("load.answers", "nothing was asked")
        return
    troubles = sorted({sample.trouble for sample in samples if sample.trouble})
    got = Said(f"{report.failed} failed: {'; '.join(troubles[:3])}")
    yield judged("load.answers", not report.failed, where, "an order, or a 4xx, each time", got)
    yield judged("load.refusals", not report.refused, where, "no refusals", Said(f"{report.refused} refused"))
    # Of the nonces only repetition is judged here; patterns are judged by the stage of firm quotes.
    nonces = [sample.nonce_and_meta for sample in samples if sample.nonce_and_meta is not None]
    yield from judge_nonces(nonces, where, "load.distinct-nonces")
    if not any(sample.off_bps is not None for sample in samples):
        yield gap("load.drift", "no quote could be measured")
    else:
        got = Said(f"p50 {report.drift_p50_bps:.2f} bps, max {report.drift_max_bps:.2f} bps")
        held = report.drift_max_bps <= drift_bps
        yield judged("load.drift", held, where, f"within {drift_bps} bps of the grid", got)
    got = Said(f"p99 {report.p99_ms:.1f} ms")
    yield judged(
        "load.latency", report.p99_ms <= LATENCY_P99_MS, where, f"p99 up to {LATENCY_P99_MS} ms", got
    )
