"""The indexer on chains with an EVM, anvil first: re-organisations, restarts, and what nodes leave out.

A proxy in front of a node that does to its answers what real nodes do: refuses, cuts, lags, leaves out.

async with node_proxy(anvil) as proxy:
    proxy.range_blocks_max = 10
    ... AnvilChain.open(anvil.chain_id, proxy.settings)
"""

import json
import random
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
import trio
from msgspec import Struct, field

from cambist.codecs.contracts import contract_events as events
from cambist.codecs.http1 import Http1Limits
from cambist.config import limits
from cambist.config.errors import ChainError, NodeContradiction, NodeFault, TransactionRefused
from cambist.config.limits import INDEX_RING_BLOCKS
from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.index.applied import IndexedContracts
from cambist.engine.chain.index.indexer import Indexer
from cambist.engine.chain.index.watch import Watch
from cambist.engine.chain.port import DevChain
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.engine.store.store import Store
from cambist.feeds.transport.http_client import HttpClient, HttpFailure
from support.chain.anvil import CHAIN_ID, KEYS, Anvil, until_up
from support.chain.indexing import (
    Told,
    an_indexer,
    any_event,
    follows,
    kept_by,
    run_dry,
    scanned,
    sqlite_engine,
)
from support.chain.log_emitter import Emitter, Record, record
from support.examples import IS_LONG
from support.patience import PATIENCE_S, STORY_S
from support.server.port_gate import ENDED, pump
from support.server.scripted_server import Caller, scripted_server
from support.store.stores import BOB, NOW_MS, Engine

_JSON = (b"content-type", b"application/json")
_WIDE = Http1Limits(body_bytes_max=limits.CHAIN_ANSWER_BYTES_MAX)
_Words = dict[str, Any]


