"""Settings of pytest for the benchmarks: the whole suite runs several times (laps) in one session.

A bench and its baseline thus run in turn.
"""

import gc
import itertools
import os
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.peers.process import Peer, eth_account_peer
from cambist.crypto.keccak import keccak256

LAPS = int(os.environ.get("CAMBIST_BENCH_LAPS", "3"))


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.fixturenames.append("lap")
    metafunc.parametrize("lap", range(LAPS))


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_lap)


def _lap(item: pytest.Item) -> int:
    assert isinstance(item, pytest.Function)
    return int(str(item.callspec.params["lap"]))


@pytest.fixture(scope="session", autouse=True)
def _frozen_heap() -> None:
    """Freeze the heap, as servers do after their start: garbage collection then skips imported objects."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session")
def next_digest() -> Callable[[], bytes]:
    """Fixture: source of 20,000 different digests of 32 bytes, so that no cache helps repeated calls."""
    return itertools.cycle([keccak256(number.to_bytes(4, "big")) for number in range(20_000)]).__next__


@pytest.fixture(scope="session")
def eth_account() -> Iterator[Peer]:
    with eth_account_peer() as peer:
        yield peer


@pytest.fixture
def in_peer(benchmark: Any) -> Callable[[Peer, str, int], None]:
    """Fixture: function of (process, operation, count) that measures an operation in another process.

    Each request to the process runs the operation `count` times.
    """

    def run(peer: Peer, operation: str, count: int) -> None:
        benchmark.extra_info["operations_per_call"] = count
        benchmark(peer.ask, f"{operation} {count}")

    return run
