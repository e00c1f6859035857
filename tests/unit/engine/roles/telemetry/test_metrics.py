"""Metrics that Prometheus reads equal the counts of the parts."""

from collections import Counter
from functools import partial
from itertools import count

import pytest
from prometheus_client.parser import text_string_to_metric_families

from cambist.config.errors import RateLimited
from cambist.engine.host.server import Counters
from cambist.engine.roles.telemetry.families import counter
from cambist.engine.roles.telemetry.feed_metrics import feed_families
from cambist.engine.roles.telemetry.loop_lag import LagStatistics
from cambist.engine.roles.telemetry.metrics import (
    SERVER,
    STORE,
    Metrics,
    admission_families,
    loop_lag_families,
    server_families,
    store_families,
)
from cambist.engine.store.batcher import BatcherStatistics
from cambist.engine.store.store import COMMIT_BOUNDS_S, StoreStatistics
from cambist.feeds.durations import BOUNDS_S, Durations
from cambist.feeds.firm.firm_check import FirmFault
from cambist.feeds.firm.maker_health import MakerHealth
from cambist.feeds.poll import PollStatistics
from cambist.feeds.standing import CacheStatistics, PairStanding
from cambist.feeds.stream import StreamStatistics
from cambist.feeds.supervisor import FeedStatistics
from support.venue.admitting import NOW_MS, a_call, an_admission

Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]

CALLERS = count()
"""Callers, each another."""


def samples(metrics: Metrics) -> Samples:
    text = b"".join(metrics.render()).decode()
    found: Samples = {}
    for family in text_string_to_metric_families(text):
        assert family.documentation
        for sample in family.samples:
            key = sample.name, tuple(sorted(sample.labels.items()))
            assert key not in found, "told twice"
            found[key] = sample.value
    return found


def test_the_process_is_told_of() -> None:
    assert samples(Metrics())["process_cpu_seconds_total", ()] > 0


def test_each_counter_of_the_server_is_told_as_it_is_then() -> None:
    counters = Counters(**{name: number for number, name in enumerate(Counters.__struct_fields__, 1)})
    metrics = Metrics()
    metrics.add(server_families, lambda: counters)
    found = samples(metrics)
    assert {row.field for row in SERVER} == set(Counters.__struct_fields__)
    for row in SERVER:
        name = f"cambist_server_{row.field}{'_total' if row.kind == 'counter' else ''}"
        assert found[name, ()] == getattr(counters, row.field)
    counters.requests += 1
    assert samples(metrics)["cambist_server_requests_total", ()] == counters.requests


@pytest.mark.parametrize(("away", "told"), [("", 0), ("the disk is full", 1)])
def test_the_store_is_told_of_with_its_commits(away: str, told: int) -> None:
    batcher = BatcherStatistics(1, 2, 3, 4, 5, 6, ())
    commits = tuple(range(len(COMMIT_BOUNDS_S) + 1))
    metrics = Metrics()
    metrics.add(store_families, lambda: StoreStatistics(batcher, commits, 1.5, away))
    found = samples(metrics)
    assert [row.field for row in STORE] == [f"batcher.{name}" for name in batcher.__struct_fields__[:-1]]
    assert found["cambist_store_queued", ()] == 1
    assert found["cambist_store_unavailable_total", ()] == 6
    assert found["cambist_store_away", ()] == told
    assert found["cambist_store_commit_seconds_bucket", (("le", str(COMMIT_BOUNDS_S[0])),)] == 0
    assert found["cambist_store_commit_seconds_bucket", (("le", str(COMMIT_BOUNDS_S[3])),)] == 0 + 1 + 2 + 3
    assert found["cambist_store_commit_seconds_bucket", (("le", "+Inf"),)] == sum(commits)
    assert found["cambist_store_commit_seconds_count", ()] == sum(commits)
    assert found["cambist_store_commit_seconds_sum", ()] == 1.5


def test_admission_is_told_of_by_tier() -> None:
    admission, metrics = an_admission(), Metrics()
    metrics.add(admission_families, admission.statistics)
    admission.admit(a_call(), 2)
    with pytest.raises(RateLimited):
        admission.admit(a_call(), 1)
    found = samples(metrics)
    assert found["cambist_admitted_total", (("tier", "public"),)] == 1
    assert found["cambist_rate_limited_total", (("tier", "public"),)] == 1
    assert found["cambist_rate_limited_total", (("tier", "keyed"),)] == 0
    assert found["cambist_callers", (("tier", "public"),)] == 1
    assert found["cambist_unknown_keys_total", ()] == 0


