"""Benchmark of a firm quote from signed request to signed answer, without HTTP, beside the C signing call."""

import itertools
from collections.abc import Iterator
from typing import Any

import pytest

from bench.firm_check import fault
from bench.fixtures import NOW_MS
from bench.maker_fixture import Maker, build_maker, prepared_calls
from bench.maker_work import work
from cambist.engine.host.server import HttpCall, Reply

REQUESTS = 12_000


@pytest.fixture(scope="session")
def maker() -> Maker:
    return build_maker(now_ms=NOW_MS)


@pytest.fixture(scope="session")
def calls() -> list[HttpCall]:
    """Fixture: different requests for firm quotes over all pairs, directions and fixed amounts."""
    return list(prepared_calls(range(REQUESTS), NOW_MS))


@pytest.fixture(scope="session")
def numbers() -> Iterator[int]:
    """Fixture: numbers of requests in a cycle; a benchmark continues where the previous one ended."""
    return itertools.cycle(range(REQUESTS))


def bench_firm_handler(benchmark: Any, maker: Maker, calls: list[HttpCall], numbers: Iterator[int]) -> None:
    """Measure the whole handler of POST /firm, without HTTP.

    The handler checks the HMAC of the raw bytes, decodes, checks the blacklist, prices, checks bounds, makes
    a nonce, hashes, signs and reserves the amount.
    """
    firm, following = maker.surface.firm, numbers.__next__
    signed = maker.role.desk.signed

    def once() -> tuple[int, Reply]:
        number = following()
        return number, firm(calls[number])

    number, reply = benchmark(once)
    assert not fault(work(number), reply.body, NOW_MS // 1_000)
    assert maker.role.desk.signed > signed
    assert not maker.role.desk.refused
