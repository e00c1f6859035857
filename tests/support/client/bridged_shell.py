"""A shell in which `cambist order` is run for orders across chains; both chains stand behind JSON-RPC.

async with a_bridged_shell(folder) as shell:
    told = await shell.told("swap", "WETH", "USDC", "1", *shell.across, "--yes")

The venue settles an order at the first look, and delivers it at the next.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

from cambist.engine.dev.devnet.node import DevNode
from support.chain.anvil import OTHER_CHAIN_ID
from support.chain.world import a_world
from support.client.order_shell import Shell
from support.client.scripted_bridges import BridgeVenue, another_chain, link
from support.client.scripted_orders import endow
from support.server.asked_front import listening
from support.venue.venue_role import served_devnet


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
