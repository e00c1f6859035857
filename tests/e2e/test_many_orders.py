"""A venue of processes has more orders than it works off at once: many that rest, or too many to settle."""

import os
import signal
import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path

import pytest
import trio

from cambist.codecs.eip712_orders.delta import (
    KIND_SELL,
    ORDER,
    SAME_CHAIN,
    DeltaOrder,
    delta_domain_separator,
)
from cambist.codecs.messages.vocabulary import OnChainOrderType, OrderStatus, OrderType, Side
from cambist.config.chains import ChainSettings
from cambist.config.settings import read_settings
from cambist.engine.host.process.clock import WallClock
from cambist.engine.store.leases import Leases
from cambist.engine.store.process.open_store import open_store
from cambist.engine.store.process.place import FILE_NAME
from cambist.engine.store.rows import DeltaOrderRow, amount32
from cambist.engine.trade.delta.orders.document import DeltaDocument, order_json
from cambist.engine.trade.delta.orders.live_orders import LiveOrders
from cambist.engine.trade.delta.orders.terms import terms_of
from support.chain.world import ONE, USDC
from support.patience import PATIENCE_S, STORY_S, until_told
from support.venue.process_story import OWNER_KEYS, OWNERS, Story, a_story
from support.venue.venue_processes import ENVIRON, SERVE, Running, serving, venue_processes
from support.venue.venue_role import CHAIN_ID

RESTING = 89_000  # an owner may have 10,000, and one owner's are for sales
AT_ONCE = 500
MEASURED, OVERLOADED_S = 200, 60
PAIRS = [("WETH", "USDC")]


def told(running: Running, story: Callable[[Story], Awaitable[None]]) -> None:
    """Run a story to its end."""

    async def within() -> None:
        with trio.fail_after(2 * STORY_S):
            async with a_story(running) as found:
                await story(found)

    trio.run(within)


async def fill(folder: Path, running: Running) -> None:
    """Keep limit orders out of reach in the store of a venue that does not run, as the venue keeps them."""
    settings = read_settings(folder / "venue.toml", os.environ | ENVIRON)
    clock, devnet = WallClock(), running.devnet
    names = ChainSettings(name="devnet")
    separator = delta_domain_separator(
        names.delta_domain_name, names.delta_domain_version, CHAIN_ID, devnet.at("delta")
    )
    digest, now_ms = ORDER.compiled.digest_for(separator), clock.now_ms()
    deadline_s = now_ms // 1_000 + 86_400
    async with open_store(settings, os.environ | ENVIRON, folder, clock.now_ms, in_process=True) as store:
        leases = Leases(store, "filler", life_s=600, now_ms=clock.now_ms)
        orders = LiveOrders(store, leases)

        async def keep(number: int) -> None:
            owner = OWNER_KEYS[1 + number % (OWNERS - 1)].address
            made = DeltaOrder(
                owner, owner, devnet.at("WETH"), devnet.at("USDC"), ONE // 1_000 + number, 10 * USDC,
                11 * USDC, deadline_s, KIND_SELL, 1_000_000 + number, 0, b"", b"", SAME_CHAIN,
            )  # fmt: skip
            key = digest(made)
            row = DeltaOrderRow(
                key, key[0], CHAIN_ID, owner, amount32(made.nonce), OnChainOrderType.ORDER, OrderType.LIMIT,
                Side.SELL, "anon", now_ms, deadline_s, 1, OrderStatus.PENDING, now_ms, amount32(0),
                amount32(0), is_final=False,
            )  # fmt: skip
            document = DeltaDocument("Order", order_json("Order", made), bytes(64))
            await orders.add(row, document, made, terms_of(made))

        for first in range(0, RESTING, AT_ONCE):
            async with trio.open_nursery() as nursery:
                for number in range(first, min(first + AT_ONCE, RESTING)):
                    nursery.start_soon(keep, number)
    with closing(sqlite3.connect(folder / FILE_NAME)) as connection:
        connection.execute("UPDATE delta_order SET status = 'ACTIVE', version = 2 WHERE status = 'PENDING'")
        connection.commit()


@pytest.mark.long
@pytest.mark.process
def test_a_venue_that_starts_beside_many_open_orders_trades_before_it_has_them_all(tmp_path: Path) -> None:
    with venue_processes(tmp_path, PAIRS, has_agent=True) as running:
        os.kill(running.pids[0], signal.SIGKILL)

        async def starts(story: Story) -> None:
            await fill(tmp_path, running)
            with serving(tmp_path, *SERVE) as engine:
                async with story.at(engine.url) as here:
                    await here.completed([await here.submitted(0)])
                    metrics = await here.metrics()
                    assert metrics["cambist_delta_shards"] == 0, "the others are taken up meanwhile"

                    async def all_rest() -> bool:
                        resting = f'cambist_delta_orders_resting{{chain="{CHAIN_ID}"}}'
                        return (await here.metrics())[resting] == RESTING

                    await until_told(all_rest, 2 * PATIENCE_S)
                    await here.completed([await here.submitted(OWNERS)])

        told(running, starts)


@pytest.mark.long
@pytest.mark.process
def test_half_as_many_orders_again_as_are_settled_wait_and_none_is_lost(tmp_path: Path) -> None:
    async def overloads(story: Story) -> None:
        began = trio.current_time()
        await story.completed([await story.submitted(number) for number in range(MEASURED)])
        per_s = 1.5 * MEASURED / (trio.current_time() - began)
        ids: list[str] = []
        began = trio.current_time()
        async with trio.open_nursery() as nursery:

            async def submit(number: int) -> None:
                ids.append(await story.submitted(number))

            for number in range(MEASURED, MEASURED + round(per_s * OVERLOADED_S)):
                await trio.sleep_until(began + (number - MEASURED) / per_s)
                nursery.start_soon(submit, number)
        await story.completed(ids)
        assert (await story.metrics())["cambist_server_errors_total"] == 0

    with venue_processes(tmp_path, PAIRS, has_agent=True, round_s=1.0) as running:
        told(running, overloads)