def test_the_lag_is_a_histogram() -> None:
    metrics = Metrics()
    counts = [1] * (len(BOUNDS_S) + 1)
    metrics.add(loop_lag_families, lambda: LagStatistics(Durations(counts, 2.5), 0.7, 42))
    found = samples(metrics)
    assert found["cambist_loop_lag_seconds_bucket", (("le", "5.0"),)] == len(BOUNDS_S)
    assert found["cambist_loop_lag_seconds_bucket", (("le", "+Inf"),)] == len(counts)
    assert found["cambist_loop_lag_seconds_sum", ()] == 2.5
    assert found["cambist_loop_lag_max_seconds", ()] == 0.7
    assert found["cambist_tasks", ()] == 42


def test_counts_are_told_by_their_labels_whatever_these_hold() -> None:
    counts, metrics = Counter[tuple[str, ...]](), Metrics()
    metrics.add(lambda it: [counter("firm_quotes", "Firm quotes", it, "maker", "outcome")], counts.items)
    assert not [name for name, _ in samples(metrics) if "firm_quotes" in name]
    counts['al"pha\\ \n', "filled"] += 2
    counts["beta", "late"] += 1
    found = samples(metrics)
    assert found["cambist_firm_quotes_total", (("maker", 'al"pha\\ \n'), ("outcome", "filled"))] == 2
    assert found["cambist_firm_quotes_total", (("maker", "beta"), ("outcome", "late"))] == 1


def test_each_feed_is_told_of_by_maker_and_chain() -> None:
    cache = CacheStatistics(
        {PairStanding.LIVE: 7, PairStanding.STALE: 2}, {}, (), {"prices": 3}, 4, NOW_MS - 1_500
    )
    polls = {"tokens": PollStatistics(5, 6, 0, "", NOW_MS)}
    stream = StreamStatistics(is_up=True, connections=1, messages=8, failures=9, in_a_row=0, said="")
    silent = CacheStatistics({}, {}, ("no answer",), {}, 0, 0)
    readings = [
        ("alpha", 1, FeedStatistics(cache, polls, stream, {"stream": 11}, 0)),
        ("beta", 10, FeedStatistics(silent, {}, None, {}, 0)),
    ]
    metrics = Metrics()
    metrics.add(partial(feed_families, readings), lambda: NOW_MS)
    found = {
        (name.removeprefix("cambist_feed_"), *dict(labels).values()): value
        for (name, labels), value in samples(metrics).items()
        if name.startswith("cambist_feed_")
    }
    assert found == {
        ("pairs", "1", "alpha", "live"): 7,
        ("pairs", "1", "alpha", "stale"): 2,
        ("withheld", "1", "alpha"): 0,
        ("withheld", "10", "beta"): 1,
        ("age_seconds", "1", "alpha"): 1.5,
        ("blacklisted", "1", "alpha"): 4,
        ("blacklisted", "10", "beta"): 0,
        ("refused_total", "1", "alpha", "prices"): 3,
        ("poll_answers_total", "1", "alpha", "tokens"): 5,
        ("poll_failures_total", "1", "alpha", "tokens"): 6,
        ("pairs", "10", "beta", "live"): 0,
        ("restarts_total", "1", "alpha", "stream"): 11,
        ("restarts_total", "1", "alpha", "tokens"): 0,
        ("restarts_total", "1", "alpha", "watchdog"): 0,
        ("restarts_total", "10", "beta", "watchdog"): 0,
        ("socket_up", "1", "alpha"): 1,
        ("socket_messages_total", "1", "alpha"): 8,
        ("socket_failures_total", "1", "alpha"): 9,
    }


def test_firm_quotes_are_counted_whether_or_not_they_are_scored() -> None:
    health, metrics = MakerHealth(5_000, 900_000), Metrics()
    metrics.add(
        lambda it: [counter("firm_quotes", "Firm quotes", it, "maker", "outcome")],
        lambda: ((("alpha", outcome), number) for outcome, number in health.outcomes.items()),
    )
    for fault in (None, None, FirmFault.LATE, FirmFault.BLACKLISTED):
        health.record(b"\x01" * 20, b"\x02" * 20, fault, NOW_MS, next(CALLERS))
    assert health.report(NOW_MS).maker.quotes == 3, "the user's blacklisting is not the maker's fault"
    found = samples(metrics)
    assert {dict(labels)["outcome"]: n for (name, labels), n in found.items() if "firm" in name} == {
        "clean": 2, "late": 1, "blacklisted": 1,
    }  # fmt: skip
