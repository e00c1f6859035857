"""What waits while nobody can bid is settled once somebody can: everything is a process."""

import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest
import trio

from cambist.codecs import calldata
from cambist.codecs.abi import selector
from cambist.codecs.eip712_orders.delta import (
    KIND_SELL,
    ORDER,
    SAME_CHAIN,
    DeltaOrder,
    delta_domain_separator,
)
from cambist.codecs.http1 import Http1Limits
from cambist.config import limits
from cambist.config.chains import Chain as ChainSettings
from cambist.config.nodes import NodeSettings
from cambist.crypto.hexadecimal import to_hex
from cambist.crypto.signatures import to_compact64
from cambist.engine.chain.anvil import AnvilChain
from cambist.engine.chain.artifacts import known_errors
from cambist.engine.chain.transact import transact
from cambist.engine.telemetry.clock import WallClock
from cambist.feeds.net.http_client import HttpClient
from support.patience import LATE_ROUND_S, PATIENCE_S, STORY_S, until_told
from support.venue_processes import AGENT, Running, venue_processes
from support.venue_role import CHAIN_ID
from support.world import ONE, USDC, person

COUNT, OWNERS = 120, 10
OWNER_KEYS = [person(200 + number) for number in range(OWNERS)]
DEPOSIT = selector("deposit()")


class Story:
    """Who trades at a venue of processes."""

    def __init__(self, running: Running, client: HttpClient, chain: AnvilChain) -> None:
        self.running, self.client, self.chain = running, client, chain

    async def equip(self) -> None:
        """Every owner has WETH, and has allowed it."""
        devnet = self.running.devnet
        allow = calldata.approve(devnet.at("delta"), limits.UINT256_MAX)
        for owner in OWNER_KEYS:
            await self.chain.set_balance(owner.address, 100 * ONE)
            await transact(self.chain, owner, devnet.at("WETH"), DEPOSIT, value_wei=10 * ONE)
            await transact(self.chain, owner, devnet.at("WETH"), allow)

    async def submitted(self, number: int) -> str:
        """The id of a sale that was taken."""
        devnet, owner = self.running.devnet, OWNER_KEYS[number % OWNERS]
        deadline_s = WallClock().now_ms() // 1_000 + 3_600
        order = DeltaOrder(
            owner.address, owner.address, devnet.at("WETH"), devnet.at("USDC"), ONE // 100 + number,
            24 * USDC, 25 * USDC, deadline_s, KIND_SELL, number, 0, b"", b"", SAME_CHAIN,
        )  # fmt: skip
        names = ChainSettings(name="devnet")
        separator = delta_domain_separator(
            names.delta_domain_name, names.delta_domain_version, CHAIN_ID, devnet.at("delta")
        )
        signature = to_hex(to_compact64(*owner.sign(ORDER.compiled.digest_for(separator)(order))))
        body = {"chainId": CHAIN_ID, "order": ORDER.to_wire(order), "signature": signature, "partner": "anon"}
        told = await self.ask("POST", "/v2/delta/orders", body)
        order_id: str = told["id"]
        return order_id

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The JSON of an answer that is 200."""
        raw = b"" if body is None else msgspec.json.encode(body)
        headers = [(b"content-type", b"application/json")]
        answer = await self.client.request(
            method.encode(), path.encode(), headers, raw, deadline_s=PATIENCE_S
        )
        assert answer.status == 200, answer.body
        return msgspec.json.decode(answer.body)

    async def reasons(self, order_id: str) -> dict[str, str]:
        """Why an order waits."""
        told = await self.ask("GET", f"/v2/delta/orders/{order_id}/explain")
        return {one["code"]: one["text"] for one in told["reasons"]}

    async def completed(self, ids: list[str]) -> None:
        """Wait until all are."""
        for order_id in ids:

            async def is_over(order_id: str = order_id) -> bool:
                record = await self.ask("GET", f"/v2/delta/orders/{order_id}")
                assert record["status"] not in ("EXPIRED", "FAILED", "CANCELLED"), record
                return bool(record["status"] == "COMPLETED")

            await until_told(is_over)


@asynccontextmanager
async def a_story(running: Running) -> AsyncIterator[Story]:
    port = int(running.url.rpartition(":")[2])
    node = NodeSettings(urls=(running.rpc,))
    async with (
        AnvilChain.open(CHAIN_ID, node, known_errors()) as chain,
        HttpClient("127.0.0.1", port, connections_max=8, limits=Http1Limits()) as client,
    ):
        story = Story(running, client, chain)
        await story.equip()
        yield story


async def stands_still(running: Running) -> None:
    """The only agent stops in the middle of a backlog, until the venue says so, and goes on."""
    async with a_story(running) as story:
        first = await story.submitted(0)
        await story.completed([first])
        os.kill(running.agent_pid, signal.SIGSTOP)
        try:
            ids = [await story.submitted(number) for number in range(1, COUNT)]

            async def is_told() -> bool:
                return "late" in await story.reasons(ids[0])

            await until_told(is_told)
            said = await story.reasons(ids[0])
            assert said["late"].startswith(f"{AGENT} answered too late or not at all")
            (score,) = await story.ask("GET", f"/v2/delta/agents/scores/{CHAIN_ID}")
        finally:
            os.kill(running.agent_pid, signal.SIGCONT)
        assert score["faults"]["late"] >= 1
        await story.completed(ids)

        async def has_delivered() -> bool:
            (after,) = await story.ask("GET", f"/v2/delta/agents/scores/{CHAIN_ID}")
            assert (after["strikes"], after["restsUntil"]) == (0, None)
            assert after["ordersMax"] >= score["ordersMax"]
            return bool(after["delivered"] == COUNT)

        await until_told(has_delivered)


@pytest.mark.process
def test_a_backlog_is_settled_once_the_only_agent_goes_on(tmp_path: Path) -> None:
    pairs = [("WETH", "USDC")]
    with venue_processes(tmp_path, pairs, has_agent=True, round_s=LATE_ROUND_S) as running:

        async def within() -> None:
            with trio.fail_after(STORY_S):
                await stands_still(running)

        trio.run(within)
