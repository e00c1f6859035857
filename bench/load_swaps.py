"""Load test of whole swaps on the embedded chain, from submission to COMPLETED, with a CPU profile.

COUNT orders are submitted over loopback as fast as the venue accepts them, auctioned to one agent over
loopback, settled by the relayer and read back by the indexer. Venue, agent, chain and submitter share one
process and one trio loop; the store has its own process. An order is done when a follower of events receives
its COMPLETED event. After the last order, the owners' balances and one record in CHECK_ONE_IN are compared
with the expected ones.

A second run samples the CPU: sampling costs CPU, so that this run does not count for the rates.
`python -m bench.load_swaps [rounds]` prints the tables.
"""

import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext
from pathlib import Path

import msgspec
import trio
from rich.console import Console
from rich.table import Table

from bench.compare import Rounds
from bench.cpu_samples import CpuSamples, Stack
from bench.decimal_walk import walk_us
from bench.delta_ground import OWNER, Deployed, deployed, environ, now_s, settings_text
from bench.delta_work import CHAIN_ID, OWNERS, Orders, owner_key
from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, decode_uint, selector, uint_word
from cambist.codecs.http1 import Http1Limits
from cambist.codecs.messages.agent_messages import (
    BidPart,
    BidStep,
    SolverBid,
    SolveResponse,
    decode_solve_request,
)
from cambist.codecs.messages.delta_messages import OrderRecord
from cambist.codecs.messages.vocabulary import OrderStatus
from cambist.codecs.messages.wire import decoder, encode
from cambist.config import limits
from cambist.config.errors import CambistError
from cambist.config.sections.server import ServerSettings
from cambist.config.settings import parse_settings
from cambist.crypto.hexadecimal import to_hex
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import DevChain, EthCall
from cambist.engine.chain.transact import transact
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.host.process.clock import WallClock
from cambist.engine.host.server import HttpCall, Reply, RouteGroup, Router, Server
from cambist.engine.roles.venue.app import VenueApp, opened_venue
from cambist.engine.store.follower import START, EventFollower
from cambist.feeds.transport.http_client import HttpClient
from cambist.feeds.transport.streams import listen

COUNT = 500
CLIENTS = 64
PATIENCE_S = 120.0
CHECK_ONE_IN = 20
_GIVEN = 25 * 10**6  # USDC for each order: what it expects, so that there is no surplus to be shared
_DELIVER = selector("deliver(address,address,uint256)")
_MINT = selector("mint(address,uint256)")
_STEP_GAS = 200_000
_HOST = "127.0.0.1"
_decode_record = decoder(OrderRecord, bytes_max=limits.JSON_BYTES_MAX)
_JSON = (b"content-type", b"application/json")
_MORE = '\n[venue.agents.bench]\nurl = "http://127.0.0.1:{port}/agent"\n'

_STEPS = (
    ("load_swaps.py:Agent", "the bench: agent"),
    ("load_swaps.py:_submit", "the bench: submission"),
    ("load_swaps.py:follow", "the bench: follower of events"),
    ("order_desk.py:", "intake"),
    ("round_asking.py:", "auction: asking"),
    ("simulating.py:", "auction: simulation"),
    ("auctioneer.py:Auctioneer._conclude", "auction: the decision, to the store"),
    ("auctioneer.py:", "auction: reading bids, decision, notices"),
    ("agent_client.py:", "auction: notices on their way"),
    ("relayer.py:Relayer._signed", "relayer: signing"),
    ("relayer.py:Relayer._hand_in", "relayer: handing in"),
    ("relayer.py:Relayer._keep", "relayer: to the store"),
    ("relayer.py:Relayer._", "relayer: open transactions, receipts"),
    ("relayer.py:", "settlement: waiting for the relayer"),
    ("settling.py:", "settlement"),
    ("projection.py:", "indexer: projection"),
    ("index/", "indexer: blocks and logs"),
    ("funds_watch.py:", "owners' funds"),
    ("order_engines.py:", "orders in memory follow the events"),
    ("live_rows.py:", "orders in memory follow the events"),
    ("events/", "events to listeners"),
    ("server/", "HTTP, venue and agent"),
    ("net/", "HTTP, venue and agent"),
    ("store/", "the store's socket"),
    ("process/", "the store's socket"),
)
_EVM = ("embedded/evm.py:", "embedded/ledger.py:", "embedded/journal.py:")


