"""Benchmarks of the embedded chain beside an anvil node over HTTP: from transaction to receipt, and eth_call.

Both get the same transactions, signed before the clock starts: partial fills of one maker's order, or
transfers of one raw unit of a token. Every transaction must succeed.
"""

import itertools
import os
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any, Literal

import msgspec
import pytest

from bench.peers.process import ROOT
from bench.trio_thread import Visited, living_in_trio
from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import decode_uint
from cambist.codecs.transactions import Transaction, sign_transaction
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import DevChain, EthCall
from cambist.engine.dev.devnet.anvil import AnvilChain, anvil_command, find_anvil, running_anvil
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from support.chain.world import ONE, USDC, World, a_world, mined

SENT = 20  # transactions in one lap
CALLS = 200
TIP_WEI = 10**9
GAS = 300_000


class Trade(msgspec.Struct):
    """A chain for the benchmark, with a maker's order that can be filled in many parts.

    Attributes:
        fill, transfer: (contract, calldata) of the taker's two kinds of transaction.
    """

    world: World
    fill: tuple[bytes, bytes]
    transfer: tuple[bytes, bytes]
    nonce: Iterator[int]
    fee_max_wei: int


async def a_trade(chain: DevChain) -> Trade:
    world = await a_world(chain)
    await world.give(world.maker, world.usdc, 10**12 * USDC, world.at.rfq)
    await world.give(world.taker, world.weth, 900 * ONE, world.at.rfq)
    order = world.an_rfq_order(maker_amount=10**12 * USDC, taker_amount=900 * ONE)
    fill_one = calldata.partial_fill_order(order, world.signed(order), 10**9)
    await world.send(world.taker, world.at.rfq, fill_one)
    fees = await chain.fees()
    nonce = await chain.nonce(world.taker.address)
    transfer_one = calldata.transfer(world.maker.address, 1)
    return Trade(
        world,
        (world.at.rfq, fill_one),
        (world.weth, transfer_one),
        itertools.count(nonce),
        TIP_WEI + 100 * fees.base_fee_wei,
    )


def signed(trade: Trade, to: bytes, data: bytes) -> list[bytes]:
    chain_id, fee_max_wei = trade.world.chain.chain_id, trade.fee_max_wei
    return [
        sign_transaction(
            Transaction(chain_id, next(trade.nonce), TIP_WEI, fee_max_wei, GAS, to, 0, data),
            trade.world.taker,
        ).raw
        for _ in range(SENT)
    ]


@asynccontextmanager
async def embedded_trade() -> AsyncIterator[Trade]:
    yield await a_trade(EmbeddedChain(31_337, lambda: int(time.time()), {}, known_errors()))


@asynccontextmanager
async def anvil_trade() -> AsyncIterator[Trade]:
    program = find_anvil(os.environ, [ROOT / "tests" / "oracles"])
    if program is None:
        raise FileNotFoundError("anvil: make setup-node")
    async with (
        running_anvil(anvil_command(program, 31_337)) as settings,
        AnvilChain.open(31_337, settings, known_errors()) as chain,
    ):
        yield await a_trade(chain)


@pytest.fixture(scope="session")
def embedded() -> Iterator[Visited[Trade]]:
    with living_in_trio(embedded_trade) as trade:
        yield trade


@pytest.fixture(scope="session")
def anvil_over_http() -> Iterator[Visited[Trade]]:
    with living_in_trio(anvil_trade) as trade:
        yield trade


def sends(benchmark: Any, visited: Visited[Trade], what: Literal["fill", "transfer"]) -> None:
    async def sign(trade: Trade) -> list[bytes]:
        return signed(trade, *getattr(trade, what))

    async def send(trade: Trade, raws: list[bytes]) -> int:
        chain, succeeded = trade.world.chain, 0
        for raw in raws:
            succeeded += (await mined(chain, await chain.send_raw(raw))).succeeded
        return succeeded

    def lap(raws: list[bytes]) -> None:
        assert visited.visit(lambda trade: send(trade, raws)) == SENT

    benchmark.extra_info["operations_per_call"] = SENT
    benchmark.pedantic(lap, setup=lambda: ((visited.visit(sign),), {}), rounds=20, warmup_rounds=2)


def calls(benchmark: Any, visited: Visited[Trade]) -> None:
    async def call(trade: Trade) -> int:
        world = trade.world
        question = EthCall(world.usdc, calldata.balance_of(world.maker.address))
        return sum([decode_uint(await world.chain.call(question)) > 0 for _ in range(CALLS)])

    def lap() -> None:
        assert visited.visit(call) == CALLS

    benchmark.extra_info["operations_per_call"] = CALLS
    benchmark.pedantic(lap, rounds=20, warmup_rounds=2)


def bench_chain_fill_to_receipt(benchmark: Any, embedded: Visited[Trade]) -> None:
    sends(benchmark, embedded, "fill")


def bench_chain_fill_to_receipt_anvil(benchmark: Any, anvil_over_http: Visited[Trade]) -> None:
    sends(benchmark, anvil_over_http, "fill")


def bench_chain_transfer_to_receipt(benchmark: Any, embedded: Visited[Trade]) -> None:
    sends(benchmark, embedded, "transfer")


def bench_chain_transfer_to_receipt_anvil(benchmark: Any, anvil_over_http: Visited[Trade]) -> None:
    sends(benchmark, anvil_over_http, "transfer")


def bench_chain_eth_call(benchmark: Any, embedded: Visited[Trade]) -> None:
    calls(benchmark, embedded)


def bench_chain_eth_call_anvil(benchmark: Any, anvil_over_http: Visited[Trade]) -> None:
    calls(benchmark, anvil_over_http)
