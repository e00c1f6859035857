"""A venue on a world's chain: what it reads of the chain is in its folder, and it is asked over HTTP.

devnet = devnet_of(world, folder)
async with venue_on(devnet, folder, venue_text(devnet, {}), ENVIRON, clock) as web:
    chains = await web.get("/chains")
"""

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

import trio
from msgspec import Struct

from cambist.codecs.http1 import Http1Limits
from cambist.config.settings import parse_settings
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.deploy.address_book import DeployedChain, chain_entry, write_entries
from cambist.engine.chain.port import DevChain
from cambist.engine.dev.devnet.serve import RunningChain
from cambist.engine.venue.app import opened_venue
from cambist.feeds.net.http_client import HttpClient
from cambist.feeds.net.streams import listen
from support.chain.world import World
from support.venue.venue_fronts import StoryClock
from support.venue.venue_role import CHAIN_ID, DECIMALS, Devnet, RunningVenue


class _At(Struct, frozen=True):
    """A chain that needs no node: what `Devnet` reads of a running one."""

    entry: DeployedChain
    url: str = "http://127.0.0.1:9"


def entry_of(world: World, folder: Path, more: Mapping[str, bytes] | None = None) -> DeployedChain:
    """The chain's entry in the folder's address book: its contracts, WETH, USDC, DAI and more tokens."""
    tokens = {"WETH": world.weth, "USDC": world.usdc, "DAI": world.dai, **(more or {})}
    entry = chain_entry(
        "devnet",
        world.at,
        wrappedNative=to_checksum(world.weth),
        permit2=to_checksum(world.permit2),
        tokens={
            symbol: {"address": to_checksum(address), "decimals": DECIMALS[symbol]}
            for symbol, address in tokens.items()
        },
    )
    write_entries(folder, {CHAIN_ID: entry})
    return entry


def devnet_of(world: World, folder: Path) -> Devnet:
    """The chain as a venue's settings name it; its contracts and tokens stand in a file of the folder."""
    entry = entry_of(world, folder, {"WBTC": b"\x0d" * 20})
    return Devnet(world.chain, cast("RunningChain", _At(entry)))


@asynccontextmanager
async def venue_on(
    devnet: Devnet,
    folder: Path,
    text: str,
    environ: Mapping[str, str],
    clock: StoryClock,
    chains: Mapping[int, DevChain] | None = None,
) -> AsyncGenerator[RunningVenue]:
    """The venue that operators run, once it serves; cancelled in the end.

    Args:
        folder: of its state; a second venue in the same folder is a restart.
        text: of its settings; environ: what they refer to.
        chains: as the venue sees them, where that is not the devnet's alone.
    """
    settings = parse_settings(text, environ, folder)
    async with opened_venue(
        settings,
        environ=environ,
        folder=folder,
        clock=clock,
        chains=chains or {CHAIN_ID: devnet.chain},
        store_in_process=True,
    ) as app:
        listener = listen("127.0.0.1", 0)
        port = listener.getsockname()[1]
        async with trio.open_nursery() as nursery:
            await nursery.start(app.run, listener)
            async with HttpClient("127.0.0.1", port, connections_max=64, limits=Http1Limits()) as client:
                yield RunningVenue(app, devnet, {}, client, port)
            nursery.cancel_scope.cancel()