class Swaps(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a run of whole swaps, from submitted order to COMPLETED.

    Attributes:
        seconds: from the first submission to the last order's COMPLETED event.
        taken_s: from the first submission to the last answer of a submission.
        each_s: seconds of each order from submission to COMPLETED, sorted.
        cpu_s: CPU of this process.
        counts: the engine's counters.
    """

    count: int
    seconds: float
    taken_s: float
    each_s: list[float]
    cpu_s: float
    counts: dict[str, int]


class Agent:
    """An agent that bids the expected amount for every order, from the stock of its own contract."""

    def __init__(self, world: Deployed, contract: bytes) -> None:
        self._world = world
        self._contract = contract

    def solve(self, call: HttpCall) -> Reply:
        """Answer POST /solve with a bid of the expected amount for every order of the auction round."""
        world = self._world
        deliver = _DELIVER + address_word(world.usdc) + address_word(world.at.delta) + uint_word(_GIVEN)
        receiver = to_hex(self._contract)
        steps = (BidStep(receiver, to_hex(deliver), _STEP_GAS),)
        bids = [
            SolverBid((BidPart(order.order_hash, str(_GIVEN), steps, receiver=receiver),))
            for order in decode_solve_request(call.request.body).orders
        ]
        return Reply(200, encode(SolveResponse(tuple(bids))))


async def swaps(count: int, samples: CpuSamples | None = None) -> Swaps:
    """Run `count` swaps on a chain and a store of their own, and return the results.

    Args:
        samples: profile that samples the CPU during the run; None for no profile.

    Raises:
        AssertionError: an order did not reach its expected state.
    """
    with tempfile.TemporaryDirectory(prefix="cambist-bench-") as folder:
        async with opened(Path(folder), count) as (app, world, port):
            orders = Orders(world.ground)
            bodies = [orders.body(orders.signed(number)) for number in range(count)]
            hashes = [orders.signed(number).order_hash for number in range(count)]
            sent: dict[bytes, float] = {}
            done: dict[bytes, float] = {}
            before = app.delta.chains[CHAIN_ID].relayer.statistics().counts
            with samples.taken() if samples else nullcontext():
                began, cpu = time.perf_counter(), time.process_time()
                with trio.fail_after(PATIENCE_S):
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(follow, app, done, count)
                        await submit_all(port, list(zip(hashes, bodies, strict=True)), sent)
                        taken_s = time.perf_counter() - began
                seconds, cpu_s = time.perf_counter() - began, time.process_time() - cpu
            await _check(app, world, hashes)
            await _check_records(port, hashes[::CHECK_ONE_IN])
            return Swaps(
                count=count,
                seconds=seconds,
                taken_s=taken_s,
                each_s=sorted(done[key] - sent[key] for key in hashes),
                cpu_s=cpu_s,
                counts=_counts(app, before),
            )


@asynccontextmanager
async def opened(
    folder: Path, count: int, chain: DevChain | None = None, node: str = ""
) -> AsyncIterator[tuple[VenueApp, Deployed, int]]:
    """Open a venue and its agent, both listening: (application, deployed contracts, the venue's port).

    Args:
        count: number of orders to come; their owners receive funds for them.
        chain: chain to deploy on; by default an embedded one.
        node: host and port of the chain's node for the venue; empty if the venue uses `chain` itself.
    """
    chain = EmbeddedChain(CHAIN_ID, now_s, {}, known_errors()) if chain is None else chain
    world = await deployed(chain, min(count, OWNERS))
    contract = await create(chain, OWNER, "DevAgent")
    stock = _MINT + address_word(contract) + uint_word(100 * COUNT * _GIVEN)
    await transact(chain, OWNER, world.usdc, stock)
    agent, surface, router = Agent(world, contract), RouteGroup(_refused), Router(_refused)
    surface.plain("POST", "/agent/solve", agent.solve)
    surface.plain("POST", "/agent/notify", lambda _: Reply(200, b"{}"))
    router.mount(surface)
    agents = listen(_HOST, 0)
    text = settings_text(world, node=node) + _MORE.format(port=agents.getsockname()[1])
    async with AsyncExitStack() as owned:
        settings = parse_settings(text, environ(), folder)
        app = await owned.enter_async_context(
            opened_venue(
                settings,
                environ=environ(),
                folder=folder,
                clock=WallClock(),
                chains={} if node else {CHAIN_ID: chain},
            )
        )
        nursery = await owned.enter_async_context(trio.open_nursery())
        server = Server(router, ServerSettings(), wall_ms=WallClock().now_ms)
        nursery.start_soon(server.serve, agents)
        listener = listen(_HOST, 0)
        port = listener.getsockname()[1]
        await nursery.start(app.run, listener)
        with trio.fail_after(PATIENCE_S):
            while not app.chains[CHAIN_ID].gas.is_fresh:
                await trio.lowlevel.checkpoint()
        yield app, world, port
        nursery.cancel_scope.cancel()


def _refused(error: CambistError, request_id: str) -> bytes:
    return f"{request_id}: {error}".encode()


async def submit_all(port: int, waiting: list[tuple[bytes, bytes]], sent: dict[bytes, float]) -> None:
    """Submit orders to the venue, CLIENTS at a time.

    Args:
        waiting: (hash, body) of the orders; empty at the end.
        sent: receives the time of each submission, by order hash.
    """
    waiting.reverse()
    async with (
        HttpClient(_HOST, port, connections_max=CLIENTS, limits=Http1Limits()) as client,
        trio.open_nursery() as nursery,
    ):
        for _ in range(CLIENTS):
            nursery.start_soon(_submit, client, waiting, sent)


async def _submit(client: HttpClient, waiting: list[tuple[bytes, bytes]], sent: dict[bytes, float]) -> None:
    while waiting:
        order_hash, body = waiting.pop()
        sent[order_hash] = time.perf_counter()
        response = await client.request(b"POST", b"/v2/delta/orders", [_JSON], body, deadline_s=PATIENCE_S)
        assert response.status == 200, response.body


async def follow(app: VenueApp, done: dict[bytes, float], count: int) -> None:
    """Note the time of each order's COMPLETED event by its hash, until `count` orders are there."""
    async for _, event in EventFollower(app.delta.orders._store, START):
        if event.status == "COMPLETED":
            done[event.order_hash] = time.perf_counter()
            if len(done) == count:
                return


async def _check(app: VenueApp, world: Deployed, hashes: list[bytes]) -> None:
    """Check that each owner has received exactly the amounts of its orders."""
    bought = Counter(number % OWNERS for number in range(len(hashes)))
    calls = [EthCall(world.usdc, calldata.balance_of(owner_key(number).address)) for number in bought]
    for (number, orders), answer in zip(
        bought.items(), await app.chains[CHAIN_ID].chain.call_many(calls), strict=True
    ):
        assert isinstance(answer, bytes), answer
        assert decode_uint(answer) == orders * _GIVEN, number


async def _check_records(port: int, hashes: list[bytes]) -> None:
    """Check that the venue's records of some orders show the expected states and amounts."""
    async with HttpClient(_HOST, port, connections_max=1, limits=Http1Limits()) as client:
        for order_hash in hashes:
            path = f"/v2/delta/orders/hash/{to_hex(order_hash)}"
            response = await client.request(b"GET", path.encode(), deadline_s=PATIENCE_S)
            record = _decode_record(response.body)
            assert record.status is OrderStatus.COMPLETED, record
            assert record.output.executed_amount == str(_GIVEN), record


def _counts(app: VenueApp, before: dict[str, int]) -> dict[str, int]:
    chain = app.delta.chains[CHAIN_ID]
    auctions, indexer = chain.auctioneer.statistics(), chain.followed.indexer.statistics()
    handed = chain.relayer.statistics().counts
    return {
        "rounds": auctions.rounds,
        "rounds that came to nothing": auctions.void,
        "orders won": auctions.won,
        "transactions settled": handed["settled"] - before["settled"],
        "transactions handed in": handed["handed"] - before["handed"],
        "steps of the indexer": indexer.steps,
        "blocks read": indexer.blocks,
        "conflicts of the indexer": indexer.conflicts,
    }


def step_of(stack: Stack) -> str:
    """Return the step of a swap that a CPU sample belongs to: the first of _STEPS that is on its stack."""
    for part, name in _STEPS:
        if any(part in frame for frame in stack):
            return name
    return "other work: trio, gas, leases"


def is_evm(stack: Stack) -> bool:
    """Whether a CPU sample belongs to the embedded chain's EVM or to the ledger of its blocks."""
    return any(frame.startswith(_EVM) for frame in stack)


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """Results of a round: of a run, and of a sampled run after it.

    Attributes:
        evm_share: share of the sampled run's CPU that the embedded chain's EVM and ledger use.
        walk_us: CPU of a Decimal walk, measured just afterwards.
    """

    swaps: Swaps
    evm_share: float
    walk_us: float

    @property
    def own_ms(self) -> float:
        """CPU of a swap, milliseconds, without the embedded chain's EVM, which is a node's work elsewhere."""
        return 1e3 * self.swaps.cpu_s / self.swaps.count * (1 - self.evm_share)


def run(rounds: int) -> list[Row]:
    """Run the load test of whole swaps `rounds` times.

    Raises:
        AssertionError: an order did not reach its expected state.
    """
    return [_round() for _ in range(rounds)]


def _round() -> Row:
    found, samples = trio.run(swaps, COUNT), CpuSamples()
    trio.run(swaps, COUNT, samples)
    evm = sum(number for stack, number in samples.stacks.items() if is_evm(stack))
    return Row(swaps=found, evm_share=evm / samples.stacks.total(), walk_us=walk_us())


def metrics(rows: Sequence[Row]) -> dict[str, Rounds]:
    """Return the test's results by name of the metric in budgets.toml, with a value for each round."""
    return {"swap_cpu_walks": Rounds(tuple(1e3 * row.own_ms / row.walk_us for row in rows))}


def table(rows: Sequence[Row]) -> Table:
    """Make a table of the rounds of whole swaps: rates, times and CPU per order."""
    shown = Table(
        "swaps", "a second", "taken a second", "p50 s", "p99 s", "CPU ms each", "without the EVM", "in walks",
        box=None,
    )  # fmt: skip
    for row in rows:
        found, each = row.swaps, row.swaps.each_s
        shown.add_row(
            f"{found.count}",
            f"{found.count / found.seconds:.0f}",
            f"{found.count / found.taken_s:.0f}",
            f"{each[len(each) // 2]:.2f}",
            f"{each[len(each) * 99 // 100]:.2f}",
            f"{1e3 * found.cpu_s / found.count:.2f}",
            f"{row.own_ms:.2f}",
            f"{1e3 * row.own_ms / row.walk_us:.0f}",
        )
    return shown


def shares_table(samples: CpuSamples, run: Swaps) -> Table:
    """Make a table of the share of the CPU that each step of a swap uses."""
    shown = Table("step", "share", "of it the EVM", "ms a swap", box=None)
    total = samples.stacks.total()
    for step, share in samples.shares(step_of).items():
        evm = sum(n for stack, n in samples.stacks.items() if step_of(stack) == step and is_evm(stack))
        shown.add_row(
            step, f"{share:.1%}", f"{evm / total:.1%}", f"{1e3 * share * run.cpu_s / run.count:.2f}"
        )
    return shown


def counts_table(run: Swaps) -> Table:
    """Make a table of the engine's counters of a run of whole swaps."""
    shown = Table("counter", "of the run", box=None)
    for what, count in run.counts.items():
        shown.add_row(what, f"{count:,}")
    return shown


def tables() -> dict[str, Table]:
    """Run whole swaps once, sampled; return tables of the CPU profile and the counters, by title."""
    samples = CpuSamples()
    profiled = trio.run(swaps, COUNT, samples)
    return {
        "Whole swaps: CPU of each step": shares_table(samples, profiled),
        "Whole swaps: counters of that run": counts_table(profiled),
    }


def main() -> None:
    """Run the load test, and print its tables."""
    rows = run(int(sys.argv[1]) if len(sys.argv) > 1 else 3)
    found = {f"Whole swaps, {COUNT} orders in each run": table(rows)} | tables()
    for title, shown in found.items():
        Console().print(title, shown, "", sep="\n")


if __name__ == "__main__":
    main()
