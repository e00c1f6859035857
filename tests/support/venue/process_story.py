"""Owners who sell WETH to a venue of processes.

with venue_processes(folder, [("WETH", "USDC")], has_agent=True) as running:
    async with a_story(running) as story:
        await story.completed([await story.submitted(0)])
"""

from collections.abc import AsyncIterator, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any
from urllib.parse import urlsplit

import msgspec

from cambist.codecs.contracts import calldata
from cambist.codecs.contracts.abi import selector
from cambist.codecs.eip712_orders.delta import (
    KIND_SELL,
    ORDER,
    SAME_CHAIN,
    DeltaOrder,
    delta_domain_separator,
)
from cambist.codecs.http1 import Http1Limits
from cambist.config import limits
from cambist.config.chains import ChainSettings
from cambist.config.sections.nodes import NodeSettings
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.signatures import to_compact64
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.port import EthCall
from cambist.engine.chain.transact import transact
from cambist.engine.dev.devnet.anvil import AnvilChain
from cambist.engine.host.process.clock import WallClock
from cambist.feeds.transport.http_client import HttpClient
from support.chain.world import ONE, USDC, person
from support.patience import PATIENCE_S, until_told
from support.venue.venue_processes import Running
from support.venue.venue_role import CHAIN_ID

OWNERS = 10
OWNER_KEYS = [person(200 + number) for number in range(OWNERS)]
WETH_EACH = 20 * ONE
"""WETH of each owner at first, wei."""
DEPOSIT = selector("deposit()")


def sold(number: int) -> int:
    """Amount of the sale with this number, wei of WETH."""
    return ONE // 100 + number


class Story:
    """Owners who trade at a venue of processes.

    Attributes:
        running: the processes.
        chain: the node.
        clients: of each engine.
    """

    def __init__(self, running: Running, clients: Sequence[HttpClient], chain: AnvilChain) -> None:
        self.running, self.chain = running, chain
        self.clients = clients
        self._deadline_s = WallClock().now_ms() // 1_000 + 3_600

    @asynccontextmanager
    async def at(self, url: str) -> AsyncIterator["Story"]:
        """The same traders at another engine."""
        async with _client(url) as client:
            there = Story(self.running, [client], self.chain)
            there._deadline_s = self._deadline_s
            yield there

    async def equip(self) -> None:
        """Every owner has WETH, and has allowed it."""
        devnet = self.running.devnet
        allow = calldata.approve(devnet.at("delta"), limits.UINT256_MAX)
        for owner in OWNER_KEYS:
            await self.chain.set_balance(owner.address, 100 * ONE)
            await transact(self.chain, owner, devnet.at("WETH"), DEPOSIT, value_wei=WETH_EACH)
            await transact(self.chain, owner, devnet.at("WETH"), allow)

    async def submitted(self, number: int, *, engine: int = 0) -> str:
        """The id of a sale that an engine took; of each number it is the same."""
        devnet, owner = self.running.devnet, OWNER_KEYS[number % OWNERS]
        order = DeltaOrder(
            owner.address, owner.address, devnet.at("WETH"), devnet.at("USDC"), sold(number),
            24 * USDC, 25 * USDC, self._deadline_s, KIND_SELL, number, 0, b"", b"", SAME_CHAIN,
        )  # fmt: skip
        names = ChainSettings(name="devnet")
        separator = delta_domain_separator(
            names.delta_domain_name, names.delta_domain_version, CHAIN_ID, devnet.at("delta")
        )
        signature = to_hex(to_compact64(*owner.sign(ORDER.compiled.digest_for(separator)(order))))
        body = {"chainId": CHAIN_ID, "order": ORDER.to_wire(order), "signature": signature, "partner": "anon"}
        told = await self.ask("POST", "/v2/delta/orders", body, engine=engine)
        order_id: str = told["id"]
        return order_id

    async def ask(self, method: str, path: str, body: Any = None, *, engine: int = 0) -> Any:
        """The JSON of an answer of an engine that is 200."""
        raw = b"" if body is None else msgspec.json.encode(body)
        headers = [(b"content-type", b"application/json")]
        answer = await self.clients[engine].request(
            method.encode(), path.encode(), headers, raw, deadline_s=PATIENCE_S
        )
        assert answer.status == 200, answer.body
        return msgspec.json.decode(answer.body)

    async def reasons(self, order_id: str) -> dict[str, str]:
        """Reasons for which an order waits: code -> text."""
        told = await self.ask("GET", f"/v2/delta/orders/{order_id}/explain")
        return {one["code"]: one["text"] for one in told["reasons"]}

    async def completed(self, ids: Sequence[str], *, engine: int = 0) -> None:
        """Wait until an engine reports all orders as completed."""
        for order_id in ids:

            async def is_over(order_id: str = order_id) -> bool:
                record = await self.ask("GET", f"/v2/delta/orders/{order_id}", engine=engine)
                assert record["status"] not in ("EXPIRED", "FAILED", "CANCELLED"), record
                return bool(record["status"] == "COMPLETED")

            await until_told(is_over)

    async def balance(self, token: str, owner: bytes) -> int:
        """Balance of an account on the chain, raw units."""
        call = EthCall(self.running.devnet.at(token), calldata.balance_of(owner))
        return int.from_bytes(await self.chain.call(call), "big")

    async def settled_once(self, numbers: Iterable[int]) -> None:
        """Balances on the chain say that the sales of these numbers are settled, each once, and no others."""
        numbers = tuple(numbers)
        for owned, owner in enumerate(OWNER_KEYS):
            sales = [sold(number) for number in numbers if number % OWNERS == owned]
            assert await self.balance("WETH", owner.address) == WETH_EACH - sum(sales)
            assert await self.balance("USDC", owner.address) >= len(sales) * 24 * USDC

    async def metrics(self, *, engine: int = 0) -> dict[str, float]:
        """Metrics of an engine: name with labels -> value."""
        answer = await self.clients[engine].request(b"GET", b"/metrics", deadline_s=PATIENCE_S)
        assert answer.status == 200, answer.body
        lines = [line for line in answer.body.decode().splitlines() if not line.startswith("#")]
        return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


@asynccontextmanager
async def a_story(running: Running) -> AsyncIterator[Story]:
    """A story whose owners have funds and allowances."""
    node = NodeSettings(urls=(running.rpc,))
    async with AsyncExitStack() as owned:
        chain = await owned.enter_async_context(AnvilChain.open(CHAIN_ID, node, known_errors()))
        clients = [await owned.enter_async_context(_client(url)) for url in running.urls]
        story = Story(running, clients, chain)
        await story.equip()
        yield story


def _client(url: str) -> HttpClient:
    return HttpClient("127.0.0.1", urlsplit(url).port or 0, connections_max=8, limits=Http1Limits())
