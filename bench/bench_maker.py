"""Benchmark of a firm quote from signed request to signed answer, without HTTP, beside its libraries."""

import hmac
import itertools
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from bench.firm_check import fault
from bench.fixtures import NOW_MS
from bench.maker_fixture import Maker, build_maker, prepared_calls
from bench.maker_work import KEY_HEX, SECRET, work
from bench.native_signature import native_signer
from cambist.codecs.messages.maker_messages import FirmRequest, FirmResponse
from cambist.crypto.keccak import keccak256
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


def bench_firm_libraries(benchmark: Any, maker: Maker, calls: list[HttpCall], numbers: Iterator[int]) -> None:
    """Baseline: the calls of libraries that a firm quote cannot do without, on the same requests.

    The calls are an HMAC and the JSON decoding of the request's bytes, two hashes, the C signature, and the
    JSON encoding of an answer. Other guests of the host slow them much as they slow the handler: both leave
    the first-level cache at every step, which the C signature alone never does.
    """
    following, sign, secret = numbers.__next__, native_signer(bytes.fromhex(KEY_HEX)), SECRET.encode()
    decode, encode = msgspec.json.Decoder(FirmRequest).decode, msgspec.json.Encoder().encode
    answer = msgspec.json.decode(maker.surface.firm(calls[following()]).body, type=FirmResponse)
    struct288 = bytes(288)  # of an RFQ order: nine words

    def once() -> bytes:
        raw = calls[following()].request.body
        hmac.digest(secret, raw, "sha256").hex()
        decode(raw)
        sign(keccak256(b"\x19\x01" + keccak256(struct288) + struct288[:32]))
        return encode(answer)

    assert msgspec.json.decode(benchmark(once), type=FirmResponse) == answer
