"""`cambist serve` as a process that is killed, while chain, agents and clock live on in this one.

async with a_crash_story(tmp_path, "ann") as story:
    story.agents["ann"].gives = lambda order: 2_500 * USDC
    reached = story.node.swallows("eth_sendRawTransaction")
    record = await story.submitted(await story.world.a_delta_order())
    await reached.wait()
    await story.killed_and_started()
    await story.becomes(record, "COMPLETED")

The venue has a real store process, on SQLite in the folder. `GatedNode` receives the requests to its node.
"""

import os
import signal
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

import msgspec
import trio
from bench.peers.ports import held_port, port_of

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import address_word, uint_word
from cambist.codecs.contracts.contract_events import OrderSettled, decode_event
from cambist.codecs.http1 import Http1Limits, encode_response
from cambist.config.errors import MakerError
from cambist.config.limits import CHAIN_ANSWER_BYTES_MAX
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.keccak import keccak256
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.deploy.deploy import create
from cambist.engine.chain.port import DevChain, LogFilter
from cambist.engine.dev.devnet.dispatch import answer
from cambist.engine.dev.devnet.moves import Moves
from cambist.engine.dev.devnet.node import all_methods
from cambist.engine.dev.embedded.embedded import EmbeddedChain
from cambist.feeds.transport.http_client import HttpClient
from support.chain.anvil import anvil_port
from support.chain.world import USDC, World, a_world
from support.contracts.delta_agents import StoryAgent, serving
from support.contracts.settling import DELIVER, Market, a_market
from support.patience import PATIENCE, PATIENCE_S, ROUND_S, until, until_found, until_told
from support.server.scripted_server import Caller, scripted_server
from support.store.store_work import is_running, store_processes
from support.venue.venue_role import CHAIN_ID, ENVIRON, asking, devnet_at, entry_of, venue_text
from support.warm_processes import WarmProcess, warm_process

Record = dict[str, Any]

CONFIRMATIONS = 3
ENDED = frozenset({"COMPLETED", "FAILED", "EXPIRED", "CANCELLED", "REFUNDED"})
_GONE = (EOFError, trio.BrokenResourceError, trio.ClosedResourceError)
_COMMAND = "cambist.engine.cli:main"
_DELTA = """
[store]
lease_s = {lease_s}
[venue.delta]
round_s = {round_s}
gather_s = 0.02
again_s = 0.1
again_s_max = 0.2
"""


class GatedNode:
    """The venue's node: it answers as a chain's node does, and can swallow the requests of a method.

    Args:
        answering: answer of the chain's node to a request's body.

    Attributes:
        calls: that were answered.
        handed_in: raw transactions that came, those that were swallowed too.
    """

    def __init__(self, answering: Callable[[bytes], Awaitable[bytes]]) -> None:
        self.calls = 0
        self.handed_in: list[bytes] = []
        self._answering = answering
        self._swallowed: dict[str, trio.Event] = {}
        self._answered = trio.Condition()

    def swallows(self, method: str) -> trio.Event:
        """From now on a request with this method does not reach the chain and has no answer; the event is set
        at the first such request."""
        return self._swallowed.setdefault(method, trio.Event())

    def lets_through(self) -> None:
        """Let later requests through again; swallowed requests stay unanswered."""
        self._swallowed.clear()

    async def answers(self, count: int) -> None:
        """Return after so many more calls."""
        enough = self.calls + count
        async with self._answered:
            while self.calls < enough:
                await self._answered.wait()

    async def script(self, caller: Caller) -> None:
        """Serve one connection."""
        try:
            while True:
                request = await caller.request()
                try:
                    asked = msgspec.json.decode(request.body)
                except msgspec.DecodeError:  # the venue was killed within its request
                    return
                calls = asked if isinstance(asked, list) else [asked]
                self.handed_in += [
                    bytes.fromhex(call["params"][0][2:])
                    for call in calls
                    if call["method"] == "eth_sendRawTransaction"
                ]
                for call in calls:
                    if call["method"] in self._swallowed:
                        self._swallowed[call["method"]].set()
                        await trio.sleep_forever()
                body = await self._answering(request.body)
                async with self._answered:
                    self.calls += len(calls)
                    self._answered.notify_all()
                await caller.stream.send_all(encode_response(200, body))
        except _GONE:
            return


