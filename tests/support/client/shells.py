"""A shell in which `cambist order` is run against a scripted venue, on a devnet behind JSON-RPC.

async with an_order_shell(folder) as shell:
    told = await shell.told("swap", "WETH", "USDC", "1", "--yes")

The venue settles an order when a client looks at it. The user has ten WETH and 10,000 USDC, and has given no
allowance.

A shell in which `cambist otc` is run against a scripted venue, on a devnet behind JSON-RPC.

async with an_otc_shell(folder) as shell:
    told = await shell.told("post", "USDC", "WETH", "2500", "--price", "0.0004", "--yes")
    await shell.of(shell.world.taker).told("fill", told["orderHash"], "--yes")

The maker has 10,000 USDC, the taker 10 WETH, both without allowances. Commands are the maker's by default.

A shell in which `cambist order` is run for orders across chains; both chains stand behind JSON-RPC.

async with a_bridged_shell(folder) as shell:
    told = await shell.told("swap", "WETH", "USDC", "1", *shell.across, "--yes")

The venue settles an order at the first look, and delivers it at the next.
"""

import json
import os
import subprocess
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import trio
from click.testing import Result

from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.dev.devnet.node import DevNode
from support.chain.anvil import OTHER_CHAIN_ID
from support.chain.world import ONE, USDC, a_world
from support.client.commands import invoked
from support.client.scripted_bridges import BridgeVenue, another_chain, link
from support.client.scripted_orders import OrderVenue, endow, scripted_orders
from support.client.scripted_otc import OtcVenue, scripted_otc
from support.patience import PATIENCE_S
from support.server.asked_front import listening
from support.venue.venue_role import CHAIN_ID, served_devnet


class Shell:
    """Runs a group of commands for one person, by default the user.

    Attributes:
        group: the commands.
        reading: those that need no key.
    """

    group = "order"
    reading: tuple[str, ...] = ("watch", "list")

    def __init__(self, venue: OrderVenue, node: str, folder: Path, key: SigningKey | None = None) -> None:
        self.venue = venue
        self.key = key or venue.world.user
        self.world = venue.world
        self.node = node
        self.folder = folder

    async def order(self, *arguments: str, typed: str = "") -> "subprocess.CompletedProcess[bytes]":
        """Run a command as a process of its own."""
        with trio.fail_after(PATIENCE_S):
            return await trio.run_process(
                self.command(*arguments),
                stdin=typed.encode(),
                capture_stdout=True,
                capture_stderr=True,
                check=False,
                env=os.environ | self.environ(),
                cwd=self.folder,
            )

    async def invoke(self, *arguments: str) -> Result:
        """Run a command in a thread of this process, which starts sooner."""
        return await invoked([self.group, *self.placed(*arguments)], self.environ())

    async def told(self, *arguments: str, status: int = 0) -> dict[str, Any]:
        """Run a command with --json and return the JSON of its only line."""
        done = await self.invoke(*arguments, "--json")
        assert done.exit_code == status, (done.stderr, done.exception)
        (line,) = done.stdout.splitlines()
        told: dict[str, Any] = json.loads(line)
        return told

    def command(self, *arguments: str) -> list[str]:
        return [sys.executable, "-m", "cambist", self.group, *self.placed(*arguments)]

    def placed(self, *arguments: str) -> list[str]:
        """Arguments with venue, chain and key; commands that only read take neither chain nor key."""
        places = ["--venue", self.venue.url]
        if arguments[0] not in self.reading:
            places += ["--chain", str(CHAIN_ID), "--rpc", self.node, "--key", "env:KEY"]
        return [*arguments, *places]

    def environ(self) -> dict[str, str]:
        return {"KEY": self.key.secret32().hex()}


@asynccontextmanager
async def an_order_shell(folder: Path) -> AsyncGenerator[Shell]:
    """See the module."""
    async with served_devnet(folder) as devnet:
        world = await a_world(devnet.chain)
        await endow(world)
        async with scripted_orders(world) as venue:
            venue.at_look = venue.settle
            yield Shell(venue, devnet.running.url, folder)


class OtcShell(Shell):
    """Runs the commands for one person."""

    group = "otc"
    venue: OtcVenue

    def of(self, key: SigningKey) -> "OtcShell":
        """The shell of another person."""
        return OtcShell(self.venue, self.node, self.folder, key)

    def placed(self, *arguments: str) -> list[str]:
        """Arguments with those of the shell; `--no-venue` leaves the venue out."""
        placed = super().placed(*arguments)
        if arguments[0] == "list":
            placed += ["--chain", str(CHAIN_ID)]
        if "--no-venue" in placed:
            at = placed.index("--venue")
            placed = [*placed[:at], *placed[at + 2 :]]
            placed.remove("--no-venue")
        return placed


@asynccontextmanager
async def an_otc_shell(folder: Path) -> AsyncGenerator[OtcShell]:
    """See the module."""
    async with served_devnet(folder) as devnet:
        world = await a_world(devnet.chain)
        await world.mint(world.usdc, world.maker, 10_000 * USDC)
        await world.mint(world.weth, world.taker, 10 * ONE)
        async with scripted_otc(world) as venue:
            yield OtcShell(venue, devnet.running.url, folder, world.maker)


class BridgedShell(Shell):
    """Runs `cambist order` for the user.

    Attributes:
        far_node: URL of a node of the destination chain.
    """

    venue: BridgeVenue
    far_node: str

    @property
    def across(self) -> tuple[str, ...]:
        """Options of an order across chains whose bridge's token is named."""
        return ("--to-chain", str(OTHER_CHAIN_ID), "--via", "USDC")

    @property
    def proven(self) -> tuple[str, ...]:
        """As `across`, with the node that proves the delivery."""
        return (*self.across, "--to-rpc", self.far_node)


@asynccontextmanager
async def a_bridged_shell(folder: Path) -> AsyncGenerator[BridgedShell]:
    """See the module."""
    async with served_devnet(folder) as devnet:
        world = await a_world(devnet.chain)
        await endow(world)
        chain = another_chain()
        async with (
            BridgeVenue.opened(world) as venue,
            DevNode.opened(chain, (), are_public=True) as node,
            listening(node.server.serve) as port,
        ):
            await link(venue, chain)
            venue.at_look = venue.settle_and_deliver
            shell = BridgedShell(venue, devnet.running.url, folder)
            shell.far_node = f"http://127.0.0.1:{port}"
            yield shell
