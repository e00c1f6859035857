"""`/readyz` of a venue on real sockets and a real store process goes by what a request would get now."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import pytest
import trio
from msgspec.structs import replace
from prometheus_client.parser import text_string_to_metric_families

from cambist.config.settings import Settings
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain import pulse
from support.patience import PATIENCE_S, until, until_told
from support.server.port_gate import PortGate, port_gate
from support.store.store_work import full_disk
from support.stretched_bounds import own_bounds
from support.venue.venue_role import CHAIN_ID, GRIDS, USER, RunningVenue, running_venue

READY = (200, {"ready": True, "reasons": []})


@asynccontextmanager
async def gated_venue(folder: Path) -> AsyncGenerator[tuple[RunningVenue, PortGate]]:
    """A venue whose only node is behind a gate."""
    async with port_gate() as gate:

        def through(settings: Settings) -> Settings:
            chain = settings.chains[CHAIN_ID]
            gate.target = urlsplit(chain.node.urls[0]).port or 0
            node = replace(chain.node, urls=(f"http://127.0.0.1:{gate.port}",), ws_urls=())
            return replace(settings, chains={CHAIN_ID: replace(chain, node=node)})

        async with running_venue(
            folder, grids={"alpha": GRIDS["alpha"]}, changed=through, store_in_process=False
        ) as venue:
            yield venue, gate


async def is_ready(venue: RunningVenue) -> bool:
    return await venue.answer("/readyz") == READY


async def reasons(venue: RunningVenue) -> list[str]:
    """Why it is not, once it is not."""

    async def is_not() -> bool:
        return not await is_ready(venue)

    await until_told(is_not)
    status, told = await venue.answer("/readyz")
    assert (status, told["ready"]) == (503, False)
    found: list[str] = told["reasons"]
    return found


async def number(venue: RunningVenue, metric: str) -> float:
    """A metric, whatever its labels."""
    text = (await venue.ask("GET", "/metrics")).body.decode()
    families = text_string_to_metric_families(text)
    (value,) = [sample.value for family in families for sample in family.samples if sample.name == metric]
    return value


@pytest.mark.parametrize("how", ["shut", "hang"])
async def test_a_node_that_is_away_and_comes_back(
    tmp_path: Path, how: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    account = f"/users/tokens/{CHAIN_ID}/{to_checksum(USER.address)}"
    async with gated_venue(tmp_path) as (venue, gate):
        assert await is_ready(venue)
        assert await number(venue, "cambist_chain_away") == 0
        with monkeypatch.context() as late:
            own_bounds(late, pulse)
            getattr(gate, how)()
            (reason,) = await reasons(venue)
        assert reason.startswith(f"chain {CHAIN_ID}: no node answers: ")
        assert await number(venue, "cambist_chain_away") == 1
        assert await number(venue, "cambist_ready") == 0
        if how == "shut":
            assert (await venue.ask("GET", account)).status == 503
        assert (await venue.answer("/healthz"))[0] == 200
        gate.open()
        await until_told(lambda: is_ready(venue))
        assert (await venue.ask("GET", account)).status == 200
        assert await number(venue, "cambist_ready") == 1


async def test_a_full_disk(tmp_path: Path) -> None:
    async with gated_venue(tmp_path) as (venue, _):
        with full_disk():
            (reason,) = await reasons(venue)
            assert reason.startswith("store: the database cannot be used: ")
            assert await number(venue, "cambist_store_away") == 1
        await until_told(lambda: is_ready(venue))
        assert await number(venue, "cambist_store_away") == 0


async def test_nothing_else_is_asked_for_a_ready_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The state of a chain is known before it is asked for: a load balancer costs the chain nothing."""
    async with gated_venue(tmp_path) as (venue, gate):
        own_bounds(monkeypatch, pulse)
        gate.hang()
        await until(lambda: venue.app.chains[CHAIN_ID].pulse.fault)
        with trio.fail_after(PATIENCE_S):
            for _ in range(100):
                assert (await venue.answer("/readyz"))[0] == 503
