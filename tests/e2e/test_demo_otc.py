"""The demo of OTC orders: for one taker, filled in part, cancelled; told by the venue as the chain has it."""

import io
import re
from pathlib import Path
from typing import Any

import pytest
import trio
from msgspec import structs
from rich.console import Console

from cambist.codecs.messages.event_messages import (
    OrderEventMessage,
    OrderStreamMessage,
    decode_stream_message,
)
from cambist.codecs.messages.otc_messages import StoredOrder
from cambist.codecs.messages.vocabulary import OtcState
from cambist.crypto.addresses import to_checksum
from cambist.engine.chain.nodes.rpc import RpcChain
from cambist.engine.chain.port import EthCall
from cambist.engine.dev.demo.otc_orders import run_otc_orders
from cambist.engine.dev.demo.settlement import a_stage
from cambist.engine.dev.demo.venue import a_market_place
from cambist.engine.trader.client.client import VenueClient
from cambist.engine.trader.client.events import OtcEventsWanted
from support.chain.devnet import KEYS
from support.patience import STORY_S

STRANGER = KEYS[4]
MODULE = "cambist.engine.dev.demo.otc_orders"


async def shown(folder: Path) -> str:
    console = Console(file=io.StringIO(), width=200)
    with trio.fail_after(STORY_S):
        async with a_stage(folder) as stage, a_market_place(stage, folder) as place:
            await run_otc_orders(console, stage, place)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue()


async def fails(folder: Path, message: str | None, error: type[Exception] = AssertionError) -> None:
    with pytest.RaisesGroup(pytest.RaisesExc(error, match=message), flatten_subgroups=True):
        await shown(folder)


def rows(text: str, *first: str) -> list[list[str]]:
    """Cells of the rows of tables that begin with one of these."""
    lines = (re.split(r" {2,}", line.strip()) for line in text.splitlines())
    return [cells for cells in lines if cells[0] in first]


# --- As it is -----------------------------------------------------------------------------------------


async def test_both_scenes_say_what_has_happened(tmp_path: Path) -> None:
    posting, ending = re.split(r" 1[56]\. ", await shown(tmp_path))[1:]
    filling, cancelling = ending.split("simulating the cancellation of 1 order")
    (order_hash,) = re.findall(r"posting the order (0x\w{64})", posting)
    (fill,) = re.findall(r"sending the fill (0x\w{64})", filling)
    (cancellation,) = re.findall(r"sending the cancellation (0x\w{64})", cancelling)
    balances = ("fillableBalance", "makerBalance", "reservedBalance", "swappableBalance")

    assert "price      1 WETH = 2600 USDC" in posting
    assert rows(posting, "state", "transactionHash") == [
        ["state", "PENDING (P2P)"],
        ["transactionHash", "none yet"],
    ]
    assert [row[1] for row in rows(posting, *balances)] == ["10 WETH"] * 4
    pushed = "pushed to the taker: .*order {} is {}: {}, {} raw units left{}"
    assert re.search(pushed.format(order_hash, "PENDING", "it can be filled", 10**19, "\n"), posting)
    assert "the contract refuses any other taker" in rows(posting, "with cambist otc fill")[0][1]
    assert rows(posting, "by the RFQ contract") == [["by the RFQ contract", "Access denied"]]

    assert f"fill filled: {fill}" in filling
    assert rows(filling, "state", "transactionHash") == [
        ["state", "PENDING (P2P)"],
        ["transactionHash", fill],
    ]
    assert [row[1] for row in rows(filling, *balances)] == ["6 WETH"] * 4
    left = 6 * 10**18
    assert re.search(pushed.format(order_hash, "PENDING", "it can be filled", left, f", {fill}\n"), filling)
    assert rows(filling, "maker", "taker")[-4:] == [
        ["maker", "WETH", "100", "96", "-4"],
        ["maker", "USDC", "1000000", "1010400", "10400"],
        ["taker", "WETH", "100", "104", "4"],
        ["taker", "USDC", "1000000", "989600", "-10400"],
    ]

    assert rows(cancelling, "state", "transactionHash") == [
        ["state", "CANCELLED (P2P)"],
        ["transactionHash", cancellation],
    ]
    assert [row[1] for row in rows(cancelling, *balances)] == ["6 WETH", "0 WETH", "0 WETH", "0 WETH"]
    told = pushed.format(order_hash, "CANCELLED", "the maker cancelled it", left, f", {cancellation}\n")
    assert re.search(told, cancelling)
    assert "The other 6 WETH stay the maker's" in cancelling


# --- Where it does not hold ---------------------------------------------------------------------------


async def test_a_taker_for_a_stranger_is_no_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}._STRANGER", 5)
    await fails(tmp_path, "a stranger may fill the order")


async def test_a_contract_that_lets_everybody_fill_is_no_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    called = RpcChain.call

    async def allowing(chain: RpcChain, call: EthCall, *where: Any) -> bytes:
        return b"" if call.sender == STRANGER.address else await called(chain, call, *where)

    monkeypatch.setattr(RpcChain, "call", allowing)
    await fails(tmp_path, "the contract lets a stranger fill the order")


@pytest.mark.parametrize(
    "lie",
    [{"state": OtcState.SUSPENDED}, {"fillable_balance": "7"}, {"swappable_balance": "0"}],
    ids=["the state", "what is unfilled", "what can be filled"],
)
async def test_a_record_that_is_not_what_was_pushed_is_no_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lie: dict[str, Any]
) -> None:
    lies_of_records(monkeypatch, lie)
    await fails(tmp_path, "the venue has pushed .*, and says")


async def test_what_the_chain_does_not_bear_out_is_no_demo(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same lie, told and pushed."""
    lies_of_records(monkeypatch, lie := {"fillable_balance": str(9 * 10**18)})

    def lying(raw: bytes) -> OrderStreamMessage:
        message = decode_stream_message(raw)
        return structs.replace(message, **lie) if isinstance(message, OrderEventMessage) else message

    monkeypatch.setattr("cambist.engine.trader.client.events.decode_stream_message", lying)
    await fails(tmp_path, "the chain does not bear the venue out")


async def test_a_venue_that_does_not_push_is_no_demo(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(f"{MODULE}.WAIT_S", 3)
    of_others = OtcEventsWanted(taker=to_checksum(STRANGER.address))
    monkeypatch.setattr(f"{MODULE}.OtcEventsWanted", lambda **_: of_others)
    await fails(tmp_path, None, trio.TooSlowError)


def lies_of_records(monkeypatch: pytest.MonkeyPatch, lie: dict[str, Any]) -> None:
    """The venue says something else of every order."""
    told = VenueClient.otc_order

    async def lying(venue: VenueClient, order_hash: str) -> StoredOrder:
        return structs.replace(await told(venue, order_hash), **lie)

    monkeypatch.setattr(VenueClient, "otc_order", lying)
