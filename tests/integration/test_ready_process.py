"""`cambist serve` as a process: while `/readyz` names store or chain every write is 503, and else none is."""

from pathlib import Path
from typing import Any

from support.delta.delta_process import CrashStory, a_crash_story
from support.hurried_command import hurried
from support.patience import until_told
from support.store.store_work import full_disk
from support.venue.venue_role import CHAIN_ID

NO_MAKER = f"chain {CHAIN_ID}: no maker has a live book"
"""The venue of these stories has none, and takes orders all the same."""


async def reasons(story: CrashStory) -> list[str]:
    """Reasons of /readyz, without the one that is always there."""
    status, told = await story.ask("GET", "/readyz")
    assert (status, told["ready"]) == (503, False)
    assert NO_MAKER in told["reasons"]
    return [reason for reason in told["reasons"] if reason != NO_MAKER]


async def named(story: CrashStory, beginning: str) -> None:
    """Wait until the one reason begins so."""

    async def is_so() -> bool:
        return [reason.startswith(beginning) for reason in await reasons(story)] == [True]

    await until_told(is_so)


async def well(story: CrashStory) -> None:
    """Wait until there is no reason."""

    async def is_so() -> bool:
        return not await reasons(story)

    await until_told(is_so)


async def submitted(story: CrashStory, nonce: int) -> tuple[int, Any]:
    """Status of the answer to an order."""
    order = await story.world.a_delta_order(nonce=nonce)
    return await story.ask("POST", "/v2/delta/orders", story.world.delta_body(order))


async def test_a_disk_that_is_full_and_a_node_that_hangs(tmp_path: Path) -> None:
    async with a_crash_story(tmp_path, "ann", command="support.hurried_command:main") as story:
        await well(story)
        assert (await submitted(story, 1))[0] == 200
        with full_disk(story.process.pid):
            await named(story, "store: the database cannot be used: ")
            for nonce in (2, 3, 4):
                assert (await submitted(story, nonce))[0] == 503
            await named(story, "store: the database cannot be used: ")
        await well(story)
        assert (await submitted(story, 2))[0] == 200
        with hurried(story.process.pid):
            story.node.swallows("eth_getBlockByNumber")
            await named(story, f"chain {CHAIN_ID}: no node answers: ")
            assert (await submitted(story, 3))[0] == 503
            story.node.lets_through()
        await well(story)
        assert (await submitted(story, 3))[0] == 200