class NodeProxy:
    """Proxy whose attributes set its faults.

    Attributes:
        range_blocks_max: wider ranges of logs are refused.
        cut_every: each so many-th request gets no answer but the end of its connection; 0 for none.
        behind: its latest block is so many below the node's.
        leave_out: so many answers with logs come without their last one.
        cuts, refused, left_out: how often it was done.
        requests, calls: that it was asked; a request has one call or more.
    """

    def __init__(self, anvil: Anvil, client: HttpClient) -> None:
        self.range_blocks_max = 1 << 60
        self.cut_every = 0
        self.behind = 0
        self.leave_out = 0
        self.cuts = self.refused = self.left_out = 0
        self.http_port = self.ws_port = 0
        self._anvil = anvil
        self._client = client
        self.requests = self.calls = 0
        self._sockets: set[trio.abc.Stream] = set()

    @property
    def settings(self) -> NodeSettings:
        return NodeSettings(
            urls=(f"http://127.0.0.1:{self.http_port}",),
            ws_urls=(f"ws://127.0.0.1:{self.ws_port}",),
            poll_s=0.05,
        )

    async def cut_subscriptions(self) -> int:
        """End every WebSocket; returns how many there were."""
        sockets = list(self._sockets)
        for stream in sockets:
            await trio.aclose_forcefully(stream)
        return len(sockets)

    # --- JSON-RPC -----------------------------------------------------------------------------------

    async def serve(self, caller: Caller) -> None:
        while True:
            try:
                request = await caller.request()
                self.requests += 1
                if self.cut_every and self.requests % self.cut_every == 0:
                    self.cuts += 1
                    return
                asked = json.loads(request.body)
                self.calls += len(asked) if isinstance(asked, list) else 1
                try:
                    answered = await self._answers(asked if isinstance(asked, list) else [asked])
                except HttpFailure:
                    return  # the node is away
                body = json.dumps(answered if isinstance(asked, list) else answered[0]).encode()
                head = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: %d\r\n\r\n"
                await caller.stream.send_all(head % len(body) + body)
            except ENDED:
                return

    async def _answers(self, asked: list[_Words]) -> list[_Words]:
        if self.behind:
            asked = [await self._as_behind(one) for one in asked]
        refused = {one["id"]: one for one in asked if self._is_too_wide(one)}
        self.refused += len(refused)
        passed = [one for one in asked if one["id"] not in refused]
        answers = {one["id"]: one for one in (await self._node(passed) if passed else [])}
        for one in refused.values():
            error = {"code": -32005, "message": f"block range exceeds the maximum of {self.range_blocks_max}"}
            answers[one["id"]] = {"jsonrpc": "2.0", "id": one["id"], "error": error}
        for one in passed:
            logs = answers[one["id"]].get("result")
            if self.leave_out and one["method"] == "eth_getLogs" and logs:
                self.leave_out -= 1
                self.left_out += 1
                logs.pop()
        return [answers[one["id"]] for one in asked]

    async def _node(self, asked: list[_Words]) -> list[_Words]:
        body = json.dumps(asked).encode()
        response = await self._client.request(b"POST", b"/", [_JSON], body, deadline_s=PATIENCE_S)
        answered: list[_Words] = json.loads(response.body)
        return answered

    async def _as_behind(self, one: _Words) -> _Words:
        if one["method"] != "eth_getBlockByNumber" or one["params"][0] != "latest":
            return one
        number = {"jsonrpc": "2.0", "id": 1, "method": "eth_blockNumber", "params": []}
        height = int((await self._node([number]))[0]["result"], 16)
        return one | {"params": [hex(max(0, height - self.behind)), one["params"][1]]}

    def _is_too_wide(self, one: _Words) -> bool:
        if one["method"] != "eth_getLogs" or "fromBlock" not in one["params"][0]:
            return False
        first, last = (int(one["params"][0][name], 16) for name in ("fromBlock", "toBlock"))
        return last - first >= self.range_blocks_max

    # --- WebSocket ----------------------------------------------------------------------------------

    async def tunnel(self, caller: Caller) -> None:
        """Pass the bytes of a WebSocket on, both ways, until it is cut."""
        try:
            node = await trio.open_tcp_stream("127.0.0.1", urlsplit(self._anvil.url).port or 0)
        except OSError:
            return
        self._sockets.add(caller.stream)
        async with node, trio.open_nursery() as nursery:
            for source, target in ((caller.stream, node), (node, caller.stream)):
                nursery.start_soon(pump, source, target, nursery.cancel_scope)
        self._sockets.discard(caller.stream)


@asynccontextmanager
async def node_proxy(anvil: Anvil) -> AsyncGenerator[NodeProxy]:
    """The proxy, for as long as the context is open."""
    async with HttpClient("127.0.0.1", anvil.port, connections_max=64, limits=_WIDE) as client:
        proxy = NodeProxy(anvil, client)
        async with (
            scripted_server(proxy.serve) as proxy.http_port,
            scripted_server(proxy.tunnel) as proxy.ws_port,
        ):
            yield proxy


DEPTHS = range(1, 21)
ON_NODES = DEPTHS if IS_LONG else (1, 2, 3, 5, 8, 13, 20)
"""Depths on an anvil; the embedded chain has each one in every run."""
SENDERS = tuple(SigningKey(bytes.fromhex(key)) for key in KEYS[:2])


@pytest.fixture
def anvil(tmp_path: Path) -> Iterator[Anvil]:
    """Anvil of a single test that keeps its state over a restart."""
    with Anvil(state=tmp_path / "anvil.json") as anvil:
        yield anvil