class CrashStory:
    """A venue that is killed and started, its chain, its agents, and who trades there.

    Attributes:
        agents: by name.
        node: between the venue and the chain.
        process: of the venue that runs, or ran last.
        port: where it listens.
        starts: how often it was started.
    """

    process: WarmProcess

    def __init__(
        self,
        market: Market,
        node: GatedNode,
        agents: dict[str, StoryAgent],
        folder: Path,
        port: int,
        environ: Mapping[str, str],
        command: str = _COMMAND,
    ) -> None:
        self.market = market
        self.world: World = market.world
        self.chain = market.world.chain
        self.node = node
        self.agents = agents
        self.folder = folder
        self.starts = 0
        self.relayer_nonce = 0
        self.port = port
        self._command = command
        self._environ = {**ENVIRON, **environ}
        self._environ |= {"RELAYER_KEY": self.world.relayer.secret32().hex()}
        self._environ |= {f"{name.upper()}_SECRET": agent.secret for name, agent in agents.items()}

    # --- The process ------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Start the venue; it serves when this returns."""
        self.starts += 1
        with self._log.open("wb") as log:
            self.process = await warm_process(
                self._command,
                "serve",
                "--config",
                str(self.folder / "venue.toml"),
                needs=["cambist.engine.cli.serve"],
                env=os.environ | self._environ,
                stdout=log,
                stderr=log,
            )
        try:
            await until(lambda: self.has_logged("serving") or not is_running(self.process.pid))
            assert self.has_logged("serving"), self._log.read_text()
        except BaseException:
            self.process.kill()
            with trio.CancelScope(shield=True):
                await self.process.ended()
            raise

    async def kill(self) -> None:
        """kill -9; its store process ends by itself."""
        await until(lambda: store_processes(self.process.pid))
        stores = store_processes(self.process.pid)
        os.kill(self.process.pid, signal.SIGKILL)
        with trio.CancelScope(shield=True):
            await self.process.ended()
        await until(lambda: not any(is_running(store) for store in stores))

    async def killed_and_started(self) -> None:
        """Kill the venue, let requests through to the node again, and start the venue."""
        await self.kill()
        self.node.lets_through()
        await self.start()

    def has_logged(self, event: str) -> bool:
        """Whether the venue has logged an event since its last start."""
        return f'"event":"{event}"' in self._log.read_text().replace(": ", ":")

    def logged_errors(self) -> list[str]:
        """Log lines of all starts that show a bug: a traceback, a failed round, or a stuck part."""
        lines = [
            line
            for number in range(1, self.starts + 1)
            for line in (self.folder / f"venue-{number}.log").read_text().splitlines()
        ]
        return [
            line for line in lines if "Traceback" in line or '"a round failed"' in line or "stuck" in line
        ]

    @property
    def _log(self) -> Path:
        return self.folder / f"venue-{self.starts}.log"

    # --- Over HTTP --------------------------------------------------------------------------------------

    async def ask(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """Status and JSON of an answer. MakerError where there is none."""
        raw = b"" if body is None else msgspec.json.encode(body)
        headers = [(b"content-type", b"application/json")]
        async with HttpClient("127.0.0.1", self.port, connections_max=1, limits=Http1Limits()) as client:
            response = await client.request(
                method.encode(), path.encode(), headers, raw, deadline_s=PATIENCE_S
            )
        return response.status, msgspec.json.decode(response.body)

    async def answered(self, method: str, path: str, body: Any = None) -> tuple[int, Any]:
        """As `ask`, again and again until the venue is there and its store too."""
        with trio.fail_after(PATIENCE_S):
            while True:
                try:
                    status, told = await self.ask(method, path, body)
                except MakerError:
                    status, told = 503, None
                if status != 503:
                    return status, told
                await trio.sleep(0.02)  # as a client does

    async def submitted(self, order: Any, key: SigningKey | None = None) -> Record:
        """The record of an order that was taken."""
        status, told = await self.ask("POST", "/v2/delta/orders", self.world.delta_body(order, key))
        assert status == 200, told
        return cast("Record", told)

    async def cancelled(self, record: Record) -> None:
        """Its owner's cancellation is acknowledged."""
        status, told = await self.ask(
            "POST", "/v2/delta/orders/cancel", self.world.cancel_body([record["id"]])
        )
        assert (status, told) == (200, {"success": True, "cancelled": [record["id"]]})

    async def record(self, record: Record) -> Record:
        """The order's present record."""
        status, told = await self.ask("GET", f"/v2/delta/orders/{record['id']}")
        assert status == 200, told
        return cast("Record", told)

    async def becomes(self, record: Record, *statuses: str) -> Record:
        """The record once it has one of these statuses; it must not end in another."""
        ends = {*statuses, *ENDED}
        now = await until_found(partial(self.record, record), lambda now: now["status"] in ends)
        assert now["status"] in statuses, now
        return now

    async def undone(self, record: Record) -> None:
        """Wait until the venue sees that the chain took a settlement back."""
        now = await until_found(partial(self.record, record), lambda now: now["status"] != "COMPLETED")
        assert now["status"] == "ACTIVE", now

    # --- On chain ---------------------------------------------------------------------------------------

    async def settlements(self) -> dict[str, list[OrderSettled]]:
        """Order hash -> events of its settlements on the chain."""
        found: dict[str, list[OrderSettled]] = {}
        head = (await self.chain.upcoming()).head.number
        for log in await self.chain.logs(LogFilter((self.world.at.delta,)), 0, head):
            event = decode_event(log.topics, log.data)
            if isinstance(event, OrderSettled):
                found.setdefault(to_hex(event.order_hash), []).append(event)
        return found

    async def times_settled(self, record: Record) -> int:
        """Number of settlements of an order."""
        return len((await self.settlements()).get(record["orderHash"], []))

    async def relayed(self) -> int:
        """Transactions of the relayer's that were mined since the story began."""
        return await self.chain.nonce(self.world.relayer.address) - self.relayer_nonce

    async def handed_in(self) -> None:
        """Wait until a transaction of the relayer's waits for a block."""
        await until_told(partial(waits_at, self.chain, self.node))

    async def mine(self) -> None:
        """Make a block, and go on making one for each transaction; what comes meanwhile does not wait."""
        await self.chain.set_automine(on=True)
        await self.chain.mine()

    async def first_in_block(self, key: SigningKey, to: bytes, data: bytes) -> None:
        """Hand in a transaction that is mined before all that waits."""
        await self.world.first_in_block(key, to, data)

    async def disallow(self) -> None:
        """Revoke the user's WETH allowance, first in the next block."""
        await self.first_in_block(self.world.user, self.world.weth, calldata.approve(self.world.at.delta, 0))

    async def with_its_own_stock(self, name: str) -> bytes:
        """Deploy a contract for an agent alone, which delivers from it."""
        contract = await create(self.chain, self.world.owner, "DevAgent", salt32=b"\x01" * 32)
        await self.world.mint(self.world.usdc, contract, 100_000 * USDC)
        self.agents[name].contract = contract
        return contract

    async def emptied(self, contract: bytes) -> None:
        """Empty an agent's contract of USDC, first in the next block."""
        world = self.world
        stock = await world.balance(world.usdc, contract)
        words = address_word(world.usdc) + address_word(world.stranger.address) + uint_word(stock)
        await self.first_in_block(world.stranger, contract, DELIVER + words)

    async def traded(self) -> dict[str, int]:
        """WETH and USDC of every account that trades: `account symbol` -> raw units."""
        world = self.world
        people = {"user": world.user.address, "agent": self.market.agent, "executor": world.at.executor}
        people |= {"delta": world.at.delta, "taker": world.taker.address}
        return {
            f"{name} {symbol}": await world.balance(token, address)
            for name, address in people.items()
            for symbol, token in (("WETH", world.weth), ("USDC", world.usdc))
        }

    async def confirm(self) -> None:
        """Make blocks until every mined transaction is final."""
        for _ in range(CONFIRMATIONS):
            await self.chain.mine()


@asynccontextmanager
async def a_crash_story(
    folder: Path,
    *names: str,
    round_s: float = ROUND_S,
    more: str = "",
    environ: Mapping[str, str] | None = None,
    market: Market | None = None,
    command: str = _COMMAND,
) -> AsyncGenerator[CrashStory]:
    """A venue that serves, in the folder, with agents of these names; killed in the end.

    Args:
        round_s: a round ends earlier once all agents have answered.
        more: TOML of the venue; environ: what it refers to.
        market: on an embedded chain; by default a new one.
        command: function of the process, `module:name`.
    """
    if market is None:
        chain = EmbeddedChain(CHAIN_ID, lambda: int(time.time()), {}, known_errors())
        market = await a_market(await a_world(chain))
    agents = {name: StoryAgent(name, market) for name in names}
    async with AsyncExitStack() as owned:
        node, node_port = await owned.enter_async_context(gated_node(market.world.chain))
        ports = {name: await owned.enter_async_context(serving(agent)) for name, agent in agents.items()}
        port = port_of(owned.enter_context(held_port()))
        _write_settings(folder, market.world, port, f"http://127.0.0.1:{node_port}", ports, round_s)
        with (folder / "venue.toml").open("a") as settings:
            settings.write(more)
        story = CrashStory(market, node, agents, folder, port, environ or {}, command)
        story.relayer_nonce = await story.chain.nonce(market.world.relayer.address)
        await story.start()
        try:
            yield story
        finally:
            if story.process.returncode is None:
                await story.kill()
        assert story.logged_errors() == []


@asynccontextmanager
async def gated_node(chain: DevChain) -> AsyncGenerator[tuple[GatedNode, int]]:
    """A node of a chain, and its port; behind it is the embedded chain, or the anvil of the chain."""
    async with AsyncExitStack() as owned:
        if isinstance(chain, EmbeddedChain):
            moves = await owned.enter_async_context(Moves.followed(chain))
            node = GatedNode(partial(answer, methods=all_methods(chain, (), moves)))
        else:
            limits = Http1Limits(body_bytes_max=CHAIN_ANSWER_BYTES_MAX)
            client = HttpClient("127.0.0.1", anvil_port(chain), connections_max=64, limits=limits)
            node = GatedNode(partial(_forwarded, await owned.enter_async_context(client)))
        yield node, await owned.enter_async_context(scripted_server(node.script))


async def _forwarded(client: HttpClient, body: bytes) -> bytes:
    headers = [(b"content-type", b"application/json")]
    return (await client.request(b"POST", b"/", headers, body, deadline_s=PATIENCE_S)).body


async def waits_at(chain: DevChain, node: GatedNode) -> bool:
    """Whether a transaction that was handed in at a node waits for a block."""
    for raw in node.handed_in:
        tx_hash = keccak256(raw)
        if await chain.knows(tx_hash) and await chain.receipt(tx_hash) is None:
            return True
    return False


def _write_settings(
    folder: Path, world: World, port: int, url: str, agents: dict[str, int], round_s: float
) -> None:
    text = venue_text(
        devnet_at(world, entry_of(world, folder), url),
        {},
        serves=("delta",),
        chain=f"confirmations = {CONFIRMATIONS}",
        node="poll_s = 0.05",
        port=port,
    )
    text += _DELTA.format(lease_s=PATIENCE, round_s=round_s)
    text += "".join(asking(name, f"http://127.0.0.1:{at}/agent") for name, at in agents.items())
    (folder / "venue.toml").write_text(text)
