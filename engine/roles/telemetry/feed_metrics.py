"""Metrics of makers' feeds: their books, polls and sockets, and the age of their data. Pure."""

from collections.abc import Iterable, Iterator

from prometheus_client.core import Metric

from ....feeds.standing import PairStanding
from ....feeds.supervisor import WATCHDOG, FeedStatistics
from .families import Numbers, counter, gauge

FeedReading = tuple[str, int, FeedStatistics]  # maker, chain id, statistics of its feed
_PLACE = ("maker", "chain")


def feed_families(feeds: Iterable[FeedReading], now_ms: int) -> Iterator[Metric]:
    """Yield the metrics of makers' feeds; a feed is the live data of one maker on one chain.

    Args:
        now_ms: wall clock, Unix milliseconds.
    """
    readings = [((maker, str(chain_id)), found) for maker, chain_id, found in feeds]
    yield _gauge("pairs", "Pairs by standing: live, or the reason that keeps them out of routing", (
        ((*place, str(standing.value)), count)
        for place, found in readings
        for standing, count in {PairStanding.LIVE: 0, **found.cache.pairs}.items()
    ), "standing")  # fmt: skip
    yield _gauge("withheld", "1 while the whole maker is out of routing", (
        (place, int(bool(found.cache.withheld))) for place, found in readings
    ))  # fmt: skip
    yield _gauge("age_seconds", "Age of the maker's last applied message", (
        (place, (now_ms - found.cache.updated_ms) / 1_000)
        for place, found in readings if found.cache.updated_ms
    ))  # fmt: skip
    yield _gauge("blacklisted", "Addresses that the maker does not serve", (
        (place, found.cache.blacklisted) for place, found in readings
    ))  # fmt: skip
    yield _counter("refused", "Entries of the maker's messages that were refused", (
        ((*place, resource), count)
        for place, found in readings for resource, count in found.cache.refused.items()
    ), "resource")  # fmt: skip
    yield _counter("poll_answers", "Polls that were answered and applied", (
        ((*place, resource), poll.answers)
        for place, found in readings for resource, poll in found.polls.items()
    ), "resource")  # fmt: skip
    yield _counter("poll_failures", "Polls that failed", (
        ((*place, resource), poll.failures)
        for place, found in readings for resource, poll in found.polls.items()
    ), "resource")  # fmt: skip
    yield _counter("restarts", "Unexpected failures of a feed's tasks", (
        ((*place, task), count) for place, found in readings for task, count in _restarts(found).items()
    ), "task")  # fmt: skip
    yield from _sockets(readings)


def _restarts(found: FeedStatistics) -> dict[str, int]:
    """Count the restarts of each task of a feed, 0 included.

    Prometheus sees a first restart as a rise only if the task's counter has been 0 before.
    """
    stream = () if found.stream is None else ("stream",)
    return {**dict.fromkeys((*found.polls, WATCHDOG, *stream), 0), **found.restarts}


def _sockets(readings: Iterable[tuple[tuple[str, str], FeedStatistics]]) -> Iterator[Metric]:
    sockets = [(place, found.stream) for place, found in readings if found.stream is not None]
    yield _gauge("socket_up", "1 while the complete first message is applied", (
        (place, int(socket.is_up)) for place, socket in sockets
    ))  # fmt: skip
    yield _counter("socket_messages", "Messages applied", (
        (place, socket.messages) for place, socket in sockets
    ))  # fmt: skip
    yield _counter("socket_failures", "Connections refused or ended", (
        (place, socket.failures) for place, socket in sockets
    ))  # fmt: skip


def _gauge(name: str, help_text: str, numbers: Numbers, *labels: str) -> Metric:
    return gauge(f"feed_{name}", help_text, numbers, *_PLACE, *labels)


def _counter(name: str, help_text: str, numbers: Numbers, *labels: str) -> Metric:
    return counter(f"feed_{name}", help_text, numbers, *_PLACE, *labels)