class Scene(Struct):
    """Two contracts that emit what they are told, on an anvil.

    Attributes:
        emitters: of accounts of their own, so that their nonces do not meet.
        sending: held while `keep_emitting` sends a transaction and, where the chain mines by itself, until it
            is mined.
        times: of blocks by their hashes, as scans have found them.
    """

    chain: DevChain
    contracts: IndexedContracts
    emitters: tuple[Emitter, ...]
    dice: random.Random
    times: dict[bytes, int] = field(default_factory=dict)
    sending: trio.Lock = field(default_factory=trio.Lock)
    automines: bool = True

    def records(self) -> tuple[bytes, list[Record]]:
        """(a contract, one to three of its events)."""
        whose = self.dice.choice(("rfq", "delta"))
        some = [event for name, event in map(any_event, self.dice.sample(range(90), 9)) if name == whose]
        contract = self.contracts.rfq if whose == "rfq" else self.contracts.delta
        assert contract is not None
        return contract, [record(event) for event in some[: self.dice.randint(1, 3)]]

    async def emit(self, count: int) -> list[bytes]:
        """Mine so many transactions with events, each in a block; returns them."""
        emitter = self.emitters[0]
        emitter.nonce = await self.chain.nonce(emitter.address)
        raws = []
        for _ in range(count):
            contract, some = self.records()
            signed = await emitter.emit(self.chain, contract, *some)
            await mined(self.chain, signed.tx_hash)
            raws.append(signed.raw)
        return raws

    async def keep_emitting(self) -> None:
        """Send transactions of another account until cancelled; transactions that a fork drops are not
        sent again.
        """
        emitter = self.emitters[1]
        while True:
            async with self.sending:
                emitter.nonce = await self.chain.nonce(emitter.address)
                contract, some = self.records()
                try:
                    signed = await emitter.emit(self.chain, contract, *some)
                except (TransactionRefused, ChainError):
                    await trio.lowlevel.checkpoint()
                    continue
                if self.automines:
                    await mined(self.chain, signed.tx_hash)

    async def reorganise(self, depth: int) -> None:
        """Replace blocks while transactions come, and none is mined: an anvil that mines meanwhile loses
        blocks, and one whose transaction was just sent is about to mine."""
        await self._set_automine(on=False)
        await self.chain.reorganise(depth)
        await self._set_automine(on=True)

    async def _set_automine(self, *, on: bool) -> None:
        async with self.sending:
            await self.chain.set_automine(on=on)
            self.automines = on


async def mined(chain: DevChain, tx_hash: bytes) -> None:
    """Wait until a transaction is; anvil mines on its own time."""
    while True:
        if await chain.receipt(tx_hash) is not None:
            return
        await trio.sleep(0.002)  # between two looks at a condition


async def staged(chain: DevChain) -> Scene:
    emitters = tuple(Emitter(key, CHAIN_ID) for key in SENDERS)
    rfq = await emitters[0].deploy(chain)
    delta = await emitters[0].deploy(chain)
    await chain.mine(3)
    return Scene(chain, IndexedContracts(rfq, delta), emitters, random.Random(5))


@asynccontextmanager
async def a_scene(anvil: Anvil) -> AsyncIterator[Scene]:
    async with AnvilChain.open(CHAIN_ID, anvil.settings) as chain:
        yield await staged(chain)


@asynccontextmanager
async def running(indexer: Indexer) -> AsyncIterator[None]:
    async with trio.open_nursery() as nursery:
        await nursery.start(indexer.run)
        yield
        nursery.cancel_scope.cancel()


async def same(store: Store, scene: Scene) -> bool:
    """Whether what is kept is what a fresh full scan finds."""
    kept = await kept_by(store, CHAIN_ID)
    assert sum(map(len, kept.values())) > 20
    return kept == await scanned(scene.chain, scene.contracts, scene.times)


@pytest.mark.anvil
@pytest.mark.parametrize("engine", ["sqlite-inline", "postgres-process"], indirect=True)
async def test_re_organisations_of_every_depth_are_followed(engine: Engine, anvil: Anvil) -> None:
    with trio.fail_after(STORY_S):
        async with a_scene(anvil) as scene, engine.open() as store:
            await follow_depths(scene, store, ON_NODES)


