"""The demo of Delta: the better of two agents wins, orders wait, a settlement fails for free."""

import io
import re
from pathlib import Path

import pytest
import trio
from rich.console import Console

from cambist.codecs.messages.delta_messages import OrderRecord
from cambist.engine.dev.demo.order_scene import completed
from cambist.engine.dev.demo.orders import run_orders
from cambist.engine.dev.demo.settlement import DemoChain, a_stage
from cambist.engine.dev.demo.venue import a_market_place
from cambist.engine.trader.client.order.order_following import OrderFollower
from support.patience import LATE_ROUND_S, STORY_S


async def shown(folder: Path, stage: DemoChain) -> str:
    console = Console(file=io.StringIO(), width=200)
    with trio.fail_after(STORY_S):
        async with a_market_place(stage, folder) as place:
            await run_orders(console, stage, place)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


def rows(text: str, *first: str) -> list[list[str]]:
    """Cells of the rows of tables that begin with one of these."""
    lines = (re.split(r" {2,}", line.strip()) for line in text.splitlines())
    return [cells for cells in lines if cells[0] in first]


async def test_every_scene_says_what_has_happened(tmp_path: Path) -> None:
    async with a_stage(tmp_path) as stage:
        text = await shown(tmp_path, stage)
    auction, limit, twap, cancellation, failure = re.split(r" 1[0-4]\. ", text)[1:]

    assert [(row[0], row[-1]) for row in rows(auction, "rapid", "plain")] == [
        ("rapid", "won"),
        ("plain", "lost"),
    ]
    assert [row[1:] for row in rows(auction, "user") if row[1] != "WETH"] == [
        ["USDC", "1000000", "989996", "-10004"],
        ["ETH", "10000", "10000", "0"],
    ]
    assert [row[1:] for row in rows(auction, "alpha")][-1] == ["USDC", "1000000", "1010004", "10004"]
    assert "has sent no transaction, not even to approve" in auction

    assert "limit price        1 WETH = 2600 USDC  (+4.02 % from now)" in limit
    assert "the order waits for its price: it sells 4000000000000000000 for at least 10400000000" in limit
    assert [row[1:] for row in rows(limit, "rounds")] == [["0"]], "nobody is asked while it rests"
    assert "alpha raises its bid from 2500 to 2606" in limit
    assert [row[-1] for row in rows(limit, "user")] == ["-4", "10422.9576", "0"]
    assert "better by 22.9576 USDC" in limit

    assert "3 of 1.000000000000000033 WETH, the last 1.000000000000000034 WETH" in twap
    assert "one every 1 min: the first at once, the last in 2 min at the earliest" in twap
    assert "worst price        1 WETH = 2466.66666" in twap
    assert len(re.findall(r"settled by 0x\w+, 33\.33333[34] %", twap)) == 3
    assert twap.count("60 s pass, for the chain and for everybody") == 2
    assert rows(twap, "user")[0][-1] == "-3.0000000000000001"
    gaps = re.findall(r"settled (\d+) and (\d+) s apart on the chain, and the last took the remainder", twap)
    assert min(int(gap) for gap in gaps[0]) >= 60

    assert "the order waits for its price" in cancellation
    assert "is CANCELLED: nothing more of it is settled" in cancellation
    assert not rows(cancellation, "user")
    assert "nobody's balance has moved" in cancellation

    assert [row[-1].split(",")[0] for row in rows(failure, "rapid", "plain")[:2]] == ["won", "lost"]
    (block,) = re.findall(r"block (\d+) +\n(.*)\n(.*)\n", failure)
    assert "mined" in block[1]
    assert "the relayer settles rapid's bid" in block[2]
    assert "reverted" in block[2]
    told = {row[0]: row[1:] for row in rows(failure, "rapid", "plain")[2:]}
    assert told == {
        "rapid": ["won, settling, reverted, banned", "5", "1 reverted", "rests"],
        "plain": ["lost, settling, settled", "1", "none"],
    }
    assert [row[-1] for row in rows(failure, "user")] == ["-4", "9991.0008", "0"]
    assert [row[-1] for row in rows(failure, "beta")] == ["4", "-9992"]
    assert f"After block {block[0]} the user had what it had before" in failure


async def test_a_maker_that_trades_again_is_live_once_its_readers_hear_it(tmp_path: Path) -> None:
    """A reader keeps the books of a closed WebSocket for a second, and would lose them during an auction."""
    async with a_stage(tmp_path) as stage, a_market_place(stage, tmp_path) as place:
        feed = place.agents["rapid"].places[stage.running.chain_id].makers.feeds["alpha"]
        with trio.fail_after(STORY_S):
            await place.stop("alpha")
            place.makers["alpha"].switch.resume("all")
            await place.live()
        stream = feed.statistics().stream
        assert stream is not None
        assert (stream.is_up, stream.connections) == (True, 2)


async def test_a_price_that_does_not_come_is_no_demo_of_a_limit_order(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alpha bids a little less than the limit and its fee."""
    monkeypatch.setattr("cambist.engine.dev.demo.waiting_orders._RAISED", ("2600.1", "2607"))

    async def hasty(follower: OrderFollower) -> OrderRecord:
        monkeypatch.setattr("cambist.engine.dev.demo.order_scene.WAIT_S", LATE_ROUND_S)
        return await completed(follower)

    monkeypatch.setattr("cambist.engine.dev.demo.waiting_orders.completed", hasty)
    async with a_stage(tmp_path) as stage:
        with pytest.RaisesGroup(
            pytest.RaisesExc(AssertionError, match="it is not settled"), flatten_subgroups=True
        ):
            await shown(tmp_path, stage)


async def test_a_settlement_that_does_not_fail_is_no_demo_of_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Alpha's transaction comes behind everything else."""
    monkeypatch.setattr("cambist.engine.dev.demo.orders._TIP_WEI", 0)
    async with a_stage(tmp_path) as stage:
        with pytest.RaisesGroup(
            pytest.RaisesExc(AssertionError, match="the block is another one"), flatten_subgroups=True
        ):
            await shown(tmp_path, stage)


async def test_agents_of_whom_none_is_better_are_no_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both agents trade with the same maker and promise the same amount."""
    monkeypatch.setattr(
        "cambist.engine.dev.demo.place_settings.AGENTS", agents := {"rapid": ("beta",), "plain": ("beta",)}
    )
    monkeypatch.setattr("cambist.engine.dev.demo.venue.AGENTS", agents)
    async with a_stage(tmp_path) as stage:
        with pytest.RaisesGroup(
            pytest.RaisesExc(AssertionError, match="the bids promise|has won"), flatten_subgroups=True
        ):
            await shown(tmp_path, stage)
