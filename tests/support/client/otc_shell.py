"""A shell in which `cambist otc` is run against a scripted venue, on a devnet behind JSON-RPC.

async with an_otc_shell(folder) as shell:
    told = await shell.told("post", "USDC", "WETH", "2500", "--price", "0.0004", "--yes")
    await shell.of(shell.world.taker).told("fill", told["orderHash"], "--yes")

The maker has 10,000 USDC, the taker 10 WETH, both without allowances. Commands are the maker's by default.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from cambist.crypto.secp256k1 import SigningKey
from support.chain.world import ONE, USDC, a_world
from support.client.order_shell import Shell
from support.client.scripted_otc import OtcVenue, scripted_otc
from support.venue.venue_role import CHAIN_ID, served_devnet


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