@pytest.mark.needs("pyrevm")
async def test_re_organisations_of_the_embedded_chain_are_followed(tmp_path: Path) -> None:
    funded = {key.address: 10**21 for key in SENDERS}
    chain = EmbeddedChain(CHAIN_ID, lambda: NOW_MS // 1_000, funded)
    with trio.fail_after(STORY_S):
        async with sqlite_engine(tmp_path).open() as store:
            await follow_depths(await staged(chain), store, DEPTHS)


async def follow_depths(scene: Scene, store: Store, depths: Iterable[int]) -> None:
    """Blocks are replaced so deep, some of their transactions among the new ones."""
    chain = scene.chain
    indexer = an_indexer(chain, store, contracts=scene.contracts)
    async with running(indexer):
        await scene.emit(20)
        for depth in depths:
            dropped = await scene.emit(depth)
            await follows(indexer, chain)
            count = indexer.statistics().reorganisations
            again = enumerate(dropped[: scene.dice.randint(0, depth - 1)], 1)  # in other blocks
            await chain.reorganise(depth, [(raw, at) for at, raw in again])
            await follows(indexer, chain)
            now = indexer.statistics()
            assert (now.deepest, now.reorganisations) == (depth, count + 1)
            assert await same(store, scene), f"depth {depth}"


@pytest.mark.anvil
async def test_re_organisations_are_followed_while_transactions_keep_coming(
    tmp_path: Path, anvil: Anvil
) -> None:
    with trio.fail_after(STORY_S):
        async with a_scene(anvil) as scene, sqlite_engine(tmp_path).open() as store:
            chain = scene.chain
            indexer = an_indexer(chain, store, contracts=scene.contracts)
            async with running(indexer):
                await scene.emit(20)
                for depth in ON_NODES:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(scene.keep_emitting)
                        await scene.emit(3)
                        await scene.reorganise(depth)
                        await scene.emit(2)
                        nursery.cancel_scope.cancel()
                    await follows(indexer, chain)
                    assert await same(store, scene), f"depth {depth}"
            assert indexer.statistics().reorganisations > 0


@pytest.mark.anvil
async def test_a_node_that_is_started_again_is_followed_on(tmp_path: Path, anvil: Anvil) -> None:
    with trio.fail_after(STORY_S):
        async with a_scene(anvil) as scene, sqlite_engine(tmp_path).open() as store:
            chain = scene.chain
            indexer = an_indexer(chain, store, contracts=scene.contracts)
            async with running(indexer):
                await scene.emit(20)
                await follows(indexer, chain)
                for _ in range(2):
                    anvil.stop()
                    anvil.start()
                    await until_up(chain)
                    await scene.emit(5)
                    await follows(indexer, chain)
                await chain.reorganise(4)
                await scene.emit(3)
                await follows(indexer, chain)
                assert await same(store, scene)
            assert indexer.statistics().faults.keys() <= {"unavailable", "lagging"}


@pytest.fixture
async def proxied(tmp_path: Path, anvil: Anvil) -> AsyncIterator[tuple[Scene, NodeProxy, AnvilChain, Store]]:
    """(straight to the anvil, the proxy, the chain behind the proxy, a store)."""
    async with (
        a_scene(anvil) as scene,
        sqlite_engine(tmp_path).open() as store,
        node_proxy(anvil) as proxy,
        AnvilChain.open(CHAIN_ID, proxy.settings) as chain,
    ):
        yield scene, proxy, chain, store


Proxied = tuple[Scene, NodeProxy, AnvilChain, Store]


@pytest.mark.anvil
async def test_ranges_that_the_node_refuses_become_narrower(proxied: Proxied) -> None:
    scene, proxy, chain, store = proxied
    await scene.emit(15)
    await scene.chain.mine(300)
    await scene.emit(15)
    await scene.chain.mine(INDEX_RING_BLOCKS)
    proxy.range_blocks_max = 40
    indexer = an_indexer(chain, store, contracts=scene.contracts)
    await run_dry(indexer)
    assert await same(store, scene)
    now = indexer.statistics()
    assert proxy.refused >= now.refused > 0  # several ranges are asked for at once
    assert now.range_blocks <= 40 + 40 // 8 + 1


@pytest.mark.anvil
async def test_connections_that_end_without_an_answer_cost_time_alone(proxied: Proxied) -> None:
    scene, proxy, chain, store = proxied
    indexer = an_indexer(chain, store, contracts=scene.contracts)
    proxy.cut_every = 7
    with trio.fail_after(STORY_S):
        async with running(indexer):
            await scene.emit(12)
            await scene.chain.reorganise(6)
            await scene.emit(12)
            await follows(indexer, scene.chain)
    assert proxy.cuts > 0
    assert await same(store, scene)


@pytest.mark.anvil
async def test_subscriptions_that_end_are_made_again(proxied: Proxied) -> None:
    scene, proxy, chain, store = proxied
    indexer = an_indexer(chain, store, contracts=scene.contracts)
    cut = 0
    with trio.fail_after(STORY_S):
        async with running(indexer):
            for _ in range(5):
                await scene.emit(4)
                cut += await proxy.cut_subscriptions()
                await scene.chain.reorganise(2)
                await scene.emit(3)
                await follows(indexer, scene.chain)
                assert await kept_by(store, CHAIN_ID) == await scanned(scene.chain, scene.contracts)
    assert cut > 0


@pytest.mark.anvil
async def test_a_stale_head_takes_nothing_back(proxied: Proxied) -> None:
    scene, proxy, chain, store = proxied
    indexer = an_indexer(chain, store, contracts=scene.contracts)
    await scene.emit(15)
    await run_dry(indexer)
    before = await kept_by(store, CHAIN_ID)
    proxy.behind = 6
    with pytest.raises(NodeContradiction, match="6 behind the last read") as caught:
        await indexer.step()
    assert caught.value.fault is NodeFault.LAGGING
    assert await kept_by(store, CHAIN_ID) == before
    await scene.emit(10)
    await run_dry(indexer)  # to the head that it says, four higher
    proxy.behind = 0
    await run_dry(indexer)
    assert indexer.statistics().reorganisations == 0
    assert await same(store, scene)


@pytest.mark.anvil
@pytest.mark.parametrize("history", [False, True], ids=["block by block", "in ranges"])
async def test_logs_that_are_left_out_are_found_out(proxied: Proxied, *, history: bool) -> None:
    scene, proxy, chain, store = proxied
    await scene.emit(15)
    if history:
        await scene.chain.mine(INDEX_RING_BLOCKS)
    indexer = an_indexer(chain, store, contracts=scene.contracts)
    await indexer.step()
    for _ in range(3):
        proxy.leave_out = 1
        with pytest.raises(ChainError):
            await indexer.step()
        assert not any((await kept_by(store, CHAIN_ID)).values())
        await trio.sleep(0.3)
    assert proxy.left_out == 3
    with trio.fail_after(PATIENCE_S):
        async with running(indexer):
            await follows(indexer, scene.chain)
    assert await same(store, scene)


@pytest.mark.anvil
@pytest.mark.parametrize(("owners", "requests"), [(0, 3), (3_000, 4)])
async def test_a_block_costs_as_many_requests_however_many_owners_are_followed(
    proxied: Proxied, owners: int, requests: int
) -> None:
    """The head, the same by its hash, our contracts' logs, and the followed tokens' if there are any."""
    scene, proxy, chain, store = proxied
    token = await scene.emitters[1].deploy(scene.chain)
    await scene.chain.mine()
    watch = Watch()
    for number in range(owners):
        watch.follow(token, number.to_bytes(20, "big"))
    told = Told()
    indexer = an_indexer(chain, store, contracts=scene.contracts, watch=watch, told=told, first_block=None)
    await run_dry(indexer)
    told.taken()
    for number in range(5):
        moved = events.Transfer(BOB, (7 * number).to_bytes(20, "big"), 1)
        signed = await scene.emitters[1].emit(scene.chain, token, record(moved))
        await mined(scene.chain, signed.tx_hash)
        proxy.requests = 0
        await run_dry(indexer)
        assert proxy.requests == requests
        assert told.taken() == ({(token, (7 * number).to_bytes(20, "big"))} if owners else set())
