"""A price source's surroundings, and what it gives."""

from collections.abc import AsyncGenerator, Mapping
from contextlib import aclosing
from decimal import Decimal
from pathlib import Path
from typing import Any

import trio

from cambist.codecs.messages.maker_messages import PriceGrid
from cambist.config.secret import read_secret
from cambist.engine.roles.maker.prices.source import (
    Grid,
    PriceSource,
    SourceContext,
    SourcePair,
    normalise_grid,
)
from support.patience import PATIENCE_S

WETH, WBTC, USDC = b"\x0e" * 20, b"\x0b" * 20, b"\x05" * 20
SECRETS = dict.fromkeys(["SECRET", "OTHER_SECRET"], "a secret")
WETH_USDC = SourcePair("WETH", "USDC", 18, 6, WETH, USDC)
WBTC_USDC = SourcePair("WBTC", "USDC", 8, 6, WBTC, USDC)


class Surroundings:
    """A context and what happens to it.

    Attributes:
        reports: what the source reported.
        sold: base tokens sold by pair.
    """

    def __init__(self, folder: Path = Path()) -> None:
        self.reports: list[str] = []
        self.sold: dict[str, Decimal] = {}
        self.context = SourceContext(
            chain_id=1,
            pairs={"WETH/USDC": WETH_USDC, "WBTC/USDC": WBTC_USDC},
            now_ms=lambda: 1_795_000_000_000,
            folder=folder,
            secret=lambda reference, field: read_secret(reference, SECRETS, field, folder),
            exposure=lambda pair_id: self.sold.get(pair_id, Decimal(0)),
            report=self.reports.append,
            field="maker.chains.1.price_options",
        )


async def first_updates(source: PriceSource, count: int) -> list[tuple[float, dict[str, PriceGrid]]]:
    """The first updates as the board takes them, with the seconds at which they came."""
    started_at = trio.current_time()
    taken: list[tuple[float, dict[str, PriceGrid]]] = []
    async with aclosing(source.updates()) as updates:
        async for update in updates:
            taken.append((trio.current_time() - started_at, normalised(update)))
            if len(taken) == count:
                break
    return taken


async def next_update(updates: AsyncGenerator[Mapping[str, Grid], None]) -> dict[str, PriceGrid]:
    """The next update, within a minute of the test's clock."""
    with trio.fail_after(PATIENCE_S):
        return normalised(await anext(updates))


def normalised(update: Mapping[str, Any]) -> dict[str, PriceGrid]:
    return {pair_id: normalise_grid(pair_id, grid) for pair_id, grid in update.items()}


def open_files() -> int:
    """Number of files that this process holds open."""
    return len(list(Path("/proc/self/fd").iterdir()))
