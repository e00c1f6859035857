"""The demo of orders across chains: each bridge delivers, one refunds, and both chains bear it out."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
import trio
from rich.console import Console

from cambist.codecs.contracts.calldata import transfer
from cambist.codecs.messages.delta_messages import OrderRecord
from cambist.crypto.secp256k1 import SigningKey
from cambist.engine.chain.transact import transact
from cambist.engine.dev.demo.bridged_orders import run_bridged_orders
from cambist.engine.dev.demo.order_scene import USER, completed
from cambist.engine.dev.demo.settlement import PlacedChain, a_stage
from cambist.engine.dev.demo.venue import a_market_place
from cambist.engine.trader.client.order.order_following import OrderFollower
from support.chain.devnet import KEYS
from support.patience import PATIENCE_S, STORY_S

MODULE = "cambist.engine.dev.demo.bridged_orders"
SCENE = "cambist.engine.dev.demo.order_scene"


@pytest.fixture(autouse=True)
def patience(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (MODULE, SCENE):
        monkeypatch.setattr(f"{module}.WAIT_S", PATIENCE_S)


async def shown(folder: Path) -> str:
    console = Console(file=io.StringIO(), width=200)
    with trio.fail_after(STORY_S):
        async with a_stage(folder) as stage, a_market_place(stage, folder) as place:
            await run_bridged_orders(console, stage, place)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def fails(folder: Path, message: str) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(AssertionError, match=message), flatten_subgroups=True):
        await shown(folder)


def rows(text: str, *first: str) -> list[list[str]]:
    """Cells of the rows of tables that begin with one of these."""
    lines = (re.split(r" {2,}", line.strip()) for line in text.splitlines())
    return [cells for cells in lines if cells[0] in first]


async def test_every_scene_says_what_has_happened(tmp_path: Path) -> None:
    across, cctp, refund = re.split(r" 1[789]\. ", await shown(tmp_path))[1:]

    quotes = rows(across, "by across", "by cctp")
    assert [(quote[0], quote[-1]) for quote in quotes] == [
        ("by across", "recommended, fastest"),
        ("by cctp", "best-return"),
    ]
    for _, entering, fee, arrives, *_ in quotes:
        assert float(entering) - float(fee) == pytest.approx(float(arrives))
    assert "if it fails        you get the bridged USDC back: no fill within 2 min" in across
    assert "is BRIDGING: on its way to chain 31338" in across
    assert across.index("is BRIDGING") < across.index("delivered by") < across.index("is COMPLETED")
    assert [row[-1] for row in rows(across, "user", "pool", "user, there", "carrier, there")] == [
        "-0.1", "5994.4005", "5991.740963", "-5991.740963",
    ]  # fmt: skip
    assert "Both chains prove it: 5991.740963 USDC of 5994.4005 USDC arrived" in across

    assert [quote[0] for quote in rows(cctp, "by across", "by cctp")] == ["by cctp"]
    assert "CCTP domain 338" in cctp
    assert [row[-1] for row in rows(cctp, "user", "user, there", "CCTP, there")] == [
        "-0.1", "5993.801059", "0.599441",
    ]  # fmt: skip
    assert [row[1] for row in rows(cctp, "relayer", "relayer, there")] == ["ETH", "ETH"]
    assert "Both chains prove it: 5993.801059 USDC of 5994.4005 USDC arrived" in cctp

    assert [row[0] for row in rows(refund, "bridging", "transferUnderWay")] == [
        "bridging",
        "transferUnderWay",
    ]
    assert "120 s pass, for both chains and for everybody" in refund
    assert refund.index("120 s pass") < refund.index("refunded by") < refund.index("is REFUNDED")
    assert [row[1:] for row in rows(refund, "user") if row[1] == "USDC"] == [
        ["USDC", "1000000", "1005994.4005", "5994.4005"]
    ]
    assert not rows(refund, "user, there")
    assert [row[-1] for row in rows(refund, "carrier", "pool")] == ["5994.4005", "-5994.4005"]


async def test_a_relayer_that_is_not_silent_is_no_demo_of_a_refund(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def go_on(*_: Any, **__: Any) -> None:
        return

    for step in ("_Ways.order_relayer", "_reached", "explained", "_pass_deadline"):
        monkeypatch.setattr(f"{MODULE}.{step}", go_on)
    await fails(tmp_path, "it is not refunded")


async def test_a_unit_that_nobody_has_sent_is_no_demo_of_a_delivery(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stages: list[PlacedChain] = []

    async def given_more(follower: OrderFollower) -> OrderRecord:
        record = await completed(follower)
        await one_unit(stages[0], KEYS[8], KEYS[USER].address)
        return record

    def placed(*args: Any) -> PlacedChain:
        stages.append(PlacedChain(*args))
        return stages[0]

    monkeypatch.setattr("cambist.engine.dev.demo.settlement.PlacedChain", placed)
    monkeypatch.setattr(f"{MODULE}.completed", given_more)
    await fails(tmp_path, "it moved")


async def test_a_way_that_the_venue_does_not_quote_is_no_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(f"{MODULE}.BRIDGES", {"across": "", "cctp": "", "another": ""})
    await fails(tmp_path, "the quote has routes by")


async def one_unit(place: PlacedChain, giver: SigningKey, taker: bytes) -> None:
    await transact(place.chain, giver, place.at("USDC"), transfer(taker, 1))
